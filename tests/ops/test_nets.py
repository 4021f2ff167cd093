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


def lstm_cell(x=(2, 3), cs=(2, 4), h=(2, 4), w=(7, 16), wci=(4,), b=(16,)):
    peepholes = {"wci": ones(*wci), "wcf": ones(4), "wco": ones(4)}
    return lambda: raw.LSTMBlockCell(
        x=ones(*x), cs_prev=ones(*cs), h_prev=ones(*h), w=ones(*w), **peepholes, b=ones(*b)
    )


def block_lstm(steps=5, x=(5, 2, 3), cs=(2, 4), h=(2, 4), w=(7, 16), wci=(4,), b=(16,)):
    arguments = {"x": ones(*x), "cs_prev": ones(*cs), "h_prev": ones(*h), "w": ones(*w), "wci": ones(*wci)}
    arguments |= {"wcf": ones(4), "wco": ones(4), "b": ones(*b), "seq_len_max": np.array(steps, np.int64)}
    return lambda: raw.BlockLSTMV2(**arguments)


def gru_cell(x=(2, 3), h=(2, 4), w_ru=(7, 8), w_c=(7, 4), b_ru=(8,), b_c=(4,)):
    weights = {"w_ru": ones(*w_ru), "w_c": ones(*w_c), "b_ru": ones(*b_ru), "b_c": ones(*b_c)}
    return lambda: raw.GRUBlockCell(x=ones(*x), h_prev=ones(*h), **weights)


def ctc(x=(6, 2, 5), at=((0, 0), (0, 1), (1, 0)), labels=(1, 2, 3), lengths=(6, 6), **attrs):
    arguments = {"labels_indices": np.array(at, np.int64), "labels_values": np.array(labels, np.int32)}
    return lambda: raw.CTCLoss(inputs=ones(*x), **arguments, sequence_length=np.array(lengths, np.int32), **attrs)


def summary(mode=2, tensor_id=1):
    attrs = {"tensor_debug_mode": mode, "tensor_id": tensor_id}
    return lambda: raw.DebugNumericSummaryV2(input=ones(2), output_dtype=tf.float32, **attrs)


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
    (lstm_cell(cs=(3, 4)), r"cs_prev.dims\(0\) != batch_size: 3 vs. 2"),
    (lstm_cell(h=(2, 5)), r"h_prev.dims\(1\) != cell_size: 5 vs. 4"),
    (lstm_cell(w=(8, 16)), r"w.dim_size\(0\) != input_size \+ cell_size: 8 vs. 7"),
    (lstm_cell(w=(7, 15)), r"w.dim_size\(1\) != cell_size \* 4: 15 vs. 16"),
    (lstm_cell(b=(15,)), r"b.dim_size\(0\) != cell_size \* 4: 15 vs. 16"),
    (lstm_cell(x=(0, 3), cs=(0, 4), h=(0, 4)), r"cs_prev_tensor is empty, has shape: \(0,4\)"),
    (lstm_cell(wci=(4, 1)), "wci_tensor must be rank 1 but is rank 2"),
    (block_lstm(x=(5, 6)), "x must be 3D"),
    (block_lstm(cs=(8,)), "cs_prev must be 2D"),
    (block_lstm(wci=(5,)), r"wci.dim_size\(0\) != cell_size: 5 vs. 4"),
    (gru_cell(x=(6,)), "Rank of x must be 2, got 1"),
    (gru_cell(h=(3, 4)), r"h_prev.dims\(0\) != batch_size: 3 vs. 2"),
    (gru_cell(w_ru=(8, 8)), r"w_ru.dim_size\(0\)"),
    (gru_cell(w_c=(7, 5)), r"w_c.dim_size\(1\)"),
    (gru_cell(b_ru=(8, 1)), "Rank of b_ru must be 1, got 2"),
    (summary(mode=1), "Unimplemented tensor debug mode: 1"),
    (summary(tensor_id=2**24 + 1), r"to be less than or equal to \(2\^24\). Given tensor_id:16777217"),
    (ctc(x=(6, 2)), "inputs is not a 3-Tensor"),
    (ctc(lengths=((6, 6),)), "sequence_length is not a vector"),
    (ctc(at=(0, 1)), "labels_indices is not a matrix"),
    (ctc(labels=((1, 2, 3),)), "labels_values is not a vector"),
    (ctc(lengths=(6,)), r"len\(sequence_length\) != batch_size.  len\(sequence_length\):  1 batch_size: 2"),
    (ctc(labels=(1, 2)), r"must contain the same number of rows, but saw shapes: \[3,2\] vs. \[2\]"),
    (ctc(x=(0, 2, 5), lengths=(0, 0)), "Max time or first dimension of input cannot be 0"),
    (ctc(at=((0, 1), (0, 0), (1, 0))), r"label SparseTensor is not valid: indices\[1\] = \[0,0\] is out of order"),
    (ctc(at=((0, 0), (0, 0), (1, 0))), r"label SparseTensor is not valid: indices\[1\] = \[0,0\] is repeated"),
    (ctc(at=((0, 0), (0, 1), (2, 0))), r"indices\[2\] = \[2,0\] is out of bounds: need 0 <= index < \[2,2\]"),
    (ctc(lengths=(7, 6)), r"sequence_length\(0\) <= 6"),
    (ctc(lengths=(-1, 6)), r"seq_len\(0\) < 0"),
    (ctc(lengths=(1, 6)), r"Not enough time for target transition sequence \(required: 2, available: 1\)"),
    (ctc(at=((0, 0), (0, 1)), labels=(1, 2)), "Labels length is zero in batch 1"),
    (ctc(labels=(1, -2, 3)), "All labels must be nonnegative integers, batch: 0 labels: 1,-2"),
    (ctc(labels=(4, 2, 3)), "following a null label, batch: 0 num_classes: 5 labels: 4,2 labels seen so far: "),
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


# The same.
@pytest.mark.parametrize(("steps", "words"), [(6, "between 0 and 5 but is 6"), (-1, "is -1"), ((1, 2), "rank 0")])
def test_more_steps_than_there_are(xpu_device, steps, words):
    with hard_placement(), tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match=words):
        block_lstm(steps=steps)()


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


def ctc_of(labels, x):
    logits = tf.reshape(x, [12, 2, 9])
    return tf.nn.ctc_loss(labels, logits, [2, 1], [12, 9], blank_index=-1)


def ctc_sparse(x):
    return ctc_of(tf.sparse.from_dense([[1, 2], [3, 0]]), x)


def ctc_dense(x):
    return ctc_of(tf.constant([[1, 2], [3, 0]]), x)


X = np.random.default_rng(7).standard_normal((2, 6, 6, 3)).astype(np.float32)
GRADIENTS = {
    "argmax": (derivative, lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0]),
    "max_pool twice": (second_derivative, lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME")),
    "max_pool3d twice": (second_derivative, lambda x: tf.nn.max_pool3d(x[None], 2, 2, "SAME")),
    "ctc of sparse labels": (derivative, ctc_sparse),
    "ctc of dense labels": (derivative, ctc_dense),
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
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5 * max(1, np.abs(a).max()))
    assert all(np.abs(g).max() > 0 for g in native)


def test_steps_after_the_end_are_zeros(xpu_device):
    """The CPU leaves the gates there as they are."""
    x = X[:, :5].reshape(5, 2, 18)
    results = {}
    for device in ("/cpu:0", xpu_device):
        arguments = {"x": x, "cs_prev": ones(2, 4), "h_prev": ones(2, 4), "w": ones(22, 16) / 22}
        arguments |= {"wci": ones(4), "wcf": ones(4), "wco": ones(4), "b": ones(16)}
        with hard_placement(), tf.device(device):
            out = raw.BlockLSTM(seq_len_max=np.array(3, np.int64), **arguments)
            given = {name: np.full((5, 2, 4), 0.5, np.float32) for name in ("i", "cs", "f", "o", "ci", "co", "h")}
            given |= {name: np.full((5, 2, 4), 0.25, np.float32) for name in ("cs_grad", "h_grad")}
            gradients = raw.BlockLSTMGrad(seq_len_max=np.array(3, np.int64), **arguments, **given, use_peephole=True)
            nothing = raw.BlockLSTMGrad(seq_len_max=np.array(0, np.int64), **arguments, **given, use_peephole=True)
        results[device] = [t.numpy() for t in (out.cs, out.h, *gradients, *nothing)]
    for native, got in zip(*results.values()):
        np.testing.assert_allclose(got, native, rtol=1e-5, atol=1e-6)
    assert not np.any(results[xpu_device][0][3:])


def test_labels_that_are_all_blank(xpu_device):
    """Where the CPU writes beyond its arrays."""
    logits = np.random.default_rng(3).standard_normal((4, 1, 3)).astype(np.float32)
    with hard_placement(), tf.device(xpu_device):
        loss, gradient = raw.CTCLoss(
            inputs=logits,
            labels_indices=np.zeros((1, 2), np.int64),
            labels_values=np.array([2], np.int32),
            sequence_length=np.array([4], np.int32),
        )
    logarithms = np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(loss, [-logarithms[:, 0, 2].sum()], rtol=1e-5)
    np.testing.assert_allclose(gradient, np.exp(logarithms) - [0, 0, 1], atol=1e-6)


def test_keras_ctc(xpu_device):
    import keras

    logits = np.random.default_rng(3).standard_normal((2, 9, 5)).astype(np.float32)
    losses = []
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            x = tf.convert_to_tensor(logits)
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = keras.losses.CTC()(tf.constant([[1, 2, 2], [3, 0, 0]]), x)
            losses.append([loss.numpy(), tape.gradient(loss, x).numpy()])
    for native, got in zip(*losses):
        np.testing.assert_allclose(got, native, rtol=1e-4, atol=1e-5)
