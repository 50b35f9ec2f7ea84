#!/usr/bin/env python3
"""Checks every #include, and what CMake links, against muster/LAYERS: prints what is wrong and exits 1.

check_layers.py [ROOT]. Rules: the table itself is acyclic; a folder of muster/ includes only itself and what the table
allows; torch only below the torch line, and in examples, bench and the tests of layers that may use it; DEPS in
muster/CMakeLists.txt equal the table. Tests beside the files of a layer are part of that layer."""

import pathlib
import re
import sys

import sources

TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_LINE = re.compile(r"^#.*torch line")
# Files outside the layers may include any layer. These may not include torch either: they must run without it.
TORCH_FREE_FOLDERS = ("apps", "tests/cluster", "tests/fuzz")


class Layers:
    """The parsed muster/LAYERS."""

    def __init__(self, text):
        self.allowed = {}
        self.torch = set()
        below_line = False
        for line in text.splitlines():
            if TORCH_LINE.match(line):
                below_line = True
            line = line.split("#")[0].strip()
            if not line:
                continue
            folder, _, others = line.partition(":")
            self.allowed[folder.strip()] = set(others.split())
            if below_line:
                self.torch.add(folder.strip())

    def problems(self):
        seen = set()
        for folder, others in self.allowed.items():
            for other in sorted(others - seen):
                reason = "stands below it in the table" if other in self.allowed else "is not in the table"
                yield f"muster/LAYERS: {folder} may include {other}, but {other} {reason}"
            seen.add(folder)


def layer_of(path):
    """Returns the layer a file belongs to: None outside muster/, "" for the files directly in muster/ (the façade)."""
    if path.parts[0] != "muster":
        return None
    return path.parts[1] if len(path.parts) > 2 else ""


def include_problems(layers, path, text):
    own = layer_of(path)
    if own and own not in layers.allowed:
        yield f"{path}: the folder muster/{own} is not in muster/LAYERS"
        return
    torch_allowed = own in layers.torch or own == "" or (own is None and not str(path).startswith(TORCH_FREE_FOLDERS))
    for line, name in sources.includes(text):
        if TORCH_HEADER.match(name) and not torch_allowed:
            yield f"{path}:{line}: includes {name}; torch is for {', '.join(sorted(layers.torch))} only"
        if not name.startswith("muster/"):
            continue
        other = layer_of(pathlib.PurePosixPath(name))
        if other is not None and (other in layers.torch or other == "") and not torch_allowed:
            yield f"{path}:{line}: includes {name}, which brings torch"
        if own and other != own and other not in layers.allowed[own]:
            allowed = ", ".join(sorted(layers.allowed[own])) or "nothing"
            yield f"{path}:{line}: includes {name}; muster/LAYERS lets {own} include {allowed}"


def cmake_problems(layers, text):
    """Compares the DEPS of each muster_layer(...) with the table."""
    linked = {}
    for arguments in re.findall(r"^\s*muster_layer\(([^)]*)\)", re.sub(r"#[^\n]*", "", text), re.MULTILINE):
        words = arguments.split()
        deps, keyword = set(), None
        for word in words[1:]:
            if word.isupper():
                keyword = word
            elif keyword == "DEPS":
                deps.add(word)
        linked[words[0]] = deps
    for folder, deps in linked.items():
        if folder not in layers.allowed:
            yield f"muster/CMakeLists.txt: the layer {folder} is not in muster/LAYERS"
        elif deps - layers.allowed[folder]:
            yield f"muster/CMakeLists.txt: {folder} links {', '.join(sorted(deps - layers.allowed[folder]))} against muster/LAYERS"
    for folder in layers.allowed:
        if folder in linked:
            unlinked = layers.allowed[folder] - linked[folder]
            if unlinked:
                yield f"muster/CMakeLists.txt: {folder} doesn't link {', '.join(sorted(unlinked))}, which muster/LAYERS allows"
        else:
            yield f"muster/CMakeLists.txt: there is no muster_layer({folder}), which muster/LAYERS lists"


def problems(root):
    layers = Layers((root / "muster/LAYERS").read_text(encoding="utf-8"))
    yield from layers.problems()
    yield from cmake_problems(layers, (root / "muster/CMakeLists.txt").read_text(encoding="utf-8"))
    for path in sources.code_files(root):
        yield from include_problems(layers, path, (root / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sources.ROOT).resolve()))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
