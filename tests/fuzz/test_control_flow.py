"""Random functions of nested loops, beside Python functions and other ops that may wait."""

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = pytest.mark.host_only

SEEDS = 16


def outcome_of(first, count, **environment):
    """The seeds that are right and those that differ, from a process that may crash or hang."""
    outcome = run(
        "-m", "tests.fuzz.control_flow", first, count, environment={"PYTHONPATH": ".", **environment}, cwd=ROOT
    )
    return outcome, outcome.stdout.count("is right"), outcome.stdout.count("differs")


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_random_control_flow(block, xpu_device):
    outcome, right, _ = outcome_of(block * SEEDS, SEEDS)
    assert outcome.returncode == 0 and right == SEEDS, outcome


@pytest.mark.slow
def test_a_wrong_element_is_seen(xpu_device):
    _, right, wrong = outcome_of(0, 4, TF_XPU_FAULT="command:result=one")
    assert wrong > right
