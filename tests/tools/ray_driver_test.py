#!/usr/bin/env python3
"""The programs that muster runs beside Ray, as far as they need no Ray: what can never be had, what is waited for, what
the driver says, and the socket at which it serves the supervisor."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "muster/launch/engines/ray"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

import ray_client  # noqa: E402
import ray_driver  # noqa: E402
import ray_hosts  # noqa: E402
import ray_texts  # noqa: E402


def node(name, free=None, **total):
    return {"name": name, "total": total, "free": total if free is None else free}


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


class TextsTest(unittest.TestCase):
    def test_names_of_hosts_are_different(self):
        places = [{"name": "a", "address": "10.0.0.1"}, {"name": "b", "address": "10.0.0.2"},
                  {"name": "b", "address": "10.0.0.3"}, {"name": "-x", "address": "10.0.0.4"},
                  {"name": "", "address": "10.0.0.4"}]
        self.assertEqual(ray_texts.different_names(places), ["a", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.4-2"])

    def test_why_an_actor_has_died(self):
        self.assertTrue(ray_texts.why_died("The actor is dead because its node has died.\n Node Id: 1")
                        .startswith("its node has died: "))
        self.assertTrue(ray_texts.why_died("Task was killed due to the node running low on memory.")
                        .startswith("Ray's memory monitor has killed it: "))
        self.assertEqual(ray_texts.why_died("The actor died\nunexpectedly"),
                         "its actor has died: The actor died unexpectedly")

    def test_the_script_says_what_is_asked_for(self):
        self.assertEqual(ray_texts.asked_of("#!/bin/sh\n#RAY {\"nodes\": 2}\nexec x\n"), {"nodes": 2})
        with self.assertRaises(ValueError):
            ray_texts.asked_of("#!/bin/sh\n")

    def test_a_failing_task_is_shown_with_its_last_lines(self):
        last = ray_driver.LastWords()

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


class ClientTest(unittest.TestCase):
    def test_versions(self):
        self.assertEqual(ray_client.version_of("2.60.0rc1"), (2, 60))
        with self.assertRaises(ray_client.Failure):
            ray_client.check_version("2.8.1", "the cluster")

    def test_a_node_that_does_not_see_the_folder_says_so(self):
        with tempfile.TemporaryDirectory(prefix="it's ") as folder:
            command = ray_client.entrypoint({"folder": folder}, "job-1", "")
            blind = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            self.assertEqual(blind.returncode, 2)
            self.assertIn(f"doesn't see {folder}, the experiment's folder", blind.stderr)
            (pathlib.Path(folder) / "job.sh").write_text("echo \"$1 $2\"\n")
            self.assertEqual(subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout, "job-1 \n")

    def test_without_ray_it_says_so(self):
        said = subprocess.run([sys.executable, "-I", "-S", str(FOLDER / "ray_client.py"), "version", "http://x"],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(json.loads(said.stdout)["error"], "no_ray")

    def test_rays_own_line_is_left_out_of_a_message(self):
        self.assertEqual(ray_client.own_lines("failed:\nlast\nRunning entrypoint for job x: sh\n"), "failed:\nlast")


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
        self.assertTrue(self.agent.find(self.program, ray_hosts.digest_of(self.program)))
        self.agent.start(key, ["agent", "--serve", f"test-{os.getpid()}"], "the secret\n", 0.01)

    def events(self):
        found = []
        while not found or "ended" not in found[-1]:
            found += self.agent.next()
        return found

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

    def test_another_muster_is_brought(self):
        self.assertFalse(self.agent.find(self.program, "0" * 64))
        home = os.environ.get("HOME", "")
        self.addCleanup(os.environ.__setitem__, "HOME", home)
        os.environ["HOME"] = self.folder.name
        self.agent.take("0" * 64, b"program")
        self.assertEqual(pathlib.Path(self.agent.muster).read_bytes(), b"program")
        self.assertTrue(self.agent.muster.startswith(self.folder.name))
        self.assertTrue(os.access(self.agent.muster, os.X_OK))


class PlayedStarts:
    def __init__(self):
        self.running, self.calls = {}, []

    def start(self, *words):
        self.calls.append(("start", *words))

    def end(self, key):
        self.calls.append(("end", key))

    def end_all(self):
        self.calls.append(("end_all",))

    def meet(self, rendezvous):
        self.calls.append(("meet", rendezvous))


class DeskTest(unittest.TestCase):
    def setUp(self):
        self.name = f"muster-test-{os.getpid()}-{id(self)}"
        self.starts = PlayedStarts()
        self.desk = ray_driver.Desk("@" + self.name, self.starts)

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

    def test_the_next_supervisor_hears_nothing_of_the_starts_of_the_one_before(self):
        first = self.connect()
        first.close()
        self.turn_until(lambda: self.desk.connection is None)
        second = self.connect()
        self.starts.running = {"1-1": None}
        self.desk.tell("1-1", "line", "old")
        second.sendall(b'{"end_all": "at once"}\n')
        self.turn_until(lambda: self.starts.calls == [("end_all",)])
        self.starts.running = {}
        self.desk.turn(0)
        self.assertEqual(json.loads(second.recv(4096)), {"number": 0, "ended": "all"})


if __name__ == "__main__":
    unittest.main()
