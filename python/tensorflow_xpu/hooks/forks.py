"""Refuses in a forked process the functions that would wait for ever there.

A process that was forked from one with a context has none of the threads that TensorFlow's executor hands ops to.

Source of the behaviour: tensorflow/python/eager/context.py, ``Context.call_function``;
tensorflow/core/common_runtime/executor.cc.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch

CONTEXT = "tensorflow.python.eager.context"
# A context has this in a process that was forked from the one in which it was made.
INHERITED = "_xpu_inherited"
FORKED = (
    "this process was forked from one that had used TensorFlow, whose executor has no threads here. Eager ops run, and "
    "functions of a few ops that have been called before. Start processes with "
    "multiprocessing.get_context('spawn') to call others"
)
# The executor that needs no threads.
SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original, context_safe = found.call_function, found.context_safe

    def in_child() -> None:
        if HOOK.is_on:
            with HOOK.contained():
                context = context_safe()
                if context is not None and context._context_handle is not None:
                    context.__dict__[INHERITED] = True

    def is_refused(context: Any) -> bool:
        with HOOK.contained():
            return bool(context.function_call_options.executor_type != SINGLE_THREADED)
        return False

    def call_function(self: Any, *arguments: Any, **named: Any) -> Any:
        if INHERITED in self.__dict__ and HOOK.is_on and is_refused(self):
            raise sys.modules["tensorflow"].errors.FailedPreconditionError(None, None, FORKED)
        return original(self, *arguments, **named)

    os.register_at_fork(after_in_child=in_child)
    return {"call_function": call_function}


HOOK = Patch(
    name="forks",
    kind=CORRECTNESS,
    purpose="A forked process refuses functions that would hang there.",
    without="A function that is called in a forked process may hang: start processes with `spawn`.",
    needs={
        "call_function": f"{CONTEXT}:Context.call_function(self, name, tensor_inputs, num_outputs)",
        "context_safe": f"{CONTEXT}:context_safe()",
        "options": f"{CONTEXT}:Context.function_call_options(self)",
    },
    attributes={
        f"{CONTEXT}:Context": ("_context_handle",),
        f"{CONTEXT}:FunctionCallOptions": ("executor_type",),
    },
    public="an error of TensorFlow's own in such a process",
    make=_make,
)
