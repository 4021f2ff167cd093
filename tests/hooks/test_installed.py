"""Every hook of the package is in force, with each TensorFlow and Keras that the tests run with."""

import importlib
import os
import pathlib
import re

import pytest

from tensorflow_xpu import hooks
from tensorflow_xpu.hooks.patch import Need, UnknownError
from tests.support.installed import ROOT
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

HERE = [hook for hook in hooks.HOOKS if not hook.unless()]


def is_as_expected(state):
    """On; with a nightly of Keras, whose sources nobody knows, after a self-check at least."""
    is_nightly = "dev" in importlib.import_module("keras").__version__
    return state == "on" or (is_nightly and "its self-check" in state and not state.startswith("off"))


def of_itself(hook):
    """The mark of a test of this hook alone."""
    return pytest.mark.of_hooks(hook.name)


def imported():
    importlib.import_module("tensorflow")
    importlib.import_module("keras")


@pytest.mark.parametrize("hook", [pytest.param(hook, id=hook.name, marks=of_itself(hook)) for hook in HERE])
def test_is_on(hook, xpu_device):
    imported()
    assert is_as_expected(hook.state), f"{hook.name}: {hook.state}. {hook.without}"
    for variant in hook.variants():
        try:
            found = [Need.parse(text).find() for text in variant.values()]
        except UnknownError:  # the variant is for other versions
            continue
        if any("xpu" in getattr(getattr(value, "__code__", None), "co_filename", "") for value in found):
            return
    assert hook.name == "tracebacks", "nothing is replaced"


def test_the_hook_for_devices_of_the_type_gpu(xpu_device, all_hooks):
    code = """
        import json
        import tensorflow as tf, keras, tensorflow_xpu
        print(json.dumps({hook["name"]: hook["state"] for hook in tensorflow_xpu.hooks.report()}))
    """
    outcome = run_code(code, environment={"TF_XPU_DEVICE_TYPE": "GPU"})
    assert list(outcome.json) == [hook.name for hook in hooks.HOOKS]
    assert [state for state in outcome.json.values() if not is_as_expected(state)] == [], outcome
    assert outcome.warnings == []


SWITCHES = {
    "all": ({}, []),
    "no speed": ({"TF_XPU_HOOKS": "0"}, ["reading", "calls", "functions", "iterators", "batches"]),
    "some": ({"TF_XPU_HOOKS_WITHOUT": "xla,calls"}, ["xla", "calls"]),
}


@pytest.mark.parametrize("case", SWITCHES)
def test_switches(case, xpu_device, all_hooks):
    environment, off = SWITCHES[case]
    code = """
        import tensorflow as tf, tensorflow_xpu
        from tensorflow.python.framework.ops import _EagerTensorBase
        print([hook["name"] for hook in tensorflow_xpu.hooks.report() if "option" in hook["state"]])
        print(hasattr(_EagerTensorBase._numpy, "__wrapped__"))
    """
    outcome = run_code(code, environment=environment)
    assert outcome.stdout.splitlines() == [str([n for n in hooks.NAMES if n in off]), str("reading" not in off)]
    assert outcome.warnings == []


def test_switches_by_call_and_by_the_file(xpu_device, all_hooks, tmp_path):
    file = tmp_path / "config"
    file.write_text("TF_XPU_HOOKS_WITHOUT=iterators\n")
    code = """
        import tensorflow_xpu
        tensorflow_xpu.configure(hooks=False)
        import tensorflow as tf
        states = {hook["name"]: hook["state"] for hook in tensorflow_xpu.hooks.report()}
        print([states["iterators"], states["reading"], states["ops"]])
    """
    outcome = run_code(code, environment={"TF_XPU_CONFIG": str(file)})
    options = ["off by option (TF_XPU_HOOKS_WITHOUT)", "off by option (TF_XPU_HOOKS=0)", "on"]
    assert outcome.stdout.strip() == str(options), outcome


def test_uninstall_restores_the_very_objects(xpu_device):
    """Those that a TensorFlow and a Keras without the plugin have, and installs all of them again."""
    imported()
    needs = [Need.parse(text) for hook in HERE for variant in hook.variants() for text in variant.values()]
    states = [hook.state for hook in HERE]
    replaced = {}
    for need in needs:
        try:
            found = vars(need.owner())[need.names[-1]]
        except (UnknownError, KeyError):  # of another variant
            continue
        replaced[need.path] = found
    on = [hook for hook in HERE if hook.is_on]
    try:
        assert hooks.uninstall()
        changed = {path for path, now in current(replaced).items() if now is not replaced[path]}
        assert [hook.name for hook in on if not changed & {need.path for need in hook.all_needs()}] == []
        assert len(changed) > 5
        ours = [path for path, now in current(replaced).items() if "xpu" in str(getattr(now, "__code__", ""))]
        assert ours == []
    finally:
        hooks.install("XPU", os.environ.get("TF_XPU_HOOKS", ""), os.environ.get("TF_XPU_HOOKS_WITHOUT", ""))
    others = [hook.state for hook, before in zip(HERE, states, strict=True) if hook.state != before]
    assert [state for state in others if not is_as_expected(state)] == []
    again = {path for path, now in current(replaced).items() if "xpu" in str(getattr(now, "__code__", ""))}
    assert again == changed - {"tensorflow.python.util.traceback_utils:_EXCLUDED_PATHS"}


def current(paths):
    return {path: vars(Need.parse(path).owner())[Need.parse(path).names[-1]] for path in paths}


# Calls that skip a test, with the reasons that tests/README.md allows. None is the state of a hook.
SKIPS = {
    "tests/conftest.py": "the run's time is over",
    "tests/graphs/test_hoisting.py": "the device's memory is not the host's",
    "tests/package/test_interplay.py": "the run's time is over",
    "tests/support/missing_capabilities.py": "the backend lacks a capability",
    "tests/versions/checks.py": "another environment has Keras 2",
}
SKIPPING = re.compile(r"\bpytest\.(?:skip|importorskip|xfail)\(|\bmark\.(?:skip|skipif|xfail)\b|unittest\.skip")


def test_no_test_is_skipped_where_a_hook_is_off():
    """A hook that is off by mistake fails tests. Those with the mark of_hooks are left out by option alone."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != pathlib.Path(__file__)]
    skipping = {str(path.relative_to(ROOT)) for path in files if SKIPPING.search(path.read_text())}
    assert skipping == set(SKIPS)


# Every `except` and `suppress` of whatever is raised, and the reason for each.
CATCH_ALL = {
    "__init__.py": "the import of the package says what failed, and goes on",
    "_probe.py": "the doctor examines what may be broken, and says what it met",
    "_trace.py": "the traced program goes on, and the report says what failed",
    "_worker.py": "a worker's failure is told to the process that asked",
    "hooks/features.py": "a private function may raise anything; an error of ours names it",
    "hooks/patch.py": "a private function may raise anything; the hook is out, and a line names it",
    "hooks/start.py": "a broken installation costs a line, not the import of TensorFlow",
    "hooks/trial.py": "whatever a self-check meets keeps the hook off, with a line",
}
EVERYTHING = re.compile(r"^\s*except(?: \(?(?:Base)?Exception\b.*)?:|suppress\((?:Base)?Exception\)", re.MULTILINE)
RAISES_AGAIN = re.compile(r"except BaseException:\n(?:.*\n)*?\s+raise\n")


def test_every_catch_of_everything_has_a_reason():
    package = ROOT / "python" / "tensorflow_xpu"
    catching = set()
    for path in package.rglob("*.py"):
        if EVERYTHING.search(RAISES_AGAIN.sub("", path.read_text())):
            catching.add(str(path.relative_to(package)))
    assert catching == set(CATCH_ALL)
