"""Convolutions with dilations. TensorFlow builds them of SpaceToBatchND, a plain convolution and BatchToSpaceND; a pass
makes one op of these again (tensorflow_plugin/graph/restore_dilations.h).
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement

MOVES = {"SpaceToBatchND", "BatchToSpaceND"}
layers = tf.keras.layers
#: By name: a layer, and the shape of what it is called with, None where the graph does not know it.
LAYERS = {
    "causal": (lambda: layers.Conv1D(7, 2, padding="causal", dilation_rate=4), (3, 30, 5)),
    "same, a line": (lambda: layers.Conv1D(8, 3, padding="same", dilation_rate=5), (2, 23, 4)),
    "valid, a line": (lambda: layers.Conv1D(4, 3, dilation_rate=3, activation="relu"), (1, 40, 3)),
    "same": (lambda: layers.Conv2D(6, 3, padding="same", dilation_rate=(2, 3)), (2, 15, 16, 4)),
    "valid": (lambda: layers.Conv2D(5, (3, 2), dilation_rate=2, activation="tanh"), (2, 14, 9, 3)),
    "rows": (lambda: layers.Conv2D(5, 3, padding="same", dilation_rate=(4, 1)), (1, 13, 12, 3)),
    "depthwise": (lambda: layers.DepthwiseConv2D(3, padding="same", dilation_rate=2), (2, 11, 12, 8)),
    "separable": (lambda: layers.SeparableConv2D(6, 3, padding="same", dilation_rate=2), (2, 11, 12, 8)),
    "any batch": (lambda: layers.Conv2D(6, 3, padding="same", dilation_rate=2), (None, 12, 13, 4)),
}
#: The graph computes the padding where it does not know the extents.
LEFT = {"any size": (lambda: layers.Conv2D(6, 3, padding="same", dilation_rate=2), (None, None, None, 4))}


def run(name, dtype, xpu_device):
    """The results and gradients on the CPU and the XPU, and the ops of the latter's forward pass."""
    make, shape = (LAYERS | LEFT)[name]
    tf.keras.utils.set_random_seed(1)
    x = np.random.default_rng(0).standard_normal([size or 10 for size in shape])
    results, ran = {}, set()
    weights = None
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            layer = make()
            layer.dtype_policy = tf.keras.DTypePolicy(dtype)
            layer.build(shape)
            weights = weights or layer.get_weights()
            layer.set_weights(weights)
            spec = tf.TensorSpec(shape, dtype)

            @tf.function(input_signature=[spec])
            def forward(x, layer=layer):
                return layer(x)

            @tf.function(input_signature=[spec])
            def gradients(x, layer=layer):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(tf.square(layer(x)))
                return tape.gradient(y, [x, *layer.trainable_variables])

            value = tf.constant(x, dtype)
            with placement.record_nodes() as nodes:
                y = forward(value)
            ran = {node.op for node in placement.with_members(nodes)}
            results[device] = [tf.cast(t, tf.float64).numpy() for t in [y, *gradients(value)]]
    return results["/cpu:0"], results[xpu_device], ran


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", LAYERS)
def test_are_one_op(name, dtype, xpu_device):
    want, got, ran = run(name, dtype, xpu_device)
    tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2}[dtype]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))
    assert not ran & MOVES


def test_stay_as_they_are_where_extents_are_unknown(xpu_device):
    want, got, ran = run("any size", "float32", xpu_device)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1, np.abs(b).max()))
    assert ran >= MOVES


def moved(x, block=(2, 2), back=(2, 2), paddings=((2, 2), (2, 2)), crops=((0, 0), (0, 0))):
    """The ops that TensorFlow builds, by hand: a convolution with 3x3 ones."""
    y = tf.space_to_batch(x, block, paddings)
    y = tf.nn.conv2d(y, tf.ones([3, 3, x.shape[-1], 2]), 1, "VALID")
    return tf.batch_to_space(y, back, crops)


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        ({}, True),
        ({"paddings": ((3, 1), (0, 4)), "crops": ((1, 0), (0, 2))}, True),
        ({"paddings": ((0, 0), (1, 3)), "crops": ((1, 0), (0, 2))}, False),  # crops what is no padding
        ({"block": (2, 4), "back": (4, 2), "paddings": ((2, 2), (2, 2))}, False),
    ],
)
def test_by_hand(words, is_one, xpu_device):
    x = tf.constant(np.random.default_rng(0).standard_normal((2, 12, 16, 3)), tf.float32)
    function = tf.function(lambda x: moved(x, **words))
    with tf.device("/cpu:0"):
        want = function(x)
    with tf.device(xpu_device), placement.record_nodes() as nodes:
        got = function(x)
    np.testing.assert_allclose(got, want, atol=1e-5)
    assert bool({node.op for node in placement.with_members(nodes)} & MOVES) != is_one


def test_a_value_that_others_read_is_there(xpu_device):
    """The pixels between the ops are read by somebody else, too."""

    @tf.function
    def f(x):
        pixels = tf.space_to_batch(x, [2, 2], [[2, 2], [2, 2]])
        y = tf.nn.conv2d(pixels, tf.ones([3, 3, 3, 2]), 1, "VALID")
        return tf.batch_to_space(y, [2, 2], [[0, 0], [0, 0]]), tf.reduce_sum(pixels, [1, 2])

    x = tf.constant(np.random.default_rng(0).standard_normal((2, 12, 16, 3)), tf.float32)
    with tf.device("/cpu:0"):
        want = f(x)
    with tf.device(xpu_device):
        got = f(x)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_an_extent_that_is_no_multiple_fails_as_before(xpu_device):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3])])
    def f(x):
        return moved(x)

    with tf.device(xpu_device):
        assert f(tf.ones([1, 12, 8, 3])).shape == (1, 12, 8, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"padded_shape\[1\]=13 is not divisible by block_sh"):
            f(tf.ones([1, 12, 9, 3]))
