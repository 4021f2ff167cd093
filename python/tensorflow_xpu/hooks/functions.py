"""Has Python find what a `tf.function` runs without building its arguments' types anew for each call.

To find the graph that it has traced for such arguments, TensorFlow makes types of them and of all captured variables.
It binds them to parameters and looks the types up. That takes 100 microseconds for a small model, 250 for one of 25
layers. With this hook the second call with arguments like these, by their types and shapes, keeps the graph that was
found. Later ones go straight to the call of the graph (``calls``). That is for functions that are called directly
there, with tensors, iterators, and tuples, lists and dicts of these. If TensorFlow would look at anything besides (a
gradient tape, a strategy, a graph being built), the call goes its way.

Source of the behaviour: tensorflow/python/eager/polymorphic_function/polymorphic_function.py, ``Function.__call__``;
tracing_compilation.py, ``call_function``; concrete_function.py, ``ConcreteFunction._call_flat``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import CALLS, check_calls
from tensorflow_xpu.hooks.structures import UnlikeError, dict_maker, tuple_maker

PYTHON = "tensorflow.python."
FUNCTIONS = f"{PYTHON}eager.polymorphic_function."
TRACE_TYPES = "tensorflow.core.function.trace_type"
# Where a function keeps what it knows: how many graphs it had then, and by kind of arguments what they call.
KNOWN = "_xpu_known_calls"
# Where an iterator keeps the number of its elements' type.
KIND = "_xpu_kind"
# Kinds of arguments that a function keeps: more come from a program whose shapes change with each call.
MOST_KINDS = 64
# Types that are no plain numbers: resource, variant.
HANDLES = (20, 21)


class _Arguments:
    """A key that tells kinds of arguments apart, and the tensors in them."""

    def __init__(self, tensor: type, iterator: type) -> None:
        self.tensor, self.iterator = tensor, iterator
        self.kinds: dict[Any, int] = {}  # of iterators' elements
        # The same by the identity of the iterator's types, which it has from its data set. So an epoch's iterator is
        # known from the last one's, without the hash of a type.
        self.seen: dict[int, tuple[Any, tuple[str, int]]] = {}

    def flatten(self, values: Any, key: list[Any], flat: list[Any]) -> None:
        """Appends to both. Raises UnlikeError."""
        for value in values:
            kind = type(value)
            if kind is self.tensor:
                number = value._datatype_enum()
                if number in HANDLES:
                    raise UnlikeError
                key.append(number)
                key.append(value._shape_tuple())
                flat.append(value)
            elif kind is tuple or kind is list:
                key.append(kind)
                key.append(len(value))
                self.flatten(value, key, flat)
            elif kind is dict:
                key.append(kind)
                key.append(tuple(value))
                try:
                    names = sorted(value)
                except TypeError:
                    raise UnlikeError from None
                self.flatten([value[name] for name in names], key, flat)
            elif kind is self.iterator:
                key.append(self.kind_of(value))
                flat.append(value._iterator_resource)
            elif value is None or kind is bool or kind is int or kind is str:
                key.append(kind)
                key.append(value)
            else:
                raise UnlikeError

    def kind_of(self, iterator: Any) -> tuple[str, int]:
        known: tuple[str, int] | None = iterator.__dict__.get(KIND)
        if known is None:
            spec = iterator.element_spec
            seen = self.seen.get(id(spec))
            if seen is None or seen[0] is not spec:
                if len(self.seen) >= MOST_KINDS:
                    self.seen.clear()
                number = self.kinds.setdefault(iterator._type_spec, len(self.kinds))
                seen = self.seen[id(spec)] = (spec, ("iterator", number))
            known = iterator.__dict__[KIND] = seen[1]
        return known


class _Results:
    """Makes a function's results of tensors, as their types would."""

    def __init__(self, types: Any, tensor_spec: type, optional_spec: type, optional: Callable[..., Any]) -> None:
        self.types, self.tensor_spec, self.optional_spec, self.optional = types, tensor_spec, optional_spec, optional

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

    def __init__(self, found: SimpleNamespace) -> None:
        self.context, self.types_of, self.trace_function = found.context, found.types_of, found.trace_function
        self.results = _Results(
            sys.modules[f"{TRACE_TYPES}.default_types"], found.tensor_spec, found.optional_spec, found.optional
        )

    def learn(self, function: Any, args: Any, flat: list[Any]) -> tuple[Any, ...] | None:
        """The graph that a call with these arguments runs, if nothing else can come of it."""
        config = function._no_variable_creation_config if function._created_variables else None
        config = config or function._variable_creation_config
        if config is None:
            return None
        bound = self.types_of(args, {}, function._function_type, function._default_values, function._is_pure)
        concrete = self.trace_function(bound.args, bound.kwargs, config)
        graph = concrete._inference_function
        now = self.context()
        direct = now.__dict__.get(CALLS, {}).get(graph.name, {})
        if graph._bound_context is not now or not any(direct.values()):
            return None
        kind = concrete.function_type
        inputs = kind.unpack_inputs(kind.bind(*bound.args, **bound.kwargs))
        if len(inputs) != len(flat) or any(a is not b for a, b in zip(inputs, flat, strict=True)):
            return None
        captured = concrete._captured_inputs
        if any(callable(capture) for capture in captured):
            return None
        if any(result.dtype._handle_data for result in kind.flat_outputs):
            return None
        try:
            make = self.results.maker(kind.output)
        except UnlikeError:
            return None
        return concrete, captured, concrete.captured_inputs, graph, graph.name, len(kind.flat_outputs), make


def _runner(found: SimpleNamespace) -> Callable[..., Any]:
    """A function that calls a known graph, with TensorFlow's trace events."""
    detectors, event, tracings = found.detectors, found.event, found.tracings
    profiler: Any = sys.modules[f"{PYTHON}profiler.trace"]
    # Before 2.21 it is no function, but a number that the profiler sets.
    is_profiled = found.is_profiled if callable(found.is_profiled) else lambda: profiler.enabled

    def run(function: Any, now: Any, name: Any, tensors: list[Any], count: int) -> Any:
        if is_profiled():
            with event(function._name, tf_function_call="notTraced-nonXla", tracing_count=tracings(function)):
                outputs = now.call_function(name, tensors, count)
        else:
            outputs = now.call_function(name, tensors, count)
        detectors.called_without_tracing(function._key_for_call_stats)
        return outputs

    return run


def _caller(found: SimpleNamespace) -> Callable[..., Any]:
    original, context, no_tape, in_save_context = found.call, found.context, found.no_tape, found.in_save_context
    get_default_graph = found.get_default_graph
    run_eagerly: Any = sys.modules[f"{FUNCTIONS}eager_function_run"]
    arguments, graphs_of, run = _Arguments(found.tensor, found.iterator), _Graphs(found), _runner(found)

    interpolate = found.interpolate

    @found.filter_traceback  # type: ignore[untyped-decorator]
    def fail(function: Any, error: BaseException) -> None:
        with interpolate(function):
            raise error

    def call(self: Any, *args: Any, **named: Any) -> Any:
        now = context()
        if (
            named
            or self._jit_compile
            or run_eagerly.RUN_FUNCTIONS_EAGERLY
            or not now.executing_eagerly()
            or not no_tape()
            or in_save_context()
            or get_default_graph()._distribution_strategy_stack
        ):
            return original(self, *args, **named)
        key: list[Any] = []
        flat: list[Any] = []
        try:
            arguments.flatten(args, key, flat)
        except UnlikeError:
            return original(self, *args)
        kind = tuple(key)
        graphs = len(self._function_cache)
        known = self.__dict__.get(KNOWN)
        if known is None or known[0] != graphs:
            known = self.__dict__[KNOWN] = (graphs, {})
        what = known[1].get(kind, False)
        if what:
            concrete, captured, captured_tensors, graph, name, count, make = what
            if concrete._captured_inputs is captured and graph._bound_context is now:
                try:
                    outputs = run(self, now, name, flat + captured_tensors, count)
                except BaseException as error:  # it is the user's, in TensorFlow's words
                    fail(graph, error)
                return make(iter(outputs or ()))
        result = original(self, *args)
        if what is False and len(known[1]) < MOST_KINDS and graphs == len(self._function_cache):
            with HOOK.contained():
                known[1][kind] = graphs_of.learn(self, args, flat)
        return result

    return call


def _replaces_in_place(original: Callable[..., Any]) -> Callable[..., Any]:
    """Replaces a concrete function's capture so that the list of captures is known again by its identity."""

    def replacement(self: Any, *arguments: Any, **named: Any) -> Any:
        self._captured_inputs = list(self._captured_inputs)
        return original(self, *arguments, **named)

    return replacement


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    return {"call": _caller(found), "replace_capture": _replaces_in_place(found.replace_capture)}


POLYMORPHIC = f"{FUNCTIONS}polymorphic_function"
HOOK = Patch(
    name="functions",
    kind=SPEED,
    purpose="Python finds the graph that a function runs without building types of its arguments.",
    without="Functions are found as TensorFlow does, which takes longer.",
    needs={
        "call": f"{POLYMORPHIC}:Function.__call__(self, *args, **kwds)",
        "replace_capture": f"{FUNCTIONS}concrete_function:ConcreteFunction.replace_capture_with_deferred_capture"
        "(self, tensor, closure, spec, placeholder=, default_value=)",
        "tracings": f"{POLYMORPHIC}:Function.experimental_get_tracing_count(self)",
        "detectors": f"{POLYMORPHIC}:_frequent_tracing_detector_manager[_FrequentTracingDetectorManager]",
        "trace_function": f"{FUNCTIONS}tracing_compilation:trace_function(args=, kwargs=, tracing_options=)",
        "types_of": f"{FUNCTIONS}function_type_utils:canonicalize_function_inputs"
        "(args, kwargs, function_type, default_values=, is_pure=)",
        "run_eagerly": f"{FUNCTIONS}eager_function_run:RUN_FUNCTIONS_EAGERLY[bool]",
        "interpolate": f"{FUNCTIONS}atomic_function:InterpolateRuntimeError[class]",
        "filter_traceback": f"{PYTHON}util.traceback_utils:filter_traceback(fn)",
        "context": f"{PYTHON}eager.context:context()",
        "get_default_graph": f"{PYTHON}framework.ops:get_default_graph()",
        "no_tape": f"{PYTHON}pywrap_tfe:TFE_Py_TapeSetIsEmpty[C]",
        "is_profiled": f"{PYTHON}profiler.trace:enabled",
        "event": f"{PYTHON}profiler.trace:Trace[class]",
        "in_save_context": f"{PYTHON}saved_model.save_context:in_save_context()",
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
        f"{POLYMORPHIC}:Function.__init__",
        f"{POLYMORPHIC}:Function._call",
        f"{POLYMORPHIC}:Function._run_functions_eagerly",
        f"{FUNCTIONS}tracing_compilation:call_function",
        f"{FUNCTIONS}concrete_function:ConcreteFunction._call_flat",
        f"{FUNCTIONS}concrete_function:ConcreteFunction.captured_inputs",
        f"{FUNCTIONS}concrete_function:ConcreteFunction.set_external_captures",
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
            "_name",
            "_no_variable_creation_config",
            "_variable_creation_config",
        ),
        f"{FUNCTIONS}concrete_function:ConcreteFunction": ("_captured_inputs", "_inference_function"),
        f"{FUNCTIONS}atomic_function:AtomicFunction": ("_bound_context",),
        f"{PYTHON}framework.ops:Graph": ("_distribution_strategy_stack",),
        f"{PYTHON}framework.ops:EagerTensor": ("_datatype_enum", "_shape_tuple"),
        f"{PYTHON}data.ops.iterator_ops:OwnedIterator": ("_iterator_resource", "_type_spec"),
        f"{TRACE_TYPES}.default_types:Dict": ("_placeholder_type",),
    },
    public="a `tf.function` that keeps what it runs for arguments like the last ones",
    make=_make,
    check=("call", check_calls),
)
