#!/usr/bin/env python3
"""Configures a preset when that is due and builds targets of it: build.py [--quiet] PRESET [TARGET...]

--quiet prints nothing where there is nothing to do. Targets that stand for several: programs (the command and the
examples), libraries, tests, benchmarks. Without a target: programs and libraries."""

import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GIB = 1 << 30
# What one compiler may need at its worst: a file that includes torch/torch.h takes 1.1 GB.
MEMORY_PER_JOB = 3 * GIB // 2
# A file of the preset release (eight sources at once), on one processor of a cloud machine.
SECONDS_PER_FILE = 7
GROUPS = ["programs", "libraries", "tests", "benchmarks", "fuzzers"]


def plain():
    return os.environ.get("CI") == "true" or not sys.stdout.isatty()


def jobs():
    """As many as there are processors, fewer where memory is short."""
    processors = len(os.sched_getaffinity(0))
    try:
        meminfo = dict(line.split(":") for line in open("/proc/meminfo", encoding="ascii"))
        available = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return processors
    return max(1, min(processors, available // MEMORY_PER_JOB))


def configure(preset):
    """Runs cmake where the preset was never configured or the presets have changed since; ninja sees to later changes
    of CMakeLists.txt itself. Returns cmake's exit status."""
    folder = ROOT / "build" / preset
    stamp = folder / ".configured"
    presets = ROOT / "CMakePresets.json"
    if (folder / "build.ninja").exists() and stamp.exists() and stamp.stat().st_mtime > presets.stat().st_mtime:
        return 0
    print(f"build: configuring build/{preset}", flush=True)
    done = subprocess.run(["cmake", "--preset", preset], cwd=ROOT, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        stamp.touch()
    return done.returncode


def configure_quietly(preset):
    """The same, and up to date with the folders, for those who read compile_commands.json: prints only if it fails."""
    done = subprocess.run([sys.executable, __file__, "--configure", preset], capture_output=True, text=True)
    if done.returncode == 0:
        done = subprocess.run(["ninja", "-C", str(ROOT / "build" / preset), "build.ninja"], capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode


def targets_of(preset):
    """The names that can be built: groups, libraries and programs, without ninja's own names of files."""
    listed = subprocess.run(["ninja", "-C", str(ROOT / "build" / preset), "-t", "targets", "all"], capture_output=True, text=True)
    names = {line.rpartition(": ")[0] for line in listed.stdout.splitlines()}
    return {name for name in names if re.fullmatch(r"\w+", name)}


def refuse_unknown(preset, targets):
    """Says which targets there are if one of `targets` isn't; returns the exit status to end with, or 0."""
    known = targets_of(preset)
    for target in targets:
        if target in known or not known or re.search(r"\W", target):  # ninja knows files
            continue
        near = difflib.get_close_matches(target, known, 1)
        # Cut to what a user builds by name; tests and benchmarks have names of their own, which the nearest is among.
        programs = sorted(path.name for path in (ROOT / "build" / preset / "bin").glob("*")
                          if path.name in known and not re.search(r"_test$|^bench_|^tutorial_|^peers_", path.name))
        print(f"build: there is no target {target!r}{f' (nearest: {near[0]})' if near else ''}; accepted: "
              f"{', '.join(group for group in GROUPS if group in known)}, the name of a test or benchmark, or a program: "
              f"{', '.join(programs)}", file=sys.stderr)
        return 2
    return 0


def build(preset, targets, quiet=False):
    """Returns the exit status of the first step that failed, or 0."""
    status = configure(preset) or refuse_unknown(preset, targets)
    if status:
        return status
    command = ["ninja", "-C", str(ROOT / "build" / preset), "-j", str(jobs())] + (["--quiet"] if quiet else []) + targets
    environment = dict(os.environ, NINJA_STATUS="[%f/%t %es] ")
    if not quiet:
        print(f"build: build/{preset}: {' '.join(targets)}", flush=True)
        if plain():
            return run_plain(command, environment)
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode
    # With nothing to do it is silent; otherwise the build shows its steps.
    probe = subprocess.run(command[:5] + ["-n"] + targets, capture_output=True, text=True, cwd=ROOT)
    if probe.returncode == 0 and "no work to do" in probe.stdout:
        return 0
    announce(preset, targets)
    return build(preset, targets)


def announce(preset, targets):
    """Says how long a first build takes; nothing where most of it is done."""
    folder = ROOT / "build" / preset
    commands = subprocess.run(["ninja", "-C", str(folder), "-t", "commands"] + targets, capture_output=True, text=True)
    outputs = set(re.findall(r" -o (\S+) -c ", commands.stdout))
    missing = sum(not (folder / output).exists() for output in outputs)
    if missing >= 10:
        minutes = max(1, round(missing * SECONDS_PER_FILE / jobs() / 60))
        print(f"build: the first build of {', '.join(targets)} compiles {missing} files, which takes about {minutes} "
              f"minute{'s' * (minutes > 1)} on {jobs()} processor{'s' * (jobs() > 1)}; [done/all] counts them", flush=True)


def run_plain(command, environment):
    """The output as lines, without the cursor movements that ninja uses on a terminal."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        for line in process.stdout:
            if not line.startswith("ninja: Entering directory"):
                print(line, end="", flush=True)
    return process.returncode


def main(arguments):
    if arguments[:1] == ["--configure"] and len(arguments) == 2:
        return configure(arguments[1])
    quiet = "--quiet" in arguments
    names = [a for a in arguments if a != "--quiet"]
    if not names or any(n.startswith("-") for n in names):
        print(__doc__, file=sys.stderr)
        return 2
    return build(names[0], names[1:] or ["programs", "libraries"], quiet)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
