"""Reference variables of TensorFlow 1: the cases of the ops on resource variables, with references instead."""

import dataclasses

import tensorflow as tf

from tests.sweep.cases import gather_scatter, state
from tests.sweep.runner import Case, Var
from tests.sweep.sessions import Built, Like

raw = tf.raw_ops


NOT_INT32 = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128, tf.bool)
NOT_INT32 += (tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)


def like(op, cases, attributes=None, renamed=None):
    """The cases of op `op`, on resources, with references instead.

    attributes: the resource op's name of a type attribute, where it is another. renamed: an argument's name here.
    """

    def convert(case):
        def make(t, r):
            t = {(attributes or {}).get(a, a): dtype for a, dtype in t.items()}
            return {**case.make(t, r), "like": Like(op, renamed or {})}

        return dataclasses.replace(case, make=make, types=case.types or NOT_INT32)

    return [convert(case) for case in cases]


def unique_name(name):
    return tf.compat.v1.get_default_graph().unique_name(name)


def assign():
    """The value of a variable's shape, and another."""

    def values(t, r, shape):
        return {"resource": Var(r.uniform([2, 3], t["T"])), "value": r.uniform(shape, t["T"])}

    return [
        *like("AssignVariableOp", [Case(lambda t, r: values(t, r, [2, 3]))], renamed={"resource": "ref"}),
        *like(
            "AssignVariableOp",
            [Case(lambda t, r: {**values(t, r, [7]), "validate_shape": False})],
            renamed={"resource": "ref"},
        ),
    ]


def kept(op):
    """A variable of op `op` from nothing to its value."""

    def build(value):
        v = getattr(raw, op)(shape=value.shape, dtype=value.dtype, shared_name=unique_name("kept"))
        before = raw.IsVariableInitialized(ref=v)
        with tf.control_dependencies([before]):
            assigned = raw.Assign(ref=v, value=value)
        with tf.control_dependencies([assigned]):
            return [before, raw.IsVariableInitialized(ref=v), tf.identity(v)]

    return [Case(lambda t, r: {"value": r.uniform([3, 2], t["dtype"]), "build": Built(build)})]


def counted():
    def build(value):
        v = raw.VariableV2(shape=value.shape, dtype=value.dtype, shared_name=unique_name("counted"))
        with tf.control_dependencies([raw.Assign(ref=v, value=value)]):
            count = raw.CountUpTo(ref=v, limit=8)
        with tf.control_dependencies([count]):
            return [count, tf.identity(v)]

    return [Case(lambda t, r: {"value": tf.constant(7, t["T"]), "build": Built(build)})]


def temporary(attribute, types=()):
    """The ops that the memory optimizer makes of a sum. int32 is there for this alone."""

    def build(value):
        name = unique_name("temporary")
        v = raw.TemporaryVariable(shape=value.shape, dtype=value.dtype, var_name=name)
        zero = raw.Assign(ref=v, value=tf.zeros_like(value), use_locking=False, validate_shape=False)
        adds = [f(ref=zero, value=value, use_locking=True) for f in (raw.AssignAdd, raw.AssignAdd, raw.AssignSub)]
        with tf.control_dependencies(adds):
            return [raw.DestroyTemporaryVariable(ref=zero, var_name=name)]

    return [Case(lambda t, r: {"value": r.uniform([3, 2], t[attribute]), "build": Built(build)}, types=types)]


# Ops whose name on resources begins with "Resource", and whose arguments are the same.
SAME_ARGUMENTS = {**state.CASES, **gather_scatter.CASES}
NO_REFERENCE_FORM = {
    "ResourceCountUpTo",
    "ResourceApplyKerasMomentum",
    "ResourceApplyAdamWithAmsgrad",
    "ResourceGather",
    "ResourceGatherNd",
}
ROWS = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update"}

INT32 = temporary("T", (tf.int32,))
CASES = {
    "Assign": assign() + INT32,
    "AssignAdd": like("AssignAddVariableOp", state.assign(), {"T": "dtype"}, {"resource": "ref"}) + INT32,
    "AssignSub": like("AssignSubVariableOp", state.assign(), {"T": "dtype"}, {"resource": "ref"}) + INT32,
    **{
        op.removeprefix("Resource"): like(op, cases)
        for op, cases in SAME_ARGUMENTS.items()
        if op.startswith("Resource") and op not in NO_REFERENCE_FORM | {f"ResourceScatter{kind}" for kind in ROWS}
    },
    **{
        f"Scatter{kind}": like(
            f"ResourceScatter{kind}", SAME_ARGUMENTS[f"ResourceScatter{kind}"], {"T": "dtype"}, {"resource": "ref"}
        )
        for kind in sorted(ROWS)
    },
    "CountUpTo": counted(),
    "Variable": kept("Variable"),
    "VariableV2": kept("VariableV2"),
    "IsVariableInitialized": kept("VariableV2"),
    "TemporaryVariable": temporary("dtype"),
    "DestroyTemporaryVariable": temporary("T"),
}
