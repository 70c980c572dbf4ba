#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Plants the defects of test/mutants/*.toml in include/pawl, one at a time, and runs the tests that must notice them.

How it works
  One copy of the headers contains all defects that can be selected at run time: an expression becomes
  (pawl_mutant(N) ? (new) : (old)), a statement if (pawl_mutant(N)) {new} else {old}. The environment variable PAWL_MUTANT
  selects one. So each test program is compiled once, and run once per defect. A defect that cannot be selected at run
  time, such as one in a type or in a memory order, has build = "alone": its programs are compiled separately.
  `./dev mutate --generate` makes defects of its own, from the syntax trees of the headers: see tools/mutate_generate.py.
  The lists hold only what it cannot make.

What counts
  A defect is killed if one of its programs reports a failed check, an unexpected exception, a failed assertion of the
  library, a sanitizer error, or a case that does not end (test/support/case_limit.cpp). After a hang or a crash the
  defect counts as a survivor. Each program must pass without a defect.

The format of a list
  [[mutant]]
  name = "a_cancel_is_lost"         what goes wrong; unique
  file = "detail/service/shard.hpp" below include/pawl
  breaks = "P4: ..."                the promise (doc/guarantees.md) or the invariant that it breaks, and how
  killed_by = ["service_shard_test"]  names of ctest tests, first the one that is expected to notice
  old = '''...'''                   must occur once in the file, or else after `after`; a statement if it ends with ; or with ; and }
  new = '''...'''
  after = '''...'''                 optional: a text before `old` that occurs once
  cases = "a_test*"                 optional: for --run_test of the programs
  build = "alone"                   optional: see above
  preset = "tsan"                   optional: of CMakePresets.json; debug otherwise
  equivalent = "why"                optional: the reason why no test can notice; nothing is run
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import random
import re
import shlex
import subprocess
import sys
import threading
import time
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path

import evidence

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include" / "pawl"
LISTS = ROOT / "test" / "mutants"
BUILD = ROOT / "build" / "mutants"
PAGE = ROOT / "doc" / "testing.md"
BEGIN, END = "<!-- mutants: ./dev mutate --table -->\n", "<!-- end of the mutants -->\n"

# Output of a test program that has noticed the defect.
NOTICED = [
    (re.compile(r"error: in \"([^\"<]*).*?\": (?!signal: |memory access)(.*)"), "{1} in {0}"),
    (re.compile(r"(Assertion [`'].*' failed)"), "{0}, by the library"),
    (re.compile(r"(ERROR: AddressSanitizer: \S+|WARNING: ThreadSanitizer: [\w ]+|runtime error: .*)"), "{0}"),
    (re.compile(r"(ERROR: LeakSanitizer.*)"), "{0}"),
    (re.compile(r"simulation: (seed \d+: (?!crash|hang).*)"), "{0}"),
]
CRASHED = re.compile(r"fatal error: in .*?(signal: .*|memory access.*)")

# Included by each header that has a defect. If PAWL_MUTANT_LOG names a file, the number of each defect that the program
# reaches is appended to it, once.
CHOICE = """#ifndef PAWL_MUTANT_HPP
#define PAWL_MUTANT_HPP
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <type_traits>
#include <unistd.h>
inline const unsigned long pawl_mutant_chosen = [] {
    const char* const chosen = std::getenv("PAWL_MUTANT");
    return chosen ? std::strtoul(chosen, nullptr, 10) : 0UL;
}();
inline const int pawl_mutant_log = [] {
    const char* const log = std::getenv("PAWL_MUTANT_LOG");
    return log ? ::open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : 0;
}();
inline void pawl_mutant_reached(std::uint32_t number) noexcept {
    static std::atomic<std::uint32_t> seen[1U << 17];
    for (std::uint32_t at = number;; ++at) {
        std::uint32_t found = seen[at % (1U << 17)].load(std::memory_order_relaxed);
        if (found == number)
            return;
        if (!found && seen[at % (1U << 17)].compare_exchange_strong(found, number, std::memory_order_relaxed))
            break;
        if (found == number)
            return;
    }
    const int before = errno;
    if (::write(pawl_mutant_log, &number, sizeof number) != sizeof number)
        std::abort();
    errno = before;
}
constexpr bool pawl_mutant(unsigned long number) noexcept {
    if (std::is_constant_evaluated())
        return false;
    if (pawl_mutant_log > 0)
        pawl_mutant_reached(static_cast<std::uint32_t>(number));
    return pawl_mutant_chosen == number;
}
#endif
"""


class Bad(Exception):
    """An error, as one sentence."""


@dataclass
class Outcome:
    """What a run of a test program says about a defect."""

    kind: str  # noticed, hangs, crashes, passes
    said: str
    seconds: float
    status: int = 0


@dataclass
class Mutant:
    layer: str  # the list with this defect
    name: str
    file: str
    breaks: str
    old: str
    new: str
    killed_by: tuple[str, ...] = ()
    after: str = ""
    cases: str = ""
    build: str = "together"
    preset: str = "debug"
    equivalent: str = ""

    @property
    def number(self) -> int:
        """Selects the defect. Independent of other defects, so that a new one only changes its own header."""
        return zlib.crc32(self.name.encode()) or 1

    @property
    def alone(self) -> bool:
        return self.build == "alone"

    @property
    def statement(self) -> bool:
        old = self.old.rstrip()
        return old.endswith(";") or (old.endswith("}") and ";" in old)

    @property
    def around(self) -> tuple[str, str]:
        """What comes before and after the old text, so that the defect can be selected at run time."""
        if self.statement:
            return f"if (::pawl_mutant({self.number}UL)) {{ {self.new} }} else {{ ", " }"
        return f"(::pawl_mutant({self.number}UL) ? ({self.new}) : (", "))"

    def span(self, text: str) -> tuple[int, int]:
        """The position of `old` in the text of its file."""
        start = 0
        if self.after:
            if text.count(self.after) != 1:
                raise Bad(f"{self.name}: `after` occurs {text.count(self.after)} times in {self.file}")
            start = text.index(self.after) + len(self.after)
        elif text.count(self.old) != 1:
            raise Bad(f"{self.name}: `old` occurs {text.count(self.old)} times in {self.file}, not once")
        at = text.find(self.old, start)
        if at < 0:
            raise Bad(f"{self.name}: `old` does not occur in {self.file} after `after`")
        return at, at + len(self.old)


def load() -> list[Mutant]:
    mutants = []
    for path in sorted(LISTS.glob("*.toml")):
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
            mutants += [Mutant(layer=path.stem, **(e | {"killed_by": tuple(e.get("killed_by", ()))})) for e in entries]
        except (tomllib.TOMLDecodeError, TypeError) as e:
            raise Bad(f"{path.relative_to(ROOT)}: {e}") from None
    for attribute in "name", "number":
        seen = [getattr(m, attribute) for m in mutants]
        if twice := {s for s in seen if seen.count(s) > 1}:
            raise Bad(f"two mutants have the same {attribute}: {twice.pop()}")
    for m in mutants:
        if not (m.killed_by or m.equivalent):
            raise Bad(f"{m.name}: needs killed_by or equivalent")
        if m.build not in ("together", "alone"):
            raise Bad(f"{m.name}: build is {m.build}, allowed is alone")
        if not (INCLUDE / m.file).is_file():
            raise Bad(f"{m.name}: there is no {m.file} below include/pawl")
    separate(mutants)
    return mutants


def separate(mutants: list[Mutant]) -> None:
    """Checks the position of each defect. One that partly overlaps another, or tears a block, is built alone."""
    for file in {m.file for m in mutants}:
        text = (INCLUDE / file).read_text(encoding="utf-8")
        here = sorted(((m.span(text), m) for m in mutants if m.file == file), key=lambda h: (h[0][0], -h[0][1]))
        planted: list[tuple[int, int]] = []
        for (first, last), m in here:
            torn = any(text.count("{") != text.count("}") for text in (m.old, m.new))
            if torn or any(first < end < last for begin, end in planted):
                m.build = "alone"
            elif not m.alone:
                planted.append((first, last))


# ---- headers ------------------------------------------------------------------------------------


def with_all(file: str, mutants: list[Mutant]) -> str:
    """The text of a header with all its defects that can be selected at run time."""
    text = (INCLUDE / file).read_text(encoding="utf-8")
    here = [(m.span(text), m) for m in mutants if m.file == file and not m.alone and not m.equivalent]
    if not here:
        return text
    return "#include <pawl_mutant.hpp>\n" + "".join(p for p in pieces(text, here) if isinstance(p, str))


def pieces(text: str, here: list) -> list:
    """The text with defects; `here`: ((first, last), defect). Instead of text, a defect marks its own begin and end."""
    # Outer ones first. An inner one goes into the old text of the outer one; equal ones are chained.
    here = sorted(here, key=lambda h: (h[0][0], -h[0][1]))

    def rewrite(begin: int, end: int, inside: list) -> list:
        out, at = [], begin
        while inside:
            (first, last), m = inside[0]
            within = [h for h in inside[1:] if h[0][0] < last]
            inside = inside[1 + len(within) :]
            before, after = m.around
            out += [text[at:first], m, before, *rewrite(first, last, within), after, m]
            at = last
        return [*out, text[at:end]]

    return rewrite(0, len(text), here)


def with_one(m: Mutant) -> str:
    text = (INCLUDE / m.file).read_text(encoding="utf-8")
    first, last = m.span(text)
    return text[:first] + m.new + text[last:]


def write(path: Path, text: str) -> None:
    """Writes only a changed file, so that nothing is recompiled without need."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def plant(tree: Path, header) -> None:
    """Makes `tree` a copy of the project whose headers are header(file)."""
    tree.mkdir(parents=True, exist_ok=True)
    for name in "CMakeLists.txt", "CMakePresets.json", "cmake", "test":
        if not (tree / name).is_symlink():
            (tree / name).symlink_to(ROOT / name)
    write(tree / "include" / "pawl_mutant.hpp", CHOICE)
    files = {str(p.relative_to(INCLUDE)) for p in INCLUDE.rglob("*.hpp")}
    for file in files:
        write(tree / "include" / "pawl" / file, header(file))
    for path in (tree / "include" / "pawl").rglob("*.hpp"):
        if str(path.relative_to(tree / "include" / "pawl")) not in files:
            path.unlink()


# ---- programs -----------------------------------------------------------------------------------


def call(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Bad(f"{shlex.join(command)}:\n{done.stdout[-6000:]}")
    return done.stdout


class Programs:
    """The test programs of one preset, compiled from one tree."""

    def __init__(self, tree: Path, preset: str, jobs: int, flags: str = "-w", debug: str = "-O1") -> None:
        self.tree, self.preset, self.folder = tree, preset, tree / "build" / preset
        self.jobs, self.flags, self.debug = jobs, flags, debug
        self.tests: dict[str, dict] = {}

    def configure(self) -> None:
        if not self.tests:
            # No warnings: a switch has dead code. Some optimisation, for tests that take long.
            call("cmake", "-S", str(self.tree), "-B", str(self.folder), "--preset", self.preset,
                 "-D", "CMAKE_CXX_COMPILER=" + os.environ.get("CXX", "g++"), "-D", "CMAKE_CXX_FLAGS=" + self.flags,
                 *(["-D", "CMAKE_CXX_FLAGS_DEBUG=" + self.debug] if self.preset == "debug" else []),
                 "-D", "PAWL_TESTS_TOGETHER=OFF", "-D", "PAWL_BUILD_EXAMPLES=OFF", "-D", "PAWL_BUILD_BENCH=OFF", "-D", "PAWL_INSTALL=OFF")
            self.read_tests()

    def read_tests(self) -> None:
        """Asks for the tests. A test has a command only after its program has been built."""
        listed = json.loads(call("ctest", "--test-dir", str(self.folder), "--show-only=json-v1"))
        self.tests = {t["name"]: t for t in listed["tests"]}

    def build(self, names: set[str]) -> None:
        self.configure()
        call("cmake", "--build", str(self.folder), "--parallel", str(self.jobs), "--target", *sorted(names))
        self.read_tests()

    def command(self, name: str, cases: str) -> list[str]:
        command = list(self.tests[name]["command"])
        if self.preset in ("asan+ubsan", "tsan"):
            command = ["setarch", "-R", *command]  # as in ./dev test
        if not name.startswith(("fuzz_", "simulation")):
            command += ["--color_output=no", "--report_level=no", "--detect_memory_leaks=0"]
            command += [f"--run_test={cases}"] if cases else []
        return command

    def run(self, name: str, cases: str, number: int, limit: float, log: Path | None = None) -> Outcome:
        # Short random walks: the test named after the broken promise must notice the defect. Patience and a limit of a case
        # that end before this limit: what waits in vain says for what, and what does not end fails with its name.
        environment = {"PAWL_STEPS": "2000", "PAWL_PATIENCE": "5"} | os.environ | {"PAWL_MUTANT": str(number)}
        environment["PAWL_CASE_LIMIT"] = str(int(max(limit / 2, 25)))
        if log:
            environment["PAWL_MUTANT_LOG"] = str(log)
        for p in self.tests[name]["properties"]:
            if p["name"] == "ENVIRONMENT":
                environment |= dict(e.split("=", 1) for e in p["value"])
        begin = time.monotonic()
        process = subprocess.Popen(self.command(name, cases), env=environment, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        late = threading.Event()
        timer = threading.Timer(limit, lambda: (late.set(), process.kill()))
        timer.start()
        try:
            said = crash = None
            for line in process.stdout:
                said = next((form.format(*found.groups()) for pattern, form in NOTICED if (found := pattern.search(line))), None)
                crash = found[1] if (found := CRASHED.search(line)) else crash
                if said:
                    break
            seconds = time.monotonic() - begin
            if said:
                process.kill()
            process.wait()
        finally:
            timer.cancel()
            process.stdout.close()
        if said:
            return Outcome("noticed", said, seconds)
        if late.is_set():
            return Outcome("hangs", f"hangs: no answer within {limit:.0f} s", seconds)
        if status := process.returncode:
            return Outcome("crashes", f"crashes, or fails without a word: {crash or f'status {status}'}", seconds, status)
        return Outcome("passes", "passes", seconds)


# ---- the campaign -------------------------------------------------------------------------------


class Campaign:
    def __init__(self, mutants: list[Mutant], jobs: int) -> None:
        self.all, self.jobs = mutants, jobs
        self.together: dict[str, Programs] = {}
        self.normal: dict[tuple[str, str, str], float] = {}  # run times of programs without a defect
        self.begin = time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.begin:4.0f} s] {text}", flush=True)

    def run(self, chosen: list[Mutant]) -> list[str]:
        """@return the survivors, one per line."""
        tree = BUILD / "together"
        plant(tree, lambda file: with_all(file, self.all))
        for preset in sorted({m.preset for m in chosen}):
            of_preset = [m for m in chosen if m.preset == preset]
            wanted = {name for m in of_preset for name in m.killed_by}
            self.say(f"{preset}: building {len(wanted)} test programs")
            self.together[preset] = programs = Programs(tree, preset, self.jobs)
            programs.build(wanted)
            runs = sorted({(name, m.cases) for m in of_preset for name in m.killed_by})
            for (name, cases), run in zip(runs, self.each(lambda r: programs.run(*r, 0, 300), runs)):
                if run.kind != "passes":
                    raise Bad(f"{name} {cases} must pass without a defect, but: {run.said}")
                self.normal[preset, name, cases] = run.seconds
            self.say(f"{preset}: they pass without a defect")
        survivors = []
        switched = [m for m in chosen if not m.alone]
        for m in [m for m in chosen if m.alone]:
            alone = Programs(BUILD / "alone", m.preset, self.jobs)
            plant(alone.tree, lambda file: with_one(m) if file == m.file else (INCLUDE / file).read_text(encoding="utf-8"))
            alone.build(set(m.killed_by))
            survivors += self.verdict(m, alone)
        for found in self.each(lambda m: self.verdict(m, self.together[m.preset]), switched):
            survivors += found
        return survivors

    def each(self, f, items: list) -> list:
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(f, items))

    def verdict(self, m: Mutant, programs: Programs) -> list[str]:
        tried = []
        for name in m.killed_by:
            limit = max(60, 10 * self.normal[m.preset, name, m.cases])
            run = programs.run(name, m.cases, m.number, limit)
            if run.kind == "noticed":
                self.say(f"killed    {m.name}: {name} in {run.seconds:.1f} s: {run.said}")
                return []
            tried.append(f"{name} {run.said}")
        command = " ".join([f"PAWL_MUTANT={m.number}"] * (not m.alone) + [shlex.join(programs.command(m.killed_by[0], m.cases))])
        self.say(f"SURVIVES  {m.name}")
        return [f"{m.name} ({m.file}): {'; '.join(tried)}\n    {command}"]


def sample(mutants: list[Mutant], count: int, seed: str) -> list[Mutant]:
    """`count` mutants that need few programs: draws programs, then mutants that they must kill."""
    draw = random.Random(seed)
    groups: dict[tuple, list[Mutant]] = {}
    for m in mutants:
        if not m.alone:
            groups.setdefault((m.preset, m.killed_by[0]), []).append(m)
    names = sorted(groups)
    draw.shuffle(names)
    chosen: list[Mutant] = []
    for name in names:
        draw.shuffle(groups[name])
        chosen += groups[name]
        if len(chosen) >= count:
            break
    return chosen[:count]


# ---- the page -----------------------------------------------------------------------------------


def table(mutants: list[Mutant]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("\n", " ")

    killed = [m for m in mutants if not m.equivalent]
    lines = [f"{len(killed)} defects, each of which a test must notice by a failed check:\n", "| list | defects |", "|---|---:|"]
    for layer in sorted({m.layer for m in killed}):
        lines.append(f"| `{layer}.toml` | {sum(m.layer == layer for m in killed)} |")
    if equivalent := [m for m in mutants if m.equivalent]:
        lines += ["\nChanges that no test can notice:\n", "| change | in | why |", "|---|---|---|"]
        lines += [f"| {cell(m.name.replace('_', ' '))} | `{m.file}` | {cell(m.equivalent)} |" for m in equivalent]
    return "\n".join(lines) + "\n"


def page_with_table(mutants: list[Mutant]) -> str:
    text = PAGE.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise Bad(f"{PAGE.relative_to(ROOT)} needs the lines {BEGIN.strip()} and {END.strip()} once each")
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(mutants) + END + rest.split(END)[1]


def check_page(mutants: list[Mutant]) -> None:
    if PAGE.read_text(encoding="utf-8") != page_with_table(mutants):
        raise Bad(f"the table of mutants in {PAGE.relative_to(ROOT)} is not that of test/mutants: ./dev mutate --table")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Plants defects in the headers, which the tests must notice.")
    parser.add_argument("name", nargs="*", help="mutants (default: all)")
    parser.add_argument("--layer", help="only those of test/mutants/LAYER.toml")
    parser.add_argument("--sample", type=int, metavar="N", help="a random sample of N that needs few test programs")
    parser.add_argument("--seed", default=datetime.date.today().isoformat(), help="seed of the sample (default: today's date)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs to run in parallel")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the mutants")
    what.add_argument("--table", action="store_true", help="write the table in doc/testing.md")
    what.add_argument("--check", action="store_true", help="check the lists against the headers, and the table against the lists")
    arguments = parser.parse_args()

    mutants = load()
    if arguments.table:
        PAGE.write_text(page_with_table(mutants), encoding="utf-8")
        return 0
    if arguments.check:
        check_page(mutants)
        return 0
    chosen = [m for m in mutants if arguments.layer in (None, m.layer) and (not arguments.name or m.name in arguments.name)]
    if arguments.layer and arguments.layer not in {m.layer for m in mutants}:
        raise Bad(f"no such layer: {arguments.layer}; there are {', '.join(sorted({m.layer for m in mutants}))}")
    if arguments.sample is not None and arguments.sample < 1:
        raise Bad(f"a sample of {arguments.sample}: must be at least 1")
    if unknown := set(arguments.name) - {m.name for m in mutants}:
        raise Bad(f"no such mutant: {unknown.pop()}")
    if arguments.list:
        for m in chosen:
            print(f"{m.layer:10} {m.file:30} {m.name}")
        return 0
    equivalent = sum(bool(m.equivalent) for m in chosen)
    chosen = [m for m in chosen if not m.equivalent]
    if arguments.sample is not None:
        print(f"seed: {arguments.seed}")
        chosen = sample(chosen, arguments.sample, arguments.seed)
    commit = evidence.commit()
    survivors = Campaign(mutants, arguments.jobs).run(chosen)
    alive = {line.split(" (")[0] for line in survivors}
    evidence.merge("mutate", "mutants", {m.name: "survived" if m.name in alive else "killed" for m in chosen}, "./dev mutate",
                   commit, call(os.environ.get("CXX", "g++"), "--version").splitlines()[0])
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} killed; {equivalent} more are equivalent")
    for line in survivors:
        print("survives: " + line)
    return 1 if survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Bad as e:
        sys.exit(f"mutate: {e}")
