"""Every kernel registered for XPU runs, and agrees with the CPU; every registration makes sense and has a case."""

import collections
import datetime
import functools
import os
import zlib

import pytest
import tensorflow as tf

from tests.sweep import absent, document, traits
from tests.sweep.adopted import OPS as ADOPTED
from tests.sweep.cases import CASES
from tests.sweep.registrations import ON_DEVICE, ON_HOST, Registration, all_registrations, problems
from tests.sweep.runner import calls_of, run_calls

REGISTRATIONS = all_registrations()
BY_OP = collections.defaultdict(list)
for _r in REGISTRATIONS:
    BY_OP[_r.op].append(_r)


def test_kernels_are_registered():
    assert len(REGISTRATIONS) > 500


def test_registrations_are_sound():
    assert problems(REGISTRATIONS) == []


def test_unsound_registrations_are_found():
    """The check itself: each kind of mistake is named."""
    import tensorflow as tf

    def r(op, types, host=()):
        return Registration(op, tuple(types), tuple(host), "", 0)

    add = r("AddV2", [("T", tf.float32)])
    assert "registered 2 times" in problems([add, add])[0]
    assert "no op of this name" in problems([r("AddV9", [])])[0]
    assert "no attribute 'Q'" in problems([r("AddV2", [("Q", tf.float32)])])[0]
    assert "does not allow bool" in problems([r("Exp", [("T", tf.bool)])])[0]
    assert "host argument 'nope'" in problems([r("AddV2", [("T", tf.float32)], ["nope"])])[0]
    assert "also matches" in problems([add, r("AddV2", [])])[0]


def test_every_op_has_cases():
    """Or is TensorFlow's own, and tests/training/test_datasets.py runs it."""
    assert sorted(set(BY_OP) - set(CASES) - set(ADOPTED)) == []
    assert sorted(set(CASES) & set(ADOPTED)) == []


def test_absent_ops_are_absent():
    assert absent.problems(set(BY_OP)) == []
    assert absent.problems({"TopK"}) == ["TopK has a kernel"]


def not_adopted(ops, ours, of_tensorflow):
    """Those of the ops whose registrations are not exactly the ones that TensorFlow has for GPUs."""
    return sorted(
        op
        for op in ops
        if {r for r in ours if r.op == op} != {r for r in of_tensorflow if r.op == op} or op not in BY_OP
    )


def test_adopted_ops_are_tensorflows():
    """Nothing else may do without cases."""
    of_tensorflow = all_registrations("GPU")
    assert not_adopted(ADOPTED, REGISTRATIONS, of_tensorflow) == []
    assert not_adopted(["AddV2", "IteratorV2", "NotThere"], REGISTRATIONS, of_tensorflow) == ["AddV2", "NotThere"]


def of_today(registrations, at_most, day):
    """So many of an op's kernels, all if that is 0; the next day the next ones, until all have had their turn."""
    n = len(registrations)
    if at_most == 0 or n <= at_most:
        return registrations
    first = zlib.crc32(registrations[0].op.encode()) + day * at_most
    return [registrations[(first + i) % n] for i in range(at_most)]


def test_all_kernels_have_their_day():
    for n in (1, 4, 5, 13):
        some = [Registration("Add", (("T", i),), (), "", 0) for i in range(n)]
        assert of_today(some, 0, 7) == some
        days = -(-n // 4)
        seen = [r for day in range(100, 100 + days) for r in of_today(some, 4, day)]
        assert set(seen) == set(some)
        assert len(seen) == (n if n <= 4 else 4 * days)


# XPU_SWEEP_KERNELS: of each op so many kernels, for runs that have no time for all (tools/run_tests.py).
AT_MOST = int(os.environ.get("XPU_SWEEP_KERNELS", "0"))
TODAY = int(os.environ.get("XPU_SWEEP_DAY") or datetime.datetime.now(datetime.timezone.utc).toordinal())


@pytest.mark.parametrize("op", sorted(set(BY_OP) - set(ADOPTED)))
def test_op(op, xpu_device):
    calls = []
    for registration in of_today(BY_OP[op], AT_MOST, TODAY):
        chosen = calls_of(op, CASES.get(op, []), registration.type_map)
        assert chosen, f"{registration} has no case that runs it"
        calls += chosen
    with traits.Watch() as watch:
        run_calls(op, calls, device=xpu_device)
    all_kernels = AT_MOST == 0 or len(BY_OP[op]) <= AT_MOST
    assert traits.problems(op, watch, traits.has_variable(calls), all_kernels) == []


def test_wrong_traits_are_found():
    """The check itself: each kind of mistake is named, and right traits are none."""

    def problems(op, waited=(), locked=(), has_variable=False):
        watch = traits.Watch()
        watch.waited, watch.locked_to_write = set(waited), set(locked)
        return "".join(traits.problems(op, watch, has_variable, all_kernels=True))

    assert "Tanh: a kernel waited" in problems("Tanh", waited=["Tanh"])
    assert "Where: no kernel waited" in problems("Where")
    assert "ResourceGather: it locked a variable" in problems("ResourceGather", locked=["ResourceGather"])
    assert "AssignAddVariableOp: it locked no variable" in problems("AssignAddVariableOp", has_variable=True)
    assert problems("Where", waited=["Where"]) == problems("Tanh", waited=["Where"]) == ""
    assert problems("ResourceGather", has_variable=True) == ""


# TensorFlow's own kernels with a label of the plugin's: tests/graphs/test_host_values.py runs them.
OF_TENSORFLOW = ("ExpandDims", "Reshape", "Squeeze")


def test_traits_fit_registrations():
    of_every_label = [r for label in ("", ON_DEVICE, ON_HOST) for r in all_registrations(label=label)]
    ours = [r for r in of_every_label if r.op not in (*ADOPTED, *OF_TENSORFLOW)]
    assert traits.registration_problems(ours) == []


@functools.cache
def labelled():
    """The kernels that graph passes choose, by op and label: of integers that are data, and of truths in host memory.

    (Where random numbers start, and lists of tensors, is for tests of those.)
    """
    kernels = collections.defaultdict(list)
    for r in all_registrations(label=ON_DEVICE):
        if tf.int32 in r.type_map.values() and not r.op.startswith("Stateless") and r.op not in OF_TENSORFLOW:
            kernels[r.op, ON_DEVICE].append(r)
    for r in all_registrations(label=ON_HOST):
        if not r.op.startswith("TensorList"):
            kernels[r.op, ON_HOST].append(r)
    return kernels


def test_graph_passes_have_kernels_to_choose():
    integers = {op for op, label in labelled() if label == ON_DEVICE}
    truths = {op for op, label in labelled() if label == ON_HOST}
    assert {"AddV2", "Cast", "ConcatV2", "GatherV2", "Less", "SelectV2", "StridedSlice"} <= integers
    assert truths == {"All", "Any", "LogicalAnd", "LogicalNot", "LogicalOr"}
    assert problems([r for of_op in labelled().values() for r in of_op]) == []


@pytest.mark.parametrize(("op", "label"), sorted(labelled()))
def test_op_with_a_label(op, label, xpu_device):
    calls = []
    for registration in labelled()[op, label]:
        calls += calls_of(op, CASES.get(op, []), registration.type_map)
    assert calls, "no case runs it"
    run_calls(op, calls, device=xpu_device, label=label)


@pytest.mark.host_only
def test_document_is_current():
    """docs/ops.md says what is registered (on the default backend, which it describes)."""
    document.check()
