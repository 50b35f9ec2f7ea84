#!/usr/bin/env python3
"""What the pages say against what the programs print: plants in a small tree what each check must find."""

import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest
import unittest.mock

from tree import ROOT, Tree
import check_docs
import draw_schedules
import run_pages


class PagesTest(unittest.TestCase):
    """Tests tools/run_pages.py and what it treats as equal."""

    def run_page(self, text):
        with tempfile.TemporaryDirectory(prefix="muster_page_") as scratch:
            page = pathlib.Path(scratch) / "page.md"
            page.write_text(text, encoding="utf-8")
            text, results = run_pages.run_group([page])[page]
            return list(run_pages.differences("page.md", results)), run_pages.rewritten(text, results)

    def block(self, words, body):
        return f"words\n\n<!-- run {words}-->\n```console\n{body}\n```\n\nmore\n"

    def test_what_the_page_says_is_what_is_printed(self):
        self.assertEqual(self.run_page(self.block("", "$ echo a\na"))[0], [])

    def test_something_else_is_found_and_recorded(self):
        wrong, text = self.run_page(self.block("", "$ echo a; echo b >&2\na\nc"))
        self.assertEqual(len(wrong), 1)
        self.assertIn("-c\n+b", wrong[0])
        self.assertEqual(text, self.block("", "$ echo a; echo b >&2\na\nb"))

    def test_times_and_decimals_may_differ_whole_numbers_may_not(self):
        said = "$ echo 12:00:00.123 I loss 0.25 at 7\n13:01:02.456 I loss 0.5 at %d"
        self.assertEqual(self.run_page(self.block("", said % 7))[0], [])
        self.assertEqual(len(self.run_page(self.block("", said % 8))[0]), 1)
        self.assertEqual(self.run_page(self.block("numbers vary ", said % 8))[0], [])

    def test_what_is_the_same_is_left_as_it_was_recorded(self):
        text = self.block("", "$ echo 0.25\n0.5")
        self.assertEqual(self.run_page(text), ([], text))

    def test_exit_codes_order_and_lines(self):
        self.assertEqual(len(self.run_page(self.block("", "$ exit 2"))[0]), 1)
        self.assertEqual(self.run_page(self.block("exit: 2 ", "$ exit 2"))[0], [])
        self.assertEqual(self.run_page(self.block("any order ", "$ echo a; echo b\nb\na"))[0], [])
        self.assertEqual(self.run_page(self.block("only: ^a ", "$ echo a1; echo b\na1"))[0], [])

    def test_lines_that_are_chosen_but_never_come(self):
        wrong = self.run_page(self.block("only: ^c ", "$ echo a"))[0]
        self.assertEqual(len(wrong), 1)
        self.assertIn("printed no line `^c`", wrong[0])

    def test_a_command_of_several_lines(self):
        self.assertEqual(self.run_page(self.block("", "$ echo a \\\n  'b\n  c'\na b\n  c"))[0], [])

    def test_ports_and_folder_are_others_and_written_as_in_the_page(self):
        said = "$ echo 127.0.0.1:2222 /tmp/tutorial/x $((PORT == 2222))\n127.0.0.1:2222 /tmp/tutorial/x 0"
        said = said.replace("PORT", "$(echo 127.0.0.1:2222 | cut -d: -f2)")
        self.assertEqual(self.run_page(self.block("", said))[0], [])

    def test_what_is_set_in_ones_own_shell_is_not_seen(self):
        with unittest.mock.patch.dict("os.environ", {"TF_CONFIG": "{}", "MUSTER_TRACE": "x"}):
            self.assertEqual(self.run_page(self.block("", "$ echo a$TF_CONFIG$MUSTER_TRACE\na"))[0], [])

    def test_a_terminal_of_its_own_goes_on_while_the_others_run(self):
        text = self.block("in: one ", "$ mkdir -p /tmp/tutorial; mkfifo /tmp/tutorial/p; cat /tmp/tutorial/p\nhello")
        text += self.block("", "$ until [ -p /tmp/tutorial/p ]; do :; done; echo hello > /tmp/tutorial/p")
        self.assertEqual(self.run_page(text)[0], [])


class DocsTest(Tree):
    def check(self, write=False):
        return check_docs.problems(self.root, write)

    def setUp(self):
        super().setUp()
        self.write("examples/e.cc", "int a;\n// [part]\n  int b;\n// [/part]\n")
        self.write("muster/base/version.h", 'inline constexpr char kMusterVersion[] = "0.2.0";\n')
        self.write("CHANGELOG.md", "## [Unreleased]\n\n## [0.2.0] - 2026-11-24\n\n## [0.1.0] - 2026-10-01\n")
        self.text = "# D\n<!-- cut from examples/e.cc#part -->\n```cpp\n%s\n```\n"

    def test_the_same_words(self):
        self.write("README.md", self.text % "int b;")
        self.assertEqual(list(self.check()), [])

    def test_other_words_and_mending_them(self):
        self.write("README.md", self.text % "int c;")
        self.assert_one(self.check(), "README.md:2", "differs from examples/e.cc")
        self.assertEqual(list(self.check(write=True)), [])
        self.assertIn("int b;", (self.root / "README.md").read_text())
        self.assertEqual(list(self.check()), [])

    def test_the_lines_by_which_two_files_differ(self):
        self.write("examples/f.cc", "int a;\n// [part]\nint b;\nint more;\n// [/part]\n")
        text = "<!-- differs: examples/e.cc#part to examples/f.cc#part -->\n```diff\n%s```\n"
        self.write("README.md", text % "  int b;\n+ int more;\n")
        self.assertEqual(list(self.check()), [])
        self.write("README.md", text % "+ int b;\n")
        self.assert_one(self.check(), "README.md:1", "differs from examples/e.cc#part and examples/f.cc#part")
        self.assertEqual(list(self.check(write=True)), [])
        self.assertIn("+ int more;", (self.root / "README.md").read_text())
        self.write("README.md", text.replace("e.cc#part", "g.cc") % "")
        self.assert_one(self.check(), "no file examples/g.cc")

    def test_a_region_or_a_file_that_isnt_there(self):
        self.write("README.md", self.text.replace("#part", "#other") % "int b;")
        self.assert_one(self.check(), "[other]")
        self.write("README.md", self.text.replace("e.cc#part", "f.cc") % "int b;")
        self.assert_one(self.check(), "no file examples/f.cc")

    def test_a_file_that_isnt_there(self):
        self.write("README.md", "`examples/e.cc`, `examples/`, `e.cc`, `muster/base/NAME.h`, `torch/torch.h`\n")
        self.assertEqual(list(self.check()), [])
        self.write("README.md", "`examples/f.cc`\n")
        self.assert_one(self.check(), "names examples/f.cc")
        self.write("README.md", "`f.cc`\n")
        self.assert_one(self.check(), "names f.cc")
        self.write("README.md", "`muster/base/f.{h,cc}`\n")
        self.assert_one(self.check(), "names muster/base/f.")

    def test_a_mark_without_a_block(self):
        self.write("README.md", "<!-- cut from examples/e.cc -->\nwords\n")
        self.assert_one(self.check(), "without a code block")

    def test_output_that_no_command_is_recorded_for(self):
        block = "<!-- run%s -->\n```console\n%s\n```\n"
        self.write("docs/tutorial/a.md", block % (" exit: 2; only: a|b; any order", "$ echo a\na"))
        self.assertEqual(list(self.check()), [])
        self.write("docs/tutorial/a.md", "```console\n$ echo a\na\n```\n")
        self.assert_one(self.check(), "nothing would check whether it is true")
        self.write("docs/tutorial/a.md", block % ("", "a"))
        self.assert_one(self.check(), "begins with `$ `")
        self.write("docs/tutorial/a.md", block % (" sometimes", "$ echo a"))
        self.assert_one(self.check(), "`run sometimes`")
        self.write("docs/tutorial/a.md", block % (" in: worker-0", "$ echo a"))
        self.assert_one(self.check(), "`run in: worker-0`")
        self.write("docs/tutorial/a.md", block % (" only: a", "$ echo a"))
        self.assert_one(self.check(), "shows none of its lines `a`")
        self.write("docs/tutorial/a.md", "<!-- run -->\nwords\n")
        self.assert_one(self.check(), "without a console block")

    def test_a_changelog_that_stops_at_another_version(self):
        self.write("CHANGELOG.md", "## [Unreleased]\n\n## [0.1.0] - 2026-10-01\n")
        self.assert_one(self.check(), "newest version is 0.1.0", "says 0.2.0")
        self.write("CHANGELOG.md", "## [Unreleased]\n")
        self.assert_one(self.check(), "newest version is missing")

    def test_an_error_that_no_program_says(self):
        self.write("muster/base/e.cc", '''
            // denied your key
            f(StrCat(host, " denies the login; is it "
                           "your key (ssh-copy-id ", host), R"(takes "no" commands)");
            f(StrCat("its ", job, " is lost", here ? " here" : "")); its("its host");
            f("has no");
            ''')
        rows = "## What an error means\n\n| what is said | what to do |\n|---|---|\n| %s | look |\n\n## More\n\n| a b | c |\n"
        for said in ("… denies the login; is it your key", "denies the login (h1)", "takes \"no\" commands", "srun: no"):
            self.write("docs/x.md", rows % said)
            self.assertEqual(list(self.check()), [], said)
        for said in ("its job 17 of Slurm is lost: …", "… denies the login: is it"):
            self.write("docs/x.md", rows % said)
            self.assertEqual(list(self.check()), [], said)
        for said in ("is lost", "its host … is lost", "is lost; has no"):
            self.write("docs/x.md", rows % said)
            self.assert_one(self.check(), f"`{said}` has only words that many errors have")
        self.write("docs/x.md", rows % "denies the login; denied your key")
        self.assert_one(self.check(), "docs/x.md", "no program says `denied your key`")
        self.write("docs/x.md", rows % "17 commands")
        self.assert_one(self.check(), "has no two words")

    def test_a_dead_link(self):
        self.write("README.md", "[here](docs/x.md), [there](https://example.org), [e](examples/e.cc)\n")
        self.assert_one(self.check(), "docs/x.md")


class ExamplePagesTest(Tree):
    def test_a_page_says_what_its_program_and_script_say(self):
        scripts = sorted((ROOT / "examples").glob("*/run.sh"))
        self.assertGreater(len(scripts), 10)
        for script in scripts:
            page = (script.parent / "README.md").read_text(encoding="utf-8")
            program = (script.parent / "main.cc").read_text(encoding="utf-8")
            with self.subTest(script.parent.name):
                for cluster in re.findall(r'/muster" run (.*?) -- ', script.read_text(encoding="utf-8")):
                    self.assertIn(f"`muster run {cluster} -- ", page)
                for steps in re.findall(r"\.steps = (\d+)", program):
                    self.assertIn(f"`--steps={steps}`", page)
                for name, value in re.findall(r'\{"(\w+)", "([^"]+)"\}', program):
                    row = re.search(rf"^\| `--{name}` \|([^|]*)\|([^|]*)\|", page, re.MULTILINE)
                    self.assertIsNotNone(row, name)
                    self.assertIn(f"`{value}`" if name.endswith("_rule") else value, row[1] if "the same" in row[2] else row[2])

    def test_the_pictures_are_those_that_are_drawn(self):
        self.assertEqual(draw_schedules.main(["--check", str(ROOT)]), 0)

    def test_a_picture_that_is_missing_or_differs(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(draw_schedules.main(["--check", str(self.root)]), 1)
            self.assertEqual(draw_schedules.main([str(self.root)]), 0)
            self.assertEqual(draw_schedules.main(["--check", str(self.root)]), 0)
            self.write("examples/agn/schedule.svg", "<svg/>")
            self.assertEqual(draw_schedules.main(["--check", str(self.root)]), 1)
        self.assertEqual(said.getvalue().count("examples/agn/schedule.svg: not what"), 2)


if __name__ == "__main__":
    unittest.main()
