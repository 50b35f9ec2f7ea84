#!/usr/bin/env python3
"""Runs the benchmarks of the release build: run_benchmarks.py [NAME...], all without a name. JSON lines on stdout, tables
on stderr; a NAME is a program build/release/bin/bench_NAME. Exits 1 if one of them fails."""

import pathlib
import subprocess
import sys

BIN = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin"


def main(names):
    known = {p.name.removeprefix("bench_"): p for p in sorted(BIN.glob("bench_*"))}
    unknown = [n for n in names if n not in known]
    if unknown:
        print(f"bench: there is no benchmark '{unknown[0]}'; accepted: {', '.join(known) or 'none is built'}", file=sys.stderr)
        return 2
    failed = []
    for number, name in enumerate(names or known, 1):
        print(f"bench: [{number}/{len(names or known)}] {name}", file=sys.stderr, flush=True)
        if subprocess.run([known[name]], stdin=subprocess.DEVNULL).returncode:
            failed.append(name)
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
