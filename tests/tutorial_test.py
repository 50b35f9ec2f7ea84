#!/usr/bin/env python3
"""Tests that the tutorial is true: each page's commands, and each page's notebook, made by tools/make_notebooks.py,
print what the page shows. Needs the programs of the release build. `./dev test tutorial` runs it."""

import ast
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import page_blocks  # noqa: E402
import run_pages  # noqa: E402


def python_with_packages():
    """Returns the python that has the packages of tools/requirements.txt."""
    own = ROOT / ".venv/bin/python"
    return str(own) if own.exists() else sys.executable


def run_tool(*words):
    done = subprocess.run([python_with_packages(), *map(str, words)], cwd=ROOT, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


class PagesTest(unittest.TestCase):
    """One case per page, or per group of pages that run at the same time."""

    def check_group(self, pages):
        for page, (_, results) in run_pages.run_group(pages).items():
            self.assertEqual(list(run_pages.differences(page.relative_to(ROOT), results)), [])


class NotebooksTest(unittest.TestCase):
    def test_they_are_what_their_pages_make(self):
        status, output = run_tool("tools/make_notebooks.py", "--check")
        self.assertEqual(status, 0, output)

    def check_group(self, pages):
        status, output = run_tool("tools/run_notebooks.py", *(p.with_suffix(".ipynb") for p in pages))
        self.assertEqual(status, 0, output)


class TensorFlowProgramTest(unittest.TestCase):
    def test_the_left_hand_program_is_python(self):
        ast.parse((ROOT / "examples/tutorial/from_tensorflow.py").read_text(encoding="utf-8"))


def add_cases():
    for pages in run_pages.groups(run_pages.default_pages()):
        if not any(page_blocks.runs(page.read_text(encoding="utf-8")) for page in pages):
            continue  # otherwise the case could not fail
        for case in (PagesTest, NotebooksTest):
            setattr(case, f"test_{pages[0].stem}", lambda self, pages=pages: self.check_group(pages))


add_cases()

if __name__ == "__main__":
    sys.exit(unittest.main())
