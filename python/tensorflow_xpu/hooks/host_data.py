"""Has `tf.data` keep NumPy arrays in the host's memory, where its data sets are.

TensorFlow makes tensors of the arrays that a data set is made of, on the device that eager ops run on. It copies them
back, since data sets live on the CPU. The data of Keras's `fit` and `predict` goes that way with each call: twice
through memory. For a while the device holds all of it. With this hook such arrays become tensors on the CPU.

Source of the behaviour: tensorflow/python/data/util/structure.py, ``normalize_element``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original = found.normalize_element

    def normalize_element(element: Any, element_signature: Any = None, *others: Any, **named: Any) -> Any:
        tensorflow = sys.modules["tensorflow"]
        if element_signature is None and tensorflow.executing_eagerly():
            with tensorflow.device("/cpu:0"):
                return original(element, element_signature, *others, **named)
        return original(element, element_signature, *others, **named)

    return {"normalize_element": normalize_element}


HOOK = Patch(
    name="host_data",
    kind=CORRECTNESS,
    purpose="Data sets keep arrays in host memory.",
    without="The arrays that data sets are made of go through the device's memory, and have to fit.",
    needs={"normalize_element": "tensorflow.python.data.util.structure:normalize_element(element, element_signature=)"},
    public='`with tf.device("/cpu:0")` around whatever makes a data set, which is the program\'s to write',
    make=_make,
)
