"""Has Python call functions that are a few ops in a row without TensorFlow's executor.

TensorFlow's way into a function takes 50 microseconds and 2.5 for each argument, and the variables of a model and of
its optimizer are arguments: a training step of many small layers spends most of its time there. With this hook the
first call of a function goes as always, and shows its graph as it runs, with clusters in it. Where that is a few ops,
later calls run their kernels on the calling thread (tensorflow_plugin/direct_call). All that TensorFlow's own call
looks at is looked at: what it would not take from its caches goes its way.

A process that was forked from one with a context has none of the threads that TensorFlow's executor hands ops to, and
would wait for them for ever. There such a call is refused.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and loads the native module when the
first function is called.

Source of the behaviour: tensorflow/python/eager/context.py, ``Context.call_function``;
tensorflow/core/common_runtime/eager/execute.cc, ``GetOrCreateKernelAndDevice``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CONTEXT = "tensorflow.python.eager.context"
TYPES = "tensorflow.core.function.polymorphism.function_type"
# The native module, connected with the core, None if there is none for this TensorFlow: ``_hooks`` has put it here.
native: Callable[[], Any] = globals().get("native", lambda: None)
# Where a context keeps what it knows of functions: ``_hooks`` has put it here.
CALLS: str = globals().get("CALLS", "")
# What a context has in a process that was forked from the one in which it was made.
INHERITED = "_xpu_inherited"
FORKED = (
    "this process was forked from one that had used TensorFlow, whose executor has no threads here. Eager ops run, and "
    "functions of a few ops that have been called before. Start processes with "
    "multiprocessing.get_context('spawn') to call others"
)
# The executor that needs no threads.
SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"
# A context's methods after which its functions begin anew: random ops draw again from the start, devices are others.
RESETS = (
    "_clear_caches",
    "_set_global_seed",
    "clear_kernel_cache",
    "enable_collective_ops",
    "set_server_def",
    "update_server_def",
)


def _caller(original: Callable[..., Any], module: Any, cancellation: Any) -> Callable[..., Any]:
    call, expect_call, direct_call = module.call, module.expect_call, module.direct_call

    def call_function(self: Any, name: bytes, tensor_inputs: list[Any], num_outputs: int) -> Any:
        if cancellation.context() is not None or self.op_callbacks:
            return original(self, name, tensor_inputs, num_outputs)
        options = self.function_call_options
        key = (self.device_name, options.executor_type, options.config_proto_serialized)
        calls = self.__dict__.setdefault(CALLS, {}).setdefault(name, {})
        known = calls.get(key, False)
        if known:
            outputs = call(known, tensor_inputs)
            if outputs is not None:
                return outputs or None
        if known is not False:
            return original(self, name, tensor_inputs, num_outputs)
        expect_call(name)
        try:
            outputs = original(self, name, tensor_inputs, num_outputs)
        except BaseException:
            expect_call(b"")
            raise
        calls[key] = direct_call(name, tensor_inputs, outputs)
        return outputs

    call_function.__wrapped__ = original  # type: ignore[attr-defined]
    return call_function


def _refusing(original: Callable[..., Any], errors: Any) -> Callable[..., Any]:
    """What calls a function by TensorFlow's executor, where that has threads."""

    def call_function(self: Any, *arguments: Any, **named: Any) -> Any:
        if INHERITED in self.__dict__ and self.function_call_options.executor_type != SINGLE_THREADED:
            raise errors.FailedPreconditionError(None, None, FORKED)
        return original(self, *arguments, **named)

    call_function.__wrapped__ = original  # type: ignore[attr-defined]
    return call_function


def _hasher(original: Callable[[Any], int]) -> Callable[[Any], int]:
    """A function's type, which never changes, is hashed with each call, and all captured variables with it."""

    def kept(self: Any) -> int:
        known = self.__dict__.get("_xpu_hash")
        if known is None:
            known = self.__dict__["_xpu_hash"] = original(self)
        return known

    kept.__wrapped__ = original  # type: ignore[attr-defined]
    return kept


def _remover(original: Callable[..., Any]) -> Callable[..., Any]:
    def remove_function(self: Any, name: Any) -> Any:
        self.__dict__.get(CALLS, {}).pop(name if isinstance(name, bytes) else str(name).encode(), None)
        return original(self, name)

    remove_function.__wrapped__ = original  # type: ignore[attr-defined]
    return remove_function


def _forgetting(original: Callable[..., Any]) -> Callable[..., Any]:
    def reset(self: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return original(self, *arguments, **named)
        finally:
            self.__dict__.pop(CALLS, None)

    reset.__wrapped__ = original  # type: ignore[attr-defined]
    return reset


def install() -> None:
    """Replaces ``Context.call_function``, by which Python calls functions, and the methods that end what it knows."""
    module = sys.modules[CONTEXT]
    context = module.Context
    original = context.call_function
    if hasattr(original, "__wrapped__"):
        return
    original = _refusing(original, sys.modules["tensorflow.python.framework.errors_impl"])
    cancellation = module.cancellation

    def in_child() -> None:
        known = module.context_safe()
        if known is not None and known._context_handle is not None:
            known.__dict__[INHERITED] = True

    # What is absent fails here, before anything is replaced.
    for name in ("function_call_options", "device_name", "op_callbacks", "remove_function", *RESETS):
        getattr(context, name)

    def first(self: Any, *arguments: Any, **named: Any) -> Any:
        found = native()
        context.call_function = original if found is None else _caller(original, found, cancellation)
        types = sys.modules.get(TYPES)
        if found is not None and types is not None and not hasattr(types.FunctionType.__hash__, "__wrapped__"):
            types.FunctionType.__hash__ = _hasher(types.FunctionType.__hash__)
        return context.call_function(self, *arguments, **named)

    first.__wrapped__ = original  # type: ignore[attr-defined]
    context.call_function = first
    sys.modules["os"].register_at_fork(after_in_child=in_child)
    context.remove_function = _remover(context.remove_function)
    for name in RESETS:
        setattr(context, name, _forgetting(getattr(context, name)))
