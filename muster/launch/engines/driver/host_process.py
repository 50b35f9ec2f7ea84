"""What a process on a host of a job does for the job's driver: brings muster there, runs agents of muster and holds their
stdin, so that they end with it. Needs nothing but Python; the process itself is one of another system, as an actor of Ray
(docs/ray_engine.md)."""

import hashlib
import os
import queue
import subprocess
import tempfile
import threading

DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
MOST_LINE = 2000  # characters of a line that is passed on


def one_line(text, most=MOST_LINE):
    return " ".join(text.split())[:most]


def own_folder(system):
    """Returns /tmp/muster-SYSTEM-UID, a folder of this user alone."""
    path = f"/tmp/muster-{system}-{os.getuid()}"
    os.makedirs(path, mode=0o700, exist_ok=True)
    about = os.lstat(path)
    if about.st_uid != os.getuid() or (about.st_mode & 0o170077) != 0o040000:
        raise PermissionError(f"{path} must be a folder of this user that nobody else can enter (mode 0700)")
    return path


def write_own_file(path, data, mode):
    """Replaces the file at once, for this user alone."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:  # has mode 0600
        file.write(data)
    os.chmod(file.name, mode)
    os.replace(file.name, path)


def forget_dead(folder):
    """Removes what a process has left that was killed before its agent could do it."""
    for name in os.listdir(folder):
        parts = name.split("-")
        if len(parts) > 3 and parts[-3].isdigit() and not os.path.exists(f"/proc/{parts[-3]}"):
            try:
                os.unlink(os.path.join(folder, name))
            except FileNotFoundError:  # another process of this host has just done it
                pass


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class HostProcess:
    """Agents on this host. What happens to them comes out of `next`."""

    system = ""  # its name, in that of the folder

    def __init__(self):
        self.muster = ""
        self.running = {}
        self.events = queue.Queue()

    def find(self, path, digest):
        """Returns whether this host has that muster."""
        for one in (path, self.cached(digest)):
            if os.access(one, os.X_OK) and digest_of(one) == digest:
                self.muster = one
                return True
        return False

    @staticmethod
    def cached(digest):
        # As for hosts by ssh.
        return os.path.expanduser(f"~/.cache/muster/bin/{digest}/muster")

    def take(self, digest, data):
        self.muster = self.cached(digest)
        try:
            os.makedirs(os.path.dirname(self.muster), mode=0o700, exist_ok=True)
            write_own_file(self.muster, data, 0o700)
        except OSError:
            self.muster = os.path.join(own_folder(self.system), "bin-" + digest[:16], "muster")
            os.makedirs(os.path.dirname(self.muster), mode=0o700, exist_ok=True)
            write_own_file(self.muster, data, 0o700)

    def launch(self, key, arguments, rendezvous, environment):
        """Starts an agent. The key has a dash."""
        run = arguments[arguments.index("--serve") + 1]
        folder = own_folder(self.system)
        forget_dead(folder)
        file = os.path.join(folder, f"{run}-{os.getpid()}-{key}")
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as made:
            made.write(rendezvous.encode())
        program = subprocess.Popen(
            [self.muster, *arguments, "--rendezvous", file, "--until_closed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
        self.running[key] = (program, file)
        threading.Thread(target=self.follow, args=(key, program, file), daemon=True).start()

    def follow(self, key, program, file):
        for line in program.stderr:
            self.events.put({"key": key, "line": one_line(line.decode("utf-8", "replace"))})
        code = program.wait()
        self.running.pop(key, None)
        for pipe in (program.stdin, program.stderr):
            pipe.close()
        try:
            os.unlink(file)
        except OSError:
            pass
        self.events.put({"key": key, "ended": f"killed by signal {-code}" if code < 0 else f"exited with {code}"})

    def next(self):
        """Returns what has happened, once something has."""
        events = [self.events.get()]
        while not self.events.empty():
            events.append(self.events.get())
        return events

    def meet(self, rendezvous):
        # In place, so that no other file is left where this process is killed; an agent that reads a part reads again.
        for key, (_, file) in list(self.running.items()):
            try:
                with open(file, "r+b") as kept:
                    kept.write(rendezvous.encode())
                    kept.truncate()
            except OSError as error:  # an agent that has just ended has no file any more; the others hear it all the same
                if key in self.running:
                    self.events.put({"key": key, "line": one_line(f"its file isn't renewed: {error}")})

    def end(self, key=None):
        """Closes the agent's stdin, by which it ends its tasks and then itself."""
        for one in [key] if key is not None else list(self.running):
            agent = self.running.get(one)
            if agent is not None:  # it may end at any time
                try:
                    agent[0].stdin.close()
                except OSError:
                    pass
