#!/usr/bin/env python3
"""TensorFlow 2's ParameterServerStrategy: a coordinator schedules steps on workers. Asynchronous. The coordinator
measures; workers and ps never end on their own: run.py ends them."""

import os
import time

import tensorflow_models as models
import numpy
import tensorflow as tf

import data
import measure


def train_function(args, variables):
    """Takes steps_per_schedule steps and returns their losses."""
    rate = data.learning_rate(args)

    def step(batch):
        with tf.GradientTape() as tape:
            loss = models.loss(args, variables, *batch)
        for variable, gradient in zip(variables.values(), tape.gradient(loss, list(variables.values()))):
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
            else:
                variable.assign_sub(rate * gradient)
        return loss

    @tf.function
    def train(iterator):
        return tf.stack([step(next(iterator)) for _ in range(args.steps_per_schedule)])

    return train


def coordinate(args, cluster):
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="chief", task_id=0, rpc_layer="grpc"))
    with strategy.scope():
        variables = {name: tf.Variable(value) for name, value in models.initial_values(args).items()}
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    train = train_function(args, variables)

    def rings_in_turn():
        """All workers run the same function, so each gets all minibatches."""
        rings = [data.batches(args, worker) for worker in range(args.workers)]
        both = [numpy.stack(parts, 1).reshape(-1, *parts[0].shape[1:]) for parts in zip(*rings)]
        return tf.data.Dataset.from_tensor_slices(tuple(both)).repeat()

    iterator = iter(coordinator.create_per_worker_dataset(rings_in_turn))
    meter = measure.Meter(args)
    if args.steps:
        schedules = args.steps * args.workers // args.steps_per_schedule
        scheduled = [coordinator.schedule(train, args=(iterator,)) for _ in range(schedules)]
        coordinator.join()
        meter.leave({"losses": [float(loss) for value in scheduled for loss in value.fetch()]})
        return

    def take(schedules):
        start = time.perf_counter()
        for _ in range(schedules):
            coordinator.schedule(train, args=(iterator,))
        coordinator.join()
        return time.perf_counter() - start

    take(measure.WARM_UP_STEPS)
    schedules = max(5, int(args.seconds * measure.WARM_UP_STEPS / take(measure.WARM_UP_STEPS)))
    seconds = take(schedules)
    meter.leave({"steps": schedules * args.steps_per_schedule, "seconds": seconds})


def main():
    args = measure.arguments(__doc__, roles=("ps", "worker", "chief"))
    args.steps_per_schedule = int(os.environ.get("STEPS_PER_SCHEDULE", "1"))
    chief, ps, *workers = args.addresses.split(",")
    cluster = tf.train.ClusterSpec({"chief": [chief], "ps": [ps], "worker": workers})
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    if args.role == "chief":
        coordinate(args, cluster)
    else:
        tf.distribute.Server(cluster, job_name=args.role, task_index=args.task,
                             config=models.configuration(args), protocol="grpc").join()


main()
