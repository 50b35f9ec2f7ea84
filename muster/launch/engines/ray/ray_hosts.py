"""The nodes that the driver of a job of Ray has: a placement group, an actor on each node, and agents of muster that the
actors run."""

import os
import queue
import re
import socket
import sys
import threading
import time

from driver_server import NoHosts, different_names
from host_process import DEVICES, HostProcess, digest_of, one_line
from ray_client import is_unknown
from ray_texts import begins_with, cause_of_never, count_with_room, free_now, why_died, why_never, why_waits

PATIENCE_OF_ACTOR = 5.0  # seconds between two looks at an actor that waits for a node
PATIENCE_OF_ALL = 10.0  # seconds that a job waits for all nodes while there is room for the least number of them
PATIENCE_OF_LEAST = 10.0  # seconds that these then have to come
PATIENCE_OF_LOST = 1.0  # seconds until an actor that can't be reached is asked again
PATIENCE_OF_JOBS = 0.5  # seconds between two looks at a job whose end is waited for
SAY_AGAIN = 60.0  # seconds between two words about that, if nothing has changed


def await_ends(jobs, free_file, waits, make_client=None):
    """Waits until none of these jobs of Ray runs or waits, or this file is there. A job that Ray doesn't tell about now may
    run. `make_client`: makes a client of Ray's jobs; None: of this job's cluster."""
    if jobs and make_client is None:
        from ray.job_submission import JobSubmissionClient as make_client
    client = None
    for job in jobs:
        while not os.path.exists(free_file):
            why_not = ""
            try:
                if client is None:
                    client = make_client()
                if client.get_job_status(job).is_terminal():
                    break
            except Exception as error:  # those of Ray, of requests and of sockets have no base of their own
                if client is not None and is_unknown(error):
                    break
                why_not = f", about which Ray can't be asked now: {steady(error)}"
            waits(f"waits for the end of job {job}{why_not}")
            time.sleep(PATIENCE_OF_JOBS)


def steady(error):
    """Returns what the error says without what differs each time, since it is said anew when it changes."""
    return one_line(re.sub(r" object at 0x[0-9a-f]+", "", str(error)), 300) or type(error).__name__


class KeptEvents(queue.Queue):
    """What happens, numbered from 1 on, and kept until it is known to have been heard: an answer may be lost on its way,
    and one who has asked may hear nothing any more."""

    def __init__(self):
        super().__init__()
        self.heard = 0  # the number of the last event before those that are kept
        self.newest = 0  # counts the calls of `beyond`

    def beyond(self, number):
        """Forgets the events up to this number. Returns the number of the last one that there is, and those behind this
        one, once there are some. A newer call ends one that still waits, so that lost calls don't pile up."""
        with self.mutex:
            self.newest += 1
            own = self.newest
            for _ in range(number - self.heard):
                self.queue.popleft()
            self.heard = max(self.heard, number)
            self.not_empty.notify_all()
            self.not_empty.wait_for(lambda: self.queue or self.newest != own)
            return self.heard + len(self.queue), list(self.queue)


class HostAgent(HostProcess):
    """The actor on a node: brings muster there, runs the agent, and holds its stdin, so that the agent ends with it."""

    system = "ray"

    def __init__(self):
        super().__init__()
        self.events = KeptEvents()

    def next(self, heard):
        """As KeptEvents.beyond."""
        return self.events.beyond(heard)

    def place(self):
        import ray

        node = ray.get_runtime_context().get_node_id()
        return {"name": socket.gethostname(), "address": ray.util.get_node_ip_address(), "node": node}

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
        self.launch(key, arguments, rendezvous, self.environment(cpus, gpus))


class Host:
    """A node of the job: its bundle, and the actor there."""

    def __init__(self, index, actor):
        self.index = index
        self.actor = actor
        self.name = ""
        self.node = ""  # Ray's id of where the newest actor is
        self.wanted = None  # the key of the newest start
        self.has_muster = False
        self.lock = threading.Lock()  # one start at a time


class Cluster:
    """What is asked of Ray."""

    def __init__(self, asked, waits):
        self.asked = asked
        self.waits = waits  # is told why the job waits
        self.bundle = asked["resources"]
        self.count = asked.get("nodes", 1)  # of the nodes that the job waits for, or has
        self.least = asked.get("least_nodes", self.count)  # with so many it can begin
        self.says = ""  # what the user is to read about them
        self.group = None
        self.muster_ref = None
        self.digest = ""

    def connect(self):
        import ray
        import ray.cloudpickle

        if not ray.is_initialized():  # a program that runs the driver may have a connection of its own
            address = os.environ.get("RAY_ADDRESS", "")
            if not address:  # ray.init would make a new cluster
                raise RuntimeError("this isn't within a job of Ray: RAY_ADDRESS isn't set")
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        # The nodes don't have these files.
        for module in (sys.modules[__name__], sys.modules["host_process"]):
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
        """Returns what an autoscaler may make, as ray_texts takes it: what the one of this cluster has told Ray, which not
        every one does."""
        try:
            from ray._private import state

            config = state.state.get_cluster_config()
            return [(dict(one.resources), one.max_count) for one in config.node_group_configs] if config else []
        except Exception:  # it is no public function
            return []

    def why_never(self):
        """Returns why the job can never begin; "" if it can. Where all nodes can never be had, it is from now on for the least
        number of them."""
        asked = self.count
        its = (self.nodes(), self.groups(), self.asked["autoscaler"])
        cause = cause_of_never(self.bundle, asked, *its)
        if not cause or cause_of_never(self.bundle, self.least, *its):
            return why_never(self.bundle, asked, *its)
        self.count, self.says = self.least, begins_with(self.least, asked, cause)
        return ""

    def why_waits(self, count, nodes=None, **more):
        nodes = self.nodes() if nodes is None else nodes
        return why_waits(self.bundle, count, nodes, self.groups(), self.asked["autoscaler"], **more)

    @staticmethod
    def has_died(host):
        """Whether Ray has noticed that the host's node has died."""
        import ray

        return any(node["NodeID"] == host.node and not node["Alive"] for node in ray.nodes())

    def await_group(self, waits):
        """Waits for a group of all nodes, or of the least number if for some time there has been room for these, but not for
        all. Never asks for both at once: an autoscaler would make nodes for both."""
        self.ask_for(self.count)
        room_since = None
        while not self.group.wait(1):
            nodes = self.nodes()
            waits(self.why_waits(self.count, nodes) + (f"; it {self.says}" if self.says else ""))
            if self.least == self.count or count_with_room(self.bundle, nodes) < self.least:
                room_since = None
                continue
            room_since = time.monotonic() if room_since is None else room_since
            if time.monotonic() - room_since >= PATIENCE_OF_ALL:
                room_since = None
                if self.gets_least(nodes):
                    return

    def gets_least(self, nodes):
        """Asks for the least number of nodes in the place of all. Returns whether they come; if not, all are asked for again."""
        self.ask_for(self.least)
        if not self.group.wait(PATIENCE_OF_LEAST):
            self.ask_for(self.count)
            return False
        self.says = begins_with(self.least, self.count, f"there is no room for all of them; {free_now(self.bundle, nodes)}")
        self.count = self.least
        return True

    def ask_for(self, count):
        """Asks for a group of so many nodes, in the place of the one that there is."""
        from ray.util.placement_group import placement_group

        self.end()
        self.group = placement_group([self.bundle] * count, strategy="STRICT_SPREAD" if count > 1 else "PACK")

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

        hosts = [Host(index, self.new_actor(index)) for index in range(self.count)]
        asked = [host.actor.place.remote() for host in hosts]
        try:
            waiting = asked
            while waiting:
                here, waiting = ray.wait(asked, num_returns=len(asked), timeout=PATIENCE_OF_ACTOR)
                ray.get(here)  # raises the death of one, also while others are waited for
                if waiting:  # its node may have died, and Ray looks for another one
                    self.waits(self.why_waits(len(waiting)))
            places = ray.get(asked)
        except ray.exceptions.RayError as error:
            raise NoHosts(f"a node that Ray has given is lost again: {why_died(str(error))}") from error
        for host, name, place in zip(hosts, different_names(places), places):
            host.name, host.node = name, place["node"]
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

            group, self.group = self.group, None
            remove_placement_group(group)


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

        heard = 0
        while True:
            try:
                heard, events = ray.get(actor.next.remote(heard))
                for event in events:
                    for kind in ("line", "ended"):
                        if kind in event:
                            self.note(event["key"], kind, event[kind])
            except ray.exceptions.ActorUnavailableError:
                time.sleep(PATIENCE_OF_LOST)  # it comes back, or has died
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
                self.running[key] = (host, actor)  # from here on `end` reaches it
                if host.wanted != key:
                    return self.note(key, "ended", "it isn't wanted any more")
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
                host.node = ray.get(ready)["node"]
                host.actor, host.has_muster = actor, False
                return self.follow(host, actor)
            why = self.cluster.why_waits(1, another=True, died=self.cluster.has_died(host))
            if why != said or time.monotonic() > say_again:
                said, say_again = why, time.monotonic() + SAY_AGAIN
                self.tell(key, "waits", why)
        ray.kill(actor)

    def end(self, key, at_once=False):
        for host in self.hosts.values():
            if host.wanted == key:
                host.wanted = None
        its = self.running.get(key)
        if its is not None and its[1] is not None:
            how = {"at_once": True} if at_once else {}
            its[1].end.remote(key, **how)

    def end_all(self, at_once=False):
        for key in list(self.running):
            self.end(key, at_once)

    def meet(self, rendezvous):
        for _, actor in list(self.running.values()):
            if actor is not None:
                actor.meet.remote(rendezvous)
