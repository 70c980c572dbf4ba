#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Makes small defects from the syntax trees of the headers, plants them one at a time, and runs the tests.

What is made (operator: change)
  statement    a statement does nothing: an expression, return; (without a value), break, continue
  second_call  the same, if an earlier statement of the function calls a function of the same name
  moved_member a member is left out of a move constructor or a move assignment
  early_return a noexcept function returns before one of its statements
  negated      a condition is negated
  true, false  a condition, or one operand of its && and ||, has this value. A condition of a loop is neither negated nor
               made true as a whole: the loop would only have no end.
  comparison   < becomes <=, == becomes !=, and so on
  constant     a number is one more or one less; true becomes false
  swapped      two neighbouring arguments change places, if both are numbers, both are members, or both are declared with
               the same type in this header; not of std::min and std::max

What is left out, and counted as such: code that only the compiler evaluates (if constexpr, requires, static_assert,
template arguments, constexpr variables, enumerators, case labels, consteval), what does not compile, defaulted moves, checks
(PAWL_ASSERT, functions named invariant: no test can notice a weaker check), and calls that only make a program faster.

How it works
  As in tools/mutate.py, one build contains all chosen defects, and the environment variable PAWL_MUTANT selects one. A
  defect that does not compile is dropped where the compiler complains, and remembered. Then each test program runs once
  without a defect, and logs the defects that it reaches: only these programs run for a defect. Programs are built a few at
  a time, first those that most likely notice a defect, and only as long as defects survive.

What counts
  asserted   a failed check, a failed assertion of the library, an abort. A program that crashes runs again with sanitizers,
             as in CI, and their report counts, too.
  crashed    a program ends by a signal, and no program notices more
  hung       a program does not end within 8 times its usual time, and not within 30 s: tests that wait for something wait
             up to 20 s, and then fail with a message; and no program notices more
  survived   every program that reaches it passes; or none reaches it
  equivalent a survivor that test/mutants/equivalent.toml explains

  Verdicts are kept in build/mutants/generated.jsonl. A run continues where an earlier one ended, as long as the header is
  the same; for a survivor, as long as the tests are, too.

The format of test/mutants/equivalent.toml: what `--list` prints of a defect, and the reason.
  [[equivalent]]
  file = "time/tick.hpp"
  function = "to_tick"
  operator = "constant"
  old = "1"
  new = "2"
  nth = 2                 optional: the second one with the same old, new and operator in this function; "all": each
  why = "..."             one line
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import tomllib
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import tree_sitter
import tree_sitter_cpp

import mutate
from mutate import BUILD, INCLUDE, LISTS, PAGE, ROOT, Bad, Outcome, Programs, call, pieces, plant

KEPT = BUILD / "generated.jsonl"  # verdicts
DROPPED = BUILD / "does_not_compile.json"
EQUIVALENT = LISTS / "equivalent.toml"
PATIENCE = 30  # seconds; longer than that of the tests
BEGIN, END = "<!-- generated: ./dev mutate --generate --table -->\n", "<!-- end of the generated -->\n"

# Calls whose absence only costs time, or which only silence a warning.
HINTS = {"prefetch", "prefetch_to_write", "pause_processor"}

# Only the compiler evaluates these.
COMPILED = {
    "static_assert_declaration", "requires_clause", "requires_expression", "concept_definition", "template_argument_list",
    "template_parameter_list", "enumerator_list", "enumerator", "decltype", "sizeof_expression", "alignof_expression",
    "alignas_qualifier", "alignas_specifier", "noexcept", "type_descriptor", "array_declarator", "bitfield_clause",
    "attribute_declaration", "preproc_def", "preproc_function_def", "preproc_include", "explicit_function_specifier",
    "using_declaration", "alias_declaration", "friend_declaration", "offsetof_expression",
}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

# Which programs most likely notice a defect: the first line that fits a header.
LIKELY = [
    (r"^time/", r"^(time_|fuzz_corpus_(backend|time)|conformance_(backend|binary|tim))"),
    (r"^wait/", r"^(wait_|contract_pawl$|service_(foreign_code|slots|shard)_test|timeouts_cancel_after)"),
    (r"^limit/|^(cancel_after|deadline|group|timeout|sleep)\.", r"^timeouts_(?!interval|timeout_stream|stream|virtual)"),
    (r"^interval/|interval_timer\.|missed_tick", r"^timeouts_interval"),
    (r"^stream/|^timeout_stream\.|^stream_limits\.", r"^timeouts_(timeout_stream|stream)"),
    (r"^queue/|^event_queue|^timer_event", r"^(queue_|fuzz_corpus_event_queue|conformance_event_queue)"),
    (r"^feed/|^broadcast", r"^(feed_|fuzz_corpus_broadcast|conformance_broadcast|race_broadcast)"),
    (r"^watch/|^event_feed|^stats|^duration_histogram", r"^watch_"),
    (r"^virtual_", r"^timeouts_virtual_time"),
    (r"", r"^(service_|contract_(pawl|ring)$|watch_(event_feed|async_read|stats)_test$)"),
]
ALL_PROGRAMS = r"^(?!.*_beside_a_thread$)(.*_test$|contract_|fuzz_corpus_|simulation$)"


@dataclass(eq=False)
class Made:
    """A defect. Its key does not change with the lines around it."""

    file: str
    function: str
    operator: str
    old: str
    new: str
    first: int
    last: int
    line: int
    last_line: int
    form: str  # how it is selected: statement, condition, expression
    nth: int = 1
    number: int = 0

    @property
    def key(self) -> str:
        return " | ".join([self.file, self.function, self.operator, self.old, self.new, str(self.nth)])

    @property
    def around(self) -> tuple[str, str]:
        chosen = f"::pawl_mutant({self.number}UL)"
        if self.form == "statement":
            return f"if ({chosen}) {{ {self.new} }} else {{ ", " }"
        if self.form == "condition":
            return f"({chosen} ? ({self.new}) : static_cast<bool>(", "))"
        if self.form == "initialiser":
            member = self.old[: re.match(r"\w+", self.old).end()]
            return f"{chosen} ? decltype({member})() : decltype({member})(", ")"
        return f"({chosen} ? ({self.new}) : (", "))"

    def __str__(self) -> str:
        nth = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file}:{self.line}: {self.operator} in {self.function}{nth}: {self.old}  =>  {self.new or 'nothing'}"


# ---- the syntax tree ----------------------------------------------------------------------------


def squeezed(text: str) -> str:
    """On one line, without comments."""
    return " ".join(re.sub(r'//[^\n]*|/\*.*?\*/', " ", text, flags=re.S).split())


class Maker:
    """Makes the defects of one header."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.bytes = text.encode()
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
        self.root = parser.parse(self.bytes).root_node
        self.made: list[Made] = []
        self.skipped: Counter[str] = Counter()
        self.reason = ""  # why everything here is skipped
        self.function = ""
        self.calls: set[str] = set()  # names that earlier statements of this function call
        self.types: dict[str, set[str]] = {}
        self.find_types(self.root)
        self.walk(self.root)
        count: Counter[str] = Counter()
        for m in self.made:
            count[m.key] += 1
            m.nth = count[m.key]

    def of(self, node) -> str:
        return squeezed(self.bytes[node.start_byte : node.end_byte].decode())

    def find_types(self, node) -> None:
        """The types with which each name is declared in this header."""
        if node.type in ("parameter_declaration", "optional_parameter_declaration", "field_declaration", "declaration"):
            kind = node.child_by_field_name("type")
            if kind and self.of(kind) != "auto":
                for i, child in enumerate(node.children):
                    if node.field_name_for_child(i) != "declarator":
                        continue
                    while child and child.type not in ("identifier", "field_identifier"):
                        child = child.child_by_field_name("declarator") or (child.named_children or [None])[-1]
                    if child:
                        self.types.setdefault(self.of(child), set()).add(self.of(kind))
        for child in node.children:
            self.find_types(child)

    def add(self, node, operator: str, new: str, form: str = "expression") -> None:
        raw = self.bytes[node.start_byte : node.end_byte].decode()
        if self.reason:
            self.skipped[self.reason] += 1
        elif not self.function:
            self.skipped["evaluated by the compiler"] += 1
        elif node.has_error or "\n#" in raw:
            self.skipped["not understood"] += 1
        else:
            first = len(self.bytes[: node.start_byte].decode())
            self.made.append(Made(self.file, self.function, operator, squeezed(raw), new, first, first + len(raw),
                                  node.start_point[0] + 1, node.end_point[0] + 1, form))

    def within(self, reason: str, nodes: list) -> None:
        """Goes through these, and only counts what is left out."""
        before, self.reason = self.reason, self.reason or reason
        for node in nodes:
            self.walk(node)
        self.reason = before

    def walk(self, node) -> None:
        kind = node.type
        if kind in COMPILED:
            return self.within("evaluated by the compiler", node.children)
        if kind in ("function_definition", "lambda_expression", "inline_method_definition"):
            return self.in_function(node)
        if kind in ("declaration", "field_declaration"):
            return self.declaration(node)
        if kind == "optional_parameter_declaration":
            return self.with_name("default of " + self.declared(node), node.children)
        if kind == "call_expression":
            if self.called(node) == "PAWL_ASSERT":
                return self.within("a check", node.children)
            if re.split(r"::|\.|->", self.called(node))[-1] in HINTS:
                return self.within("a hint", node.children)
            self.swaps(node)
        elif kind in ("if_statement", "while_statement", "do_statement", "for_statement", "conditional_expression"):
            return self.conditional(node)
        elif kind in ("case_statement", "preproc_if", "preproc_elif"):
            value = node.child_by_field_name("value" if kind == "case_statement" else "condition")
            self.within("evaluated by the compiler", [value] if value else [])
            for child in node.children:
                if child != value:
                    self.walk(child)
            return
        elif kind in ("expression_statement", "return_statement", "break_statement", "continue_statement"):
            self.statement(node)
        elif kind == "binary_expression":
            if self.operator(node) in ("&&", "||", "and", "or"):
                self.operands(node)
            elif (new := COMPARISONS.get(self.operator(node))) and not (new in ("==", "!=") and self.is_condition(node)):
                left, right = (self.of(node.child_by_field_name(f)) for f in ("left", "right"))
                self.add(node, "comparison", f"{left} {new} {right}")
        elif kind == "field_initializer" and "move constructor" in self.function:
            name = self.of(node.children[0])
            self.initialiser(node, name)
        elif kind in ("number_literal", "true", "false", "user_defined_literal"):
            return self.constant(node)
        for child in node.children:
            self.walk(child)

    def with_name(self, name: str, nodes: list) -> None:
        before, self.function = self.function, self.function or name
        for node in nodes:
            self.walk(node)
        self.function = before

    def declared(self, node) -> str:
        inner = node.child_by_field_name("declarator")
        while inner:
            deeper = inner.child_by_field_name("declarator")
            if not deeper and inner.type in ("reference_declarator", "pointer_declarator", "init_declarator"):
                deeper = inner.named_children[-1] if inner.named_children else None
            if not deeper:
                break
            inner = deeper
        return self.of(inner) if inner else "?"

    def in_function(self, node) -> None:
        if node.type == "lambda_expression":
            return [self.walk(c) for c in node.children] and None
        head = [c for c in node.children if c.type not in ("compound_statement", "field_initializer_list", "try_statement")]
        body = [c for c in node.children if c not in head]
        text = " ".join(self.of(c) for c in head)
        before = self.function, self.calls
        name = self.declared(node)
        if "&&" in text and any(c.type == "default_method_clause" for c in node.children):
            self.skipped["a defaulted move"] += 1
        parameters = re.search(r"\(\s*(?:const\s+)?([\w:]+)(?:<.*>)?\s*&&\s*\w*\)", text)
        if parameters and name == parameters[1]:
            name += " (move constructor)"
        elif parameters and name == "operator=":
            name += " (move)"
        self.function, self.calls = "", set()
        for child in head:
            self.walk(child)  # default arguments have a name of their own
        self.function = name
        if re.search(r"\bconsteval\b", text):
            self.within("evaluated by the compiler", body)
        elif name == "invariant":
            self.within("a check", body)
        elif name in HINTS:
            self.within("a hint", body)
        else:
            if re.search(r"\)[^()]*\bnoexcept\b(?!\s*\()", text) and re.search(r"\bvoid\s+\w+\s*\(", text):
                self.early_returns(body)
            for child in body:
                self.walk(child)
        self.function, self.calls = before

    def declaration(self, node) -> None:
        words = {self.of(c) for c in node.children if c.type in ("type_qualifier", "storage_class_specifier")}
        if "constexpr" in words or "constinit" in words:
            return self.within("evaluated by the compiler", node.children)
        if node.type == "field_declaration" and re.search(r"\bvirtual\b", self.of(node)):
            for child in node.children:
                if child != node.child_by_field_name("default_value"):  # of a pure virtual function
                    self.walk(child)
            return
        if node.type == "field_declaration" and "static" not in words:
            return self.with_name("member " + self.declared(node), node.children)
        for child in node.children:
            self.walk(child)

    def early_returns(self, body: list) -> None:
        block = next((c for c in body if c.type == "compound_statement"), None)
        these = [c for c in block.named_children if c.type != "comment"] if block else []
        for child in these[:-1]:  # before the last one it is the same as `statement`
            if child.type in ("expression_statement", "if_statement", "while_statement", "for_statement", "for_range_loop",
                              "compound_statement", "do_statement"):
                if not self.of(child).startswith("PAWL_ASSERT"):
                    self.add(child, "early_return", "return;", "statement")

    def is_condition(self, node) -> bool:
        """Whether this is a whole condition; then `negated` is the same as == for !=."""
        parent = node.parent
        return parent.type == "condition_clause" or parent.child_by_field_name("condition") == node

    def operator(self, node) -> str:
        found = node.child_by_field_name("operator")
        return self.of(found) if found else ""

    def called(self, node) -> str:
        function = node.child_by_field_name("function")
        return re.sub(r"<.*", "", self.of(function)) if function else ""

    def leaves(self, node) -> list:
        """The operands of && and ||, or the condition itself."""
        if node.type == "parenthesized_expression" and len(node.named_children) == 1:
            inner = self.leaves(node.named_children[0])
            return inner if len(inner) > 1 else [node]
        if node.type == "binary_expression" and self.operator(node) in ("&&", "||", "and", "or"):
            return [leaf for f in ("left", "right") for leaf in self.leaves(node.child_by_field_name(f))]
        return [node]

    def operands(self, node) -> None:
        """Of the outermost && or ||, true and false for each operand."""
        parent = node.parent
        while parent and parent.type == "parenthesized_expression":
            parent = parent.parent
        if parent and parent.type == "binary_expression" and self.operator(parent) in ("&&", "||", "and", "or"):
            return
        for leaf in self.leaves(node):
            self.add(leaf, "true", "true", "condition")
            self.add(leaf, "false", "false", "condition")

    def conditional(self, node) -> None:
        condition = node.child_by_field_name("condition")
        if any(c.type == "constexpr" for c in node.children):
            self.within("evaluated by the compiler", [condition])
        elif condition:
            value = condition.child_by_field_name("value") if condition.type == "condition_clause" else condition
            if value and value.type == "declaration":
                if node.type == "if_statement" and not node.child_by_field_name("alternative"):
                    self.add(node, "false", "", "statement")
            elif value and value.type not in ("true", "false"):
                loop = node.type not in ("if_statement", "conditional_expression")
                if not loop:
                    self.add(value, "negated", f"!({self.of(value)})", "condition")
                if len(self.leaves(value)) == 1:
                    if not loop:
                        self.add(value, "true", "true", "condition")
                    self.add(value, "false", "false", "condition")
            if condition.type == "condition_clause" or value.type not in ("true", "false"):
                self.walk(condition)
        for child in node.children:
            if child != condition:
                self.walk(child)

    def statement(self, node) -> None:
        text = self.of(node)
        if node.type == "return_statement" and text != "return;":
            return
        expression = node.named_children[0] if node.named_children else None
        name = self.called(expression) if expression is not None and expression.type == "call_expression" else ""
        short = re.split(r"::|\.|->", name)[-1]
        if short == "PAWL_ASSERT" or short in HINTS or text == ";" or re.fullmatch(r"(static_cast<void>\(\w+\)|\(void\)\w+);", text):
            if short != "PAWL_ASSERT":
                self.skipped["a hint"] += 1
            return
        operator = "statement"
        if self.function.endswith("(move)") and expression is not None and expression.type == "assignment_expression":
            operator = "moved_member"
        elif name and name in self.calls:
            operator = "second_call"
        self.calls.add(name)
        self.add(node, operator, "", "statement")

    def initialiser(self, node, name: str) -> None:
        values = node.named_children[-1]
        inner = values.named_children
        if len(inner) != 1:
            self.skipped["not understood"] += 1
            return
        before = len(self.made)
        self.add(inner[0], "moved_member", f"decltype({name})()", "initialiser")
        for m in self.made[before:]:
            m.old = f"{name}({m.old})"

    def constant(self, node) -> None:
        text = self.of(node)
        if text in ("true", "false"):
            self.add(node, "constant", "false" if text == "true" else "true")
            return
        found = re.fullmatch(r"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9']+)([a-zA-Z_]*)", text)
        if not found:
            self.skipped["not understood"] += 1
            return
        value = int(found[1].replace("'", ""), 0 if found[1][:2].lower() in ("0x", "0b") else 10)
        self.add(node, "constant", f"{value + 1}{found[2]}")
        if value:
            self.add(node, "constant", f"{value - 1}{found[2]}")

    def swaps(self, node) -> None:
        arguments = node.child_by_field_name("arguments")
        if not arguments or self.called(node) in ("std::min", "std::max"):
            return
        these = [a for a in arguments.named_children if a.type != "comment"]
        for left, right in zip(these, these[1:]):
            if self.of(left) != self.of(right) and self.alike(left, right):
                texts = [self.of(a) for a in these]
                at = these.index(left)
                texts[at], texts[at + 1] = texts[at + 1], texts[at]
                self.add(node, "swapped", f"{self.of(node.child_by_field_name('function'))}({', '.join(texts)})")

    def alike(self, left, right) -> bool:
        """Whether two arguments have the same type, as far as the text shows."""
        if left.type == right.type == "number_literal":
            return True
        a, b = (re.sub(r"^std::(move|forward<.*>)\((.*)\)$", r"\2", self.of(n)) for n in (left, right))
        if not re.fullmatch(r"[\w.]+|\w+->\w+", a) or not re.fullmatch(r"[\w.]+|\w+->\w+", b):
            return False
        a, b = (re.split(r"\.|->", n)[-1] for n in (a, b))
        if a.endswith("_") and b.endswith("_"):
            return True
        return bool(self.types.get(a, set()) & self.types.get(b, set()))


def make(file: str, text: str) -> tuple[list[Made], Counter]:
    maker = Maker(file, text)
    return maker.made, maker.skipped


def make_all(root: Path = INCLUDE) -> tuple[list[Made], dict[str, Counter]]:
    """Of every header: the defects, and the count of what was left out."""
    made, skipped = [], {}
    for path in sorted(root.rglob("*.hpp")):
        file = path.relative_to(root).as_posix()
        here, skipped[file] = make(file, path.read_text(encoding="utf-8"))
        made += here
    return numbered(made), skipped


def numbered(made: list[Made]) -> list[Made]:
    """Gives each the number that selects it, which depends on its key alone."""
    taken: set[int] = set()
    for m in made:
        m.number = zlib.crc32(m.key.encode()) or 1
        while m.number in taken:
            m.number = m.number % 0xFFFFFFFF + 1
        taken.add(m.number)
    return made


# ---- what is left out ---------------------------------------------------------------------------


def equivalents(made: list[Made], path: Path = EQUIVALENT) -> dict[str, str]:
    """The reason for each defect that no test can notice, by key."""
    if not path.is_file():
        return {}
    why = {}
    for e in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []):
        if unknown := set(e) - {"file", "function", "operator", "old", "new", "nth", "why"}:
            raise Bad(f"{path.name}: unknown key {unknown.pop()}")
        if not e.get("why") or "\n" in e["why"]:
            raise Bad(f"{path.name}: {e.get('file')}: `why` must be one line")
        found = [m for m in made if all(getattr(m, k) == e[k] for k in ("file", "function", "operator", "old", "new"))
                 and e.get("nth", 1) in (m.nth, "all")]
        if not found:
            raise Bad(f"{path.name}: no such defect: " + ", ".join(f"{k} = {v}" for k, v in e.items() if k != "why"))
        why |= {m.key: e["why"] for m in found}
    return why


def plain(file: str) -> str:
    """Without the folder of inner headers: a layer is one folder."""
    return file.removeprefix("detail/")


def folder_of(file: str) -> str:
    return plain(file).split("/")[0] + "/" if "/" in file else "(public)"


def changed_lines(commit: str) -> dict[str, set[int]]:
    """By header, the lines that have changed since a commit."""
    lines: dict[str, set[int]] = {}
    file = ""
    for line in call("git", "-C", str(ROOT), "diff", "--unified=0", "--no-color", commit, "--", "include/pawl").splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/include/pawl/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(found[1])
            lines.setdefault(file, set()).update(range(first, first + int(found[2] or 1)))
    return lines


# ---- headers with defects -----------------------------------------------------------------------


@dataclass
class Header:
    """A header with all chosen defects."""

    text: str
    ranges: list[tuple[int, int, Made]] = field(default_factory=list)

    def at(self, line: int, column: int) -> Made | None:
        """The innermost defect at a position."""
        starts = [0] + [m.end() for m in re.finditer("\n", self.text)]
        if not 0 < line <= len(starts):
            return None
        position = starts[line - 1] + column - 1
        here = [r for r in self.ranges if r[0] <= position < r[1]]
        if not here:  # the compiler may name another place of the line
            end = starts[line] if line < len(starts) else len(self.text)
            here = [r for r in self.ranges if r[0] < end and r[1] > starts[line - 1]]
        return min(here, key=lambda r: r[1] - r[0])[2] if here else None


def with_defects(text: str, made: list[Made]) -> Header:
    if not made:
        return Header(text)
    out = ["#include <pawl_mutant.hpp>\n"]
    at, open_at, ranges = len(out[0]), {}, []
    for piece in pieces(text, [((m.first, m.last), m) for m in made]):
        if isinstance(piece, str):
            out.append(piece)
            at += len(piece)
        elif piece in open_at:
            ranges.append((open_at.pop(piece), at, piece))
        else:
            open_at[piece] = at
    return Header("".join(out), ranges)


def complained_of(output: str, folder: Path, headers: dict[str, Header]) -> set[Made]:
    """The defects that a compiler does not accept, one per error."""
    # ccache may make the path of a header relative.
    place = re.compile(r"(?:" + re.escape(str(folder)) + r"|\.\./include/pawl)/(\S+?):(\d+):(\d+):")
    culprits: set[Made] = set()
    before: list[tuple[str, int, int]] = []  # the places that lead to an error
    for line in output.splitlines():
        found = [(f, int(l), int(c)) for f, l, c in place.findall(line)]
        if re.search(r"\b(fatal )?error: ", line):
            for file, *position in found + before[::-1]:
                if culprit := headers[file].at(*position):
                    culprits.add(culprit)
                    break
            before = []
        elif re.search(r"required from|required by|In instantiation|In substitution|in .constexpr. expansion", line):
            before += found
        elif re.match(r"\[\d+/\d+\]|FAILED:", line):
            before = []
    return culprits


class Tree:
    """A build with the chosen defects, as far as they compile."""

    def __init__(self, tree: Path, chosen: list[Made], jobs: int) -> None:
        self.tree, self.jobs = tree, jobs
        self.known = set(json.loads(DROPPED.read_text())) if DROPPED.is_file() else set()
        self.chosen = [m for m in chosen if m.key not in self.known]
        # Not optimised: compiling takes longer than the tests.
        self.programs = Programs(tree, "debug", jobs, "-w -Wno-narrowing", "-O0")
        self.plant()

    def plant(self) -> None:
        by_file: dict[str, list[Made]] = {}
        for m in self.chosen:
            by_file.setdefault(m.file, []).append(m)
        self.headers = {str(p.relative_to(INCLUDE)): None for p in INCLUDE.rglob("*.hpp")}
        self.headers = {
            file: with_defects((INCLUDE / file).read_text(encoding="utf-8"), by_file.get(file, [])) for file in self.headers
        }
        plant(self.tree, lambda file: self.headers[file].text)

    def probe(self) -> None:
        """Drops what does not compile outside templates, without building a program."""
        source = self.tree / "build" / "probe.cpp"
        mutate.write(source, "".join(f"#include <pawl/{m}>\n" for m in sorted({m.file for m in self.chosen})))
        for _ in range(30):
            done = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-w", "-Wno-narrowing", "-fsyntax-only",
                                   "-I", str(self.tree / "include"), str(source)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if not done.returncode:
                return
            self.drop(done.stdout)

    def build(self, names: set[str]) -> None:
        self.programs.configure()
        for _ in range(60):
            done = subprocess.run(["cmake", "--build", str(self.programs.folder), "--parallel", str(self.jobs), "--target",
                                   *sorted(names), "--", "-k", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if not done.returncode:
                return self.programs.read_tests()
            self.drop(done.stdout)
        raise Bad("the defects that do not compile cannot be found")

    def drop(self, output: str) -> None:
        culprits = complained_of(output, self.tree / "include" / "pawl", self.headers)
        if not culprits:
            raise Bad(f"cannot build, and no defect is the reason:\n{output[-6000:]}")
        print(f"    {len(culprits)} do not compile", flush=True)
        for m in sorted(culprits, key=lambda m: (m.file, m.line)):
            print(f"      {m}")
        self.known |= {m.key for m in culprits}
        DROPPED.parent.mkdir(parents=True, exist_ok=True)
        DROPPED.write_text(json.dumps(sorted(self.known), indent=0))
        self.chosen = [m for m in self.chosen if m not in culprits]
        self.plant()


# ---- the campaign -------------------------------------------------------------------------------


def tests_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "test").rglob("*.[ch]pp")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Verdicts:
    """Kept from run to run."""

    def __init__(self) -> None:
        self.tests = tests_hash()
        self.headers = {str(p.relative_to(INCLUDE)): hashlib.sha256(p.read_bytes()).hexdigest()[:16] for p in INCLUDE.rglob("*.hpp")}
        self.of: dict[str, dict] = {}
        for line in KEPT.read_text().splitlines() if KEPT.is_file() else []:
            v = json.loads(line)
            if v["header"] == self.headers.get(v["key"].split(" | ")[0]):
                self.of[v["key"]] = v
        self.lock = threading.Lock()

    def settled(self, m: Made, programs: str) -> bool:
        v = self.of.get(m.key)
        return bool(v) and (v["verdict"] == "asserted" or (v["tests"] == self.tests and v["programs"] in (programs, ALL_PROGRAMS)))

    def add(self, m: Made, verdict: str, by: str, said: str, programs: str) -> None:
        v = {"key": m.key, "verdict": verdict, "by": by, "said": said, "header": self.headers[m.file], "tests": self.tests,
             "programs": programs}
        with self.lock:
            self.of[m.key] = v
            with KEPT.open("a") as file:
                file.write(json.dumps(v) + "\n")


def noticed(todo: list[Made], planted: list[mutate.Mutant], tests: set[str]) -> Counter:
    """By program: how many of these it would notice, if it notices the same share of them as of the planted defects in the
    same header, or in its folder. A program with the name of the header would notice all."""
    count: Counter = Counter()
    for file, n in Counter(m.file for m in todo).items():
        here = [p for p in planted if p.file == file] or [p for p in planted if folder_of(p.file) == folder_of(file)]
        for p in here:
            for test in p.killed_by:
                count[test] += n / len(here)
        for test in tests:
            count[test] += n * (Path(file).stem in test)
    return count


class Campaign:
    def __init__(self, chosen: list[Made], jobs: int, programs: str, only_likely: bool, most: int | None) -> None:
        self.jobs, self.wanted, self.only_likely, self.most = jobs, programs, only_likely, most
        self.kept_as = programs + " likely" * only_likely + f" {most}" * bool(most)
        self.verdicts = Verdicts()
        self.chosen = chosen
        self.kills: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, set[int]] = {}
        self.said: dict[Made, dict[str, Outcome]] = {}

    def run(self) -> None:
        todo = [m for m in self.chosen if not self.verdicts.settled(m, self.kept_as)]
        print(f"{len(self.chosen)} defects, {len(self.chosen) - len(todo)} of them settled by earlier runs", flush=True)
        if not todo:
            return
        self.tree = Tree(BUILD / "generated", todo, self.jobs)
        print("building: without programs", flush=True)
        self.tree.probe()
        self.tree.programs.configure()
        everything = {t for t in self.tree.programs.tests if re.search(ALL_PROGRAMS, t) and re.search(self.wanted, t)}
        likely = {t for t in everything for m in todo if re.search(next(r for f, r in LIKELY if re.search(f, m.file)), t)}
        notices = noticed(todo, mutate.load(), everything)
        names = sorted(everything, key=lambda t: (t not in likely, -notices[t], t.split("_")[0] == "race", self.size(t)))
        if self.only_likely:
            names = names[: len(likely)]
        names = names[: self.most]
        for at in range(0, len(names), 6):
            todo = [m for m in self.tree.chosen if not self.asserted(m)]
            if todo:
                self.try_with(names[at : at + 6], todo)
        self.try_with_sanitizers()
        for m in self.tree.chosen:
            if not self.asserted(m):
                self.verdicts.add(m, *self.worst(m), self.kept_as)

    def size(self, test: str) -> int:
        """Of the source of a program: small ones are built first."""
        folder, _, name = test.partition("_")
        source = ROOT / "test" / folder / f"{name}.cpp"
        return source.stat().st_size if source.is_file() else 100_000

    def try_with(self, names: list[str], todo: list[Made]) -> None:
        print(f"building {' '.join(names)}", flush=True)
        self.tree.build(set(names))
        self.each(self.first_run, names)
        planted = set(self.tree.chosen)
        todo = [m for m in todo if m in planted and any(m.number in self.reached[n] for n in names)]
        print(f"they pass without a defect, and reach {len(todo)} of the {len(planted)} defects", flush=True)
        self.each(lambda m: self.try_one(m, names), todo)
        left = [m for m in self.tree.chosen if not self.asserted(m)]
        for m in left:  # kept so that the table is right if this run ends early
            self.verdicts.add(m, *self.worst(m), "unfinished")
        print(f"{len(left)} of {len(self.tree.chosen)} are left", flush=True)

    def try_with_sanitizers(self) -> None:
        """The programs that have crashed: a sanitizer may say why."""
        crashes = [(m, next((n for n, run in self.said.get(m, {}).items() if run.kind == "crashes"), "")) for m in self.tree.chosen]
        crashes = [(m, n) for m, n in crashes if n and not self.asserted(m)]
        if not crashes:
            return
        names = {n for _, n in crashes}
        print(f"building with sanitizers {' '.join(sorted(names))}", flush=True)
        programs = Programs(self.tree.tree, "asan+ubsan", self.jobs, "-w -Wno-narrowing")
        programs.build(names)
        usual = {n: programs.run(n, "", 0, 600) for n in names}
        if failed := [f"{n}: {run.said}" for n, run in usual.items() if run.kind != "passes"]:
            raise Bad(f"must pass without a defect, with sanitizers: {failed[0]}")

        def try_one(crash: tuple[Made, str]) -> None:
            m, name = crash
            run = programs.run(name, "", m.number, max(20, 8 * usual[name].seconds))
            if run.kind == "noticed":
                self.verdicts.add(m, "asserted", name, run.said, self.kept_as)

        self.each(try_one, crashes)

    def each(self, f, items: list) -> None:
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(f, items))

    def first_run(self, name: str) -> None:
        log = self.tree.tree / "build" / f"reached-{name}"
        log.unlink(missing_ok=True)
        run = self.tree.programs.run(name, "", 0, 600, log)
        if run.kind != "passes":
            raise Bad(f"{name} must pass without a defect, but: {run.said}")
        self.seconds[name] = run.seconds
        data = log.read_bytes() if log.is_file() else b""
        self.reached[name] = {int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, len(data), 4)}

    def asserted(self, m: Made) -> bool:
        v = self.verdicts.of.get(m.key)
        return bool(v) and v["verdict"] == "asserted"

    def worst(self, m: Made) -> tuple[str, str, str]:
        for kind, verdict in ("crashes", "crashed"), ("hangs", "hung"):
            for name, run in self.said.get(m, {}).items():
                if run.kind == kind:
                    return verdict, name, run.said
        return "survived", "", "reached" if any(m.number in r for r in self.reached.values()) else "not reached"

    def try_one(self, m: Made, names: list[str]) -> None:
        tried = self.said.setdefault(m, {})
        able = [n for n in names if m.number in self.reached[n]]
        for name in sorted(able, key=lambda n: (self.seconds[n] + 0.1) / (1 + self.kills[f"{m.file} {n}"])):
            if sum(run.kind == "hangs" for run in tried.values()) == 2 or sum(run.kind == "crashes" for run in tried.values()) == 6:
                break
            run = self.tree.programs.run(name, "", m.number, max(PATIENCE, 8 * self.seconds[name]))
            aborts = run.kind == "crashes" and (run.status == -6 or "SIGABRT" in run.said or (run.status > 0 and "status" in run.said))
            if run.kind == "noticed" or aborts:
                self.kills[f"{m.file} {name}"] += 1
                self.verdicts.add(m, "asserted", name, run.said, self.kept_as)
                return
            tried[name] = run


# ---- the report ---------------------------------------------------------------------------------


def table(made: list[Made], skipped: dict[str, Counter], why: dict[str, str], verdicts: dict[str, dict]) -> str:
    """Per folder, the verdicts."""
    dropped = set(json.loads(DROPPED.read_text())) if DROPPED.is_file() else set()
    lines = ["| folder | made | left out | tried | by an assertion | by a crash | by a hang | survived | equivalent |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for folder in sorted({folder_of(m.file) for m in made}):
        here = [m for m in made if folder_of(m.file) == folder and m.key not in dropped]
        count = Counter("equivalent" if m.key in why and verdicts[m.key]["verdict"] == "survived" else verdicts[m.key]["verdict"]
                        for m in here if m.key in verdicts)
        out = sum(sum(c.values()) for f, c in skipped.items() if folder_of(f) == folder)
        out += sum(m.key in dropped for m in made if folder_of(m.file) == folder)
        tried = sum(count.values())
        real = tried - count["equivalent"]
        share = f" ({100 * count['asserted'] / real:.0f} %)" if real else ""
        lines.append(f"| `{folder}` | {len(here)} | {out} | {tried} | {count['asserted']}{share} | {count['crashed']} | "
                     f"{count['hung']} | {count['survived']} | {count['equivalent']} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate --generate", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__)
    parser.add_argument("--file", action="append", default=[], metavar="F",
                        help="only of this header or folder below include/pawl; public: the headers that users include; "
                             "tools/migrate: by tools/mutate_migrate.py")
    parser.add_argument("--since", metavar="COMMIT", help="only of lines that have changed since then; with --sample: these first")
    parser.add_argument("--sample", type=int, metavar="N", help="a random sample of N, of each --file; without --file from one folder and few headers, which are drawn, too")
    parser.add_argument("--seed", default=datetime.date.today().isoformat(), help="seed of the sample (default: today's date)")
    parser.add_argument("--survivors", action="store_true", help="only those that no assertion has killed in earlier runs")
    parser.add_argument("--tests", default=ALL_PROGRAMS, metavar="R", help="only run test programs that match R")
    parser.add_argument("--likely", action="store_true", help="only run the test programs that most likely notice a defect")
    parser.add_argument("--programs", type=int, metavar="N", help="only run the N programs that most likely notice a defect")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="fail if fewer die by assertions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes in parallel")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the defects")
    what.add_argument("--check", action="store_true", help="check test/mutants/equivalent.toml against the headers")
    what.add_argument("--table", action="store_true", help="write the kept verdicts into doc/testing.md")
    arguments, rest = parser.parse_known_args()
    if arguments.file and arguments.file[0].rstrip("/") == "tools/migrate":
        own = ["--seed", arguments.seed, "--jobs", str(arguments.jobs)]
        own += ["--sample", str(arguments.sample)] if arguments.sample is not None else []
        os.execv(sys.executable, [sys.executable, str(ROOT / "tools" / "mutate_migrate.py"), *own, *rest])
    if rest:
        parser.error(f"unknown: {' '.join(rest)}")
    if arguments.sample is not None and arguments.sample < 1:
        raise Bad(f"a sample of {arguments.sample}: must be at least 1")

    made, skipped = make_all()
    why = equivalents(made)
    if arguments.check:
        return 0
    if arguments.table:
        text = PAGE.read_text(encoding="utf-8")
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise Bad(f"{PAGE.relative_to(ROOT)} needs the lines {BEGIN.strip()} and {END.strip()} once each")
        before, after = text.split(BEGIN)
        PAGE.write_text(before + BEGIN + table(made, skipped, why, Verdicts().of) + END + after.split(END)[1], encoding="utf-8")
        return 0

    chosen = made
    wanted = [plain(f.removeprefix("include/pawl/").rstrip("/")) for f in arguments.file]
    within = lambda m, f: plain(m.file) == f or plain(m.file).startswith(f + "/") or (f == "public" and "/" not in m.file)
    for f in wanted:
        if f != "public" and not (INCLUDE / f).exists() and not (INCLUDE / "detail" / f).exists():
            raise Bad(f"no such header or folder below include/pawl: {f}")
    if arguments.file:
        chosen = [m for m in made if any(within(m, f) for f in wanted)]
    if arguments.survivors:
        kept = Verdicts().of
        chosen = [m for m in chosen if m.key in kept and kept[m.key]["verdict"] != "asserted"]
    first: list[Made] = []
    if arguments.since:
        lines = changed_lines(arguments.since)
        first = [m for m in chosen if any(l in lines.get(m.file, ()) for l in range(m.line, m.last_line + 1))]
    if arguments.sample is not None:
        print(f"seed: {arguments.seed}")
        # By a hash, so that a change of one header leaves the sample of the others as it is.
        draw = lambda text: hashlib.sha256(f"{arguments.seed} {text}".encode()).digest()
        if not arguments.file:  # of one folder, so that few programs are needed
            folder = min({folder_of(m.file) for m in first or chosen}, key=draw)
            first, chosen = ([m for m in these if folder_of(m.file) == folder] for these in (first, chosen))
        changed = set(first)
        # And header by header, for the same reason.
        header = (lambda m: draw(m.file)) if not arguments.file else (lambda m: b"")
        chosen.sort(key=lambda m: (m not in changed, header(m), draw(m.key)))
        parts = [[m for m in chosen if within(m, f)] for f in wanted] or [chosen]
        chosen = list(dict.fromkeys(m for part in parts for m in part[: arguments.sample]))
    elif arguments.since:
        chosen = first
    if arguments.list:
        for m in chosen:
            print(f"{m}{'  # equivalent: ' + why[m.key] if m.key in why else ''}")
        out = sum((skipped[f] for f in {m.file for m in chosen}), Counter())
        print(f"{len(chosen)} defects; left out: " + ", ".join(f"{reason} {n}" for reason, n in sorted(out.items())))
        return 0

    campaign = Campaign([m for m in chosen if m.key not in why], arguments.jobs, arguments.tests, arguments.likely, arguments.programs)
    campaign.run()
    of = campaign.verdicts.of
    tried = [m for m in chosen if m.key in of and m.key not in why]
    count = Counter(of[m.key]["verdict"] for m in tried)
    print(f"\n{len(chosen)} defects: {sum(m.key in why for m in chosen)} equivalent, "
          f"{sum(m.key not in why for m in chosen) - len(tried)} do not compile; of {len(tried)} died "
          f"{count['asserted']} by an assertion, {count['crashed']} by a crash, {count['hung']} by a hang; {count['survived']} survived")
    for m in tried:
        if (v := of[m.key])["verdict"] != "asserted":
            print(f"{v['verdict']}: {m}   [{v['by'] or v['said']}]")
            print(f"    PAWL_MUTANT={m.number}")
    return 1 if tried and 100 * count["asserted"] < arguments.at_least * len(tried) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Bad as e:
        sys.exit(f"mutate: {e}")
