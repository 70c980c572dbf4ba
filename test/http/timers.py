#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""/timers and /metrics of http_server, asked by hand: nonsense, crowds of tabs, tabs that never read, the end of the server.

usage: timers.py DIRECTORY THREADS

DIRECTORY has the programs. No time is asserted.
"""

import json
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import typing

from browser import Failed, Server, expect, run, until

programs, threads = sys.argv[1:]

STREAM = b"GET /timers/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def start(*options: str) -> Server:
    return Server(programs, "--threads", threads, *options)


def header(s: socket.socket) -> bytes:
    """Everything up to the first empty line."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = s.recv(1)
        if not piece:
            break
        got += piece
    return got


def lines(s: socket.socket) -> typing.Iterator[str]:
    with s.makefile("r", encoding="utf-8", newline="\n") as stream:
        for line in stream:
            yield line.rstrip("\n")


def data(stream: typing.Iterator[str]) -> str:
    """The next message."""
    for line in stream:
        if line.startswith("data: "):
            return line[6:]
    raise Failed("the stream has ended")


def raw(server: Server, request: bytes) -> bytes:
    """The answer until the server has closed the connection."""
    with server.connect() as s:
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while piece := s.recv(65536):
            got += piece
        return got


def the_page_and_its_files_are_there() -> None:
    with start() as server:
        for path, word in (("/timers", "<!doctype html>"), ("/timers/page.css", "prefers-color-scheme"),
                           ("/timers/page.js", "EventSource"), ("/metrics", "pawl_timer_pending{"),
                           ("/timers?x=%2e%2e/&&=", "<!doctype html>")):
            status, body = server.ask(path)
            expect(path, (status, word in body), (200, True))
            expect(f"HEAD {path}", server.ask(path, "HEAD"), (200, ""))
        text = server.ask("/timers")[1] + server.ask("/timers/page.css")[1] + server.ask("/timers/page.js")[1]
        expect("what it loads from elsewhere", re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+", text), [])
        server.end()


def nonsense_gets_a_clear_answer() -> None:
    with start() as server:
        for method, path, status, word in (
                ("GET", "/timers/", 404, "/timers"), ("GET", "/timers/page", 404, "/timers"),
                ("GET", "/timers/..", 403, "Forbidden"), ("GET", "/timers/../etc/passwd", 403, "Forbidden"),
                ("GET", "/timers/%2e%2e/secret", 403, "Forbidden"), ("GET", "/timers/%00", 400, "Bad Request"),
                ("GET", "/timers/%zz", 400, "Bad Request"), ("GET", "/timers/events/x", 404, "/timers"),
                ("GET", "/timersx", 404, "Not Found"), ("GET", "/metrics/", 404, "Not Found"),
                ("GET", "/TIMERS", 404, "Not Found"), ("GET", "/timers/" + "x" * 1900, 404, "/timers"),
                ("POST", "/timers", 405, "Not Allowed"), ("PUT", "/timers/page.js", 405, "Not Allowed"),
                ("POST", "/timers/events", 405, "Not Allowed"), ("HEAD", "/timers/events", 405, ""),
                ("DELETE", "/metrics", 405, "Not Allowed"), ("BREW", "/timers", 405, "Not Allowed"),
                ("GET", "/timers/suspend?tab=1", 405, "Not Allowed"), ("GET", "/timers/resume?tab=1", 405, "Not Allowed"),
                ("POST", "/timers/suspend", 400, "?tab=N"), ("POST", "/timers/suspend?", 400, "?tab=N"),
                ("POST", "/timers/suspend?tab", 400, "?tab=N"), ("POST", "/timers/suspend?tab=", 400, "?tab=N"),
                ("POST", "/timers/suspend?tab=x", 400, "?tab=N"), ("POST", "/timers/resume?tab=-1", 400, "?tab=N"),
                ("POST", "/timers/resume?tab=1e3", 400, "?tab=N"), ("POST", "/timers/resume?tab=0x10", 400, "?tab=N"),
                ("POST", "/timers/resume?tab=4294967296", 400, "?tab=N"),
                ("POST", "/timers/resume?tab=" + "9" * 400, 400, "?tab=N"),
                ("POST", "/timers/resume?tab=1&tab=1", 400, "?tab=N"), ("POST", "/timers/resume?TAB=1", 400, "?tab=N"),
                ("POST", "/timers/suspend?tab=4294967295", 404, "no such tab"),
                ("POST", "/timers/resume?a=b&tab=0", 404, "no such tab")):
            found, body = server.ask(path, method)
            expect(f"{method} {path[:60]}", (found, word in body), (status, True))
        expect("a request of HTTP/1.0 without a host", raw(server, b"GET /metrics HTTP/1.0\r\n\r\n")[:15],
               b"HTTP/1.0 200 OK")
        expect("a request of HTTP/1.1 without a host", raw(server, b"GET /timers HTTP/1.1\r\n\r\n")[:12], b"HTTP/1.1 400")
        expect("readers", server.readers(), 0)
        server.end()


def only_this_machine_is_told() -> None:
    with start() as server:
        for host, status in (("localhost", 200), ("localhost:1", 200), ("127.0.0.1", 200), ("127.1.2.3:80", 200),
                             ("[::1]:80", 200), ("example.com", 403), ("localhost.example.com", 403),
                             ("127.0.0.1.example.com", 403), ("10.0.0.1", 403), ("[::2]", 403), ("[", 403), (":", 403)):
            for path in ("/timers", "/metrics", "/timers/page.js"):
                expect(f"{path} of {host}", server.ask(path, headers={"Host": host})[0], status)
        found = raw(server, STREAM.replace(b"localhost", b"example.com"))
        expect("the stream of another name", found[:12], b"HTTP/1.1 403")
        server.end()
    with start("--address", "0.0.0.0") as server:
        for path in ("/timers", "/timers/events", "/metrics", "/timers/page.css"):
            status, body = server.ask(path)
            expect(f"{path} of all addresses", (status, "--expose-timers" in body), (403, True))
        expect("another file", server.ask("/index.html"), (200, "hello\n"))
        server.end()
    with start("--address", "0.0.0.0", "--expose-timers") as server:
        expect("/metrics, exposed", server.ask("/metrics", headers={"Host": "example.com"})[0], 200)
        server.end()


def a_server_on_asio_has_none() -> None:
    with start("--timer", "asio") as server:
        for path in ("/timers", "/timers/events", "/metrics", "/timers/../x"):
            status, body = server.ask(path)
            expect(path, (status, "Asio" in body), (404, True))
        server.end()


def a_stream_tells_counts_and_names() -> None:
    with start("--churn", "2000", "--drain", "50ms") as server, server.connect() as s:
        s.sendall(STREAM)
        head = header(s)
        expect("its status", head[:15], b"HTTP/1.1 200 OK")
        if b"text/event-stream" not in head or b"Connection: close" not in head:
            raise Failed(f"the header of the stream: {head!r}")
        stream = lines(s)
        tab = data(stream)
        expect("the number of the tab", tab.isdigit(), True)
        with server.connect() as slow:
            slow.sendall(b"GET /slow?ms=50000 HTTP/1.1\r\nHost: h\r\n\r\n")
            while True:
                text = data(stream)
                told = json.loads(text)
                if "GET /slow" in [n["name"] for n in told["names"]] and told["events"]["moved"] > 0:
                    break
        # Once a second, so this is the traffic of a tab.
        expect("bytes of one message, at most 20,000", len(text) <= 20_000, True)
        expect("what it is told", sorted(told), sorted([
            "up", "span", "pending", "armed", "wake_ups", "missed", "tabs", "readers", "events", "lateness", "services",
            "names"]))
        expect("kinds", list(told["events"]), [
            "armed", "moved", "due", "started", "cancelled", "overflowed", "shut_down"])
        expect("tabs and readers", (told["tabs"], told["readers"]), (1, 1))
        expect("waits are pending", told["pending"] >= 1024, True)
        expect("timers on levels", sum(n for service in told["services"] for n in service["levels"]) >= 1024, True)
        name = [n for n in told["names"] if n["name"] == "GET /slow"][0]
        expect("what a name comes with", sorted(name), ["left", "name", "timers"])

        expect("suspended", server.ask(f"/timers/suspend?tab={tab}", "POST"), (200, "suspended\n"))
        until("no reader", lambda: server.readers() == 0)
        expect("again", server.ask(f"/timers/suspend?tab={tab}", "POST"), (200, "suspended\n"))
        expect("resumed", server.ask(f"/timers/resume?tab={tab}", "POST"), (200, "resumed\n"))
        until("a reader", lambda: server.readers() == 1)
        while json.loads(data(stream))["events"]["moved"] == 0:
            pass
        s.shutdown(socket.SHUT_RDWR)
        until("the reader is gone", lambda: server.readers() == 0)
        until("the tab is gone", lambda: server.ask(f"/timers/suspend?tab={tab}", "POST")[0] == 404)
        server.end(status=1)  # because the slow request is cut off


def nothing_is_published_while_there_is_no_tab() -> None:
    with start("--churn", "10000") as server:
        moved = server.metric("pawl_timer_moved_total")
        until("deadlines are moved", lambda: server.metric("pawl_timer_moved_total") > moved)
        expect("events", server.metric("pawl_timer_feed_events_total"), 0)
        expect("handlers that were measured", server.metric("pawl_timer_handler_seconds_count"), 0)
        server.end()


def a_thousand_tabs_are_thirty_two_and_clear_answers() -> None:
    with start() as server:
        crowd = [server.connect() for _ in range(1000)]
        for s in crowd:
            s.sendall(STREAM)
        served, refused = [], 0
        for s in crowd:
            head = header(s)
            if head.startswith(b"HTTP/1.1 200 "):
                served.append(s)
            else:
                expect("what a tab too many is told", head[:32], b"HTTP/1.1 503 Service Unavailable")
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                expect("in words", s.recv(length, socket.MSG_WAITALL),
                       b"503 Service Unavailable: 32 tabs are open already\n")
                refused += 1
        expect("tabs that are served, and refused", (len(served), refused), (32, 968))
        expect("readers", server.readers(), 32)
        expect("the server answers", server.ask("/index.html"), (200, "hello\n"))
        for s in crowd:
            s.close()
        until("no reader", lambda: server.readers() == 0)
        with server.connect() as s:
            s.sendall(STREAM)
            expect("a tab after them", header(s)[:15], b"HTTP/1.1 200 OK")
        server.end()


def tabs_that_never_read_are_ended_by_the_limit_of_a_write() -> None:
    with start("--write-timeout", "1s", "--tabs", "5") as server:
        deaf = [server.connect(receive_buffer=2048) for _ in range(5)]
        for s in deaf:
            s.sendall(STREAM)
        until("they are there", lambda: server.readers() == 5)
        until("they are ended", lambda: server.readers() == 0, pause=0.5)
        for s in deaf:
            s.close()
        said = server.end()
        if "write 5," not in said:
            raise Failed(f"the summary: {said}")


def the_server_ends_while_tabs_are_open() -> None:
    with start("--drain", "50s", "--write-timeout", "60s") as server:
        crowd = [server.connect(receive_buffer=2048) for _ in range(6)]
        streams = []
        for s in crowd:
            s.sendall(STREAM)
            header(s)
            streams.append(lines(s))
        hidden = [data(stream) for stream in streams][0]
        server.ask(f"/timers/suspend?tab={hidden}", "POST")
        until("one is suspended", lambda: server.readers() == 5)
        said = server.end() # with 0: none had to be cut off
        if "cut off 0" not in said:
            raise Failed(f"the summary: {said}")
        for stream in streams:
            for _ in stream: # up to its end
                pass


def a_stream_goes_over_tls() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", f"{folder}/key", "-out", f"{folder}/cert"], check=True, capture_output=True)
        with start("--tls", "--cert", f"{folder}/cert", "--key", f"{folder}/key") as server:
            trusting = ssl.create_default_context(cafile=f"{folder}/cert")
            with trusting.wrap_socket(server.connect(), server_hostname="localhost") as s:
                s.sendall(STREAM)
                expect("its status", header(s)[:15], b"HTTP/1.1 200 OK")
                stream = lines(s)
                expect("the number of the tab", data(stream).isdigit(), True)
                expect("readers, in what it is told", json.loads(data(stream))["readers"], 1)
            server.end()


sys.exit(run([the_page_and_its_files_are_there, nonsense_gets_a_clear_answer, only_this_machine_is_told,
              a_server_on_asio_has_none, a_stream_tells_counts_and_names, nothing_is_published_while_there_is_no_tab,
              a_thousand_tabs_are_thirty_two_and_clear_answers, tabs_that_never_read_are_ended_by_the_limit_of_a_write,
              the_server_ends_while_tabs_are_open, a_stream_goes_over_tls]))
