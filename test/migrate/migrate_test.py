#!/usr/bin/env python3
# Copyright (c) 2026 The Pawl authors
# SPDX-License-Identifier: BSL-1.0
"""Tests of tools/migrate: whole programs in fixtures/, of which CMake compiles both sides, and single cases.

A fixture has before/, the tool's output for it in after/, and the tool's list of open places in left.txt.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parent.parent / "tools" / "migrate"
FIXTURES = sorted(path for path in (HERE / "fixtures").iterdir() if path.is_dir())
INCLUDE = "#include <boost/asio/steady_timer.hpp>\n"
MIGRATED = "#include <pawl/steady_timer.hpp>\n"


class MigrateTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tool(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, str(TOOL), *arguments],
            cwd=self.folder,
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

    def contents(self, fixture: pathlib.Path) -> dict[str, str]:
        return {p.name: p.read_text() for p in sorted((self.folder / fixture.name).iterdir())}

    def test_a_program_becomes_what_its_fixture_says_and_what_is_left_is_listed(self) -> None:
        for fixture, after in self.each():
            run = self.run_tool(fixture.name)

            left = "".join(line for line in run.stdout.splitlines(keepends=True) if ": left to you: " in line)
            self.assertEqual(self.contents(fixture), after)
            self.assertEqual(left, (fixture / "left.txt").read_text())
            self.assertEqual((run.returncode, run.stderr), (1 if left else 0, ""))

    def test_a_migrated_program_is_changed_no_more_and_lists_the_same(self) -> None:
        for fixture, after in self.each():
            shutil.rmtree(self.folder / fixture.name)
            shutil.copytree(fixture / "after", self.folder / fixture.name)

            run = self.run_tool(fixture.name)

            left = (fixture / "left.txt").read_text()
            self.assertEqual(self.contents(fixture), after)
            self.assertEqual(run.stdout, f"{left}0 files changed, {left.count(chr(10))} places left to you\n")

    def test_a_dry_run_changes_nothing_and_its_diff_is_one_that_patch_takes(self) -> None:
        for fixture, after in self.each():
            before = self.contents(fixture)

            run = self.run_tool("--dry-run", fixture.name)

            self.assertEqual(self.contents(fixture), before)
            self.assertEqual(run.stdout.count(": left to you: "), (fixture / "left.txt").read_text().count("\n"))
            subprocess.run(
                ["git", "apply", "-p1", "-"], cwd=self.folder, input=run.stdout, check=True, encoding="utf-8"
            )
            self.assertEqual(self.contents(fixture), after)


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
        )

    def test_strings_comments_and_raw_strings_stay(self) -> None:
        self.stays(
            '// boost::asio::steady_timer \\\n   boost::asio::steady_timer\nauto a = "boost::asio::steady_timer \\" x";\n'
            '/* net::steady_timer */ auto b = u8R"(asio::steady_timer " )x" asio::cancel_after)"; auto c = \'"\';\n'
            "long d = 0x1'0p-3; // asio::system_timer\n#error boost::asio::steady_timer\n"
        )

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

        run = self.run_tool("--dry-run", "main.cpp")
        subprocess.run(["git", "apply", "-"], cwd=self.folder, input=run.stdout, check=True, encoding="utf-8")

        self.assertEqual(path.read_text(), MIGRATED + "pawl::steady_timer* t;")


class LeftToTheUser(MigrateTest):
    def test_a_deadline_timer_is_named_with_what_to_do(self) -> None:
        do = "std::chrono::seconds(5), expires_from_now(d) becomes expires_after(d)"
        self.lists(
            "#include <boost/asio/deadline_timer.hpp>\nboost::asio::deadline_timer t(c);\nnet::basic_deadline_timer<X> u(c);\n",
            f"1: {do}",
            f"2: {do}",
            f"3: {do}",
        )

    def test_what_pawl_does_not_have_is_named(self) -> None:
        self.lists("net::cancel_after_t<X, C> t;\n", "1: Pawl has no cancel_after_t")

    def test_a_forward_declaration_is_named(self) -> None:
        self.lists(
            "namespace boost { namespace asio {\nclass steady_timer;\n} }\n", "2: include <pawl/steady_timer.hpp>"
        )

    def test_standalone_asio_is_named(self) -> None:
        self.lists(
            "#include <asio.hpp>\n#include <asio/steady_timer.hpp>\nasio::steady_timer t(c);\n",
            "2: standalone",
            "3: standalone",
        )

    def test_a_name_without_a_namespace_is_named(self) -> None:
        self.lists("void f(steady_timer& t);\n", "1: steady_timer has no namespace")

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
        self.lists("#if __has_include(<boost/asio/cancel_after.hpp>)\n#endif\n", "1: asks whether Asio has this header")


class AnyText(MigrateTest):
    def test_a_source_that_ends_anywhere_is_read_to_its_end(self) -> None:
        for fixture in FIXTURES:
            text = (fixture / "before" / "main.cpp").read_text()
            for end in range(0, len(text), 7):
                self.write(text[:end], f"{fixture.name}/{end}.cpp")

        run = self.run_tool("--dry-run", ".")

        self.assertIn(run.returncode, (0, 1), run.stderr)
        self.assertEqual(run.stderr, "")

    def test_a_large_source_takes_no_time_that_grows_with_its_square(self) -> None:
        line = "net::steady_timer* t; other::system_timer* u;\n"
        self.write(INCLUDE + line * 20_000)

        run = self.run_tool("main.cpp", timeout=120)

        self.assertEqual(run.stdout.count("left to you: what other is"), 20_000)
        self.assertEqual((self.folder / "main.cpp").read_text().count("pawl::steady_timer*"), 20_000)


class BadInput(MigrateTest):
    """Each error is one sentence, and changes no file, not even a correct one."""

    def setUp(self) -> None:
        super().setUp()
        self.write(INCLUDE + "net::steady_timer* t;\n", "right.cpp")

    def refused(self, sentence: str, *arguments: str, **options) -> None:
        before = self.files()

        run = self.run_tool(*arguments, **options)

        self.assertEqual((run.returncode, run.stdout, run.stderr), (2, "", f"migrate: {sentence}\n"))
        self.assertEqual(self.files(), before)

    def test_a_file_that_is_not_there(self) -> None:
        self.refused("none.cpp: there is no such file or folder", "right.cpp", "none.cpp")

    def test_a_folder_without_sources(self) -> None:
        (self.folder / "empty").mkdir()
        self.refused("no C++ source in empty", "empty")

    def test_no_argument(self) -> None:
        run = self.run_tool()
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
        self.assertEqual(run.stdout, "right.cpp: written\n1 files changed, 0 places left to you\n")

    def as_nobody(self) -> dict:
        """Root may write every file."""
        if os.geteuid() != 0:
            return {}
        os.chmod(self.folder, 0o777)
        tool = self.folder / "migrate"
        shutil.copy(TOOL, tool)
        global_tool = str(tool)
        self.run_tool = lambda *a, **o: subprocess.run(
            ["python3", global_tool, *a], cwd=self.folder, capture_output=True, check=False, encoding="utf-8", **o
        )
        return {"user": 65534, "env": {"PATH": "/usr/bin:/bin"}}

    def test_a_file_that_may_not_be_read(self) -> None:
        options = self.as_nobody()
        secret = self.write("net::steady_timer* t;\n", "secret.cpp")
        secret.chmod(0)
        before = self.folder.joinpath("right.cpp").read_bytes()

        run = self.run_tool(".", **options)

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

    def test_hidden_folders_and_other_files_are_left_alone(self) -> None:
        for name in (".git/hook.cpp", "notes.txt", "a.c", "link/there.cpp"):
            self.write("#include <vector>\nnet::steady_timer* t;\n", name)
        before = self.files()

        self.run_tool("right.cpp", ".")

        changed = {name for name, data in self.files().items() if data != before[name]}
        self.assertEqual(changed, {"right.cpp", "link/there.cpp"})


if __name__ == "__main__":
    unittest.main()
