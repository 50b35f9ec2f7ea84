#!/usr/bin/env python3
"""Tests that the tutorial is true: each page's commands print what the page shows, every page becomes a notebook, and one
of these runs. tests/notebooks_test.py runs all of them. Needs the programs of the release build. `./dev test tutorial`
runs it."""

import ast
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402
import page_blocks  # noqa: E402
import run_pages  # noqa: E402

# Quick, and it has every kind of cell: a terminal of its own, an exit code, chosen lines, all lines.
NOTEBOOK = ROOT / "docs/tutorial/servers.md"


def run_tool(*words):
    """Runs a tool with the python that has the packages of tools/requirements.txt; returns its exit code and output."""
    own = ROOT / ".venv/bin/python"
    done = subprocess.run([own if own.exists() else sys.executable, *map(str, words)], cwd=ROOT, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def groups_with_commands():
    """Returns the groups of pages that run something; a case for one of the others could not fail."""
    return [pages for pages in run_pages.groups(run_pages.default_pages())
            if any(page_blocks.runs(page.read_text(encoding="utf-8")) for page in pages)]


class PagesTest(unittest.TestCase):
    """One case per page, or per group of pages that run at the same time."""

    def check_group(self, pages):
        for page, (_, results) in run_pages.run_group(pages).items():
            self.assertEqual(list(run_pages.differences(page.relative_to(ROOT), results)), [])


class NotebooksTest(unittest.TestCase):
    def test_every_page_becomes_one(self):
        with tempfile.TemporaryDirectory(prefix="muster_notebooks_") as scratch:
            done = subprocess.run(["./dev", "notebooks", scratch], cwd=ROOT, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for page in run_pages.default_pages():
                with self.subTest(page=page.name):
                    file = pathlib.Path(scratch) / page.relative_to(ROOT / "docs").with_suffix(".ipynb")
                    self.check_notebook(file, page_blocks.runs(page.read_text(encoding="utf-8")))

    def check_notebook(self, file, runs):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        for source, run in zip(code[1:], runs):
            self.assertIn(f"Popen({run.command!r}," if run.terminal else f"\n{run.command}", source)
        self.assertEqual(len(code), bool(runs) + len(runs) + sum(bool(run.terminal) for run in runs))
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        self.assertTrue(text.startswith("# "))
        links = check_docs.LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        self.assertEqual([link for link in links if not (file.parent / link).exists()], [])

    def test_one_runs(self):
        status, output = run_tool("tools/run_notebooks.py", NOTEBOOK)
        self.assertEqual(status, 0, output)


class TensorFlowProgramTest(unittest.TestCase):
    def test_the_left_hand_program_is_python(self):
        ast.parse((ROOT / "examples/tutorial/from_tensorflow.py").read_text(encoding="utf-8"))


for group in groups_with_commands():
    setattr(PagesTest, f"test_{group[0].stem}", lambda self, pages=group: self.check_group(pages))

if __name__ == "__main__":
    sys.exit(unittest.main())
