#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Makes defects in tools/migrate from its syntax, one at a time, and runs test/migrate/migrate_test.py on each.

Which defects
  Those of cosmic-ray (comparisons, constants and operators replaced, conditions negated, loops emptied), and the kinds
  that it lacks: a statement removed, a condition or an operand made True or False, "in" negated, two arguments swapped.
  cosmic-ray is installed from PyPI into build/mutation. Defects that do not load, and those in annotations, do not count.

What counts
  Each defect runs in a forked process, with the tests that execute its lines, the fastest first. It is killed if an
  assertion of a test fails; a traceback of the tool is one, since each test compares the error output. A defect that
  uses up its processor time or memory is a hang. Exit status: 0 if at least 85 % are killed by an assertion; else 1.
"""

import argparse
import ast
import collections
import copy
import io
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "migrate"
VENV = ROOT / "build" / "mutation"
COSMIC_RAY = "cosmic-ray==8.7.0"
TO_REACH = 0.85
KILLED, ERROR, HANG, SURVIVED, NO_PROGRAM = "by an assertion", "by an error in a test", "by a hang", "survived", "-"
STATUS = {0: SURVIVED, 1: KILLED, 2: ERROR, 3: HANG, 4: NO_PROGRAM}


@dataclass
class Defect:
    line: int  # the first and the last one of the changed part
    last: int
    what: str
    text: str  # the tool with the defect


def with_cosmic_ray() -> None:
    """Goes on in the environment that has cosmic-ray."""
    if Path(sys.prefix) == VENV:
        return
    python = VENV / "bin" / "python"
    tried = python.exists() and subprocess.run([python, "-c", "import cosmic_ray"], check=False, capture_output=True)
    if not tried or tried.returncode:
        print(f"mutate_migrate: installing {COSMIC_RAY} into {VENV.relative_to(ROOT)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", COSMIC_RAY], check=True)
    os.execv(python, [python, __file__, *sys.argv[1:]])


def of_cosmic_ray(text: str) -> Iterator[Defect]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.operators.provider import OperatorProvider

    # Of the replacements of an operator, its negation and its neighbour: others only make the share look better.
    operators = (
        *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "BitOr_BitAnd", "BitAnd_BitOr", "Delete_Not", "Delete_USub"),
        *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "GtE_Lt", "Gt_LtE", "LtE_Gt"),
        *("Is_IsNot", "IsNot_Is"),
    )
    provider = OperatorProvider()
    for name in provider:
        kind, _, which = name.partition("_")
        if kind.startswith("Variable") or (which and which not in operators):  # the former need arguments
            continue
        operator = provider[name]()
        positions = [p for node in ast_nodes(get_ast(text)) for p in operator.mutation_positions(node)]
        for occurrence, ((line, _), (last, _)) in enumerate(positions):
            if new := mutate_code(text, operator, occurrence):
                yield Defect(line, last, name, new)


def of_our_own(text: str) -> Iterator[Defect]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def replaced(what: str, node: ast.AST, new: str, end: ast.AST | None = None) -> Defect:
        first, last = span(node)[0], span(end or node)[1]
        return Defect(node.lineno, (end or node).end_lineno, what, text[:first] + new + text[last:])

    def source(node: ast.AST) -> str:
        return text[slice(*span(node))]

    for node in ast.walk(ast.parse(text)):
        documentation = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(
            node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Delete)
        ):
            if not documentation:
                yield replaced("statement removed", node, "pass")
        conditions = list(node.values) if isinstance(node, ast.BoolOp) else list(getattr(node, "ifs", ()))
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            conditions.append(node.test)
        for condition in conditions:
            for value in ("True", "False"):
                yield replaced(f"condition made {value}", condition, value)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            word = "in" if isinstance(node.ops[0], ast.NotIn) else "not in"
            new = f"({source(node.left)}) {word} ({source(node.comparators[0])})"
            yield replaced('"in" negated', node, new, node.comparators[0])
        if isinstance(node, ast.Call):
            for a, b in zip(node.args, node.args[1:]):
                if not isinstance(a, (ast.Starred, ast.GeneratorExp)) and not isinstance(
                    b, (ast.Starred, ast.GeneratorExp)
                ):
                    yield replaced("arguments swapped", a, f"{source(b)}, {source(a)}", b)


def meaning(text: str) -> str | None:
    """Equal for texts that mean the same."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
    return ast.dump(tree)


def parts_of(text: str) -> Iterator[tuple[int, int]]:
    """The lines of each function and of each statement outside of functions, to parse these and not the whole file."""
    bodies = [ast.parse(text).body]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef):
                bodies.append(node.body)
            else:
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                yield first - 1, node.end_lineno


def defects_of(text: str) -> list[Defect]:
    lines = text.splitlines(keepends=True)
    found = []
    for first, last in parts_of(text):
        indent = re.match(" *", lines[first])[0]
        part = textwrap.dedent("".join(lines[first:last]))
        seen = {meaning(part), None}
        for defect in [*of_cosmic_ray(part), *of_our_own(part)]:
            what = meaning(defect.text)
            if what not in seen:
                seen.add(what)
                new = textwrap.indent(defect.text, indent)
                whole = "".join(lines[:first]) + new + "".join(lines[last:])
                found.append(Defect(first + defect.line, first + defect.last, defect.what, whole))
    return found


class Tests:
    """The tests of the tool, with the lines that each executes and its time."""

    def __init__(self, text: str, folder: str) -> None:
        sys.path.insert(0, str(ROOT / "test" / "migrate"))
        sys.dont_write_bytecode = True
        import migrate_test

        self.module = migrate_test
        self.use(text, folder)  # a copy, since the file may be edited meanwhile
        self.lines: dict[unittest.TestCase, set[int]] = {}
        self.seconds: dict[unittest.TestCase, float] = {}
        before = time.process_time()
        for suite in unittest.defaultTestLoader.loadTestsFromModule(migrate_test):
            for test in suite:
                self.measure(test)
        self.total = time.process_time() - before

    def measure(self, test: unittest.TestCase) -> None:
        lines: set[int] = set()
        known = str(self.module.TOOL)

        def trace(frame, event, argument):
            if frame.f_code.co_filename != known:
                return None
            lines.add(frame.f_lineno)
            return trace

        start = time.process_time()
        result = unittest.TestResult()
        sys.settrace(trace)
        try:
            copy.copy(test).run(result)
        finally:
            sys.settrace(None)
        if not result.wasSuccessful():
            raise SystemExit(
                f"mutate_migrate: {test.id()} fails without a defect:\n{(result.failures + result.errors)[0][1]}"
            )
        self.seconds[test] = time.process_time() - start
        self.lines[test] = lines

    def use(self, text: str, folder: str) -> None:
        """Runs the tests on this version of the tool from now on."""
        path = Path(folder, f"migrate-{os.getpid()}")
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        self.module.TOOL = path
        self.module.tool = self.module.load(path)

    def of(self, defect: Defect) -> list[unittest.TestCase]:
        places = set(range(defect.line, defect.last + 1))
        chosen = [test for test, lines in self.lines.items() if lines & places or not lines]
        return sorted(chosen if any(self.lines[t] for t in chosen) else self.lines, key=self.seconds.__getitem__)

    def run(self, defect: Defect, folder: str) -> int:
        """In a process of its own: the status."""
        limit = int(10 + 4 * self.total)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        try:
            self.use(defect.text, folder)
        except BaseException:
            return 4
        result = unittest.TestResult()
        for test in self.of(defect):
            test.run(result)
            told = "".join(text for _, text in result.failures + result.errors)
            if told:
                return 3 if "MemoryError" in told else 1 if result.failures else 2
        return 0


def run_all(defects: list[Defect], tests: Tests, folder: str, jobs: int) -> Iterator[tuple[Defect, str]]:
    running: dict[int, Defect] = {}
    waiting = list(reversed(defects))
    while waiting or running:
        while waiting and len(running) < jobs:
            defect = waiting.pop()
            sys.stdout.flush()
            process = os.fork()
            if process == 0:
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                status = 2
                try:
                    status = tests.run(defect, folder)
                finally:
                    os._exit(status)
            running[process] = defect
        process, status = os.wait()
        ended = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        yield running.pop(process), HANG if ended else STATUS.get(os.waitstatus_to_exitcode(status), ERROR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, metavar="N", help="only N defects")
    parser.add_argument("--seed", default="0", metavar="S", help="chooses the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="J", help="this many at once")
    arguments = parser.parse_args()
    with_cosmic_ray()

    text = TOOL.read_text(encoding="utf-8")
    defects = defects_of(text)
    if arguments.sample is not None and arguments.sample < len(defects):
        defects = random.Random(arguments.seed).sample(defects, arguments.sample)
    old = text.splitlines()
    counts: dict[str, int] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # for the tests that run the tool as another user
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        tests = Tests(text, folder)
        print(f"{len(defects)} defects, {len(tests.lines)} tests of {tests.total:.0f} s together", flush=True)
        for defect, how in run_all(defects, tests, folder, arguments.jobs):
            counts[how] += 1
            if sys.stderr.isatty():
                print(f"\r{sum(counts.values())}\r", end="", file=sys.stderr)
            if how not in (KILLED, NO_PROGRAM):
                new = next((b for a, b in zip(old, defect.text.splitlines()) if a != b), "")
                print(f"tools/migrate:{defect.line}: {how}: {defect.what}: {new.strip()}", flush=True)
    counted = sum(counts.values()) - counts[NO_PROGRAM]
    share = counts[KILLED] / max(counted, 1)
    told = ", ".join(f"{counts[how]} {how}" for how in (KILLED, ERROR, HANG, SURVIVED))
    print(f"{counted} defects in tools/migrate: {told}: {100 * share:.1f} % killed by an assertion")
    return 0 if share >= TO_REACH else 1


if __name__ == "__main__":
    sys.exit(main())
