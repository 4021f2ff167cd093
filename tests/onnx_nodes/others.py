"""Quantized numbers, Fourier transforms, and optimizers."""

from __future__ import annotations

import tensorflow as tf

from tests.onnx_nodes.interpreter import known, operator, type_of
from tests.onnx_nodes.nets import convolution, second


def spread(node, scale: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Broadcasts a scale or zero point, which may be one for each index of an axis or for each block."""
    if node["block_size"]:
        axis = node["axis"] % like.shape.rank
        return tf.repeat(scale, node["block_size"], axis)[tuple(slice(n) for n in like.shape)]
    if scale.shape.rank == 1 and scale.shape[0] > 1:
        axis = node["axis"] % like.shape.rank
        return tf.reshape(scale, [-1] + [1] * (like.shape.rank - 1 - axis))
    return scale


def quantized(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Rounds to the nearest even integer and limits to the type's range."""
    return tf.cast(tf.clip_by_value(tf.round(x), dtype.min, dtype.max), dtype)


@operator("QuantizeLinear")
def quantize_linear(node, x, scale, zero=None):
    dtype = type_of(node["output_dtype"]) if node["output_dtype"] else tf.uint8 if zero is None else zero.dtype
    found = tf.cast(x, tf.float32) / tf.cast(spread(node, scale, x), tf.float32)
    if not dtype.is_integer:
        return tf.cast(found, dtype)
    offset = 0.0 if zero is None else tf.cast(spread(node, zero, x), tf.float32)
    return quantized(tf.round(found) + offset, dtype)


@operator("DequantizeLinear")
def dequantize_linear(node, x, scale, zero=None):
    dtype = type_of(node["output_dtype"]) if node["output_dtype"] else scale.dtype
    offset = 0.0 if zero is None else tf.cast(spread(node, zero, x), tf.float32)
    found = (tf.cast(x, tf.float32) - offset) * tf.cast(spread(node, scale, x), tf.float32)
    return tf.cast(found, dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(node, x):
    low, high = tf.minimum(tf.reduce_min(x), 0), tf.maximum(tf.reduce_max(x), 0)
    scale = (high - low) / 255
    zero = quantized(-low / scale, tf.uint8)
    return quantized(tf.round(x / scale) + tf.cast(zero, tf.float32), tf.uint8), scale, zero


def shifted(x: tf.Tensor, zero: tf.Tensor | None, axis: int | None = None) -> tf.Tensor:
    """Subtracts a zero point, or one for each index of the first axis."""
    x = tf.cast(x, tf.int32)
    if zero is None:
        return x
    zero = tf.cast(zero, tf.int32)
    return x - (zero if axis is None or zero.shape.rank == 0 else tf.reshape(zero, [-1] + [1] * axis))


@operator("MatMulInteger")
def matmul_integer(node, a, b, a_zero=None, b_zero=None):
    return tf.matmul(shifted(a, a_zero), shifted(b, b_zero))


@operator("QLinearMatMul")
def qlinear_matmul(node, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):
    product = tf.cast(tf.matmul(shifted(a, a_zero), shifted(b, b_zero)), tf.float32)
    scale = tf.cast(a_scale, tf.float32) * tf.cast(b_scale, tf.float32) / tf.cast(y_scale, tf.float32)
    return quantized(tf.round(product * scale) + tf.cast(y_zero, tf.float32), y_zero.dtype)


@operator("ConvInteger")
def conv_integer(node, x, w, x_zero=None, w_zero=None):
    """Convolves in float64, which is exact: TensorFlow has no convolution of 32-bit integers."""
    found = convolution(node, wide(shifted(x, x_zero)), wide(shifted(w, w_zero, w.shape.rank - 1)))
    return second(tf.cast(found, tf.int32))


@operator("QLinearConv")
def qlinear_conv(node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None):
    found = convolution(node, wide(shifted(x, x_zero)), wide(shifted(w, w_zero, w.shape.rank - 1)))
    found = found if bias is None else found + wide(bias)
    scaled = tf.cast(found, tf.float32) * (x_scale * w_scale / y_scale)
    return second(quantized(tf.round(scaled) + tf.cast(y_zero, tf.float32), y_zero.dtype))


def wide(x: tf.Tensor) -> tf.Tensor:
    return tf.cast(x, tf.float64)


def complex_of(x: tf.Tensor) -> tf.Tensor:
    """Makes complex numbers. ONNX has their parts, or the real part only, in the last dimension."""
    imaginary = x[..., 1] if x.shape[-1] == 2 else tf.zeros_like(x[..., 0])
    return tf.complex(x[..., 0], imaginary)


def parts_of(x: tf.Tensor) -> tf.Tensor:
    return tf.stack([tf.math.real(x), tf.math.imag(x)], -1)


@operator("DFT")
def dft(node, x, length=None, axis=None):
    axis = (node["axis"] if axis is None else int(known(axis))) % x.shape.rank
    values = tf.experimental.numpy.moveaxis(complex_of(x), axis, -1)
    n = values.shape[-1] if length is None else int(known(length))
    values = values[..., :n]
    values = tf.pad(values, [(0, 0)] * (values.shape.rank - 1) + [(0, n - values.shape[-1])])
    if node["onesided"] and node["inverse"]:
        found = tf.signal.irfft(values)
        return tf.experimental.numpy.moveaxis(found, -1, axis)[..., tf.newaxis]
    if node["onesided"]:
        found = tf.signal.rfft(tf.math.real(values), [n])
    else:
        found = (tf.signal.ifft if node["inverse"] else tf.signal.fft)(values)
    return parts_of(tf.experimental.numpy.moveaxis(found, -1, axis))


@operator("STFT")
def stft(node, signal, step, window=None, length=None):
    length = window.shape[0] if length is None else int(known(length))
    frames = tf.signal.frame(complex_of(signal), length, int(known(step)))
    frames = frames if window is None else frames * tf.cast(window, frames.dtype)
    return parts_of(tf.signal.rfft(tf.math.real(frames)) if node["onesided"] else tf.signal.fft(frames))


class Update:
    """Variables for the ops of optimizers, eagerly or in a graph."""

    made = 0

    def __init__(self, *values: tf.Tensor):
        self.handles, self._types = [], [v.dtype for v in values]
        for value in values:
            Update.made += 1
            name = f"onnx_node_{Update.made}"
            handle = tf.raw_ops.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name=name)
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)
            self.handles.append(handle)

    def read(self) -> list[tf.Tensor]:
        values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=t) for h, t in zip(self.handles, self._types)]
        for handle in self.handles:
            tf.raw_ops.DestroyResourceOp(resource=handle)
        return values


def optimizer(states):
    """Enters an optimizer: a function of one tensor, its gradient and its states. ONNX gives lists of all of them."""

    def enter(function):
        def of_node(node, rate, step, *inputs):
            number = len(inputs) // (2 + states)
            groups = [inputs[i::number] for i in range(number)]
            results = [function(node, rate, tf.cast(step, tf.float32), *group) for group in groups]
            return tuple(v for of_all in zip(*results) for v in of_all)

        operator(function.__name__.capitalize(), domain="ai.onnx.preview.training")(of_node)
        return function

    return enter


@optimizer(states=1)
def adagrad(node, rate, step, x, gradient, squares):
    update = Update(x, squares)
    gradient += node["norm_coefficient"] * x
    x, squares = update.handles
    rate /= 1 + step * node["decay_factor"]
    epsilon = node["epsilon"]
    tf.raw_ops.ResourceApplyAdagradV2(var=x, accum=squares, lr=rate, epsilon=epsilon, grad=gradient)
    return update.read()


@optimizer(states=1)
def momentum(node, rate, step, x, gradient, velocity):
    update = Update(x, velocity)
    gradient += node["norm_coefficient"] * x
    x, velocity = update.handles
    nesterov, alpha = node["mode"] == "nesterov", node["alpha"]
    gradient *= tf.where(step > 0, node["beta"], 1.0)
    tf.raw_ops.ResourceApplyMomentum(
        var=x, accum=velocity, lr=rate, grad=gradient, momentum=alpha, use_nesterov=nesterov
    )
    return update.read()


@optimizer(states=2)
def adam(node, rate, step, x, gradient, m, v):
    update = Update(x, m, v)
    gradient += node["norm_coefficient"] * x
    x, m, v = update.handles
    alpha, beta = node["alpha"], node["beta"]
    tf.raw_ops.ResourceApplyAdam(
        var=x,
        m=m,
        v=v,
        beta1_power=tf.where(step > 0, tf.pow(alpha, step), 0.0),
        beta2_power=tf.where(step > 0, tf.pow(beta, step), 0.0),
        lr=rate,
        beta1=alpha,
        beta2=beta,
        epsilon=node["epsilon"],
        grad=gradient,
    )
    x, m, v = update.read()
    return (1 - node["norm_coefficient_post"]) * x, m, v
