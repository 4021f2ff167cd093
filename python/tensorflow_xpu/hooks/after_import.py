"""Acts on a module as soon as it has been imported: for what has to wait for TensorFlow, or for Keras.

It is used while TensorFlow is being imported, and imports nothing then.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def _is_there(module: ModuleType, last_name: str | None) -> bool:
    """True if a module's import is complete, or has come as far as that name. A new version may lack the name."""
    being_imported = getattr(getattr(module, "__spec__", None), "_initializing", False)  # as importlib itself asks
    return not being_imported or (last_name is not None and hasattr(module, last_name))


class AfterImport:
    """Import hook that calls actions with a module as soon as it has been imported, then removes itself."""

    def __init__(self, target: str, action: Callable[[ModuleType], None], last_name: str | None = None) -> None:
        """For the module ``target``; ``last_name``: a name that it has when its import is, in effect, complete."""
        self.target, self.actions, self.last_name = target, [action], last_name

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds the module with the other finders and arranges for the actions; leaves all else to them."""
        if name != self.target:
            # It may have been half imported when this hook was installed: the module then appears by itself.
            module = sys.modules.get(self.target)
            if module is not None and _is_there(module, self.last_name):
                self.finish(module)
            return None
        for finder in list(sys.meta_path):
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
        """Acts on the module, once, and removes the hook."""
        actions, self.actions = self.actions, []
        for action in actions:
            action(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    @classmethod
    def install(cls, target: str, action: Callable[[ModuleType], None], last_name: str) -> None:
        """Acts on the module now if it has that name, else as soon as it is imported."""
        module = sys.modules.get(target)
        if module is not None and _is_there(module, last_name):
            return action(module)
        # Two finders for one module would ask each other for ever.
        for finder in sys.meta_path:
            if isinstance(finder, cls) and finder.target == target:
                return finder.actions.append(action)
        return sys.meta_path.insert(0, cls(target, action, last_name))
