#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""http_server under attack: each attack is ended by the limit that is there for it, and other clients are served meanwhile.

usage: attack.py DIRECTORY

DIRECTORY has the programs. No upper bound of a time is asserted; an attack that is never ended fails after a minute, unless
the client that behaves was not served in that minute either: then the machine is too busy.
"""

import contextlib
import os
import pathlib
import resource
import selectors
import socket
import sys
import threading
import time
import typing

from browser import PATIENCE, Failed, Server, expect, run

programs = sys.argv[1]
SECRET = "not to be served"
GET = b"GET /index.html HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET /index.html HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: h\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def attacked(*options: str) -> typing.Iterator[Server]:
    """A server, and a client that behaves, which must be served all the time."""
    with Server(programs, *options) as server:
        (pathlib.Path(server.folder.name, "secret")).write_text(SECRET)
        over, troubles, answers = threading.Event(), [], []

        def behave() -> None:
            while not over.wait(0.05):
                try:
                    expect("what the client gets", server.ask("/index.html"), (200, "hello\n"))
                    answers.append(1)
                except (Failed, OSError) as trouble:
                    troubles.append(trouble)
                    return

        client = threading.Thread(target=behave)
        client.start()
        try:
            yield server
        except Failed as failure:
            raise Failed(f"{failure} (the client that behaves was served {len(answers)} times)") from None
        finally:
            over.set()
            client.join()
        if troubles:
            raise Failed(f"the client that behaves is not served: {troubles[0]}")
        server.end()


def memory(server: Server) -> int:
    """The largest size of the server so far, in bytes."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def rest(s: socket.socket) -> bytes:
    """All until the server has closed the connection."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            got += piece
    return got


def pour(server: Server, begin: bytes, piece: bytes, most: int) -> "tuple[int, bytes]":
    """Sends `begin`, and `piece` until the server ends it. @return the bytes that were sent, and the answer."""
    with server.connect() as s:
        sent = 0
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            s.sendall(begin)
            while sent < most:
                s.sendall(piece)
                sent += len(piece)
        return sent, rest(s)


def smuggled_requests_are_not_served() -> None:
    chunked = b"Transfer-Encoding: chunked\r\n"
    with attacked("--access-log", "/dev/stderr") as server:
        for what, head in {
                "a length and chunks": b"Content-Length: 5\r\n" + chunked,
                "chunks and a length": chunked + b"Content-Length: 5\r\n",
                "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n",
                "a list of lengths": b"Content-Length: 0, 5\r\n",
                "a length with a sign": b"Content-Length: +5\r\n",
                "a length in another base": b"Content-Length: 0x5\r\n",
                "a length beyond 64 bits": b"Content-Length: 18446744073709551621\r\n",
                "a space before the colon": b"Content-Length : 5\r\n",
                "chunks in a folded line": b"Transfer-Encoding:\r\n x, chunked\r\n" + b"Content-Length: 5\r\n",
                "another coding": b"Transfer-Encoding: xchunked\r\n",
                "identity": b"Transfer-Encoding: identity\r\n",
                "chunks that are not the last coding": b"Transfer-Encoding: chunked, identity\r\n",
                "chunks twice": chunked + chunked,
                "a line that ends with LF": b"Content-Length: 0\nTransfer-Encoding: chunked\r\n",
                "a line that ends with CR": b"X: x\rContent-Length: 5\r\n",
                "a zero in a name": b"Content\0-Length: 5\r\n",
        }.items():
            with server.connect() as s:
                s.sendall(POST + head + b"\r\n0\r\n\r\n" + SMUGGLED)
                answer = rest(s)
            expect(f"answers to {what}: {answer[:200]!r}", (answer.count(b"HTTP/1.1 "), answer[:12]), (1, b"HTTP/1.1 400"))
        for what, body in {
                "a size beyond 64 bits": b"1000000000000000A\r\n0\r\n\r\n", "a negative size": b"-1\r\n0\r\n\r\n",
                "a size with a prefix": b"0x0\r\n\r\n", "no size": b"\r\n\r\n", "a size and LF": b"0\n\n",
                "a chunk that is longer than its size": b"1\r\nabc\r\n0\r\n\r\n"}.items():
            with server.connect() as s:
                s.sendall(POST + chunked + b"\r\n" + body + SMUGGLED)
                s.shutdown(socket.SHUT_WR)
                answer = rest(s)
            expect(f"smuggled behind {what}: {answer[:200]!r}", b"404" in answer or b"200" in answer, False)
        expect("smuggled requests in the log", "/smuggled" in server.said(), False)


def nothing_outside_of_the_root_is_served() -> None:
    up = ["..", "%2e%2e", ".%2e", "%2E.", "..%2f..", "..%5c..", "..\\..", "%252e%252e", "%c0%ae%c0%ae", "%uff0e%uff0e", "..;", "...",
          "....", "%2e%2e%2f", "..%00", ".%00.", "..%0d", "..\xff"]
    with attacked() as server:
        os.symlink("index.html", pathlib.Path(server.folder.name, "root", "link"))
        for begin in ("/", "//", "/./", "/x/", "http://h/", "/timers/", "/%2f", "/link/"):
            for climb in up:
                for depth in (1, 2, 8):
                    target = begin + "/".join([climb] * depth) + "/secret"
                    with server.connect() as s:
                        s.sendall(b"GET " + target.encode("latin-1") + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                        answer = rest(s)
                    if answer[:12] not in (b"HTTP/1.1 400", b"HTTP/1.1 403", b"HTTP/1.1 404") or SECRET.encode() in answer:
                        raise Failed(f"the answer to {target}: {answer[:200]!r}")


def what_never_ends_is_cut_off_and_takes_no_memory() -> None:
    large = 256 << 20
    with attacked() as server:
        before = memory(server)
        for what, begin, piece in (
                ("a target", b"GET /", b"x" * 65536),
                ("a name of a field", GET[:-2], b"x" * 65536),
                ("a field", GET[:-2] + b"X: ", b"x" * 65536),
                ("fields", GET[:-2], b"X: x\r\n" * 10000),
                ("the extension of a chunk", POST + b"Transfer-Encoding: chunked\r\n\r\n1;x=", b"x" * 65536),
                ("the extension of the last chunk", POST + b"Transfer-Encoding: chunked\r\n\r\n0;x=", b"x" * 65536),
                ("the size of a chunk", POST + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 65536),
                ("a trailer", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n" * 10000),
                ("chunks", POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10000),
                ("a body", POST + b"Content-Length: 1073741824\r\n\r\n", b"x" * 65536)):
            sent, answer = pour(server, begin, piece, large)
            # The answer is lost if the system resets the connection; that it was closed is what counts.
            expect(f"bytes of {what} that are taken, less than {large}", sent < large, True)
            expect(f"the answer to {what}: {answer[:100]!r}", answer[:10] in (b"", b"HTTP/1.1 4"), True)
        grown = memory(server) - before
        expect(f"memory: {grown} bytes, less than 32 MiB", grown < 32 << 20, True)


def who_does_not_read_is_cut_off_and_takes_no_memory() -> None:
    with attacked("--write-timeout", "2s", "--request-timeout", "4s") as server:
        with open(pathlib.Path(server.folder.name, "root", "large"), "wb") as file:
            file.truncate(256 << 20)
        before = memory(server)
        large = GET.replace(b"index.html", b"large")
        with contextlib.ExitStack() as stack:
            deaf, slow = [[stack.enter_context(server.connect(receive_buffer=4096)) for _ in range(20)] for _ in range(2)]
            for s in deaf:  # a pipeline, none of whose answers is read
                s.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    s.send(large * 20000)
            for s in slow:
                s.sendall(large)
            ended = set()
            end = time.monotonic() + PATIENCE
            while len(ended) < len(slow) and time.monotonic() < end:  # each takes a little, again and again
                for s in set(slow) - ended:
                    try:
                        s.settimeout(0.001)
                        if not s.recv(200):
                            ended.add(s)
                    except ConnectionResetError:
                        ended.add(s)
                    except TimeoutError:
                        pass
            expect("slow readers that are ended", len(ended), len(slow))
            for s in deaf:
                s.settimeout(PATIENCE)
                rest(s)
        grown = memory(server) - before
        expect(f"memory: {grown} bytes, less than 32 MiB", grown < 32 << 20, True)


def half_closed_connections_are_answered_or_ended() -> None:
    with attacked() as server:
        for what, text, answers in (("a request", GET, 1), ("three requests", GET * 3, 3), ("a part of a request", GET[:-2], 0),
                                    ("a request and a part", GET + GET[:9], 1), ("nothing", b"", 0),
                                    ("a part of a body", POST + b"Content-Length: 9\r\n\r\nabc", 0)):
            with server.connect() as s:
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
                answer = rest(s)
            # Beast tells of a request that is cut off, and the client may still read.
            good, bad = answer.count(b"HTTP/1.1 200"), answer.count(b"HTTP/1.1 4")
            expect(f"answers to {what}: {answer[:200]!r}", (good, bad <= 1), (answers, True))


def thousands_of_silent_connections_are_ended_by_their_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    count = min(2000, most - 100)
    with attacked("--header-timeout", "3s", "--max-connections", "100000") as server, contextlib.ExitStack() as stack:
        before = memory(server)
        watched = selectors.DefaultSelector()
        for i in range(count):
            began = time.monotonic()
            s = stack.enter_context(server.connect())
            if i % 2 == 0:
                s.sendall(GET[:20])  # the others are mute
            watched.register(s, selectors.EVENT_READ, began)
        end = time.monotonic() + PATIENCE
        while watched.get_map() and time.monotonic() < end:
            for key, _ in watched.select(1):
                if not key.fileobj.recv(4096):
                    expect("ended before its limit", time.monotonic() - key.data < 3, False)
                    watched.unregister(key.fileobj)
        expect(f"connections of {count} that are not ended", len(watched.get_map()), 0)
        each = (memory(server) - before) / count
        expect(f"memory of a connection: {each:.0f} bytes, less than 32 KiB", each < 32 << 10, True)


def without_descriptors_it_waits_and_goes_on() -> None:
    with Server(programs, "--header-timeout", "2s") as server, contextlib.ExitStack() as stack:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        crowd = [stack.enter_context(server.connect()) for _ in range(200)]  # the system keeps them until they are accepted
        # This one comes last, and is served when the limits have ended those before it.
        expect("a request behind them", server.ask("/index.html"), (200, "hello\n"))
        for s in crowd:
            rest(s)
        expect("complaints", server.end().count("cannot accept for now: Too many open files"), 1)


sys.exit(run([smuggled_requests_are_not_served, nothing_outside_of_the_root_is_served,
              what_never_ends_is_cut_off_and_takes_no_memory, who_does_not_read_is_cut_off_and_takes_no_memory,
              half_closed_connections_are_answered_or_ended, thousands_of_silent_connections_are_ended_by_their_limit,
              without_descriptors_it_waits_and_goes_on]))
