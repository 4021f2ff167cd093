"""Runs single ops on a device, eagerly and in a function, and compares the two with each other or with the CPU."""

import numpy as np
import pytest
import tensorflow as tf

XPU, CPU = "/xpu:0", "/cpu:0"


def numpy(values):
    return [np.asarray(tf.convert_to_tensor(v).numpy()) for v in tf.nest.flatten(values)]


def tensors(arrays):
    return [a if isinstance(a, tf.Tensor) else tf.constant(a) for a in arrays]


def check(device, fn, *arrays, tolerance=0.0):
    """fn(*tensors) gives the same on `device`, eagerly and in a tf.function, as on the CPU."""
    with tf.device("/cpu:0"):
        inputs = tensors(arrays)
        want = numpy(fn(*inputs))
    with tf.device(device):
        runs = [numpy(fn(*inputs)), numpy(tf.function(lambda *a: fn(*a), autograph=False)(*inputs))]
    for got in runs:
        assert [g.shape for g in got] == [w.shape for w in want]
        for g, w in zip(got, want):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(
                g.astype(np.complex128), w.astype(np.complex128), rtol=tolerance, atol=tolerance
            ) if tolerance else np.testing.assert_array_equal(g, w)


def check_fails(device, text, fn, *arrays):
    """fn(*tensors) fails on `device` with InvalidArgument saying `text`, and on the CPU as well."""
    for where in ("/cpu:0", device):
        with tf.device(where), pytest.raises((tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)) as error:
            numpy(fn(*tensors(arrays)))
        if where == device:
            assert text in error.value.message, error.value.message


def values(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape, dtype=int)) % 251).reshape(shape).astype(dtype)


def uniform(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng((seed, *shape)).uniform(-1, 1, shape).astype(dtype)


def whole(*shape, seed=0):
    """Small whole numbers: sums of their products are exact in float."""
    return np.random.default_rng((seed, *shape)).integers(-4, 5, shape).astype(np.float32)


def on(device, op, **kwargs):
    with tf.device(device):
        return op(**kwargs)


def on_xpu(op, **kwargs):
    """Runs eagerly and in a tf.function; both must agree bit by bit."""
    # Tensors are arguments of the function: it would fold constants, on the CPU.
    tensors = {k: v for k, v in kwargs.items() if isinstance(v, (np.ndarray, tf.Tensor))}
    rest = {k: v for k, v in kwargs.items() if k not in tensors}
    with tf.device(XPU):
        eager = op(**kwargs)
        traced = tf.function(lambda t: op(**t, **rest), autograph=False)(tensors)
    for a, b in zip(tf.nest.flatten(eager), tf.nest.flatten(traced)):
        np.testing.assert_array_equal(a, b)
        assert "XPU" in a.device.upper()
    return eager
