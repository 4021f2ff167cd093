"""The hooks in C++ (tensorflow_plugin/tf_internals): all are on, and a program bears it if the check of one fails."""

import re

import pytest

from tensorflow_xpu.hooks.internals import MAY_BE_LEFT_OUT, REQUIRED
from tensorflow_xpu.hooks.runtime import interop_module
from tests.hooks import each_off
from tests.hooks.lies import outcome_of, wrong_steps
from tests.hooks.mutations import differences
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def judge(name, found):
    assert wrong_steps(name, found["results"]) == [], found["results"]


def test_all_are_on(xpu_device, all_hooks):
    code = """
        import json
        import tensorflow as tf, tensorflow_xpu
        from tensorflow_xpu import _core
        with tf.device("/xpu:0"):
            tf.function(lambda x: x + 1)(tf.constant(1.0)).numpy()
        print(json.dumps({row["name"]: row["state"] for row in _core.internals()}))
    """
    outcome = run_code(code)
    assert outcome.json == dict.fromkeys((*REQUIRED, *MAY_BE_LEFT_OUT), "on"), outcome
    assert outcome.warnings == []


def test_a_failing_check_costs_a_line(xpu_device, all_hooks):
    """The quick form of the next test."""
    lies = {"TF_XPU_FAULT": "internal=clusters:lie@2,internal=shapes:lie"}
    found, lines, outcome = outcome_of("/cpu:0,/xpu:0", lies, ("loop", "compiled", "exchanged", "error"))
    assert differences(found["results"], found["others"]["/cpu:0"]) == [], found
    starts = [re.match(r"tensorflow_xpu: the hook (\w+) is off: ", line)[1] for line in lines]
    assert starts == ["clusters", "shapes"], outcome
    assert found["states"]["clusters"].startswith("off: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", MAY_BE_LEFT_OUT)
def test_each_failing_check_costs_a_line_and_no_result(name, xpu_device, all_hooks):
    found, _, outcome = outcome_of("/xpu:0", {"TF_XPU_FAULT": f"internal={name}:lie"})
    judge(name, found)
    said = re.findall(r"^tensorflow_xpu: the hooks? (.*?) (?:is|are) off: ", outcome.stderr, re.MULTILINE)
    assert said == [name], outcome
    off = {hook for hook, state in found["states"].items() if state != "on"}
    assert off == {name} | each_off.OFF_WITH.get(name, set())
    needing = {hook for hook, state in found["in_python"].items() if f"needs {name}, which is off" in state}
    assert needing == each_off.OFF_WITH_IN_PYTHON.get(name, set())


@pytest.mark.parametrize("name", ["eager_tensors", "holders", "shapes", "thread_state"])
def test_each_lie_is_noticed(name, xpu_device):
    """As in tf_internals/checks_test.cc, for those that need Python."""
    check = interop_module().check_hook
    count, why = check(name, 0)
    assert count > 5 and why == ""
    for lie in range(1, count + 1):
        observations, why = check(name, lie)
        assert why and observations == lie, (name, lie, why)
    assert check(name, 0) == (count, ""), "a check leaves nothing behind"


@pytest.mark.parametrize("name", ["eager_tensors", "thread_state"])
def test_what_needs_a_hook_is_off_with_it(name, xpu_device, all_hooks):
    """By option in silence, by a failing check with the line of that hook alone; the doctor shows both."""
    code = """
        import json
        import tensorflow as tf, tensorflow_xpu
        from tensorflow_xpu import _core
        f = tf.function(lambda x: x + 1)
        assert [float(f(tf.constant(1.0))) for _ in range(3)] == [2, 2, 2]
        states = {hook.name: hook.state for hook in tensorflow_xpu.hooks.HOOKS}
        print(json.dumps([states, {row["name"]: row["state"] for row in _core.internals()}]))
    """
    for environment, state, lines in (
        ({"TF_XPU_HOOKS_WITHOUT": name}, "off by option (TF_XPU_HOOKS_WITHOUT)", 0),
        ({"TF_XPU_FAULT": f"internal={name}:lie"}, "off: ", 1),
    ):
        outcome = run_code(code, environment=environment)
        in_python, in_cpp = outcome.json
        assert in_cpp[name].startswith(state), outcome
        assert len(outcome.warnings) == lines, outcome
        needing = {
            hook for hook, its in in_python.items() if its.startswith(f"off since it needs {name}, which is off")
        }
        assert needing == each_off.OFF_WITH_IN_PYTHON[name], outcome
        needing = {hook for hook, its in in_cpp.items() if its.startswith(f"off: it needs {name}, which is off")}
        assert needing == each_off.OFF_WITH.get(name, set()), outcome


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUIRED)
def test_without_a_required_one_there_is_no_xpu(name):
    code = """
        import tensorflow as tf
        print(tf.config.list_physical_devices(), tf.function(lambda x: x + 1)(tf.constant(1.0)).numpy())
    """
    outcome = run_code(code, environment={"TF_XPU_FAULT": f"internal={name}:lie"})
    assert "XPU" not in outcome.stdout and "2.0" in outcome.stdout, outcome
    assert len(outcome.warnings) == 1
    assert f"TensorFlow's {name} are not built as expected" in outcome.warnings[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", each_off.rows())
def test_each_hook_left_out_costs_no_result(name, xpu_device, all_hooks):
    """Those in Python, too; the whole suite runs without one hook a day (tests/hooks/each_off.py)."""
    found, lines, outcome = outcome_of("/xpu:0", each_off.rows()[name])
    judge(name, found)
    assert lines == [], outcome


@pytest.mark.slow
def test_options_leave_them_out_in_silence(xpu_device, all_hooks):
    names = ("jit", "clusters", "shapes", "reading")
    found, lines, outcome = outcome_of("/xpu:0", {"TF_XPU_HOOKS_WITHOUT": ",".join(names)})
    judge("", found)
    assert lines == [], outcome
    off = {hook for hook, state in found["states"].items() if state == "off by option (TF_XPU_HOOKS_WITHOUT)"}
    assert off == set(names) - {"reading"}
