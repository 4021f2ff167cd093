"""Functions found by kinds of arguments: whatever may change what TensorFlow would call is noticed."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tensorflow_xpu.hooks.runtime import interop_module
from tests.support.processes import in_threads, run_code

Function = polymorphic_function.Function


@pytest.fixture(autouse=True)
def _on_the_device(xpu_device):
    with tf.device(xpu_device):
        yield


def kinds(function):
    """How many kinds of arguments are known to it by what they call, and how many to be TensorFlow's business."""
    return interop_module().kinds(function)[:2]


def thrice(function, *args, **named):
    """The third result: of the first call TensorFlow makes a graph, the second is looked at, this one is quick."""
    function(*args, **named)
    function(*args, **named)
    return function(*args, **named)


@pytest.mark.of_hooks("calls", "functions")
def test_each_kind_of_arguments_has_its_graph():
    @tf.function
    def double(x):
        return tf.tanh(x) * tf.cast(2, x.dtype), tf.shape(x)

    for x in ([1.0, 2.0], [[1.0, 2.0]], [1.0], 3.0):
        for dtype in (tf.float32, tf.float64):
            y, shape = thrice(double, tf.constant(x, dtype))
            assert y.dtype == dtype
            np.testing.assert_allclose(y, np.tanh(x) * 2, rtol=1e-6)
            np.testing.assert_array_equal(shape, np.shape(x))
    assert kinds(double) == (1, 0)  # a new graph, and all is looked at again
    for _ in range(2):
        for x in ([1.0, 2.0], [[1.0, 2.0]], [1.0], 3.0):
            np.testing.assert_allclose(double(tf.constant(x))[0], np.tanh(x) * 2, rtol=1e-6)
    assert kinds(double) == (5, 0)
    assert double.experimental_get_tracing_count() == 8


def test_numbers_are_part_of_the_kind():
    @tf.function
    def scaled(x, by, twice=False):
        return tf.tanh(x) * float(by) * (2 if twice else 1)

    x = tf.constant([0.5, -1.0])
    for by in (3, 1, True, "4"):
        np.testing.assert_allclose(thrice(scaled, x, by), np.tanh([0.5, -1.0]) * float(by), rtol=1e-6)
        np.testing.assert_allclose(thrice(scaled, x, by, True), np.tanh([0.5, -1.0]) * float(by) * 2, rtol=1e-6)
        np.testing.assert_allclose(thrice(scaled, x, by, twice=True), np.tanh([0.5, -1.0]) * float(by) * 2, rtol=1e-6)
    for by in (2.0, 0.5, np.float32(0.25)):  # left to TensorFlow
        np.testing.assert_allclose(thrice(scaled, x, by), np.tanh([0.5, -1.0]) * by, rtol=1e-6)


@pytest.mark.of_hooks("calls", "functions")
def test_structures_in_and_out():
    @tf.function
    def mixed(batch, more):
        (x, y), z = batch["pair"], batch["a"]
        return {"z": tf.exp(z), "nothing": None, "a": [tf.exp(x) + y, (y * 2,)], "more": more[1]}

    x, y, z = (tf.constant([float(i), 1.0]) for i in range(3))
    for arguments in ([{"pair": (x, y), "a": z}, [x, y]], [{"a": z, "pair": (x, y)}, [x, y]]):
        first = mixed(*arguments)
        found = thrice(mixed, *arguments)
        assert list(found) == list(first) == ["z", "nothing", "a", "more"]
        assert found["nothing"] is None and type(found["a"]) is list and type(found["a"][1]) is tuple
        np.testing.assert_allclose(found["z"], np.exp([2.0, 1.0]), rtol=1e-6)
        np.testing.assert_allclose(found["a"][0], np.exp([0.0, 1.0]) + np.ones(2), rtol=1e-6)
        np.testing.assert_array_equal(found["a"][1][0], [2.0, 2.0])
        np.testing.assert_array_equal(found["more"], [1.0, 1.0])
    assert kinds(mixed)[0] == 2
    swapped = mixed({"pair": (y, x), "a": z}, [x, y])  # the same kind
    np.testing.assert_allclose(swapped["a"][0], np.exp([1.0, 1.0]) + np.arange(2), rtol=1e-6)
    with pytest.raises(KeyError):
        mixed({"pair": (x, y), "b": z}, [x, y])
    with pytest.raises(TypeError):
        mixed({"pair": (x, y), 3: z}, [x, y])
    with pytest.raises(ValueError, match="unpack"):
        mixed({"pair": (x, y, y), "a": z}, [x, y])


@pytest.mark.of_hooks("eager_tensors")
def test_variables_and_lists_of_numbers_are_left_to_tensorflow():
    f = tf.function(lambda x: tf.tanh(x) * 2)
    v = tf.Variable([0.5, 1.0])
    for x in (v, [0.5, 1.0], tf.ragged.constant([[0.5, 1.0]])):
        y = thrice(f, x)
        y = y.values if isinstance(y, tf.RaggedTensor) else tf.reshape(y, [2])
        np.testing.assert_allclose(y, np.tanh([0.5, 1.0]) * 2, rtol=1e-6)
    v.assign([1.0, 2.0])
    np.testing.assert_allclose(f(v), np.tanh([1.0, 2.0]) * 2, rtol=1e-6)
    assert kinds(f)[0] == 0


@pytest.mark.of_hooks("calls", "functions")
def test_gradients():
    w = tf.Variable(3.0)
    f = tf.function(lambda x: tf.tanh(x * w))
    x = tf.constant(0.5)
    thrice(f, x)
    assert kinds(f) == (1, 0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dx, dw = tape.gradient(y, [x, w])
    slope = 1 - np.tanh(1.5) ** 2
    np.testing.assert_allclose([dx, dw], [3 * slope, 0.5 * slope], rtol=1e-5)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = f(x)
    np.testing.assert_allclose(accumulator.jvp(y), 3 * slope, rtol=1e-5)


def test_in_another_function_it_is_part_of_its_graph():
    v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        v.assign_add(1.0)
        return tf.tanh(x) * v

    x = tf.constant(0.5)
    thrice(inner, x)
    outer = tf.function(lambda x: inner(x) + inner(x))
    values = [outer(x).numpy() for _ in range(3)]
    np.testing.assert_allclose(values, np.tanh(0.5) * np.array([11, 15, 19]), rtol=1e-6)
    assert v.numpy() == 10


def test_run_functions_eagerly_is_heeded():
    traced = []

    @tf.function
    def f(x):
        traced.append(tf.executing_eagerly())
        return tf.tanh(x) * 2

    x = tf.constant(1.0)
    thrice(f, x)
    tf.config.run_functions_eagerly(True)
    try:
        thrice(f, x)
    finally:
        tf.config.run_functions_eagerly(False)
    thrice(f, x)
    assert traced == [False, True, True, True]


def test_strategies_see_their_calls():
    f = tf.function(lambda x: tf.tanh(x) * 2 + float(tf.distribute.has_strategy()))
    x = tf.constant(0.0)
    assert thrice(f, x).numpy() == 0
    with tf.distribute.OneDeviceStrategy("/xpu:0").scope():
        assert thrice(f, x).numpy() in (0, 1)  # as TensorFlow has it: the same graph
        inside = f.experimental_get_tracing_count()
    stock = polymorphic_function.Function.__call__.__wrapped__
    g = tf.function(lambda x: tf.tanh(x) * 2 + float(tf.distribute.has_strategy()))
    stock(g, x)
    with tf.distribute.OneDeviceStrategy("/xpu:0").scope():
        stock(g, x)
    assert inside == g.experimental_get_tracing_count()


@pytest.mark.of_hooks("calls", "functions")
def test_a_more_special_graph_is_found_once_it_is_there():
    shapes = []

    @tf.function(reduce_retracing=True)
    def f(x):
        shapes.append(x.shape.rank and x.shape[0])
        return tf.tanh(x) * 2

    for n in (2, 3, 4, 5, 4):
        np.testing.assert_allclose(thrice(f, tf.ones([n])), np.full(n, np.tanh(1.0) * 2), rtol=1e-6)
    assert shapes == [2, None]
    assert kinds(f)[0] == 4 - 1  # 2 has not come again
    f.get_concrete_function(tf.TensorSpec([4]))
    np.testing.assert_allclose(thrice(f, tf.ones([4])), np.full(4, np.tanh(1.0) * 2), rtol=1e-6)


def test_input_signature():
    f = tf.function(lambda x: tf.tanh(x) * 2, input_signature=[tf.TensorSpec([None])])
    for n in (1, 2, 1):
        np.testing.assert_allclose(thrice(f, tf.ones([n])), np.full(n, np.tanh(1.0) * 2), rtol=1e-6)
    assert f.experimental_get_tracing_count() == 1
    for wrong in (tf.ones([2, 2]), tf.ones([2], tf.float64)):
        for _ in range(2):
            with pytest.raises(TypeError):
                f(wrong)


def test_captures_that_are_replaced():
    a, b = tf.constant(2.0), tf.constant(5.0)
    f = tf.function(lambda x: tf.tanh(x) * a)
    x = tf.constant(1.0)
    np.testing.assert_allclose(thrice(f, x), np.tanh(1.0) * 2, rtol=1e-6)
    concrete = f.get_concrete_function(x)
    concrete.set_external_captures([b])
    np.testing.assert_allclose(thrice(f, x), np.tanh(1.0) * 5, rtol=1e-6)
    concrete.replace_capture_with_deferred_capture(concrete.captured_inputs[0], lambda: a, tf.TensorSpec([]))
    np.testing.assert_allclose(thrice(f, x), np.tanh(1.0) * 2, rtol=1e-6)


@pytest.mark.of_hooks("calls", "functions")
def test_iterators():
    @tf.function
    def step(iterator):
        return tf.exp(next(iterator)) * 2

    for _ in range(3):  # epochs, each with an iterator of its own
        iterator = iter(tf.data.Dataset.range(4).map(lambda i: tf.cast(i, tf.float32)))
        np.testing.assert_allclose([step(iterator) for _ in range(4)], np.exp(range(4)) * 2, rtol=1e-6)
        with pytest.raises(tf.errors.OutOfRangeError):
            step(iterator)
    assert kinds(step)[0] == 1
    wide = iter(tf.data.Dataset.from_tensors([1.0, 2.0]).repeat(4))  # another kind
    np.testing.assert_allclose(thrice(step, wide), np.exp([1.0, 2.0]) * 2, rtol=1e-6)
    assert step.experimental_get_tracing_count() == 2


@pytest.mark.of_hooks("calls", "functions")
def test_errors_are_worded_as_tensorflow_words_them():
    code = """
import traceback
import tensorflow as tf
from tensorflow_xpu.hooks.runtime import interop_module

with tf.device("/xpu:0"):
    @tf.function
    def f(x, i):
        return tf.gather(tf.tanh(x) * 2, i)

    x = tf.constant([1.0, 2.0])
    for _ in range(3):
        f(x, tf.constant(1))
    texts = []
    for call in (f, type(f).__call__.__wrapped__.__get__(f)):
        try:
            call(x, tf.constant(7))
        except tf.errors.InvalidArgumentError as error:
            frames = traceback.extract_tb(error.__traceback__)
            assert len(frames) <= 4, frames  # TensorFlow's and the hooks' are left out
            texts.append(str(error))
    assert interop_module().kinds(f)[2] >= 2
    assert len(texts) == 2 and texts[0] == texts[1], texts
    assert "defined at" in texts[0] and "= 7 is not in" in texts[0], texts[0]
print("ok")
"""
    assert run_code(code).stdout.endswith("ok\n")


def test_warnings_of_retracing_count_all_calls():
    f = tf.function(lambda x: tf.tanh(x) * 2)
    x = tf.constant(1.0)
    for _ in range(9):
        f(x)
    with tf.GradientTape():  # TensorFlow's business
        f(x)
    detector = polymorphic_function._frequent_tracing_detector_manager._get_detector(f._key_for_call_stats)
    assert detector._call_count == 10 and detector._calls_per_tracings == [10]


@pytest.mark.of_hooks("calls", "functions")
def test_a_profile_has_functions_and_their_ops_and_calls_stay_direct(tmp_path):
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    f = tf.function(lambda x: tf.tanh(x) * 2)
    x = tf.constant(1.0)
    thrice(f, x)
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    tf.profiler.experimental.start(str(tmp_path), options=options)
    f(x)
    tf.profiler.experimental.stop()
    (path,) = tmp_path.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    (host,) = [plane for plane in space.planes if plane.name == "/host:CPU"]
    names = [host.event_metadata[event.metadata_id].name for line in host.lines for event in line.events]
    ops = [name for name in names if name.rpartition(":")[2].startswith("_XpuCluster")]
    assert len(ops) == 1, names
    assert not [name for name in names if name.startswith(("ExecutorState", "EagerExecute", "FunctionRun"))], names
    assert f._name in names
    assert {metadata.name for metadata in host.stat_metadata.values()} >= {"tf_function_call", "tracing_count"}
    (device,) = [plane for plane in space.planes if plane.name == "/device:CUSTOM:XPU:0"]
    assert "cluster" in {metadata.name for metadata in device.event_metadata.values()}


def test_methods_and_their_instances():
    class Layer(tf.Module):
        def __init__(self, by):
            self.by = tf.Variable(by)

        @tf.function
        def __call__(self, x):
            return tf.tanh(x) * self.by

    layers = [Layer(2.0), Layer(3.0)]
    x = tf.constant(1.0)
    for _ in range(4):
        np.testing.assert_allclose([layer(x) for layer in layers], np.tanh(1.0) * np.array([2, 3]), rtol=1e-6)


def test_a_saved_function(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(2.0)
    module.f = tf.function(lambda x: {"y": tf.tanh(x) * module.v}, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, str(tmp_path))
    thrice(module.f, tf.ones([2]))
    tf.saved_model.save(module, str(tmp_path / "again"))
    for path in (tmp_path, tmp_path / "again"):
        loaded = tf.saved_model.load(str(path))
        for value in (2.0, 3.0):
            loaded.v.assign(value)
            np.testing.assert_allclose(thrice(loaded.f, tf.ones([2]))["y"], np.full(2, np.tanh(1.0) * value), rtol=1e-6)


def test_threads():
    f = tf.function(lambda x: tf.tanh(x) * 2)
    wrong = []

    def work(k):
        with tf.device("/xpu:0"):
            for i in range(200):
                n = (i + k) % 4 + 1
                y = f(tf.fill([n], float(k))).numpy()
                if y.shape != (n,) or not np.allclose(y, np.tanh(k) * 2):
                    wrong.append((k, n, y))

    in_threads(work)
    assert not wrong


@pytest.mark.of_hooks("calls", "functions")
def test_kinds_are_limited():
    f = tf.function(lambda x: tf.tanh(x) * 2, input_signature=[tf.TensorSpec([None])])
    for _ in range(2):
        for n in range(1, 100):
            assert f(tf.ones([n])).shape == [n]
    assert kinds(f) == (64, 0)


def test_optionals():
    make = tf.experimental.Optional.from_value
    pair = {"b": tf.constant([1.0, 2.0]), "a": (tf.constant(3), tf.constant("text"))}
    optional = make(pair)
    for _ in range(3):
        assert bool(optional.has_value()) and bool(optional.has_value(name="there"))
        for value in (optional.get_value(), optional.get_value(name="value")):
            assert list(value) == ["b", "a"]
            np.testing.assert_array_equal(value["b"], [1.0, 2.0])
            assert value["a"][0].numpy() == 3 and value["a"][1].numpy() == b"text"
    empty = tf.experimental.Optional.empty(optional.element_spec)
    assert not empty.has_value()
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        empty.get_value()

    @tf.function
    def inside(x):
        optional = make((x, tf.exp(x)))
        return optional.has_value(), optional.get_value()

    there, (x, y) = inside(tf.constant(1.0))
    assert bool(there) and x.numpy() == 1
    np.testing.assert_allclose(y, np.e, rtol=1e-6)
    ragged = make(tf.ragged.constant([[1], [2, 3]]))
    np.testing.assert_array_equal(ragged.get_value().values, [1, 2, 3])
    nested = make(make(tf.constant(4)))
    assert nested.get_value().get_value().numpy() == 4


def test_what_keras_returns_is_what_it_was():
    """With and without the hooks, two trainings give the same numbers."""
    code = """
import numpy as np
import keras

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input([8]), keras.layers.Dense(16, "tanh"), keras.layers.Dense(4)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
x, y = np.random.default_rng(0).random((60, 8), np.float32), np.arange(60) % 4
history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_data=(x[:20], y[:20])).history
print({name: [float(v) for v in values] for name, values in history.items()})
print(model.predict(x[:3], verbose=0).tolist())
print(model.train_function is not None)
"""
    found = [run_code(code, environment={"TF_XPU_DIRECT_CALLS": value}).stdout for value in ("1", "0")]
    assert found[0] == found[1] and "val_accuracy" in found[0]
