# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Shared by the tests of the page of timers: http_server as a process, and a headless Chromium, which chromedriver
drives over HTTP as in the W3C's WebDriver."""

from __future__ import annotations

import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing
import urllib.error
import urllib.request

PATIENCE = 60.0  # seconds, for events that may be late on a busy machine


class Failed(Exception):
    """A promise does not hold."""


def until(what: str, holds: typing.Callable[[], typing.Any], pause: float = 0.1) -> typing.Any:
    """Waits until `holds()` is true, and returns it."""
    end = time.monotonic() + PATIENCE
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"never: {what}")
        time.sleep(pause)


def expect(what: str, found: typing.Any, expected: typing.Any) -> None:
    if found != expected:
        raise Failed(f"{what}: expected {expected!r}, found {found!r}")


class Server:
    """http_server on 127.0.0.1."""

    def __init__(self, programs: str, *options: str, port: int = 0) -> None:
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name, "root")
        root.mkdir()
        (root / "index.html").write_text("hello\n")
        self.log = open(pathlib.Path(self.folder.name, "stderr"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [f"{programs}/http_server", "--port", str(port), "--root", str(root), *options],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise Failed(f"the server does not start: {self.said()}")
        self.port = int(line.rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def said(self) -> str:
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def ask(self, target: str, method: str = "GET", headers: dict[str, str] = {}) -> tuple[int, str]:
        """The status and the body of an answer."""
        request = urllib.request.Request(self.url + target, method=method, headers=headers,
                                         data=b"" if method == "POST" else None)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def metric(self, name: str) -> int:
        """The sum of a metric over its labels."""
        found = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\d+)$", self.ask("/metrics")[1], flags=re.M)
        if not found:
            raise Failed(f"/metrics has no {name}")
        return sum(map(int, found))

    def readers(self) -> int:
        return self.metric("pawl_timer_feed_readers")

    def connect(self, *, receive_buffer: int | None = None) -> socket.socket:
        s = socket.socket()
        if receive_buffer is not None:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(PATIENCE)
        s.connect(("127.0.0.1", self.port))
        return s

    def end(self, status: int = 0) -> str:
        """Makes it drain, and returns its output."""
        self.process.send_signal(signal.SIGTERM)
        try:
            found = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failed("the server does not end") from None
        said = self.said()
        if found != status:
            raise Failed(f"the server ends with {found}: {said}")
        return said

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Browser:
    """A headless Chromium. Its windows are known by the handles of WebDriver."""

    ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--no-proxy-server", "--hide-scrollbars", "--window-size=1200,900"]

    def __init__(self, chromium: str, chromedriver: str) -> None:
        self.driver = subprocess.Popen([chromedriver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
        for line in self.driver.stdout:
            if started := re.search(r"started successfully on port (\d+)", line):
                break
        else:
            raise Failed("chromedriver does not start")
        self.base = f"http://127.0.0.1:{started[1]}"
        self.session = ""
        options = {"binary": chromium, "args": self.ARGUMENTS}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{made['sessionId']}"

    def call(self, method: str, path: str, body: dict | None = None) -> typing.Any:
        request = urllib.request.Request(self.base + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as refusal:
            raise Failed(f"chromedriver refuses {method} {path}: {refusal.read().decode()[:500]}") from None

    def do(self, command: str, **body: typing.Any) -> typing.Any:
        return self.call("POST", f"{self.session}/{command}", body)

    def ask(self, what: str) -> typing.Any:
        return self.call("GET", f"{self.session}/{what}")

    def go(self, url: str) -> None:
        self.do("url", url=url)

    def js(self, code: str) -> typing.Any:
        return self.do("execute/sync", script="return " + code, args=[])

    def words(self, element: str) -> str:
        return self.js(f"document.getElementById({element!r}).textContent")

    def cdp(self, command: str, **parameters: typing.Any) -> typing.Any:
        return self.do("goog/cdp/execute", cmd=command, params=parameters)

    def press(self, *keys: str) -> None:
        """Presses one key after the other. Tab is \\ue004, Enter \\ue007."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.do("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def complaints(self) -> list[str]:
        """The new output of the console since the last call, warnings and errors."""
        return [entry["message"] for entry in self.do("se/log", type="browser")
                if entry["level"] in ("WARNING", "SEVERE")]

    def new_tab(self) -> str:
        """Opens a tab in front of the others, and switches to it."""
        handle = self.do("window/new", type="tab")["handle"]
        self.to(handle)
        return handle

    def to(self, handle: str) -> None:
        self.do("window", handle=handle)

    def close_tab(self, then: str) -> None:
        self.call("DELETE", f"{self.session}/window")
        self.to(then)

    def close(self) -> None:
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run(tests: list[typing.Callable[[], None]]) -> int:
    """Runs all tests, reports failures, and returns the exit status."""
    failures = 0
    for test in tests:
        begin = time.monotonic()
        name = test.__name__.replace("_", " ")
        try:
            test()
            print(f"{name}: passed, {time.monotonic() - begin:.1f} s", flush=True)
        except (Failed, OSError) as failure:
            failures += 1
            print(f"{name}: FAILED: {failure}", file=sys.stderr, flush=True)
    print(f"{len(tests) - failures} passed, {failures} failed")
    return 1 if failures or not tests else 0
