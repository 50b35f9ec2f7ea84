#!/usr/bin/env python3
"""Makes a Jupyter notebook of each page of docs/tutorial, and of docs/from_tensorflow.md: make_notebooks.py [--check].

Text and snippets become text; a command that the page runs becomes a cell that runs it, with the page's output. The
notebooks run in the project's folder and use the programs of the release build. --check writes nothing, and exits 1 if
a notebook isn't what its page makes. Needs the packages of tools/requirements.txt, so run it with .venv/bin/python."""

import pathlib
import re
import sys

import nbformat

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page_blocks  # noqa: E402
import run_pages  # noqa: E402

FIND_PROJECT = """import os, pathlib
here = pathlib.Path.cwd()
os.chdir(next(folder for folder in (here, *here.parents) if (folder / "dev").is_file()))  # the project's"""
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
LINK = re.compile(r"\]\(([\w./]+)\.md\)")


def output_of(text):
    return [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []


def code_cell(source, text=""):
    return nbformat.v4.new_code_cell(source, outputs=output_of(text))


def run_cells(run):
    """Returns the cell of a run, and the cell at the end of the page that shows its terminal's output (or None)."""
    if run.terminal:
        opened = (f"import subprocess\n{run.terminal} = subprocess.Popen({run.command!r}, shell=True, text=True,\n"
                  f"    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)")
        closing = code_cell(f'print({run.terminal}.communicate(timeout=120)[0], end="")', run.output)
        return code_cell(opened), closing
    magic = "%%bash" + (" --no-raise-error" if run.exit_code else "")
    return code_cell(f"{magic}\nexec 2>&1\n{run.command}", run.output), None


def text_cell(text, folder):
    """Returns no cell or one; links to pages that have a notebook lead there."""
    def linked(match):
        has_notebook = (folder / f"{match[1]}.md").resolve() in run_pages.default_pages()
        return f"]({match[1]}.ipynb)" if has_notebook else match[0]

    text = COMMENT.sub("", text).strip()
    return [nbformat.v4.new_markdown_cell(LINK.sub(linked, text))] if text else []


def notebook(text, folder):
    """Returns the notebook of a page's text; `folder` is the page's folder."""
    runs = page_blocks.runs(text)
    cells, closing, at = [], [], 0
    if runs:
        cells.append(code_cell(FIND_PROJECT))
    for run in runs:
        cells += text_cell(text[at:run.start], folder)
        cell, closes = run_cells(run)
        cells.append(cell)
        closing += [nbformat.v4.new_markdown_cell(f"What `{run.terminal}` has said:"), closes] if closes else []
        at = run.end
    cells += text_cell(text[at:], folder) + closing
    made = nbformat.v4.new_notebook(cells=cells, metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"}})
    for i, cell in enumerate(made.cells):
        cell["id"] = f"cell-{i}"  # not random, so that the same page makes the same notebook
    nbformat.validate(made)
    return made


def notebook_text(page):
    return nbformat.writes(notebook(page.read_text(encoding="utf-8"), page.parent)) + "\n"


def main(arguments):
    wrong = []
    for page in run_pages.default_pages():
        file = page.with_suffix(".ipynb")
        made = notebook_text(page)
        if file.is_file() and file.read_text(encoding="utf-8") == made:
            continue
        if "--check" in arguments:
            wrong.append(f"{file.relative_to(run_pages.ROOT)} isn't what its page makes; "
                         ".venv/bin/python tools/make_notebooks.py fixes it")
        else:
            file.write_text(made, encoding="utf-8")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
