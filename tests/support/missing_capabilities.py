"""The capabilities that a backend may lack: tests of them are skipped there (`needs`), and all else has to run.

A backend that denies what an op needs has no kernel for it (docs/architecture.md). TensorFlow's registry says if it has
a capability of MAY_LACK, by the kernel of one op. All other kernels are compared with the default backend's in
tests/runtime/test_opencl.py. So an op that is missing by mistake fails there, and in its own tests.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Iterable

import pytest

from tensorflow_xpu import SUBDEVICE_TYPES
from tests.support.installed import is_on_host_memory

BACKEND = os.environ.get("TF_XPU_SUBDEVICE") or SUBDEVICE_TYPES[0]


@dataclasses.dataclass(frozen=True)
class Lack:
    """Something that a backend may be without, in words.

    kernel: one that needs it, as Registration prints it (tests/sweep/registrations.py).
    kernels: a pattern of all that need it.
    """

    words: str
    kernel: str
    kernels: str


MAY_LACK = {
    "gamma": Lack(
        "gamma numbers with the CPU's bits, and numbers of bounded normal distributions",
        "StatelessRandomGammaV3(dtype=float32)",
        r"(StatelessRandomGamma|(Stateless)?ParameterizedTruncatedNormal)(V[23])?\(.*",
    ),
    "bytes": Lack(
        "products of 8-bit integers with 32-bit results",
        "BatchMatMulV3(Ta=int8, Tb=int8, Tout=int32)",
        r"BatchMatMulV3\(Ta=u?int8, Tb=u?int8, Tout=int32\)",
    ),
    "boxes": Lack(
        "selection of the boxes of all classes",
        "CombinedNonMaxSuppression()",
        r"CombinedNonMaxSuppression\(\)",
    ),
}


@functools.cache
def kernels() -> frozenset[str]:
    """The kernels that are registered in this process."""
    from tests.sweep.registrations import all_registrations

    return frozenset(map(str, all_registrations()))


def lacks(what: str) -> bool:
    """True if the backend under test says that it lacks this."""
    return not is_on_host_memory() and MAY_LACK[what].kernel not in kernels()


def needs(what: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped where the backend lacks something."""
    return pytest.mark.skipif(lacks(what), reason=f"no {MAY_LACK[what].words} on {BACKEND} (docs/opencl.md)")


def needing(what: str, *values: object):
    """A parameter set of a test, which is skipped where the backend lacks something."""
    return pytest.param(*values, marks=needs(what))


def marked(names: Iterable[str], of: dict[str, str]) -> list:
    """The names of cases, for parametrize: those that match a pattern of `of` need what is its key."""
    return [
        next((needing(what, name) for what, pattern in of.items() if re.fullmatch(pattern, name)), name)
        for name in names
    ]


def unexplained(missing: Iterable[str], there: frozenset[str]) -> list[str]:
    """Those of the missing kernels that nothing explains which a backend lacks whose kernels are `there`."""
    lacking = [lack.kernels for lack in MAY_LACK.values() if lack.kernel not in there]
    return sorted(kernel for kernel in missing if not any(re.fullmatch(pattern, kernel) for pattern in lacking))
