"""Has Python find what a `tf.function` runs without building its arguments' types anew for each call.

To find the graph that it has traced for such arguments, TensorFlow makes types of them and of all captured variables.
It binds them to parameters and looks the types up. That takes 100 microseconds for a small model, 250 for one of 25
layers. With this hook the second call with arguments like these, by their types and shapes, keeps the graph that was
found. Later ones go straight to the call of the graph (``calls``). That is for functions that are called directly
there, with tensors, arrays, iterators, and tuples, lists and dicts of these. If TensorFlow would look at anything
besides (a gradient tape, a strategy, a graph being built), the call goes its way. Functions that are one graph, such as
the signatures of a SavedModel, are called in the same way.

The interop module keeps what is known of a function, and looks it up (tensorflow_plugin/interop/known_calls.h). No
Python runs between the arguments and the results.

Source of the behaviour: tensorflow/python/eager/polymorphic_function/polymorphic_function.py, ``Function.__call__``;
tracing_compilation.py, ``call_function``; concrete_function.py, ``ConcreteFunction._call_flat``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import CALLS, FINDING, THREAD_STATE, interop_module
from tensorflow_xpu.hooks.structures import UnlikeError, dict_maker, tuple_maker

PYTHON = "tensorflow.python."
FUNCTIONS = f"{PYTHON}eager.polymorphic_function."
TRACE_TYPES = "tensorflow.core.function.trace_type"
# The interop module returns one of them instead of a result. Nothing is known of such a call yet: it can be learned. Or
# the call is TensorFlow's business.
LEARN, LEAVE = object(), object()
# Where an iterator keeps the number of its elements' type.
KIND = "_xpu_kind"
# Types of iterators' elements that are kept by their identity.
MOST_KINDS = 64


class _Arguments:
    """The part of looking at arguments that the interop module leaves to Python."""

    def __init__(self, found: SimpleNamespace) -> None:
        self.tensor, self.context, self.array = found.tensor, found.context, sys.modules["numpy"].ndarray
        self.alias = interop_module().alias
        self.kinds: dict[Any, int] = {}  # of iterators' elements
        # The same by the identity of the iterator's types, which it has from its data set. So an epoch's iterator is
        # known from the last one's, without the hash of a type.
        self.seen: dict[int, tuple[Any, int]] = {}

    def look_at_iterator(self, iterator: Any) -> tuple[int, Any]:
        """A number for the type of its elements, and the tensor that it is to a function."""
        known: int | None = iterator.__dict__.get(KIND)
        if known is None:
            spec = iterator.element_spec
            seen = self.seen.get(id(spec))
            if seen is None or seen[0] is not spec:
                if len(self.seen) >= MOST_KINDS:
                    self.seen.clear()
                number = self.kinds.setdefault(iterator._type_spec, len(self.kinds))
                seen = self.seen[id(spec)] = (spec, number)
            known = iterator.__dict__[KIND] = seen[1]
        return known, iterator._iterator_resource

    def tensor_of(self, array: Any, device: str | None) -> Any:
        """The tensor that TensorFlow makes of an array, which its owner may change meanwhile."""
        return self.tensor(array.copy(), device, None)

    def told_apart(self, args: Any, named: Any) -> tuple[Any, Any]:
        """Arguments with tensors in place of arrays, each tensor an object of its own."""
        seen: set[int] = set()
        return self._told_apart(args, seen), self._told_apart(named, seen)

    def _told_apart(self, value: Any, seen: set[int]) -> Any:
        kind = type(value)
        if kind is self.array:
            return self.tensor_of(value, self.context().device_name)
        if kind is tuple or kind is list:
            return kind([self._told_apart(item, seen) for item in value])
        if kind is dict:
            return {name: self._told_apart(item, seen) for name, item in value.items()}
        if kind is not self.tensor:
            return value
        if id(value) in seen:
            return self.alias(value)
        seen.add(id(value))
        return value


class UndecidedError(Exception):
    """Another thread's call may find out what a call like this one runs. The next call is looked at again."""


class _Results:
    """Makes a function's results of tensors, as their types would."""

    def __init__(self, types: Any, tensor_spec: type, optional_spec: type, optional: Callable[..., Any]) -> None:
        self.types, self.tensor_spec, self.optional_spec, self.optional = types, tensor_spec, optional_spec, optional

    def how(self, result: Any) -> Any:
        """The interop module makes a result by this: the names of a dict's tensors, or a maker."""
        if type(result) is self.types.Dict and result._placeholder_type is dict:
            names = tuple(result.mapping)
            kinds = {type(part) for part in result.mapping.values()}
            if kinds == {self.tensor_spec} and list(names) == sorted(names):
                return names
        return self.maker(result)

    def maker(self, result: Any) -> Callable[[Iterator[Any]], Any]:
        """For a type of results: what takes their tensors, one after the other. Raises UnlikeError."""
        kind = type(result)
        if kind is self.tensor_spec:
            return next
        if kind is self.types.Literal:
            return lambda tensors: result.value
        if kind is self.types.Tuple:
            return tuple_maker(result.components, self.maker)
        if kind is self.types.List:
            of_tuple = self.maker(result.components_tuple)
            return lambda tensors: list(of_tuple(tensors))
        if kind is self.types.Dict and result._placeholder_type is dict:
            return dict_maker(result.mapping, self.maker)
        if kind is self.optional_spec:
            element_spec, optional = result._element_spec, self.optional
            return lambda tensors: optional(next(tensors), element_spec)
        raise UnlikeError


class _Graphs:
    """Finds what a call of a function runs, so that later calls like it can do so at once."""

    def __init__(self, found: SimpleNamespace, arguments: _Arguments) -> None:
        self.found, self.arguments, self.tensors_in = found, arguments, interop_module().tensors_in
        self.results = _Results(
            sys.modules[f"{TRACE_TYPES}.default_types"], found.tensor_spec, found.optional_spec, found.optional
        )

    def of_function(self, function: Any, args: Any, named: Any) -> dict[str, Any] | None:
        """The graph that a call of a function with these arguments runs, if nothing else can come of it."""
        config = function._no_variable_creation_config if function._created_variables else None
        config = config or function._variable_creation_config
        if config is None or function._jit_compile:
            return None
        kinds = (function._function_type, function._default_values, function._is_pure)
        bound = self.found.types_of(args, named, *kinds)
        concrete = self.found.trace_function(bound.args, bound.kwargs, config)
        args, named = self.arguments.told_apart(args, named)
        try:
            bound = self.found.types_of(args, named, *kinds)
            if self.found.trace_function(bound.args, bound.kwargs, config) is not concrete:
                return None
            kind = concrete.function_type
            inputs = kind.unpack_inputs(kind.bind(*bound.args, **bound.kwargs))
        except (TypeError, ValueError):  # arrays that TensorFlow converts to another type, which it does not to tensors
            return None
        return self._described(concrete, inputs, args, named)

    def of_concrete(self, concrete: Any, args: Any, named: Any) -> dict[str, Any] | None:
        """The same of a function that is one graph: by its signature, or else by the names of its inputs."""
        args, named = self.arguments.told_apart(args, named)
        kind = concrete.function_type
        inputs = None
        if kind is not None:
            with contextlib.suppress(TypeError):  # as TensorFlow does
                inputs = kind.unpack_inputs(self.found.types_of(args, named, kind))
        if inputs is None:
            inputs = self._by_names_of_inputs(concrete, args, named)
        return None if inputs is None else self._described(concrete, inputs, args, named)

    def _by_names_of_inputs(self, concrete: Any, args: Any, named: Any) -> list[Any] | None:
        sanitized = self.found.sanitized
        left = {sanitized(name): value for name, value in named.items()}
        names = [name.decode() if isinstance(name, bytes) else name for name in concrete._arg_keywords]
        inputs = [*args, *(left.pop(sanitized(name), None) for name in names[len(args) :])]
        is_complete = len(args) <= concrete._num_positional_args and not left
        return inputs if is_complete and all(type(value) is self.found.tensor for value in inputs) else None

    def _described(self, concrete: Any, inputs: Any, args: Any, named: Any) -> dict[str, Any] | None:
        now, graph = self.found.context(), concrete._inference_function
        options = now.function_call_options
        key = (now.device_name, options.executor_type, options.config_proto_serialized)
        calls = now.__dict__.get(CALLS, {}).get(graph.name)
        if calls is not None and key not in calls and calls.under_way:
            raise UndecidedError
        direct = None if calls is None else calls.get(key)
        flat = self.tensors_in(args, named)
        if graph._bound_context is not now or not direct or flat is None:
            return None
        places = {id(tensor): place for place, tensor in enumerate(flat)}
        order = [places.get(id(tensor), -1) for tensor in inputs]
        if sorted(order) != list(range(len(flat))):
            return None
        captured = concrete._captured_inputs
        if any(callable(capture) for capture in captured):
            return None
        tensors = concrete.captured_inputs
        kind = graph.function_type
        if any(type(tensor) is not self.found.tensor for tensor in tensors) or kind.output is None:
            return None
        if any(result.dtype._handle_data for result in kind.flat_outputs):
            return None
        try:
            result = self.results.how(kind.output)
        except UnlikeError:
            return None
        return {
            "call": direct,
            "order": order,
            "captured_tensors": list(tensors),
            "concrete": concrete,
            "captured": captured,
            "graph": graph,
            "context": now,
            "executor_type": options.executor_type,
            "config": options.config_proto_serialized,
            "result": result,
        }


def _failing(found: SimpleNamespace) -> Callable[[Any, BaseException], None]:
    interpolate = found.interpolate

    @found.filter_traceback  # type: ignore[untyped-decorator]
    def fail(graph: Any, error: BaseException) -> None:
        """Raises an error of a graph, which is the user's, in TensorFlow's words."""
        with interpolate(graph):
            raise error

    return fail


def _watch(found: SimpleNamespace, arguments: _Arguments) -> None:
    """Tells the interop module what TensorFlow looks at besides the arguments."""
    interop_module().watch(
        {
            "array": arguments.array,
            "iterator": found.iterator,
            "look_at_iterator": arguments.look_at_iterator,
            "tensor_of": arguments.tensor_of,
            "run_eagerly": vars(sys.modules[f"{FUNCTIONS}eager_function_run"]),
            "graph_stack": found.graph_stack,
            "saving": vars(sys.modules[f"{PYTHON}saved_model.save_context"]),
            "cancellation": found.cancellation,
            "next": next,
            "fail": _failing(found),
        }
    )


def _caller(found: SimpleNamespace, graphs: _Graphs) -> Callable[..., Any]:
    original, detectors, module = found.call, found.detectors, interop_module()
    call_known, learn, take_count = module.call_known, module.learn, module.take_count

    def count(function: Any, calls: int) -> None:
        """Tells TensorFlow's warnings of retracing of calls that it has not seen."""
        detectors.called_without_tracing(function._key_for_call_stats)
        with detectors._lock:
            detector = detectors._get_detector(function._key_for_call_stats)
            detector._calls_per_tracings[-1] += calls - 1
            detector._call_count += calls - 1

    def call(self: Any, *args: Any, **named: Any) -> Any:
        result = call_known(self, args, named, LEARN, LEAVE)
        if result is not LEARN and result is not LEAVE:
            return result
        calls = take_count(self)
        if calls:
            with HOOK.contained():
                count(self, calls)
        graphs_before = len(self._function_cache)
        done = original(self, *args, **named)
        if result is LEARN and graphs_before == len(self._function_cache):
            with HOOK.contained(), contextlib.suppress(UndecidedError):
                learn(self, args, named, graphs.of_function(self, args, named))
        return done

    return call


def _concrete_caller(found: SimpleNamespace, graphs: _Graphs) -> Callable[..., Any]:
    original, module = found.call_concrete, interop_module()
    call_known, learn, kinds = module.call_known, module.learn, (found.concrete, found.restored)

    def call(self: Any, *args: Any, **named: Any) -> Any:
        if type(self) not in kinds:
            return original(self, *args, **named)
        result = call_known(self, args, named, LEARN, LEAVE)
        if result is not LEARN and result is not LEAVE:
            return result
        done = original(self, *args, **named)
        if result is LEARN:
            with HOOK.contained(), contextlib.suppress(UndecidedError):
                learn(self, args, named, graphs.of_concrete(self, args, named))
        return done

    return call


def _replaces_in_place(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces a concrete function's capture so that the list of captures is known again by its identity."""

    def replacement(self: Any, *arguments: Any, **named: Any) -> Any:
        self._captured_inputs = list(self._captured_inputs)
        return original(self, *arguments, **named)

    return replacement


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    arguments = _Arguments(found)
    graphs = _Graphs(found, arguments)
    _watch(found, arguments)
    return {
        "call": _caller(found, graphs),
        "call_concrete": _concrete_caller(found, graphs),
        "replace_capture": _replaces_in_place(found.replace_capture),
    }


POLYMORPHIC = f"{FUNCTIONS}polymorphic_function"
CONCRETE = f"{FUNCTIONS}concrete_function"
HOOK = Patch(
    name="functions",
    kind=SPEED,
    purpose="Python finds the graph that a function runs without building types of its arguments.",
    without="Functions are found as TensorFlow does, which takes longer.",
    needs={
        "call": f"{POLYMORPHIC}:Function.__call__(self, *args, **kwds)",
        "call_concrete": f"{CONCRETE}:ConcreteFunction.__call__(self, *args, **kwargs)",
        "concrete": f"{CONCRETE}:ConcreteFunction[class]",
        "sanitized": "tensorflow.core.function.polymorphism.function_type:sanitize_arg_name(name)",
        "restored": f"{PYTHON}saved_model.load:_WrapperFunction[class]",
        "replace_capture": f"{CONCRETE}:ConcreteFunction.replace_capture_with_deferred_capture"
        "(self, tensor, closure, spec, placeholder=, default_value=)",
        "detectors": f"{POLYMORPHIC}:_frequent_tracing_detector_manager[_FrequentTracingDetectorManager]",
        "trace_function": f"{FUNCTIONS}tracing_compilation:trace_function(args=, kwargs=, tracing_options=)",
        "types_of": f"{FUNCTIONS}function_type_utils:canonicalize_function_inputs"
        "(args, kwargs, function_type, default_values=, is_pure=)",
        "run_eagerly": f"{FUNCTIONS}eager_function_run:RUN_FUNCTIONS_EAGERLY[bool]",
        "interpolate": f"{FUNCTIONS}atomic_function:InterpolateRuntimeError[class]",
        "filter_traceback": f"{PYTHON}util.traceback_utils:filter_traceback(fn)",
        "context": f"{PYTHON}eager.context:context()",
        "graph_stack": f"{PYTHON}framework.ops:_default_graph_stack[_DefaultGraphStack]",
        "save_context": f"{PYTHON}saved_model.save_context:_save_context[SaveContext]",
        "cancellation": f"{PYTHON}eager.cancellation:context()",
        "tensor": f"{PYTHON}framework.ops:EagerTensor[class]",
        "iterator": f"{PYTHON}data.ops.iterator_ops:OwnedIterator[class]",
        "tensor_spec": f"{PYTHON}framework.tensor:TensorSpec[class]",
        "optional": f"{PYTHON}data.ops.optional_ops:_OptionalImpl[class]",
        "optional_spec": f"{PYTHON}data.ops.optional_ops:OptionalSpec[class]",
        "literal": f"{TRACE_TYPES}.default_types:Literal[class]",
        "tuple": f"{TRACE_TYPES}.default_types:Tuple[class]",
        "list": f"{TRACE_TYPES}.default_types:List[class]",
        "dict": f"{TRACE_TYPES}.default_types:Dict[class]",
    },
    relies=(
        f"{PYTHON}framework.ops:get_default_graph",
        f"{PYTHON}framework.ops:_DefaultGraphStack.get_default",
        f"{PYTHON}framework.ops:Graph._distribution_strategy_stack",
        f"{PYTHON}saved_model.save_context:in_save_context",
        f"{PYTHON}saved_model.save_context:SaveContext.in_save_context",
        f"{PYTHON}saved_model.load:_WrapperFunction.__init__",
        f"{PYTHON}saved_model.load:_WrapperFunction._call_flat",
        f"{PYTHON}framework.constant_op:convert_to_eager_tensor",
        f"{POLYMORPHIC}:_FrequentTracingDetector.called_without_tracing",
        f"{POLYMORPHIC}:_FrequentTracingDetectorManager._get_detector",
        f"{POLYMORPHIC}:_FrequentTracingDetectorManager.called_without_tracing",
        f"{POLYMORPHIC}:Function.__init__",
        f"{POLYMORPHIC}:Function._call",
        f"{POLYMORPHIC}:Function._run_functions_eagerly",
        f"{FUNCTIONS}tracing_compilation:call_function",
        f"{CONCRETE}:ConcreteFunction._call_impl",
        f"{CONCRETE}:ConcreteFunction._call_with_structured_signature",
        f"{CONCRETE}:ConcreteFunction._call_with_flat_signature",
        f"{CONCRETE}:ConcreteFunction._call_flat",
        f"{CONCRETE}:ConcreteFunction.captured_inputs",
        f"{CONCRETE}:ConcreteFunction.set_external_captures",
        f"{FUNCTIONS}atomic_function:AtomicFunction.call_preflattened",
        f"{FUNCTIONS}atomic_function:AtomicFunction.call_flat",
        f"{FUNCTIONS}atomic_function:InterpolateRuntimeError.__exit__",
        "tensorflow.core.function.polymorphism.function_type:FunctionType.unpack_inputs",
        "tensorflow.core.function.polymorphism.function_type:FunctionType.pack_output",
        f"{PYTHON}eager.context:Context.call_function",
    ),
    attributes={
        f"{POLYMORPHIC}:Function": (
            "_created_variables",
            "_default_values",
            "_function_cache",
            "_function_type",
            "_is_pure",
            "_jit_compile",
            "_key_for_call_stats",
            "_no_variable_creation_config",
            "_variable_creation_config",
        ),
        f"{CONCRETE}:ConcreteFunction": (
            "_arg_keywords",
            "_captured_inputs",
            "_inference_function",
            "_num_positional_args",
        ),
        f"{FUNCTIONS}atomic_function:AtomicFunction": ("_bound_context",),
        f"{PYTHON}framework.ops:Graph": ("_distribution_strategy_stack",),
        f"{PYTHON}framework.ops:_DefaultGraphStack": ("stack", "_global_default_graph"),
        f"{PYTHON}saved_model.save_context:SaveContext": ("_in_save_context",),
        f"{PYTHON}eager.context:FunctionCallOptions": ("_executor_type", "_config_proto_serialized"),
        f"{POLYMORPHIC}:_FrequentTracingDetectorManager": ("_lock", "_get_detector"),
        f"{POLYMORPHIC}:_FrequentTracingDetector": ("_calls_per_tracings", "_call_count"),
        f"{PYTHON}data.ops.iterator_ops:OwnedIterator": ("_iterator_resource", "_type_spec"),
        f"{TRACE_TYPES}.default_types:Dict": ("_placeholder_type",),
    },
    public="a `tf.function` that keeps what it runs for arguments like the last ones",
    make=_make,
    requires=lambda: interop_module(THREAD_STATE),
    check=("call", *FINDING),
)
