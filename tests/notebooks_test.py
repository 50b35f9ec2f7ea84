#!/usr/bin/env python3
"""Tests that every notebook of the tutorial runs and prints what its page shows. Needs the programs of the release build.
It takes as long as the pages themselves, which tests/tutorial_test.py runs, so only a long test run includes it."""

import sys
import unittest

import tutorial_test


class AllNotebooksTest(unittest.TestCase):
    """One case per page, or per group of pages that run at the same time."""

    def check_group(self, pages):
        status, output = tutorial_test.run_tool("tools/run_notebooks.py", *pages)
        self.assertEqual(status, 0, output)


for group in tutorial_test.groups_with_commands():
    setattr(AllNotebooksTest, f"test_{group[0].stem}", lambda self, pages=group: self.check_group(pages))

if __name__ == "__main__":
    sys.exit(unittest.main())
