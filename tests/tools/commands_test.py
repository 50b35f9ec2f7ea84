#!/usr/bin/env python3
"""`./dev` and its setup, as they are called."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

from tree import ROOT, Tree
import build
import run_benchmarks


class BenchmarksTest(Tree):
    def test_help_lists_them_before_anything_is_built(self):
        self.write("bench/bench_ps.cc", "")
        self.write("bench/bench_steps.cc", "")
        self.write("bench/peers/run.py", "")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(run_benchmarks.main(["--help"], self.root), 0)
        self.assertIn("NAME: ps, steps\n", said.getvalue())
        self.assertIn("compares with: peers\n", said.getvalue())


class BuildTest(unittest.TestCase):
    def refused(self, *targets):
        """The exit status, and what is said to a user who builds these, where there are a few targets."""
        said = io.StringIO()
        there = {"programs", "tests", "muster_command", "digits", "launch_test"}
        with contextlib.redirect_stderr(said), unittest.mock.patch.object(build, "targets_of", lambda preset: there):
            return build.refuse_unknown("release", targets), said.getvalue()

    def test_an_unknown_target_is_answered_with_the_nearest_and_with_those_that_there_are(self):
        status, said = self.refused("digits", "mustr_command")
        self.assertEqual(status, 2)
        self.assertIn("build: there is no target 'mustr_command' (nearest: muster_command); accepted: programs, tests,", said)
        self.assertEqual(len(said.splitlines()), 1)

    def test_known_targets_and_files_are_ninjas(self):
        self.assertEqual(self.refused("digits", "tests", "bin/digits", "all.o"), (0, ""))


class DevTest(unittest.TestCase):
    def test_help_from_another_folder(self):
        for arguments in ([], ["help"]):
            done = subprocess.run([ROOT / "dev", *arguments], cwd="/", capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("./dev demo", done.stdout)

    def test_an_unknown_command(self):
        done = subprocess.run([ROOT / "dev", "tset"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'tset'; accepted: demo,", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def asked_for(self, user):
        """The packages that setup.sh asks for on a machine that has none, whose user may not install any."""
        with tempfile.TemporaryDirectory(prefix="muster_tools_") as scratch:
            for name, text in (("dpkg-query", "exit 1"), ("sudo", "exit 1"), ("id", "echo 1000")):
                program = pathlib.Path(scratch, name)
                program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
                program.chmod(0o755)
            done = subprocess.run([ROOT / "tools/setup.sh", "--no-torch", "--for", user], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, env=dict(os.environ, PATH=f"{scratch}:{os.environ['PATH']}"))
        self.assertEqual(done.returncode, 1, done.stderr)
        return set(re.search(r"--no-install-recommends (.*)'", done.stderr)[1].split())

    def test_setup_installs_no_more_than_its_user_needs(self):
        listed = re.findall(r"^[a-z].*$", (ROOT / "tools/packages.txt").read_text(encoding="utf-8"), re.MULTILINE)
        build, check, test, spark, kubernetes = (self.asked_for(user) - {"python3-venv"}
                                                 for user in ("build", "check", "test", "spark", "kubernetes"))
        self.assertEqual(check - build, {"clang-14", "clang-format-14", "libclang-rt-14-dev", "lld-14"})
        self.assertIn("chromium", test - check)
        self.assertEqual(spark - test, {"default-jre-headless"})
        self.assertIn("etcd-server", kubernetes - test)
        self.assertEqual(self.asked_for("wheel") - {"python3-venv"} - build, {"python3-dev"})
        self.assertEqual(test | spark | kubernetes, set(listed) - {"python3-venv"})
        self.assertEqual(self.asked_for("user") - {"python3-venv"}, build)

    def test_an_unknown_flag_of_setup_and_check(self):
        for command in (["tools/setup.sh", "--trch"], ["tools/setup.sh", "--for", "tset"], ["tools/check.py", "--al"]):
            self.assertEqual(subprocess.run(command, cwd=ROOT, capture_output=True).returncode, 2)



if __name__ == "__main__":
    unittest.main()
