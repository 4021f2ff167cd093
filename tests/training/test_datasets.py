"""tf.data on the device: elements that are copied there ahead of their use, and the ops that this consists of."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import prefetching_ops
from tensorflow.python.data.ops.iterator_ops import OwnedIterator
from tensorflow.python.data.util import structure

import tensorflow_xpu
from tests.support.processes import run_code
from tests.sweep.adopted import OPS
from tests.sweep.runner import hard_placement


def place(tensor):
    return tensor.device[-5:]


def numbers(tensors):
    return [np.asarray(t) for t in tf.nest.flatten(tensors)]


def same(got, want):
    assert len(got) == len(want) > 0
    for a, b in zip(numbers(got), numbers(want), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op", sorted(OPS))
def test_adopted_ops(op, xpu_device):
    """Each as on the CPU, with soft placement off: the op and all that its function needs."""
    results = []
    for device in xpu_device, "/cpu:0":
        with tf.device(device), hard_placement():
            results.append(OPS[op](device))
    same(*results)


def source(n=5):
    """Elements of many types, one of them a string."""
    return tf.data.Dataset.range(n).map(
        lambda i: {
            "float": tf.cast(i, tf.float32) * tf.ones([2, 3]),
            "half": tf.cast(i, tf.bfloat16),
            "int64": i,
            "int32": tf.add(tf.cast(i, tf.int32), [1, 2]),
            "bool": i > 2,
            "text": tf.strings.as_string(i),
        }
    )


@pytest.mark.parametrize("transform", ["prefetch_to_device", "copy_to_device"])
def test_elements_are_on_the_device(xpu_device, transform):
    transform = getattr(tf.data.experimental, transform)
    dataset, want = source().batch(2).apply(transform(xpu_device)), list(source().batch(2))
    for _ in range(2):
        got = list(dataset)
        same(got, want)
        for element in got:
            for name, tensor in element.items():
                assert place(tensor) == "XPU:0", name
                assert name == "text" or tensor.backing_device[-5:] == "XPU:0", name
    assert {place(t) for t in tf.nest.flatten(list(source().prefetch(2)))} == {"CPU:0"}


def test_elements_are_used(xpu_device):
    """By ops and functions, in loops that Python runs and that the graph runs."""
    dataset = source(6).apply(tf.data.experimental.prefetch_to_device(xpu_device))
    total = sum(tf.reduce_sum(e["float"]) + tf.cast(tf.reduce_sum(e["int32"]), tf.float32) for e in dataset)
    assert total.numpy() == 15 * 6 + 15 * 2 + 6 * 3

    @tf.function
    def step(e):
        return tf.reduce_sum(e["float"]) * 2, e["int32"] * 2, e["int64"] + 1, tf.strings.join([e["text"], "!"])

    for i, element in enumerate(dataset):
        floats, int32, int64, text = step(element)
        assert (floats.numpy(), int32.numpy().tolist(), int64.numpy()) == (12 * i, [2 * i + 2, 2 * i + 4], i + 1)
        assert text.numpy() == b"%d!" % i and place(floats) == "XPU:0"

    @tf.function
    def run(iterator, steps):
        total = tf.zeros([])
        for _ in tf.range(steps):
            total += tf.reduce_sum(next(iterator)["float"])
        return total

    iterator = iter(dataset)
    assert run(iterator, tf.constant(2)).numpy() == 6
    assert run(iterator, tf.constant(4)).numpy() == 84
    with pytest.raises(tf.errors.OutOfRangeError):
        run(iterator, tf.constant(1))
    assert bool(iter(dataset).get_next_as_optional().has_value())


def test_datasets_made_in_a_function(xpu_device):
    """Nothing says where they belong: what is not copied to a device stays on the CPU and works as before."""

    @tf.function
    def f(n):
        total = tf.zeros([], tf.int64)
        for i in tf.data.Dataset.range(n).map(lambda i: i + 1).prefetch(2):
            total += i
        for i in tf.data.Dataset.range(n).apply(tf.data.experimental.prefetch_to_device(xpu_device)):
            total += i * 10
        return total

    assert f(tf.constant(4, tf.int64)).numpy() == 10 + 60


def test_composite_elements(xpu_device):
    def composite(i):
        values = tf.range(tf.cast(i, tf.float32) + 1)
        return (
            tf.RaggedTensor.from_row_lengths(values, [i, 1]),
            tf.sparse.from_dense(tf.reverse(values, [0])),
            i,
        )

    dataset = tf.data.Dataset.range(4).map(composite)
    copied = dataset.apply(tf.data.experimental.prefetch_to_device(xpu_device))
    for (ragged, sparse, i), (want_ragged, want_sparse, _) in zip(copied, dataset, strict=True):
        assert ragged.to_list() == want_ragged.to_list()
        same([tf.sparse.to_dense(sparse)], [tf.sparse.to_dense(want_sparse)])
        assert place(i) == "XPU:0"


def test_errors_of_the_pipeline(xpu_device):
    def fail(i):
        with tf.control_dependencies([tf.debugging.assert_less(i, tf.constant(2, tf.int64), "too large")]):
            return i + 1

    iterator = iter(tf.data.Dataset.range(5).map(fail).apply(tf.data.experimental.prefetch_to_device(xpu_device)))
    assert [next(iterator).numpy(), next(iterator).numpy()] == [1, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        next(iterator)


def test_a_map_on_the_device(xpu_device):
    """`map_on_gpu`, which TensorFlow has for its own use: the function runs where the elements are."""
    dataset = source().map(lambda e: e["float"]).apply(tf.data.experimental.copy_to_device(xpu_device))
    dataset = dataset.apply(prefetching_ops.map_on_gpu(lambda v: tf.nn.relu(v - 2) * 3)).prefetch(1)
    with tf.device(xpu_device):
        got = list(dataset)
    assert [float(t[0, 0]) for t in got] == [0, 0, 0, 3, 6]
    assert {place(t) for t in got} == {"XPU:0"}


def test_in_a_session(xpu_device):
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        dataset = source().apply(tf.data.experimental.prefetch_to_device(xpu_device))
        iterator = v1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        result = tf.reduce_sum(element["float"]), element["int32"] * 2, element["text"], element["float"]
        with v1.Session() as session:
            for _ in range(2):
                session.run(iterator.initializer)
                for i in range(5):
                    floats, int32, text, _ = session.run(result)
                    assert (floats, int32.tolist(), text) == (6 * i, [2 * i + 2, 2 * i + 4], b"%d" % i)
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(result)
    assert element["float"].op.device == "" or "XPU" in element["float"].op.device


def test_keras_fits_from_the_device(xpu_device):
    import keras

    keras.utils.set_random_seed(1)
    x = np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(16)
    losses = []
    for data in dataset, dataset.apply(tf.data.experimental.prefetch_to_device(xpu_device)):
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        losses.append(model.fit(data, epochs=3, verbose=0).history["loss"] + [model.evaluate(data, verbose=0)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


SEVERAL = """
import tensorflow as tf
from tensorflow.python.data.ops import multi_device_iterator_ops as ops

dataset = tf.data.Dataset.range(8).map(lambda i: (tf.cast(i, tf.float32) * tf.ones([256]), tf.cast(i, tf.int32)))
devices = ["/xpu:0", "/xpu:1"]
for iterator in ops.OwnedMultiDeviceIterator(dataset, devices, prefetch_buffer_size=2), \\
        ops.MultiDeviceIterator(dataset, devices):
    for i in range(4):
        for j, (value, number) in enumerate(iterator.get_next()):
            assert value.device[-5:] == number.device[-5:] == f"XPU:{j}", value.device
            assert (tf.reduce_sum(value).numpy(), number.numpy()) == (256 * (2 * i + j), 2 * i + j)
    try:
        iterator.get_next()
        print("no end")
    except tf.errors.OutOfRangeError:
        pass

strategy = tf.distribute.MirroredStrategy(devices)
total = []
for value, number in strategy.experimental_distribute_dataset(dataset.batch(2)):
    places = [v.device[-5:] for v in strategy.experimental_local_results(value)]
    assert places == ["XPU:0", "XPU:1"], places
    result = strategy.run(tf.function(lambda v, n: tf.reduce_sum(v) + tf.cast(n[0], tf.float32)), (value, number))
    total.append(float(strategy.reduce("SUM", result, axis=None)))
print(total)
"""


@pytest.mark.parametrize("isolate", ["0", "1"])
def test_several_devices(xpu_device, isolate):
    environment = {"TF_XPU_DEVICE_COUNT": "2", "TF_XPU_ISOLATE_MEMORY": isolate, "TF_XPU_ALLOCATOR": "pool"}
    outcome = run_code(SEVERAL, environment=environment)
    assert outcome.returncode == 0, outcome
    assert outcome.stdout.strip() == "[257.0, 1285.0, 2313.0, 3341.0]", outcome


def peak_of(make):
    """The result of the call, and how many bytes of the device's memory it takes for a while."""
    tensorflow_xpu.reset_memory_stats()
    before = tensorflow_xpu.memory_info().current
    made = make()
    return made, tensorflow_xpu.memory_info().peak - before


def test_arrays_of_data_sets_stay_on_the_host(xpu_device):
    x = np.arange(1 << 20, dtype=np.float32).reshape(1 << 10, 1 << 10)
    with tf.device(xpu_device):
        on_device, variable = tf.constant(x) + 1, tf.Variable(x[:2])
        ragged, text = tf.ragged.constant([[1.0], [2.0, 3.0]]), np.array(["a", "b"] * 512)
        element = {"x": (x, [1, 2]), "text": text, "none": None}
        dataset, peak = peak_of(lambda: tf.data.Dataset.from_tensors(element))
        assert peak < x.nbytes // 8, peak
        (got,) = dataset
        same(got["x"], (x, np.array([1, 2])))
        assert got["none"] is None and got["text"].numpy()[1] == b"b"
        slices, peak = peak_of(lambda: tf.data.Dataset.from_tensor_slices((x, text)))
        assert peak < x.nbytes // 8, peak
        for i, (row, word) in enumerate(slices.take(3)):
            np.testing.assert_array_equal(row, x[i])
            assert word.numpy() == text[i].encode()
        # A tensor that is on the device already, and a value that is no array.
        same(next(iter(tf.data.Dataset.from_tensors((on_device, variable)))), (x + 1, x[:2]))
        (got,) = tf.data.Dataset.from_tensors(ragged)
        assert got.to_list() == [[1.0], [2.0, 3.0]]
        with pytest.raises(ValueError, match=r"[Uu]nsupported|object"):
            tf.data.Dataset.from_tensors(np.array([object()] * 1000))
        in_graph = tf.function(lambda: next(iter(tf.data.Dataset.from_tensors(x).map(tf.reduce_sum))))
        np.testing.assert_allclose(in_graph(), x.sum(dtype=np.float64), rtol=1e-4)


def test_keras_leaves_what_it_is_given_on_the_host(xpu_device):
    with tf.device(xpu_device):
        model = tf.keras.Sequential([tf.keras.Input([1 << 10]), tf.keras.layers.Dense(2)])
        model.compile("sgd", "mse")
        x, y = np.ones([1 << 12, 1 << 10], np.float32), np.ones([1 << 12, 2], np.float32)
        for run in (lambda: model.fit(x, y, verbose=0), lambda: model.predict(x, verbose=0)):
            _, peak = peak_of(run)
            assert peak < x.nbytes // 2, peak


class Pair(NamedTuple):
    left: tf.Tensor
    right: tf.Tensor


ELEMENTS = {
    "tensor": lambda i: i,
    "tuple": lambda i: (i, tf.strings.as_string(i)),
    "nested": lambda i: {"b": (i, {"d": i + 1, "c": tf.fill([i], 2.0)}), "a": (i + 2,)},
    "named": lambda i: Pair(i, (i, i + 1)),
    "ragged": lambda i: (tf.RaggedTensor.from_row_lengths(tf.range(i), [i]), i),
    "sparse": lambda i: {"x": tf.sparse.from_dense(tf.one_hot(i, 5))},
    "optional": lambda i: (tf.experimental.Optional.from_value(i), i),
    "dataset": lambda i: tf.data.Dataset.range(i),
}


def plain(value):
    """A value as types and numbers that can be compared."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}, list(value)
    if isinstance(value, tuple):
        return type(value), [plain(v) for v in value]
    if isinstance(value, tf.Tensor):
        return value.dtype, value.device, np.asarray(value).tolist()
    if isinstance(value, tf.data.Dataset):
        return [plain(v) for v in value]
    if isinstance(value, tf.experimental.Optional):
        return plain(value.get_value())
    return type(value), repr(value.to_list() if isinstance(value, tf.RaggedTensor) else tf.sparse.to_dense(value))


@pytest.mark.of_hooks("iterators")
@pytest.mark.parametrize("kind", ELEMENTS)
def test_python_gets_elements_as_tensorflow_makes_them(kind, xpu_device, monkeypatch):
    dataset = tf.data.Dataset.range(4).map(ELEMENTS[kind])
    with tf.device(xpu_device):
        got = [plain(element) for element in dataset]
        monkeypatch.setattr(OwnedIterator, "_next_internal", OwnedIterator._next_internal.__wrapped__)
        assert got == [plain(element) for element in dataset]


@pytest.mark.of_hooks("iterators")
def test_elements_of_tensors_are_made_without_types(xpu_device, monkeypatch):
    """But for those that are more than tensors, tuples and dicts."""
    made = []

    def count(spec, tensors):
        made.append(spec)
        return original(spec, tensors)

    def taken(kind):
        elements = iter(tf.data.Dataset.range(4).map(ELEMENTS[kind]))
        made.clear()
        return len(list(elements)), len(made)

    original = structure.from_compatible_tensor_list
    monkeypatch.setattr(structure, "from_compatible_tensor_list", count)
    with tf.device(xpu_device):
        assert taken("nested") == (4, 0)
        assert taken("ragged") == (4, 4)


@pytest.mark.parametrize("inside", [lambda x: x, lambda x: (x, x), lambda x: {"x": x}])
def test_an_element_of_another_shape_than_promised_is_an_error(inside, xpu_device):
    def lie(i):
        (x,) = tf.numpy_function(lambda n: np.zeros(2 if n == 1 else 3, np.float32), [i], [tf.float32])
        x.set_shape([3])
        return inside(x)

    with tf.device(xpu_device):
        elements = iter(tf.data.Dataset.range(3).map(lie))
        next(elements)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Incompatible shapes at component 0: expected \[3\]"):
            next(elements)
        next(elements)
        with pytest.raises(StopIteration):
            next(elements)


def test_elements_in_asynchronous_execution(xpu_device):
    tf.config.experimental.set_synchronous_execution(False)
    try:
        with tf.device(xpu_device):
            assert [i.numpy() for i, _ in tf.data.Dataset.range(3).map(ELEMENTS["tuple"])] == [0, 1, 2]
    finally:
        tf.config.experimental.set_synchronous_execution(True)
