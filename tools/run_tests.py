#!/usr/bin/env python3
"""Everything that proves the project right: `./dev test [filter]`.

Without a filter all parts below, in this order. The filter is the name of a part, or part of the name of a test program
or of a case of the release build. The last line is `N passed, N failed, N skipped`; a build or a check that fails counts
as one failed; the exit status is 1 if anything failed."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build  # noqa: E402
import check  # noqa: E402
import test_programs  # noqa: E402
from test_programs import Case, Program  # noqa: E402

ROOT = build.ROOT
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allow_addr2line=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:allow_addr2line=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:allow_addr2line=1",
}
RELEASE_TARGETS = ["programs", "libraries", "tests", "benchmarks"]
SANITIZER_TARGETS = {"asan": ["tests", "fuzzers"], "tsan": ["tests"]}
# Of these the sanitizers' minutes would be one processor's alone: every processor gets a share of their cases, at once.
# They do without the search for uses of frames that have returned: after some thousand simulated deaths, which are
# exceptions, its tables are full of frames, and nearly all of the time goes into looking for a free one.
LONGEST = ("store_test", "train_test")
LONGEST_ASAN_OPTIONS = SANITIZER_ENVIRONMENT["ASAN_OPTIONS"].replace("detect_stack_use_after_return=1",
                                                                     "detect_stack_use_after_return=0")
# Enough to walk through a parser's branches; a long search is what the preset fuzz is for.
FUZZ_RUNS = 20000
FUZZ_SECONDS = 10
# Simulated schedules, always the same ones, about two minutes of one core's. `./dev simulate` looks at others.
SIMULATED_SEED = 1
SIMULATED_SCHEDULES = 6000
SIMULATED_AT_ONCE = 2


class Report:
    """Collects the cases and shows how far it is."""

    def __init__(self):
        self.cases = []
        self.started = time.monotonic()

    def title(self, text):
        print(f"== {text} [{time.monotonic() - self.started:.0f} s since the start]", flush=True)

    def add(self, name, cases, seconds):
        self.cases += cases
        count = {outcome: sum(c.outcome == outcome for c in cases) for outcome in ("passed", "failed", "skipped")}
        shown = ", ".join(f"{n} {outcome}" for outcome, n in count.items() if n)
        print(f"{'FAILED' if count['failed'] else 'ok':6}  {name}: {shown or 'no case'} ({seconds:.1f} s)", flush=True)
        for case in cases:
            if case.outcome == "failed":
                print(f"    failed: {case.name}\n{indented(case.detail)}", flush=True)

    def passed_so_far(self, name):
        return not any(c.outcome == "failed" and c.name == name for c in self.cases)

    def finish(self):
        """Prints what didn't pass once more, then the line for scripts. Returns the exit status."""
        by_outcome = {o: [c for c in self.cases if c.outcome == o] for o in ("passed", "failed", "skipped")}
        print(f"== result after {time.monotonic() - self.started:.0f} s")
        for case in by_outcome["skipped"]:
            print(f"skipped: {case.name}: {case.detail}")
        for case in by_outcome["failed"]:
            print(f"failed: {case.name}\n{indented(case.detail)}")
        print(", ".join(f"{len(cases)} {outcome}" for outcome, cases in by_outcome.items()), flush=True)
        return 1 if by_outcome["failed"] else 0


def indented(text):
    return "\n".join("      " + line for line in text.strip().splitlines()[-60:])


def build_part(report, preset, targets):
    """True if it built; that is a case of its own."""
    report.title(f"{preset}: building {' '.join(targets)}")
    started = time.monotonic()
    status = build.build(preset, targets)
    name = f"build {preset}"
    detail = f"`tools/build.py {preset} {' '.join(targets)}` ended with {status}; its output is above"
    report.add(name, [Case(name, "failed" if status else "passed", detail if status else "")], time.monotonic() - started)
    return status == 0


class BuildAhead:
    """Builds the sanitizers' presets while tests run that mostly wait, with what they leave of the processors."""

    def __init__(self, presets):
        steps = [[sys.executable, str(ROOT / "tools/build.py"), preset, *SANITIZER_TARGETS[preset]] for preset in presets]
        script = " && ".join(" ".join(map(shlex.quote, step)) for step in steps)
        # Idle processors only; where that can't be had, the tests come first at least.
        idle = ["chrt", "--idle", "0"] if shutil.which("chrt") else ["nice", "-n", "19"]
        self.process = subprocess.Popen([*idle, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)

    def end(self):
        """What is missing, or went wrong, is for the parts themselves, at full speed."""
        test_programs.end_group(self.process)
        self.process.wait()


def programs_of(preset):
    """The tests that CMake knows of."""
    listing = subprocess.run(["ctest", "--test-dir", str(ROOT / "build" / preset), "--show-only=json-v1"],
                             capture_output=True, text=True, check=True)
    python_first = {"PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    for test in json.loads(listing.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = properties.get("LABELS", [])
        yield Program(name=test["name"], command=test.get("command", [test["name"]]),
                      folder=properties.get("WORKING_DIRECTORY", "."), timeout=properties.get("TIMEOUT", 300),
                      is_gtest="gtest" in labels, alone="process" in labels or properties.get("RUN_SERIAL", False),
                      environment=python_first)


def run_programs(report, programs, prefix="", gtest_filter=None):
    """Those that need the machine for themselves come last, one by one."""
    together = [p for p in programs if not p.alone]
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        running = {pool.submit(test_programs.run, p, gtest_filter): p for p in together}
        for done in concurrent.futures.as_completed(running):
            add_program(report, prefix, running[done], *done.result(), gtest_filter)
    for program in programs:
        if program.alone:
            add_program(report, prefix, program, *test_programs.run(program, gtest_filter), gtest_filter)


def add_program(report, prefix, program, cases, seconds, gtest_filter):
    if gtest_filter and not cases:
        return
    for case in cases:
        case.name = prefix + case.name
    report.add(prefix + program.name, cases, seconds)


def release_part(report, wanted=""):
    if not build_part(report, "release", RELEASE_TARGETS):
        return
    report.title("release: running the tests")
    programs = list(programs_of("release"))
    chosen = [p for p in programs if wanted in p.name]
    if chosen:
        run_programs(report, chosen)
    else:
        run_programs(report, [p for p in programs if p.is_gtest], gtest_filter=f"*{wanted}*")


def without_address_randomisation():
    """Thread sanitizer's map of the address space doesn't fit kernels that randomise more than 28 bits."""
    prefix = ["setarch", platform.machine(), "-R"]
    works = subprocess.run(prefix + ["true"], capture_output=True).returncode == 0
    return prefix if works else []


def in_shares(program, number):
    """`number` programs in the place of a GoogleTest one, each with its share of the cases."""
    for i in range(number):
        share = {"GTEST_TOTAL_SHARDS": str(number), "GTEST_SHARD_INDEX": str(i)}
        yield dataclasses.replace(program, environment=dict(program.environment, **share))


def sanitizer_part(report, preset):
    if not build_part(report, preset, SANITIZER_TARGETS[preset]):
        return
    report.title(f"{preset}: running the tests that start no processes")
    prefix = without_address_randomisation() if preset == "tsan" else []
    programs = [p for p in programs_of(preset) if p.is_gtest and not p.alone]
    for program in programs:
        program.command = prefix + program.command
        program.timeout *= 3
        program.environment = dict(program.environment, **SANITIZER_ENVIRONMENT)
        if program.name in LONGEST:
            program.environment["ASAN_OPTIONS"] = LONGEST_ASAN_OPTIONS
    longest = [share for p in programs if p.name in LONGEST for share in in_shares(p, build.jobs())]
    run_programs(report, longest + [p for p in programs if p.name not in LONGEST], f"{preset}: ")
    if preset == "asan":
        fuzz_part(report)


def fuzz_program(name, found):
    """A short run of one fuzz target of the preset asan, new inputs going to the folder `found`."""
    corpus = ROOT / "tests/fuzz/corpus" / name.removesuffix("_fuzz")
    command = [str(ROOT / "build/asan/bin" / name), "-seed=1", f"-runs={FUZZ_RUNS}", f"-max_total_time={FUZZ_SECONDS}",
               "-timeout=10", "-error_exitcode=1",  # its own 77 means skipped here
               f"-artifact_prefix={found}/", str(found)] + ([str(corpus)] if corpus.is_dir() else [])
    return Program(name, command, is_gtest=False, environment=SANITIZER_ENVIRONMENT)


def fuzz_part(report):
    # Asked of the sources, so that a target that wasn't built fails.
    names = sorted(p.stem for p in (ROOT / "tests/fuzz").glob("*_fuzz.cc"))
    with tempfile.TemporaryDirectory(prefix="muster_fuzz_") as scratch:
        programs = []
        for name in names:
            found = pathlib.Path(scratch) / name
            found.mkdir()
            programs.append(fuzz_program(name, found))
        run_programs(report, programs, "fuzz: ")


def simulation_part(report):
    if not build_part(report, "release", ["muster_simulate"]):
        return
    report.title(f"simulation: {SIMULATED_SCHEDULES} schedules from seed {SIMULATED_SEED} on")
    share = SIMULATED_SCHEDULES // SIMULATED_AT_ONCE
    seeds = [SIMULATED_SEED + i * share for i in range(SIMULATED_AT_ONCE)]
    run_programs(report, [
        Program(f"simulation from seed {seed} on",
                [str(ROOT / "build/release/bin/muster_simulate"), "--seed", str(seed), "--schedules", str(share)],
                is_gtest=False, timeout=900) for seed in seeds])


def install_part(report):
    if build_part(report, "release", ["programs", "libraries"]):
        python_part(report, "install: another project builds against an installed muster", "tests/install/install_test.py")


def tensorboard_part(report):
    if build_part(report, "release", ["summaries"]):
        python_part(report, "tensorboard: the real one, and its page in a browser", "tests/tensorboard_test.py")


def tutorial_part(report):
    if build_part(report, "release", ["programs"]):
        python_part(report, "tutorial: its pages and notebooks are run", "tests/tutorial_test.py")


def tools_part(report):
    python_part(report, "tools: the tools' own tests", "tests/tools_test.py")
    python_part(report, "tools: what runs the tests", "tests/runner_test.py")
    python_part(report, "tools: bench peers", "tests/bench_peers_test.py")


def python_part(report, title, path):
    report.title(title)
    started = time.monotonic()
    report.add(path, check.python_cases(ROOT / path), time.monotonic() - started)


def check_part(report):
    report.title("check: as ./dev check, without what happens here anyway")
    for part in check.parts(["--due"]):
        # The unit tests run in the other parts, and the preset asan builds the same files with clang's lock analysis on
        # (several as one, so that `headers` looks at every header).
        if part.name in ("tests", "locks"):
            continue
        result = part.run()
        report.add(f"check: {part.name}", [Case(f"check: {part.name}", result.outcome, result.output)], result.seconds)


PARTS = {
    "tools": tools_part,
    "check": check_part,
    "release": release_part,
    "simulation": simulation_part,
    "tensorboard": tensorboard_part,
    "install": install_part,
    "tutorial": tutorial_part,
    "asan": lambda report: sanitizer_part(report, "asan"),
    "tsan": lambda report: sanitizer_part(report, "tsan"),
}


def all_parts(report):
    ahead = None
    for name, part in PARTS.items():
        if name == "release" and build_part(report, "release", RELEASE_TARGETS):
            ahead = BuildAhead(list(SANITIZER_TARGETS))
        if name in SANITIZER_TARGETS and ahead:
            ahead.end()
            ahead = None
        part(report)


def main(arguments):
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(f"test: one filter at most; accepted: a part ({', '.join(PARTS)}) or part of a test's name", file=sys.stderr)
        return 2
    report = Report()
    wanted = arguments[0] if arguments else ""
    if not wanted:
        all_parts(report)
    elif wanted in PARTS:
        PARTS[wanted](report)
    else:
        release_part(report, wanted)
    if not report.cases or (wanted and wanted not in PARTS and len(report.cases) == 1):
        report.add("filter", [Case("filter", "failed", f"no test matches '{wanted}'; the parts are {', '.join(PARTS)}")], 0)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
