#!/usr/bin/env python3
"""Exits 0 if the running interpreter has every `name==version` of the given requirements file, else 1.

pip could answer, too, but takes a second; this runs before every test run."""

import importlib.metadata
import sys


def missing(path):
    for line in open(path, encoding="utf-8"):
        requirement = line.split("#")[0].strip()
        if not requirement:
            continue
        name, _, version = requirement.partition("==")
        name = name.partition("[")[0]  # "ray[default]" is ray with more of its dependencies
        try:
            if importlib.metadata.version(name) != version:
                yield requirement
        except importlib.metadata.PackageNotFoundError:
            yield requirement


if __name__ == "__main__":
    sys.exit(1 if list(missing(sys.argv[1])) else 0)
