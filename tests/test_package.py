"""The package tensorflow_xpu and the hook that prepares Keras."""

import importlib
import importlib.util
import sys
import types

import pytest

import tensorflow_xpu
from tensorflow_xpu import _hooks


def test_tensorflow_names_the_backend(xpu_device):
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("XPU")[0])
    assert details == {"device_name": tensorflow_xpu.get_subdevice_mapping()["XPU"]}


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
    folder = HOOK.rpartition("/")[0]
    after_import = _hooks._run(folder, "_after_import", {})
    _hooks._run(folder, "_keras_hook", {"AfterImport": after_import["AfterImport"]})["install"]()


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
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "target", None) != TRAINER]
