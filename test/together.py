#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Makes one source of several tests: together.py OUTPUT MODULE SOURCE...

A compiler spends most of its time on what each test needs: the instances of Asio, Pawl and Boost.Test. So CMakeLists.txt
has several compiled together.

  - The head of a source, up to its last #include, comes first, without BOOST_TEST_MODULE.
  - The rest becomes a suite of Boost.Test with the name of the file, and so a namespace: names of different files do not
    meet. --run_test=FILE runs one file.
  - #line directives: errors and failed checks name the original file and line.
"""

import re
import sys
from pathlib import Path

NAMED = re.compile(r"namespace (\w+) \{$")


def parts(path: Path) -> tuple[list[str], list[str], set[str]]:
    """The head, the suite, and the named namespaces that the suite opens."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = 1 + max(i for i, line in enumerate(lines) if line.startswith("#include"))
    while end < len(lines) and lines[end].startswith("#endif"):
        end += 1
    head = ["" if line.startswith("#define BOOST_TEST_MODULE") else line for line in lines[:end]]
    suite, named = [""] * end, set()
    for line in lines[end:]:
        if found := NAMED.match(line):
            # A header may have this namespace, too, outside the suite: its names must be found here.
            named.add(found[1])
            line += f" using namespace ::{found[1]};"
        suite.append(line)
    return head, suite, named


def main() -> None:
    output, module, *sources = sys.argv[1:]
    heads, suites, all_named = [f"#define BOOST_TEST_MODULE {module}"], [], set()
    for source in map(Path, sources):
        head, suite, named = parts(source)
        line = f'#line 1 "{source}"'
        heads += [line, *head]
        suites += [f"BOOST_AUTO_TEST_SUITE({source.stem})", line, *suite, "BOOST_AUTO_TEST_SUITE_END()"]
        all_named |= named
    declared = [f"namespace {name} {{}}" for name in sorted(all_named)]
    Path(output).write_text("\n".join([*heads, *declared, *suites]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
