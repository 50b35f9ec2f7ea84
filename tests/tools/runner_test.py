#!/usr/bin/env python3
"""Tests what runs the tests (tools/run_tests.py, tools/test_programs.py) with programs that behave like tests; `./dev
test tools` runs it."""

import dataclasses
import fnmatch
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check  # noqa: E402
import engine_table  # noqa: E402
import run_tests  # noqa: E402
import test_programs  # noqa: E402


class TestProgramsTest(unittest.TestCase):
    """Tests the runner with shell scripts that behave like GoogleTest programs."""

    def run_script(self, script, gtest=True, timeout=300):
        program = test_programs.Program("p", ["bash", "-c", script, "p"], timeout=timeout, is_gtest=gtest)
        return test_programs.run(program)[0]

    def report(self, body):
        return f'for a in "$@"; do case $a in --gtest_output=xml:*) echo \'<r>{body}</r>\' >"${{a#*xml:}}";; esac; done; '

    def outcomes(self, cases):
        return [(c.name, c.outcome) for c in cases]

    def test_passed_failed_skipped(self):
        cases = self.run_script(self.report(
            '<testcase classname="A" name="a" status="run"/>'
            '<testcase classname="A" name="b" status="run"><failure message="1 != 2"/></testcase>'
            '<testcase classname="A" name="c" status="run"><skipped message="no network"/></testcase>') + "exit 1")
        self.assertEqual(self.outcomes(cases), [("p: A.a", "passed"), ("p: A.b", "failed"), ("p: A.c", "skipped")])
        self.assertIn("1 != 2", cases[1].detail)
        self.assertIn("no network", cases[2].detail)

    def test_a_crash_names_the_case_it_was_in(self):
        cases = self.run_script('echo "[ RUN      ] A.a"; echo "[       OK ] A.a (0 ms)"; echo "[ RUN      ] A.b"; kill -SEGV $$')
        self.assertEqual(self.outcomes(cases), [("p: A.a", "passed"), ("p: A.b", "failed")])
        self.assertIn("SIGSEGV", cases[1].detail)

    def test_a_hang_is_ended_and_named(self):
        cases = self.run_script('echo "[ RUN      ] A.a"; read -r line < <(tail -f /dev/null)', timeout=1)
        self.assertEqual(self.outcomes(cases), [("p: A.a", "failed")])
        self.assertIn("ran longer than 1 s", cases[0].detail)

    def test_a_complaint_at_exit_counts(self):
        cases = self.run_script(self.report('<testcase classname="A" name="a" status="run"/>') + "echo leak; exit 23")
        self.assertEqual([c.outcome for c in cases], ["passed", "failed"])
        self.assertIn("exit status 23", cases[1].detail)

    def test_a_program_without_cases_fails(self):
        self.assertEqual([c.outcome for c in self.run_script(self.report(""))], ["failed"])

    def test_a_program_that_isnt_there_fails(self):
        cases = test_programs.run(test_programs.Program("p", ["./no_such_program"]))[0]
        self.assertEqual([c.outcome for c in cases], ["failed"])

    def test_shares_are_told_apart_and_keep_the_environment(self):
        program = test_programs.Program("p", ["p"], environment={"OPTIONS": "x"})
        shares = list(run_tests.in_shares(program, 2))
        self.assertEqual([(s.environment["GTEST_TOTAL_SHARDS"], s.environment["GTEST_SHARD_INDEX"]) for s in shares],
                         [("2", "0"), ("2", "1")])
        self.assertEqual({s.environment["OPTIONS"] for s in shares}, {"x"})
        self.assertEqual(program.environment, {"OPTIONS": "x"})
        for name in run_tests.LONGEST:
            self.assertTrue((ROOT / "muster" / name.removesuffix("_test")).is_dir(), f"{name} is no layer's test")

    def test_plain_programs_speak_by_their_status(self):
        for status, outcome in ((0, "passed"), (1, "failed"), (77, "skipped")):
            self.assertEqual(self.run_script(f"exit {status}", gtest=False)[0].outcome, outcome)


class ReportTest(unittest.TestCase):
    def printed(self, cases):
        report = run_tests.Report()
        with unittest.mock.patch("sys.stdout", new_callable=io.StringIO) as out, \
                unittest.mock.patch.object(run_tests, "slowest_builds", return_value=[]):
            report.add("p", cases, 1.0)
            report.finish()
            return out.getvalue()

    def test_the_names_of_what_failed_stand_beside_the_last_line(self):
        said = self.printed([test_programs.Case("p: A.a", "failed", "1 != 2"), test_programs.Case("p: A.b", "passed", ""),
                             test_programs.Case("p: A.c", "failed", "many\n" * 100)])
        self.assertEqual(said.splitlines()[-10:], ["FAILED: p: A.a", "    1 != 2", "FAILED: p: A.c", *["    many"] * 6,
                                                   "1 passed, 2 failed, 0 skipped"])

    def test_a_long_failure_keeps_its_first_and_its_last_lines(self):
        said = self.printed([test_programs.Case("p: A.a", "failed", "\n".join(f"line {n};" for n in range(100)))])
        for kept in ("line 0;", "line 14;", "[... 40 lines ...]", "line 55;", "line 99;"):
            self.assertIn(kept, said)
        self.assertNotIn("line 15;", said)

    def test_a_difference_from_the_table_of_engines_is_said_once(self):
        report = run_tests.Report()
        with unittest.mock.patch("sys.stdout", new_callable=io.StringIO), \
                unittest.mock.patch.object(run_tests.engine_table, "problems_with", return_value=["a is wrong"]) as problems:
            run_tests.add_table(report, [])
            problems.return_value = ["a is wrong", "b is wrong"]
            for _ in range(2):
                run_tests.add_table(report, [])
        self.assertEqual([(case.outcome, case.detail) for case in report.cases],
                         [("failed", "a is wrong"), ("failed", "b is wrong"), ("passed", "")])

    def test_the_last_line_and_the_exit_status(self):
        script = ("import run_tests as r; p = r.Report(); "
                  "p.add('x', [r.Case('a', 'passed'), r.Case('b', 'failed', 'why'), r.Case('c', 'skipped', 'no')], 0); "
                  "raise SystemExit(p.finish())")
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT / "tools", capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed, 1 skipped")

    def test_a_failing_python_test_is_seen(self):
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as folder:
            path = pathlib.Path(folder) / "planted_cases.py"
            path.write_text("import unittest\nclass T(unittest.TestCase):\n  def test_a(self): self.fail('planted')\n"
                            "  def test_b(self): self.skipTest('no')\n  def test_c(self): pass\n", encoding="utf-8")
            self.assertEqual(sorted(c.outcome for c in check.python_cases(path)), ["failed", "passed", "skipped"])

    def test_what_is_built_ahead_is_ended_with_all_it_started(self):
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            os.mkfifo(root / "started")
            (root / "tools/build.py").write_text(
                "import pathlib, signal, sys\n"
                f"pathlib.Path({str(root / 'started')!r}).write_text(' '.join(sys.argv[1:]))\nsignal.pause()\n")
            with unittest.mock.patch.object(run_tests, "ROOT", root):
                ahead = run_tests.BuildAhead([("asan", ["tests", "fuzzers"]), ("tsan", ["tests"])])
            self.assertEqual((root / "started").read_text(), "asan tests fuzzers", "the second waits for the first")
            ahead.end()
            self.assertEqual(ahead.process.returncode, -9)

    def test_a_failing_case_is_shown_before_the_program_ends(self):
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as folder:
            os.mkfifo(f"{folder}/seen")
            said = io.StringIO()

            def write(text):
                io.StringIO.write(said, text)
                if "A.b" in text:
                    pathlib.Path(f"{folder}/seen").write_text("yes")

            script = f'echo "[  FAILED  ] A.b, where GetParam() = 1 (3 ms)"; read -r line <"{folder}/seen"; exit 1'
            with unittest.mock.patch("builtins.print", lambda *words, **_: write(" ".join(map(str, words)))):
                cases = test_programs.run(test_programs.Program("p", ["bash", "-c", script]))[0]
        self.assertIn("FAILED  p: A.b", said.getvalue())
        self.assertEqual([c.outcome for c in cases], ["failed"])

    def test_time_over_the_budget_is_said(self):
        budget = run_tests.read_budget("# words\nquick 10\nslow 20  # why\n")
        lines = list(run_tests.budget_lines([("quick", 9.5), ("slow", 32.0), ("new", 1.0)], budget))
        self.assertEqual([("WARNING" in line, "no budget" in line) for line in lines[1:]],
                         [(False, False), (True, False), (False, True)])
        self.assertIn("12 s over its budget", lines[2])

    def test_every_part_of_the_everyday_run_and_of_the_sanitizers_has_a_budget_that_adds_up(self):
        budget = run_tests.read_budget((ROOT / "tools/time_budget.txt").read_text())
        self.assertEqual(set(budget), {*run_tests.EVERYDAY, *run_tests.SANITIZERS})
        self.assertLessEqual(sum(budget[p] for p in run_tests.EVERYDAY), 34 * 60)
        self.assertLessEqual(sum(budget.values()), 68 * 60)

    def test_the_slowest_builds_are_read_from_ninjas_logs(self):
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as folder:
            preset = pathlib.Path(folder) / "build/release"
            preset.mkdir(parents=True)
            for name in ("a.o", "b.o"):
                (preset / name).touch()
            (preset / ".ninja_log").write_text("# ninja log v5\n0\t9000\t0\ta.o\tx\n0\t1500\t0\ta.o\tx\n100\t2600\t0\tb.o\ty\n0\t9\t0\tgone.o\tz\n")
            with unittest.mock.patch.object(run_tests, "ROOT", pathlib.Path(folder)):
                self.assertEqual(sorted(run_tests.slowest_builds(0)), [(1.5, "release: a.o"), (2.5, "release: b.o")])
                self.assertEqual(list(run_tests.slowest_builds(1e12)), [])

    def test_what_isnt_run_is_skipped_by_name(self):
        report = run_tests.Report()
        run_tests.say_what_is_not_run(report, set())
        self.assertEqual([c.name for c in report.cases], [*run_tests.SANITIZERS, *run_tests.LONG])
        self.assertEqual({c.outcome for c in report.cases}, {"skipped"})
        self.assertIn("./dev test --long", report.cases[-1].detail)

    def filtered(self, wanted, programs):
        """The report, and the names of the programs that were run, each with one case that passes."""
        report, ran = run_tests.Report(), []

        def run(report, programs, gtest_filter=None):
            ran.extend(p.name for p in programs)
            matches = gtest_filter is None or any(f in gtest_filter.split(":") for f in ("*Crc32c*", "*base*"))
            report.cases += [test_programs.Case(p.name, "passed") for p in programs if matches]

        with unittest.mock.patch.multiple(run_tests, build_part=lambda *_: True, programs_of=lambda _: programs,
                                          run_programs=run):
            run_tests.filtered_part(report, wanted)
        return report, ran

    def test_a_filter_is_part_of_a_programs_or_a_cases_name(self):
        programs = [test_programs.Program("base_test", []), test_programs.Program("process_framework_test", [], long=True)]
        for wanted in ("base_test", "Base", "crc32c"):
            report, ran = self.filtered(wanted, programs)
            self.assertEqual(ran, ["base_test"], wanted)
            self.assertEqual([c.outcome for c in report.cases], ["passed"], wanted)
        report, ran = self.filtered("framework", programs)
        self.assertEqual((ran, [c.outcome for c in report.cases]), ([], ["skipped"]))
        report, _ = self.filtered("nosuch", programs)
        self.assertIn("no test matches 'nosuch'", report.cases[-1].detail)

    def test_every_part_can_be_named(self):
        self.assertEqual(list(run_tests.PARTS), ["tools", "check", "process", "hosts", "slurm", "ray", "kubernetes",
                                                 "simulation", "tensorboard", "install", "python", "tutorial", "units", "asan", "tsan", "lint", "benchmarks",
                                                 "frameworks", "all_on_command", "all_on_slurm_pty", "all_on_ray", "all_on_kubernetes",
                                                 "all_on_spark", "kubernetes_api", "spark", "notebooks", "schedules", "long_fuzz"])

    def test_the_cases_that_run_every_day_on_engines_with_parts_of_their_own_are_there(self):
        suite = engine_table.Suite(ROOT)
        cases = {f"{case.suite}.{case.name}": case for case in suite.cases}
        for place in run_tests.EVERYDAY_APART:
            for case in run_tests.everyday_on(place).split(":"):
                name, there = case.split("/")
                self.assertEqual(there, place)
                self.assertTrue(cases[name].has(suite.places[place]), case)
                self.assertEqual(cases[name].program, run_tests.EXPERIMENT_PROGRAM)

    def ran(self, parts):
        """[(program, filter)] of all that these parts run of the programs with cases for every engine."""
        names = (run_tests.EXPERIMENT_PROGRAM, run_tests.HOSTS_PROGRAM, run_tests.KUBERNETES_PROGRAM, run_tests.RAY_PROGRAM)
        programs, ran = [test_programs.Program(name, ["true"], alone=True) for name in names], []
        programs.append(test_programs.Program(run_tests.FRAMEWORK_PROGRAM, ["true"], alone=True, long=True))

        def run(program, gtest_filter=None):
            ran.append((program.name, gtest_filter or program.environment.get("GTEST_FILTER", "*")))
            return [test_programs.Case("a", "passed")], 0.0

        with unittest.mock.patch.multiple(run_tests, build_part=lambda *_: True, installs=lambda *_: True, own_machine=list,
                                          add_table=lambda *_: None,
                                          programs_of=lambda _: [dataclasses.replace(p) for p in programs]), \
                unittest.mock.patch.object(test_programs, "run", run), unittest.mock.patch("builtins.print"):
            for part in parts:
                part(run_tests.Report())
        return ran

    def runs_of(self, ran, program, case):
        """How many of these runs have the case of the program, each run once, however many shares it has."""
        def matches(wanted):
            chosen, _, left_out = wanted.partition("-")
            return any(fnmatch.fnmatchcase(case, p) for p in (chosen or "*").split(":")) and \
                not any(fnmatch.fnmatchcase(case, p) for p in left_out.split(":"))
        return sum(name == program and matches(wanted) for name, wanted in set(ran))

    def test_no_case_for_every_engine_is_run_twice_or_never(self):
        everyday = self.ran([run_tests.process_part, run_tests.hosts_part, run_tests.slurm_part, run_tests.ray_part,
                             run_tests.kubernetes_part])
        long = self.ran([part for name, part in run_tests.LONG.items() if name.startswith("all_on_") or name == "frameworks"])
        suite = engine_table.Suite(ROOT)
        for case in suite.cases:
            name = f"{case.suite}.{case.name}"
            for place in suite.places:
                runs = [self.runs_of(ran, case.program, f"{name}/{place}") for ran in (everyday, long)]
                is_long = place in run_tests.APART or case.program == run_tests.FRAMEWORK_PROGRAM
                every_day = not is_long or (place in run_tests.EVERYDAY_APART and name in run_tests.EVERYDAY_CASES)
                self.assertEqual(runs, [int(every_day), int(is_long)], f"{name}/{place}")

    def test_no_case_of_an_engines_own_is_run_twice_or_never(self):
        everyday = self.ran([run_tests.ray_part, run_tests.kubernetes_part])
        long = self.ran([run_tests.LONG["all_on_ray"], run_tests.LONG["all_on_kubernetes"]])
        for folder, program in (("ray", run_tests.RAY_PROGRAM), ("kubernetes", run_tests.KUBERNETES_PROGRAM)):
            text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/process" / folder).glob("*_test.cc"))
            names = re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", text, re.M)
            self.assertEqual({suite.endswith("Long") for suite, _ in names}, {False, True}, folder)
            for suite, name in names:
                runs = [self.runs_of(ran, program, f"{suite}.{name}") for ran in (everyday, long)]
                is_long = suite.endswith("Long")
                self.assertEqual(runs, [int(not is_long), int(is_long)], f"{suite}.{name}")

    def test_a_part_on_an_engine_fails_where_a_program_has_none_of_its_cases(self):
        report = run_tests.Report()
        programs = [test_programs.Program("p", ["true"]), test_programs.Program("another", ["false"])]
        ran = []

        def run(program, gtest_filter):
            ran.append((program.name, gtest_filter))
            return [], 0.0

        with unittest.mock.patch.multiple(run_tests, build_part=lambda *_: True, programs_of=lambda _: programs,
                                          own_machine=list), unittest.mock.patch.object(test_programs, "run", run):
            run_tests.run_on(report, "ray", {"p": "*/no_case/ray"}, shares=2)
        self.assertEqual(ran, [("p", "*/no_case/ray")] * 2)
        self.assertEqual([case.outcome for case in report.cases], ["failed", "passed"])


if __name__ == "__main__":
    unittest.main()
