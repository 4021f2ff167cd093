"""Every hook of the package is in force, with each TensorFlow and Keras that the tests run with."""

import importlib

import pytest

from tensorflow_xpu import hooks
from tensorflow_xpu.hooks.patch import Need, UnknownError
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

HERE = [hook for hook in hooks.HOOKS if not hook.unless()]


def imported():
    importlib.import_module("tensorflow")
    importlib.import_module("keras")


@pytest.mark.parametrize("hook", HERE, ids=lambda hook: hook.name)
def test_is_on(hook, xpu_device):
    imported()
    assert hook.state == "on", f"{hook.name}: {hook.state}. {hook.without}"
    for variant in hook.variants():
        found = [Need.parse(text) for text in variant.values()]
        replaced = [n for n in found if "xpu" in getattr(getattr(n.find(), "__code__", None), "co_filename", "")]
        if replaced:
            return
    assert hook.name == "tracebacks", "nothing is replaced"


def test_the_hook_for_devices_of_the_type_gpu(xpu_device):
    code = """
        import tensorflow as tf, keras, tensorflow_xpu
        print([hook["state"] for hook in tensorflow_xpu.hooks.report()])
    """
    outcome = run_code(code, environment={"TF_XPU_DEVICE_TYPE": "GPU"})
    assert outcome.stdout.strip() == str(["on"] * len(hooks.HOOKS)), outcome
    assert outcome.warnings == []


SWITCHES = {
    "all": ({}, []),
    "no speed": ({"TF_XPU_HOOKS": "0"}, ["reading", "calls", "functions", "iterators", "batches"]),
    "some": ({"TF_XPU_HOOKS_WITHOUT": "xla,calls"}, ["xla", "calls"]),
}


@pytest.mark.parametrize("case", SWITCHES)
def test_switches(case, xpu_device):
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


def test_switches_by_call_and_by_the_file(xpu_device, tmp_path):
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
    replaced = {}
    for need in needs:
        try:
            found = vars(need.owner())[need.names[-1]]
        except (UnknownError, KeyError):  # of another variant
            continue
        replaced[need.path] = found
    try:
        assert hooks.uninstall()
        changed = {path for path, now in current(replaced).items() if now is not replaced[path]}
        assert len(changed) > 15
        ours = [path for path, now in current(replaced).items() if "xpu" in str(getattr(now, "__code__", ""))]
        assert ours == []
    finally:
        hooks.install()
    assert [hook.state for hook in HERE] == ["on"] * len(HERE)
    again = {path for path, now in current(replaced).items() if "xpu" in str(getattr(now, "__code__", ""))}
    assert again == changed - {"tensorflow.python.util.traceback_utils:_EXCLUDED_PATHS"}


def current(paths):
    return {path: vars(Need.parse(path).owner())[Need.parse(path).names[-1]] for path in paths}
