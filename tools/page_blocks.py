"""The parts of a page of the documentation that tools use: blocks of output that a command has printed, and what may
differ between two runs of it. Used by check_docs.py, run_pages.py and make_notebooks.py.

    <!-- run in: ps; exit: 2; only: loss|step; any order -->
    ```console
    $ build/release/bin/tutorial_servers
    what it prints, stdout and stderr
    ```

All words after `run` may be left out. `in: NAME` (letters, digits, `_`): in a terminal of its own, where it goes on
while what follows runs. `exit: N`: the exit code, if not 0. `only: EXPRESSION`: the lines that are shown. `any order`:
several processes print. `numbers vary`: the whole numbers may differ, too. Pages of one folder that are run at the same
time say so in the first of them:

    <!-- together with: multiple_workers_0.md, multiple_workers_1.md -->"""

import dataclasses
import re

RUN = re.compile(r"(?P<head><!-- run\b(?P<words>[^>]*?)-->\n+```console\n)(?P<body>.*?)(?P<tail>^```$)",
                 re.DOTALL | re.MULTILINE)
RUN_MARK = re.compile(r"^<!-- run\b", re.MULTILINE)
CONSOLE = re.compile(r"^```console$", re.MULTILINE)
TOGETHER = re.compile(r"<!-- together with: (?P<pages>[^>]*?) -->")

# What differs between runs: times of the log, sizes of checkpoints, rates, decimals, process ids, automatic ports.
VOLATILE = [
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "DATE"),
    # A checkpoint's size, which `muster checkpoint ls` prints after its date: its manifest has checksums in decimal.
    (re.compile(r"(?<=DATE) +\d+\b"), " BYTES"),
    (re.compile(r"\b\d\d:\d\d:\d\d\.\d+"), "TIME"),
    (re.compile(r"global_step/sec: \S+"), "global_step/sec: RATE"),
    (re.compile(r"\bpid \d+"), "pid PID"),
    # Not in addresses, which have more than one dot.
    (re.compile(r"(?<![\w.])-?(\d+\.\d+(e[-+]?\d+)?|\d+e[-+]?\d+)(?!\.?\w)"), "DECIMAL"),
    (re.compile(r"\bcomputes with .*"), "computes with …"),
]
WHOLE_NUMBER = re.compile(r"\b\d+\b")


@dataclasses.dataclass
class Run:
    """A command and the output that the page shows."""
    command: str
    output: str
    terminal: str = ""
    exit_code: int = 0
    only: str = ""
    any_order: bool = False
    numbers_vary: bool = False
    start: int = 0  # of the block in the page's text
    end: int = 0

    def shown(self, printed):
        """Returns the part of `printed` that a page shows."""
        lines = [line.rstrip() for line in printed.splitlines()]
        if self.only:
            lines = [line for line in lines if re.search(self.only, line)]
        return "".join(line + "\n" for line in lines)

    def comparable(self, shown):
        """Returns the lines without what may differ between two runs."""
        lines = []
        for line in shown.splitlines():
            for expression, word in VOLATILE:
                line = expression.sub(word, line)
            lines.append(WHOLE_NUMBER.sub("N", line) if self.numbers_vary else line)
        return sorted(lines) if self.any_order else lines


def command_and_output(body):
    """Splits a block: `$ ` begins the command, which continues after a backslash at the end of a line and until a
    single quote is closed. Raises ValueError."""
    lines = body.splitlines()
    if not lines or not lines[0].startswith("$ "):
        raise ValueError("a block under `<!-- run -->` begins with `$ ` and a command")
    end = 1
    while end < len(lines) and (lines[end - 1].endswith("\\") or "".join(lines[:end]).count("'") % 2):
        end += 1
    if any(line.startswith("$ ") for line in lines[end:]):
        raise ValueError("a block under `<!-- run -->` has one command")
    return "\n".join([lines[0][2:]] + lines[1:end]), "".join(line + "\n" for line in lines[end:])


def parse_words(words):
    """Returns the options of a run as the fields of Run. Raises ValueError."""
    fields = {}
    for word in filter(None, (part.strip() for part in words.split(";"))):
        name, _, value = (part.strip() for part in word.partition(":"))
        if name == "in" and value.isidentifier():  # a variable in the notebook
            fields["terminal"] = value
        elif name == "exit" and value.isdigit():
            fields["exit_code"] = int(value)
        elif name == "only" and value:
            fields["only"] = value
        elif word == "any order":
            fields["any_order"] = True
        elif word == "numbers vary":
            fields["numbers_vary"] = True
        else:
            raise ValueError(f"`run {word}`: accepted are in: NAME, exit: N, only: EXPRESSION, any order, numbers vary")
    return fields


def runs(text):
    """Returns the runs of a page in order. Raises ValueError."""
    found = []
    for match in RUN.finditer(text):
        command, output = command_and_output(match["body"])
        found.append(Run(command, output, start=match.start(), end=match.end(), **parse_words(match["words"])))
    if len(found) != len(RUN_MARK.findall(text)):
        raise ValueError("a `<!-- run -->` comment without a console block right below it")
    return found


def with_output(text, run, output):
    """Returns the page's text with new output of the run; positions of later runs change."""
    match = RUN.match(text, run.start)
    body = "$ " + run.command + "\n" + output
    return text[:run.start] + match["head"] + body + match["tail"] + text[match.end():]


def together(text):
    """Returns the names of the pages that run at the same time as this one."""
    match = TOGETHER.search(text)
    return [name.strip() for name in match["pages"].split(",")] if match else []
