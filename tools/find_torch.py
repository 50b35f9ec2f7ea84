#!/usr/bin/env python3
"""Prints the folder that holds TorchConfig.cmake, or exits 1: find_torch.py [--python PYTHON]

Looks in this order: Torch_DIR, LIBTORCH (an unpacked libtorch), the project's own virtual environment, `python3`. With
--python it looks only beside that interpreter, whose torch a wheel is for."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def from_interpreter(python, *flags):
    """Returns the torch package's folder as `python` sees it, without importing torch (which takes a second)."""
    code = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    try:
        done = subprocess.run([str(python), *flags, "-c", code], capture_output=True, text=True, timeout=60)
    except OSError:
        return None
    found = done.stdout.strip()
    return pathlib.Path(found) if done.returncode == 0 and found else None


def candidates(arguments):
    if arguments[:1] == ["--python"]:
        # -I first: where pip builds a wheel, PYTHONPATH hides the packages of the environment that it is for.
        package = from_interpreter(arguments[1], "-I") or from_interpreter(arguments[1])
        if package:
            yield package / "share/cmake/Torch"
        return
    if os.environ.get("Torch_DIR"):
        yield pathlib.Path(os.environ["Torch_DIR"])
    if os.environ.get("LIBTORCH"):
        yield pathlib.Path(os.environ["LIBTORCH"]) / "share/cmake/Torch"
    for python in (ROOT / ".venv/bin/python", "python3"):
        package = from_interpreter(python)
        if package:
            yield package / "share/cmake/Torch"


def main(arguments):
    if arguments and (arguments[0] != "--python" or len(arguments) != 2):
        print(__doc__, file=sys.stderr)
        return 2
    for folder in candidates(arguments):
        if (folder / "TorchConfig.cmake").is_file():
            print(folder)
            return 0
    print("libtorch was not found", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
