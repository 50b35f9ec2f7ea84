"""The nodes that the driver of a job of Ray has: a placement group, an actor on each node, and agents of muster that the
actors run."""

import hashlib
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time

from ray_texts import different_names, one_line, why_died, why_never, why_waits

DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
PATIENCE_OF_ACTOR = 5.0  # seconds between two looks at an actor that waits for a node
PATIENCE_OF_JOBS = 0.5  # seconds between two looks at a job whose end is waited for
SAY_AGAIN = 60.0  # seconds between two words about that, if nothing has changed


def own_folder():
    """Returns /tmp/muster-ray-UID, a folder of this user alone."""
    path = f"/tmp/muster-ray-{os.getuid()}"
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
    """Removes what an actor has left that was killed before its agent could do it."""
    for name in os.listdir(folder):
        parts = name.split("-")
        if len(parts) > 3 and parts[-3].isdigit() and not os.path.exists(f"/proc/{parts[-3]}"):
            os.unlink(os.path.join(folder, name))


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def await_ends(jobs, free_file, waits, client=None):
    """Waits until none of these jobs of Ray runs or waits, or this file is there. `client`: of Ray's jobs; None: that of
    this job's cluster."""
    if jobs and client is None:
        from ray.job_submission import JobSubmissionClient

        client = JobSubmissionClient()
    for job in jobs:
        while not os.path.exists(free_file):
            try:
                if client.get_job_status(job).is_terminal():
                    break
            except RuntimeError:  # Ray knows it no more
                break
            waits(f"waits for the end of job {job}")
            time.sleep(PATIENCE_OF_JOBS)


class NodesLost(Exception):
    """Nodes that Ray has given are gone before the experiment has begun there."""


class HostAgent:
    """The actor on a node: brings muster there, runs the agent, and holds its stdin, so that the agent ends with it."""

    def __init__(self):
        self.muster = ""
        self.running = {}
        self.events = queue.Queue()

    def place(self):
        import ray

        return {"name": socket.gethostname(), "address": ray.util.get_node_ip_address()}

    def find(self, path, digest):
        """Returns whether this node has that muster."""
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
            self.muster = os.path.join(own_folder(), "bin-" + digest[:16], "muster")
            os.makedirs(os.path.dirname(self.muster), mode=0o700, exist_ok=True)
            write_own_file(self.muster, data, 0o700)

    @staticmethod
    def environment(cpus, gpus):
        """Returns what the agent gets of this process's variables, whose bundle has so much."""
        environment = dict(os.environ)
        # Ray has set it for the actor, which computes nothing.
        if environment.get("OMP_NUM_THREADS") == str(max(int(cpus), 1)):
            del environment["OMP_NUM_THREADS"]
        if gpus == 0:
            # Ray leaves all devices of the node to an actor that has asked for none, and gives them to others.
            environment.update({name: "" for name in DEVICES if name in environment or name == DEVICES[0]})
        return environment

    def start(self, key, arguments, rendezvous, cpus, gpus=0):
        run = arguments[arguments.index("--serve") + 1]
        forget_dead(own_folder())
        file = os.path.join(own_folder(), f"{run}-{os.getpid()}-{key}")
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as made:
            made.write(rendezvous.encode())
        program = subprocess.Popen(
            [self.muster, *arguments, "--rendezvous", file, "--until_closed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            env=self.environment(cpus, gpus),
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
        for _, file in list(self.running.values()):
            with open(file, "r+b") as kept:
                kept.write(rendezvous.encode())
                kept.truncate()

    def end(self, key=None):
        """Closes the agent's stdin, by which it ends its tasks and then itself."""
        for one in [key] if key is not None else list(self.running):
            if one in self.running:
                self.running[one][0].stdin.close()


class Host:
    """A node of the job: its bundle, and the actor there."""

    def __init__(self, index, actor):
        self.index = index
        self.actor = actor
        self.name = ""
        self.wanted = None  # the key of the newest start
        self.has_muster = False
        self.lock = threading.Lock()  # one start at a time


class Cluster:
    """What is asked of Ray."""

    def __init__(self, asked, say):
        self.asked = asked
        self.say = say
        self.bundle = asked["resources"]
        self.group = None
        self.muster_ref = None
        self.digest = ""

    def connect(self):
        import ray
        import ray.cloudpickle

        address = os.environ.get("RAY_ADDRESS", "")
        if not address:  # ray.init would make a new cluster
            raise RuntimeError("this isn't within a job of Ray: RAY_ADDRESS isn't set")
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        # The nodes don't have these files.
        for module in (sys.modules[__name__], sys.modules["ray_texts"]):
            ray.cloudpickle.register_pickle_by_value(module)

    def nodes(self):
        import ray
        from ray._private import state

        try:
            free = state.available_resources_per_node()
        except Exception:  # it is no public function
            free = {}
        found = []
        for node in ray.nodes():
            if node["Alive"]:
                total = node["Resources"]
                name = node.get("NodeManagerHostname") or node["NodeManagerAddress"]
                found.append({"name": name, "total": total, "free": free.get(node["NodeID"], {} if free else total)})
        return sorted(found, key=lambda node: node["name"])

    def groups(self):
        try:
            from ray._private import state

            config = state.state.get_cluster_config()
            return [(dict(one.resources), one.max_count) for one in config.node_group_configs] if config else []
        except Exception:  # it is no public function
            return []

    def why_never(self):
        return why_never(self.bundle, self.asked["nodes"], self.nodes(), self.groups(), self.asked["autoscaler"])

    def await_group(self, waits):
        from ray.util.placement_group import placement_group

        count = self.asked["nodes"]
        self.group = placement_group([self.bundle] * count, strategy="STRICT_SPREAD" if count > 1 else "PACK")
        while not self.group.wait(1):
            waits(why_waits(self.bundle, count, self.nodes()))

    def new_actor(self, index):
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        others = {name: amount for name, amount in self.bundle.items() if name not in ("CPU", "GPU", "memory")}
        return (
            ray.remote(HostAgent)
            .options(
                num_cpus=self.bundle.get("CPU", 0),
                num_gpus=self.bundle.get("GPU", 0),
                memory=self.bundle.get("memory"),
                resources=others,
                max_concurrency=16,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self.group, index),
            )
            .remote()
        )

    def hosts(self):
        import ray

        hosts = [Host(index, self.new_actor(index)) for index in range(self.asked["nodes"])]
        try:
            places = ray.get([host.actor.place.remote() for host in hosts])
        except ray.exceptions.RayError as error:
            raise NodesLost(f"a node that Ray has given is lost again: {why_died(str(error))}") from error
        for host, name in zip(hosts, different_names(places)):
            host.name = name
        return hosts, [place["address"] for place in places]

    def bring_muster(self, host):
        """Sees to it that the node of the host's actor has this very muster."""
        import ray

        path = self.asked["muster"]
        if not self.digest:
            self.digest = digest_of(path)
        if ray.get(host.actor.find.remote(path, self.digest)):
            return
        if self.muster_ref is None:
            with open(path, "rb") as file:
                self.muster_ref = ray.put(file.read())
        ray.get(host.actor.take.remote(self.digest, self.muster_ref))

    def end(self):
        if self.group is not None:
            from ray.util.placement_group import remove_placement_group

            remove_placement_group(self.group)


class Starts:
    """Agents on the hosts, started and followed by threads. What happens comes to `tell(key, kind, text)` from them."""

    def __init__(self, cluster, hosts):
        self.cluster = cluster
        self.hosts = {host.name: host for host in hosts}
        self.tell = lambda key, kind, text: None
        self.running = {}  # by key: the host, and the actor once there is one
        for host in hosts:
            self.follow(host, host.actor)

    def follow(self, host, actor):
        threading.Thread(target=self.follow_actor, args=(host, actor), daemon=True).start()

    def follow_actor(self, host, actor):
        import ray

        while True:
            try:
                for event in ray.get(actor.next.remote()):
                    for kind in ("line", "ended"):
                        if kind in event:
                            self.note(event["key"], kind, event[kind])
            except ray.exceptions.ActorUnavailableError:
                time.sleep(1)  # it comes back, or has died
            except ray.exceptions.RayError as error:
                return self.on_death(host, actor, why_died(str(error)))

    def on_death(self, host, actor, why):
        import ray

        if host.actor is actor and actor is not None:
            host.actor = None
            ray.kill(actor)  # one that only can't be reached would keep the bundle
        for key, its in list(self.running.items()):
            if its == (host, actor):
                self.note(key, "ended", why)

    def note(self, key, kind, text):
        if kind == "ended":
            self.running.pop(key, None)
        self.tell(key, kind, text)

    def start(self, key, name, arguments, rendezvous):
        host = self.hosts.get(name)
        if host is None:
            return self.tell(key, "ended", f"the job has no host {name}")
        host.wanted = key
        self.running[key] = (host, None)
        threading.Thread(target=self.begin, args=(key, host, arguments, rendezvous), daemon=True).start()

    def begin(self, key, host, arguments, rendezvous):
        import ray

        with host.lock:
            try:
                if host.actor is None:
                    self.replace_actor(key, host)
                if host.wanted != key:
                    return self.note(key, "ended", "it isn't wanted any more")
                actor = host.actor
                if not host.has_muster:
                    self.cluster.bring_muster(host)
                    host.has_muster = True
                self.running[key] = (host, actor)
                bundle = self.cluster.bundle
                ray.get(actor.start.remote(key, arguments, rendezvous, bundle.get("CPU", 0), bundle.get("GPU", 0)))
            except ray.exceptions.RayTaskError as error:  # a full disk there, or a folder of somebody else
                self.note(key, "ended", one_line(str(error)))
            except ray.exceptions.RayError as error:
                self.on_death(host, host.actor, why_died(str(error)))
                self.note(key, "ended", why_died(str(error)))
            except Exception as error:  # of this process
                self.note(key, "ended", one_line(str(error)))

    def replace_actor(self, key, host):
        """Makes another actor for the host's bundle, which Ray may have moved to another node, or not yet."""
        import ray

        actor = self.cluster.new_actor(host.index)
        ready = actor.place.remote()
        said, say_again = "", 0.0
        while host.wanted == key:
            if ray.wait([ready], timeout=PATIENCE_OF_ACTOR)[0]:
                ray.get(ready)
                host.actor, host.has_muster = actor, False
                return self.follow(host, actor)
            why = why_waits(self.cluster.bundle, 1, self.cluster.nodes(), another=True)
            if why != said or time.monotonic() > say_again:
                said, say_again = why, time.monotonic() + SAY_AGAIN
                self.tell(key, "waits", why)
        ray.kill(actor)

    def end(self, key):
        its = self.running.get(key)
        for host in self.hosts.values():
            if host.wanted == key:
                host.wanted = None
        if its is not None and its[1] is not None:
            its[1].end.remote(key)

    def end_all(self):
        for key in list(self.running):
            self.end(key)

    def meet(self, rendezvous):
        for _, actor in list(self.running.values()):
            if actor is not None:
                actor.meet.remote(rendezvous)
