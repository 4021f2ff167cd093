"""Loops that become one op, and those that must not: the numbers, errors and variables are the CPU's."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from tests.hooks.each_off import left_out
from tests.support import placement
from tests.support.loop_programs import branches, condition_of_data, numbers_of_the_device, ops_on_the_cpu
from tests.support.processes import in_threads, run_code

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
# False where an option leaves them out: then there are no ops to count, and the results are the same.
CLUSTERS = "clusters" not in left_out()


def run(function, *arguments, device, calls=2):
    """The results of each call of a function, and the ops that were executed, without those within clusters and
    loops."""
    with tf.device(device):
        arguments = [tf.constant(a) for a in arguments]
        traced = tf.function(function)
        results = []
        with placement.record_nodes() as nodes:
            for _ in range(calls):
                results.append(tf.nest.map_structure(lambda t: t.numpy(), traced(*arguments)))
    return results, [node.op for node in nodes], [node.op for node in placement.with_members(nodes)]


def agree(function, *arguments, device, whole=True):
    """The ops that were executed on `device`, with the CPU's results.

    whole: True if each loop is one op, False if none is, None if some are.
    """
    expected, _, _ = run(function, *arguments, device="/cpu:0")
    results, ops, members = run(function, *arguments, device=device)
    tf.nest.map_structure(lambda r, e: np.testing.assert_allclose(r, e, rtol=1e-5, atol=1e-6), results, expected)
    if CLUSTERS:
        assert ("_XpuLoop" in members) == (whole is not False), sorted(set(members))
        assert ("LoopCond" in ops) == (whole is not True), sorted(set(ops))
    return ops


def recurrence(x):
    state = tf.zeros([4])
    for i in tf.range(tf.shape(x)[0]):
        state = tf.tanh(state + x[i])
    return state


def stacked(x):
    out = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    state = tf.zeros([4])
    for i in tf.range(6):
        state = tf.sigmoid(state + x[i])
        out = out.write(i, state)
    return out.stack()


def nested(x):
    total = tf.zeros([4])
    for i in tf.range(3):
        for j in tf.range(i + 1):
            total += x[i] * x[j + 1]
        total = tf.sin(total)
    return total


def swaps(x):
    """Variables of a loop that take each other's values, one that stays and one that only the condition reads."""
    a, b, c, i = x[0], x[1], x[2], tf.constant(0)
    while i < 5:
        a, b, i = b, a + c, i + 1
    return a, b, c, i


def never(x):
    state = x[0]
    for i in tf.range(tf.shape(x)[1] - 4):
        state *= x[i]
    return state


def product(x):
    y = tf.eye(4)
    for _ in tf.range(4):
        y = tf.matmul(x, x @ y, transpose_a=True) * 0.1
        x = tf.reverse(x, [0])
    return y, x


def with_gradient(function):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
            loss = tf.add_n([tf.reduce_sum(v * v) for v in tf.nest.flatten(y) if v.dtype.is_floating])
        return y, tape.gradient(loss, x)

    return gradient


@pytest.mark.parametrize("function", [recurrence, stacked, nested, swaps, never, product])
def test_loops(xpu_device, function):
    ops = agree(function, X, device=xpu_device)
    if CLUSTERS:
        assert ops.count("_XpuCluster") >= 1 and "_XpuLoop" not in ops, "the loop is not within a cluster"


@pytest.mark.parametrize("function", [recurrence, stacked, product])
def test_gradients(xpu_device, function):
    agree(with_gradient(function), X, device=xpu_device)


def test_gradient_of_nested_loops(xpu_device):
    """Its counters lie in lists of lists, which are device memory. So the loops back stay in the executor."""
    agree(with_gradient(nested), X, device=xpu_device, whole=None)


def test_the_number_of_iterations_is_an_argument(xpu_device):
    def repeat(x, n):
        for _ in tf.range(n):
            x = tf.sin(x) * 1.5
        return x

    with tf.device(xpu_device):
        traced = tf.function(repeat)
        for n in (3, 0, 7, 3, 1, 5, 9, 9, 12, 12, 3):  # more than are captured at once
            expected = X
            for _ in range(n):
                expected = np.sin(expected) * np.float32(1.5)
            np.testing.assert_allclose(traced(tf.constant(X), tf.constant(n)), expected, rtol=1e-5, atol=1e-6)


def counted(x, n):
    for i in tf.range(n):
        x = tf.sin(x) + tf.cast(i, tf.float32) / tf.cast(n, tf.float32)
    return x


def counted_down(x, n):
    return tf.while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, tf.sin(x) * 1.5), [n, x])


def from_to(x, n):
    for _ in tf.range(n - 7, n + 3, n // 4):
        x = tf.sin(x) * 1.5
    return x


def within_another(x, n):
    for i in tf.range(n):
        for _ in tf.range(i, n):
            x = tf.sin(x) * 1.5
    return x


def with_another_condition(x, n):
    zero, one = tf.zeros([], n.dtype), tf.ones([], n.dtype)
    return tf.while_loop(
        lambda i, x: tf.logical_and(i < n, tf.logical_not(i * i >= 30 * one)),
        lambda i, x: (i + one, tf.sin(x) * 1.5),
        [zero, x],
    )


def in_other_numbers(x, n):
    """The counter is a number that the device has in its memory."""
    end = tf.cast(n, tf.float64)
    return tf.while_loop(
        lambda i, x: i * 2 < end, lambda i, x: (i + 0.25, tf.sin(x) * 1.5), [tf.constant(0.5, tf.float64), x]
    )


def cast_within(x, n):
    """An op that the host counts along with reads a value that it has anyway."""
    return tf.while_loop(
        lambda i, x: i < tf.cast(n, tf.float64),
        lambda i, x: (i + 1.0, tf.sin(x) * 1.5),
        [tf.constant(0.0, tf.float64), x],
    )


def that_swap(x, n):
    """Two counters, one of which the device needs, too."""
    zero, one = tf.zeros([], n.dtype), tf.ones([], n.dtype)
    _, j, x = tf.while_loop(
        lambda i, j, x: i + j < n, lambda i, j, x: (j, i + one, tf.sin(x) + tf.cast(j, tf.float32)), [zero, one, x]
    )
    return j, x


def of_rows(x, n):
    """An op needs the counter in host memory."""
    state = tf.zeros([4])
    for i in tf.range(n):
        state = tf.sin(state + x[tf.cast(tf.minimum(i, tf.cast(5, n.dtype)), tf.int64)])
    return state


def of_triangles(x, n):
    """The inner loop's bounds are computed in the outer one."""
    one = tf.ones([], n.dtype)
    for i in tf.range(one, n):
        for j in tf.range(-i, i + one):
            x = tf.sin(x) + tf.cast(j, tf.float32)
    return x


BOUNDED = [
    counted,
    counted_down,
    from_to,
    within_another,
    with_another_condition,
    in_other_numbers,
    cast_within,
    that_swap,
    of_rows,
    of_triangles,
]


@pytest.mark.parametrize("bound", [np.int32(9), np.int64(9), np.float32(9)], ids=lambda it: it.dtype.name)
@pytest.mark.parametrize("function", BOUNDED, ids=lambda it: it.__name__)
def test_bounds_that_are_arguments(xpu_device, function, bound):
    """Nothing asks another device in an iteration: the host counts, whatever the types."""
    agree(function, X, bound, device=xpu_device)


def test_a_bound_and_a_gradient(xpu_device):
    def function(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = counted(x, n)
        return y, tape.gradient(y, x)

    agree(function, X, np.int32(9), device=xpu_device)


def test_a_bound_that_is_not_a_number(xpu_device):
    """No comparison with it holds."""
    agree(in_other_numbers, X, np.float32(np.nan), device=xpu_device)


def test_what_a_program_puts_on_the_cpu_stays_there(xpu_device):
    agree(ops_on_the_cpu, X, np.int32(5), device=xpu_device, whole=False)


# A signature's capture waits for its third call if its loops have more than 32 iterations, for the ninth if they have
# more than 256.
LONG_LOOP = """
import os

import numpy as np
import tensorflow as tf


def loop(x):
    def body(i, state, out):
        state = tf.abs(x[i] - state)
        return i + 1, state, out.write(i, state)

    n = tf.shape(x)[0]
    return tf.while_loop(lambda i, *_: i < n, body, [0, tf.zeros([3]), tf.TensorArray(tf.float32, n)])[2].stack()


with tf.device("/xpu:0"):
    traced = tf.function(loop, input_signature=[tf.TensorSpec([None, 3])])
calls = {}
captures = 0
for rows in [10, 100, 100, 100, 100] + 11 * [2000] + [3000, 2001, 200, 10] + 11 * [12000]:
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) % 7
    expected, state = [], np.zeros(3, np.float32)
    for row in x:
        state = np.abs(row - state)
        expected.append(state)
    with tf.device("/xpu:0"):
        np.testing.assert_array_equal(traced(tf.constant(x)), expected)
    calls[rows] = calls.get(rows, 0) + 1
    captures += (rows, calls[rows]) in [(10, 1), (100, 3), (2000, 9)]
    pages = [open(entry.path).read() for entry in os.scandir(os.environ["TF_XPU_DUMP_FUSION"])]
    pages = [page for page in pages if ": _XpuLoop" in page]
    captured = [page for page in pages if "Not captured" not in page]
    print(rows, calls[rows], len(captured) == captures, len(pages) - len(captured))
"""


@pytest.mark.of_hooks("clusters")
def test_a_long_loop_is_captured_when_it_has_come_often(tmp_path):
    """New lengths cost no capture, and a list that would be too long is tried once."""
    outcome = run_code(LONG_LOOP, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)}, timeout=300)
    assert outcome.returncode == 0, outcome.stderr
    assert "False" not in outcome.stdout and outcome.stdout.count("True") == 31, outcome.stdout
    pages = [page.read_text() for page in tmp_path.iterdir()]
    assert sum("the commands of 12000 iterations would be too many" in page for page in pages) == 1


VARIABLE_BOUND = """
import os

import numpy as np
import tensorflow as tf

with tf.device("/xpu:0"):
    bound = tf.Variable(4, dtype=tf.{dtype})

    @tf.function
    def by_condition(x):
        zero, one = tf.zeros([], bound.dtype), tf.ones([], bound.dtype)
        i, x = tf.while_loop(lambda i, _: i < bound, lambda i, u: (i + one, u * 2.0), [zero, x])
        return i, x + tf.cast(bound, tf.float32)

    for n, captures in ((4, 1), (4, 1), (7, 2), (0, 3), (4, 3), (7, 3), (-3, 4), (0, 4)):
        bound.assign(n)
        i, x = by_condition(tf.ones([3]))
        assert i.numpy() == max(n, 0), (i, n)
        np.testing.assert_array_equal(x, [2.0 ** max(n, 0) + n] * 3)
        pages = [open(entry.path).read() for entry in os.scandir(os.environ["TF_XPU_DUMP_FUSION"])]
        pages = [page for page in pages if ": _XpuLoop" in page]
        print(n, sum("Not captured" not in page for page in pages) == captures, len(pages) == captures)
    bound.assign_add(5)
    assert by_condition(tf.ones([3]))[0].numpy() == 5 and bound.numpy() == 5
"""


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_a_loop_to_a_variable_is_captured(dtype, tmp_path):
    """Its value at the beginning is part of the signature."""
    code = VARIABLE_BOUND.format(dtype=dtype)
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)}, timeout=300)
    assert outcome.returncode == 0, outcome.stderr
    assert "False" not in outcome.stdout and outcome.stdout.count("True") == 16, outcome.stdout


@pytest.mark.of_hooks("clusters")
def test_more_iterations_than_are_captured(xpu_device):
    """Such a loop runs iteration by iteration, within one op."""

    def many(x):
        for _ in tf.range(40000):
            x = tf.maximum(x * 0.999, 0.25)[::-1]
        return x

    agree(many, X, device=xpu_device)


def test_variables_in_a_loop(xpu_device):
    results = {}
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            weights, count = tf.Variable(tf.ones([4])), tf.Variable(1, dtype=tf.int64)

            def function(x, weights=weights, count=count):
                for i in tf.range(4):
                    before = weights.read_value()
                    weights.assign_add(x[i] * tf.cast(count, tf.float32))
                    count.assign_add(tf.cast(i, tf.int64))
                    x += before
                return x, weights.read_value(), count.read_value()

            results[device], _, members = run(function, X, device=device, calls=3)
    tf.nest.map_structure(
        lambda r, e: np.testing.assert_allclose(r, e, rtol=1e-5), results[xpu_device], results["/cpu:0"]
    )
    assert "_XpuLoop" in members or not CLUSTERS


def strings(x):
    for _ in tf.range(3):
        x += tf.strings.to_number(tf.strings.as_string(tf.constant(3)), tf.float32)
    return x


def test_a_condition_of_data(xpu_device):
    """Each iteration reads it from the device; no cluster can have such a loop, since no capture knows its end."""
    ops = agree(condition_of_data, X, device=xpu_device)
    assert ops.count("_XpuLoop") == (1 if CLUSTERS else 0)


def ended_by_an_inner_count(x):
    """The outer loop ends by what an inner one has counted."""

    def step(i, x):
        return i + tf.while_loop(lambda j: j < i + 2, lambda j: j + 1, [tf.constant(0, tf.int64)])[0], tf.sin(x)

    return tf.while_loop(lambda i, x: i < 30, step, [tf.constant(0, tf.int64), x])


def ended_by_an_inner_loop(x):
    """The condition itself is the result of a loop."""

    def goes_on(i, x):
        return tf.while_loop(lambda j, more: j < 2, lambda j, more: (j + 1, i < 3.0), [0, tf.constant(True)])[1]

    return tf.while_loop(goes_on, lambda i, x: (i + 1.0, tf.sin(x)), [0.0, x])


@pytest.mark.parametrize("function", [ended_by_an_inner_count, ended_by_an_inner_loop])
def test_a_condition_of_an_inner_loop(xpu_device, function):
    """The inner loop alone may be one op."""
    expected, _, _ = run(function, X, device="/cpu:0")
    results, _, _ = run(function, X, device=xpu_device)
    tf.nest.map_structure(lambda r, e: np.testing.assert_allclose(r, e, rtol=1e-5, atol=1e-6), results, expected)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32], ids=lambda it: it.name)
def test_a_bound_that_is_a_variable(xpu_device, dtype):
    """A loop that is not captured sees what becomes of the variable while it runs."""
    with tf.device(xpu_device):
        zero, one = tf.zeros([], dtype), tf.ones([], dtype)
        bound = tf.Variable(4, dtype=dtype)

        @tf.function
        def function(x):
            return tf.while_loop(lambda i, x: i < bound, lambda i, x: (i + one, x * 2.0), [zero, x])

        with placement.record_nodes() as nodes:
            for n in (4, 0, 7):
                bound.assign(n)
                i, x = function(tf.constant(X))
                assert int(i) == n
                np.testing.assert_array_equal(x, X * 2.0**n)
        clusters = [node.attr["members"].s for node in nodes if node.op == "_XpuCluster"]
        assert any(b"_XpuLoop" in members for members in clusters) or not CLUSTERS
        stop = tf.Variable(10**9, dtype=dtype)
        forever = tf.function(lambda: tf.while_loop(lambda i: i < stop, lambda i: (i + one) * (one - one), [zero]))
        timer = threading.Timer(1.0, lambda: stop.assign(-1))
        timer.start()
        forever()


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32], ids=lambda it: it.name)
def test_a_bound_that_the_function_changes(xpu_device, dtype):
    """No capture can know such a bound: before the loop, in the loop, or by another handle."""
    results = {}
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            bound = tf.Variable(3, dtype=dtype)
            one, two = tf.ones([], dtype), tf.constant(2, dtype)

            def count(x, bound=bound, one=one):
                return tf.while_loop(lambda i, _: i < bound, lambda i, x: (i + one, tf.sin(x)), [one - one, x])

            def before(x, bound=bound, two=two, count=count):
                bound.assign_add(two)
                return count(x)

            def within(x, bound=bound, one=one, two=two):
                def body(i, x):
                    bound.assign_sub(one)
                    return i + two, tf.sin(x)

                return tf.while_loop(lambda i, _: i < bound + two, body, [one - one, x])

            def after(x, bound=bound, two=two, count=count):
                result = count(x)
                bound.assign_add(two)
                return *result, bound.read_value()

            results[device] = []
            for function in (before, within, after):
                bound.assign(3)
                traced = tf.function(function)
                for _ in range(4):
                    results[device] += [t.numpy() for t in traced(tf.constant(X))]
    for got, expected in zip(results[xpu_device], results["/cpu:0"], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_bound_by_two_handles(xpu_device):
    """The handle by which the variable changes is another argument, so the graph does not show that it does."""
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            bound = tf.Variable(3.0)
            handle = tf.TensorSpec([], tf.resource)
            read = lambda h: tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32)  # noqa: E731

            @tf.function(input_signature=[handle, handle])
            def function(reads, writes, read=read):
                tf.raw_ops.AssignAddVariableOp(resource=writes, value=2.0)
                return tf.while_loop(lambda n: n < read(reads), lambda n: [n + 1.0], [0.0])

            for expected in (5, 7, 9, 11):
                (count,) = function(bound.handle, bound.handle)
                assert count.numpy() in (expected, expected - 2), "the two ops have no order"
                assert bound.numpy() == expected


def test_a_loop_that_copies_to_the_host(xpu_device):
    """An op of the loop copies the value. No cluster has such a loop, since it waits for the device each time."""
    ops = agree(numbers_of_the_device, X, device=xpu_device)
    assert ops.count("_XpuLoop") == (1 if CLUSTERS else 0)


@pytest.mark.parametrize("function", [branches, strings])
def test_loops_that_stay(xpu_device, function):
    """Such a loop's work depends on data, or is not for clusters."""
    agree(function, X, device=xpu_device, whole=False)


def test_lists_between_clusters(xpu_device):
    """A random op between a loop and its gradient divides the cluster; the list that joins them is not cut."""

    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = stacked(x)
            y *= tf.random.stateless_uniform(tf.shape(y), seed=tf.cast(tf.stack([tf.size(y), 3]), tf.int32))
            loss = tf.reduce_sum(tf.sin(recurrence(y)))
        return loss, tape.gradient(loss, x)

    agree(function, X, device=xpu_device)


def test_an_error_names_the_op(xpu_device):
    def function(x):
        for i in tf.range(4):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape(None))])
            x = tf.reshape(x, tf.stack([i + 1, -1]), name="the_culprit")
        return x

    with tf.device(xpu_device):
        traced = tf.function(function)
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="the_culprit"):
                traced(tf.ones([7]))


def test_an_index_out_of_range_of_a_list(xpu_device):
    def function(x, n):
        rows = tf.TensorArray(tf.float32, 6).unstack(x)
        total = tf.zeros([4])
        for i in tf.range(n):
            total += rows.read(i)
        return total

    with tf.device(xpu_device):
        traced = tf.function(function)
        for n in (6, 7, 6):
            if n == 6:
                np.testing.assert_allclose(traced(tf.constant(X), tf.constant(n)), X.sum(0), atol=1e-5)
            else:
                with pytest.raises(tf.errors.InvalidArgumentError, match="element 6 in a list with 6"):
                    traced(tf.constant(X), tf.constant(n))


def test_several_threads(xpu_device):
    with tf.device(xpu_device):
        traced = tf.function(with_gradient(stacked))
        expected = [t.numpy() for t in traced(tf.constant(X))]
        problems = []

        def work(_):
            for _ in range(20):
                for r, e in zip(traced(tf.constant(X)), expected, strict=True):
                    if not np.array_equal(r, e):
                        problems.append(r)

        in_threads(work)
    assert not problems


def test_a_loop_that_never_ends_can_be_cancelled(xpu_device):
    from tensorflow.python.eager import cancellation

    def forever(x):
        while tf.constant(True):
            x = tf.sin(x)
        return x

    manager = cancellation.CancellationManager()
    with tf.device(xpu_device):
        concrete = manager.get_cancelable_function(tf.function(forever).get_concrete_function(tf.TensorSpec([4])))
        timer = threading.Timer(1.0, manager.start_cancel)
        timer.start()
        with pytest.raises(tf.errors.CancelledError):
            concrete(tf.ones([4]))
