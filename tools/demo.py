#!/usr/bin/env python3
"""`./dev demo`: two parameter servers, a chief and two workers learn to read digits on this machine, asynchronously.

Prints the cluster's log, then a table of the run, then one line for scripts. Exits 0 only if the model is accurate, the
run was short enough and none of its processes is left."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("MUSTER_BIN_DIR", ROOT / "build/release/bin"))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000, help="stop at this global step (default %(default)s)")
    parser.add_argument("--model_dir", help="checkpoints and logs go here (default: a new folder under /tmp)")
    parser.add_argument("--min_accuracy", type=float, default=0.97, help="below it the demo fails (default %(default)s)")
    parser.add_argument("--max_seconds", type=float, default=60, help="training longer than this fails (default %(default)s)")
    return parser.parse_args()


def processes_of_run(mark):
    """Returns the ids of the live processes that have `mark` in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:  # has ended, or belongs to another user
            continue
        if mark.encode() in environment and state != "Z":
            found.append(int(entry.name))
    return found


def megabytes(count):
    return f"{count / 1e6:.1f} MB"


def print_table(report, model_dir, wall_seconds):
    load = sum(ps["value_bytes"] for ps in report["ps"])
    rows = [
        ("test accuracy", f"{report['accuracy']:.4f}"),
        ("global steps", f"{report['global_steps']}"),
        ("steps/s", f"{report['steps_per_second']:.0f}"),
        ("training", f"{report['seconds']:.1f} s"),
        ("wall time", f"{wall_seconds:.1f} s, start to last exit"),
        ("bytes moved", megabytes(sum(ps["bytes_received"] + ps["bytes_sent"] for ps in report["ps"]))),
    ]
    for ps in report["ps"]:
        share = ps["value_bytes"] / load if load else 0
        rows.append((f"load of {ps['task']}", f"{megabytes(ps['value_bytes'])} of variables ({share:.0%}), "
                     f"{ps['version']} updates, {ps['requests'].get('push_pull', 0)} by requests, "
                     f"{megabytes(ps['bytes_received'])} in, {megabytes(ps['bytes_sent'])} out"))
    rows += [
        ("checkpoint", report["checkpoint"]),
        ("TensorBoard logs", str(model_dir)),
        ("open them with", f"{tensorboard()} --logdir {model_dir}"),
    ]
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"  {name:<{width}}  {value}")
    print()


def tensorboard():
    """Returns the command, or how to install it if it is missing."""
    own = ROOT / ".venv/bin/tensorboard"
    if own.exists():
        return own
    if shutil.which("tensorboard"):
        return "tensorboard"
    make = "" if (ROOT / ".venv").exists() else f"python3 -m venv {ROOT}/.venv && "
    return f"{make}{ROOT}/.venv/bin/pip install tensorboard && {own}"


def run_to_its_end(command, environment):
    """Returns the exit code. A Ctrl-C reaches the command, too, which ends its processes in order; this waits for
    it."""
    with subprocess.Popen(command, env=environment) as run:
        while True:
            try:
                return run.wait()
            except KeyboardInterrupt:
                continue


def main():
    arguments = parse_arguments()
    model_dir = pathlib.Path(arguments.model_dir or tempfile.mkdtemp(prefix="muster-demo-"))
    report_path = model_dir / "report.json"
    mark = f"MUSTER_DEMO={os.getpid()}-{time.time_ns()}"
    command = [BIN / "muster", "run", "--ps", "2", "--chief", "1", "--workers", "2", "--muster-ps", "--model_dir", model_dir,
               "--", BIN / "digits", "--csv", ROOT / "examples/data/digits.csv", "--steps", arguments.steps,
               "--report", report_path]
    command = [str(word) for word in command]
    print("demo: training with 2 ps, 1 chief and 2 workers:\n  " + " ".join(command), flush=True)
    started = time.monotonic()
    key, _, value = mark.partition("=")
    code = run_to_its_end(command, {**os.environ, key: value})
    wall_seconds = time.monotonic() - started
    leftover = len(processes_of_run(mark))
    if code != 0 or not report_path.exists():
        print(f"demo: training failed with exit code {code}; {leftover} processes left", file=sys.stderr)
        return 1
    report = json.loads(report_path.read_text())
    print_table(report, model_dir, wall_seconds)
    print(f"demo: accuracy={report['accuracy']:.4f} global_steps={report['global_steps']} "
          f"steps_per_second={report['steps_per_second']:.1f} processes=5 leftover={leftover}")
    failures = []
    if report["accuracy"] < arguments.min_accuracy:
        failures.append(f"the accuracy is below {arguments.min_accuracy}")
    if report["seconds"] > arguments.max_seconds:
        failures.append(f"training took longer than {arguments.max_seconds:.0f} s")
    if leftover:
        failures.append(f"{leftover} processes of the run are left")
    for failure in failures:
        print(f"demo: failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
