"""The driver of a job as far as every system has it: serves the experiment's supervisor over a Unix socket, starts it beside
itself, again if it is killed, and shows its lines (docs/ray_engine.md). How hosts are got and agents started there is the
system's own."""

import collections
import ctypes
import json
import os
import queue
import re
import secrets
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from host_process import one_line, write_own_file

POLL = 0.2  # seconds between two looks at the supervisor's process
END_PATIENCE = 8.0  # seconds that agents have to end when the supervisor has
KILL_PATIENCE = 5.0  # seconds that their guards have, once those that haven't were killed
LIVES = 4  # of the supervisor, of which all but the last may be killed
LAST_LINES = 50  # of a task that fails
FAILING_TASKS = 3  # are shown so
NO_MORE = "no more"  # the end of a start when the job can have no agents any more
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded here, since a forked child of a process with threads must not


class NoHosts(Exception):
    """The job can't have the hosts that it needs, or has lost them before the experiment has begun there."""


def asked_of(script_text, mark):
    """Returns what the script's line "#MARK {...}" says."""
    for line in script_text.splitlines():
        if line.startswith(f"#{mark} "):
            return json.loads(line[len(mark) + 2:])
    raise ValueError(f"the script has no line '#{mark} {{...}}'")


def different_names(places):
    """Returns a name for each place: its host name, or its address where other machines have this name, too; with a number
    behind it where several are on one machine."""
    chosen = []
    for place in places:
        name = place["name"]
        addresses = {other["address"] for other in places if other["name"] == name}
        if len(addresses) > 1 or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            name = place["address"]
        one, number = name, 1
        while one in chosen:
            number += 1
            one = f"{name}-{number}"
        chosen.append(one)
    return chosen


class LastWords:
    """Takes the lines of `muster logs --json`, and gives those for the job's log: the supervisor's, and of a task that
    fails the last ones."""

    def __init__(self):
        self.last = {}
        self.shown = 0

    def lines_of(self, text):
        try:
            line = json.loads(text)
            task, stream, said = line["id"], line["stream"], line["text"]
        except (ValueError, KeyError, TypeError):
            return []
        if stream in ("stdout", "stderr"):
            self.last.setdefault(task, collections.deque(maxlen=LAST_LINES)).append(said)
            return []
        lines = [f"{task} {'--> ' if stream == 'state' else ''}{said}"]
        if stream == "state" and said.startswith("FAILED") and self.last.get(task) and self.shown < FAILING_TASKS:
            self.shown += 1
            lines.append(f"{task} failed; its last {len(self.last[task])} lines:")
            lines += [f"{task} | {one}" for one in self.last.pop(task)]
        return lines


class Lines:
    """Cuts what comes from a socket into lines."""

    def __init__(self):
        self.rest = b""

    def take(self, data):
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


def is_own_peer(connection):
    """Returns whether the process at the other end is this user's or the superuser's."""
    about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", about)[1] in (os.getuid(), 0)


class Desk:
    """The socket at which the supervisor says what it wants, and hears what becomes of it. The newest connection counts:
    a supervisor that is killed has a next one."""

    def __init__(self, name, starts):
        self.starts = starts
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(name.replace("@", "\0", 1))  # one of the kernel's own, of which no file is left
        self.listening.listen(4)
        self.listening.setblocking(False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.connection = None
        self.lines = Lines()
        self.life = 0
        self.untold = set()  # keys of this connection's starts whose end hasn't been told
        self.ends_all = False
        self.news = queue.Queue()  # from other threads
        self.wake_read, self.wake_write = os.pipe()
        starts.tell = self.tell
        self.selector.register(self.wake_read, selectors.EVENT_READ)

    def tell(self, key, kind, text):
        """May be called by any thread."""
        self.news.put((key, kind, text))
        os.write(self.wake_write, b".")

    def turn(self, timeout):
        for ready, _ in self.selector.select(timeout):
            if ready.fileobj is self.listening:
                self.accept()
            elif ready.fileobj == self.wake_read:
                os.read(self.wake_read, 4096)
            elif ready.fileobj is self.connection:
                self.read()
        while not self.news.empty():
            self.report(*self.news.get())
        if self.ends_all and not self.starts.running:
            self.ends_all = False
            self.send({"number": 0, "ended": "all"})

    def report(self, key, kind, text):
        """Tells the supervisor about one of its starts, and nothing after the end: threads of a system may tell that twice.
        NO_MORE: it has ended, and so will any other start."""
        if key not in self.untold:
            return
        message = {"number": int(key.partition("-")[2])}
        if kind == NO_MORE:
            kind, message["for_ever"] = "ended", True
        if kind == "ended":
            self.untold.remove(key)
        self.send({**message, kind: one_line(text)})

    def accept(self):
        try:
            connection, _ = self.listening.accept()
        except OSError:
            return
        if not is_own_peer(connection):
            return connection.close()
        self.hang_up()
        connection.setblocking(True)
        self.connection = connection
        self.lines = Lines()
        self.life += 1
        self.untold.clear()
        self.ends_all = False
        self.selector.register(connection, selectors.EVENT_READ)

    def hang_up(self):
        if self.connection is not None:
            self.selector.unregister(self.connection)
            self.connection.close()
            self.connection = None

    def send(self, message):
        if self.connection is None:
            return
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.hang_up()

    def read(self):
        try:
            data = self.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            return self.hang_up()
        for line in self.lines.take(data):
            self.take(json.loads(line))

    def take(self, wish):
        if "start" in wish:
            key = f"{self.life}-{wish['number']}"
            self.untold.add(key)
            self.starts.start(key, wish["start"], wish["arguments"], wish["rendezvous"])
        elif "rendezvous" in wish:
            self.starts.meet(wish["rendezvous"])
        elif "end_all" in wish:
            self.end_all(at_once=wish["end_all"] == "at once")
        elif "end" in wish:
            self.starts.end(f"{self.life}-{wish['end']}")


    def end_all(self, at_once=False):
        """Ends all starts."""
        self.ends_all = True
        self.starts.end_all(at_once=at_once)

    def await_ends(self, patience):
        """Serves until none runs, for so many seconds at most."""
        until = time.monotonic() + patience
        while self.starts.running and time.monotonic() < until:
            self.turn(POLL)


def die_with_parent():
    """Runs in a child before its program, which then ends with this process."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class JobDriver:
    """One for a system says its name, and how it gets hosts by a `cluster`: `connect`, `why_never`, `await_group`, `hosts`
    (hosts with names, and their addresses) and `end`, in this order. NoHosts of any of them ends the experiment. Where the job
    has fewer hosts than are asked for, the cluster's `says` is a line about that for the user; else it is ""."""

    system = ""  # the engine's name

    def __init__(self, asked, job, after, cluster):
        self.asked = asked
        self.job = job
        self.after = after if after is not None else asked["after"]
        self.cluster = cluster
        self.socket = ""
        self.ending = False
        self.supervisor = None
        self.starting = False  # there is one whose process isn't known yet
        self.unheard = None  # a signal that came while there was none to hear it
        self.waited = ""

    def say(self, line):
        """Prints a line to the job's log, and to the experiment's file."""
        print(line, flush=True)
        try:
            with open(self.asked["output"], "a", encoding="utf-8", errors="replace") as file:
                file.write(line + "\n")
        except OSError:
            pass

    def waits(self, why):
        """Says why the job waits, to `muster status` and, when it is new, to the job's log."""
        try:
            write_own_file(self.asked["waits"], why.encode(), 0o600)
        except OSError:  # as in `say`: no disk that is full ends the job
            pass
        if why != self.waited:
            self.waited = why
            self.say(f"muster: {why}")

    def on_signal(self, number, _frame):
        if self.supervisor is None and not self.starting:
            sys.exit(128 + number)
        self.ending = True
        if self.starting or self.supervisor.returncode is not None:
            self.unheard = number
        else:
            self.supervisor.send_signal(number)

    def environment(self, hosts=(), addresses=()):
        return {
            **os.environ,
            "MUSTER_HOME": self.asked["home"],
            "MUSTER_DRIVER_JOB": self.job,
            "MUSTER_DRIVER_AT": f"{self.asked['address'] or '-'} {self.asked['python']}",
            "MUSTER_DRIVER_SOCKET": self.socket,
            "MUSTER_DRIVER_HOSTS": ",".join(f"{host.name}={address}" for host, address in zip(hosts, addresses)),
            "MUSTER_DRIVER_SAYS": self.cluster.says,
        }

    def muster(self, *words):
        return [self.asked["muster"], *words]

    def refuse(self, why):
        self.say(f"muster: {why}")
        words = self.muster("supervise", self.asked["experiment"], "--in_job", self.system, "--refused", why)
        return subprocess.call(words, env=self.environment())

    def run(self):
        """Returns the exit code. The process is the job's, unless this runs in another thread than its main one: then a
        program runs it, whose umask and signals stay as they are."""
        if self.has_process():
            os.umask(self.asked["umask"])
        try:
            self.forget(self.asked["waits"])
            self.take_signals()
            # A job that waits for others has no connection to the cluster meanwhile, nor the memory for it.
            self.await_others()
            self.cluster.connect()
            self.take_signals()  # the system may have its own now
            if why := self.cluster.why_never():
                return self.refuse(why)
            self.cluster.await_group(self.waits)
            hosts, addresses = self.cluster.hosts()
            self.forget(self.asked["waits"])
            self.socket = f"@muster-{self.job[-40:]}-{secrets.token_hex(16)}"  # of 107 bytes at most
            return self.supervise(hosts, addresses)
        except NoHosts as why:
            return self.refuse(str(why))
        finally:
            self.forget(self.asked["waits"])
            self.forget(self.free_file())
            self.cluster.end()

    def await_others(self):
        """Waits until no job of `after` runs or waits any more, or the job is freed from that by its file."""
        raise NotImplementedError

    def starts_of(self, hosts):
        """Returns what starts agents on them: `start`, `end`, `end_all(at_once=False)`, `meet`, the dictionary `running` with a
        key for each agent, and `tell`, which it calls from any thread."""
        raise NotImplementedError

    @staticmethod
    def has_process():
        return threading.current_thread() is threading.main_thread()

    def take_signals(self):
        if not self.has_process():
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.on_signal)

    def free_file(self):
        """Returns the file by which the job is told not to wait for others any more."""
        return os.path.join(self.asked["folder"], f"job_free.{self.job}")

    @staticmethod
    def forget(path):
        try:
            os.unlink(path)
        except OSError:
            pass

    def supervise(self, hosts, addresses):
        self.say(f"muster: experiment {self.asked['experiment']} has {', '.join(host.name for host in hosts)}")
        environment = self.environment(hosts, addresses)
        starts = self.starts_of(hosts)
        desk = Desk(self.socket, starts)
        log = None
        for life in range(1, LIVES + 1):
            self.forget(self.asked["over"])
            self.start_supervisor(environment)
            threading.Thread(target=self.pass_on, args=(self.supervisor.stderr,), daemon=True).start()
            while self.supervisor.poll() is None:
                desk.turn(POLL)
                if log is None and desk.life > 0:
                    log = self.show_log(environment)
            code = self.supervisor.returncode
            if os.path.exists(self.asked["over"]) or code >= 0 or self.ending or life == LIVES:
                break
            self.say(
                f"muster: the supervisor of experiment {self.asked['experiment']} was killed (signal {-code})"
            )
        desk.end_all()
        desk.await_ends(END_PATIENCE)
        if starts.running:
            desk.end_all(at_once=True)
            desk.await_ends(KILL_PATIENCE)
        self.end_log(log or self.show_log(environment))
        return code if code >= 0 else 128 - code

    def start_supervisor(self, environment):
        """Starts it, and passes on to it a signal that has come meanwhile, or since the death of the one before."""
        words = self.muster("supervise", self.asked["experiment"], "--in_job", self.system)
        self.starting = True
        try:
            self.supervisor = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=die_with_parent
            )
        finally:
            self.starting = False
        if self.unheard is not None:
            self.supervisor.send_signal(self.unheard)

    def pass_on(self, stream):
        for line in stream:
            self.say(line.decode("utf-8", "replace").rstrip("\n"))

    def show_log(self, environment):
        """Starts to show what the supervisor says, from its own files, and how tasks fail."""
        words = self.muster("logs", self.asked["experiment"], "--follow", "--json")
        program = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        thread = threading.Thread(target=self.show_lines, args=(program.stdout,), daemon=True)
        thread.start()
        return program, thread

    def show_lines(self, stream):
        last = LastWords()
        for line in stream:
            for shown_line in last.lines_of(line):
                print(shown_line, flush=True)

    @staticmethod
    def end_log(log):
        program, thread = log
        thread.join(timeout=5)
        if program.poll() is None:
            program.kill()
        program.wait()
