"""Random networks of quantized layers, and that the fuzzer sees a scale that is wrong and a weight that is old."""

import numpy as np
import pytest

from tests.fuzz import quantized
from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = pytest.mark.host_only

SEEDS = 20


def outcome_of(first, count):
    """The outcome and the number of seeds that are right, from a process that may crash or hang."""
    environment = {"PYTHONPATH": "."}
    outcome = run("-m", "tests.fuzz.quantized", first, count, environment=environment, cwd=ROOT, timeout=1200)
    return outcome, outcome.stdout.count("is right")


def test_random_networks(xpu_device):
    outcome, right = outcome_of(0, 2)
    assert outcome.returncode == 0 and right == 2, outcome


@pytest.mark.slow
@pytest.mark.parametrize("block", range(3))
def test_more_random_networks(block, xpu_device):
    outcome, right = outcome_of(1000 + block * SEEDS, SEEDS)
    assert outcome.returncode == 0 and right == SEEDS, outcome


def scaled(network, changes):
    """Scales that are wrong by five percent, from the call that changes a scale on."""
    changes = {
        index: value * np.float32(1.05 if network.model.weights[index].name.endswith("scale") else 1)
        for index, value in changes.items()
    }
    quantized.assign(network, changes)


def stale(network, changes):
    """Weights of which the last one stays as it was."""
    quantized.assign(network, dict(list(changes.items())[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("change", [scaled, stale])
def test_a_wrong_weight_is_seen(change, xpu_device):
    seen = [bool(quantized.differences(seed, change=change)) for seed in range(1000, 1008)]
    assert sum(seen) >= 5, seen  # some seeds change no scale, or none that matters
