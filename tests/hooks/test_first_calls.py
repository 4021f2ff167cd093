"""The first call of each hook in threads, in a trace, in a forked child and at a process's end (first_calls.py)."""

import functools

import pytest

from tests.hooks.mutations import differences
from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

PLACES = ("threads", "trace", "child", "exit")


def results(*arguments, environment=()):
    outcome = run("-m", "tests.hooks.first_calls", *arguments, environment=environment, cwd=ROOT, timeout=600)
    assert outcome.returncode == 0, outcome
    assert [line for line in outcome.warnings if "TF_XPU_DISABLE=1" not in line] == [], outcome
    return outcome.json


@functools.cache
def expected(place):
    """The numbers of a TensorFlow without the plugin."""
    found = results(place, environment={"TF_XPU_DISABLE": "1"})
    failed = {step: numbers for step, numbers in found.items() if not numbers or isinstance(numbers, str)}
    assert failed == ({"train": "ValueError: No gradients provided for any variable."} if place == "trace" else {})
    return found


def test_first_calls_of_eight_threads(xpu_device):
    """The quick form of the next test."""
    compare("threads", "unknown")


@pytest.mark.slow
@pytest.mark.parametrize("sources", ["known", "unknown"])
@pytest.mark.parametrize("place", PLACES)
def test_first_calls(place, sources, xpu_device):
    compare(place, sources)


def compare(place, sources):
    found = results(place, sources)
    assert found.keys() == expected(place).keys()
    assert differences(found, expected(place)) == [], found


@pytest.mark.slow
def test_calls_while_modules_are_taken_apart(xpu_device):
    """They end as without the plugin: with a result or an exception, and with the process's own exit code."""
    assert results("teardown") == results("teardown", environment={"TF_XPU_DISABLE": "1"})
