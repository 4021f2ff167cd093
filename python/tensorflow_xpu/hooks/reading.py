"""Has an eager tensor on an XPU read by Python in a microsecond.

To read a tensor (``numpy()``, ``float()``, ``if``, ``print``) TensorFlow waits until the device has nothing left to do.
Then it waits for three of its threads, which hand the end of the copy to each other and poll. That is 70 microseconds
for the loss of a training step, on top of the rest of the step. With this hook the reader waits for the commands that
the value comes from, no others, and copies it itself. TensorFlow keeps a copy of each tensor that it has read. It then
finds this one there, so all else is as it was.

Source of the behaviour: tensorflow/python/framework/ops.py, ``_EagerTensorBase._numpy``;
tensorflow/core/common_runtime/eager/tensor_handle.cc, ``TensorHandle::CopyToDevice``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import eager_device, interop_module


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original, mirror_on_host = found.numpy, interop_module().mirror_on_host

    def _numpy(self: Any) -> Any:
        mirror_on_host(self)
        return original(self)

    return {"numpy": _numpy}


def _check() -> list[Any]:
    """Values of several types and shapes, read in the ways that Python has, and one of them twice."""
    with eager_device() as tf:
        x = tf.constant([[1.5, -2.0], [3.25, 0.5]]) * 2 + 1
        whole, empty = tf.constant([7, 8], tf.int64) * 3, tf.zeros([0, 2]) + 1
        values = [x.numpy().tolist(), float(x[0, 0]), int(whole[1]), bool(x[1, 0] > 7), empty.numpy().shape]
        return [*values, x.numpy().tolist(), (x > 0).numpy().tolist()]


READ = [[4.0, -3.0], [7.5, 2.0]]


HOOK = Patch(
    name="reading",
    kind=SPEED,
    purpose="Python reads tensors without TensorFlow's event threads.",
    without="Reading a tensor waits for all of the device's work.",
    needs={"numpy": "tensorflow.python.framework.ops:_EagerTensorBase._numpy(self)"},
    public="a callback of the C API for copies to the host that are done at once",
    make=_make,
    check=("numpy", _check, (READ, 4.0, 24, True, (0, 2), READ, [[True, False], [True, True]])),
)
