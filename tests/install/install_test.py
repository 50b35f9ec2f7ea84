#!/usr/bin/env python3
"""Installs the release build into a temporary folder, then configures, builds and runs the project beside this file
against it, from a copy of its own, so that nothing of the source tree can help. `./dev test install` runs it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/release"


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={k: v for k, v in os.environ.items() if k not in ("CMAKE_PREFIX_PATH", "CPATH")})
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="muster_install_")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.prefix = cls.folder / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def test_another_project_builds_against_it(self):
        source, binary = self.folder / "outside", self.folder / "outside_build"
        shutil.copytree(ROOT / "tests/install/outside", source)
        run("cmake", "-S", source, "-B", binary, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", binary, "-j", "1")
        self.assertEqual(run(binary / "outside"), "crc32c=e3069283 workers=2\n")
        self.assertEqual(run(binary / "outside_torch", "--model_dir=somewhere"), "workers=1 sum=3\n")

    def test_the_command_runs_from_there(self):
        run(self.prefix / "bin/muster", "--help")

    def test_headers_are_the_public_ones_and_what_they_include(self):
        include = self.prefix / "include"
        installed = {str(file.relative_to(include)) for file in include.rglob("*") if file.is_file()}
        listed = re.findall(r"^(muster/[^:]+):", (ROOT / "muster/PUBLIC").read_text(encoding="utf-8"), re.MULTILINE)
        reached, waiting = set(), listed
        while waiting:
            header = waiting.pop()
            self.assertIn(header, installed)
            reached.add(header)
            included = re.findall(r'^#include [<"]([^>"]+)', (include / header).read_text(encoding="utf-8"), re.MULTILINE)
            for name in included:
                self.assertFalse(name.startswith(("gtest/", "gmock/")) or "/testing/" in name, f"{header} is for tests")
            waiting += [name for name in included if name.startswith("muster/") and name not in reached]
        self.assertEqual(installed, reached)
        self.assertIn("muster/muster.h", reached)

    def test_nothing_installed_refers_to_this_source_tree(self):
        libraries = list(self.prefix.glob("lib*/**/*.cmake"))
        self.assertTrue(libraries)
        # libtorch's folder is recorded on purpose; it may lie in the project's own virtual environment.
        environment = str(ROOT / ".venv")
        for file in libraries:
            for line in file.read_text(encoding="utf-8").splitlines():
                self.assertNotIn(str(ROOT), line.replace(environment, ""), file)


if __name__ == "__main__":
    sys.exit(unittest.main())
