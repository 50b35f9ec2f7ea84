#!/usr/bin/env python3
"""Size alarms: header 250 lines, source 600, class 120, function 60, page of docs/ 300, folder 45 files of code. Prints what
is over and exits 1.

check_sizes.py [ROOT]. An exception is a line `PATH [NAME]: reason` in tools/size_exceptions.txt; one that is no longer
needed is reported, too. Classes and functions are found by their braces, after comments and strings are blanked out:
the text before a brace tells what it opens."""

import collections
import pathlib
import re
import sys

import sources

HEADER_LINES, SOURCE_LINES, CLASS_LINES, FUNCTION_LINES = 250, 600, 120, 60
PAGE_LINES, FOLDER_FILES = 300, 45
EXCEPTIONS = "tools/size_exceptions.txt"

CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*|[A-Z][A-Z_]+(?:\([^)]*\))?\s+)*([\w:]+)")
ENUM = re.compile(r"\benum\b\s*(?:class\b|struct\b)?\s*(?:\[\[.*?\]\]\s*)?([\w:]+)?")
SPECIALIZED = re.compile(r"(?:\s*<.*>)?", re.DOTALL)
NAMESPACE = re.compile(r"\bnamespace\b\s*(?:\[\[.*?\]\]\s*)?([\w:]+)?\s*$")
NOT_OF_THE_HEAD = re.compile(r"^\s*(public|private|protected)\s*:|__attribute__\s*\(\(.*?\)\)")
NOT_A_FUNCTION = {"if", "for", "while", "switch", "catch", "return", "do", "else", "try", "sizeof", "alignof", "decltype"}


def blocks(text):
    """Yields (kind, name, first line, last line, enclosing blocks) of each class, enum and function; the last is
    [(kind, name)] from the outermost on, including namespaces. Lambdas and inner blocks count as part of the enclosing
    one."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"),
                  sources.without_comments(text, keep_strings=False), flags=re.MULTILINE)
    stack, start = [], 0
    depth_of_parentheses = 0
    for match in re.finditer(r"[{};()]", text):
        token, at = match.group(), match.start()
        if token in "()":
            depth_of_parentheses += 1 if token == "(" else -1
            continue
        if token == ";" and depth_of_parentheses:
            continue
        if token == "{":
            head = NOT_OF_THE_HEAD.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text[start:at])
            inside = any(kind == "function" for kind, *_ in stack)
            if depth_of_parentheses or re.match(r"[\w>\]]", text[at - 1:at]):
                kind, name = "initialiser", ""  # `f({1})`, `member_{1}`: formatted code has a space before any other brace
            else:
                kind, name = ("block", "") if inside else opened_by(head)
            first = at - len(head.lstrip())
            stack.append((kind, name, text.count("\n", 0, first) + 1, start, depth_of_parentheses))
            depth_of_parentheses = 0
        elif token == "}" and stack:
            kind, name, first, before, depth_of_parentheses = stack.pop()
            if kind == "initialiser":
                start = before  # the enclosing block goes on
                continue
            if kind not in ("block", "namespace"):
                yield kind, name, first, text.count("\n", 0, at) + 1, [(outer[0], outer[1]) for outer in stack]
        start = match.end()


def opened_by(head):
    head = head.strip()
    if namespace := NAMESPACE.search(head):
        return "namespace", namespace.group(1) or ""
    if enum := ENUM.search(head):
        return "enum", enum.group(1) or ""
    if re.search(r"\bextern\s*$", head) or head.endswith("="):
        return "block", ""
    found = CLASS.search(re.sub(r"\btemplate\s*<[^{]*?>\s*(?=class|struct|union)", "", head))
    if found and not re.search(r"\)\s*(const|override|final|noexcept)*\s*$", head):
        return "class", found.group(1) + SPECIALIZED.match(head[found.end():]).group()
    called = re.search(r"([~\w:]+|operator\s*[^\s(]+)\s*\(", head)
    if called and called.group(1) not in NOT_A_FUNCTION:
        return "function", called.group(1)
    return "block", ""


def alarms(root):
    """(path, name or "", what it says)."""
    files = sources.all_files(root)
    for folder, count in collections.Counter(p.parent for p in files if p.suffix in (".h", ".cc", ".py")).items():
        if count > FOLDER_FILES:
            yield folder, "", f"{folder}: {count} files of code; the limit is {FOLDER_FILES}: make rooms (muster/LAYERS)"
    for path in files:
        if path.parts[0] == "docs" and path.suffix == ".md" and (lines := (root / path).read_text(encoding="utf-8").count("\n")) > PAGE_LINES:
            yield path, "", f"{path}: {lines} lines; the limit for a page is {PAGE_LINES}"
    for path in sources.code_files(root):
        text = (root / path).read_text(encoding="utf-8")
        lines, limit = text.count("\n"), HEADER_LINES if path.suffix == ".h" else SOURCE_LINES
        if lines > limit:
            yield path, "", f"{path}: {lines} lines; the limit for a {'header' if path.suffix == '.h' else 'source'} is {limit}"
        for kind, name, first, last, _ in blocks(text):
            if kind == "enum":
                continue
            limit = CLASS_LINES if kind == "class" else FUNCTION_LINES
            if last - first + 1 > limit:
                yield path, name, f"{path}:{first}: {kind} {name} has {last - first + 1} lines; the limit is {limit}"


def exceptions(root):
    """Returns {(path, name): line number}; raises ValueError on a line without a reason."""
    file, found = root / EXCEPTIONS, {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines() if file.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        what, _, reason = line.partition(": ")
        if not reason.strip():
            raise ValueError(f"{EXCEPTIONS}:{number}: no reason given; a line is `PATH [NAME]: reason`")
        path, _, name = what.partition(" ")
        found[(pathlib.Path(path), name.strip())] = number
    return found


def problems(root):
    try:
        excepted = exceptions(root)
    except ValueError as error:
        yield str(error)
        return
    used = set()
    for path, name, message in alarms(root):
        if (path, name) in excepted:
            used.add((path, name))
        else:
            yield message
    for key, number in excepted.items():
        if key not in used:
            yield f"{EXCEPTIONS}:{number}: {' '.join(map(str, key)).strip()} is within the limits: delete this line"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sources.ROOT).resolve()))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
