#!/usr/bin/env python3
"""`./dev bench peers`: compares this project with TensorFlow's and PyTorch's ways to train on several processes, in one
run.

First every contestant trains the same few hundred steps, and their losses are compared (--check: only that). Then all
are measured in rounds, in turns, every other round backwards. JSON lines on stdout and in build/bench/peers.jsonl,
progress and tables on stderr, a picture in build/bench/peers.png. TensorFlow and PyTorch are installed into
build/peers."""

import argparse
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import contestants
import environment
import losses
import processes
import report

WORKS = (*contestants.MODELS, contestants.PUSH_PULL)
BIN = environment.ROOT / "build/release/bin"
PRELOAD = environment.ROOT / "build/release/lib/libpeers_mkl_amd.so"


def say(text):
    print(text, file=sys.stderr, flush=True)


def words(text):
    return [word for word in text.split(",") if word]


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=words, default=list(WORKS), help=f"of {','.join(WORKS)}")
    parser.add_argument("--peers", type=words, help="of the peers' names, which an unknown one lists; none: ''")
    parser.add_argument("--ours", type=words, help="of our ways to train, likewise")
    parser.add_argument("--workers", type=words, default=["1", "2"], help="how many: 1, 2 or both")
    parser.add_argument("--rounds", type=int, default=5, help="medians are over so many")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--threads", type=int, default=1, help="that each process of a peer computes with; 0: as many as it takes")
    parser.add_argument("--check", action="store_true", help="compares the losses only")
    parser.add_argument("--no_check", action="store_true", help="measures at once")
    parser.add_argument("--check_steps", type=int, default=200)
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a measurement is ended as hanging")
    parser.add_argument("--out", type=pathlib.Path, default=environment.ROOT / "build/bench")
    return parser.parse_args(arguments)


def processor():
    """Returns (its name, whether it is Intel's to MKL)."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in text.splitlines() if ":" in line]))
    name = fields.get("model name", "unknown processor")
    return f"{name}, {text.count('processor	')} cores", fields.get("vendor_id") == "GenuineIntel"


class Bench:
    """One call of `./dev bench peers`. `install` returns why a package isn't available, or ""; `switch` is a library
    that makes a difference to programs that use MKL here, or ""."""

    def __init__(self, options, everyone, references, install, folder, switch=""):
        self.options, self.references, self.folder, self.switch = options, references, folder, switch
        self.everyone, self.skipped, self.problems, self.runs = [], {}, [], 0
        reasons = {}
        for contestant in everyone:
            for package in contestant.packages:
                if package not in reasons:
                    reasons[package] = install(package)
            reason = contestant.unavailable or next((reasons[one] for one in contestant.packages if reasons[one]), "")
            if reason:
                self.skipped[contestant.name] = reason
                say(f"SKIPPED: {contestant.name}: {reason}")
            else:
                self.everyone.append(contestant)

    def run(self, contestant, model, workers, steps=0):
        self.runs += 1
        run = contestants.Run(model, workers, self.folder / f"run{self.runs}", self.folder / "data", self.options.seconds,
                              steps, self.options.threads)
        number = contestant.results(run)
        outcome = processes.run(contestant.tasks_of(run), run.folder, number, self.options.limit)
        if outcome.problem:
            self.problems.append(f"{contestant.name}, {model}, {workers} workers: {outcome.problem}")
            say(f"FAILED: {self.problems[-1]}")
        shutil.rmtree(run.folder, ignore_errors=True)
        return outcome

    def check(self, model, workers):
        """Prints whether all train the same; a contestant that doesn't is a problem of the run."""
        rows, expected = [], {}
        steps = 10 if model == contestants.PUSH_PULL else self.options.check_steps
        for contestant in self.everyone:
            if not contestant.does(model, workers) or not losses.is_checked(contestant, workers):
                continue
            name = losses.reference_of(contestant, workers)
            if name not in expected:
                expected[name] = self.run(self.references[name], model, workers, steps).results
            results = self.run(contestant, model, workers, steps).results
            if not results or not expected[name]:
                continue
            verdict = losses.compare(contestant, workers, results, expected[name][0])
            say(f"{'same' if verdict.good else 'DIFFERS'}: {contestant.name}, {model}, {workers} workers: {verdict.text}")
            rows.append({"bench": "peers", "check": contestant.name, "model": model, "workers": workers,
                         "steps": steps, "same": verdict.good, "found": verdict.text})
            if not verdict.good:
                self.problems.append(f"{contestant.name}, {model}, {workers} workers: {verdict.text}")
        return rows

    def lines_of(self, model, workers):
        lines = []
        for contestant in self.everyone:
            if not contestant.does(model, workers):
                continue
            lines.append(report.Line(contestant, model, workers))
            if self.switch and contestant.uses_mkl and not contestant.ours:
                lines.append(report.Line(dataclasses.replace(contestant, preload=self.switch), model, workers, switch=True))
        return lines

    def measure(self, model, workers):
        """Returns the lines of one model and number of workers, measured in turns."""
        lines = self.lines_of(model, workers)
        for number in range(self.options.rounds):
            for line in lines if number % 2 == 0 else lines[::-1]:
                if line.problem:
                    continue  # it would fail again, or hang again for minutes
                outcome = self.run(line.contestant, model, workers)
                if outcome.problem:
                    line.problem, line.rates = outcome.problem, []
                    continue
                line.rates.append(report.rate_of(outcome.results))
                say(f"{model}, {workers} workers, round {number + 1} of {self.options.rounds}: {line.name} {line.rates[-1]:.1f}")
        return lines


def whole(bench, name):
    """Measures everything that was asked for and returns the rows. What goes to stdout is written to the file, too."""
    options, rows, lines = bench.options, [], []
    options.out.mkdir(parents=True, exist_ok=True)
    pairs = [(model, int(workers)) for model in options.models for workers in options.workers]
    with open(options.out / "peers.jsonl", "w", encoding="utf-8") as file:

        def emit(found):
            rows.extend(found)
            for row in found:
                print(json.dumps(row), flush=True)
                print(json.dumps(row), file=file, flush=True)

        emit([{"bench": "peers", "skipped": who, "reason": why} for who, why in bench.skipped.items()])
        for model, workers in pairs if not options.no_check else []:
            emit(bench.check(model, workers))
        for model, workers in pairs if not options.check else []:
            measured = bench.measure(model, workers)
            lines += measured
            emit([report.row(line, measured, name) for line in measured])
        goal_rows, goal_text = report.goals(lines, bool(bench.switch), bench.skipped) if lines else ([], [])
        emit(goal_rows)
    if lines:
        say("\n".join([*report.table(lines, name, bool(bench.switch)), *goal_text]))
    return rows


def chosen(options, everyone):
    """Returns the contestants that were named; SystemExit for an unknown name."""
    unknown_models = [model for model in options.models if model not in WORKS]
    if unknown_models:
        raise SystemExit(f"bench peers: there is no model '{unknown_models[0]}'; accepted: {', '.join(WORKS)}")
    if any(number not in ("1", "2") for number in options.workers):
        raise SystemExit(f"bench peers: --workers is 1, 2 or 1,2, not '{','.join(options.workers)}'")
    found = []
    for asked, ours in ((options.ours, True), (options.peers, False)):
        names = [one.name for one in everyone if one.ours == ours]
        unknown = [name for name in asked or [] if name not in names]
        if unknown:
            raise SystemExit(f"bench peers: there is no {'way of ours' if ours else 'peer'} '{unknown[0]}'; "
                             f"accepted: {', '.join(names)}")
        found += [one for one in everyone if one.ours == ours and (asked is None or one.name in asked)]
    return found


def main(arguments):
    options = options_of(arguments)
    program = BIN / "peers_muster"
    if not program.exists():
        raise SystemExit("bench peers: build/release/bin/peers_muster isn't built; ./dev bench peers builds it")
    ways = json.loads(subprocess.run([program, "--ways"], check=True, capture_output=True, text=True).stdout)
    mine = contestants.ours(program, BIN / "muster", ways)
    references = {one.name: one for one in mine if one.kind == contestants.REFERENCE}
    everyone = [one for one in mine if one.kind != contestants.REFERENCE] + contestants.peers(environment.PYTHON)
    name, is_intel = processor()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        bench = Bench(options, chosen(options, everyone), references, environment.install, pathlib.Path(folder),
                      "" if is_intel else str(PRELOAD))
        for model in options.models:
            subprocess.run([program, "--write", "--data", bench.folder / "data", "--model", model], check=True)
        rows = whole(bench, name)
    if any("minibatches_per_s" in row for row in rows) and not environment.install("matplotlib"):
        subprocess.run([environment.PYTHON, environment.ROOT / "bench/peers/plot.py", options.out / "peers.jsonl",
                        options.out / "peers.png"], check=True)
        say(f"picture: {options.out / 'peers.png'}")
    say(f"rows: {options.out / 'peers.jsonl'}; {bench.runs} measurements in {time.monotonic() - started:.0f} s")
    for problem in bench.problems:
        say(f"PROBLEM: {problem}")
    return 1 if bench.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
