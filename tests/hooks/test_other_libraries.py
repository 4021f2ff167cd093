"""Other libraries that replace the same functions, reloaded modules, and half a package (other_libraries.py)."""

import functools

import pytest

from tensorflow_xpu import hooks
from tensorflow_xpu.hooks.patch import SPEED
from tests.support.installed import ROOT
from tests.support.processes import run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.slow]

FOR_SPEED = {hook.name for hook in hooks.HOOKS if hook.kind == SPEED}


@pytest.fixture(scope="module")
def outcome_of(tmp_path_factory, xpu_device):
    @functools.cache
    def all_of_them():
        folder = tmp_path_factory.mktemp("half")
        outcome = run("-m", "tests.hooks.other_libraries", folder, cwd=ROOT, timeout=900)
        assert outcome.returncode == 0, outcome
        return outcome.json

    return lambda case: all_of_them()[case]


def test_another_library_comes_before(outcome_of):
    """The hooks for speed would leave out what it does: they are off, with a line for each reason."""
    found = outcome_of("before")
    assert (found["different"], set(found["off"])) == ([], FOR_SPEED), found
    said = " ".join(found["lines"])
    assert len(found["lines"]) <= len(FOR_SPEED) and all(name in said for name in FOR_SPEED), found
    assert all("__main__ has replaced" in line for line in found["lines"]), found
    assert found["called"] > 5


def test_another_library_comes_after(outcome_of):
    """It is around the hooks; it stays when they go."""
    found = outcome_of("after")
    assert (found["different"], found["again"], found["off"], found["lines"]) == ([], [], [], []), found
    assert not found["restored"] and found["called"] > 5


def test_reloaded_modules(outcome_of):
    found = outcome_of("reload")
    assert (found["different"], found["again"], found["off"], found["lines"]) == ([], [], [], []), found


def test_each_module_reloaded_after_use(xpu_device):
    """Functions that were called before, and new threads, do what they do without the hooks."""
    outcome = run("-m", "tests.hooks.other_libraries", "--reload", cwd=ROOT, timeout=1200)
    assert outcome.returncode == 0, outcome
    found = outcome.json
    assert {name: steps for name, steps in found.items() if steps} == {}, outcome
    needed = {"tensorflow", "keras", "tensorflow.python.eager.context", "tensorflow.python.saved_model.save_context"}
    assert needed <= set(found) and len(found) > 20, found


def test_files_that_are_not_those_in_memory(outcome_of):
    """Their sources are not known; the self-check sees what is in memory, and that is right."""
    found = outcome_of("half")
    assert found["checked"] == ["batches"], found
    assert (found["different"], found["off"], found["lines"]) == ([], [], []), found
