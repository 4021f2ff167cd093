"""Operators on elements."""

from __future__ import annotations

import functools

import tensorflow as tf

from tests.onnx_nodes.interpreter import Node, on_host, operator, type_of


def on_host_if(dtype, function, *values):
    if dtype not in [v.dtype for v in values]:
        return function(*values)
    with on_host():
        return function(*values)


UNARY = {
    "Abs": tf.abs,
    "Acos": tf.acos,
    "Acosh": tf.acosh,
    "Asin": tf.asin,
    "Asinh": tf.asinh,
    "Atan": tf.atan,
    "Atanh": tf.atanh,
    "BitwiseNot": tf.bitwise.invert,
    "Ceil": tf.math.ceil,
    "Cos": tf.cos,
    "Cosh": tf.cosh,
    "Erf": tf.math.erf,
    "Exp": tf.exp,
    "Floor": tf.floor,
    "Identity": lambda x: tf.identity(x) if tf.is_tensor(x) else x,
    "IsNaN": tf.math.is_nan,
    "Log": tf.math.log,
    "Neg": tf.negative,
    "Not": tf.logical_not,
    "Reciprocal": tf.math.reciprocal,
    "Relu": tf.nn.relu,
    "Round": tf.round,
    "Sigmoid": tf.sigmoid,
    "Sign": tf.sign,
    "Sin": tf.sin,
    "Sinh": tf.sinh,
    "Softplus": tf.nn.softplus,
    "Softsign": tf.nn.softsign,
    "Sqrt": tf.sqrt,
    "Tan": tf.tan,
    "Tanh": tf.tanh,
    "Mish": lambda x: x * tf.tanh(tf.nn.softplus(x)),
    "HardSwish": lambda x: x * tf.nn.relu6(x + 3) / 6,
}

BINARY = {
    "Add": tf.add,
    "And": tf.logical_and,
    "BitwiseAnd": tf.bitwise.bitwise_and,
    "BitwiseOr": tf.bitwise.bitwise_or,
    "BitwiseXor": tf.bitwise.bitwise_xor,
    "Div": lambda a, b: tf.truncatediv(a, b) if a.dtype.is_integer else tf.divide(a, b),
    "Equal": lambda a, b: on_host_if(tf.string, tf.equal, a, b),
    "Greater": tf.greater,
    "GreaterOrEqual": tf.greater_equal,
    "Less": tf.less,
    "LessOrEqual": tf.less_equal,
    "Mul": tf.multiply,
    "Or": tf.logical_or,
    "Sub": tf.subtract,
    "Xor": tf.math.logical_xor,
}

# Operators with a parameter: functions of the tensor and the node.
WITH_ATTRIBUTES = {
    "BitCast": lambda x, node: tf.bitcast(x, type_of(node["to"])),
    "Celu": lambda x, node: tf.maximum(x, 0) + tf.minimum(node["alpha"] * tf.math.expm1(x / node["alpha"]), 0),
    "Elu": lambda x, node: tf.where(x < 0, node["alpha"] * tf.nn.elu(x), x),
    "Gelu": lambda x, node: tf.nn.gelu(x, approximate=node["approximate"] == "tanh"),
    "HardSigmoid": lambda x, node: tf.clip_by_value(node["alpha"] * x + node["beta"], 0, 1),
    "LeakyRelu": lambda x, node: tf.nn.leaky_relu(x, node["alpha"]),
    "Swish": lambda x, node: tf.nn.silu(x, node["alpha"]),
    "ThresholdedRelu": lambda x, node: tf.where(x > node["alpha"], x, tf.zeros_like(x)),
}

for name, function in UNARY.items():
    operator(name)(lambda node, x, function=function: function(x))
for name, function in WITH_ATTRIBUTES.items():
    operator(name)(lambda node, x, function=function: function(x, node))


def aligned(node: Node, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The second argument, reshaped for broadcasting. Before version 7, ONNX aligned it at an axis of the first."""
    if node.opset >= 7 or node["axis"] is None:
        return b
    behind = a.shape.rank - node["axis"] - b.shape.rank
    return tf.reshape(b, tf.concat([tf.shape(b), [1] * behind], 0))


for name, function in BINARY.items():
    operator(name)(lambda node, a, b, function=function: function(a, aligned(node, a, b)))


@operator("BitShift")
def bit_shift(node, x, y):
    return (tf.bitwise.left_shift if node["direction"] == "LEFT" else tf.bitwise.right_shift)(x, y)


@operator("Mod")
def mod(node, a, b):
    """TensorFlow truncates in wider types only; the result is exact in the narrow type, too."""
    if node["fmod"] and a.dtype in (tf.float16, tf.bfloat16):
        return tf.cast(tf.truncatemod(tf.cast(a, tf.float32), tf.cast(b, tf.float32)), a.dtype)
    if node["fmod"] and a.dtype not in (tf.float32, tf.float64, tf.int32, tf.int64):
        return tf.cast(tf.truncatemod(tf.cast(a, tf.int64), tf.cast(b, tf.int64)), a.dtype)
    return (tf.truncatemod if node["fmod"] else tf.math.floormod)(a, b)


@operator("Pow")
def power(node, x, y):
    """The result has the first argument's type."""
    wide = x.dtype if not x.dtype.is_integer or y.dtype.is_integer else y.dtype
    return tf.cast(tf.pow(tf.cast(x, wide), tf.cast(aligned(node, x, y), wide)), x.dtype)


@operator("Max")
def maximum(node, *values):
    return functools.reduce(tf.maximum, values)


@operator("Min")
def minimum(node, *values):
    return functools.reduce(tf.minimum, values)


@operator("Sum")
def total(node, *values):
    same = all(v.shape.is_fully_defined() and v.shape == values[0].shape for v in values)
    return tf.add_n(values) if same else functools.reduce(tf.add, values)


@operator("Mean")
def mean(node, *values):
    return total(node, *values) / len(values)


@operator("Clip")
def clip(node, x, low=None, high=None):
    low, high = (node["min"], node["max"]) if node.opset < 11 else (low, high)
    if low is not None and high is not None:
        return tf.clip_by_value(x, low, high)
    x = x if low is None else tf.maximum(x, low)
    return tf.identity(x) if high is None else tf.minimum(x, high)


@operator("IsInf")
def is_inf(node, x):
    """Attributes choose infinities of one sign or both."""
    infinite = tf.math.is_inf(x)
    infinite = infinite if node["detect_positive"] else tf.logical_and(infinite, x < 0)
    return infinite if node["detect_negative"] else tf.logical_and(infinite, x > 0)


@operator("PRelu")
def prelu(node, x, slope):
    if node.opset < 9 and slope.shape.rank == 1 and x.shape.rank > 1:  # one for each channel
        slope = tf.reshape(slope, [-1] + [1] * (x.shape.rank - 2))
    return tf.where(x < 0, slope * x, x)


@operator("Selu")
def selu(node, x):
    default = abs(node["alpha"] - 1.6732632) < 1e-6 and abs(node["gamma"] - 1.050701) < 1e-6
    return tf.nn.selu(x) if default else node["gamma"] * tf.where(x < 0, node["alpha"] * tf.nn.elu(x), x)


@operator("Shrink")
def shrink(node, x):
    zero, bias = tf.zeros_like(x), tf.cast(node["bias"], x.dtype)
    limit = tf.cast(node["lambd"], x.dtype)
    return tf.where(x < -limit, x + bias, tf.where(x > limit, x - bias, zero))


@operator("SwiGLU")
def swiglu(node, a, b):
    return tf.nn.silu(a, node["alpha"]) * b


@operator("Where")
def where(node, condition, x, y):
    return tf.where(condition, x, y)


@operator("Cast")
def cast(node, x):
    return to_type(x, type_of(node["to"]))


@operator("CastLike")
def cast_like(node, x, like):
    return to_type(x, like.dtype)


def to_type(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Accelerators have no floating-point numbers of 8 bits and no integers of 4."""
    if x.dtype == tf.string:
        return tf.cast(tf.strings.to_number(x, tf.float32), dtype)
    if dtype == tf.string:
        return tf.strings.as_string(x, shortest=True)
    if any(t.name.startswith(("float8", "int4", "uint4")) for t in (x.dtype, dtype)):
        with on_host():
            return tf.cast(x, dtype)
    return tf.cast(x, dtype)


@operator("Binarizer", domain="ai.onnx.ml")
def binarizer(node, x):
    return tf.cast(x > node["threshold"], x.dtype)
