#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Copies headers so that their atomics are those of test/support/explored.hpp.

usage: explored_headers.py INCLUDE OUT HEADER... [--sequence TYPE]... [--member NAME]...

INCLUDE/HEADER becomes OUT/HEADER, line by line. Each std::memory_order_X in code becomes a site: the order with a
number. OUT/explored_sites.hpp lists all sites, so that no site can be left out. Non-atomic members of type TYPE, each
declared in one line of the headers, are checked for data races, too. So is each use of the data member NAME, and
whether its object still exists. NAME is declared in one line, and no other member of that name is used.
"""

import argparse
import pathlib
import re
import sys

ORDER = re.compile(r"std::memory_order_(\w+)")
OPERATION = re.compile(r"(load|store|wait|exchange\w*|fetch_\w+|compare_exchange_\w+)\(")
ATOMIC = re.compile(r"\bstd::atomic<")
MEMBER = r"^(\s+)((?!return\b)[\w:]+(?:<[^()]*>)?\*?) {name}(?: = (\w+))?;"
UNKNOWN = re.compile(r"std::(atomic|memory_order)\w*")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("headers", nargs="+")
    parser.add_argument("--sequence", action="append", default=[])
    parser.add_argument("--member", action="append", default=[])
    options = parser.parse_args()

    sites = []
    replaced = dict.fromkeys(options.sequence + options.member, 0)
    for header in options.headers:
        lines = []
        statement = ""  # from the line on that names an operation
        for number, line in enumerate((options.include / header).read_text().splitlines(), 1):
            code, slashes, comment = line.partition("//")
            if "<atomic>" in code:
                code = '#include "support/explored.hpp"'

            statement = code.strip() if OPERATION.search(code) else f"{statement} {code.strip()}"

            def site(match: re.Match) -> str:
                sites.append((header.rsplit("/", 1)[1], number, match[1], statement))
                return f"::explored::order({match[0].replace('std::', '::std::')}, {len(sites) - 1})"

            changed = ATOMIC.sub("::explored::atomic<", ORDER.sub(site, code))
            if UNKNOWN.search(changed.replace("::std::memory_order_", "")):
                sys.exit(f"{header}:{number}: the explorer does not know this: {code.strip()}")
            for sequence in options.sequence:
                if sequence in changed:
                    changed = changed.replace(sequence, f"::explored::sequence_data<{sequence}>")
                    replaced[sequence] += 1
            for member in options.member:
                declared = re.match(MEMBER.format(name=member), changed)
                if declared:
                    indent, kind, initial = declared.groups()
                    rest = f", {initial}" if initial else ""
                    changed = f'{indent}::explored::member<{kind}> {member}{{"{member}"{rest}}};' + changed[declared.end() :]
                    replaced[member] += 1
                else:
                    changed = re.sub(rf"\b{member}\b(?!\()", f"{member}.used()", changed)
                    changed = re.sub(rf"(?<![.\w>]){member}\(", f'{member}("{member}", ', changed)
            lines.append(changed + slashes + comment)
        copy = options.out / header
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(lines) + "\n")

    for what, times in replaced.items():
        if times != 1:
            sys.exit(f"{what} stands in {times} lines, not in one")
    table = "".join(
        f'    {{"{file}", {line}, std::memory_order_{order}, R"code({text})code"}},\n' for file, line, order, text in sites
    )
    (options.out / "explored_sites.hpp").write_text(
        '#include "support/explored.hpp"\n\n'
        "#include <atomic>\n#include <vector>\n\n"
        f"inline const std::vector<explored::site> explored_sites{{\n{table}}};\n"
    )


main()
