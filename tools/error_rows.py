"""What a page says that an error means: the words of its rows, and whether a program says them. Used by check_docs.py.

A chapter "What an error means" has a table whose first column quotes what is said. Of a quotation this compares the parts
of two words and more between what differs from case to case: `…`, `;`, numbers, paths, words in brackets, words in
CAPITALS, an engine's name. What stands behind `srun:` are Slurm's words."""

import re

CHAPTER = re.compile(r"^## What an error means\n(?P<body>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| (?P<said>[^|]*?) +\|", re.MULTILINE)
DIFFERS = re.compile(r"srun:.*|…|;|\([^)]*\)|(?<!\w)/[\w/.-]+|\b\d[\w.]*|\b[A-Z]{2}[A-Z_]*\b|\b(?:Slurm|Ray)\b|[`:,.|]")
# A comment, or a string, whose parts may stand one below the other.
TOKEN = re.compile(r"""//[^\n]*|'(?:[^'\\\n]|\\.)'|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)\"""", re.DOTALL)


def strings(code):
    """Returns the string literals of C++ code, those that follow each other as one."""
    found, end = [], -1
    for match in TOKEN.finditer(code):
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is None:
            continue
        if found and not code[end:match.start()].strip():
            found[-1] += text
        else:
            found.append(text)
        end = match.end()
    return found


def quoted(page):
    """Returns the quotations of the page's table."""
    match = CHAPTER.search(page)
    said = [row["said"] for row in ROW.finditer(match["body"])] if match else []
    return [words for words in said[1:] if words.strip("-")]


def parts(said):
    """Returns the parts of a quotation that are the same in every case."""
    found = (" ".join(part.split()) for part in DIFFERS.split(said))
    return [part for part in found if " " in part]


def problems(path, page, said_by_programs):
    """`said_by_programs`: all string literals of the programs, a line each."""
    for said in quoted(page):
        known = parts(said)
        if not known and not said.startswith("srun:"):
            yield f"{path}: the error `{said}` has no two words that a program could be searched for"
        for part in known:
            if part not in said_by_programs:
                yield f"{path}: the error `{said}`: no program says `{part}`"
