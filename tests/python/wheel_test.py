#!/usr/bin/env python3
"""Makes the wheel, installs it into an environment of its own beside the torch of .venv, and looks at it from there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
PACKAGE_TESTS = ROOT / "tests/python/package"


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          **options)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = run(VENV / "bin/python", ROOT / "tools/build_wheel.py")
        if made.returncode:
            raise AssertionError(f"the wheel can't be made:\n{made.stdout}{made.stderr}")
        (cls.wheel,) = (ROOT / "dist").glob("*.whl")
        scratch = tempfile.TemporaryDirectory(prefix="muster_wheel_")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.ok(run(VENV / "bin/python", "-m", "venv", "--without-pip", cls.folder / "venv"))
        cls.python = cls.folder / "venv/bin/python"
        packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
        cls.site = pathlib.Path(cls.ok(run(cls.python, "-c", packages)).strip())
        theirs = cls.ok(run(VENV / "bin/python", "-c", packages)).strip()
        (cls.site / "torchs.pth").write_text(f"import site; site.addsitedir({theirs!r})\n", encoding="utf-8")
        cls.ok(run(VENV / "bin/pip", f"--python={cls.python}", "install", "--no-deps", "--no-index", cls.wheel))

    @staticmethod
    def ok(done):
        if done.returncode:
            raise AssertionError(f"{' '.join(done.args)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_package(self):
        for file in sorted(PACKAGE_TESTS.glob("*_test.py")):
            with self.subTest(file.name):
                done = run(self.python, "-X", "faulthandler", "-m", "unittest", "-v", file.stem, cwd=PACKAGE_TESTS)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, r"(?m)^Ran [1-9]")

    def test_its_name_and_what_it_requires(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            (metadata,) = (wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
            command = next(name for name in names if name.endswith(".data/scripts/muster"))
        minor = re.search(r"\+torch(\d+\.\d+)", self.wheel.name)[1]
        self.assertIn(f"Requires-Dist: torch=={minor}.*", metadata.replace("torch == ", "torch=="))
        self.assertRegex(self.wheel.name, r"-manylinux_2_\d+_\w+\.whl$")
        self.assertTrue(command)
        for name in ("muster/py.typed", "muster/_library.pyi", "muster/_build.py"):
            self.assertIn(name, names)
        self.assertFalse([name for name in names if re.search(r"libtorch|libc10|\.h$|\.cc$|\.a$", name)])

    def test_its_library_holds_no_path_of_this_machine(self):
        (library,) = (self.site / "muster").glob("_library*.so")
        self.assertNotIn(str(ROOT).encode(), library.read_bytes())

    def test_the_command_is_the_program_itself(self):
        command = self.folder / "venv/bin/muster"
        self.assertEqual(command.read_bytes()[:4], b"\x7fELF")
        version = self.ok(run(command, "version", env={"PATH": "/nowhere"}))
        self.assertIn(self.ok(run(self.python, "-c", "import muster; print(muster.__version__)")).strip(), version)

    def test_import_loads_nothing_but_the_standard_library_beyond_torch(self):
        code = ("import sys, torch; before = set(sys.modules); import muster; "
                "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)")
        self.assertEqual(self.ok(run(self.python, "-c", code)).split(), ["muster"])

    def test_another_torch_is_refused_before_the_library_is_opened(self):
        for change, said in (("torch.__version__ = '2.1.2+cpu'", "torch 2.1.2+cpu is installed: install torch"),
                             ("torch.compiled_with_cxx11_abi = lambda: False", "_GLIBCXX_USE_CXX11_ABI=1"),
                             ("sys.modules['torch'] = None", "no torch is installed")):
            before = "import sys\nsys.modules['muster._library'] = None\n"  # opening it would be another ImportError
            torch = "" if "modules" in change else "import torch\n"
            done = run(self.python, "-c", f"{before}{torch}{change}\nimport muster")
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)

    def test_a_library_that_cant_be_opened_is_explained(self):
        done = run(self.python, "-c", "import sys; sys.modules['muster._library'] = None; import muster")
        self.assertIn("muster's library can't be opened beside torch", done.stderr)

    def test_stubs_are_what_the_library_says(self):
        made = self.folder / "stubs"
        self.ok(run(VENV / "bin/python", ROOT / "tools/make_stubs.py", self.python, made))
        text = (made / "_library.pyi").read_text(encoding="utf-8")
        self.assertEqual(text, (ROOT / "python/muster/_library.pyi").read_text(encoding="utf-8"),
                         "tools/make_stubs.py writes python/muster/_library.pyi anew")
        self.assertNotRegex(text, r"\bAny\b|\bobject\b(?!, /\) -> bool)|std::")

    def test_pyright_strict(self):
        config = self.folder / "pyright"
        config.mkdir()
        shutil.copytree(self.site / "muster", config / "muster")
        shutil.copy(ROOT / "pyproject.toml", config)
        done = run(VENV / "bin/pyright", "--pythonpath", self.python, "--project", config, cwd=config)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(unittest.main())
