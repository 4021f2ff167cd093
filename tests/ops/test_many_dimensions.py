"""Tensors of more dimensions than anybody counts with: every op computes what NumPy does."""

import pytest

from tests.ops import ranks

# Extents of 1 and others in an order in which few axes can be walked as one. Also more of those than shapes hold
# without memory of their own.
SMALL = [2, 1, 2, 3, 1, 2, 2, 1, 1, 3, 2, 2, 1, 2, 2, 1, 2, 1, 2, 2]
STATE = [2] * 17
LARGE = [[3, *[2] * 16, 3], [1, 2, 1, *[2] * 5, 1, *[2] * 5, 1, *[2] * 6, 1, 2, 3]]

# Ops that cannot be folded in a state vector of 17 qubits, by their kind.
UNFOLDED = [
    "transpose",
    "transpose in between",
    "transpose of int32",
    "conjugate transpose",
    "multiply where each has axes of 1",
    "broadcast_to",
    "reverse",
    "strided slice",
    "sum of every other axis",
    "roll of all",
    "einsum that sums",
    "tensordot of axes",
    "function",
    "function of sums",
]


@pytest.mark.parametrize("name", ranks.CASES)
def test_of_few_elements(xpu_device, name):
    assert ranks.outcome(name, SMALL, xpu_device) is None


@pytest.mark.parametrize("name", UNFOLDED)
def test_of_state_vectors(xpu_device, name):
    assert ranks.outcome(name, STATE, xpu_device) is None


@pytest.mark.slow
@pytest.mark.parametrize("shape", [STATE, *LARGE], ids=["17", "18", "24"])
@pytest.mark.parametrize("name", ranks.CASES)
def test_of_many_elements(xpu_device, name, shape):
    assert ranks.outcome(name, shape, xpu_device) is None
