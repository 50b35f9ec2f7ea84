"""What the tools' tests share: a small project to plant faults in. Importing it makes tools/ importable."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

LAYERS = """
base:
store: base
# --- the torch line ---
torch_bridge: base store
"""
CMAKE = "muster_layer(base)\nmuster_layer(store DEPS base)\nmuster_layer(torch_bridge DEPS base store LIBS torch)\n"


class Tree(unittest.TestCase):
    """A project of a few files in a temporary git repository."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="muster_tools_")
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        self.git("init", "-q", "-b", "main")
        self.write("muster/LAYERS", LAYERS)
        self.write("muster/CMakeLists.txt", CMAKE)
        self.write("muster/base/a.h", "#pragma once\n")

    def git(self, *arguments, environment=None):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=self.root, check=True,
                       capture_output=True, env=dict(os.environ, **(environment or {})))

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(textwrap.dedent(text), encoding="utf-8")

    def assert_one(self, problems, *words):
        problems = list(problems)
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])
