#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0

"""Writes doc/evidence.md from the records of what ran, build/evidence/*.json. Nothing in the page is written by hand.

usage: tools/evidence.py                                      writes the page
       tools/evidence.py --check                              checks that each test that doc/guarantees.md names exists, and that
                                                              the page is as it was written
       tools/evidence.py --junit FILE NAME COMMIT COMPILER    adds a run of ctest to the record NAME

A record is an object with what, date, commit, compiler, and what was found. Those of tests and of planted defects keep what
earlier runs found on each name, with the commit of that run. A test or a file is not assigned to a promise here:
  tests    doc/guarantees.md names them below each promise, after **Tests:**; the cases are those of the sources
  defects  test/mutants/*.toml names the promise that each of them breaks
  files    those that such a defect changes, and headers that mention the promise
"""

import datetime
import fnmatch
import hashlib
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "build" / "evidence"
PAGE = ROOT / "doc" / "evidence.md"
PAWL = ROOT / "include" / "pawl"
# A page says of each of these that it has not run, if there is no record.
EXPECTED = ("coverage", "fuzz", "mutate", "simulate", "simulate-threads", "soak")
CASE = re.compile(r"^\s*(?:BOOST_DATA_TEST_CASE_F\(\s*\w+,|(?:BOOST_(?:AUTO|FIXTURE|DATA)_TEST_CASE(?:_TEMPLATE)?|PAWL_TYPED_CASE)\()\s*(\w+)", flags=re.M)


def commit() -> str:
    said = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=7"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def merge(name: str, key: str, found: dict[str, str], what: str, commit: str, compiler: str) -> None:
    """Adds what a run found on each name to what the record has under `key`."""
    file = RECORDS / f"{name}.json"
    date = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    kept = json.loads(file.read_text())[key] if file.exists() else {}
    kept |= {each: {"result": result, "commit": commit, "date": date} for each, result in found.items()}
    RECORDS.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"what": what, "date": date, "commit": commit, "compiler": compiler, key: kept}, indent=1) + "\n")


def read_junit(file: Path) -> dict[str, str]:
    results = {}
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        status = {"run": "passed", "fail": "failed"}.get(case.get("status", ""), "skipped")
        results[case.get("name", "")] = "failed" if case.find("failure") is not None else status
    return results


def records() -> dict[str, dict]:
    found = {}
    for file in sorted(RECORDS.glob("*.json")):
        try:
            found[file.stem] = json.loads(file.read_text())
            for key in "what", "date", "commit", "compiler":
                found[file.stem][key]
        except (json.JSONDecodeError, KeyError, TypeError) as e:
            sys.exit(f"evidence: {file.relative_to(ROOT)} is no record ({e!r}): remove it, or run its command again")
    return found


def sources() -> dict[str, str]:
    """folder/stem of each test program, and its text with that of the headers beside it; the same of each model."""
    found = {}
    for file in sorted((ROOT / "test").glob("*/*_test.cpp")) + sorted((ROOT / "test" / "model").glob("*.pml")):
        parts = [file.parent / each for each in re.findall(r'^#include "(\w+\.hpp)"', file.read_text(), flags=re.M)]
        found[str(file.relative_to(ROOT / "test").with_suffix(""))] = "".join(part.read_text() for part in (file, *parts) if part.exists())
    return found


def named(tests: str, programs: dict[str, list[str]]) -> tuple[dict[str, list[str]], list[str]]:
    """The programs, and the cases of each, that a line of tests in guarantees.md names; and what it names that does not exist."""
    found: dict[str, list[str]] = {}
    unknown = []
    for several, place in re.findall(r"((?:`[^`]+`,? ?)+)(?:in `([^`]+)`)?", tests):
        for name in re.findall(r"`([^`]+)`", several):
            if name.startswith("./dev "):
                continue
            hits: dict[str, list[str]] = {}
            for program, cases in programs.items():
                folder, stem = program.split("/")
                if name.endswith("/") and folder == name[:-1] or program.removesuffix("_test") == name.removesuffix("_test") \
                        or "/" not in name and stem.removesuffix("_test") == name.removesuffix("_test"):
                    hits[program] = cases
                elif (not place or program == place) and (chosen := [each for each in cases if fnmatch.fnmatchcase(each, name)]):
                    hits[program] = chosen
            for program, cases in hits.items():
                found[program] = sorted({*found.get(program, []), *cases})
            if not hits:
                unknown.append(name + (f" in {place}" if place else ""))
    return found, unknown


def promises(programs: dict[str, list[str]]) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """The heading of each section of guarantees.md with tests, and these; and complaints."""
    found: dict[str, dict[str, list[str]]] = {}
    complaints = []
    for section in re.split(r"^## ", (ROOT / "doc" / "guarantees.md").read_text(), flags=re.M)[1:]:
        heading = section.split("\n")[0]
        if tests := re.search(r"^\*\*Tests:\*\*(.*?)(?=\n\n|\Z)", section, flags=re.M | re.S):
            found[heading], unknown = named(" ".join(tests[1].split()), programs)
            complaints += [f"doc/guarantees.md, {heading}: names a test that does not exist: {each}" for each in unknown]
        elif re.match(r"P\d+:", heading):
            complaints.append(f"doc/guarantees.md, {heading}: names no tests")
    return found, complaints


def tests_of(program: str, known: Iterable[str]) -> list[str]:
    """The names in ctest of a program of tests. One source may be several programs, such as the contract of each timer."""
    folder, stem = program.split("/")
    name = f"model_{stem}" if folder == "model" else f"{folder}_{stem}"
    return [each for each in known if each.removesuffix("_beside_a_thread") == name] or \
        [each for each in known if re.fullmatch(re.escape(stem.removesuffix("_test")) + r"_[a-z]+(_beside_a_thread)?", each)]


def passed(programs: Iterable[str], all_records: dict[str, dict]) -> str:
    """In how many of the programs everything passed, for each record of tests."""
    programs, cells = list(programs), []
    for name, record in all_records.items():
        if "tests" not in record:
            continue
        runs = {program: [record["tests"][each] for each in tests_of(program, record["tests"])] for program in programs}
        runs = {program: [each for each in ran if each["result"] != "skipped"] for program, ran in runs.items()}
        if any(runs.values()):
            good = sum(bool(ran) and all(each["result"] == "passed" for each in ran) for ran in runs.values())
            bad = [program for program, ran in runs.items() if any(each["result"] == "failed" for each in ran)]
            commits = sorted({each["commit"] for ran in runs.values() for each in ran})
            cells.append(f"{good} of {len(programs)}, {name.removeprefix('test-')}, {', '.join(commits)}" + (f"; **failed:** {', '.join(bad)}" if bad else ""))
    return "; ".join(cells) or ("not run" if programs else "none")


def killed(mutants: list[dict], all_records: dict[str, dict]) -> str:
    if not mutants:
        return "none"
    tried = {each: run for each, run in all_records.get("mutate", {}).get("mutants", {}).items() if each in {m["name"] for m in mutants}}
    if not tried:
        return f"{len(mutants)}, not run"
    survivors = [each for each, run in tried.items() if run["result"] != "killed"]
    return f"{len(tried) - len(survivors)} of {len(tried)} tried of {len(mutants)}, {', '.join(sorted({run['commit'] for run in tried.values()}))}" + (
        f"; **survive:** {', '.join(survivors)}" if survivors else "")


def covered(files: Iterable[str], all_records: dict[str, dict]) -> str:
    record = all_records.get("coverage", {"files": {}, "commit": ""})
    counts = [record["files"][each] for file in files for each in (f"include/pawl/{file}", file) if each in record["files"]]
    cells = []
    for kind in "lines", "branches", "mcdc":
        good, total = (sum(each[kind][at] for each in counts if kind in each) for at in (0, 1))
        cells += [f"{kind} {100 * good // total} %"] if total else []
    return f"{', '.join(cells)}, {record['commit']}" if cells else "not run"


def said(record: dict) -> str:
    """What else a record has: numbers and words as they are, of lists and objects how many."""
    out = []
    for key, value in record.items():
        if key in ("tests", "mutants"):
            results = [each["result"] for each in value.values()]
            out += [f"{results.count(each)} {each}" for each in sorted(set(results))]
        elif key not in ("what", "date", "commit", "compiler"):
            small = isinstance(value, dict) and not any(isinstance(each, (dict, list)) for each in value.values())
            text = said(value) if small else len(value) if isinstance(value, (dict, list)) else value
            out.append(f"{key.replace('_', ' ')} {f'{text:,}' if type(text) is int else text}")
    return ", ".join(out)


def page(all_records: dict[str, dict]) -> tuple[str, list[str]]:
    texts = sources()
    programs = {program: CASE.findall(text) for program, text in texts.items()}
    sections, complaints = promises(programs)
    mutants = [m for file in (ROOT / "test" / "mutants").glob("*.toml") for m in tomllib.loads(file.read_text()).get("mutant", [])
               if not m.get("equivalent")]
    headers = {str(file.relative_to(PAWL)): file.read_text() for file in sorted(PAWL.rglob("*.hpp"))}
    now, here = datetime.datetime.now(datetime.timezone.utc), commit()
    out = ["# Evidence\n", *textwrap.wrap(
        f"`./dev evidence` has written this page at commit {here} on {now:%Y-%m-%d}, from the records of what ran; nothing is written by hand. "
        "Each entry has the commit that ran: an older one is no proof of this one. `tools/evidence.py` says where each column "
        "comes from.", 118), "\n## What ran\n", "| record | command | commit | date | compiler | found |", "|---|---|---|---|---|---|"]
    for name in sorted({*EXPECTED, *all_records, *(["test"] if not any("tests" in r for r in all_records.values()) else [])}):
        r = all_records.get(name)
        out.append(f"| {name} | `{r['what']}` | {r['commit']} | {r['date'][:10]} | {r['compiler']} | {said(r)} |" if r else f"| {name} | | | | | not run |")

    out += ["\n## Promises\n", "\"Programs passed\": all tests in them passed. \"Races\" are those of the programs in `race/` and `orders/`.\n",
            "| promise | cases | programs passed | models, with their mutants | races | planted defects killed | files that carry it |",
            "|---|---:|---|---|---|---|---|"]
    by_name = ["\n## Tests by name\n"]
    for heading, tests in sections.items():
        label = heading.split(":")[0]
        breaks = [m for m in mutants if re.search(rf"\b{label}\b", m["breaks"])] if re.fullmatch(r"P\d+", label) else []
        files = {m["file"] for m in breaks} | {file for file, text in headers.items() if breaks and re.search(rf"\b{label}\b", text)}
        models = {each: len(set(re.findall(r"\bMUTANT_\w+", texts[each]))) for each in tests if each.startswith("model/")}
        out.append(f"| [{label}](guarantees.md#{re.sub(r'[^a-z0-9 -]', '', heading.lower()).replace(' ', '-')}) | {sum(map(len, tests.values()))} | "
                   f"{passed((p for p in tests if p not in models), all_records)} | "
                   f"{passed(models, all_records)}{f'; {sum(models.values())} mutants' if models else ''} | "
                   f"{passed((p for p in tests if p.startswith(('race/', 'orders/'))), all_records)} | {killed(breaks, all_records)} | "
                   f"{f'{len(files)}: {covered(files, all_records)}' if files else 'named by no defect'} |")
        by_name.append(f"**{heading}**\n")
        for program, cases in sorted(tests.items()):
            by_name += textwrap.wrap(f"- `{program}`" + (": " if cases else "") + ", ".join(f"`{each}`" for each in cases), 118,
                                     subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        by_name.append("")

    out += ["\n## Public headers\n", "The test programs that include a header, with their cases, and the defects that are planted in it.\n",
            "| header | cases | programs passed | planted defects killed | coverage |", "|---|---:|---|---|---|"]
    for header in headers:
        if not header.startswith("detail/") and header not in ("config.hpp", "pawl.hpp"):
            users = [program for program, text in texts.items() if f"#include <pawl/{header}>" in text]
            out.append(f"| `{header}` | {sum(len(programs[each]) for each in users)} | {passed(users, all_records)} | "
                       f"{killed([m for m in mutants if m['file'] == header], all_records)} | {covered([header], all_records)} |")
    text = "\n".join([*out, *by_name]).rstrip("\n") + "\n"
    return text + f"\n<!-- written by ./dev evidence: {hashlib.sha256(text.encode()).hexdigest()} -->\n", complaints


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--junit"] and len(arguments) == 5:
        name, commit, compiler = arguments[2:]
        merge(name, "tests", read_junit(Path(arguments[1])), f"./dev test, {name.removeprefix('test-')}", commit, compiler)
        return 0
    if arguments not in ([], ["--check"]):
        sys.exit("evidence: usage: tools/evidence.py [--check | --junit FILE NAME COMMIT COMPILER]")
    have = {} if arguments else records()
    text, complaints = page(have)
    page_now = PAGE.read_text() if PAGE.exists() else ""
    if arguments:
        written, _, mark = page_now.rpartition("\n<!-- written by ./dev evidence: ")
        if mark != f"{hashlib.sha256(written.encode()).hexdigest()} -->\n":
            complaints.append("doc/evidence.md is not as ./dev evidence has written it: run that again")
    else:
        lost = [name for name in re.findall(r"^\| ([\w+-]+) \| `", page_now, flags=re.M) if name not in have]
        if lost:
            complaints.append(f"build/evidence has no record of {', '.join(lost)}, which doc/evidence.md has: "
                              "run these, or remove that page first")
        if not complaints:
            PAGE.write_text(text)
            print(f"evidence: {PAGE.relative_to(ROOT)} is written, from {len(have)} records")
    for each in complaints:
        print(f"evidence: {each}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
