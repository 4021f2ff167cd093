"""Has Python call functions that are a few ops in a row without TensorFlow's executor.

TensorFlow's way into a function takes 50 microseconds and 2.5 for each argument. The variables of a model and of its
optimizer are arguments: a training step of many small layers spends most of its time there. With this hook the first
call of a function goes as always, and shows its graph as it runs, with clusters in it. Where that is a few ops, later
calls run their kernels on the calling thread (tensorflow_plugin/direct_call). All that TensorFlow's own call looks at
is looked at: what it would not take from its caches goes its way.

Source of the behaviour: tensorflow/python/eager/context.py, ``Context.call_function``;
tensorflow/core/common_runtime/eager/execute.cc, ``GetOrCreateKernelAndDevice``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import CALLING, CALLS, DirectCalls, interop_module

CONTEXT = "tensorflow.python.eager.context"


def _caller(found: SimpleNamespace, module: Any) -> Callable[..., Any]:
    original, cancellation = found.call_function, found.cancellation
    call, expect_call, direct_call = module.call, module.expect_call, module.direct_call

    def call_function(self: Any, name: bytes, tensor_inputs: list[Any], num_outputs: int) -> Any:
        if cancellation() is not None or self.op_callbacks:
            return original(self, name, tensor_inputs, num_outputs)
        options = self.function_call_options
        key = (self.device_name, options.executor_type, options.config_proto_serialized)
        calls = self.__dict__.setdefault(CALLS, {}).setdefault(name, DirectCalls())
        known = calls.get(key, False)
        if known:
            outputs = call(known, tensor_inputs)
            if outputs is not None:
                return outputs or None
        if known is not False:
            return original(self, name, tensor_inputs, num_outputs)
        calls.under_way.append(None)
        expect_call(name)
        try:
            outputs = original(self, name, tensor_inputs, num_outputs)
            seen = direct_call(name, tensor_inputs, outputs)
            if seen is not None:
                calls[key] = seen
        except BaseException:
            expect_call(b"")
            raise
        finally:
            calls.under_way.pop()
        if not calls.under_way:
            calls.setdefault(key, None)
        return outputs

    return call_function


def _hasher(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """A function's type, which never changes, is hashed with each call, and all captured variables with it."""

    def kept(self: Any) -> int:
        known = self.__dict__.get("_xpu_hash")
        if known is None:
            known = self.__dict__["_xpu_hash"] = original(self)
        return known

    return kept


def _retire(calls: Mapping[Any, Any], module: Any) -> None:
    """Ends direct calls of a function, also those that ``functions`` keeps."""
    for call in list(calls.values()):
        if call:
            module.retire(call)


def _remover(original: Callable[..., Any], module: Any) -> Callable[..., Any]:
    def remove_function(self: Any, name: Any) -> Any:
        name_in_c = name if isinstance(name, bytes) else str(name).encode()
        _retire(self.__dict__.get(CALLS, {}).pop(name_in_c, {}), module)
        return original(self, name)

    return remove_function


def _forget(context: Any, module: Any) -> None:
    for calls in list(context.__dict__.pop(CALLS, {}).values()):
        _retire(calls, module)


def _forgetting(original: Callable[..., Any], module: Any) -> Callable[..., Any]:
    def reset(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return original(self, *arguments, **named)
        finally:
            _forget(self, module)

    return reset


# A context's methods after which its functions begin anew: random ops draw again from the start, devices are others.
RESETS = {
    "clear_caches": f"{CONTEXT}:Context._clear_caches(self)",
    "set_global_seed": f"{CONTEXT}:Context._set_global_seed(self, seed)",
    "clear_kernel_cache": f"{CONTEXT}:Context.clear_kernel_cache(self)",
    "enable_collective_ops": f"{CONTEXT}:Context.enable_collective_ops(self, server_def)",
    "set_server_def": f"{CONTEXT}:Context.set_server_def(self, server_def, keep_alive_secs=)",
    "update_server_def": f"{CONTEXT}:Context.update_server_def(self, server_def, keep_alive_secs=)",
}


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    context, module = found.context_safe(), interop_module()
    if context is not None:
        _forget(context, module)  # of an earlier installation
    return {
        **{name: _forgetting(getattr(found, name), module) for name in RESETS},
        "remove_function": _remover(found.remove_function, module),
        "hash": _hasher(found.hash),
        "call_function": _caller(found, module),
    }


HOOK = Patch(
    name="calls",
    kind=SPEED,
    purpose="Python calls functions of a few ops without TensorFlow's executor.",
    without="Functions are called as TensorFlow does, which takes longer.",
    needs={
        "call_function": f"{CONTEXT}:Context.call_function(self, name, tensor_inputs, num_outputs)",
        "remove_function": f"{CONTEXT}:Context.remove_function(self, name)",
        **RESETS,
        "context_safe": f"{CONTEXT}:context_safe()",
        "options": f"{CONTEXT}:Context.function_call_options(self)",
        "device_name": f"{CONTEXT}:Context.device_name(self)",
        "op_callbacks": f"{CONTEXT}:Context.op_callbacks(self)",
        "cancellation": "tensorflow.python.eager.cancellation:context()",
        "hash": "tensorflow.core.function.polymorphism.function_type:FunctionType.__hash__(self)",
    },
    relies=(
        f"{CONTEXT}:FunctionCallOptions.__init__",
        "tensorflow.python.eager.execute:quick_execute",
    ),
    attributes={f"{CONTEXT}:FunctionCallOptions": ("executor_type", "config_proto_serialized")},
    public="a C API to call a function's kernels, or an executor without threads for small functions",
    make=_make,
    check=("call_function", *CALLING),
)
