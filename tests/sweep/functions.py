"""Functions of one number at all numbers of 16 bits, and of float32 at a thousand of every exponent and either sign.

python -m tests.sweep.functions        measures them on /xpu:0 and /cpu:0 and writes their table into docs/accuracy.md

The exact values are NumPy's and SciPy's in double, but where a comment says that a function is TensorFlow's. NaN,
infinities and signs have to be those of the exact value, and its error within Function.limit. A result below the type's
least normal number may be zero (docs/accuracy.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import scipy.special
import tensorflow as tf

from tests.sweep import accuracy, rounding
from tests.sweep.cases.math import elu, selu
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import hard_placement

TYPES = (tf.float32, tf.float16, tf.bfloat16)
MANTISSAS = 1000


def lgamma(x: np.ndarray) -> np.ndarray:
    """SciPy says -inf at -inf, C and TensorFlow inf."""
    return np.where(np.isinf(x), np.inf, scipy.special.gammaln(x))


def digamma(x: np.ndarray) -> np.ndarray:
    """TensorFlow's is NaN at every pole, 0 included."""
    return np.where((x <= 0) & (x == np.floor(x)), np.nan, scipy.special.digamma(x))


def spence(x: np.ndarray) -> np.ndarray:
    """SciPy says NaN at inf."""
    return np.where(x == np.inf, -np.inf, scipy.special.spence(x))


def below_zero(value: float, f: Callable) -> Callable:
    """The function, and what TensorFlow's is where it is not real, or not computed."""
    return lambda x: np.where(x < 0, value, f(np.where(x < 0, 1.0, x)))


def odd(f: Callable) -> Callable:
    """SciPy forgets the sign of a zero."""
    return lambda x: np.copysign(f(np.abs(x)), x)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, x)


def far_bessel(x: np.ndarray, order: int, second: bool) -> np.ndarray:
    """J and Y by their asymptotic series, of the angle x: SciPy subtracts a phase, which a large x loses."""
    mu, z = 4.0 * order, 1 / (8 * x)
    p = 1 - (mu - 1) * (mu - 9) / 2 * z**2 + (mu - 1) * (mu - 9) * (mu - 25) * (mu - 49) / 24 * z**4
    q = (mu - 1) * z - (mu - 1) * (mu - 9) * (mu - 25) / 6 * z**3
    sine, cosine = np.sin(x), np.cos(x)
    # cos and sin of x - pi / 4 (2 order + 1), times the root of 2.
    c, s = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(cosine + sine))
    return (p * s + q * c if second else p * c - q * s) / np.sqrt(np.pi * x)


def bessel(near: Callable, order: int, second: bool = False) -> Callable:
    def f(x: np.ndarray) -> np.ndarray:
        a = np.abs(x)
        far = (a > 1e4) & (a < np.inf)
        value = np.where(far, far_bessel(np.where(far, a, 1.0), order, second), near(np.where(far, 1.0, a)))
        return np.where(np.signbit(x) & (order == 1) & (not second), -value, value)

    return below_zero(-np.inf, f) if second else f


HEADING = "## Functions of one number, at all arguments"
TEXT = """The table has the largest error of each function in units of the last place, and the argument with that error.
`python -m tests.sweep.functions` measured it at all numbers of float16 and bfloat16. In float32 it took {mantissas}
numbers of every exponent and sign, including subnormal ones.

- **limit** is the largest error of float32 that `tests/sweep/test_functions.py` allows. In 16 bits the test allows half
  a unit, and the same error in their larger units.
- **NaN, infinities and signs of zeros** are correct at all these arguments. Where a function is not real or has a pole,
  they are those of TensorFlow's kernels.
- **float32 on the CPU** leaves out subnormal arguments, which TensorFlow's CPU kernels take for zeros.
"""


@dataclasses.dataclass(frozen=True)
class Function:
    """exact: the function in double. argument: its name in tf.raw_ops. limit: the most units of float32 it may miss."""

    exact: Callable
    limit: float = 0.5
    argument: str = "x"
    attributes: dict = dataclasses.field(default_factory=dict)


special = scipy.special
FUNCTIONS = {
    "Abs": Function(np.abs),
    "Acos": Function(np.arccos, 1),
    "Acosh": Function(np.arccosh, 1.7),
    "Asin": Function(np.arcsin, 1),
    "Asinh": Function(np.arcsinh, 1.7),
    "Atan": Function(np.arctan, 2.2),
    "Atanh": Function(np.arctanh, 1.8),
    "BesselI0": Function(special.i0),
    "BesselI0e": Function(special.i0e),
    "BesselI1": Function(special.i1),
    "BesselI1e": Function(special.i1e),
    "BesselJ0": Function(bessel(special.j0, 0)),
    "BesselJ1": Function(bessel(special.j1, 1)),
    "BesselK0": Function(below_zero(np.inf, special.k0)),
    "BesselK0e": Function(below_zero(np.inf, special.k0e)),
    "BesselK1": Function(below_zero(np.inf, special.k1)),
    "BesselK1e": Function(below_zero(np.inf, special.k1e)),
    "BesselY0": Function(bessel(special.y0, 0, True)),
    "BesselY1": Function(bessel(special.y1, 1, True)),
    "Ceil": Function(np.ceil),
    "Cos": Function(np.cos, 1.6),
    "Cosh": Function(np.cosh, 1.6),
    "Dawsn": Function(special.dawsn),
    "Digamma": Function(digamma),
    "Elu": Function(elu, 1, "features"),
    "Erf": Function(special.erf, 6),
    "Erfc": Function(special.erfc, 6),
    "Erfinv": Function(odd(special.erfinv)),
    "Exp": Function(np.exp, 1.1),
    "Expint": Function(below_zero(np.nan, special.expi)),
    "Expm1": Function(np.expm1, 1.6),
    "Floor": Function(np.floor),
    "FresnelCos": Function(odd(lambda x: special.fresnel(x)[1])),
    "FresnelSin": Function(odd(lambda x: special.fresnel(x)[0])),
    "Inv": Function(np.reciprocal),
    "LeakyRelu": Function(lambda x: np.where(x < 0, 0.25 * x, x), 0.5, "features", {"alpha": 0.25}),
    "Lgamma": Function(lgamma),
    "Log": Function(np.log, 0.9),
    "Log1p": Function(np.log1p, 1.7),
    "Ndtri": Function(special.ndtri),
    "Neg": Function(np.negative),
    "Reciprocal": Function(np.reciprocal),
    "Relu": Function(lambda x: np.where(x <= 0, 0.0, x), 0.5, "features"),
    "Relu6": Function(lambda x: np.where(x <= 0, 0.0, np.where(x > 6, 6, x)), 0.5, "features"),
    "Rint": Function(np.rint),
    "Round": Function(np.rint),
    "Rsqrt": Function(lambda x: 1 / np.sqrt(x), 1.6),
    "Selu": Function(selu, 1.8, "features"),
    "Sigmoid": Function(special.expit, 2.3),
    "Sign": Function(lambda x: np.where(x == 0, 0.0, np.sign(x))),
    "Sin": Function(np.sin, 1.6),
    "Sinh": Function(np.sinh, 1.8),
    "Softplus": Function(softplus, 2, "features"),
    "Softsign": Function(lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))), 1.7, "features"),
    "Spence": Function(spence),
    "Sqrt": Function(np.sqrt),
    "Square": Function(np.square),
    "Tan": Function(np.tan, 1.2),
    "Tanh": Function(np.tanh, 5),
}


def arguments(dtype: tf.DType, mantissas: int = MANTISSAS) -> np.ndarray:
    """All there are of 16 bits; of float32 the first, the last and others of each exponent, of either sign."""
    if dtype.size == 2:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype.as_numpy_dtype)
    ends = np.array([0, 1, 2, (1 << 23) - 2, (1 << 23) - 1])
    others = np.random.default_rng(1).integers(0, 1 << 23, (512, mantissas - len(ends)))
    bits = np.concatenate([np.broadcast_to(ends, (512, len(ends))), others], 1) | (np.arange(512)[:, None] << 23)
    return bits.astype(np.uint32).ravel().view(np.float32)


@dataclasses.dataclass(frozen=True)
class Errors:
    """The errors of a function at many arguments."""

    units: float  # the largest error, in units in the last place of the exact value
    where: float  # its argument
    wrong: np.ndarray  # the indices of the results that are wrong whatever the limit

    def cell(self) -> str:
        return f"{accuracy.number(self.units)} at {self.where:.6g}" if self.units > 0 else "0"


def errors(got: np.ndarray, exact: np.ndarray, x: np.ndarray, dtype: tf.DType) -> Errors:
    """Compares results with the exact values, both as double."""
    form = rounding.FORMATS[dtype]
    least = 2.0**form.least_exponent
    rounded = rounding.round_to(exact, dtype)
    magnitude = np.abs(rounded)
    with np.errstate(invalid="ignore", over="ignore"):
        # Not twice half a unit, which of the least doubles is 0.
        exponent = np.frexp(np.clip(np.where(np.isfinite(magnitude), magnitude, 1), least, form.largest))[1]
        units = np.abs(got - exact) / np.ldexp(1.0, exponent - form.digits)
    finite = np.isfinite(got) & np.isfinite(rounded)
    # At the threshold to infinity an error decides on which side a result is.
    edge = np.isfinite(exact) & (np.abs(exact) > form.largest * (1 - 8 * form.roundoff))
    same = (np.isnan(got) & np.isnan(rounded)) | (got == rounded) | (edge & (np.abs(got) >= form.largest / 2))
    wrong = ~finite & ~same
    # float16 is computed in float32, where its numbers are all normal.
    flushed = (magnitude < least) & (got == 0) & (dtype != tf.float16)
    wrong |= finite & (np.signbit(got) != np.signbit(exact))
    units = np.where(finite & ~flushed, units, 0.0)
    at = int(np.argmax(units))
    return Errors(float(units[at]), float(x[at]), np.flatnonzero(wrong))


def exact_values(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name].exact(x.astype(np.float64)), np.float64)


def results(name: str, x: np.ndarray, dtype: tf.DType, device: str) -> np.ndarray:
    function = FUNCTIONS[name]
    with hard_placement(), tf.device(device):
        y = getattr(tf.raw_ops, name)(**{function.argument: tf.constant(x, dtype)}, **function.attributes)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return rounding.as_double(y)


def measure(name: str, dtype: tf.DType, device: str = "/xpu:0", x: np.ndarray | None = None) -> Errors:
    x = arguments(dtype) if x is None else x
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    return errors(results(name, x, dtype, device), exact_values(name, wide), wide, dtype)


def types_of() -> dict[str, list[tf.DType]]:
    """The types that each function has a kernel for."""
    types = {name: [] for name in FUNCTIONS}
    for r in all_registrations():
        if r.op in types:
            types[r.op] += [t for t in r.type_map.values() if t in TYPES]
    return types


def row(name: str, types: list[tf.DType]) -> str:
    cells = {t: measure(name, t).cell() for t in types}
    normal = arguments(tf.float32)
    normal = normal[~(np.abs(normal) < np.finfo(np.float32).tiny) | (normal == 0)]
    cpu = measure(name, tf.float32, "/cpu:0", normal).cell()
    columns = [cells[tf.float32], accuracy.number(FUNCTIONS[name].limit), cpu]
    return f"| {name} | {' | '.join(columns + [cells.get(t, '-') for t in TYPES[1:]])} |"


def section() -> str:
    """The section's text; functions that are exact in every type are named before the table."""
    types = types_of()
    lines = [HEADING, "", TEXT.format(mantissas=f"{MANTISSAS:,}")]
    exact = [name for name in FUNCTIONS if all(measure(name, t).units == 0 for t in types[name])]
    lines += [f"Exact at all arguments: {', '.join(exact)}.", ""]
    lines += ["| op | float32 | limit | float32 on the CPU | float16 | bfloat16 |", "|---|---|---|---|---|---|"]
    return "\n".join(lines + [row(name, types[name]) for name in FUNCTIONS if name not in exact]) + "\n"


def write() -> None:
    """Replaces the section, the page's last one."""
    text = accuracy.PATH.read_text().split(HEADING)[0].rstrip("\n")
    accuracy.PATH.write_text(f"{text}\n\n{section()}")
    print(f"wrote {accuracy.PATH}")


if __name__ == "__main__":
    write()
