"""Keras 3 asks for no XLA where there is an XPU.

With ``jit_compile="auto"`` Keras asks ``model_supports_jit(model)`` and compiles with XLA when the answer is yes; XLA
knows no device of the type XPU. Here the answer becomes no while TensorFlow lists an XPU and is Keras's backend. (Who
asks for XLA by name gets ordinary functions and a line that says so, which is not for those who did not ask.)

Source of the behaviour: keras/src/trainers/trainer.py, ``Trainer._resolve_auto_jit_compile``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch
from tensorflow_xpu.hooks.runtime import AFTER_KERAS, keras_uses_xpu


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original = found.model_supports_jit

    def model_supports_jit(*arguments: Any, **named: Any) -> Any:
        return False if keras_uses_xpu() else original(*arguments, **named)

    return {"model_supports_jit": model_supports_jit}


HOOK = Patch(
    name="xla",
    kind=CORRECTNESS,
    purpose="Keras does not ask for XLA, which knows no XPU.",
    without="Use compile(jit_compile=False).",
    needs={"model_supports_jit": "keras.src.trainers.trainer:model_supports_jit(model)"},
    after=AFTER_KERAS,
    public="a list of device types without XLA in Keras, or a compiler for XPUs in XLA",
    make=_make,
)
