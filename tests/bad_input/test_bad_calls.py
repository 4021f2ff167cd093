"""Spoiled calls of ops are refused on the XPU as on the CPU: some of them, all of them, and with memory isolated."""

import collections
import os
import random

import pytest

from tests.bad_input import spoil
from tests.bad_input.excused import EXCUSED, excused
from tests.bad_input.verdicts import CRASH, Answer, in_processes, verdicts

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

SEED = 0


def check(ops, count, seed=SEED, traced=False, **environment):
    """Draws so many calls of each op. Returns them with their verdicts, of which none is wrong."""
    calls = [call for op in ops for call in spoil.draw(op, count, seed, traced)]
    assert len(set(calls)) == len(calls)
    judged = list(zip(calls, verdicts(calls, environment), strict=True))
    wrong = [
        f"{v.kind}: {call}\n{call.to_json()}\n{v.details}" for call, v in judged if v.wrong and not excused(call, v)
    ]
    assert not wrong, "\n\n".join([f"{len(wrong)} of {len(calls)} calls", *wrong[:20]])
    return judged


def kinds(judged):
    return collections.Counter(verdict.kind for _, verdict in judged)


def test_some_ops(xpu_device):
    ops = random.Random(SEED).sample(list(spoil.choices()), 40)
    found = kinds(check(ops, 4))
    assert found["refused"] > 40 and found["accepted"] > 40, found


def test_some_ops_in_functions(xpu_device):
    """Where the graph knows no shapes, so that shape inference cannot refuse them before the kernel does."""
    ops = random.Random(SEED + 1).sample(list(spoil.choices()), 40)
    found = kinds(check(ops, 3, traced=True))
    assert found["refused"] > 30 and found["accepted"] > 30, found


@pytest.mark.slow
def test_all_ops(xpu_device):
    """Five changes of each op, all of them distinct, of which a thousand and more are refused."""
    judged = check(spoil.choices(), 5)
    assert kinds(judged)["refused"] >= 1000, kinds(judged)
    assert len({call.op for call, _ in judged}) > 550
    used = {excused(call, verdict) for call, verdict in judged if verdict.wrong}
    assert len(used) > len(EXCUSED) / 3, f"rows that no call needed: {[row for row in EXCUSED if row not in used]}"


@pytest.mark.slow
def test_all_ops_with_isolated_memory(xpu_device):
    check(spoil.choices(), 3, seed=1, TF_XPU_ISOLATE_MEMORY="1")


@pytest.mark.slow
def test_all_ops_in_functions(xpu_device):
    judged = check(spoil.choices(), 3, seed=3, traced=True)
    assert kinds(judged)["refused"] >= 600, kinds(judged)


# The rest is about the test itself.


def test_other_results_are_seen(xpu_device):
    calls = [call for op in ("Tanh", "MatMul", "GatherV2") for call in spoil.draw(op, 8)]
    found = kinds(zip(calls, verdicts(calls, {"TF_XPU_FAULT": "command:result=zeros"})))
    assert found["other results"] > 3 and found["refused"] > 3, found


def dies(spoiled, number):
    """Ends its process at two of the calls."""
    if number in (2, 5):
        os.abort()
    return Answer([], "", str(number))


def test_a_crash_is_seen_and_the_rest_runs(xpu_device):
    call = spoil.draw("Tanh", 1)[0]
    said = []
    found = in_processes(dies, [(call, i) for i in range(7)], {}, lambda how: Answer([], CRASH, how), said.append)
    assert [a.error == CRASH for a in found] == [i in (2, 5) for i in range(7)]
    assert "SIGABRT" in found[2].message and [a.message for a in found[:2]] == ["0", "1"]
    assert len(said) == 3


def test_calls_are_drawn_again():
    for op in ("Conv2D", "ConcatV2", "ResourceApplyAdam"):
        calls = spoil.draw(op, 12)
        assert calls == spoil.draw(op, 12) and len({c.change for c in calls}) > 2
        again = [spoil.Spoiled.from_json(c.to_json()) for c in calls]
        assert list(map(str, again)) == list(map(str, calls))
    assert spoil.draw("Conv2D", 12, 1) != spoil.draw("Conv2D", 12, 2)
