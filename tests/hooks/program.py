"""A program of twelve steps, as its users write it: what it computes does not depend on hooks."""

import pathlib
import tempfile
import threading

import numpy as np

X = np.random.default_rng(0).standard_normal((48, 6)).astype(np.float32)
Y = np.arange(48) % 3


def eager_ops(tf):
    x = tf.constant(X)
    return [tf.reduce_sum(tf.tanh(x) * 2 + 1), tf.reshape(x, [6, 48])[:2, 3], float(x[0, 0]) if x[0, 0] < 9 else 0]


def function(tf):
    v = tf.Variable(1.0)

    @tf.function
    def f(x, scale):
        v.assign_add(scale)
        return {"y": tf.tanh(x) * v, "z": [x + scale, (v * 2,)]}

    return [tf.nest.flatten(f(tf.constant(X[i]), tf.constant(0.5))) for i in range(4)]


def model(keras):
    keras.utils.set_random_seed(1)
    layers = [keras.Input([6]), keras.layers.Dense(8, "tanh"), keras.layers.Dense(3)]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
    return model


class Trained:
    """The model of the next steps."""

    model = None


def fit(tf):
    import keras

    Trained.model = model(keras)
    history = Trained.model.fit(X, Y, batch_size=16, epochs=2, verbose=0, validation_data=(X[:9], Y[:9])).history
    return [history[name] for name in sorted(history)]


def evaluate(tf):
    return Trained.model.evaluate(X, Y, batch_size=20, verbose=0)


def predict(tf):
    return [Trained.model.predict(X[:7], batch_size=3, verbose=0), Trained.model.predict_on_batch(X[:2])]


def save_and_load(tf):
    import keras

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        Trained.model.save(path)
        return keras.models.load_model(path)(X[:3])


def custom_loop(tf):
    w = tf.Variable(tf.ones([6, 1]) * 0.1)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(x, w) - 1.0) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [step(x) for x in tf.data.Dataset.from_tensor_slices(X).batch(16)]
    with tf.GradientTape() as tape:  # around a function that was called before
        tape.watch(w)
        doubled = step(tf.constant(X[:16])) * 2
    return [losses, doubled, w]


def generator(tf):
    spec = (tf.TensorSpec([6], tf.float32), tf.TensorSpec([], tf.int64))
    dataset = tf.data.Dataset.from_generator(lambda: zip(X, Y), output_signature=spec).batch(10)
    found = [(tf.reduce_sum(x), y) for x, y in dataset]
    optional = iter(dataset).get_next_as_optional()
    return [found, optional.get_value()[0] if optional.has_value() else None]


def threads(tf):
    found = {}

    def work(i):
        f = tf.function(lambda x: tf.tanh(x) * float(i))
        x = tf.constant(X[i])
        found[i] = [f(x).numpy(), f(x).numpy(), (x + x).numpy()]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [found[i] for i in range(4)]


def dlpack(tf):
    return [np.from_dlpack(tf.constant(X) + 1), tf.experimental.dlpack.from_dlpack(X.__dlpack__())]


def session(tf):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(tf.reduce_sum(tf.constant(X) * 2, axis=0))


def error(tf):
    f = tf.function(lambda x, i: tf.gather(tf.tanh(x), i))
    said = []
    for index in (1, 2, 77, 78):
        try:
            f(tf.constant(X), tf.constant(index))
        except tf.errors.InvalidArgumentError as error:
            said.append(float("is not in [0, 48)" in str(error)))
    return said


STEPS = (
    eager_ops,
    function,
    fit,
    evaluate,
    predict,
    save_and_load,
    custom_loop,
    generator,
    threads,
    dlpack,
    session,
    error,
)


def numbers(value):
    """All numbers in a step's result, in a row."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers(item)]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return [float(number) for number in np.asarray(value, np.float64).ravel()]


def run(device):
    """By step: its numbers, or what it raised."""
    import tensorflow as tf

    results = {}
    for step in STEPS:
        try:
            with tf.device(device):
                results[step.__name__] = numbers(step(tf))
        except Exception as error:
            results[step.__name__] = f"{type(error).__name__}: {error}"[:300]
    return results
