#!/usr/bin/env python3
"""The programs that muster runs beside Spark, as far as they need no Spark: what can never be had, the connections between the
driver and its tasks, agents that run there, what happens when Spark ends the stage, and how a job is started."""

import json
import os
import pathlib
import queue
import resource
import select
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
sys.path[:0] = [str(ENGINES / "driver"), str(ENGINES / "spark")]

import driver_server  # noqa: E402
import host_process  # noqa: E402
import spark_client  # noqa: E402
import spark_cluster  # noqa: E402
import spark_driver  # noqa: E402
import spark_jvm  # noqa: E402
import spark_links  # noqa: E402
import spark_task  # noqa: E402
import spark_texts  # noqa: E402
import spark_wire  # noqa: E402

HANG = 30  # seconds that turn a hang into a failed test
KEY = b"k" * 32


def asked(**more):
    return {"address": "spark://h1:7077", "python": "python3", "nodes": 2, "cpus": 1, "mem_mib": 0, "gpus": 0, "conf": {},
            "ports": None, "start_timeout": 60, "after": [], "experiment": "1", "project": "toy",
            "folder": "/nonexistent", **more}


class NeverTest(unittest.TestCase):
    def never(self, nodes=2, address="stated", **settings):
        named = {"spark." + name.replace("__", "."): value for name, value in settings.items()}
        return spark_texts.why_never(named, nodes, address)

    def test_dynamic_allocation_is_refused_with_the_way_out(self):
        why = self.never(master="yarn", dynamicAllocation__enabled="True")
        self.assertIn("spark.dynamicAllocation.enabled is true, and the 2 tasks must run at once", why)
        self.assertIn("conf: {spark.dynamicAllocation.enabled: false}", why)
        self.assertEqual(self.never(master="yarn", dynamicAllocation__enabled="false"), "")

    def test_both_numbers_are_named_when_there_can_never_be_enough_slots(self):
        why = self.never(3, master="local-cluster[2,1,1024]")
        self.assertIn("Spark can never run 3 tasks at once: local-cluster[2,1,1024] has 2 executors with 1 core each", why)
        self.assertIn("so there are 2 slots", why)
        self.assertEqual(self.never(2, master="local-cluster[2,1,1024]"), "")
        self.assertEqual(self.never(2, master="local[4]", task__cpus="2"), "")
        self.assertIn("so there is 1 slot;", self.never(2, master="local[4]", task__cpus="3"))

    def test_an_executor_must_have_room_for_a_task(self):
        self.assertIn("spark.executor.cores is 1 and spark.task.cpus 2, so there are 0 slots",
                      self.never(1, master="yarn", executor__cores="1", task__cpus="2"))

    def test_what_spark_is_limited_to_counts(self):
        self.assertIn("spark.cores.max is 3 and spark.task.cpus 2, so there is 1 slot",
                      self.never(2, master="spark://h1:7077", cores__max="3", task__cpus="2", executor__cores="2"))
        self.assertIn("spark.executor.instances is 1, spark.executor.cores 1",
                      self.never(2, master="yarn", executor__instances="1", executor__cores="1"))
        self.assertEqual(self.never(9, master="spark://h1:7077"), "", "nobody can know")

    def test_without_an_address_it_never_runs_on_this_machine(self):
        self.assertIn("on which cluster of Spark?", self.never(1, address="", master="local[*]"))
        self.assertEqual(self.never(1, address="", master="yarn"), "")


class SettingsTest(unittest.TestCase):
    def test_one_task_fills_an_executor(self):
        own = spark_texts.own_settings(asked(cpus=4, mem_mib=1000, gpus=2), "yarn")
        self.assertEqual((own["spark.executor.cores"], own["spark.task.cpus"], own["spark.executor.instances"]), ("4", "4", "2"))
        self.assertEqual((own["spark.cores.max"], own["spark.executor.memoryOverhead"]), ("8", "1000m"))
        self.assertEqual((own["spark.executor.resource.gpu.amount"], own["spark.task.resource.gpu.amount"]), ("2", "2"))
        self.assertEqual(spark_texts.own_settings(asked(), "local-cluster[2,3,1024]")["spark.task.cpus"], "3")
        self.assertNotIn("spark.task.cpus", spark_texts.own_settings(asked(), "local[4]"))

    def test_what_the_user_sets_is_left_alone(self):
        own = spark_texts.own_settings(
            asked(conf={"spark.executor.cores": "8", "spark.task.cpus": "2", "spark.executor.memory": "2g"}), "spark://h1:7077")
        for name in ("spark.executor.cores", "spark.task.cpus", "spark.executor.memory"):
            self.assertNotIn(name, own)
        self.assertEqual(own["spark.cores.max"], "8", "an executor takes four tasks")

    def test_secrets_are_no_words_of_a_process(self):
        wants = asked(conf={"spark.authenticate.secret": "s3cret", "spark.ssl.keyPassword": "pass", "spark.yarn.queue": "a b"})
        self.assertEqual(spark_texts.submit_words(wants, {}), ["--deploy-mode", "client", "--master", "spark://h1:7077", "--conf",
                                                               "spark.yarn.queue=a b", "pyspark-shell"])
        self.assertEqual(spark_texts.secret_settings(wants),
                         {"spark.authenticate.secret": "s3cret", "spark.ssl.keyPassword": "pass"})
        # Spark's own rule for what it doesn't show doesn't know these.
        for name in ("spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net", "spark.executorEnv.AWS_ACCESS_KEY_ID",
                     "spark.hadoop.x.credential", "spark.executorEnv.API_KEY", "spark.ssl.passphrase"):
            self.assertNotIn("s3cret", " ".join(spark_texts.submit_words(asked(conf={name: "s3cret"}), {})), name)

    def test_the_devices_of_a_host_are_hidden_from_a_job_that_asks_for_none(self):
        self.assertTrue(spark_texts.hides_gpus(asked()))
        self.assertFalse(spark_texts.hides_gpus(asked(gpus=1)))
        self.assertFalse(spark_texts.hides_gpus(asked(conf={"spark.task.resource.gpu.amount": "0"})))


class CauseTest(unittest.TestCase):
    def test_javas_exception_is_said_without_the_stack(self):
        error = Exception(
            "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed barrier "
            "ResultStage. Most recent failure reason: Stage failed because barrier task ResultTask(0, 0) finished "
            "unsuccessfully.\nExecutorLostFailure (executor 0 exited) Reason: Command exited with code 137\n"
            "Driver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)\n")
        self.assertEqual(spark_texts.why_failed(error),
                         "Stage failed because barrier task ResultTask(0, 0) finished unsuccessfully. ExecutorLostFailure "
                         "(executor 0 exited) Reason: Command exited with code 137")

    def test_what_a_task_has_raised_is_said_without_pythons_stack(self):
        error = Exception(
            "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Could not recover from a failed barrier "
            "ResultStage. Most recent failure reason: Stage failed because barrier task ResultTask(0, 1) finished "
            "unsuccessfully.\norg.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
            "  File \"/x/worker.py\", line 1247, in main\n    process()\n    ~~~~~~~^^\n"
            "ConnectionError: h1 has lost the job's driver: timed out\n\n\tat org.apache.spark.api.python.X\n")
        said = ("Stage failed because barrier task ResultTask(0, 1) finished unsuccessfully. ConnectionError: h1 has lost the "
                "job's driver: timed out")
        self.assertEqual(spark_texts.why_failed(error), said)
        newer = str(error).replace("Exception: Traceback", "Exception: [PYTHON_EXCEPTION] It was thrown there:\nTraceback")
        self.assertEqual(spark_texts.why_failed(newer), said)

    def test_others_are_said_on_one_line(self):
        denied = Exception(": org.apache.hadoop.security.AccessControlException: User a cannot submit to queue root.b\n\tat x\n")
        self.assertEqual(spark_texts.why_failed(denied), "AccessControlException: User a cannot submit to queue root.b")
        self.assertEqual(spark_texts.why_failed(Exception("a\nb")), "a b")
        self.assertEqual(spark_texts.why_failed(ValueError()), "ValueError")


class WireTest(unittest.TestCase):
    def pair(self, key=KEY):
        listening = socket.create_server(("127.0.0.1", 0))
        task = socket.create_connection(listening.getsockname())
        driver = listening.accept()[0]
        for one in (listening, task, driver):
            self.addCleanup(one.close)
            one.settimeout(HANG)
        return spark_wire.Wire(driver, KEY, spark_wire.DRIVER), spark_wire.Wire(task, key, spark_wire.TASK)

    def greet(self, wires):
        threads = [threading.Thread(target=wire.greet) for wire in wires]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)

    def test_objects_go_both_ways(self):
        driver, task = self.pair()
        self.greet((driver, task))
        for number in range(3):
            task.send({"number": number})
            driver.send({"text": "line\nbreak"})
        self.assertEqual([driver.receive() for _ in range(3)], [{"number": 0}, {"number": 1}, {"number": 2}])
        self.assertEqual(task.receive(), {"text": "line\nbreak"})
        task.close()
        self.assertIsNone(driver.receive())

    def test_who_has_another_key_is_refused(self):
        driver, task = self.pair(key=b"x" * 32)
        self.greet((driver, task))
        task.send({"here": 0})
        with self.assertRaises(spark_wire.WireError):
            driver.receive()

    def test_a_line_that_is_said_again_is_refused(self):
        driver, task = self.pair()
        self.greet((driver, task))
        said = []
        with mock.patch.object(task, "connection", types.SimpleNamespace(sendall=said.append)):
            task.send({"end": "1-1"})
        task.connection.sendall(said[0] + said[0])
        self.assertEqual(driver.receive(), {"end": "1-1"})
        with self.assertRaises(spark_wire.WireError):
            driver.receive()

    def test_the_drivers_own_line_isnt_one_of_the_task(self):
        driver, task = self.pair()
        self.greet((driver, task))
        said = []
        with mock.patch.object(driver, "connection", types.SimpleNamespace(sendall=said.append)):
            driver.send({"end": "1-1"})
        task.connection.sendall(said[0])
        with self.assertRaises(spark_wire.WireError):
            driver.receive()

    def test_the_greeting_has_ten_seconds_in_all(self):
        received = []

        def receive(_most):
            received.append(b"x")
            return b"x"

        said = types.SimpleNamespace(setsockopt=lambda *_: None, settimeout=lambda _seconds: None, sendall=lambda _data: None,
                                     recv=receive)
        seconds = iter(range(0, 900, 4))
        with mock.patch.object(spark_wire, "time", types.SimpleNamespace(monotonic=lambda: next(seconds))):
            with self.assertRaises(spark_wire.WireError) as raised:
                spark_wire.Wire(said, KEY, spark_wire.DRIVER).greet()
        self.assertEqual((str(raised.exception), len(received)), ("its greeting takes longer than 10 s", 2))

    def test_who_hasnt_shown_the_key_says_no_long_line(self):
        driver, task = self.pair()
        self.greet((driver, task))
        task.connection.sendall(b"x" * 5000)
        with self.assertRaises(spark_wire.WireError):
            driver.receive()

    def test_who_has_shown_the_key_may(self):
        driver, task = self.pair()
        self.greet((driver, task))
        driver.greeted()
        task.send({"line": "x" * 5000})
        self.assertEqual(driver.receive(), {"line": "x" * 5000})

    def test_a_network_that_is_silent_for_two_minutes_counts_as_broken(self):
        for wire in self.pair():
            option = wire.connection.getsockopt
            self.assertEqual(option(socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1)
            asks = [option(socket.IPPROTO_TCP, one)
                    for one in (socket.TCP_KEEPIDLE, socket.TCP_KEEPCNT, socket.TCP_KEEPINTVL, socket.TCP_USER_TIMEOUT)]
            self.assertEqual((asks[0] + asks[1] * asks[2], asks[3]), (120, 120000))

    def test_a_last_word_isnt_waited_for(self):
        driver, task = self.pair()
        self.greet((driver, task))
        with driver.lock:  # another thread waits for a task that doesn't read
            driver.send_last({"over": True})
        driver.send_last({"end": "1-1"})
        self.assertEqual(task.receive(), {"end": "1-1"})
        task.close()
        for _ in range(2):  # the second finds it closed
            driver.send_last({"over": True})

    def test_a_greeting_without_an_end_is_refused(self):
        driver, task = self.pair()
        task.connection.sendall(b"x" * 4096)
        with self.assertRaises(spark_wire.WireError):
            driver.greet()


class VariablesTest(unittest.TestCase):
    WORKER = {"PYTHON_WORKER_FACTORY_SECRET": "s", "_SPARK_AUTH_SECRET": "s", "SPARK_REUSE_WORKER": "1", "HOME": "/home/u",
              "OMP_NUM_THREADS": "2", "PYTHONPATH": "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-0.10-src.zip:/mine",
              "CUDA_VISIBLE_DEVICES": "0,1"}

    def test_what_spark_has_set_for_its_worker_is_left_out(self):
        own = spark_task.own_variables(self.WORKER, "2", [], False)
        self.assertEqual(own, {"HOME": "/home/u", "PYTHONPATH": "/mine", "CUDA_VISIBLE_DEVICES": "0,1"})
        self.assertEqual(spark_task.own_variables({"OMP_NUM_THREADS": "8", "PYTHONPATH": "/x/pyspark.zip"}, "2", [], False),
                         {"OMP_NUM_THREADS": "8"})

    def test_the_devices_are_those_that_spark_gives(self):
        self.assertEqual(spark_task.own_variables(self.WORKER, "2", ["3", "5"], True)["CUDA_VISIBLE_DEVICES"], "3,5")
        self.assertEqual(spark_task.own_variables({}, "2", [], True)["CUDA_VISIBLE_DEVICES"], "")


class HostProcessTest(unittest.TestCase):
    """Agents that end while the driver asks for something."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.host = spark_task.SparkHost()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_the_others_hear_of_a_supervisor_when_one_has_just_ended(self):
        pathlib.Path(self.path("kept")).write_text("the supervisor before", encoding="utf-8")
        self.host.running = {"1-1": (None, self.path("gone")), "1-2": (None, self.path("kept"))}
        self.host.meet("another\n")
        self.assertEqual(pathlib.Path(self.path("kept")).read_text(encoding="utf-8"), "another\n")

    def test_a_file_that_cant_be_written_is_said(self):
        self.host.running = {"1-1": (None, self.folder.name)}
        self.host.meet("another\n")
        event = self.host.events.get_nowait()
        self.assertEqual(event["key"], "1-1")
        self.assertIn("its file isn't renewed: ", event["line"])

    def test_an_agent_that_ends_at_this_moment_is_no_error(self):
        class Ending(dict):
            """Says of each that it runs, and has none any more."""

            def __contains__(self, _key):
                return True

        self.host.running = Ending()
        self.host.end("1-1")
        broken = types.SimpleNamespace(stdin=types.SimpleNamespace(close=mock.Mock(side_effect=BrokenPipeError())))
        self.host.running = {"1-2": (broken, "")}
        self.host.end()
        broken.stdin.close.assert_called_once()

    def test_two_processes_may_remove_the_same_that_is_left(self):
        dead = ["run-999999999-1-1", "run-999999999-1-2"]
        pathlib.Path(self.path(dead[1])).touch()
        with mock.patch.object(host_process.os, "listdir", return_value=dead):  # the other has removed the first
            host_process.forget_dead(self.folder.name)
        self.assertFalse(os.path.exists(self.path(dead[1])))


class Told:
    """What the driver would tell its supervisor."""

    def __init__(self):
        self.news = queue.Queue()

    def __call__(self, *words):
        self.news.put(words)

    def next(self):
        return self.news.get(timeout=HANG)


class FailingSocket:
    """One that listens, and has these errors before it takes a connection."""

    def __init__(self, listening, errors):
        self.listening, self.errors = listening, errors
        self.asked, self.thread = threading.Event(), None

    def accept(self):
        self.thread = threading.current_thread()
        self.asked.set()
        if self.errors:
            raise self.errors.pop(0)
        return self.listening.accept()

    def __getattr__(self, name):
        return getattr(self.listening, name)


class TasksTest(unittest.TestCase):
    """The driver's side and tasks with their agents, over real connections; without Spark in between."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = os.path.join(self.folder.name, "muster")
        self.write_muster("echo begins >&2; cat >/dev/null; echo ends >&2; exit 7")
        self.links = spark_links.Links(KEY)
        self.addCleanup(self.links.close)
        self.tasks = []
        self.ends = []  # of tasks: what they have raised, or None
        self.addCleanup(lambda: [thread.join(HANG) for thread in self.tasks])
        self.addCleanup(self.links.close)

    def write_muster(self, script):
        pathlib.Path(self.program).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        os.chmod(self.program, 0o700)

    def begin(self, partition, attempt, key=KEY):
        part = spark_task.Part(("127.0.0.1", self.links.port), key, self.program, host_process.digest_of(self.program),
                               types.SimpleNamespace(value=b"never"))
        part.own = partition

        def run():
            try:
                part.run(partition, attempt, [])
                self.ends.append(None)
            except Exception as error:
                self.ends.append(error)

        self.tasks.append(threading.Thread(target=run, daemon=True))
        self.tasks[-1].start()
        return self.tasks[-1]

    def starts_on(self, count=1):
        for partition in range(count):
            self.begin(partition, partition)
        self.await_links(count)
        hosts = [spark_links.Host(partition, f"h{partition}") for partition in range(count)]
        starts = spark_links.Starts(self.links, hosts, lambda: "waits for 1 task of Spark at once")
        starts.tell = Told()
        return starts

    def await_links(self, count):
        with self.links.changed:
            self.assertTrue(self.links.changed.wait_for(lambda: len(self.links.links) == count, HANG))

    def start(self, starts, key, host="h0"):
        starts.start(key, host, ["agent", "--serve", f"test-{os.getpid()}"], "the secret\n")

    def test_an_agent_gets_its_words_and_a_file_of_its_own_and_ends_when_it_is_told(self):
        self.write_muster('echo "$@" >&2; while [ "$1" != --rendezvous ]; do shift; done; stat -c %a "$2" >&2; '
                          'read gone; cat "$2" >&2; exit 7')
        starts = self.starts_on()
        self.start(starts, "1-1")
        key, kind, line = starts.tell.next()
        run = f"test-{os.getpid()}"
        self.assertEqual((key, kind), ("1-1", "line"))
        self.assertTrue(line.startswith(f"agent --serve {run} --place {run}-0 --rendezvous /tmp/muster-spark-"), line)
        self.assertTrue(line.endswith("-1-1 --until_closed"), line)
        self.assertEqual(starts.tell.next(), ("1-1", "line", "600"))
        self.assertEqual(self.links.links[0].place, {"name": socket.gethostname(), "address": "127.0.0.1"})
        starts.meet("another supervisor\n")
        starts.end("1-1")
        self.assertEqual(starts.tell.next(), ("1-1", "line", "another supervisor"))
        self.assertEqual(starts.tell.next(), ("1-1", "ended", "exited with 7"))
        self.assertEqual(starts.running, {})
        self.assertFalse(os.path.exists(line.split()[6]))

    def test_an_agent_that_shall_end_at_once_is_killed(self):
        end, asked = host_process.HostProcess.end, []

        def end_or_not(host, key=None, at_once=False):  # it hears nothing but the kill
            asked.append((key, at_once))
            if at_once:
                end(host, key)

        with mock.patch.object(host_process.HostProcess, "end", end_or_not):
            starts = self.starts_on()
            for key in ("1-1", "1-2"):
                self.start(starts, key)
                self.assertEqual(starts.tell.next(), (key, "line", "begins"))
            starts.end("1-2")
            starts.end("1-1", at_once=True)
            self.assertEqual([starts.tell.next()[:2] for _ in range(2)], [("1-1", "line"), ("1-1", "ended")])
            starts.end_all(at_once=True)
            self.assertEqual([starts.tell.next()[:2] for _ in range(2)], [("1-2", "line"), ("1-2", "ended")])
        self.assertEqual(asked, [("1-2", False), ("1-1", True), ("1-2", True)])

    def test_agents_that_dont_end_with_their_task_are_killed(self):
        host = types.SimpleNamespace(running={"1-1": None, "1-2": None})
        asked = []

        def end(at_once=False):
            asked.append(at_once)
            host.running.popitem()  # one each time

        host.end = end
        with mock.patch.object(spark_task, "END_PATIENCE", 0):
            spark_task.TaskLink(host, None, None, {}).end()
            self.assertEqual(asked, [False, True])
            host.running = {"1-3": None}
            spark_task.TaskLink(host, None, None, {}).end()
        self.assertEqual(asked, [False, True, False])

    def test_an_agent_ends_with_the_drivers_connection(self):
        self.write_muster(f"echo begins >&2; cat; touch {self.folder.name}/ended")
        starts = self.starts_on()
        self.start(starts, "1-1")
        self.assertEqual(starts.tell.next(), ("1-1", "line", "begins"))
        self.links.close()
        self.tasks[0].join(HANG)
        self.assertFalse(self.tasks[0].is_alive())
        self.assertTrue(os.path.exists(f"{self.folder.name}/ended"))
        self.assertEqual(self.ends, [None], "the driver has said so")

    def test_a_task_fails_when_its_connection_breaks(self):
        self.write_muster(f"echo begins >&2; cat; touch {self.folder.name}/ended")
        starts = self.starts_on()
        self.start(starts, "1-1")
        self.assertEqual(starts.tell.next(), ("1-1", "line", "begins"))
        self.links.links[0].wire.close()
        self.tasks[0].join(HANG)
        self.assertTrue(os.path.exists(f"{self.folder.name}/ended"), "its agents have ended before it")
        self.assertIsInstance(self.ends[0], ConnectionError)
        self.assertIn("has lost the job's driver: the connection has ended without a word", str(self.ends[0]))

    def test_a_task_of_a_job_that_ends_returns(self):
        self.links.give_up("the job ends")
        self.begin(0, 0).join(HANG)
        self.assertEqual(self.ends, [None])

    def test_a_task_for_which_there_is_no_place_comes_again(self):
        places = self.links.strangers
        answers = [False]
        self.links.strangers = types.SimpleNamespace(
            add=lambda *its: answers.pop() if answers else places.add(*its), remove=places.remove)
        with mock.patch.object(spark_task, "CONNECT_AGAIN", 0):
            self.begin(0, 0)
            self.await_links(1)
        self.assertEqual(answers, [])

    def test_a_driver_that_cant_be_reached_is_said_with_its_address(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = listening.getsockname()
        with mock.patch.object(spark_task, "CONNECT_PATIENCE", -1), self.assertRaises(ConnectionError) as raised:
            spark_task.reach(address, KEY)
        self.assertIn(f"can't reach the job's driver at 127.0.0.1, port {address[1]}: [Errno 111] ", str(raised.exception))

    def test_a_start_that_fails_there_is_said(self):
        starts = self.starts_on()
        os.chmod(self.program, 0o600)  # so the other way is taken, which brings it
        with mock.patch.object(spark_task.SparkHost, "take", side_effect=OSError("No space left")):
            self.start(starts, "1-1")
            self.assertEqual(starts.tell.next(), ("1-1", "ended", "OSError: No space left"))

    def test_a_task_that_goes_ends_its_agents_and_the_next_start_waits_for_the_next_task(self):
        starts = self.starts_on()
        self.start(starts, "1-1")
        self.assertEqual(starts.tell.next(), ("1-1", "line", "begins"))
        self.links.links[0].wire.close()
        self.assertEqual(starts.tell.next(), ("1-1", "ended", spark_links.GONE))
        self.await_links(0)
        with mock.patch.object(spark_links, "LOOK_AGAIN", 0.01):
            self.start(starts, "1-2")
            self.assertEqual(starts.tell.next(), ("1-2", "waits", "waits for 1 task of Spark at once"))
        self.begin(0, 5)
        while (said := starts.tell.next()) != ("1-2", "line", "begins"):
            self.assertEqual(said[1], "waits")
        starts.end_all()
        self.assertEqual([starts.tell.next() for _ in range(2)], [("1-2", "line", "ends"), ("1-2", "ended", "exited with 7")])

    def test_when_spark_gives_up_a_start_that_waits_ends_with_its_words(self):
        starts = self.starts_on()
        self.links.links[0].wire.close()
        self.await_links(0)
        self.start(starts, "1-1")
        self.links.give_up("Spark's stage has ended 4 times in a row")
        self.assertEqual(starts.tell.next(), ("1-1", driver_server.NO_MORE, "Spark's stage has ended 4 times in a row"))
        self.assertEqual(starts.running, {})
        self.start(starts, "1-2", host="h9")
        self.assertEqual(starts.tell.next(), ("1-2", "ended", "the job has no host h9"))

    def test_a_start_that_is_taken_back_while_it_waits_ends(self):
        starts = self.starts_on()
        self.links.links[0].wire.close()
        self.await_links(0)
        self.start(starts, "1-1")
        starts.end("1-1")
        self.assertEqual(starts.tell.next(), ("1-1", "ended", "it isn't wanted any more"))

    def test_the_newest_task_of_a_part_counts(self):
        self.begin(0, 5)
        self.await_links(1)
        self.begin(0, 4).join(HANG)
        self.assertEqual(self.links.links[0].attempt, 5)
        first = self.tasks[0]
        self.begin(0, 6)
        first.join(HANG)
        self.assertFalse(first.is_alive())
        self.assertEqual(self.links.links[0].attempt, 6)

    def test_a_stranger_is_none_of_the_tasks(self):
        self.begin(0, 1, key=b"x" * 32).join(HANG)
        self.assertEqual(self.links.links, {})

    def listens(self, errors):
        """Makes the links those of a socket that has these errors first. Returns it."""
        its = FailingSocket(spark_links.Links.listen(None), errors)
        with mock.patch.object(spark_links.Links, "listen", lambda *_: its):
            self.links = spark_links.Links(KEY)
        self.addCleanup(self.links.close)
        return its

    def test_a_connection_that_cant_be_taken_isnt_the_last(self):
        with mock.patch.object(spark_links, "ACCEPT_AGAIN", 0):
            its = self.listens([OSError(24, "Too many open files"), OSError(100, "Network is down")])
            self.begin(0, 0)
            self.await_links(1)
        self.assertEqual(its.errors, [])
        self.links.close()
        its.thread.join(HANG)
        self.assertFalse(its.thread.is_alive())

    def test_an_error_is_paused_after_until_the_end(self):
        with mock.patch.object(spark_links, "ACCEPT_AGAIN", 4 * HANG):
            its = self.listens([OSError(24, "Too many open files")] * 1000)
            self.assertTrue(its.asked.wait(HANG))
            self.links.close()
            its.thread.join(HANG)
        self.assertFalse(its.thread.is_alive())
        self.assertEqual(len(its.errors), 999)

    def test_a_connection_without_a_thread_leaves_its_place(self):
        self.enterContext(mock.patch.object(spark_links, "MOST_STRANGERS", 1))
        begin, tried = threading.Thread.start, []

        def start(thread):
            if thread._target == self.links.serve and not tried:
                tried.append(thread)
                raise RuntimeError("can't start new thread")
            begin(thread)

        with mock.patch.object(threading.Thread, "start", start), mock.patch.object(spark_task, "CONNECT_AGAIN", 0):
            self.begin(0, 0)
            self.await_links(1)
        self.assertEqual(len(tried), 1)

    def test_a_connection_that_is_gone_at_once_leaves_its_place(self):
        here, there = socket.socketpair()
        self.addCleanup(there.close)
        self.links.strangers.add(here, "10.0.0.1")
        with mock.patch.object(spark_links, "Wire", side_effect=OSError(22, "Invalid argument")):
            self.links.serve(here, "10.0.0.1")
        self.assertEqual(self.links.strangers.known, {})
        self.assertEqual(here.fileno(), -1)

    def test_strangers_who_say_nothing_keep_no_task_out(self):
        silent = []
        with mock.patch.object(spark_links, "MOST_STRANGERS", 2), mock.patch.object(spark_links, "SLOW", 0):
            for _ in range(2):
                silent.append(socket.create_connection(("127.0.0.1", self.links.port)))
                self.addCleanup(silent[-1].close)
                self.assertEqual(len(silent[-1].recv(33)), 33, "its place is taken")
            self.begin(0, 0)
            self.await_links(1)
        self.assertEqual(silent[0].recv(1), b"", "the oldest has made room")

    def test_the_address_with_most_strangers_makes_room_once_its_oldest_is_slow(self):
        strangers, hung_up = spark_links.Strangers(), []
        with mock.patch.object(spark_links, "MOST_STRANGERS", 3), mock.patch.object(spark_links, "hang_up", hung_up.append), \
                mock.patch.object(spark_links.time, "monotonic", side_effect=[0, 1, 2, 1.9, 2.5]):
            taken = [strangers.add(*one) for one in (("a", "h1"), ("b", "h2"), ("c", "h2"), ("d", "h3"), ("e", "h3"))]
        self.assertEqual((taken, hung_up), ([True, True, True, False, True], ["b"]))

    def test_only_these_ports_are_used(self):
        taken = self.links.port
        with self.assertRaises(driver_server.NoHosts) as raised:
            spark_links.Links(KEY, [taken, 1])
        self.assertIn(f"none of the ports {taken}-{taken} (ports) is free here", str(raised.exception))
        self.assertIn("[Errno 98] ", str(raised.exception))

    def test_a_driver_that_cant_listen_says_why(self):
        with mock.patch.object(socket, "socket", side_effect=OSError(24, "Too many open files")), \
                self.assertRaises(driver_server.NoHosts) as raised:
            spark_links.Links(KEY)
        self.assertEqual(str(raised.exception),
                         "the job's driver can't listen for the tasks of Spark: [Errno 24] Too many open files")


class PlayedSpark:
    """As much of Spark's context as the cluster asks."""

    def __init__(self, slots=(), stages=()):
        self.left, self.stages, self.stopped = list(slots), list(stages), False
        self.calls = []
        self._jsc = types.SimpleNamespace(sc=lambda: self)

    def getConf(self):  # noqa: N802
        return {"spark.driver.host": "h1"}

    def isStopped(self):  # noqa: N802
        return self.stopped

    def resourceProfileManager(self):  # noqa: N802
        return types.SimpleNamespace(defaultResourceProfile=lambda: None)

    def maxNumConcurrentTasks(self, _profile):  # noqa: N802
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def parallelize(self, rows, parts):
        self.calls.append(parts)
        return self

    def barrier(self):
        return self

    def mapPartitions(self, _part):  # noqa: N802
        return self

    def collect(self):
        end = self.stages.pop(0)
        if callable(end):
            return end()
        raise end

    def cancelAllJobs(self):  # noqa: N802
        self.calls.append("cancel")

    def stop(self):
        self.calls.append("stop")


class PlayedLinks:
    def __init__(self):
        self.links, self.given_up = {}, ""
        self.changed = threading.Condition()

    def give_up(self, why):
        self.given_up = self.given_up or why

    def close(self):
        self.give_up("the job ends")


@mock.patch.object(spark_cluster, "LOOK", 0)
class ClusterTest(unittest.TestCase):
    def cluster(self, spark=None, **more):
        self.said, self.waited, self.answered = [], [], []
        cluster = spark_cluster.Cluster(asked(**more), self.said.append, self.waited.append)
        cluster.context, cluster.links = spark, PlayedLinks()
        cluster.until = time.monotonic() + HANG
        return cluster

    def hangs(self):
        """Returns a function that a JVM doesn't answer while the test waits for it."""
        free = threading.Event()
        self.addCleanup(free.set)
        return lambda *_: self.answered.append(free.wait(HANG))

    def why_not(self, function, *words):
        with self.assertRaises(driver_server.NoHosts) as raised:
            function(*words)
        return str(raised.exception)

    def test_slots_that_come_are_waited_for_and_both_numbers_are_printed(self):
        cluster = self.cluster(PlayedSpark(slots=[0, 1, 2]))
        cluster.begin_stage = lambda: None
        waits = []
        cluster.await_group(waits.append)
        self.assertEqual(waits, ["waits for 2 tasks of Spark at once; now there are 0 of 2 slots",
                                 "waits for 2 tasks of Spark at once; now there is 1 of 2 slots"])
        self.assertEqual(self.said, ["muster: Spark has 2 of 2 slots; dynamic allocation is off"])

    def begin_with(self, slots, ends_at=600, **more):
        """Waits for the slots of a job that can begin with two tasks of three. `slots`: those that there are from a second on,
        [(second, slots)]. Returns the cluster, and when its stage has begun."""
        clock = types.SimpleNamespace(now=0)

        def pass_by(_seconds):
            clock.now += 1

        spark = PlayedSpark()
        spark.maxNumConcurrentTasks = lambda _profile: [count for since, count in slots if since <= clock.now][-1]
        cluster = self.cluster(spark, **{"nodes": 3, "least_nodes": 2, **more})
        cluster.until, began = ends_at, []
        cluster.begin_stage = lambda: began.append(clock.now)
        cluster.ask = lambda work, _until: work()
        with mock.patch.object(spark_cluster, "time", types.SimpleNamespace(monotonic=lambda: clock.now, sleep=pass_by)):
            cluster.await_group(self.waited.append)
        return cluster, began

    def test_the_stage_begins_with_the_least_number_when_there_have_been_such_slots_for_some_time(self):
        cluster, began = self.begin_with([(0, 1), (3, 2), (5, 1), (7, 2)])
        self.assertEqual(began, [17])
        self.assertEqual(cluster.says, "begins with 2 of 3 tasks of Spark, as nobody waits for that of the evaluator: "
                                       "there are 2 of 3 slots now")
        self.assertEqual(self.said, ["muster: Spark has 2 of 3 slots; dynamic allocation is off"])
        self.assertEqual(set(self.waited), {"waits for 3 tasks of Spark at once; now there is 1 of 3 slots",
                                            "waits for 3 tasks of Spark at once; now there are 2 of 3 slots"})
        self.assertEqual(cluster.parts, 2)

    def test_all_slots_that_come_within_that_time_are_taken(self):
        cluster, began = self.begin_with([(0, 2), (9, 3)])
        self.assertEqual((began, cluster.says, cluster.parts), ([9], "", 3))

    def test_a_job_that_needs_all_slots_waits_for_them(self):
        cluster, began = self.begin_with([(0, 2), (99, 3)], least_nodes=3)
        self.assertEqual((began, cluster.says, cluster.parts), ([99], "", 3))

    def test_its_tasks_have_half_of_the_time_for_the_start_to_connect(self):
        self.assertEqual(self.begin_with([(0, 0), (20, 2)], ends_at=32)[1], [26])

    def test_all_lives_of_the_stage_and_the_hosts_are_as_many_as_it_has_begun_with(self):
        cluster, _ = self.begin_with([(0, 2)])
        spark = cluster.context = PlayedSpark(slots=[2], stages=[Exception("a")] * spark_cluster.LIVES)
        cluster.run_stage(None)
        self.assertEqual(spark.calls, [2] * spark_cluster.LIVES)
        cluster.links = PlayedLinks()
        for partition in range(2):
            cluster.links.links[partition] = types.SimpleNamespace(place={"name": f"h{partition}", "address": "10.0.0.1"})
        self.assertEqual([host.name for host in cluster.hosts()[0]], ["h0", "h1"])
        del cluster.ask
        spark.left = [1]
        self.assertEqual(cluster.waits_now(), "waits for 2 tasks of Spark at once; now there is 1 of 2 slots")

    def test_it_begins_at_once_where_there_can_never_be_all_slots(self):
        cluster = self.cluster(PlayedSpark(slots=[1, 2]), nodes=3, least_nodes=2)
        self.assertEqual(self.connect(cluster, {"spark.master": "local-cluster[2,1,1024]"}), ("", 1))
        cluster.begin_stage = lambda: None
        waits = []
        cluster.await_group(waits.append)
        says = ("begins with 2 of 3 tasks of Spark, as nobody waits for that of the evaluator: Spark can never run 3 tasks at once: "
                "local-cluster[2,1,1024] has 2 executors with 1 core each and spark.task.cpus 1, so there are 2 slots")
        self.assertEqual((cluster.says, cluster.parts), (says, 2))
        self.assertEqual(waits, [f"waits for 2 tasks of Spark at once; now there is 1 of 2 slots; it {says}"])
        why, began = self.connect(self.cluster(nodes=3, least_nodes=2), {"spark.master": "local-cluster[1,1,1024]"})
        self.assertIn("Spark can never run 3 tasks at once: local-cluster[1,1,1024] has 1 executor", why)
        self.assertIn("so there is 1 slot; ask for fewer", why)
        self.assertEqual(began, 0)

    def test_slots_that_dont_come_end_it_with_both_numbers(self):
        cluster = self.cluster(PlayedSpark(slots=[1]))
        cluster.until = 0
        with self.assertRaises(driver_server.NoHosts) as raised:
            cluster.await_group(lambda why: None)
        self.assertIn("Spark has given 1 of 2 slots within 60 s (spark: start_timeout)", str(raised.exception))

    def test_an_application_that_spark_ends_is_said(self):
        spark = PlayedSpark(slots=[0])
        spark.stopped = True
        with self.assertRaises(driver_server.NoHosts) as raised:
            self.cluster(spark).await_group(lambda why: None)
        self.assertIn("Spark has ended the job's application", str(raised.exception))

    @mock.patch.object(spark_cluster, "ANSWER_PATIENCE", 0)
    def test_a_jvm_that_hangs_ends_what_waits_for_it(self):
        spark = PlayedSpark(slots=[1])
        cluster = self.cluster(spark, start_timeout=-1)
        cluster.until = 0
        spark.maxNumConcurrentTasks = self.hangs()
        self.assertEqual(self.why_not(cluster.await_group, self.fail), spark_texts.JVM_HANGS)
        self.assertEqual(cluster.waits_now(), f"waits for Spark, which doesn't answer: {spark_texts.JVM_HANGS}")
        self.assertFalse(cluster.await_slots())
        self.assertEqual(cluster.links.given_up, spark_texts.JVM_HANGS)
        spark.addPyFile = self.hangs()
        with mock.patch.object(spark_cluster, "Links", return_value=types.SimpleNamespace(port=1)):
            self.assertEqual(self.why_not(cluster.begin_stage), spark_texts.JVM_HANGS)
        self.assertIsNone(cluster.stage)

    def test_a_jvm_that_hangs_while_starts_wait_counts_as_dead_after_the_timeout(self):
        spark = PlayedSpark(slots=[1])
        cluster = self.cluster(spark, start_timeout=60)
        waits = f"waits for Spark, which doesn't answer: {spark_texts.JVM_HANGS}"
        seconds = [0]
        hangs, answers = self.hangs(), spark.maxNumConcurrentTasks
        with mock.patch.object(spark_cluster, "time", types.SimpleNamespace(monotonic=lambda: seconds[0])):
            for now, does, given_up in ((100, hangs, ""), (159, hangs, ""), (161, answers, ""), (200, hangs, ""),
                                        (259, hangs, ""), (260, hangs, spark_texts.JVM_HANGS)):
                spark.maxNumConcurrentTasks, seconds[0] = does, now
                with mock.patch.object(spark_cluster, "ANSWER_PATIENCE", 0 if does is hangs else HANG):
                    said = cluster.waits_now()
                self.assertEqual(said == waits, does is hangs, said)
                self.assertEqual(cluster.links.given_up, given_up)

    def test_the_silence_of_a_jvm_ends_with_any_answer(self):
        """The stage has begun anew since, and so the start that was in vain has had its task, without another question."""
        spark = PlayedSpark(slots=[2])
        cluster = self.cluster(spark, start_timeout=60)
        seconds = [100]
        hangs, answers = self.hangs(), spark.maxNumConcurrentTasks
        with mock.patch.object(spark_cluster, "time", types.SimpleNamespace(monotonic=lambda: seconds[0])):
            for now in (100, 1000):
                spark.maxNumConcurrentTasks, seconds[0] = hangs, now
                with mock.patch.object(spark_cluster, "ANSWER_PATIENCE", 0):
                    cluster.waits_now()
                self.assertEqual(cluster.links.given_up, "")
                spark.maxNumConcurrentTasks = answers
                self.assertTrue(cluster.await_slots())

    def test_a_slow_answer_is_none_of_a_jvm_that_hangs(self):
        """Spark takes longer than the rest of the time for the start."""
        spark = PlayedSpark(slots=[2])
        cluster = self.cluster(spark)
        free = threading.Event()
        seconds = [100, 100]  # when it is asked, and when the answer isn't there yet

        def now():
            if seconds:
                return seconds.pop()
            free.set()
            return 100 + spark_cluster.ANSWER_PATIENCE - 1

        spark.isStopped = lambda: not free.wait(HANG)
        cluster.until = 101
        cluster.begin_stage = lambda: None
        with mock.patch.object(spark_cluster, "time", types.SimpleNamespace(monotonic=now, sleep=lambda _: None)):
            cluster.await_group(lambda why: None)
        self.assertEqual(self.said, ["muster: Spark has 2 of 2 slots; dynamic allocation is off"])

    def test_a_jvm_that_dies_before_the_stage_is_the_reason(self):
        spark = PlayedSpark(slots=[1])
        cluster = self.cluster(spark)
        cluster.jvm = types.SimpleNamespace(await_end=lambda seconds: seconds == spark_cluster.DEATH_PATIENCE)
        spark.maxNumConcurrentTasks = mock.Mock(side_effect=Exception("Answer from Java side is empty"))
        died = "Spark's JVM has died: Answer from Java side is empty; spark.log in the experiment's folder may say why"
        self.assertEqual(self.why_not(cluster.await_group, self.fail), died)
        self.assertEqual(cluster.waits_now(), f"waits for Spark, which doesn't answer: {died}")

    def test_what_tasks_need_and_spark_doesnt_take_is_the_reason(self):
        with tempfile.NamedTemporaryFile() as muster, \
                mock.patch.object(spark_cluster, "Links", return_value=types.SimpleNamespace(port=1)):
            spark = PlayedSpark()
            cluster = self.cluster(spark, muster=muster.name)
            spark.addPyFile = mock.Mock()
            spark.broadcast = mock.Mock(side_effect=OSError(28, "No space left on device"))
            self.assertEqual(self.why_not(cluster.begin_stage),
                             "Spark can't go on with the job: [Errno 28] No space left on device")
            self.assertEqual([os.path.basename(call.args[0]) for call in spark.addPyFile.call_args_list],
                             ["host_process.py", "spark_wire.py", "spark_task.py"])
            spark.addPyFile.side_effect = Exception(": java.lang.IllegalStateException: a stopped SparkContext\n\tat x")
            self.assertEqual(self.why_not(cluster.begin_stage),
                             "Spark can't go on with the job: IllegalStateException: a stopped SparkContext")

    def test_a_stage_that_ends_begins_again_three_times(self):
        lost = Exception("org.apache.spark.SparkException: ExecutorLostFailure (executor 1)")
        spark = PlayedSpark(slots=[0, 2], stages=[lost] * 4)
        cluster = self.cluster(spark)
        cluster.run_stage(None)
        self.assertEqual(spark.calls, [2] * 4)
        self.assertEqual(len(self.said), 3)
        self.assertIn("Spark's stage has ended, and begins again: SparkException: ExecutorLostFailure (executor 1)", self.said[0])
        self.assertTrue(cluster.links.given_up.startswith("Spark's stage has ended 4 times in a row: "), cluster.links.given_up)

    def test_a_stage_that_has_lived_long_doesnt_count(self):
        spark = PlayedSpark(slots=[2], stages=[Exception("a")] * 6)
        cluster = self.cluster(spark)
        with mock.patch.object(spark_cluster, "STEADY", -1):
            spark.stages.append(lambda: cluster.links.give_up("the job ends"))
            cluster.run_stage(None)
        self.assertEqual((spark.calls, cluster.links.given_up), ([2] * 7, "the job ends"))

    def test_slots_that_dont_come_again_end_it(self):
        spark = PlayedSpark(slots=[1], stages=[Exception("a")])
        cluster = self.cluster(spark, start_timeout=-1)
        cluster.run_stage(None)
        self.assertIn("Spark has given 1 of 2 slots", cluster.links.given_up)

    def test_a_jvm_that_has_died_ends_it(self):
        spark = PlayedSpark(stages=[Exception("Answer from Java side is empty")])
        spark.isStopped = mock.Mock(side_effect=ConnectionRefusedError("refused"))
        cluster = self.cluster(spark)
        with mock.patch.object(cluster.jvm, "await_end", return_value=True):
            cluster.run_stage(None)
        self.assertIn("Spark's JVM has died: refused; ", cluster.links.given_up)

    def test_hosts_have_different_names(self):
        cluster = self.cluster()
        for partition, address in ((1, "10.0.0.2"), (0, "10.0.0.1")):
            place = {"name": "worker" if partition else "a", "address": address}
            cluster.links.links[partition] = types.SimpleNamespace(place=place)
        hosts, addresses = cluster.hosts()
        self.assertEqual([(host.partition, host.name) for host in hosts], [(0, "a"), (1, "worker")])
        self.assertEqual(addresses, ["10.0.0.1", "10.0.0.2"])

    def test_tasks_that_dont_reach_the_driver_end_it(self):
        cluster = self.cluster()
        cluster.until = 0
        with self.assertRaises(driver_server.NoHosts) as raised:
            cluster.hosts()
        self.assertIn("0 of 2 tasks of Spark have reached the job's driver within 60 s", str(raised.exception))
        cluster.links.give_up("Spark has ended it")
        with self.assertRaises(driver_server.NoHosts) as raised:
            cluster.hosts()
        self.assertEqual(str(raised.exception), "Spark has ended it")

    def connect(self, cluster, settings, begin=lambda _settings: None, attach=None):
        its = types.SimpleNamespace(getAll=lambda: list(settings.items()))
        with mock.patch.object(spark_cluster, "find_pyspark"), mock.patch.object(spark_cluster, "find_home"), \
                mock.patch.dict(os.environ), mock.patch.object(cluster.jvm, "start", return_value=(5000, "s3cret")), \
                mock.patch.object(cluster, "attach", side_effect=attach or (lambda _port, _secret: its)), \
                mock.patch.object(cluster, "begin", side_effect=begin) as began:
            try:
                cluster.connect()
                return "", began.call_count
            except driver_server.NoHosts as why:
                return str(why), began.call_count

    def test_settings_are_looked_at_before_there_is_an_application(self):
        why, began = self.connect(self.cluster(), {"spark.master": "yarn", "spark.dynamicAllocation.enabled": "true"})
        self.assertIn("barrier mode takes no dynamic allocation", why)
        self.assertEqual(began, 0)
        self.assertEqual(self.connect(self.cluster(), {"spark.master": "yarn"}), ("", 1))
        self.assertEqual(self.waited, ["waits for Spark's JVM to start", "waits for Spark at spark://h1:7077 to begin the job's application"])

    def test_what_spark_refuses_is_said_with_its_words(self):
        cluster = self.cluster()

        def refuse(_settings):
            raise Exception(": org.apache.hadoop.security.AccessControlException: no permission\n\tat x")

        why, _ = self.connect(cluster, {"spark.master": "yarn"}, refuse)
        self.assertEqual(why, "Spark refuses it: AccessControlException: no permission")

    def test_a_cluster_with_another_secret_is_named_as_that(self):
        stale = "javax.security.sasl.SaslException: an earlier attempt's\n"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        log = pathlib.Path(folder.name, "spark.log")
        log.write_text(stale, encoding="utf-8")

        free = threading.Event()
        self.addCleanup(free.set)

        def why_after(lines, goes_on=False, master="spark://h1:7077"):
            cluster = self.cluster(folder=folder.name)

            def begin(_settings):
                with log.open("a", encoding="utf-8") as file:
                    file.write(lines)
                if goes_on:
                    free.wait()
                raise Exception(": java.lang.IllegalStateException: a stopped SparkContext\n\tat x")

            with mock.patch.object(spark_cluster, "LOOK", 0 if goes_on else HANG):  # the one or the other finds it
                return self.connect(cluster, {"spark.master": master}, begin)[0]

        self.assertEqual(why_after("WARN nothing\n"), "Spark refuses it: IllegalStateException: a stopped SparkContext")
        said = ("Spark at spark://h1:7077 doesn't have the secret of this job: spark.authenticate and spark.authenticate.secret "
                "(spark: conf) must be those of the cluster ")
        mismatch = "Caused by: javax.security.sasl.SaslException: DIGEST-MD5: Mismatched response.\n\tat x\n"
        self.assertEqual(why_after(mismatch), said + "(SaslException: DIGEST-MD5: Mismatched response.)")
        self.assertIn("Spark refuses it: ", why_after(mismatch, master="yarn"))
        self.assertIn("Spark refuses it: ", why_after(""), "what is left of earlier attempts")
        none = "java.lang.IllegalStateException: Expected SaslMessage, received something else (maybe …)\n"
        self.assertEqual(why_after(none, goes_on=True), said + "(Expected SaslMessage, received something else (maybe …))")

    def test_a_queue_that_never_begins_ends_it(self):
        free = threading.Event()
        self.addCleanup(free.set)
        cluster = self.cluster()

        def wait(*_):
            cluster.until = 0
            free.wait()

        why, _ = self.connect(cluster, {"spark.master": "yarn"}, begin=wait)
        self.assertIn("hasn't begun the job's application within 60 s (spark: start_timeout)", why)
        cluster = self.cluster()
        why, began = self.connect(cluster, {}, attach=wait)
        self.assertIn("Spark's JVM hasn't started within 60 s (spark: start_timeout)", why)
        self.assertEqual(began, 0)

    def test_the_workers_have_the_jobs_python(self):
        with mock.patch.object(spark_cluster, "find_pyspark"), mock.patch.object(spark_cluster, "find_home"), \
                mock.patch.dict(os.environ, {"SPARK_REMOTE": "sc://x"}):
            os.environ.pop("PYSPARK_PYTHON", None)
            cluster = self.cluster(python="/opt/python", conf={})
            with mock.patch.object(cluster.jvm, "start", side_effect=OSError("a")), self.assertRaises(driver_server.NoHosts):
                cluster.connect()
            self.assertEqual(os.environ["PYSPARK_PYTHON"], "/opt/python")
            self.assertNotIn("SPARK_REMOTE", os.environ)

    def test_the_end_doesnt_hang_on_a_stage_that_doesnt_end(self):
        spark = PlayedSpark()
        cluster = self.cluster(spark)
        cluster.stage = mock.Mock(is_alive=lambda: True)
        cluster.end()
        cluster.stage.join.assert_called_once_with(spark_cluster.END_PATIENCE)
        self.assertEqual(spark.calls, ["cancel", "stop"])

    def test_the_end_comes_to_a_jvm_that_hangs(self):
        for name in ("cancelAllJobs", "stop"):
            spark = PlayedSpark()
            cluster = self.cluster(spark)
            cluster.stage, cluster.jvm, cluster.gateway = mock.Mock(is_alive=lambda: True), mock.Mock(), mock.Mock()
            setattr(spark, name, self.hangs())
            with mock.patch.object(spark_cluster, "END_PATIENCE", 0):
                cluster.end()
            cluster.jvm.end.assert_called_once_with(0)
            self.assertEqual(self.answered, [])


class JvmTest(unittest.TestCase):
    """A spark-submit that holds a pipe for as long as it, or a child of it, lives."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name
        os.mkdir(self.home + "/bin")
        os.mkfifo(self.home + "/lives")
        self.pipe = os.open(self.home + "/lives", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, self.pipe)
        self.jvm = spark_jvm.Jvm()

    def submits(self, script):
        path = pathlib.Path(self.home, "bin/spark-submit")
        path.write_text(f"#!/bin/sh\nexec 9>{self.home}/lives\n{script}\n", encoding="utf-8")
        path.chmod(0o700)

    def next(self):
        """Returns what has been written into the pipe; empty: nobody is left that could."""
        self.assertTrue(select.select([self.pipe], [], [], HANG)[0], "something is left of it")
        return os.read(self.pipe, 100)

    def start(self, now=time.monotonic):
        with mock.patch.object(spark_jvm, "time", types.SimpleNamespace(monotonic=now, sleep=lambda _: None)):
            return self.jvm.start(self.home, ["--master", "yarn"], HANG, 60)

    def why_not(self, **more):
        with self.assertRaises(driver_server.NoHosts) as raised:
            self.start(**more)
        return str(raised.exception)

    def test_one_that_tells_where_it_listens_ends_with_its_stdin(self):
        self.submits("told=$_PYSPARK_DRIVER_CONN_INFO_PATH; printf '\\000\\000\\023\\210\\000\\000\\000\\003abc' >$told.new; "
                     "mv $told.new $told; read line; echo $* >&9")
        self.assertEqual(self.start(now=lambda: 0), (5000, "abc"))
        self.jvm.end(HANG)
        self.assertEqual(self.next(), b"--master yarn\n")
        self.assertEqual(self.next(), b"")

    def test_one_that_hangs_ends_with_its_children(self):
        self.submits("sleep 1000 & echo hangs >&9; wait")
        times = [0]

        def now():
            if times[0] == 0 and select.select([self.pipe], [], [], 0)[0]:
                times[0] = HANG
            return times[0]

        self.assertEqual(self.why_not(now=now), spark_texts.why_jvm_late(60))
        self.jvm.end(0)
        self.assertEqual(self.next(), b"hangs\n")
        self.assertEqual(self.next(), b"")

    def test_whether_one_has_died_may_be_asked_at_any_time(self):
        self.assertFalse(self.jvm.await_end(0), "it was never started")
        self.submits("sleep 1000")
        self.assertEqual(self.why_not(now=iter([0, HANG]).__next__), spark_texts.why_jvm_late(60))
        self.assertFalse(self.jvm.await_end(0))
        os.killpg(self.jvm.program.pid, signal.SIGKILL)
        self.assertTrue(self.jvm.await_end(HANG))
        self.jvm.end(0)
        self.assertTrue(self.jvm.await_end(0), "it is reaped")

    def test_one_that_ends_at_once_leaves_nothing(self):
        self.submits("sleep 1000 & exit 1")
        self.assertEqual(self.why_not(now=lambda: 0), spark_texts.NO_JVM)
        self.jvm.end(0)
        self.assertEqual(self.next(), b"")

    def driver(self):
        """Starts the driver of a job whose spark-submit hangs."""
        wants = asked(start_timeout=HANG, output=self.home + "/out", folder=self.home, waits=self.home + "/waits", umask=0o22)
        program = (f"import json, sys; sys.path[:0] = {sys.path[:2]!r}; import spark_cluster, spark_driver;"
                   "spark_cluster.find_pyspark = lambda: ''; spark_driver.Driver(json.loads(sys.argv[1]), 'h-1-1', None).run()")
        process = subprocess.Popen([sys.executable, "-Bc", program, json.dumps(wants)], stdout=subprocess.DEVNULL,
                                   env={**os.environ, "SPARK_HOME": self.home})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(self.poll().startswith(b"hangs"))
        return process

    def poll(self):
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)  # without the end that a pipe has before anybody writes
        while (found := poll.poll(HANG * 1000)) and not found[0][1] & select.POLLIN:
            pass
        return os.read(self.pipe, 100)

    def test_a_signal_is_heard_once_there_is_something_to_end(self):
        self.submits("echo begins >&9; exec sleep 1000")
        popen = subprocess.Popen

        def told_to_end_meanwhile(*words, **options):
            os.kill(os.getpid(), signal.SIGTERM)
            return popen(*words, **options)

        def on_signal(_number, _frame):
            raise SystemExit

        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, on_signal))
        with mock.patch.object(subprocess, "Popen", told_to_end_meanwhile), self.assertRaises(SystemExit):
            self.start()
        status = pathlib.Path(f"/proc/{self.jvm.program.pid}/status").read_text(encoding="ascii")
        self.assertIn("\nSigBlk:\t0000000000000000\n", status)
        self.assertEqual(self.poll(), b"begins\n")
        self.jvm.end(0)
        self.assertEqual(self.next(), b"")

    def test_a_driver_that_is_told_to_end_while_it_hangs_ends_it(self):
        self.submits("sleep 1000 & echo hangs >&9; trap '' TERM; wait; wait")
        driver = self.driver()
        self.assertEqual(pathlib.Path(self.home, "waits").read_text(encoding="utf-8"), "waits for Spark's JVM to start")
        driver.send_signal(signal.SIGTERM)
        self.assertEqual(driver.wait(HANG), 128 + signal.SIGTERM)
        self.assertEqual(self.next(), b"")

    def test_it_ends_with_a_driver_that_is_killed(self):
        self.submits("echo hangs >&9; exec sleep 1000")
        driver = self.driver()
        driver.kill()
        driver.wait(HANG)
        self.assertEqual(self.next(), b"")


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def why_not(self, function, *words):
        with self.assertRaises(spark_client.Failure) as raised:
            function(*words)
        return raised.exception.kind, raised.exception.text

    def test_addresses_are_those_of_spark(self):
        for address in ("-", "local[2]", "local-cluster[2,1,1024]", "k8s://https://h:443"):
            spark_client.check_address(address)
        for address in ("h1:7077", "spark://h1", "spark://h1:", "spark://:7077", "spark://h1:x", "spark://h1:70777", "spark://h1:7077,h2"):
            kind, text = self.why_not(spark_client.check_address, address)
            self.assertEqual(kind, "refused", address)
            self.assertIn(f"'{address}'", text)
        with mock.patch.dict(os.environ, {"HADOOP_CONF_DIR": "", "YARN_CONF_DIR": ""}):
            self.assertIn("HADOOP_CONF_DIR", self.why_not(spark_client.check_address, "yarn")[1])
            os.environ["YARN_CONF_DIR"] = "/etc/hadoop"
            spark_client.check_address("yarn")

    def test_a_master_that_doesnt_answer_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            spark_client.check_address(f"spark://127.0.0.1:{port}")
        kind, text = self.why_not(spark_client.check_address, f"spark://127.0.0.1:{port}")
        self.assertEqual(kind, "unreachable")
        self.assertIn(f"127.0.0.1:{port}: ", text)
        with mock.patch.object(socket, "getaddrinfo", side_effect=socket.gaierror(-2, "Name or service not known")):
            kind, text = self.why_not(spark_client.check_address, "spark://nowhere:7077,[::1]:7077")
        self.assertEqual(kind, "unreachable")
        for master in ("nowhere:7077: ", "[::1]:7077: "):
            self.assertIn(f"{master}[Errno -2] Name or service not known", text)

    def test_a_name_server_that_doesnt_answer_isnt_waited_for(self):
        answers = threading.Event()
        self.addCleanup(answers.set)
        with mock.patch.object(socket, "getaddrinfo", side_effect=lambda *_, **__: answers.wait() and []), \
                mock.patch.object(spark_client, "PATIENCE", 0.01):
            self.assertEqual(self.why_not(spark_client.check_address, "spark://h1:7077"),
                             ("unreachable", "h1:7077: no answer within 0.01 s"))

    def test_java_and_pyspark_must_be_there(self):
        with mock.patch.dict(os.environ, {"JAVA_HOME": self.folder.name}):
            self.assertEqual(self.why_not(spark_client.find_java), ("no_java", f"JAVA_HOME is {self.folder.name}, and has no bin/java"))
        with mock.patch.dict(os.environ, {"JAVA_HOME": "", "PATH": self.folder.name}):
            self.assertEqual(self.why_not(spark_client.find_java), ("no_java", "there is no java in PATH"))
        with mock.patch.dict(os.environ, {"SPARK_HOME": self.folder.name}), \
                mock.patch.object(spark_client.importlib.util, "find_spec", return_value=None):
            kind, text = self.why_not(spark_client.find_pyspark)
        self.assertEqual(kind, "no_spark")
        self.assertIn(f"nor has SPARK_HOME ({self.folder.name})", text)
        self.assertIn("accepted: Spark 3.4 or newer", self.why_not(spark_client.check_version, "3.3.2")[1])
        spark_client.check_version("4.0.0.dev1")

    def test_an_empty_spark_home_is_none(self):
        with mock.patch.dict(os.environ, {"SPARK_HOME": ""}), mock.patch.object(spark_client.importlib.util, "find_spec"):
            spark_client.find_pyspark()
            self.assertNotIn("SPARK_HOME", os.environ)

    def test_the_pyspark_of_spark_home_is_found(self):
        package = pathlib.Path(self.folder.name, "python/pyspark")
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "version.py").write_text('__version__: str = "3.5.1"\n', encoding="utf-8")
        pathlib.Path(self.folder.name, "python/lib").mkdir()
        pathlib.Path(self.folder.name, "python/lib/py4j-0.10.9-src.zip").touch()
        submit = pathlib.Path(self.folder.name, "bin/spark-submit")
        submit.parent.mkdir()
        with mock.patch.dict(os.environ, {"SPARK_HOME": self.folder.name}), mock.patch.object(sys, "path", list(sys.path)):
            found = spark_client.find_pyspark()
            kind, text = self.why_not(spark_client.find_home, found)
            self.assertEqual(kind, "refused")
            self.assertIn(f"SPARK_HOME ({self.folder.name}) is no installation of Spark, as it has no bin/spark-submit", text)
            submit.touch(mode=0o700)
            self.assertEqual(spark_client.find_home(found), self.folder.name)
        self.assertEqual((found, spark_client.version_of(found)), (str(package), "3.5.1"))

    def test_sparks_own_programs_belong_to_the_pyspark_that_is_found(self):
        package = os.path.join(self.folder.name, "python/pyspark")
        with mock.patch.dict(os.environ, {"SPARK_HOME": ""}):
            self.assertEqual(self.why_not(spark_client.find_home, package)[0], "no_spark")
            for home in (self.folder.name, package, package + "/spark-distribution"):
                os.makedirs(home + "/bin")
                pathlib.Path(home, "bin/spark-submit").touch(mode=0o700)
                self.assertEqual(spark_client.find_home(package), home)

    def test_a_job_is_a_process_of_its_own_that_is_found_by_its_id(self):
        script = pathlib.Path(self.folder.name, "job.sh")
        os.mkfifo(self.folder.name + "/gate")
        script.write_text("#!/bin/sh\necho begins after $1\nread line <gate\n", encoding="utf-8")
        with mock.patch.object(spark_client, "check"):
            job = spark_client.submit("-", str(script), "a:b")["id"]
        pid = int(job.split("-")[-2])
        self.assertTrue(spark_client.lives(job))
        self.assertEqual(os.getsid(pid), pid)
        self.assertFalse(spark_client.lives(job + "0"), "another process with this number")
        self.assertFalse(spark_client.lives("elsewhere-" + job.split("-", job.count("-") - 1)[-1]))
        with open(self.folder.name + "/gate", "w", encoding="utf-8"):
            pass
        os.waitpid(pid, 0)
        self.assertFalse(spark_client.lives(job))
        self.assertEqual(pathlib.Path(self.folder.name, "spark.log").read_text(encoding="utf-8"), "begins after a:b\n")

    def test_its_answers_are_json(self):
        words = [sys.executable, str(ENGINES / "spark/spark_client.py"), "check", "h1"]
        said = subprocess.run(words, capture_output=True, text=True, env={"PATH": "/nowhere", "SPARK_HOME": ""}, check=False)
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn(json.loads(said.stdout)["error"], ("no_spark", "no_java"))


class WaitingTest(unittest.TestCase):
    def test_it_waits_for_other_drivers_until_they_end_or_it_is_freed(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(spark_driver, "PATIENCE_OF_JOBS", 0):
            free = os.path.join(folder, "job_free.h-1-1")
            lives = iter([True, True, False, True])
            waits = []

            def wait(why):
                waits.append(why)
                if len(waits) == 3:
                    pathlib.Path(free).touch()

            with mock.patch.object(spark_driver, "lives", side_effect=lambda job: next(lives, True)):
                spark_driver.await_ends(["a", "b"], free, wait)
        self.assertEqual(waits, ["waits for the end of job a"] * 2 + ["waits for the end of job b"])

    def test_a_driver_has_as_many_descriptors_as_it_may(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] - 1, before[1]))
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as script, mock.patch.object(spark_driver, "Driver") as driver:
            script.write("#SPARK {}\n")
            script.flush()
            driver.return_value.run = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)
            self.assertEqual(spark_driver.main([script.name]), (before[1], before[1]))

    def test_a_driver_that_can_have_no_hosts_tells_the_experiment(self):
        with tempfile.TemporaryDirectory() as folder:
            muster = pathlib.Path(folder, "muster")
            muster.write_text(f'#!/bin/sh\necho "$@" >{folder}/said\nexit 2\n', encoding="utf-8")
            muster.chmod(0o700)
            wants = asked(muster=str(muster), home=folder, folder=folder, output=f"{folder}/out", over=f"{folder}/over",
                          waits=f"{folder}/waits", umask=0o22)
            driver = spark_driver.Driver(wants, "h-1-1", None)
            driver.take_signals = lambda: None
            driver.cluster = mock.Mock(says="", connect=mock.Mock(side_effect=driver_server.NoHosts("there are no slots")))
            with mock.patch("builtins.print"):
                self.assertEqual(driver.run(), 2)
            said = pathlib.Path(folder, "said").read_text(encoding="utf-8")
            self.assertEqual(said, "supervise 1 --in_job spark --refused there are no slots\n")
            driver.cluster.end.assert_called_once_with()


if __name__ == "__main__":
    unittest.main()
