"""NumPy swallows no error of a device.

``np.asarray(x)``, and whatever else takes arrays, asks a tensor for its buffer. NumPy swallows what that raises, and
then asks for an array. An XPU tells the failure of a command once, so the second answer would be numbers that are no
result. Here it raises what the first one has raised.

Source of the behaviour: numpy/_core/src/multiarray/ctors.c, ``_array_from_array_like``;
tensorflow/python/eager/pywrap_tensor.cc, ``EagerTensor_getbuffer``; tensorflow/python/framework/ops.py,
``_EagerTensorBase.__array__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch
from tensorflow_xpu.hooks.runtime import interop_module


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original, tell_again = found.array, interop_module().tell_again

    def array(self: Any, *arguments: Any, **named: Any) -> Any:
        tell_again(self)
        return original(self, *arguments, **named)

    return {"array": array}


HOOK = Patch(
    name="arrays",
    kind=CORRECTNESS,
    purpose="NumPy does not swallow the errors of a device when it takes a tensor.",
    without="An error of the device may be lost where NumPy takes a tensor: use x.numpy().",
    needs={"array": "tensorflow.python.framework.ops:_EagerTensorBase.__array__(self, dtype=)"},
    requires=interop_module,
    public="a second buffer that TensorFlow fails to give as it failed to give the first",
    make=_make,
)
