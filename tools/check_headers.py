#!/usr/bin/env python3
"""Checks that every header compiles on its own: check_headers.py [--due | --all | HEADER...]. Prints the errors and
exits 1.

A header that some source includes first is proven by that source's own compilation (part `locks`), so only the others
are compiled here; with --all, when nothing else compiles file by file, all of them; with --due those among them that a
test run owes (sources.due_files). By clang, as the only include of a file, syntax only; headers that need torch only if
torch is installed, because there the precompiled header hides what is missing. A header that was right before, and
hasn't changed since with all it includes, isn't compiled again. Named headers are compiled in any case."""

import concurrent.futures
import pathlib
import subprocess
import sys

import build
import check_layers
import compile_commands
import sources

ROOT = sources.ROOT


def needs_torch(contents, layers, header):
    for path in contents.closure(header):
        if any(check_layers.TORCH_HEADER.match(name) for _, name in sources.includes(contents.text(path))):
            return True
        if check_layers.layer_of(path) in layers.torch:
            return True
    return False


def arguments_for(header, commands):
    """Returns those of a source in the same folder, or in the folder above it, and so on; failing that, of any
    source. A small program of a test, which includes nothing of the project, tells nothing."""
    from_root = [path for path in sorted(commands) if f"-I{ROOT}" in commands[path]]
    for folder in header.parents:
        near = [path for path in from_root if path.is_relative_to(folder)]
        if near:
            return commands[near[0]]
    return None


def has_python(commands):
    return any(path.parts[0] == "python" for path in commands)


def compile_alone(header, arguments):
    text = f'#include "{header}"\n#include "{header}"\n'
    command = ["clang++-14", *arguments, "-fsyntax-only", "-Wno-pragma-once-outside-header", "-x", "c++", "-"]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{header} doesn't compile by itself:\n{done.stderr.strip()}"


def main(arguments):
    commands, contents = compile_commands.of_project(), compile_commands.Contents()
    layers = check_layers.Layers((ROOT / "muster/LAYERS").read_text(encoding="utf-8"))
    torch, memory = compile_commands.has_torch(), compile_commands.Memory("headers")
    proven = set()
    if not {"--all", "--due"} & set(arguments):
        proven = {pathlib.Path(name) for path in commands for _, name in sources.includes(contents.text(path))[:1]}
    given = [pathlib.Path(a).resolve().relative_to(ROOT) for a in arguments if not a.startswith("--")]
    due = sources.due_files() if "--due" in arguments else set(sources.all_files())
    torch_commands = {p: a for p, a in commands.items() if compile_commands.uses_torch(a)}
    todo, left_out = [], 0
    for header in given or [p for p in sources.code_files() if p.suffix == ".h" and p in due]:
        with_torch = needs_torch(contents, layers, header)
        if (with_torch and not torch) or (header.parts[0] == "python" and not has_python(commands)):
            left_out += 1
            continue
        if header in proven and not with_torch and not given:
            continue
        flags = arguments_for(header, torch_commands if with_torch else commands)
        if flags is None:
            print(f"{header}: no source tells how to compile it")
            return 1
        digest = contents.digest(header, flags)
        if not memory.knows(digest):
            todo.append((header, flags, digest))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(build.jobs()) as pool:
        running = {pool.submit(compile_alone, header, flags): digest for header, flags, digest in todo}
        for done in concurrent.futures.as_completed(running):
            if done.result():
                failed += 1
                print(done.result(), flush=True)
            else:
                memory.remember(running[done])
    without = f", {left_out} left out: they need torch or nanobind" if left_out else ""
    print(f"{len(todo)} headers compiled, {failed} with errors{without}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
