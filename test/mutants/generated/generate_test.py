#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""tools/mutate_generate.py on fixture.hpp: each operator makes what it should, one build contains all defects, the compiler's
complaints lead to the one that does not compile, and each other one changes what the program prints."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tools"))
PYTHON = ROOT / "build" / "syntax_trees" / "bin" / "python"
try:
    import tree_sitter_cpp  # noqa: F401
except ModuleNotFoundError:
    if not PYTHON.is_file() or Path(sys.prefix) == PYTHON.parents[1]:
        print("skipped: ./dev test installs tree-sitter-cpp into build/syntax_trees")
        sys.exit(77)
    os.execv(PYTHON, [PYTHON, *sys.argv])
import mutate
import mutate_generate as generate

EXPECTED = """\
22 constant in twice: 0 => 1
29 early_return in count: add(); => return;
29 statement in count: add(); => nothing
30 second_call in count: add(); => nothing
32 statement in add: value_ += 1; => nothing
32 constant in add: 1 => 2
32 constant in add: 1 => 0
35 constant in member value_: 0 => 1
40 moved_member in mover (move constructor): a_(std::exchange(other.a_, 0)) => decltype(a_)()
40 constant in mover (move constructor): 0 => 1
40 moved_member in mover (move constructor): b_(other.b_) => decltype(b_)()
42 moved_member in operator= (move): a_ = other.a_; => nothing
54 negated in chosen: a < b && !c => !(a < b && !c)
54 true in chosen: a < b => true
54 false in chosen: a < b => false
54 true in chosen: !c => true
54 false in chosen: !c => false
54 comparison in chosen: a < b => a <= b
55 swapped in chosen: difference(a, b) => difference(b, a)
56 negated in chosen: c => !(c)
56 true in chosen: c => true
56 false in chosen: c => false
56 constant in chosen: 8 => 9
56 constant in chosen: 8 => 7
56 constant in chosen: 5 => 6
56 constant in chosen: 5 => 4
60 constant in sum: 0 => 1
61 false in sum: i <= to => false
61 comparison in sum: i <= to => i < to
61 constant in sum: 1 => 2
61 constant in sum: 1 => 0
62 negated in sum: i == 4 => !(i == 4)
62 true in sum: i == 4 => true
62 false in sum: i == 4 => false
62 constant in sum: 4 => 5
62 constant in sum: 4 => 3
63 statement in sum: continue; => nothing
64 statement in sum: result += twice<only_compiled>(i + to); => nothing
"""

PROGRAM = r"""
#include <fixture.hpp>
#include <cstdio>
int main() {
    using namespace fixture;
    counter c;
    c.count();
    int other = 7;
    mover a(5, other), b(std::move(a)), d(1, other);
    const int left = a.a_;
    d = std::move(b);
    std::printf("%d %d %d %d %d %d |", c.value_, left, b.a_, d.a_, twice<50>(3), twice<3>(4));
    for (int x = 0; x < 3; ++x)
        for (int y = 0; y < 3; ++y)
            std::printf(" %d %d", chosen(x, y, false), chosen(x, y, true));
    std::printf(" | %d %d %d\n", sum(0), sum(2), sum(6));
}
"""


class Fixture(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.text = (HERE / "fixture.hpp").read_text(encoding="utf-8")
        cls.made, cls.skipped = generate.make("fixture.hpp", cls.text)
        generate.numbered(cls.made)

    def compile(self, folder: Path, made: list) -> tuple[subprocess.CompletedProcess, dict]:
        header = generate.with_defects(self.text, made)
        mutate.write(folder / "fixture.hpp", header.text)
        mutate.write(folder / "pawl_mutant.hpp", mutate.CHOICE)
        mutate.write(folder / "main.cpp", PROGRAM)
        done = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-I", str(folder), str(folder / "main.cpp"), "-o",
                               str(folder / "program")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done, {"fixture.hpp": header}

    def test_each_operator_makes_what_is_expected(self) -> None:
        shown = [f"{m.line} {m.operator} in {m.function}: {m.old} => {m.new or 'nothing'}" for m in self.made]
        self.assertEqual(EXPECTED.splitlines(), shown)
        self.assertEqual({"evaluated by the compiler": 14, "a check": 12, "a defaulted move": 1}, dict(self.skipped))

    def test_a_key_does_not_change_with_the_lines_around_it(self) -> None:
        moved, _ = generate.make("fixture.hpp", self.text.replace("struct mover {", "\n\nstruct mover {\n"))
        self.assertEqual([m.key for m in self.made], [m.key for m in moved])
        self.assertEqual(len(self.made), len({m.key for m in self.made}))

    def test_an_equivalent_must_name_a_defect_that_is_made(self) -> None:
        entry = '[[equivalent]]\nfile = "fixture.hpp"\nfunction = "sum"\noperator = "constant"\nold = "4"\nnew = "{}"\nwhy = "w"\n'
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "equivalent.toml"
            path.write_text(entry.format(5), encoding="utf-8")
            self.assertEqual({"fixture.hpp | sum | constant | 4 | 5 | 1": "w"}, generate.equivalents(self.made, path))
            path.write_text(entry.format(6), encoding="utf-8")
            with self.assertRaisesRegex(mutate.Bad, "no such defect"):
                generate.equivalents(self.made, path)

    def test_programs_come_by_what_they_notice_of_planted_defects(self) -> None:
        def planted(file: str, *tests: str) -> mutate.Mutant:
            return mutate.Mutant("", file, file, "", "", "", killed_by=tests)

        made = [generate.Made(f"time/{file}.hpp", "f", "constant", "1", "2", 0, 1, 1, 1, "expression") for file in ("a", "a", "wheel")]
        known = [planted("time/a.hpp", "x"), planted("time/a.hpp", "y"), planted("time/b.hpp", "y"), planted("wait/c.hpp", "z")]
        count = generate.noticed(made, known, {"x", "time_wheel_test"})
        # Two in a.hpp, of whose defects x and y notice half each; one in wheel.hpp, which has none: the folder's.
        self.assertEqual({"x": 1 + 1 / 3, "y": 1 + 2 / 3, "time_wheel_test": 1}, {t: n for t, n in count.items() if n})

    def test_one_build_has_all_that_compile_and_each_changes_the_program(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            done, headers = self.compile(folder, self.made)
            bad = generate.complained_of(done.stdout, folder, headers)
            self.assertEqual(["b_(other.b_)"], [m.old for m in bad])

            good = [m for m in self.made if m not in bad]
            done, _ = self.compile(folder, good)
            self.assertEqual(0, done.returncode, done.stdout)

            def run(number: int, **more: str) -> bytes:
                environment = os.environ | {"PAWL_MUTANT": str(number)} | more
                return subprocess.run([folder / "program"], env=environment, stdout=subprocess.PIPE, check=True).stdout

            log = folder / "log"
            usual = run(0, PAWL_MUTANT_LOG=str(log))
            data = log.read_bytes()
            reached = [int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, len(data), 4)]
            self.assertEqual(sorted(m.number for m in good), sorted(reached))
            self.assertEqual(usual, run(0))
            self.assertEqual([], [m.key for m in good if run(m.number) == usual])


if __name__ == "__main__":
    generate.equivalents(generate.make_all()[0])  # each entry of equivalent.toml names a defect that is made
    unittest.main()
