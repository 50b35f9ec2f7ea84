#!/usr/bin/env python3
"""Runs a link command with the archive libNAME.a in place of each shared library libNAME.so that it names by path, so
that the program needs nothing of the kind where it runs: link_archives.py COMPILER ARGUMENT...

CMake finds the shared libraries of Debian's packages, and can't be told per program which kind to take. It runs this
as the linker launcher of programs that are copied to other hosts (cmake/MusterOneFile.cmake)."""

import os
import pathlib
import re
import sys

# Folder, name and version: /usr/lib/libabsl_base.so.20220623.0.0
SHARED = re.compile(r"(/.*/lib[^/]+?)\.so(\.\d+)*")


def archive_of(argument):
    """Returns what stands for `argument`; raises FileNotFoundError if it is a shared library without an archive."""
    shared = SHARED.fullmatch(argument)
    if not shared:
        return argument
    archive = pathlib.Path(shared[1] + ".a")
    if not archive.is_file():
        raise FileNotFoundError(f"{argument} has no archive {archive.name} beside it, and a program that runs on other "
                                "hosts can't need it; install the package that has the archive, or do without the library")
    return str(archive)


def main(command):
    try:
        command = [archive_of(argument) for argument in command]
    except FileNotFoundError as missing:
        sys.exit(f"link_archives.py: {missing}")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
