"""`python -m tensorflow_xpu doctor`: says that all is well, or what is wrong; never dies of what it examines."""

import json
import re
import shutil

import pytest

import tensorflow_xpu
from tests.support.installed import BACKENDS, ROOT, TENSORFLOW
from tests.support.processes import run

pytestmark = pytest.mark.without_isolation


def doctor(*arguments, **options):
    return run("-m", "tensorflow_xpu", "doctor", *arguments, **options)


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_is_well(xpu_device, backend):
    outcome = doctor(environment={"TF_XPU_SUBDEVICE": backend, "TF_XPU_DEVICE_COUNT": "2"})
    assert outcome.returncode == 0, outcome
    for words in (
        "All is well",
        f"backend {backend}",
        "XPU:0",
        "XPU:1",
        "are right",
        f"built for TensorFlow {TENSORFLOW}",
    ):
        assert words in outcome.stdout, outcome
    assert re.search(r"ok  hook xla +on: Keras does not ask for XLA", outcome.stdout), outcome
    assert "TF_XPU_DEVICE_COUNT" in outcome.stdout
    assert "\033[" not in outcome.stdout, "colours are for terminals"


def test_it_names_the_c_functions_of_dlpack(xpu_device):
    outcome = doctor()
    assert "C exchange API" in outcome.stdout, outcome


def test_json(xpu_device):
    outcome = doctor("--json")
    assert outcome.returncode == 0, outcome
    report = json.loads(outcome.stdout)
    assert report["ok"] is True
    assert report["version"] == tensorflow_xpu.__version__
    assert report["observed"]["loader"]["active"] is True
    assert report["observed"]["core"]["devices"][0]["device_type"] == "XPU"
    assert max(report["observed"]["compute"]["max_error"].values()) < 1e-4
    assert "XPU:0" in report["observed"]["compute"]["device"]


def problem(outcome, topic, *words):
    """Asserts that the doctor found one problem, of this topic, and named it in these words."""
    assert outcome.returncode == 1, outcome
    report = json.loads(outcome.stdout)
    assert report["ok"] is False
    problems = [finding for finding in report["findings"] if finding["state"] == "problem"]
    assert [finding["topic"] for finding in problems] == [topic], outcome
    for word in words:
        assert word in problems[0]["text"] + problems[0]["fix"], outcome


def test_disabled():
    problem(doctor("--json", environment={"TF_XPU_DISABLE": "1"}), "plugin", "TF_XPU_DISABLE=1", "unset TF_XPU_DISABLE")


def test_hidden_by_tensorflow(xpu_device):
    problem(
        doctor("--json", environment={"TF_ENABLED_DEVICE_TYPES": "CPU"}), "devices", "unset TF_ENABLED_DEVICE_TYPES"
    )


def test_an_unknown_variable_and_a_bad_value(xpu_device, tmp_path):
    file = tmp_path / "config"
    file.write_text("TF_XPU_DEVICE_COUNT=2\nTF_XPU_FUSION=0\n")
    bad = {"TF_XPU_DEVICE_CUONT": "2", "TF_XPU_DEVICE_COUNT": "two", "TF_XPU_CONFIG": str(file)}
    outcome = doctor(environment=bad)
    assert outcome.returncode == 0, outcome
    assert re.search(rf"configuration +{file}\n", outcome.stdout), outcome
    assert re.search(rf"TF_XPU_FUSION +0 \({file}\)\n", outcome.stdout), outcome
    assert f"2 ({file})" not in outcome.stdout, "the environment goes before it"
    assert "TF_XPU_DEVICE_CUONT" in outcome.stdout
    assert "there is no such variable" in outcome.stdout
    assert "TF_XPU_DEVICE_COUNT=two is ignored" in outcome.stdout


@pytest.mark.host_only
def test_a_missing_exchange_api(plugin_site, all_hooks):
    for module in plugin_site.package.glob("_interop_*.so"):
        module.unlink()
    outcome = doctor(environment=plugin_site.environment(), python=plugin_site.python)
    assert outcome.returncode == 0, outcome
    assert "in Python only, by copy: " in outcome.stdout, outcome
    assert re.search(
        r"--  hook reading +off: the wheel has no interop module .*\n +-> Reading a tensor", outcome.stdout
    )


@pytest.mark.host_only
def test_a_missing_core(plugin_site):
    shutil.rmtree(plugin_site.lib)
    outcome = doctor(environment=plugin_site.environment(), python=plugin_site.python)
    assert outcome.returncode == 1, outcome
    assert "none in" in outcome.stdout
    assert "--force-reinstall" in outcome.stdout


@pytest.mark.host_only
def test_no_tensorflow(plugin_site):
    """The one to install is one that there is a core for."""
    for other in set(plugin_site.lib.glob("libtensorflow_xpu_core_*.so")) - {plugin_site.core}:
        other.unlink()
    outcome = doctor("--json", environment={"PYTHONPATH": str(plugin_site.folder)}, python=plugin_site.python)
    problem(outcome, "TensorFlow", "not installed", f'pip install "tensorflow-cpu=={TENSORFLOW.rpartition(".")[0]}.*"')


@pytest.mark.host_only
def test_tensorflow_dies(xpu_device, plugin_site, compile_plugin):
    """Another plugin that comes later and takes the same device type ends the process that imports TensorFlow."""
    other = compile_plugin(ROOT / "tests" / "support" / "other_owner.cc", "later")
    environment = plugin_site.environment(TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(other))
    outcome = doctor("--json", environment=environment, python=plugin_site.python)
    problem(outcome, "import tensorflow", "SIGABRT", "Duplicate registration of device factory")
    assert "later.so" in outcome.stdout


@pytest.mark.parametrize("arguments", [(), ("docter",), ("doctor", "--yaml")])
def test_wrong_usage(arguments):
    outcome = run("-m", "tensorflow_xpu", *arguments)
    assert outcome.returncode == 2, outcome
    assert "usage: python -m tensorflow_xpu" in outcome.stderr
