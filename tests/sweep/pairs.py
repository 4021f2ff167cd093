"""Functions of two numbers at every pair of special ones: zeros, the ends of the type, and what lies near 1.

The exact values are NumPy's, in double or, for arguments in double, with 64 bits. NaN, infinities and signs have to be
those of the exact value, and its error within Pairs.limit (functions.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tests.sweep import functions, rounding
from tests.sweep.runner import hard_placement

TYPES = (tf.float32, tf.float16, tf.bfloat16, tf.float64)


def unless_zero(condition: np.ndarray, result: np.ndarray) -> np.ndarray:
    return np.where(condition == 0, 0.0, result)


def floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As C++ has it in TensorFlow: NumPy's has another sign of zero."""
    r = np.fmod(x, y)
    return np.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """exact: the function. limit: the most units of the last place it may miss in float32 and double."""

    exact: Callable
    limit: float = 0.5
    names: tuple = ("x", "y")
    types: tuple = TYPES


WIDE = (tf.float32, tf.float64)
OPS = {
    "AddV2": Pairs(np.add),
    "Sub": Pairs(np.subtract),
    "Mul": Pairs(np.multiply),
    "RealDiv": Pairs(np.divide),
    "DivNoNan": Pairs(lambda x, y: unless_zero(y, x / y)),
    "MulNoNan": Pairs(lambda x, y: unless_zero(y, x * y)),
    "Xdivy": Pairs(lambda x, y: unless_zero(x, x / y)),
    "Xlogy": Pairs(lambda x, y: unless_zero(x, x * np.log(y)), 1.6),
    "Xlog1py": Pairs(lambda x, y: unless_zero(x, x * np.log1p(y)), 2.2),
    "Pow": Pairs(np.power, 0.6),
    "Atan2": Pairs(np.arctan2, 1.6, ("y", "x")),
    "SquaredDifference": Pairs(lambda x, y: np.square(x - y), 2),
    "FloorMod": Pairs(floor_mod),
    "TruncateMod": Pairs(np.fmod, types=WIDE),
    "EluGrad": Pairs(lambda dy, y: np.where(y < 0, (y + 1) * dy, dy), 1.1, ("gradients", "outputs")),
}


def numbers(dtype: tf.DType) -> np.ndarray:
    """Special ones of either sign."""
    form = rounding.FORMATS[dtype]
    least, unit = 2.0**form.least_exponent, 2.0 ** (1 - form.digits)
    values = [
        0.0,
        least * unit,
        3 * least * unit,
        least / 2,
        least * (1 - unit),
        least,
        least * (1 + unit),
        1.5 * least,
    ]
    values += [least**0.5, 1e-3, 0.1, 0.5, 1 - unit / 2, 1.0, 1 + unit, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 33.0, 1000.5]
    values += [form.largest**0.5, form.largest / 2, form.largest, np.inf, np.nan]
    if form.least_exponent < -14:
        values += [1e-30, 1e-20, 2.0**24 + 1, 1e10, 1e20, 1e30]
    return np.array([*values, *np.negative(values)]).astype(dtype.as_numpy_dtype)


def measure(name: str, dtype: tf.DType) -> tuple[functions.Errors, list[str]]:
    """The errors, and what is wrong whatever the limit."""
    op, v = OPS[name], numbers(dtype)
    x, y = np.repeat(v, v.size), np.tile(v, v.size)
    with hard_placement(), tf.device("/xpu:0"):
        z = getattr(tf.raw_ops, name)(**dict(zip(op.names, (tf.constant(x, dtype), tf.constant(y, dtype)))))
    got = rounding.as_double(z)
    wide = np.longdouble if dtype == tf.float64 else np.float64
    with np.errstate(all="ignore"):
        exact = np.asarray(op.exact(x.astype(wide), y.astype(wide)))
    errors = functions.errors(got, exact, np.arange(x.size, dtype=np.float64), dtype)
    return errors, [f"{name}({x[i]}, {y[i]}) = {got[i]}, not {exact[i]}" for i in errors.wrong]
