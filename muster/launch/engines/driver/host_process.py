"""What a process on a host of a job does for the job's driver: brings muster there, runs agents of muster and holds their
stdin, so that they end with it. Needs nothing but Python; the process itself is one of another system, as an actor of Ray
(docs/ray_engine.md)."""

import hashlib
import os
import queue
import signal
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
    """Replaces the file at once, for this user alone, or leaves everything as it was."""
    file = tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False)  # has mode 0600
    try:
        with file:
            file.write(data)
        os.chmod(file.name, mode)
        os.replace(file.name, path)
    except BaseException:
        forget(file.name)
        raise


def forget(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def forget_dead(folder):
    """Removes what a process has left that was killed before its agent could do it."""
    for name in os.listdir(folder):
        parts = name.split("-")
        if len(parts) > 3 and parts[-3].isdigit() and not os.path.exists(f"/proc/{parts[-3]}"):
            try:
                os.unlink(os.path.join(folder, name))
            except FileNotFoundError:  # another process of this host has just done it
                pass


def processes_with(words):
    """Returns the processes in whose command lines these words follow each other."""
    wanted = b"\0".join(os.fsencode(one) for one in ("", *words, ""))
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if wanted in file.read():
                        found.append(int(name))
        except OSError:  # it has just ended
            pass
    return found


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def has_digest(path, digest):
    try:
        return os.access(path, os.X_OK) and digest_of(path) == digest
    except OSError:
        return False


def cache_folder():
    """Returns the folder in which hosts by ssh have muster, too (first_contact.cc)."""
    stated = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(stated if stated.startswith("/") else os.path.expanduser("~/.cache"), "muster")


def is_own(path):
    """Returns whether it is there, and nobody else may change it or put something in its place."""
    try:
        about = os.stat(path)  # the cache may be a link to a larger disk
    except OSError:
        return False
    return about.st_uid == os.getuid() and not about.st_mode & 0o022


def make_own(folder):
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    if not is_own(folder):
        raise PermissionError(f"{folder} belongs to somebody else, or others may write there")


class HostProcess:
    """Agents on this host. What happens to them comes out of `next`."""

    system = ""  # its name, in that of the folder

    def __init__(self):
        self.muster = ""
        self.running = {}
        self.events = queue.Queue()

    def places(self, digest):
        """Yields where this host may have that muster, the better place first: the folders that must be this user's own, of
        which the last one has the file."""
        cache = cache_folder()
        if os.path.isabs(cache):  # it isn't for a user whom the host doesn't know, as in some containers
            yield [cache, os.path.join(cache, "bin"), os.path.join(cache, "bin", digest)]
        folder = own_folder(self.system)
        yield [folder, os.path.join(folder, "bin-" + digest[:16])]

    def find(self, path, digest):
        """Returns whether this host has that muster."""
        if has_digest(path, digest):
            self.muster = path
            return True
        try:
            for folders in self.places(digest):
                program = os.path.join(folders[-1], "muster")
                # Another user could change the file between this look and the agent's start.
                if all(is_own(one) for one in (*folders, program)) and has_digest(program, digest):
                    self.muster = program
                    return True
        except OSError:  # the second place is somebody else's
            pass
        return False

    def take(self, digest, data):
        """Puts that muster where `find` finds it. OSError: no place takes it."""
        failed = None
        for folders in self.places(digest):
            try:
                os.makedirs(os.path.dirname(folders[0]), mode=0o700, exist_ok=True)
                for folder in folders:
                    make_own(folder)
                program = os.path.join(folders[-1], "muster")
                write_own_file(program, data, 0o700)
                self.muster = program
                return
            except OSError as error:
                failed = error
        raise failed

    def launch(self, key, arguments, rendezvous, environment):
        """Starts an agent. The key is LIFE-N, of the supervisor and its start. OSError: nothing is left of it."""
        run = arguments[arguments.index("--serve") + 1]
        folder = own_folder(self.system)
        forget_dead(folder)
        file = os.path.join(folder, f"{run}-{os.getpid()}-{key}")
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with open(made, "wb") as opened:
                opened.write(rendezvous.encode())
            program = subprocess.Popen(
                [self.muster, *arguments, "--rendezvous", file, "--until_closed"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            forget(file)
            raise
        self.running[key] = (program, file)
        threading.Thread(target=self.follow, args=(key, program, file), daemon=True).start()

    def follow(self, key, program, file):
        for line in program.stderr:
            self.events.put({"key": key, "line": one_line(line.decode("utf-8", "replace"))})
        code = program.wait()
        self.running.pop(key, None)
        for pipe in (program.stdin, program.stderr):
            pipe.close()
        forget(file)
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

    def end(self, key=None, at_once=False):
        """Closes the agent's stdin, by which it ends its tasks and then itself. `at_once`: kills it before, as it may be
        stopped, or hang."""
        for one in [key] if key is not None else list(self.running):
            agent = self.running.get(one)
            if agent is not None:  # it may end at any time
                if at_once:  # before it has begun to end, since its guard would begin no next life then
                    self.kill(*agent)
                try:
                    agent[0].stdin.close()
                except OSError:
                    pass

    @staticmethod
    def kill(program, file):
        """Kills the agent, whichever life of it runs. Its guard and the process that waits for it stay: the guard begins the
        next life, which finds stdin closed, gives the tasks 3 s to end and removes the agent's files; so the end that
        `follow` tells is that of the tasks, too. (A signal at this process's death, PDEATHSIG, would reach only the process
        that waits, and take the agent's file from the one that removes it.)"""
        for pid in processes_with(("--rendezvous", file)):  # no other agent has this file
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has just ended
                pass
        program.send_signal(signal.SIGCONT)  # whoever has stopped the agent may have stopped what waits for it, too
