#!/usr/bin/env python3
"""Layers, sizes, names, the public surface and forbidden words: plants in a small tree what each check must find."""

import re
import unittest

from tree import CMAKE, LAYERS, ROOT, Tree
import check_forbidden
import check_layers
import check_names
import check_public
import check_sizes
import compile_commands


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


class PlainTorchTest(unittest.TestCase):
    def test_the_example_without_a_cluster_has_nothing_of_muster(self):
        program = (ROOT / "examples/non_distributed/main.cc").read_text(encoding="utf-8")
        code = re.sub(r"//.*", "", program)
        self.assertNotIn("muster", code)
        self.assertIn("torch::optim", code)


class NoThreadsTest(unittest.TestCase):
    def test_layers_that_the_thread_sanitizer_leaves_out_have_none(self):
        cmake = (ROOT / "muster/CMakeLists.txt").read_text()
        layers = {name: set(tests.split()) for name, tests in
                  re.findall(r"^muster_layer\((\w+)\b[^)]*\bNO_THREADS\b(?:\s+THREAD_TESTS\b([^)]*))?", cmake, re.MULTILINE)}
        self.assertIn("optim", layers)
        self.assertIn("step_summaries_test.cc", layers["summary"])
        threads = re.compile(r"std::(thread|jthread|async)\b(?!::hardware)|pthread_create|BackgroundThread|StatusServer|httplib::Server|\bTracer\b")
        folders = {ROOT / "muster" / layer: threaded for layer, threaded in layers.items()}
        for folder, threaded in (folders | {ROOT / "apps/muster": set()}).items():
            with_threads = {path.name for path in folder.rglob("*.[ch]*") if threads.search(path.read_text())}
            with self.subTest(folder=folder):
                self.assertLessEqual(threaded, with_threads)
                self.assertEqual({name for name in with_threads if not name.endswith("_test.cc")}, set())


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


if __name__ == "__main__":
    unittest.main()
