#!/usr/bin/env python3
"""TensorFlow's parameter server in tf.compat.v1: between-graph replication, MonitoredTrainingSession; asynchronous, or
with SyncReplicasOptimizer. Workers look for the initialised model every 0.05 s instead of every 30, so that they
overlap, and at the end give threads that wait for a queue a second instead of 120. A ps never ends on its own, nor does
a worker of SyncReplicas that others have left: run.py ends them."""

import time

import tensorflow_models as models
import tensorflow as tf
from tensorflow.python.training import monitored_session

import data
import measure

v1 = tf.compat.v1


class ImpatientSessionManager(v1.train.SessionManager):
    def __init__(self, *arguments, **options):
        options["recovery_wait_secs"] = 0.05
        super().__init__(*arguments, **options)


def next_batch(args):
    """The ring is part of the worker's graph, so that nothing is fed."""
    inputs, labels = data.batches(args, args.task)
    with v1.device(f"/job:worker/task:{args.task}"):
        count = v1.get_local_variable("minibatches", initializer=tf.constant(-1), use_resource=True)
        i = tf.math.floormod(count.assign_add(1, read_value=True), len(inputs))
        return tf.constant(inputs)[i], tf.constant(labels)[i]


def push_and_pull(args, buffer):
    """The work push_pull: returns (the value that came back, the step). The gradient is in this worker's memory."""
    with v1.device(f"/job:worker/task:{args.task}"):
        gradient = v1.get_local_variable("gradient", initializer=tf.ones(buffer.shape), use_resource=True).read_value()
    pushed = tf.raw_ops.ResourceApplyGradientDescent(var=buffer.handle, alpha=data.learning_rate(args), delta=gradient)
    with v1.control_dependencies([pushed]):
        value = buffer.read_value()
    with v1.device(f"/job:worker/task:{args.task}"):
        pulled = tf.identity(value)
        return pulled[0], pulled.op


def build(args, device):
    """Returns (loss, training op, scaffold, hooks, global step)."""
    values = models.initial_values(args)
    with v1.device(device):
        fed = {name: v1.placeholder(tf.float32, value.shape) for name, value in values.items()}
        variables = {name: v1.get_variable(name, initializer=fed[name], use_resource=True) for name in values}
        global_step = v1.train.get_or_create_global_step()
        scaffold = v1.train.Scaffold(init_feed_dict={fed[name]: value for name, value in values.items()})
        if args.model == "push_pull":
            return *push_and_pull(args, variables["buffer"]), scaffold, [], global_step
        loss = models.loss(args, variables, *next_batch(args))
        optimizer = v1.train.GradientDescentOptimizer(data.learning_rate(args))
        hooks = []
        if args.synchronous:
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, args.workers, args.workers)
        train = optimizer.minimize(loss, global_step)
        if args.synchronous:
            # No tokens in advance if curves are compared: each worker then is in every round.
            hooks.append(optimizer.make_session_run_hook(args.task == 0, num_tokens=0 if args.steps else -1))
    return loss, train, scaffold, hooks, global_step


def measure_rounds(args, meter, session, train, global_step):
    """With SyncReplicas, rounds are counted where they are made, because a worker may be in one twice. Worker 0's clock
    counts; the others go on until run.py ends them, because no worker may wait elsewhere while another waits in a
    round."""
    meter.meet("started")
    for _ in range(measure.WARM_UP_STEPS):
        session.run(train)
    start, first = time.perf_counter(), session.run(global_step)
    while args.task > 0 or time.perf_counter() - start < args.seconds:
        session.run(train)
    rounds = int(session.run(global_step) - first)
    meter.leave({"steps": rounds * args.workers, "seconds": time.perf_counter() - start})


def main():
    args = measure.arguments(__doc__, roles=("ps", "worker"))
    v1.disable_eager_execution()
    monitored_session.sm.SessionManager = ImpatientSessionManager
    ps, *workers = args.addresses.split(",")
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": workers})
    server = v1.train.Server(cluster, job_name=args.role, task_index=args.task, config=models.configuration(args))
    if args.role == "ps":
        server.join()
    device = v1.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{args.task}")
    loss, train, scaffold, hooks, global_step = build(args, device)
    meter = measure.Meter(args)
    with v1.train.MonitoredTrainingSession(server.target, is_chief=args.task == 0, scaffold=scaffold, hooks=hooks,
                                           config=models.configuration(args), log_step_count_steps=None,
                                           stop_grace_period_secs=1) as session:
        if args.synchronous and not args.steps:
            measure_rounds(args, meter, session, train, global_step)
            return
        taken = 0

        def step(want_loss):
            nonlocal taken
            if not want_loss:
                return session.run(train)
            if args.synchronous:
                meter.meet(f"round{taken}")  # no worker takes another's place in a round
                taken += 1
            return session.run([loss, train])[0]

        meter.run(step)


main()
