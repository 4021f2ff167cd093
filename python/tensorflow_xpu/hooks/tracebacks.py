"""Has a user's traceback end where TensorFlow begins: the hooks' functions are part of that.

Source of the behaviour: tensorflow/python/util/traceback_utils.py, ``filter_traceback``.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    return {"excluded": (*found.excluded, str(pathlib.Path(__file__).parent))}


HOOK = Patch(
    name="tracebacks",
    kind=CORRECTNESS,
    purpose="Tracebacks leave out the hooks' functions, as they leave out TensorFlow's.",
    without="Tracebacks show the hooks' functions.",
    needs={"excluded": "tensorflow.python.util.traceback_utils:_EXCLUDED_PATHS[tuple]"},
    public="a function that adds a path to those which `tf.debugging.enable_traceback_filtering` leaves out",
    make=_make,
)
