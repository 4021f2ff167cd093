"""XlaDynamicSlice and XlaDynamicUpdateSlice outside XLA: what is refused, rank 8, places that change in clusters."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tests.support import placement

DEVICES = ("/cpu:0", "/xpu:0")


@pytest.mark.parametrize(
    ("shape", "window", "start", "words"),
    [
        ((3, 4), (2, 5), (0, 0), "Update dim size 5 greater than dynamic slice dimension: 4."),
        ((3, 4), (2,), (0, 0), r"input and update must have the same rank, input shape is \[3,4\]; update shape is"),
        ((3, 4), (2, 2), (0,), "index must be a vector with length equal to the number of input dimensions"),
        ((3, 4), (2, 2), ((0, 0),), "index must be a vector with length equal to the number of input dimensions"),
    ],
)
def test_updates_that_are_refused(xpu_device, shape, window, start, words):
    for device in DEVICES:
        with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError, match=words):
            gen_xla_ops.xla_dynamic_update_slice(tf.zeros(shape), tf.zeros(window), tf.constant(start))


@pytest.mark.parametrize(
    ("size", "start", "words"),
    [
        ((2, 5), (0, 0), "has slice size 5 greater than dimension size 4 in dimension 1 of operand"),
        ((2, -1), (0, 0), "has negative size index to dynamic slice: -1"),
        ((2, 2), (0,), r"has mismatched number of slice sizes \(2\) and number of start indices \(1\)"),
        ((2,), (0, 0), r"has mismatched number of slice sizes \(1\) and number of start indices \(2\)"),
    ],
)
def test_slices_that_are_refused(xpu_device, size, start, words):
    for device in DEVICES:
        with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError, match=words):
            gen_xla_ops.xla_dynamic_slice(tf.zeros((3, 4)), tf.constant(start), tf.constant(size))


def test_eight_axes(xpu_device):
    x = np.arange(2 * 3 * 2 * 2 * 3 * 2 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2, 3, 2, 2, 2)
    start, size = (1, 1, 0, 1, 2, 0, 1, 0), (1, 2, 2, 1, 1, 2, 1, 2)
    where = tuple(slice(b, b + n) for b, n in zip(start, size))
    with tf.device(xpu_device):
        np.testing.assert_array_equal(gen_xla_ops.xla_dynamic_slice(x, start, size), x[where])
        expected = x.copy()
        expected[where] *= -1
        out = gen_xla_ops.xla_dynamic_update_slice(x, -x[where], start)
        np.testing.assert_array_equal(out, expected)


def test_a_cache_that_is_written_token_by_token(xpu_device):
    """As KerasHub generates text; what was written before stays."""
    tokens = np.random.default_rng(0).standard_normal((5, 2, 1, 3)).astype(np.float32)

    @tf.function
    def generate(tokens):
        cache = tf.zeros([2, 7, 3])
        for i in tf.range(5):
            cache = gen_xla_ops.xla_dynamic_update_slice(cache, tf.nn.relu(tokens[i]) + 1.0, [0, i + 1, 0])
        return cache

    with tf.device(xpu_device), placement.record() as ran:
        cache = generate(tf.constant(tokens))
    expected = np.zeros((2, 7, 3), np.float32)
    expected[:, 1:6] = np.maximum(tokens[:, :, 0], 0).swapaxes(0, 1) + 1
    np.testing.assert_array_equal(cache, expected)
    assert ran["XlaDynamicUpdateSlice"] == {"XPU"}
