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


def run_hook(native=None):
    """Installs it as ``_hooks`` does: from a namespace of its own each time."""
    folder = HOOK.rpartition("/")[0]
    shared = {"AfterImport": _hooks._run(folder, "_after_import", {})["AfterImport"], "native": lambda: native}
    _hooks._run(folder, "_keras_hook", shared)["install"]()


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


def test_failures_of_the_device_are_told_before_logs_are_read(fake_keras, monkeypatch):
    """Keras reads them with ``except: pass``, and the device is asked instead of the values."""
    (fake_keras.folder / "src" / "utils").mkdir()
    swallows = "def pythonify_logs(logs):\n    return dict.fromkeys(logs or {}, 1.0)\n"
    (fake_keras.folder / "src" / "utils" / "python_utils.py").write_text(swallows)
    trainer = fake_keras.folder / "src" / "trainers" / "trainer.py"
    trainer.write_text(f"from keras.src.utils import python_utils\n{trainer.read_text()}")

    class Untouched:
        def __getattribute__(self, name):
            assert name == "__class__", name
            return object.__getattribute__(self, name)

    class Tensor(Untouched):
        pass

    class FailedError(Exception):
        pass

    asked = []

    def ask(*value):
        asked.append(value)
        if failure:
            raise FailedError

    context = types.SimpleNamespace(_context_handle=1)
    monkeypatch.setitem(
        sys.modules, "tensorflow.python.eager.context", types.SimpleNamespace(context_safe=lambda: context)
    )
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.ops", types.SimpleNamespace(EagerTensor=Tensor))
    run_hook(types.SimpleNamespace(mirror_on_host=ask, settle=ask))
    pythonify_logs = importlib.import_module(TRAINER).python_utils.pythonify_logs
    failure, tensor = False, Tensor()
    assert pythonify_logs({"loss": 2, "accuracy": {}, "name": "x", "none": None}) == dict.fromkeys(
        ["loss", "accuracy", "name", "none"], 1.0
    )
    assert pythonify_logs(None) == {}
    assert asked == []
    assert pythonify_logs({"loss": tensor, "more": {"loss": Untouched()}}) == {"loss": 1.0, "more": 1.0}
    assert [[value is tensor for value in values] for values in asked] == [[True], []]
    failure = True
    for logs in ({"loss": tensor}, {"more": {"loss": tensor}}, {"loss": Untouched()}):
        with pytest.raises(FailedError):
            pythonify_logs(logs)
    context._context_handle = None
    assert pythonify_logs({"loss": tensor}) == {"loss": 1.0}
    context._context_handle = 1
    fake_keras.xpus.clear()
    assert pythonify_logs({"loss": tensor}) == {"loss": 1.0}


def test_keras_half_imported(fake_keras):
    """Keras imports TensorFlow from its backend, while its trainer module waits for that to end."""
    backend = fake_keras.folder / "src" / "backend" / "__init__.py"
    backend.write_text(f"from tests.package.test_package import run_hook\nrun_hook()\n{backend.read_text()}")
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
