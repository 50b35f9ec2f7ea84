#!/usr/bin/env python3
"""The programs that muster runs beside Ray, as far as they need no Ray: what can never be had, what is waited for, what
the driver says, and the socket at which it serves the supervisor."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

ENGINES = pathlib.Path(__file__).resolve().parents[2] / "muster/launch/engines"
sys.dont_write_bytecode = True
sys.path[:0] = [str(ENGINES / "driver"), str(ENGINES / "ray")]

HANG = 60  # seconds, which turn a hang into a failed test
PYTHON_WITH_RAY = ENGINES.parents[2] / ".venv/bin/python"

import driver_server  # noqa: E402
import host_process  # noqa: E402
import ray_driver  # noqa: E402
import ray_hosts  # noqa: E402
import ray_texts  # noqa: E402


def node(name, free=None, **total):
    return {"name": name, "total": total, "free": total if free is None else free}


@contextlib.contextmanager
def full_disk():
    """No file of this process grows meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def umask_now():
    now = os.umask(0o22)
    os.umask(now)
    return now


class NeverTest(unittest.TestCase):
    NODES = [node("h1", CPU=4), node("h2", CPU=4, GPU=1), node("h3", CPU=2)]

    def test_what_the_nodes_have_can_be_had(self):
        self.assertEqual(ray_texts.why_never({"CPU": 4}, 2, self.NODES, []), "")
        self.assertEqual(ray_texts.why_never({"CPU": 0.01}, 3, self.NODES, []), "")

    def test_the_bundle_is_named_with_the_most_that_there_is(self):
        why = ray_texts.why_never({"CPU": 8, "GPU": 2}, 1, self.NODES, [])
        self.assertIn("Ray can never give a node with {CPU: 8, GPU: 2}: of its 3 nodes, 0 have as much", why)
        self.assertIn("the most that one has is {CPU: 4, GPU: 1}", why)

    def test_each_part_needs_a_node_of_its_own(self):
        why = ray_texts.why_never({"CPU": 2, "memory": 0}, 4, self.NODES, [])
        self.assertIn("never give 4 nodes with", why)
        self.assertIn("of its 3 nodes, 3 have as much", why)

    def test_what_an_autoscaler_may_make_counts(self):
        self.assertEqual(ray_texts.why_never({"CPU": 8}, 2, self.NODES, [({"CPU": 8}, 2)]), "")
        self.assertEqual(ray_texts.why_never({"CPU": 8}, 9, self.NODES, [({"CPU": 8}, -1)]), "")
        self.assertIn("and 2 that its autoscaler may make, 2 have as much; the most that one has is {CPU: 8}",
                      ray_texts.why_never({"CPU": 8}, 3, self.NODES, [({"CPU": 8}, 2)]))
        self.assertIn("never", ray_texts.why_never({"TPU": 1}, 1, self.NODES, [({"CPU": 8}, -1)]))
        self.assertEqual(ray_texts.why_never({"TPU": 1}, 1, self.NODES, [], autoscaler=True), "")

    def test_a_node_that_the_autoscaler_does_not_make_is_there_besides(self):
        head, made = node("h1", CPU=16, memory=2**34), node("h2", CPU=8, memory=2**33)
        groups = [({"CPU": 8, "memory": 2**33 + 1}, 2)]
        self.assertEqual(ray_texts.why_never({"CPU": 8}, 3, [head, made], groups), "")
        self.assertIn("of its 2 nodes and 2 that its autoscaler may make, 3 have as much",
                      ray_texts.why_never({"CPU": 8}, 4, [head, made], groups))


class WaitsTest(unittest.TestCase):
    def test_says_what_is_free_of_what_is_wanted(self):
        nodes = [node("h1", {"CPU": 0.5, "memory": 2**31}, CPU=4, memory=2**32), node("h2", {}, CPU=2)]
        self.assertEqual(
            ray_texts.why_waits({"CPU": 2, "memory": 2**30}, 2, nodes),
            "waits for 2 nodes with {CPU: 2, memory: 1.0 GB} each; free now: h1 0.5 of 4 CPU, 2.0 GB of 4.0 GB memory; "
            "h2 0 of 2 CPU, 0.0 GB of 0.0 GB memory")

    def test_many_nodes_are_counted(self):
        said = ray_texts.why_waits({"CPU": 2}, 1, [node(f"h{i}", CPU=1) for i in range(9)])
        self.assertTrue(said.endswith("h5 1 of 1 CPU; and 3 more nodes"), said)


    def test_says_what_an_autoscaler_may_make(self):
        def end_of(*arguments):
            return ray_texts.why_waits({"CPU": 2}, 1, [node("h1", CPU=1)], *arguments).partition("h1 1 of 1 CPU")[2]

        self.assertEqual(end_of(), "")
        self.assertEqual(end_of([({"CPU": 2}, 1)]), "; its autoscaler may make up to 1 such node in all")
        self.assertEqual(end_of([({"CPU": 2}, 1), ({"CPU": 1}, 5), ({"CPU": 4}, 2)]),
                         "; its autoscaler may make up to 3 such nodes in all")
        self.assertEqual(end_of([({"CPU": 2}, 1), ({"CPU": 2}, -1)]), "; its autoscaler may make any number of such nodes")
        self.assertEqual(end_of([({"CPU": 1}, 5), ({"CPU": 2}, 0)]), "; its autoscaler makes no such nodes")
        self.assertEqual(end_of([], True), "; an autoscaler may make more nodes (ray: {autoscaler: true})")


class TextsTest(unittest.TestCase):
    def test_names_of_hosts_are_different(self):
        places = [{"name": "a", "address": "10.0.0.1"}, {"name": "b", "address": "10.0.0.2"},
                  {"name": "b", "address": "10.0.0.3"}, {"name": "-x", "address": "10.0.0.4"},
                  {"name": "", "address": "10.0.0.4"}]
        self.assertEqual(driver_server.different_names(places), ["a", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.4-2"])
        same = [{"name": "a", "address": "10.0.0.1"}] * 3 + [{"name": "a-2", "address": "10.0.0.1"}]
        self.assertEqual(driver_server.different_names(same), ["a", "a-2", "a-3", "a-2-2"])

    def test_why_an_actor_has_died(self):
        self.assertTrue(ray_texts.why_died("The actor is dead because its node has died.\n Node Id: 1")
                        .startswith("its node has died: "))
        self.assertTrue(ray_texts.why_died("Task was killed due to the node running low on memory.")
                        .startswith("Ray's memory monitor has killed it: "))
        self.assertEqual(ray_texts.why_died("The actor died\nunexpectedly"),
                         "its actor has died: The actor died unexpectedly")

    def test_the_script_says_what_is_asked_for(self):
        self.assertEqual(driver_server.asked_of("#!/bin/sh\n#RAY {\"nodes\": 2}\nexec x\n", "RAY"), {"nodes": 2})
        with self.assertRaises(ValueError):
            driver_server.asked_of("#!/bin/sh\n", "RAY")

    def test_a_failing_task_is_shown_with_its_last_lines(self):
        last = driver_server.LastWords()

        def lines(task, stream, text):
            return last.lines_of(json.dumps({"id": task, "stream": stream, "text": text}))

        for i in range(60):
            self.assertEqual(lines("1.worker.1", "stdout", f"line {i}"), [])
        self.assertEqual(lines("1", "muster", "reaching 2 hosts"), ["1 reaching 2 hosts"])
        self.assertEqual(lines("1.worker.1", "state", "RUNNING"), ["1.worker.1 --> RUNNING"])
        shown = lines("1.worker.1", "state", "FAILED")
        self.assertEqual(shown[:3], ["1.worker.1 --> FAILED", "1.worker.1 failed; its last 50 lines:",
                                     "1.worker.1 | line 10"])
        self.assertEqual(len(shown), 52)
        self.assertEqual(last.lines_of("no JSON"), [])


class HostAgentTest(unittest.TestCase):
    """The actor without Ray around it, with a program that a test writes in the place of muster."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = os.path.join(self.folder.name, "muster")
        self.agent = ray_hosts.HostAgent()

    def start(self, script, key="1-1"):
        pathlib.Path(self.program).write_text(f"#!/bin/sh\n{script}\n")
        os.chmod(self.program, 0o700)
        self.assertTrue(self.agent.find(self.program, host_process.digest_of(self.program)))
        self.agent.start(key, ["agent", "--serve", f"test-{os.getpid()}"], "the secret\n", 0.01)

    def events(self):
        found, heard = [], 0
        while not found or "ended" not in found[-1]:
            heard, events = self.agent.next(heard)
            found += events
        return found

    def hear(self, heard):
        """Returns what `next` gives, which is there or comes at once."""
        given = []
        thread = threading.Thread(target=lambda: given.append(self.agent.next(heard)), daemon=True)
        thread.start()
        thread.join(10)
        return given[0] if given else None

    def test_the_rendezvous_is_a_file_of_this_user_that_is_gone_at_the_end(self):
        self.start('stat -c "%a $*" "$5" >&2; cat "$5" >&2; [ "$6" = --until_closed ] && exit 3')
        events = self.events()
        words = events[0]["line"].split()
        self.assertEqual(words[:4], ["600", "agent", "--serve", f"test-{os.getpid()}"])
        self.assertEqual(events[1:], [{"key": "1-1", "line": "the secret"}, {"key": "1-1", "ended": "exited with 3"}])
        self.assertFalse(os.path.exists(words[5]))

    def test_it_ends_when_its_stdin_is_closed(self):
        self.start("cat; kill -9 $$")
        self.agent.meet("another supervisor\n")
        self.agent.end("1-1")
        self.assertEqual(self.events(), [{"key": "1-1", "ended": "killed by signal 9"}])

    def test_what_has_happened_is_told_again_until_it_is_known_to_be_heard(self):
        for one in ("a", "b"):
            self.agent.events.put(one)
        self.assertEqual(self.hear(0), (2, ["a", "b"]), "the answer to which is lost")
        self.agent.events.put("c")
        self.assertEqual(self.hear(0), (3, ["a", "b", "c"]))
        self.assertEqual(self.hear(2), (3, ["c"]))
        self.assertEqual(self.hear(0), (3, ["c"]), "a call from before, which comes late")
        self.agent.events.put("d")
        self.assertEqual(self.hear(3), (4, ["d"]))

    def test_a_call_that_nobody_waits_for_any_more_takes_nothing_and_ends(self):
        lost = threading.Thread(target=self.agent.next, args=(0,), daemon=True)
        lost.start()
        threading.Thread(target=self.agent.next, args=(0,), daemon=True).start()
        lost.join(10)
        self.assertFalse(lost.is_alive())
        self.agent.events.put("a")
        self.assertEqual(self.hear(0), (1, ["a"]))

    def test_a_start_that_fails_leaves_no_secret(self):
        with mock.patch.object(host_process, "own_folder", return_value=self.folder.name):
            self.agent.muster = "/nonexistent/muster"
            with self.assertRaises(FileNotFoundError):
                self.agent.start("1-1", ["agent", "--serve", "run"], "the secret\n", 1)
            with full_disk(), self.assertRaises(OSError):
                self.agent.start("1-2", ["agent", "--serve", "run"], "the secret\n", 1)
        self.assertEqual((os.listdir(self.folder.name), self.agent.running), ([], {}))

    def test_a_full_disk_leaves_the_file_that_was_there_and_no_other(self):
        path = os.path.join(self.folder.name, "file")
        host_process.write_own_file(path, b"before", 0o600)
        with full_disk(), self.assertRaises(OSError):
            host_process.write_own_file(path, b"after", 0o600)
        self.assertEqual((os.listdir(self.folder.name), pathlib.Path(path).read_bytes()), (["file"], b"before"))

    def test_without_gpus_of_its_own_it_has_none(self):
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0,1", "HIP_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "4"}):
            without = self.agent.environment(4, 0)
            self.assertEqual((without["CUDA_VISIBLE_DEVICES"], without["HIP_VISIBLE_DEVICES"]), ("", ""))
            self.assertNotIn("OMP_NUM_THREADS", without)
            some = self.agent.environment(2, 2)
            self.assertEqual((some["CUDA_VISIBLE_DEVICES"], some["OMP_NUM_THREADS"]), ("0,1", "4"))


class KillTest(unittest.TestCase):
    """Agents that are ended at once, with a program that a test writes in the place of muster."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        patch = mock.patch.object(host_process, "own_folder", return_value=self.folder.name)
        patch.start()
        self.addCleanup(patch.stop)
        self.agent = host_process.HostProcess()
        self.agent.muster = os.path.join(self.folder.name, "muster")

    def start(self, script):
        pathlib.Path(self.agent.muster).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        os.chmod(self.agent.muster, 0o700)
        self.agent.launch("1-1", ["agent", "--serve", "run"], "the secret\n", dict(os.environ))

    def next(self):
        return self.agent.events.get(timeout=HANG)

    def end_of(self, pid):
        """Ends this process and its group at the test's end, if they are there."""
        def end():
            try:
                os.killpg(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass

        self.addCleanup(end)

    def test_one_that_is_stopped_is_killed_at_once(self):
        self.start("echo $$ >&2; kill -STOP $$")
        self.end_of(self.next()["line"])
        another = subprocess.Popen(["/bin/sh", "-c", "read line", "--rendezvous", "another"], stdin=subprocess.PIPE)
        self.agent.end("1-1", at_once=True)
        self.assertEqual(self.next(), {"key": "1-1", "ended": "killed by signal 9"})
        another.communicate(b"\n")
        self.assertEqual(another.returncode, 0, "it is no agent of this start")

    def test_what_waits_for_one_that_is_killed_tells_its_end(self):
        # As `run-wait agent JOB`, which has other words than the agent and has been stopped with it.
        waits = "import os, signal, sys; os.kill(os.getpid(), signal.SIGSTOP); sys.exit(os.WTERMSIG(os.wait()[1]) + 70)"
        self.start(f"[ -n \"$AGENT\" ] || {{ AGENT=1 \"$0\" \"$@\" & exec {sys.executable} -c '{waits}'; }}\n"
                   "echo $PPID >&2; kill -STOP $$")
        waiting = int(self.next()["line"])
        self.end_of(waiting)
        os.waitid(os.P_PID, waiting, os.WSTOPPED | os.WNOWAIT)
        self.agent.end(at_once=True)
        self.assertEqual(self.next(), {"key": "1-1", "ended": "exited with 79"})

    def test_it_is_killed_before_it_hears_that_it_shall_end(self):
        # The guard of one that has begun to end begins no next life, which removes its files.
        done = []
        program = types.SimpleNamespace(stdin=types.SimpleNamespace(close=lambda: done.append("close")), send_signal=done.append)
        self.agent.running = {"1-1": (program, "file")}
        with mock.patch.object(host_process, "processes_with", return_value=[7, 8]) as asked, \
                mock.patch.object(host_process.os, "kill", side_effect=lambda *kill: done.append(kill)):
            self.agent.end("1-1", at_once=True)
            self.agent.end("1-1")
        asked.assert_called_once_with(("--rendezvous", "file"))
        self.assertEqual(done, [(7, signal.SIGKILL), (8, signal.SIGKILL), signal.SIGCONT, "close", "close"])


class MusterOnHostTest(unittest.TestCase):
    """The places where a host may have muster."""

    DATA = b"#!/bin/sh\n"
    DIGEST = hashlib.sha256(DATA).hexdigest()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "home/.cache/muster"
        self.first = self.cache / "bin" / self.DIGEST / "muster"
        self.own = self.folder / "own"
        self.own.mkdir(0o700)
        self.second = self.own / f"bin-{self.DIGEST[:16]}/muster"
        self.enter(mock.patch.dict(os.environ, {"HOME": str(self.folder / "home"), "XDG_CACHE_HOME": ""}))
        self.own_folder = self.enter(mock.patch.object(host_process, "own_folder", return_value=str(self.own)))

    def enter(self, patch):
        self.addCleanup(patch.stop)
        return patch.start()

    def take(self):
        agent = ray_hosts.HostAgent()
        agent.take(self.DIGEST, self.DATA)
        return agent.muster

    def find(self):
        agent = ray_hosts.HostAgent()
        found = agent.find("/nonexistent/muster", self.DIGEST)
        self.assertEqual(found, agent.muster != "")
        return agent.muster

    def test_it_is_brought_into_the_cache_for_this_user_alone_and_found_there(self):
        self.assertEqual(self.find(), "")
        before = os.umask(0o002)
        self.addCleanup(os.umask, before)
        self.assertEqual(self.take(), str(self.first))
        self.assertEqual(self.first.read_bytes(), self.DATA)
        for one in (self.first, *self.first.parents[:3]):
            self.assertEqual(one.stat().st_mode & 0o777, 0o700, one)
        self.assertEqual(self.find(), str(self.first))
        self.first.write_bytes(b"another")
        self.assertEqual(self.find(), "")

    def test_the_cache_is_where_the_host_says(self):
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.folder / "large")}):
            self.assertEqual(self.take(), f"{self.folder}/large/muster/bin/{self.DIGEST}/muster")
            self.assertEqual(self.find(), f"{self.folder}/large/muster/bin/{self.DIGEST}/muster")
        self.assertEqual(self.find(), "")
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "relative"}):
            self.assertEqual(self.take(), str(self.first))
        with mock.patch.object(host_process.os.path, "expanduser", side_effect=lambda path: path):  # this user isn't known
            self.assertEqual(self.take(), str(self.second))

    def test_a_place_where_others_may_write_is_left_for_the_second(self):
        self.take()
        for one in (self.first, *self.first.parents[:3]):
            for more in (0o020, 0o002):
                one.chmod(0o700 | more)
                self.assertEqual(self.find(), "", one)
            one.chmod(0o700)
        self.assertEqual(self.find(), str(self.first))
        self.cache.chmod(0o770)
        self.assertEqual(self.take(), str(self.second))
        self.assertEqual(self.find(), str(self.second))
        self.second.chmod(0o720)
        self.assertEqual(self.find(), "")

    def test_a_place_of_another_user_is_left_for_the_second(self):
        self.take()
        its = self.first.stat()
        stat = os.stat

        def of_another(path, **options):
            about = stat(path, **options)
            if str(path) != str(self.first.parent):
                return about
            return types.SimpleNamespace(st_uid=its.st_uid + 1, st_mode=about.st_mode)

        with mock.patch.object(host_process.os, "stat", of_another):
            self.assertEqual(self.find(), "")
            self.assertEqual(self.take(), str(self.second))
            self.assertEqual(self.find(), str(self.second))

    def test_without_any_place_it_is_neither_found_nor_taken(self):
        (self.folder / "home").write_text("no folder")
        self.own_folder.side_effect = PermissionError("/tmp/muster-ray-1 must be a folder of this user")
        self.assertEqual(self.find(), "")
        agent = ray_hosts.HostAgent()
        with self.assertRaisesRegex(PermissionError, "must be a folder of this user"):
            agent.take(self.DIGEST, self.DATA)
        self.assertEqual(agent.muster, "", "the next start tries again")


class PlayedRay:
    """As much of Ray as the driver uses, for a test that says what comes of it."""

    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        pass

    class ActorUnavailableError(RayError):
        pass

    def __init__(self):
        self.killed = []
        self.ray = types.ModuleType("ray")
        self.ray.exceptions = self
        self.ray.get = self.get
        self.ray.kill = self.killed.append
        self.ray.wait = lambda asked, num_returns=1, timeout=None: (asked, [])

    @staticmethod
    def get(what):
        """Gives or raises what a method that was called has come to."""
        for one in what if isinstance(what, list) else [what]:
            if isinstance(one, Exception):
                raise one
        return what


class PlayedActor:
    """Whose methods come to what the test says, by name: `ends`; what they don't, to None."""

    def __init__(self, **ends):
        self.ends = ends

    def __getattr__(self, name):
        return types.SimpleNamespace(remote=lambda *_: self.ends.get(name))


OUT_OF_MEMORY = "1 worker(s) were killed due to the node running low on memory. Memory on the node was 3 GB"


class DeathTest(unittest.TestCase):
    def setUp(self):
        self.played = PlayedRay()
        patch = mock.patch.dict(sys.modules, {"ray": self.played.ray})
        patch.start()
        self.addCleanup(patch.stop)
        self.cluster = types.SimpleNamespace(bundle={"CPU": 1}, bring_muster=lambda host: None)

    def starts_of(self, actor):
        host = ray_hosts.Host(0, actor)
        host.name = "h1"
        with mock.patch.object(ray_hosts.Starts, "follow"):  # which would be a thread
            starts = ray_hosts.Starts(self.cluster, [host])
        told = []
        starts.tell = lambda *words: told.append(words)
        return starts, host, told

    def test_what_rays_memory_monitor_kills_ends_with_its_words(self):
        actor = PlayedActor(next=PlayedRay.RayError(OUT_OF_MEMORY))
        starts, host, told = self.starts_of(actor)
        starts.running["1-1"] = (host, actor)
        starts.follow_actor(host, actor)
        self.assertEqual(told, [("1-1", "ended", f"Ray's memory monitor has killed it: {OUT_OF_MEMORY}")])
        self.assertEqual((self.played.killed, host.actor, starts.running), ([actor], None, {}))

    def test_after_an_actor_could_not_be_reached_it_is_asked_for_the_same_again(self):
        answers = [(2, [{"key": "1-1", "line": "a"}, {"key": "1-1", "line": "b"}]), PlayedRay.ActorUnavailableError(),
                   (3, [{"key": "1-1", "ended": "exited with 1"}]), PlayedRay.RayError("it died")]
        asked = []

        def ask(heard):
            asked.append(heard)
            return answers.pop(0)

        actor = types.SimpleNamespace(next=types.SimpleNamespace(remote=ask))
        starts, host, told = self.starts_of(actor)
        starts.running["1-1"] = (host, actor)
        self.played.ray.get = lambda what: PlayedRay.get(what if isinstance(what, Exception) else [what]) and what
        with mock.patch.object(ray_hosts, "PATIENCE_OF_LOST", 0):
            starts.follow_actor(host, actor)
        self.assertEqual(told, [("1-1", "line", "a"), ("1-1", "line", "b"), ("1-1", "ended", "exited with 1")])
        self.assertEqual(asked, [0, 2, 2, 3])

    def test_agents_end_gently_or_at_once_as_it_is_said(self):
        ends = []
        actor = types.SimpleNamespace(end=types.SimpleNamespace(remote=lambda key, **how: ends.append((key, how))))
        starts, host, _ = self.starts_of(actor)
        host.wanted = "1-2"
        starts.running = {"1-1": (host, actor), "1-2": (host, None)}
        starts.end("1-2", at_once=True)
        self.assertEqual((ends, host.wanted), ([], None), "it has no actor yet")
        starts.end("1-1")
        starts.end("1-1", at_once=True)
        starts.end_all()
        starts.end_all(at_once=True)
        self.assertEqual(ends, [("1-1", {}), ("1-1", {"at_once": True})] * 2)

    def test_a_start_that_is_ended_while_muster_is_brought_starts_nothing(self):
        started = []
        actor = PlayedActor()
        actor.start = types.SimpleNamespace(remote=lambda *words: started.append(words))
        starts, host, told = self.starts_of(actor)
        self.cluster.bring_muster = lambda host: starts.end("1-1")
        host.wanted, starts.running = "1-1", {"1-1": (host, None)}
        starts.begin("1-1", host, [], "")
        self.assertEqual((started, told, starts.running), ([], [("1-1", "ended", "it isn't wanted any more")], {}))

    def test_an_actor_that_dies_at_a_start_is_replaced_by_the_next(self):
        starts, host, told = self.starts_of(PlayedActor(start=PlayedRay.RayError(OUT_OF_MEMORY)))
        host.wanted = "1-1"
        starts.begin("1-1", host, [], "")
        self.assertIsNone(host.actor)
        self.assertEqual(told[-1], ("1-1", "ended", f"Ray's memory monitor has killed it: {OUT_OF_MEMORY}"))

    def test_an_error_within_an_actor_is_said_and_leaves_it(self):
        starts, host, told = self.starts_of(PlayedActor(start=PlayedRay.RayTaskError("No space left")))
        host.wanted = "1-1"
        starts.begin("1-1", host, [], "")
        self.assertIsNotNone(host.actor)
        self.assertEqual(told, [("1-1", "ended", "No space left")])

    def test_the_wait_for_another_node_says_that_the_own_one_has_died_once_ray_knows_it(self):
        place = {"name": "h2", "address": "10.0.0.2", "node": "N2"}
        own = {"NodeID": "N1", "Alive": True, "Resources": {"CPU": 1}, "NodeManagerAddress": "10.0.0.1"}
        waits = [[], [], [], [place]]  # what Ray has given, look by look

        def wait(ready, timeout):
            self.assertEqual((ready, timeout), ([place], ray_hosts.PATIENCE_OF_ACTOR))
            own["Alive"] = len(waits) > 3
            return waits.pop(0), []

        self.played.ray.wait, self.played.ray.nodes = wait, lambda: [own, {**own, "NodeID": "N3", "Alive": False}]
        starts, host, told = self.starts_of(None)
        host.node, host.wanted = "N1", "1-1"
        cluster = starts.cluster = ray_hosts.Cluster({"resources": {"CPU": 1}, "autoscaler": False}, lambda line: None)
        cluster.new_actor = lambda _index: PlayedActor(place=place)
        cluster.nodes = lambda: [node("h3", CPU=1)]
        with mock.patch.object(starts, "follow") as followed:
            starts.replace_actor("1-1", host)
        self.assertEqual(told, [("1-1", "waits", "waits for another node with {CPU: 1}; free now: h3 1 of 1 CPU"),
                                ("1-1", "waits", "waits for another node with {CPU: 1}, as its own has died; free now: h3 1 of 1 CPU")])
        self.assertEqual((host.node, followed.call_count), ("N2", 1))

    def test_a_node_that_is_lost_before_the_beginning_is_named(self):
        cluster = ray_hosts.Cluster({"resources": {"CPU": 1}, "nodes": 1}, lambda line: None)
        cluster.new_actor = lambda index: PlayedActor(place=PlayedRay.RayError(OUT_OF_MEMORY))
        with self.assertRaises(driver_server.NoHosts) as raised:
            cluster.hosts()
        self.assertIn("Ray's memory monitor has killed it: 1 worker(s)", str(raised.exception))

    def cluster_of_three(self, places, looks):
        """Returns a cluster whose actors come to be as `looks` says, one after the other: the indices of those that are
        there; and what is said while others are waited for."""
        said = []
        cluster = ray_hosts.Cluster({"resources": {"CPU": 1}, "nodes": 3, "autoscaler": False}, said.append)
        cluster.new_actor = lambda index: PlayedActor(place=places[index])
        free = [1, 0]
        cluster.nodes = lambda: [node("h9", {"CPU": free.pop(0)}, CPU=1)]

        def wait(asked, num_returns, timeout):
            self.assertEqual((num_returns, timeout), (3, ray_hosts.PATIENCE_OF_ACTOR))
            here = looks.pop(0)
            return [asked[i] for i in here], [one for i, one in enumerate(asked) if i not in here]

        self.played.ray.wait = wait
        return cluster, said

    def test_a_node_that_dies_before_its_actor_is_there_is_waited_for_with_the_reason(self):
        places = [{"name": f"h{i}", "address": f"10.0.0.{i}", "node": f"N{i}"} for i in range(3)]
        cluster, said = self.cluster_of_three(places, [[], [0, 2], [0, 1, 2]])
        hosts, addresses = cluster.hosts()
        self.assertEqual(said, ["waits for 3 nodes with {CPU: 1} each; free now: h9 1 of 1 CPU",
                                "waits for a node with {CPU: 1}; free now: h9 0 of 1 CPU"])
        self.assertEqual([(host.name, host.node) for host in hosts], [("h0", "N0"), ("h1", "N1"), ("h2", "N2")])
        self.assertEqual(addresses, ["10.0.0.0", "10.0.0.1", "10.0.0.2"])

    def test_an_actor_that_dies_while_others_are_waited_for_is_noticed(self):
        cluster, said = self.cluster_of_three([{}, PlayedRay.RayError(OUT_OF_MEMORY), {}], [[1]])
        with self.assertRaises(driver_server.NoHosts):
            cluster.hosts()
        self.assertEqual(said, [])


class PlayedGroup:
    """A placement group that comes, or doesn't, as the cluster's `comes` says at each wait."""

    def __init__(self, cluster, size):
        self.cluster, self.size = cluster, size

    def wait(self, seconds):
        self.cluster.now += seconds
        return self.cluster.comes(self.size)


class FewerNodesTest(unittest.TestCase):
    """A job that can begin with fewer nodes than it has asked for."""

    def setUp(self):
        self.now, self.asked, self.there, self.waited = 0.0, [], [], []
        self.comes = lambda size: False
        module = types.ModuleType("ray.util.placement_group")
        module.placement_group, module.remove_placement_group = self.make, lambda group: self.there.remove(group.size)
        played = {"ray": PlayedRay().ray, "ray.util": types.ModuleType("ray.util"), "ray.util.placement_group": module}
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        for patch in (mock.patch.dict(sys.modules, played), mock.patch.object(ray_hosts, "time", clock)):
            patch.start()
            self.addCleanup(patch.stop)
        self.wants = {"resources": {"CPU": 2}, "nodes": 3, "least_nodes": 2, "autoscaler": False}
        self.nodes = [node("h1", CPU=4), node("h2", CPU=4), node("h3", {"CPU": 1}, CPU=2)]

    def make(self, bundles, strategy):
        self.assertEqual((self.there, bundles, strategy), ([], [{"CPU": 2}] * len(bundles), "STRICT_SPREAD"), "one at a time")
        self.asked.append((self.now, len(bundles)))
        self.there.append(len(bundles))
        return PlayedGroup(self, len(bundles))

    def cluster(self):
        cluster = ray_hosts.Cluster(self.wants, self.waited.append)
        cluster.nodes, cluster.groups = lambda: self.nodes, lambda: []
        return cluster

    def names_of(self, cluster):
        cluster.new_actor = lambda i: PlayedActor(place={"name": f"h{i + 1}", "address": f"10.0.0.{i + 1}", "node": f"N{i}"})
        return [host.name for host in cluster.hosts()[0]]

    def test_all_nodes_that_come_are_taken(self):
        cluster = self.cluster()
        self.comes = lambda size: self.now > 5
        self.assertEqual(cluster.why_never(), "")
        cluster.await_group(self.waited.append)
        self.assertEqual((self.asked, cluster.says, self.names_of(cluster)), ([(0, 3)], "", ["h1", "h2", "h3"]))

    def test_after_ten_seconds_with_room_for_the_least_number_it_begins_with_that(self):
        cluster = self.cluster()
        self.comes = lambda size: size == 2
        cluster.await_group(self.waited.append)
        self.assertEqual(self.asked, [(0, 3), (11, 2)])
        self.assertEqual(self.there, [2])
        self.assertEqual(set(self.waited), {"waits for 3 nodes with {CPU: 2} each; free now: h1 4 of 4 CPU; h2 4 of 4 CPU; "
                                            "h3 1 of 2 CPU"})
        self.assertEqual(cluster.says, "begins with 2 of 3 nodes, as nobody waits for that of the evaluator: there is no room for "
                                       "all of them; free now: h1 4 of 4 CPU; h2 4 of 4 CPU; h3 1 of 2 CPU")
        self.assertEqual(self.names_of(cluster), ["h1", "h2"])

    def test_the_seconds_count_from_when_there_is_room_on(self):
        free, taken = self.nodes, [node("h1", CPU=4), node("h2", {"CPU": 0}, CPU=4), self.nodes[2]]
        cluster = self.cluster()
        cluster.nodes = lambda: free if 20 <= self.now < 25 or self.now >= 40 else taken
        self.comes = lambda size: size == 2
        cluster.await_group(self.waited.append)
        self.assertEqual(self.asked, [(0, 3), (50, 2)])

    def test_when_these_do_not_come_either_all_are_asked_for_again(self):
        cluster = self.cluster()
        self.comes = lambda size: size == 3 and self.now > 50
        cluster.await_group(self.waited.append)
        self.assertEqual([size for _, size in self.asked], [3, 2, 3, 2, 3])
        self.assertEqual([came - before for (before, _), (came, _) in zip(self.asked, self.asked[1:])], [11, 10, 11, 10])
        self.assertEqual((self.there, cluster.says, cluster.count), ([3], "", 3))

    def test_a_job_that_needs_all_nodes_waits_for_them(self):
        self.wants["least_nodes"] = 3
        cluster = self.cluster()
        self.comes = lambda size: self.now > 100
        cluster.await_group(self.waited.append)
        self.assertEqual((self.asked, cluster.says), ([(0, 3)], ""))

    def test_it_begins_at_once_where_all_can_never_be_had(self):
        self.nodes = self.nodes[:2]
        cluster = self.cluster()
        self.assertEqual(cluster.why_never(), "")
        self.comes = lambda size: self.now > 1
        cluster.await_group(self.waited.append)
        self.assertEqual(self.asked, [(0, 2)])
        says = ("begins with 2 of 3 nodes, as nobody waits for that of the evaluator: Ray can never give 3 nodes with {CPU: 2} each: "
                "of its 2 nodes, 2 have as much; the most that one has is {CPU: 4}")
        self.assertEqual(cluster.says, says)
        self.assertEqual(self.waited, [f"waits for 2 nodes with {{CPU: 2}} each; free now: h1 4 of 4 CPU; h2 4 of 4 CPU; it {says}"])
        self.assertEqual(self.names_of(cluster), ["h1", "h2"])

    def test_it_is_refused_where_not_even_the_least_number_can_be_had(self):
        self.nodes = self.nodes[:1]
        cluster = self.cluster()
        self.assertIn("Ray can never give 3 nodes with {CPU: 2} each: of its 1 node, 1 has as much", cluster.why_never())
        self.assertEqual(cluster.says, "")

    def test_a_group_is_removed_once(self):
        cluster = self.cluster()
        self.comes = lambda size: True
        cluster.await_group(self.waited.append)
        cluster.end()
        cluster.end()
        self.assertEqual(self.there, [])


# What `ray_hosts` finds in what an autoscaler has told the installed Ray, as Ray keeps it: stdin says it.
GROUPS_OF_RAY = """
import json, sys
sys.path[:0] = sys.argv[1:]
import ray
import ray_hosts
from ray._private import state
from ray.core.generated import autoscaler_pb2

told = json.load(sys.stdin)

class Kept:
    def get_internal_kv(self, namespace, key):
        asked = (ray._raylet.GCS_AUTOSCALER_STATE_NAMESPACE.encode(), ray._raylet.GCS_AUTOSCALER_CLUSTER_CONFIG_KEY.encode())
        groups = [autoscaler_pb2.NodeGroupConfig(**group) for group in told or []]
        config = autoscaler_pb2.ClusterConfig(node_group_configs=groups).SerializeToString()
        return config if told and (namespace, key) == asked else None

state.state._connect_and_get_accessor = Kept
print(json.dumps(ray_hosts.Cluster({"resources": {}}, print).groups()))
"""


class GroupsTest(unittest.TestCase):
    @staticmethod
    def groups(module):
        with mock.patch.dict(sys.modules, {"ray": types.ModuleType("ray"), "ray._private": module}):
            return ray_hosts.Cluster({"resources": {}}, print).groups()

    @unittest.skipUnless((PYTHON_WITH_RAY.parent / "ray").exists(), "Ray isn't installed: tools/setup.sh --for test does")
    def test_they_are_those_of_the_installed_ray(self):
        def groups(told):
            words = [PYTHON_WITH_RAY, "-B", "-c", GROUPS_OF_RAY, str(ENGINES / "driver"), str(ENGINES / "ray")]
            said = subprocess.run(words, input=json.dumps(told), stdout=subprocess.PIPE, text=True, check=True).stdout
            return json.loads(said)

        told = [{"name": "small", "resources": {"CPU": 4, "memory": 2**33}, "max_count": 3},
                {"name": "any", "resources": {"CPU": 8, "GPU": 1}, "min_count": 1, "max_count": -1}]
        self.assertEqual(groups(told), [[{"CPU": 4, "memory": 2**33}, 3], [{"CPU": 8, "GPU": 1}, -1]])
        self.assertEqual(groups(None), [], "most clusters have told nothing")

    def test_a_ray_that_has_no_such_function_knows_none(self):
        self.assertEqual(self.groups(types.ModuleType("ray._private")), [])
        other = types.ModuleType("ray._private")
        other.state = types.SimpleNamespace(state=types.SimpleNamespace(get_cluster_config=lambda: 7))
        self.assertEqual(self.groups(other), [])


class PlayedNoClient(ConnectionError):
    """What making a client of Ray's jobs comes to."""


class PlayedCluster:
    """The order in which the driver asks it, and what it answers."""

    says = ""

    def __init__(self, never="", lost=""):
        self.never, self.lost, self.calls = never, lost, []

    def connect(self):
        self.calls.append("connect")

    def why_never(self):
        self.calls.append("why_never")
        return self.never

    def await_group(self, _waits):
        self.calls.append("await_group")

    def hosts(self):
        raise driver_server.NoHosts(self.lost)

    def end(self):
        self.calls.append("end")


class PlayedSupervisor:
    """Ends with this code at the second look."""

    def __init__(self, code=0):
        self.code, self.returncode, self.heard, self.stderr, self.looks = code, None, [], [], 0

    def poll(self):
        self.looks += 1
        if self.looks > 1:
            self.returncode = self.code
        return self.returncode

    def send_signal(self, number):
        self.heard.append(number)


class DriverTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.refused = self.path("refused")
        pathlib.Path(self.path("muster")).write_text(f"#!/bin/sh\nfor one; do :; done; echo \"$one\" >{self.refused}; exit 2\n")
        os.chmod(self.path("muster"), 0o700)
        asked = {"address": "http://x", "python": "python3", "resources": {}, "nodes": 1, "after": [], "experiment": "1",
                 "muster": self.path("muster"), "home": self.folder.name, "folder": self.folder.name,
                 "output": self.path("out"), "over": self.path("over"), "waits": self.path("waits"), "umask": 0o22}
        self.driver = ray_driver.Driver(asked, "job", None)
        self.driver.take_signals = lambda: None

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_with(self, cluster):
        self.driver.cluster = cluster
        with mock.patch("builtins.print"):
            return self.driver.run()

    def test_what_can_never_be_had_is_refused_before_it_is_asked_for(self):
        cluster = PlayedCluster(never="Ray can never give a node with {CPU: 64}")
        self.assertEqual(self.run_with(cluster), 2)
        self.assertEqual(cluster.calls, ["connect", "why_never", "end"])
        self.assertEqual(pathlib.Path(self.refused).read_text(), "Ray can never give a node with {CPU: 64}\n")

    def test_nodes_that_are_lost_again_end_it_with_the_cause(self):
        self.assertEqual(self.run_with(PlayedCluster(lost="a node is lost")), 2)
        self.assertEqual(pathlib.Path(self.refused).read_text(), "a node is lost\n")

    def test_what_is_not_free_is_waited_for_and_the_reason_is_a_file(self):
        group = types.SimpleNamespace(answers=[False, False, True])
        group.wait = lambda _seconds: group.answers.pop(0)
        module = types.ModuleType("ray.util.placement_group")
        module.placement_group = lambda bundles, strategy: group
        cluster = ray_hosts.Cluster({"resources": {"CPU": 2}, "nodes": 2, "autoscaler": False}, lambda line: None)
        cluster.nodes = lambda: [node("h1", {"CPU": 1}, CPU=4)]
        cluster.groups = lambda: [({"CPU": 2}, 4)]
        with mock.patch.dict(sys.modules, {"ray": types.ModuleType("ray"), "ray.util": types.ModuleType("ray.util"),
                                           "ray.util.placement_group": module}), mock.patch("builtins.print"):
            cluster.await_group(self.driver.waits)
        self.assertEqual(group.answers, [])
        said = "waits for 2 nodes with {CPU: 2} each; free now: h1 1 of 4 CPU; its autoscaler may make up to 4 such nodes in all"
        self.assertEqual(pathlib.Path(self.path("waits")).read_text(), said)
        self.assertEqual(pathlib.Path(self.path("out")).read_text(), f"muster: {said}\n", "once")

    def test_a_full_disk_does_not_end_a_job_that_waits(self):
        with full_disk(), mock.patch("builtins.print") as said:
            self.driver.waits("waits for 2 nodes")
        said.assert_called_once_with("muster: waits for 2 nodes", flush=True)
        self.assertFalse(os.path.exists(self.path("waits")))

    def await_ends(self, jobs, answers):
        """Waits with a client that comes to what `answers` says, one after the other: whether the job that is asked about
        has ended, or an error; a client that can't be made is an error, too. Then the job is freed. Returns which jobs
        were asked about, and what was said."""
        asked, said = [], []

        def come_to(job):
            asked.append(job)
            if not answers:
                pathlib.Path(self.driver.free_file()).touch()
                return False
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        class PlayedJobs:
            def __init__(self):
                if answers and isinstance(answers[0], PlayedNoClient):
                    come_to("client")

            @staticmethod
            def get_job_status(job):
                ended = come_to(job)
                return types.SimpleNamespace(is_terminal=lambda: ended)

        with mock.patch.object(ray_hosts, "PATIENCE_OF_JOBS", 0):
            ray_hosts.await_ends(jobs, self.driver.free_file(), said.append, PlayedJobs)
        return asked, said

    def test_it_waits_for_other_jobs_until_they_end_or_it_is_freed(self):
        unknown = RuntimeError("Request failed with status code 404: Job unknown does not exist.")
        asked, said = self.await_ends(["ended", "unknown", "runs", "another"], [True, unknown])
        self.assertEqual((asked, said), (["ended", "unknown", "runs"], ["waits for the end of job runs"]))

    def test_a_job_about_which_ray_cannot_be_asked_is_waited_for(self):
        refused = "HTTPConnectionPool: <urllib3.HTTPConnection object at 0x{}>: Failed to establish a new connection"
        asked, said = self.await_ends(["a", "b"], [
            PlayedNoClient("no dashboard: its address does not exist"), False,
            RuntimeError("Request failed with status code 503: busy."), OSError(refused.format("7f01")),
            OSError(refused.format("7f02")), RuntimeError("Request failed with status code 500: "), True])
        self.assertEqual(asked, ["client", *"aaaaaa", "b"])
        of_a = "waits for the end of job a"
        refused = "HTTPConnectionPool: <urllib3.HTTPConnection>: Failed to establish a new connection"
        whys = ["no dashboard: its address does not exist", "", "Request failed with status code 503: busy.",
                refused, refused, "Request failed with status code 500:"]
        self.assertEqual(said, [of_a + (f", about which Ray can't be asked now: {why}" if why else "") for why in whys] +
                         ["waits for the end of job b"])

    def test_the_supervisor_hears_what_the_user_is_to_read_about_the_hosts(self):
        self.assertEqual(self.driver.environment()["MUSTER_DRIVER_SAYS"], "")
        self.driver.cluster.says = "begins with 2 of 3 nodes"
        self.assertEqual(self.driver.environment()["MUSTER_DRIVER_SAYS"], "begins with 2 of 3 nodes")

    def test_agents_that_do_not_end_with_the_supervisor_are_killed(self):
        starts = PlayedStarts()
        starts.running = {"1-1": None}

        def end_all(at_once=False):
            starts.calls.append(at_once)
            if at_once:
                starts.running.clear()

        starts.end_all, self.driver.starts_of = end_all, lambda _hosts: starts
        self.driver.socket = f"@muster-test-{os.getpid()}-{id(self)}"
        with mock.patch.object(driver_server, "END_PATIENCE", 0), mock.patch.object(driver_server, "KILL_PATIENCE", HANG), \
                mock.patch("builtins.print"):
            self.assertEqual(self.driver.supervise([], []), 2)
        self.assertEqual(starts.calls, [False, True])

    def supervise_with(self, supervisors, at_start=lambda: None, at_word=lambda: None):
        """Plays the supervisors, one for each life. Calls `at_start` when the last one has begun and the driver doesn't know
        it yet, `at_word` when the driver has said something."""
        left = list(supervisors)

        def start(_words, **_options):
            supervisor = left.pop(0)
            if not left:
                at_start()
            return supervisor

        self.driver.starts_of = lambda _hosts: PlayedStarts()
        self.driver.socket = f"@muster-test-{os.getpid()}-{id(supervisors)}"
        with mock.patch.object(driver_server.subprocess, "Popen", start), mock.patch.object(driver_server, "POLL", 0), \
                mock.patch.object(self.driver, "show_log"), mock.patch.object(self.driver, "end_log"), \
                mock.patch.object(self.driver, "say", side_effect=lambda _line: at_word()):
            return self.driver.supervise([], [])

    def test_a_signal_while_the_supervisor_is_being_started_is_passed_on_once(self):
        supervisor = PlayedSupervisor()
        code = self.supervise_with([supervisor], at_start=lambda: self.driver.on_signal(signal.SIGTERM, None))
        self.assertEqual((supervisor.heard, code), ([signal.SIGTERM], 0))

    def test_a_signal_after_the_death_of_a_supervisor_is_for_the_next_one(self):
        first, second = PlayedSupervisor(-signal.SIGKILL), PlayedSupervisor()

        def at_word():
            if first.returncode is not None and not self.driver.ending:
                self.driver.on_signal(signal.SIGTERM, None)

        self.assertEqual(self.supervise_with([first, second], at_word=at_word), 0)
        self.assertEqual((first.heard, second.heard), ([], [signal.SIGTERM]))

    def test_before_there_is_a_supervisor_a_signal_ends_the_driver(self):
        with self.assertRaises(SystemExit) as raised:
            self.driver.on_signal(signal.SIGTERM, None)
        self.assertEqual(raised.exception.code, 128 + signal.SIGTERM)

    def test_without_an_address_there_is_never_a_new_cluster(self):
        played = types.ModuleType("ray")
        played.is_initialized = lambda: False
        played.init = self.fail
        with mock.patch.dict(sys.modules, {"ray": played, "ray.cloudpickle": types.ModuleType("ray.cloudpickle")}), \
                mock.patch.dict(os.environ, {"RAY_ADDRESS": ""}):
            with self.assertRaises(RuntimeError):
                ray_hosts.Cluster({"resources": {}}, print).connect()

    def test_a_program_runs_it_in_a_thread_over_the_connection_that_it_has(self):
        played, pickle = types.ModuleType("ray"), types.ModuleType("ray.cloudpickle")
        sent = []
        pickle.register_pickle_by_value = lambda module: sent.append(module.__name__)
        played.is_initialized, played.init, played.cloudpickle = lambda: True, self.fail, pickle
        del self.driver.take_signals  # from here on the driver's own
        self.driver.asked["umask"] = 0o77
        self.driver.cluster = ray_hosts.Cluster(self.driver.asked, lambda line: None)
        self.driver.cluster.why_never = lambda: "never"
        codes = []
        before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)], umask_now()
        with mock.patch.dict(sys.modules, {"ray": played, "ray.cloudpickle": pickle}), mock.patch("builtins.print"), \
                mock.patch.dict(os.environ, {"RAY_ADDRESS": ""}):
            thread = threading.Thread(target=lambda: codes.append(self.driver.run()))
            thread.start()
            thread.join()
        self.assertEqual(codes, [2], "it was refused")
        self.assertEqual(pathlib.Path(self.refused).read_text(), "never\n")
        self.assertEqual(([signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)], umask_now()), before)
        self.assertEqual(sent, ["ray_hosts", "host_process"], "what the nodes need")


class PlayedStarts:
    def __init__(self):
        self.running, self.calls = {}, []

    def start(self, *words):
        self.calls.append(("start", *words))

    def end(self, key):
        self.calls.append(("end", key))

    def end_all(self, at_once=False):
        self.calls.append(("end_all", at_once))

    def meet(self, rendezvous):
        self.calls.append(("meet", rendezvous))


class DeskTest(unittest.TestCase):
    def setUp(self):
        self.name = f"muster-test-{os.getpid()}-{id(self)}"
        self.starts = PlayedStarts()
        self.desk = driver_server.Desk("@" + self.name, self.starts)

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(10)
        client.connect("\0" + self.name)
        self.addCleanup(client.close)
        self.turn_until(lambda: self.desk.connection is not None)
        return client

    def turn_until(self, done):
        until = time.monotonic() + 10
        while not done() and time.monotonic() < until:
            self.desk.turn(0.01)
        self.assertTrue(done())

    def test_starts_are_asked_for_and_news_of_them_told(self):
        client = self.connect()
        client.sendall(b'{"rendezvous": "r"}\n{"start": "h1", "number": 1, "arguments": ["agent"], "rendezvous": "r"}\n')
        client.sendall(b'{"end": 1}\n{"end_')
        self.turn_until(lambda: len(self.starts.calls) == 3)
        self.assertEqual(self.starts.calls,
                         [("meet", "r"), ("start", "1-1", "h1", ["agent"], "r"), ("end", "1-1")])
        threading.Thread(target=self.desk.tell, args=("1-1", "ended", "exited\nwith 1")).start()
        heard = []
        threading.Thread(target=lambda: heard.append(client.recv(4096))).start()
        self.turn_until(lambda: heard)
        self.assertEqual(json.loads(heard[0]), {"number": 1, "ended": "exited with 1"})

    def test_the_end_of_a_start_is_told_once_and_nothing_after_it(self):
        client = self.connect()
        for number in (1, 2):
            client.sendall(b'{"start": "h1", "number": %d, "arguments": [], "rendezvous": ""}\n' % number)
        self.turn_until(lambda: len(self.starts.calls) == 2)
        for news in (("1-1", "ended", "its node has died"), ("1-1", "ended", "its actor has died"), ("1-1", "line", "late"),
                     ("1-3", "ended", "never started"), ("1-2", "line", "goes on"), ("1-2", "ended", "exited with 0")):
            self.desk.tell(*news)
        self.desk.turn(0)
        self.assertEqual([json.loads(line) for line in client.recv(4096).splitlines()],
                         [{"number": 1, "ended": "its node has died"}, {"number": 2, "line": "goes on"},
                          {"number": 2, "ended": "exited with 0"}])

    def test_an_end_after_which_there_are_no_more_starts_is_told_as_that(self):
        client = self.connect()
        client.sendall(b'{"start": "h1", "number": 1, "arguments": [], "rendezvous": ""}\n')
        self.turn_until(lambda: self.starts.calls)
        for kind in (driver_server.NO_MORE, "ended"):
            self.desk.tell("1-1", kind, "Spark's JVM\nhas died")
        self.desk.turn(0)
        self.assertEqual([json.loads(line) for line in client.recv(4096).splitlines()],
                         [{"number": 1, "ended": "Spark's JVM has died", "for_ever": True}])

    def test_the_next_supervisor_hears_nothing_of_the_starts_of_the_one_before(self):
        first = self.connect()
        first.sendall(b'{"start": "h1", "number": 1, "arguments": [], "rendezvous": ""}\n')
        self.turn_until(lambda: self.starts.calls)
        first.close()
        self.turn_until(lambda: self.desk.connection is None)
        second = self.connect()
        self.starts.running = {"1-1": None}
        self.desk.tell("1-1", "line", "old")
        second.sendall(b'{"end_all": "at once"}\n')
        self.turn_until(lambda: self.starts.calls[1:] == [("end_all", True)])
        self.starts.running = {}
        self.desk.turn(0)
        self.assertEqual(json.loads(second.recv(4096)), {"number": 0, "ended": "all"})

    def test_all_end_gently_or_at_once_as_the_supervisor_says(self):
        client = self.connect()
        client.sendall(b'{"end_all": "gently"}\n{"end_all": "at once"}\n')
        self.turn_until(lambda: len(self.starts.calls) == 2)
        self.assertEqual(self.starts.calls, [("end_all", False), ("end_all", True)])


class NoRayTest(unittest.TestCase):
    def test_a_python_that_cannot_import_ray_says_which_one_to_name(self):
        said = io.StringIO()
        with mock.patch.dict(sys.modules, {"ray": None}), mock.patch("sys.stderr", said):
            self.assertEqual(ray_driver.main(["/nonexistent", "job"]), 2)
        self.assertIn("with Ray, where the job's driver runs", said.getvalue())
        self.assertIn("say which python has it there (ray: {python: FILE})", said.getvalue())


if __name__ == "__main__":
    unittest.main()
