"""How far a result may lie from the exact one: a rounding analysis, not a tolerance that someone chose.

The promise of every kernel: half and bfloat16 are computed in float, the other types in themselves, and the output is
rounded once. So for each element

    |result - exact| <= h + n * u * m

h  half a unit in the last place of the output's type, at the exact value: the one rounding of the output
u  the unit roundoff of the type that is computed in: 2^-24 for half, bfloat16, float, complex64; else 2^-53
n  how many roundings lie one after the other on the longest way from an input to the output (Case.roundings)
m  what each of them is relative to (Case.relative_to); by family:

| family | m | n |
|---|---|---|
| moves, comparisons, Neg, Floor, ...; one IEEE operation: Add, Div, Sqrt, ... | - | 0 |
| functions of elements: Exp, Tanh, optimizer steps, ... | CONDITION | ROUNDINGS of cases/math.py |
| sums of k products: MatMul, convolutions, Sum, pooling, scatter, ... | ABSOLUTE | terms(k) |
| products of k factors, norms | CONDITION | terms(k) |
| normalisation, softmax, cross-entropy | stated beside their cases | terms(k) + a few |

CONDITION is abs(f) + sum_i abs(x_i df/dx_i): an intermediate rounding is a relative change of something that a relative
change of an argument could have made. ABSOLUTE is the same op's result on absolute values.

terms(k) is k at most, the bound that nothing can break, and 6 * sqrt(k) for long sums, where roundings never all go one
way. See Higham and Mary (SIAM J. Sci. Comput. 41, 2019: with this factor, once in 10^7 elements).

The exact value is the CPU's result of the same op on the same inputs, converted to double (or complex128), where there
is one. If that is the type itself, or the CPU has none, the exact value has an error of the same kind, and n counts
twice. Results that are not floating-point numbers must be equal.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Format:
    """A binary floating-point format: bits of the significand, exponent of the least normal number, largest number."""

    digits: int
    least_exponent: int
    largest: float

    @property
    def roundoff(self) -> float:
        return 2.0**-self.digits


HALF, BFLOAT16 = Format(11, -14, 65504.0), Format(8, -126, (2 - 2.0**-7) * 2.0**127)
FLOAT = Format(24, -126, float(np.finfo(np.float32).max))
DOUBLE = Format(53, -1022, float(np.finfo(np.float64).max))
FORMATS = {
    tf.float16: HALF,
    tf.bfloat16: BFLOAT16,
    tf.float32: FLOAT,
    tf.complex64: FLOAT,
    tf.float64: DOUBLE,
    tf.complex128: DOUBLE,
}
COMPUTED_IN = {**FORMATS, tf.float16: FLOAT, tf.bfloat16: FLOAT}


def terms(k: int) -> float:
    """n for a sum or product of k terms."""
    return min(k, 6 * k**0.5)


# Errors that nobody has to share with the CPU: its result may be the exact one by chance.
UNITS = 4.0


def half_unit(magnitude: np.ndarray, form: Format) -> np.ndarray:
    """Half a unit in the last place of numbers of this magnitude."""
    exponent = np.frexp(np.clip(magnitude, 2.0**form.least_exponent, form.largest))[1] - 1
    return np.ldexp(1.0, exponent - form.digits)


def bound(exact: np.ndarray, dtype: tf.DType, errors: np.ndarray) -> np.ndarray:
    """h + the errors before the output is rounded. Results below the least normal number may be zeros."""
    errors = errors + 2.0 ** COMPUTED_IN[dtype].least_exponent
    magnitude = np.abs(exact)
    # A complex number has two roundings, at right angles.
    return errors + half_unit(magnitude + errors, FORMATS[dtype]) * (np.sqrt(2.0) if dtype.is_complex else 1.0)


def round_to(exact: np.ndarray, dtype: tf.DType) -> np.ndarray:
    """Overflow to infinity, where a number is nearer to that than to the type's largest."""
    form = FORMATS[dtype]
    if dtype.is_complex:
        return exact
    beyond = np.abs(exact) >= form.largest * (1 + form.roundoff / 2)
    return np.where(beyond, np.copysign(np.inf, exact), exact)


def as_double(t: tf.Tensor) -> np.ndarray:
    """As double or complex128, exactly."""
    return t.numpy().astype(np.complex128 if t.dtype.is_complex else np.float64)


@dataclasses.dataclass(frozen=True)
class Distance:
    """How far a result lies from what is expected."""

    of_bound: float  # the largest error as a fraction of the bound
    of_unit: float  # the same, of `units`
    where: tuple  # the element with the largest
    wrong: int  # elements beyond the bound


def distance(got: np.ndarray, exact: np.ndarray, allowed: np.ndarray, units: np.ndarray) -> Distance:
    """NaN is expected where the exact value is one, an infinity where it is the same; all else within the bound."""
    if exact.size == 0:
        return Distance(0.0, 0.0, (), 0)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - exact)
    same = (got == exact) | (np.isnan(got) & np.isnan(exact))
    # An error that is left and not finite is as wrong as can be.
    error = np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))
    with np.errstate(invalid="ignore", divide="ignore"):
        fraction = np.where(error == 0, 0.0, error / allowed)
        unit = np.where(error == 0, 0.0, error / units)
    fraction, unit = (np.where(np.isnan(f), np.inf, f) for f in (fraction, unit))
    where = np.unravel_index(int(np.argmax(fraction)), fraction.shape)
    return Distance(float(fraction.max()), float(unit.max()), tuple(map(int, where)), int((fraction > 1).sum()))
