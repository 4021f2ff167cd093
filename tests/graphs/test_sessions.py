"""Clusters in steps whose parts wait for each other: sessions that are fed in turns, queues, Python functions."""

import textwrap

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import run_code


def in_session(code):
    """The words that a program with a session prints, in a process that is stopped if it hangs."""
    modules = ("threading", "numpy as np", "tensorflow as tf", "tensorflow.compat.v1 as v1")
    start = "".join(f"import {module}\n" for module in modules) + "v1.disable_eager_execution()\n"
    outcome = run_code(start + textwrap.dedent(code), timeout=120)
    assert outcome.returncode == 0, outcome
    return outcome.stdout.split()


@pytest.mark.of_hooks("clusters")
def test_a_session_that_is_fed_in_turns(xpu_device):
    """Only ops that depend on the late feeds of a partial run wait for them."""
    assert in_session("""
        a, b = (v1.placeholder(tf.float32, [None]) for _ in range(2))
        c = tf.tanh(a * 2.0) + 1.0
        d = tf.tanh(c + b) * 3.0
        with v1.Session() as session:
            for scale in (1.0, 2.0):
                whole = session.run([c, d], {a: [1.0 * scale, 2.0], b: [3.0, 4.0]})
                run = session.partial_run_setup([c, d], [a, b])
                early = session.partial_run(run, c, {a: [1.0 * scale, 2.0]})
                late = session.partial_run(run, d, {b: early * 0 + [3.0, 4.0]})
                print([list(early), list(late)] == [list(part) for part in whole])
            trace = v1.RunMetadata()
            session.run(d, {a: [1.0], b: [2.0]}, v1.RunOptions(output_partition_graphs=True), trace)
            print(sum(node.op == "_XpuCluster" for graph in trace.partition_graphs for node in graph.node))
        """) == ["True", "True", "1"]


def test_a_queue_that_the_step_itself_fills(xpu_device):
    assert in_session("""
        x = v1.placeholder(tf.float32, [2])
        queue = tf.queue.FIFOQueue(10, [tf.float32], shapes=[[2]])
        c = tf.tanh(x * 2.0) + 1.0
        enqueue = queue.enqueue(c)
        d = tf.tanh(c * 3.0) * queue.dequeue() + 2.0
        with v1.Session() as session:
            for value in (1.0, 2.0):
                _, got, before = session.run([enqueue, d, c], {x: [value, 0.0]})
                print(np.allclose(got, np.tanh(3 * before) * before + 2, 1e-5))
        """) == ["True", "True"]


def test_python_that_waits_for_python(xpu_device):
    assert in_session("""
        seen = threading.Event()
        x = v1.placeholder(tf.float32, [2])
        c = tf.tanh(x * 2.0) + 1.0
        put = v1.py_func(lambda v: (seen.set(), v)[1], [c], tf.float32)
        got = v1.py_func(lambda v: v if seen.wait(20) else v - 1, [x], tf.float32)
        got.set_shape([2])
        d = tf.tanh(c * 3.0) + got
        with v1.Session() as session:
            for value in (1.0, 2.0):
                seen.clear()
                before, result = session.run([put, d], {x: [value, 0.0]})
                print(np.allclose(result, np.tanh(3 * before) + [value, 0.0], 1e-5))
        """) == ["True", "True"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_python_that_decides_a_condition(xpu_device, sign):
    """An op that depends on its value is alive whichever branch is."""

    def function(x):
        positive = tf.numpy_function(lambda v: v[0] > 0, [x], tf.bool)
        positive.set_shape([])
        beside = tf.tanh(x * 2.0) + tf.cast(positive, tf.float32)
        y = tf.cond(positive, lambda: tf.tanh(x) * 3.0 - 1.0, lambda: tf.tanh(x) * 2.0 + 1.0)
        return beside * 2.0, y

    x = tf.constant([sign, 2.0])
    with tf.device(xpu_device):
        results = tf.function(function)(x)
    with tf.device("/cpu:0"):
        for result, expected in zip(results, function(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5)
