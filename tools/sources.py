"""Lists the files of the project and finds words in C++; shared by the checks."""

import hashlib
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATED = {"build", "dist", ".venv", ".git", "__pycache__"}
CODE_FOLDERS = ("muster", "apps", "bench", "examples", "python", "tests")
# What due_files() returns: everything younger than this, and one in DUE_SHARE of the other files.
RECENT_SECONDS = 4 * 3600
DUE_SHARE = 16
# ... and no more than so many files of code in all: a commit that touches everything is for `./dev check --all`.
DUE_MOST = 80


def git(root, *arguments):
    done = subprocess.run(["git", "-c", f"safe.directory={root}", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def all_files(root=ROOT):
    """Returns everything that is committed or about to be, as paths below `root`."""
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard")
    if not listed:  # an unpacked archive without git
        listed = [p.relative_to(root) for p in root.rglob("*") if not GENERATED & set(p.relative_to(root).parts)]
    found = sorted({pathlib.Path(name) for name in listed if (root / name).is_file()})
    if not found:
        raise SystemExit(f"there are no files in {root}")
    return found


def code_files(root=ROOT):
    """Returns the C++ files of the project. tests/install stands for another project and is left out."""
    return [p for p in all_files(root) if p.suffix in (".h", ".cc") and p.parts[0] in CODE_FOLDERS]


def changed_files(root=ROOT):
    """Returns what differs from the point where this branch left the main line, and what isn't committed yet."""
    main_line = next((b for b in ("origin/main", "origin/master", "main", "master")
                      if git(root, "rev-parse", "--verify", "--quiet", b)), "HEAD")
    base = (git(root, "merge-base", "HEAD", main_line) or ["HEAD"])[0]
    changed = git(root, "diff", "--name-only", base) + git(root, "ls-files", "--others", "--exclude-standard")
    return {pathlib.Path(name) for name in changed}


def due_files(root=ROOT):
    """Returns what a whole test run looks at if looking at all files takes too long: what the commits of the last hours
    before HEAD have changed, what isn't committed, and a share of the other files that differs from commit to
    commit."""
    head, when = (git(root, "show", "-s", "--format=%H %ct", "HEAD") or ["none 0"])[0].split()
    before = git(root, "rev-list", "-1", f"--before={int(when) - RECENT_SECONDS}", "HEAD")
    changed = git(root, "diff", "--name-only", *before) + git(root, "ls-files", "--others", "--exclude-standard")
    turn = {p: hashlib.sha256(f"{head} {p}".encode()).digest() for p in all_files(root)}
    due = {pathlib.Path(name) for name in changed} | {p for p, number in turn.items() if number[0] % DUE_SHARE == 0}
    return set(sorted(due & set(turn), key=turn.get)[:DUE_MOST])


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)


def includes(text):
    """Returns (line number, name) of each #include."""
    return [(text.count("\n", 0, match.start()) + 1, match.group(1)) for match in INCLUDE.finditer(without_comments(text))]


TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def without_comments(text, keep_strings=True):
    """Returns the text with comments (and, if asked, the content of quotes) blanked out; lines keep their numbers."""

    def blank(match):
        token = match.group()
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        if keep_strings:
            return token
        return '""' + "\n" * token.count("\n") if '"' in token[:20] else "' '"

    return TOKENS.sub(blank, text)
