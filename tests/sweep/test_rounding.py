"""The comparison itself: what rounding explains passes, and nothing else does, in any type. No device is asked."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep import rounding
from tests.sweep.cases import CASES
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import Prepared, calls_of

TYPES = list(rounding.FORMATS)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
def test_half_a_unit_in_the_last_place(dtype):
    form = rounding.FORMATS[dtype]
    for x, exponent in ((1.0, 0), (1.5, 0), (1.999, 0), (2.0, 1), (0.26, -2), (0.0, -150)):
        if exponent == -150 and form is rounding.DOUBLE:
            continue  # half of its least number is none
        unit = 2.0 ** (max(exponent, form.least_exponent) - form.digits + 1)
        assert rounding.half_unit(np.array(x), form) * 2 == unit
    # The part that a conversion rounds away is never more.
    values = np.random.default_rng(1).uniform(-9, 9, 1000) * 10.0 ** np.random.default_rng(2).integers(-4, 4, 1000)
    if not dtype.is_complex:
        rounded = rounding.as_double(tf.cast(tf.constant(values), dtype))
        assert (np.abs(rounded - values) <= rounding.half_unit(np.abs(values), form)).all()


def alterations(values: np.ndarray):
    """A result altered as faulty kernels would."""
    one, last = values.copy(), values.copy()
    middle = np.unravel_index(values.size // 2, values.shape)
    one[middle] = one[middle] * 1.05 + 0.01
    end = (-1,) * values.ndim
    last[end] = 0 if last[end] != 0 else 1
    return {"zeros": np.zeros_like(values), "5%": values * 1.05, "one element": one, "no last element": last}


# One of each family.
OPS = ["Exp", "MatMul", "Conv2D", "Conv2DBackpropFilter", "Sum", "Mean", "FusedBatchNormV3", "FusedBatchNormGradV3"]
OPS += ["Softmax", "LogSoftmax", "AvgPool", "UnsortedSegmentSum", "BiasAddGrad", "L2Loss"]


@pytest.mark.parametrize("op", OPS)
def test_what_is_wrong_is_noticed(op):
    """The largest case of each family: exact results, rounded to the type, pass; altered ones do not."""
    for registration in all_registrations():
        dtype = dict(registration.types).get("T")
        if registration.op != op or dtype not in rounding.FORMATS:
            continue
        calls = [Prepared(call) for call in calls_of(op, CASES[op], registration.type_map)]
        largest = max(calls, key=lambda p: max(v.shape.num_elements() for v in p.kwargs.values() if tf.is_tensor(v)))
        exact = largest.exact()
        rounded = [tf.cast(tf.constant(x), t.dtype) for x, t in zip(exact, largest.native())]
        assert largest.compare([rounded], None, "rounded") <= 1
        for i, x in enumerate(exact):
            for name, altered in alterations(x).items():
                wrong = list(rounded)
                wrong[i] = tf.cast(tf.constant(altered), rounded[i].dtype)
                with pytest.raises(AssertionError, match="wrong"):
                    largest.compare([wrong], None, f"output {i}: {name}")
                    pytest.fail(f"{largest.call}: {name} of output {i} passes")
