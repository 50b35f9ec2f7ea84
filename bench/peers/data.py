"""Reads the files that all frameworks share, so that they train the same; data.h describes the files."""

import json

from safetensors.numpy import load_file


def learning_rate(args):
    return json.loads((args.data / f"{args.model}.json").read_text())["learning_rate"]


def initial_values(args):
    """Returns {name: array}, shaped as in torch."""
    return load_file(args.data / f"{args.model}.initial.safetensors")


def batches(args, worker):
    """Returns inputs [ring, batch, …] and labels [ring, batch] of a worker, to be used in turns."""
    tensors = load_file(args.data / f"{args.model}.batches.{worker}.safetensors")
    return tensors["inputs"], tensors["labels"]
