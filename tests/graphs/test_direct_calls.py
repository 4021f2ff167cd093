"""Functions called without TensorFlow's executor: what a program sees is what it sees with it."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tests.support.processes import in_threads, run_code


def is_direct(function, *args):
    """True if the function has been called so, or would be: TensorFlow's context keeps what it takes."""
    name = function.get_concrete_function(*args)._inference_function.name
    return any(context.context().__dict__["_xpu_direct_calls"].get(name, {}).values())


def on_device(device, body, **options):
    """A tf.function with its scope."""

    def scoped(*args):
        with tf.device(device):
            return body(*args)

    return tf.function(scoped, **options)


@pytest.mark.of_hooks("calls")
def test_results_and_variables(xpu_device):
    with tf.device(xpu_device):
        v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        x = tf.constant([0.5, -1.0]) * 1

    def body(x):
        v.assign_add(x * w)
        w.assign(w + 1)
        return {"sum": tf.reduce_sum(v), "tanh": tf.tanh(x), "same": x, "number": tf.size(x)}

    f = on_device(xpu_device, body)
    expected, factor = np.float32([1, 2]), 3.0
    for _ in range(4):
        results = f(x)
        expected, factor = expected + np.float32([0.5, -1.0]) * factor, factor + 1
        np.testing.assert_allclose(v, expected)
        assert w.numpy() == factor
        assert results["sum"].numpy() == expected.sum()
        assert xpu_device[1:].upper() in results["sum"].device
        np.testing.assert_allclose(results["tanh"], np.tanh([0.5, -1.0]), rtol=1e-6)
        np.testing.assert_array_equal(results["same"], [0.5, -1.0])
        assert results["number"].numpy() == 2
    np.testing.assert_array_equal(x, [0.5, -1.0])
    assert is_direct(f, x)


@pytest.mark.of_hooks("calls")
def test_no_results(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable(0.0)

    def body():
        v.assign_add(1.0)

    f = on_device(xpu_device, body)
    assert [f() for _ in range(3)] == [None] * 3
    assert v.numpy() == 3
    assert is_direct(f)


@pytest.mark.of_hooks("calls")
def test_batches_of_any_size(xpu_device):
    """TensorFlow puts the ops that ask for their shape on the CPU, where the elements come from."""
    with tf.device(xpu_device):
        v = tf.Variable(0.0)

    @tf.function
    def step(iterator):
        x, i = next(iterator)
        with tf.device(xpu_device):
            rows = tf.cast(tf.shape(x)[0], tf.float32)
            v.assign_add(rows)
            return tf.reduce_sum(tf.tanh(x)) / rows + tf.reduce_sum(tf.cast(tf.reshape(i, [tf.size(i)]), tf.float32))

    data = np.random.default_rng(0).standard_normal([10, 3]).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((data, np.arange(10, dtype=np.int32))).batch(4)
    for epoch in range(3):
        iterator = iter(dataset)
        for start in (0, 4, 8):
            rows = data[start : start + 4]
            want = np.tanh(rows).sum() / len(rows) + np.arange(10)[start : start + 4].sum()
            np.testing.assert_allclose(step(iterator), want, rtol=1e-5)
        assert v.numpy() == 10 * (epoch + 1)
    assert is_direct(step, iterator)


@pytest.mark.of_hooks("calls")
@pytest.mark.parametrize("unread", [(1,), (0,), (1, 2, 3), (0, 2)])
def test_arguments_that_nothing_reads(xpu_device, unread):
    """Wherever they stand: of the last ones the graph knows nothing."""
    read = min(set(range(4)) - set(unread))
    f = on_device(xpu_device, lambda *args: [args[read] + float(i) for i in range(1, 9)])
    with tf.device(xpu_device):
        args = [tf.fill([64, 3], float(10 * i)) for i in range(max(*unread, read) + 1)]
    for _ in range(4):
        np.testing.assert_array_equal(
            [y.numpy() for y in f(*args)], [np.full([64, 3], 10 * read + i) for i in range(1, 9)]
        )
    assert is_direct(f, *args)


@pytest.mark.of_hooks("calls")
def test_arguments_from_the_host(xpu_device):
    f = on_device(xpu_device, lambda x: tf.tanh(x) * 2)
    for n in (3, 3, 5):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        y = f(tf.constant(x))
        np.testing.assert_allclose(y, np.tanh(x) * 2, rtol=1e-6)
        with tf.device(xpu_device):
            z = f(tf.identity(tf.constant(x)))  # the same function, and its argument on the device
        np.testing.assert_allclose(z, np.tanh(x) * 2, rtol=1e-6)
    assert is_direct(f, tf.constant(x))


def test_memory_of_the_host_may_change_after_the_call(xpu_device):
    f = on_device(xpu_device, lambda x: tf.tanh(x) * 2)
    seen = []
    x = np.zeros(1000, np.float32)
    for i in range(20):
        x[:] = i
        seen.append(f(x))
    for i, y in enumerate(seen):
        np.testing.assert_allclose(y, np.full(1000, np.tanh(i) * 2), rtol=1e-6)


def test_one_function_in_other_scopes(xpu_device):
    with tf.device("/cpu:0"):
        x = tf.constant([1.0, 2.0])
    f = tf.function(lambda x: tf.exp(x) + tf.tanh(x) * 2)
    expected = np.exp([1.0, 2.0]) + np.tanh([1.0, 2.0]) * 2
    for device in (xpu_device, "/cpu:0", xpu_device, "/cpu:0"):
        with tf.device(device):
            y = f(x)
        assert device[1:].upper() in y.device
        np.testing.assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.of_hooks("calls")
def test_data_is_iterated_to_its_end(xpu_device):
    with tf.device(xpu_device):
        total = tf.Variable(0.0)
    data = tf.data.Dataset.range(7).map(lambda i: tf.cast(i, tf.float32))

    def step(iterator):
        total.assign_add(tf.exp(next(iterator) * 0) * 2)
        return total * 1

    f = on_device(xpu_device, step)
    for epoch in range(3):
        iterator, seen = iter(data), []
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            while True:
                seen.append(float(f(iterator)))
        assert seen == [2.0 * (1 + i + 7 * epoch) for i in range(7)]
    assert is_direct(f, iterator)


def test_python_in_the_data_may_run_meanwhile(xpu_device):
    """It needs the interpreter's lock while the function waits for it."""
    data = tf.data.Dataset.range(20).map(lambda i: tf.numpy_function(lambda i: np.float32(i) * 3, [i], tf.float32))
    f = on_device(xpu_device, lambda iterator: tf.tanh(next(iterator) * 0) + 1)
    iterator = iter(data)
    assert [float(f(iterator)) for _ in range(20)] == [1.0] * 20


ERRORS = """
import json
import tensorflow as tf
with tf.device("/xpu:0"):
    table = tf.Variable(tf.ones([4, 2]))

    @tf.function
    def look_up(rows):
        table.assign(table * 2)
        return tf.tanh(tf.gather(table, rows)) * 2

    rows = [tf.identity(tf.constant(r, tf.int64)) for r in ([1, 2], [1, 9])]
    seen = []
    for row in (0, 0, 1, 1, 0):
        try:
            seen.append(look_up(rows[row]).numpy().tolist())
        except Exception as error:
            seen.append([type(error).__name__, str(error)])
    print(json.dumps([seen, table.numpy().tolist()]))
"""


def test_errors_are_worded_as_tensorflow_words_them():
    here, there = (run_code(ERRORS, environment={"TF_XPU_DIRECT_CALLS": flag}).json for flag in "10")
    assert here == there
    assert here[0][2][0] == "InvalidArgumentError"
    assert "Detected at node" in here[0][2][1]
    assert "= 9 is not in [0, 4)" in here[0][2][1]


RANDOM = """
import json
import tensorflow as tf
tf.random.set_seed(3)
with tf.device("/xpu:0"):
    v = tf.Variable(tf.zeros([3]))

    @tf.function
    def draw():
        v.assign_add(tf.random.normal([3], seed=5))
        return tf.random.uniform([2], seed=7), v + 0

    seen = [[t.numpy().tolist() for t in draw()] for _ in range(4)]
    tf.random.set_seed(3)
    again = [draw()[0].numpy().tolist() for _ in range(2)]
    tf.keras.backend.clear_session()
    print(json.dumps([seen, again, draw()[0].numpy().tolist()]))
"""


def test_random_ops_go_on_where_the_first_call_left_them_and_begin_anew_where_tensorflow_does():
    here, there = (run_code(RANDOM, environment={"TF_XPU_DIRECT_CALLS": flag}).json for flag in "10")
    assert here == there
    seen, again, once_more = here
    drawn = [uniform for uniform, _ in seen]
    assert drawn[0] != drawn[1] != drawn[2] != drawn[3]
    assert again == drawn[:2]
    assert once_more == drawn[0]


@pytest.mark.parametrize(
    "body",
    [
        lambda x: tf.map_fn(tf.tanh, x),
        lambda x: tf.numpy_function(np.tanh, [x], tf.float32),
        lambda x: tf.strings.to_number(tf.strings.as_string(tf.tanh(x))),
        lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(x), lambda: x),
    ],
    ids=["loop", "python", "strings", "condition"],
)
def test_what_needs_an_executor_gets_it(xpu_device, body):
    f = on_device(xpu_device, body)
    with tf.device(xpu_device):
        x = tf.constant([0.25, 0.5]) * 1
    for _ in range(3):
        np.testing.assert_allclose(f(x), np.tanh([0.25, 0.5]), rtol=1e-5)


def test_gradients_through_a_call(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable([1.0, 2.0])
    f = on_device(xpu_device, lambda x: tf.reduce_sum(v * v * x))
    for _ in range(3):
        with tf.GradientTape() as tape:
            y = f(tf.constant([3.0, 4.0]))
        np.testing.assert_allclose(tape.gradient(y, v), [6.0, 16.0])


def test_threads(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable(tf.zeros([50]))
    f = on_device(xpu_device, lambda x: (v.assign_add(tf.exp(x * 0)), tf.tanh(x) + x)[1])
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).uniform(-1, 1, 50).astype(np.float32)
        with tf.device(xpu_device):
            for _ in range(50):
                if not np.allclose(f(tf.constant(x)), np.tanh(x) + x, 1e-5, 1e-5):
                    wrong.append(seed)

    in_threads(work)
    assert not wrong
    np.testing.assert_array_equal(v, np.full(50, 200.0))


@pytest.mark.of_hooks("calls")
def test_a_function_that_goes_takes_its_call_along(xpu_device):
    f = on_device(xpu_device, lambda x: tf.tanh(x) * 2)
    x = tf.constant([1.0])
    f(x)
    assert is_direct(f, x)
    name = f.get_concrete_function(x)._inference_function.name
    del f
    gc.collect()
    assert name not in context.context().__dict__["_xpu_direct_calls"]


@pytest.mark.of_hooks("calls")
def test_who_looks_on_sees_the_ops(xpu_device):
    import tensorflow_xpu

    f = on_device(xpu_device, lambda x: tf.tanh(x) * 2)
    x = tf.constant([1.0])
    f(x)
    f(x)
    assert is_direct(f, x)
    with tensorflow_xpu.trace_placement() as report:
        f(x)
    assert "Tanh" in str(report)


def test_asynchronous_eager_execution(xpu_device):
    f = on_device(xpu_device, lambda x: tf.tanh(x) * 2)
    x = tf.constant([1.0])
    f(x)
    with context.execution_mode(context.ASYNC):
        y = f(f(x))
    np.testing.assert_allclose(y, np.tanh(np.tanh(1.0) * 2) * 2, rtol=1e-6)


@pytest.mark.of_hooks("calls")
def test_a_function_whose_type_has_been_hashed_is_found_again():
    from tensorflow.core.function.polymorphism.function_type import FunctionType

    f = tf.function(lambda x: x + 1)
    f(tf.constant(1.0))
    a, b = (f.get_concrete_function(tf.TensorSpec(shape, tf.float32)).function_type for shape in ([], [2]))
    assert hash(a) == hash(a) == FunctionType.__hash__.__wrapped__(a)
    assert hash(b) == FunctionType.__hash__.__wrapped__(b)
    assert a != b


# A function by chance: what its arguments become, some of which nothing reads, and which values it returns.
STEPS = (
    lambda x, y: x + y,
    lambda x, y: x * y * 0.5,
    lambda x, y: tf.tanh(x),
    lambda x, y: tf.cast(tf.size(x), tf.float32) + y,  # computed on the host
    lambda x, y: tf.cast(tf.cast(x, tf.int32), tf.float32),
    lambda x, y: tf.reduce_sum(x),
    lambda x, y: tf.constant(2.5),
)


def chance(seed, device):
    """The function, its number of arguments, its variables; the same for each device."""
    rng = np.random.default_rng(seed)
    number, num_variables = rng.integers(0, 7), rng.integers(0, 3)
    read = [i for i in range(number) if rng.random() < 0.6]
    steps = [(STEPS[rng.integers(len(STEPS))], *rng.integers(100, size=2)) for _ in range(rng.integers(0, 7))]
    returned, captured = rng.integers(100, size=rng.integers(0, 6)), rng.integers(0, 3)
    with tf.device(device):
        variables = [tf.Variable([1.0 + i, 2, 3]) for i in range(num_variables)]
        values_before = [tf.constant([5.0, i, 7.0]) for i in range(captured)]

    def body(*args):
        values = [args[i] for i in read] + values_before + [v.read_value() for v in variables]
        values = values or [tf.constant([1.0, 2.0, 3.0])]
        for step, a, b in steps:
            values.append(step(values[a % len(values)], values[b % len(values)]))
        for v in variables:
            v.assign_add(tf.broadcast_to(tf.clip_by_value(values[-1], -1, 1), [3]))
        return [values[i % len(values)] for i in returned]

    return on_device(device, body), number, variables


@pytest.mark.parametrize("seed", range(30))
def test_functions_by_chance(xpu_device, seed):
    results = []
    for device in ("/cpu:0", xpu_device):
        f, number, variables = chance(seed, device)
        given = np.random.default_rng(seed)
        for call in range(4):
            with tf.device("/cpu:0" if given.random() < 0.3 else device):
                args = [tf.constant([call + 0.5, i, -1.0]) for i in range(number)]
            results.append([x.numpy() for x in (*f(*args), *variables)])
    for expected, got in zip(results[:4], results[4:], strict=True):
        for e, g in zip(expected, got, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-5, atol=1e-6)
