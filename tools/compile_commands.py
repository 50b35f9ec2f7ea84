"""How clang compiles each file of the project: shared by the checks that parse C++ (check_tidy.py, check_headers.py)."""

import hashlib
import json
import pathlib
import shlex
import subprocess

import build
import sources

ROOT = sources.ROOT
# Arguments of g++ that clang doesn't take or takes differently: the precompiled header is for g++ only.
DROPPED = {"-Winvalid-pch"}
DROPPED_WITH_VALUE = {"-include", "-o"}


def arguments_for_clang(command):
    """The compiler's arguments without compiler, output and input."""
    kept, skip = [], False
    words = shlex.split(command)
    start = next(i for i, word in enumerate(words) if pathlib.Path(word).name.startswith(("c++", "g++", "clang++"))) + 1
    for word in words[start:-2]:
        if skip or word in DROPPED:
            skip = False
        elif word in DROPPED_WITH_VALUE:
            skip = True
        else:
            kept.append(word)
    return kept + ["-Wthread-safety", "-Wno-deprecated-declarations", "-Wno-unknown-warning-option", "-Qunused-arguments"]


def read(preset):
    """Returns {path below ROOT: arguments}."""
    entries = json.loads((ROOT / "build" / preset / "compile_commands.json").read_text(encoding="utf-8"))
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build"):
            found[path.relative_to(ROOT)] = arguments_for_clang(entry["command"])
    return found


def of_project():
    """Returns {path: arguments} of every file that can be compiled here, including those that need torch if it is
    installed."""
    if build.configure_quietly("notorch"):
        raise SystemExit("the preset notorch can't be configured; its output is above")
    found = read("notorch")
    if has_torch():
        if build.configure_quietly("dev"):
            raise SystemExit("the preset dev can't be configured; its output is above")
        found = {**read("dev"), **found}
    for path in sources.code_files():
        if path.is_relative_to("tests/fuzz"):  # built by clang in the preset asan, from the command's libraries
            found.setdefault(path, found[pathlib.Path("apps/muster/main.cc")])
    with_torch = next((words for path, words in found.items() if path.parts[:2] == ("muster", "torch_bridge")), None)
    python = python_headers()
    if with_torch and python:  # pyproject.toml builds the Python package, no preset does
        found.update({path: with_torch + python for path in sources.code_files() if path.is_relative_to("python")})
    return found


def python_headers():
    """Returns the arguments that find Python's headers and nanobind's; none if .venv has no nanobind."""
    code = ("import nanobind, sysconfig\n"
            "print('-isystem' + sysconfig.get_path('include'), '-isystem' + nanobind.include_dir())")
    try:
        asked = subprocess.run([ROOT / ".venv/bin/python", "-c", code], capture_output=True, text=True)
    except OSError:
        return []
    return asked.stdout.split() if asked.returncode == 0 else []


def uses_torch(arguments):
    return any(word.endswith("torch/csrc/api/include") for word in arguments)


def has_torch():
    return subprocess.run([ROOT / "tools/find_torch.py"], capture_output=True).returncode == 0


class Contents:
    """Digests of a file together with all project files that it includes: the key under which earlier results are
    kept."""

    def __init__(self, root=ROOT):
        self.root = root
        self.texts, self.included, self.closures = {}, {}, {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(encoding="utf-8")
        return self.texts[path]

    def includes(self, path):
        """Returns the project files that a file includes directly."""
        if path not in self.included:
            self.included[path] = [
                found for _, name in sources.includes(self.text(path))
                for found in [p for p in (pathlib.Path(name), path.parent / name) if (self.root / p).is_file()][:1]]
        return self.included[path]

    def closure(self, path):
        path = pathlib.Path(path)
        if path not in self.closures:
            seen, todo = set(), [path]
            while todo:
                current = todo.pop()
                if current not in seen:
                    seen.add(current)
                    todo += self.includes(current)
            self.closures[path] = seen
        return self.closures[path]

    def digest(self, path, *more):
        digest = hashlib.sha256(repr(more).encode())
        for part in sorted(self.closure(path)):
            digest.update(str(part).encode() + b"\0" + self.text(part).encode() + b"\0")
        return digest.hexdigest()


class Memory:
    """Remembers by digest, in a folder below build/, what was right."""

    def __init__(self, name):
        self.folder = ROOT / "build" / "checked" / name
        self.folder.mkdir(parents=True, exist_ok=True)

    def knows(self, digest):
        return (self.folder / digest).exists()

    def remember(self, digest):
        (self.folder / digest).touch()
