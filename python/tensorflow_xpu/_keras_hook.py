"""What Keras 3 has to do otherwise where there is an XPU: ask for no XLA, and swallow no error of a device.

With ``jit_compile="auto"`` Keras asks ``model_supports_jit(model)`` and compiles with XLA when the answer is yes; XLA
knows no device of the type XPU. Here the answer becomes no while TensorFlow lists an XPU and is Keras's backend. (Who
asks for XLA by name gets ordinary functions and a line that says so, which is not for those who did not ask.)

At the end of an epoch Keras reads the loss and the metrics with ``try: float(value)``, ``except: pass``. An XPU tells
the failure of a command once, by whatever uses it next: by such a read, it would be lost, and the model be wrong in
silence. So the XPU is asked before, where its error reaches the user. The values themselves are not touched: Keras
tolerates what cannot be read, whatever the reason.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and waits for Keras.

Source of the behaviour: keras/src/trainers/trainer.py, ``Trainer._resolve_auto_jit_compile``, and
keras/src/utils/python_utils.py, ``pythonify_logs`` (a method of the trainer in older ones).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# The devices' type, from the loader, and what acts on a module that is imported later: ``_hooks`` has put them here.
DEVICE_TYPE: str = globals().get("DEVICE_TYPE", "XPU")
AfterImport: Any = globals().get("AfterImport")
# The native module, connected with the core, None if there is none for this TensorFlow: ``_hooks`` has put it here.
native: Callable[[], Any] = globals().get("native", lambda: None)

TARGET = "keras.src.trainers.trainer"
FUNCTION = "model_supports_jit"
# Where Keras's trainer for TensorFlow finds the function that reads logs. The first is imported with TARGET, the second
# after it.
READERS = ("keras.src.utils.python_utils", "keras.src.backend.tensorflow.trainer")

# Where Keras's recurrent layers ask whether cuDNN will do; imported before TARGET.
RECURRENT = "keras.src.backend.tensorflow.rnn"

PYTHON = "tensorflow.python."
# Values that no device has computed, or not any more.
PLAIN = (type(None), bool, int, float, complex, str, bytes)


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


def _tell_failures(logs: Any) -> None:
    """Raises what an XPU has to say of the work that these values come from, at any depth. It touches none of them."""
    context = sys.modules[f"{PYTHON}eager.context"].context_safe()
    module = native()
    if module is None or context is None or context._context_handle is None:
        return
    tensor, others = sys.modules[f"{PYTHON}framework.ops"].EagerTensor, []

    def visit(logs: Any) -> None:
        for _, value in logs.items():
            if isinstance(value, dict):
                visit(value)
            elif type(value) is tensor:
                module.mirror_on_host(value)
            elif type(value) not in PLAIN and type(value).__module__ != "numpy":
                others.append(value)

    visit(logs)
    if others:  # to read one may ask the XPU for anything
        module.settle()


def patch(module: ModuleType) -> None:
    """Replaces what asks for XLA in Keras's trainer module, and what reads logs where it is imported."""

    def supports_jit(original: Any) -> Any:
        return lambda model: False if _xpu_in_use(module) else original(model)

    def pythonify_logs(original: Any) -> Any:
        def replacement(*arguments: Any) -> Any:
            logs = arguments[-1]  # of a step that begins there are none
            if logs and _xpu_in_use(module):
                _tell_failures(logs)
            return original(*arguments)

        return replacement

    _replace(module, FUNCTION, supports_jit)
    _replace(getattr(module, "Trainer", None), "_pythonify_logs", pythonify_logs)
    # A GPU is cuDNN's to Keras's LSTM and GRU. This one has no cuDNN: they run as on any other device.
    if DEVICE_TYPE == "GPU":
        _replace(sys.modules.get(RECURRENT), "_is_gpu_available", lambda original: lambda: False)
    for reader in READERS:
        _replace(sys.modules.get(reader), "pythonify_logs", pythonify_logs)


def install() -> None:
    """Patches Keras now if it is imported, else as soon as it is."""
    AfterImport.install(TARGET, patch, FUNCTION)
