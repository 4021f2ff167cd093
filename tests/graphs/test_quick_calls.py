"""Calls with arrays, by name, and of SavedModels: what Python's short way gives is what TensorFlow gives."""

import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_xpu.hooks.runtime import interop_module
from tests.support.processes import in_threads

CALL = type(tf.function(abs)).__call__.__wrapped__
TYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["bool", "complex64", "complex128"]


def quick(function):
    """How many calls of it went the short way."""
    return interop_module().kinds(function)[2]


def goes_quickly(function, *args, **named):
    """The result of the last of some calls, which goes the short way."""
    for _ in range(2):
        function(*args, **named)
    before = quick(function)
    result = function(*args, **named)
    assert quick(function) == before + 1
    return result


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    keras = tf.keras
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Input([6]), keras.layers.Dense(8, "relu"), keras.layers.Dense(3)]
    model = keras.Sequential(layers)
    path = str(tmp_path_factory.mktemp("saved") / "model")
    model.export(path, verbose=False)
    return model, path


def expected(model, x):
    hidden, last = model.layers
    w, b = (np.float64(v) for v in hidden.get_weights())
    v, c = (np.float64(v) for v in last.get_weights())
    return np.maximum(np.float64(x) @ w + b, 0) @ v + c


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("scope", [None, "/xpu:0", "/cpu:0"])
def test_arrays_of_each_type(name, scope):
    f = tf.function(lambda x: (tf.concat([x, x], 0), tf.shape(x)))
    g = tf.function(lambda x: tf.concat([x, x], 0))
    rng = np.random.default_rng(0)
    with tf.device(scope):
        for shape in ((3, 2), (), (2, 0), (1, 3, 1)):
            x = np.array(rng.integers(0, 2, shape) if name == "bool" else rng.standard_normal(shape) * 50).astype(name)
            twice, extents = goes(f, x if shape else x.reshape(1))
            assert twice.dtype == name and twice.device == CALL(f, x if shape else x.reshape(1))[0].device
            np.testing.assert_array_equal(twice, np.concatenate([np.atleast_1d(x)] * 2))
            np.testing.assert_array_equal(extents, np.atleast_1d(x).shape)
            np.testing.assert_array_equal(goes(g, np.atleast_1d(x)), np.concatenate([np.atleast_1d(x)] * 2))


def goes(function, *args):
    for _ in range(3):
        result = function(*args)
    return result


@pytest.mark.of_hooks("calls", "functions")
def test_arrays_are_quick_and_of_the_kind_of_tensors(xpu_device):
    f = tf.function(lambda x, more: tf.tanh(x) * more["by"] + more["plus"][0])
    x, by, plus = np.float32([[0.5, 1.0]]), np.float32([2.0, 3.0]), np.float32(1.0)
    want = np.tanh(x) * by + 1
    np.testing.assert_allclose(goes_quickly(f, x, {"by": by, "plus": [np.array(plus)]}), want, rtol=1e-6)
    before = quick(f)
    with tf.device(xpu_device):
        tensors = [tf.constant(value) for value in (x, by, plus)]
    np.testing.assert_allclose(f(tensors[0], {"by": by, "plus": [tensors[2]]}), want, rtol=1e-6)
    np.testing.assert_allclose(f(tensors[0], {"by": tensors[1], "plus": [tensors[2]]}), want, rtol=1e-6)
    assert quick(f) == before + 2 and f.experimental_get_tracing_count() == 1


@pytest.mark.of_hooks("calls", "functions")
def test_an_array_may_change_after_the_call():
    f = tf.function(lambda x: (x, x * 2))
    for size in (4, 1 << 18):
        x = np.ones(size, np.float32)
        for i in range(6):
            x[:] = i
            same, twice = f(x)
            x[:] = -1
            np.testing.assert_array_equal(same, np.full(size, i, np.float32))
            np.testing.assert_array_equal(twice, np.full(size, 2 * i, np.float32))
    assert quick(f) > 0


def test_arrays_that_are_read_where_others_still_are(xpu_device):
    """Work that is under way may still read the memory that an array's tensor gets."""
    heavy = tf.function(lambda x: tf.matmul(x, x))
    f = tf.function(lambda x: x + 1)
    with tf.device(xpu_device):
        big = tf.fill([700, 700], 1e-3)
        for i in range(40):
            found = heavy(big)
            small = [f(np.full(700 * 700, k + i, np.float32)) for k in range(3)]
            for k, y in enumerate(small):
                assert (y.numpy() == k + i + 1).all()
            np.testing.assert_allclose(found, np.full([700, 700], 7e-4), rtol=1e-5)


def test_what_is_no_plain_array_gives_what_tensorflow_gives():
    f = tf.function(lambda x: tf.cast(x, tf.float64) * 2)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for odd in (x[:, ::2], x.T, x.astype(">f4"), x[::-1], np.asfortranarray(x), np.float32(3), np.ma.masked_array(x)):
        for _ in range(3):
            np.testing.assert_array_equal(f(odd), np.float64(odd) * 2)
    text = tf.function(lambda x: tf.strings.length(x))
    for _ in range(3):
        np.testing.assert_array_equal(text(np.array(["a", "bcd"])), [1, 3])


@pytest.mark.of_hooks("calls", "functions")
def test_arguments_by_name_are_told_apart():
    @tf.function
    def f(b, a, c=2.0):
        return b - 2 * a * c

    one, two = tf.constant(1.0), tf.constant(2.0)
    assert float(goes_quickly(f, b=one, a=one)) == -3
    assert float(goes_quickly(f, a=one, b=one)) == -3
    assert float(f(a=one, b=two)) == -2 and float(f(b=one, a=two)) == -7
    assert float(goes_quickly(f, one, a=two)) == -7
    assert float(f(two, a=one)) == -2
    x, y = np.array(3.0, np.float32), np.array(5.0, np.float32)
    assert float(goes_quickly(f, b=x, a=x)) == -9
    assert float(f(b=x, a=y)) == -17 and float(f(a=x, b=y)) == -7
    assert float(goes(f, x, y)) == -17 and float(f(y, x)) == -7


@pytest.mark.of_hooks("calls", "functions")
def test_one_tensor_as_two_arguments():
    f = tf.function(lambda x, y, z: x - 2 * y + 3 * z[0])
    a, b, c = (tf.constant(float(value)) for value in (1, 10, 100))
    assert float(goes_quickly(f, a, a, [a])) == 2
    assert float(f(a, b, [c])) == 281 and float(f(c, a, [b])) == 128


def same_error(call, original):
    errors = []
    for attempt in (call, original, call):
        with pytest.raises(Exception) as caught:
            attempt()
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1] == errors[2]
    return errors[0]


@pytest.mark.of_hooks("calls", "functions")
def test_wrong_arguments_get_tensorflows_errors(network):
    _, path = network
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    f = tf.function(lambda x, y: x + y, input_signature=[tf.TensorSpec([None, 6]), tf.TensorSpec([6])])
    x, y = np.ones([2, 6], np.float32), np.ones(6, np.float32)
    goes_quickly(f, x, y)
    goes_quickly(loaded.serve, x)
    goes_quickly(signature, **{name: x})
    wrong = [
        (f, (x,), {}),
        (f, (x, y, y), {}),
        (f, (x, y), {"z": y}),
        (f, (x,), {"x": y}),
        (f, (x.reshape(3, 4), y), {}),
        (f, (tf.ones([2, 6], tf.float64), y), {}),
        (f, (x, "text"), {}),
        (loaded.serve, (), {}),
        (loaded.serve, (x, x), {}),
        (loaded.serve, (x.reshape(3, 4),), {}),
        (loaded.serve, (tf.ones([2, 6], tf.int32),), {}),
        (signature, (), {}),
        (signature, (x, x), {}),
        (signature, (), {"other": tf.constant(x)}),
        (signature, (), {name: tf.ones([2, 6], tf.float64)}),
        (signature, (), {name: tf.ones([3, 4])}),
        (signature, (), {name: x, "other": x}),
    ]
    for function, args, named in wrong:
        original = type(function).__call__.__wrapped__
        before = quick(function)
        same_error(lambda: function(*args, **named), lambda: original(function, *args, **named))  # noqa: B023
        assert quick(function) == before
    np.testing.assert_array_equal(goes_quickly(f, x, y), np.full([2, 6], 2.0))


@pytest.mark.of_hooks("calls", "functions")
def test_arrays_that_a_signature_converts():
    f = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None])])
    for x in (np.float64([1.5, 2.5]), np.int32([1, 2]), np.float32([1.5, 2.5])):
        y = goes(f, x)
        assert y.dtype == tf.float32
        np.testing.assert_array_equal(y, np.float32(x) * 2)
        assert quick(f) == (2 if x.dtype == np.float32 else 0)


@pytest.mark.of_hooks("calls", "functions")
def test_a_saved_model(network):
    model, path = network
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    (result,) = signature.structured_outputs
    rng = np.random.default_rng(1)
    for rows in (1, 5):
        x = rng.standard_normal([rows, 6]).astype(np.float32)
        want = expected(model, x)
        for value in (x, tf.constant(x)):
            found = goes_quickly(signature, **{name: value})
            assert list(found) == [result]
            np.testing.assert_allclose(found[result], want, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(goes_quickly(loaded.serve, value), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(goes_quickly(signature, tf.constant(x))[result], want, rtol=1e-5, atol=1e-5)


@pytest.mark.of_hooks("calls", "functions")
def test_variables_of_a_saved_model_may_be_assigned(network):
    _, path = network
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    x = np.float32([[1, -2, 3, -4, 5, -6]])
    for _ in range(12):  # as long as it takes for values of weights to be kept
        plain = goes_quickly(loaded.serve, x).numpy()
    shifted = [v for v in loaded.variables if v.shape == [3]]
    assert len(shifted) == 1
    for by in (1.0, 2.0):
        shifted[0].assign_add(tf.fill([3], 1.0))
        np.testing.assert_allclose(goes_quickly(loaded.serve, x), plain + by, rtol=1e-5, atol=1e-5)
        (found,) = goes_quickly(signature, **{name: x}).values()
        np.testing.assert_allclose(found, plain + by, rtol=1e-5, atol=1e-5)


@pytest.mark.of_hooks("calls", "functions")
def test_gradients_and_graphs_are_tensorflows_business(network):
    model, path = network
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    x = np.float32([[1, -2, 3, -4, 5, -6]])
    (plain,) = goes_quickly(signature, **{name: x}).values()
    goes_quickly(loaded.serve, x)
    counts = quick(signature), quick(loaded.serve)
    tensor = tf.constant(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensor)
        outputs = [loaded.serve(tensor), *signature(**{name: tensor}).values()]
    hidden, last = (np.float64(layer.get_weights()[0]) for layer in model.layers)
    active = np.float64(x) @ hidden + model.layers[0].get_weights()[1] > 0
    slope = (hidden * active) @ last.sum(axis=1)
    for output in outputs:
        np.testing.assert_allclose(tape.gradient(output, tensor)[0], slope, rtol=1e-4, atol=1e-5)
    outer = tf.function(lambda x: loaded.serve(x) + next(iter(signature(**{name: x}).values())))
    for _ in range(3):
        np.testing.assert_allclose(outer(tensor), 2 * plain, rtol=1e-5, atol=1e-5)
    assert (quick(signature), quick(loaded.serve)) == counts


@pytest.mark.of_hooks("calls", "functions")
def test_a_profiler_sees_a_signature(network, tmp_path):
    _, path = network
    signature = tf.saved_model.load(path).signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    x = np.ones([1, 6], np.float32)
    (plain,) = goes_quickly(signature, **{name: x}).values()
    before = quick(signature)
    with tf.profiler.experimental.Profile(str(tmp_path)):
        (found,) = signature(**{name: x}).values()
    assert quick(signature) == before
    np.testing.assert_array_equal(found, plain)
    assert list(tmp_path.rglob("*.xplane.pb"))


@pytest.mark.of_hooks("calls", "functions")
def test_threads_with_arrays(network):
    model, path = network
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    rows = np.random.default_rng(2).standard_normal([8, 6]).astype(np.float32)
    want = expected(model, rows)
    wrong = []

    def work(k):
        for i in range(150):
            x = rows[(k + i) % 8 : (k + i) % 8 + 1].copy()
            (a,) = signature(**{name: x}).values()
            for y in (loaded.serve(x), a):
                if not np.allclose(y, want[(k + i) % 8], rtol=1e-4, atol=1e-5):
                    wrong.append((k, i))

    in_threads(work)
    assert not wrong
    assert quick(signature) > 500


@pytest.mark.of_hooks("calls", "functions")
def test_predict_on_batch_is_quick(network):
    model, _ = network
    x = np.random.default_rng(4).standard_normal([3, 6]).astype(np.float32)
    for _ in range(4):
        found = model.predict_on_batch(x)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected(model, x), rtol=1e-5, atol=1e-5)
    assert quick(model.predict_function) >= 1


@pytest.mark.of_hooks("calls", "functions")
def test_copies_of_functions_begin_with_nothing():
    f = tf.function(lambda x: tf.tanh(x) * 2)
    x = np.float32([0.5, 1.0])
    goes_quickly(f, x)
    other = copy.copy(f)
    assert quick(other) == 0
    np.testing.assert_allclose(goes(other, x), np.tanh(x) * 2, rtol=1e-6)
    assert quick(f) == 1
    known = f.__dict__["_xpu_known_calls"]
    assert copy.deepcopy(known) is None and pickle.loads(pickle.dumps(known)) is None


def test_a_context_that_begins_anew_is_noticed():
    f = tf.function(lambda x: x + tf.random.uniform([3]))
    x = np.zeros(3, np.float32)
    draws = []
    for _ in range(2):
        tf.random.set_seed(7)
        draws.append([f(x).numpy() for _ in range(4)])
    np.testing.assert_array_equal(draws[0], draws[1])
