#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Shows the timers of a process in a terminal, from its /metrics, in the format of pawl::to_prometheus().

usage: top.py [--interval SECONDS] [--once] [URL | HOST:PORT | PORT | unix:PATH]

The default address is 127.0.0.1:8080, the default path /metrics; unix:PATH is a socket. The screen is redrawn once a
second; q quits. --once prints one screen, without rates, and exits. Rates are between the last two answers.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import select
import shutil
import socket
import sys
import termios
import time
import tty
import typing
import urllib.parse

SAMPLE = re.compile(r'^(pawl_\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
LONGEST = 16_000_000  # maximum bytes of an answer

Labels = typing.Tuple[typing.Tuple[str, str], ...]


class Trouble(Exception):
    """An error, as one line."""


def plain(line: str) -> str:
    """What may be shown: an answer cannot move the cursor, nor fill the screen with one line."""
    return "".join(c if c.isprintable() else "?" for c in line[:1000])


class Source:
    """The address of /metrics."""

    def __init__(self, address: str) -> None:
        self.path, self.socket, self.tls = "/metrics", "", False
        if address.startswith("unix:"):
            self.socket = self.name = address.removeprefix("unix:")
            if not self.socket:
                raise Trouble("unix: needs a path")
            return
        if re.fullmatch(r"\d+", address):
            address = "127.0.0.1:" + address
        if "://" not in address:
            address = "http://" + address
        try:
            parts = urllib.parse.urlsplit(address)
            self.host, self.port = parts.hostname, parts.port
        except ValueError as error:
            raise Trouble(f"{address} is not an address: {error}") from None
        if parts.scheme not in ("http", "https") or not self.host:
            raise Trouble(f"{address} is not an address: use http://HOST:PORT/PATH, HOST:PORT, PORT or unix:PATH")
        self.tls = parts.scheme == "https"
        if parts.path not in ("", "/"):
            self.path = parts.path + ("?" + parts.query if parts.query else "")
        self.name = f"{parts.scheme}://{parts.netloc}{self.path}"

    def ask(self) -> str:
        """The text. Raises Trouble."""
        connection: http.client.HTTPConnection | None = None
        try:
            if self.tls:
                connection = http.client.HTTPSConnection(self.host, self.port, timeout=10)
            else:
                connection = http.client.HTTPConnection("localhost" if self.socket else self.host,
                                                        None if self.socket else self.port, timeout=10)
            if self.socket:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(10)
                connection.sock.connect(self.socket)
            connection.request("GET", self.path, headers={"Connection": "close"})
            answer = connection.getresponse()
            body = answer.read(LONGEST).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: no such name can be asked for
            raise Trouble(f"cannot ask {self.name}: {getattr(error, 'strerror', None) or error or type(error).__name__}"
                          ) from None
        finally:
            if connection:
                connection.close()
        if answer.status != 200:
            first = body.strip().splitlines()[:1]
            raise Trouble(f"{self.name} answers {answer.status}{': ' + first[0][:200] if first else ''}")
        return body


class Snapshot:
    """The numbers of one answer."""

    def __init__(self, text: str, source: str) -> None:
        self.at = time.monotonic()
        self.values: dict[str, dict[Labels, float]] = {}
        for line in text.splitlines():
            if found := SAMPLE.match(line):
                try:
                    value = float(found[3])
                except ValueError:
                    continue
                self.values.setdefault(found[1], {})[tuple(LABEL.findall(found[2] or ""))] = value
        if "pawl_timer_pending" not in self.values:
            raise Trouble(f"{source} has no metrics of Pawl: does it include the output of pawl::to_prometheus()?")

    def total(self, name: str, **labels: str) -> float:
        wanted = labels.items()
        return sum(value for have, value in self.values.get(name, {}).items() if wanted <= dict(have).items())

    def services(self) -> list[tuple[str, str]]:
        return sorted({(dict(labels).get("clock", "?"), dict(labels).get("backend", "?"))
                       for labels in self.values["pawl_timer_pending"]})

    def buckets(self, name: str) -> list[tuple[float, float]]:
        found = []
        for labels, value in self.values.get(name + "_bucket", {}).items():
            try:
                found.append((float(dict(labels).get("le", "inf")), value))
            except ValueError:
                continue
        return sorted(found)


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def quantile(buckets: list[tuple[float, float]], share: float) -> str:
    if not buckets or buckets[-1][1] <= 0:
        return "-"
    for end, below in buckets:
        if below >= share * buckets[-1][1]:
            if end != float("inf"):
                return duration(end)
            return "more than " + duration(buckets[-2][0]) if len(buckets) > 1 else "-"
    return "-"


def shown(number: float) -> str:
    return f"{number:,.0f}"


def screen(now: Snapshot, before: Snapshot | None, source: str, ends: str = "") -> list[str]:
    """The lines of one screen. `ends` says how it ends."""
    if before and now.total("pawl_timer_started_total") < before.total("pawl_timer_started_total"):
        before = None  # another process

    def rate(name: str, **labels: str) -> str:
        if before is None:
            return "-"
        return shown((now.total(name, **labels) - before.total(name, **labels)) / max(now.at - before.at, 1e-3))

    out = [f"Pawl's timers of {source}   {time.strftime('%H:%M:%S')}{ends}", ""]
    out.append(f"pending {shown(now.total('pawl_timer_pending'))}   armed {shown(now.total('pawl_timer_armed'))}   "
               f"readers of events {shown(now.total('pawl_timer_feed_readers'))}")
    out.append("")
    kinds = ("started", "moved", "expired", "cancelled", "overflowed", "refused", "wake_ups", "level_moves")
    out.append(f"{'':14}{'per second':>14}{'in all':>18}")
    for kind in kinds:
        name = f"pawl_timer_{kind}_total"
        out.append(f"{kind.replace('_', ' '):14}{rate(name):>14}{shown(now.total(name)):>18}")
    out.append("")
    for title, name in (("lateness", "pawl_timer_lateness_seconds"), ("handlers", "pawl_timer_handler_seconds")):
        buckets = now.buckets(name)
        if before:  # of the last interval, unless it is empty
            old = dict(before.buckets(name))
            last = [(end, count - old.get(end, 0)) for end, count in buckets]
            buckets = last if last and last[-1][1] > 0 else buckets
        said = "not measured, or no samples yet" if not buckets or buckets[-1][1] == 0 else (
            f"p50 {quantile(buckets, 0.5)}   p90 {quantile(buckets, 0.9)}   p99 {quantile(buckets, 0.99)}")
        out.append(f"{title:14}{said}")
    out.append("")
    out.append(f"{'clock':18}{'structure':22}{'pending':>10}{'started/s':>12}   on levels 0, 1, ...")
    for clock, backend in now.services():
        labels = {"clock": clock, "backend": backend}
        levels = {int(dict(have)["level"]): value
                  for have, value in now.values.get("pawl_timer_level_filed", {}).items()
                  if labels.items() <= dict(have).items() and re.fullmatch("[0-9]{1,2}", dict(have).get("level", ""))}
        top = max((level for level, count in levels.items() if count), default=-1)
        on_levels = " ".join(shown(levels.get(i, 0)) for i in range(top + 1)) if levels else "-"
        out.append(f"{clock:18}{backend:22}{shown(now.total('pawl_timer_pending', **labels)):>10}"
                   f"{rate('pawl_timer_started_total', **labels):>12}   {on_levels}")
    return [plain(line) for line in out]


def watch(source: Source, interval: float) -> None:
    """Draws until q is pressed."""
    now = Snapshot(source.ask(), source.name)  # before the screen is cleared: an error appears below the command
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    before: Snapshot | None = None
    trouble = ""
    sys.stdout.write("\x1b[?1049h\x1b[?25l")  # alternate screen, no cursor
    try:
        tty.setcbreak(terminal)
        while True:
            size = shutil.get_terminal_size()
            out = screen(now, before, source.name, "   q ends") + ([] if not trouble else ["", plain(trouble) + "; trying again"])
            out = [line[:size.columns] for line in out[:size.lines]]
            sys.stdout.write("\x1b[H" + "\x1b[K\n".join(out) + "\x1b[K\x1b[J")
            sys.stdout.flush()
            end = time.monotonic() + interval
            while (left := end - time.monotonic()) > 0:
                if select.select([terminal], [], [], left)[0]:
                    keys = os.read(terminal, 64)
                    if not keys or b"q" in keys.lower() or b"\x03" in keys:
                        return
            try:
                before, now, trouble = now, Snapshot(source.ask(), source.name), ""
            except Trouble as error:
                trouble = str(error)
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
        sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev top", description="Shows the timers of a process, from its /metrics.")
    parser.add_argument("address", nargs="?", default="127.0.0.1:8080", metavar="ADDRESS",
                        help="URL, HOST:PORT, PORT or unix:PATH (default: 127.0.0.1:8080)")
    parser.add_argument("--interval", type=float, default=1.0, metavar="SECONDS", help="seconds between two requests, 0.1 to 3600")
    parser.add_argument("--once", action="store_true", help="print one screen and exit")
    arguments = parser.parse_args()
    if not 0.1 <= arguments.interval <= 3600:
        parser.error("--interval must be 0.1 to 3600")
    try:
        source = Source(arguments.address)
        if arguments.once:
            print("\n".join(screen(Snapshot(source.ask(), source.name), None, source.name)))
        elif not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise Trouble("this is not a terminal; use --once to print one screen")
        else:
            watch(source, arguments.interval)
    except Trouble as error:
        print(f"top: {plain(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
