"""Has an eager tensor on an XPU read by Python in a microsecond.

To read a tensor (``numpy()``, ``float()``, ``if``, ``print``) TensorFlow waits until the device has nothing left to do,
and then for three of its threads, which hand the end of the copy to each other and poll: 70 microseconds for the loss
of a training step, on top of the rest of the step. With this hook the reader waits for the commands that the value
comes from, no others, and copies it itself. TensorFlow keeps a copy of each tensor that it has read; that is where it
then finds this one, so all else is as it was.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and loads the native module when the
first tensor is read.

Source of the behaviour: tensorflow/python/framework/ops.py, ``_EagerTensorBase._numpy``;
tensorflow/core/common_runtime/eager/tensor_handle.cc, ``TensorHandle::CopyToDevice``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OPS = "tensorflow.python.framework.ops"
# The native module, connected with the core, None if there is none for this TensorFlow: ``_hooks`` has put it here.
native: Callable[[], Any] = globals().get("native", lambda: None)


def _reader(original: Callable[[Any], Any], mirror_on_host: Callable[[Any], None]) -> Callable[[Any], Any]:
    def _numpy(self: Any) -> Any:
        mirror_on_host(self)
        return original(self)

    _numpy.__wrapped__ = original  # type: ignore[attr-defined]
    return _numpy


def install() -> None:
    """Replaces ``_EagerTensorBase._numpy``, by which all of Python's ways to read an eager tensor go."""
    base = sys.modules[OPS]._EagerTensorBase
    original = base._numpy
    if hasattr(original, "__wrapped__"):
        return

    def first(self: Any) -> Any:
        module = native()
        replacement = original if module is None else _reader(original, module.mirror_on_host)
        base._numpy = replacement
        return replacement(self)

    first.__wrapped__ = original  # type: ignore[attr-defined]
    base._numpy = first
