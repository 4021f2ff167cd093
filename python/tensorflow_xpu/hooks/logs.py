"""Keras swallows no error of a device.

At the end of an epoch Keras reads the loss and the metrics with ``try: float(value)``, ``except: pass``. An XPU tells
the failure of a command once, by the next use of it. By such a read it would be lost, and the model be wrong in
silence. So the XPU is asked before, where its error reaches the user. The values themselves are not touched: Keras
tolerates what cannot be read, whatever the reason. Without the interop module all devices are waited for, by the public
`tf.test.experimental.sync_devices`.

Source of the behaviour: keras/src/utils/python_utils.py, ``pythonify_logs`` (a method of the trainer in older ones).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch, UnknownError
from tensorflow_xpu.hooks.runtime import AFTER_KERAS, interop_module, keras_uses_xpu

TENSOR = {"tensor": "tensorflow.python.framework.ops:EagerTensor[class]"}
FUNCTION = {**TENSOR, "function": "keras.src.utils.python_utils:pythonify_logs(logs)"}
METHOD = {**TENSOR, "method": "keras.src.trainers.trainer:Trainer._pythonify_logs(self, logs)"}
# Values that no device has computed, or not any more.
PLAIN = (type(None), bool, int, float, complex, str, bytes)


def _teller(module: Any, tensor: type) -> Callable[[Any], None]:
    settle = sys.modules["tensorflow"].test.experimental.sync_devices if module is None else module.settle

    def tell_failures(logs: Any) -> None:
        """Raises what an XPU has to say of the work that these values come from, at any depth. It touches none."""
        others = []

        def visit(logs: Any) -> None:
            for _, value in logs.items():
                if isinstance(value, dict):
                    visit(value)
                elif type(value) is tensor and module is not None:
                    module.mirror_on_host(value)
                elif type(value) not in PLAIN and type(value).__module__ != "numpy":
                    others.append(value)

        visit(logs)
        if others:  # to read one may ask the XPU for anything
            settle()

    return tell_failures


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    try:
        module = interop_module()
    except UnknownError:
        module = None
    tell_failures = _teller(module, found.tensor)

    def telling(original: Callable[..., Any]) -> Callable[..., Any]:
        def pythonify_logs(*arguments: Any, **named: Any) -> Any:
            logs = [*arguments, *named.values()][-1]  # of a step that begins there are none
            if logs and keras_uses_xpu():
                tell_failures(logs)
            return original(*arguments, **named)

        return pythonify_logs

    return {name: telling(original) for name, original in vars(found).items() if name not in ("tensor", "caller")}


HOOK = Patch(
    name="logs",
    kind=CORRECTNESS,
    purpose="Keras does not swallow the errors of a device when it reads the loss.",
    without="An error of the device may be lost at the end of an epoch.",
    # Keras 3.14 and later have the first, 3.8 to 3.13 the third of these. Each names the callers: the hook would be on
    # and without effect if one had the function by another name.
    needs=(
        {**FUNCTION, "imported": f"{AFTER_KERAS.partition(':')[0]}:pythonify_logs(logs)"},
        {**FUNCTION, **METHOD},
        {**FUNCTION, "caller": "keras.src.trainers.trainer:python_utils[module]"},
        METHOD,
    ),
    after=AFTER_KERAS,
    public="a Keras that catches no more than TypeError and ValueError there",
    make=_make,
)
