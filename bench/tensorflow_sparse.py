#!/usr/bin/env python3
"""TensorFlow's side of `bench sparse` (bench_sparse.cc starts it): one process of a tf.compat.v1 parameter-server cluster.

tensorflow_sparse.py --role ps|worker --task N --ps ADDRESS --workers ADDRESS,... --rows R --width W --batch B --seconds S --out FILE

A worker writes two numbers to FILE: rows per second of look-ups, and of look-ups with an SGD update. All workers begin
each measurement together."""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1

WARM_UP_STEPS = 30


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", required=True)
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--ps", required=True)
    parser.add_argument("--workers", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--out", default="")
    return parser.parse_args()


def wait_for_all(out, task, workers, name):
    """A barrier of files beside `out`."""
    stem = out.rsplit(".", 1)[0]
    open(f"{stem}.{name}.{task}", "w").close()
    while not all(os.path.exists(f"{stem}.{name}.{i}") for i in range(workers)):
        time.sleep(0.01)


def main():
    args = arguments()
    v1.disable_eager_execution()
    workers = args.workers.split(",")
    cluster = tf.train.ClusterSpec({"ps": [args.ps], "worker": workers})
    server = v1.train.Server(cluster, job_name=args.role, task_index=args.task)
    if args.role == "ps":
        server.join()
    with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{args.task}")):
        table = v1.get_variable("table", [args.rows, args.width], initializer=v1.random_uniform_initializer(-1, 1),
                                use_resource=True)
        ids = tf.random.uniform([args.batch], 0, args.rows, tf.int64)
        rows = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_sum(rows * rows) * (0.5 / args.batch)
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        look_up = tf.identity(rows)  # on the worker, so that the rows are sent
    with v1.Session(server.target) as session:
        if args.task == 0:
            session.run(v1.global_variables_initializer())
        wait_for_all(args.out, args.task, len(workers), "initialised")
        rates = []
        for name, op in (("look_up", look_up.op), ("update", update)):
            for _ in range(WARM_UP_STEPS):
                session.run(op)
            wait_for_all(args.out, args.task, len(workers), name)
            start = time.perf_counter()
            steps = 0
            while time.perf_counter() - start < args.seconds:
                session.run(op)
                steps += 1
            rates.append(steps * args.batch / (time.perf_counter() - start))
        wait_for_all(args.out, args.task, len(workers), "done")
    with open(args.out, "w") as out:
        out.write(" ".join(f"{rate:.0f}" for rate in rates) + "\n")


main()
