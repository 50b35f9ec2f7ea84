#!/usr/bin/env python3
"""Holds what users are shown against muster/PUBLIC, the list of headers that a program may include.

check_public.py [--closure] [ROOT] prints what is wrong and exits 1: a listed header that isn't there, has no words, stands
twice or includes a testing/ header, directly or through others; in muster.h, examples/, tests/install/outside and the
code blocks of the pages, an #include of a muster header that isn't listed. --closure prints the listed headers and all
that they include, which is what cmake/MusterInstall.cmake installs."""

import pathlib
import re
import sys

import sources

USERS = ("muster/muster.h", "examples/", "tests/install/outside/")
CODE_BLOCK = re.compile(r"^```(?:cpp|c\+\+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def listed(root):
    """(line number, header, words) of each line of muster/PUBLIC."""
    for number, line in enumerate((root / "muster/PUBLIC").read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            header, _, words = line.partition(":")
            yield number, header.strip(), words.strip()


def included(root, header):
    """What of muster a header includes; nothing where it isn't there."""
    if not (root / header).is_file():
        return []
    text = (root / header).read_text(encoding="utf-8")
    return [name for _, name in sources.includes(text) if name.startswith("muster/")]


def closure(root):
    """The listed headers and all that they include: header -> the one that brought it, None for a listed one."""
    brought = {header: None for _, header, _ in listed(root)}
    waiting = list(brought)
    for header in waiting:  # grows while it is walked
        for name in included(root, header):
            if name not in brought:
                brought[name] = header
                waiting.append(name)
    return brought


def what_users_include(root):
    """(place, header) of each muster header that a program, or a page that shows one, includes."""
    for path in sources.all_files(root):
        if path.suffix in (".h", ".cc") and str(path).startswith(USERS):
            codes = [(0, (root / path).read_text(encoding="utf-8"))]
        elif path.suffix == ".md":
            text = (root / path).read_text(encoding="utf-8")
            codes = [(text.count("\n", 0, match.start(1)), match.group(1)) for match in CODE_BLOCK.finditer(text)]
        else:
            continue
        for before, code in codes:
            for line, name in sources.includes(code):
                if name.startswith("muster/"):
                    yield f"{path}:{before + line}", name


def problems(root):
    headers = set()
    for number, header, words in listed(root):
        place = f"muster/PUBLIC:{number}"
        if header in headers:
            yield f"{place}: {header} stands here twice"
        headers.add(header)
        if not words:
            yield f"{place}: {header} has no words that say what it is for: `PATH: words`"
        if not (root / header).is_file():
            yield f"{place}: there is no file {header}"
    for header, by in closure(root).items():
        if "testing" in header.split("/"):
            yield f"{by or 'muster/PUBLIC'}: a public header brings {header}, which is for tests"
    for place, header in what_users_include(root):
        if header not in headers:
            yield f"{place}: includes {header}, which muster/PUBLIC doesn't list: users would take it for public"


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--closure"]
    top = pathlib.Path(arguments[0] if arguments else sources.ROOT).resolve()
    if "--closure" in sys.argv[1:]:
        print("\n".join(sorted(closure(top))))
        sys.exit(0)
    found = list(problems(top))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
