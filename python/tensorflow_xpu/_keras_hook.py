"""What Keras 3 has to do otherwise where there is an XPU: ask for no XLA, and swallow no error of a device.

With ``jit_compile="auto"`` Keras asks ``model_supports_jit(model)`` and compiles with XLA when the answer is yes; XLA
knows no device of the type XPU. Here the answer becomes no while TensorFlow lists an XPU and is Keras's backend. (Who
asks for XLA by name gets ordinary functions and a line that says so, which is not for those who did not ask.)

At the end of an epoch Keras reads the loss and the metrics with ``try: float(value)``, ``except: pass``. An XPU tells
the failure of a command once, by whatever uses it next: by such a read, it would be lost, and the model be wrong in
silence. So they are read before, where the error reaches the user.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and waits for Keras with an import
hook that removes itself once its work is done.

Source of the behaviour: keras/src/trainers/trainer.py, ``Trainer._resolve_auto_jit_compile``, and
keras/src/utils/python_utils.py, ``pythonify_logs`` (a method of the trainer in older ones).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# The devices' type: ``_hooks`` has put it here, from the loader.
DEVICE_TYPE: str = globals().get("DEVICE_TYPE", "XPU")

TARGET = "keras.src.trainers.trainer"
FUNCTION = "model_supports_jit"
# Where Keras's trainer for TensorFlow finds the function that reads logs. The first is imported with TARGET, the second
# after it.
READERS = ("keras.src.utils.python_utils", "keras.src.backend.tensorflow.trainer")

# Where Keras's recurrent layers ask whether cuDNN will do; imported before TARGET.
RECURRENT = "keras.src.backend.tensorflow.rnn"


def _xpu_in_use(trainer_module: ModuleType) -> bool:
    """True if Keras computes with TensorFlow and TensorFlow lists an XPU."""
    backend = getattr(trainer_module, "backend", None)
    if backend is not None and backend.backend() != "tensorflow":
        return False
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and bool(tensorflow.config.list_physical_devices(DEVICE_TYPE))


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Puts ``make(original)`` for a function; does nothing if there is none or it is already replaced."""
    original = getattr(owner, name, None)
    if original is None or hasattr(original, "__wrapped__"):
        return
    replacement = make(original)
    for attribute in ("__doc__", "__module__", "__name__", "__qualname__"):
        setattr(replacement, attribute, getattr(original, attribute))
    replacement.__wrapped__ = original
    setattr(owner, name, replacement)


def _read(logs: dict[str, Any]) -> None:
    """Raises what makes a tensor among these values, at any depth, unreadable."""
    for value in logs.values():
        if isinstance(value, dict):
            _read(value)
        elif isinstance(value, sys.modules["tensorflow"].Tensor) and hasattr(value, "numpy"):
            value.numpy()


def patch(module: ModuleType) -> None:
    """Replaces what asks for XLA in Keras's trainer module, and what reads logs where it is imported."""

    def supports_jit(original: Any) -> Any:
        return lambda model: False if _xpu_in_use(module) else original(model)

    def pythonify_logs(original: Any) -> Any:
        def replacement(*arguments: Any) -> Any:
            logs = arguments[-1]  # of a step that begins there are none
            if logs and _xpu_in_use(module):
                _read(logs)
            return original(*arguments)

        return replacement

    _replace(module, FUNCTION, supports_jit)
    _replace(getattr(module, "Trainer", None), "_pythonify_logs", pythonify_logs)
    # A GPU is cuDNN's to Keras's LSTM and GRU. This one has no cuDNN: they run as on any other device.
    if DEVICE_TYPE == "GPU":
        _replace(sys.modules.get(RECURRENT), "_is_gpu_available", lambda original: lambda: False)
    for reader in READERS:
        _replace(sys.modules.get(reader), "pythonify_logs", pythonify_logs)


class AfterImport:
    """Import hook that calls ``action(module)`` as soon as a module has been imported, then removes itself."""

    def __init__(self, target: str, action: Callable[[ModuleType], None], last_name: str | None = None) -> None:
        """For the module ``target``; ``last_name``: a name that it has when its import is, in effect, complete."""
        self.target, self.action, self.last_name = target, action, last_name

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds the module with the other finders and arranges for the action; leaves all else to them."""
        if name != self.target:
            # It may have been half imported when this hook was installed: the module then appears by itself.
            module = sys.modules.get(self.target)
            if module is not None and self.last_name is not None and hasattr(module, self.last_name):
                self.finish(module)
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(name, path, target) if finder is not self and find_spec else None
            if spec is not None:
                self._act_after_loading(spec.loader)
                return spec
        return None

    def _act_after_loading(self, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            # An instance attribute, so that deleting it leaves the loader as it was.
            del loader.exec_module
            execute(module)
            self.finish(module)

        loader.exec_module = exec_module

    def finish(self, module: ModuleType) -> None:
        """Acts on the module and removes the hook."""
        self.action(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class KerasFinder(AfterImport):
    """The hook for Keras's trainer module."""

    def __init__(self) -> None:
        super().__init__(TARGET, patch, FUNCTION)


def install() -> None:
    """Patches Keras now if it is imported, else as soon as it is."""
    module = sys.modules.get(TARGET)
    if module is not None and hasattr(module, FUNCTION):
        patch(module)
    elif not any(type(finder).__name__ == "KerasFinder" for finder in sys.meta_path):
        sys.meta_path.insert(0, KerasFinder())
