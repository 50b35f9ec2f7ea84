#!/usr/bin/env python3
"""Executes the notebooks of the tutorial's pages, as a reader does, and compares what their cells print with the pages:
run_notebooks.py [PAGE...]. Notebooks of pages that run at the same time are executed at the same time, one kernel
each. Ports and the folder are replaced as in run_pages.py. Exits 1 if a cell fails or prints something else. Needs the
packages of tools/requirements.txt, so run it with .venv/bin/python."""

import concurrent.futures
import pathlib
import sys

import nbclient

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import make_notebooks  # noqa: E402
import page_blocks  # noqa: E402
import run_pages  # noqa: E402


def printed(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def runs_by_cell(notebook, page_text):
    """Returns [(index of the cell, the page's run whose output it shows)]."""
    runs = page_blocks.runs(page_text)
    in_order = [run for run in runs if not run.terminal] + [run for run in runs if run.terminal]
    cells = [i for i, cell in enumerate(notebook.cells)
             if cell.cell_type == "code" and (cell.source.startswith("%%bash") or ".communicate(" in cell.source)]
    assert len(cells) == len(in_order), "a notebook has a cell for each run"
    return list(zip(cells, in_order))


def execute(page, scene):
    """Returns what is wrong."""
    name = f"notebook of {page.relative_to(run_pages.ROOT)}"
    notebook = make_notebooks.notebook(page)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = scene.to_real(cell.source)
            cell.outputs = []
    client = nbclient.NotebookClient(notebook, timeout=run_pages.TIMEOUT, kernel_name="python3",
                                     resources={"metadata": {"path": str(page.parent)}})
    try:
        client.execute(env=run_pages.environment())
    except nbclient.exceptions.CellExecutionError as error:
        return [f"{name}: {error}"]
    results = [(run, run.shown(scene.to_written(printed(notebook.cells[i]))), run.exit_code)
               for i, run in runs_by_cell(notebook, page.read_text(encoding="utf-8"))]
    return list(run_pages.differences(name, results))


def execute_group(pages):
    scene = run_pages.Scene([page.read_text(encoding="utf-8") for page in pages])
    try:
        with concurrent.futures.ThreadPoolExecutor(len(pages)) as pool:
            return [line for lines in pool.map(lambda page: execute(page, scene), pages) for line in lines]
    finally:
        scene.close()


def main(arguments):
    pages = [pathlib.Path(a).resolve() for a in arguments] or run_pages.default_pages()
    wrong = []
    for group in run_pages.groups(pages):
        wrong += execute_group(group)
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
