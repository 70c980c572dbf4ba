#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""What tools/top.py and tools/migrate read, made up by Hypothesis: never a traceback, exit statuses as documented.

usage: tools_fuzz.py [SECONDS]

PAWL_SEED in the environment is the seed. A failure prints the smallest input that was found.
"""

import contextlib
import http.client
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import time
import traceback
import types
import typing
from unittest import mock

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as some

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name: str) -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


top, migrate = load("top.py"), load("migrate")


def run(tool: types.ModuleType, *arguments: str) -> "tuple[int, str, str]":
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.object(sys, "argv", ["", *arguments]):
        try:
            status = tool.main()
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


CASES = []  # (the test, what it is given)


def case(**given_to_it: some.SearchStrategy) -> typing.Callable:
    return lambda test: CASES.append((test, given_to_it)) or test


# --- top ---------------------------------------------------------------------------------------------------

NUMBERS = some.sampled_from(["0", "1", "1e308", "-1", "NaN", "+Inf", "-Inf", "1e999", "x", "0x1", "99999999999", "\u00b2", ""])
TEXT = some.text(max_size=8) | NUMBERS | some.sampled_from(["\x1b[2J", "\x9b2J", "a\\\"b", "steady_clock"])
NAMES = some.sampled_from([f"pawl_timer_{name}" for name in (
    "pending", "armed", "feed_readers", "started_total", "level_filed", "lateness_seconds_bucket", "handler_seconds_bucket",
    "nonsense")])
LABELS = some.lists(some.tuples(some.sampled_from(["clock", "backend", "level", "le", "name"]), TEXT), max_size=3)
SAMPLES = some.builds(lambda name, labels, value: name + "{" + ",".join(f'{k}="{v}"' for k, v in labels) + "} " + value,
                      NAMES, LABELS, NUMBERS)
ANSWERS = some.lists(SAMPLES | TEXT, max_size=12).map("\n".join)
ADDRESSES = some.sampled_from(["", "http://", "https://", "unix:", "ftp://", "127.0.0.1:", "[::1]:"]).flatmap(
    lambda begin: some.text(some.characters(exclude_characters="\0"), max_size=12).map(lambda rest: begin + rest))


@case(before=ANSWERS, now=ANSWERS)
def screens_are_lines_of_text(before: str, now: str) -> None:
    snapshots = []
    for text in (before, now):
        try:
            snapshots.append(top.Snapshot(text, "source"))
        except top.Trouble:
            return
    lines = top.screen(snapshots[1], snapshots[0], "source") + top.screen(snapshots[0], None, "source")
    for line in lines:
        assert line.isprintable(), f"control characters reach the terminal: {line!r}"
        assert len(line) < 2000, "a label decides how long a line is"


class Answer:
    """In the place of the connection."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body

    def read(self, most: int) -> bytes:
        return self.body[:most]


@case(status=some.sampled_from([200, 404, 500]), body=some.binary(max_size=40) | ANSWERS.map(lambda text: text.encode()))
def top_ends_with_0_or_a_line(status: int, body: bytes) -> None:
    with mock.patch.object(http.client.HTTPConnection, "request"), \
            mock.patch.object(http.client.HTTPConnection, "getresponse", lambda self: Answer(status, body)):
        code, out, err = run(top, "--once", "8080")
    assert (code, err) == (0, "") or code == 1 and out == "" and err.startswith("top: ") and err.count("\n") == 1, (code, err)
    assert all(line.isprintable() for line in (out + err).split("\n")), (out, err)


@case(address=ADDRESSES)
def an_address_is_refused_in_a_line(address: str) -> None:
    with mock.patch("socket.create_connection", side_effect=ConnectionRefusedError(111, "Connection refused")):
        code, out, err = run(top, "--once", "--", address)
    assert (code, out) == (1, "") and err.startswith("top: ") and err.count("\n") == 1, (code, err)


# --- migrate -----------------------------------------------------------------------------------------------

PIECES = some.sampled_from([
    "#include <boost/asio.hpp>\n", "#include <boost/asio/steady_timer.hpp>\n", "#include <boost/asio/deadline_timer.hpp>\n",
    "#include \"other.hpp\"\n", "#define X(a) a \\\n b\n", "#if 0\n", "#endif\n", "namespace asio = boost::asio;\n",
    "using namespace boost::asio;\n", "using boost::asio::steady_timer;\n", "namespace x {", "class c {", "};", "{", "}", "(", ")",
    "[", "]", "<", ">", ";", ",", "::", "=", "boost::asio::steady_timer t(c);\n", "asio::deadline_timer d(c, x);\n",
    "d.expires_from_now(boost::posix_time::seconds(1));\n", "t.async_wait([this](auto) { ", "asio::cancel_after(1s)", "auto ", "f",
    "template <class T>", "R\"(", ")\"", "\"", "'", "1'000", "//", "/*", "*/", "\\\n", "\r\n", "\ufeff", "net::", "beast::tcp_stream ",
    "boost::posix_time::ptime p;\n", "operator", "requires", "export module m;\n", "u8", "%:", "??="])
HEADS = some.sampled_from([b"", b"#include <boost/asio.hpp>\nboost::asio::steady_timer u(c);\nasio::deadline_timer v(c);\n"])
SOURCES = some.builds(lambda head, rest: head + rest, HEADS, some.lists(PIECES | some.text(max_size=4), max_size=25).map("".join).map(
    lambda text: text.encode("utf-8", "surrogatepass")) | some.binary(max_size=30))
OPTIONS = some.sampled_from([(), ("--to", "asio"), ("--beast",)])


@case(sources=some.lists(SOURCES, min_size=1, max_size=2), options=OPTIONS)
def converting_twice_changes_nothing(sources: "list[bytes]", options: "tuple[str, ...]") -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name) for name in ("one.cpp", "other.hpp")][:len(sources)]
        for file, source in zip(files, sources):
            file.write_bytes(source)

        def contents() -> "list[bytes]":
            return [file.read_bytes() for file in files]

        for also in (("--dry-run",), ("--check",), ("--suggest",)):
            code, out, err = run(migrate, *options, *also, folder)
            assert code in (0, 1, 2) and (code != 2 or err.startswith("migrate: ")), (also, code, err)
            assert (code, out, err) == run(migrate, *options, *also, folder), "another answer to the same question"
            assert contents() == list(sources), f"{also} changes a file"
        code, _, _ = run(migrate, *options, "--check", folder)
        first, _, err = run(migrate, *options, folder)
        assert (first == 2) == (code == 2), (code, first, err)
        once = contents()
        assert first != 2 or once == list(sources), "a file has changed in spite of the error"
        assert code != 0 or once == list(sources), "--check has not named a file that changes"
        again, _, err = run(migrate, *options, folder)
        assert again in (0, 1, 2) and contents() == once, ("the second run changes a file", once, contents())


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    number = int(os.environ.get("PAWL_SEED", "0"))
    chosen = settings(max_examples=50, database=None, deadline=None, suppress_health_check=list(HealthCheck),
                      phases=[Phase.generate, Phase.shrink])
    failures = 0
    for test, given_to_it in CASES:
        end, runs = time.monotonic() + seconds / len(CASES), 0
        while runs == 0 or time.monotonic() < end:
            try:
                seed(number + runs)(chosen(given(**given_to_it)(test)))()
            except Exception as failure:  # Hypothesis adds the input to its notes
                failures += 1
                traceback.print_exception(failure)
                break
            runs += 1
        print(f"{test.__name__}: {runs * chosen.max_examples} inputs")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
