"""Loops of functions that TensorFlow would call in every iteration, and loops that use their count on the device."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function as defun
from tensorflow.python.ops import functional_ops

from tests.graphs.loops.test_whole_loops import CLUSTERS, agree, run
from tests.support import placement

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
RNG = np.random.default_rng(0)
FRAMES, BATCH, CLASSES, LABELS = 20, 3, 9, 5
LOGITS = RNG.normal(size=(FRAMES, BATCH, CLASSES)).astype(np.float32)
TEXTS = RNG.integers(1, CLASSES, size=(BATCH, LABELS)).astype(np.int32)
TEXT_LENGTHS, FRAME_LENGTHS = np.array([5, 4, 2], np.int32), np.array([20, 17, 19], np.int32)


def loop_of_functions(condition, body, values):
    """A While op without TensorFlow's mark for inlining, as `tf.nn.ctc_loss` makes it."""
    types = [value.dtype for value in values]
    return functional_ops.While(values, defun.Defun(*types)(condition), defun.Defun(*types)(body))


def scan(x):
    """Sums of rows, written to their places."""

    def body(i, out, state, x):
        state = tf.tanh(state + tf.gather(x, i))
        return i + 1, tf.tensor_scatter_nd_update(out, [[i]], [state]), state, x

    values = [tf.constant(0), tf.zeros([6, 4]), tf.zeros([4]), x]
    return loop_of_functions(lambda i, *_: i < 6, body, values)[1:3]


def scan_of_a_shape(x):
    """The count goes down, and begins with what a shape says."""

    def body(i, state, x):
        return i - 1, tf.sin(state + tf.gather(x, i)), x

    return loop_of_functions(lambda i, *_: i >= 0, body, [tf.shape(x)[0] - 1, tf.zeros([4]), x])[1]


def scan_within_a_function(x):
    inner = tf.function(scan, autograph=False)
    return inner(x), inner(x + 1)


def scan_with_a_gradient_of_its_own(x):
    @tf.custom_gradient
    def f(x):
        y, last = scan(x)
        return y, lambda dy: scan(dy)[0] * last

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return y, tape.gradient(y, x)


def scan_within_a_loop(x):
    """An outer loop of functions, too."""

    def body(k, x):
        return k + 1, scan(x)[0] + tf.gather(x, [k])

    return loop_of_functions(lambda k, x: k < 3, body, [tf.constant(0), x])[1]


def scan_within_a_branch(x):
    return tf.cond(tf.reduce_sum(x) < 100, lambda: scan(x)[0], lambda: x)


def ends_at_once(x):
    return loop_of_functions(lambda i, x: i > 0, lambda i, x: (i + 1, x + 1), [tf.constant(0), x])


PROGRAMS = [
    scan,
    scan_of_a_shape,
    scan_within_a_function,
    scan_with_a_gradient_of_its_own,
    scan_within_a_loop,
    ends_at_once,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda it: it.__name__)
def test_loops_of_functions(xpu_device, program):
    """Each is part of one cluster."""
    ops = agree(program, X, device=xpu_device)
    if CLUSTERS:
        assert set(ops) <= {"_Arg", "_Retval", "_XpuCluster", "Const", "Identity", "NoOp"}, sorted(set(ops))
        assert ops.count("_XpuCluster") == 1


def test_in_a_branch(xpu_device):
    agree(scan_within_a_branch, X, device=xpu_device)


def indices_that_count(x):
    for i in tf.range(4):
        x += tf.gather(x, tf.stack([i, 0, 1, 2, 3, 3]))
    return x


def seeds_that_count(x):
    for i in tf.range(4):
        x += tf.random.stateless_uniform([4], seed=tf.stack([i, 1]))
    return x


def rows_by_an_outer_count(x):
    for i in tf.range(3):
        for j in tf.range(i + 1):
            x = tf.sin(x + tf.gather(x, [i]) * tf.gather(x, [j, j, i, j, i, j]))
    return x


@pytest.mark.parametrize("program", [indices_that_count, seeds_that_count, rows_by_an_outer_count])
def test_counts_on_the_device(xpu_device, program):
    """The list has them as constants, so a cluster can have the loop."""
    ops = agree(program, X, device=xpu_device)
    assert "_XpuLoop" not in ops


def tokens_of_the_host(x, rows):
    """The rows differ from call to call. A list of its own for each call would help nobody."""
    for i in tf.range(4):
        x = tf.sin(x + tf.gather(x, rows[i : i + 1]))
    return x


def test_data_of_the_host(xpu_device):
    ops = agree(tokens_of_the_host, X, np.array([3, 0, 5, 1], np.int32), device=xpu_device)
    assert ops.count("_XpuLoop") == (1 if CLUSTERS else 0)


def test_other_data_in_each_call(xpu_device):
    """Captured lists and blocks of iterations use the values of their own call."""
    traced = tf.function(lambda x, n: tf.while_loop(
        lambda i, _: i < n, lambda i, x: (i + 1, tf.sin(x) + tf.gather(x, [i % 6])), [0, x])[1])  # fmt: skip
    for n in (3, 200, 3, 77, 200, 640, 5, 200, 640):
        results = []
        for device in ("/cpu:0", xpu_device):
            with tf.device(device):
                results.append(traced(tf.constant(X + n), tf.constant(n)).numpy())
        np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-5)


def test_an_index_out_of_range(xpu_device):
    """The error is the op's, whether or not the loop is captured."""
    with tf.device(xpu_device):
        traced = tf.function(
            lambda x, n: tf.while_loop(
                lambda i, _: i < n, lambda i, x: (i + 1, x + tf.gather(x, [i], name="the_culprit")), [0, x]
            )
        )
        assert traced(tf.constant(X), tf.constant(6))[0].numpy() == 6
        for _ in range(4):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)is not in \[0, 6\).*the_culprit"):
                tf.nest.map_structure(lambda t: t.numpy(), traced(tf.constant(X), tf.constant(7)))


def test_conditions_that_are_numbers(xpu_device):
    """A While op takes them, and nodes of a graph do not."""

    def countdown(x):
        return loop_of_functions(lambda i, x: i, lambda i, x: (i - 1, tf.sin(x)), [tf.constant(5), x])

    results = [run(countdown, X, device=device)[0] for device in ("/cpu:0", xpu_device)]
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), *results)


def test_effects_in_their_order(xpu_device):
    """No control output says when the updates happen, so each iteration must end before the next one."""

    def body(i, handle):
        value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        with tf.control_dependencies([value]):
            double = tf.raw_ops.AssignAddVariableOp(resource=handle, value=value)
        with tf.control_dependencies([double]):
            tf.raw_ops.AssignSubVariableOp(resource=handle, value=1.5)
        return i + 1, handle

    @tf.function(input_signature=[tf.TensorSpec([], tf.resource)], autograph=False)
    def update(handle):
        return loop_of_functions(lambda i, handle: i < 20, body, [tf.constant(0), handle])[0]

    expected = 1.0
    for _ in range(20):
        expected = expected * 2 - 1.5
    for device in ("/cpu:0", xpu_device):
        with tf.device(device), placement.record_nodes() as nodes:
            v = tf.Variable(1.0)
            assert update(v.handle).numpy() == 20
            assert v.numpy() == expected
        assert {"_XpuLoop", "LoopCond"}.isdisjoint(node.op for node in nodes)


BODIES_OF_OTHER_RESULTS = {
    "another type": lambda n, x: (n - 1, tf.cast(x + n, tf.float64)),
    "one more": lambda n, x: (n - 1, x + n, x),
    "one less": lambda n, x: n - 1,
}


@pytest.mark.parametrize("results", BODIES_OF_OTHER_RESULTS)
def test_a_body_with_other_results_than_variables(xpu_device, results):
    """TensorFlow looks at a body's results when it runs the loop as an op, and so does the device."""
    outcomes = []
    for device in ("/cpu:0", xpu_device):
        with tf.Graph().as_default(), tf.device(device), tf.compat.v1.Session() as session:
            values = [tf.constant(5.0), tf.constant(0.0)]
            count, _ = loop_of_functions(lambda n, x: n > 0, BODIES_OF_OTHER_RESULTS[results], values)
            try:
                outcomes.append(session.run(count))
            except tf.errors.InvalidArgumentError as error:
                outcomes.append(re.search("(Expected type|While loop body returned)[^.]*", error.message).group())
    assert outcomes[1] == outcomes[0]


def test_after_a_function_for_xla(xpu_device):
    """Once there was one, loops and branches of ordinary functions get the mark if they may, and no others."""
    with tf.device(xpu_device):
        compiled = tf.function(lambda x: tf.tanh(x) + 1, jit_compile=True)
        np.testing.assert_allclose(compiled(tf.constant(X)), np.tanh(X) + 1, rtol=1e-6)
    test_conditions_that_are_numbers(xpu_device)
    test_effects_in_their_order(xpu_device)


def test_in_a_session(xpu_device):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), tf.device(xpu_device), v1.Session() as session:
        x = v1.placeholder(tf.float32, [6, 4])
        y = scan(x)
        options, metadata = v1.RunOptions(output_partition_graphs=True), v1.RunMetadata()
        got = session.run(y, {x: X}, options=options, run_metadata=metadata)
    (expected, *_), _, _ = run(scan, X, device="/cpu:0")
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, list(expected))
    ops = {node.op for graph in metadata.partition_graphs for node in graph.node}
    assert not CLUSTERS or ("_XpuCluster" in ops and "While" not in ops), ops


def test_without_a_device_in_scope(xpu_device):
    """TensorFlow's own choice of a device, which is the XPU."""
    traced = tf.function(scan)
    with placement.record_nodes() as nodes:
        got = traced(tf.constant(X))
    (expected, *_), _, _ = run(scan, X, device="/cpu:0")
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, list(expected))
    assert not CLUSTERS or "_XpuCluster" in {node.op for node in nodes}


def loss_and_gradient(loss):
    def program(logits, *rest):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(logits, *rest)
        return value, tape.gradient(value, logits)

    return program


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("blank", [0, -1])
def test_ctc_loss(xpu_device, unique, blank):
    """Forward and backward in one cluster, with the same numbers as the CPU's. Unique labels come from a map."""

    @loss_and_gradient
    def program(logits, texts, text_lengths, frame_lengths):
        texts = texts if blank == 0 else texts - 1
        found = tf.nn.ctc_unique_labels(texts) if unique else None
        return tf.nn.ctc_loss(texts, logits, text_lengths, frame_lengths, unique=found, blank_index=blank)

    arguments = LOGITS, TEXTS, TEXT_LENGTHS, FRAME_LENGTHS
    ops = agree(program, *arguments, device=xpu_device)
    if CLUSTERS:
        assert "While" not in ops and "LoopCond" not in ops
        # The map asks the device how many labels each row has.
        assert (ops.count("_XpuCluster"), ops.count("_XpuLoop")) == (1, 0) or unique


@pytest.mark.parametrize("dtype", [np.float16, tf.bfloat16.as_numpy_dtype], ids=["float16", "bfloat16"])
def test_ctc_loss_of_16_bits(xpu_device, dtype):
    program = loss_and_gradient(lambda x, *rest: tf.nn.ctc_loss(rest[0], x, *rest[1:], blank_index=0))
    arguments = LOGITS.astype(dtype), TEXTS, TEXT_LENGTHS, FRAME_LENGTHS
    (expected, *_), _, _ = run(program, *arguments, device="/cpu:0")
    (got, *_), ops, _ = run(program, *arguments, device=xpu_device)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a.astype(np.float32), b.astype(np.float32), rtol=2e-2, atol=2e-3)
    assert not CLUSTERS or "While" not in ops


def test_ctc_loss_of_sparse_labels(xpu_device):
    @loss_and_gradient
    def program(logits, texts, text_lengths, frame_lengths):
        chosen = tf.sequence_mask(text_lengths, LABELS)
        sparse = tf.SparseTensor(tf.where(chosen), tf.boolean_mask(texts, chosen), [BATCH, LABELS])
        return tf.nn.ctc_loss(sparse, logits, None, frame_lengths, blank_index=0)

    arguments = LOGITS, TEXTS, TEXT_LENGTHS, FRAME_LENGTHS
    results = [run(program, *arguments, device=device)[0] for device in ("/cpu:0", xpu_device)]
    tf.nest.map_structure(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), *results)


def training_step(model):
    weights = model.trainable_variables

    @tf.function(autograph=False)
    def step(x, texts, text_lengths, frame_lengths):
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            losses = tf.nn.ctc_loss(texts, logits, text_lengths, frame_lengths, logits_time_major=False)
            loss = tf.reduce_mean(losses)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.05 * gradient)
        return loss

    return step


def test_a_training_step_with_ctc_loss(xpu_device):
    """Recurrent layers before the loss: their loops, its loops and the update of weights are one cluster."""
    results = {}
    for device in ("/cpu:0", xpu_device):
        tf.keras.utils.set_random_seed(3)
        with tf.device(device):
            layer = tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(6, return_sequences=True))
            model = tf.keras.Sequential([tf.keras.Input((FRAMES, 4)), layer, tf.keras.layers.Dense(CLASSES)])
            step = training_step(model)
            losses = []
            with placement.record_nodes() as nodes:
                for k in range(12):
                    x = np.random.default_rng(k).normal(size=(BATCH, FRAMES, 4)).astype(np.float32)
                    texts = np.roll(TEXTS, k, axis=1)
                    losses.append(step(*map(tf.constant, (x, texts, TEXT_LENGTHS, FRAME_LENGTHS))).numpy())
            results[device] = losses, [weight.numpy() for weight in model.trainable_variables]
    tf.nest.map_structure(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), results[xpu_device], results["/cpu:0"]
    )
    if CLUSTERS:
        ops = [node.op for node in nodes]
        assert ops.count("_XpuCluster") == 1 and "_XpuLoop" not in ops and "LoopCond" not in ops
        assert [node.op for node in placement.with_members(nodes)].count("_XpuLoop") == 6
