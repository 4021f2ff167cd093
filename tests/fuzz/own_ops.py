"""Ops that the device has from TensorFlow, and that every graph is full of: cases as the sweep has them.

The sweep has cases for what is registered for XPU. These have kernels for any device; clusters have rules for them.
"""

import tensorflow as tf

from tests.sweep.cases.array import i32
from tests.sweep.runner import Case, Var

TYPES = (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int64, tf.bool, tf.int32, tf.complex64)


def case(make):
    return Case(lambda t, r: make(t["T"], r), compare="bits")


def shape_of(t, r):
    return {"input": r.uniform((3, 5), t), "out_type": tf.int32}


CASES = {
    "Identity": [case(lambda t, r: {"input": r.uniform((3, 5), t)})],
    "StopGradient": [case(lambda t, r: {"input": r.uniform((3, 5), t)})],
    "IdentityN": [case(lambda t, r: {"input": [r.uniform((3, 5), t), r.uniform((4,), t)]})],
    "Reshape": [
        case(lambda t, r, s=s, to=to: {"tensor": r.uniform(s, t), "shape": i32(*to)})
        for s, to in [((3, 5), (-1,)), ((3, 4), (2, 6)), ((2, 3, 4), (6, -1)), ((12,), (3, 1, 4)), ((5,), (1, -1))]
    ],
    "ExpandDims": [case(lambda t, r, a=a: {"input": r.uniform((3, 5), t), "axis": tf.constant(a)}) for a in (0, 1, -1)],
    "Squeeze": [
        case(lambda t, r, s=s, a=a: {"input": r.uniform(s, t), "axis": a})
        for s, a in [((1, 5), []), ((3, 1), [1]), ((1, 3, 1), [0])]
    ],
    "Shape": [case(shape_of)],
    "Size": [case(shape_of)],
    "Rank": [case(lambda t, r: {"input": r.uniform((3, 5), t)})],
    "ReadVariableOp": [
        case(lambda t, r, s=s: {"resource": Var(r.uniform(s, t)), "dtype": t}) for s in [(), (7,), (3, 5)]
    ],
    "AssignVariableOp": [
        case(lambda t, r, s=s: {"resource": Var(r.uniform(s, t)), "value": r.uniform(s, t)})
        for s in [(), (7,), (3, 5), (33, 9)]
    ],
}
