"""The hooks into Keras, against a stand-in for Keras of a few lines."""

import dataclasses
import importlib
import sys
import types

import pytest

from tensorflow_xpu.hooks import logs, xla

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

TRAINER = "keras.src.trainers.trainer"
LAST = "keras.src.backend.tensorflow.trainer"
FILES = {
    "": "from keras.src import backend\nclass config:\n    backend = staticmethod(lambda: 'tensorflow')\n",
    "src": "",
    "src/backend": "",
    "src/backend/tensorflow": "",
    "src/trainers": "",
    "src/utils": "",
}
SOURCES = {
    "src/trainers/trainer.py": "def model_supports_jit(model):\n    'doc'\n    return model\n",
    "src/utils/python_utils.py": "def pythonify_logs(logs):\n    return dict.fromkeys(logs or {}, 1.0)\n",
    "src/backend/tensorflow/trainer.py": "from keras.src.utils.python_utils import pythonify_logs\n"
    "from keras.src.trainers import trainer\nclass TensorFlowTrainer:\n    pass\n",
}


@pytest.fixture
def fake_keras(tmp_path, monkeypatch):
    """Puts a Keras of a few lines before the real one, and forgets it afterwards."""
    for name in ("tensorflow", "keras"):  # or the hooks of this process, which wait for them, would take these
        importlib.import_module(name)
    folder = tmp_path / "keras"
    for name, text in FILES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").write_text(text)
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    real = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "keras"}
    for name in real:
        del sys.modules[name]
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    xpus = ["/physical_device:XPU:0"]
    config = types.SimpleNamespace(list_physical_devices=lambda kind: xpus if kind == "XPU" else [])
    monkeypatch.setitem(sys.modules, "tensorflow", types.SimpleNamespace(config=config, __version__="2.21.0"))
    yield types.SimpleNamespace(xpus=xpus, folder=folder)
    assert sys.meta_path == finders, "what waits for Keras must remove itself"
    for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
        del sys.modules[name]
    sys.modules.update(real)


def fresh(hook):
    """The hook as it is in a new process, installed."""
    hook = dataclasses.replace(hook)
    hook.install()
    return hook


def test_keras_imported_later(fake_keras):
    hook = fresh(xla.HOOK)
    assert hook.state == f"waits for {LAST}"
    importlib.import_module(LAST)
    trainer = sys.modules[TRAINER]
    assert hook.state == "on"
    assert trainer.model_supports_jit(True) is False
    assert trainer.model_supports_jit.__doc__ == "doc"
    assert "exec_module" not in vars(sys.modules[LAST].__spec__.loader)
    fake_keras.xpus.clear()
    assert trainer.model_supports_jit(True) is True
    assert hook.uninstall()
    assert not hasattr(trainer.model_supports_jit, "__wrapped__")


def test_keras_imported_before(fake_keras):
    importlib.import_module(LAST)
    fresh(xla.HOOK)
    assert sys.modules[TRAINER].model_supports_jit(True) is False


def test_several_hooks_wait_for_one_module(fake_keras, device):
    waiting = [fresh(xla.HOOK), fresh(logs.HOOK), fresh(xla.HOOK)]
    importlib.import_module(LAST)
    assert [hook.state for hook in waiting] == ["on"] * 3


@pytest.fixture
def device(monkeypatch):
    """The device of the hook of logs: one that fails if it is told to, and the type of its tensors."""

    class Untouched:
        def __getattribute__(self, name):
            assert name == "__class__", name
            return object.__getattribute__(self, name)

    class EagerTensor(Untouched):
        pass

    device = types.SimpleNamespace(fails=False, asked=[], tensor=EagerTensor(), other=Untouched())

    def ask(*values):
        device.asked.append(values)
        if device.fails:
            raise OSError("the device failed")

    monkeypatch.setattr(logs, "interop_module", lambda: types.SimpleNamespace(mirror_on_host=ask, settle=ask))
    monkeypatch.setitem(sys.modules, "tensorflow.python.framework.ops", types.SimpleNamespace(EagerTensor=EagerTensor))
    return device


def test_failures_of_the_device_are_told_before_logs_are_read(fake_keras, device):
    """Keras reads them with ``except: pass``, and the device is asked instead of the values."""
    hook = fresh(logs.HOOK)
    importlib.import_module(LAST)
    assert hook.state == "on"
    for module in ("keras.src.utils.python_utils", LAST):
        pythonify_logs = sys.modules[module].pythonify_logs
        device.asked.clear()
        device.fails = False
        plain = {"loss": 2, "accuracy": {}, "name": "x", "none": None}
        assert pythonify_logs(plain) == dict.fromkeys(plain, 1.0)
        assert pythonify_logs(None) == {}
        assert device.asked == []
        assert pythonify_logs(logs={"loss": device.tensor, "more": {"loss": device.other}}) == {
            "loss": 1.0,
            "more": 1.0,
        }
        assert [[value is device.tensor for value in values] for values in device.asked] == [[True], []]
        device.fails = True
        for values in ({"loss": device.tensor}, {"more": {"loss": device.tensor}}, {"loss": device.other}):
            with pytest.raises(OSError, match="the device failed"):
                pythonify_logs(values)
    fake_keras.xpus.clear()
    assert pythonify_logs({"loss": device.tensor}) == {"loss": 1.0}


def test_the_function_alone(fake_keras, device, capsys):
    """As in Keras 3.8 to 3.13, whose trainer does not import it; a base class calls it."""
    (fake_keras.folder / "src/backend/tensorflow/trainer.py").write_text(
        "from keras.src.trainers import trainer\nclass TensorFlowTrainer:\n    pass\n"
    )
    base = fake_keras.folder / "src/trainers/trainer.py"
    base.write_text("from keras.src.utils import python_utils\n" + base.read_text())
    hook = fresh(logs.HOOK)
    importlib.import_module(LAST)
    assert (hook.state, capsys.readouterr().err) == ("on", "")
    device.fails = True
    with pytest.raises(OSError, match="the device failed"):
        importlib.import_module("keras.src.utils.python_utils").pythonify_logs({"loss": device.tensor})


def test_the_method_of_older_ones(fake_keras, device):
    (fake_keras.folder / "src/utils/python_utils.py").write_text("pythonify_logs = None\n")
    method = "class Trainer:\n    def _pythonify_logs(self, logs):\n        return logs\n"
    (fake_keras.folder / "src/trainers/trainer.py").write_text(method)
    hook = fresh(logs.HOOK)
    importlib.import_module(LAST)
    assert hook.state == "on"
    device.fails = True
    with pytest.raises(OSError, match="the device failed"):
        sys.modules[TRAINER].Trainer()._pythonify_logs({"loss": device.tensor})


def test_keras_half_imported(fake_keras, monkeypatch):
    """Keras imports TensorFlow from its backend, while its trainer module waits for that to end."""
    monkeypatch.setattr(xla, "install_now", lambda: fresh(xla.HOOK), raising=False)
    backend = fake_keras.folder / "src" / "backend" / "__init__.py"
    backend.write_text("from tensorflow_xpu.hooks import xla\nxla.install_now()\n")
    importlib.import_module(LAST)
    (fake_keras.folder / "src" / "trainers" / "later.py").write_text("")
    importlib.import_module("keras.src.trainers.later")
    assert sys.modules[TRAINER].model_supports_jit(True) is False


def test_another_keras_backend(fake_keras):
    fresh(xla.HOOK)
    importlib.import_module(LAST)
    sys.modules["keras"].config.backend = lambda: "torch"
    assert sys.modules[TRAINER].model_supports_jit(True) is True


def test_a_keras_without_the_function(fake_keras, capsys):
    (fake_keras.folder / "src" / "trainers" / "trainer.py").write_text("other = 1\n")
    hook = fresh(xla.HOOK)
    assert importlib.import_module(LAST).trainer.other == 1
    assert hook.state.startswith("off: Keras of unknown version has no keras.src.trainers.trainer:model_supports_jit")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tensorflow_xpu: the hook xla is off: ") and "compile(jit_compile=False)" in line


def test_an_error_in_the_trainer_module_is_its_own(fake_keras):
    (fake_keras.folder / "src" / "trainers" / "trainer.py").write_text("1 / 0\n")
    fresh(xla.HOOK)
    with pytest.raises(ZeroDivisionError):
        importlib.import_module(LAST)
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "target", None) != LAST]
