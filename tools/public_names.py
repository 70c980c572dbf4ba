#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""The public names of Pawl with their signatures, as doxygen reads them from the headers: test/doc/public_names.txt.

usage: tools/public_names.py [--check] [ROOT]

Prints what the headers add, change and remove, compared with the list, and which of the changes since the last release
CHANGELOG.md does not name. Without --check it renews the list. Exit status 77: there is no doxygen 1.9.4.

The first line of the list names that release. Each other line is a mark, a name and its signature: = as released, + not yet
released, - released, and no longer there. If the newest version in CHANGELOG.md is another one, renewing the list takes as
released what is there now. Before the first release, = is what there was when the list began.

CHANGELOG.md must have in backticks, above that release: each new name, or its class; after the first release also each name
that is gone, or its class, below "### Removed", and each name that has lost a signature below "### Changed".
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

DOXYGEN = "1.9.4"  # others write some types differently
SETTINGS = """
INPUT = include/pawl include/pawl/time include/pawl/detail/service/timer_service.hpp
FILE_PATTERNS = *.hpp
GENERATE_HTML = NO
GENERATE_XML = YES
EXTRACT_ALL = YES
WARN_AS_ERROR = NO
WARNINGS = NO
"""
Names = dict[str, set[str]]  # name: its signatures

def text(element: ElementTree.Element | None) -> str:
    joined = " ".join("".join(element.itertext()).split()) if element is not None else ""
    return re.sub(r"(?<=\w)< | (?=>)", lambda space: space[0].strip(), joined)


def template(element: ElementTree.Element) -> str:
    parameters = [" ".join(filter(None, (text(each.find("type")), text(each.find("declname")), "=" * (each.find("defval") is not None),
                                         text(each.find("defval"))))) for each in element.findall("templateparamlist/param")]
    requires = text(element.find("requiresclause"))
    return (f"template <{', '.join(parameters)}> " if parameters else "") + (f"requires {requires} " if requires else "")


def signature(member: ElementTree.Element) -> str:
    kind = member.get("kind")
    if kind == "define":
        return "macro" if member.find("param") is None else f"macro({', '.join(text(each) for each in member.findall('param'))})"
    words = [each for each in ("static", "explicit") if member.get(each) == "yes"]
    words += [{"typedef": "using =", "friend": "friend", "enum": "enum class" if member.get("strong") == "yes" else "enum"}.get(kind, "")]
    words += [text(member.find(part)) for part in ("type", "argsstring", *["initializer"] * (kind == "variable"))]
    return template(member) + " ".join(filter(None, words))


def read(root: Path) -> Names:
    """The public names of the headers below root."""
    names: Names = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = (root / "doc" / "Doxyfile").read_text() + SETTINGS + f"OUTPUT_DIRECTORY = {folder}\n"
        done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=root, capture_output=True)
        compounds = [c for file in Path(folder).glob("xml/*.xml") for c in ElementTree.parse(file).getroot().iter("compounddef")]
    if done.returncode or not compounds:
        sys.exit(f"public_names.py: doxygen fails: {done.stderr[-2000:]}")
    hidden = {text(c.find("compoundname")) for c in compounds if c.get("prot") in ("private", "protected")}
    for compound in compounds:
        scope, kind = text(compound.find("compoundname")), compound.get("kind")
        if re.search(r"\bdetail\b|^(boost|std)\b", scope) or {scope[:at.start()] for at in re.finditer("::|$", scope)} & hidden:
            continue
        if kind in ("class", "struct", "union", "concept"):
            bases = ", ".join(text(base) for base in compound.findall("basecompoundref") if base.get("prot") == "public")
            names[scope] = {template(compound) + kind + (f" : {bases}" if bases else "")}
        elif kind not in ("namespace", "file"):
            continue
        for member in compound.iter("memberdef"):
            friend, macro = member.get("kind") == "friend", member.get("kind") == "define"
            # Functions that are friends are public, whatever stands above them. A file repeats what its namespaces have.
            if (kind == "file") != macro or (not text(member.find("argsstring")) if friend else member.get("prot") != "public"):
                continue
            name = text(member.find("name")) if macro else f"{scope}::{text(member.find('name'))}"
            names.setdefault(name, set()).add(signature(member))
            number = -1
            for each in member.findall("enumvalue"):
                given = text(each.find("initializer"))
                number = int(given[2:]) if given[2:].isdigit() else number + 1
                names[f"{name}::{text(each.find('name'))}"] = {f"= {number}" if given[2:].isdigit() or not given else given}
    return names


def changed(names: Names, before: Names) -> list[tuple[str, str, set[str], set[str]]]:
    """What happened to which name, the signatures that are gone, and the new ones."""
    return [("added" if not old else "changed" if new else "removed", name, old - new, new - old)
            for name in sorted({*names, *before}) for old, new in [(before.get(name, set()), names.get(name, set()))] if old != new]


def unnamed(names: Names, base: Names, news: str, released: bool) -> list[str]:
    """What the changelog does not say."""
    def below(heading: str) -> str:
        return "\n".join(re.findall(rf"^### {heading}$(.*?)(?=^##|\Z)", news, flags=re.M | re.S))

    missing = []
    for what, name, gone, _ in changed(names, base):
        place, whole = (news, names.keys() - base.keys()) if what == "added" else (below(what.title()), base.keys() - names.keys())
        words = set(re.findall(r"operator[^\w\s]+|\w+", " ".join(re.findall(r"`([^`]*)`", place))))
        classes = {name[:at.start()] for at in re.finditer("::", name)} & whole
        known = {each.split("::")[-1].lstrip("~") for each in {name, *classes}} & words
        if not known and (what == "added" or gone and released):
            missing.append(f"{name} is {what}: name it in CHANGELOG.md" + f", below '### {what.title()}'" * (what != "added"))
    return missing


def main() -> int:
    arguments = [each for each in sys.argv[1:] if each != "--check"]
    root = Path(*arguments[:1] or [Path(__file__).parent.parent]).resolve()
    file = root / "test" / "doc" / "public_names.txt"
    if len(arguments) > 1 or not file.is_file():
        sys.exit(f"public_names.py: usage: tools/public_names.py [--check] [ROOT]; the list is {file}")
    if not shutil.which("doxygen") or not subprocess.getoutput("doxygen --version").startswith(DOXYGEN):
        print(f"public_names.py: skipped: there is no doxygen {DOXYGEN}", file=sys.stderr)
        return 77
    names, listed, base = read(root), {}, {}
    head, *lines = file.read_text().splitlines()
    release = head.split()[-1]
    for line in lines:
        if not (found := re.fullmatch(r"([-+=]) (.*?)  (.*)", line)):
            sys.exit(f"public_names.py: no mark, name and signature in {file}: {line}")
        mark, name, each = found.groups()
        for to in [listed] * (mark != "-") + [base] * (mark != "+"):
            to.setdefault(name, set()).add(each)
    changelog = (root / "CHANGELOG.md").read_text()
    newest = next(iter(re.findall(r"^## \[(\d[^\]]*)\]", changelog, flags=re.M)), "none")
    missing = unnamed(names, base, changelog.split(f"\n## [{release}]")[0], release != "none")
    if release != newest and not missing:
        release, base = newest, names
    wanted = "".join([f"Public names, by tools/public_names.py. The last release: {release}\n", *(
        f"{'+' if each not in base.get(name, ()) else '=' if each in names.get(name, ()) else '-'} {name}  {each}\n"
        for name in sorted({*names, *base}) for each in sorted({*names.get(name, ()), *base.get(name, ())}))])

    changes = changed(names, listed)
    for what, name, gone, new in changes:
        print(f"{what}: {name}", *(f"    - {each}" for each in sorted(gone)), *(f"    + {each}" for each in sorted(new)), sep="\n")
    print(f"{len(names)} names, {len(changes)} changes of the list, {len(missing)} that CHANGELOG.md does not name")
    for line in missing:
        print(f"public_names.py: {line}", file=sys.stderr)
    if "--check" not in sys.argv:
        file.write_text(wanted)
    elif file.read_text() != wanted:
        missing.append("public_names.py: the list is not up to date. To renew it: tools/public_names.py")
        print(missing[-1], file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
