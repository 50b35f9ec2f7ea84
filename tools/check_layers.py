#!/usr/bin/env python3
"""Checks every #include, and what CMake links, against muster/LAYERS: prints what is wrong and exits 1.

check_layers.py [--write] [ROOT]. Rules: the table itself is acyclic; a folder of muster/ includes only itself and what the
table allows, and so does each room (a folder inside a layer that has rooms); the table allows no room that isn't included;
only tests include testing/; torch only below the torch line, and in examples, bench and the tests of what may; DEPS in
muster/CMakeLists.txt say the same as the table; what is drawn from the table in docs/ is what it says now (--write draws
it). Tests that lie beside the files of a layer are part of that layer and may include all its rooms."""

import pathlib
import re
import sys

import draw_layers
import sources

TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_LINE = re.compile(r"^# -+ .*torch line")
# Files outside the layers may include any layer. These may not include torch either: they must run without it.
TORCH_FREE_FOLDERS = ("apps", "tests/cluster", "tests/fuzz")


class Layers:
    """muster/LAYERS, read. Rooms are named by their path below muster/; "store/." stands for the files in store/ itself."""

    def __init__(self, text):
        self.allowed = {}
        self.rooms = {}  # of the layers that have any: room -> the rooms that it may include
        self.words = {}  # room -> what is in it
        self.torch = set()
        below_line = False
        for line in text.splitlines():
            if TORCH_LINE.match(line):
                below_line = True
            indented = line.startswith(" ")
            line, _, words = line.partition("#")
            if not line.strip():
                continue
            folder, _, others = line.partition(":")
            folder = folder.strip()
            (self.rooms if indented else self.allowed)[folder] = set(others.split())
            if indented:
                self.words[folder] = words.strip()
            elif below_line:
                self.torch.add(folder)

    def room_of(self, path):
        """The room of a file of muster/: None where its layer has none."""
        folder = "/".join(path.parts[1:-1])
        layer = path.parts[1]
        return None if not self.rooms_of(layer) else f"{layer}/." if folder == layer else folder

    def rooms_of(self, layer):
        return [room for room in self.rooms if room.startswith(layer + "/")]

    def problems(self):
        for table in (self.allowed, self.rooms):
            seen = set()
            for folder, others in table.items():
                for other in sorted(others - seen):
                    reason = "stands below it in the table" if other in table else "is not in the table"
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


def is_test(path):
    return path.name.endswith("_test.cc") or "testing" in path.parts or path.parts[0] in ("tests", "bench")


def room_problems(layers, files):
    """`files`: (path, text) of the C++ files. Includes between the rooms of one layer, and of testing/ by others."""
    needed = {room: set() for room in layers.rooms}
    for path, text in files:
        own = layers.room_of(path) if layer_of(path) else None
        if own and "testing" not in path.parts and own not in layers.rooms:
            yield f"{path}: the folder muster/{own.removesuffix('/.')} is not among the rooms in muster/LAYERS"
            continue
        for line, name in sources.includes(text):
            other_path = pathlib.PurePosixPath(name)
            if "testing" in other_path.parts[:-1] and name.startswith("muster/") and not is_test(path):
                yield f"{path}:{line}: includes {name}; only tests include testing/"
                continue
            if not own or is_test(path) or layer_of(other_path) != layer_of(path):
                continue
            other = layers.room_of(other_path)
            if other == own:
                continue
            needed[own].add(other)
            if other not in layers.rooms[own]:
                allowed = ", ".join(sorted(layers.rooms[own])) or "no other room"
                yield f"{path}:{line}: includes {name}; muster/LAYERS lets {own} include {allowed}"
    for room, others in layers.rooms.items():
        for other in sorted(others - needed[room]):
            yield f"muster/LAYERS: {room} may include {other}, which none of its files needs"


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
    files = [(path, (root / path).read_text(encoding="utf-8")) for path in sources.code_files(root)]
    for path, text in files:
        yield from include_problems(layers, path, text)
    yield from room_problems(layers, files)
    yield from draw_layers.problems(root, layers)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    write = "--write" in arguments
    arguments = [a for a in arguments if a != "--write"]
    top = pathlib.Path(arguments[0] if arguments else sources.ROOT).resolve()
    if write:
        draw_layers.write(top, Layers((top / "muster/LAYERS").read_text(encoding="utf-8")))
    found = list(problems(top))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
