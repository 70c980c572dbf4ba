#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Which lines, branches and conditions of include/pawl no test executes.

Reads what `llvm-cov export` writes. A header's functions are instances of templates in many programs: a line counts as
covered if any instance of it ran, a branch if any instance took it, a condition if any instance shows that it alone
decides (MC/DC). What is excused is listed with its reason in a file; an entry of that file which is covered
after all, unless it is covered only sometimes, or which names no such place, is an error. So is a line that is neither
covered nor excused.
"""

import argparse
import collections
import json
import re
import sys
import tomllib
from pathlib import Path


def union(exports, root):
    """Of each header: {line: NEVER, SKIPPED or RAN}, {(place, outcome): taken}, {(place, condition): decides}."""
    headers = {}
    for export in exports:
        for file in export["data"][0]["files"]:
            path = Path(file["filename"])
            if root not in path.parents:
                continue
            lines, branches, conditions = headers.setdefault(str(path.relative_to(root)), ({}, {}, {}))
            for number, ran in lines_of(file["segments"]):
                lines[number] = max(lines.get(number, NEVER), ran)
            for first, column, last, end, yes, no, *_ in file["branches"]:
                for outcome, count in (("true", yes), ("false", no)):
                    key = (first, column, last, end, outcome)
                    branches[key] = branches.get(key, False) or count > 0
            for first, column, last, end, *_, decides in file["mcdc_records"]:
                for at, each in enumerate(decides):
                    key = (first, column, last, end, at)
                    conditions[key] = conditions.get(key, False) or each
    return headers


NEVER, SKIPPED, RAN = range(3)


def lines_of(segments):
    """(line, NEVER, SKIPPED by the preprocessor, or RAN), by the rules of llvm-cov: a line's count is the greatest of the
    regions that begin in it, and that of the region which goes on through it. Some programs lack what was skipped. Unlike
    there, the gap after a block that may return says nothing about the line in which it ends."""
    starts = collections.defaultdict(list)
    for line, _column, count, counted, entry, gap in segments:
        starts[line].append((count, counted, entry, gap))
    through = (0, False, False, False)  # the last one of the lines before
    for line in range(segments[0][0], segments[-1][0] + 1) if segments else ():
        here = starts.get(line, [])
        _count, counted, entry, gap = here[0] if here else through
        if here and through[3] and counted and not entry and not gap:
            through = here[0]
        if entry and not counted:
            yield line, SKIPPED
        else:
            counts = [each[0] for each in here if each[1] and each[2] and not each[3]] + ([through[0]] if through[1] else [])
            if counts:
                yield line, RAN if max(counts) else NEVER
        through = here[-1] if here else through


Place = collections.namedtuple("Place", "kind text line covered")  # kind: line, true, false, condition


def places(source, lines, branches, conditions):
    """Everything in a header that can be covered, with the text that names it."""
    for number, ran in sorted(lines.items()):
        text = source[number - 1].strip()
        # Not what is no code, or decided by the compiler.
        if ran != SKIPPED and re.search("[a-z]", text.replace("else", "")) and not re.match("//|#|if constexpr|(} )?else if constexpr", text):
            yield Place("line", text, number, ran == RAN)
    for (first, column, last, end, outcome), taken in sorted(branches.items()):
        yield Place(outcome, text_of(source, first, column, last, end), first, taken)
    for (first, column, last, end, at), decides in sorted(conditions.items()):
        yield Place(f"condition {at + 1}", text_of(source, first, column, last, end), first, decides)


def text_of(source, first, column, last, end):
    if first == last:
        return source[first - 1][column - 1:end - 1]
    inner = [source[first - 1][column - 1:], *source[first:last - 1], source[last - 1][:end - 1]]
    return " ".join(each.strip() for each in inner)


def excuses(rules):
    """{(header, kind, text): whether the place may be covered all the same}"""
    found = {(each["file"], each["what"], each["text"]): each.get("sometimes", False) for each in rules.get("excused", [])}
    for name, reasons in rules.get("lines", {}).items():
        before = ""
        for text, reason in reasons.items():
            before = reason = before if reason == "The same." else reason
            if not reason:
                sys.exit(f"coverage: {name}: {text}: gives no reason, and there is none before it")
            found[name, "line", text] = reason.startswith("Sometimes: ")
    return found


def measure(headers, root, excused):
    """Per header {kind: [covered, excused, total]}, and what is neither covered nor excused."""
    table, missing, used = {}, [], set()
    for name, found in sorted(headers.items()):
        counts = {"lines": [0, 0, 0], "branches": [0, 0, 0], "mcdc": [0, 0, 0]}
        for place in places((root / name).read_text().splitlines(), *found):
            count = counts[{"l": "lines", "c": "mcdc"}.get(place.kind[0], "branches")]
            count[2] += 1
            key = (name, place.kind, place.text)
            if key in excused and (not place.covered or excused[key]):
                used.add(key)
            if place.covered:
                count[0] += 1
            elif key in excused:
                count[1] += 1
            else:
                missing.append((name, place))
        table[name] = counts
    return table, missing, set(excused) - used


def total(table, names):
    return {kind: [sum(table[name][kind][i] for name in names) for i in range(3)] for kind in ("lines", "branches", "mcdc")}


def percent(count, excused=False):
    covered = count[0] + (count[1] if excused else 0)
    return 100.0 if not count[2] else 100.0 * covered / count[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True, help="the headers")
    parser.add_argument("--wanted", type=Path, required=True, help="TOML: how much is to be covered, and what cannot be, and why")
    parser.add_argument("--list", metavar="REGEX", help="print what is not covered in headers of matching names")
    parser.add_argument("--part", action="store_true", help="the exports are of some tests only: nothing is asked for")
    parser.add_argument("--json", type=Path, help="write the table there")
    parser.add_argument("exports", nargs="+", type=Path, help="of llvm-cov export --skip-functions")
    options = parser.parse_args()
    root = options.root.resolve()
    rules = tomllib.loads(options.wanted.read_text())
    excused = excuses(rules)
    headers = union([json.loads(each.read_text()) for each in options.exports], root)
    if not headers:
        sys.exit(f"coverage: the exports have no header below {root}")
    table, missing, stale = measure(headers, root, excused)

    for name in [*table, "all"]:
        counts = total(table, table) if name == "all" else table[name]
        cells = [f"{percent(counts[kind]):6.1f} %{'*' if counts[kind][1] else ' '} of {counts[kind][2]:5}" for kind in counts]
        print(f"{name:45} {'   '.join(cells)}")
    print("lines, branches, conditions (MC/DC); *: some of what is missing is excused, with reasons, in", options.wanted)
    if options.list:
        for name, place in missing:
            if re.search(options.list, name):
                print(f"{name}:{place.line}: {place.kind}: {place.text}")
    if options.json:
        files = {name: {kind: [count[0], count[2]] for kind, count in counts.items()} for name, counts in table.items()}
        options.json.write_text(json.dumps(files))

    if options.part:
        return
    wrong = [f"{name}: {kind}: is covered, or there is no such text: {text}" for name, kind, text in sorted(stale)]
    wrong += [f"{name}:{place.line}: is not covered, and has no reason: {place.text}" for name, place in missing if place.kind == "line"]
    everything = total(table, table)
    for kind, least in rules["least"].items():
        if percent(everything[kind]) < least:
            wrong.append(f"all headers: {percent(everything[kind]):.2f} % of {kind}, at least {least} wanted")
    for name in rules["complete"]:
        if name not in table:
            wrong.append(f"{name}: no test includes it")
        elif any(percent(count, excused=True) < 100 for count in table[name].values()):
            wrong.append(f"{name}: not complete; --list {name} shows what is missing")
    for each in wrong:
        print(f"coverage: {each}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
