"""The failure of a command reaches Python in many ways. Each has the same class and words, whichever hooks are
left out."""

import functools

import pytest

from tests.hooks import each_off
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# Commands of Softmax fail, and late: the program has long gone on.
FAULT = {"TF_XPU_FAULT": "command=Softmax:fail,command=Softmax:delay=30ms", "TF_XPU_DEVICE_COUNT": "2"}

PROGRAM = """
import json
import os
import re
import tempfile
import time

import numpy as np
import tensorflow as tf
import tensorflow_xpu

x = np.ones((4, 8), np.float32)
v1 = tf.compat.v1

def failing():
    with tf.device("/xpu:0"):
        return tf.nn.softmax(tf.constant(x))

def on_cpu(function):
    with tf.device("/cpu:0"):
        return function(failing())

def on_another(function):
    with tf.device("/xpu:1"):
        return function(failing())

@tf.function
def on_device(a):
    with tf.device("/xpu:0"):
        return tf.nn.softmax(a)

@tf.function
def to_host(a):
    y = on_device(a)
    with tf.device("/cpu:0"):
        return y + 1

@tf.function
def to_host_and_back(a):
    y = to_host(a)
    with tf.device("/xpu:0"):
        return y * 2

@tf.function
def to_another(a):
    y = on_device(a)
    with tf.device("/xpu:1"):
        return y * 2

@tf.function
def printed(a):
    tf.print(on_device(a), output_stream="file://" + os.devnull)
    return a

@tf.function
def in_python(a):
    return tf.py_function(lambda b: b.numpy().sum(), [on_device(a)], tf.float32)

@tf.function
def in_numpy(a):
    return tf.numpy_function(lambda b: b.sum(), [on_device(a)], tf.float32)

@tf.function
def loop(a):
    return tf.while_loop(lambda a: tf.reduce_sum(on_device(a)) < 1, lambda a: [a + 1], [a])

def asynchronous():
    with tf.experimental.async_scope():
        return [failing().numpy() for _ in range(2)]

def session(get):
    with tf.Graph().as_default(), tf.device("/xpu:0"):
        given = v1.placeholder(tf.float32, x.shape)
        y = tf.nn.softmax(given, name="out")
        with v1.Session() as running:
            return get(running, given, y)

def partial_run(running, given, y):
    handle = running.partial_run_setup([y], [given])
    return running.partial_run(handle, y, {given: x})

def fetches_nothing(running, given, y):
    return [running.run(y.op, {given: x}) for _ in range(3)]

def saved():
    variable = tf.Variable(x)
    with tf.device("/xpu:0"):
        variable.assign(failing())
    with tempfile.TemporaryDirectory() as folder:
        return tf.train.Checkpoint(v=variable).save(folder + "/v")

def written():
    with tempfile.TemporaryDirectory() as folder:
        return tf.io.write_file(folder + "/v", tf.io.serialize_tensor(failing()))

def the_next_op():
    y = failing()
    time.sleep(0.2)
    return tf.tanh(y)

def synchronised():
    failing()
    tf.test.experimental.sync_devices()

WAYS = {
    "numpy": lambda: failing().numpy(),
    "asarray": lambda: np.asarray(failing()),
    "array of a type": lambda: np.array(failing(), np.float64),
    "a function of NumPy's": lambda: np.concatenate([failing(), x]),
    "float": lambda: float(failing()[0, 0]),
    "bool": lambda: bool(tf.reduce_sum(failing()) > 0),
    "repr": lambda: repr(failing()),
    "tolist": lambda: failing().numpy().tolist(),
    "memoryview": lambda: memoryview(failing()),
    "an export": lambda: failing().__dlpack__(),
    "cpu": lambda: failing().cpu(),
    "identity on the CPU": lambda: on_cpu(tf.identity),
    "an op on the CPU": lambda: on_cpu(lambda y: y + 1),
    "identity on another XPU": lambda: on_another(tf.identity).numpy(),
    "an op on another XPU": lambda: on_another(tf.tanh).numpy(),
    "a function to another XPU": lambda: to_another(x).numpy(),
    "the next op": the_next_op,
    "sync_devices": synchronised,
    "async_scope": asynchronous,
    "a function": lambda: on_device(x).numpy(),
    "a function to the host": lambda: to_host(x),
    "a function to the host and back": lambda: to_host_and_back(x).numpy(),
    "a loop's decision": lambda: loop(tf.constant(x)),
    "tf.print": lambda: printed(x),
    "py_function": lambda: in_python(x),
    "numpy_function": lambda: in_numpy(x),
    "a session's run": lambda: session(lambda running, given, y: running.run(y, {given: x})),
    "a session's callable": lambda: session(lambda running, given, y: running.make_callable(y, [given])(x)),
    "a session's run of an op": lambda: session(fetches_nothing),
    "a session's partial run": lambda: session(partial_run),
    "eval": lambda: session(lambda running, given, y: y.eval({given: x})),
    "a data set": lambda: list(tf.data.Dataset.from_tensor_slices(failing())),
    "a checkpoint": saved,
    "a file": written,
}
"""

KERAS = """
import keras

def model():
    keras.utils.set_random_seed(1)
    of = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Softmax()])
    of.compile("sgd", "mse")
    return of

y = np.ones((4, 4), np.float32)
WAYS = {
    "fit": lambda: model().fit(x, y, verbose=0),
    "fit of a data set": lambda: model().fit(tf.data.Dataset.from_tensors((x, y)), verbose=0),
    "evaluate": lambda: model().evaluate(x, y, verbose=0),
    "predict": lambda: model().predict(x, verbose=0),
    "train_on_batch": lambda: model().train_on_batch(x, y),
    "test_on_batch": lambda: model().test_on_batch(x, y),
    "predict_on_batch": lambda: model().predict_on_batch(x),
    "convert_to_numpy": lambda: keras.ops.convert_to_numpy(model()(x)),
}
"""

TELL = """
def told(way):
    try:
        WAYS[way]()
    except Exception as error:
        found = re.search(r"TF_XPU_FAULT asks for this failure .*?on XPU:0\\) \\(Softmax.*? on XPU:0\\)", str(error))
        words = found[0] if found else str(error)
        # The names of ops within loops are TensorFlow's, those of steps are Keras's.
        return [type(error).__name__, re.sub(r"number \\d+|Softmax \\S*/Softmax", "N", words)]
    finally:
        forget()
    return []

def forget():
    while True:
        try:
            return float(one + one)
        except tf.errors.InternalError:
            time.sleep(0.05)

with tf.device("/xpu:0"):
    one = tf.constant(1.0)
    print(json.dumps({way: told(way) for way in WAYS}))
"""

PROGRAMS = {"TensorFlow": PROGRAM + TELL, "Keras": PROGRAM + KERAS + TELL}


@functools.cache
def words(program, *environment):
    outcome = run_code(PROGRAMS[program], environment={**FAULT, **dict(environment)})
    assert outcome.returncode == 0 and outcome.warnings == [], outcome
    return outcome.json


@pytest.mark.parametrize(
    ("program", "without"),
    [
        pytest.param(program, name, marks=() if name == each_off.ALL else pytest.mark.slow)
        for program in PROGRAMS
        for name in each_off.rows()
    ],
)
def test_they_are_the_same_without_a_hook(program, without, xpu_device, all_hooks):
    expected = words(program)
    for way, told in expected.items():
        assert told, f"{way}: nothing is told"
        assert "(command=Softmax:fail; it was N on XPU:0) (" in told[1], (way, told)
    assert words(program, *each_off.rows()[without].items()) == expected
