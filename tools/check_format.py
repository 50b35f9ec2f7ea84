#!/usr/bin/env python3
"""Checks that clang-format-14 has nothing to change: check_format.py [--write]. --write formats the files."""

import subprocess
import sys

import sources

if __name__ == "__main__":
    files = [str(p) for p in sources.code_files()]
    mode = ["-i"] if "--write" in sys.argv else ["--dry-run", "-Werror", "--ferror-limit=3"]
    done = subprocess.run(["clang-format-14", *mode, *files], cwd=sources.ROOT, capture_output=True, text=True)
    print(done.stdout + done.stderr, end="")
    if done.returncode:
        print("tools/check_format.py --write fixes it")
    sys.exit(done.returncode)
