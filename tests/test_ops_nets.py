"""Bad arguments of parts of networks give the CPU's error in the CPU's words; gradients run on the device."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
POOL_3D = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}


def ones(*shape):
    return np.ones(shape, np.float32)


def maxima(x=(1, 4, 4, 3), **kwargs):
    return lambda: raw.MaxPoolWithArgmax(input=ones(*x), **{**POOL, **kwargs})


def at_maxima(x=(1, 4, 4, 3), grad=(1, 2, 2, 3), argmax=(1, 2, 2, 3), value=0, **kwargs):
    positions = np.full(argmax, value, np.int64)
    return lambda: raw.MaxPoolGradWithArgmax(input=ones(*x), grad=ones(*grad), argmax=positions, **{**POOL, **kwargs})


def second(x=(1, 4, 4, 3), y=(1, 2, 2, 3), g=(1, 4, 4, 3), op=raw.MaxPoolGradGrad, attrs=POOL, **kwargs):
    return lambda: op(orig_input=ones(*x), orig_output=ones(*y), grad=ones(*g), **{**attrs, **kwargs})


def second_3d(x=(1, 4, 4, 4, 3), y=(1, 2, 2, 2, 3), g=(1, 4, 4, 4, 3), **kwargs):
    return second(x, y, g, raw.MaxPool3DGradGrad, POOL_3D, **kwargs)


def lrn_grad(dy=(1, 2, 2, 3), x=(1, 2, 2, 3), y=(1, 2, 2, 3)):
    return lambda: raw.LRNGrad(input_grads=ones(*dy), input_image=ones(*x), output_image=ones(*y))


# A call and what its error says on both devices.
BAD = [
    (maxima(x=(4, 4, 3)), "tensor_in must be 4-dimensional"),
    (maxima(x=(0, 4, 4, 3)), "tensor_in must not be empty"),
    (maxima(ksize=[2, 1, 1, 1]), "Pooling is not yet supported on the batch dimension"),
    (maxima(ksize=[1, 7, 7, 1], strides=[1] * 4), "Computed output size would be negative"),
    (at_maxima(grad=(1, 2, 3, 3)), r"Expected grad shape to be \[1,2,2,3\], but got \[1,2,3,3\]"),
    (at_maxima(argmax=(1, 2, 3, 3)), r"Expected argmax shape to be \[1,2,2,3\], but got \[1,2,3,3\]"),
    (at_maxima(argmax=(12,)), r"Expected argmax shape to be \[1,2,2,3\], but got \[12\]"),
    (second(x=(4, 4, 3)), "tensor_in must be 4-dimensional"),
    (second(y=(4, 4, 3)), "tensor_out must be 4-dimensional"),
    (second(g=(4, 4, 3)), "out_grad_backprop must be 4-dimensional"),
    (second(y=(1, 2, 3, 3)), r"Expected orig_output shape to be \[1,2,2,3\], but got \[1,2,3,3\]"),
    (second(g=(1, 4, 3, 3)), r"Expected grad shape to be \[1,4,4,3\], but got \[1,4,3,3\]"),
    (second(ksize=[1, 2, 2, 2]), "MaxPoolingGradGrad is not yet supported on the depth dimension"),
    (second(ksize=[2, 2, 2, 1]), "Pooling is not yet supported on the batch dimension"),
    (second(strides=[1, 0, 2, 1]), "Stride must be > 0, but got 0"),
    (second(op=raw.MaxPoolGradGradV2, ksize=[1, 2, 2]), "Sliding window ksize field must specify 4 dimensions"),
    (second(op=raw.MaxPoolGradGradV2, ksize=[1, 2, 2, 2]), "MaxPoolingGrad is not yet supported on the depth"),
    (second_3d(g=(4, 4, 4, 3)), "out_grad_backprop must be 5-dimensional"),
    (second_3d(y=(1, 2, 2, 3, 3)), r"Expected orig_output shape to be \[1,2,2,2,3\], but got \[1,2,2,3,3\]"),
    (second_3d(ksize=[1, 2, 2, 2, 2]), "MaxPooling3dGradGrad is not yet supported on the depth dimension"),
    (lambda: raw.LRN(input=ones(4, 4, 3)), "in must be 4-dimensional"),
    (lambda: raw.LRN(input=ones(1, 4, 4, 3), depth_radius=-1), "depth_radius = -1 larger than int max"),
    (lrn_grad(dy=(2, 2, 3)), "inputs must be 4-dimensional"),
    (lrn_grad(dy=(1, 2, 2, 2)), "input_grads, input_image, and out_image should have the same shape"),
]


@pytest.mark.parametrize(("call", "words"), BAD, ids=range(len(BAD)))
def test_bad_arguments_fail_as_on_the_cpu(xpu_device, call, words):
    errors = []
    for device in ("/cpu:0", xpu_device):
        with hard_placement(), tf.device(device), pytest.raises(tf.errors.OpError, match=words) as caught:
            call()
        errors.append(type(caught.value))
    assert errors[0] is errors[1]


# TensorFlow's CPU kernel ends the process.
@pytest.mark.parametrize("value", [-1, 48, 2**40])
def test_a_position_that_is_none(xpu_device, value):
    words = r"Invalid output gradient index: argmax has elements outside of \[0, 48\)"
    for x, y in [((1, 4, 4, 3), (1, 2, 2, 3)), ((2, 4, 4, 3), (2, 2, 2, 3))]:
        with hard_placement(), tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match=words):
            at_maxima(x, y, y, value)()
    with hard_placement(), tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match=words):
        positions = np.full((1, 2, 2, 3), value, np.int64)
        raw.MaxPoolGradGradWithArgmax(input=ones(1, 4, 4, 3), grad=ones(1, 4, 4, 3), argmax=positions, **POOL)


def test_maxima_of_nan_and_of_channels_first(xpu_device):
    x = np.array([np.nan, 1, 2, np.nan, np.nan, np.nan, 3, 3], np.float32).reshape(1, 1, 8, 1)
    attrs = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    results = []
    for device in ("/cpu:0", xpu_device):
        with hard_placement(), tf.device(device):
            results.append([t.numpy() for t in raw.MaxPoolWithArgmax(input=x, **attrs)])
    for native, got in zip(*results):
        np.testing.assert_array_equal(got, native)

    x, g = np.random.default_rng(1).standard_normal((2, 2, 5, 6, 3)).astype(np.float32)
    with hard_placement(), tf.device(xpu_device):
        last = raw.MaxPoolGradGrad(orig_input=x, orig_output=ones(2, 2, 3, 3), grad=g, **POOL)
        first, g_first = (np.moveaxis(v, -1, 1) for v in (x, g))
        attrs = {"ksize": [1, 1, 2, 2], "strides": [1, 1, 2, 2], "padding": "VALID", "data_format": "NCHW"}
        second = raw.MaxPoolGradGrad(orig_input=first, orig_output=ones(2, 3, 2, 3), grad=g_first, **attrs)
    np.testing.assert_array_equal(np.moveaxis(second.numpy(), 1, -1), last.numpy())


def derivative(function, *arguments):
    """The gradients of the sum of a function's squares."""
    with tf.GradientTape() as tape:
        variables = [tf.convert_to_tensor(a) for a in arguments]
        tape.watch(variables)
        loss = tf.reduce_sum(tf.square(function(*variables)))
    return tape.gradient(loss, variables)


def second_derivative(function, x):
    with tf.GradientTape() as tape:
        x = tf.convert_to_tensor(x)
        tape.watch(x)
        first = derivative(function, x)[0]
        loss = tf.reduce_sum(first * first)
    return tape.gradient(loss, [x])


X = np.random.default_rng(7).standard_normal((2, 6, 6, 3)).astype(np.float32)
GRADIENTS = {
    "argmax": (derivative, lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0]),
    "max_pool twice": (second_derivative, lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME")),
    "max_pool3d twice": (second_derivative, lambda x: tf.nn.max_pool3d(x[None], 2, 2, "SAME")),
    "lrn": (derivative, lambda x: tf.nn.local_response_normalization(x, 2, beta=0.75)),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_run_on_the_device(xpu_device, name, traced):
    how, function = GRADIENTS[name]
    native = None
    for device in ("/cpu:0", xpu_device):
        run = tf.function(how, autograph=False) if traced else how
        with hard_placement(), tf.device(device):
            got = [g.numpy() for g in run(function, X)]
        if native is None:
            native = got
        for a, b in zip(native, got):
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5)
    assert all(np.abs(g).max() > 0 for g in native)
