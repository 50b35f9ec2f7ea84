#!/usr/bin/env python3
"""clang-tidy on what changed: check_tidy.py [--due | --all | FILE...]. Prints what it finds and exits 1. --due: on what
a test run owes (sources.due_files).

A changed header is looked at through a source that includes it. What was right before and hasn't changed since, with all
it includes, with .clang-tidy and clang-tidy itself, isn't looked at again. Sources of one folder are looked at several at
a time, as one file that includes them: most of the time goes into what they all include. Where that finds anything, or
they don't go together (names of theirs clash), each is looked at by itself, and only what is found then counts."""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import build
import compile_commands
import sources

ROOT = sources.ROOT
CONFIGURATION = ROOT / ".clang-tidy"
PROGRAM = ROOT / ".venv/bin/clang-tidy"  # from tools/requirements.txt
# Larger ones save little more, and one finding sends all of them back to be looked at by themselves.
GROUP = 8
NOISE = re.compile(r"^\d+ warnings?( and \d+ errors?)? generated\.$|^Suppressed |^Use -header-filter|^$")


def sources_to_lint(commands, contents, wanted):
    """The sources among `wanted`, and for each header the source beside it or the first that includes it."""
    chosen = {p for p in wanted if p in commands}
    for header in (p for p in wanted if p.suffix == ".h"):
        beside = header.with_suffix(".cc")
        including = [beside] if beside in commands else [p for p in sorted(commands) if header in contents.closure(p)]
        chosen |= set(including[:1])
    return sorted(chosen)


def groups(todo, commands, size=GROUP):
    """The (path, digest) pairs, split into lists that may be looked at together."""
    by_kind = {}
    for path, digest in todo:
        kind = (path.parent, path.name.endswith("_test.cc"), tuple(commands[path]))
        by_kind.setdefault(kind, []).append((path, digest))
    for members in by_kind.values():
        for start in range(0, len(members), size):
            yield members[start:start + size]


def lint_group(members, commands, memory):
    """What clang-tidy finds in each of the files, or ""; remembers what is right."""
    arguments = commands[members[0][0]]
    if len(members) > 1:
        with tempfile.NamedTemporaryFile("w", suffix=".cc", dir=ROOT / "build/checked") as together:
            together.write("".join(f'#include "{ROOT / path}"\n' for path, _ in members))
            together.flush()
            if not lint(together.name, arguments):
                for _, digest in members:
                    memory.remember(digest)
                return [""] * len(members)
    found = [lint(path, arguments) for path, _ in members]
    for (_, digest), finding in zip(members, found):
        if not finding:
            memory.remember(digest)
    return found


def version():
    """Of the linter: what one was content with, another may not be."""
    return subprocess.run([str(PROGRAM), "--version"], capture_output=True, text=True, check=True).stdout


def lint(path, arguments):
    """What clang-tidy finds in one file, or ""."""
    command = [str(PROGRAM), "-quiet", f"--config-file={CONFIGURATION}", str(path), "--", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not NOISE.match(line)]
    return "\n".join(lines) or f"{path}: clang-tidy ended with {done.returncode}"


def main(arguments):
    commands, contents = compile_commands.of_project(), compile_commands.Contents()
    if "--all" in arguments:
        wanted = set(sources.code_files())
    elif "--due" in arguments:
        wanted = sources.due_files() & set(sources.code_files())
    elif arguments:
        wanted = {pathlib.Path(a).resolve().relative_to(ROOT) for a in arguments}
    else:
        wanted = sources.changed_files() & set(sources.code_files())
    memory, configuration = compile_commands.Memory("tidy"), CONFIGURATION.read_text(encoding="utf-8") + version()
    todo = []
    for path in sources_to_lint(commands, contents, wanted):
        digest = contents.digest(path, commands[path], configuration)
        if not memory.knows(digest):
            todo.append((path, digest))
    # The heavy ones first, so that the last minutes aren't one file's.
    todo.sort(key=lambda item: not compile_commands.uses_torch(commands[item[0]]))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        running = [pool.submit(lint_group, members, commands, memory) for members in groups(todo, commands)]
        for done in concurrent.futures.as_completed(running):
            for finding in filter(None, done.result()):
                failed += 1
                print(finding, flush=True)
    without = sum(1 for p in wanted if p.suffix == ".cc" and p not in commands and p.parts[:2] != ("tests", "install"))
    left_out = f", {without} left out: they need torch or nanobind" if without else ""
    print(f"{len(todo)} files linted, {failed} with findings{left_out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
