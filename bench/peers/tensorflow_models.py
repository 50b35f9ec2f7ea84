"""The models in TensorFlow, as functions of their variables, and the set-up shared by every program with TensorFlow.

Variables are named as in the files and shaped as TensorFlow wants them: matrices [in, out], kernels of convolutions
[height, width, in, out], images with the channel last."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402

import data  # noqa: E402


def initial_values(args):
    """Returns {name: array} in TensorFlow's shapes; the table's key is its plain name."""
    values = {}
    for name, value in data.initial_values(args).items():
        if value.ndim == 4:
            value = value.transpose(2, 3, 1, 0)
        elif args.model == "conv" and name == "output.weight":
            # Its input is flattened with the channel last.
            value = value.reshape(10, 32, 7, 7).transpose(2, 3, 1, 0).reshape(-1, 10)
        elif value.ndim == 2 and name != "table.weight":
            value = value.T
        values[name] = numpy.ascontiguousarray(value)
    return values


def linear(variables, name, values):
    return tf.nn.bias_add(tf.matmul(values, variables[f"{name}.weight"]), variables[f"{name}.bias"])


def convolution(variables, name, values):
    values = tf.nn.conv2d(values, variables[f"{name}.weight"], strides=1, padding="SAME")
    return tf.nn.max_pool2d(tf.nn.relu(tf.nn.bias_add(values, variables[f"{name}.bias"])), 2, 2, "VALID")


def logits(args, variables, inputs):
    if args.model == "embedding":
        return linear(variables, "output", tf.reduce_sum(tf.nn.embedding_lookup(variables["table.weight"], inputs), 1))
    if args.model == "conv":
        values = tf.reshape(inputs, [-1, 28, 28, 1])
        values = convolution(variables, "conv1", convolution(variables, "conv0", values))
        return linear(variables, "output", tf.reshape(values, [-1, 32 * 7 * 7]))
    values, layer = inputs, 0
    while f"hidden{layer}.weight" in variables:
        values = tf.nn.relu(linear(variables, f"hidden{layer}", values))
        layer += 1
    return linear(variables, "output", values)


def loss(args, variables, inputs, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits(args, variables, inputs)))


def configuration(args):
    """Returns the configuration of a session or server. Limits only the threads that divide a single operation: with
    one thread for operations, ParameterServerStrategy's servers wait for each other for ever."""
    return tf.compat.v1.ConfigProto(intra_op_parallelism_threads=args.threads)
