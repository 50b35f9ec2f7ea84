#!/usr/bin/env python3
"""Loads what Estimator::Export has written into torch: docs/export.md.

As a module:

    import load_export
    model = load_export.load("export/1769844226")
    model.signature["inputs"]                            # names, types, shapes without the batch
    predictions = model({"x": torch.rand(8, 784)})       # {"probabilities": tensor, ...}
    load_export.load_into("export/1769844226", my_module)  # weights alone, into a module of one's own

As a program it answers a file of tensors with a file of tensors:

    python3 load_export.py EXPORT                         # shows what goes in and what comes out
    python3 load_export.py EXPORT --input x.safetensors --output y.safetensors

Needs the packages torch and safetensors, nothing of muster."""

import argparse
import json
import pathlib
import sys

try:
    import safetensors
    import safetensors.torch
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as missing:
    sys.exit(f"load_export.py: {missing}; it needs the packages torch and safetensors (pip install torch safetensors)")

# What a step of the program computes: from its inputs, variables (by role) and arguments to its output. Numbers in
# signature.json are floating point; arguments that torch wants as whole numbers are converted here.
OPERATIONS = {
    "identity": lambda x, v, a: x[0],
    "concat": lambda x, v, a: torch.cat(x, dim=int(a.get("dim", 1))),
    "stack": lambda x, v, a: torch.stack(x, dim=int(a.get("dim", 1))),
    "add": lambda x, v, a: sum(x[1:], x[0]),
    "sub": lambda x, v, a: x[0] - x[1],
    "mul": lambda x, v, a: x[0] * x[1],
    "scale": lambda x, v, a: x[0] * a.get("factor", 1.0) + a.get("offset", 0.0),
    "linear": lambda x, v, a: F.linear(x[0], v["weight"], v.get("bias")),
    "conv2d": lambda x, v, a: F.conv2d(x[0], v["weight"], v.get("bias"), stride=int(a.get("stride", 1)),
                                       padding=int(a.get("padding", 0))),
    "batch_norm": lambda x, v, a: F.batch_norm(x[0], v["running_mean"], v["running_var"], v.get("weight"), v.get("bias"),
                                               training=False, eps=a.get("eps", 1e-5)),
    "embedding": lambda x, v, a: F.embedding(x[0].long(), v["weight"]),
    "max_pool2d": lambda x, v, a: F.max_pool2d(x[0], int(a["kernel_size"]), stride=int(a.get("stride", a["kernel_size"]))),
    "flatten": lambda x, v, a: torch.flatten(x[0], int(a.get("start_dim", 1))),
    "unsqueeze": lambda x, v, a: torch.unsqueeze(x[0], int(a["dim"])),
    "squeeze": lambda x, v, a: torch.squeeze(x[0], int(a["dim"])),
    "select": lambda x, v, a: torch.select(x[0], int(a["dim"]), int(a["index"])),
    "to_float": lambda x, v, a: x[0].float(),
    "to_int64": lambda x, v, a: x[0].long(),
    "relu": lambda x, v, a: F.relu(x[0]),
    "sigmoid": lambda x, v, a: torch.sigmoid(x[0]),
    "tanh": lambda x, v, a: torch.tanh(x[0]),
    "softmax": lambda x, v, a: F.softmax(x[0], dim=int(a.get("dim", 1))),
    "log_softmax": lambda x, v, a: F.log_softmax(x[0], dim=int(a.get("dim", 1))),
    "argmax": lambda x, v, a: torch.argmax(x[0], dim=int(a.get("dim", 1)), keepdim=bool(a.get("keepdim", 0))),
    "greater": lambda x, v, a: x[0] > a["value"],
}


class Export(torch.nn.Module):
    """An export: signature (signature.json), its variables as tensors by name and, if it has a program, a function from
    features to predictions."""

    def __init__(self, signature, variables):
        super().__init__()
        self.signature = signature
        self.variables = variables

    def forward(self, features):
        """Maps {name: tensor [batch, ...]} to {name: tensor}, the predictions of the model function."""
        if not self.signature["program"]:
            raise ValueError("this export has no program: build the module yourself and call load_into")
        known = dict(self._checked(features))
        with torch.inference_mode():
            for step in self.signature["program"]:
                if step["op"] not in OPERATIONS:
                    raise ValueError(f"operation '{step['op']}': this loader knows {', '.join(sorted(OPERATIONS))}")
                variables = {role: self.variables[name] for role, name in step["variables"].items()}
                known[step["output"]] = OPERATIONS[step["op"]]([known[name] for name in step["inputs"]], variables,
                                                               step["arguments"])
        wanted = {name for output in self.signature["outputs"].values() for name in output["predictions"]}
        return {name: known[name] for name in sorted(wanted)}

    def _checked(self, features):
        for name, expected in self.signature["inputs"].items():
            if name not in features:
                raise ValueError(f"feature '{name}' is missing; the model has {', '.join(self.signature['inputs'])}")
            tensor = features[name]
            if list(tensor.shape[1:]) != expected["shape"]:
                raise ValueError(f"feature '{name}' has the shape {list(tensor.shape)}, expected is "
                                 f"[batch, {', '.join(map(str, expected['shape']))}]")
            yield name, tensor.to(getattr(torch, expected["dtype"]))


def read(directory):
    """Returns (signature, {name: tensor}) of an export's folder."""
    directory = pathlib.Path(directory)
    file = directory / "signature.json"
    if not file.exists():
        below = sorted((path.parent for path in directory.glob("*/signature.json")), key=lambda path: path.name)
        hint = f"; did you mean {below[-1]}?" if below else ""
        raise ValueError(f"{directory} is no export: there is no signature.json in it{hint}")
    try:
        signature = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    if not isinstance(signature, dict) or signature.get("format") != "muster export" or signature.get("version") != 1:
        raise ValueError(f"{file}: not an export of version 1")
    weights = directory / signature["weights"]
    try:
        return signature, safetensors.torch.load_file(weights)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{weights}: {error}") from error


def load(directory):
    return Export(*read(directory))


def load_into(directory, module):
    """Loads the weights into a module whose parameters and buffers have the same names and shapes."""
    _, variables = read(directory)
    module.load_state_dict(variables)
    return module


def show(signature):
    print(f"global step {signature['global_step']}, muster {signature['muster_version']}")
    for name, tensor in signature["inputs"].items():
        print(f"  in   {name}: {tensor['dtype']} [batch, {', '.join(map(str, tensor['shape']))}]".replace(", ]", "]"))
    for name, output in signature["outputs"].items():
        print(f"  out  {name} ({output['method']}): {', '.join(output['predictions'])}")
    if not signature["program"]:
        print("  no program: load_into(EXPORT, module)")


def main():
    parser = argparse.ArgumentParser(description="Loads an export of a muster Estimator into torch.")
    parser.add_argument("export", help="the folder with signature.json")
    parser.add_argument("--input", help="features, a safetensors file")
    parser.add_argument("--output", help="where the predictions go, a safetensors file")
    arguments = parser.parse_args()
    if bool(arguments.input) != bool(arguments.output):
        parser.error("--input and --output go together")
    try:
        model = load(arguments.export)
        if not arguments.input:
            show(model.signature)
            return
        predictions = model(safetensors.torch.load_file(arguments.input))
        # Each in its own memory, as safetensors insists: `identity` returns the very tensor that it got.
        safetensors.torch.save_file({name: tensor.contiguous().clone() for name, tensor in predictions.items()},
                                    arguments.output)
    except (OSError, ValueError, KeyError, RuntimeError, safetensors.SafetensorError) as error:
        sys.exit(f"load_export.py: {error}")


if __name__ == "__main__":
    main()
