#!/usr/bin/env python3
"""Plants in a small tree what each check must find, and expects it to fail; `./dev test tools` runs it."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402
import check_forbidden  # noqa: E402
import check_headers  # noqa: E402
import check_layers  # noqa: E402
import check_names  # noqa: E402
import check_public  # noqa: E402
import check_sizes  # noqa: E402
import check_tidy  # noqa: E402
import compile_commands  # noqa: E402
import draw_schedules  # noqa: E402
import run_benchmarks  # noqa: E402
import run_pages  # noqa: E402
import run_tests  # noqa: E402
import sources  # noqa: E402
import test_programs  # noqa: E402

LAYERS = """
base:
store: base
# --- the torch line ---
torch_bridge: base store
"""
CMAKE = "muster_layer(base)\nmuster_layer(store DEPS base)\nmuster_layer(torch_bridge DEPS base store LIBS torch)\n"


class Tree(unittest.TestCase):
    """A project of a few files in a temporary git repository."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="muster_tools_")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.git("init", "-q", "-b", "main")
        self.write("muster/LAYERS", LAYERS)
        self.write("muster/CMakeLists.txt", CMAKE)
        self.write("muster/base/a.h", "#pragma once\n")

    def git(self, *arguments, environment=None):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=self.root, check=True,
                       capture_output=True, env=dict(os.environ, **(environment or {})))

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(textwrap.dedent(text), encoding="utf-8")

    def assert_one(self, problems, *words):
        problems = list(problems)
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class LayersTest(Tree):
    def check(self):
        return check_layers.problems(self.root)

    def test_an_orderly_tree_is_right(self):
        self.write("muster/store/s.cc", '#include "muster/base/a.h"\n// #include "muster/torch_bridge/t.h"\n')
        self.write("muster/torch_bridge/t.cc", '#include <torch/torch.h>\n#include "muster/store/s.h"\n')
        self.assertEqual(list(self.check()), [])

    def test_an_include_upwards(self):
        self.write("muster/base/b.cc", '\n#include "muster/store/s.h"\n')
        self.assert_one(self.check(), "muster/base/b.cc:2", "muster/store/s.h", "lets base include nothing")

    def test_torch_above_the_line(self):
        self.write("muster/store/s.h", "#  include <torch/torch.h>\n")
        self.assert_one(self.check(), "muster/store/s.h:1", "torch_bridge only")

    def test_torch_through_the_facade_in_the_command(self):
        self.write("apps/muster/main.cc", '#include "muster/muster.h"\n')
        self.assert_one(self.check(), "brings torch")

    def test_an_unknown_folder(self):
        self.write("muster/utils/u.h", "\n")
        self.assert_one(self.check(), "muster/utils is not in muster/LAYERS")

    def test_a_cycle_in_the_table(self):
        self.write("muster/LAYERS", LAYERS.replace("base:", "base: store"))
        self.write("muster/CMakeLists.txt", CMAKE.replace("muster_layer(base)", "muster_layer(base DEPS store)"))
        self.assert_one(self.check(), "base may include store", "below")

    def test_cmake_that_links_otherwise(self):
        self.write("muster/CMakeLists.txt", CMAKE.replace("(store DEPS base)", "(store)"))
        self.assert_one(self.check(), "store doesn't link base")
        self.write("muster/CMakeLists.txt", CMAKE.replace("(base)", "(base DEPS torch_bridge)"))
        self.assert_one(self.check(), "base links torch_bridge")

    ROOMS = LAYERS.replace("store: base", "store: base\n  store/model:  # variables\n  store/client: store/model  # workers")

    def plant_rooms(self):
        self.write("muster/LAYERS", self.ROOMS)
        self.write("muster/store/model/m.h", "\n")
        self.write("muster/store/testing/fake.h", '#include "muster/store/client/c.h"\n')
        self.write("muster/store/client/c.h", '#include "muster/store/model/m.h"\n')
        self.write("muster/store/model/m_test.cc", '#include "muster/store/client/c.h"\n#include "muster/store/testing/fake.h"\n')

    def test_orderly_rooms_are_right(self):
        self.plant_rooms()
        self.assertEqual(list(self.check()), [])

    def test_a_room_that_includes_upwards(self):
        self.plant_rooms()
        self.write("muster/store/model/m.cc", '#include "muster/store/client/c.h"\n')
        self.assert_one(self.check(), "muster/store/model/m.cc:1", "lets store/model include no other room")

    def test_a_folder_that_is_no_room(self):
        self.plant_rooms()
        self.write("muster/store/other/o.h", "\n")
        self.assert_one(self.check(), "muster/store/other is not among the rooms")

    def test_a_circle_of_rooms(self):
        self.plant_rooms()
        self.write("muster/LAYERS", self.ROOMS.replace("store/model:", "store/model: store/client"))
        self.write("muster/store/model/m.cc", '#include "muster/store/client/c.h"\n')
        self.assert_one(self.check(), "store/model may include store/client", "below")

    def test_an_entry_that_nothing_needs(self):
        self.plant_rooms()
        self.write("muster/store/client/c.h", "\n")
        self.assert_one(self.check(), "store/client may include store/model, which none")

    def test_product_that_includes_test_support(self):
        self.plant_rooms()
        self.write("muster/store/client/c.cc", '#include "muster/store/testing/fake.h"\n')
        self.assert_one(self.check(), "muster/store/client/c.cc:1", "only tests include testing/")

    def test_a_drawing_that_is_out_of_date(self):
        self.plant_rooms()
        self.write("docs/rooms.md", "<!-- drawn from muster/LAYERS -->\n<!-- /drawn -->\n")
        self.assert_one(self.check(), "docs/rooms.md", "--write draws it")
        check_layers.draw_layers.write(self.root, check_layers.Layers(self.ROOMS))
        self.assertEqual(list(self.check()), [])
        self.assertIn("workers", (self.root / "docs/rooms.md").read_text(encoding="utf-8"))


class SizesTest(Tree):
    def check(self):
        return check_sizes.problems(self.root)

    def test_a_folder_of_many_files_and_a_long_page(self):
        for i in range(check_sizes.FOLDER_FILES + 1):
            self.write(f"muster/store/s{i}.h", "\n")
        self.assert_one(self.check(), "muster/store: 46 files")
        self.write("muster/store/s0.h", "\n")
        (self.root / "muster/store/s1.h").unlink()
        self.write("docs/long.md", "a\n" * (check_sizes.PAGE_LINES + 1))
        self.assert_one(self.check(), "docs/long.md: 301 lines")

    def function(self, lines, head="int F() {"):
        return head + "\n" + "  G();\n" * (lines - 2) + "}\n"

    def test_at_the_limit_is_right(self):
        self.write("muster/base/f.cc", self.function(60))
        self.write("muster/base/f.h", "// x\n" * 250)
        self.assertEqual(list(self.check()), [])

    def test_a_long_function(self):
        for head in ("int F() {", "Foo::Foo(int a) : a_{a}, b_(1) {", "TEST(A, B) {", "auto F(int a = {}) -> int {",
                     "bool operator==(const A& a) const {"):
            self.write("muster/base/f.cc", "namespace muster {\n" + self.function(61, head) + "}\n")
            self.assert_one(self.check(), "muster/base/f.cc:2", "has 61 lines; the limit is 60")

    def test_a_long_method_in_a_class(self):
        self.write("muster/base/f.cc", "class A final : public B<C> {\n public:\n" + self.function(61, "int F() override {") + "};\n")
        self.assert_one(self.check(), "function F has 61 lines")

    def test_braces_in_strings_and_comments_dont_count(self):
        self.write("muster/base/f.cc", 'int F() { return G("}{{", \'{\', R"({{)"); } // {\n' + self.function(60))
        self.assertEqual(list(self.check()), [])

    def test_a_long_class(self):
        self.write("muster/base/c.cc", "struct C : D {\n" + "  int F();\n" * 119 + "};\n")
        self.assert_one(self.check(), "class C has 121 lines")

    def test_a_long_header_and_a_long_source(self):
        self.write("muster/base/f.h", "// x\n" * 251)
        self.assert_one(self.check(), "251 lines; the limit for a header is 250")
        self.write("muster/base/f.h", "")
        self.write("muster/base/f.cc", "// x\n" * 601)
        self.assert_one(self.check(), "601 lines; the limit for a source is 600")

    def test_an_exception_needs_a_reason_and_a_cause(self):
        self.write("muster/base/f.cc", self.function(61))
        self.write(check_sizes.EXCEPTIONS, "# why\nmuster/base/f.cc F: a table\n")
        self.assertEqual(list(self.check()), [])
        self.write(check_sizes.EXCEPTIONS, "muster/base/f.cc F\n")
        self.assert_one(self.check(), "no reason given")
        self.write("muster/base/f.cc", self.function(6))
        self.write(check_sizes.EXCEPTIONS, "muster/base/f.cc F: a table\n")
        self.assert_one(self.check(), "delete this line")


class NamesTest(Tree):
    def check(self):
        return check_names.problems(self.root)

    def test_two_of_one_name_in_two_layers(self):
        for one, other in (("struct A {};", "class A final : public B<C> {};"), ("enum class A : int { kA };", "struct A {};"),
                           ("template <typename T>\nclass A {};", "class alignas(64) A {};")):
            self.write("muster/base/a.h", f"namespace muster {{\n{one}\n}}\n")
            self.write("muster/store/b.cc", f"namespace muster {{\n{other}\n}}\n")
            self.assert_one(self.check(), "muster/store/b.cc:2: muster::A is defined in muster/base/a.h:", "rename one")

    def test_a_program_and_a_layer(self):
        self.write("muster/base/a.h", "namespace muster {\nstruct A {};\n}\n")
        self.write("apps/muster/b.cc", "namespace muster {\nstruct A {};\n}\n")
        self.assert_one(self.check(), "muster::A")

    def test_names_that_never_meet(self):
        self.write("muster/base/a.h", "namespace muster {\nstruct A { struct D {}; };\ntemplate <>\nstruct A<int> {};\n}\n")
        self.write("muster/base/b.h", "namespace muster {\nclass A;\nstruct B { struct D {}; };\ntemplate <>\nstruct A<long> {};\n}\n")
        self.write("muster/store/anonymous.cc", "namespace muster {\nnamespace {\nstruct A {};\n}\n}\n")
        self.write("muster/store/a_test.cc", "namespace muster::a_test {\nstruct A {};\n}\n")
        self.write("muster/store/local.cc", "namespace muster {\nint F() {\n  struct A {};\n  return 0;\n}\n}\n")
        self.write("muster/store/other.cc", "namespace muster::other {\nenum A { kA };\n}\nnamespace its {\nstruct A {};\n}\n")
        for program in ("bench/c.cc", "bench/d.cc"):  # each has its own main
            self.write(program, "namespace muster {\nstruct C {};\n}\nint main() {}\n")
        self.assertEqual(list(self.check()), [])


class PublicTest(Tree):
    def setUp(self):
        super().setUp()
        self.write("muster/PUBLIC", "# Words.\nmuster/base/a.h: the one\n")
        self.write("muster/base/a.h", '#include "muster/base/inner.h"\n')
        self.write("muster/base/inner.h", "#include <string>\n")

    def check(self):
        return check_public.problems(self.root)

    def test_what_stands_in_the_list(self):
        for line, *words in (("muster/base/gone.h: it was", "there is no file muster/base/gone.h"),
                             ("muster/base/inner.h", "muster/PUBLIC:3", "has no words"),
                             ("muster/base/a.h: again", "muster/PUBLIC:3", "twice")):
            with self.subTest(line):
                self.write("muster/PUBLIC", f"# Words.\nmuster/base/a.h: the one\n{line}\n")
                self.assert_one(self.check(), *words)

    def test_what_is_for_tests_comes_through_another_header(self):
        self.write("muster/base/testing/t.h", "#pragma once\n")
        self.write("muster/base/inner.h", '#include "muster/base/testing/t.h"\n')
        self.assert_one(self.check(), "muster/base/inner.h: a public header brings muster/base/testing/t.h")

    def test_what_users_are_shown(self):
        line = "#include <muster/base/inner.h>\n"
        for path, text, number in (("examples/e/main.cc", line, 1), ("tests/install/outside/main.cc", line, 1),
                                   ("muster/muster.h", "#pragma once\n" + line, 2),
                                   ("docs/d.md", f"Words.\n\n```cpp\n{line}```\n", 4)):
            with self.subTest(path):
                self.write(path, text)
                self.assert_one(self.check(), f"{path}:{number}: includes muster/base/inner.h", "muster/PUBLIC")
                self.write(path, text.replace("inner", "a"))
                self.assertEqual(list(self.check()), [])

    def test_the_closure_is_what_the_list_needs(self):
        self.write("muster/base/other.h", "#pragma once\n")
        self.assertEqual(sorted(check_public.closure(self.root)), ["muster/base/a.h", "muster/base/inner.h"])


class ForbiddenTest(Tree):
    def check(self):
        return check_forbidden.problems(self.root)

    def test_each_rule(self):
        for path, line in (("muster/base/b.cc", 'auto v = std::getenv("HOME");'),
                           ("muster/base/b_test.cc", "std::this_thread::sleep_for(x);"),
                           ("tests/process/p_test.cc", "absl::SleepFor(x);"),
                           ("tests/p_test.py", "time.sleep(1)"),
                           ("tools/x.sh", "pkill muster"),
                           ("docs/d.md", "see /home/me/muster"),
                           ("muster/base/b.h", "// TODO: later"),
                           ("muster/base/b.cc", "// Call(argument);"),
                           ("muster/base/b.h", "  // Who waits is woken."),
                           ("tools/x.py", "# Of two files the newer."),
                           ("muster/base/b.cc", "Wake();  // It is due. Whoever waits is woken."),
                           ("muster/base/b.h", "int late;  // … and only then."),
                           ("docs/d.md", "It is due. Of two files the newer is kept."),
                           ("docs/d.md", "- Who waits is woken."),
                           ("muster/base/b.cc", "std::jthread t;"),
                           ("muster/base/b.cc", "catch (...) {}")):
            with self.subTest(line):
                self.write(path, line + "\n")
                self.assert_one(self.check(), f"{path}:1")
                (self.root / path).unlink()

    def test_what_only_looks_alike(self):
        self.write("muster/base/b.cc", '// getenv( is for main\nconst char* kText = "std::getenv(x)";\n// TODO(issue 4): needs part 2.\n')
        self.write("apps/muster/main.cc", 'int main() { return std::getenv("X") != nullptr; }\n')
        self.assertEqual(list(self.check()), [])


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


class ChangedFilesTest(Tree):
    def test_a_branch_and_what_isnt_committed(self):
        self.git("add", ".")
        self.git("commit", "-q", "-m", "start")
        self.git("checkout", "-q", "-b", "work")
        self.write("muster/base/b.h", "\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "b")
        self.write("muster/base/a.h", "// other\n")
        self.write("muster/base/c.h", "\n")
        found = {str(p) for p in sources.changed_files(self.root)}
        self.assertEqual(found, {"muster/base/a.h", "muster/base/b.h", "muster/base/c.h"})


class DueFilesTest(Tree):
    def commit(self, name, when):
        self.write(name, "// new\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", name, environment={"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when})

    def test_a_commit_that_touches_everything_owes_no_more_than_a_test_run_can_take(self):
        self.commit("muster/base/old.h", "2025-01-01T01:00:00Z")
        for number in range(40):
            self.write(f"muster/base/f_{number}.h", "\n")
        self.commit("muster/base/first.h", "2026-01-01T01:00:00Z")
        everything = sources.due_files(self.root)
        with unittest.mock.patch.object(sources, "DUE_MOST", 10):
            some = sources.due_files(self.root)
            self.assertEqual(len(some), 10)
            self.assertLess(some, everything)
            self.commit("muster/base/second.h", "2026-01-01T01:00:01Z")
            self.assertNotEqual(sources.due_files(self.root), some, "each commit others")

    def test_the_last_hours_and_a_share_of_the_rest(self):
        for number in range(90):
            self.write(f"muster/base/old_{number}.h", "\n")
        self.commit("muster/base/first.h", "2026-01-01T01:00:00Z")
        self.commit("muster/base/recent.h", "2026-01-01T09:00:00Z")
        self.commit("muster/base/last.h", "2026-01-01T10:00:00Z")
        self.write("muster/base/not_committed.h", "\n")
        found = {p.name for p in sources.due_files(self.root)}
        self.assertLessEqual({"recent.h", "last.h", "not_committed.h"}, found)
        others = {name for name in found if name.startswith("old_")}
        self.assertTrue(0 < len(others) < 30, others)
        self.commit("muster/base/after_a_night.h", "2026-01-02T10:00:00Z")
        another = {p.name for p in sources.due_files(self.root)}
        self.assertIn("after_a_night.h", another)
        self.assertNotEqual({name for name in another if name.startswith("old_")}, others, "each commit another share")


class CompilersTest(unittest.TestCase):
    """Tests the checks that call clang, with files planted in the project's own build folder."""

    def setUp(self):
        folder = ROOT / "build/planted/tests"  # one of the folders whose findings .clang-tidy reports
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="muster_", dir=folder)
        self.addCleanup(scratch.cleanup)
        self.file = pathlib.Path(scratch.name) / "planted.cc"
        commands = compile_commands.of_project()
        self.arguments = commands[pathlib.Path("muster/base/clock.cc")]

    def lint(self, text):
        self.file.write_text(textwrap.dedent(text), encoding="utf-8")
        return check_tidy.lint(self.file, self.arguments)

    def test_lint_of_what_is_right(self):
        self.assertEqual(self.lint("namespace muster {\nint TheAnswer() { return 42; }\n}  // namespace muster\n"), "")

    def test_lint_of_a_name(self):
        self.assertIn("readability-identifier-naming", self.lint("int BadVariable = 1;\n"))

    def test_lint_of_a_bug(self):
        self.assertIn("bugprone-use-after-move",
                      self.lint("#include <string>\n#include <utility>\nvoid F(std::string);\n"
                                "size_t G(std::string s) {\n  F(std::move(s));\n  return s.size();\n}\n"))

    def lint_together(self, *texts):
        members = []
        for number, text in enumerate(texts):
            path = self.file.with_name(f"planted_{number}.cc")
            path.write_text(text, encoding="utf-8")
            members.append((path.relative_to(ROOT), f"planted_{self.file.parent.name}_{number}"))
        memory = compile_commands.Memory("planted")
        found = check_tidy.lint_group(members, {path: self.arguments for path, _ in members}, memory)
        known = [memory.knows(digest) for _, digest in members]
        for _, digest in members:
            (memory.folder / digest).unlink(missing_ok=True)
        self.assertEqual(known, [not finding for finding in found])
        return found

    def test_lint_of_several_files_together(self):
        self.assertEqual(self.lint_together("int F() { return 1; }\n", "int G() { return 2; }\n"), ["", ""])
        found = self.lint_together("int F() { return 1; }\n", "int BadVariable = 1;\n")
        self.assertEqual(found[0], "")
        self.assertIn("BadVariable", found[1])

    def test_lint_of_files_that_dont_go_together(self):
        clash = "namespace {\nint F() { return 1; }\n}  // namespace\nint %s() { return F(); }\n"
        self.assertEqual(self.lint_together(clash % "G", clash % "H"), ["", ""])

    def test_a_lock_that_isnt_held(self):
        found = self.lint("""
            #include "muster/base/mutex.h"
            class Counter {
             public:
              void Add() { ++count_; }

             private:
              muster::Mutex mutex_;
              int count_ ABSL_GUARDED_BY(mutex_) = 0;
            };
            """)
        self.assertIn("clang-diagnostic-thread-safety-analysis", found)

    def test_a_header_that_needs_another(self):
        header = self.file.with_name("planted.h")
        header.write_text("#pragma once\nstd::string Name();\n", encoding="utf-8")
        self.assertIn("doesn't compile by itself", check_headers.compile_alone(header, self.arguments))
        header.write_text("#pragma once\n#include <string>\nstd::string Name();\n", encoding="utf-8")
        self.assertEqual(check_headers.compile_alone(header, self.arguments), "")

    def test_what_a_fuzzer_finds_is_a_failure(self):
        self.file.write_text('extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, unsigned long size) {\n'
                             "  if (size > 0 && bytes[0] == 'x') __builtin_trap();\n  return 0;\n}\n", encoding="utf-8")
        binary = self.file.with_suffix("")
        subprocess.run(["clang++-14", "-fsanitize=fuzzer", self.file, "-o", binary], check=True)
        program = run_tests.fuzz_program("planted_fuzz", self.file.parent)
        program.command[0] = str(binary)
        self.assertEqual([c.outcome for c in test_programs.run(program)[0]], ["failed"])

    def test_a_format_that_isnt_ours(self):
        self.file.write_text("int  F( ){return 1;}\n", encoding="utf-8")
        done = subprocess.run(["clang-format-14", f"--style=file:{ROOT}/.clang-format", "--dry-run", "-Werror", self.file],
                              capture_output=True)
        self.assertNotEqual(done.returncode, 0)


class NoThreadsTest(unittest.TestCase):
    def test_layers_that_the_thread_sanitizer_leaves_out_have_none(self):
        cmake = (ROOT / "muster/CMakeLists.txt").read_text()
        layers = {name: set(tests.split()) for name, tests in
                  re.findall(r"^muster_layer\((\w+)\b[^)]*\bNO_THREADS\b(?:\s+THREAD_TESTS\b([^)]*))?", cmake, re.MULTILINE)}
        self.assertIn("optim", layers)
        self.assertIn("run_lock_test.cc", layers["launch"])
        threads = re.compile(r"std::(thread|jthread|async)\b(?!::hardware)|pthread_create|BackgroundThread|StatusServer|httplib::Server|\bTracer\b")
        for layer, threaded in layers.items():
            files = {path.name: path for path in (ROOT / "muster" / layer).rglob("*.[ch]*")}
            self.assertLessEqual(threaded, set(files))
            for name, path in files.items():
                with self.subTest(path=path):
                    self.assertEqual(name in threaded, bool(threads.search(path.read_text())))


class KernelFlagsTest(unittest.TestCase):
    """Without these flags the loops of the update rules are four times slower, and every other test stays green."""

    def test_every_rule_is_compiled_for_vectors(self):
        commands = compile_commands.of_project()
        rules = [path for path in (ROOT / "muster/optim/rules").glob("*.cc") if not path.stem.endswith("_test")]
        self.assertGreater(len(rules), 5)
        for path in rules:
            with self.subTest(path=path):
                arguments = commands[path.relative_to(ROOT)]
                self.assertEqual([word for word in arguments if re.match(r"-O\d", word)][-1], "-O3")
                self.assertIn("-fno-math-errno", arguments)


class BenchmarksTest(Tree):
    def test_help_lists_them_before_anything_is_built(self):
        self.write("bench/bench_ps.cc", "")
        self.write("bench/bench_steps.cc", "")
        self.write("bench/peers/run.py", "")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(run_benchmarks.main(["--help"], self.root), 0)
        self.assertIn("NAME: ps, steps\n", said.getvalue())
        self.assertIn("compares with: peers\n", said.getvalue())


class DevTest(unittest.TestCase):
    def test_help_from_another_folder(self):
        for arguments in ([], ["help"]):
            done = subprocess.run([ROOT / "dev", *arguments], cwd="/", capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("./dev demo", done.stdout)

    def test_an_unknown_command(self):
        done = subprocess.run([ROOT / "dev", "tset"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'tset'; accepted: demo,", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def asked_for(self, user):
        """The packages that setup.sh asks for on a machine that has none, whose user may not install any."""
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as scratch:
            for name, text in (("dpkg-query", "exit 1"), ("sudo", "exit 1"), ("id", "echo 1000")):
                program = pathlib.Path(scratch, name)
                program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
                program.chmod(0o755)
            done = subprocess.run([ROOT / "tools/setup.sh", "--no-torch", "--for", user], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, env=dict(os.environ, PATH=f"{scratch}:{os.environ['PATH']}"))
        self.assertEqual(done.returncode, 1, done.stderr)
        return set(re.search(r"--no-install-recommends (.*)'", done.stderr)[1].split())

    def test_setup_installs_no_more_than_its_user_needs(self):
        listed = re.findall(r"^[a-z].*$", (ROOT / "tools/packages.txt").read_text(encoding="utf-8"), re.MULTILINE)
        build, check, test = (self.asked_for(user) - {"python3-venv"} for user in ("build", "check", "test"))
        self.assertEqual(check - build, {"clang-14", "clang-format-14", "libclang-rt-14-dev"})
        self.assertIn("chromium", test - check)
        self.assertEqual(test, set(listed) - {"python3-venv"})
        self.assertEqual(self.asked_for("user") - {"python3-venv"}, build)

    def test_an_unknown_flag_of_setup_and_check(self):
        for command in (["tools/setup.sh", "--trch"], ["tools/setup.sh", "--for", "tset"], ["tools/check.py", "--al"]):
            self.assertEqual(subprocess.run(command, cwd=ROOT, capture_output=True).returncode, 2)


if __name__ == "__main__":
    unittest.main()
