#!/usr/bin/env python3
"""Runs the benchmarks of the release build: run_benchmarks.py [NAME...]; all without a name. With a single name,
everything from the first word with a dash on is passed to that benchmark. JSON lines on stdout, tables on stderr. A
NAME is a program build/release/bin/bench_NAME, or bench/NAME/run.py, which runs only when it is named: it installs what
it compares with, and takes long. Exits 1 if a benchmark fails."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def programs(root):
    """Returns {name: command} of what runs without being named, and of what doesn't."""
    built = {p.name.removeprefix("bench_"): [p] for p in sorted((root / "build/release/bin").glob("bench_*"))}
    scripts = {p.parent.name: [sys.executable, p] for p in sorted((root / "bench").glob("*/run.py"))}
    return built, scripts


def usage(root):
    """Returns the help text, with all benchmarks, whether they are built or not."""
    sources = sorted(p.stem.removeprefix("bench_") for p in (root / "bench").glob("bench_*.cc"))
    scripts = list(programs(root)[1])
    return (
        "usage: ./dev bench [NAME...]     all of those that follow without a name\n"
        "       ./dev bench NAME --help   what that one measures, and its options\n"
        f"NAME: {', '.join(sources)}\n"
        f"only when named, as it installs what it compares with: {', '.join(scripts)}"
    )


def main(arguments, root=ROOT):
    if arguments in (["--help"], ["-h"]):
        print(usage(root))
        return 0
    first_option = next((i for i, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    names, options = arguments[:first_option], arguments[first_option:]
    built, scripts = programs(root)
    known = {**built, **scripts}
    unknown = [n for n in names if n not in known]
    if unknown:
        print(f"bench: there is no benchmark '{unknown[0]}'; accepted: {', '.join(known) or 'none is built'}", file=sys.stderr)
        return 2
    if options and len(names) != 1:
        print(f"bench: '{options[0]}' is an option of one benchmark: name that one first", file=sys.stderr)
        return 2
    failed = []
    for number, name in enumerate(names or built, 1):
        print(f"bench: [{number}/{len(names or built)}] {name}", file=sys.stderr, flush=True)
        if subprocess.run([*known[name], *options], stdin=subprocess.DEVNULL).returncode:
            failed.append(name)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
