#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Tests of tools/migrate: whole programs in fixtures/, of which CMake compiles both sides, and single cases.

A fixture has before/, the tool's output for it in after/, the tool's list of open places in left.txt, and further
arguments for the tool in arguments.txt. The tool runs within this process, which saves the start of a process for each
run; tools/mutate_migrate.py runs these tests on versions of the tool with a defect.
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import traceback
import types
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parent.parent / "tools" / "migrate"
FIXTURES = sorted(path for path in (HERE / "fixtures").iterdir() if path.is_dir())
INCLUDE = "#include <boost/asio/steady_timer.hpp>\n"
MIGRATED = "#include <pawl/steady_timer.hpp>\n"


def load(path: pathlib.Path) -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("migrate_under_test", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


tool = load(TOOL)


def places(number: int) -> str:
    return "1 place" if number == 1 else f"{number} places"


class MigrateTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, *arguments: str) -> subprocess.CompletedProcess:
        """What run_process() returns, without a process."""
        out, err = io.StringIO(), io.StringIO()
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                mock.patch.object(sys, "argv", [str(TOOL), *arguments]),
            ):
                status = tool.main()
        except SystemExit as end:
            status = end.code
        except Exception:  # what the interpreter does then
            status = 1
            err.write(traceback.format_exc())
        finally:
            os.chdir(before)
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    def run_process(self, *arguments: str, cwd: pathlib.Path | None = None, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(TOOL), *arguments],
            cwd=cwd or self.folder,
            capture_output=True,
            check=False,
            encoding="utf-8",
            **options,
        )

    def write(self, text: str, name: str = "main.cpp") -> pathlib.Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return path

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in sorted(self.folder.rglob("*")) if p.is_file()}

    def becomes(self, before: str, after: str) -> None:
        """All cases are decided, and a second run changes nothing."""
        path = self.write(before)

        run = self.run_tool("main.cpp")

        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        self.assertEqual(path.read_bytes().decode("utf-8"), after)
        again = self.run_tool("main.cpp")
        self.assertEqual(again.stdout, "0 files changed, 0 places left to you\n")
        self.assertEqual(path.read_bytes().decode("utf-8"), after)

    def become(self, files: dict[str, tuple[str, str]], *left: str, arguments: tuple[str, ...] = (".",)) -> None:
        """Several files, each before and after, and the list of open places."""
        for name, (before, _) in files.items():
            self.write(before, name)

        run = self.run_tool(*arguments)

        self.assertEqual(
            {name: (self.folder / name).read_text() for name in files}, {n: a for n, (_, a) in files.items()}
        )
        self.assertEqual(self.open_places(run), list(left))
        self.assertEqual((run.returncode, run.stderr), (1 if left else 0, ""))
        self.assertIn(f", {places(len(left))} left to you\n", run.stdout)

    def apply(self, diff: str) -> None:
        run = subprocess.run(
            ["git", "apply", "-"], cwd=self.folder, input=diff, check=False, capture_output=True, encoding="utf-8"
        )
        self.assertEqual((run.returncode, run.stderr), (0, ""), diff)

    def open_places(self, run: subprocess.CompletedProcess) -> list[str]:
        return [line.replace(": left to you", "") for line in run.stdout.splitlines() if ": left to you: " in line]

    def stays(self, text: str) -> None:
        self.becomes(text, text)

    def lists(self, before: str, *lines: str) -> None:
        """The tool names exactly these, each as LINE: and the given text; and it does not change the file."""
        path = self.write(before)

        run = self.run_tool("main.cpp")

        self.assertEqual((run.returncode, run.stderr), (1, ""), run.stdout)
        self.assertEqual(path.read_text(), before)
        named = [line.removeprefix("main.cpp:") for line in run.stdout.splitlines() if line.startswith("main.cpp:")]
        self.assertEqual(len(named), len(lines), run.stdout)
        for line, expected in zip(named, lines):
            number, text = expected.split(": ", 1)
            self.assertTrue(line.startswith(f"{number}: left to you: "), line)
            self.assertIn(text, line)


class WholePrograms(MigrateTest):
    def each(self):
        self.assertGreaterEqual(len(FIXTURES), 5)
        for fixture in FIXTURES:
            with self.subTest(fixture.name):
                shutil.rmtree(self.folder / fixture.name, ignore_errors=True)
                shutil.copytree(fixture / "before", self.folder / fixture.name)
                yield fixture, {p.name: p.read_text() for p in sorted((fixture / "after").iterdir())}

    def arguments(self, fixture: pathlib.Path) -> list[str]:
        more = fixture / "arguments.txt"
        return [*(more.read_text().split() if more.exists() else []), fixture.name]

    def contents(self, fixture: pathlib.Path) -> dict[str, str]:
        return {p.name: p.read_text() for p in sorted((self.folder / fixture.name).iterdir())}

    def test_a_program_becomes_what_its_fixture_says_and_what_is_left_is_listed(self) -> None:
        for fixture, after in self.each():
            run = self.run_tool(*self.arguments(fixture))

            left = "".join(line for line in run.stdout.splitlines(keepends=True) if ": left to you: " in line)
            self.assertEqual(self.contents(fixture), after)
            self.assertEqual(left, (fixture / "left.txt").read_text())
            self.assertEqual((run.returncode, run.stderr), (1 if left else 0, ""))

    def test_a_migrated_program_is_changed_no_more_and_lists_the_same(self) -> None:
        for fixture, after in self.each():
            shutil.rmtree(self.folder / fixture.name)
            shutil.copytree(fixture / "after", self.folder / fixture.name)

            run = self.run_tool(*self.arguments(fixture))

            left = (fixture / "left.txt").read_text()
            self.assertEqual(self.contents(fixture), after)
            self.assertEqual(run.stdout, f"{left}0 files changed, {places(left.count(chr(10)))} left to you\n")

    def test_a_dry_run_changes_nothing_and_its_diff_is_one_that_patch_takes(self) -> None:
        for fixture, after in self.each():
            before = self.contents(fixture)

            run = self.run_tool("--dry-run", *self.arguments(fixture))

            self.assertEqual(self.contents(fixture), before)
            self.assertEqual(run.stdout.count(": left to you: "), (fixture / "left.txt").read_text().count("\n"))
            self.apply(run.stdout)
            self.assertEqual(self.contents(fixture), after)

    def test_a_dry_run_here_says_what_there_is_to_change_and_not_where(self) -> None:
        self.write("boost::asio::io_context* c;\n", "none.cpp")
        self.write(INCLUDE + "net::steady_timer* t;\n")

        run = self.run_tool("--dry-run", ".")

        self.assertTrue(run.stdout.startswith("--- a/main.cpp\n"), run.stdout)
        self.assertTrue(run.stdout.endswith("\n1 file to change, 0 places left to you\n"), run.stdout)
        self.assertEqual(self.run_tool("--dry-run", "none.cpp").stdout, "0 files to change, 0 places left to you\n")

    def test_a_diff_of_files_elsewhere_says_where_it_applies(self) -> None:
        for name in "src/main.cpp", "include/timer.hpp":
            self.write("#include <boost/asio/steady_timer.hpp>\nboost::asio::steady_timer* t;\n", name)
        (self.folder / "build").mkdir()
        for arguments, where, names in (
            (["../src", "../include"], self.folder, ["include/timer.hpp", "src/main.cpp"]),
            ([str(self.folder / "src")], self.folder / "src", ["main.cpp"]),
        ):
            run = self.run_process("--dry-run", *arguments, cwd=self.folder / "build")

            self.assertEqual(sorted(re.findall(r"^\+\+\+ b/(\S+)", run.stdout, re.MULTILINE)), names)
            self.assertTrue(run.stdout.startswith(f"for patch -p1 -d {where.resolve()}:\n"), run.stdout)

        run = self.run_process("--dry-run", "build/../src", str(self.folder / "include"))

        self.assertEqual(
            sorted(re.findall(r"^--- a/(\S+)", run.stdout, re.MULTILINE)), ["include/timer.hpp", "src/main.cpp"]
        )
        self.apply(run.stdout)
        self.assertNotIn(b"asio", b"".join(self.files().values()))


class Names(MigrateTest):
    def test_asio_and_net_are_boost_asio_where_the_files_do_not_say(self) -> None:
        self.becomes(
            INCLUDE + "asio::steady_timer a(c);\nnet::steady_timer b(c);\n",
            MIGRATED + "pawl::steady_timer a(c);\npawl::steady_timer b(c);\n",
        )

    def test_an_alias_in_another_file_counts(self) -> None:
        self.write("namespace io = boost::asio;\n", "alias.hpp")
        user = self.write('#include "alias.hpp"\nio::steady_timer t(c);\n')

        run = self.run_tool(".")

        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(
            user.read_text(), '#include "alias.hpp"\n#include <pawl/steady_timer.hpp>\npawl::steady_timer t(c);\n'
        )

    def test_an_alias_in_a_block_ends_with_it(self) -> None:
        self.write(
            INCLUDE + "void f() { { namespace n = boost::asio; n::steady_timer t(c); } n::steady_timer t(c); }\n"
        )

        run = self.run_tool("main.cpp")

        self.assertIn("what n is does not stand in these files", run.stdout)
        self.assertIn("pawl::steady_timer t(c); } n::steady_timer t(c);", (self.folder / "main.cpp").read_text())

    def test_a_namespace_of_the_same_name_is_not_asio(self) -> None:
        self.stays("namespace app { namespace net { class steady_timer; } net::steady_timer* t; }\n")
        self.stays(
            "namespace a { namespace system_timer { int f(); } }\nnamespace a { int b = a::system_timer::f() + system_timer::f(); }\n"
        )
        self.stays("namespace net { using steady_timer = int; }\nnet::steady_timer t;\n")

    def test_a_specialisation_in_namespace_asio_hides_nothing(self) -> None:
        self.becomes(
            "namespace boost { namespace asio { template <> struct wait_traits<my_clock> {}; } }\n"
            + INCLUDE
            + "namespace boost { namespace lib { asio::steady_timer* t; } }\n",
            "namespace boost { namespace asio { template <> struct wait_traits<my_clock> {}; } }\n"
            + MIGRATED
            + "namespace boost { namespace lib { pawl::steady_timer* t; } }\n",
        )

    def test_timers_of_others_and_members_stay(self) -> None:
        self.stays(
            "cobalt_like::x a; boost::cobalt::io::steady_timer b; pawl::steady_timer c;\n"
            "struct T { using steady_timer = int; };\n"
            "template <class T> void f(T& t) { t.steady_timer(); t->cancel_after(1); }\n"
            "template <class T> void g() { typename T::steady_timer x; h<T>::steady_timer(); }\n"
            "template <class T> void k(T t) { t.template steady_timer<int>(); typename T::template system_timer<T> u; }\n"
        )

    def test_a_type_of_ones_own_hides_the_name(self) -> None:
        for declaration in (
            "struct API steady_timer final {};",
            "class steady_timer final : base {};",
            "enum class steady_timer : int {};",
            "enum steady_timer {};",
            "union steady_timer;",
            "typedef struct x steady_timer;",
            "using steady_timer [[deprecated]] = int;",
            "using std::b, std::steady_timer;",
            "namespace steady_timer {}",
            "namespace x::inner { inline namespace v1 {} namespace steady_timer {} } using x::inner::steady_timer;",
        ):
            with self.subTest(declaration):
                self.stays(f"{declaration}\nusing namespace boost::asio;\nsteady_timer* t;\n")
                self.stays(f"void f() {{ {declaration}\nusing namespace boost::asio;\nsteady_timer* t; }}\n")

    def test_a_type_in_another_namespace_or_a_class_does_not_hide_the_name(self) -> None:
        use = "using namespace boost::asio;\n{}steady_timer* t;\n"
        for other in (
            "namespace mine { struct steady_timer; }\n",
            "using steady_clock = x;\n",
            "struct steady_timers;\n",
        ):
            self.becomes(INCLUDE + other + use.format(""), MIGRATED + other + use.format("pawl::"))
        self.lists("struct a { struct steady_timer; };\n" + use.format(""), "3: " + Programs.DECLARED)
        self.lists("int steady_timer;\n" + use.format(""), "3: " + Programs.DECLARED)

    def test_a_type_that_is_made_of_the_name_does_not_hide_it(self) -> None:
        text = "using timer = {0}::steady_timer;\nusing namespace boost::asio;\n{1}steady_timer* t;\n"
        self.becomes(INCLUDE + text.format("net", ""), MIGRATED + text.format("pawl", "pawl::"))
        text = "using namespace boost::asio;\nclass {0}basic_waitable_timer<C>* t;\n{0}basic_waitable_timer<C>* u;\n"
        self.becomes(INCLUDE + text.format(""), MIGRATED + text.format("pawl::"))

    def test_members_of_types_and_names_of_other_libraries_of_boost_stay(self) -> None:
        self.stays(
            "using traits = x;\ntypedef y more;\nstruct z;\ntraits::steady_timer a; more::steady_timer b; z::steady_timer c;\n"
        )
        self.stays("namespace boost::cobalt { struct x; }\nboost::cobalt::steady_timer* t;\nstd::steady_timer* u;\n")
        self.lists(
            "namespace mine { struct x; }\nmine::steady_timer* t;\n", "2: no steady_timer is declared in namespace mine"
        )
        self.stays("namespace mine { struct steady_timer; }\nmine::steady_timer* t;\n")
        self.stays("namespace mine { namespace steady_timer {} }\nusing mine::steady_timer;\n")

    def test_inline_and_attributed_namespaces_are_known(self) -> None:
        for head, *inside in (
            ("inline namespace v1", "", "v1::"),
            ('namespace [[deprecated("a")]] v1', "v1::"),
            ("namespace", ""),
            ("namespace w::inline v1::x", "w::x::", "w::v1::x::"),
        ):
            for names in inside:
                with self.subTest(head + names):
                    text = (
                        f"namespace lib {{{{ {head} {{{{ namespace n = boost::asio; }}}} }}}}\n{{}}::steady_timer* t;\n"
                    )
                    self.becomes(INCLUDE + text.format(f"lib::{names}n"), MIGRATED + text.format("pawl"))

        self.stays("namespace w::inline v1::x { namespace n = boost::asio; }\nw::n::steady_timer* t;\n")

    def test_a_name_from_the_global_namespace_is_looked_up_there(self) -> None:
        self.becomes(
            INCLUDE + "template <class T> ::boost::asio::steady_timer* f(T);\n::net::steady_timer* t;\n",
            MIGRATED + "template <class T> ::pawl::steady_timer* f(T);\n::pawl::steady_timer* t;\n",
        )
        self.becomes(
            INCLUDE + "namespace n = boost::asio;\nnamespace a { namespace n = mine; ::n::steady_timer* t; }\n",
            MIGRATED + "namespace n = boost::asio;\nnamespace a { namespace n = mine; ::pawl::steady_timer* t; }\n",
        )
        self.lists("::framework::steady_timer* t;\n", "1: what framework is does not stand in these files")
        self.becomes(
            INCLUDE + "inline namespace v1 { namespace n = boost::asio; }\nv1::n::steady_timer* t;\n",
            MIGRATED + "inline namespace v1 { namespace n = boost::asio; }\npawl::steady_timer* t;\n",
        )

    def test_the_lines_of_open_places_are_those_after_the_change(self) -> None:
        after = "#include <boost/asio/cancel_after.hpp>\n"
        head = "#define X x::steady_timer\n{0}#include <boost/asio/cancel_at.hpp>\n#include <boost/asio/ip/tcp.hpp>\n"
        text = (
            head.format(after)
            + "x::system_timer* a;\nnet::steady_timer* b; net::system_timer* c;\nx::steady_timer* d;\n"
        )
        self.write(text)

        dry = self.run_tool("--dry-run", "main.cpp")
        run = self.run_tool("main.cpp")

        numbers = lambda r: [line.split(":")[1] for line in self.open_places(r)]
        self.assertEqual(numbers(dry), ["1", "5", "7"])
        self.assertEqual(numbers(run), ["1", "6", "8"])
        self.assertEqual(numbers(self.run_tool("main.cpp")), ["1", "6", "8"])

    def test_the_innermost_meaning_counts(self) -> None:
        self.becomes(
            INCLUDE
            + "namespace n = mine;\nnamespace a { namespace n = boost::asio; n::steady_timer* t; }\n"
            + "void f() { namespace n = boost::asio; { namespace n = mine; } n::steady_timer* t; }\nnamespace mine { struct steady_timer; }\n",
            MIGRATED
            + "namespace n = mine;\nnamespace a { namespace n = boost::asio; pawl::steady_timer* t; }\n"
            + "void f() { namespace n = boost::asio; { namespace n = mine; } pawl::steady_timer* t; }\nnamespace mine { struct steady_timer; }\n",
        )

    def test_strings_comments_and_raw_strings_stay(self) -> None:
        self.stays(
            '// boost::asio::steady_timer \\\n   boost::asio::steady_timer\nauto a = "boost::asio::steady_timer \\" x";\n'
            '/* net::steady_timer */ auto b = u8R"(asio::steady_timer " )x" asio::cancel_after)"; auto c = \'"\';\n'
            "long d = 0x1'0p-3; // asio::system_timer\n#error boost::asio::steady_timer\n"
        )

    def test_digit_separators_begin_no_character(self) -> None:
        for number in ("1'000", "0xA'Bu", "1'0.5e+1'0", ".1'5", "0b1'1", "1e-1'0f", "0x1.p-1'0"):
            with self.subTest(number):
                text = f"auto a = {number}; {{}}::steady_timer* b; auto c = {number}, d = 'x';\n"
                self.becomes(INCLUDE + text.format("net"), MIGRATED + text.format("pawl"))

    def test_comments_between_the_names_stay(self) -> None:
        self.becomes(
            INCLUDE + "boost // a\n::/* b */asio::steady_timer t;\n", MIGRATED + "pawl // a\n/* b */::steady_timer t;\n"
        )

    def test_arguments_and_members_of_the_types_stay(self) -> None:
        self.becomes(
            "#include <boost/asio/basic_waitable_timer.hpp>\n"
            "asio::basic_waitable_timer<C, asio::wait_traits<C>, X>::rebind_executor<Y>::other t;\n"
            "using u = asio::deferred_t::as_default_on_t<asio::basic_waitable_timer<C>>;\n",
            "#include <pawl/basic_waitable_timer.hpp>\n"
            "pawl::basic_waitable_timer<C, asio::wait_traits<C>, X>::rebind_executor<Y>::other t;\n"
            "using u = asio::deferred_t::as_default_on_t<pawl::basic_waitable_timer<C>>;\n",
        )

    def test_branches_of_the_preprocessor_do_not_confuse_the_scopes(self) -> None:
        self.becomes(
            INCLUDE
            + "namespace a {\n#if X\nvoid f() {\n#else\nvoid g() {\n#endif\n}\nnamespace n = boost::asio;\n}\na::n::steady_timer t;\n",
            MIGRATED
            + "namespace a {\n#if X\nvoid f() {\n#else\nvoid g() {\n#endif\n}\nnamespace n = boost::asio;\n}\npawl::steady_timer t;\n",
        )

    def test_a_using_directive_reaches_as_far_as_its_block(self) -> None:
        self.write(
            INCLUDE + "void f() { using namespace boost::asio; steady_timer t(c); }\nvoid g() { steady_timer t(c); }\n"
        )

        run = self.run_tool("main.cpp")

        self.assertIn("main.cpp:4: left to you: steady_timer has no namespace", run.stdout)  # an #include was added
        self.assertIn(
            "pawl::steady_timer t(c); }\nvoid g() { steady_timer t(c); }", (self.folder / "main.cpp").read_text()
        )

    def test_a_using_directive_for_boost_alone_reaches_asio(self) -> None:
        self.becomes(
            INCLUDE + "using namespace boost;\nasio::steady_timer t(c);\n",
            MIGRATED + "using namespace boost;\npawl::steady_timer t(c);\n",
        )

    def test_variables_that_have_the_name_of_a_type_stay(self) -> None:
        self.stays("void f(int steady_timer, std::vector<int> system_timer);\nauto& high_resolution_timer = g();\n")

    def test_a_function_of_ones_own_called_cancel_after_stays(self) -> None:
        self.stays(
            "#include <boost/asio/io_context.hpp>\nstruct job { void cancel_after(int); void cancel_at(int); };\n"
        )


class Programs(MigrateTest):
    """Which files count for which."""

    ASIO = "#include <boost/asio.hpp>\n"
    WHOLE = ASIO + "using namespace boost::asio;\nsteady_timer t(c);\n"
    WHOLE_AFTER = ASIO + MIGRATED + "using namespace boost::asio;\npawl::steady_timer t(c);\n"
    DECLARED = "steady_timer is declared by these files as well: write pawl::steady_timer where it is Boost.Asio's"

    def test_names_of_one_program_do_not_count_for_another(self) -> None:
        using = ("using boost::asio::steady_timer;\n", "using pawl::steady_timer;\n")
        for other in ("b.cpp", "b.cc", "b.cxx", "b.c++", "sub/b.CPP"):
            with self.subTest(other):
                self.become(
                    {"a.cpp": (self.WHOLE, self.WHOLE_AFTER), other: (INCLUDE + using[0], MIGRATED + using[1])},
                    arguments=("a.cpp", other),
                )
        for own in ("struct steady_timer {};\n", "class a { enum steady_timer {}; };\n", "void f(int steady_timer);\n"):
            with self.subTest(own):
                self.become({"a.cpp": (self.WHOLE, self.WHOLE_AFTER), "b.cc": (own, own)}, arguments=("a.cpp", "b.cc"))

    def test_directives_and_aliases_of_one_program_do_not_count_for_another(self) -> None:
        others = "namespace n = boost::asio;\nusing namespace boost::asio;\n"
        here = INCLUDE + "n::steady_timer t;\nsteady_timer u;\n"
        self.become(
            {"a.cpp": (here, here), "b.cpp": (others, others)},
            "a.cpp:2: what n is does not stand in these files: write pawl::steady_timer if it is Boost.Asio",
            "a.cpp:3: steady_timer has no namespace, and no using in these files says whose it is: "
            "write pawl::steady_timer if Boost.Asio's",
        )

    def test_what_is_included_counts_by_whatever_path(self) -> None:
        for path, include in (
            ("own.hpp", '"own.hpp"'),
            ("own.hpp", '"./own.hpp"'),
            ("include/lib/own.hpp", "<lib/own.hpp>"),
            ("include/lib/own.hpp", '"../include/lib/own.hpp"'),
            ("own.cpp", '"own.cpp"'),
        ):
            with self.subTest(include):
                text = f"#  include {include}\n" + self.WHOLE
                own = "struct steady_timer {};\n"
                self.become({"src/a.cpp": (text, text), path: (own, own)}, arguments=(".",))
                (self.folder / path).unlink()

    def test_a_file_beside_is_included_before_one_of_the_same_name(self) -> None:
        other = "namespace n = boost::asio;\n"
        text = '#include "config.hpp"\nn::steady_timer t;\n'
        self.become(
            {
                "a/main.cpp": (text, '#include "config.hpp"\n' + MIGRATED + "pawl::steady_timer t;\n"),
                "a/config.hpp": (other, other),
                "b/config.hpp": ("namespace n = mine;\n",) * 2,
                "b/main.cpp": ('#include "config.hpp"\n',) * 2,
                "notconfig.hpp": ("namespace n = mine;\n",) * 2,
                "c.cpp": ('#include "notconfig.hpp"\n',) * 2,
            }
        )

    def test_a_file_of_the_same_name_that_is_not_included_counts_for_nothing(self) -> None:
        for include, path in ("config.hpp", "a/config.hpp"), ("lib/config.hpp", "include/lib/config.hpp"):
            with self.subTest(include):
                text = f'#include "{include}"\n' + self.ASIO
                directive, other = "using namespace boost::asio;\n", "struct steady_timer {};\n"
                self.become(
                    {
                        "a/main.cpp": (text + "steady_timer t;\n", text + MIGRATED + "pawl::steady_timer t;\n"),
                        path: (directive, directive),
                        "b/config.hpp": (other, other),
                        "b/main.cpp": ('#include "config.hpp"\n',) * 2,
                    }
                )
                (self.folder / path).unlink()

    def test_includes_are_followed_through_files_without_a_name_that_counts(self) -> None:
        text = '#include "all.hpp"\nn::steady_timer t;\n'
        self.become(
            {
                "main.cpp": (text, '#include "all.hpp"\n' + MIGRATED + "pawl::steady_timer t;\n"),
                "all.hpp": ('#include "more.hpp"\n',) * 2,
                "more.hpp": ('#include "config.hpp"\n#include "all.hpp"\n',) * 2,
                "config.hpp": ("namespace n = boost::asio;\n",) * 2,
            }
        )

    def test_a_header_sees_what_its_includer_has_included(self) -> None:
        self.become(
            {
                "main.cpp": ('#include "config.hpp"\n#include "user.hpp"\n',) * 2,
                "config.hpp": ("namespace n = boost::asio;\n",) * 2,
                "user.hpp": (INCLUDE + "n::steady_timer* t;\n", MIGRATED + "pawl::steady_timer* t;\n"),
            }
        )

    def test_a_header_that_no_file_includes_counts_for_all(self) -> None:
        alias = "namespace n = boost::asio;\n"
        for header in ("pch.h", "pch.ixx", "pch.ipp"):
            with self.subTest(header):
                self.become(
                    {
                        "main.cpp": (INCLUDE + "n::steady_timer t;\n", MIGRATED + "pawl::steady_timer t;\n"),
                        header: (alias, alias),
                    }
                )
                (self.folder / header).unlink()

    def test_a_name_that_may_come_from_a_file_that_includes_this_one_is_named(self) -> None:
        header = "namespace x { using namespace boost::asio; steady_timer* t; }\n"
        self.become(
            {
                "main.cpp": ('struct steady_timer {};\n#include "part.hpp"\n',) * 2,
                "part.hpp": (header, header),
            },
            "part.hpp:1: " + self.DECLARED,
        )

    def test_a_header_that_others_still_need_stays(self) -> None:
        user = '#include "timer.hpp"\nframework::steady_timer t(c);\n'
        self.become(
            {
                "timer.hpp": (INCLUDE + "net::steady_timer* t;\n", INCLUDE + MIGRATED + "pawl::steady_timer* t;\n"),
                "user.cpp": (user, user),
                "other.cpp": (INCLUDE + "net::steady_timer t(c);\n", MIGRATED + "pawl::steady_timer t(c);\n"),
            },
            "user.cpp:2: what framework is does not stand in these files: write pawl::steady_timer if it is Boost.Asio",
        )

    def test_a_branch_of_an_if_that_declares_a_name_does_not_hide_it(self) -> None:
        either = "{}\n#if OLD\ntypedef boost::posix_timer steady_timer;\n#endif\n"
        hidden = "lib::steady_timer* t;\n"
        header = either.format("namespace lib {\nusing namespace boost::asio;") + "}\n"
        self.lists(header + hidden, "7: an #if decides what lib::steady_timer is: write pawl::steady_timer where it is")
        self.lists(header + "namespace lib { steady_timer* t; }\n", "7: " + self.DECLARED)
        self.lists(either.format("using namespace boost::asio;") + "steady_timer* t;\n", "5: " + self.DECLARED)
        self.lists(
            either.format("void f() {\nusing namespace boost::asio;") + "steady_timer* t; }\n", "6: " + self.DECLARED
        )

    def test_a_name_hides_where_it_is_declared_for_sure(self) -> None:
        for condition in ("#if OLD", "#ifdef OLD", "#if defined(OLD)", "#ifndef OLD", "#if !defined OLD"):
            for inner in ("typedef int steady_timer;", "using steady_timer = int;", "struct steady_timer;"):
                self.stays(
                    f"namespace lib {{\nusing namespace boost::asio;\n{condition}\n{inner}\n#endif\n}}\n"
                    f"{condition}\nlib::steady_timer* t;\nnamespace lib {{ steady_timer* t; }}\n#endif\n"
                )
        self.stays(
            "using namespace boost::asio;\n#ifdef A\n#else\nstruct steady_timer;\n#endif\n#ifndef A\nsteady_timer* t;\n"
            "#endif\n#if !defined(A)\nsteady_timer* u;\n#endif\n"
        )
        self.stays(
            "using namespace boost::asio;\n#if A > 1\n#elif B\nstruct steady_timer;\n#endif\n"
            "#if A > 1\n#elif B\nsteady_timer* t;\n#endif\n"
        )
        self.stays(
            "using namespace boost::asio;\n#if A\n#ifdef B\n#else\nstruct steady_timer;\n#endif\n"
            "#ifndef B\nsteady_timer* t;\n#endif\n#endif\n"
        )
        self.stays(
            "using namespace boost::asio;\n#ifndef A\n#else\nstruct steady_timer;\n#endif\n"
            "#ifdef A\nsteady_timer* t;\n#endif\n"
        )
        self.stays("namespace lib { using namespace boost::asio; struct steady_timer {}; }\nlib::steady_timer* t;\n")

    def test_a_namespace_that_is_either_kind_of_asio_is_named(self) -> None:
        text = (
            "#ifdef ASIO_STANDALONE\n#include <asio.hpp>\nnamespace lib { using namespace ::asio; }\n#else\n"
            "#include <boost/asio.hpp>\nnamespace lib { using namespace boost::asio; }\n#endif\n"
        )
        self.lists(
            text + "lib::steady_timer* t;\nnamespace lib { steady_timer* t; }\n",
            "8: an #if decides what lib::steady_timer is",
            "9: " + self.DECLARED,
        )

    def test_all_directives_of_conditions_are_known(self) -> None:
        for middle in ("#elif B", "#elifdef B", "#elifndef B", "#else"):
            with self.subTest(middle):
                text = "namespace a {{\n#ifdef X\nvoid f() {{\n{}\nvoid g() {{\n#endif\n}}\nnamespace n = boost::asio;\n}}\na::n::{} t;\n"
                after = text.format(middle, "steady_timer").replace("a::n::", "pawl::")
                self.becomes(INCLUDE + text.format(middle, "steady_timer"), MIGRATED + after)


class Beast(MigrateTest):
    STREAM = "#include <boost/beast/core/tcp_stream.hpp>\n"
    PAWLS = "#include <pawl/timeout_stream.hpp>\n"

    def becomes_with_beast(self, before: str, after: str, *left: str) -> None:
        self.become({"main.cpp": (before, after)}, *left, arguments=("--beast", "main.cpp"))

    def test_without_the_option_streams_stay(self) -> None:
        self.stays(self.STREAM + "beast::tcp_stream* s;\nboost::beast::basic_stream<P>* t;\n")

    def test_a_stream_is_replaced_by_whatever_name(self) -> None:
        self.becomes_with_beast(
            self.STREAM + "beast::tcp_stream* a;\n::boost::beast::tcp_stream* b;\nnamespace bb = boost::beast;\n"
            "bb::tcp_stream::socket_type* c;\nusing beast::tcp_stream;\ntcp_stream* d;\n",
            self.PAWLS + "pawl::tcp_stream* a;\n::pawl::tcp_stream* b;\nnamespace bb = boost::beast;\n"
            "pawl::tcp_stream::socket_type* c;\nusing pawl::tcp_stream;\ntcp_stream* d;\n",
        )

    def test_a_using_directive_reaches_the_stream_and_not_the_timers(self) -> None:
        self.becomes_with_beast(
            "#include <boost/beast.hpp>\nusing namespace boost::beast;\ntcp_stream* a;\nnet::steady_timer* t;\n",
            "#include <boost/beast.hpp>\n#include <pawl/steady_timer.hpp>\n#include <pawl/timeout_stream.hpp>\n"
            "using namespace boost::beast;\npawl::tcp_stream* a;\npawl::steady_timer* t;\n",
        )

    def test_a_namespace_of_ones_own_called_beast_stays(self) -> None:
        text = "namespace beast { struct tcp_stream; }\nbeast::tcp_stream* s;\n"
        self.becomes_with_beast(text, text)

    def test_timers_by_way_of_beast_are_replaced_without_the_option(self) -> None:
        self.becomes(INCLUDE + "beast::net::steady_timer* t;\n", MIGRATED + "pawl::steady_timer* t;\n")

    def test_what_pawl_does_not_have_is_named(self) -> None:
        rates = (
            "Pawl limits no rates: a basic_stream without a rate policy becomes pawl::timeout_stream of its socket, such "
            "as pawl::timeout_stream<boost::asio::basic_stream_socket<Protocol, Executor>>; one with a policy stays Beast's"
        )
        text = (
            "#include <boost/beast/core/basic_stream.hpp>\nbeast::basic_stream<tcp>* a;\n"
            "beast::unlimited_rate_policy* b;\nusing namespace boost::beast;\nsimple_rate_policy* c;\n"
            "mine::basic_stream d;\nvoid f(basic_stream<tcp>&);\n"
        )
        self.becomes_with_beast(text, text, *(f"main.cpp:{line}: {rates}" for line in (2, 3, 5, 7)))
        text = "void f(basic_stream<tcp>&);\n"
        self.becomes_with_beast(text, text)

    def test_what_is_undecided_is_named(self) -> None:
        text = "namespace boost { namespace beast {\nclass tcp_stream;\n} }\nvoid f(tcp_stream&, x::tcp_stream&);\n"
        self.becomes_with_beast(
            text,
            text,
            "main.cpp:2: in namespace boost::beast: instead of declaring its class, include <pawl/timeout_stream.hpp>",
            "main.cpp:4: tcp_stream has no namespace, and no using in these files says whose it is: write pawl::tcp_stream "
            "if Boost.Beast's",
            "main.cpp:4: what x is does not stand in these files: write pawl::tcp_stream if it is Boost.Beast",
        )
        text = "#if __has_include(<boost/beast/core/tcp_stream.hpp>)\n#endif\n"
        self.becomes_with_beast(
            text,
            text,
            "main.cpp:1: asks whether Boost has this header: see whether the question is still the right one",
        )


class LentTimers(MigrateTest):
    def named(self, text: str, *members: tuple[int, str]) -> None:
        self.become(
            {"main.cpp": (text, text)},
            *(
                f"main.cpp:{line}: t is lent to pawl::timeout, and main.cpp calls t.{member}(): this lifts the limit, and "
                "the operation goes on; with pawl::cancel_after, as with Asio's, it cancels the operation"
                for line, member in members
            ),
        )

    def test_a_lent_timer_that_is_cancelled_is_named(self) -> None:
        for member in ("cancel", "cancel_one", "expires_after", "expires_at"):
            for dot in (".", "->"):
                self.named(f"s.f(pawl::timeout(*a.t, 5s));\nx{dot}t{dot}{member}(d);\n", (1, member))

    def test_pawls_function_is_known_by_whatever_name(self) -> None:
        self.named("namespace p = pawl;\nauto x = p::timeout(t, 1s) + t.cancel();\n", (2, "cancel"))
        self.named("using pawl::timeout;\nauto x = timeout(t, 1s) + t.cancel();\n", (2, "cancel"))
        self.named("void f() { using pawl::timeout; timeout(t, 1s); t.cancel(); }\n", (1, "cancel"))
        self.named("using namespace pawl;\nauto x = timeout(t, 1s) + t.cancel_one();\n", (2, "cancel_one"))

    def test_only_lent_timers_are_named(self) -> None:
        for text in (
            "pawl::timeout(5s, t); t.cancel();",
            "pawl::timeout(t); t.cancel();",
            "pawl::timeout(t, 5s); t.rearm_after(1s); u.cancel();",
            "pawl::timeout(t(), 5s); t.cancel();",
            "pawl::timeout(t, 5s); f(t, cancel);",
            "pawl::timeout; t, t.cancel();",
            "pawl::cancel_after(t, 5s); t.cancel();",
            "timeout(t, 5s); t.cancel();",
            "a.timeout(t, 5s); t.cancel(); using namespace pawl;",
            "a->timeout(t, 5s); t.cancel(); using namespace pawl;",
            "other::timeout(t, 5s); t.cancel();",
        ):
            with self.subTest(text):
                self.named(text)

    def test_the_call_may_stand_in_another_file_of_the_program(self) -> None:
        user = ('#include "t.hpp"\nauto x = pawl::timeout(t, 5s);\n',) * 2
        self.become(
            {
                "main.cpp": user,
                "t.hpp": ("void f() { t.cancel(); }\n",) * 2,
                "other.cpp": ("timeout; u.cancel();",) * 2,
            },
            "main.cpp:2: t is lent to pawl::timeout, and t.hpp calls t.cancel(): this lifts the limit, and the operation "
            "goes on; with pawl::cancel_after, as with Asio's, it cancels the operation",
        )
        (self.folder / "t.hpp").unlink()
        self.become({"main.cpp": user, "other.cpp": ("namespace a { void f() { t.cancel(); } }\n",) * 2})


class Includes(MigrateTest):
    def test_a_header_is_replaced_where_it_stands(self) -> None:
        self.becomes(
            '#if X\n# include <boost/asio/steady_timer.hpp> // why\n#endif\n#include "boost/asio/system_timer.hpp"\n',
            '#if X\n# include <pawl/steady_timer.hpp> // why\n#endif\n#include "pawl/system_timer.hpp"\n',
        )

    def test_two_headers_that_become_one_are_included_once(self) -> None:
        self.becomes(
            "#include <boost/asio/cancel_after.hpp>\n#include <boost/asio/cancel_at.hpp>\n#include <vector>\n",
            "#include <pawl/cancel_after.hpp>\n#include <vector>\n",
        )

    def test_what_came_from_another_header_of_asio_is_included_behind_it(self) -> None:
        self.becomes(
            '#ifndef GUARD\n#define GUARD\n#include <boost/asio.hpp>\n#include <vector>\nasio::steady_timer* t;\n#include "end.ipp"\n#endif\n',
            "#ifndef GUARD\n#define GUARD\n#include <boost/asio.hpp>\n#include <pawl/steady_timer.hpp>\n#include <vector>\n"
            'pawl::steady_timer* t;\n#include "end.ipp"\n#endif\n',
        )

    def test_include_guards_are_known(self) -> None:
        for guard in (
            "#ifndef G\n#define G\n",
            "#if !defined(G)\n#define G\n",
            "#if !defined G // why\n# define G 1\n",
            "// head\n#pragma once\n\n#if ! defined( G )\n#define G\n",
        ):
            for end in ("#endif\n", "#endif // G", "#endif\n// end\n\n"):
                with self.subTest(guard + end):
                    text = guard + "#include <vector>\n{}#if X\n#include <map>\n#endif\n{}::steady_timer* t;\n" + end
                    self.becomes(text.format("", "net"), text.format(MIGRATED, "pawl"))
                    # What stands in a guard is declared and included for sure.
                    own = (
                        guard
                        + "#if X\n#else\n#endif\nnamespace lib { using namespace boost::asio; struct steady_timer; }\n"
                        + end
                    )
                    use = '#include "own.hpp"\nlib::steady_timer* t;\n'
                    self.become({"own.hpp": (own, own), "main.cpp": (use, use)})
                    (self.folder / "own.hpp").unlink()

    def test_other_conditions_are_no_guard(self) -> None:
        for head in (
            "#ifndef G\n#define G\n#endif\n",
            "#if !defined(G)\n#define G\n#else\n#error\n#endif\n",
            "#pragma once\n#ifndef G\n#define G\n#endif\n",
        ):
            with self.subTest(head):
                text = head + "#include <vector>\n{}#if X\n#include <map>\n#endif\n{}::steady_timer* t;\n"
                self.becomes(text.format("", "net"), text.format(MIGRATED, "pawl"))
        for start, end in (
            ("#ifndef G\n#define H\n", "#endif\n"),
            ("#ifndef G\n#undef G\n", "#endif\n"),
            ("#ifndef G\n#define\n", "#endif\n"),
            ("#ifdef G\n#define G\n", "#endif\n"),
            ("#ifndef G\n#define G\n", "#endif\nint last;\n"),
            ("#ifndef G\n#define G\n", "#else\nint other;\n#endif\n"),
            ("#ifndef G\n#define G\n", "#endif\n#include <map>\n"),
            ("int first;\n#ifndef G\n#define G\n", "#endif\n"),
            ("#ifndef G\nint first;\n#define G\n", "#endif\n"),
            ("#include <list>\n#ifndef G\n#define G\n", "#endif\n"),
        ):
            with self.subTest(start + end):
                self.write(start + "#include <vector>\n" + end + "int x;\nnet::steady_timer* t;\n")

                run = self.run_tool("main.cpp")

                text = (self.folder / "main.cpp").read_text()
                before = text[: text.index(MIGRATED)] if MIGRATED in text else ""
                self.assertNotIn("#include <vector>\n" + MIGRATED, text)
                self.assertTrue(before.endswith(("<list>\n", "<map>\n")) if before else run.returncode == 1, text)

    def test_braces_in_the_branches_of_conditions_are_counted_once(self) -> None:
        text = "#if A\nnamespace a {\n#else\nnamespace b {\n#endif\n}\n#include <boost/asio.hpp>\n"
        self.becomes(text + "net::steady_timer* t;\n", text + MIGRATED + "pawl::steady_timer* t;\n")
        text = (
            '#include <list>\n{}#if A\nextern "C" {{\n#if B\nstruct x {{\n#else\nstruct y {{\n#endif\n}};\n}}\n#endif\n'
            "namespace z {{\n#include <boost/asio.hpp>\n}}\n{}::steady_timer* t;\n"
        )
        self.becomes(text.format("", "net"), text.format(MIGRATED, "pawl"))

    def test_what_another_condition_surrounds_is_not_declared_for_sure(self) -> None:
        use = '#include "own.hpp"\nlib::steady_timer* t;\n'
        for start, end in (
            ("#ifndef G\n#define H\n", "#endif\n"),
            ("#ifndef G\n#undef G\n", "#endif\n"),
            ("#ifndef G\n#define\n", "#endif\n"),
            ("#ifdef G\n#define G\n", "#endif\n"),
            ("#if X\n#ifndef G\n#define G\n", "#endif\n#endif\n"),
            ("#ifndef G\nint first;\n#define G\n", "#endif\n"),
            ("int first;\n#ifndef G\n#define G\n", "#endif\n"),
            ("#ifndef G\n#define G\n", "#endif\nint last;\n"),
            ("#ifndef G\n#define G\n", "#else\n#endif\n"),
            ("#ifndef G\n#define G\n", "#endif\n#if X\n#endif\n"),
        ):
            with self.subTest(start + end):
                own = start + "namespace lib { using namespace boost::asio; struct steady_timer; }\n" + end
                self.become(
                    {"own.hpp": (own, own), "main.cpp": (use, use)},
                    "main.cpp:2: an #if decides what lib::steady_timer is: write pawl::steady_timer where it is Boost.Asio's",
                )

    def test_conditions_within_conditions_are_counted(self) -> None:
        text = "#if A\n#if B\n#endif\n#else\n#endif\n#include <vector>\n{}{}::steady_timer* t;\n"
        self.becomes(text.format("", "net"), text.format(MIGRATED, "pawl"))
        self.becomes(INCLUDE + "}\nnet::steady_timer* t;\n", MIGRATED + "}\npawl::steady_timer* t;\n")
        self.becomes("#endif\n" + text.format("", "net"), "#endif\n" + text.format(MIGRATED, "pawl"))

    def test_without_an_include_of_boost_asio_that_of_standalone_asio_has_to_do(self) -> None:
        text = "#include <asio/io_context.hpp>\n{}{}::steady_timer* t;\n"
        self.becomes(text.format("", "boost::asio"), text.format(MIGRATED, "pawl"))

    def test_the_include_of_boost_asio_is_chosen_that_is_compiled_with_the_name(self) -> None:
        text = (
            "#ifdef S\n#include <asio.hpp>\n#else\n#include <boost/asio/a.hpp>\n{}#endif\n#ifdef X\n"
            "#include <boost/asio/b.hpp>\n#endif\n#ifndef S\n{}::steady_timer* t;\n#endif\n"
        )
        self.becomes(text.format("", "boost::asio"), text.format(MIGRATED, "pawl"))

    def test_an_include_within_an_if_is_only_used_within_it(self) -> None:
        text = "#include <a.hpp>\n{}#if X\n#  include <boost/asio.hpp>\n{}#endif\n"
        self.becomes(
            text.format("", "") + "net::steady_timer* t;\n", text.format(MIGRATED, "") + "pawl::steady_timer* t;\n"
        )
        use = "#if X\n{}::steady_timer* t;\n#endif\n"
        self.becomes(text.format("", "") + use.format("net"), text.format("", MIGRATED) + use.format("pawl"))
        text = "#ifdef A\n  #include <boost/asio.hpp>\n{}#elif B\n  #include <c.hpp>\n#endif\n#if defined(A)\n{}::steady_timer* t;\n#endif\n"
        self.becomes(text.format("", "net"), text.format("  " + MIGRATED, "pawl"))
        text = "#ifdef A\n#include <a.hpp>\n{}#if B\n{}::steady_timer* t;\n#endif\n{}::steady_timer* u;\n#endif\n"
        self.becomes(text.format("", "net", "net"), text.format(MIGRATED, "pawl", "pawl"))
        # One that is always compiled does, too.
        text = "#include <a.hpp>\n{}#if X\n#include <b.hpp>\n{}::steady_timer* t;\n#endif\n"
        self.becomes(text.format("", "net"), text.format(MIGRATED, "pawl"))

    def test_an_include_within_an_if_that_is_replaced_is_not_enough_outside(self) -> None:
        text = "#include <boost/asio.hpp>\n{}#if X\n#include <{}/steady_timer.hpp>\n#endif\n{}::steady_timer* t;\n"
        for header in ("boost/asio", "pawl"):
            self.becomes(text.format("", header, "net"), text.format(MIGRATED, "pawl", "pawl"))

    def test_an_include_stays_within_the_if_that_selects_boost_asio(self) -> None:
        text = (
            "#include <vector>\n#ifdef STANDALONE\n#include <asio.hpp>\n#else\n#include <boost/asio.hpp>\n{}#endif\n"
            "#include <map>\nboost::asio::steady_timer* t;\n"
        )
        self.becomes(text.format(""), text.format(MIGRATED).replace("boost::asio::", "pawl::"))

    def test_without_an_include_that_is_always_compiled_the_header_is_named(self) -> None:
        why = "needs #include <pawl/steady_timer.hpp>, and no #include above it is always compiled with it to put it behind"
        use = "net::steady_timer* t;\n"
        for text, line in (
            ("#if X\n#include <a.hpp>\n#endif\n" + use, 4),
            ("#if X\n#include <asio/io_context.hpp>\n#endif\n" + use, 4),
            ("#if X\n#include <a.hpp>\n#else\n" + use + "#endif\n", 4),
            ("#if X\n#include <a.hpp>\n#elif Y\n" + use + "#endif\n", 4),
            ("#if X\n#if Y\n#else\n#include <a.hpp>\n#endif\n#endif\n#if !Y\n" + use + "#endif\n", 8),
            ("#ifdef X\n#ifdef Y\n#else\n#include <a.hpp>\n#endif\n#endif\n#ifndef Y\n" + use + "#endif\n", 8),
            (use + "#include <a.hpp>\n", 1),
            ('extern "C" {\n#include <a.h>\n}\n' + use, 4),
            ('#if X\nextern "C" {\n#endif\n#include <a.h>\n#if X\n}\n#endif\n' + use, 8),
        ):
            with self.subTest(text):
                self.become({"main.cpp": (text, text.replace("net", "pawl"))}, f"main.cpp:{line}: {why}")

    def test_an_include_behind_code_serves_what_is_below_it(self) -> None:
        self.becomes(
            "using a = int;\n#include <boost/asio.hpp>\nnet::steady_timer* t;\n#include <boost/asio/x.hpp>\n",
            "using a = int;\n#include <boost/asio.hpp>\n"
            + MIGRATED
            + "pawl::steady_timer* t;\n#include <boost/asio/x.hpp>\n",
        )
        self.becomes(
            '#include <a.hpp>\nint a;\n#include "b.ipp"\nnet::steady_timer* t;\n',
            "#include <a.hpp>\n" + MIGRATED + 'int a;\n#include "b.ipp"\npawl::steady_timer* t;\n',
        )
        self.becomes(
            "struct a {\n#if X\n};\n#else\n};\n#endif\n#include <b.hpp>\nnet::steady_timer* t;\n",
            "struct a {\n#if X\n};\n#else\n};\n#endif\n#include <b.hpp>\n" + MIGRATED + "pawl::steady_timer* t;\n",
        )

    def test_an_include_with_a_comment_over_lines_is_not_torn_apart(self) -> None:
        for line in (
            "#include <boost/asio.hpp> /* over\n lines */\n",
            "#include <boost/asio.hpp> // over \\\n lines\n",
            "/* over\n lines */ #include <boost/asio.hpp>\n",
            "# /* a */ include /* b */ <boost/asio.hpp>\n",
            "#\\\ninclude \\\n <boost/asio.hpp>\n",
        ):
            with self.subTest(line):
                self.becomes(line + "net::steady_timer* t;\n", line + MIGRATED + "pawl::steady_timer* t;\n")

    def test_a_second_header_is_removed_only_if_it_is_alone_in_its_line(self) -> None:
        first = "#include <{}/cancel_after.hpp>\n"
        self.becomes(
            first.format("boost/asio") + "#include <boost/asio/cancel_at.hpp> // why\n",
            first.format("pawl") + "#include <pawl/cancel_after.hpp> // why\n",
        )
        self.becomes(
            first.format("boost/asio") + "/* a */ #include <boost/asio/cancel_at.hpp>\n",
            first.format("pawl") + "/* a */ #include <pawl/cancel_after.hpp>\n",
        )
        self.becomes(first.format("boost/asio") + "  #  include <boost/asio/cancel_at.hpp>", first.format("pawl"))

    def test_a_header_within_an_if_does_not_replace_one_outside(self) -> None:
        text = "#if X\n#include <{0}/steady_timer.hpp>\n#endif\n#include <{0}/steady_timer.hpp>\n"
        self.becomes(text.format("boost/asio"), text.format("pawl"))

    def test_an_include_that_is_last_in_the_file_is_followed_by_one(self) -> None:
        self.becomes(
            "#include <a.hpp>\n#include <boost/asio/steady_timer.hpp>", "#include <a.hpp>\n" + MIGRATED.rstrip()
        )
        self.becomes(
            "#define T net::steady_timer\n#include <a.hpp>",
            "#define T pawl::steady_timer\n#include <a.hpp>\n" + MIGRATED.rstrip(),
        )

    def test_one_header_of_pawl_is_enough_for_what_it_includes(self) -> None:
        self.becomes(
            "#include <boost/asio.hpp>\nnet::system_timer* a;\nnet::basic_waitable_timer<C>* b;\n",
            "#include <boost/asio.hpp>\n#include <pawl/system_timer.hpp>\npawl::system_timer* a;\n"
            "pawl::basic_waitable_timer<C>* b;\n",
        )
        self.becomes(
            "#include <pawl/steady_timer.hpp>\nnet::basic_waitable_timer<C>* b;\n",
            "#include <pawl/steady_timer.hpp>\npawl::basic_waitable_timer<C>* b;\n",
        )
        self.becomes(
            "#include <boost/asio.hpp>\nnet::basic_waitable_timer<C>* b;\n",
            "#include <boost/asio.hpp>\n#include <pawl/basic_waitable_timer.hpp>\npawl::basic_waitable_timer<C>* b;\n",
        )

    def test_pawls_umbrella_is_enough(self) -> None:
        self.becomes(
            "#include <pawl/pawl.hpp>\nasio::steady_timer* t;\n", "#include <pawl/pawl.hpp>\npawl::steady_timer* t;\n"
        )

    def test_line_endings_a_mark_of_byte_order_and_a_missing_last_newline_stay(self) -> None:
        self.becomes(
            "\ufeff#include <boost/asio.hpp>\r\n// \u00fc\r\nasio::steady_timer* t;",
            "\ufeff#include <boost/asio.hpp>\r\n#include <pawl/steady_timer.hpp>\r\n// \u00fc\r\npawl::steady_timer* t;",
        )

    def test_a_diff_of_a_file_without_a_last_newline_applies(self) -> None:
        path = self.write(INCLUDE + "net::steady_timer* t;")

        self.apply(self.run_tool("--dry-run", "main.cpp").stdout)

        self.assertEqual(path.read_text(), MIGRATED + "pawl::steady_timer* t;")


class LeftToTheUser(MigrateTest):
    def test_what_pawl_does_not_have_is_named(self) -> None:
        self.lists("net::cancel_after_t<X, C> t;\n", "1: Pawl has no cancel_after_t")

    def test_a_forward_declaration_is_named(self) -> None:
        self.lists(
            "namespace boost { namespace asio {\nclass steady_timer;\n} }\n",
            "2: in namespace boost::asio: instead of declaring its class, include <pawl/steady_timer.hpp>",
        )
        self.lists(
            "namespace boost::asio::detail { struct steady_timer; void f(steady_timer*); }\n", *["1: in namespace"]
        )
        self.stays("namespace boost::asio { void f() { cancel_after(1); } }\n")

    def test_standalone_asio_is_named(self) -> None:
        self.lists(
            "#include <asio.hpp>\n#include <asio/steady_timer.hpp>\nasio::steady_timer t(c);\n",
            "2: standalone",
            "3: standalone",
        )

    def test_a_name_without_a_namespace_is_named(self) -> None:
        self.lists("void f(steady_timer& t);\n", "1: steady_timer has no namespace")

    def test_a_function_without_a_namespace_is_named_where_it_may_be_asios(self) -> None:
        call = "auto x = cancel_after(5s);\n"
        for header in ("boost/asio.hpp", "asio.hpp"):
            self.lists(f"#include <{header}>\n{call}", "2: cancel_after has no namespace, and no using in these files")
        self.stays("#include <vector>\n" + call)
        self.stays(
            "#include <boost/asio.hpp>\nauto x = f(&cancel_after);\nusing namespace pawl;\nauto y = cancel_at(t);\n"
        )

    def test_a_namespace_that_does_not_stand_there_is_named(self) -> None:
        self.lists("framework::steady_timer t;\n", "1: what framework is does not stand in these files")

    def test_an_alias_of_two_meanings_is_named(self) -> None:
        self.lists(
            "#if X\nnamespace n = boost::asio;\n#else\nnamespace n = foo::bar;\n#endif\nnamespace foo::bar { struct x; }\nn::steady_timer t;\n",
            "7: n means boost::asio or foo::bar",
        )

    def test_aliases_of_each_other_end(self) -> None:
        self.lists(
            "namespace a = b;\nnamespace b = a;\na::steady_timer t;\n", "3: what a is does not stand in these files"
        )

    def test_a_file_without_an_include_is_named(self) -> None:
        path = self.write("net::steady_timer* t;\n", "part.ipp")

        run = self.run_tool("part.ipp")

        self.assertIn("part.ipp:1: left to you: needs #include <pawl/steady_timer.hpp>", run.stdout)
        self.assertEqual((run.returncode, path.read_text()), (1, "pawl::steady_timer* t;\n"))

    def test_a_header_that_is_still_needed_stays(self) -> None:
        self.write(INCLUDE + "net::steady_timer a(c);\nframework::steady_timer b(c);\n")

        self.run_tool("main.cpp")

        text = (self.folder / "main.cpp").read_text()
        self.assertEqual(text, INCLUDE + MIGRATED + "pawl::steady_timer a(c);\nframework::steady_timer b(c);\n")

    def test_a_question_about_a_header_is_named(self) -> None:
        self.stays("#if __has_include(<mine/cancel_after.hpp>)\n#endif\n")
        self.lists(
            "#if __has_include(<boost/asio/cancel_after.hpp>)\n#endif\n", "1: asks whether Boost has this header"
        )


class Deadlines(MigrateTest):
    """deadline_timer, by --to asio. The body of a function stands below a timer t, and a context c."""

    TIMER = "#include <boost/asio/{0}_timer.hpp>\nboost::asio::{0}_timer t(c);\n"
    PT = "boost::posix_time::"

    def run_asio(self, before: str) -> tuple[str, list[str], subprocess.CompletedProcess]:
        path = self.write(before)
        run = self.run_tool("--to", "asio", "main.cpp")
        self.assertEqual(run.stderr, "")
        return path.read_text(), [line.removeprefix("main.cpp:") for line in self.open_places(run)], run

    def turns(self, before: str, after: str, clock: str = "steady") -> None:
        """{p} is posix_time::, {s} std::chrono::, {c} the clock."""
        marks = {"p": self.PT, "s": "std::chrono::", "c": f"std::chrono::{clock}_clock"}
        old = self.TIMER.format("deadline") + "void f() {" + before.replace("{p}", self.PT) + "}\n"
        new = self.TIMER.format(clock) + "void f() {" + re.sub(r"\{([psc])\}", lambda m: marks[m[1]], after) + "}\n"
        with self.subTest(before):
            text, left, run = self.run_asio(old)
            self.assertEqual(text, new)
            self.assertEqual((left, run.returncode), ([], 0))

    def keeps(self, body: str, *reasons: str, first: str = "") -> None:
        """Nothing changes, and these lines are named, after that of the timer."""
        old = self.TIMER.format("deadline") + first.replace("{p}", self.PT) + body.replace("{p}", self.PT) + "\n"
        with self.subTest(body):
            text, left, run = self.run_asio(old)
            self.assertEqual(text, old)
            self.assertEqual(run.returncode, 1)
            reasons = ["2: t stays a deadline_timer: ", *(reason.replace("{p}", self.PT) for reason in reasons)]
            self.assertEqual([r for r in reasons if not any(r in line for line in left)], [], left)
            self.assertEqual([line for line in left if not any(r in line for r in reasons)], [])

    ALIKE = {
        "H": ("boost::posix_time::hours", "std::chrono::hours"),
        "S": ("boost::posix_time::time_duration", "std::chrono::microseconds"),
        "P": ("boost::posix_time::ptime", "std::chrono::steady_clock::time_point"),
        "WP": ("boost::posix_time::ptime", "std::chrono::system_clock::time_point"),
        "W": ("boost::posix_time::from_time_t(1)", "std::chrono::system_clock::from_time_t(1)"),
        "T": ("net::deadline_timer", "net::steady_timer"),
        "WT": ("net::deadline_timer", "net::system_timer"),
        "DT": ("duration_type", "duration"),
        "SET": ("expires_from_now", "expires_after"),
        "LEFT": ("t.expires_from_now()", "(t.expiry() - std::chrono::steady_clock::now())"),
        "AT": ("expires_at()", "expiry()"),
        "NOW": ("net::deadline_timer::traits_type::now()", "net::steady_timer::clock_type::now()"),
        "@": ("", "{}"),
    }

    def sides(self, text: str) -> tuple[str, str]:
        """Both sides of a text with these words."""
        words = r"\b(?:" + "|".join(self.ALIKE) + r")\b|@"
        return tuple(re.sub(words, lambda match: self.ALIKE[match[0]][side], text) for side in (0, 1))

    def alike(self, *texts: str, timer: str = "steady") -> None:
        """Each is converted below the timer t, and nothing is left."""
        for text in texts:
            with self.subTest(text):
                old, new = self.sides(text)
                after, left, run = self.run_asio(self.TIMER.format("deadline") + old + "\n")
                self.assertEqual((after, left, run.returncode), (self.TIMER.format(timer) + new + "\n", [], 0))

    def test_units_are_those_of_chrono(self) -> None:
        for old, new in (
            *((unit, unit) for unit in ("hours", "minutes", "seconds", "milliseconds", "microseconds")),
            ("millisec", "milliseconds"),
            ("microsec", "microseconds"),
        ):
            self.turns(f"t.expires_from_now({{p}}{old}(n + 1));", f"t.expires_after({{s}}{new}(n + 1));")
        self.turns(
            "t.expires_from_now({p}time_duration(0, 1, 30));",
            "t.expires_after({s}microseconds({s}minutes(1) + {s}seconds(30)));",
        )
        self.turns("t.expires_from_now({p}time_duration());", "t.expires_after({s}microseconds(0));")

    def test_what_is_read_of_a_timer_is_its_expiry(self) -> None:
        self.turns("auto a = t.expires_at();", "auto a = t.expiry();")
        self.turns("auto a = t.expires_from_now();", "auto a = (t.expiry() - {c}::now());")
        self.turns(
            "auto a = t.expires_from_now().total_seconds();",
            "auto a = {s}duration_cast<{s}seconds>(t.expiry() - {c}::now()).count();",
        )
        self.turns("if (t.expires_from_now().is_negative()) {}", "if (((t.expiry() - {c}::now()).count() < 0)) {}")
        self.turns("t.expires_at(t.expires_at() + {p}seconds(1));", "t.expires_at(t.expiry() + {s}seconds(1));")
        self.turns(
            "if (t.expires_at() <= boost::asio::deadline_timer::traits_type::now()) {}",
            "if (t.expiry() <= boost::asio::steady_timer::clock_type::now()) {}",
        )

    def test_infinity_is_the_last_point_of_time(self) -> None:
        most = "t.expires_at(({c}::time_point::max)());"
        for call in (
            "expires_at({p}pos_infin)",
            "expires_at({p}ptime({p}pos_infin))",
            "expires_from_now({p}pos_infin)",
            "expires_from_now({p}time_duration({p}pos_infin))",
        ):
            self.turns(f"t.{call};", most)
        self.turns("t.expires_at({p}not_a_date_time);", "t.expires_at({c}::time_point());")
        self.turns("if (t.expires_at() == {p}pos_infin) {}", "if (t.expiry() == ({c}::time_point::max)()) {}")
        self.turns("t.expires_at(n ? t.expires_at() : {p}pos_infin);", "t.expires_at(n ? t.expiry() : ({c}::time_point::max)());")
        self.turns("if (t.expires_at().is_pos_infinity()) {}", "if ((t.expiry() == ({c}::time_point::max)())) {}")
        self.keeps(
            "void f({p}time_duration d) { d = {p}pos_infin; t.expires_from_now(d); }", "3: pos_infin as a duration"
        )

    def test_a_time_of_the_wall_clock_makes_a_system_timer_and_says_so(self) -> None:
        for old, new in (
            ("{p}microsec_clock::universal_time() + {p}seconds(5)", "std::chrono::system_clock::now() + {s}seconds(5)"),
            ("{p}from_time_t(n)", "std::chrono::system_clock::from_time_t(n)"),
            ("{p}ptime(boost::gregorian::date(1970, 1, 1))", "std::chrono::system_clock::time_point()"),
            (
                "{p}second_clock::universal_time()",
                "std::chrono::time_point_cast<{s}seconds>(std::chrono::system_clock::now())",
            ),
        ):
            self.turns(f"t.expires_at({old});", f"t.expires_at({new});", "system")
        _, _, run = self.run_asio(
            self.TIMER.format("deadline") + f"void f() {{ t.expires_at({self.PT}from_time_t(1)); }}\n"
        )
        self.assertIn(
            f"main.cpp:2: t is a system_timer, since {self.PT}from_time_t(1) is a time of the wall clock\n", run.stdout
        )

        _, _, run = self.run_asio(
            f"#include <boost/asio.hpp>\nvoid f() {{ auto t = new net::deadline_timer(c, {self.PT}from_time_t(1)); }}\n"
        )
        self.assertEqual(run.stdout, "main.cpp: written\n1 file changed, 0 places left to you\n")

    def test_only_the_timers_that_share_times_share_the_clock(self) -> None:
        text = (
            "#include <boost/asio.hpp>\nvoid f() { net::deadline_timer a(c), b(c);\n net::deadline_timer d(c); {}\n}\n"
        )
        wall = f"a.expires_at({self.PT}microsec_clock::universal_time()); d.expires_from_now({self.PT}seconds(1));"
        after, left, _ = self.run_asio(text.replace("{}", wall))
        self.assertEqual((after.count("system_timer"), after.count("steady_timer"), left), (1, 1, []))
        self.assertIn("net::steady_timer d(c); a.expires_at(std::chrono::system_clock::now());", after)
        after, _, _ = self.run_asio(text.replace("{}", wall + "d.expires_at(a.expires_at());"))
        self.assertEqual((after.count("system_timer"), after.count("steady_timer")), (2, 0))

    def test_an_error_code_that_was_always_success_goes(self) -> None:
        for declaration in ("boost::system::error_code ec; ", "::boost::system::error_code ec; ", "error_code ec; "):
            self.turns(declaration + "t.cancel(ec);", "t.cancel();")
        self.turns("h();\n  error_code ec; // success\n  t.cancel(ec);", "h();\n  // success\n  t.cancel();")
        self.turns("h();\n  error_code ec;\n  t.cancel(ec);", "h();\n  t.cancel();")
        self.turns("const error_code ec; h(); t.cancel(ec);", "const error_code ec; h(); t.cancel();")
        self.turns("t.cancel(ec);", "t.cancel();")
        self.turns("t.cancel_one(ec); if (ec) g();", "ec.clear(); t.cancel_one(); if (ec) g();")
        self.turns(
            "n = t.expires_from_now({p}seconds(1), ec); if (ec) g();",
            "n = (ec.clear(), t.expires_after({s}seconds(1))); if (ec) g();",
        )
        self.turns(
            "boost::system::error_code ec; t.expires_at(t.expires_at(), ec);",
            "t.expires_at(t.expiry());",
        )
        used = "boost::system::error_code ec; t.{}; if (ec) g();"
        self.turns(used.format("cancel(ec)"), used.format("cancel()"))
        self.turns("t.wait(ec); if (ec) g();", "t.wait(ec); if (ec) g();")

    def test_a_quotient_keeps_its_fraction(self) -> None:
        self.turns("t.expires_from_now({p}seconds(5) / 2);", "t.expires_after({s}microseconds({s}seconds(5)) / 2);")
        self.turns(
            "{p}time_duration d = {p}seconds(5); t.expires_from_now(d / 2);",
            "{s}microseconds d = {s}seconds(5); t.expires_after(d / 2);",
        )
        self.turns("t.expires_from_now(2 * {p}seconds(5));", "t.expires_after(2 * {s}seconds(5));")

    def test_a_finer_difference_is_cast_to_a_variable(self) -> None:
        self.turns(
            "{p}time_duration d = t.expires_from_now(); d += t.expires_from_now(); t.expires_from_now(d);",
            "{s}microseconds d = {s}duration_cast<{s}microseconds>((t.expiry() - {c}::now()));"
            " d += {s}duration_cast<{s}microseconds>((t.expiry() - {c}::now())); t.expires_after(d);",
        )
        self.turns(
            "{p}time_duration d; t.expires_from_now(std::max(d, {p}time_duration({p}seconds(1))));",
            "{s}microseconds d{}; t.expires_after(std::max(d, {s}microseconds({s}seconds(1))));",
        )

    def test_names_are_found_by_directive_declaration_and_alias(self) -> None:
        include = "#include <boost/asio/{}_timer.hpp>\n"
        for before, after in (
            (
                "using namespace boost::posix_time;\nvoid f(net::deadline_timer& t) { t.expires_from_now(seconds(1)); }\n",
                None,
            ),
            (
                "using boost::posix_time::seconds;\nvoid f(net::deadline_timer& t) { t.expires_from_now(seconds(1)); }\n",
                None,
            ),
            (
                "namespace pt = boost::posix_time;\nvoid f(net::deadline_timer& t) { t.expires_from_now(pt::seconds(1)); }\n",
                None,
            ),
        ):
            del after
            text, left, _ = self.run_asio(include.format("deadline") + before)
            self.assertEqual(left, [])
            new = "void f(net::steady_timer& t) { t.expires_after(std::chrono::seconds(1)); }\n"
            self.assertEqual(text, include.format("steady") + new)
        text, left, _ = self.run_asio(
            include.format("deadline") + "typedef net::deadline_timer timer;\nusing boost::asio::deadline_timer;\n"
            "timer::duration_type d;\nvoid f(timer& t, deadline_timer& u) { t.expires_from_now(d); u.cancel(); }\n"
        )
        self.assertEqual(left, [])
        self.assertEqual(
            text,
            include.format("steady") + "typedef net::steady_timer timer;\nusing boost::asio::steady_timer;\n"
            "timer::duration d{};\nvoid f(timer& t, steady_timer& u) { t.expires_after(d); u.cancel(); }\n",
        )

    def test_a_variable_hides_a_unit(self) -> None:
        text = "using namespace boost::posix_time;\nnet::deadline_timer t(c);\nvoid f(int seconds) { g(seconds); }\n"
        after, left, _ = self.run_asio("#include <boost/asio.hpp>\n" + text)
        self.assertEqual(left, [])
        self.assertIn("void f(int seconds) { g(seconds); }", after)

    def test_dates_that_reach_no_timer_stay_with_their_includes(self) -> None:
        head = "#include <boost/date_time/posix_time/posix_time.hpp>\n#include <boost/asio/{}_timer.hpp>\n"
        text = "using namespace boost::posix_time;\nptime start = second_clock::local_time();\nnet::{}_timer t(c);\n"
        after, left, _ = self.run_asio(head.format("deadline") + text.format("deadline"))
        self.assertEqual((after, left), (head.format("steady") + text.format("steady"), []))

    def test_an_include_goes_when_no_file_needs_it(self) -> None:
        head = "#include <boost/asio/{}_timer.hpp>\n#include {}\nstruct s {{ net::{}_timer t; }};\n"
        user = '#include "s.hpp"\nvoid f(s& x) {{ x.t.{}({}seconds(1)); {} }}\n'
        date, chrono = '"boost/date_time/posix_time/posix_time.hpp"', "<chrono>"
        call = ("expires_from_now", "boost::posix_time::"), ("expires_after", "std::chrono::")
        for extra, include in ("", chrono), ("boost::posix_time::ptime p; p.date();", date):
            self.write(head.format("deadline", date, "deadline"), "s.hpp")
            self.write(user.format(*call[0], extra), "main.cpp")
            run = self.run_tool("--to", "asio", ".")
            self.assertEqual(self.open_places(run), [])
            self.assertEqual((self.folder / "s.hpp").read_text(), head.format("steady", include, "steady"))
            self.assertEqual((self.folder / "main.cpp").read_text(), user.format(*call[1], extra))

    def test_each_form_of_an_expression_is_read(self) -> None:
        for old, new in (
            ("static_cast<{p}time_duration>({p}hours(1))", "static_cast<{s}microseconds>({s}hours(1))"),
            ("n-- ? {p}hours(1) : {p}hours(n++)", "n-- ? {s}hours(1) : {s}hours(n++)"),
            ("{p}seconds(std::numeric_limits<int>::max())", "{s}seconds(std::numeric_limits<int>::max())"),
            ("{p}seconds(std::stoi(\"1\" \"2\"))", "{s}seconds(std::stoi(\"1\" \"2\"))"),
            ("{p}seconds(g(1)(2) + x{3}.n + h({4}))", "{s}seconds(g(1)(2) + x{3}.n + h({4}))"),
            ("{p}seconds([](int i) -> int { return i; }(5))", "{s}seconds([](int i) -> int { return i; }(5))"),
            ("{p}seconds(1) + {p}millisec(2)", "{s}seconds(1) + {s}milliseconds(2)"),
            ("{p}seconds(5) * 2 / 3", "{s}microseconds({s}seconds(5) * 2) / 3"),
            (
                "std::max({p}seconds(1) * 2, {p}time_duration())",
                "std::max<{s}microseconds>({s}seconds(1) * 2, {s}microseconds(0))",
            ),
        ):
            self.turns(f"t.expires_from_now({old});", f"t.expires_after({new});")
        for old, new in (
            ("{p}time_duration d[2]; t.cancel();", None),
            ("switch (n) { case 1: t.expires_from_now({p}hours(1)); }", "switch (n) { case 1: t.expires_after({s}hours(1)); }"),
            ("{p}time_duration d = {{p}hours(1)}; t.expires_from_now(d);", "{s}microseconds d = {{s}hours(1)}; t.expires_after(d);"),
            ("using u = {p}hours; t.expires_from_now(u(1));", "using u = {s}hours; t.expires_after(u(1));"),
            ("{p}ptime p({p}ptime(t.expires_at())); t.expires_at(p);", "{c}::time_point p({c}::time_point(t.expiry())); t.expires_at(p);"),
            ("struct { int n; } o; t.expires_from_now({p}hours(o.n));", "struct { int n; } o; t.expires_after({s}hours(o.n));"),
            ("if (&t == &t) t.swap<int>(1);", None),
            ("net::deadline_timer* u = new net::deadline_timer*[2];", "net::steady_timer* u = new net::steady_timer*[2];"),
            ("make<net::deadline_timer>(t).cancel();", "make<net::steady_timer>(t).cancel();"),
            ("g(std::tie(t, t));", None),
            ("auto h = [d = {p}hours(1)] { t.expires_from_now(d); };", "auto h = [d = {s}hours(1)] { t.expires_after(d); };"),
            ("for (net::deadline_timer& u : all) u.cancel();", "for (net::steady_timer& u : all) u.cancel();"),
            ("auto u = static_cast<net::deadline_timer&&>(t);", "auto u = static_cast<net::steady_timer&&>(t);"),
            ("std::tuple<net::deadline_timer&&, int> u(t, 1);", "std::tuple<net::steady_timer&&, int> u(t, 1);"),
            (
                "[[maybe_unused]] {p}hours d({p}hours(1)); t.expires_from_now(d);",
                "[[maybe_unused]] {s}hours d({s}hours(1)); t.expires_after(d);",
            ),
            (
                "{p}hours d(1); log(\"a\" \"b\" + g(d.total_seconds())); t.expires_from_now(d);",
                "{s}hours d(1); log(\"a\" \"b\" + g({s}duration_cast<{s}seconds>(d).count())); t.expires_after(d);",
            ),
        ):
            self.turns(old, new or old)

    def test_each_form_of_a_function_is_read(self) -> None:
        for text in (
            "auto f() {{ return {0}hours(1); }}\nvoid g() {{ t.{1}(f()); }}\n",
            "auto f() -> {0}hours {{ return {0}hours(1); }}\nvoid g() {{ t.{1}(f()); }}\n",
            "extern \"C\" {{ void f({0}hours h); }}\nvoid f({0}hours h) {{ t.{1}(h); }}\n",
            "template <class T> struct a {{ {0}hours f(); }};\ntemplate <class T> {0}hours a<T>::f() {{ t.{1}(f()); return {0}hours(2); }}\n",
            "struct a {{ friend class b; ~a(); void f({0}hours h, int n[2] = nullptr) {{ t.{1}(h); }} }};\n",
            "struct [[nodiscard]] a {{ void f({0}hours h) {{ t.{1}(h); }} }};\nvoid g(a& x) {{ x.f({0}hours(1)); }}\n",
            "void f({0}hours h) {{ t.{1}(h); }}\nvoid f(int);\nvoid f({0}hours h, int) {{ f(h); }}\nvoid g() {{ f({0}hours(1)); }}\n",
            "struct a {{ {0}hours h; int n; }};\nvoid f(a x) {{ t.{1}(x.h); }}\nvoid g() {{ f(a{{{0}hours(1), 2}}); }}\n",
            "struct a {{ template <int> void f({0}hours h) {{ t.{1}(h); }} }};\nvoid g(a& x) {{ x.f<int>({0}hours(1)); }}\n",
            "template <class D> {0}hours f(D d) {{ return d; }}\nvoid g() {{ t.{1}(f<{0}hours>({0}hours(1))); }}\n",
            "template <class D = {0}hours> void f(D d) {{ t.{1}(d); }}\n",
            "template <class D> struct a {{ D v; D d() {{ return v; }} }};\na<{0}hours> b;\nvoid f() {{ t.{1}(b.d()); }}\n",
            "struct a {{ void f({0}hours h) {{ t.{1}(h); }} void g() {{ this->f({0}hours(1)); }} }};\n",
            "void f({0}hours h = {{}}) {{ t.{1}(h); }}\n",
            "struct API a {{ {0}hours h; int n; }};\nvoid f() {{ a x = {{{0}hours(1), 2}}; t.{1}(x.h); }}\n",
        ):
            old, new = (text.format(*names) for names in ((self.PT, "expires_from_now"), ("std::chrono::", "expires_after")))
            after, left, _ = self.run_asio(self.TIMER.format("deadline") + old)
            self.assertEqual((after.replace("hours h{};", "hours h;"), left), (self.TIMER.format("steady") + new, []))

    def read(self, form: str, around: str = "{}") -> None:
        """X, which the form has in it, is converted, and nothing is left."""
        with self.subTest(form):
            before, now = "t.expires_from_now(boost::posix_time::hours(1))", "t.expires_after(std::chrono::hours(1))"
            text = around.replace("{}", form) + "\n"
            after, left, _ = self.run_asio(self.TIMER.format("deadline") + text.replace("X", before))
            self.assertEqual((after, left), (self.TIMER.format("steady") + text.replace("X", now), []))

    def test_calls_in_each_form_of_a_statement_are_read(self) -> None:
        for form in (
            "if (n) X; else X;",
            "do X; while (n);",
            "try { X; } catch (const e& x) { X; }",
            "for (int i = 0; i < n; ++i) X;",
            "switch (n) { case 1: X; break; case a::b: X; default: X; }",
            "again: X; goto again;",
            "if constexpr (n) X;",
            "return X;",
            "co_return X;",
            "if (int i = n; i < 2) X;",
            "while (X, n) {}",
            "for (auto& d : list) { X; }",
            "for (;;) X;",
            "{ X; }",
            "enum e { a, b = 2 }; X;",
            "enum class e : int; X;",
            "struct s; X;",
            "union s { int n; }; X;",
            "using s = int; X;",
            "static_assert(n < 2); X;",
            "struct s { int n = 0; } o; X;",
            "int a[2][3] = {{1}}, *b = nullptr; X;",
            "delete u; X;",
            "delete[] u; X;",
            "n = sizeof(int) + sizeof n; X;",
            "n++; --n; n = n++ + ++n; X;",
            "std::vector<int> v{1}; X;",
            "f<int>(1); X;",
            "x->template f<1>(); X;",
            "auto [a, b] = g(); X;",
            "a < b && c > d; X;",
            "n << 1 << 2; X;",
            'auto r = R"(;)"; X;',
            "x.operator()(1); X;",
            "for (const auto& [a, b] : list) X;",
            "co_await g(); X;",
            "throw e(1); X;",
            "int x{1}; X;",
            "const auto f = [&](auto... a) mutable noexcept -> int { X; return 1; }; X;",
            "f([this] { X; }, [n = 1, m] { X; });",
            "::g(1); X;",
            "a::b(1); X;",
            "n = -n * ~n + !n - *p; X;",
            "n ? X : X;",
            "n && (X, true);",
            "new (p) a(1); X;",
            "new a::b<int>{1}; X;",
            "v[n][1] = {1, 2}; X;",
            "a::b<int> c(1), *d; X;",
            "unsigned long long m = 1ull; X;",
            "void (*p)(int) = nullptr; X;",
            "goto end; end: X;",
            "[[fallthrough]]; X;",
            "[[likely]] X;",
            "if (n) [[unlikely]] { X; }",
            "std::lock_guard lock(m); X;",
            "alignas(8) char a[2]; X;",
            "decltype(n) m = n; X;",
            "typename a::b c; X;",
            "using namespace std; X;",
            "namespace x = std; X;",
            "static const int n = 1; X;",
            "this->n = 1; X;",
            "*this = a(); X;",
            "(void)n; X;",
            "(n).f(); X;",
            "n %= 2, n |= 1; X;",
            'asm(""); X;',
            "extern int q; X;",
            "a<b<int>>::c d; X;",
            "auto&& r = n; X;",
        ):
            self.read(form, "void fn() { {} }")

    def test_calls_in_each_form_of_a_member_are_read(self) -> None:
        for form in (
            "bool operator<(const a&) const; void f() { X; }",
            "a(a&&) = default; void f() { X; }",
            "operator bool() const { X; return true; }",
            "a() : n(1), m{2} { X; }",
            "template <class... B> a(B... b) : B(b)..., n(1) { X; }",
            "void operator()(int) { X; }",
            "void f() const noexcept(true) override { X; }",
            "auto f() -> int { X; }",
            "virtual void g() = 0; void f() { X; }",
            "int n : 3; void f() { X; }",
            "public: void f() { X; }",
            "Q_SIGNALS: void f() { X; }",
            "friend void g() { X; }",
            "friend void g() { X; } void f() { X; }",
            "friend class b; void f() { X; }",
            "a& operator=(const a&); void f() { X; }",
            "~a() { X; }",
            "explicit a(int n = 1) { X; }",
            "a() try : n(1) { X; } catch (...) {}",
            "static_assert(true); void f() { X; }",
            "struct b { void f() { X; } } o;",
            "enum e { x, y } o; void f() { X; }",
            "template <class T, int N = 2, class U = std::vector<T>> void f() { X; }",
            "std::function<void()> h = [this] { X; };",
            "int n = 1, m{2}; void f() { X; }",
            "requires_ void f() { X; }",
            "void f() requires (true) { X; }",
            "bool operator==(const a&) const = default; void f() { X; }",
            "void* operator new(std::size_t n) { X; }",
            "int operator[](int n) { X; }",
            "int (*p)(int); void f() { X; }",
            "MACRO(x) void f() { X; }",
            "template <> void f<int>() { X; }",
            "[[nodiscard]] int f() { X; }",
            "void f(int (*p)(int), int n[2]) { X; }",
            "auto f() { X; }",
            "decltype(auto) f() { X; }",
            "using b::b; void f() { X; }",
            "typedef int b; void f() { X; }",
            "void f() { X; } ; void g() { X; }",
            "void f() & { X; }",
            "a(int n) : b<int>(n), c::d(n) { X; }",
            "a() : b{n}, c{} { X; }",
        ):
            self.read(form, "struct a { {} };")

    def test_calls_in_each_form_of_a_declaration_are_read(self) -> None:
        for form in (
            "namespace a { void f() { X; } }",
            "namespace a::b { void f() { X; } }",
            "inline namespace v { void f() { X; } }",
            "namespace { void f() { X; } }",
            'extern "C" { void f() { X; } }',
            'extern "C" void f() { X; }',
            "template <class T> void a<T>::f() { X; }",
            "a::a() : n(1) { X; }",
            "a::~a() { X; }",
            "bool a::operator()(int) { X; }",
            "template <> struct a<int> { void f() { X; } };",
            "int main(int argc, char** argv) { X; }",
            "static auto h = [] { X; };",
            "BOOST_AUTO_TEST_CASE(f) { X; }",
            "TEST(a, b) { X; }",
            "union u { int n; }; void f() { X; }",
            "enum e : int { a }; void f() { X; }",
            "void f() try { X; } catch (...) { X; }",
            "struct b : a<int>, virtual c { void f() { X; } };",
            "class API b final : public a { void f() { X; } };",
            "concept c = true; void f() { X; }",
            "template <class T> concept c = sizeof(T) > 1; void f() { X; }",
            "template <class T> requires c<T> void f() { X; }",
            "int n = a < b; void f() { X; }",
            "const std::map<int, int> m = {{1, 2}}; void f() { X; }",
            "void (*p)(); void f() { X; }",
            "using a = int; void f() { X; }",
            "template <class T> using a = b<T>; void f() { X; }",
            "export void f() { X; }",
            "using ::a; void f() { X; }",
            "a::b c::f(d) { X; }",
            "::a f() { X; }",
            "std::vector<int> a::f() const { X; }",
            "struct { int n; } o; void f() { X; }",
            "awaitable<void> f() { X; co_return; }",
            "template <class T>\nstruct a;\nvoid f() { X; }",
            "template struct a<int>; void f() { X; }",
        ):
            self.read(form)

    def test_a_duration_is_followed_through_each_form_of_an_expression(self) -> None:
        """H is hours. What reaches no timer stays."""
        head = (
            "struct a { H d, e = H(2); H f(int = 1); static H s; a b(); };\nH g(int);\na self();\n"
            "void fn(a& x, a* p, std::vector<a> v, std::map<int, std::vector<a*>> w, H h) { auto l = [&] { return x.d; }; "
        )
        for form in (
            "x.d", "p->d", "x.f()", "p->f(1)", "a::s", "a().d", "a{}.d", "(*p).d", "v[0].d", "w[0][1]->d", "x.d + p->d",
            "-x.d", "2 * x.d", "x.d * n * 2", "n ? x.d : p->d", "n > 2 ? x.d : n < 1 ? p->d : a::s", "std::move(x.d)",
            "std::min(x.d, p->d)", "(x.d)", "((x.d + p->d) * 2)", "H(x.d)", "H{2}", "static_cast<H>(x.d)", "x.d *= 2",
            "x.d += p->d", "x.d = p->d", "self().d", "x.b().d", "g(1)", "x.d - H(1) - p->d", "h", "l()",
            "H(1) * (n << 1)", "H(n++)", "H(-n)", "H(g2<1>(n))", "H(x.n)", "H(a::n)", "H((n))", "H((int)n)", "H(int(n))",
            "H(n ? 1 : 2)", "H(sizeof(n))", "H('a')", "H(1'0)", "H(*q)", "H(&n == q)", "H(x.v[1])", "H(!n)", "H(~n)",
            "H(q->n)", "H(std::max(n, 2))", "H(n % 2)", "H(n & 2 | 1)", "H(n && 2 || 1)", "H(n <= 2)", "H(a < b)",
            "H(n >> 1)", "(n, x.d)", "x.e", "H(x.d) + x.e", "H(std::get<0>(y))", "H(l2(1))", "H(::g3(n))",
            "H(std::chrono::seconds(1).count())",
        ):
            with self.subTest(form):
                before = re.sub(r"\bH\b", f"{self.PT}hours", head + f"t.expires_from_now({form}); }}\n")
                after, left, _ = self.run_asio(self.TIMER.format("deadline") + before)
                call = re.sub(r"\bH\b", "std::chrono::hours", f"t.expires_after({form}); }}\n")
                self.assertEqual((after[-len(call) :], left), (call, []))
                member = form == "l()" or bool(re.search(r"[.>][de]\b", form))
                self.assertEqual("std::chrono::hours d{}, e" in after, member)

    def test_a_function_that_is_only_declared_is_no_variable(self) -> None:
        for declaration in (
            "[[nodiscard]] {}hours d(mode m);",
            "{}hours& d(mode);",
            "{}hours d(const mode& m);",
            "{}hours d(mode&);",
            "{}hours d(mode*);",
            "{}hours d(mode&&);",
            "{}hours d(list<mode> m);",
            "{}hours d(unsigned);",
        ):
            self.declares(declaration, "d(x)")

    def test_a_variable_outside_of_functions_is_read(self) -> None:
        for declaration in (
            "extern {}hours d;",
            "{}hours d(1);",
            "{}hours d(1), * e = &d;",
            "{}hours d(n * 2);",
            "static {}hours d = {}hours(1);",
            "struct a {{ static {}hours d; }};\n{}hours a::d(1);",
        ):
            self.declares(declaration, "a::d" if "a::d" in declaration else "d")

    def declares(self, declaration: str, use: str) -> None:
        text = f"{declaration}\nvoid f() {{{{ t.{{}}({use}); }}}}\n"
        count = declaration.count("{}")
        old = text.format(*[self.PT] * count, "expires_from_now")
        new = text.format(*["std::chrono::"] * count, "expires_after")
        with self.subTest(declaration):
            after, left, _ = self.run_asio(self.TIMER.format("deadline") + old)
            self.assertEqual((after, left), (self.TIMER.format("steady") + new, []))

    def test_an_argument_of_a_function_that_is_declared_twice_is_cast_once(self) -> None:
        text = "void g({0} d);\nvoid g({0} d) {{ t.{1}(d); }}\nvoid f() {{ g({2}); }}\n"
        after, left, _ = self.run_asio(
            self.TIMER.format("deadline")
            + text.format(f"{self.PT}time_duration", "expires_from_now", "t.expires_from_now()")
        )
        chrono = "std::chrono::microseconds"
        cast = f"std::chrono::duration_cast<{chrono}>((t.expiry() - std::chrono::steady_clock::now()))"
        self.assertEqual((after, left), (self.TIMER.format("steady") + text.format(chrono, "expires_after", cast), []))

    def test_a_variable_of_another_program_is_another_one(self) -> None:
        text = "#include <boost/asio.hpp>\n{0}hours d;\nvoid f(net::{1}_timer& t) {{ t.{2}(d); }}\n"
        other = "void f() { library(d, g(d)); }\n"
        before = text.format(self.PT, "deadline", "expires_from_now")
        after = text.format("std::chrono::", "steady", "expires_after").replace(" d;", " d{};")
        self.become({"a.cpp": (before, after), "b.cpp": (other, other)}, arguments=("--to", "asio", "."))

    def test_each_use_that_std_chrono_lacks_is_named(self) -> None:
        d = "{p}time_duration d;\n"
        for use, *reasons in (
            ("d = {p}time_duration(n, 0, 0);", "a time_duration of several numbers"),
            ("{p}time_duration e(1, 2); d = e;", "e(1, 2) has no equal in std::chrono"),
            ("n = 5 / d;", "divides by a duration", "this takes 5 / d,"),
            ("d = n ? d : x();", "these files do not say what x() is"),
            ("n = (int)d;", "a cast"),
            ("auto h = [](auto x, {p}hours y) { t.expires_from_now(y); }; library(h);", "library calls a lambda with a duration"),
            ("t = net::deadline_timer(c, {p}pos_infin);", "{p}pos_infin has no type here"),
            ("t.reset({p}pos_infin);", "pos_infin has no type here"),
            (
                "net::deadline_timer::traits_type::subtract(d, d);",
                "deadline_timer::traits_type::subtract has no equal",
                "subtract takes d,",
            ),
            ("d = {p}seconds(2).x;", "these files do not say what"),
            ("t.expires_at(t.expires_at() + n);", "these files do not say what n is", "t.expires_at() + n is"),
            ("d = t.expires_at() - n;", "these files do not say what n is", "t.expires_at() - n is"),
            ("if (t.expires_at() < n) {}", "these files do not say what n is"),
            ("if (d < n) {}", "these files do not say what n is"),
        ):
            self.keeps(f"void f() {{ t.expires_from_now(d); {use} t.cancel(); }}", *reasons, first=d)
        self.keeps("void g({p}hours h) { t.expires_from_now(h); }\nvoid f() { g(x()); }", "4: these files do not say what x() is")
        self.keeps("void g({p}hours h) { t.expires_from_now(h); }\nvoid f() { g({p}pos_infin); }", "4: pos_infin as a duration")

    def test_timers_and_durations_are_followed_wherever_they_go(self) -> None:
        self.alike(
            "void f([[maybe_unused]] T& u) { u.SET(H(1)); }",
            "std::vector<T> v; void f() { v[0].SET(H(1)); v.at(1).SET(H(1)); for (auto& u : v) u.SET(H(1)); }",
            "void f(const volatile H&& d) { t.SET(d); }",
            "T::executor_type e = t.get_executor();",
            "void f() { T::DT d = H(1); t.SET(d); }",
            "void f() { T::DT d = LEFT; t.SET(d); }",
            "template <class X> void g() { X x(c); x.SET(H(1)); } void f() { g<T>(); }",
            "typedef T* ptr; void f(ptr p) { p->SET(H(1)); }",
            "using ptr = std::shared_ptr<T>; void f(const ptr& p) { if (p) p->SET(H(1)); }",
            "struct a { typedef T timer; timer u; void f(); }; void a::f() { u.SET(H(1)); } void g() { a::timer v(c); v.SET(H(1)); }",
            "struct a { T u; struct b { int u; void f() { u = 1; } }; void f() { u.SET(H(1)); } };",
            "struct a { H d@; void f() { t.SET(d); } }; struct b { int d; void f() { g(d); } };",
            "struct a { T* u; void f() { u->SET(H(1)); (*u).SET(H(2)); } };",
            "void f(T* u, T** v) { u->SET(H(1)); (*v)->SET(H(1)); }",
            "void f(int t) { g(t); } void h() { t.SET(H(1)); }",
            "void f() { H d(1); { int d = 2; g(d); } t.SET(d); }",
            "void f(H d) { auto h = [e = d] { t.SET(e); }; h(); }",
            "void f(H d) { auto h = [&](int d) { g(d); }; h(1); t.SET(d); }",
            "H f(bool b) { if (b) return H(1); return H(2); } void g() { t.SET(f(true)); }",
            "std::optional<T> u; void f() { u.emplace(c, H(1)); u->cancel(); }",
            "std::unique_ptr<T> u; void f() { u.reset(new T(c, H(1))); u = std::make_unique<T>(c, H(2)); }",
            "void f() { T u(c, t.AT); T v{c, t.AT + H(1)}; v.wait(); }",
            "void f(P p) { t.expires_at(p - H(1)); t.expires_at(H(1) + p); p += H(1); p -= H(2); }",
            "void f(P a, P b) { if (a == b || a != b || a <= b) t.expires_at(a < b ? a : b); }",
            "void f(P a) { t.SET(a - NOW); }",
            "void f(H a, H b) { if (a < b && b >= a) t.SET(a); }",
            "void f(H a) { t.SET(-a); t.SET(+a); t.SET(a * 2 + H(1) * n); t.SET(n * a); a *= 3; }",
            "void f(S a) { t.SET(a / 2); a /= 2; }",
            "void f(T& a, T& b) { a = std::move(b); a.SET(H(1)); b.cancel(); }",
            "void f() { auto& u = t; u.SET(H(1)); auto* v = &t; v->SET(H(1)); T* w = &t; w->cancel(); }",
            "void f() { auto p = std::make_pair(std::make_shared<T>(c), 1); p.first->SET(H(1)); }",
            "T& get() { return t; } void f() { get().SET(H(1)); }",
            "struct a { T& get(); H d() const { return H(1); } }; void f(a& x) { x.get().SET(x.d()); }",
            "struct a { static a& self(); T u; }; void f() { a::self().u.SET(H(1)); }",
            "namespace n { T u(c); H d(1); } void f() { n::u.SET(n::d); }",
            "namespace n { inline H d() { return H(1); } } void f() { t.SET(n::d()); }",
            "void f(bool b) { t.SET(b ? H(1) : S(H(2))); b ? t.SET(H(1)) : t.SET(H(2)); }",
            "void f() { for (H d(1); d < H(9); d += H(1)) t.SET(d); while (t.AT < NOW) t.SET(H(1)); }",
            "void f() { if (H d = H(1); n) t.SET(d); if (auto e = H(1); n) t.SET(e); }",
            "void f() { const auto d = H(1); static const H e(1); t.SET(d + e); }",
            "struct a { void set(S d) { t.SET(d); } ~a(); }; struct b : a { void g() { set(H(1)); a::set(H(2)); } };",
            "struct a { virtual void set(S d) = 0; }; struct b : a { void set(S d) override { t.SET(d); } }; void f(a& x) { x.set(H(1)); }",
            "struct a { S d = H(1), e{H(2)}, g = {H(3)}; void f() { t.SET(d + e + g); } };",
            "struct a { S d@; explicit a(S x) : d{x} {} a() : a(H(1)) {} }; void f(a& x) { t.SET(x.d); }",
            "struct a { S d@; explicit a(S x) : d{x} {} }; struct b : a { b() : a(H(1)) {} void f() { t.SET(d); } };",
            "struct o { S d@; int n; }; void f() { o x{H(1), 2}; o y = {H(1), 2}; t.SET(x.d + y.d); }",
            "struct o { S d@; int n; }; void g(o); void f(o x) { g({H(1), 2}); g(o{H(1), 2}); t.SET(x.d); x = {H(1), 2}; }",
            "struct o { S d@; }; struct q { o p; }; void g(q); void f(o x) { t.SET(x.d); q y = {{H(1)}}; g({{H(1)}}); }",
            "void g(S d) { t.SET(d); } void f() { g({H(1)}); h({1, 2}); g(S{H(1)}); }",
            "struct o { S d@; }; o g() { return {H(1)}; } o h() { return o{H(1)}; } void f() { t.SET(g().d); }",
            "struct o { S d@; S get() const { return d; } }; void f(std::map<int, o> m) { t.SET(m[1].get() + m.at(2).d); }",
            "struct o { S d@; }; void f(std::vector<o>& v) { for (auto& x : v) t.SET(x.d); for (const o& y : v) t.SET(y.d); }",
            "S g(int); S g(char); void f() { t.SET(g(1)); }",
            "int g(char); S g(int); void f() { t.SET(g(1)); }",
            "template <class D> void set(T& u, D d) { u.SET(d + H(1)); u.expires_at(u.AT + d); } void f() { set(t, H(1)); }",
            "template <class A, class B> void set(A& u, B d) { u.SET(d); } void f() { set(t, H(1)); set(s, x()); }",
            "void set(auto& u, auto d) { u.SET(d); } void f() { set(t, H(1)); }",
            "void f() { auto set = [](auto& u, auto d) { u.SET(d); }; set(t, H(1)); }",
            "template <class X> struct w { X x; void f() { x.SET(H(1)); x.cancel(); } }; w<T> a; w<net::steady_timer> b;",
            "void f() { if (t.SET(H(1)) > 0) g(); n = t.SET(H(1)), t.cancel(); assert(t.SET(H(1)) == 0); }",
            "void f(T u) { t = std::move(u); std::vector<T> v; v.push_back(std::move(u)); v[0].SET(H(1)); }",
            "bool f(const T& u) { return u.AT > NOW; } bool g() { return LEFT > H(1); }",
            "struct b { T u; H d@; }; struct z { int u, d; }; struct a : public n::b { void f() { u.SET(d); } };",
            "struct z { int u, d; }; template <class X> struct b { T u; H d@; }; struct a : private b<int> { void f() { this->u.SET(this->d); } };",
            "struct a { static H d; }; struct b { static int d; }; H a::d(1); int b::d = 2; void f() { t.SET(a::d); }",
            "struct a { P p; a() : p(t.AT) {} void f() { if (p < t.AT) t.cancel(); } };",
            "struct a { P p; void f() { if (p == t.AT) t.cancel(); } };",
            "struct a { P p = t.AT; void f() { if (p > t.AT) t.cancel(); } };",
            "void f() { P p; p = t.AT; if (t.AT >= p) t.cancel(); }",
            "void f(int deadline_timer) { g(deadline_timer); }",
            "using hours = H; void f() { t.SET(hours(1)); }",
            "typedef H hours; void f() { t.SET(hours(1)); }",
        )
        self.alike(
            "template <class X> struct w { void g(X& x) { x.expires_at(W); } }; w<WT> q; void f() { q.g(t); }",
            "void g(WT& u) { u.expires_at(W); } void f() { library(t); }",
            "void f(WP p) { p = W; t.expires_at(p); }",
            "struct a { WP p; a() : p(W) {} void f() { if (p < t.AT) t.cancel(); } };",
            timer="system",
        )

    def test_what_is_declared_and_used_in_other_places_changes_together(self) -> None:
        self.alike(
            "auto h = [](T& u, H d) { u.SET(d); }; void f() { h(t, H(1)); }",
            "typedef T timer; timer u(c, H(1)), v(c, std::max(H(1), H(2)));",
            "typedef T timer; timer u(c); timer v(int n); void f() { u.SET(H(1)); v(2).cancel(); }",
        )
        for old, new in (
            ("extern H d;\nnamespace n { extern H e; }\n", "H d(1);\nH n::e(1);\n"),
            ("struct a { static H d; H e(); };\nstruct b { static int d; };\nH g();\n", "H a::d(1);\nint b::d = 2;\nH g() { return H(1); }\n"),
        ):
            use = "d + n::e" if "n::e" in new else "a::d + g() + x.e()"
            texts = {
                "h.hpp": f"#include <boost/asio.hpp>\n{old}",
                "a.cpp": f'#include "h.hpp"\n{new}',
                "b.cpp": f'#include "h.hpp"\nT t(c);\nvoid f(a& x) {{ t.SET({use}); }}\n',
            }
            self.become({name: self.sides(text) for name, text in texts.items()}, arguments=("--to", "asio", "."))
        for use in (
            "net::deadline_timer::traits_type::time_type p;",
            "typedef net::deadline_timer timer; timer::traits_type::time_type p;",
            "template <class X> void g(X&) { typename X::traits_type::time_type p; } void h() { g(t); }",
        ):
            text = self.TIMER.format("deadline") + use + "\n"
            after, left, _ = self.run_asio(text)
            self.assertIn(": traits_type::time_type has no equal", " | ".join(left))
            self.assertIn(use, after)

    def test_the_lines_of_includes_and_namespaces_are_those_that_are_needed(self) -> None:
        lines = {
            "A": "#include <boost/asio/deadline_timer.hpp>", "B": "#include <boost/asio/basic_deadline_timer.hpp>",
            "R": "#include <boost/asio/time_traits.hpp>", "S": "#include <boost/asio/steady_timer.hpp>",
            "Y": "#include <boost/asio/system_timer.hpp>", "D": "#include <boost/date_time.hpp>",
            "C": "#include <chrono>", "M": "#include <map>", "L": "#include <list>", "I": "#include <boost/asio/ip/tcp.hpp>",
            "U": "using namespace boost::posix_time;", "N": "namespace pt = boost::posix_time;",
            "if": "#ifdef X", "else": "#else", "fi": "#endif", "x": "int x;", "n": "namespace n {", "}": "}",
        }  # fmt: skip
        steady = self.sides("T t(c); void f() { t.SET(H(1)); }\n")
        wall = self.sides("WT u(c, W);\n")
        kept = ("net::deadline_timer k(c); void g() { k.expires_from_now(y()); }\n",) * 2
        for before, after, *more in (
            ("A B", "S"), ("A S", "S"), ("S A", "S"), ("A A", "S"), ("R A", "S"), ("A D C", "S C"), ("D C A", "C S"),
            ("D A D", "C S"), ("A D", "S C"), ("A", "S Y", wall), ("A Y", "S Y", wall), ("Y A", "Y S", wall),
            ("A", "A S", kept), ("A S", "A S", kept), ("A D", "A S D", kept), ("if A fi S", "if fi S"),
            ("if A else A fi", "if S else S fi"), ("if D else D fi A", "if C else C fi S"), ("if S fi A", "if S fi S"),
            ("if C fi D A", "if C fi C S"), ("x A", "x S"), ("M I L", "M I S L"), ("M L", "M L S Y", wall), ("M S", "M S"),
            ("M Y", "M Y S"), ("if S fi M", "if S fi M S"), ("M if I fi", "M S if I fi"), ("M x L", "M S x L"),
            ("n M }", "n M }"), ("", ""), ("A D U", "S C"), ("A D N", "S C"), ("n A D U }", "n S C }"),
        ):  # fmt: skip
            old, new = ("".join(lines[word] + "\n" for word in side.split()) for side in (before, after))
            with self.subTest(before):
                ends = [steady[side] + "".join(pair[side] for pair in more) for side in (0, 1)]
                for ending in "\n", "\r\n":
                    text, _, _ = self.run_asio((old + ends[0]).replace("\n", ending))
                    self.assertEqual(text, new + ends[1], ending)
        dates, chrono = (f"{lines['S']}\n{lines[word]}\n" for word in "DC")
        for names, left in (
            ("using namespace boost::posix_time; int x;\n", " int x;\n"),
            ("  using namespace boost::posix_time;  \n", ""),
            ("using boost::posix_time::hours;\n", ""),
            ("namespace pt = boost::posix_time;\nnamespace qt = pt;\nusing namespace qt;\n", ""),
            ("namespace pt = boost::posix_time;\nusing namespace mine::pt;\n", "using namespace mine::pt;\n"),
            ("void g() { namespace pt = boost::posix_time; using namespace pt; h(); }\n", "void g() {   h(); }\n"),
        ):
            text, _, _ = self.run_asio(f"{lines['A']}\n{lines['D']}\n{names}{steady[0]}")
            self.assertEqual(text, chrono + left + steady[1], names)
        for names in (
            "using boost::posix_time::hours, boost::posix_time::minutes;\n",
            "using namespace boost::posix_time;\nusing namespace boost::gregorian;\n",
            "using namespace boost::posix_time;\nvoid g() { log << date(); }\n",
            "using boost::posix_time::ptime;\nptime p;\n",
            "typedef boost::posix_time::ptime q;\n",
            "boost::posix_time::hours h(1);\n",
        ):
            text, _, _ = self.run_asio(f"{lines['A']}\n{lines['D']}\n{names}{steady[0]}")
            self.assertEqual(text, dates + names + steady[1], names)

    def test_names_of_dates_are_told_from_others(self) -> None:
        chrono = "std::chrono::"
        head = "#include <boost/date_time.hpp>\nusing namespace boost::posix_time;\n", "#include <chrono>\n"
        for text, *include in (
            ("struct a {{ int seconds; int hours(); }};\nvoid f(a x, a* p) {{ t.{1}({0}minutes(x.seconds + p->seconds + p->hours())); }}\n", *head),
            ("auto g() -> {0}hours {{ return {0}hours(1); }}\nvoid f() {{ t.{1}(g()); }}\n", *head),
            ("void f(int minutes) {{ t.{1}({0}hours(minutes)); }}\n", head[0], head[0]),
            ("void f() {{ {2}t.{1}({0}seconds(1)); }}\n", "", "", "using boost::posix_time::seconds; ", ""),
            ("namespace a {{ {2}void f() {{ t.{1}({0}seconds(1)); }} }}\n", "", "", "using boost::posix_time::seconds; ", ""),
            ("namespace a {{ {2}void f() {{ t.{1}({0}seconds(1)); }} }}\n", "", "", "using namespace boost::posix_time; ", ""),
        ):
            with self.subTest(text):
                (old, new), (gone, _) = include[:2], include[2:] or ("", "")
                before = old + self.TIMER.format("deadline") + text.format("", "expires_from_now", gone)
                after, left, _ = self.run_asio(before)
                now = text.format(chrono, "expires_after", " " if gone else "")
                self.assertEqual((after, left), (new + self.TIMER.format("steady") + now, []))
        self.keeps("void f() { t.expires_from_now(other::seconds(1)); }", "3: these files do not say what other::seconds(1) is")
        both = "using std::chrono::seconds;\nusing namespace boost::posix_time;\n"
        self.keeps("void f() { t.expires_from_now(seconds(1)); }", "5: these files do not say what seconds(1) is", first=both)
        either = "#ifdef A\nnamespace as = boost::asio;\n#else\nnamespace as = other;\n#endif\nnamespace other {}\nas::deadline_timer u(c);\n"
        self.assertEqual(
            self.run_asio(either)[1], ["7: an #if decides what as::deadline_timer is: write boost::asio::deadline_timer where it is that"]
        )

    def test_the_clock_and_its_reason_are_those_of_all_that_share_it(self) -> None:
        texts = (
            ("WT a(c), b(c); void f() { a.expires_at(boost::posix_time::from_time_t(2)); b.expires_at(W); b.expires_at(a.AT); }", "a"),
            ("void g(WT& a) { a.expires_at(W); } void h(T& b) { b.cancel(); } T d(c); void f() { h(d); }", "a"),
            ("WT a(c, W); T b(c); void f() { std::swap(b, b); b.SET(H(1)); }", "a"),
            ("void f(WT& a, WT& b) { std::swap(a, b); a.expires_at(W); }", "ab"),
            ("WT a(c); T b(c); void f() { a.expires_at(W); b.SET(a.expires_from_now()); }", "a"),
        )
        for text, names in texts:
            old, new = self.sides(text)
            new = new.replace("boost::posix_time::from_time_t(2)", "std::chrono::system_clock::from_time_t(2)")
            new = new.replace("a.expires_from_now()", "(a.expiry() - std::chrono::system_clock::now())")
            after, _, run = self.run_asio("#include <boost/asio.hpp>\n" + old)
            self.assertEqual(after, "#include <boost/asio.hpp>\n" + new)
            why = "is a system_timer, since boost::posix_time::from_time_t(1) is a time of the wall clock"
            notes = "".join(f"main.cpp:2: {name} {why}\n" for name in names)
            self.assertEqual(run.stdout, f"main.cpp: written\n{notes}1 file changed, 0 places left to you\n")

    def test_what_is_asked_of_a_duration_is_asked_of_that_of_chrono(self) -> None:
        for old, new in (
            ("n = d.total_seconds() / 60;", "n = {s}duration_cast<{s}seconds>(d).count() / 60;"),
            ("n = (d * 2).total_nanoseconds();", "n = {s}duration_cast<{s}nanoseconds>(d * 2).count();"),
            ("n = ((d) + (d)).hours();", "n = {s}duration_cast<{s}hours>((d) + (d)).count();"),
            ("b = (d - d).is_negative();", "b = ((d - d).count() < 0);"),
            ("b = !d.is_negative();", "b = !(d.count() < 0);"),
        ):
            self.turns("{p}hours d(1); t.expires_from_now(d); " + old, "{s}hours d(1); t.expires_after(d); " + new)
        for call in "minutes", "ticks", "is_special", "fractional_seconds":
            body = f"void f({{p}}hours d) {{ t.expires_from_now(d); n = d.{call}(); }}"
            self.keeps(body, f"3: {call}() of a duration of Boost.Date_Time")
        self.keeps("void f({p}hours* d) { t.expires_from_now(*d); }", "3: these files do not say what *d is")
        self.keeps("void f(std::vector<{p}hours> v) { t.expires_from_now(v[0]); }", "3: these files do not say what v[0] is")
        self.keeps("void f({p}hours d) { std::bind(&a::f, d); t.expires_from_now(d); }", "3: bind takes d, and")
        unset = "{p}ptime p, q = t.expires_at();\nvoid f() { if (q < t.expires_at() || t.expires_at() < p) t.cancel(); }"
        self.keeps(unset, "4: p may be not_a_date_time here")
        self.keeps("void g(net::deadline_timer& u) { u.expires_from_now(x()); }\nvoid f() { library(t); }", "3: these files do not say what x() is")

    def test_an_error_code_is_cleared_where_it_may_be_read(self) -> None:
        for old, new in (
            ("t.cancel(x.ec);", "x.ec.clear(); t.cancel();"),
            ("t.cancel(p->ec);", "p->ec.clear(); t.cancel();"),
            ("t.cancel(ec); ec = g();", "ec.clear(); t.cancel(); ec = g();"),
            ("{ error_code ec; t.cancel(ec); }", "{ t.cancel(); }"),
            ("error_code ec; { t.cancel(ec); }", "{ t.cancel(); }"),
            ("error_code ec; t.cancel(ec); t.cancel(ec);", "error_code ec; t.cancel(); ec.clear(); t.cancel();"),
            ("error_code ec, e2; t.cancel(ec);", "error_code ec, e2; ec.clear(); t.cancel();"),
            ("auto ec = g(); t.cancel(ec);", "auto ec = g(); ec.clear(); t.cancel();"),
            ("int n; error_code ec;   t.cancel(ec);", "int n; t.cancel();"),
            ("if (n) { t.cancel(ec); }", "if (n) { t.cancel(); }"),
            ("n = 1, t.cancel(ec); if (ec) g();", "n = 1, (ec.clear(), t.cancel()); if (ec) g();"),
            ("return t.cancel(ec); ec = 1;", "return (ec.clear(), t.cancel()); ec = 1;"),
            (
                "error_code ec; t.expires_at({p}pos_infin, ec); if (ec) g();",
                "error_code ec; t.expires_at(({c}::time_point::max)()); if (ec) g();",
            ),
            (
                "error_code ec; t.cancel(ec); auto l = [] { error_code ec; g(ec); };",
                "error_code ec; t.cancel(); auto l = [] { error_code ec; g(ec); };",
            ),
        ):
            self.turns(old, new)
        for code in "(ec)", "ec.x()":
            self.keeps(f"void f() {{ t.cancel({code}); }}", f"3: an error_code from {code}")
        local = "struct a {{ error_code ec; {0}_timer u; void f() {{ {1}u.cancel({2}); }} void g() {{ {3}u.cancel({2}); }} }};\n"
        text, left, _ = self.run_asio(local.format("net::deadline", "", "ec", "error_code ec; "))
        self.assertEqual((text, left), (local.format("net::steady", "ec.clear(); ", "", ""), []))

    def test_a_cast_stands_where_the_value_is_finer(self) -> None:
        left, now = "t.expires_from_now()", "(t.expiry() - {c}::now())"
        for old, new in (
            ("{p}hours(1) + " + left, "{s}hours(1) + " + now),
            (left + " - {p}hours(1)", now + " - {s}hours(1)"),
            (left + " * 2", now + " * 2"),
            (left + " / 2", now + " / 2"),
            ("-" + left, "-" + now),
            ("n ? {p}seconds(1) : " + left, "n ? {s}seconds(1) : " + now),
            ("n ? " + left + " : {p}seconds(1)", "n ? " + now + " : {s}seconds(1)"),
            ("t.expires_at() - net::deadline_timer::traits_type::now()", "t.expiry() - net::steady_timer::clock_type::now()"),
        ):
            for unit in "seconds", "milliseconds", "microseconds":
                self.turns(
                    f"{{p}}{unit} d = {old}; t.expires_from_now(d);",
                    f"{{s}}{unit} d = {{s}}duration_cast<{{s}}{unit}>({new}); t.expires_after(d);",
                )
            self.turns(f"t.expires_from_now({old});", f"t.expires_after({new});")
        for old, new in (
            ("{p}seconds d({p}hours(1)); d = {p}minutes(1);", "{s}seconds d({s}hours(1)); d = {s}minutes(1);"),
            ("{p}seconds d = n ? {p}seconds(1) : {p}hours(1);", "{s}seconds d = n ? {s}seconds(1) : {s}hours(1);"),
            (
                "{p}seconds d = n ? {p}seconds(1) : {p}millisec(1);",
                "{s}seconds d = {s}duration_cast<{s}seconds>(n ? {s}seconds(1) : {s}milliseconds(1));",
            ),
            (
                "{p}seconds d = std::min({p}seconds(1), {p}millisec(1));",
                "{s}seconds d = {s}duration_cast<{s}seconds>(std::min<{s}milliseconds>({s}seconds(1), {s}milliseconds(1)));",
            ),
            ("{p}hours d(1), *e = &d; t.expires_from_now(*e);", "{s}hours d(1), *e = &d; t.expires_after(*e);"),
        ):
            self.turns(old + " t.expires_from_now(d);", new + " t.expires_after(d);")
        for operator in "+=", "-=":
            self.keeps(f"void f({{p}}hours d) {{ d {operator} t.expires_from_now(); }}", "3: d counts in hours, and this adds nano")

    def test_each_form_of_a_time_or_a_duration_is_read(self) -> None:
        for old, new in (
            ("expires_at({p}ptime())", "expires_at({c}::time_point())"),
            ("expires_at({p}ptime({p}not_a_date_time))", "expires_at({c}::time_point())"),
            ("expires_at({p}neg_infin)", "expires_at(({c}::time_point::min)())"),
            (
                "expires_from_now({p}time_duration(1, 2, 3, 4))",
                "expires_after({s}microseconds({s}hours(1) + {s}minutes(2) + {s}seconds(3) + {s}microseconds(4)))",
            ),
            ("expires_from_now({p}time_duration(0, 0, 0))", "expires_after({s}microseconds(0))"),
            ("expires_from_now(({p}hours)n)", "expires_after(({s}hours)n)"),
            ("expires_from_now({p}hours{n})", "expires_after({s}hours{n})"),
        ):
            self.turns(f"t.{old};", f"t.{new};")
        self.turns(
            "{p}time_duration d(0, 1, 30); t.expires_from_now(d);",
            "{s}microseconds d({s}minutes(1) + {s}seconds(30)); t.expires_after(d);",
        )
        self.turns("if (t.expires_at().is_not_a_date_time()) {}", "if ((t.expiry() == {c}::time_point())) {}")
        self.turns("t.expires_at(n ? {p}pos_infin : t.expires_at());", "t.expires_at(n ? ({c}::time_point::max)() : t.expiry());")
        for body, *reasons in (
            ("t.expires_at({p}max_date_time);", "max_date_time as a time: std::chrono has no such value"),
            ("t.expires_at(t.expires_at().date());", "date() of a time of Boost.Date_Time", "these files do not say what t.expires_at().date() is"),
            ("t.expires_from_now({p}seconds());", "{p}seconds() has no equal in std::chrono that can be read here"),
            ("t.expires_from_now({p}seconds(1, 2));", "{p}seconds(1, 2) has no equal in std::chrono that can be read"),
            ("t.expires_at({p}microsec_clock::local_time());", "{p}microsec_clock::local_time() is local time"),
            ("t.expires_at({p}ptime(x()));", "{p}ptime(x()) has no equal in std::chrono"),
            ("n = x().expires_at();", "no declaration in these files says whether this is a deadline_timer"),
        ):
            self.keeps(f"void f() {{ {body} }}", *(f"3: {reason}" for reason in reasons))
        self.alike("struct z { int expires_at(); }; z x(); void f() { n = x().expires_at(); }")
        head = "#include <boost/asio/deadline_timer.hpp>\n"
        for text, reason in (
            ("void f() { x().expires_from_now(boost::posix_time::hours(1)); }\n", "no declaration in these files says which timer this is"),
            ("net::deadline_timer u(c, x());\n", "these files do not say what x() is"),
            ("net::deadline_timer u(c, boost::posix_time::pos_infin);\n", "boost::posix_time::pos_infin has no type here"),
        ):
            after, left, _ = self.run_asio(head + text)
            self.assertEqual((after, left), (head + text, [f"2: {reason}"]))

    def test_each_file_has_the_includes_that_it_and_its_users_need(self) -> None:
        deadline, steady, system = (f"#include <boost/asio/{name}_timer.hpp>\n" for name in ("deadline", "steady", "system"))
        dates, chrono = "#include <boost/date_time.hpp>\n", "#include <chrono>\n"
        using = "using namespace boost::posix_time;\n"
        asio = ("--to", "asio", ".")
        user = '#include "a.hpp"\n'
        main = self.sides(user + "#include <map>\nT t(c, H(1));\nWT u(c, W);\n")
        self.become({"a.hpp": (deadline + dates, steady + system + chrono), "main.cpp": main}, arguments=asio)
        hours = user + "T t(c, H(1));\n"
        files = {
            "a.hpp": (deadline + dates + using, deadline + steady + dates + using),
            "main.cpp": self.sides(hours),
            "other.cpp": (user + "hours h(1);\n",) * 2,
            "third.cpp": (user + "net::deadline_timer v(c, y());\n",) * 2,
        }
        self.become(files, "third.cpp:2: these files do not say what y() is", arguments=asio)
        (self.folder / "third.cpp").unlink()
        del files["third.cpp"]
        files["a.hpp"] = (deadline + dates + using, steady + dates + using)
        self.become(files, arguments=asio)
        (self.folder / "other.cpp").unlink()
        del files["other.cpp"]
        files["a.hpp"] = (deadline + dates + using, steady + chrono)
        self.become(files, arguments=asio)
        before, after = self.sides(dates + "typedef S span;\n")
        main = self.sides(user + "T t(c);\nspan d@;\nvoid f() { t.SET(d); }\n")
        files = {"a.hpp": (before, after.replace(dates, chrono)), "main.cpp": (main[0], main[1].replace(user, user + steady))}
        self.become(files, arguments=asio)

    def test_members_and_functions_of_the_same_name_are_told_apart(self) -> None:
        self.alike(
            "struct a { void set(H d) { t.SET(d); } }; struct b { void set(int n); void f() { set(x()); } };",
            "struct a { static void set(H d) { t.SET(d); } }; struct b { static void set(int); }; void f() { b::set(x()); a::set(H(1)); }",
            "struct a { void set(H d) { t.SET(d); } void set(int n, int m); void f() { set(x(), y()); set(H(1)); } };",
            "struct a { T u; H d@; void f() { u.SET(d); } }; struct b { int d; int u; void f() { g(d + u); } };",
            "void f() { auto* u = new (p) T(c, H(1)); u->SET(H(2)); T* v = new T{c, H(1)}; v->~deadline(); }",
            "void f() { auto u = std::allocate_shared<T>(a, c); u->SET(H(1)); auto v = std::make_unique<T>(c, H(1)); }",
            "void f() { for (T* u : all) u->SET(H(1)); for (const auto& [k, v] : map) v->cancel(); }",
            "void f(std::pair<int, T>& p) { p.second.SET(H(1)); }",
            "std::map<int, std::shared_ptr<T>> m; void f() { m[1]->SET(H(1)); m.find(2)->second->SET(H(1)); m.erase(1); }",
            "struct a { T u; }; void f(std::shared_ptr<a> p, std::vector<a*> v) { p->u.SET(H(1)); v[0]->u.SET(H(1)); }",
            "struct a { T u; a* next; a& self(); }; void f(a& x) { x.next->next->u.SET(H(1)); x.self().self().u.SET(H(2)); }",
        )
        for old, new in (
            ("d.total_seconds()", "std::chrono::duration_cast<std::chrono::seconds>(d).count()"),
            ("d.is_negative()", "(d.count() < 0)"),
        ):
            text = "template <class X> long n(X d) {{ return {}; }}\nvoid f(H h) {{ t.SET(h); n(h); }}\n"
            before, after = (self.sides(text.format(side))[i] for i, side in enumerate((old, new)))
            text, left, _ = self.run_asio(self.TIMER.format("deadline") + before)
            self.assertEqual((text, left), (self.TIMER.format("steady") + after, []))

    def test_what_else_needs_dates_keeps_their_includes_and_directives(self) -> None:
        head = "#include <boost/asio/{}_timer.hpp>\n#include <boost/date_time.hpp>\n"
        timer = "void f(net::{}_timer& t) {{ t.cancel(); }}\n"
        for names in (
            "using namespace boost::posix_time;\nvoid g(auto p) { log << to_simple_string(p); }\n",
            "using namespace boost::gregorian;\nvoid g() { date d; }\n",
            "namespace gr = boost::gregorian;\n",
        ):
            after, left, _ = self.run_asio(head.format("deadline") + names + timer.format("deadline"))
            self.assertEqual((after, left), (head.format("steady") + names + timer.format("steady"), []))
        text = "#ifdef A\n#include <boost/asio/{}_timer.hpp>\n#else\n#include <boost/asio/steady_timer.hpp>\n#endif\n"
        after, _, _ = self.run_asio(text.format("deadline") + timer.format("deadline"))
        self.assertEqual(after, text.format("steady") + timer.format("steady"))
        text = "#include <boost/asio/deadline_timer.hpp>\n#include <boost/date_time.hpp>\n"
        self.write(text, "other.hpp")
        after, left, _ = self.run_asio(text)
        self.assertEqual((after, left), (text, []))
        run = self.run_tool("--to", "asio", ".")
        self.assertEqual(run.stdout, "0 files changed, 0 places left to you\n")

    def test_all_that_a_timer_touches_stays_if_something_is_undecided(self) -> None:
        d = "{p}time_duration d;\n"
        self.keeps("void f() { t.expires_from_now(d); library(d); }", "4: library takes d", first=d)
        self.keeps("void f() { t.expires_from_now(d); log << d * 2; }", "4: prints d * 2:", first=d)
        self.keeps("void f() { t.expires_from_now(d); d.fractional_seconds(); }", "4: fractional_seconds() of", first=d)
        self.keeps("void f() { t.expires_from_now(n()); }", "3: these files do not say what n() is")
        self.keeps(
            "void f() { t.expires_at({p}second_clock::local_time()); }",
            "3: {p}second_clock::local_time() is local time",
        )
        self.keeps(
            "void f() { t.expires_from_now({p}duration_from_string(s)); }", "do not say what {p}duration_from_string(s)"
        )
        self.keeps("void f({p}seconds s) { s /= 2; t.expires_from_now(s); }", "a quotient of seconds")
        self.keeps("void f({p}seconds s) { s += {p}milliseconds(2); t.expires_from_now(s); }", "counts in seconds")
        self.keeps(
            "struct a { {p}ptime p; void f() { if (p < t.expires_at()) t.cancel(); } };",
            "p may be not_a_date_time here",
        )

    def test_a_call_is_converted_as_a_whole(self) -> None:
        head = "#include <boost/asio.hpp>\n"
        before = (
            "typedef boost::posix_time::time_duration span;\nspan f(int n) { return boost::posix_time::seconds(n); }\n"
            "struct a { span d() const; static span e; };\nspan a::e = span(0, 0, 2);\n"
            "void g(a& x) { net::deadline_timer t(c, f(1)); h(f(4).total_seconds(), x.d().total_milliseconds()); t.expires_from_now(x.d() + a::e); }\n"
        )
        after = (
            "typedef std::chrono::microseconds span;\nspan f(int n) { return std::chrono::seconds(n); }\n"
            "struct a { span d() const; static span e; };\nspan a::e = span(std::chrono::seconds(2));\n"
            "void g(a& x) { net::steady_timer t(c, f(1)); h(std::chrono::duration_cast<std::chrono::seconds>(f(4)).count(), "
            "std::chrono::duration_cast<std::chrono::milliseconds>(x.d()).count()); t.expires_after(x.d() + a::e); }\n"
        )
        text, left, _ = self.run_asio(head + before)
        self.assertEqual((text, left), (head + after, []))

    def test_a_code_that_others_can_read_is_cleared(self) -> None:
        clear = "ec.clear(); t.cancel();"
        for outside, body in (
            ("", "void f(error_code& ec) {{ {} }}\n"),
            ("", "struct a {{ error_code ec; void f() {{ {} }} }};\n"),
            ("error_code ec;\n", "void f() {{ {} }}\n"),
            ("", "void f() {{ error_code ec; auto g = [&ec] {{ {} }}; g(); if (ec) return; }}\n"),
            ("", "void f() {{ error_code ec; while (h(ec)) {{ {} }} }}\n"),
        ):
            text, left, _ = self.run_asio(self.TIMER.format("deadline") + outside + body.format("t.cancel(ec);"))
            self.assertEqual((text, left), (self.TIMER.format("steady") + outside + body.format(clear), []))
        after, _, _ = self.run_asio(self.TIMER.format("deadline") + "void f() { error_code ec; g(); t.cancel(ec); }\n")
        self.assertIn("void f() { g(); t.cancel(); }", after)
        after, _, _ = self.run_asio(self.TIMER.format("deadline") + "void f() { error_code ec; if (h(ec)) t.cancel(ec); }\n")
        self.assertIn("if (h(ec)) (ec.clear(), t.cancel()); }", after)
        self.keeps("void f() { t.cancel(h(1)); }", "3: an error_code from h(1)")

    def test_what_cannot_be_read_stays_with_all_that_it_may_be(self) -> None:
        infinite = "void f() { t.expires_at({p}pos_infin); t.expires_at(t.expires_at() + {p}seconds(1)); }"
        self.keeps(infinite, "3: this time may be infinite, and its sum would overflow")
        self.turns(
            "t.expires_at({p}pos_infin); t.expires_at(net::deadline_timer::traits_type::now() + {p}seconds(1));",
            "t.expires_at(({c}::time_point::max)()); t.expires_at(net::steady_timer::clock_type::now() + {s}seconds(1));",
        )
        self.keeps(
            "#ifdef A\nvoid f() { t.expires_from_now({p}hours(1));\n#else\nvoid f() {\n#endif\n}",
            "4: an #if divides a block here",
        )
        self.keeps(
            "struct a { net::deadline_timer u; };\nstruct b { net::steady_timer u; };\n"
            "void f() { x().u.expires_from_now({p}hours(1)); t = x().u; }",
            "5: u may be a member of another class here",
            "3: u stays a deadline_timer: u may be a member of another class here",
        )
        self.keeps(
            "#define TIMER net::deadline_timer\nvoid f() { TIMER u(c); u.expires_from_now({p}hours(1)); }",
            "3: the meaning of this deadline_timer cannot be read here",
            "4: this may be a timer that cannot be read in these files",
        )
        scale = "struct a {{ static {} int n = 2; void f() {{ t.expires_from_now({{p}}hours(1) * n); }} }};"
        self.keeps(scale.format("const"), "3: std::chrono multiplies by a reference: n must be inline, or constexpr")
        after, left, _ = self.run_asio(self.TIMER.format("deadline") + scale.format("constexpr").replace("{p}", self.PT))
        self.assertEqual((left, "t.expires_after(std::chrono::hours(1) * n)" in after), ([], True))
        self.keeps("void f({p}time_duration d) { t.expires_from_now(d); m[d] = 1; }", "3: m[] takes d, and these files")
        self.keeps(
            "void g({p}time_duration d) { t.expires_from_now(d); }\nvoid g(std::chrono::seconds);\nvoid f() { g({p}hours(1)); }",
            "5: an overload of g takes a duration of std::chrono already",
        )
        both = "using namespace std::chrono;\nusing namespace boost::posix_time;\n"
        self.keeps("void f() { t.expires_from_now(hours(1)); }", "5: these files do not say what hours(1) is", first=both)
        two = (
            "struct a { boost::asio::deadline_timer::time_type last(); };\nstruct b { int last(); };\n"
            "void f() { x().last().is_pos_infinity(); t.expires_at(x().last()); }"
        )
        why = "last may be a member of another class here"
        self.keeps(two, f"5: {why}", f"3: this stays a deadline_timer: {why}")
        self.keeps("template <class D> void f(D d) { t.expires_from_now(d / 2); }", "3: a quotient of a template's")
        self.keeps("void f({p}time_duration d) { t.expires_from_now(d); g(d.template f<1>()); }", "3: this expression cannot be read")

    def test_an_alias_counts_though_its_header_is_read_later(self) -> None:
        text = '#include "main.hpp"\nstatic timer t(c);\nvoid f() {{ t.{}; }}\n'
        self.write("#include <boost/asio/deadline_timer.hpp>\ntypedef boost::asio::deadline_timer timer;\n", "main.hpp")
        self.write(text.format("expires_from_now(boost::posix_time::hours(1))"), "main.cpp")
        run = self.run_tool("--to", "asio", ".")
        self.assertEqual(self.open_places(run), [])
        self.assertEqual((self.folder / "main.cpp").read_text(), text.format("expires_after(std::chrono::hours(1))"))

    def test_a_timer_of_another_class_is_changed_though_one_stays(self) -> None:
        text = "struct {0} {{ net::{1}_timer t; void f() {{ t.{2}; }} }};\n"
        head = "#include <boost/asio.hpp>\n"
        stays = text.format("a", "deadline", "expires_from_now(x())")
        after, left, _ = self.run_asio(
            head + stays + text.format("b", "deadline", "expires_from_now(boost::posix_time::hours(1))")
        )
        self.assertEqual(after, head + stays + text.format("b", "steady", "expires_after(std::chrono::hours(1))"))
        self.assertEqual([line.split(":")[0] for line in left], ["2"])

    def test_a_timer_with_traits_of_its_own_or_as_a_base_is_named(self) -> None:
        for text, reason in (
            ("net::basic_deadline_timer<mine> t(c);\n", "2: a basic_deadline_timer with traits of its own"),
            ("struct mine : net::deadline_timer { };\n", "2: mine derives from it"),
            ("other::deadline_timer t(c);\n", "2: what other is does not stand in these files"),
            ("deadline_timer t(c);\n", "2: deadline_timer has no namespace"),
        ):
            text = "#include <boost/asio/deadline_timer.hpp>\n" + text
            after, left, run = self.run_asio(text)
            self.assertEqual((after, run.returncode), (text, 1))
            self.assertIn(reason, " | ".join(left))
        after, left, _ = self.run_asio("net::basic_deadline_timer<boost::posix_time::ptime> t(c);\n")
        self.assertEqual((after, left), ("net::steady_timer t(c);\n", []))

    def test_templates_are_followed(self) -> None:
        head = "#include <boost/asio.hpp>\n"
        for before, after in (
            (
                "template <class T> void f(T& t) { t.expires_from_now(boost::posix_time::seconds(1)); }\n"
                "void g(net::deadline_timer& u) { f(u); }\n",
                "template <class T> void f(T& t) { t.expires_after(std::chrono::seconds(1)); }\n"
                "void g(net::steady_timer& u) { f(u); }\n",
            ),
            (
                "template <class T> struct a { T t; void f(typename T::duration_type d) { t.expires_from_now(d); } };\n"
                "a<net::deadline_timer> b; void g() { b.f(boost::posix_time::seconds(1)); }\n",
                "template <class T> struct a { T t; void f(typename T::duration d) { t.expires_after(d); } };\n"
                "a<net::steady_timer> b; void g() { b.f(std::chrono::seconds(1)); }\n",
            ),
            (
                "template <class T = net::deadline_timer> void f(T& t) { t.expires_from_now(boost::posix_time::hours(1)); }\n",
                "template <class T = net::steady_timer> void f(T& t) { t.expires_after(std::chrono::hours(1)); }\n",
            ),
        ):
            text, left, _ = self.run_asio(head + before)
            self.assertEqual((text, left), (head + after, []))

    def test_functions_and_constructors_hand_on_durations(self) -> None:
        head = "#include <boost/asio.hpp>\n"
        text = (
            "struct a {{ net::{0}_timer t; {1} d; explicit a({1} x) : t(c, x), d(x) {{}} {1} get() {{ return d; }} }};\n"
            "void f() {{ auto p = std::make_shared<a>({2}(1)); a b({2}(2)); g(new a({2}(3))); b.t.{3}(p->get()); }}\n"
            "void g(a* x, {1} y = {2}(4)) {{ auto h = [x]({1} z) {{ x->t.{3}(z); }}; h(y); h({2}(5)); }}\n"
        )
        old = text.format(
            "deadline", "boost::posix_time::time_duration", "boost::posix_time::seconds", "expires_from_now"
        )
        new = text.format("steady", "std::chrono::microseconds", "std::chrono::seconds", "expires_after")
        after, left, _ = self.run_asio(head + old)
        self.assertEqual(left, [])
        self.assertEqual(after, head + new.replace("microseconds d;", "microseconds d{};"))

    def test_a_steady_timer_beside_it_stays(self) -> None:
        text = "#include <boost/asio.hpp>\nstruct a { net::steady_timer s; net::deadline_timer d; void f() { s.expires_from_now(x); d.cancel(); } };\n"
        after, left, _ = self.run_asio(text)
        self.assertEqual((after, left), (text.replace("deadline_timer", "steady_timer"), []))

    def test_a_header_is_included_for_a_name_that_came_from_another(self) -> None:
        after, left, _ = self.run_asio("#include <boost/asio/ip/tcp.hpp>\n#include <map>\nnet::deadline_timer* t;\n")
        head = "#include <boost/asio/ip/tcp.hpp>\n#include <boost/asio/steady_timer.hpp>\n#include <map>\n"
        self.assertEqual((after, left), (head + "net::steady_timer* t;\n", []))

    def test_to_pawl_makes_it_a_timer_of_pawl_at_once(self) -> None:
        self.becomes(
            "#include <boost/asio/deadline_timer.hpp>\nnet::deadline_timer t(c, boost::posix_time::seconds(1));\n",
            "#include <pawl/steady_timer.hpp>\npawl::steady_timer t(c, std::chrono::seconds(1));\n",
        )
        self.write(
            "#include <boost/asio/deadline_timer.hpp>\n#include <boost/date_time.hpp>\nnet::deadline_timer t(c, x());\n"
            "net::deadline_timer u(c);\nother::steady_timer v;\n"
        )
        for arguments, lines in ((["--dry-run"], ["3", "5"]), ([], ["5", "7"])):
            run = self.run_tool(*arguments, "main.cpp")
            self.assertEqual([line.split(":")[1] for line in self.open_places(run)], lines, run.stdout)

    def test_to_asio_leaves_other_timers_and_check_only_asks(self) -> None:
        text = "#include <boost/asio/deadline_timer.hpp>\nnet::deadline_timer t(c);\nother::steady_timer u;\n"
        path = self.write(text)
        run = self.run_tool("--to", "asio", "--check", "main.cpp")
        self.assertEqual(
            (run.returncode, run.stdout), (1, "main.cpp: would change\n1 file to change, 0 places left to you\n")
        )
        self.assertEqual(path.read_text(), text)
        self.run_tool("--to", "asio", "main.cpp")
        self.assertEqual(path.read_text(), text.replace("deadline", "steady"))
        self.assertEqual(self.run_tool("--to", "asio", "--check", "main.cpp").returncode, 0)

    def test_nine_tenths_of_the_lines_of_the_programs_change(self) -> None:
        lines = left = 0
        for fixture in FIXTURES:
            if fixture.name.startswith("to_asio"):
                for path in (fixture / "before").iterdir():
                    words = r"deadline_timer|posix_time|expires_from_now|expires_at\(\)|total_\w+seconds|time_duration|cancel\(ec\)"
                    lines += sum(bool(re.search(words, line)) for line in path.read_text().splitlines())
                left += (fixture / "left.txt").read_text().count("\n")
        self.assertGreater(lines, 130)
        self.assertLessEqual(left, lines // 10)


class Suggestions(MigrateTest):
    """Each program that must not be named differs in one place from one that is."""

    PROGRAM = """#include <boost/asio.hpp>
using boost::asio::steady_timer;
struct session {
    explicit session(boost::asio::io_context& c) : sent{0}, idle(c) {}
    void read() {
        idle.expires_after(30s);
        idle.async_wait([this](error_code ec) {
            if (ec == boost::asio::error::operation_aborted) return;
            close();
        });
    }
    void stop() { idle.cancel(); }
    int sent;
    steady_timer idle;
};
"""
    IF = "if (ec == boost::asio::error::operation_aborted) return;"
    LAMBDA = PROGRAM[PROGRAM.index("[this]") : PROGRAM.index(");\n    }\n    void stop")]
    NAMED = (
        "main.cpp:7: idle could be a pawl::alarm: idle(executor, [this] { ... }), idle.arm_after(d) to start and to "
        "move it, idle.disarm() for cancel(); see doc/alarms.md"
    )

    def suggested(self, text: str = PROGRAM, **files: str) -> list[str]:
        self.write(text)
        for name, other in files.items():
            self.write(other, f"{name}.hpp")
        before = self.files()
        run = self.run_tool("--suggest", ".")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(self.files(), before)
        *named, count = run.stdout.splitlines()
        self.assertEqual(count, f"{len(named)} suggestion" + "s" * (len(named) != 1))
        return named

    def replaced(self, *pairs: tuple[str, str]) -> str:
        text = self.PROGRAM
        for old, new in pairs:
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        return text

    def test_a_timeout_that_is_set_awaited_and_cancelled_is_named(self) -> None:
        self.assertEqual(self.suggested(), [self.NAMED])

    def test_a_coarse_timer_and_an_alias_are_named(self) -> None:
        named = self.suggested(self.replaced(("    steady_timer idle;", "    pawl::coarse_timer idle;")))
        self.assertIn("could be a pawl::coarse_alarm: ", named[0])
        named = self.suggested(
            self.replaced(("using boost::asio::steady_timer;", "using timer = net::steady_timer;"), ("    steady_timer idle;", "    timer idle;"))
        )
        self.assertEqual(named, [self.NAMED])

    def test_a_timer_that_is_set_in_two_places_is_named(self) -> None:
        named = self.suggested(self.replaced(("idle.cancel()", "idle.expires_after(60s)")))
        self.assertEqual(named, [self.NAMED.replace(", idle.disarm() for cancel()", "")])

    def test_a_member_function_in_another_file_is_read(self) -> None:
        for bound in (
            "std::bind(&session::on_idle, this, std::placeholders::_1)",
            "boost::bind(&session::on_idle, shared_from_this(), boost::asio::placeholders::error)",
            "beast::bind_front_handler(&session::on_idle, shared_from_this())",
            "net::bind_executor(strand_, std::bind_front(&session::on_idle, this))",
        ):
            program = self.replaced((self.LAMBDA, bound))
            header = "void session::on_idle(const error_code& ec) { if (ec) return; close(); }\n"
            named = self.suggested(program, on_idle=header)
            self.assertEqual(named, [self.NAMED.replace(" ... ", " on_idle(); ")], bound)
            self.assertEqual(self.suggested(program, on_idle=header.replace("if (ec) return;", "")), [], bound)

    def test_a_handler_that_is_bound_in_two_ways_is_not_named(self) -> None:
        bound = "boost::bind(&session::on_idle, shared_from_this(), boost::asio::placeholders::error, {})"
        again = f"idle.expires_after(1s); idle.async_wait({bound.format('n + 1')});"
        handler = f"    void on_idle(const error_code& ec, int n) {{ {self.IF} {again} }}\n    void stop()"
        program = self.replaced((self.LAMBDA, bound.format("1")), ("    void stop()", handler))
        self.assertEqual(self.suggested(program), [])

    def test_a_handler_that_does_nothing_when_it_is_cancelled_is_known(self) -> None:
        for same in (
            "if (ec) return;",
            "if (ec.failed()) { return; }",
            "if (boost::asio::error::operation_aborted == ec || stopped()) return;",
            "auto self = weak.lock(); if (!self) return; if (ec) return;",
        ):
            self.assertEqual(len(self.suggested(self.replaced((self.IF, same)))), 1, same)
        for same in (
            "if (!ec) close();",
            "if (not ec && open()) { close(); log(); }",
            "if (ec != net::error::operation_aborted) close();",
        ):
            self.assertEqual(len(self.suggested(self.replaced((f"{self.IF}\n            close();", same)))), 1, same)

    def test_a_handler_that_acts_on_a_cancellation_is_not_named(self) -> None:
        for other in (
            "if (ec) { next(); return; }",
            "if (ec) return next();",
            "if (ec && closed()) return;",
            "if (ec == boost::asio::error::timed_out) return;",
            "if (ec != boost::asio::error::operation_aborted) return; next();",
            "if (!ec) close(); else next();",
            "if (!ec || closed()) close();",
            "if (!ec) close(); next();",
            "if (stopped || !ec) return; if (ec) return;",
            "next(); if (ec) return;",
            "if constexpr (debug) return; if (ec) return;",
            "",
        ):
            self.assertEqual(self.suggested(self.replaced((f"{self.IF}\n            close();", other))), [], other)
        for parameter in ("error_code", "auto", ""):
            self.assertEqual(self.suggested(self.replaced(("(error_code ec)", f"({parameter})"))), [], parameter)

    def test_a_wait_whose_handler_is_not_to_be_read_is_not_named(self) -> None:
        for other in (
            "use_awaitable",
            "boost::asio::as_tuple(boost::asio::use_awaitable)",
            "handler",
            "track(%s)" % self.LAMBDA,
            self.LAMBDA.replace("[this]", "[this, id]"),
            self.LAMBDA.replace("[this]", "[=]"),
            "std::bind(&session::on_idle, this, id, std::placeholders::_1)",
            "std::bind(&session::unknown, this, std::placeholders::_1)",
        ):
            header = "void session::on_idle(error_code ec) { if (ec) return; close(); }\n"
            self.assertEqual(self.suggested(self.replaced((self.LAMBDA, other)), on_idle=header), [], other)
        second = f"idle.async_wait({self.LAMBDA.replace('close()', 'next()')}); idle.cancel()"
        self.assertEqual(self.suggested(self.replaced(("idle.cancel()", second))), [])

    def test_a_timer_that_is_used_in_another_way_is_not_named(self) -> None:
        for use in (
            "co_await pawl::cancel_after(idle, 30s, read())",
            "socket.async_read_some(b, boost::asio::cancel_after(idle, 30s, token))",
            "restart(idle)",
            "auto* p = &idle",
            "auto& t = idle",
            "other = std::move(idle)",
            "idle.cancel_one()",
            "idle.wait()",
            "idle.expires_after",
            "post([&t = idle] { t.cancel(); })",
        ):
            self.assertEqual(self.suggested(self.replaced(("idle.cancel();", f"idle.cancel(); {use};"))), [], use)
        for outside in ("void f(session& s) { g(s.idle); }\n", "#define IDLE(s) (s).idle\n"):
            self.assertEqual(self.suggested(f"#include \"s.hpp\"\n{outside}", s=self.PROGRAM), [], outside)
        self.assertEqual(len(self.suggested('#include "s.hpp"\nvoid f(session& s) { s.idle.cancel(); }\n', s=self.PROGRAM)), 1)

    def test_a_timer_of_another_kind_is_not_named(self) -> None:
        for other in ("pawl::ring_timer idle", "steady_timer& idle", "std::optional<steady_timer> idle"):
            self.assertEqual(self.suggested(self.replaced(("    steady_timer idle", f"    {other}"))), [], other)

    def test_a_timer_that_only_its_handler_sets_again_is_not_named(self) -> None:
        self.assertEqual(self.suggested(self.replaced(("idle.cancel();", ""))), [])
        self.assertEqual(self.suggested(self.replaced(("idle.cancel();", ""), ("close();", "idle.expires_after(1s);"))), [])
        self.assertEqual(self.suggested(self.replaced(("idle.expires_after(30s);", ""))), [])

    def test_members_of_the_same_name_are_told_apart_by_their_classes(self) -> None:
        other = "struct other { void f() { g(idle); } steady_timer idle; };\n"
        self.assertEqual(self.suggested(self.PROGRAM + other), [self.NAMED])
        self.assertEqual(self.suggested(self.PROGRAM + other + "void f(session& s) { s.idle.cancel(); }\n"), [])

    def test_a_source_that_ends_anywhere_is_read(self) -> None:
        for end in range(0, len(self.PROGRAM), 3):
            self.suggested(self.PROGRAM[:end])

    def test_the_help_names_it_and_a_bad_path_is_an_error(self) -> None:
        self.assertIn("--suggest", self.run_tool("--help").stdout)
        self.assertEqual(self.run_tool("--suggest", "nowhere").returncode, 2)


class Package(MigrateTest):
    def test_the_package_has_the_version_of_pawl_and_its_command_runs_main(self) -> None:
        root = HERE.parent.parent
        project = tomllib.loads((root / "tools" / "pyproject.toml").read_text())
        header = (root / "include" / "pawl" / "version.hpp").read_text()
        self.assertEqual(
            project["project"]["version"], ".".join(re.findall(r"^#define PAWL_VERSION_\w+ (\d+)$", header, re.M))
        )
        module, function = project["project"]["scripts"]["pawl-migrate"].split(":")
        files = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
        self.assertEqual(files, {"migrate": f"{module}.py"})
        self.assertTrue(callable(getattr(tool, function)))


class AnyText(MigrateTest):
    def test_a_source_that_ends_anywhere_is_read_to_its_end(self) -> None:
        for fixture in FIXTURES:
            text = (fixture / "before" / "main.cpp").read_text()
            for end in range(0, len(text), 61 if fixture.name.startswith("to_asio") else 13):
                self.write(text[:end], f"{fixture.name}/{end}.cpp")

        run = self.run_tool("--dry-run", ".")

        self.assertIn(run.returncode, (0, 1), run.stderr)
        self.assertEqual(run.stderr, "")

    def test_a_large_source_takes_no_time_that_grows_with_its_square(self) -> None:
        line = "net::steady_timer* t; other::system_timer* u;\n"
        self.write(INCLUDE + line * 20_000)

        run = self.run_process("main.cpp", timeout=120)

        self.assertEqual(run.stdout.count("left to you: what other is"), 20_000)
        self.assertEqual((self.folder / "main.cpp").read_text().count("pawl::steady_timer*"), 20_000)


class BadInput(MigrateTest):
    """Each error is one sentence, and changes no file, not even a correct one."""

    def setUp(self) -> None:
        super().setUp()
        self.write(INCLUDE + "net::steady_timer* t;\n", "right.cpp")

    def refused(self, sentence: str, *arguments: str, **options) -> None:
        before = self.files()

        run = self.run_process(*arguments, **options) if options else self.run_tool(*arguments)

        self.assertEqual((run.returncode, run.stdout, run.stderr), (2, "", f"migrate: {sentence}\n"))
        self.assertEqual(self.files(), before)

    def test_a_file_that_is_not_there(self) -> None:
        self.refused("none.cpp: there is no such file or folder", "right.cpp", "none.cpp")

    def test_a_folder_without_sources(self) -> None:
        (self.folder / "empty").mkdir()
        self.refused("no C++ source in empty", "empty")

    def test_no_argument(self) -> None:
        run = self.run_process()
        self.assertEqual(run.returncode, 2)
        self.assertIn("usage: migrate", run.stderr)

    def test_a_file_in_another_encoding(self) -> None:
        (self.folder / "latin.cpp").write_bytes(b"// \nnet::steady_timer t; // gr\xfcn\n")
        self.refused("latin.cpp:2: not UTF-8 (byte 0xfc); convert it, or leave it out", ".")
        (self.folder / "latin.cpp").write_bytes("net::steady_timer t;".encode("utf-16"))
        self.refused("latin.cpp: not UTF-8 (it has a byte 0); convert it, or leave it out", ".")

    def test_a_file_in_another_encoding_that_has_no_timer_is_no_hindrance(self) -> None:
        (self.folder / "latin.cpp").write_bytes(b"namespace n {} // gr\xfcn\n")
        run = self.run_tool(".")
        self.assertEqual(run.stdout, "right.cpp: written\n1 file changed, 0 places left to you\n")

    def as_nobody(self) -> dict:
        """Root may write every file."""
        if os.geteuid() != 0:
            return {}
        os.chmod(self.folder, 0o777)
        tool = self.folder / "migrate"
        shutil.copy(TOOL, tool)
        global_tool = str(tool)
        self.run_process = lambda *a, **o: subprocess.run(
            ["python3", global_tool, *a], cwd=self.folder, capture_output=True, check=False, encoding="utf-8", **o
        )
        return {"user": 65534, "env": {"PATH": "/usr/bin:/bin"}}

    def test_a_file_that_may_not_be_read(self) -> None:
        options = self.as_nobody()
        secret = self.write("net::steady_timer* t;\n", "secret.cpp")
        secret.chmod(0)
        before = self.folder.joinpath("right.cpp").read_bytes()

        run = self.run_process(".", **options)

        self.assertEqual((run.returncode, run.stderr), (2, "migrate: secret.cpp: Permission denied\n"))
        self.assertEqual(self.folder.joinpath("right.cpp").read_bytes(), before)

    def test_a_file_that_may_not_be_written(self) -> None:
        options = self.as_nobody()
        for file in self.folder.glob("*.cpp"):
            file.chmod(0o444)
        self.refused("right.cpp: no permission to write it", ".", **options)

    def test_a_folder_that_may_not_be_written(self) -> None:
        options = self.as_nobody()
        for file in self.folder.glob("*.cpp"):
            file.chmod(0o666)
        self.folder.chmod(0o555)
        self.refused("right.cpp: no permission to write to its folder", ".", **options)
        self.folder.chmod(0o777)

    def test_a_disk_that_is_full_loses_nothing(self) -> None:
        before = self.files()
        lines = "net::steady_timer* t;\n" * 2000
        self.write(INCLUDE + lines, "large.cpp")
        large = self.folder.joinpath("large.cpp").read_bytes()

        # No file may become longer than 8 KiB: the same error as when a quota is reached.
        run = subprocess.run(
            ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "-", sys.executable, str(TOOL), "."],
            cwd=self.folder, capture_output=True, check=False, encoding="utf-8",
        )  # fmt: skip

        self.assertEqual(run.returncode, 2)
        self.assertIn("migrate: large.cpp: File too large; 0 of 2 files are written", run.stderr)
        self.assertEqual(self.files(), {**before, "large.cpp": large})

    def test_the_mode_of_a_file_and_a_link_to_it_stay(self) -> None:
        path = self.folder / "right.cpp"
        path.chmod(0o754)
        (self.folder / "link.cpp").symlink_to("right.cpp")

        run = self.run_tool("link.cpp")

        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue((self.folder / "link.cpp").is_symlink())
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o754)
        self.assertEqual(path.read_text(), MIGRATED + "pawl::steady_timer* t;\n")

    def test_a_file_that_is_named_twice_is_changed_once(self) -> None:
        (self.folder / "link.cpp").symlink_to("right.cpp")
        (self.folder / "sub").symlink_to(".")

        run = self.run_tool("right.cpp", "link.cpp", "./right.cpp", "sub/right.cpp", ".")

        self.assertEqual(run.stdout, "right.cpp: written\n1 file changed, 0 places left to you\n")

    def test_links_in_folders_are_not_followed(self) -> None:
        outside = tempfile.TemporaryDirectory()
        self.addCleanup(outside.cleanup)
        for name in ("a.cpp", "folder/b.cpp"):
            path = pathlib.Path(outside.name, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("#include <vector>\nnet::steady_timer* t;\n")
        (self.folder / "link.cpp").symlink_to(path.parent.parent / "a.cpp")
        (self.folder / "folder").symlink_to(path.parent)
        (self.folder / "broken.cpp").symlink_to("none.cpp")

        run = self.run_tool(".")

        self.assertEqual(run.stdout, "right.cpp: written\n1 file changed, 0 places left to you\n")
        run = self.run_tool("folder")
        self.assertEqual(run.stdout, "folder/b.cpp: written\n1 file changed, 0 places left to you\n")
        self.assertEqual(path.read_text(), "#include <vector>\n" + MIGRATED + "pawl::steady_timer* t;\n")

    def test_hidden_folders_and_other_files_are_left_alone(self) -> None:
        for name in (".git/hook.cpp", "notes.txt", "a.c", "link/there.cpp"):
            self.write("#include <vector>\nnet::steady_timer* t;\n", name)
        before = self.files()

        self.run_tool("right.cpp", ".")

        changed = {name for name, data in self.files().items() if data != before[name]}
        self.assertEqual(changed, {"right.cpp", "link/there.cpp"})


if __name__ == "__main__":
    unittest.main()
