"""The processes of one measurement: started together, awaited with a time limit, and all ended whatever happens."""

import ctypes
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
# How long the other processes of a run may go on after one has failed: they can't succeed, but may say why.
GRACE_SECONDS = 3
LIBC = ctypes.CDLL(None)


@dataclasses.dataclass
class Task:
    name: str  # "worker 0"
    command: list
    environment: dict = dataclasses.field(default_factory=dict)
    awaited: bool = True  # it ends without help; others are ended when all awaited ones have ended


@dataclasses.dataclass
class Outcome:
    results: list  # what the workers left, in order
    problem: str = ""  # why there are no results


def free_ports(number):
    """Returns different ports of the loopback that were free a moment ago."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _start(task, log):
    environment = dict(os.environ, **task.environment)
    with open(log, "wb") as out:
        # In its own session, so that whatever the program itself starts ends with it.
        return subprocess.Popen([str(word) for word in task.command], env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_die_with_parent)


def _end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _last_words(log, lines=4):
    text = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return " | ".join(line.strip() for line in text[-lines:])


def _await_all(tasks, processes, limit):
    """Returns "" when all awaited processes have ended well, otherwise the name of the first that hasn't and what is
    wrong."""
    awaited = [(task, process) for task, process in zip(tasks, processes) if task.awaited]
    deadline, failed = time.monotonic() + limit, None
    while True:
        states = [(task, process.poll()) for task, process in awaited]
        failed = failed or next((f"{task.name} failed with status {code}" for task, code in states if code), None)
        if all(code is not None for _, code in states):
            return failed or ""
        if failed and deadline > time.monotonic() + GRACE_SECONDS:
            deadline = time.monotonic() + GRACE_SECONDS
        if time.monotonic() > deadline:
            hanging = ", ".join(task.name for task, code in states if code is None)
            return failed or f"{hanging} took longer than {limit:g} s and was ended"
        time.sleep(0.01)


def run(tasks, folder, workers, limit):
    """Runs them in the new folder `folder`; `workers` of them leave result.N.json there."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    logs = [folder / f"{task.name.replace(' ', '')}.log" for task in tasks]
    processes = []
    try:
        for task, log in zip(tasks, logs):
            processes.append(_start(task, log))
        problem = _await_all(tasks, processes, limit)
    except OSError as error:
        problem = f"can't be started: {error}"
    finally:
        for process in processes:
            _end(process)
    if problem:
        named = next((log for task, log in zip(tasks, logs) if problem.startswith(task.name)), None)
        said = _last_words(named) if named else ""
        return Outcome([], problem + (f"; it said: {said}" if said else ""))
    try:
        return Outcome([json.loads((folder / f"result.{i}.json").read_text()) for i in range(workers)])
    except (OSError, ValueError) as error:
        return Outcome([], f"it ended without a result: {error}")
