"""Values that pass between host and device at the edge of a cluster. They are int32 arguments and results, which
TensorFlow has in host memory, and arguments on the CPU. Also integers that need not pass.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.support.processes import in_threads, run_code


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


@pytest.mark.of_hooks("clusters")
def test_they_are_no_signature_and_cross_in_the_cluster(tmp_path):
    code = """
import numpy as np, tensorflow as tf
from tests.graphs.test_host_values import step
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
    """A value that was assigned from the host is the variable's own."""
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


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize(("dtype", "uploads"), [("int64", 0), ("int32", 1)])
def test_tokens_stay_on_the_device(dtype, uploads, tmp_path):
    """Rows chosen by tokens. All is one cluster, which at most copies the tokens themselves to the device."""
    code = f"""
import numpy as np, tensorflow as tf
dtype = tf.{dtype}
with tf.device("/xpu:0"):
    table = tf.Variable(tf.reshape(tf.range(40.0), [10, 4]))

    @tf.function
    def f(tokens):
        i = tf.cast(tokens, tf.int32)
        i = tf.where(i < 0, i + 10, i)
        rows = tf.tanh(tf.gather(table, i) / 40)
        late = tf.cast(i[:, None] > tf.range(3), tf.float32)
        return tf.matmul(late, rows, transpose_a=True)

    for tokens in ([1, -1, 3, 7], [0, 1, -10, 9]):
        tokens = np.array(tokens)
        late = (tokens % 10)[:, None] > np.arange(3)
        want = late.T.astype(float) @ np.tanh(np.arange(40.0).reshape(10, 4)[tokens] / 40)
        np.testing.assert_allclose(f(tf.constant(tokens, dtype)), want, rtol=1e-5)
    try:
        f(tf.constant([3, 12, 0, 0], dtype))
    except tf.errors.InvalidArgumentError as e:
        assert "indices[1] = 12 is not in [0, 10)" in str(e), e
    else:
        raise AssertionError("12 was taken for a row")
"""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    dumps = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert {dump.splitlines()[0].split("/")[0] for dump in dumps} == {"Cluster xpu_cluster_0"}
    assert all("bytes to the host" not in dump and " SelectV2 " in dump for dump in dumps)
    assert all(len(re.findall("bytes from the host", dump)) == uploads for dump in dumps)


@pytest.mark.of_hooks("clusters")
def test_products_of_bytes_stay_on_the_device(tmp_path):
    """Their integers get another shape before they become floats, as in Keras's EinsumDense."""
    code = """
import numpy as np, tensorflow as tf
rng = np.random.default_rng(0)
a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 3, 8), (8, 6)))
with tf.device("/xpu:0"):
    weights = tf.Variable(b)

    @tf.function
    def f(a, x):
        c = tf.raw_ops.BatchMatMulV3(x=a, y=weights, Tout=tf.int32)
        c = tf.expand_dims(tf.squeeze(tf.reshape(c, [1, 3, 2, 3]), [0]), 1)
        return tf.cast(c, tf.float32) * tf.tanh(x)

    for _ in range(6):
        got = f(tf.constant(a), tf.constant(1.0))
        want = (a.astype(np.int64) @ b.astype(np.int64)).reshape(3, 1, 2, 3) * np.tanh(1.0)
        np.testing.assert_allclose(got, want, rtol=1e-6)
"""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    dumps = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert {dump.splitlines()[0].split("/")[0] for dump in dumps} == {"Cluster xpu_cluster_0"}
    assert all("bytes to the host" not in dump and " Cast " in dump for dump in dumps)


@pytest.mark.of_hooks("clusters")
def test_a_range_is_where_it_is_read(xpu_device):
    """Range of floats has no kernel for the XPU, so TensorFlow computes a constant of it, on the CPU."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), tf.device(xpu_device):
        x = v1.placeholder(tf.float32, [4])
        numbers = tf.range(4.0)
        y = tf.while_loop(lambda y: tf.reduce_sum(y) < 90.0, lambda y: [y + tf.range(4.0) * 2.0], [x])[0]
        options = v1.RunOptions(output_partition_graphs=True)
        with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
            got = []
            for fetched in (tf.tanh(x) + numbers, y):
                made = v1.RunMetadata()
                got.append(session.run(fetched, {x: np.ones(4, np.float32)}, options, made))
                nodes = [node for graph in made.partition_graphs for node in graph.node]
                assert not [node.name for node in nodes if node.op == "Const" and "CPU" in node.device]
                assert sum(node.op in ("_Send", "_HostSend") for node in nodes) <= 2  # x, and the result
    np.testing.assert_allclose(got[0], np.tanh(1.0) + np.arange(4), 1e-6)
    np.testing.assert_allclose(got[1], 1.0 + 8 * 2.0 * np.arange(4), 1e-6)


# int32 of int32, each four.
MADE = (
    lambda a, b, c: a + b * c,
    lambda a, b, c: tf.where(a < b, a, c),
    lambda a, b, c: tf.maximum(a, b) - tf.minimum(b, c),
    lambda a, b, c: tf.reverse(tf.concat([a, b], 0)[2:6], [0]),
    lambda a, b, c: tf.stack([a, b, c])[1],
    lambda a, b, c: tf.gather(a, tf.math.floormod(b, 4)),
    lambda a, b, c: a // (tf.abs(b) + 1),
    lambda a, b, c: tf.cumsum(a) + tf.reduce_sum(b),
    lambda a, b, c: tf.unstack(tf.transpose(tf.stack([a, b])))[3][0] + c,
    lambda a, b, c: tf.zeros_like(a) - tf.sign(b),
    lambda a, b, c: tf.reshape(tf.reshape(a, [2, 2]) + b[:2], [4]),
    lambda a, b, c: tf.cast(tf.argmax(tf.stack([a, b, c]), 0), tf.int32),
    lambda a, b, c: tf.squeeze(tf.expand_dims(a, 1) * tf.expand_dims(b[1:2], 0), 1) + c,
)
# Who reads four int32, beside four int64 and floats.
READ = (
    lambda i, n, x: i,
    lambda i, n, x: tf.cast(i, tf.float32) * 0.5 + tf.reduce_sum(x),
    lambda i, n, x: tf.gather(x, tf.math.floormod(i, 4)),
    lambda i, n, x: tf.one_hot(i, 5),
    lambda i, n, x: tf.reshape(x, tf.stack([tf.abs(i[0]) % 2 + 1, -1])),
    lambda i, n, x: tf.cast(i, tf.int64) + n,
)


def integers_by_chance(seed):
    """A function of int32 that come from int64 on the device, from the host, and from shapes."""

    def f(data, given, x):
        rng = np.random.default_rng(seed)
        values = [tf.cast(data, tf.int32), given, tf.fill([tf.shape(x)[0]], tf.shape(x)[1]), tf.constant([2, -5, 7, 1])]
        results = []
        for _ in range(rng.integers(3, 12)):
            of = [values[k] for k in rng.integers(0, len(values), 3)]
            values.append(MADE[rng.integers(0, len(MADE))](*of))
            results.append(READ[rng.integers(0, len(READ))](values[-1], data, x))
        return results

    return f


@pytest.mark.parametrize("seeds", [range(k, k + 10) for k in range(0, 60, 10)])
def test_integers_by_chance(seeds, xpu_device):
    for seed in seeds:
        functions = {d: tf.function(integers_by_chance(seed)) for d in ("/cpu:0", xpu_device)}
        rng = np.random.default_rng(seed)
        for _ in range(3):
            data, given = rng.integers(-9, 9, 4), rng.integers(-9, 9, 4).astype(np.int32)
            x = rng.integers(-3, 3, (4, 6)).astype(np.float32)
            got, want = [], []
            for results, device in ((got, xpu_device), (want, "/cpu:0")):
                with tf.device(device):
                    results += functions[device](tf.constant(data), tf.constant(given), tf.constant(x))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"seed {seed}")


@pytest.mark.of_hooks("clusters")
def test_a_constant_that_a_kernel_reads_on_the_host(xpu_device):
    """TensorFlow computes it of an op of the device, and so it would be copied to the host in each call."""
    with tf.device(xpu_device):
        f = tf.function(lambda x: tf.tanh(tf.pad(tf.sin(x), [[1, 0]], constant_values=tf.math.log(0.5)) + 1))
        with placement.record_nodes() as nodes:
            got = f(tf.constant([1.0, 2.0])).numpy()
    np.testing.assert_allclose(got, np.tanh(np.r_[np.log(0.5), np.sin([1, 2])] + 1), rtol=1e-6)
    assert {node.op for node in nodes} <= {"_Arg", "_Retval", "_XpuCluster", "Const", "HostConst"}
