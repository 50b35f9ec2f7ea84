#!/usr/bin/env python3
"""Checks the Dockerfile with hadolint, that its bases are pinned by tag and digest, that its last stage isn't root and
adds nothing to its base but one file of another stage, and that .dockerignore leaves out what git ignores: check_docker.py [ROOT]"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".venv/bin/hadolint"  # from tools/requirements.txt
PINNED = re.compile(r"\S+:[\w.-]+@sha256:[0-9a-f]{64}")


def instructions(text):
    """Yields the number of its line, the instruction in capitals, and its arguments; lines that go on are one."""
    number, whole = 0, ""
    for at, line in enumerate(text.splitlines(), 1):
        if not whole and (not line.strip() or line.lstrip().startswith("#")):
            continue
        number = number if whole else at
        whole += line.rstrip("\\") + " "
        if not line.endswith("\\"):
            word, _, rest = whole.strip().partition(" ")
            yield number, word.upper(), rest.strip()
            whole = ""


def dockerfile_problems(text):
    stages, user = set(), ""
    for number, word, rest in instructions(text):
        if word == "FROM":
            words = [part for part in rest.split() if not part.startswith("--")]
            if words[0] not in stages and not PINNED.fullmatch(words[0]):
                yield f"Dockerfile:{number}: {words[0]} isn't pinned; accepted: NAME:TAG@sha256:DIGEST"
            if len(words) == 3:
                stages.add(words[2])
            user = ""
        elif word == "USER":
            user = rest
    if not re.fullmatch(r"[1-9]\d*(:\d+)?", user):
        yield f"Dockerfile: its last stage runs as {user or 'root'}; accepted: USER with a number that isn't 0"


def last_stage_problems(text):
    """What is in the image beside its base: one file, which tests/process/cli/one_file_test.cc keeps small."""
    last, copies = [], 0
    for number, word, rest in instructions(text):
        last = [] if word == "FROM" else last + [(number, word, rest)]
    for number, word, rest in last:
        if word == "RUN" and not re.fullmatch(r"useradd [^;&|]*", rest):
            yield f"Dockerfile:{number}: the last stage runs {rest.split()[0]}; accepted: useradd alone"
        if word in ("COPY", "ADD"):
            copies += 1
            if word == "ADD" or copies > 1 or not re.fullmatch(r"--from=\S+ /\S*[^/\s*] /\S*[^/\s]", rest):
                yield f"Dockerfile:{number}: the last stage takes {rest}; accepted: one COPY --from=STAGE FILE FILE"


def ignore_problems(git, docker):
    """`git` and `docker` are the texts of .gitignore and .dockerignore. A pattern of git without a slash at its beginning
    is for every folder, which Docker writes as **/."""
    listed = set(docker.split("\n"))
    for pattern in git.split():
        wanted = pattern if pattern.startswith("/") else "**/" + pattern
        if wanted not in listed:
            yield f".dockerignore: lacks {wanted}, which .gitignore has"


def problems(root=ROOT):
    texts = [(root / name).read_text(encoding="utf-8") for name in ("Dockerfile", ".gitignore", ".dockerignore")]
    yield from dockerfile_problems(texts[0])
    yield from last_stage_problems(texts[0])
    yield from ignore_problems(texts[1], texts[2])
    if not PROGRAM.exists():
        yield "hadolint isn't there; tools/setup.sh --no-torch --for check installs it"
        return
    done = subprocess.run([PROGRAM, "--no-color", root / "Dockerfile"], capture_output=True, text=True)
    if done.returncode or done.stdout:
        yield from (done.stdout + done.stderr).strip().splitlines() or ["hadolint failed"]


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT))
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)
