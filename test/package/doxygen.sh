#!/usr/bin/env bash
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
#
# Doxygen makes the reference without a warning, with all public names, and without dead links. What it reads is what
# test/doc/public_names.txt lists.

source "$(dirname "${BASH_SOURCE[0]}")/support.sh"
work_in doxygen

command -v doxygen >/dev/null || fail "doxygen is missing: apt-get install doxygen"
{
    cat doc/Doxyfile
    printf '%s\n' "PROJECT_NUMBER = $version" "OUTPUT_DIRECTORY = \"$work\"" "GENERATE_TAGFILE = \"$work/tags\""
} >"$work/Doxyfile"
quietly doxygen "$work/Doxyfile"
[[ ! -s $work/log ]] || fail "doxygen says, though it exits with 0: $(head -n 20 "$work/log" | cut -c1-300)"
say "no warning from doxygen $(doxygen --version)"

shown=$(python3 - "$work" <<'PYTHON'
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

work = Path(sys.argv[1])
problems: list[str] = []

# The files of the reference.
files: set[str] = set()
names: set[str] = set()
for compound in ElementTree.parse(work / "tags").getroot().iter("compound"):
    name = compound.findtext("name", "")
    if compound.get("kind") == "file":
        files.add(compound.findtext("path", "") + name)
        continue
    names.add(name)
    if compound.get("kind") == "namespace":
        names.update(f"{name}::{member.findtext('name')}" for member in compound.iter("member"))

# Each header that users include has a page.
headers = sorted(Path("include/pawl").glob("*.hpp"))
for header in headers:
    if not any(file.endswith(f"pawl/{header.name}") for file in files):
        problems.append(f"no page for {header}: give it an @file comment")

# Each type or concept that a header for users defines outside of a detail namespace is in the reference, and so are those
# that such a header takes from detail/service/timer_service.hpp.
definition = re.compile(r"(?:class|struct|union|enum class|concept|using) (\w+)(?: final)?(?: [:={].*| *)")
types = 0
for header in sorted(Path("include").rglob("*.hpp")):
    if "detail" in header.parts and header.name != "timer_service.hpp":
        continue
    namespaces: list[str] = []
    for line in header.read_text().splitlines():
        if opened := re.fullmatch(r"(?:inline )?namespace ([\w:]+) \{", line):
            namespaces.append(opened[1].replace("PAWL_DETAIL_DETAIL_BUILD", "pawl::detail").replace("PAWL_DETAIL_BUILD", "pawl"))
        elif line.startswith("} // namespace"):
            namespaces.pop()
        elif namespaces and (found := definition.fullmatch(line)):
            name = "::".join([*namespaces, found[1]])
            if "::detail" in name:
                continue
            types += 1
            if name not in names:
                problems.append(f"no {name}, which {header} defines: is that header in INPUT of doc/Doxyfile?")

# Each name in README.md's table of headers is in the reference.
promised: set[str] = set()
for column in re.findall(r"^\| `<pawl/[^|]*\|(.*)", Path("README.md").read_text(), re.MULTILINE):
    promised.update(re.findall(r"`(\w+)(?![\w:])", column))
for name in sorted(promised):
    if not {f"pawl::{name}", f"pawl::time::{name}"} & names:
        problems.append(f"no {name}, which the table in README.md has")

# All links have a target.
links = {
    (page.name, link)
    for page in work.glob("*.html")
    for link in re.findall(r'(?:href|src|data)="([^":#]+)["#]', page.read_text())
}
for page, link in sorted(links):
    if not (work / link).exists():
        problems.append(f"{page} links to {link}, which is not there")

if problems:
    sys.exit("\n".join(problems[:20]))
if not headers or not types or not promised or not links:
    sys.exit("nothing was looked at; has the layout of the headers or of README.md changed?")
print(f"{len(headers)} headers, {types} types, {len(promised)} names of README.md, {len(links)} links")
PYTHON
) || fail "the reference in $work is not complete, see above"
say "there are $shown"
tools/public_names.py --check >"$work/log" 2>&1 || fail "the public names have changed: $(cat "$work/log")"
say "the list has $(tail -n 1 "$work/log")"
