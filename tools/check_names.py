#!/usr/bin/env python3
"""Finds types with the same name that may meet in one program: prints them and exits 1. check_names.py [ROOT]

The linker silently takes one of two inline functions of the same name, and with it the wrong one of two classes (C++'s
one-definition rule). So a class, struct or enum of muster must be defined in only one file of the project. Anonymous
namespaces and those of tests (muster::NAME_test) are excepted, because no other file can name them. Programs, each with
its own main, may use the same names: sources outside muster/ are compared only with muster/ and with headers."""

import pathlib
import sys

import check_sizes
import sources


def types(text):
    """Yields (line, name with its namespaces) of each type of muster that other files can name."""
    for kind, name, first, _, outer in check_sizes.blocks(text):
        if kind == "function" or not name or any(kind in ("class", "function") for kind, _ in outer):
            continue
        namespaces = [name for kind, name in outer if kind == "namespace"]
        parts = "::".join(namespaces).split("::")  # "" for an anonymous one
        if parts[0] == "muster" and all(parts) and not any(part.endswith("_test") for part in parts):
            yield first, "::".join([*parts, name])


def meet(path, other):
    """Returns whether one program may contain both files."""
    return any(p.parts[0] == "muster" or p.suffix == ".h" for p in (path, other))


def problems(root):
    defined = {}  # [(path, line)] by name
    for path in sources.code_files(root):
        for line, name in types((root / path).read_text(encoding="utf-8")):
            for other, other_line in defined.setdefault(name, []):
                if other != path and meet(path, other):
                    yield f"{path}:{line}: {name} is defined in {other}:{other_line} too: rename one"
            defined[name].append((path, line))


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sources.ROOT).resolve()))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
