"""Runs a command as a person does who has a shell on a node of Slurm: on a terminal, in a step of an allocation, by
`srun --pty`.

    step_terminal.py FOLDER JOB COMMAND...

The command's input is the terminal, which nobody types on, and its outputs go through pipes below FOLDER, which the
node must see at the same path, to this program's. What comes on the terminal itself goes to stderr. SIGINT is Ctrl-C on
the terminal. SIGHUP, or whatever else ends this program, is the end of the terminal. Exits as the command does."""

import os
import pathlib
import pty
import select
import signal
import sys
import tempfile

CTRL_C = b"\x03"
# The shell lives on after Ctrl-C, and srun complains of exit codes.
IN_STEP = 'stty -echo; trap : INT; "$@" >"$0/out" 2>"$0/err"; echo $? >"$0/code"'


def chunk(fd):
    """What can be read now: None, nothing yet; b"", nothing any more."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None
    except OSError:  # the other end of the terminal is closed
        return b""


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


def pass_on(terminal, pipes):
    """`pipes`: {descriptor: where what it brings goes}. Until srun has ended, and then what is still in the pipes: one that
    has no writer then has none any more."""
    targets = {**pipes, terminal: 2}
    while terminal in targets:
        for fd in select.select(list(targets), [], [])[0]:
            data = chunk(fd)
            if data == b"":
                del targets[fd]
            elif data:
                write(targets[fd], data)
    for fd, target in targets.items():
        while (data := chunk(fd)) != b"":
            if data:
                write(target, data)
            else:
                select.select([fd], [], [])


def main(folder, job, command):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        pipes = {}
        for target, name in ((1, "out"), (2, "err")):
            os.mkfifo(f"{own}/{name}")
            pipes[os.open(f"{own}/{name}", os.O_RDONLY | os.O_NONBLOCK)] = target
        child, terminal = pty.fork()
        if child == 0:
            os.execvp("srun", ["srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1", "--pty", "sh", "-c", IN_STEP, own, *command])
        signal.signal(signal.SIGINT, lambda *_: write(terminal, CTRL_C))
        pass_on(terminal, pipes)
        step = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        code = pathlib.Path(own, "code")
        return int(code.read_text(encoding="utf-8")) if code.is_file() else f"the step of Slurm has ended with {step}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
