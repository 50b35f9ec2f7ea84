"""The models in PyTorch, and the set-up shared by every program with PyTorch."""

import torch
from torch import nn
from torch.nn import functional

import data


class Perceptron(nn.Module):
    def __init__(self, widths):
        super().__init__()
        for i, (before, after) in enumerate(zip(widths, widths[1:])):
            self.add_module(f"hidden{i}", nn.Linear(before, after))
        self.layers = len(widths) - 1
        self.output = nn.Linear(widths[-1], 10)

    def forward(self, values):
        for i in range(self.layers):
            values = functional.relu(self.get_submodule(f"hidden{i}")(values))
        return self.output(values)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(1, 16, 5, padding=2)
        self.conv1 = nn.Conv2d(16, 32, 5, padding=2)
        self.output = nn.Linear(32 * 7 * 7, 10)

    def forward(self, values):
        values = functional.max_pool2d(functional.relu(self.conv0(values.view(-1, 1, 28, 28))), 2)
        values = functional.max_pool2d(functional.relu(self.conv1(values)), 2)
        return self.output(values.flatten(1))


class Bags(nn.Module):
    """The sum of an example's rows, and a linear layer."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
        self.output = nn.Linear(width, 10)

    def forward(self, rows):
        return self.output(self.table(rows))


class Buffer(nn.Module):
    """The work push_pull: the buffer that is moved."""

    def __init__(self, args):
        super().__init__()
        self.buffer = nn.Parameter(torch.from_numpy(data.initial_values(args)["buffer"]))


def make(args):
    """Returns the model with its initial values."""
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.model == "push_pull":
        return Buffer(args)
    values = {name: torch.from_numpy(value) for name, value in data.initial_values(args).items()}
    if args.model == "conv":
        model = Convolution()
    elif args.model == "embedding":
        model = Bags(*values["table.weight"].shape)
    else:
        hidden = [values[f"hidden{i}.weight"] for i in range(len(values) // 2 - 1)]
        model = Perceptron([784] + [weight.shape[0] for weight in hidden])
    model.load_state_dict(values)
    return model


def optimizer(args, model):
    return torch.optim.SGD(model.parameters(), lr=data.learning_rate(args))


class Batches:
    def __init__(self, args, worker):
        self.inputs, self.labels = (torch.from_numpy(values) for values in data.batches(args, worker))
        self.next = 0

    def loss(self, model):
        """Returns the loss of the next minibatch."""
        i = self.next % len(self.inputs)
        self.next += 1
        return functional.cross_entropy(model(self.inputs[i]), self.labels[i])


def stepper(args, model, task):
    """Returns a function that trains `model` with the next of that worker's minibatches, and returns the loss if it is
    wanted."""
    rule = optimizer(args, model)
    batches = Batches(args, task)

    def step(want_loss):
        rule.zero_grad()
        loss = batches.loss(model)
        loss.backward()
        rule.step()
        return loss.item() if want_loss else None

    return step
