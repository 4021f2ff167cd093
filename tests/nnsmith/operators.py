"""NNSmith's operators in terms of TensorFlow ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from nnsmith.abstract import op as core
from nnsmith.materialize.tensorflow import dialect

# NNSmith's operators that TensorFlow does not have, and why.
ABSENT = dict.fromkeys([core.LinearInterp, core.TrilinearInterp], "TensorFlow resizes images alone")

# An operator's class -> a function of the operator, a source of weights and the arguments. `weights(shape, dtype)`
# gives small numbers.
OPERATORS: dict[type, Callable[..., Any]] = {}

# Functions that are not defined everywhere get arguments inside their domain.
PLAIN = {
    "Abs": tf.abs,
    "Acos": lambda x: tf.acos(tf.clip_by_value(x, -1, 1)),
    "Add": tf.add,
    "And": tf.logical_and,
    "Asin": lambda x: tf.asin(tf.clip_by_value(x, -1, 1)),
    "Atan": tf.atan,
    "Ceil": tf.math.ceil,
    "Cos": tf.cos,
    "Div": tf.divide,
    "Equal": tf.equal,
    "Floor": tf.floor,
    "GELU": tf.nn.gelu,
    "Greater": tf.greater,
    "LeakyReLU": tf.nn.leaky_relu,
    "Less": tf.less,
    "Log2": lambda x: tf.math.log(tf.abs(x) + 1) / np.log(2),
    "Max": tf.maximum,
    "Min": tf.minimum,
    "Mul": tf.multiply,
    "Neg": tf.negative,
    "Or": tf.logical_or,
    "Pow": tf.pow,
    "ReLU": tf.nn.relu,
    "Round": tf.round,
    "Sigmoid": tf.sigmoid,
    "Sin": tf.sin,
    "Sqrt": lambda x: tf.sqrt(tf.abs(x)),
    "Sub": tf.subtract,
    "Tan": tf.tan,
    "Where": tf.where,
    "Xor": tf.math.logical_xor,
}

REDUCTIONS = {
    "ReduceMax": tf.reduce_max,
    "ReduceMean": tf.reduce_mean,
    "ReduceMin": tf.reduce_min,
    "ReduceProd": tf.reduce_prod,
    "ReduceSum": tf.reduce_sum,
    "Squeeze": tf.squeeze,
}


def operator(*types: type) -> Callable:
    def enter(function):
        OPERATORS.update(dict.fromkeys(types, function))
        return function

    return enter


def classes(*names: str) -> list[type]:
    return [getattr(core, name) for name in names]


for name, plain in PLAIN.items():
    operator(*classes(name))(lambda op, weights, *values, plain=plain: plain(*values))
for name, reduce in REDUCTIONS.items():
    operator(*classes(name))(lambda op, weights, x, reduce=reduce: reduce(x, axis=[op.extra_attrs["reduce_dim"]]))
operator(core.ArgMax)(lambda op, weights, x: tf.argmax(x, op.extra_attrs["reduce_dim"]))
operator(core.ArgMin)(lambda op, weights, x: tf.argmin(x, op.extra_attrs["reduce_dim"]))
operator(dialect.SquaredDifference)(lambda op, weights, a, b: tf.math.squared_difference(a, b))
operator(dialect.TFMatMul)(lambda op, weights, a, b: tf.matmul(a, b))


def shape(op) -> list[int]:
    """The shape of the operator's result."""
    return list(op.output_like[0].shape)


@operator(*classes("CastBool", "CastF32", "CastF64", "CastI32", "CastI64"))
def cast(op, weights, x):
    return tf.cast(x, op.extra_attrs["to"].name)


@operator(*classes("Concat1", "Concat2", "Concat3", "Concat4", "Concat5"))
def concat(op, weights, *values):
    return tf.concat(values, op.extra_attrs["axis"])


@operator(*classes("ExpandLast1", "ExpandLast2", "ExpandLast3", "ExpandLast4"))
def expand(op, weights, x):
    return tf.broadcast_to(x, shape(op))


@operator(*classes("Reshape"))
def reshape(op, weights, x):
    return tf.reshape(x, op.target_shape)


@operator(*classes("Transpose"))
def transpose(op, weights, x):
    one, other = op._init_swap_dims(x.shape)
    order = list(range(x.shape.rank))
    order[one], order[other] = order[other], order[one]
    return tf.transpose(x, order)


@operator(*classes("Tril", "Triu"))
def triangle(op, weights, x):
    function = tf.experimental.numpy.tril if isinstance(op, core.Tril) else tf.experimental.numpy.triu
    return function(x, op.diagonal)


@operator(*classes("Clip"))
def clip(op, weights, x):
    bound = 1.5 if x.dtype.is_floating else 1
    return tf.clip_by_value(x, tf.cast(0 if x.dtype.is_unsigned else -bound, x.dtype), tf.cast(bound, x.dtype))


@operator(*classes("Softmax"))
def softmax(op, weights, x):
    return tf.nn.softmax(x, op.dim)


@operator(*classes("PReLU"))
def prelu(op, weights, x):
    return tf.where(x > 0, x, weights([], x.dtype) * x)


@operator(*classes("Slice"))
def slice_(op, weights, x):
    """The region that NNSmith has drawn says whether bounds count from the beginning or the end."""
    axis, region = op.extra_attrs["axis"], op.extra_attrs["region"]
    length, start, end = x.shape[axis], op.start, op.end
    start -= length if region in ("left", "mid") else 0
    end -= length if region == "left" and end < length else 0
    return x[(*[slice(None)] * axis, slice(start, min(end, length), op.step))]


@operator(*classes("ConstPad", "ReflectPad", "ReplicatePad"))
def pad(op, weights, x):
    """The list has a pair for each dimension, the last one first. A negative number crops."""
    pairs = list(zip(op.padding_list[::2], op.padding_list[1::2]))[::-1]
    pairs = [(0, 0)] * (x.shape.rank - len(pairs)) + pairs
    if isinstance(op, core.ReplicatePad):
        for axis, (before, after) in enumerate(pairs):
            if before or after:
                n = x.shape[axis]
                x = tf.gather(x, np.clip(np.arange(-before, n + after), 0, n - 1), axis=axis)
        return x
    if isinstance(op, core.ReflectPad):
        if min(min(p) for p in pairs) < 0:
            raise NotImplementedError("a negative one")
        return tf.pad(x, pairs, "REFLECT")
    x = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pairs))]
    return tf.pad(x, [(max(b, 0), max(a, 0)) for b, a in pairs], constant_values=tf.cast(0.5, x.dtype))


def last(x):
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1])


def second(x):
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)])


@operator(*classes("MaxPool2d", "AvgPool2d"))
def pool(op, weights, x):
    is_max = isinstance(op, core.MaxPool2d)
    around = [(0, 0), (op.padding, op.padding), (op.padding, op.padding), (0, 0)]
    value = tf.cast(x.dtype.min if is_max else 0, x.dtype)
    x = tf.pad(last(x), around, constant_values=value) if op.padding else last(x)
    function = tf.nn.max_pool2d if is_max else tf.nn.avg_pool2d
    return second(function(x, (op.kernel_h_size, op.kernel_w_size), op.stride, "VALID"))


def convolved(x, filters, stride, padding, dilations):
    """Pads and convolves an image with channels last."""
    x = tf.pad(x, [(0, 0), *([(padding, padding)] * 2 if isinstance(padding, int) else padding), (0, 0)])
    return tf.nn.conv2d(x, filters, stride, "VALID", dilations=dilations)


@operator(*classes("NCHWConv2d"))
def conv2d(op, weights, x):
    filters = weights([op.kernel_h_size, op.kernel_w_size, op.in_channels, op.out_channels], x.dtype)
    found = convolved(last(x), filters, op.stride, op.padding, [op.dilation_h, op.dilation_w])
    return second(tf.nn.bias_add(found, weights([op.out_channels], x.dtype)))


@operator(*classes("Conv1d"))
def conv1d(op, weights, x):
    filters = weights([1, op.kernel_size, op.in_channels, op.out_channels], x.dtype)
    around = [(0, 0), (op.padding, op.padding)]
    found = convolved(last(x)[:, tf.newaxis], filters, [1, op.stride], around, [1, op.dilation])[:, 0]
    return second(tf.nn.bias_add(found, weights([op.out_channels], x.dtype)))


@operator(dialect.NHWCConv2dSamePad, dialect.NHWCConv2dValidPad)
def nhwc_conv2d(op, weights, x):
    filters = weights([op.kernel_h_size, op.kernel_w_size, op.in_channels, op.out_channels], x.dtype)
    dilations = [op.dilation_h, op.dilation_w]
    found = tf.nn.conv2d(x, filters, op.stride, op.extra_attrs["padding"].upper(), dilations=dilations)
    return tf.nn.bias_add(found, weights([op.out_channels], x.dtype))


@operator(dialect.Dense)
def dense(op, weights, x):
    product = tf.tensordot(x, weights([op.ifeat, op.ofeat], x.dtype), 1)
    return tf.nn.bias_add(product, weights([op.ofeat], x.dtype))


@operator(*classes("BatchNorm2d"))
def batch_norm(op, weights, x):
    scale, offset, mean = (weights([op.nfeat], x.dtype) for _ in range(3))
    return second(
        tf.raw_ops.FusedBatchNormV3(
            x=last(x), scale=scale, offset=offset, mean=mean, variance=tf.ones_like(mean), is_training=False
        ).y
    )


@operator(dialect.LocalRespNorm)
def local_response_normalization(op, weights, x):
    how = {name: op.extra_attrs[name] for name in ("bias", "alpha", "beta")}
    return tf.nn.local_response_normalization(x, op.depth_radius, **how)


@operator(*classes("NearestInterp", "BilinearInterp", "BicubicInterp"))
def resize(op, weights, x):
    """TensorFlow resizes images; NNSmith draws one to three spatial dimensions."""
    if len(op.size) != 2:
        raise NotImplementedError("no image")
    if isinstance(op, core.NearestInterp):
        return second(tf.raw_ops.ResizeNearestNeighbor(images=last(x), size=op.size))
    function = tf.raw_ops.ResizeBilinear if isinstance(op, core.BilinearInterp) else tf.raw_ops.ResizeBicubic
    return second(tf.cast(function(images=last(x), size=op.size, half_pixel_centers=True), x.dtype))


def made(op: Any, weights: Callable, values: list) -> Any:
    """The result of an operator. Raises NotImplementedError, TypeError or ValueError if TensorFlow does not have it."""
    return next(OPERATORS[cls] for cls in type(op).__mro__ if cls in OPERATORS)(op, weights, *values)


def opset() -> list[type]:
    """The operators for NNSmith, in the same order in every process."""
    return sorted(OPERATORS, key=lambda cls: cls.__name__)
