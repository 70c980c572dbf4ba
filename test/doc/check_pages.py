#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Checks the references in the pages of the repository: files and headings that they link to, and commands of ./dev.

usage: check_pages.py [ROOT]
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\[\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", flags=re.M | re.S)
COMMAND = re.compile(r"\./dev ([a-z]+)")


def prose(text: str) -> str:
    """The text without its fenced blocks and code spans, which contain no links."""
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", text))


def anchors(page: pathlib.Path) -> set[str]:
    """The headings of a page, as the hosting sites name them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    pages = [*root.glob("*.md"), *root.glob("doc/*.md"), *root.glob("bench/**/*.md"), *root.glob("examples/*.md")]
    pages += [*root.glob("packaging/**/*.md"), *root.glob(".github/*.md")]
    complaints: list[str] = []
    links = 0
    for page in sorted(pages):
        for target in LINK.findall(prose(page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            if not file.exists():
                complaints.append(f"{page.relative_to(root)}: there is no {target}")
            elif anchor and anchor not in anchors(file):
                complaints.append(f"{page.relative_to(root)}: {path or 'this page'} has no heading #{anchor}")

    usage = subprocess.run([root / "dev", "help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^  ([a-z]+)", usage, flags=re.M))
    commands = 0
    for file in sorted([*pages, *root.glob(".github/workflows/*.yml"), root / ".ci" / "run"]):
        for command in COMMAND.findall(file.read_text()):
            commands += 1
            if command not in known:
                complaints.append(f"{file.relative_to(root)}: ./dev {command} is no command of ./dev help")

    for complaint in complaints:
        print(f"check_pages.py: {complaint}", file=sys.stderr)
    if not links or not commands:
        print(f"check_pages.py: no link or no command below {root}: is that the repository?", file=sys.stderr)
        return 1
    print(f"{len(pages)} pages, {links} links, {commands} commands, {len(complaints)} of them wrong")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
