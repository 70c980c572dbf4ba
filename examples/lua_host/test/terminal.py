#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# usage: terminal.py LUA_HOST
#
# lua_host -i at a terminal: keys that edit the line, the history, and timers that print while a line is being typed.
# The screen is drawn from the output of the host. No time is checked; ctest has the time limit.

import codecs
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import fcntl

COLUMNS = 40
UP, LEFT, HOME = "\x1b[A", "\x1b[D", "\x01"
CTRL_C, CTRL_D, CTRL_U, BACKSPACE = "\x03", "\x04", "\x15", "\x7f"


class Screen:
    """The lines that a terminal shows, for the control sequences that libedit uses under TERM=xterm."""

    def __init__(self):
        self.rows = [""]
        self.row = self.column = 0
        self.rest = ""

    def put(self, c):
        if self.column == COLUMNS:
            self.column = 0
            self.down()
        line = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = line[: self.column] + c + line[self.column + 1 :]
        self.column += 1

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")

    def sequence(self, parameter, final):
        n = int(parameter or 1) if re.fullmatch(r"\d*", parameter) else 1
        line = self.rows[self.row]
        if final == "A":
            self.row = max(self.row - n, 0)
        elif final == "B":
            self.row = min(self.row + n, len(self.rows) - 1)
        elif final == "C":
            self.column = min(self.column + n, COLUMNS - 1)
        elif final == "D":
            self.column = max(min(self.column, COLUMNS - 1) - n, 0)
        elif final == "G":
            self.column = n - 1
        elif final in "JK":
            self.rows[self.row] = line[: self.column]
            if final == "J":
                del self.rows[self.row + 1 :]
        elif final == "P":
            self.rows[self.row] = line[: self.column] + line[self.column + n :]
        elif final == "@":
            self.rows[self.row] = line[: self.column] + " " * n + line[self.column :]
        elif final not in "mhl":
            raise SystemExit(f"terminal.py: unknown sequence: ESC [ {parameter} {final}")

    def write(self, text):
        text = self.rest + text
        self.rest = ""
        i = 0
        while i < len(text):
            c = text[i]
            if c == "\x1b":
                found = re.compile(r"\x1b(?:\[([\d;?]*)([@-~])|[=>78])").match(text, i)
                if not found:
                    self.rest = text[i:]
                    return
                if found[2]:
                    self.sequence(found[1], found[2])
                i = found.end()
                continue
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.down()
            elif c == "\b":
                self.column = max(min(self.column, COLUMNS - 1) - 1, 0)
            elif c != "\a":
                self.put(c)
            i += 1

    def text(self):
        return "\n".join(row.rstrip() for row in self.rows).rstrip("\n")


class Host:
    def __init__(self, program):
        self.terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.usual = termios.tcgetattr(other)
        self.other = other

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        environment = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(
            [program, "-i"], stdin=other, stdout=other, stderr=other, env=environment, preexec_fn=own_terminal
        )
        self.screen = Screen()
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, pattern):
        """Waits until the end of the screen matches."""
        while not re.search(pattern + r"\Z", self.screen.text()):
            ready, _, _ = select.select([self.terminal], [], [], 30)
            if not ready:
                raise SystemExit(f"terminal.py: no '{pattern}' at the end of:\n{self.screen.text()}")
            self.screen.write(self.decoder.decode(os.read(self.terminal, 4096)))

    def end(self):
        status = self.process.wait()
        now = termios.tcgetattr(self.other)
        if now[3] != self.usual[3]:
            raise SystemExit("terminal.py: the terminal is not what it was")
        os.close(self.other)
        os.close(self.terminal)
        return status


def same(what, expected, found):
    if expected != found:
        raise SystemExit(f"terminal.py: {what}: expected {expected!r}, found {found!r}")


program = sys.argv[1]
host = Host(program)
host.until(r"^>")

# Editing keys: an insertion in the middle, a deletion, the start of the line, characters of several bytes.
host.type("1 + 1" + LEFT + "2" + LEFT + LEFT + BACKSPACE + "-\r")
host.until(r"\n-20\n>")
host.type('ä"' + BACKSPACE + BACKSPACE + '#"äö"' + HOME + "1 + \r")
host.until(r"\n5\n>")

# The history: the line before the last one, changed.
host.type(UP + UP + " + 100\r")
host.until(r"1 - 21 \+ 100\n80\n>")

# A statement over several lines.
host.type("function f()\r")
host.until(r"\n>>")
host.type("return 'from f' end\r")
host.until(r"\n>")
host.type("f()\r")
host.until(r"\nfrom f\n>")

# A timer prints while a line is typed. Its lines appear above, and the line with its cursor comes back.
host.type("count = 0 timer = pawl.every(20, function()\r")
host.until(r"\n>>")
host.type("count = count + 1 print('tick '..count) end)\r")
host.until(r"tick 1\n(tick \d+\n)*>")
host.type("'ab" + LEFT)
host.until(r"\ntick \d+\ntick \d+\n> 'ab")
seen = host.screen.text().count("tick ")
host.until(r"(\ntick \d+){%d}\n> 'ab" % (seen + 3))
host.type("x'" + "\x05" + BACKSPACE)  # in front of the b; then at the end, after the b
host.until(r"\n> 'ax'")
host.type(" .. 'z'\r")
host.until(r"\n> 'ax' \.\. 'z'\naxz\n(tick \d+\n)*>")

# The same with a line that is longer than the width of the terminal.
long = "'" + "0123456789" * 5 + "'"
host.type(long)
wrapped = "> " + long
wrapped = wrapped[:COLUMNS] + "\n" + wrapped[COLUMNS:]
host.until(r"\ntick \d+\n" + wrapped)
seen = host.screen.text().count("tick ")
host.until(r"(\ntick \d+){3}\n" + wrapped)
host.type("\r")
host.until(r"\n" + "0123456789" * 4 + r"\n0123456789\n(tick \d+\n)*>")
lines = host.screen.text().split("\n")
numbers = [int(line[5:]) for line in lines if line.startswith("tick ")]
same("ticks", list(range(1, len(numbers) + 1)), numbers)
host.type("timer:destroy()\r")
host.until(r"\ntrue\n>")

# A line that is not Lua, and a line that Lua would take for a binary chunk.
host.type("x x\r")
host.until(r"syntax error near 'x'\n>")
host.type("\x16\x1bLua\r")
host.until(r"attempt to load a binary chunk[^>]*\n>")

# Ctrl-D ends the host.
host.type(CTRL_D)
same("status after Ctrl-D", 0, host.end())

# Ctrl-C ends the host like any program, and restores the terminal.
host = Host(program)
host.until(r"^>")
host.type("half a li")
host.until(r"> half a li")
host.type(CTRL_C)
same("status after Ctrl-C", -2, host.end())

# Or Ctrl-C is an event, if the script asks for it; the line stays.
host = Host(program)
host.until(r"^>")
host.type("pawl.on_signal('INT', function()\r")
host.until(r"\n>>")
host.type("print 'interrupted' end)\r")
host.until(r"\n>")
for times in (1, 2):
    host.type("1 + %d" % times)
    host.until(r"\n> 1 \+ %d" % times)
    host.type(CTRL_C)
    host.until(r"\ninterrupted\n> 1 \+ %d" % times)
    host.type("\r")
    host.until(r"\n> 1 \+ %d\n%d\n>" % (times, times + 1))
host.type("os.exit(3, true)\r")
same("status of os.exit()", 3, host.end())
