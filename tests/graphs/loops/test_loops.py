"""Loops in graphs: what decides them, and what gradients gather in them, stays where it is; numbers are the CPU's."""

import numpy as np
import pytest
import tensorflow as tf

from tests.hooks.each_off import left_out
from tests.support import placement

raw = tf.raw_ops
keras = tf.keras

SCALAR = np.zeros(0, np.int32)  # a shape

COPIES = {"_Send", "_Recv", "_HostSend", "_HostRecv"}


def run(function, *arguments, device):
    """The results of a function and the nodes that were executed."""
    with tf.device(device):
        arguments = [tf.constant(a) for a in arguments]
        with placement.record_nodes() as nodes:
            results = tf.nest.map_structure(lambda t: t.numpy(), tf.function(function)(*arguments))
    return results, list(placement.with_members(nodes))


def agree(function, *arguments, device):
    """The nodes that were executed on `device`, with the CPU's results."""
    expected, _ = run(function, *arguments, device="/cpu:0")
    results, nodes = run(function, *arguments, device=device)
    tf.nest.map_structure(lambda r, e: np.testing.assert_allclose(r, e, rtol=1e-5, atol=1e-6), results, expected)
    return nodes


def gradient_of(function):
    def with_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    return with_gradient


def on_device(nodes, op):
    return [node for node in nodes if node.op == op and "XPU" in node.device]


X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)


def reads_twice(x):
    """Each iteration reads two elements, so that the gradients of most have two parts."""
    rows = tf.TensorArray(tf.float32, 6).unstack(x)
    total = tf.zeros([4])
    for i in tf.range(5):
        total = tf.tanh(total + rows.read(i) * rows.read(i + 1))
    return tf.reduce_sum(total)


def gathers(x):
    """Only an element of each three is read: the others' gradients are zeros."""
    rows = tf.TensorArray(tf.float32, 6, clear_after_read=False).unstack(x)
    total = tf.zeros([4])
    for i in tf.range(0, 6, 3):
        total += tf.sin(rows.read(i)) * rows.read(0)
    return tf.reduce_sum(total)


def writes(x):
    out = tf.TensorArray(tf.float32, 6)
    state = tf.zeros([4])
    for i in tf.range(6):
        state = tf.sigmoid(state + x[i])
        out = out.write(i, state * tf.cast(i, tf.float32))
    return tf.reduce_sum(out.stack() ** 2)


def writes_what_it_read(x):
    """The gradient of a write, which is one of the list, is added to that of a read: they share a device."""
    rows = tf.TensorArray(tf.float32, 6, clear_after_read=False).unstack(x)
    for i in tf.range(5):
        rows = rows.write(i + 1, tf.tanh(rows.read(i) + rows.read(i + 1)))
    return tf.reduce_sum(rows.stack() ** 2)


def decides(x):
    """The conditions, which the gradient needs, are pushed in every iteration; others are read from an array."""
    large = tf.TensorArray(tf.bool, 6).unstack(x > 0.3)
    total = tf.zeros([4])
    for i in tf.range(6):
        total = tf.where(large.read(i), tf.sin(x[i]) + total, tf.where(total > 0.1, total * 0.5, x[i]))
    return tf.reduce_sum(total)


def changes_shape(x):
    """The shapes that the gradient needs are pushed in every iteration."""
    total = tf.zeros([4])
    for i in tf.range(1, 6):
        total += tf.reduce_mean(tf.exp(x[:i]), axis=0)
    return tf.reduce_sum(total)


@pytest.mark.parametrize("function", [reads_twice, gathers, writes, writes_what_it_read, decides, changes_shape])
def test_gradients(xpu_device, function):
    nodes = agree(gradient_of(function), X, device=xpu_device)
    if left_out() & {"graphs", "tensor_lists"}:
        return
    lists = [node for node in nodes if node.op in ("AddN", "ZerosLike") and node.attr["T"].type == 21]
    updates = [node for node in nodes if node.op.startswith("TensorList")]
    assert all("XPU" in node.device for node in (*lists, *updates))
    assert lists or function is not reads_twice, "the test has no lists to add"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_sums_of_lists_of_other_types(xpu_device, dtype):
    def function(x):
        x = tf.cast(x, dtype)
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = tf.TensorArray(dtype, 6).unstack(x)
            total = tf.zeros([4], dtype)
            for i in tf.range(5):
                total += rows.read(i) * rows.read(i + 1)
            y = tf.reduce_sum(total)
        return tf.cast(tape.gradient(y, x), tf.float64)

    (expected, _), (results, nodes) = (run(function, X, device=d) for d in ("/cpu:0", xpu_device))
    np.testing.assert_allclose(results, expected, rtol=1e-6 if dtype == "float64" else 1e-2)
    lists = [node for node in on_device(nodes, "AddN") if node.attr["T"].type == 21]
    assert lists or left_out() & {"graphs", "tensor_lists"}


@pytest.mark.of_hooks("clusters", "tensor_lists")
def test_an_iteration_of_an_lstm_copies_nothing(xpu_device):
    """In Keras' loops, forward and back, all that passes between iterations stays in its memory."""
    data, labels = np.random.default_rng(0).random((4, 5, 3), np.float32), np.arange(4) % 2
    losses = {}
    for device in ("/cpu:0", xpu_device):
        keras.utils.set_random_seed(1)
        with tf.device(device):
            model = keras.Sequential(
                [
                    keras.Input((5, 3)),
                    keras.layers.LSTM(4, return_sequences=True),
                    keras.layers.GRU(4),
                    keras.layers.Dense(2),
                ]
            )
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            model.compile(keras.optimizers.SGD(0.5), loss, jit_compile=False)
            with placement.record_nodes() as executed:
                losses[device] = [float(model.train_on_batch(data, labels)) for _ in range(5)]
    np.testing.assert_allclose(losses[xpu_device], losses["/cpu:0"], rtol=1e-4)
    names = {node.name for node in executed if node.op in COPIES and "while" in node.name}
    assert names == set()
    nodes = list(placement.with_members(executed))
    assert on_device(nodes, "_XpuLoop") and on_device(nodes, "LogicalAnd"), "the test has no loops"


@pytest.mark.parametrize("limit", [0.0, 2.0, 100.0])
def test_conditions_on_host_and_on_device(xpu_device, limit):
    """One part of a condition is a counter's, in host memory, the other the data's."""

    def function(x, limit):
        i, done = tf.constant(0), tf.constant(False)
        while tf.logical_and(tf.logical_and(i < 50, tf.logical_not(i > 20)), tf.logical_not(done)):
            x = x * 1.5
            done = tf.logical_or(tf.reduce_max(x) > limit, i == 17)
            i += 1
        return i, x

    nodes = agree(function, X, np.float32(limit), device=xpu_device)
    if "graphs" not in left_out():
        assert {str(node.attr["_kernel"].s) for node in on_device(nodes, "LogicalAnd")} == {"b''", "b'XpuOnHost'"}


def test_logic_on_host_broadcasts(xpu_device):
    def function(x):
        shape, other = tf.shape(x), tf.constant([[1], [4]])
        logic = tf.logical_or(tf.logical_and(shape < 5, other > 2), tf.logical_not(shape > other))
        return tf.reduce_sum(x), tf.cast(logic, tf.int32)

    agree(function, X, device=xpu_device)


def test_counters_that_leave_the_function(xpu_device):
    """The reader of a list expects its elements in device memory."""

    def push(x):
        counters = raw.EmptyTensorList(element_shape=SCALAR, max_num_elements=-1, element_dtype=tf.int32)
        floats = raw.EmptyTensorList(element_shape=SCALAR, max_num_elements=-1, element_dtype=tf.float32)
        for i in tf.range(4):
            counters = raw.TensorListPushBack(input_handle=counters, tensor=i * 3)
            floats = raw.TensorListPushBack(input_handle=floats, tensor=x[i, 0])
        return counters, floats

    with tf.device(xpu_device):
        counters, floats = tf.function(push)(tf.constant(X))
        for handle, dtype, expected in ((counters, tf.int32, [0, 3, 6, 9]), (floats, tf.float32, X[:4, 0])):
            out = raw.TensorListStack(input_handle=handle, element_shape=SCALAR, element_dtype=dtype)
            np.testing.assert_array_equal(out.numpy(), expected)


def test_counters_that_are_popped(xpu_device):
    def function(x):
        counters = raw.EmptyTensorList(element_shape=SCALAR, max_num_elements=-1, element_dtype=tf.int32)
        for i in tf.range(5):
            counters = raw.TensorListPushBack(input_handle=counters, tensor=i + tf.shape(x)[1])
        total = tf.zeros([4])
        for _ in tf.range(3):
            counters, i = raw.TensorListPopBack(input_handle=counters, element_shape=SCALAR, element_dtype=tf.int32)
            total += x[i - 4] * tf.cast(i, tf.float32)
        return total, raw.TensorListLength(input_handle=counters)

    agree(function, X, device=xpu_device)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [(([2, 4], [3, 4]), "different lengths. One is 2 and the other is 3"), (([2, 4], [2, 5]), "incompatible")],
)
def test_lists_that_do_not_add(xpu_device, shapes, message):
    def function(x):
        lists = [raw.TensorListFromTensor(tensor=tf.fill(shape, x), element_shape=-1) for shape in shapes]
        return raw.TensorListLength(input_handle=raw.AddN(inputs=lists))

    for device in ("/cpu:0", xpu_device):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(function, np.float32(1), device=device)


def branches(n):
    """The device decides how often both loops run, and which branch each iteration takes."""
    total, k = tf.constant(0, tf.int64), tf.constant(1, tf.int64)
    while total < n:
        m, count = k, tf.constant(0, tf.int64)
        while m > 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            count += 1
        total, k = total + count, k + 1
    return k, total


def integers_to_the_device(x):
    """Counters in host memory become numbers on the device, and rows that it chooses come back as counters."""
    steps = 0
    while tf.reduce_sum(x) < 50.0:
        row = tf.argmax(x, output_type=tf.int32)
        steps += row + 1
        if tf.reduce_max(x) > 9.0:
            x = tf.reverse(x, [0]) + 0.25
        x = x * 1.25 + tf.cast(tf.stack([row, steps, 1]), tf.float32)
    return x, steps


def nothing(x):
    """Tensors without elements cross, too."""
    steps = 0
    while tf.reduce_sum(x) < 20.0:
        x = x * 1.5 + tf.reduce_sum(tf.gather(x, tf.range(steps - steps)))
        steps += tf.argmax(x, output_type=tf.int32)
    return x, steps


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (branches, np.int64(60)),
        (integers_to_the_device, np.float32([1, 3, 2])),
        (nothing, np.float32([1, 3, 2])),
    ],
)
def test_an_iteration_copies_by_one_op(xpu_device, function, argument):
    """TensorFlow would send a value from the device's memory, and receive it in the host's."""
    traced = tf.function(function)
    with tf.device("/cpu:0"):
        expected = [t.numpy() for t in traced(tf.constant(argument))]
    with tf.device(xpu_device), placement.record_nodes() as nodes:
        results = [t.numpy() for t in tf.function(function)(tf.constant(argument))]
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-6)
    loops = [node for node in nodes if node.op == "_XpuLoop"]
    within = [member for loop in loops for member in tf.compat.v1.GraphDef.FromString(loop.attr["members"].s).node]
    in_loops = {node.op for node in [*nodes, *within] if "/while/" in node.name or "xpu_transfer" in node.name}
    clusters_copy = any(node.attr["fetched_types"].list.type for node in [*nodes, *within] if node.op == "_XpuCluster")
    assert clusters_copy or "_XpuToHost" in in_loops
    assert not {"_HostRecv", "_HostSend"} & in_loops
    assert {"Identity"} >= {node.op for node in placement.with_members(nodes) if "xpu_transfer" in node.name}


def test_a_failure_before_a_copy_of_a_loop(xpu_device):
    """The error is that of the op that failed."""

    @tf.function
    def f(x, row):
        while tf.reduce_sum(x) < 50.0:
            x = x * 2.0 + tf.gather(x, row)
            row += 1
        return x

    with tf.device(xpu_device):
        x = tf.constant([1.0, 2.0, 3.0])
        assert f(x, tf.constant(0, tf.int64)).shape == 3
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices.* = 3 is not in \[0, 3\)"):
            f(x, tf.constant(2, tf.int64)).numpy()
        assert f(x, tf.constant(0, tf.int64)).shape == 3


def test_control_edges_between_devices(xpu_device):
    """TensorFlow sends tensors without elements for them. When one arrives, all before it has happened."""
    seen = []

    def see():
        seen.append(float(v.numpy()))
        return np.float32(0)

    with tf.device(xpu_device):
        v = tf.Variable(1.0)

        @tf.function
        def f(x, n):
            for _ in tf.range(n):
                added = v.assign_add(tf.reduce_sum(x))
                with tf.device("/cpu:0"), tf.control_dependencies([added]):
                    called = tf.numpy_function(see, [], tf.float32)
                with tf.control_dependencies([called]):
                    v.assign(v * 2.0)
                x = tf.linalg.matmul(x, x) / 64.0
            with tf.device("/cpu:0"):
                beginnings = tf.strings.join([tf.strings.as_string(x[:0]), tf.strings.as_string(x[:0])])
            return x, tf.size(beginnings)

        x, size = f(tf.ones([64, 64]), tf.constant(5))
    assert size.numpy() == 0
    assert np.allclose(x, 1)
    # Each step adds 4096 before Python looks, and doubles the sum afterwards.
    assert seen == [4097.0, 12290.0, 28676.0, 61448.0, 126992.0]
    assert v.numpy() == 253984.0
