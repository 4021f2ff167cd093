"""How Python reads eager tensors of an XPU: at once, what it reads and no more, and as TensorFlow has it otherwise."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import run_code

DTYPES = [
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
    tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128,
]  # fmt: skip


def on_xpu(values, dtype):
    with tf.device("/xpu:0"):
        return tf.identity(tf.constant(values, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_values_are_those_of_a_cpu_tensor(dtype, xpu_device):
    values = np.arange(24).reshape(2, 3, 4) % 5
    with tf.device("/cpu:0"):
        expected = tf.cast(values, dtype)
    for shape in [(2, 3, 4), (24,), (24, 1, 1)]:
        x = tf.reshape(on_xpu(expected.numpy(), dtype), shape)
        assert "XPU" in x.device
        first = x.numpy()
        assert first.dtype == expected.numpy().dtype and first.shape == shape
        np.testing.assert_array_equal(first.reshape(2, 3, 4), expected.numpy())
        first[...] = 0  # it is a copy, as TensorFlow's is
        np.testing.assert_array_equal(x.numpy().reshape(2, 3, 4), expected.numpy())
        np.testing.assert_array_equal(np.asarray(x), x.numpy())


def test_scalars_and_empty_tensors(xpu_device):
    x = on_xpu(2.5, tf.float32)
    assert isinstance(x.numpy(), np.float32) and float(x + 0) == 2.5 and int(x + 1) == 3 and f"{x + 2:.1f}" == "4.5"
    assert bool(on_xpu([1.0, 2.0], tf.float32)[1] > 1.5) and complex(x + 3) == 5.5
    assert "2.5" in repr(x + 0) and range(on_xpu(3, tf.int32) + 1) == range(4)
    empty = on_xpu(np.zeros((0, 3)), tf.float32)
    assert (empty + 1).numpy().shape == (0, 3)


def test_what_is_read_once_stays_where_it_is_written_again(xpu_device):
    """A copy that was kept of a variable's value is that value's, not the variable's."""
    with tf.device("/xpu:0"):
        v = tf.Variable([1.0, 2.0])
        before = v.read_value()
        assert before.numpy().tolist() == [1, 2]
        v.assign_add([1.0, 1.0])
        assert before.numpy().tolist() == [1, 2] and v.numpy().tolist() == [2, 3]
        values = []
        for _ in range(50):
            v.assign_add([1.0, 0.0])
            values.append(float(v[0]))
        assert values == [3.0 + i for i in range(50)]


def test_many_threads_read_one_tensor():
    outcome = run_code(
        """
        import threading
        import numpy as np
        import tensorflow as tf

        wrong = []

        def work(tensors, barrier):
            for i, x in enumerate(tensors):
                barrier.wait()
                if not np.array_equal(x.numpy(), np.full((100, 7), i, np.float32)):
                    wrong.append(i)

        with tf.device("/xpu:0"):
            tensors = [tf.fill((100, 7), float(i)) * 1 for i in range(300)]
        barrier = threading.Barrier(4)
        threads = [threading.Thread(target=work, args=(tensors, barrier)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(wrong)
        """
    )
    assert outcome.stdout.strip() == "[]", outcome


# One result of a function is there long before the function has come to its end.
EARLY = """
import time
import tensorflow as tf

@tf.function
def step(x, w):
    loss = tf.reduce_sum(x)
    for _ in range(40):
        x = tf.tanh(x @ w)
    return loss, x

with tf.device("/xpu:0"):
    x, w = tf.random.normal((700, 700)), tf.random.normal((700, 700)) / 30

def run():
    begin = time.perf_counter()
    loss, x_ = step(x, w)
    value = float(loss)
    early = time.perf_counter() - begin
    whole = x_.numpy()
    return early, time.perf_counter() - begin, value, whole

run(), run()
runs = [run() for _ in range(7)]
early, late = (sorted(times)[3] for times in list(zip(*runs))[:2])
assert all(abs(r[2] - float(tf.reduce_sum(x))) < 1e-2 * abs(r[2]) + 1 and (r[3] == runs[0][3]).all() for r in runs)
print(early / late)
"""


@pytest.mark.of_hooks("reading", "clusters")
@pytest.mark.host_only
def test_a_result_is_read_while_the_rest_of_its_function_runs(xpu_device):
    outcome = run_code(EARLY)
    assert outcome.returncode == 0 and float(outcome.stdout) < 0.5, outcome


@pytest.mark.of_hooks("reading")
@pytest.mark.host_only
def test_reading_is_quick(xpu_device):
    """Almost as quick as from the CPU: without TensorFlow's threads, which take 70 times as long."""
    outcome = run_code(
        """
        import statistics, time
        import tensorflow as tf

        def seconds(device):
            with tf.device(device):
                x = tf.constant(1.0)
                y = x + x
            begin = time.perf_counter()
            assert float(y) == 2
            return time.perf_counter() - begin

        seconds("/xpu:0")
        pairs = [(seconds("/xpu:0"), seconds("/cpu:0")) for _ in range(500)]
        print(*(statistics.median(times) for times in zip(*pairs)))
        """
    )
    quick, usual = map(float, outcome.stdout.split())
    assert quick < 15 * usual, outcome


def test_a_program_that_knows_nothing_of_the_package(xpu_device):
    """Reading imports neither the package nor its DLPack."""
    outcome = run_code(
        """
        import sys
        import tensorflow as tf

        of = type(tf.constant(1.0))
        dlpack = of.__dlpack__
        print(float(tf.constant(1.5) * 2), "tensorflow_xpu" in sys.modules, of.__dlpack__ is dlpack)
        import tensorflow_xpu
        print(tf.constant([2.5]).numpy(), of.__dlpack__ is dlpack)
        """
    )
    assert outcome.stdout.split() == ["3.0", "False", "True", "[2.5]", "False"], outcome


def test_without_the_native_module_tensorflow_reads(plugin_site):
    for module in plugin_site.package.glob("_interop*"):
        module.unlink()
    outcome = plugin_site.run_code("import tensorflow as tf\nx = tf.add(1.0, 2.0)\nprint(x.device, float(x))")
    assert outcome.returncode == 0 and outcome.stdout.strip().endswith("XPU:0 3.0"), outcome


# The host's data may change as soon as it has been handed over, and the device is busy with something else.
WRITES = """
import numpy as np
import tensorflow as tf

@tf.function
def busy(x):
    for _ in range(10):
        x = tf.tanh(x @ x)
    return x

@tf.function
def f(x, n):
    with tf.device("/cpu:0"):
        y = x + 1  # on the host, and back
    with tf.device("/xpu:0"):
        z = y * 2 + tf.cast(n, tf.float32)
    with tf.device("/cpu:0"):
        return z - 1, tf.reduce_sum(y)

wrong = 0
rng = np.random.default_rng(0)
with tf.device("/xpu:0"):
    large = tf.random.normal((400, 400)) / 20
for i in range(300):
    shape = (int(rng.integers(0, 700)), int(rng.integers(1, 600)))
    array = np.full(shape, i, np.float32)
    if i % 2:
        busy(large)
    with tf.device("/xpu:0"):
        x = tf.constant(array)
        on_device = x * 3
    results = f(tf.convert_to_tensor(array), i)
    array[...] = -1
    wrong += not (on_device.numpy() == 3 * i).all() or not (results[0].numpy() == 3 * i + 1).all()
    wrong += float(results[1]) != (i + 1) * array.size and array.size * (i + 1) < 2**24
print(wrong)
"""


@pytest.mark.parametrize("isolated", ["0", "1"])
def test_what_is_written_is_what_the_host_had(isolated, xpu_device):
    outcome = run_code(WRITES, environment={"TF_XPU_ISOLATE_MEMORY": isolated, "TF_XPU_ALLOCATOR": "pool"})
    assert outcome.stdout.strip() == "0", outcome


@pytest.mark.of_hooks("copies", "direct_copies")
@pytest.mark.host_only
def test_small_copies_are_made_in_the_compute_streams_order(xpu_device, tmp_path):
    outcome = run_code(
        f"""
        import tensorflow as tf
        import tensorflow_xpu

        @tf.function
        def f(x):
            with tf.device("/xpu:0"):
                return tf.tanh(x)

        with tf.device("/cpu:0"):
            x = tf.ones((10, 10))
        f(x)
        with tensorflow_xpu.profile({str(tmp_path)!r}) as profile:
            f(x)
        print({{event.line for event in profile.events if "from the host" in event.name}})
        """
    )
    assert outcome.returncode == 0 and "compute" in outcome.stdout and "copies" not in outcome.stdout, outcome
