#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Checks that each block of C++ in the pages is part of a program that the tests compile and run.

usage: check_code.py COMPILER INCLUDE_DIR [FILE.md...]

The line above the ```cpp fence of a block says which program that is:

    <!-- run -->             the block is the program; it must end with 0. `<!-- run: NAME -->` is the same
    <!-- output -->          above the block after such a program: what it must have printed
    <!-- excerpt: FILE -->   the block is consecutive lines of FILE, which the tests build and run; the indentation
                             of the whole block may differ

CXXFLAGS is passed to the compiler, too. With a sanitizer in it, the programs run under that sanitizer; FILE does so in
the same preset. Each program of examples/cookbook must have an excerpt.
"""

import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"\s*<!-- (run|output|excerpt)(?:: (\S+))? -->$")
# The tests build and run these in each preset.
RUN_BY_TESTS = re.compile(r"(test/[a-z]+/\w+_test|examples/cookbook/\w+)\.cpp")
# A line that is C++, and neither a diagram nor a command.
CPP = re.compile(r"\s*#include |.*(;|\) \{|= \{)( *//.*)?$")
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror".split()


@dataclasses.dataclass
class Block:
    line: int
    language: str
    mark: str
    name: str
    text: str


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def blocks(lines: list[str]):
    """Yields the fenced blocks, and the indented ones with the language ''. Raises ValueError for bad marks."""
    mark = name = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if found := MARK.match(line):
            if mark:
                raise ValueError(f"{at}: two marks above one block")
            mark, name = found[1], found[2] or ""
        elif line.lstrip().startswith("```"):
            begin = at
            fence = line.lstrip()
            while at < len(lines) and lines[at].strip() != "```":
                at += 1
            if at == len(lines):
                raise ValueError(f"{begin}: a block that is not closed")
            text = "\n".join(lines[begin:at]) + "\n"
            yield Block(begin, fence[3:], mark, name, textwrap.dedent(text))
            mark = name = ""
            at += 1
        elif line.strip() and mark:
            raise ValueError(f"{at}: no block after <!-- {mark} -->")
        elif line.startswith("    ") and not lines[at - 2].strip():
            begin = at
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            yield Block(begin, "", "", "", "\n".join(lines[begin - 1 : at]) + "\n")
    if mark:
        raise ValueError(f"{len(lines)}: no block after <!-- {mark} -->")


def is_excerpt(text: str, source: str) -> bool:
    """Whether the lines of `text` stand in `source`, one after the other, all indented by the same number of columns."""
    wanted = text.rstrip("\n").split("\n")
    lines = source.split("\n")
    for begin in range(len(lines) - len(wanted) + 1):
        if lines[begin].strip() == wanted[0].strip():
            part = "\n".join(lines[begin : begin + len(wanted)])
            if textwrap.dedent(part).rstrip("\n") == "\n".join(wanted):
                return True
    return False


class Program:
    def __init__(self, place: str, text: str) -> None:
        self.place = place
        self.text = text
        self.output: str | None = None

    def check(self, compiler: list[str], work: pathlib.Path) -> str:
        """Compiles and runs it. Returns what is wrong, or ''."""
        file, line = self.place.rsplit(":", 1)
        name = work / re.sub(r"\W", "_", self.place)
        source = name.with_suffix(".cpp")
        source.write_text(f'#line {int(line) + 1} "{file}"\n{self.text}')
        said = subprocess.run([*compiler, str(source), "-o", str(name)], capture_output=True, text=True)
        if said.returncode != 0:
            lines = [line[:200] for line in (said.stdout + said.stderr).splitlines()[:40]]
            return "does not compile:\n" + "\n".join(lines)
        try:
            ran = subprocess.run([str(name)], capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "has not ended after 60 s"
        if ran.returncode != 0:
            return f"ended with {ran.returncode}, after printing:\n{ran.stdout}{ran.stderr}"
        if self.output is not None and ran.stdout != self.output:
            difference = difflib.unified_diff(
                self.output.splitlines(), ran.stdout.splitlines(), "documented", "printed", lineterm=""
            )
            return "does not print what is documented:\n" + "\n".join(difference)
        return ""


def read_page(page: pathlib.Path, programs: list[Program], quoted: set[str]) -> list[str]:
    """Adds the programs of a page, and the files that it quotes. Returns what is wrong with its blocks."""
    complaints = []
    last: Program | None = None
    try:
        for block in blocks(page.read_text().split("\n")):
            place = f"{page}:{block.line}"
            if block.mark == "output":
                if last is None:
                    complaints.append(f"{place}: an output without a program")
                else:
                    last.output = block.text
                continue
            last = None
            if block.language != "cpp":
                looks_so = any(CPP.match(line) for line in block.text.split("\n"))
                if block.mark == "excerpt" or (not block.language and looks_so):
                    complaints.append(f"{place}: write ```cpp above a block of C++")
            elif block.mark == "run":
                last = Program(place, block.text)
                programs.append(last)
            elif block.mark != "excerpt":
                complaints.append(f"{place}: a block of C++ without <!-- run --> or <!-- excerpt: FILE --> above it")
            elif not RUN_BY_TESTS.fullmatch(block.name):
                complaints.append(f"{place}: the tests do not run {block.name or 'a file without a name'}")
            elif not is_excerpt(block.text, (ROOT / block.name).read_text()):
                complaints.append(f"{place}: these lines are not in {block.name}")
            else:
                quoted.add(block.name)
    except (ValueError, OSError) as wrong:
        complaints.append(f"{page}:{wrong}")
    return complaints


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    compiler = [arguments[0], "-std=c++20", "-pthread", *WARNINGS, *shlex.split(os.environ.get("CXXFLAGS", ""))]
    compiler.append(f"-I{pathlib.Path(arguments[1]).resolve()}")
    pages = [pathlib.Path(page) for page in arguments[2:]]
    everything = not pages
    if everything:
        folders = ["*.md", "doc/*.md", "bench/*.md", "examples/*.md", "packaging/**/*.md"]
        pages = sorted(page for folder in folders for page in ROOT.glob(folder))

    programs: list[Program] = []
    quoted: set[str] = set()
    complaints = [complaint for page in pages for complaint in read_page(page, programs, quoted)]
    if everything:
        recipes = {str(file.relative_to(ROOT)) for file in ROOT.glob("examples/cookbook/*.cpp")}
        complaints += [f"{recipe}: no page quotes it" for recipe in sorted(recipes - quoted)]
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda program: program.check(compiler, pathlib.Path(work)), programs)
        for program, wrong in zip(programs, found):
            if wrong:
                complaints.append(f"{program.place}: {wrong}")
            else:
                print(f"{program.place}: compiles and runs")
    for complaint in complaints:
        print(f"check_code.py: {complaint}", file=sys.stderr)
    if not programs and not quoted:
        print("check_code.py: no block of C++ was found", file=sys.stderr)
        return 1
    print(f"{len(programs)} programs, excerpts of {len(quoted)} files, {len(complaints)} of them wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
