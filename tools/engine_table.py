#!/usr/bin/env python3
"""Writes and checks the tables of docs/engines.md: engine_table.py [--write] [ROOT]

The first one says which case of the tests for every engine holds on which engine, the second one what is left out, on
which engine, and why. Both come from the tests' sources, without running them: the suites and their cases from
tests/process, what is left out from tests/process/testing/not_on_engine.h. `./dev test` compares the first table with the
outcomes of the cases that it has run (`problems_with`). Used by check_docs.py and run_tests.py."""

import pathlib
import re
import sys

import error_rows

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = "tests/process/testing/not_on_engine.h"
PAGE = "docs/engines.md"
MARKED = re.compile(r"(?P<begin><!-- (?P<name>cases|left out) by engine_table.py -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
# More exceptions than that on an engine are no conformance.
MOST_LEFT_OUT = 5
# Groups of which no engine may leave out a case.
NEVER_LEFT_OUT = ("train", "logs", "kill", "first cause", "teardown", "exit codes")
TITLES = {"local": "local", "ssh": "ssh", "command": "[command](command_engine.md)", "slurm": "[Slurm](slurm.md)",
          "ray": "[Ray](ray.md)", "spark": "[Spark](spark.md)", "kubernetes": "[Kubernetes](kubernetes.md)"}
NO = "[no (NUMBER)](#what-is-left-out)"  # of the reason's row

# What the cases prove. Each is in one group, by the beginning of its name.
GROUPS = {
    "train": ("ATaskFinds", "ValuesOf", "CodeIsThat", "RisemlsFile", "AVolume", "AnEvaluator", "AHomeWithin", "Install", "Setup",
              "ParametersOf", "AParameter", "JsonIs", "CtrlCOnlyDetaches", "Detached", "TheEndOfTheTerminal", "UnderNohup", "TasksFind",
              "AScriptOf", "AParameterServerScript", "AnExampleTrains", "ThreeTasks", "ProcessesOf"),
    "status, show": ("WhatIsKnown",),
    "monitor": ("Monitor",),
    "logs": ("AllThatATaskHasWritten", "AProgressBar", "LogsFollows", "AllGoesOn", "AMillion"),
    "kill": ("Kill", "WhoIgnores", "CtrlCWhileKillWaits"),
    "results, TensorBoard": ("Results", "Tensorboard", "TheRealTensorboard"),
    "rerun": ("Rerun",),
    "--experiment": ("AnotherAttempt",),
    "grids": ("AGrid", "RandomSearch", "OneRunOf", "ARunThatWaits", "AKilledGrid", "ARunOfAGrid"),
    "restarts": ("AKilledWorker", "AWorkerBeyond", "AlwaysStarts"),
    "first cause": ("AFailedMaster", "AFailedBuild", "TheFirstWorker", "ATaskOver"),
    "teardown": ("Grandchildren", "APsThat"),
    "end of the supervisor": ("WithoutItsSupervisor", "ARunOfAGridThatLoses"),
    "exit codes": ("ARunStops", "ASignal"),
    "ids": ("TwoAtOnce", "WhatChanges"),
}
# Words that aren't those of the cases' names.
WORDS = (("ctrl c", "Ctrl-C"), ("risemls", "RiseML's"), ("json", "JSON"), ("tensorboard", "TensorBoard"), ("tensor flow", "TensorFlow"),
         ("projects last", "project's last"), ("commands$", "command's"), ("torchruns", "torchrun's"), ("failed builds cause", "failed build's cause"))


class Case:
    """A case of a suite, on all engines for which the suite is instantiated."""

    def __init__(self, suite, name, program, left_out=0, without=()):
        self.suite, self.name, self.program = suite, name, program
        self.left_out, self.without = left_out, without  # the number of what is left out, and the engines

    def has(self, engine):
        return engine not in self.without

    @property
    def words(self):
        parts = re.findall(r"[A-Z][a-z]*|\d+", self.name)
        text = " ".join(part.lower() for part in parts)
        for before, after in WORDS:
            text = re.sub(rf"\b{before}", after, text)
        return text[0].upper() + text[1:]


class Suite:
    """What the sources say: `engines`, `places` as {end of a case's name: its engine}, `left_out` as {name: (what, engines, why)},
    `cases`."""

    def __init__(self, root):
        text = (root / LEFT_OUT).read_text(encoding="utf-8")
        self.engines = re.findall(r'"(\w+)"', re.search(r"engines = \{([^}]*)\}", text)[1])
        other = re.search(r"other_places = \{(.*?)\};", text)
        self.places = {**{engine: engine for engine in self.engines}, **dict(re.findall(r'\{"(\w+)", "(\w+)"\}', other[1]))}
        self.left_out = {}
        for name, row in re.findall(r"\{NotOnEngine::(k\w+),\s*(\{.*?\})\}(?=[,}])", text, re.DOTALL):
            engines = re.search(r"\{((?:\"\w+\"(?:, )?)+)\}", row)
            what, why = (error_rows.strings(part)[0] for part in (row[:engines.start()], row[engines.end():]))
            self.left_out[name] = (what, re.findall(r"\w+", engines[1]), why)
        self.cases = [case for path in sorted((root / "tests/process").glob("*/*_test.cc")) for case in self._cases_of(path)]

    def _cases_of(self, path):
        text = path.read_text(encoding="utf-8")
        program = "process_framework_test" if path.name == "experiment_framework_test.cc" else f"process_{path.parent.name}_test"
        for suite, engines in re.findall(r"INSTANTIATE_TEST_SUITE_P\(\s*,\s*(\w+),\s*(EveryEngine\(\)|EnginesWith\(NotOnEngine::\w+\))", text):
            what = re.search(r"::(\w+)\)", engines)
            without = (list(self.left_out).index(what[1]) + 1, self.left_out[what[1]][1]) if what else ()
            for name in re.findall(rf"TEST_P\({suite}, (\w+)\)", text):
                yield Case(suite, name, program, *without)


def groups_of(case):
    """All groups to whose beginnings the case's name is closest."""
    matching = [(len(begin), group) for group, begins in GROUPS.items() for begin in begins if case.name.startswith(begin)]
    longest = max(matching, default=(0, ""))[0]
    return sorted({group for length, group in matching if length == longest})


def head(before, suite, after=()):
    columns = [*before, *(TITLES.get(engine, engine) for engine in suite.engines), *after]
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]


def case_table(suite):
    lines = head(["proves", "case"], suite)
    for group in GROUPS:
        before = ""
        for case in (case for case in suite.cases if groups_of(case) == [group]):
            cells = ["yes" if case.has(engine) else NO.replace("NUMBER", str(case.left_out)) for engine in suite.engines]
            lines.append(f"| {'' if before == group else group} | {' | '.join([case.words] + cells)} |")
            before = group
    return "\n".join(lines) + "\n"


def left_out_table(suite):
    lines = head(["", "what"], suite, ["why"])
    for number, (what, engines, why) in enumerate(suite.left_out.values(), 1):
        cells = ["no" if engine in engines else "yes" for engine in suite.engines]
        lines.append(f"| {' | '.join([str(number), what] + cells + [why])} |")
    return "\n".join(lines) + "\n"


def problems(root, write=False):
    """Yields what is wrong with the page and its sources."""
    if not (root / LEFT_OUT).is_file():
        return
    suite = Suite(root)
    for case in suite.cases:
        if len(groups_of(case)) != 1:
            yield f"tools/engine_table.py: {case.suite}.{case.name} must be in one group of GROUPS, not in {groups_of(case) or 'none'}"
        for group in groups_of(case):
            if group in NEVER_LEFT_OUT and case.without:
                yield f"tools/engine_table.py: {case.suite}.{case.name} is of {group}, which no engine may leave out: {', '.join(case.without)}"
    for group, begins in GROUPS.items():
        for begin in begins:
            if not any(case.name.startswith(begin) for case in suite.cases):
                yield f"tools/engine_table.py: {group}: no case for every engine begins with {begin}"
    for engine in suite.engines:
        without = [what for what, engines, _ in suite.left_out.values() if engine in engines]
        if len(without) > MOST_LEFT_OUT:
            yield f"{LEFT_OUT}: {engine} leaves out {len(without)}, more than {MOST_LEFT_OUT}: {'; '.join(without)}"
    path = root / PAGE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    tables = {"cases": case_table(suite), "left out": left_out_table(suite)}
    found = [match["name"] for match in MARKED.finditer(text)]
    if sorted(found) != sorted(tables):
        yield f"{PAGE}: needs one table below each of the comments `<!-- NAME by engine_table.py -->` for {', '.join(tables)}"
        return
    wanted = MARKED.sub(lambda match: f"{match['begin']}\n{tables[match['name']]}\n{match['end']}", text)
    if wanted == text:
        return
    if write:
        path.write_text(wanted, encoding="utf-8")
    else:
        yield f"{PAGE}: its tables aren't those of {LEFT_OUT} and the cases in tests/process; tools/engine_table.py --write fixes it"


def outcomes_of(cases):
    """{(program, "SUITE.CASE", place): outcome} of those whose name ends with an engine or another place, from cases of test_programs."""
    found = {}
    for case in cases:
        match = re.fullmatch(r"(?P<program>\w+): /?(?P<name>\w+\.\w+)/(?P<place>\w+)", case.name)
        if match:
            found[match["program"], match["name"], match["place"]] = case.outcome
    return found


def problems_with(cases, root=ROOT, complete=()):
    """Compares the table with outcomes: what it says to work must have passed where it has run. A case that is skipped, as
    on a machine without the engine, says nothing. `complete`: pairs of a program and a place on which all must have run."""
    suite, outcomes = Suite(root), outcomes_of(cases)
    for case in suite.cases:
        name = f"{case.suite}.{case.name}"
        for place, engine in suite.places.items():
            awaited = case.has(engine) and (case.program, place) in complete
            outcome = outcomes.get((case.program, name, place), "not run" if awaited else None)
            if outcome not in (None, "skipped") and case.has(engine) != (outcome == "passed"):
                said = "yes" if case.has(engine) else "no"
                yield f"{PAGE} says {said} of {name} on {engine}, which was {outcome} on {place}"


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a != "--write"]
    wrong = list(problems(pathlib.Path(rest[0] if rest else ROOT).resolve(), "--write" in sys.argv))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
