#!/usr/bin/env python3
"""Writes _library.pyi, the types of the Python package's library: make_stubs.py PYTHON [FOLDER]

PYTHON is an interpreter that can import an installed muster; FOLDER is python/muster unless given. The text is that of
nanobind's generator, which reads the signatures that the binding registers."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Run with the packages of this environment at the end of the path: muster is PYTHON's, nanobind is this one's.
MAKE = """
import sys
sys.path += sys.argv[1:2]
import muster._library
from nanobind.stubgen import StubGen
stubs = StubGen(muster._library)
stubs.put(muster._library)
sys.stdout.write(stubs.get())
"""


def mended(text):
    """What nanobind doesn't say as type checkers want it: the argument of PathLike, and a class without a hash."""
    text = re.sub(r"\bos\.PathLike\b(?!\[)", "os.PathLike[str]", text)
    text = text.replace("__hash__: None = None", "__hash__: ClassVar[None]  # type: ignore[assignment]")
    return text.replace("import os\n", "import os\nfrom typing import ClassVar\n", 1)


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(arguments[1]) if len(arguments) == 2 else ROOT / "python/muster"
    packages = str(pathlib.Path(__import__("nanobind").__file__).parent.parent)
    made = subprocess.run([arguments[0], "-c", MAKE, packages], capture_output=True, text=True)
    if made.returncode:
        print(made.stderr, file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_library.pyi").write_text(mended(made.stdout), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
