#!/usr/bin/env python3
"""Makes a Jupyter notebook of each page of docs/tutorial, and of docs/from_tensorflow.md: make_notebooks.py [FOLDER].
FOLDER is build/notebooks if it isn't given. `./dev notebooks` calls it.

Text and snippets become text; a command that the page runs becomes a cell that runs it, with the page's output. The
notebooks run in the project's folder and use the programs of the release build. Needs the packages of
tools/requirements.txt, so run it with .venv/bin/python."""

import os
import pathlib
import re
import sys

import nbformat

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page_blocks  # noqa: E402
import run_pages  # noqa: E402

FOLDER = run_pages.ROOT / "build/notebooks"
GO_TO_PROJECT = f"import os\nos.chdir({str(run_pages.ROOT)!r})"
COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
# Code is matched too, and has no target: a lambda there looks like a link.
LINK = re.compile(r"```.*?```|`[^`\n]+`|\]\((?!\w+:|#)([^)#\s]+)", re.DOTALL)


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


def notebook_file(page, folder):
    """Returns where the page's notebook lies: in `folder` as the page in docs/."""
    return (folder / page.relative_to(run_pages.ROOT / "docs")).with_suffix(".ipynb")


def text_cell(text, page, folder):
    """Returns no cell or one; links to pages that have a notebook lead there, other links to the page's own files."""
    def linked(match):
        if not match[1]:
            return match[0]
        target = (page.parent / match[1]).resolve()
        if target in run_pages.default_pages():
            target = notebook_file(target, folder)
        return "](" + os.path.relpath(target, notebook_file(page, folder).parent)

    text = COMMENT.sub("", text).strip()
    return [nbformat.v4.new_markdown_cell(LINK.sub(linked, text))] if text else []


def notebook(page, folder=FOLDER):
    """Returns the notebook of a page, whose links lead to the other notebooks in `folder`."""
    text = page.read_text(encoding="utf-8")
    runs = page_blocks.runs(text)
    cells, closing, at = [], [], 0
    if runs:
        cells.append(code_cell(GO_TO_PROJECT))
    for run in runs:
        cells += text_cell(text[at:run.start], page, folder)
        cell, closes = run_cells(run)
        cells.append(cell)
        closing += [nbformat.v4.new_markdown_cell(f"What `{run.terminal}` has said:"), closes] if closes else []
        at = run.end
    cells += text_cell(text[at:], page, folder) + closing
    made = nbformat.v4.new_notebook(cells=cells, metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"}})
    for i, cell in enumerate(made.cells):
        cell["id"] = f"cell-{i}"  # not random, so that the same page makes the same notebook
    nbformat.validate(made)
    return made


def main(arguments):
    if arguments and arguments[0].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0] if arguments else FOLDER).resolve()
    for page in run_pages.default_pages():
        file = notebook_file(page, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(page, folder), file)
    print(f"notebooks: {folder}/tutorial/README.ipynb leads to the others; open it with Jupyter after ./dev build")


if __name__ == "__main__":
    main(sys.argv[1:])
