"""The exceptions' classes, and what import says where torch doesn't fit."""

import pickle
import unittest

import muster
from muster import _torch_match, errors

# absl's codes, all but OK.
CODES = ("CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
         "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
         "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")


class ErrorsTest(unittest.TestCase):
    def test_each_code_has_a_class_that_says_its_message(self) -> None:
        for code in CODES:
            error = errors.of_status(code, "ps:0 is gone", 138)
            self.assertEqual((error.code, str(error), error.exit_code), (code, "ps:0 is gone", 138))
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), again.exit_code), (type(error), "ps:0 is gone", 138))
        self.assertEqual(len({type(errors.of_status(code, "", 1)) for code in CODES}), len(CODES))

    def test_pythons_own_exceptions(self) -> None:
        for code, own in (("INVALID_ARGUMENT", ValueError), ("NOT_FOUND", LookupError),
                          ("DEADLINE_EXCEEDED", TimeoutError), ("UNAVAILABLE", ConnectionError),
                          ("PERMISSION_DENIED", PermissionError)):
            self.assertIsInstance(errors.of_status(code, "", 1), own)


class TorchMatchTest(unittest.TestCase):
    def test_what_fits(self) -> None:
        for version in ("2.13.0+cpu", "2.13.4", "2.13.0+cu130"):
            _torch_match.check("2.13.0+cpu", True, version, True)

    def test_another_version_and_another_abi(self) -> None:
        said = r"built for torch 2\.13\.0\+cpu, and torch 2\.1\.0 is .*install torch 2\.13\.\*"
        with self.assertRaisesRegex(ImportError, said):
            _torch_match.check("2.13.0+cpu", True, "2.1.0", True)
        with self.assertRaisesRegex(ImportError, "ABI=1, and the torch 2.13.0 that is installed has 0"):
            _torch_match.check("2.13.0", True, "2.13.0", False)

    def test_build_info(self) -> None:
        info = muster.build_info()
        self.assertEqual(info.version, muster.__version__)
        self.assertRegex(info.built_for_torch, r"^\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
