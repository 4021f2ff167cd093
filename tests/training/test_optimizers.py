"""Optimizers on XPU: updates of variables that share a buffer, of rows, and TensorFlow 1's optimizers in graphs."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.cases.state import CASES
from tests.sweep.runner import Rng, Var, hard_placement

raw = tf.raw_ops
UPDATES = sorted(op for op in CASES if op.startswith(("ResourceApply", "ResourceSparseApply")))
TYPES = {"T": tf.float32, "Tindices": tf.int64}


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


def update(op, device, times=2):
    """Runs the last case of `op` on variables that all were assigned one tensor; their values and that tensor's."""
    with tf.device("/cpu:0"):
        kwargs = CASES[op][-1].make(TYPES, Rng(5))
        start = tf.abs(next(v.value for v in kwargs.values() if isinstance(v, Var))) + 0.5
    with tf.device(device):
        start = tf.identity(start)
        variables = {k: tf.Variable(tf.zeros_like(start)) for k, v in kwargs.items() if isinstance(v, Var)}
        for v in variables.values():
            v.assign(start)
        for _ in range(times):
            getattr(raw, op)(**{**kwargs, **{k: v.handle for k, v in variables.items()}})
        return {k: v.numpy() for k, v in variables.items()}, start.numpy()


@pytest.mark.parametrize("op", UPDATES)
def test_variables_that_share_a_buffer(xpu_device, op):
    """Each gets a buffer of its own when it is written; the tensor that they were made from keeps its value."""
    got, start = update(op, xpu_device)
    want, unchanged = update(op, "/cpu:0")
    np.testing.assert_array_equal(start, unchanged)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def rows_of(**changes):
    """ResourceSparseApplyAdagrad on rows of a variable of shape [4, 3]; returns the variable's value."""
    kwargs = {"var": (4, 3), "accum": (4, 3), "lr": 0.1, "grad": (2, 3), "indices": (3, 1), **changes}
    var, accum = (tf.Variable(np.ones(kwargs[k], np.float32)) for k in ("var", "accum"))
    raw.ResourceSparseApplyAdagrad(
        var=var.handle,
        accum=accum.handle,
        lr=np.float32(kwargs["lr"]),
        grad=np.ones(kwargs["grad"], np.float32),
        indices=np.array(kwargs["indices"], np.int64),
    )
    return var.numpy()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": (0, 4)}, "Index 4 at offset 1 in indices is out of range"),
        ({"indices": (-1, 0)}, "Index -1 at offset 0 in indices is out of range"),
        ({"indices": ((0, 1), (2, 3))}, "indices must be one-dimensional"),
        ({"grad": (3, 3)}, "grad must be the same size as indices in the first dimension"),
        ({"grad": (2, 2)}, "var and grad must match in dimension 1"),
        ({"grad": (2,)}, "grad must have the same number of dimensions as var"),
        ({"accum": (4, 2)}, r"var and accum do not have the same shape\[4,3\] \[4,2\]"),
        ({"var": (), "accum": (), "grad": (2,)}, "var must be at least 1 dimensional"),
        ({"lr": (0.1, 0.2)}, r"lr is not a scalar: \[2\]"),
    ],
    ids=lambda x: str(x) if isinstance(x, dict) else "",
)
def test_bad_rows(xpu_device, changes, message):
    for device in ("/cpu:0", xpu_device):
        with tf.device(device), pytest.raises(tf.errors.InvalidArgumentError, match=message):
            rows_of(**changes)


def test_rows_of_nothing(xpu_device):
    with tf.device(xpu_device):
        np.testing.assert_array_equal(rows_of(grad=(0, 3), indices=()), np.ones((4, 3)))
        assert rows_of(var=(4, 0), accum=(4, 0), grad=(2, 0)).shape == (4, 0)


def test_a_bad_row_changes_nothing(xpu_device):
    with tf.device(xpu_device):
        var, accum = tf.Variable(tf.ones((4, 3))), tf.Variable(tf.ones((4, 3)))
        with pytest.raises(tf.errors.InvalidArgumentError):
            raw.ResourceSparseApplyAdagrad(
                var=var.handle, accum=accum.handle, lr=0.1, grad=tf.ones((2, 3)), indices=[1, 9]
            )
        np.testing.assert_array_equal(var, np.ones((4, 3)))
        np.testing.assert_array_equal(accum, np.ones((4, 3)))


v1 = tf.compat.v1.train
OPTIMIZERS = {
    "GradientDescent": lambda: v1.GradientDescentOptimizer(0.1),
    "Momentum": lambda: v1.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: v1.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adam": lambda: v1.AdamOptimizer(0.1),
    "RMSProp": lambda: v1.RMSPropOptimizer(0.1, momentum=0.5),
    "CenteredRMSProp": lambda: v1.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
    "Ftrl": lambda: v1.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "Adagrad": lambda: v1.AdagradOptimizer(0.1),
    "Adadelta": lambda: v1.AdadeltaOptimizer(1.0),
    "ProximalAdagrad": lambda: v1.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "ProximalGradientDescent": lambda: v1.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
    "AdagradDA": lambda: v1.AdagradDAOptimizer(0.1, tf.compat.v1.train.get_or_create_global_step()),
}


def train(make, sparse, device, steps=3):
    """Trains two variables in a graph, one of them by rows if `sparse`; their values after some steps."""
    with tf.Graph().as_default(), tf.device(device):
        table = tf.compat.v1.get_variable(
            "table", initializer=np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), use_resource=True
        )
        weights = tf.compat.v1.get_variable("weights", initializer=np.ones((4, 3), np.float32), use_resource=True)
        rows = tf.gather(table, [2, 0, 2]) if sparse else table
        loss = tf.reduce_sum(tf.square(rows)) + tf.reduce_sum(tf.square(weights - 3.0))
        step = make().minimize(loss)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for _ in range(steps):
                session.run(step)
            return session.run([table, weights])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "rows"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_of_tensorflow_1(xpu_device, name, sparse):
    got, want = (train(OPTIMIZERS[name], sparse, device) for device in (xpu_device, "/cpu:0"))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_slots_made_of_one_tensor_in_a_graph(xpu_device):
    """As an initializer makes them whose zeros Grappler has found to be one tensor."""
    with tf.Graph().as_default(), tf.device(xpu_device):
        zeros = tf.zeros((4,)) + tf.compat.v1.placeholder_with_default(0.0, ())
        var = tf.compat.v1.get_variable("v", initializer=np.ones(4, np.float32), use_resource=True)
        slots = [tf.compat.v1.get_variable(f"s{i}", initializer=zeros, use_resource=True) for i in range(2)]
        step = raw.ResourceApplyAdam(
            var=var.handle,
            m=slots[0].handle,
            v=slots[1].handle,
            beta1_power=0.9,
            beta2_power=0.99,
            lr=0.1,
            beta1=0.9,
            beta2=0.99,
            epsilon=1e-3,
            grad=tf.ones(4),
        )
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(step)
            m, v = session.run(slots)
    np.testing.assert_allclose(m, np.full(4, 0.1), rtol=1e-5)
    np.testing.assert_allclose(v, np.full(4, 0.01), rtol=1e-5)
