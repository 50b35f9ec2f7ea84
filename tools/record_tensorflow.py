#!/usr/bin/env python3
"""Records what the real TensorFlow does, with which tests compare muster (tests/data/tensorflow/*.json).

Not part of `./dev test`; run it by hand when a case is added, once with each of two TensorFlows:

  python3 -m venv tf-current && tf-current/bin/pip install tensorflow-cpu
  tf-current/bin/python tools/record_tensorflow.py tests/data/tensorflow    # placement.json devices.json device_scopes.json

  python3 -m venv tf-estimator && tf-estimator/bin/pip install tensorflow-cpu==2.15.1 tensorflow-estimator==2.15.0
  tf-estimator/bin/python tools/record_tensorflow.py tests/data/tensorflow  # task_config.json

Which one it runs under it finds out by itself. The one thing that isn't TensorFlow's own code is the greedy strategy: it
lived in tf.contrib, which no TensorFlow that can still be installed has, and is transcribed below; it is called by the
real replica_device_setter with real operations.
"""

import json
import os
import pathlib
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1


class GreedyBySize:
    """tf.contrib.training.GreedyLoadBalancingStrategy with byte_size_load_fn, transcribed."""

    def __init__(self, num_tasks):
        self._loads = [0.0] * num_tasks

    def __call__(self, op):
        task = self._loads.index(min(self._loads))  # numpy.argmin: the first on a tie
        (output,) = op.outputs
        self._loads[task] += output.get_shape().num_elements() * output.dtype.base_dtype.size
        return task


def variable(name, shape, dtype="float32"):
    return {"name": name, "shape": shape, "dtype": dtype}


def models():
    generator = random.Random(7)
    layers = [512, 300, 300, 10]
    mlp = []
    for i, (rows, columns) in enumerate(zip(layers, layers[1:])):
        mlp += [variable(f"w{i}", [rows, columns]), variable(f"b{i}", [columns])]
    return {
        "mlp": mlp,
        "lenet": [
            variable("conv1", [5, 5, 1, 32]), variable("bias1", [32]), variable("conv2", [5, 5, 32, 64]),
            variable("bias2", [64]), variable("dense1", [3136, 1024]), variable("bias3", [1024]),
            variable("dense2", [1024, 10]), variable("bias4", [10]), variable("global_step", [], "int64"),
        ],
        "ties": [variable(f"v{i}", [4]) for i in range(7)],
        "types": [
            variable("a", [3, 5], "float64"), variable("b", [7], "float16"), variable("c", [7], "bfloat16"),
            variable("d", [11], "int32"), variable("e", [13], "int64"), variable("f", [17], "uint8"),
            variable("g", [19], "bool"), variable("h", [], "float64"),
        ],
        "embedding": [
            variable("small", [10]), variable("table", [100003, 16]), variable("w", [16, 4]), variable("b", [4]),
            variable("table2", [5000, 64]), variable("scale", []),
        ],
        "random": [
            variable(f"v{i}", [generator.randint(1, 40) for _ in range(generator.randint(0, 3))],
                     generator.choice(["float32", "float64", "int64"]))
            for i in range(25)
        ],
    }


def partitioner_of(text):
    """Muster's partitioners are written as on the command line of `muster place`."""
    if text == "none":
        return None
    values = dict(part.split(":") for part in text.split(","))
    values = {key: int(value) for key, value in values.items()}
    if "fixed" in values:
        return v1.fixed_size_partitioner(values["fixed"])
    if "max_bytes" in values:
        return v1.variable_axis_size_partitioner(values["max_bytes"], max_shards=values.get("max_shards"))
    return v1.min_max_variable_partitioner(values["max_partitions"], min_slice_size=values["min_slice"])


PARTITIONS = [
    "none", "fixed:1", "fixed:2", "fixed:3", "fixed:7", "max_bytes:1", "max_bytes:100", "max_bytes:4096", "max_bytes:100000",
    "max_bytes:4096,max_shards:3", "max_bytes:10,max_shards:5", "min_slice:1,max_partitions:4", "min_slice:64,max_partitions:3",
    "min_slice:4096,max_partitions:10", "min_slice:262144,max_partitions:8",
]


def place(variables, num_ps, strategy, partition):
    greedy = GreedyBySize(num_ps) if strategy == "greedy" else None
    partitioner = partitioner_of(partition)
    placement = []
    with tf.Graph().as_default():
        setter = v1.train.replica_device_setter(ps_tasks=num_ps, ps_strategy=greedy)
        with v1.device(setter), v1.variable_scope("", use_resource=False):
            for item in variables:
                made = v1.get_variable(
                    item["name"], item["shape"], item["dtype"], initializer=v1.zeros_initializer(),
                    partitioner=partitioner if item["shape"] else None)
                slices = list(made) if isinstance(made, variables_module().PartitionedVariable) else [made]
                for shard, piece in enumerate(slices):
                    placement.append({
                        "name": item["name"], "shard": shard,
                        "ps": tf.DeviceSpec.from_string(piece.device).task,
                        "bytes": piece.shape.num_elements() * piece.dtype.base_dtype.size,
                    })
    return placement


def variables_module():
    from tensorflow.python.ops import variables
    return variables


def record_placement():
    cases = []
    for model, variables in models().items():
        for partition in PARTITIONS:
            # With slices of one byte a large table has as many pieces as rows; the small models are enough to show the
            # rule.
            if partition.startswith(("max_bytes:1", "max_bytes:4096")) and model in ("embedding", "lenet", "mlp"):
                if "max_shards" not in partition:
                    continue
            for strategy, num_ps in (("round_robin", 2), ("round_robin", 3), ("greedy", 2), ("greedy", 5)):
                cases.append({
                    "model": model, "ps": num_ps, "strategy": strategy, "partition": partition,
                    "placement": [list(p.values()) for p in place(variables, num_ps, strategy, partition)],
                })
    return {"columns": ["name", "shard", "ps", "bytes"], "models": models(), "cases": cases}


DEVICE_STRINGS = [
    [""], ["/"], ["//"], ["/job:ps"], ["job:ps"], ["job:worker/task:0"], ["/job:ps/replica:0/task:1/device:CPU:0"],
    ["/device:CPU:0/task:1/replica:0/job:ps"], ["/cpu:0"], ["/CPU:0"], ["/gpu:1"], ["/gpu:*"], ["/cpu"], ["gpu"], ["/Gpu:3"],
    ["/device:CPU:*"], ["/device:cpu:0"], ["/device:gpu:12"], ["/device:Cpu:1"], ["/device:TPU:3"], ["/tpu:3"], ["/device:XPU:1"],
    ["/job:ps/cpu:0"], ["/job:ps//task:3"], ["/job:ps/"], ["/task:7"], ["/replica:2"], ["/job:a/job:b"], ["/task:1/task:2"],
    ["/task:007"], ["/job:my-job_2/task:1"], ["/job:*"], ["/custom:1"], ["/epu:0"],
    # Mistakes.
    ["/job"], ["/device:CPU"], ["/job:ps/foo:1"], ["/xpu:0"], ["/cpu:0/gpu:0"], ["/cpu:0/device:CPU:1"], ["/task:x"],
    ["/task:1.5"], ["/task:"], ["/replica:*"], ["/cpu:x"], ["/device:CPU:x"], ["/device:CPU:"], ["/job:ps:1"], ["ps"], ["/device:GPU:0:1"],
    ["/task:1:2"], ["/device"], ["/task:*"],
    # Merging, outer to inner.
    ["/job:ps", "/task:1"], ["/job:ps/task:0", "/job:worker"], ["/job:ps/task:0", "/job:worker/task:1/gpu:1"],
    ["/device:GPU:2", "/device:CPU:*"], ["/device:GPU:*", "/device:GPU:2"], ["/gpu:0", "/cpu:1"], ["", "/job:ps"],
    ["/job:ps", ""], ["/job:a", "/task:1", "/replica:3", "/cpu:0"], ["/job:a/task:1", "/job:b", "/task:2/gpu:0"],
    ["/job:ps/replica:0/task:1/device:CPU:0", "/device:GPU:1"], ["/gpu:0", "/job:ps", "/cpu"],
]


def record_devices():
    cases = []
    for strings in DEVICE_STRINGS:
        case = {"strings": strings}
        try:
            merged = v1.DeviceSpec.from_string(strings[0])
            for inner in strings[1:]:
                merged.merge_from(v1.DeviceSpec.from_string(inner))
            case["canonical"] = merged.to_string()
        except ValueError as error:
            case["error"] = str(error)
        cases.append(case)
    return {"cases": cases}


# Ops are created one after another inside `outer` scopes, the setter, then `inner` scopes. A null scope is tf.device(None).
VARIABLE = "VariableV2"
SCOPES = [
    {"setter": {"ps_tasks": 3}, "ops": [
        {"type": VARIABLE}, {"type": VARIABLE}, {"type": "NoOp"}, {"type": VARIABLE}, {"type": VARIABLE},
        {"type": VARIABLE, "inner": ["/job:ps/task:1"]}, {"type": VARIABLE},
        {"type": VARIABLE, "inner": ["/job:worker/task:0"]}, {"type": VARIABLE},
        {"type": VARIABLE, "inner": ["/cpu:0"]}, {"type": VARIABLE, "inner": ["/task:7"]}, {"type": VARIABLE},
        {"type": VARIABLE, "outer": ["/job:other/task:9/gpu:1"]}, {"type": "NoOp", "outer": ["/cpu:0"], "inner": ["/task:4"]},
        {"type": VARIABLE, "inner": ["/job:ps", "/gpu:2", "/gpu:3"]},
    ]},
    {"setter": {"ps_tasks": 2, "merge_devices": False}, "ops": [
        {"type": VARIABLE}, {"type": VARIABLE, "inner": ["/cpu:0"]}, {"type": VARIABLE}, {"type": VARIABLE, "outer": ["/cpu:0"]},
        {"type": "NoOp"}, {"type": "NoOp", "inner": ["/job:x"]},
    ]},
    {"setter": {"ps_tasks": 2, "ps_device": "/job:store/cpu:0", "worker_device": "/job:worker/task:3"}, "ops": [
        {"type": VARIABLE}, {"type": VARIABLE}, {"type": "NoOp"}, {"type": VARIABLE, "inner": ["/job:ps"]}, {"type": VARIABLE},
    ]},
    {"setter": {"ps_tasks": 2, "ps_device": "/cpu:0", "worker_device": ""}, "ops": [
        {"type": VARIABLE}, {"type": VARIABLE, "inner": ["/job:ps"]}, {"type": "NoOp"}, {"type": VARIABLE, "outer": ["/job:w"]},
    ]},
    {"setter": {"ps_tasks": 2, "ps_device": ""}, "ops": [{"type": VARIABLE}, {"type": "NoOp"}]},
    {"setter": {"ps_tasks": 0}, "ops": [{"type": VARIABLE}, {"type": VARIABLE, "outer": ["/job:a"], "inner": ["/task:1"]}]},
    {"setter": {"cluster": {"ps": ["a:1", "b:1"], "worker": ["c:1"]}}, "ops": [{"type": VARIABLE}, {"type": VARIABLE}, {"type": VARIABLE}]},
    {"setter": {"cluster": {"worker": ["c:1"]}, "ps_tasks": 5}, "ops": [{"type": VARIABLE}, {"type": "NoOp"}]},
    {"setter": {"ps_tasks": 3, "ps_ops": ["NoOp"]}, "ops": [{"type": VARIABLE}, {"type": "NoOp"}, {"type": "NoOp"}]},
    {"ops": [
        {"type": VARIABLE, "outer": ["/job:ps", "/task:1", "/gpu:0"]}, {"type": "NoOp", "outer": ["/gpu:0", "/cpu:1"]},
        {"type": "NoOp", "outer": ["/job:a/task:3", None, "/cpu:0"]}, {"type": "NoOp", "outer": ["/gpu:0", "/job:ps", "/cpu"]},
    ]},
]


def record_scopes():
    import contextlib

    cases = []
    for case in SCOPES:
        with tf.Graph().as_default():
            arguments = dict(case.get("setter", {}))
            setter = v1.train.replica_device_setter(**arguments)
            ops = []
            for i, op in enumerate(case["ops"]):
                with contextlib.ExitStack() as stack:
                    for device in op.get("outer", []):
                        stack.enter_context(v1.device(device))
                    if "setter" in case:
                        stack.enter_context(v1.device(setter))
                    for device in op.get("inner", []):
                        stack.enter_context(v1.device(device))
                    if op["type"] == "NoOp":
                        device = tf.no_op().device
                    else:
                        device = tf.raw_ops.VariableV2(shape=[2], dtype=tf.float32, name=f"v{i}").op.device
                ops.append({**op, "device": device})
            cases.append({**case, "ops": ops})
    return {"cases": cases}


def task_configs():
    """Yields pairs of a name and a TF_CONFIG text."""
    full = {"chief": ["c:1"], "ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1", "w2:1"]}
    legacy = {"master": ["m:1"], "ps": ["p0:1"], "worker": ["w0:1"]}
    with_evaluator = {**full, "evaluator": ["e:1"]}
    sparse = {"chief": ["c:1"], "ps": ["p0:1", "p1:1"], "worker": {"1": "w1:1"}}
    clusters = {
        "full": full, "legacy": legacy, "evaluator inside": with_evaluator, "sparse": sparse,
        "alone": {"chief": ["c:1"]}, "alone master": {"master": ["m:1"]}, "chief and worker": {"chief": ["c:1"], "worker": ["w:1"]},
        "chief and evaluator": {"chief": ["c:1"], "evaluator": ["e:1"]},
        "other jobs": {**full, "alpha": ["a0:1", "a1:1"], "zeta": ["z:1"]},
        "master and other jobs": {**legacy, "alpha": ["a0:1"], "zeta": ["z:1"]},
        "legacy evaluator inside": {**legacy, "evaluator": ["e:1"]},
        "dense object": {"chief": {"0": "c:1"}, "ps": {"1": "p1:1", "0": "p0:1"}},
        "no chief": {"ps": ["p0:1"], "worker": ["w0:1", "w1:1"]},
        "empty worker": {"chief": ["c:1"], "worker": []},
        "both": {"chief": ["c:1"], "master": ["m:1"]},
        "two chiefs": {"chief": ["c:1", "d:1"]}, "two masters": {"master": ["c:1", "d:1"]},
        "only ps": {"ps": ["p0:1"]},
        "ipv6": {"chief": ["[::1]:2222"], "ps": ["[2001:db8::1]:2222"], "worker": ["trainer-worker-0.jobs.svc.cluster.local:2222"]},
    }
    tasks = [("chief", 0), ("master", 0), ("ps", 0), ("ps", 1), ("ps", 2), ("worker", 0), ("worker", 1), ("worker", 3), ("evaluator", 0),
             ("evaluator", 4), ("alpha", 1), ("zeta", 0), ("other", 0)]
    for name, cluster in clusters.items():
        for job, index in tasks:
            yield f"{name}, {job}:{index}", json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})

    def task(value):
        return json.dumps({"cluster": full, "task": value})

    yield "index as a string", task({"type": "worker", "index": "1"})
    yield "index as a wrong string", task({"type": "worker", "index": "one"})
    yield "index as an empty string", task({"type": "worker", "index": ""})
    yield "index negative", task({"type": "worker", "index": -1})
    yield "index negative string", task({"type": "worker", "index": "-1"})
    yield "index a fraction", task({"type": "worker", "index": 1.5})
    yield "index whole but written as a fraction", task({"type": "worker", "index": 1.0})
    yield "index null", task({"type": "worker", "index": None})
    yield "index a list", task({"type": "worker", "index": [0]})
    yield "index true", task({"type": "worker", "index": True})
    yield "index missing", task({"type": "worker"})
    yield "evaluator negative", task({"type": "evaluator", "index": -1})
    yield "type missing", task({"index": 0})
    yield "type empty", task({"type": "", "index": 0})
    yield "type null", task({"type": None, "index": 0})
    yield "task empty", task({})
    yield "task null", task(None)
    yield "task a list", task([])
    yield "task a string", task("worker:0")
    yield "task missing", json.dumps({"cluster": full})
    yield "no TF_CONFIG", "{}"
    yield "no cluster, worker 0", json.dumps({"task": {"type": "worker", "index": 0}})
    yield "no cluster, worker 1", json.dumps({"task": {"type": "worker", "index": 1}})
    for job in ("chief", "master", "ps", "evaluator"):
        yield f"no cluster, {job}", json.dumps({"task": {"type": job, "index": 0}})
    yield "no cluster, only a type", json.dumps({"task": {"type": "worker"}})
    yield "no cluster, only an index", json.dumps({"task": {"index": 0}})
    yield "empty cluster", json.dumps({"cluster": {}})
    yield "empty cluster, ps", json.dumps({"cluster": {}, "task": {"type": "ps", "index": 0}})
    yield "cluster null", json.dumps({"cluster": None, "task": {"type": "worker", "index": 0}})
    yield "cluster a list", json.dumps({"cluster": ["a:1"], "task": {"type": "worker", "index": 0}})
    yield "job a string", json.dumps({"cluster": {"chief": "c:1"}, "task": {"type": "chief", "index": 0}})
    yield "address a number", json.dumps({"cluster": {"chief": [5]}, "task": {"type": "chief", "index": 0}})
    yield "sparse key not a number", json.dumps({"cluster": {"chief": {"x": "c:1"}}, "task": {"type": "chief", "index": 0}})
    for directory in ("/models/a", "", 5, None):
        yield f"model_dir {directory!r}", json.dumps({"model_dir": directory})
    yield "model_dir in a cluster", json.dumps({"cluster": full, "task": {"type": "ps", "index": 1}, "model_dir": "/m"})
    yield "model_dir of an evaluator", json.dumps({"cluster": full, "task": {"type": "evaluator", "index": 0}, "model_dir": "/m"})
    yield "keys we ignore", json.dumps({"cluster": full, "task": {"type": "worker", "index": 0}, "environment": "cloud",
                                        "service": {"a": 1}, "rpc_layer": "grpc", "eval_session_master": "x"})
    yield "service a string", json.dumps({"service": "x"})
    yield "session_master", json.dumps({"cluster": full, "task": {"type": "worker", "index": 0}, "session_master": "grpc://x:1"})
    yield "empty text", ""
    for text in ("{", "[]", "5", "null", "\"x\"", "nonsense", "{\"a\": 1,}"):
        yield f"text {text}", text


def record_task_configs():
    cases = []
    for name, text in task_configs():
        os.environ["TF_CONFIG"] = text
        case = {"name": name, "tf_config": text}
        try:
            config = tf.estimator.RunConfig()
            case["result"] = {
                "cluster": config.cluster_spec.as_dict(), "task": {"type": config.task_type, "index": config.task_id},
                "is_chief": config.is_chief, "num_ps": config.num_ps_replicas, "num_workers": config.num_worker_replicas,
                "global_id": config.global_id_in_cluster, "master": config.master, "model_dir": config.model_dir,
            }
        except Exception as error:  # a user would have seen whatever it raises
            case["error"] = f"{type(error).__name__}: {error}"
        cases.append(case)
    del os.environ["TF_CONFIG"]
    return {"cases": cases}


def write(directory, name, recorded):
    header = {"recorded_with": f"tensorflow-cpu {tf.__version__}", "by": "tools/record_tensorflow.py"}
    if name == "task_config.json":
        header["recorded_with"] += ", tensorflow-estimator 2.15.0"
    if name == "placement.json":
        header["note"] = "greedy: the strategy of tf.contrib transcribed in that script, called by the real replica_device_setter"
    cases = recorded.pop("cases")
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    head = json.dumps({**header, **recorded}, indent=1)
    path = directory / name
    path.write_text(head[:-2] + ",\n \"cases\": [\n" + lines + "\n ]\n}\n")
    print(f"{path}: {len(cases)} cases")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_tensorflow.py DIRECTORY (see the top of the file)")
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    if hasattr(tf, "estimator"):
        write(directory, "task_config.json", record_task_configs())
    else:
        v1.disable_eager_execution()
        write(directory, "placement.json", record_placement())
        write(directory, "devices.json", record_devices())
        write(directory, "device_scopes.json", record_scopes())


if __name__ == "__main__":
    main()
