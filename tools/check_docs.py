#!/usr/bin/env python3
"""Checks that snippets in the documentation equal files that are compiled and run: check_docs.py [--write] [ROOT]

A code block under `<!-- cut from PATH -->` or `<!-- cut from PATH#REGION -->` must equal the file; a region lies
between the lines `[REGION]` and `[/REGION]`, in comments of the file. A block under `<!-- differs: PATH to PATH -->`
(with regions, too) must be what makes the first text the second, line by line. --write puts the right text into the block.
Also reports links to missing files, files in backticks that the tree doesn't have, in the tutorial output without a
recorded command (page_blocks.py), errors that a page explains and no program says (error_rows.py), tables
of docs/engines.md that the tests' sources don't say (engine_table.py), and a changelog whose
newest version isn't that of muster/base/version.h."""

import ast
import difflib
import pathlib
import re
import sys
import textwrap

import engine_table
import error_rows
import page_blocks
import sources

CUT = re.compile(r"(?P<head><!-- (?:cut from (?P<path>\S+)|differs: (?P<old>\S+) to (?P<new>\S+)) -->\n+```\w*\n)(?P<body>.*?)"
                 r"(?P<end>^```$)", re.DOTALL | re.MULTILINE)
MARK = re.compile(r"<!-- (?:cut from|differs:) ")
LINK = re.compile(r"\[[^\]]+\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
# `muster/store/rows.h`, `tests/cluster/`, or a header or source by its name alone; NAME and ROOM stand for any.
PATH = re.compile(r"`((?:apps|bench|docs|examples|muster|tests|tools)/[\w./-]*|[\w-]+\.(?:h|cc))(?:\{h,cc\})?`")
PLACEHOLDER = re.compile(r"NAME|ROOM|snake_case")


def cut(root, place):
    """Returns the text of the file or region, PATH or PATH#REGION; raises ValueError."""
    path, _, region = place.partition("#")
    file = root / path
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    lines = file.read_text(encoding="utf-8").splitlines()
    if region:
        marks = [[i for i, line in enumerate(lines) if re.search(rf"(//|#)\s*\[{slash}{re.escape(region)}\]\s*$", line)]
                 for slash in ("", "/")]
        if len(marks[0]) != 1 or len(marks[1]) != 1 or marks[1][0] < marks[0][0]:
            raise ValueError(f"{path} needs one line `[{region}]` and below it one line `[/{region}]`, in comments")
        lines = lines[marks[0][0] + 1:marks[1][0]]
    lines = [line for line in lines if not re.search(r"(//|#)\s*\[/?[\w-]+\]\s*$", line)]
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def difference(old, new):
    """Returns all lines of both texts: `-` begins those of the first alone, `+` those of the second, two blanks the others."""
    return "".join(line.rstrip() + "\n" for line in difflib.ndiff(old.splitlines(), new.splitlines()) if line[0] != "?")


def wanted_text(root, match):
    """Returns the text of a block that is cut from files; raises ValueError."""
    if match["path"]:
        return cut(root, match["path"])
    return difference(cut(root, match["old"]), cut(root, match["new"]))


def run_problems(path, text):
    """Reports malformed blocks of output; tools/run_pages.py checks whether the output is true."""
    try:
        runs = page_blocks.runs(text)
    except ValueError as error:
        yield f"{path}: {error}"
        return
    if path.parts[:2] == ("docs", "tutorial") and len(runs) != len(page_blocks.CONSOLE.findall(text)):
        yield f"{path}: a console block without a `<!-- run -->` comment above it: nothing would check whether it is true"
    for run in runs:
        if run.only and not run.output:
            yield f"{path}: `{run.command}` shows none of its lines `{run.only}`; tools/run_pages.py --write records them"


def version_problems(root):
    header, changelog = root / "muster/base/version.h", root / "CHANGELOG.md"
    version = re.search(r'kMusterVersion\[\] = "([^"]+)"', header.read_text(encoding="utf-8"))[1]
    newest = re.search(r"^## \[(\d[^\]]*)\]", changelog.read_text(encoding="utf-8"), re.MULTILINE)
    if not newest or newest[1] != version:
        yield f"CHANGELOG.md: its newest version is {newest[1] if newest else 'missing'}, muster/base/version.h says {version}"


def missing_files(path, text, there):
    for match in PATH.finditer(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        name = match[1] + "h" if match[1].endswith(".") else match[1].rstrip("/")
        if name not in there and not PLACEHOLDER.search(name):
            yield f"{path}: names {match[1]}, which isn't there"


def said_by_programs(root):
    """Returns the strings of muster/ and apps/, also of the Python that muster brings along, a line for each statement."""
    programs = [p for p in sources.code_files(root)
                if p.parts[0] in ("muster", "apps") and "testing" not in p.parts and not p.name.endswith("_test.cc")]
    texts = [text for p in programs for text in error_rows.strings((root / p).read_text(encoding="utf-8"))]
    trees = (ast.parse(p.read_text(encoding="utf-8")) for p in sorted((root / "muster").rglob("*.py")))
    texts += [text.replace("\n", " ") for tree in trees for text in error_rows.python_strings(tree)]
    return "\n".join(texts)


def problems(root, write=False):
    yield from version_problems(root)
    yield from engine_table.problems(root, write)
    said = None
    there = {str(part) for path in sources.all_files(root) for part in (path, path.name, *path.parents)}
    for path in (p for p in sources.all_files(root) if p.suffix == ".md"):
        text = (root / path).read_text(encoding="utf-8")
        found = list(CUT.finditer(text))
        if len(found) != len(MARK.findall(text)):
            yield f"{path}: a `cut from` or `differs` comment without a code block right below it"
        for match in found:
            try:
                wanted = wanted_text(root, match)
            except ValueError as error:
                yield f"{path}: {error}"
                continue
            if wanted != match["body"] and not write:
                line = text.count("\n", 0, match.start()) + 1
                place = match["path"] or f"{match['old']} and {match['new']}"
                yield f"{path}:{line}: differs from {place}; tools/check_docs.py --write fixes it"
            elif wanted != match["body"]:
                text = text.replace(match.group(), match["head"] + wanted + match["end"])
                (root / path).write_text(text, encoding="utf-8")
        yield from run_problems(path, text)
        if error_rows.quoted(text):
            said = said if said is not None else said_by_programs(root)
            yield from error_rows.problems(path, text, said)
        for match in LINK.finditer(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if not (root / path.parent / match[1]).exists():
                yield f"{path}: links to {match[1]}, which isn't there"
        if path.name != "CHANGELOG.md":  # it tells of what was
            yield from missing_files(path, text, there)


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a != "--write"]
    wrong = list(problems(pathlib.Path(rest[0] if rest else sources.ROOT).resolve(), "--write" in sys.argv))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
