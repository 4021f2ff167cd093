"""Values that pass between host and device at the edge of a cluster: int32 arguments and results, which TensorFlow has
in host memory, and arguments on the CPU.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.conftest import in_threads, run_code


def step(device):
    """A function with integers and floats from the host, which gives integers back and updates a variable."""
    with tf.device(device):
        total = tf.Variable(tf.zeros([3]))

        @tf.function
        def f(i, x):
            y = tf.cast(i, tf.float32) * 2 + x
            total.assign_add(tf.tanh(y))
            return tf.argmax(y, output_type=tf.int32), i, y, tf.cast(y, tf.int32) + i, x

    return f, total


def test_values_are_those_of_the_call(xpu_device):
    (f, total), (on_cpu, cpu_total) = step(xpu_device), step("/cpu:0")
    rng = np.random.default_rng(0)
    for _ in range(20):
        i, x = rng.integers(-9, 9, 3).astype(np.int32), rng.random(3).astype(np.float32)
        with tf.device("/cpu:0"):
            want = on_cpu(tf.constant(i), tf.constant(x))
        got = f(tf.constant(i), tf.constant(x))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
            assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(total, cpu_total, rtol=1e-5, atol=1e-6)


def test_they_are_no_signature_and_cross_in_the_cluster(tmp_path):
    code = """
import numpy as np, tensorflow as tf
from tests.test_host_values import step
f, _ = step("/xpu:0")
for k in range(10):
    with tf.device("/cpu:0"):
        x = tf.constant([k, 1.0, 2.0])
    assert f(tf.constant([k, 0, 0]), x)[0] == (0 if 3 * k > 2 else 2)
"""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    (dump,) = tmp_path.glob("*.txt")
    assert len(re.findall("bytes from the host", dump.read_text())) == 2
    assert len(re.findall("bytes to the host", dump.read_text())) == 2


def test_memory_shared_with_the_host_has_been_read_when_the_call_returns(xpu_device):
    """A NumPy array that a tensor shares may be filled anew at once, however much is still to be done."""
    n = 1 << 18
    with tf.device(xpu_device):
        weights = tf.Variable(tf.ones([512, 512]))

        @tf.function
        def f(x):
            for _ in range(4):
                weights.assign(tf.matmul(weights, weights) / 512.0)
            return tf.tanh(x) * 2 + tf.reduce_sum(weights) * 0

        buffer = np.zeros(n, np.float32)
        results = []
        for k in range(12):
            buffer[:] = k / 10
            with tf.device("/cpu:0"):
                x = tf.experimental.dlpack.from_dlpack(buffer.__dlpack__())
            results.append(f(x))
            buffer[:] = np.nan
        for k, result in enumerate(results):
            np.testing.assert_allclose(result, np.full(n, np.tanh(np.float32(k / 10)) * 2), rtol=1e-5, atol=1e-6)


def test_a_variable_keeps_its_value(xpu_device):
    """What was assigned from the host is the variable's own."""
    with tf.device(xpu_device):
        v = tf.Variable(tf.zeros([4]))

        @tf.function
        def f(x):
            v.assign(x)
            return tf.reduce_sum(tf.tanh(x)), tf.reduce_sum(tf.exp(x))

        for k in range(5):
            buffer = np.full(4, k, np.float32)
            with tf.device("/cpu:0"):
                x = tf.experimental.dlpack.from_dlpack(buffer.__dlpack__())
            f(x)
            buffer[:] = -1
            np.testing.assert_array_equal(v, np.full(4, k))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1000, 70)])
def test_shapes(shape, xpu_device):
    with tf.device(xpu_device):

        @tf.function(input_signature=[tf.TensorSpec(None, tf.int32), tf.TensorSpec(None, tf.float32)])
        def f(i, x):
            y = tf.tanh(x) + tf.cast(i, tf.float32)
            return tf.cast(y * 4, tf.int32), tf.size(y), y > 1

        rng = np.random.default_rng(1)
        for _ in range(3):
            i, x = rng.integers(-3, 3, shape).astype(np.int32), rng.random(shape).astype(np.float32)
            whole, size, large = f(tf.constant(i), tf.constant(x))
            y = np.tanh(x) + i
            assert whole.shape == shape and np.max(np.abs(whole.numpy() - np.trunc(y * 4)), initial=0) <= 1
            assert size == x.size
            np.testing.assert_array_equal(large, y > 1)


def test_shapes_that_never_repeat(xpu_device):
    """Run member by member, the values cross as well."""
    with tf.device(xpu_device):

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def f(i):
            y = tf.cast(i, tf.float32) * 0.5
            return tf.cast(tf.exp(tf.tanh(y)) * 100, tf.int32)

        for n in range(60):
            i = np.arange(n, dtype=np.int32)
            np.testing.assert_allclose(f(tf.constant(i)), np.trunc(np.exp(np.tanh(i * 0.5)) * 100), atol=1)


def test_a_branch_decides_on_what_a_cluster_computes(xpu_device):
    with tf.device(xpu_device):

        @tf.function
        def f(x):
            y = tf.tanh(x) * 2
            largest = tf.argmax(y, output_type=tf.int32)
            if largest > 1:
                y = tf.exp(y) + 1
            return y, largest

        for values in ([1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [3.0, 1.0, 2.0]):
            x = np.float32(values)
            y, largest = f(tf.constant(x))
            want = np.tanh(x) * 2
            assert largest == np.argmax(want)
            np.testing.assert_allclose(y, np.exp(want) + 1 if np.argmax(want) > 1 else want, rtol=1e-5)


def test_a_bad_index_from_the_host_names_its_op(xpu_device):
    with tf.device(xpu_device):
        table = tf.Variable(tf.reshape(tf.range(12.0), [4, 3]))

        @tf.function
        def f(i):
            rows = tf.gather(table, i, name="lookup")
            table.assign_add(tf.ones([4, 3]))
            return tf.reduce_sum(tf.tanh(rows)), tf.argmax(rows, 1, output_type=tf.int32)

        before = table.numpy()
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)\s.*node lookup"):
            f(tf.constant([1, 4]))
        np.testing.assert_array_equal(f(tf.constant([1, 3]))[1], [2, 2])
        assert np.all(table.numpy() >= before + 1)


def test_threads(xpu_device):
    with tf.device(xpu_device):

        @tf.function
        def f(i):
            y = tf.tanh(tf.cast(i, tf.float32) / 50)
            return tf.cast(y * 1000, tf.int32), tf.reduce_sum(y)

        f(tf.zeros([64], tf.int32))
        wrong = []

        def run(seed):
            rng = np.random.default_rng(seed)
            with tf.device(xpu_device):
                for _ in range(30):
                    i = rng.integers(0, 50, 64).astype(np.int32)
                    got, _ = f(tf.constant(i))
                    if np.max(np.abs(got.numpy() - np.tanh(i / np.float32(50)) * 1000)) > 2:
                        wrong.append(i)

        in_threads(run)
        assert not wrong
