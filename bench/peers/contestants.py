"""The contestants of `bench peers`: this project's ways to train, and each peer with its processes."""

import dataclasses
import json
import pathlib
import sys

from processes import Task, free_ports

HERE = pathlib.Path(__file__).resolve().parent
ALONE, ASYNCHRONOUS, SYNCHRONOUS = "alone", "asynchronous", "synchronous"
MODELS = ("mlp100", "mlp2048", "conv", "embedding")
PUSH_PULL = "push_pull"  # 100 MB to the parameter server and back, nothing computed; by one worker
PUSH_PULL_BYTES = 100_000_000
REFERENCE = "reference"  # not measured: the others' losses are compared with its


@dataclasses.dataclass(frozen=True)
class Run:
    """One measurement."""

    model: str
    workers: int
    folder: pathlib.Path
    data: pathlib.Path
    seconds: float = 2
    steps: int = 0  # > 0: this many, with the loss of each
    threads: int = 1

    def words(self, task=0):
        return ["--model", self.model, "--data", self.data, "--folder", self.folder, "--task", task, "--workers", self.workers,
                "--seconds", self.seconds, "--steps", self.steps]


@dataclasses.dataclass(frozen=True)
class Contestant:
    name: str
    kind: str
    tasks: object  # called with a Run, returns the list of processes
    ours: bool = False
    packages: tuple = ()  # what must be installed, by Python's import names
    workers: tuple = (1, 2)
    moves_buffer: bool = False  # takes part in push_pull
    trains_tables: bool = True  # takes part in embedding
    results: object = lambda run: run.workers  # how many of its processes leave one
    uses_mkl: bool = False
    unavailable: str = ""  # why installing packages can't provide it on any machine
    preload: str = ""  # a library loaded into its processes by LD_PRELOAD

    def does(self, model, workers):
        if model == PUSH_PULL:
            return self.moves_buffer and workers == 1
        return workers in self.workers and (self.trains_tables or model != "embedding")

    def tasks_of(self, run):
        found = self.tasks(run)
        if self.preload:
            for task in found:
                task.environment["LD_PRELOAD"] = self.preload
        return found


def ours(program, command, ways):
    """Returns the ways that `peers_muster --ways` lists. Tables of rows are only trained asynchronously."""
    return [Contestant(way["name"], way["kind"], our_tasks(program, command, way), ours=True, uses_mkl=True,
                       workers=(2,) if way["kind"] == SYNCHRONOUS else (1, 2),
                       moves_buffer=way["kind"] == ASYNCHRONOUS, trains_tables=way["kind"] != SYNCHRONOUS,
                       results=lambda run, way=way: 1 if way["kind"] == REFERENCE else run.workers) for way in ways]


def our_tasks(program, command, way):
    def tasks(run):
        words = [program, "--way", way["name"]]
        if way["kind"] in (ALONE, REFERENCE):
            number = 1 if way["kind"] == REFERENCE else run.workers
            return [Task(f"process {i}", words + run.words(i)) for i in range(number)]
        has_ps = way.get("ps", True)
        ports = free_ports(run.workers + 1)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        cluster = {"worker": addresses[1:]}
        if has_ps:
            cluster["ps"] = addresses[:1]

        def place(job, index):
            return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}

        workers = [Task(f"worker {i}", words + run.words(i), place("worker", i)) for i in range(run.workers)]
        return ([Task("ps", [command, "ps"], place("ps", 0))] if has_ps else []) + workers

    return tasks


# Otherwise Gloo and RPC look for the interface with the host's address, which may not exist.
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "TP_SOCKET_IFNAME": "lo"}


def thread_limits(run):
    """Returns the variables from which libraries below a framework take their number of threads."""
    return {"OMP_NUM_THREADS": str(run.threads), "MKL_NUM_THREADS": str(run.threads)} if run.threads else {}


def peers(python):
    def program(run, name, task=0, role="", addresses="", more=(), environment=None, awaited=True):
        words = [python, HERE / f"{name}.py", *run.words(task), "--threads", run.threads, *more]
        words += ["--role", role] if role else []
        words += ["--addresses", addresses] if addresses else []
        return Task(f"{role or 'process'} {task}", words, {**thread_limits(run), **LOOPBACK, **(environment or {})}, awaited)

    def addresses(number):
        return ",".join(f"127.0.0.1:{port}" for port in free_ports(number))

    def single(name):
        return lambda run: [program(run, name)]

    def tensorflow_ps(synchronous):
        def tasks(run):
            where = addresses(1 + run.workers)
            more = ["--synchronous"] if synchronous else []
            ps = program(run, "tensorflow_ps", 0, "ps", where, more, awaited=False)
            # With SyncReplicas, worker 0 measures; a worker left alone in a round never finishes it.
            return [ps] + [program(run, "tensorflow_ps", i, "worker", where, more,
                                   awaited=i == 0 or not synchronous or run.steps > 0) for i in range(run.workers)]
        return tasks

    def tensorflow2_ps(steps_a_schedule):
        def tasks(run):
            where = addresses(2 + run.workers)
            environment = {"STEPS_PER_SCHEDULE": str(steps_a_schedule), "GRPC_FAIL_FAST": "use_caller"}
            servers = [program(run, "tensorflow2_ps", 0, "ps", where, environment=environment, awaited=False)]
            servers += [program(run, "tensorflow2_ps", i, "worker", where, environment=environment, awaited=False)
                        for i in range(run.workers)]
            return servers + [program(run, "tensorflow2_ps", 0, "chief", where, environment=environment)]
        return tasks

    def torch_rpc(run):
        where = addresses(1)
        return [program(run, "torch_rpc", 0, "ps", where)] + [program(run, "torch_rpc", i, "worker", where)
                                                              for i in range(run.workers)]

    def torch_ddp(run):
        where = addresses(1)
        return [program(run, "torch_ddp", i, addresses=where) for i in range(run.workers)]

    tensorflow = {"packages": ("tensorflow", "safetensors")}
    torch = {"packages": ("torch", "safetensors"), "uses_mkl": True}
    measures_all = {"results": lambda run: 1}
    return [
        Contestant("tensorflow_single", ALONE, single("tensorflow_single"), workers=(1,), **tensorflow),
        Contestant("tensorflow_ps", ASYNCHRONOUS, tensorflow_ps(False), moves_buffer=True, **tensorflow),
        # Its accumulators divide the gradient of a row by the workers that had the row, not by all: a different
        # computation.
        Contestant("tensorflow_ps_sync", SYNCHRONOUS, tensorflow_ps(True), workers=(2,), trains_tables=False, **tensorflow,
                   results=lambda run: run.workers if run.steps else 1),
        Contestant("tensorflow2_ps", ASYNCHRONOUS, tensorflow2_ps(1), **tensorflow, **measures_all),
        Contestant("tensorflow2_ps_10", ASYNCHRONOUS, tensorflow2_ps(10), **tensorflow, **measures_all),
        Contestant("torch_single", ALONE, single("torch_single"), workers=(1,), **torch),
        Contestant("torch_rpc", ASYNCHRONOUS, torch_rpc, moves_buffer=True, **torch),
        Contestant("torch_hogwild", ASYNCHRONOUS, single("torch_hogwild"), **torch),
        Contestant("torch_ddp", SYNCHRONOUS, torch_ddp, workers=(2,), **torch),
        Contestant("ps_lite", ASYNCHRONOUS, lambda run: [], workers=(), moves_buffer=True,
                   unavailable="it is built from source, which neither pip nor Debian has a package of"),
    ]
