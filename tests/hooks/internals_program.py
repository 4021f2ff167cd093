"""Short steps that use what the core's hooks are for, as users write them: what they compute does not depend on hooks.

`python -m tests.hooks.internals_program /xpu:0` runs them, and those of tests/hooks/program.py, and prints JSON.
"""

import json
import os
import sys

import numpy as np

from tests.hooks import program

X = program.X


def loop(tf):
    """A loop with a gradient, which keeps values in lists that are used twice."""
    w = tf.Variable(0.5)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            y = x
            for _ in tf.range(5):
                y = tf.tanh(y * w) + y
            loss = tf.reduce_sum(y) + tf.reduce_mean(y * y)
        return loss, tape.gradient(loss, w)

    return [f(tf.constant(X)) for _ in range(3)]


def lists(tf):
    """Lists that are added up and filled with zeros."""

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
            for i in tf.range(3):
                array = array.write(i, x * tf.cast(i + 1, tf.float32))
            loss = tf.reduce_sum(array.stack() ** 2) + tf.reduce_sum(array.read(1))
        return tape.gradient(loss, x)

    return [f(tf.constant(X[:4])) for _ in range(2)]


def arrays_of_tensorflow_1(tf):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.disable_control_flow_v2()
        try:
            array = tf.TensorArray(tf.float32, 3)
            x = tf.constant(X[:2])
            _, array = tf.compat.v1.while_loop(
                lambda i, _: i < 3,
                lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))),
                (tf.constant(0), array),
            )
            return session.run(array.stack())
        finally:
            tf.compat.v1.enable_control_flow_v2()


def compiled(tf):
    """A function for XLA here, and one on the CPU, with an assertion: a branch with texts."""

    @tf.function(jit_compile=True)
    def f(x):
        tf.debugging.assert_less(x, 100.0, "too much")
        return tf.reduce_sum(tf.tanh(x) * 2 + 1)

    here = f(tf.constant(X))
    with tf.device("/cpu:0"):
        return [here, f(tf.constant(X))]


def matmul(tf):
    tf.config.experimental.enable_tensor_float_32_execution(True)
    return tf.matmul(tf.constant(X), tf.constant(X), transpose_b=True)


def forked(tf):
    """A forked child's numbers, or an error if it may not have them."""
    x = tf.constant(X)
    float(tf.reduce_sum(x))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = json.dumps([float(tf.reduce_sum(x + 1))])
        except tf.errors.FailedPreconditionError as error:
            text = json.dumps("refused" if "spawn" in str(error) else str(error))
        except BaseException as error:
            text = json.dumps(repr(error))
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        said = json.loads(pipe.read() or '"nothing"')
    os.waitpid(child, 0)
    if isinstance(said, str):
        raise RuntimeError(said)
    return said


def exchanged(tf):
    x = np.arange(64, dtype=np.float32)
    import tensorflow_xpu

    from_dlpack = tensorflow_xpu.dlpack.from_dlpack
    half = from_dlpack(tf.cast(tf.constant(X) * 2, tf.bfloat16).__dlpack__(max_version=(1, 3), copy=False), copy=False)
    return [np.from_dlpack(tf.constant(X) * 2), from_dlpack(x)[3:5], tf.cast(half, tf.float32)]


STEPS = (loop, lists, arrays_of_tensorflow_1, compiled, matmul, exchanged, *program.STEPS, forked)


def run(device, names=()):
    import tensorflow as tf

    results = {}
    for step in STEPS:
        if names and step.__name__ not in names:
            continue
        try:
            with tf.device(device):
                results[step.__name__] = program.numbers(step(tf))
        except Exception as error:
            results[step.__name__] = f"{type(error).__name__}: {error}"[:300]
    return results


if __name__ == "__main__":
    found = {device: run(device, sys.argv[2:]) for device in sys.argv[1].split(",")}
    import tensorflow_xpu._core

    states = {row["name"]: row["state"] for row in tensorflow_xpu._core.internals()}
    in_python = {hook.name: hook.state for hook in tensorflow_xpu.hooks.HOOKS}
    results = found[sys.argv[1].rpartition(",")[2]]
    print(json.dumps({"results": results, "others": found, "states": states, "in_python": in_python}))
