"""Has TensorFlow run eager ops on an XPU as ops, not as functions.

TensorFlow 2.21 runs an eager op on any device but the CPU as a function of one op. All these functions hand over their
arguments in host memory (shapes, axes) through one rendezvous. So ops that several Python threads run at the same time
get each other's, and compute something else without a word. Run as ops, as they always are on the CPU, they do not, and
are dispatched faster.

Source of the behaviour: tensorflow/python/eager/context.py, ``Context.ensure_initialized``;
tensorflow/core/common_runtime/eager/execute.cc, ``GetOrCreateKernelAndDevice``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    initialize, set_as_function = found.initialize, found.set_as_function

    # Who initialises a context calls this once it has a handle, and before anybody else can use it.
    def _initialize_logical_devices(self: Any) -> None:
        initialize(self)
        if HOOK.is_on:
            with HOOK.contained():
                set_as_function(self._context_handle, False)

    return {"initialize": _initialize_logical_devices}


HOOK = Patch(
    name="ops",
    kind=CORRECTNESS,
    purpose="TensorFlow runs eager ops as ops. As functions, they would mix up the arguments of several threads.",
    without="Let one thread at a time run eager ops.",
    needs={
        "initialize": "tensorflow.python.eager.context:Context._initialize_logical_devices(self)",
        "set_as_function": "tensorflow.python.pywrap_tfe:TFE_ContextSetRunEagerOpAsFunction[C]",
    },
    attributes={"tensorflow.python.eager.context:Context": ("_context_handle",)},
    public="an option of `tf.config` for `TFE_ContextOptionsSetRunEagerOpAsFunction`",
    make=_make,
)
