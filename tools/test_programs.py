"""Runs one test program with a time limit and reports the outcome of each of its cases.

A GoogleTest program reports through its XML file. Without one (it crashed or hung) its last output counts: the case it
was in has failed. Any other program is one case, with its exit status (77: skipped)."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree

SKIPPED_STATUS = 77
OUTPUT_KEPT = 4000


@dataclasses.dataclass
class Case:
    name: str
    outcome: str  # "passed", "failed" or "skipped"
    detail: str = ""  # why it was skipped, or the last output of a failed one


@dataclasses.dataclass
class Program:
    name: str
    command: list
    folder: str = "."
    timeout: float = 300
    is_gtest: bool = True
    long: bool = False
    alone: bool = False  # starts its own processes or looks at the machine: runs apart from the others (run_programs)
    environment: dict = dataclasses.field(default_factory=dict)


def run(program, gtest_filter=None):
    """Returns the cases of `program` and the seconds it took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="muster_test_") as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        command = list(program.command)
        if program.is_gtest:
            command += [f"--gtest_output=xml:{report}", "--gtest_color=no"]
            if gtest_filter:
                command.append(f"--gtest_filter={gtest_filter}")
        status, output = run_limited(command, program)
        if not program.is_gtest:
            cases = [case_of_status(program, status, output)]
        else:
            cases = cases_of_gtest(program, status, output, report, gtest_filter)
    return cases, time.monotonic() - started


def run_limited(command, program):
    """Returns the exit status (None: ran out of time) and the output. Ends whatever the program has started and left
    behind."""
    environment = dict(os.environ, **program.environment)
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, cwd=program.folder, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return 127, f"{command[0]}: {error}"
        status = watch(process, output.fileno(), program)
        end_group(process)
        process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def watch(process, output, program):
    """Waits for the end and returns the exit status (None: ran out of time). Meanwhile shows each case that fails, so that
    nobody waits for the end of a long program to see it."""
    deadline, shown, rest = time.monotonic() + program.timeout, 0, ""
    while True:
        try:
            return process.wait(min(1, max(0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            piece = os.pread(output, 1 << 20, shown)
            shown += len(piece)
            *lines, rest = (rest + piece.decode(errors="replace")).split("\n")
            for line in lines:
                if line.startswith("[  FAILED  ]") and line.endswith("ms)"):
                    print(f"FAILED  {program.name}: {line.removeprefix('[  FAILED  ] ')}; its words follow at the program's end",
                          flush=True)
            if time.monotonic() >= deadline:
                return None


def end_group(process):
    """Ends a process that leads a group, and what it has started and left behind in the group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def ending(program, status):
    if status is None:
        return f"ran longer than {program.timeout:.0f} s and was ended"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}"


def case_of_status(program, status, output):
    if status == SKIPPED_STATUS:
        return Case(program.name, "skipped", output.strip()[-OUTPUT_KEPT:])
    if status == 0:
        return Case(program.name, "passed")
    return Case(program.name, "failed", f"{output[-OUTPUT_KEPT:]}\n{ending(program, status)}")


def cases_of_gtest(program, status, output, report, gtest_filter):
    try:
        cases = list(cases_of_report(program, ElementTree.parse(report).getroot()))
    except (OSError, ElementTree.ParseError):
        return cases_of_output(program, status, output)
    if status != 0 and not any(c.outcome == "failed" for c in cases):
        # Every case has passed, but the program failed: a sanitizer's report at the end, or a crash in a destructor.
        cases.append(Case(f"{program.name} (at exit)", "failed", f"{output[-OUTPUT_KEPT:]}\n{ending(program, status)}"))
    if not cases and not gtest_filter:
        cases.append(Case(f"{program.name} (as a whole)", "failed", "there is no test case in this program"))
    return cases


def in_short(text):
    """Keeps the beginning, which says what was expected where, and the end."""
    return text if len(text) <= OUTPUT_KEPT else f"{text[:OUTPUT_KEPT // 2]}\n[...]\n{text[-OUTPUT_KEPT // 2:]}"


def cases_of_report(program, root):
    for entry in root.iter("testcase"):
        name = f"{program.name}: {entry.get('classname')}.{entry.get('name')}"
        failures = entry.findall("failure")
        skipped = entry.find("skipped")
        if failures:
            yield Case(name, "failed", in_short("\n".join(f.get("message", "") for f in failures)))
        elif skipped is not None:
            yield Case(name, "skipped", " ".join((skipped.get("message") or "no reason given").split()))
        elif entry.get("status") == "run":
            yield Case(name, "passed")
        elif "DISABLED_" in name:
            yield Case(name, "skipped", "disabled in the source")


def cases_of_output(program, status, output):
    """Returns the cases of a program that ended before it could write its report."""
    cases = []
    words = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
    started = None
    for match in re.finditer(r"\[ (RUN     |      OK|  FAILED |  SKIPPED) \] ([\w./]+)", output):
        word, name = match.group(1).strip(), match.group(2).rstrip(".")
        if word == "RUN":
            started = name
        elif name == started:
            cases.append(Case(f"{program.name}: {name}", words[word]))
            started = None
    culprit = f"{program.name}: {started}" if started else f"{program.name} (as a whole)"
    cases.append(Case(culprit, "failed", f"{output[-OUTPUT_KEPT:]}\n{ending(program, status)}"))
    return cases
