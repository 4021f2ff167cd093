"""The hooks bear calls within calls, and several threads at once (tests/hooks/nested.py)."""

import pytest

from tests.hooks.mutations import differences
from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def outcome_of(*arguments):
    outcome = run("-m", "tests.hooks.nested", *arguments, cwd=ROOT, timeout=600)
    assert outcome.returncode == 0, outcome
    found = outcome.json
    assert [step for step, numbers in found["cpu"].items() if isinstance(numbers, str) or not numbers] == [], found
    assert differences(found["xpu"], found["cpu"]) == [], found
    assert outcome.warnings == [], outcome
    return found["states"]


def test_some(xpu_device):
    """The quick form of the next test."""
    states = outcome_of("in_a_map", "in_a_function", "taken_out_and_put_back")
    assert [name for name, state in states.items() if state.startswith(("off: ", "waits"))] == [], states


@pytest.mark.slow
def test_all(xpu_device):
    states = outcome_of()
    assert [name for name, state in states.items() if state.startswith(("off: ", "waits"))] == [], states


@pytest.mark.slow
def test_unknown_sources(xpu_device):
    """The self-checks are decided somewhere within; then all hooks are on."""
    states = outcome_of("unknown")
    assert [name for name, state in states.items() if state.startswith(("off: ", "waits"))] == [], states
