#!/usr/bin/env python3
"""Everything that proves the project right: `./dev test [--sanitizers | --long | --ci] [filter]`.

Without words: the parts of "everyday" below, in this order. --sanitizers: address, undefined behaviour and thread
sanitizer, fuzz targets, lint. --long: what is long by nature. --ci: everyday, then the sanitizers, in one report. The filter is
the name of a part, or part of the name of a test program or of a case of the release build.

The last line is `N passed, N failed, N skipped`; a build or a check that fails counts as one failed; the exit status is 1 if
anything failed. A case that fails is shown at once. At the end: the ten slowest builds and tests, and the time of each
part against tools/time_budget.txt."""

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
import engine_table  # noqa: E402
import test_programs  # noqa: E402
from test_programs import Case, Program  # noqa: E402

ROOT = build.ROOT
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allow_addr2line=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:allow_addr2line=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:allow_addr2line=1",
}
# What the parts that start programs need; the unit tests are built while those run.
PROGRAM_TARGETS = ["programs", "libraries", "process_tests"]
HOSTS_PROGRAM = "process_hosts_test"
SLURM_PROGRAM = "process_slurm_test"
KUBERNETES_PROGRAM = "process_kubernetes_test"
SPARK_PROGRAM = "process_spark_test"
RAY_PROGRAM = "process_ray_test"
LONG_ON_RAY = "RayLong.*"
LONG_ON_KUBERNETES = "Kubernetes*Long.*"
# What has cases that run on every engine, whose name is behind theirs: "/ray", or that of another place of the command:
# "/slurm_pty". There all of them take too long for every day, so they are in parts of their own; the framework program
# is long anyway.
EXPERIMENT_PROGRAM = "process_experiment_test"
FRAMEWORK_PROGRAM = "process_framework_test"
EVERYDAY_APART = ("command", "slurm_pty", "ray", "kubernetes")
APART = (*EVERYDAY_APART, "spark")  # which only a long part installs
ALL_SECONDS = 3600  # for a share of all cases on one of them
# They install a framework, and a run on Spark has three programs in Java, which take ten seconds of a processor each.
PATIENT = {"MUSTER_TEST_PATIENCE": "600"}
NOT_APART = "-" + ":".join(f"*/{engine}" for engine in APART)
# On the first ones, one case a day for each thing that holds on every engine: train, logs, kill, teardown, exit codes, first
# cause, grids.
EVERYDAY_CASES = (
    "ExperimentCommand.ATaskFindsItsEnvironmentAndItsProject",
    "ExperimentCommand.ARunStopsAtItsFirstFailureWhoseCodeIsTheCommands",
    "ExperimentWatching.LogsFollowsARunUntilItsEnd",
    "ExperimentLife.KillEndsAllTasksAndShowsIt",
    "ExperimentLife.GrandchildrenLeftBehindAreEnded",
    "ExperimentLife.AFailedMasterEndsTheOthersAndIsNamedWithItsLastLines",
    "ExperimentLife.OneRunOfAGridIsKilledAlone",
)
SANITIZER_TARGETS = {"asan": ["tests", "fuzzers"], "tsan": ["tests"]}
# Under the sanitizers each of these takes one processor for minutes, so every processor gets a share of their cases, at
# once. They do without the search for uses of frames that have returned: after some thousand simulated deaths, which are
# exceptions, its tables are full of frames, and nearly all of the time goes into looking for a free one.
LONGEST = ("store_test", "train_test")
LONGEST_ASAN_OPTIONS = SANITIZER_ENVIRONMENT["ASAN_OPTIONS"].replace("detect_stack_use_after_return=1",
                                                                     "detect_stack_use_after_return=0")
# Enough to walk through a parser's branches; a long search is what `./dev test --long` and the preset fuzz are for.
FUZZ_RUNS, FUZZ_SECONDS = 20000, 10
LONG_FUZZ_SECONDS = 300
# Simulated schedules, always the same ones, about two minutes of one core's. `./dev simulate` looks at others.
SIMULATED_SEED = 1
SIMULATED_SCHEDULES = 6000
LONG_SIMULATED_SCHEDULES = 100000
SIMULATED_AT_ONCE = 2
AGENT_SCHEDULES_ARE_ONE_IN = 10
SLOWEST = 10


class Report:
    """Collects the cases and shows how far it is."""

    def __init__(self, budget=None):
        self.cases = []
        self.started = time.monotonic()
        self.started_at = time.time()
        self.programs = []  # (seconds, name)
        self.parts = []  # (name, seconds)
        self.budget = budget or {}

    def title(self, text):
        print(f"== {text} [{time.monotonic() - self.started:.0f} s since the start]", flush=True)

    def add(self, name, cases, seconds):
        self.cases += cases
        self.programs.append((seconds, name))
        count = {outcome: sum(c.outcome == outcome for c in cases) for outcome in ("passed", "failed", "skipped")}
        shown = ", ".join(f"{n} {outcome}" for outcome, n in count.items() if n)
        print(f"{'FAILED' if count['failed'] else 'ok':6}  {name}: {shown or 'no case'} ({seconds:.1f} s)", flush=True)
        for case in cases:
            if case.outcome == "failed":
                print(f"    failed: {case.name}\n{indented(case.detail)}", flush=True)

    def part(self, name, function):
        started = time.monotonic()
        function(self)
        self.parts.append((name, time.monotonic() - started))

    def finish(self):
        """Prints where the time went, what didn't pass once more, then the line for scripts. Returns the exit status."""
        by_outcome = {o: [c for c in self.cases if c.outcome == o] for o in ("passed", "failed", "skipped")}
        total = time.monotonic() - self.started
        print(f"== result after {total:.0f} s")
        print_slowest("builds", slowest_builds(self.started_at))
        print_slowest("tests", self.programs)
        for line in budget_lines(self.parts, self.budget):
            print(line)
        for case in by_outcome["skipped"]:
            print(f"skipped: {case.name}: {case.detail}")
        for case in by_outcome["failed"]:
            print(f"failed: {case.name}\n{indented(case.detail)}")
        # Once more in short, beside the last line: some hosts of builds show only the end of a long output.
        for case in by_outcome["failed"]:
            print("\n".join([f"FAILED: {case.name}", *first_words(case.detail)]))
        print(", ".join(f"{len(cases)} {outcome}" for outcome, cases in by_outcome.items()), flush=True)
        return 1 if by_outcome["failed"] else 0


def indented(text, first=15, last=45):
    """The first lines say what was expected where, the last ones what happened before it failed."""
    lines = text.strip().splitlines()
    if len(lines) > first + last:
        lines[first:-last] = [f"[... {len(lines) - first - last} lines ...]"]
    return "\n".join("      " + line for line in lines)


def first_words(text, lines=6, width=200):
    """The first lines that say something, for the names of what failed."""
    return [f"    {line.strip()[:width]}" for line in text.splitlines() if line.strip()][:lines]


def slowest_builds(since):
    """(seconds, preset and file) of what ninja made since then; ninja's log has milliseconds since each of its own starts."""
    for log in (ROOT / "build").glob("*/.ninja_log"):
        lines = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()[1:]]
        for output, seconds in {output: (int(end) - int(start)) / 1000 for start, end, _, output, _ in lines}.items():
            made = log.parent / output
            if made.exists() and made.stat().st_mtime >= since:  # the log's last line about it counts
                yield seconds, f"{log.parent.name}: {output}"


def print_slowest(what, timed):
    timed = sorted(timed, reverse=True)[:SLOWEST]
    if timed:
        print(f"slowest {what}:")
        for seconds, name in timed:
            print(f"  {seconds:7.1f} s  {name}")


def read_budget(text):
    """{part: seconds} of lines "PART SECONDS  # why"."""
    lines = (line.split("#")[0].split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in lines if words}


def budget_lines(parts, budget):
    """The time of each part beside what tools/time_budget.txt allows it on two processors that have nothing built yet."""
    if parts:
        yield "time of the parts, and their budget (tools/time_budget.txt):"
    for name, seconds in parts:
        allowed = budget.get(name)
        late = f"  WARNING: {seconds - allowed:.0f} s over its budget" if allowed and seconds > allowed else ""
        yield f"  {seconds:7.1f} s  {name} ({f'{allowed} s' if allowed else 'no budget'}){late}"


def build_part(report, preset, targets):
    """True if it built; that is a case of its own."""
    report.title(f"{preset}: building {' '.join(targets)}")
    started = time.monotonic()
    status = build.build(preset, targets)
    name = f"build {preset} {' '.join(targets)}"
    detail = f"`tools/build.py {preset} {' '.join(targets)}` ended with {status}; its output is above"
    report.add(name, [Case(name, "failed" if status else "passed", detail if status else "")], time.monotonic() - started)
    return status == 0


class BuildAhead:
    """Builds (preset, targets) pairs while tests run that mostly wait, with what they leave of the processors."""

    def __init__(self, builds):
        steps = [[sys.executable, str(ROOT / "tools/build.py"), preset, *targets] for preset, targets in builds]
        script = " && ".join(" ".join(map(shlex.quote, step)) for step in steps)
        # Idle processors only; where that isn't available, the tests come first at least.
        idle = ["chrt", "--idle", "0"] if shutil.which("chrt") else ["nice", "-n", "19"]
        self.process = subprocess.Popen([*idle, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        # Linux shares the processors among sessions first, whatever the priorities within each are (sched(7), autogroup).
        try:
            pathlib.Path(f"/proc/{self.process.pid}/autogroup").write_text("19", encoding="ascii")
        except OSError:
            pass  # a system without it, or one that wants pauses between such changes

    def end(self):
        """What is missing, or went wrong, is for the parts themselves, at full speed."""
        test_programs.end_group(self.process)
        self.process.wait()


def own_machine():
    """The start of a command that gives a program a /dev/shm and loopback ports of its own, so that two programs that
    look for what is left there can run at once; [] where that isn't permitted."""
    script = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && ip link set lo up && exec \"$@\""
    prefix = ["unshare", "--mount", "--net", "sh", "-c", script, "sh"]
    try:
        works = subprocess.run(prefix + ["true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return prefix if works else []


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
                      is_gtest="gtest" in labels, alone="process" in labels, long="long" in labels,
                      environment=python_first)


def run_programs(report, programs, prefix="", gtest_filter=None):
    """Those that start processes come last: each on a machine of its own where that can be had, else one by one."""
    apart = own_machine() if any(p.alone for p in programs) else []
    for group in ([p for p in programs if not p.alone], [p for p in programs if p.alone]):
        at_once = build.jobs()
        if any(p.alone for p in group):
            at_once = at_once + 2 if apart else 1  # they wait more than half of the time
        # The shares of a long program aren't the last to start.
        group = [share for p in group for share in (in_shares(p, at_once) if p.alone and apart else [p])]
        for program in group:
            program.command = (apart if program.alone else []) + program.command
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            running = {pool.submit(test_programs.run, p, gtest_filter): p for p in group}
            for done in concurrent.futures.as_completed(running):
                add_program(report, prefix, running[done], *done.result(), gtest_filter)


def add_program(report, prefix, program, cases, seconds, gtest_filter):
    if gtest_filter and not cases:
        return
    for case in cases:
        case.name = prefix + case.name
    report.add(prefix + program.name, cases, seconds)


def process_part(report):
    """Tests that start the programs, kill them, and look at what is left."""
    if build_part(report, "release", PROGRAM_TARGETS):
        report.title("process: running the tests that start programs")
        apart = (HOSTS_PROGRAM, SLURM_PROGRAM, RAY_PROGRAM, KUBERNETES_PROGRAM, SPARK_PROGRAM)
        run_programs(report, [not_apart(p) for p in programs_of("release")
                              if p.alone and not p.long and p.name not in apart])
        add_table(report, [])


def hosts_part(report):
    """Those over several hosts, which have a budget of their own."""
    if build_part(report, "release", PROGRAM_TARGETS):
        report.title("hosts: running the tests over simulated hosts")
        run_programs(report, [not_apart(p) for p in programs_of("release") if p.name == HOSTS_PROGRAM])
        run_on(report, "command", {EXPERIMENT_PROGRAM: everyday_on("command")})


def not_apart(program):
    """The program without its cases on engines that have other parts."""
    return dataclasses.replace(program, environment={**program.environment, "GTEST_FILTER": NOT_APART})


def everyday_on(engine):
    return ":".join(f"{case}/{engine}" for case in EVERYDAY_CASES)


def run_on(report, engine, filters, shares=1, timeout=0, environment=None):
    """Runs programs, {name: filter of GoogleTest}, on an engine, all at once: each in so many shares with a cluster each,
    which takes longer to come than most of the cases, and that has `timeout` seconds, unless its own limit is higher. Compares
    all that has run with docs/engines.md."""
    programs = [p for p in programs_of("release") if p.name in filters]
    apart = own_machine()
    for program in programs:
        program.command = apart + program.command
        program.timeout = max(program.timeout, timeout)
        program.environment = {**program.environment, **(environment or {})}
    found, longest = {p.name: [] for p in programs}, {p.name: 0 for p in programs}
    with concurrent.futures.ThreadPoolExecutor(shares * len(programs) if apart else 1) as pool:
        running = {pool.submit(test_programs.run, share, filters[p.name]): p.name for p in programs for share in in_shares(p, shares)}
        for done in concurrent.futures.as_completed(running):
            name, (cases, seconds) = running[done], done.result()
            found[name] += cases
            longest[name] = max(longest[name], seconds)
    for name, cases in found.items():
        none = [Case(f"{name} on {engine}", "failed", f"no case is named {filters[name]}")]
        report.add(f"{name} on {engine}", cases or none, longest[name])
    add_table(report, [(name, engine) for name, wanted in filters.items() if wanted == f"*/{engine}"])


def add_table(report, complete):
    """Adds a case that fails if what has run until now isn't what docs/engines.md says. Each difference is said once."""
    known = "\n".join(case.detail for case in report.cases if case.name == engine_table.PAGE).splitlines()
    wrong = [one for one in engine_table.problems_with(report.cases, complete=complete) if one not in known]
    report.add("what works on each engine", [Case(engine_table.PAGE, "failed" if wrong else "passed", "\n".join(wrong))], 0)


def ray_part(report):
    """With a real Ray: its own tests, and some of those that run on every engine."""
    if build_part(report, "release", PROGRAM_TARGETS):
        report.title("ray: running the tests with a real Ray")
        run_on(report, "ray", {RAY_PROGRAM: f"-{LONG_ON_RAY}", EXPERIMENT_PROGRAM: everyday_on("ray")})


def all_on_part(report, engine, own=None, shares=1):
    """All that runs on every engine, and what of the engine's `own` tests takes longer."""
    if build_part(report, "release", [*PROGRAM_TARGETS, FRAMEWORK_PROGRAM]):
        report.title(f"all_on_{engine}: running the tests for every engine on {engine}")
        on_all = {name: f"*/{engine}" for name in (EXPERIMENT_PROGRAM, HOSTS_PROGRAM, FRAMEWORK_PROGRAM)}
        run_on(report, engine, {**(own or {}), **on_all}, shares, ALL_SECONDS, PATIENT)


def slurm_part(report):
    """Those on a real Slurm, likewise."""
    if build_part(report, "release", PROGRAM_TARGETS):
        report.title("slurm: running the tests on a real Slurm")
        run_programs(report, [p for p in programs_of("release") if p.name == SLURM_PROGRAM])
        run_on(report, "slurm_pty", {EXPERIMENT_PROGRAM: everyday_on("slurm_pty")})


def kubernetes_part(report):
    """Those in pods of a stand-in for Kubernetes, likewise."""
    if build_part(report, "release", PROGRAM_TARGETS):
        report.title("kubernetes: running the tests in pods of a stand-in")
        run_on(report, "kubernetes", {KUBERNETES_PROGRAM: f"-{LONG_ON_KUBERNETES}",
                                      EXPERIMENT_PROGRAM: everyday_on("kubernetes")}, shares=2)


def installs(report, group):
    """Installs what a long part needs that other tests don't. True if it is there then."""
    report.title(f"{group}: installing what is missing for it")
    installed = subprocess.run([ROOT / "tools/setup.sh", "--quiet", "--for", group], check=False).returncode == 0
    if not installed:
        report.add(group, [Case(group, "failed", f"tools/setup.sh --for {group} has failed")], 0.0)
    return installed


def kubernetes_api_part(report):
    """The API server of Kubernetes 1.20, which it builds from Debian's source, ten minutes."""
    if installs(report, "kubernetes") and build_part(report, "release", ["muster_command", "digits"]):
        python_part(report, "kubernetes_api: what a real API server says", "tests/kubernetes_api_test.py")


def all_on_spark_part(report):
    """All that runs on every engine, on a real standalone cluster of Spark."""
    if installs(report, "spark"):
        all_on_part(report, "spark", shares=2)


def spark_part(report):
    """What is Spark's own, on a real local-cluster; installs it and a JRE, 500 MB."""
    if installs(report, "spark") and build_part(report, "release", PROGRAM_TARGETS):
        report.title("spark: running the tests on a real Spark")
        programs = [p for p in programs_of("release") if p.name == SPARK_PROGRAM]
        for program in programs:
            program.environment = {**program.environment, **PATIENT}
        run_programs(report, programs)


def units_part(report):
    if build_part(report, "release", ["tests"]):
        report.title("units: running the tests inside one process")
        run_programs(report, longest_in_shares([p for p in programs_of("release") if not p.alone and not p.long]))


def filtered_part(report, wanted):
    """Programs whose names have `wanted` in them, else cases; large and small letters are the same."""
    if not build_part(report, "release", ["programs", "tests"]):
        return
    programs = list(programs_of("release"))
    before = len(report.cases)
    chosen = [p for p in programs if wanted.lower() in p.name.lower()]
    for program in chosen:
        if program.long:
            report.cases.append(Case(program.name, "skipped", "`./dev test frameworks` builds and runs it"))
    if chosen:
        run_programs(report, [p for p in chosen if not p.long])
    else:
        run_programs(report, [p for p in programs if p.is_gtest and not p.long], gtest_filter=any_case(wanted))
    if len(report.cases) == before:
        report.add("filter", [Case("filter", "failed", f"no test matches '{wanted}'; the parts are {', '.join(PARTS)}")], 0)


def any_case(wanted):
    """A filter of GoogleTest, which knows '?' but no classes of letters, for each way to write the first letters of words."""
    return ":".join(dict.fromkeys(f"*{form}*" for form in (wanted, wanted.capitalize(), wanted.title(), wanted.upper())))


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


def longest_in_shares(programs):
    """The longest programs first, divided, so that no processor waits for the last of them."""
    longest = [share for p in programs if p.name in LONGEST for share in in_shares(p, build.jobs())]
    return longest + [p for p in programs if p.name not in LONGEST]


def sanitizer_part(report, preset):
    if not build_part(report, preset, SANITIZER_TARGETS[preset]):
        return
    report.title(f"{preset}: running the tests that start no processes")
    prefix = without_address_randomisation() if preset == "tsan" else []
    programs = [p for p in programs_of(preset) if p.is_gtest and not p.alone and not p.long]
    for program in programs:
        program.command = prefix + program.command
        program.timeout *= 3
        program.environment = dict(program.environment, **SANITIZER_ENVIRONMENT)
        if program.name in LONGEST:
            program.environment["ASAN_OPTIONS"] = LONGEST_ASAN_OPTIONS
    run_programs(report, longest_in_shares(programs), f"{preset}: ")
    if preset == "asan":
        fuzz_part(report, FUZZ_RUNS, FUZZ_SECONDS)


def fuzz_program(name, found, runs=FUZZ_RUNS, seconds=FUZZ_SECONDS):
    """A run of one fuzz target of the preset asan, new inputs going to the folder `found`."""
    corpus = ROOT / "tests/fuzz/corpus" / name.removesuffix("_fuzz")
    command = [str(ROOT / "build/asan/bin" / name), "-seed=1", f"-runs={runs}", f"-max_total_time={seconds}",
               "-timeout=10", "-error_exitcode=1",  # its own 77 means skipped here
               f"-artifact_prefix={found}/", str(found)] + ([str(corpus)] if corpus.is_dir() else [])
    return Program(name, command, is_gtest=False, environment=SANITIZER_ENVIRONMENT, timeout=seconds + 300)


def fuzz_part(report, runs, seconds):
    # Asked of the sources, so that a target that wasn't built fails.
    names = sorted(p.stem for p in (ROOT / "tests/fuzz").glob("*_fuzz.cc"))
    with tempfile.TemporaryDirectory(prefix="muster_fuzz_") as scratch:
        programs = []
        for name in names:
            found = pathlib.Path(scratch) / name
            found.mkdir()
            programs.append(fuzz_program(name, found, runs, seconds))
        run_programs(report, programs, "fuzz: ")


def long_fuzz_part(report):
    if build_part(report, "asan", ["fuzzers"]):
        report.title(f"long_fuzz: {LONG_FUZZ_SECONDS} s for each fuzz target")
        fuzz_part(report, -1, LONG_FUZZ_SECONDS)


def simulation_part(report, first=SIMULATED_SEED, schedules=SIMULATED_SCHEDULES, timeout=900):
    if not build_part(report, "release", ["muster_simulate"]):
        return
    report.title(f"simulation: {schedules} schedules from seed {first} on")
    share = schedules // SIMULATED_AT_ONCE
    seeds = [first + i * share for i in range(SIMULATED_AT_ONCE)]
    command = str(ROOT / "build/release/bin/muster_simulate")
    agents = ["--world", "agents", "--seed", str(first), "--schedules", str(schedules // AGENT_SCHEDULES_ARE_ONE_IN)]
    run_programs(report, [
        Program(f"simulation from seed {seed} on", [command, "--seed", str(seed), "--schedules", str(share)],
                is_gtest=False, timeout=timeout) for seed in seeds] + [
        Program("simulation of agents", [command] + agents, is_gtest=False, timeout=timeout)])


def install_part(report):
    if build_part(report, "release", ["programs", "libraries"]):
        python_part(report, "install: another project builds against an installed muster", "tests/install/install_test.py")


def wheel_part(report):
    """Builds the package's library and the command for it; where the preset release is built, the cache has most of that."""
    python_part(report, "python: the package, in an environment of its own", "tests/python/wheel_test.py")


def tensorboard_part(report):
    if build_part(report, "release", ["summaries"]):
        python_part(report, "tensorboard: the real one, and its page in a browser", "tests/tensorboard_test.py")


def tutorial_part(report):
    if build_part(report, "release", ["programs"]):
        python_part(report, "tutorial: its pages are run, and one as a notebook", "tests/tutorial_test.py")


def notebooks_part(report):
    if build_part(report, "release", ["programs"]):
        python_part(report, "notebooks: every page is run as one", "tests/notebooks_test.py")


def tools_part(report):
    for title, name in (("structure", "layers, sizes, names and words"), ("pages", "pages against programs"), ("lint", "lint"),
                        ("commands", "./dev"), ("ray_client", "the program that asks Ray"),
                        ("ray_driver", "the programs beside Ray"), ("spark_driver", "the programs beside Spark"),
                        ("manifest", "manifests against the models of Kubernetes"),
                        ("kube_standin", "the stand-in for Kubernetes"),
                        ("engine_table", "what works on each engine"),
                        ("runner", "what runs the tests"), ("bench_peers", "bench peers")):
        python_part(report, f"tools: {name}", f"tests/tools/{title}_test.py")


def frameworks_part(report):
    """Real TensorFlow under the launcher; installs it, 1.5 GB. On engines with parts of their own it is run there."""
    if build_part(report, "release", ["muster_command", FRAMEWORK_PROGRAM]):
        run_programs(report, [not_apart(p) for p in programs_of("release") if p.long])


def benchmarks_part(report):
    build_part(report, "release", ["benchmarks"])


def python_part(report, title, path):
    report.title(title)
    started = time.monotonic()
    report.add(path, check.python_cases(ROOT / path), time.monotonic() - started)


# The unit tests run in other parts, and the preset asan builds the same files with clang's lock analysis on (several as one,
# so that `headers` looks at every header).
ELSEWHERE = ("tests", "locks")
WITH_CLANG = ("headers", "lint")


def check_part(report, chosen=lambda name: name not in WITH_CLANG, title="check: the quick parts of ./dev check"):
    report.title(title)
    for part in check.parts(["--due"]):
        if part.name in ELSEWHERE or not chosen(part.name):
            continue
        result = part.run()
        report.add(f"check: {part.name}", [Case(f"check: {part.name}", result.outcome, result.output)], result.seconds)


def lint_part(report):
    check_part(report, lambda name: name in WITH_CLANG, "lint: headers by themselves and clang-tidy, on what is due")


EVERYDAY = {
    "tools": tools_part,
    "check": check_part,
    "process": process_part,
    "hosts": hosts_part,
    "slurm": slurm_part,
    "ray": ray_part,
    "kubernetes": kubernetes_part,
    "simulation": simulation_part,
    "tensorboard": tensorboard_part,
    "install": install_part,
    "python": wheel_part,
    "tutorial": tutorial_part,
    "units": units_part,
}
SANITIZERS = {
    "asan": lambda report: sanitizer_part(report, "asan"),
    "tsan": lambda report: sanitizer_part(report, "tsan"),
    "lint": lint_part,
    "benchmarks": benchmarks_part,
}
LONG = {
    "frameworks": frameworks_part,
    "all_on_command": lambda report: all_on_part(report, "command", shares=2),
    "all_on_slurm_pty": lambda report: all_on_part(report, "slurm_pty", shares=2),
    "all_on_ray": lambda report: all_on_part(report, "ray", {RAY_PROGRAM: LONG_ON_RAY}),
    "all_on_kubernetes": lambda report: all_on_part(report, "kubernetes", {KUBERNETES_PROGRAM: LONG_ON_KUBERNETES}, shares=2),
    "all_on_spark": all_on_spark_part,
    "kubernetes_api": kubernetes_api_part,
    "spark": spark_part,
    "notebooks": notebooks_part,
    "schedules": lambda report: simulation_part(report, SIMULATED_SEED + SIMULATED_SCHEDULES, LONG_SIMULATED_SCHEDULES, 7200),
    "long_fuzz": long_fuzz_part,
}
PARTS = {**EVERYDAY, **SANITIZERS, **LONG}
# What each set of parts builds while the parts that start processes run, which mostly wait.
AHEAD = {
    "": [("release", ["tests"])],
    "--ci": [("release", ["tests"]), *SANITIZER_TARGETS.items()],
}


def run_parts(report, parts, ahead=()):
    """In order. `ahead` is built while the parts run that need nothing but programs: from process to units."""
    builder = None
    for name, part in parts.items():
        if name == "process" and ahead and build_part(report, "release", PROGRAM_TARGETS):
            builder = BuildAhead(ahead)
        if builder and name == "units":
            builder.end()
            builder = None
        report.part(name, part)


def say_what_is_not_run(report, modes):
    """Parts that exist and weren't asked for are skipped with the words that run them."""
    for mode, parts in (("--sanitizers", SANITIZERS), ("--long", LONG)):
        if mode not in modes:
            report.cases += [Case(name, "skipped", f"`./dev test {mode}` or `./dev test {name}` runs it") for name in parts]


def main(arguments):
    modes = {"--sanitizers": SANITIZERS, "--long": LONG, "--ci": {**EVERYDAY, **SANITIZERS}}
    mode = next((a for a in arguments if a in modes), "")
    others = [a for a in arguments if a != mode]
    if len(others) > 1 or any(a.startswith("-") for a in others) or (mode and others):
        print(f"test: one of {', '.join(modes)}, or one filter; accepted as filter: a part ({', '.join(PARTS)}) or part of a "
              "test's name", file=sys.stderr)
        return 2
    report = Report(read_budget((ROOT / "tools/time_budget.txt").read_text(encoding="utf-8")))
    wanted = others[0] if others else ""
    if not wanted:
        run_parts(report, modes.get(mode, EVERYDAY), AHEAD.get(mode, ()))
        if mode in ("", "--ci"):
            say_what_is_not_run(report, {"--sanitizers"} if mode else set())
    elif wanted in PARTS:
        report.part(wanted, PARTS[wanted])
    else:
        filtered_part(report, wanted)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
