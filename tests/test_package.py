"""The package tensorflow_xpu and the hook that prepares Keras."""

import importlib
import importlib.util
import sys
import types

import pytest

import tensorflow_xpu
from tests.conftest import run_code


def test_list_physical_devices(xpu_device):
    import tensorflow as tf

    devices = tensorflow_xpu.list_physical_devices()
    assert [d.name for d in devices] == [d.name for d in tf.config.list_physical_devices("XPU")]
    for device in devices:
        assert device.device_type == "XPU"
        assert device.subdevice_type == tensorflow_xpu.get_subdevice_mapping()["XPU"]
        assert device.hardware_name
        assert device.memory_bytes >= 2**20
        assert device.gflops is None or device.gflops > 0
        assert device.bandwidth_bytes_per_s is None or device.bandwidth_bytes_per_s > 0
        assert device.numa_node is None or device.numa_node >= 0


def test_tensorflow_names_the_backend(xpu_device):
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("XPU")[0])
    assert details == {"device_name": tensorflow_xpu.get_subdevice_mapping()["XPU"]}


def test_every_device_is_described(xpu_device):
    outcome = run_code(
        """
        import json, tensorflow_xpu
        print(json.dumps([[d.name, d.memory_bytes] for d in tensorflow_xpu.list_physical_devices()]))
        """,
        environment={"TF_XPU_DEVICE_COUNT": "3", "TF_XPU_MEMORY_LIMIT": "64MiB"},
    )
    assert outcome.json == [[f"/physical_device:XPU:{n}", 64 << 20] for n in range(3)], outcome


def test_no_devices():
    outcome = run_code(
        "import json, tensorflow_xpu; print(json.dumps(tensorflow_xpu.list_physical_devices()))",
        environment={"TF_XPU_DISABLE": "1"},
    )
    assert outcome.json == [], outcome


def test_subdevice_types_are_those_of_the_core(xpu_device):
    from tensorflow_xpu._devices import core_description

    description = core_description()
    assert tuple(description["subdevice_types"]) == tensorflow_xpu.SUBDEVICE_TYPES
    names = {variable["name"] for variable in description["variables"]}
    assert {"TF_XPU_DISABLE", "TF_XPU_SUBDEVICE", "TF_XPU_DEVICE_COUNT", "TF_XPU_MEMORY_LIMIT"} <= names


@pytest.mark.parametrize("subdevice", tensorflow_xpu.SUBDEVICE_TYPES)
def test_set_subdevice_mapping(subdevice):
    outcome = run_code(
        f"""
        import json, sys, tensorflow_xpu
        assert "tensorflow" not in sys.modules, "importing the package imports TensorFlow"
        tensorflow_xpu.set_subdevice_mapping({{"XPU": {subdevice!r}}})
        import tensorflow as tf
        print(json.dumps([d.subdevice_type for d in tensorflow_xpu.list_physical_devices()]))
        """
    )
    assert outcome.json == [subdevice], outcome


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"TPU": "XPU_HOST"}, "unknown device type 'TPU': expected one of XPU, GPU"),
        ({"XPU": "XPU_HOST", "GPU": "XPU_HOST"}, "has 2 device types, but all devices have the same"),
        ({"XPU": "XPU_BANANA"}, "unknown subdevice type 'XPU_BANANA': expected one of XPU_HOST, XPU_REFERENCE"),
    ],
)
def test_set_subdevice_mapping_to_what_there_is_not(mapping, message):
    with pytest.raises(ValueError, match=message):
        tensorflow_xpu.set_subdevice_mapping(mapping)


def test_set_subdevice_mapping_too_late(xpu_device):
    now = tensorflow_xpu.get_subdevice_mapping()["XPU"]
    other = next(name for name in tensorflow_xpu.SUBDEVICE_TYPES if name != now)
    tensorflow_xpu.set_subdevice_mapping({"XPU": now})  # changes nothing, so it is not too late
    with pytest.raises(RuntimeError, match=f"{other}.* came after TensorFlow was imported"):
        tensorflow_xpu.set_subdevice_mapping({"XPU": other})


# The hook, against a stand-in for Keras.

TRAINER = "keras.src.trainers.trainer"
HOOK = importlib.util.find_spec("tensorflow_xpu._keras_hook").origin


@pytest.fixture
def fake_keras(tmp_path, monkeypatch):
    """Puts a Keras of a few lines before the real one, and forgets it afterwards."""
    source = "from keras.src import backend\ndef model_supports_jit(model):\n    'doc'\n    return model\n"
    files = {"": "", "src": "", "src/backend": "def backend():\n    return 'tensorflow'\n", "src/trainers": ""}
    for name, text in files.items():
        (tmp_path / "keras" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "keras" / name / "__init__.py").write_text(text)
    (tmp_path / "keras/src/trainers/trainer.py").write_text(source)
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "keras"}
    for name in real:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    xpus = ["/physical_device:XPU:0"]
    config = types.SimpleNamespace(list_physical_devices=lambda kind: xpus if kind == "XPU" else [])
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(config=config))
    yield types.SimpleNamespace(xpus=xpus, folder=tmp_path / "keras")
    assert sys.meta_path == finders, "the hook must remove itself"
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        del sys.modules[name]
    sys.modules.update(real)


def run_hook():
    """Installs it as ``_hooks`` does: from a namespace of its own each time."""
    hook = {"__name__": "tensorflow_xpu._keras_hook"}
    with open(HOOK, "rb") as file:
        exec(compile(file.read(), HOOK, "exec"), hook)
    hook["install"]()


def test_keras_imported_later(fake_keras):
    run_hook()
    run_hook()  # harmless
    trainer = importlib.import_module(TRAINER)
    assert trainer.model_supports_jit(True) is False
    assert trainer.model_supports_jit.__doc__ == "doc"
    assert "exec_module" not in vars(trainer.__spec__.loader)
    fake_keras.xpus.clear()
    assert trainer.model_supports_jit(True) is True


def test_keras_imported_before(fake_keras):
    trainer = importlib.import_module(TRAINER)
    run_hook()
    assert trainer.model_supports_jit(True) is False


def test_logs_that_cannot_be_read_are_errors(fake_keras):
    """Keras reads them with ``except: pass``."""
    (fake_keras.folder / "src" / "utils").mkdir()
    swallows = "def pythonify_logs(logs):\n    return dict.fromkeys(logs or {}, 1.0)\n"
    (fake_keras.folder / "src" / "utils" / "python_utils.py").write_text(swallows)
    trainer = fake_keras.folder / "src" / "trainers" / "trainer.py"
    trainer.write_text(f"from keras.src.utils import python_utils\n{trainer.read_text()}")

    class Unreadable:
        def numpy(self):
            raise RuntimeError("a command failed")

    sys.modules["tensorflow"].Tensor = Unreadable
    run_hook()
    python_utils = importlib.import_module(TRAINER).python_utils
    assert python_utils.pythonify_logs({"loss": 2, "accuracy": {}}) == {"loss": 1.0, "accuracy": 1.0}
    assert python_utils.pythonify_logs(None) == {}
    for logs in ({"loss": Unreadable()}, {"more": {"loss": Unreadable()}}):
        with pytest.raises(RuntimeError, match="a command failed"):
            python_utils.pythonify_logs(logs)
    fake_keras.xpus.clear()
    assert python_utils.pythonify_logs({"loss": Unreadable()}) == {"loss": 1.0}


def test_keras_half_imported(fake_keras):
    """Keras imports TensorFlow from its backend, while its trainer module waits for that to end."""
    backend = fake_keras.folder / "src" / "backend" / "__init__.py"
    backend.write_text(f"from tests.test_package import run_hook\nrun_hook()\n{backend.read_text()}")
    (fake_keras.folder / "src" / "trainers" / "later.py").write_text("")
    trainer = importlib.import_module(TRAINER)
    importlib.import_module("keras.src.trainers.later")
    assert trainer.model_supports_jit(True) is False


def test_another_keras_backend(fake_keras):
    (fake_keras.folder / "src" / "backend" / "__init__.py").write_text("def backend():\n    return 'torch'\n")
    run_hook()
    assert importlib.import_module(TRAINER).model_supports_jit(True) is True


def test_a_keras_without_the_function(fake_keras):
    (fake_keras.folder / "src" / "trainers" / "trainer.py").write_text("other = 1\n")
    run_hook()
    assert importlib.import_module(TRAINER).other == 1


def test_an_error_in_the_trainer_module_is_its_own(fake_keras):
    (fake_keras.folder / "src" / "trainers" / "trainer.py").write_text("1 / 0\n")
    run_hook()
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(TRAINER)
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "KerasFinder"]
