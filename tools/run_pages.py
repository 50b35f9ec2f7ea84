#!/usr/bin/env python3
"""Runs the commands that pages of the documentation show, and compares what they print with the pages: run_pages.py
[--write] [PAGE...]; without a PAGE, all of docs/tutorial and docs/from_tensorflow.md.

page_blocks.py says which blocks are run and what may differ. --write puts the new output into the pages. Needs the
programs of the release build. While a page runs, its ports (127.0.0.1:2222) are replaced by free ones and the folder
/tmp/tutorial by an empty one. Exits 1 if something differs."""

import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page_blocks  # noqa: E402
import test_programs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TUTORIAL = "docs/tutorial"
FOLDER = "/tmp/tutorial"
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):(\d+)")
TIMEOUT = 120


class Scene:
    """Where the pages of a group run: free ports and a folder that replace those written in the pages."""

    def __init__(self, texts):
        written = sorted({int(port) for text in texts for _, port in ADDRESS.findall(text)})
        self.ports = dict(zip(written, free_ports(len(written))))
        self.folder = tempfile.mkdtemp(prefix="muster_tutorial_")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def to_real(self, text):
        text = ADDRESS.sub(lambda m: f"{m[1]}:{self.ports.get(int(m[2]), m[2])}", text)
        return text.replace(FOLDER, self.folder)

    def to_written(self, text):
        written = {real: port for port, real in self.ports.items()}
        text = ADDRESS.sub(lambda m: f"{m[1]}:{written.get(int(m[2]), m[2])}", text)
        return text.replace(self.folder, FOLDER)


def free_ports(count):
    """Returns different free ports of the loopback, below those that the kernel gives to connections."""
    held, ports = [], []
    for port in range(20000 + os.getpid() % 10000, 32000):
        if len(ports) == count:
            break
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            one.close()
            continue
        held.append(one)
        ports.append(port)
    for one in held:
        one.close()
    return ports


def environment():
    """Returns the environment of a terminal in which none of muster's variables is set."""
    return {name: value for name, value in os.environ.items() if name != "TF_CONFIG" and not name.startswith("MUSTER_")}


def start(command):
    return subprocess.Popen(["bash", "-c", command], cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def finish(process):
    """Returns its output and exit code, and ends whatever is left of it."""
    try:
        printed = process.communicate(timeout=TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        printed = None
    test_programs.end_group(process)
    if printed is None:
        printed = process.communicate()[0] + f"… still running after {TIMEOUT} s\n".encode()
    return printed.decode(errors="replace"), process.returncode


def run_page(text, scene):
    """Returns [(run, output to show, exit code)] in the order of the page."""
    runs = page_blocks.runs(text)
    results, background = {}, []
    try:
        for i, run in enumerate(runs):
            process = start(scene.to_real(run.command))
            if run.terminal:
                background.append((i, process))
            else:
                results[i] = finish(process)
    finally:
        for i, process in background:
            results[i] = finish(process)
    return [(run, run.shown(scene.to_written(results[i][0])), results[i][1]) for i, run in enumerate(runs)]


def differences(page, results):
    for run, shown, exit_code in results:
        if exit_code != run.exit_code:
            yield f"{page}: `{run.command}` ended with {exit_code}, not with {run.exit_code}:\n{shown}"
        expected, found = run.comparable(run.output), run.comparable(shown)
        if expected != found:
            lines = difflib.unified_diff(expected, found, "the page", "this run", lineterm="", n=1)
            yield (f"{page}: `{run.command}` printed something else; tools/run_pages.py --write records it:\n"
                   + "\n".join(lines) + f"\n{shown}")
        elif run.only and not shown:
            yield f"{page}: `{run.command}` printed no line `{run.only}`, and what is shown says nothing"


def rewritten(text, results):
    """Returns the page with the new output wherever that differs in more than it may."""
    for run, shown, _ in reversed(results):
        if run.comparable(run.output) != run.comparable(shown):
            text = page_blocks.with_output(text, run, shown)
    return text


def groups(pages):
    """Returns lists of pages that run at the same time."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    members = {page: [page.parent / name for name in page_blocks.together(text)] for page, text in texts.items()}
    led = {other for others in members.values() for other in others}
    return [[page] + others for page, others in members.items() if page not in led]


def default_pages(root=ROOT):
    return sorted((root / TUTORIAL).glob("*.md")) + [root / "docs/from_tensorflow.md"]


def run_group(pages):
    """Returns {page: (text, results)}."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    scene = Scene(texts.values())
    try:
        with concurrent.futures.ThreadPoolExecutor(len(pages)) as pool:
            running = {page: pool.submit(run_page, text, scene) for page, text in texts.items()}
            return {page: (texts[page], future.result()) for page, future in running.items()}
    finally:
        scene.close()


def main(arguments):
    write = "--write" in arguments
    pages = [pathlib.Path(a).resolve() for a in arguments if a != "--write"] or default_pages()
    wrong = []
    for group in groups(pages):
        for page, (text, results) in run_group(group).items():
            name = page.relative_to(ROOT)
            if not write:
                wrong += differences(name, results)
                continue
            text = rewritten(text, results)
            page.write_text(text, encoding="utf-8")
            recorded = zip(page_blocks.runs(text), results)
            wrong += differences(name, [(run, shown, code) for run, (_, shown, code) in recorded])
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
