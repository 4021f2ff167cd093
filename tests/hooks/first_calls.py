"""The first call of each hook of a process, where programs seldom make it: what it computes does not depend on hooks.

`python -m tests.hooks.first_calls PLACE` prints as JSON what each step gave there, on the first device. `threads` is
eight threads at once, `trace` a function that is being traced, `child` a forked process. `exit` is when the interpreter
begins to end, `teardown` when it takes modules apart. With the argument `unknown` no source is known, so that
self-checks are there, too.
"""

import atexit
import json
import os
import sys
import threading

import numpy as np

from tests.hooks.nested import model, trained
from tests.hooks.program import X, numbers

if "unknown" in sys.argv:
    import tensorflow_xpu.hooks.known as known

    known.DIGESTS.update({path: {} for path in known.DIGESTS})

import keras
import tensorflow as tf


def read():
    x = tf.constant(X) * 2
    return [x.numpy(), float(x[1, 2])]


def call():
    v = tf.Variable(0.5)

    @tf.function(autograph=False)
    def f(x, more):
        v.assign_add(1.0)
        return {"y": tf.tanh(x) * v, "n": [more["n"], x[:1]]}

    return [tf.nest.flatten(f(tf.constant(X[:n]), {"n": tf.constant(float(n))})) for n in (3, 3, 3, 2, 3)]


def iterate():
    dataset = tf.data.Dataset.from_tensor_slices({"x": X[:6], "y": np.arange(6)}).batch(4)
    optional = iter(dataset).get_next_as_optional()
    return [[tf.nest.flatten(element) for element in dataset], optional.get_value()["y"]]


def predict():
    return model(keras).predict(X[:5], batch_size=2, verbose=0)


def train():
    """In a trace it is an error of Keras's."""
    return trained(keras)


def fail():
    f = tf.function(lambda x, i: tf.gather(tf.tanh(x), i))
    try:
        f(tf.constant(X), tf.constant(77))
    except tf.errors.InvalidArgumentError as error:
        return [float("is not in [0, 48)" in str(error))]
    return [-1.0]


STEPS = (read, call, iterate, predict, train, fail)


def outcome_of(step):
    """Its numbers, or what it raised."""
    try:
        with tf.device(DEVICE):
            return numbers(step())
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


def everything():
    return {step.__name__: outcome_of(step) for step in STEPS}


def threads():
    """Eight threads make each first call at once; what they all gave."""
    start, found = threading.Barrier(8), {}

    def work(i):
        found[i] = {}
        for step in STEPS:
            start.wait()
            found[i][step.__name__] = outcome_of(step)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    different = [step.__name__ for step in STEPS if len({str(each[step.__name__]) for each in found.values()}) != 1]
    return {**found[0], **{name: [str(each[name])[:100] for each in found.values()] for name in different}}


def trace():
    """Within a trace the calls are made in graphs, besides those of `init_scope`."""
    seen = {}

    @tf.function(autograph=False)
    def traced(x):
        inner = tf.function(lambda y: {"y": tf.tanh(y) * 2}, autograph=False)
        dataset = tf.data.Dataset.from_tensor_slices(X[:4]).batch(2)
        total = dataset.reduce(tf.constant(0.0), lambda total, batch: total + tf.reduce_sum(batch))
        if not seen:
            with tf.init_scope():
                seen.update(everything())
        return [inner(x)["y"], total]

    with tf.device(DEVICE):
        graphs = numbers([traced(tf.constant(X[:n])) for n in (2, 2, 2, 3)])
    return {**seen, "graphs": graphs}


def child():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(everything()).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        return json.loads(pipe.read() or '"it died"')


def say(results):
    print(json.dumps(results), flush=True)


class AtTheEnd:
    """Uses what it has when the interpreter takes modules apart; its results, or that there are none."""

    def __init__(self):
        self.x, self.f = tf.constant([1.0, 2.0]), tf.function(lambda x: x * 2, autograph=False)
        self.iterator = iter(tf.data.Dataset.range(2))
        self.write = os.write

    def __del__(self):
        said = []
        for use in (lambda: self.f(self.x), lambda: self.x, lambda: next(self.iterator)):
            try:
                said.append(use().numpy().tolist())
            except BaseException:  # TensorFlow's modules may be gone
                said.append(None)
        self.write(1, (str(said).replace("None", "null") + "\n").encode())


if __name__ == "__main__":
    DEVICE = "/cpu:0" if os.environ.get("TF_XPU_DISABLE") else "/xpu:0"
    place = sys.argv[1]
    if place == "exit":
        atexit.register(lambda: say(everything()))
    elif place == "teardown":
        with tf.device(DEVICE):
            kept = AtTheEnd()  # it goes with this module
    else:
        say({"threads": threads, "trace": trace, "child": child}[place]())
