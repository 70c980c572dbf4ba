#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Takes screenshots of the page of timers: doc/timers.png, light and wide, and doc/timers-phone.png, dark and narrow.

usage: page_picture.py DIRECTORY CHROMIUM CHROMEDRIVER [SECONDS]

DIRECTORY contains http_server, which runs under some load for SECONDS (120).
"""

import base64
import pathlib
import random
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "http"))

from browser import Browser, Server, until  # noqa: E402

MOST = 150_000  # maximum bytes of a picture


def picture(browser: Browser, name: str, scheme: str, width: int) -> None:
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=600, deviceScaleFactor=1, mobile=width < 600)
    time.sleep(2)  # until it is redrawn
    height = browser.js("document.documentElement.scrollHeight")
    shot = browser.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                       clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
    data = base64.b64decode(shot["data"])
    if len(data) > MOST:
        sys.exit(f"{name} would have {len(data)} bytes")
    (ROOT / "doc" / name).write_bytes(data)
    print(f"doc/{name}: {width} x {height}, {len(data)} bytes")


def main() -> None:
    programs, chromium, chromedriver = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 120
    over = threading.Event()
    with Server(programs, "--request-timeout", "5s", "--drain", "6s") as server:

        def ask(number: int) -> None:
            chance = random.Random(number)
            while not over.is_set():
                server.ask(f"/slow?ms={int(chance.expovariate(1 / 40))}")
                over.wait(chance.expovariate(1 / (0.02 + 0.1 * abs((time.monotonic() - begin) % 30 - 15) / 15)))

        begin = time.monotonic()
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(30)]
        with Browser(chromium, chromedriver) as browser:
            browser.go(f"{server.url}/timers")
            until("the page is live", lambda: browser.words("state") == "Live")
            for t in threads:
                t.start()
            time.sleep(seconds)
            picture(browser, "timers.png", "light", 1000)
            picture(browser, "timers-phone.png", "dark", 360)
        over.set()
        for t in threads:
            t.join()
        server.end()


if __name__ == "__main__":
    main()
