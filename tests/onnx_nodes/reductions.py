"""Operators that reduce, accumulate and normalize, and products of matrices."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.onnx_nodes.interpreter import known, operator, whole


def logical(of_bool, of_numbers):
    return lambda x, axes, keep: (of_bool if x.dtype == tf.bool else of_numbers)(x, axes, keep)


REDUCTIONS = {
    "ReduceL1": lambda x, axes, keep: tf.reduce_sum(tf.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: tf.sqrt(tf.reduce_sum(tf.square(x), axes, keep)),
    "ReduceLogSum": lambda x, axes, keep: tf.math.log(tf.reduce_sum(x, axes, keep)),
    "ReduceLogSumExp": tf.reduce_logsumexp,
    "ReduceMax": logical(tf.reduce_any, tf.reduce_max),
    "ReduceMean": tf.reduce_mean,
    "ReduceMin": logical(tf.reduce_all, tf.reduce_min),
    "ReduceProd": tf.reduce_prod,
    "ReduceSum": tf.reduce_sum,
    "ReduceSumSquare": lambda x, axes, keep: tf.reduce_sum(tf.square(x), axes, keep),
}

# Their effect on each element if nothing is reduced.
ALONE = {
    "ReduceL1": tf.abs,
    "ReduceL2": tf.abs,
    "ReduceLogSum": tf.math.log,
    "ReduceSumSquare": tf.square,
}


def reduction(name):
    def function(node, x, axes=None):
        axes = node["axes"] if axes is None else axes
        if axes is None or (tf.is_tensor(axes) and axes.shape[0] == 0):
            if node["noop_with_empty_axes"]:
                return ALONE.get(name, tf.identity)(x)
            axes = None
        if name == "ReduceLogSumExp" and tf.is_tensor(axes):
            axes = whole(axes)
        return REDUCTIONS[name](x, axes, bool(node["keepdims"]))

    return function


for operator_name in REDUCTIONS:
    operator(operator_name)(reduction(operator_name))


def arg(function):
    def of_node(node, x):
        axis = node["axis"]
        if node["select_last_index"]:
            found = x.shape[axis] - 1 - function(tf.reverse(x, [axis]), axis)
        else:
            found = function(x, axis)
        return tf.expand_dims(found, axis) if node["keepdims"] else found

    return of_node


operator("ArgMax")(arg(tf.argmax))
operator("ArgMin")(arg(tf.argmin))


@operator("CumSum")
def cumsum(node, x, axis):
    return tf.cumsum(x, int(known(axis)), bool(node["exclusive"]), bool(node["reverse"]))


@operator("CumProd")
def cumprod(node, x, axis):
    return tf.math.cumprod(x, int(known(axis)), bool(node["exclusive"]), bool(node["reverse"]))


def over_axis(function):
    """Before version 13, the dimensions from the axis on count as one."""

    def of_node(node, x):
        if node.opset >= 13:
            return function(x, node["axis"])
        axis = node["axis"] % x.shape.rank
        return tf.reshape(function(tf.reshape(x, [int(np.prod(x.shape[:axis])), -1]), -1), x.shape)

    return of_node


def hardmax(x, axis):
    return tf.one_hot(tf.argmax(x, axis), x.shape[axis], axis=axis, dtype=x.dtype)


operator("Softmax")(over_axis(tf.nn.softmax))
operator("LogSoftmax")(over_axis(tf.nn.log_softmax))
operator("Hardmax")(over_axis(hardmax))


@operator("LpNormalization")
def lp_normalization(node, x):
    norm = tf.norm(x, node["p"], node["axis"], keepdims=True)
    return tf.math.divide_no_nan(x, norm)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(node, x):
    average, variance = tf.nn.moments(x, node["axes"], keepdims=True)
    return (x - average) / (tf.sqrt(variance) + 1e-9)


@operator("MatMul")
def matmul(node, a, b):
    """A vector is a row on the left and a column on the right."""
    row, column = a.shape.rank == 1, b.shape.rank == 1
    a = a[tf.newaxis] if row else a
    found = tf.matmul(a, b[:, tf.newaxis] if column else b)
    found = tf.squeeze(found, -1) if column else found
    return tf.squeeze(found, -1 if column else -2) if row else found


@operator("Gemm")
def gemm(node, a, b, c=None):
    found = tf.matmul(a, b, bool(node["transA"]), bool(node["transB"]))
    found = found if node["alpha"] == 1 else tf.cast(node["alpha"], a.dtype) * found
    return found if c is None else found + (c if node["beta"] == 1 else tf.cast(node["beta"], c.dtype) * c)


@operator("Einsum")
def einsum(node, *values):
    return tf.einsum(node["equation"].replace(" ", ""), *values)


@operator("Det")
def det(node, x):
    return tf.linalg.det(x)


@operator("LayerNormalization")
def layer_normalization(node, x, scale, bias=None):
    axes = list(range(node["axis"] % x.shape.rank, x.shape.rank))
    average, variance = tf.nn.moments(tf.cast(x, tf.float32), axes, keepdims=True)
    deviation = tf.math.rsqrt(variance + node["epsilon"])
    found = tf.cast((tf.cast(x, tf.float32) - average) * deviation, x.dtype) * scale
    return found if bias is None else found + bias, average, deviation


@operator("RMSNormalization")
def rms_normalization(node, x, scale):
    axes = list(range(node["axis"] % x.shape.rank, x.shape.rank))
    wide = tf.cast(x, tf.float32)
    found = wide * tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axes, keepdims=True) + node["epsilon"])
    return tf.cast(found, x.dtype) * scale


@operator("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(node, log_probabilities, target, weight=None):
    """Channels are the second dimension. An ignored target does not count."""
    moved = tf.experimental.numpy.moveaxis(log_probabilities, 1, -1)
    there, label = not_ignored(node, target)
    losses = -tf.gather(moved, label, axis=-1, batch_dims=label.shape.rank)
    return averaged(node, losses, there, label, weight)


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(node, scores, target, weight=None):
    moved = tf.experimental.numpy.moveaxis(scores, 1, -1)
    there, label = not_ignored(node, target)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, moved)
    return averaged(node, losses, there, label, weight), tf.nn.log_softmax(scores, 1)


def not_ignored(node, target):
    """A mask of the targets that count, and the targets with 0 in place of the others."""
    there = tf.ones_like(target, tf.bool) if node["ignore_index"] is None else target != node["ignore_index"]
    return there, tf.where(there, target, tf.zeros_like(target))


def averaged(node, losses, there, label, weight):
    weights = tf.cast(there, losses.dtype)
    if weight is not None:
        weights *= tf.gather(weight, label)
    losses *= weights
    if node["reduction"] == "none":
        return losses
    if node["reduction"] == "sum":
        return tf.reduce_sum(losses)
    return tf.reduce_sum(losses) / tf.reduce_sum(weights)
