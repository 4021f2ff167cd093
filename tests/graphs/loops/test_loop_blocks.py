"""Loops whose length changes from call to call: blocks of iterations compute what single iterations do, to the bit."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_xpu import _core
from tests.support.installed import ROOT
from tests.support.processes import in_threads, run

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
# Up to 32 iterations a cluster captures at once; a list of 64 is worth its capture after 512.
LENGTHS = [600, 0, 1, 64, 137, 1200, 733, 65, 512, 1100]
ROWS = tf.constant(np.cos(np.arange(4 * max(LENGTHS), dtype=np.float32)).reshape(-1, 4))


def plain(x, n):
    for _ in tf.range(n):
        x = tf.sin(x) * 1.5
    return x


def of_the_counter(x, n):
    for i in tf.range(n):
        x = tf.sin(x) + tf.cast(i, tf.float32) / tf.cast(n, tf.float32)
    return x


def counting_down(x, n):
    return tf.while_loop(lambda i, *_: i > 0, lambda i, j, x: (i - 2, j + i * 3, tf.sin(x) * 1.5), [n, 0, x])


def in_floats(x, n):
    end = tf.cast(n, tf.float64)
    return tf.while_loop(
        lambda i, x: i * 2 < end, lambda i, x: (i + 0.25, tf.sin(x) * 1.5), [tf.constant(0.5, tf.float64), x]
    )


def in_64_bits(x, n):
    for i in tf.range(tf.cast(n, tf.int64)):
        x = tf.sin(x) + tf.cast(i, tf.float32) * 0.01
    return x


class Variables(tf.Module):
    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(np.sin(np.arange(16, dtype=np.float32)).reshape(4, 4))
        self.sum, self.count = tf.Variable(tf.zeros([6, 4])), tf.Variable(0, dtype=tf.int64)


def products(x, n, own):
    for _ in tf.range(n):
        x = tf.tanh(tf.matmul(x, own.weights) + tf.matmul(x[:1], own.weights))
    return x


def variables(x, n, own):
    for _ in tf.range(n):
        own.sum.assign_add(tf.sin(x + own.sum))
        own.count.assign_add(2)
        x = x * 0.5 + own.weights[0]
    return x, own.sum.read_value(), own.count.read_value()


def swaps(x, n):
    a, b, c = x, x, x + 1.0
    for _ in tf.range(n):
        a, b = b, tf.sin(a) + c
    return a, b, c


def in_place(x, n):
    for _ in tf.range(n):
        x = tf.tensor_scatter_nd_update(x, [[2]], [tf.sin(x[1]) + 1.0])
        x = tf.roll(x, 1, 0)
    return x


def within(x, n):
    for _ in tf.range(n):
        for _ in tf.range(3):
            x = tf.sin(x) * 1.5
    return x


def random(x, n):
    seed = tf.cast(tf.stack([tf.reduce_sum(x) * 100.0, 7.0]), tf.int64)
    for _ in tf.range(n):
        x += tf.random.stateless_uniform(tf.shape(x), seed=seed)
        seed += 1
    return x


def gathers(x, n):
    row = tf.constant(0, tf.int64)
    for _ in tf.range(n):
        x = tf.sin(x + tf.gather(x, row))
        row = (row + 1) % 6
    return x


def rows(x, n):
    for i in tf.range(n):
        x = tf.sin(x + ROWS[i] - ROWS[n - i - 1] + ROWS[-1 - i])
    return x


def rows_of_rows(x, n):
    for i in tf.range(n):
        x = tf.sin(x + ROWS[i, :2][0] * ROWS[tf.minimum(i, 3) : tf.minimum(i, 3) + 6])
    return x


def lists(x, n):
    given = tf.TensorArray(tf.float32, n).unstack(ROWS[:n])
    out, last = tf.TensorArray(tf.float32, n), tf.TensorArray(tf.float32, 1)
    for i in tf.range(n):
        x = tf.sin(x + given.read(i))
        out = out.write(i, x[0])
        last = last.write(0, x)
    return out.stack(), last.stack(), x


def scanned(x, n):
    return tf.scan(lambda a, b: tf.tanh(a + b), ROWS[:n], x)


def mapped(x, n):
    return tf.map_fn(lambda row: (tf.sin(row) + x, row[0]), ROWS[:n], fn_output_signature=(tf.float32, tf.float32))


def pushes(x, n):
    """The gradient reads what the loop has pushed to lists, counters among it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for i in tf.range(n):
            y = tf.sin(y) * 1.1 + ROWS[i]
    return y, tape.gradient(y, x)


PROGRAMS = [
    plain,
    of_the_counter,
    counting_down,
    in_floats,
    in_64_bits,
    products,
    variables,
    swaps,
    in_place,
    within,
    random,
    gathers,
    rows,
    rows_of_rows,
    lists,
    scanned,
    mapped,
    pushes,
]


def run_programs():
    """Prints each program's results, as bytes, and how its loops ran."""
    found = {}
    with tf.device("/xpu:0"):
        for program in PROGRAMS:
            before = _core.ask_core("XpuCore_DescribeLoops")
            own = [Variables()] if program in (products, variables) else []
            traced = tf.function(program)
            results = []
            for n in LENGTHS:
                for result in tf.nest.flatten(traced(tf.constant(X), tf.constant(n), *own)):
                    results.append(result.numpy().tobytes().hex())
            after = _core.ask_core("XpuCore_DescribeLoops")
            found[program.__name__] = {"results": results, **{name: after[name] - before[name] for name in after}}
    print(json.dumps(found))


@pytest.fixture(scope="module")
def found():
    """The results of the programs with clusters and op by op."""
    outcomes = []
    for environment in ({}, {"TF_XPU_FUSION": "0"}):
        outcomes.append(run("-m", "tests.graphs.loops.test_loop_blocks", environment=environment, cwd=ROOT))
        assert outcomes[-1].returncode == 0, outcomes[-1]
    return [outcome.json for outcome in outcomes]


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda it: it.__name__)
def test_blocks(found, program):
    """The same numbers as op by op, and most iterations in blocks."""
    blocks, single = (programs[program.__name__] for programs in found)
    assert len(blocks["results"]) == len(single["results"])
    assert [a == b for a, b in zip(blocks["results"], single["results"], strict=True)].count(False) == 0
    ran = {name: blocks[name] for name in ("in_blocks", "one_by_one", "captures")}
    most = 0.4 if program is pushes else 0.9  # the gradient's loop has none
    assert ran["in_blocks"] > most * (ran["in_blocks"] + ran["one_by_one"]) and 1 <= ran["captures"] <= 4, ran


def iterations(function, *calls, device="/xpu:0"):
    """How many iterations of a function's loops ran in blocks and how many one by one; the results are the CPU's."""
    traced = {name: tf.function(function) for name in (device, "/cpu:0")}
    before = _core.ask_core("XpuCore_DescribeLoops")
    for arguments in calls:
        results = {}
        for name, call in traced.items():
            with tf.device(name):
                results[name] = tf.nest.map_structure(lambda t: t.numpy(), call(*map(tf.constant, arguments)))
        tf.nest.map_structure(
            lambda r, e: np.testing.assert_allclose(r, e, rtol=1e-4, atol=1e-5), results[device], results["/cpu:0"]
        )
    after = _core.ask_core("XpuCore_DescribeLoops")
    return {name: after[name] - before[name] for name in after}


def of_a_width(x, n):
    for i in tf.range(n):
        x = x + tf.reduce_sum(x[: i % 6])
    return x


def until_it_is_large(x, n):
    i = 0
    while i < n and tf.reduce_sum(x) < 1e30:
        x, i = tf.abs(x) * 1.5, i + 1
    return x, i


@pytest.mark.parametrize("function", [of_a_width, until_it_is_large])
def test_no_blocks(function, xpu_device):
    """Commands depend on the count, or the end on what they compute."""
    ran = iterations(function, (X, 700), (X, 900), device=xpu_device)
    assert ran["in_blocks"] == 0 and ran["captures"] == 0, ran


def test_a_shape_that_changes(xpu_device):
    """Each iteration has another signature: after one look it runs without blocks."""

    def grows(x, n):
        for _ in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None, 4]))])
            x = tf.concat([x, tf.sin(x[:1]) * 1.5], 0)
        return x

    ran = iterations(grows, (X, 100), (X, 140), device=xpu_device)
    assert ran["in_blocks"] == 0, ran


def test_arguments_stay_as_they_are(xpu_device):
    def updates(x, n):
        for _ in tf.range(n):
            x = tf.tensor_scatter_nd_add(x, [[1]], [x[0]])
        return x

    with tf.device(xpu_device):
        traced = tf.function(updates)
        x = tf.constant(X)
        for n in (600, 640, 601):
            traced(x, tf.constant(n))
            np.testing.assert_array_equal(x, X)


def test_an_index_out_of_range(xpu_device):
    """The error is the op's own wherever in a block it comes, and the next call is right."""

    def walk(x, table, row, n):
        for _ in tf.range(n):
            x = x + tf.gather(table, row, name="the_culprit")
            row += 1
        return x

    with tf.device(xpu_device):
        traced = tf.function(walk)
        table = tf.ones([1000, 4])
        for start, n in ((0, 700), (301, 700), (300, 700), (900, 101), (0, 1000)):
            arguments = tf.constant(X), table, tf.constant(start, tf.int64), tf.constant(n)
            if start + n > 1000:
                with pytest.raises(tf.errors.InvalidArgumentError, match="the_culprit"):
                    traced(*arguments)
            else:
                np.testing.assert_allclose(traced(*arguments), X + n, rtol=1e-5)


def test_several_threads(xpu_device):
    def repeat(x, n):
        for i in tf.range(n):
            x = tf.sin(x) + tf.cast(i, tf.float32)
        return x

    with tf.device(xpu_device):
        traced = tf.function(repeat)
        expected = {n: traced(tf.constant(X), tf.constant(n)).numpy() for n in (600, 650, 700, 750)}
        problems = []

        def work(_):
            for n, right in expected.items():
                with tf.device(xpu_device):
                    if not np.array_equal(traced(tf.constant(X), tf.constant(n)), right):
                        problems.append(n)

        in_threads(work)
    assert not problems


if __name__ == "__main__":
    run_programs()
