"""Neural network ops in cases that the sweep lacks: other data formats, groups, empty tensors."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.support.op_checks import CPU, XPU, on, on_xpu, uniform, whole
from tests.sweep.runner import hard_placement

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


def channels_first(x):
    return np.moveaxis(np.asarray(x), -1, 1)


# --- Convolution ----------------------------------------------------------------------------------------------------

CONVOLUTIONS = {
    "plain": {"x": (2, 7, 8, 4), "f": (3, 3, 4, 6), "padding": "SAME"},
    "strided": {"x": (2, 9, 8, 3), "f": (3, 2, 3, 5), "padding": "SAME", "strides": (2, 3)},
    "valid": {"x": (2, 9, 8, 3), "f": (3, 2, 3, 5), "padding": "VALID", "strides": (2, 1)},
    "explicit": {"x": (2, 6, 5, 3), "f": (3, 3, 3, 4), "padding": "EXPLICIT", "pads": ((2, 0), (1, 3))},
    "dilated": {"x": (1, 12, 11, 2), "f": (3, 3, 2, 4), "padding": "SAME", "dilations": (2, 3)},
    "grouped": {"x": (2, 6, 6, 6), "f": (3, 3, 2, 9), "padding": "SAME"},
    "one group each": {"x": (2, 6, 6, 4), "f": (3, 3, 1, 4), "padding": "VALID"},
    "one by one": {"x": (2, 6, 6, 4), "f": (1, 1, 4, 8), "padding": "SAME"},
    "padded one by one": {"x": (2, 6, 5, 3), "f": (1, 1, 3, 4), "padding": "EXPLICIT", "pads": ((1, 0), (0, 2))},
    "3-D one by one": {"x": (2, 5, 6, 4, 3), "f": (1, 1, 1, 3, 4), "padding": "VALID"},
    "strided one by one": {"x": (2, 6, 5, 4), "f": (1, 1, 4, 8), "padding": "VALID", "strides": (3, 2)},
    "first layer": {"x": (1, 28, 28, 1), "f": (5, 5, 1, 8), "padding": "SAME"},
    "3-D": {"x": (2, 5, 6, 4, 3), "f": (2, 3, 2, 3, 4), "padding": "SAME", "strides": (1, 2, 1)},
    "3-D valid": {"x": (2, 5, 6, 4, 3), "f": (2, 3, 2, 3, 4), "padding": "VALID"},
    "empty batch": {"x": (0, 7, 8, 4), "f": (3, 3, 4, 6), "padding": "SAME"},
}


def direct_convolution(x, f, case):
    """The definition, in double precision, channels last; groups by the depths."""
    n = x.ndim - 2
    strides, dilations = case.get("strides", (1,) * n), case.get("dilations", (1,) * n)
    pads = []
    for i in range(n):
        effective = (f.shape[i] - 1) * dilations[i] + 1
        if case["padding"] == "SAME":
            out = -(-x.shape[i + 1] // strides[i])
            total = max(0, (out - 1) * strides[i] + effective - x.shape[i + 1])
            pads.append((total // 2, total - total // 2))
        else:
            pads.append(case.get("pads", ((0, 0),) * n)[i])
    x = np.pad(x.astype(np.float64), [(0, 0), *pads, (0, 0)])
    out = [(x.shape[i + 1] - (f.shape[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    groups = x.shape[-1] // f.shape[-2]
    y = np.zeros((x.shape[0], *out, groups, f.shape[-1] // groups))
    fg = f.astype(np.float64).reshape(*f.shape[:-1], groups, f.shape[-1] // groups)
    for tap in itertools.product(*map(range, f.shape[:n])):
        cut = tuple(
            slice(t * d, t * d + (o - 1) * s + 1 if o else t * d, s) for t, d, o, s in zip(tap, dilations, out, strides)
        )
        window = x[(slice(None), *cut)].reshape(x.shape[0], *out, groups, f.shape[-2])
        y += np.einsum("...gi,igo->...go", window, fg[tap])
    return y.reshape(x.shape[0], *out, f.shape[-1])


def convolution_attributes(case, first):
    n = len(case["x"]) - 2
    place = (lambda v, fill: [fill, fill, *v]) if first else (lambda v, fill: [fill, *v, fill])
    attrs = {"padding": case["padding"], "strides": place(case.get("strides", (1,) * n), 1)}
    attrs["dilations"] = place(case.get("dilations", (1,) * n), 1)
    if n == 2:
        attrs["data_format"] = "NCHW" if first else "NHWC"
        if "pads" in case:
            attrs["explicit_paddings"] = [p for pair in place(case["pads"], (0, 0)) for p in pair]
    else:
        attrs["data_format"] = "NCDHW" if first else "NDHWC"
    return attrs


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name, first):
    case = CONVOLUTIONS[name]
    n = len(case["x"]) - 2
    x, f = whole(*case["x"]), whole(*case["f"], seed=1)
    want = direct_convolution(x, f, case)
    order = channels_first if first else np.asarray
    attrs = convolution_attributes(case, first)
    got = on_xpu(raw.Conv2D if n == 2 else raw.Conv3D, input=order(x), filter=f, **attrs)
    np.testing.assert_array_equal(got, order(want))

    # The gradients are the adjoints of a map that is linear in x and in f: integers, so the sums are exact.
    to_input = raw.Conv2DBackpropInput if n == 2 else raw.Conv3DBackpropInputV2
    to_filter = raw.Conv2DBackpropFilter if n == 2 else raw.Conv3DBackpropFilterV2
    for seed in range(3):
        dy = whole(*want.shape, seed=5 + seed)
        dx = on_xpu(to_input, input_sizes=order(x).shape, filter=f, out_backprop=order(dy), **attrs)
        df = on_xpu(to_filter, input=order(x), filter_sizes=f.shape, out_backprop=order(dy), **attrs)
        assert dx.shape == order(x).shape
        assert df.shape == f.shape
        v, w = whole(*x.shape, seed=15 + seed), whole(*f.shape, seed=25 + seed)
        assert np.vdot(dx, order(v)) == np.vdot(dy, direct_convolution(v, f, case))
        assert np.vdot(df, w) == np.vdot(dy, direct_convolution(x, w, case))


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "VALID"), (1, "EXPLICIT")])
def test_depthwise(first, multiplier, stride, padding):
    x, f = whole(2, 9, 8, 4), whole(3, 2, 4, multiplier, seed=1)
    case = {"x": x.shape, "padding": padding, "strides": (stride, stride)}
    if padding == "EXPLICIT":
        case["pads"] = ((1, 0), (0, 1))
    grouped = f.reshape(3, 2, 1, 4 * multiplier)
    want = direct_convolution(x, grouped, case)
    order = channels_first if first else np.asarray
    attrs = convolution_attributes(case, first)
    np.testing.assert_array_equal(on_xpu(raw.DepthwiseConv2dNative, input=order(x), filter=f, **attrs), order(want))
    dy = whole(*want.shape, seed=2)
    dx = on_xpu(
        raw.DepthwiseConv2dNativeBackpropInput,
        input_sizes=order(x).shape, filter=f, out_backprop=order(dy), **attrs,
    )  # fmt: skip
    df = on_xpu(
        raw.DepthwiseConv2dNativeBackpropFilter,
        input=order(x), filter_sizes=f.shape, out_backprop=order(dy), **attrs,
    )  # fmt: skip
    v, w = whole(*x.shape, seed=3), whole(*f.shape, seed=4)
    assert np.vdot(dx, order(v)) == np.vdot(dy, direct_convolution(v, grouped, case))
    assert np.vdot(df, w) == np.vdot(dy, direct_convolution(x, w.reshape(grouped.shape), case))


def test_general_convolution():
    x, f = whole(2, 3, 7, 8, 4), whole(3, 3, 2, 6, seed=1)
    case = {"x": (6, 7, 8, 4), "padding": "SAME"}
    want = direct_convolution(x.reshape(6, 7, 8, 4), f, case).reshape(2, 3, 7, 8, 6)
    got = on_xpu(raw.Conv, input=x, filter=f, strides=[1] * 4, padding="SAME", batch_dims=2, groups=2)
    np.testing.assert_array_equal(got, want)


def test_convolution_without_output():
    """A window one larger than the input: eager TensorFlow gives an empty tensor."""
    x, f = whole(2, 2, 8, 4), whole(3, 3, 4, 6, seed=1)
    attrs = {"strides": [1] * 4, "padding": "VALID"}
    assert on(XPU, raw.Conv2D, input=x, filter=f, **attrs).shape == (2, 0, 6, 6)
    dy = np.zeros((2, 0, 6, 6), np.float32)
    dx = on(XPU, raw.Conv2DBackpropInput, input_sizes=x.shape, filter=f, out_backprop=dy, **attrs)
    df = on(XPU, raw.Conv2DBackpropFilter, input=x, filter_sizes=f.shape, out_backprop=dy, **attrs)
    np.testing.assert_array_equal(dx, np.zeros_like(x))
    np.testing.assert_array_equal(df, np.zeros_like(f))


def test_input_sizes_may_be_spatial_only():
    f, dy = whole(3, 3, 4, 6), whole(2, 5, 5, 6, seed=1)
    kwargs = {"filter": f, "out_backprop": dy, "strides": [1] * 4, "padding": "SAME"}
    got = on_xpu(raw.Conv2DBackpropInput, input_sizes=[5, 5], **kwargs)
    np.testing.assert_array_equal(got, on(CPU, raw.Conv2DBackpropInput, input_sizes=[2, 5, 5, 4], **kwargs))


# --- Pooling --------------------------------------------------------------------------------------------------------

POOLS = [
    ((7, 8), (2, 2), (2, 2), "VALID"),
    ((7, 8), (3, 2), (2, 3), "SAME"),
    ((5, 5), (5, 5), (1, 1), "SAME"),
    ((6, 6), (1, 2), (3, 3), "VALID"),
]


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
@pytest.mark.parametrize(("spatial", "window", "stride", "padding"), POOLS)
@pytest.mark.parametrize("rank", [2, 3])
def test_pool(first, kind, spatial, window, stride, padding, rank):
    if rank == 3:
        spatial, window, stride = (4, *spatial), (2, *window), (1, *stride)
    suffix = "3D" if rank == 3 else ""
    order = channels_first if first else np.asarray
    x = uniform(2, *spatial, 3)
    names = {"Max": "input", "Avg": "value" if rank == 2 else "input"}

    def attributes(first):
        place = (lambda v: [1, 1, *v]) if first else (lambda v: [1, *v, 1])
        letters = "DHW"[3 - rank :]
        return {
            "ksize": place(window), "strides": place(stride), "padding": padding,
            "data_format": f"NC{letters}" if first else f"N{letters}C",
        }  # fmt: skip

    forward = getattr(raw, f"{kind}Pool{suffix}")
    want = on(CPU, forward, **{names[kind]: x}, **attributes(False))
    got = on_xpu(forward, **{names[kind]: order(x)}, **attributes(first))
    np.testing.assert_allclose(got, order(want), rtol=1e-6, atol=1e-7)

    dy = uniform(*want.shape, seed=1)
    backward = getattr(raw, f"{kind}Pool{suffix}Grad")
    if kind == "Max":
        want_dx = on(CPU, backward, orig_input=x, orig_output=want, grad=dy, **attributes(False))
        got_dx = on_xpu(backward, orig_input=order(x), orig_output=got, grad=order(dy), **attributes(first))
    else:
        want_dx = on(CPU, backward, orig_input_shape=x.shape, grad=dy, **attributes(False))
        got_dx = on_xpu(backward, orig_input_shape=order(x).shape, grad=order(dy), **attributes(first))
    np.testing.assert_allclose(got_dx, order(want_dx), rtol=1e-5, atol=1e-6)


def test_max_pool_explicit_padding():
    x = uniform(2, 6, 5, 3)
    attrs = {
        "ksize": [1, 3, 3, 1],
        "strides": [1, 2, 2, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 2, 0, 1, 2, 0, 0],
    }
    want = on(CPU, raw.MaxPool, input=x, **attrs)
    np.testing.assert_array_equal(on_xpu(raw.MaxPool, input=x, **attrs), want)
    dy = uniform(*want.shape, seed=1)
    np.testing.assert_allclose(
        on_xpu(raw.MaxPoolGrad, orig_input=x, orig_output=want, grad=dy, **attrs),
        on(CPU, raw.MaxPoolGrad, orig_input=x, orig_output=want, grad=dy, **attrs),
        rtol=1e-6,
    )


@pytest.mark.parametrize("window", [2, 3, 6])
def test_max_pool_over_channels(window):
    """Windows over the channels take the place of spatial ones, whose strides do not matter."""
    x = whole(2, 3, 5, 6)
    want = x.reshape(2, 3, 5, 6 // window, window).max(-1)
    ksize, strides = [1, 1, 1, window], [1, 2, 2, window]
    np.testing.assert_array_equal(on_xpu(raw.MaxPool, input=x, ksize=ksize, strides=strides, padding="SAME"), want)
    np.testing.assert_array_equal(on_xpu(raw.MaxPoolV2, input=x, ksize=ksize, strides=strides, padding="VALID"), want)
    first = on_xpu(
        raw.MaxPool,
        input=x.transpose(0, 3, 1, 2),
        ksize=[1, window, 1, 1],
        strides=[1, window, 1, 1],
        padding="SAME",
        data_format="NCHW",
    )
    np.testing.assert_array_equal(first, want.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(
        on("/cpu:0", raw.MaxPool, input=x, ksize=ksize, strides=strides, padding="SAME"), want
    )
    empty = on_xpu(raw.MaxPool, input=x[:0], ksize=ksize, strides=strides, padding="SAME")
    assert empty.shape == (0, *want.shape[1:])


def test_max_pool_strides_over_channels_without_windows():
    x = whole(1, 4, 4, 3)
    pooled = on_xpu(raw.MaxPool, input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 3], padding="VALID")
    np.testing.assert_array_equal(
        pooled, on_xpu(raw.MaxPool, input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    )


@pytest.mark.parametrize("shape", [(3, 3, 0, 6), (0, 3, 4, 6), (3, 3, 4, 0)], ids=str)
def test_gradients_of_an_empty_filter(shape):
    """Zeros, or nothing: TensorFlow refuses the convolution itself only. Its graph optimizer divides by zero there."""
    dy = whole(2, 5, 5, shape[-1])
    dx = on(
        XPU,
        raw.Conv2DBackpropInput,
        input_sizes=[2, 5, 5, 4],
        filter=np.zeros(shape, np.float32),
        out_backprop=dy,
        strides=[1] * 4,
        padding="SAME",
    )
    np.testing.assert_array_equal(dx, np.zeros((2, 5, 5, 4)))
    df = on(
        XPU,
        raw.Conv2DBackpropFilter,
        input=whole(2, 5, 5, 4),
        filter_sizes=shape,
        out_backprop=dy,
        strides=[1] * 4,
        padding="SAME",
    )
    assert df.shape == shape


@pytest.mark.parametrize(("rank", "op", "gradient"), [(2, "MaxPool", "MaxPoolGrad"), (3, "MaxPool3D", "MaxPool3DGrad")])
def test_max_pool_ties_go_to_the_first(rank, op, gradient):
    """In three dimensions the CPU's kernel gives the whole gradient to each of them (docs/runtime.md)."""
    x = np.zeros((1, *[4] * rank, 1), np.float32)
    attrs = {"ksize": [1, *[2] * rank, 1], "strides": [1, *[2] * rank, 1], "padding": "VALID"}
    y = on_xpu(getattr(raw, op), input=x, **attrs)
    dy = np.ones((1, *[2] * rank, 1), np.float32)
    dx = np.asarray(on_xpu(getattr(raw, gradient), orig_input=x, orig_output=y, grad=dy, **attrs))
    first = dx[0][(slice(None, None, 2),) * rank]
    assert np.all(first == 1) and first.size == 2**rank == dx.sum()


# --- Batch normalization --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["", "V2", "V3"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("training", "factor"), [(True, 1.0), (True, 0.9), (True, 0.0), (False, 1.0)])
def test_batch_norm(version, data_format, training, factor):
    x = uniform(4, 3, 5, 6) * 3 + 1
    scale, offset, mean, variance = (uniform(6, seed=s) + (2 if s % 2 else 0) for s in range(1, 5))
    variance = np.abs(variance) + 0.5
    attrs = {"is_training": training, "exponential_avg_factor": factor}
    stats = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    op = getattr(raw, f"FusedBatchNorm{version}")
    order = channels_first if data_format == "NCHW" else np.asarray
    want = on(CPU, op, x=x, **stats, **attrs)
    got = on_xpu(op, x=order(x), data_format=data_format, **stats, **attrs)
    np.testing.assert_allclose(got[0], order(want[0]), rtol=2e-5, atol=2e-5)
    if not training:  # the CPU leaves the reserved ones undefined
        want = (want[0], mean, variance, mean, variance)
    for g, w in zip(got[1:5], want[1:5]):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)

    dy = uniform(*x.shape, seed=9)
    reserves = {"reserve_space_1": got[3], "reserve_space_2": got[4]}
    if version == "V3":
        reserves["reserve_space_3"] = got[5]
    gradient = getattr(raw, f"FusedBatchNormGrad{version}")
    cpu_reserves = {k: np.asarray(v) for k, v in reserves.items()}
    want = on(CPU, gradient, y_backprop=dy, x=x, scale=scale, is_training=training, **cpu_reserves)
    with tf.device(XPU):
        got = gradient(
            y_backprop=order(dy), x=order(x), scale=scale, is_training=training, data_format=data_format, **reserves
        )
    np.testing.assert_allclose(got[0], order(want[0]), rtol=1e-4, atol=2e-5)
    for g, w in zip(got[1:3], want[1:3]):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


def test_batch_norm_needs_no_running_statistics_to_train():
    x, ones_, none = uniform(4, 3, 5, 6), np.ones(6, np.float32), np.zeros(0, np.float32)
    stats = {"scale": ones_, "offset": ones_, "mean": none, "variance": none}
    want = on(CPU, raw.FusedBatchNormV3, x=x, **stats)
    got = on_xpu(raw.FusedBatchNormV3, x=x, **stats)
    for g, w in zip(got[:5], want[:5]):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)


def test_batch_norm_3d():
    x = uniform(2, 3, 4, 5, 6)
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    stats = {"scale": ones * 2, "offset": ones, "mean": zeros, "variance": ones, "is_training": True}
    want = on(CPU, raw.FusedBatchNormV3, x=x, data_format="NDHWC", **stats)
    for data_format, order in [("NDHWC", np.asarray), ("NCDHW", channels_first)]:
        got = on_xpu(raw.FusedBatchNormV3, x=order(x), data_format=data_format, **stats)
        np.testing.assert_allclose(got[0], order(want[0]), rtol=2e-5, atol=2e-5)
        for g, w in zip(got[1:5], want[1:5]):
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(training):
    ones = np.ones(6, np.float32)
    x = np.zeros((0, 3, 5, 6), np.float32)
    y, mean, variance, *_ = on_xpu(
        raw.FusedBatchNormV3, x=x, scale=ones, offset=ones, mean=ones, variance=ones, is_training=training
    )
    assert y.shape == x.shape
    assert np.isnan(mean).all()
    assert np.isnan(variance).all()
    _, dscale, doffset, *_ = on_xpu(
        raw.FusedBatchNormGradV3, y_backprop=x, x=x, scale=ones, reserve_space_1=ones, reserve_space_2=ones,
        reserve_space_3=ones, is_training=training,
    )  # fmt: skip
    np.testing.assert_array_equal(dscale, np.zeros(6))
    np.testing.assert_array_equal(doffset, np.zeros(6))


# --- Softmax --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (0, 3), (3, 0), (4, 1), (2, 1000)])
def test_softmax(op, shape):
    x = uniform(*shape) * 20
    np.testing.assert_allclose(
        on_xpu(getattr(raw, op), logits=x), on(CPU, getattr(raw, op), logits=x), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        ((3, 4), (3, 4)),
        ((3, 4), (1, 4)),
        ((3, 4), (4,)),
        ((3, 1), (1, 4)),
        ((1, 4), (3, 1)),
        ((2, 0), (2, 0)),
        ((0, 3), (0, 3)),
    ],
)
def test_cross_entropy_broadcasts(logits, labels):
    kwargs = {"features": uniform(*logits) * 5, "labels": np.abs(uniform(*labels, seed=1))}
    got = on_xpu(raw.SoftmaxCrossEntropyWithLogits, **kwargs)
    want = on(CPU, raw.SoftmaxCrossEntropyWithLogits, **kwargs)
    for g, w in zip(got, want):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("label_type", [np.int32, np.int64])
def test_sparse_cross_entropy(label_type):
    logits, labels = uniform(5, 7) * 5, np.array([0, 6, 3, 3, 1], label_type)
    got = on_xpu(raw.SparseSoftmaxCrossEntropyWithLogits, features=logits, labels=labels)
    want = on(CPU, raw.SparseSoftmaxCrossEntropyWithLogits, features=logits, labels=labels)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)
    # As on a GPU, a label that names no class shows as NaN in its row and nowhere else.
    labels[2] = 7
    with tf.device(XPU):
        loss, backprop = raw.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=labels)
    assert np.isnan(loss).tolist() == [False, False, True, False, False]
    assert np.isnan(backprop).all(axis=1).tolist() == [False, False, True, False, False]
