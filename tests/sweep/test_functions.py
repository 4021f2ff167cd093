"""Functions of one number at all numbers of 16 bits and over all exponents of float32, and of pairs of special ones."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.installed import ROOT
from tests.support.processes import run
from tests.sweep import accuracy, cases, functions, pairs, rounding
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import Rng

pytestmark = [pytest.mark.without_isolation]
# For an element in 16 bits: half a unit, and the units of float32 by which its value missed before it was rounded.
HALF = 0.5 + 2.0**-10


def limit_of(name, dtype):
    limit = functions.FUNCTIONS[name].limit
    if dtype == tf.float32:
        return limit + 2.0**-10  # what the exact values, in double, may miss
    return HALF + limit * 2.0 ** (rounding.FORMATS[dtype].digits - rounding.FLOAT.digits)


def faults(mantissas):
    """The mistakes, a line for each function and type."""
    lines = []
    for name, types in functions.types_of().items():
        for dtype in types:
            x = functions.arguments(dtype, mantissas)
            errors = functions.measure(name, dtype, x=x)
            if errors.units > limit_of(name, dtype):
                lines.append(f"{name} {dtype.name}: {errors.cell()}, limit {limit_of(name, dtype):.3g}")
            if errors.wrong.size:
                where = errors.wrong[[0, errors.wrong.size // 2, -1]]
                got, exact = functions.results(name, x[where], dtype, "/xpu:0"), functions.exact_values(name, x[where])
                pairs = [f"f({a}) = {b}, not {c}" for a, b, c in zip(x[where], got, exact)]
                lines.append(f"{name} {dtype.name}: {errors.wrong.size} wrong: {'; '.join(pairs)}")
    return lines


@pytest.mark.host_only
def test_a_few_of_every_exponent(xpu_device):
    """And all of 16 bits."""
    assert faults(mantissas=12) == []


@pytest.mark.slow
@pytest.mark.host_only
def test_a_thousand_of_every_exponent(xpu_device):
    assert faults(functions.MANTISSAS) == []


@pytest.mark.slow
@pytest.mark.host_only
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set(isa):
    """One that the processor lacks is another one, which is as right."""
    program = "from tests.sweep.test_functions import faults; print('\\n'.join(faults(100)))"
    outcome = run("-c", program, environment={"TF_XPU_ISA": isa, "PYTHONPATH": str(ROOT)})
    assert outcome.returncode == 0 and outcome.stdout.strip() == "", outcome


@pytest.mark.host_only
@pytest.mark.parametrize("name", pairs.OPS)
def test_every_pair_of_special_numbers(name, xpu_device):
    for dtype in pairs.OPS[name].types:
        errors, wrong = pairs.measure(name, dtype)
        assert wrong == []
        assert errors.units <= (pairs.OPS[name].limit + 2.0**-10 if dtype.size > 2 else HALF), (dtype, errors.cell())


def test_errors():
    """Units are of the exact value's place, a zero may stand for a subnormal number, and nothing else may be wrong."""
    least, unit = 2.0**-126, 2.0**-23
    cases = [  # got, exact, units, whether it is wrong
        (1 + unit, 1.0, 1.0, False),
        (0.0, least / 2, 0.0, False),
        (-0.0, least / 2, 0.0, True),
        (0.0, least, 2.0**23, False),
        (np.nan, 1.0, 0.0, True),
        (1.0, np.nan, 0.0, True),
        (np.nan, np.nan, 0.0, False),
        (-np.inf, np.inf, 0.0, True),
        (np.inf, 3e38, 0.0, True),
        (np.inf, rounding.FLOAT.largest, 0.0, False),
        (0.0, -0.0, 0.0, True),
        (np.inf, 1e300, 0.0, False),
        (1e38, 1e300, 0.0, True),
    ]
    for got, exact, units, wrong in cases:
        errors = functions.errors(np.array([got]), np.array([exact]), np.array([7.0]), tf.float32)
        assert (errors.units, errors.wrong.size) == (units, int(wrong)), (got, exact)
    least = 5e-324
    double = functions.errors(np.array([3 * least]), np.array([least]), np.array([7.0]), tf.float64)
    assert double.units == 2
    half = functions.errors(np.array([0.0]), np.array([2.0**-24]), np.array([7.0]), tf.float16)
    assert half.units == 1 and half.cell() == "1 at 7"


def test_the_arguments():
    x = functions.arguments(tf.float32, 12)
    assert x.size == 512 * 12 == np.unique(x.view(np.uint32)).size
    for value in (0.0, 2.0**-149, 2.0**-126, 1.0, np.inf, rounding.FLOAT.largest):
        assert value in x and -value in x
    for dtype in (tf.float16, tf.bfloat16):
        assert np.unique(functions.arguments(dtype).view(np.uint16)).size == 1 << 16


def is_of_each_element(op, arguments):
    """True of a function of one tensor's elements that moves with them, and is neither they themselves nor constant."""
    tensors = [name for name, value in arguments.items() if isinstance(value, tf.Tensor)]
    others = {type(value) for name, value in arguments.items() if name not in tensors}
    if len(tensors) != 1 or arguments[tensors[0]].dtype != tf.float32 or len(arguments) > 2 or not others <= {float}:
        return False
    x = arguments[tensors[0]].numpy()
    order = np.random.default_rng(1).permutation(x.size)
    moved = tf.constant(x.ravel()[order].reshape(x.shape))
    with tf.device("/xpu:0"):
        y, of_moved = (getattr(tf.raw_ops, op)(**{**arguments, tensors[0]: t}) for t in (tf.constant(x), moved))
    if not isinstance(y, tf.Tensor) or y.shape != x.shape or y.dtype != tf.float32 or np.unique(y).size < 2:
        return False
    same = np.array_equal(y.numpy().ravel()[order], of_moved.numpy().ravel(), equal_nan=True)
    return same and not np.array_equal(y, x, equal_nan=True)


@pytest.mark.host_only
def test_every_function_of_one_number_is_measured(xpu_device):
    """Each op whose case in the sweep shows it to be one has a row."""
    kernels = {r.op: r.type_map for r in all_registrations() if tf.float32 in r.type_map.values()}
    found = set()
    for op in kernels.keys() & cases.CASES.keys():
        for case in cases.CASES[op]:
            arguments = case.make(kernels[op], Rng(0)) if not case.types or tf.float32 in case.types else {}
            if any(isinstance(v, tf.Tensor) and v.shape.num_elements() > 3 for v in arguments.values()):
                found |= {op} if is_of_each_element(op, arguments) else set()
                break
    assert found == functions.FUNCTIONS.keys()


def test_the_page_has_them():
    """All functions that are measured, and no limit that is not the one that is tested."""
    section = accuracy.PATH.read_text().split(functions.HEADING)[1]
    for name, function in functions.FUNCTIONS.items():
        assert name in section
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith(f"| {name} |")]
        assert all(row[2] == accuracy.number(function.limit) for row in rows)
