"""Keeps Keras 3's default ``compile()`` from asking for XLA where there is an XPU.

With ``jit_compile="auto"`` Keras asks ``model_supports_jit(model)`` and compiles with XLA when the answer is yes; XLA
knows no device of the type XPU. Here the answer becomes no while TensorFlow lists an XPU and is Keras's backend. (Who
asks for XLA by name gets ordinary functions and a line that says so, which is not for those who did not ask.)

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and waits for Keras with an import
hook that removes itself once its work is done.

Source of the behaviour: keras/src/trainers/trainer.py, ``Trainer._resolve_auto_jit_compile``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

TARGET = "keras.src.trainers.trainer"
FUNCTION = "model_supports_jit"


def _xpu_in_use(trainer_module: ModuleType) -> bool:
    """True if Keras computes with TensorFlow and TensorFlow lists an XPU."""
    backend = getattr(trainer_module, "backend", None)
    if backend is not None and backend.backend() != "tensorflow":
        return False
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and bool(tensorflow.config.list_physical_devices("XPU"))


def patch(module: ModuleType) -> None:
    """Replaces ``model_supports_jit`` in Keras's trainer module; does nothing if it is absent or already replaced."""
    original = getattr(module, FUNCTION, None)
    if original is None or hasattr(original, "__wrapped__"):
        return

    def model_supports_jit(model: object) -> bool:
        return False if _xpu_in_use(module) else original(model)

    model_supports_jit.__doc__ = original.__doc__
    model_supports_jit.__module__ = module.__name__
    model_supports_jit.__wrapped__ = original  # type: ignore[attr-defined]
    setattr(module, FUNCTION, model_supports_jit)


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
