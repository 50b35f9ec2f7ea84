#!/usr/bin/env python3
"""The virtual environment of the peers that muster is compared with: build/peers, used by nothing else.

environment.py PACKAGE... installs the packages and prints the path of the environment's python, or exits 1 and says
what can't be installed. PIP_INDEX_URL or PIP_EXTRA_INDEX_URL name another package index, as for ./dev setup."""

import pathlib
import re
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build/peers"
PYTHON = FOLDER / "bin/python"


def torch_requirement():
    """Returns the version that the project itself is built on."""
    return re.search(r"^TORCH_REQUIREMENT='(.*)'$", (ROOT / "tools/setup.sh").read_text(), re.MULTILINE).group(1)


# Import name: what pip is asked for.
REQUIREMENTS = {
    "tensorflow": "tensorflow-cpu==2.21.0",
    "torch": torch_requirement(),
    "matplotlib": "matplotlib",
    "safetensors": "safetensors",
}


def works(package):
    return PYTHON.exists() and subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True).returncode == 0


def install(package):
    """Returns "" if the package can be imported now, otherwise the reason."""
    if works(package):
        return ""
    print(f"installing {REQUIREMENTS[package]} into {FOLDER.relative_to(ROOT)} (gigabytes, minutes)", file=sys.stderr, flush=True)
    try:
        if not PYTHON.exists():
            venv.create(FOLDER, with_pip=True)
        done = subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-input", REQUIREMENTS[package]],
                              capture_output=True, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no virtual environment can be made: {error}"
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"pip can't install {REQUIREMENTS[package]}: {(errors or ['it gave no reason'])[-1]}"
    return "" if works(package) else f"{REQUIREMENTS[package]} was installed and can't be imported"


def main(packages):
    unknown = [package for package in packages if package not in REQUIREMENTS]
    if unknown or not packages:
        print(f"environment: name packages among {', '.join(REQUIREMENTS)}", file=sys.stderr)
        return 2
    for package in packages:
        reason = install(package)
        if reason:
            print(f"environment: {reason}", file=sys.stderr)
            return 1
    print(PYTHON)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
