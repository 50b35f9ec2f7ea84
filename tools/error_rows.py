"""What a page says that an error means: the words of its rows, and whether a program says them. Used by check_docs.py.

A chapter "What an error means" has a table whose first column quotes what is said. Of a quotation this compares the parts
of two words and more between what differs from case to case: `…`, `;`, numbers, paths, words in brackets, words in
CAPITALS, an engine's name, "job 17 of Slurm". What stands behind `srun:` are Slurm's words.

Two words are found somewhere whatever is said ("is lost", "has no"). So one part has three, or the words of the whole
quotation are three and stand in one statement of a program, with nothing between them but what differs."""

import ast
import re

CHAPTER = re.compile(r"^## What an error means\n(?P<body>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| (?P<said>[^|]*?) +\|", re.MULTILINE)
VARIES = (r"srun:.*|\bjob (?:…|\d+) of (?:Slurm|Ray|Spark)\b|…|;|\([^)]*\)|(?<!\w)/[\w/.-]+|\b\d[\w.]*"
          r"|\b[A-Z]{2}[A-Z_]*\b|[`:,.|]")
DIFFERS = re.compile(VARIES + r"|\b(?:Slurm|Ray|Spark)\b")
DIFFERS_BUT_ENGINES = re.compile(VARIES)  # some programs speak of one engine only
# A comment, or a string, whose parts may stand one below the other.
TOKEN = re.compile(r"""//[^\n]*|'(?:[^'\\\n]|\\.)'|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:[^"\\\n]|\\.)*)\"""", re.DOTALL)


def strings(code):
    """Returns the string literals of C++ code: those that follow each other as one, those of a statement with … between."""
    found, end = [], -1
    for match in TOKEN.finditer(code):
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is None:
            continue
        between = code[end:match.start()]
        if found and not between.strip():
            found[-1] += text
        elif found and not re.search("[;{}]", between):
            found[-1] += "…" + text
        else:
            found.append(text)
        end = match.end()
    return found


def python_strings(tree):
    """Returns those of Python code, likewise: what an f-string computes is … there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def quoted(page):
    """Returns the quotations of the page's table."""
    match = CHAPTER.search(page)
    said = [row["said"] for row in ROW.finditer(match["body"])] if match else []
    return [words for words in said[1:] if words.strip("-")]


def parts(said):
    """Returns the parts of a quotation that are the same in every case."""
    found = (" ".join(part.split()) for part in DIFFERS.split(said))
    return [part for part in found if " " in part]


def is_distinct(said, said_by_programs):
    """Whether more than two words show that a program says it."""
    for differs in (DIFFERS, DIFFERS_BUT_ENGINES):
        found = [part.split() for part in differs.split(said)]
        if any(len(words) > 2 and " ".join(words) in said_by_programs for words in found):
            return True
        every = [re.escape(word) for words in found for word in words]
        if len(every) > 2 and re.search(r"(?<!\w)" + r"[^\w\n]+".join(every) + r"(?!\w)", said_by_programs):
            return True
    return False


def problems(path, page, said_by_programs):
    """`said_by_programs`: the string literals of the programs, a line for each statement."""
    for said in quoted(page):
        known = parts(said)
        if not known and not said.startswith("srun:"):
            yield f"{path}: the error `{said}` has no two words that a program could be searched for"
        unsaid = [part for part in known if part not in said_by_programs]
        for part in unsaid:
            yield f"{path}: the error `{said}`: no program says `{part}`"
        if known and not unsaid and not is_distinct(said, said_by_programs):
            yield f"{path}: the error `{said}` has only words that many errors have; quote three that stand together"
