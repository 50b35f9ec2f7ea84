"""Version and dependencies of the wheel, for scikit-build-core: pyproject.toml names this file.

Both depend on the torch that the wheel is built for: "0.2.0+torch2.13" requires "torch == 2.13.*"."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def torch_version() -> str:
    """The version of the torch beside this Python, which CMake finds by the same program: "2.13.0+cpu"."""
    found = subprocess.run([sys.executable, ROOT / "tools/find_torch.py", "--python", sys.executable],
                           capture_output=True, text=True)
    if found.returncode != 0:
        raise RuntimeError(f"there is no torch beside {sys.executable}: install the one that muster shall train with "
                           "into this environment first")
    text = (pathlib.Path(found.stdout.strip()).parent.parent.parent / "version.py").read_text(encoding="utf-8")
    match = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    if not match:
        raise RuntimeError(f"{found.stdout.strip()} belongs to a torch whose version.py says no version")
    return match[1]


def muster_version() -> str:
    match = re.search(r'kMusterVersion\[\] = "([^"]+)"', (ROOT / "muster/base/version.h").read_text(encoding="utf-8"))
    if not match:
        raise RuntimeError("muster/base/version.h says no version")
    return match[1]


def dynamic_metadata(_settings: object, _project: object) -> dict[str, str | list[str]]:
    minor = ".".join(torch_version().split("+")[0].split(".")[:2])
    return {"version": f"{muster_version()}+torch{minor}", "dependencies": [f"torch == {minor}.*"]}
