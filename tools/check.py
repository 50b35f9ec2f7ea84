#!/usr/bin/env python3
"""The checks before a commit: `./dev check [--all]`. Prints one line per part, `ok` or `FAILED`; exits 1 if any failed.

--all lets clang-tidy look at every file; without it, only at files that differ from the main line or aren't
committed."""

import dataclasses
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build  # noqa: E402
import test_programs  # noqa: E402

ROOT = build.ROOT
# Parts whose last line says how much they have checked.
TELLING = ("headers", "tests", "lint")


@dataclasses.dataclass
class Result:
    outcome: str
    output: str
    seconds: float


@dataclasses.dataclass
class Part:
    name: str
    what: str
    command: list

    def run(self):
        started = time.monotonic()
        done = subprocess.run(self.command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        return Result("passed" if done.returncode == 0 else "failed", done.stdout, time.monotonic() - started)


def parts(how_much):
    """Returns the parts, quick ones first. `how_much` is what the slow ones look at: [] (what changed), ["--due"] or
    ["--all"]."""

    def tool(name, *arguments):
        return [sys.executable, str(ROOT / "tools" / name), *arguments]

    lints = {"--due": "a share of the files and recent changes", "--all": "everything"}
    return [
        Part("format", "clang-format-14 has nothing to change", tool("check_format.py")),
        Part("layers", "includes and links follow muster/LAYERS", tool("check_layers.py")),
        Part("sizes", "headers, sources, classes, functions", tool("check_sizes.py")),
        Part("names", "no two types of one name in one program", tool("check_names.py")),
        Part("public", "users include what muster/PUBLIC lists", tool("check_public.py")),
        Part("forbidden", "forbidden words and calls", tool("check_forbidden.py")),
        Part("docs", "snippets and links", tool("check_docs.py")),
        Part("docker", "the Dockerfile is pinned, isn't root, and hadolint is content", tool("check_docker.py")),
        Part("headers", "each compiles by itself", tool("check_headers.py", *how_much)),
        Part("locks", "the torch-free part built by clang, thread-safety analysis on", tool("build.py", "notorch", "tests")),
        Part("tests", "unit tests of the torch-free part", tool("check.py", "--run-tests")),
        Part("lint", "clang-tidy on " + (lints[how_much[0]] if how_much else "what changed"),
             tool("check_tidy.py", *how_much)),
    ]


class CaseCollector(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.cases.append(test_programs.Case(str(test), "passed"))

    def addSkip(self, test, reason):
        self.set(test, "skipped", reason)

    def addFailure(self, test, err):
        self.set(test, "failed", self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.set(test, "failed", f"{subtest}\n" + self._exc_info_to_string(err, test))

    def set(self, test, outcome, detail):
        if not self.cases or self.cases[-1].name != str(test):
            self.cases.append(test_programs.Case(str(test), outcome, detail))
        self.cases[-1].outcome, self.cases[-1].detail = outcome, detail


def python_cases(path):
    """Runs the unittest cases of a Python file."""
    sys.path.insert(0, str(path.parent))
    collector = CaseCollector()
    unittest.defaultTestLoader.loadTestsFromName(path.stem).run(collector)
    return collector.cases or [test_programs.Case(path.name, "failed", "there is no test case in this file")]


def run_fast_tests():
    import run_tests

    report = run_tests.Report()
    run_tests.run_programs(report, [p for p in run_tests.programs_of("notorch") if p.is_gtest and not p.alone])
    if not report.cases:
        report.add("tests", [test_programs.Case("tests", "failed", "no test program is known; was the preset configured?")], 0)
    return report.finish()


def main(arguments):
    if arguments == ["--run-tests"]:
        return run_fast_tests()
    if set(arguments) - {"--all"}:
        print(f"check: unknown argument {' '.join(arguments)}; accepted: --all", file=sys.stderr)
        return 2
    failed, started = [], time.monotonic()
    for part in parts(arguments):
        if not build.plain():
            print(f"...     {part.name:9} {part.what}", end="\r", flush=True)
        result = part.run()
        passed, lines = result.outcome == "passed", result.output.strip().splitlines()
        told = f": {lines[-1]}" if passed and lines and part.name in TELLING else ""
        print(f"{'ok' if passed else 'FAILED':6}  {part.name:9} {part.what}{told} ({result.seconds:.1f} s)", flush=True)
        if not passed:
            failed.append(part.name)
            print("\n".join("    " + line for line in lines[-80:]), flush=True)
    seconds = time.monotonic() - started
    print(f"check: {'FAILED: ' + ', '.join(failed) if failed else 'all is well'} ({seconds:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
