#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""./dev top, on a terminal of its own, against http_server and against other servers.

usage: top.py DIRECTORY

DIRECTORY has the programs. No time is asserted.
"""

import fcntl
import http.server
import os
import pathlib
import pty
import re
import select
import socketserver
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from browser import PATIENCE, Failed, Server, expect, run, until

programs = sys.argv[1]
TOP = [sys.executable, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "top.py")]


class Terminal:
    """top.py on a pseudo-terminal."""

    def __init__(self, *arguments: str, columns: int = 100, rows: int = 40) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen([*TOP, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True,  # whose terminal it is, as Ctrl-C requires
                                        preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
        self.slave = slave
        self.seen = ""

    def read(self) -> str:
        """All that was written so far."""
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode()
        return self.seen

    def screens(self) -> list[str]:
        return self.read().split("\x1b[H")[1:]

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def end(self, status: int = 0) -> None:
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read()  # otherwise it waits for the terminal
            time.sleep(0.02)
        self.read()
        expect("exit status", self.process.poll(), status)
        expect("modes of the terminal", termios.tcgetattr(self.slave), self.modes)
        if "\x1b[?1049h" in self.seen and not self.seen.rstrip().endswith("\x1b[?1049l"):
            raise Failed("the screen is not given back")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def fails(*arguments: str) -> str:
    """The single line of output when it ends with 1."""
    done = subprocess.run([*TOP, *arguments], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    expect(f"status, stdout and lines of top {arguments}", (done.returncode, done.stdout, done.stderr.count("\n")),
           (1, "", 1))
    return done.stderr


def it_shows_rates_and_q_ends_it() -> None:
    with Server(programs, "--churn", "5000", "--measure-times") as server:
        with Terminal("--interval", "0.2", f"127.0.0.1:{server.port}") as top:
            # The third screen has rates from an interval of its own.
            until("three screens", lambda: len(top.screens()) >= 4)
            last = top.screens()[2]
            for pattern in (r"pending 1,0\d\d ", r"moved +[\d,]+ +[\d,]+", r"steady_clock +hierarchical_wheel +1,0\d\d",
                            r"lateness +(p50|not measured)"):
                if not re.search(pattern, last):
                    raise Failed(f"no '{pattern}' on the screen: {last!r}")
            rate = re.search(r"moved +([\d,]+) ", last)[1].replace(",", "")
            expect("deadlines are moved", int(rate) > 0, True)
            for _ in range(3):
                server.ask("/slow?ms=1")
            until("lateness is shown", lambda: "p99" in top.screens()[-1])
            top.press(b"xyz")
            top.press(b"q")
            top.end()
        with Terminal(str(server.port)) as top:  # only a port; Ctrl-C ends it, too
            until("a screen", lambda: top.screens())
            top.press(b"\x03")
            top.end()
        server.end()


def it_goes_on_when_the_process_is_gone_and_back() -> None:
    with Server(programs) as server:
        with Terminal("--interval", "0.2", server.url) as top:
            until("a screen", lambda: top.screens())
            server.end()
            until("it says so", lambda: "Connection refused; trying again" in top.read())
            with Server(programs, port=server.port) as again:
                until("it has gone on", lambda: "trying again" not in top.screens()[-1])
                top.press(b"Q")
                top.end()
                again.end()


def a_small_terminal_is_not_overrun() -> None:
    with Server(programs) as server:
        with Terminal("--interval", "0.2", server.url + "/metrics", columns=30, rows=8) as top:
            until("a screen", lambda: len(top.screens()) > 1)
            lines = re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", top.screens()[0]).split("\r\n")
            expect("lines", len(lines), 8)
            expect("lines that are too long", [line for line in lines if len(line) > 30], [])
            top.press(b"q")
            top.end()
        server.end()


def it_prints_one_screen() -> None:
    with Server(programs, "--churn", "1") as server:
        done = subprocess.run([*TOP, "--once", str(server.port)], capture_output=True, text=True, timeout=PATIENCE)
        expect("status and stderr", (done.returncode, done.stderr), (0, ""))
        if not re.search(r"pending 1,0\d\d .*\n", done.stdout):
            raise Failed(f"what is printed: {done.stdout}")
        expect("no key ends what has ended", "q ends" in done.stdout, False)
        server.end()


def what_is_wrong_is_said_in_a_line() -> None:
    with Server(programs) as server:
        expect("no terminal", "not a terminal; use --once" in fails(server.url), True)
        expect("no metrics", "has no metrics of Pawl" in fails("--once", server.url + "/index.html"), True)
        expect("no page", "answers 404" in fails("--once", server.url + "/nothing"), True)
        server.end()
        expect("nothing listens", "Connection refused" in fails("--once", server.url), True)
    with Server(programs, "--timer", "asio") as server:
        expect("no timers of Pawl", "answers 404: 404 Not Found: /metrics" in fails("--once", server.url), True)
        server.end()
    for address in ("ftp://x", "http://", "127.0.0.1:x", "127.0.0.1:99999", "unix:", "http://[::", "a b", "127.0.0.1/\u00e4", "127.0.0.1/a b",
                    "a..b", "\x1b[2J"):
        said = fails("--once", address)
        expect(f"{address}: {said!r}", said.startswith("top: ") and said[:-1].isprintable(), True)
    expect("no socket", "No such file" in fails("--once", "unix:/nothing/there"), True)
    for arguments in (["--interval", "0"], ["--interval", "x"], ["a", "b"], ["--nonsense"]):
        done = subprocess.run([*TOP, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        expect(f"status of {arguments}", done.returncode, 2)
        expect(f"usage after {arguments}", "usage: ./dev top" in done.stderr, True)


def shown(text: str, status: int = 200) -> subprocess.CompletedProcess:
    """What --once does with such an answer, from a socket with a path."""

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

        def address_string(self) -> str:
            return "unix"

    with tempfile.TemporaryDirectory() as folder, socketserver.UnixStreamServer(f"{folder}/socket", Metrics) as unix:
        thread = threading.Thread(target=unix.handle_request)
        thread.start()
        done = subprocess.run([*TOP, "--once", f"unix:{folder}/socket"], capture_output=True, text=True, timeout=PATIENCE)
        thread.join()
    return done


def a_socket_with_a_path_will_do() -> None:
    with Server(programs) as server:
        done = shown(server.ask("/metrics")[1])
        expect("status and stderr", (done.returncode, done.stderr), (0, ""))
        expect("the screen", "steady_clock" in done.stdout or "coarse_clock" in done.stdout, True)
        server.end()


def an_answer_cannot_break_it_nor_control_the_terminal() -> None:
    pending = 'pawl_timer_pending{clock="%s"} %s\n'
    for text in (pending % ("\x1b[2J\x07\x9b2J\u202e", 1), pending % ("x" * 100_000, 1), pending % ("a", "1e999"),
                 pending % ("a", "NaN"), 'pawl_timer_lateness_seconds_bucket{le="x"} 1\n',
                 'pawl_timer_lateness_seconds_bucket{le="+Inf"} 1\n', 'pawl_timer_lateness_seconds_bucket{le="nan"} 1\n',
                 'pawl_timer_level_filed{clock="a",level="\u00b2"} 1\n',
                 'pawl_timer_level_filed{clock="a",level="999999999"} 1\n'):
        done = shown(pending % ("a", 1) + text)
        expect(f"status and stderr after {text[:60]!r}", (done.returncode, done.stderr), (0, ""))
        lines = done.stdout.split("\n")
        expect(f"control characters after {text[:60]!r}", [line for line in lines if not line.isprintable()], [])
        expect("the longest line, at most 1000", max(map(len, lines)) <= 1000, True)
    done = shown("\x1b[2Jtrouble", 500)
    expect("an answer of 500", (done.returncode, done.stderr.endswith(" answers 500: ?[2Jtrouble\n")), (1, True))


sys.exit(run([it_shows_rates_and_q_ends_it, it_goes_on_when_the_process_is_gone_and_back,
              a_small_terminal_is_not_overrun, it_prints_one_screen, what_is_wrong_is_said_in_a_line,
              a_socket_with_a_path_will_do, an_answer_cannot_break_it_nor_control_the_terminal]))
