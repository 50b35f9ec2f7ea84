#!/usr/bin/env python3
"""Tests the tables of what works on each engine (tools/engine_table.py): plants suites in a small tree, and changes in
docs/engines.md what must be found; `./dev test tools` runs it."""

import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import engine_table  # noqa: E402
from test_programs import Case  # noqa: E402

LEFT_OUT = """
  static const std::vector<const char*> engines = {"local", "ray"};
  static const std::map<NotOnEngine, LeftOut> left_out = {
      {NotOnEngine::kColour,
       {"colour, in `status`",
        {"ray"},
        "it has none; "
        "never"}}};
  static const std::map<std::string, std::string> other_places = {{"ray_far", "ray"}};
"""
SUITE = """
INSTANTIATE_TEST_SUITE_P(, Colours, EnginesWith(NotOnEngine::kColour), EngineName);
INSTANTIATE_TEST_SUITE_P(
    , Lives, EveryEngine(), EngineName);
INSTANTIATE_TEST_SUITE_P(, Elsewhere, ::testing::Values("local"), EngineName);
TEST_P(Colours, AMonitorHasThem) {}
TEST_P(Lives, KillEnds) {}
TEST_P(Elsewhere, IsOfNoConcern) {}
"""
PAGE = "# E\n\n<!-- cases by engine_table.py -->\n<!-- end -->\n\n<!-- left out by engine_table.py -->\n<!-- end -->\n"
GROUPS = {"monitor": ("AMonitor",), "kill": ("Kill",)}


class EngineTableTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="muster_tools_")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.write(engine_table.LEFT_OUT, LEFT_OUT)
        self.write("tests/process/experiment/a_test.cc", SUITE)
        self.write(engine_table.PAGE, PAGE)
        self.real_groups = engine_table.GROUPS
        groups = unittest.mock.patch.object(engine_table, "GROUPS", GROUPS)
        groups.start()
        self.addCleanup(groups.stop)
        self.assertEqual(list(engine_table.problems(self.root, write=True)), [])

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def page(self):
        return (self.root / engine_table.PAGE).read_text(encoding="utf-8")

    def test_no_engine_may_leave_out_more_than_five(self):
        row = re.search(r"\{NotOnEngine::kColour.*\}\}(?=\};)", LEFT_OUT, re.DOTALL)[0]
        rows = [row] + [row.replace("kColour", f"kColour{i}").replace("colour,", f"colour {i},") for i in "abcde"]
        self.write(engine_table.LEFT_OUT, LEFT_OUT.replace(row, ",\n      ".join(rows)))
        found = [line for line in engine_table.problems(self.root) if "leaves out" in line]
        self.assertEqual(len(found), 1, found)
        self.assertIn("ray leaves out 6, more than 5", found[0])

    def test_what_every_engine_must_have_is_left_out_nowhere(self):
        self.assertEqual(set(engine_table.NEVER_LEFT_OUT), {"train", "logs", "kill", "first cause", "teardown", "exit codes"})
        for group in engine_table.NEVER_LEFT_OUT:
            with unittest.mock.patch.object(engine_table, "GROUPS", {group: ("AMonitor", "Kill")}):
                found = [line for line in engine_table.problems(self.root) if "may leave out" in line]
            self.assertEqual(found, [f"tools/engine_table.py: Colours.AMonitorHasThem is of {group}, which no engine may leave out: ray"])

    def test_the_groups_that_every_engine_must_have_have_cases(self):
        with unittest.mock.patch.object(engine_table, "GROUPS", self.real_groups):
            groups = [group for case in engine_table.Suite(ROOT).cases for group in engine_table.groups_of(case)]
        self.assertLessEqual(set(engine_table.NEVER_LEFT_OUT), set(groups))

    def problem(self):
        found = list(engine_table.problems(self.root))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_the_tables_are_those_of_the_sources(self):
        self.assertIn("| monitor | A monitor has them | yes | [no (1)](#what-is-left-out) |\n", self.page())
        self.assertIn("| kill | Kill ends | yes | yes |\n", self.page())
        self.assertNotIn("concern", self.page())
        self.assertIn("| 1 | colour, in `status` | yes | no | it has none; never |\n", self.page())
        self.assertEqual(list(engine_table.problems(self.root)), [])
        self.assertEqual(list(engine_table.problems(ROOT / "tools")), [], "a tree without such tests")

    def test_a_case_that_the_table_lacks_is_found(self):
        self.write("tests/process/experiment/a_test.cc", SUITE + "TEST_P(Lives, KillEndsTwice) {}\n")
        self.assertIn("its tables aren't those of", self.problem())

    def test_a_case_without_a_group_is_found(self):
        self.write("tests/process/experiment/a_test.cc", SUITE + "TEST_P(Lives, Sleeps) {}\n")
        self.assertIn("Lives.Sleeps must be in one group", self.problem())

    def test_a_group_without_its_case_is_found(self):
        with unittest.mock.patch.object(engine_table, "GROUPS", {**GROUPS, "logs": ("Logs",)}):
            self.assertIn("no case for every engine begins with Logs", self.problem())

    def test_another_reason_or_cell_is_found(self):
        page = self.page()
        self.write(engine_table.LEFT_OUT, LEFT_OUT.replace("never", "ever"))
        self.assertIn("its tables aren't those of", self.problem())
        self.write(engine_table.LEFT_OUT, LEFT_OUT)
        self.write(engine_table.PAGE, page.replace("[no (1)](#what-is-left-out)", "yes"))
        self.assertIn("its tables aren't those of", self.problem())
        self.write(engine_table.PAGE, "# E\n")
        self.assertIn("needs one table", self.problem())

    def compared(self, outcomes, complete=()):
        cases = [Case(f"process_experiment_test: {name}", outcome) for name, outcome in outcomes.items()]
        return list(engine_table.problems_with(cases, self.root, complete))

    def test_outcomes_are_compared_with_the_table(self):
        self.assertEqual(self.compared({"Lives.KillEnds/local": "passed", "Lives.KillEnds/ray": "passed", "Other.Case": "failed"}), [])
        self.assertIn("says yes of Lives.KillEnds on ray, which was failed on ray", self.compared({"Lives.KillEnds/ray": "failed"})[0])
        self.assertEqual(self.compared({"Lives.KillEnds/ray": "skipped"}, [("process_experiment_test", "ray")]), [])
        self.assertIn("says no of Colours.AMonitorHasThem on ray, which was passed",
                      self.compared({"Colours.AMonitorHasThem/ray": "passed"})[0])

    def test_a_case_that_has_not_run_is_found_where_all_must(self):
        complete = [("process_experiment_test", "ray")]
        self.assertEqual(self.compared({"Lives.KillEnds/ray": "passed"}, complete), [])
        self.assertIn("Lives.KillEnds on ray, which was not run", self.compared({}, complete)[0])

    def test_cases_of_another_place_are_held_to_the_engine_s_column(self):
        self.assertEqual(self.compared({"Lives.KillEnds/ray_far": "passed"}, [("process_experiment_test", "ray_far")]), [])
        self.assertIn("on ray, which was failed on ray_far", self.compared({"Lives.KillEnds/ray_far": "failed"})[0])
        self.assertIn("on ray, which was not run on ray_far", self.compared({}, [("process_experiment_test", "ray_far")])[0])

    def test_no_engine_leaves_out_more_than_five_things(self):
        suite = engine_table.Suite(ROOT)
        for engine in suite.engines:
            self.assertLessEqual(sum(engine in engines for _, engines, _ in suite.left_out.values()), 5, engine)


if __name__ == "__main__":
    unittest.main()
