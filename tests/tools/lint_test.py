#!/usr/bin/env python3
"""Lint, headers, locks and format: plants in a small tree what each check must find."""

import pathlib
import subprocess
import tempfile
import textwrap
import unittest
import unittest.mock

from tree import ROOT, Tree
import check_docker
import check_headers
import check_tidy
import compile_commands
import run_tests
import sources
import test_programs


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


class DockerTest(unittest.TestCase):
    BASE = "debian:12-slim@sha256:" + "0" * 64

    def problems(self, text):
        return list(check_docker.dockerfile_problems(textwrap.dedent(text)))

    def test_a_pinned_image_that_isnt_root_is_right(self):
        self.assertEqual(self.problems(f"""\
            # FROM scratch
            FROM {self.BASE} AS build
            RUN a && \\
              USER=0 b
            FROM build
            USER 1000:1000
            """), [])

    def test_what_isnt_pinned(self):
        for base in ("debian", "debian:12-slim", "debian@sha256:" + "0" * 64):
            found = self.problems(f"FROM --platform=linux/amd64 {base} AS build\nUSER 1\n")
            self.assertEqual(found, [f"Dockerfile:1: {base} isn't pinned; accepted: NAME:TAG@sha256:DIGEST"])

    def test_who_is_root(self):
        for users in ("", "USER 0\n", "USER muster\n", f"USER 1\nFROM {self.BASE}\n"):
            self.assertIn("its last stage runs as", self.problems(f"FROM {self.BASE}\n{users}")[0])

    def test_the_last_stage_adds_one_file_and_nothing_else(self):
        build = f"FROM {self.BASE} AS build\nRUN apt-get install -y g++\nCOPY . .\n"
        last = f"FROM {self.BASE}\nCOPY --from=build /a/muster /usr/local/bin/muster\n"
        found = lambda more: list(check_docker.last_stage_problems(build + last + more))  # noqa: E731
        self.assertEqual(found("RUN useradd --uid 1000 muster\nUSER 1000\n"), [])
        for run in ("apt-get update", "useradd a && apt-get install -y b"):
            self.assertEqual(found(f"RUN {run}\n"),
                             [f"Dockerfile:6: the last stage runs {run.split()[0]}; accepted: useradd alone"])
        for copy in ("COPY --from=build /b /b", "COPY . .", "ADD https://example.org/a /a"):
            self.assertIn("accepted: one COPY --from=STAGE FILE FILE", "".join(found(copy + "\n")), copy)
        for first in ("COPY build /bin/", "COPY --from=build /muster/build /muster/", "COPY --from=build /a /b /c/"):
            self.assertEqual(len(list(check_docker.last_stage_problems(f"FROM {self.BASE}\n{first}\n"))), 1, first)

    def test_what_git_ignores_stays_out(self):
        git = "/build/\n*.pyc\n"
        self.assertEqual(list(check_docker.ignore_problems(git, "/build/\n**/*.pyc\n")), [])
        self.assertEqual(list(check_docker.ignore_problems(git, "/build/\n*.pyc\n")),
                         [".dockerignore: lacks **/*.pyc, which .gitignore has"])


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


if __name__ == "__main__":
    unittest.main()
