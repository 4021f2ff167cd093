"""docs/accuracy.md: how far each op's results lie from the exact ones, measured.

python -m tests.sweep.accuracy        runs the sweep's cases on /xpu:0 and on /cpu:0 and writes docs/accuracy.md, with
                                      the table of tests/sweep/functions.py at its end

The exact results are those that the CPU computes from the same arguments in a wider type. Kernels of double have none.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import pathlib
import platform
import re

import numpy as np
import tensorflow as tf

from tests.sweep import rounding
from tests.sweep.adopted import OPS as ADOPTED
from tests.sweep.cases import CASES, FAMILIES
from tests.sweep.document import ROOT
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import Prepared, _call, calls_of, hard_placement, nothing_folded

PATH = ROOT / "docs" / "accuracy.md"
TYPES = (tf.float32, tf.float16, tf.bfloat16, tf.complex64)

HEADER = """# Accuracy

This page says how far the results of each op lie from the exact ones. `python -m tests.sweep.accuracy` measured it with
TensorFlow {version} on {machine}.

- **Arguments** are those of the sweep (`tests/sweep/`).
- **Exact results** are the CPU's in double or complex128. Where a kernel of double is missing, half and bfloat16 are
  compared with float32.
- **The unit** is that of the last place (ulp) of the type, at the exact value. A correctly rounded result is within
  0.5.
- **Each cell** has the largest and the mean error of all elements of all cases.
- **float32 on the CPU** has the errors of TensorFlow's CPU kernels in the same float32 cases.
- **roundings** has the largest float32 errors of the XPU and of the CPU in another unit: the roundings of the
  computation. It is one rounding of the sum of all terms' magnitudes, plus one of the result. For functions it is the
  effect of the arguments' own roundings on the result, plus one of the result (`tests/sweep/rounding.py`). The sweep's
  tolerances follow from these.
- **of bound** is the largest error as a fraction of the sweep's tolerance, over all types.

Where large terms cancel, a sum is far from the exact one in units of its own last place, on any processor. It is chance
which of two kernels is then a few thousand units off, so compare the roundings.

The page leaves out ops that move or compare elements, which are exact, ops without a CPU kernel in a wider type, and
random ops. Elements whose exact value is infinite, NaN, zero or below the type's normal numbers do not count; the sweep
compares them, too.
"""

SUBNORMAL = """## Below the least normal number

Subnormal numbers lie between zero and the least normal number of a type. That is 2^-126 for float32, bfloat16 and the
parts of complex64, and 2^-1022 for float64 and the parts of complex128. One rule holds for them: **subnormal results
are zeros, subnormal arguments are exact.** It holds on every thread, for any number of elements, eager and in
functions.

- **Results**: sums, products, quotients and casts to narrower types give zero where their result would be subnormal.
  The zero has the sign of that result. The same holds for intermediate results. TensorFlow's CPU kernels do so, too. A
  function that equals its argument there, such as `expm1`, may return it.
- **Arguments**: the logarithm of 1e-40 is -92.1. Roots and quotients of subnormal numbers are exact, too. TensorFlow's
  CPU kernels take them for zeros. Most of these kernels give -inf for that logarithm.
- **Exact ops** keep subnormal numbers: moves, comparisons, signs, maxima, selections and casts to wider types.
- **Matrix products and convolutions**, with the ops fused to them, take subnormal arguments for zeros. A sum of
  products loses nothing by that, and some processors are many times slower with such arguments.
- **float16** is computed in float32, where all its numbers are normal. Its subnormal results are rounded correctly.

The rule costs nothing: `log` takes 0.43 ns an element on AVX-512, with subnormal arguments exact or taken for zeros.
Subnormal results would cost time, since an optimizer's moments decay towards zero and would stay subnormal. OpenCL
devices follow their own rule for results: PoCL's can be subnormal. `tests/ops/test_subnormals.py` tests the rule.
"""


@dataclasses.dataclass
class Errors:
    """Errors in units of the last place."""

    count: int = 0
    total: float = 0.0
    largest: float = 0.0

    def add(self, units: np.ndarray) -> None:
        self.count += units.size
        self.total += float(units.sum())
        self.largest = max(self.largest, float(units.max(initial=0.0)))

    def __str__(self) -> str:
        return f"{number(self.largest)} / {number(self.total / self.count)}" if self.count else "-"


def number(x: float) -> str:
    """Two digits, of large numbers fewer than they are long."""
    return "0" if x == 0 else f"{x:.2g}" if x < 100 else f"{x:.0f}" if x < 1e5 else f"{x:.0e}"


def units(got: tf.Tensor, exact: np.ndarray) -> np.ndarray:
    """|got - exact| in units of the last place of got's type, of the elements that are normal numbers."""
    form = rounding.FORMATS[got.dtype]
    magnitude = np.abs(exact)
    normal = np.isfinite(exact) & (magnitude >= 2.0**form.least_exponent) & (magnitude <= form.largest)
    values = rounding.as_double(got)
    return np.abs(values - exact)[normal] / (2 * rounding.half_unit(magnitude[normal], form))


def wider(dtype: tf.DType, than: tf.DType) -> bool:
    """True if results of this type say what is exact: some ops give float32 for arguments of any type."""
    return rounding.FORMATS[dtype].digits > rounding.FORMATS[than].digits


@dataclasses.dataclass
class Row:
    """The figures of an op."""

    by_type: dict[tf.DType, Errors] = dataclasses.field(default_factory=lambda: collections.defaultdict(Errors))
    cpu: Errors = dataclasses.field(default_factory=Errors)
    roundings: Errors = dataclasses.field(default_factory=Errors)
    cpu_roundings: Errors = dataclasses.field(default_factory=Errors)
    of_bound: float = 0.0

    @property
    def exact(self) -> bool:
        return all(e.largest == 0 for e in self.by_type.values()) and self.cpu.largest == 0

    def line(self, op: str) -> str:
        cells = [str(self.by_type[t]) if t in self.by_type else "-" for t in TYPES]
        float32 = f"{cells[0]} | {self.cpu} | {self.in_roundings()}"
        return f"| {op} | {float32} | {' | '.join(cells[1:])} | {self.of_bound:.2f} |"

    def in_roundings(self) -> str:
        return " / ".join(number(e.largest) if e.count else "-" for e in (self.roundings, self.cpu_roundings))


def measure(op: str, registrations: list, device: str = "/xpu:0") -> Row:
    """Runs all cases of an op once."""
    row = Row()
    for registration in registrations:
        for call in calls_of(op, CASES[op], registration.type_map):
            prepared = Prepared(call)
            expected = prepared._expected
            if expected is None or expected._wide is None:
                continue
            with hard_placement(), nothing_folded():
                got = _call(op, prepared.kwargs, device)
            row.of_bound = max(row.of_bound, prepared.compare([got], None, "eager"))
            for i in range(expected.count):
                wide = expected._wide[1][i]
                if got[i].dtype not in TYPES or not wider(wide.dtype, got[i].dtype):
                    continue
                exact = rounding.as_double(wide)
                row.by_type[got[i].dtype].add(units(got[i], exact))
                if got[i].dtype == tf.float32 == expected.native[i].dtype:
                    row.cpu.add(units(expected.native[i], exact))
                    row.roundings.add(expected.in_roundings(i, got[i]))
                    row.cpu_roundings.add(expected.in_roundings(i, expected.native[i]))
    return row


def measured(pattern: str = ".*") -> dict[str, Row]:
    by_op = collections.defaultdict(list)
    for r in all_registrations():
        if r.op not in ADOPTED and re.fullmatch(pattern, r.op):
            by_op[r.op].append(r)
    return {op: measure(op, by_op[op]) for op in sorted(by_op)}


def processor() -> str:
    """The model and the number of processors that there are."""
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{len(names)} processors of {names[0] if names else platform.machine()}"


def render(rows: dict[str, Row]) -> str:
    """The page's text."""
    lines = [HEADER.format(machine=processor(), version=tf.__version__), SUBNORMAL]
    inexact = {op: row for op, row in rows.items() if row.by_type and not row.exact}
    lines += [f"{len(inexact)} ops.", ""]
    for family, cases in FAMILIES.items():
        ops = [op for op in inexact if op in cases]
        if not ops:
            continue
        lines += [f"## {family.replace('_', ' and ')}", ""]
        lines += ["| op | float32 | float32 on the CPU | roundings | float16 | bfloat16 | complex64 | of bound |"]
        lines += ["|---|---|---|---|---|---|---|---|", *(inexact[op].line(op) for op in ops), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", help="a regular expression for whole names: prints the rows of these alone")
    options = parser.parse_args()
    if options.ops:
        print("\n".join(row.line(op) for op, row in measured(options.ops).items()))
    else:
        from tests.sweep import functions

        PATH.write_text(render(measured()))
        functions.write()
