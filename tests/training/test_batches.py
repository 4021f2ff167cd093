"""Batches that Keras gets of arrays: predict without a data set of TensorFlow's, fit from one that nothing tunes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from tensorflow.python.data.ops.iterator_ops import OwnedIterator

from tests.support.processes import in_threads

pytestmark = pytest.mark.of_hooks("batches")


def ordinary(self):
    """The data set that Keras makes by itself."""
    return ArrayDataAdapter.get_tf_dataset.__wrapped__(self)


X = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float32)


def refusing():
    """A tensor that TensorFlow can read, and its user does not want to be read."""
    tensor = tf.constant(X)
    tensor.numpy = lambda: pytest.fail("read by the user's own numpy()")
    return tensor


INPUTS = {
    "floats": X,
    "floats that Keras casts": X.astype(np.float64),
    "integers": np.arange(20, dtype=np.int64)[:, None],
    "flags": X > 0,
    "complex numbers": X.astype(np.complex64),
    "vectors": X[:, 0],
    "not contiguous": np.asfortranarray(X)[::-1, ::2],
    "not aligned": np.frombuffer(b"0" + X.tobytes(), np.float32, offset=1).reshape(20, 6),
    "read only": np.broadcast_to(X[:1], X.shape),
    "no columns": np.zeros([20, 0], np.float32),
    "list": [X, X[:, :2].astype(np.int32)],
    "dict": {"b": X, "a": X[:, 0], "c": (X + 1, [X + 2])},
    "tensor": lambda: tf.constant(X),
    "tensor and array": lambda: (tf.constant(X), X),
    "tensor with another numpy()": refusing,
}

UNLIKE = {
    "strings": np.array(["a", "b"] * 10),
    "objects that are strings": np.array(["a", "b"] * 10, dtype=object),
    "sparse": lambda: tf.sparse.from_dense(X),
    "other bytes": X.astype(">f4"),
    "none inside": {"a": X, "b": None},
    "bfloat16": X.astype(tf.bfloat16.as_numpy_dtype),
}


def adapter(x, size=8, shuffle=False):
    return ArrayDataAdapter(x, batch_size=size, shuffle=shuffle)


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    assert isinstance(value, tf.Tensor), value
    return value.dtype, value.shape, value.device, value.numpy().tobytes()


def elements(dataset):
    return [plain(element) for element in dataset]


def is_stand_in(value):
    return "_xpu_make" in vars(value)


@pytest.mark.parametrize("size", [1, 8, 20, 64])
@pytest.mark.parametrize("kind", INPUTS)
def test_batches_are_those_of_a_data_set(kind, size, xpu_device):
    with tf.device(xpu_device):
        x = INPUTS[kind]() if callable(INPUTS[kind]) else INPUTS[kind]
        dataset = adapter(x, size).get_tf_dataset()
        got = elements(dataset)
        assert is_stand_in(dataset)
        assert got == elements(ordinary(adapter(x, size)))
        assert got == elements(dataset), "each iterator begins at the beginning"
        assert got == elements(dataset.map(lambda *e: e if isinstance(dataset.element_spec, tuple) else e[0])), (
            "as a data set it has the same"
        )
        assert not is_stand_in(dataset)


@pytest.mark.parametrize("kind", UNLIKE)
def test_other_data_are_a_data_set(kind, xpu_device):
    with tf.device(xpu_device):
        x = UNLIKE[kind]() if callable(UNLIKE[kind]) else UNLIKE[kind]
        try:
            want = ordinary(adapter(x))
        except (ValueError, TypeError, AttributeError) as error:  # older ones refuse None
            with pytest.raises(type(error)):
                adapter(x).get_tf_dataset()
            return
        assert adapter(x).get_tf_dataset().element_spec == want.element_spec
        assert not is_stand_in(adapter(x).get_tf_dataset())


def test_what_has_targets_is_a_data_set(xpu_device):
    assert not is_stand_in(ArrayDataAdapter(X, X).get_tf_dataset())
    assert is_stand_in(ArrayDataAdapter((X, X)).get_tf_dataset())


def test_what_is_shuffled_is_a_data_set(xpu_device):
    for shuffle in (True, "batch"):
        assert not is_stand_in(adapter(X, shuffle=shuffle).get_tf_dataset())
    epochs = []
    for make in (ArrayDataAdapter.get_tf_dataset, ordinary):
        tf.random.set_seed(1)
        dataset = make(adapter(X, shuffle=True))
        epochs.append([elements(dataset) for _ in range(3)])
    assert epochs[0] == epochs[1]


def test_nothing_tunes_what_fit_gets(xpu_device):
    """The destructor of an iterator waits for the thread that tunes it to wake up."""
    for shuffle in (True, False):
        dataset = ArrayDataAdapter(X, X, batch_size=4, shuffle=shuffle).get_tf_dataset()
        assert dataset.options().autotune.enabled is False
    assert adapter(X).get_tf_dataset().options().autotune.enabled is False
    assert ordinary(adapter(X)).options().autotune.enabled is None


def test_iterators_that_nobody_uses_are_not_made(xpu_device, monkeypatch):
    """Keras makes two for each epoch, of which it uses one."""
    made = []
    create = OwnedIterator._create_iterator
    monkeypatch.setattr(OwnedIterator, "_create_iterator", lambda *args: made.append(1) or create(*args))
    with tf.device(xpu_device):
        model = model_of()
        model.fit(X, X[:, :2], 7, epochs=3, validation_data=(X[:9], X[:9, :2]), verbose=0)
        assert len(made) == 3 + 3
        dataset = ArrayDataAdapter(X, X, batch_size=8).get_tf_dataset()
        iterator = iter(dataset)
        assert len(made) == 6 and isinstance(iterator, tf.data.Iterator)
        assert [plain(element) for element in iterator] == elements(ordinary(ArrayDataAdapter(X, X, batch_size=8)))
        assert len(list(iterator)) == 0 and type(iterator) is OwnedIterator
        assert int(tf.function(lambda: sum(1 for _ in range(2) if next(iter(dataset)) is not None))()) == 2


# Calls that make an ordinary iterator of ours: each takes the next element.
TAKERS = {
    "function of it": tf.function(lambda iterator: next(iterator)),
    "optional": lambda iterator: iterator.get_next_as_optional().get_value(),
    "function around it": lambda iterator: tf.function(lambda: iterator.get_next())(),
    "resource": lambda iterator: iterator._iterator_resource is None or next(iterator),
    "specification": lambda iterator: iterator.element_spec is None or next(iterator),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_an_iterator_goes_on_where_it_was(taker, xpu_device):
    want = elements(ordinary(adapter(X, 3)))
    with tf.device(xpu_device):
        for before in (0, 1, 5):
            iterator = iter(adapter(X, 3).get_tf_dataset())
            assert isinstance(iterator, tf.data.Iterator) and is_stand_in(iterator)
            got = [plain(next(iterator)) for _ in range(before)]
            assert is_stand_in(iterator)
            taken = TAKERS[taker](iterator)
            got.append((want[0][0], taken.shape, want[0][2], taken.numpy().tobytes()))
            assert type(iterator) is OwnedIterator
            assert got + [plain(element) for element in iterator] == want


def test_the_end(xpu_device):
    iterator = iter(adapter(X).get_tf_dataset())
    assert len(list(iterator)) == 3
    with pytest.raises(StopIteration):
        next(iterator)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    assert is_stand_in(iterator)
    assert not iterator.get_next_as_optional().has_value()


def test_a_data_set_in_all_else(xpu_device):
    def dataset():
        made = adapter(X).get_tf_dataset()
        assert isinstance(made, tf.data.Dataset) and is_stand_in(made)
        return made

    want = ordinary(adapter(X))
    assert dataset().element_spec == want.element_spec
    with pytest.raises(TypeError, match="length is unknown"):
        len(dataset())
    assert dataset().cardinality() == want.cardinality()
    policies = [made.options().experimental_distribute.auto_shard_policy for made in (dataset(), want)]
    assert policies == [tf.data.experimental.AutoShardPolicy.DATA] * 2
    assert elements(dataset().unbatch().batch(5)) == elements(want.unbatch().batch(5))
    assert elements(tf.data.Dataset.zip(dataset(), dataset())) == elements(tf.data.Dataset.zip(want, want))
    in_graph = dataset()
    total = tf.function(lambda: in_graph.reduce(0.0, lambda sum, x: sum + tf.reduce_sum(x)))
    np.testing.assert_allclose(total(), X.sum(), rtol=1e-5)
    looped = dataset()

    @tf.function
    def loop():
        sum = 0.0
        for x in looped:
            sum += tf.reduce_sum(x)
        return sum

    np.testing.assert_allclose(loop(), X.sum(), rtol=1e-5)
    assert elements(looped) == elements(want)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = dataset().nothing_of_the_kind


def test_each_batch_is_taken_once(xpu_device):
    iterator = iter(adapter(np.arange(4000), 1).get_tf_dataset())
    taken = []
    in_threads(lambda _: taken.extend(int(x[0]) for x in iterator))
    assert sorted(taken) == list(range(4000))


@pytest.fixture
def no_data_sets(monkeypatch):
    def fail(*arguments, **named):
        raise AssertionError("a data set was made")

    monkeypatch.setattr(OwnedIterator, "_create_iterator", fail)


def model_of(shape=(6,)):
    model = keras.Sequential([keras.Input(shape), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_predict_makes_no_data_set(steps, xpu_device, no_data_sets):
    keras.utils.set_random_seed(1)
    with tf.device(xpu_device):
        model = model_of()
        model.compile("sgd", "mse", steps_per_execution=steps)
        want = np.tanh(X @ model.layers[0].kernel.numpy()) @ model.layers[1].kernel.numpy()
        for _ in range(2):
            np.testing.assert_allclose(model.predict(X, batch_size=7, verbose=0), want, rtol=1e-5, atol=1e-6)
        some = model.predict(X, batch_size=7, steps=2, verbose=0)
        np.testing.assert_allclose(some, want[: 7 * 2 if steps < 5 else 20], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.predict(X[:1], verbose=0), want[:1], rtol=1e-5, atol=1e-6)


def test_fit_and_evaluate_are_as_ever(xpu_device, monkeypatch):
    def losses(shuffle):
        keras.utils.set_random_seed(1)
        with tf.device(xpu_device):
            model = model_of()
            y = X[:, :2] * 2
            history = model.fit(X, y, 7, epochs=3, shuffle=shuffle, verbose=0, validation_data=(X[:9], y[:9]))
            # A loss of the model's own needs no targets.
            own = keras.Sequential([keras.Input([6]), keras.layers.Dense(2, activity_regularizer="l2")])
            own.compile("sgd")
            alone = own.fit(X, batch_size=7, epochs=3, shuffle=False, verbose=0).history["loss"]
            return [*history.history.values(), model.evaluate(X, y, batch_size=7, verbose=0), alone]

    orders = [False, True, "batch"]
    got = [losses(shuffle) for shuffle in orders]
    monkeypatch.setattr(ArrayDataAdapter, "get_tf_dataset", ArrayDataAdapter.get_tf_dataset.__wrapped__)
    assert got == [losses(shuffle) for shuffle in orders]


def test_what_a_model_returns_is_nothing_of_what_it_was_given(xpu_device):
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            inputs = keras.Input([6])
            model = keras.Model(inputs, [inputs, keras.ops.reshape(inputs, [-1, 3, 2])])
            x = np.zeros([64, 6], np.float32)
            for got in model.predict(x, batch_size=64, verbose=0):
                got += 1
            assert not x.any()


@pytest.mark.parametrize("strategy", ["OneDeviceStrategy", "MirroredStrategy"])
def test_with_a_strategy(strategy, xpu_device):
    made = getattr(tf.distribute, strategy)(xpu_device if strategy == "OneDeviceStrategy" else [xpu_device])
    with made.scope():
        model = model_of()
    want = np.tanh(X @ model.layers[0].kernel.numpy()) @ model.layers[1].kernel.numpy()
    np.testing.assert_allclose(model.predict(X, batch_size=7, verbose=0), want, rtol=1e-5, atol=1e-6)
