#!/usr/bin/env python3
"""A parameter server on PyTorch's RPC, and its workers. Asynchronous: a worker pushes its gradients and gets the values
back in one call, during which the server holds a lock. Of the embedding's table a call moves only the rows of a
minibatch."""

import threading

import torch
from torch.distributed import rpc

import data
import measure
import torch_models

SERVER = "ps"


class Store:
    """The parameter server's part; `it` is the instance of this process."""

    it = None

    def __init__(self, args):
        self.lock = threading.Lock()
        self.model = torch_models.make(args)
        self.learning_rate = data.learning_rate(args)
        self.parameters = dict(self.model.named_parameters())
        self.table = self.parameters.pop("table.weight", None)
        Store.it = self

    @torch.no_grad()
    def push_pull(self, gradients, rows, row_gradients, next_rows):
        """Applies gradients of the dense parameters by name (none: only looks up), and of rows of the table. Returns
        the values, and those of next_rows."""
        with self.lock:
            for name, gradient in gradients.items():
                self.parameters[name].sub_(gradient, alpha=self.learning_rate)
            if rows is not None:
                self.table.index_add_(0, rows, row_gradients, alpha=-self.learning_rate)
            found = self.table[next_rows] if next_rows is not None else None
            return {name: value.detach() for name, value in self.parameters.items()}, found


def push_pull(*arguments):
    return Store.it.push_pull(*arguments)


class BufferWorker:
    """The work push_pull: nothing is computed."""

    def __init__(self, args):
        self.buffer = torch_models.Buffer(args).buffer
        self.gradients = {"buffer": torch.ones_like(self.buffer)}

    @torch.no_grad()
    def step(self, want_loss):
        values, _ = rpc.rpc_sync(SERVER, push_pull, args=(self.gradients, None, None, None))
        self.buffer.copy_(values["buffer"])
        return self.buffer[0].item() if want_loss else None


class DenseWorker:
    def __init__(self, args):
        self.model = torch_models.make(args)
        self.parameters = dict(self.model.named_parameters())
        self.batches = torch_models.Batches(args, args.task)

    def step(self, want_loss):
        self.model.zero_grad()
        loss = self.batches.loss(self.model)
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in self.parameters.items()}
        values, _ = rpc.rpc_sync(SERVER, push_pull, args=(gradients, None, None, None))
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(values[name])
        return loss.item() if want_loss else None


class EmbeddingWorker:
    """Has the output layer and, of the table, only the rows of its minibatch."""

    def __init__(self, args):
        if args.threads:
            torch.set_num_threads(args.threads)
        self.batches = torch_models.Batches(args, args.task)
        values = data.initial_values(args)
        self.output = torch.nn.Linear(values["table.weight"].shape[1], 10)
        self.look_up({}, None, None)

    def look_up(self, gradients, rows, row_gradients):
        """Pushes, and returns the values and the next minibatch's rows."""
        i = self.batches.next % len(self.batches.inputs)
        self.batches.next += 1
        self.labels = self.batches.labels[i]
        self.rows, self.places = torch.unique(self.batches.inputs[i], return_inverse=True)
        values, found = rpc.rpc_sync(SERVER, push_pull, args=(gradients, rows, row_gradients, self.rows))
        self.table = found.requires_grad_()
        with torch.no_grad():
            for name, parameter in self.output.named_parameters():
                parameter.copy_(values[f"output.{name}"])

    def step(self, want_loss):
        self.output.zero_grad()
        bags = torch.nn.functional.embedding_bag(self.places, self.table, mode="sum")
        loss = torch.nn.functional.cross_entropy(self.output(bags), self.labels)
        loss.backward()
        gradients = {f"output.{name}": parameter.grad for name, parameter in self.output.named_parameters()}
        self.look_up(gradients, self.rows, self.table.grad)
        return loss.item() if want_loss else None


def main():
    args = measure.arguments(__doc__, roles=("ps", "worker"))
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://{args.addresses}")
    rank, processes = (0, 1 + args.workers) if args.role == "ps" else (1 + args.task, 1 + args.workers)
    if args.role == "ps":
        Store(args)
        rpc.init_rpc(SERVER, rank=rank, world_size=processes, rpc_backend_options=options)
    else:
        rpc.init_rpc(f"worker{args.task}", rank=rank, world_size=processes, rpc_backend_options=options)
        workers = {"embedding": EmbeddingWorker, "push_pull": BufferWorker}
        measure.Meter(args).run(workers.get(args.model, DenseWorker)(args).step)
    rpc.shutdown()


main()
