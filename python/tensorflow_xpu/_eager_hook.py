"""Has TensorFlow run eager ops on an XPU as ops, not as functions.

TensorFlow 2.21 runs an eager op on any device but the CPU as a function of one op, and all these functions hand over
their arguments in host memory (shapes, axes) through one rendezvous: ops that several Python threads run at the same
time get each other's, and compute something else without a word. Run as ops, as they always are on the CPU, they do
not, and are dispatched faster.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and finds TensorFlow's eager context
among the modules that are loaded.

Source of the behaviour: tensorflow/python/eager/context.py, ``Context.ensure_initialized``;
tensorflow/core/common_runtime/eager/execute.cc, ``GetOrCreateKernelAndDevice``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from typing import Any

CONTEXT = "tensorflow.python.eager.context"
# The devices' type: ``_hooks`` has put it here, from the loader.
DEVICE_TYPE: str = globals().get("DEVICE_TYPE", "XPU")


def _run_ops_as_ops(module: Any, context: Any) -> None:
    """Tells the initialised ``Context`` so, if it has an XPU; see ``TFE_ContextSetRunEagerOpAsFunction``."""
    if any(device.device_type == DEVICE_TYPE for device in context._logical_devices):
        module.pywrap_tfe.TFE_ContextSetRunEagerOpAsFunction(context._context_handle, False)


def install() -> None:
    """Makes every ``Context`` of the module ``tensorflow.python.eager.context`` run ops as ops from its start on."""
    module = sys.modules[CONTEXT]
    original = module.Context._initialize_logical_devices
    if hasattr(original, "__wrapped__"):
        return

    # What initialises a context calls this once it has a handle, and before anybody else can use it.
    def _initialize_logical_devices(self: Any) -> None:
        original(self)
        _run_ops_as_ops(module, self)

    _initialize_logical_devices.__wrapped__ = original  # type: ignore[attr-defined]
    module.pywrap_tfe.TFE_ContextSetRunEagerOpAsFunction  # noqa: B018  absent: fail here, not in every program
    module.Context._initialize_logical_devices = _initialize_logical_devices
