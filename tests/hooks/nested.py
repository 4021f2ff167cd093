"""Uses of TensorFlow and Keras within each other, and from several threads: what they compute does not depend on hooks.

`python -m tests.hooks.nested` prints as JSON the numbers of an XPU and of the CPU, and the hooks' states. Arguments
name steps. With the argument `unknown` no source of TensorFlow's and Keras's is known, so that the self-checks run
within all that.
"""

import json
import sys
import threading

import numpy as np

from tests.hooks.program import X, Y, numbers


def model(keras, units=4):
    """A small model that always has the same weights, whichever thread makes it."""

    def weights(shape, dtype=None):
        return np.linspace(-1, 1, np.prod(shape), dtype=np.float32).reshape(shape)

    layers = [keras.layers.Dense(n, how, kernel_initializer=weights) for n, how in ((units, "tanh"), (1, None))]
    made = keras.Sequential([keras.Input([6]), *layers])
    made.compile(keras.optimizers.SGD(0.05), "mse")
    return made


def trained(keras, units=4, **options):
    its = model(keras, units)
    losses = its.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0, **options).history["loss"]
    return [losses, its.evaluate(X, Y, batch_size=20, verbose=0), its.predict(X[:5], batch_size=2, verbose=0)]


def in_a_callback(tf, keras):
    """Another model is fitted, and the same one predicts, while a model is fitted."""
    seen = []

    class Callback(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(trained(keras, 3))
            seen.append(self.model.predict(X[:3], batch_size=2, verbose=0))

        def on_train_batch_end(self, batch, logs=None):
            seen.append(logs["loss"])

    return [trained(keras, callbacks=[Callback()]), seen]


def in_a_map(tf, keras):
    """A model predicts in Python that a data set calls, on its threads, while another one is fitted with it."""
    inner = model(keras, 3)

    def predict(x):
        return inner.predict(x.numpy(), batch_size=2, verbose=0).astype(np.float32)

    def both(x, y):
        z = tf.py_function(predict, [x], tf.float32)
        return tf.concat([x[:, :5], tf.ensure_shape(z, [None, 1])], 1), y

    dataset = tf.data.Dataset.from_tensor_slices((X, Y.astype(np.float32))).batch(16).map(both, num_parallel_calls=2)
    outer = model(keras)
    return [outer.fit(dataset, epochs=2, verbose=0).history["loss"], [element[0] for element in dataset]]


def in_a_generator(tf, keras):
    """A function is called, and a data set is read, while a data set's next element is made."""
    double = tf.function(lambda x: x * 2)

    def elements():
        for row in tf.data.Dataset.from_tensor_slices(X[:6]).batch(2):
            yield double(row).numpy()

    spec = tf.TensorSpec([None, 6], tf.float32)
    return [tf.reduce_sum(element, 0) for element in tf.data.Dataset.from_generator(elements, output_signature=spec)]


def in_a_function(tf, keras):
    """A model is made while a function is being traced, and another one predicts then."""
    made, seen = [], []
    other = model(keras, 3)

    @tf.function
    def f(x):
        if not made:
            made.append(model(keras))
            with tf.init_scope():
                seen.append(other.predict(X[:3], batch_size=2, verbose=0))
        return made[0](x) * 2

    return [[f(tf.constant(X[:n])) for n in (4, 4, 4, 2, 2, 2)], seen]


def in_a_tape(tf, keras):
    """All of it while a tape records."""
    x, its = tf.constant(X[:4]), model(keras)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = its(x)
        seen = [its.predict(X[:3], batch_size=2, verbose=0), trained(keras, 3)]
        z = tf.reduce_sum(its(x) * y)
    return [seen, tape.gradient(z, x)]


def by_threads(tf, keras, count=8):
    """Each trains a model of its own and shares a function with the others; all begin at once."""
    device = tf.constant(0.0).device
    shared, start, found = tf.function(lambda x, scale: tf.tanh(x) * scale), threading.Barrier(count), {}

    def work(i):
        try:
            start.wait()
            with tf.device(device):
                own = [shared(tf.constant(X[: 2 + i % 3]), tf.constant(float(i))) for _ in range(4)]
                found[i] = numbers([own, trained(keras, 2 + i % 3)])
        except Exception as error:
            found[i] = repr(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    wrong = [text for text in found.values() if isinstance(text, str)]
    if wrong:
        raise RuntimeError(wrong[0])
    return [found[i] for i in range(count)]


def an_error_within(tf, keras):
    """An error in a callback and one in a data set's Python end what they are in, and nothing else."""
    said = []

    class Callback(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyError("mine")

    try:
        trained(keras, callbacks=[Callback()])
    except KeyError as error:
        said.append(str(error) == "'mine'")
    dataset = tf.data.Dataset.range(3).map(lambda i: tf.py_function(lambda i: 1 // (i.numpy() - 1), [i], tf.int64))
    iterator = iter(dataset)
    try:
        for _ in range(3):
            next(iterator)
    except tf.errors.InvalidArgumentError as error:
        said.append("ZeroDivisionError" in str(error))
    return [[float(right) for right in said], trained(keras)]


def taken_out_and_put_back(tf, keras):
    """The hooks are uninstalled and installed while nothing runs, with models, functions and iterators of before."""
    from tensorflow_xpu import hooks

    its, f = model(keras), tf.function(lambda x: tf.tanh(x) * 2)
    iterator = iter(tf.data.Dataset.from_tensor_slices(X[:8]).batch(2))
    found = []
    for step in (hooks.uninstall, hooks.install, lambda: None):
        found += [f(tf.constant(X[:2])) for _ in range(3)]
        found += [its.predict(X[:5], batch_size=2, verbose=0), next(iterator)]
        found += its.fit(X, Y, batch_size=16, shuffle=False, verbose=0).history["loss"]
        step()
    return found


STEPS = (
    in_a_callback,
    in_a_map,
    in_a_generator,
    in_a_function,
    in_a_tape,
    by_threads,
    an_error_within,
    taken_out_and_put_back,
)


def run(device, names):
    import keras
    import tensorflow as tf

    results = {}
    for step in [step for step in STEPS if not names or step.__name__ in names]:
        try:
            with tf.device(device):
                results[step.__name__] = numbers(step(tf, keras))
        except Exception as error:
            results[step.__name__] = f"{type(error).__name__}: {error}"[:300]
    return results


if __name__ == "__main__":
    names = sys.argv[1:]
    if "unknown" in names:
        names.remove("unknown")
        import tensorflow_xpu.hooks.known

        for path in tensorflow_xpu.hooks.known.DIGESTS:
            tensorflow_xpu.hooks.known.DIGESTS[path] = {}
    found = {device: run(device, names) for device in ("/xpu:0", "/cpu:0")}
    import tensorflow_xpu

    states = {hook.name: hook.state for hook in tensorflow_xpu.hooks.HOOKS}
    print(json.dumps({"xpu": found["/xpu:0"], "cpu": found["/cpu:0"], "states": states}))
