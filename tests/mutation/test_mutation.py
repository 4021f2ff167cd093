"""The mutation tool itself, on a few ops: it sees what the sweep notices, what survives, and what is explained."""

import pytest

from tests.mutation import __main__ as mutation

pytestmark = pytest.mark.host_only


def test_faults_are_noticed():
    """One op of each family, and one in a session, which could fold its constants: all kernels of each notice."""
    lines = []
    ops = "MatMul|Transpose|RandomUniform|ResourceApplyAdam|UnsortedSegmentSum|Softmax|TensorListGetItem"
    assert mutation.report(["scale"], ops, None, lines.append) == []
    kernels, noticed = map(int, lines[-1].split("|")[2:4])
    assert kernels == noticed > 40, lines


def test_a_survivor_is_named():
    """ZerosLike of zeros; were it not explained, it would be reported."""
    found = mutation.run_fault("zeros", "ZerosLike|OnesLike", None)
    assert {(op, verdict) for op, _, verdict in found} == {("ZerosLike", "survived"), ("OnesLike", "noticed")}
    assert mutation.explained("ZerosLike", "float32", "zeros")
    assert not mutation.explained("OnesLike", "float32", "zeros")
    assert mutation.explained("Cast", "half,half", "one")
    assert not mutation.explained("Cast", "half,float32", "one")
