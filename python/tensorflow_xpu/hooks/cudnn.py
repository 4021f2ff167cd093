"""Keras's LSTM and GRU run as on any other device where the XPU has the type GPU.

A GPU is cuDNN's to Keras's recurrent layers. This one has no cuDNN.

Source of the behaviour: keras/src/backend/tensorflow/rnn.py, ``lstm`` and ``gru``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch
from tensorflow_xpu.hooks.runtime import AFTER_KERAS, Devices


def _make(_found: SimpleNamespace) -> Mapping[str, Any]:
    return {"is_gpu_available": lambda: False}


HOOK = Patch(
    name="cudnn",
    kind=CORRECTNESS,
    purpose="Keras's recurrent layers do not ask for cuDNN where the devices are of the type GPU.",
    without="Use LSTM(use_cudnn=False) and GRU(use_cudnn=False).",
    needs={"is_gpu_available": "keras.src.backend.tensorflow.rnn:_is_gpu_available()"},
    after=AFTER_KERAS,
    unless=lambda: "" if Devices.type == "GPU" else "since no device is of the type GPU",
    public="`use_cudnn=False`, which is the program's to write",
    make=_make,
)
