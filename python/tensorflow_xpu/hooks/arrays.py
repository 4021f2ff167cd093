"""NumPy swallows no error of a device.

``np.asarray(x)``, and whatever else takes arrays, asks a tensor for its buffer. NumPy swallows what that raises, and
then asks for an array. An XPU tells the failure of a command once, so the second answer would be numbers that are no
result. Here the core knows that the tensor is read again. It then fails as it has failed the first time
(``tensorflow_plugin/device/told.h``).

Source of the behaviour: numpy/_core/src/multiarray/ctors.c, ``_array_from_array_like``;
tensorflow/python/eager/pywrap_tensor.cc, ``EagerTensor_getbuffer``; tensorflow/python/framework/ops.py,
``_EagerTensorBase.__array__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch
from tensorflow_xpu.hooks.runtime import core_functions


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original = found.array
    begin, end = core_functions("XpuCore_BeginReadingAgain", "XpuCore_EndReadingAgain")

    def array(self: Any, *arguments: Any, **named: Any) -> Any:
        begin()
        try:
            return original(self, *arguments, **named)
        finally:
            end()

    return {"array": array}


HOOK = Patch(
    name="arrays",
    kind=CORRECTNESS,
    purpose="NumPy does not swallow the errors of a device when it takes a tensor.",
    without="An error of the device may be lost where NumPy takes a tensor: use x.numpy().",
    needs={"array": "tensorflow.python.framework.ops:_EagerTensorBase.__array__(self, dtype=)"},
    public="a second buffer that TensorFlow fails to give as it failed to give the first",
    make=_make,
)
