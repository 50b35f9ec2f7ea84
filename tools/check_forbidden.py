#!/usr/bin/env python3
"""Finds what is forbidden in this project, prints where, with the reason, and exits 1. check_forbidden.py [ROOT]"""

import dataclasses
import pathlib
import re
import sys

import sources

TEXT_SUFFIXES = {".h", ".cc", ".py", ".sh", ".md", ".cmake", ".txt", ".json", ".in", ""}
# These two files spell out what they forbid.
NOT_READ = {pathlib.Path("tools/check_forbidden.py"), pathlib.Path("tests/tools/structure_test.py")}


@dataclasses.dataclass
class Rule:
    what: str
    reason: str
    applies: object  # called with a path
    code_only: bool = True  # ignores comments and strings
    allowed: tuple = ()

    def __post_init__(self):
        self.pattern = re.compile(self.what)


def is_code(path):
    return path.suffix in (".h", ".cc") and path.parts[0] in sources.CODE_FOLDERS


def is_test(path):
    return path.name.endswith(("_test.cc", "_test.py")) or path.parts[0] == "tests"


def is_library(path):
    return is_code(path) and path.parts[0] == "muster" and not is_test(path)


BEGINNING = 'begin a sentence with its subject or its verb: "Returns …", "A worker that …"'
RULES = [
    Rule(r"\bgetenv\s*\(", "the environment is read by main and by one config loader, so that a test can hold ten nodes",
         is_library,
         # The first is that loader; MKL asks the second before main begins.
         allowed=("muster/cluster/identity/environment.cc", "muster/torch_bridge/module/mkl_amd.cc")),
    Rule(r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b|(?<![\w.>:])sleep\s*\(|\btime\.sleep\s*\(",
         "a test waits for what it waits for, with a deadline; it doesn't sleep", is_test),
    Rule(r"\b(pkill|killall)\b", "it ends other programs' processes; end the process that you started, by its id",
         lambda p: True, code_only=False),
    Rule(r"(?<![\w.])/(home|root|Users|work|srv)/\w|(?<![\w.$])/tmp/w\b", "a path of one machine",
         lambda p: p.parts[:2] != ("tests", "tools"), code_only=False),
    Rule(r"\b(TODO|FIXME|XXX)\b(?!\([^)]+\): \S)", "write TODO(who or which issue): reason, or do it", lambda p: True,
         code_only=False),
    Rule(r"^\s*//+\s*([\w:.>-]+\([^ ]*\);|return [^.,]*;|(if|for|while) \(.*\)\s*\{|[\w:<>]+ \w+ = .*;|\})\s*$", "code that is commented out; delete it, git remembers",
         lambda p: is_code(p), code_only=False),
    # The start of a comment, also behind code, or of a sentence inside it.
    Rule(r"(//+|#) (?:.*[.:;] )?(Of|…|Who|Whoever|Whom) ", BEGINNING,
         lambda p: is_code(p) or p.suffix in (".py", ".cmake", ".sh", ".txt"), code_only=False),
    Rule(r"(^|[.:;] |[-*] )(Of|Who|Whoever|Whom) ", BEGINNING, lambda p: p.suffix == ".md", code_only=False),
    Rule(r"\bstd::(format|jthread)\b|#\s*include\s*<(format|ranges)>", "clang 14 with this library doesn't compile it",
         is_code),
    Rule(r"\bcatch\s*\(\s*\.\.\.\s*\)\s*\{\s*\}", "an error silently ignored", is_code),
    Rule(r"#\s*pragma\s+GCC\s+diagnostic\s+ignored", "fix the warning instead of hiding it", is_code),
]


def problems(root):
    for path in sources.all_files(root):
        if path.suffix not in TEXT_SUFFIXES or path in NOT_READ:
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        bare = sources.without_comments(text, keep_strings=False) if is_code(path) else text
        for rule in RULES:
            if not rule.applies(path) or str(path) in rule.allowed:
                continue
            for number, line in enumerate((bare if rule.code_only else text).splitlines(), 1):
                if rule.pattern.search(line):
                    yield f"{path}:{number}: {line.strip()[:100]}: {rule.reason}"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else sources.ROOT).resolve()))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
