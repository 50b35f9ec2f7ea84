"""A task of the barrier stage that holds a job of Spark: connects to the job's driver and runs agents of muster on this host as
it says. The files spark_task.py, spark_wire.py and host_process.py come to the executors as any file of a Spark program."""

import ctypes
import os
import signal
import socket
import threading
import time

from host_process import DEVICES, HostProcess, one_line
from spark_wire import TASK, Wire, WireError

CONNECT_PATIENCE = 30.0  # seconds to reach the driver
CONNECT_AGAIN = 0.5  # seconds between two attempts
END_PATIENCE = 20.0  # seconds that agents have to end with the task
KILL_PATIENCE = 5.0  # seconds that their guards have, once those that haven't were killed
LOOK = 0.05  # seconds between two looks whether they have ended
PR_SET_PDEATHSIG = 1
# What Spark has set for its Python worker. Two of them are secrets of Spark's.
OF_WORKER = ("PYTHON_WORKER_", "_SPARK_AUTH_SECRET", "SPARK_BUFFER_SIZE", "SPARK_REUSE_WORKER", "SPARK_AUTH_SOCKET_TIMEOUT",
             "SPARK_JOB_ARTIFACT_UUID", "SPARK_SIMPLIFIED_TRACEBACK", "PYTHONUNBUFFERED", "PYTHONHASHSEED")


def own_variables(environment, cores, gpus, hides_gpus):
    """Returns what an agent gets of a worker's variables. `gpus`: the devices that Spark has given the task."""
    own = {name: value for name, value in environment.items() if not name.startswith(OF_WORKER)}
    if own.get("OMP_NUM_THREADS") == str(cores):  # Spark has set it for the worker, which computes nothing
        del own["OMP_NUM_THREADS"]
    if "PYTHONPATH" in own:
        kept = [one for one in own["PYTHONPATH"].split(os.pathsep) if not is_of_spark(one)]
        own["PYTHONPATH"] = os.pathsep.join(kept)
        if not kept:
            del own["PYTHONPATH"]
    if gpus:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    elif hides_gpus:
        # Spark leaves all devices of the host to a task that has asked for none, and gives them to others.
        own.update({name: "" for name in DEVICES if name in own or name == DEVICES[0]})
    return own


def is_of_spark(path):
    return any(sign in path for sign in ("pyspark", "py4j", "spark-core_", "/spark-")) or not path


class SparkHost(HostProcess):
    system = "spark"


class TaskLink:
    """The task's side of its connection to the driver."""

    def __init__(self, host, wire, part, environment):
        self.host = host
        self.wire = wire
        self.part = part
        self.environment = environment
        self.place = ""

    def tell(self, message):
        try:
            self.wire.send(message)
        except OSError:  # whoever reads notices
            pass

    def follow(self):
        """Passes on what happens to the agents."""
        while True:
            for event in self.host.next():
                self.tell(event)

    def serve(self):
        """Does what the driver says, until it says that the job is over."""
        threading.Thread(target=self.follow, daemon=True).start()
        while (wish := self.wire.receive()) is not None:
            if "over" in wish:
                return
            if "start" in wish:
                self.start(wish["start"], wish["arguments"], wish["rendezvous"])
            elif "meet" in wish:
                self.host.meet(wish["meet"])
            elif "at_once" in wish:
                self.host.end(wish["end"], at_once=True)
            elif "end" in wish:
                self.host.end(wish["end"])
        raise WireError("the connection has ended without a word")

    def start(self, key, arguments, rendezvous):
        try:
            if not self.host.muster and not self.host.find(self.part.muster, self.part.digest):
                self.host.take(self.part.digest, self.part.program.value)
            run = arguments[arguments.index("--serve") + 1]
            # Another task of this run may be on the same host.
            named = [*arguments, "--place", f"{run}-{self.part.own}"]
            self.host.launch(key, named, rendezvous, self.environment)
        except Exception as error:  # a full disk, a folder of somebody else: the driver's supervisor says it
            self.tell({"key": key, "ended": one_line(f"{type(error).__name__}: {error}")})

    def end(self):
        """Ends the agents, and kills those that don't: nobody but the task holds them."""
        self.host.end()
        self.await_agents(END_PATIENCE)
        if self.host.running:
            self.host.end(at_once=True)
            self.await_agents(KILL_PATIENCE)

    def await_agents(self, patience):
        until = time.monotonic() + patience
        while self.host.running and time.monotonic() < until:
            time.sleep(LOOK)


def reach(address, key):
    """Connects to the driver at (host, port), and greets it."""
    until = time.monotonic() + CONNECT_PATIENCE
    while True:
        connection = None
        try:
            connection = socket.create_connection(address, timeout=5)
            wire = Wire(connection, key, TASK)
            wire.greet()
            return wire
        except (OSError, WireError) as error:  # a driver that many reach at once hangs up on some
            last = error
            if connection is not None:
                connection.close()
        if time.monotonic() > until:
            raise ConnectionError(
                f"{socket.gethostname()} can't reach the job's driver at {address[0]}, port {address[1]}: {last}; the executors "
                "must reach the driver's host at all ports, or at those of `ports`"
            )
        time.sleep(CONNECT_AGAIN)


class Part:
    """What each task does: a function of a partition's rows, of which there are none to speak of."""

    def __init__(self, address, key, muster, digest, program, cores=1, hides_gpus=True):
        self.address = address  # of the driver: its host, and the port
        self.key = key
        self.muster = muster
        self.digest = digest
        self.program = program  # the file's bytes, as a broadcast variable
        self.cores = cores
        self.hides_gpus = hides_gpus
        self.own = 0  # the number of this task's partition

    def __call__(self, _rows):
        from pyspark import BarrierTaskContext

        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            raise RuntimeError("the executor has died")
        context = BarrierTaskContext.get()
        self.own = context.partitionId()
        gpu = context.resources().get("gpu")
        self.run(self.own, context.taskAttemptId(), list(gpu.addresses) if gpu else [])
        return iter(())

    def run(self, partition, attempt, gpus):
        wire = reach(self.address, self.key)
        link = TaskLink(SparkHost(), wire, self, own_variables(os.environ, self.cores, gpus, self.hides_gpus))
        try:
            wire.send({"here": partition, "attempt": attempt, "name": socket.gethostname()})
            wire.greeted()
            link.serve()
        except (OSError, WireError, ValueError) as error:
            # A partition whose task returns is finished for Spark, and would never come back: so the stage has to fail.
            why = one_line(str(error)) or type(error).__name__
            raise ConnectionError(f"{socket.gethostname()} has lost the job's driver: {why}") from None
        finally:
            link.end()
            wire.close()
