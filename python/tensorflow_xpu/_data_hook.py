"""Has `tf.data` keep NumPy arrays in the host's memory, where its data sets are.

TensorFlow makes tensors of the arrays that a data set is made of, on the device that eager ops run on, and copies them
back, since data sets live on the CPU. What Keras's `fit` and `predict` are given goes that way with each call: twice
through memory, and for a while the device holds all of it. With this hook such arrays become tensors on the CPU.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing.

Source of the behaviour: tensorflow/python/data/util/structure.py, ``normalize_element``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from typing import Any

PYTHON = "tensorflow.python."
# Arrays of less are not worth a device's scope, which takes two microseconds.
FEW_BYTES = 4096


def install() -> None:
    """Replaces ``normalize_element``, by which data sets make tensors of what they are given."""
    modules = sys.modules
    structure: Any = modules[f"{PYTHON}data.util.structure"]
    original = structure.normalize_element
    if hasattr(original, "__wrapped__"):
        return
    device = modules[f"{PYTHON}framework.ops"].device
    executing_eagerly = modules[f"{PYTHON}eager.context"].executing_eagerly
    convert = modules[f"{PYTHON}framework.ops"].convert_to_tensor
    map_structure = modules[f"{PYTHON}data.util.nest"].map_structure
    array = modules["numpy"].ndarray

    def on_host(value: Any) -> Any:
        if type(value) is not array or value.nbytes < FEW_BYTES:
            return value
        with device("/cpu:0"):
            return convert(value)

    def normalize_element(element: Any, element_signature: Any = None) -> Any:
        if element_signature is None and executing_eagerly():
            element = map_structure(on_host, element)
        return original(element, element_signature)

    normalize_element.__doc__ = original.__doc__
    normalize_element.__wrapped__ = original  # type: ignore[attr-defined]
    structure.normalize_element = normalize_element
