#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""./dev and .ci/run: what they print, and that two commands do not share a build folder at once.

They run in a copy of their own, with a cmake and a ctest that only write down how they were called.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 240  # seconds: a machine that is busy with other tests
COMMANDS = "demo test headers top page coverage fuzz simulate soak mutate evidence bench install flavour package release format".split()

CMAKE = """#!/bin/sh
echo "begin cmake $*" >>"$CALLS"
case "$*" in
*"--target help"*) printf 'service_slack_test: phony\\nservice_together_1: phony\\nhttp_server: phony\\n' ;;
*"--preset release"*) while [ -e "$HOLD" ]; do sleep 0.05; done; echo PAWL_TESTS_TOGETHER:BOOL=ON >"$(echo "$*" | sed 's/.*-B \\([^ ]*\\).*/\\1/')/CMakeCache.txt" ;;
esac
echo "end cmake $*" >>"$CALLS"
"""
CTEST = """#!/bin/sh
echo "ctest $*" >>"$CALLS"
case "$*" in *" -N"*) echo "  Test #1: model_wakeup"
case "$*" in *slack*|*wakeup*) echo "Total Tests: 1" ;; *) echo "Total Tests: 0" ;; esac ;; esac
"""

failures: list[str] = []


def expect(what: str, condition: bool, said: str = "") -> None:
    if not condition:
        failures.append(f"{what}: {said}")


class Copy:
    """A copy of ./dev and .ci/run."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "tools" / "dev", folder / "tools" / "dev")
        for name in "dev", ".ci/run", "tools/top.py", "tools/evidence.py":
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "bin").mkdir()
        for name, text in ("cmake", CMAKE), ("ctest", CTEST), ("dpkg-query", "#!/bin/sh\necho installed\n"):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        self.calls, self.hold = folder / "calls", folder / "hold"
        self.environment = os.environ | {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls), "HOLD": str(self.hold), "PAWL_NO_INSTALL": "1"}

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        return subprocess.Popen([self.folder / arguments[0], *arguments[1:]], env=self.environment | environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.start(*arguments, **environment)
        said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


def a_usage_error_is_one_line_that_says_why(dev: Copy) -> None:
    for reason, *arguments in (
        ("no command", ), ("no such command: tset", "tset"), ("no such command: lib", "lib"), ("no such command: x", "help", "x"),
        ("test does not know 'race'", "test", "race"), ("no such preset: fast", "test", "--preset", "fast"),
        ("--only needs a value", "test", "--only"), ("--slow is for the preset release", "test", "--only", "x", "--slow"), ("neither g++ nor clang++: icc", "test", "--compiler", "icc"),
        ("no such platform: vms", "test", "--platform", "vms"), ("install does not know '--root'", "install", "--root"),
        ("demo does not know 'nginx'", "demo", "nginx"), ("no such step: rpm", "package", "rpm"),
        ("flavour needs a name: standalone", "flavour"), ("'boost'", "flavour", "boost"), ("'c'", "flavour", "standalone", "b", "c"),
        ("format does not know 'all'", "format", "all"), ("release does not know '--chek' (did you mean --check?", "release", "--chek"), ("headers does not know 'x'", "headers", "x"), ("coverage does not know '--htm' (did you mean --html?", "coverage", "--htm"),
        ("page does not know 'x'", "page", "x"), ("tset (did you mean test?", "tset"), ("did you mean simulate?", "simluate", "threads"),
        ("evidence does not know '--rnu' (did you mean --run?", "evidence", "--rnu"),
        ("did you mean install?", "help", "instal"), ("'--perfix=/x' (did you mean --prefix?", "install", "--perfix=/x"),
        ("'--complier' (did you mean --compiler?", "test", "--complier", "g++"), ("did you mean --platform?", "test", "--plattform", "x86"),
        ("did you mean --check?", "format", "-check"), ("tsam (did you mean tsan?", "test", "--preset=tsam"),
        ("did you mean arm64?", "test", "--platform=arn64"), ("did you mean --stay?", "demo", "--stya"),
        ("--prefix needs a value", "install", "--prefix"), ("not a number of seconds: 0", "fuzz", "--seconds", "0"),
        ("not a number of minutes from 0.1 on: 0.01", "soak", "--minutes", "0.01"), ("not a number of minutes from 0.1 on: 0", "soak", "--minutes", "0"),
        ("not a seed, which is a number: x", "soak", "--seed", "x"), ("soak does not know '--sed' (did you mean --seed?", "soak", "--sed", "1"),
        ("'os' (did you mean oss?", "fuzz", "os"), ("tasn (did you mean tsan?", "fuzz", "--preset", "tasn"),
        ("backend has no threads", "fuzz", "--preset", "tsan", "--target", "backend"),
        ("no such target: nginx (there are ", "fuzz", "--target", "nginx"), ("fuzz oss takes no --target", "fuzz", "oss", "--target", "http"),
    ):
        status, said = dev.run("dev", *arguments)
        lines = [line for line in said.splitlines() if "install what you lack" not in line]
        expect(f"usage {arguments}", status == 2 and len(lines) == 1 and reason in lines[0] and "help" in lines[0], said)


def each_command_has_a_help(dev: Copy) -> None:
    _, whole = dev.run("dev", "help")
    for command in COMMANDS:
        expect(f"{command} in help", f"\n  {command} " in whole, whole)
        for arguments in (command, "--help"), ("help", command):
            status, said = dev.run("dev", *arguments) if command != "mutate" or arguments[0] == "help" else (0, command)
            expect(f"help {arguments}", status == 0 and said.startswith(command), said)


def two_commands_do_not_share_a_build_folder(dev: Copy) -> None:
    dev.hold.touch()
    first = dev.start("dev", "test", "--compiler", "g++", "--only", "slack")
    end = time.monotonic() + PATIENCE
    while not dev.called() and time.monotonic() < end:
        time.sleep(0.05)
    expect("the first builds", len(dev.called()) == 1, str(dev.called()))
    second = dev.start("dev", "simulate", "--preset", "release")
    said = second.stdout.readline()
    expect("who holds it", re.search(rf"build/release-g\+\+ is in use by ./dev test --compiler g\+\+ --only slack, process {first.pid}, since \d\d:\d\d", said)
           is not None, said)
    time.sleep(0.5)
    expect("the second waits", len(dev.called()) == 1, str(dev.called()))
    other = dev.run("dev", "headers")
    expect("another folder is free", "in use" not in other[1], other[1])
    dev.hold.unlink()
    first.communicate(timeout=PATIENCE)
    second.communicate(timeout=PATIENCE)
    expect("the first ends well", first.returncode == 0, str(dev.called()))
    expect("the second builds then", any("--target simulation" in call for call in dev.called()), str(dev.called()))
    expect("nobody is left", "in use" not in dev.run("dev", "headers")[1])


def only_finds_a_test_by_its_name(dev: Copy) -> None:
    status, said = dev.run("dev", "test", "--only", "slack")
    expect("a test", status == 0 and any("-R ^(example_)?(service_slack_test)" in call for call in dev.called()), said)
    expect("compiled alone", any("-alone --parallel" in call and "--target service_slack_test" in call for call in dev.called()), said)
    status, said = dev.run("dev", "test", "--only", "^http_server$")
    expect("no test", status == 1 and "no test runs http_server" in said and "No tests" not in said, said)
    status, said = dev.run("dev", "test", "--only", "nothing_like_it")
    expect("no program", status == 1 and "nothing matches nothing_like_it" in said, said)
    before = len(dev.called())
    dev.run("dev", "test")
    expect("without what is slow", any("--label-exclude ^slow$" in call for call in dev.called()[before:])
           and any("PAWL_BUILD_BENCH=OFF" in call for call in dev.called()[before:]), str(dev.called()[before:]))
    before = len(dev.called())
    dev.run("dev", "test", "--slow")
    expect("what is slow", any("--label-regex ^slow$" in call for call in dev.called()[before:])
           and any("PAWL_BUILD_BENCH=ON" in call for call in dev.called()[before:]), str(dev.called()[before:]))
    before = len(dev.called())
    status, said = dev.run("dev", "test", "--only", "wakeup")
    calls = dev.called()[before:]
    expect("a test without a program", status == 0 and any("(model_wakeup)" in call for call in calls)
           and not any("cmake --build" in call and "--parallel" in call for call in calls), str(calls))


def who_may_not_write_to_the_prefix_is_told_another(dev: Copy) -> None:
    (dev.folder / "file").touch() # nobody can make a folder in it, not even root
    folder = str(dev.folder / "file" / "pawl")
    for option in ["--prefix", folder], [f"--prefix={folder}"]:
        status, said = dev.run("dev", "install", *option)
        expect("prefix", status == 1 and "--prefix FOLDER" in said and len(said.splitlines()) == 1, said)
    status, said = dev.run("dev", "install", f"--prefix={dev.folder}/a=b")
    expect("prefix of the form with =", status == 0 and any(f"--prefix {dev.folder}/a=b" in call for call in dev.called()), said)


def what_is_missing_is_named(dev: Copy) -> None:
    tools = dev.folder / "tools_only"
    tools.mkdir()
    for name in "bash", "env", "dirname", "readlink", "cat":
        (tools / name).symlink_to(shutil.which(name))
    for command, package in (
        ("top --once", "python3"), ("demo", "wrk"), ("test", "cmake"), ("headers", "ninja-build"), ("page", "chromium"),
        ("fuzz", "clang"), ("simulate", "cmake"), ("soak", "cmake"), ("mutate", "python3"), ("bench", "cmake"), ("install", "cmake"),
        ("flavour standalone", "python3"), ("package", "pipx"), ("release", "git"), ("format", "clang-format-16"),
    ):
        status, said = dev.run("dev", *command.split(), PATH=str(tools))
        named = " ".join(re.findall(r"Debian names\): (.*)", said)).split()
        expect(f"{command} names {package}", status != 0 and any(package in name for name in named), said)


def a_seed_gives_the_same_run(dev: Copy) -> None:
    seen: dict[str, int] = {}
    for seed in range(100):
        status, said = dev.run(".ci/run", "--list", str(seed))
        expect("a seed", status == 0 and said.startswith(f"seed: {seed};"), said)
        for line in said.splitlines():
            step = re.sub(r" *\[after.*", "", line)
            seen[step] = seen.get(step, 0) + 1
        as_users = [line for line in said.splitlines() if "--preset optimised" in line and "bench_" not in line]
        expect("as users build it", len(as_users) == 1 and "((fault|wait|service|race)_|" in as_users[0], said)
        expect("a sample that the seed draws", all("--seed" in line for line in said.splitlines() if "--sample" in line), said)
        expect("a soak", f"./dev soak --minutes 1 --seed {seed} " in said, said)
        if seed < 3:
            _, again = dev.run(".ci/run", "--list", PAWL_CI_SEED=str(seed), TZ="Pacific/Kiritimati")
            expect("the same again", re.sub(r"after \d+", "", again) == re.sub(r"after \d+", "", said), again)
    for part in ("time_|patterns_", "fault|patterns)", "test --boost 1.90.0 --preset", "timeouts_", "queue_|feed_", "watch_|fuzz_corpus_", "conformance_", "contract_[pr]",
                 "contract_[ac]", "g++ --only ^((fault|wait", "clang++-19 --only ^((fault|wait", "optimised --", "optimised+assertions --", "platform", "mutate", "demo pawl", "demo idle",
                 "demo lua", "fuzz", "third_party", "headers", "bench_", "simulate threads --preset tsan"):
        expect(f"{part} in some run", any(part in step for step in seen), str(seen))
    expect("no number", dev.run(".ci/run", "--list", "today")[0] == 2)


def a_release_stops_at_the_first_thing_that_is_not_ready(dev: Copy) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false",
                        *arguments], cwd=dev.folder, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        (dev.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (dev.folder / name).write_text(text)

    for folder in "packaging", "test/package/conan":
        shutil.copytree(ROOT / folder, dev.folder / folder)
    write("include/pawl/version.hpp", (ROOT / "include/pawl/version.hpp").read_text())
    write("conanfile.py", re.sub('homepage = ".*"', 'homepage = "https://example.org/pawl"', (ROOT / "conanfile.py").read_text()))
    for file in dev.folder.glob("**/*"): # the address may be written in the sources, or not yet
        if file.is_file() and "<address of the repository>" in (text := file.read_text()) and "tools" not in file.parts:
            file.write_text(text.replace("<address of the repository>", "https://example.org/pawl"))
    meson = (ROOT / "meson.build").read_text()
    version = re.search(r"version: '([\d.]+)'", meson)[1]
    released = f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-12-24\n\n- All.\n"
    write("meson.build", meson.replace(version, "9.9.9"))
    write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- All.\n")
    write("README.md", "At <address of the repository>.\n")
    for name, path in ("ci", ".ci/run"), ("package", "tools/dev/package.sh"), ("test", "tools/dev/test.sh"):
        write(path, f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\n[ "$(cat "$HOLD")" != "{name} $*" ]\n')
    write("bin/gzip", f'''#!/bin/sh
[ "$1" = -9n ] && [ -e "$HOLD.gzip" ] && echo >>"$HOLD.gzip" && set -- -n$(wc -l <"$HOLD.gzip")
exec {shutil.which("gzip")} "$@"\n''')
    (dev.folder / "bin/gzip").chmod(0o755)
    write("hold.gzip", "")
    dev.hold.write_text("ci ")
    git("init")
    write(".git/info/exclude", "/bin\n/build\n/calls\n/hold*\n")
    git("add", "-A")
    git("commit", "-m", "Everything is missing")
    git("tag", f"v{version}")

    for said, mend in (
        ("meson.build has not version", lambda: write("meson.build", meson)),
        ("the newest heading of CHANGELOG.md is not", lambda: write("CHANGELOG.md", released.replace("[Unreleased]", "[Unreleased]\n\n- This."))),
        ("CHANGELOG.md has lines below [Unreleased]", lambda: write("CHANGELOG.md", released)),
        ("these say '<address of the repository>' or 'Nothing is published yet': README.md", lambda: write("README.md", "At home.\n")),
        ("git status is not clean", lambda: git("commit", "-am", "It is not")),
        (f"v{version} is another commit", lambda: git("tag", "-d", f"v{version}")),
        ("the files of the release are not the same", (dev.folder / "hold.gzip").unlink),
        (".ci/run fails", lambda: dev.hold.write_text("package ")),
        ("./dev package fails", lambda: dev.hold.write_text("test --preset tsan")),
        ("./dev test --preset tsan fails", lambda: dev.hold.write_text("")),
        ("HEAD has no tag", lambda: git("tag", "-am", "It has", f"v{version}")),
    ):
        status, output = dev.run("dev", "release")
        expect(said, status == 1 and f"not ready: {said}" in output and output.count("not ready") == 1, output)
        mend()
    dev.hold.write_text("ci ")
    status, output = dev.run("dev", "release", "--check")
    files = dev.folder / "build/release/files"
    expect("ready", status == 0 and "dev: ready." in output and (files / f"pawl-{version}.tar.gz").exists(), output)
    expect("where the archive will be", f"= https://example.org/pawl/releases/download/v{version}/pawl-{version}.tar.gz\n"
           in (files / "pawl.wrap").read_text(), (files / "pawl.wrap").read_text())
    expect("all presets", all(any(f"test --preset {each}" == call for call in dev.called())
                              for each in ("asan+ubsan", "tsan", "optimised", "optimised+assertions")), str(dev.called()))


def coverage_counts_a_place_once_and_asks_for_what_is_wanted(dev: Copy) -> None:
    header = dev.folder / "include" / "a.hpp"
    header.parent.mkdir()
    header.write_text("int f(bool a, bool b) {\n    if (a && b)\n        return 1;\n    return 2;\n}\n")

    def export(name: str, once: int, conditions: list[bool]) -> str:
        """A program with one instance of f(), in which line 3 ran `once` times."""
        segments = [[1, 23, 1, True, True, False], [2, 16, once, True, False, True], [3, 9, once, True, True, False], [3, 17, 1, True, False, False],
                    [5, 2, 0, False, False, False]]
        file = {"filename": str(header), "segments": segments, "branches": [[2, 9, 2, 15, once, 1, 0, 0, 4]],
                "mcdc_records": [[2, 9, 2, 15, 0, 5, conditions]]}
        (dev.folder / name).write_text(json.dumps({"data": [{"files": [file]}]}))
        return name

    def run(wanted: str, *arguments: str) -> tuple[int, str]:
        (dev.folder / "wanted.toml").write_text('complete = ["a.hpp"]\n[least]\nlines = 100\n' + wanted)
        process = subprocess.run([sys.executable, ROOT / "tools/coverage.py", "--root", "include", "--wanted", "wanted.toml",
                                  *arguments], cwd=dev.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return process.returncode, process.stdout

    never, always = export("never", 0, [False, True]), export("always", 1, [True, False])
    status, said = run("", never, always)
    expect("two programs together cover it", status == 0 and "100.0 %  of     4" in said, said)
    status, said = run("", "--list", "a.hpp", never)
    for part in ("a.hpp:3: line: return 1;", "a.hpp:2: true: a && b", "a.hpp:2: condition 1: a && b", "75.00 % of lines, at least 100 wanted",
                 "a.hpp: not complete"):
        expect(f"not covered: {part}", status == 1 and part in said, said)
    expect("a part is asked for nothing", run("", "--part", never)[0] == 0)
    excuses = "".join(f'[[excused]]\nfile = "a.hpp"\nwhat = "{what}"\ntext = "{text}"\nwhy = "It is so."\n' for what, text in
                      (("line", "return 1;"), ("true", "a && b"), ("condition 1", "a && b")))
    status, said = run(excuses, never)
    expect("excused is complete, but not covered", status == 1 and "not complete" not in said and "75.00 %" in said, said)
    status, said = run(excuses, never, always)
    expect("an excuse that is not needed", status == 1 and "a.hpp: line: is covered, or there is no such text: return 1;" in said, said)
    expect("a line without a reason", "a.hpp:3: is not covered, and has no reason: return 1;" in run("", never)[1])
    for reason, covered, finding in (("It is so.", never, ""), ("It is so.", always, "is covered, or there is no such text"),
                                     ("Sometimes: two threads meet.", never, ""), ("Sometimes: two threads meet.", always, ""),
                                     ("", never, "gives no reason"), ("The same.", never, "gives no reason")):
        said = run(f'[lines."a.hpp"]\n\'return 1;\' = "{reason}"\n', covered)[1]
        expect(f"{reason or 'no reason'} {covered}", finding in said if finding else "return 1;" not in said, said)
    said = run('[lines."a.hpp"]\n\'return 1;\' = "Sometimes: two threads meet."\n\'return 2;\' = "The same."\n', never)[1]
    expect("the same reason, sometimes", "return" not in said, said)
    said = run('[lines."a.hpp"]\n\'return 3;\' = "Sometimes: two threads meet."\n', always)[1]
    expect("a reason for no line", "a.hpp: line: is covered, or there is no such text: return 3;" in said, said)
    (dev.folder / "after_gap").write_text(json.dumps({"data": [{"files": [{
        "filename": str(header), "branches": [], "mcdc_records": [],
        "segments": [[1, 23, 1, True, True, False], [3, 18, 0, True, False, True], [4, 5, 1, True, False, False], [5, 2, 0, False, False, False]]}]}]}))
    said = run("", "--list", "a.hpp", "after_gap")[1]
    expect("a line that begins after a gap", "return 2;" not in said, said)
    (dev.folder / "empty").write_text('{"data": [{"files": []}]}')
    status, said = run("", "empty")
    expect("no header", status == 1 and "the exports have no header below" in said, said)


def a_change_of_a_public_name_is_in_the_list_and_in_the_changelog(dev: Copy) -> None:
    def write(name: str, text: str) -> None:
        (dev.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (dev.folder / name).write_text(text)

    def names(header: str, changelog: str, *arguments: str) -> tuple[int, str]:
        write("include/pawl/x.hpp", "/// @file\nnamespace pawl {\n" + header + "}\n")
        write("CHANGELOG.md", "# Changelog\n\n" + changelog)
        done = subprocess.run([ROOT / "tools/public_names.py", *arguments, dev.folder], text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr

    released, unreleased = "## [0.1.0] - 2026-12-24\n\n- `old`.\n", "## [Unreleased]\n\n"
    old = "struct options { int n = 1; private: struct hidden { int also; }; };\nenum class e { a, b };\nvoid old(int);\nnamespace detail { void not_public(); }\n"
    write("doc/Doxyfile", (ROOT / "doc/Doxyfile").read_text())
    listed = dev.folder / "test/doc/public_names.txt"
    expect("no list", names(old, "", "--check")[0] == 1 and "usage" in names(old, "")[1], names(old, "")[1])
    write("test/doc/public_names.txt", "The last release: none\n")
    status, said = names(old, unreleased)
    if status == 77:
        print("skipped: the test of public names; " + said.strip())
        return
    expect("new before the first release", status == 1 and "pawl::old is added: name it" in said, said)
    status, said = names(old, unreleased + "`old`, `e`, `options`\n\n" + released)
    expect("the first release", status == 0, said)
    base = ("The last release: 0.1.0\n= pawl::e  enum class\n= pawl::e::a  = 0\n= pawl::e::b  = 1\n= pawl::old  void (int)\n"
            "= pawl::options  struct\n= pawl::options::n  int = 1\n")
    expect("what is public", listed.read_text().split(": ", 1)[1] == base.split(": ", 1)[1], listed.read_text())
    expect("up to date", names(old, released, "--check")[0] == 0)
    for what, header, news, said_by in (
        ("a new function", old + "void f();\n", "### Added\n\n- `f`.\n", "pawl::f is added: name it in CHANGELOG.md"),
        ("a new class, with its members", old + "class c { public: void g(); };\n", "`c`", "pawl::c is added"),
        ("a member of an old class", old.replace("private", "int m; private"), "`m`", "pawl::options::m is added"),
        ("a function that goes", old.replace("void old(int);\n", ""), "### Removed\n\n- `old`.\n", "pawl::old is removed: name it in CHANGELOG.md, below '### Removed'"),
        ("a class that goes", old[old.index("enum"):], "### Removed\n\n- `options`.\n", "pawl::options::n is removed"),
        ("a default", old.replace("n = 1", "n = 2"), "### Changed\n\n- `options::n`.\n", "pawl::options::n is changed: name it in CHANGELOG.md, below '### Changed'"),
        ("an enumerator before others", old.replace("{ a", "{ z, a"), "`z`\n### Changed\n\n- `a`, `b`.\n", "pawl::e::b is changed"),
        ("a parameter", old.replace("(int)", "(long)"), "### Changed\n\n- `old(long)`.\n", "pawl::old is changed"),
    ):
        listed.write_text(base)
        status, said = names(header, unreleased + released, "--check")
        expect(f"{what}, without a word", status == 1 and said_by in said and "the list is not up to date" in said, said)
        elsewhere = "`nothing`" if "added" in said_by else "`old`, `options`, `n`, `b`"
        status, said = names(header, unreleased + f"### Fixed\n\n{elsewhere}\n\n{released}\n### Removed\n\n`old` `options` `f` `c` `m`\n")
        expect(f"{what}, named elsewhere", status == 1 and said_by in said and "not up to date" not in said, said)
        status, said = names(header, unreleased + news + "\n" + released, "--check")
        expect(f"{what}, with a word", status == 0 and "0 changes of the list, 0 that" in said, said)
        expect(f"{what}, until it is released", base.splitlines()[1:] == [line for line in listed.read_text().replace("\n- ", "\n= ").splitlines()[1:]
                                                                        if line[0] == "="], listed.read_text())
    status, said = names(header, "## [0.2.0] - 2027-01-01\n\n" + released)
    expect("a release that does not name it", status == 1 and "0.1.0" in listed.read_text(), said)
    status, said = names(header, "## [0.2.0] - 2027-01-01\n\n" + news + released, "--check")
    expect("a release without its list", status == 1 and "not up to date" in said, said)
    expect("a release", names(header, "## [0.2.0] - 2027-01-01\n\n" + news + released)[0] == 0 and "0.2.0\n" in listed.read_text()
           and {line[0] for line in listed.read_text().splitlines()[1:]} == {"="}, listed.read_text())
    listed.write_text(base + "<<<<<<<\n")
    expect("a bad line", names(old, released)[1].count("\n") == 1 and "<<<<<<<" in names(old, released)[1], names(old, released)[1])


def the_page_of_evidence_says_what_ran_and_what_did_not(dev: Copy) -> None:
    def write(name: str, text: str) -> None:
        (dev.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (dev.folder / name).write_text(text)

    def evidence(*arguments: str) -> tuple[int, str, list[str]]:
        status, said = dev.run(*(arguments or ("dev", "evidence")))
        page = dev.folder / "doc/evidence.md"
        return status, said, page.read_text().splitlines() if page.exists() else []

    def row(lines: list[str], begin: str) -> str:
        return next((line for line in lines if line.startswith(begin)), f"no row {begin}")

    promise = "# Guarantees\n\n## P1: never early\n\n**Tests:** `P1_*` in `wait/a_test`, `C2_*`, `model/m`, `race/`, `./dev demo`.\n"
    write("test/wait/a_test.cpp", "#include <pawl/a.hpp>\nBOOST_AUTO_TEST_CASE(P1_one) {}\nBOOST_DATA_TEST_CASE_F(f, P1_two, x) {}\n")
    write("test/wait/b_test.cpp", '#include "b_cases.hpp"\n')
    write("test/wait/b_cases.hpp", "PAWL_TYPED_CASE(P1_elsewhere, T) {}\nBOOST_FIXTURE_TEST_CASE(C2_x, f) {}\n")
    write("test/race/r_race_test.cpp", "BOOST_AUTO_TEST_CASE(all) {}\n")
    write("test/model/m.pml", "#ifndef MUTANT_A\n#ifndef MUTANT_B\n#ifndef MUTANT_A\n")
    for name in "a_is_early", "b_is_early":
        with (dev.folder / "test/x.toml").open("a") as file:
            file.write(f'[[mutant]]\nname = "{name}"\nfile = "a.hpp"\nbreaks = "P1: early"\n')
    (dev.folder / "test/mutants").mkdir()
    (dev.folder / "test/x.toml").rename(dev.folder / "test/mutants/x.toml")
    write("include/pawl/a.hpp", "")
    for said, text in (("P1: never early: names a test that does not exist: P1_none_*", promise.replace("`race/`", "`P1_none_*`")),
                       ("does not exist: C2_x in wait/a_test", promise.replace("P1_*", "C2_x")), ("does not exist: wait/c_test", promise.replace("`race/", "`wait/c_test")),
                       ("does not exist: racing/", promise.replace("race/", "racing/")), ("P1: never early: names no tests", promise.replace("Tests:", "Test:"))):
        write("doc/guarantees.md", text)
        status, output, page = evidence()
        expect(said, status == 1 and output.count("\n") == 1 and said in output and not page, output)

    write("doc/guarantees.md", promise)
    status, said, page = evidence()
    expect("nothing has run", status == 0 and all(f"| {each} | | | | | not run |" in page for each in ("test", "mutate", "fuzz", "simulate", "simulate-threads", "soak", "coverage"))
           and row(page, "| [P1]") == "| [P1](guarantees.md#p1-never-early) | 4 | not run | not run; 2 mutants | not run | 2, not run | 1: not run |"
           and row(page, "| `a.hpp`") == "| `a.hpp` | 2 | not run | 2, not run | not run |", said + "\n".join(page))
    expect("by name", {"- `wait/a_test`: `P1_one`, `P1_two`", "- `wait/b_test`: `C2_x`"} < {*page} and "P1_elsewhere" not in "".join(page), "\n".join(page))

    def junit(commit: str, **results: str) -> tuple[int, str, list[str]]:
        write("junit.xml", "<testsuite>" + "".join(f'<testcase name="{name}" status="{result}"/>' for name, result in results.items()) + "</testsuite>")
        status, said, _ = evidence("tools/evidence.py", "--junit", str(dev.folder / "junit.xml"), "test-tsan-g++", commit, "g++ 12")
        expect("junit", status == 0, said)
        return evidence()

    expect("some have run", "| 1 of 3, tsan-g++, c1 | not run; 2 mutants | not run |" in row(junit("c1", wait_a_test="run", race_r_race_test="notrun", other="fail")[2], "| [P1]"), "c1")
    _, _, page = junit("c2", race_r_race_test="fail", model_m="run", other="notrun")
    expect("what ran earlier stays", "| 1 of 3, tsan-g++, c1, c2; **failed:** race/r_race_test | 1 of 1, tsan-g++, c2; 2 mutants | 0 of 1, tsan-g++, c2; **failed:** race/r_race_test |"
           in row(page, "| [P1]") and "| c2 |" in row(page, "| test-tsan-g++ |") and "| 1 failed, 2 passed, 1 skipped |" in row(page, "| test-tsan-g++ |"), "\n".join(page))
    head = '{"what": "./dev x", "date": "2026-01-02T03:04:05Z", "commit": "c3", "compiler": "g++ 12", '
    write("build/evidence/mutate.json", head + '"mutants": {"a_is_early": {"result": "survived", "commit": "c3", "date": ""}}}')
    write("build/evidence/coverage.json", head + '"files": {"include/pawl/a.hpp": {"lines": [9, 10], "branches": [1, 2]}}}')
    write("build/evidence/soak.json", head + '"minutes": 120, "waits": 1234567, "p99": {"pawl": 1.5}, "violations": 0}')
    page = evidence()[2]
    expect("other records", "| 0 of 1 tried of 2, c3; **survive:** a_is_early | 1: lines 90 %, branches 50 %, c3 |" in row(page, "| [P1]")
           and row(page, "| soak |") == "| soak | `./dev x` | c3 | 2026-01-02 | g++ 12 | minutes 120, waits 1,234,567, p99 pawl 1.5, violations 0 |", "\n".join(page))

    check = "tools/evidence.py", "--check"
    expect("as written", evidence(*check)[0] == 0, evidence(*check)[1])
    write("doc/evidence.md", "\n".join(page).replace("**survive:** a_is_early", "none") + "\n")
    expect("by hand", evidence(*check)[0] == 1 and "is not as ./dev evidence has written it" in evidence(*check)[1], evidence(*check)[1])
    write("build/evidence/soak.json", "{}")
    status, said, _ = evidence()
    expect("no record", status == 1 and said.count("\n") == 1 and "soak.json is no record" in said, said)


def main() -> int:
    for test in (a_usage_error_is_one_line_that_says_why, each_command_has_a_help, two_commands_do_not_share_a_build_folder,
                 only_finds_a_test_by_its_name, who_may_not_write_to_the_prefix_is_told_another, what_is_missing_is_named,
                 a_seed_gives_the_same_run, a_release_stops_at_the_first_thing_that_is_not_ready,
                 coverage_counts_a_place_once_and_asks_for_what_is_wanted,
                 a_change_of_a_public_name_is_in_the_list_and_in_the_changelog,
                 the_page_of_evidence_says_what_ran_and_what_did_not):
        with tempfile.TemporaryDirectory() as folder:
            test(Copy(pathlib.Path(folder).resolve()))
    for failure in failures:
        print(f"dev_test.py: {failure}", file=sys.stderr)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
