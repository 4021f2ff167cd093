"""Reference variables of TensorFlow 1: variable, update and read stay together on the XPU and agree with the CPU."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.sessions import config

tf1 = tf.compat.v1

OPTIMIZERS = {
    "gradient descent": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf1.train.AdamOptimizer(0.05),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf1.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered rmsprop": lambda: tf1.train.RMSPropOptimizer(0.01, centered=True, epsilon=0.1),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal adagrad": lambda: tf1.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal descent": lambda: tf1.train.ProximalGradientDescentOptimizer(0.1, l2_regularization_strength=0.01),
}


def reference(name, value):
    return tf1.get_variable(name, initializer=tf.constant(value, tf.float32), use_resource=False)


def in_session(device, build):
    """The result of build(), run in a session on `device` where nothing may leave it; build makes the variables."""
    with tf.Graph().as_default() as graph, graph.device(device):
        fetches = build()
        with tf1.Session(graph=graph, config=config()) as session:
            session.run(tf1.global_variables_initializer())
            return session.run(fetches)


def training(device, make_optimizer):
    """Losses and weights of a small network trained in a loop."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 5)), rng.standard_normal((16, 1))
    first, second = rng.standard_normal((5, 7)), rng.standard_normal((7, 1))
    with tf.Graph().as_default() as graph, graph.device(device):
        weights = [reference("first", first), reference("bias", np.zeros(7)), reference("second", second)]
        hidden = tf.nn.relu(tf.constant(x, tf.float32) @ weights[0] + weights[1])
        loss = tf.reduce_mean(tf.square(hidden @ weights[2] - tf.constant(y, tf.float32)))
        step = make_optimizer().minimize(loss)
        # The very variables under test, not the resources that TensorFlow 2 would make.
        assert all(v.op.type == "VariableV2" for v in tf1.global_variables())
        with tf1.Session(graph=graph, config=config()) as session:
            session.run(tf1.global_variables_initializer())
            losses = [session.run([loss, step])[0] for _ in range(10)]
            return np.array(losses), [np.array(v) for v in session.run(weights)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training(name, xpu_device):
    losses, weights = training(xpu_device, OPTIMIZERS[name])
    on_cpu, weights_on_cpu = training("/cpu:0", OPTIMIZERS[name])
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(losses, on_cpu, rtol=1e-4)
    for got, want in zip(weights, weights_on_cpu, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_a_read_after_a_step_sees_it(xpu_device):
    """The variable was once left on the CPU, and a copy of it sent to the XPU before the step."""

    def build():
        w = reference("w", [1.0, 2.0])
        step = tf1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w))
        with tf.control_dependencies([step]):
            return tf.identity(w)

    np.testing.assert_allclose(in_session(xpu_device, build), [0.9, 1.9], rtol=1e-5)


def test_variables_that_were_given_one_value_are_apart(xpu_device):
    def build():
        value = tf.random.stateless_uniform([4], [1, 2])
        a, b = (tf1.get_variable(n, [4], use_resource=False, initializer=tf1.zeros_initializer()) for n in "ab")
        with tf.control_dependencies([tf1.assign(a, value), tf1.assign(b, value)]):
            changed = tf1.assign_sub(a, tf.ones([4]))
        with tf.control_dependencies([changed]):
            return tf.identity(value), tf.identity(a), tf.identity(b)

    value, a, b = in_session(xpu_device, build)
    np.testing.assert_array_equal(b, value)
    np.testing.assert_allclose(a, value - 1, rtol=1e-6)


def test_an_update_from_many_threads_is_whole(xpu_device):
    def build():
        w = reference("w", np.zeros(1000))
        adds = [tf1.assign_add(w, tf.ones([1000]), use_locking=locking) for locking in (True, False) * 20]
        with tf.control_dependencies(adds):
            return tf.identity(w)

    np.testing.assert_array_equal(in_session(xpu_device, build), np.full(1000, 40.0))


@pytest.mark.parametrize("device", ["/cpu:0", "/xpu:0"])
@pytest.mark.parametrize("update", ["assign_add", "apply", "scatter"])
def test_what_is_not_initialised_is_an_error_that_names_it(update, device, xpu_device):
    with tf.Graph().as_default() as graph, graph.device(device):
        w = reference("weight", [1.0, 2.0])
        run = {
            "assign_add": lambda: tf1.assign_add(w, [1.0, 1.0]),
            "apply": lambda: tf.raw_ops.ApplyGradientDescent(var=w._ref(), alpha=1.0, delta=[1.0, 1.0]),
            "scatter": lambda: tf1.scatter_add(w, [0], [1.0]),
        }[update]()
        with tf1.Session(graph=graph) as session, pytest.raises(tf.errors.FailedPreconditionError, match="weight"):
            session.run(run)


def test_a_shape_that_does_not_fit_is_an_error(xpu_device):
    def build(validate_shape):
        w = reference("w", [1.0, 2.0])
        value = tf1.placeholder_with_default(tf.zeros([3]), None)
        return tf.raw_ops.Assign(ref=w._ref(), value=value, validate_shape=validate_shape)

    message = r"Assign requires shapes of both tensors to match. lhs shape= \[2\] rhs shape= \[3\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        in_session(xpu_device, lambda: build(True))
    assert in_session(xpu_device, lambda: build(False)).tolist() == [0, 0, 0]


def test_accumulate_n(xpu_device):
    """TensorFlow replaces it by a temporary variable and updates of it."""

    @tf.function
    def total(*values):
        with tf.device(xpu_device):
            return tf.math.accumulate_n(list(values))

    values = [tf.constant([float(i), 2.0]) for i in range(5)]
    assert total(*values).numpy().tolist() == [10, 10]
