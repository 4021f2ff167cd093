"""Has Python find what a `tf.function` runs without building its arguments' types anew for each call.

To find the graph that it has traced for such arguments, TensorFlow makes types of them and of all captured variables,
binds them to parameters, and looks the types up: 100 microseconds for a small model, 250 for one of 25 layers. With
this hook the second call with arguments like these, by their types and shapes, keeps what was found; later ones go
straight to the call of the graph (``_call_hook``). That is for functions that are called directly there, with
tensors, iterators, and tuples, lists and dicts of these; anything that TensorFlow would look at besides (a gradient
tape, a strategy, a graph being built) has the call go its way. The elements that Python takes from an iterator, 110
microseconds of types for three tensors, are made in the same manner.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing.

Source of the behaviour: tensorflow/python/eager/polymorphic_function/polymorphic_function.py, ``Function.__call__``;
tracing_compilation.py, ``call_function``; concrete_function.py, ``ConcreteFunction._call_flat``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PYTHON = "tensorflow.python."
FUNCTIONS = f"{PYTHON}eager.polymorphic_function."
# Where a context keeps what it knows of functions that are called directly: ``_hooks`` has put it here.
CALLS: str = globals().get("CALLS", "")
# What tells our ``Function.__call__`` from TensorFlow's, which has a ``__wrapped__``, too.
HOOK = "_xpu_hook"
# Where a function keeps what it knows: how many graphs it had then, and by kind of arguments what they call.
KNOWN = "_xpu_known_calls"
# Where an iterator keeps the number of its elements' type.
KIND = "_xpu_kind"
# Kinds of arguments that a function keeps: more come from a program whose shapes change with each call.
MOST_KINDS = 64
# Types that are no plain numbers: resource, variant.
HANDLES = (20, 21)


class _UnlikeError(Exception):
    """Arguments, or results, of which nothing is kept."""


class _Arguments:
    """What tells one kind of arguments from another, and the tensors in them."""

    def __init__(self, tensor: type, iterator: type) -> None:
        self.tensor, self.iterator = tensor, iterator
        self.kinds: dict[Any, int] = {}  # of iterators' elements
        # The same by the identity of what says what they are, which an iterator has from its data set: an epoch's is
        # known from the last one's, without the hash of a type.
        self.seen: dict[int, tuple[Any, tuple[str, int]]] = {}

    def flatten(self, values: Any, key: list[Any], flat: list[Any]) -> None:
        """Appends to both. Raises _UnlikeError."""
        for value in values:
            kind = type(value)
            if kind is self.tensor:
                number = value._datatype_enum()
                if number in HANDLES:
                    raise _UnlikeError
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
                    raise _UnlikeError from None
                self.flatten([value[name] for name in names], key, flat)
            elif kind is self.iterator:
                key.append(self.kind_of(value))
                flat.append(value._iterator_resource)
            elif value is None or kind is bool or kind is int or kind is str:
                key.append(kind)
                key.append(value)
            else:
                raise _UnlikeError

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


def _tuple_maker(parts: Any, maker: Callable[[Any], Any]) -> Callable[[Iterator[Any]], tuple[Any, ...]]:
    """Takes the tensors of a tuple's parts, for each of which ``maker`` says what makes it."""
    makers = [maker(part) for part in parts]
    return lambda tensors: tuple([make(tensors) for make in makers])


def _dict_maker(parts: Any, maker: Callable[[Any], Any]) -> Callable[[Iterator[Any]], dict[Any, Any]]:
    """The same of a dict, whose tensors come in the order of sorted names."""
    names = list(parts)
    makers = {name: maker(parts[name]) for name in sorted(names)}
    if names == list(makers) and all(make is next for make in makers.values()):
        return lambda tensors: dict(zip(names, tensors))

    def make_all(tensors: Iterator[Any]) -> dict[Any, Any]:
        values = {name: make(tensors) for name, make in makers.items()}
        return {name: values[name] for name in names}

    return make_all


class _Results:
    """Makes a function's results of tensors, as their types would."""

    def __init__(self, types: Any, tensor_spec: type, optional_spec: type, optional: Callable[..., Any]) -> None:
        self.types, self.tensor_spec, self.optional_spec, self.optional = types, tensor_spec, optional_spec, optional

    def maker(self, result: Any) -> Callable[[Iterator[Any]], Any]:
        """For a type of results: what takes their tensors, one after the other. Raises _UnlikeError."""
        kind = type(result)
        if kind is self.tensor_spec:
            return next
        if kind is self.types.Literal:
            return lambda tensors: result.value
        if kind is self.types.Tuple:
            return _tuple_maker(result.components, self.maker)
        if kind is self.types.List:
            of_tuple = self.maker(result.components_tuple)
            return lambda tensors: list(of_tuple(tensors))
        if kind is self.types.Dict and result._placeholder_type is dict:
            return _dict_maker(result.mapping, self.maker)
        if kind is self.optional_spec:
            element_spec, optional = result._element_spec, self.optional
            return lambda tensors: optional(next(tensors), element_spec)
        raise _UnlikeError


def _caller(original: Callable[..., Any]) -> Callable[..., Any]:
    modules = sys.modules
    context = modules[f"{PYTHON}eager.context"]
    tracing = modules[f"{FUNCTIONS}tracing_compilation"]
    polymorphic = modules[f"{FUNCTIONS}polymorphic_function"]
    run_eagerly = modules[f"{FUNCTIONS}eager_function_run"]
    interpolate = modules[f"{FUNCTIONS}atomic_function"].InterpolateRuntimeError
    types_of = modules[f"{FUNCTIONS}function_type_utils"].canonicalize_function_inputs
    tracebacks: Any = modules[f"{PYTHON}util.traceback_utils"]
    get_default_graph = modules[f"{PYTHON}framework.ops"].get_default_graph
    no_tape = modules[f"{PYTHON}pywrap_tfe"].TFE_Py_TapeSetIsEmpty
    trace: Any = modules[f"{PYTHON}profiler.trace"]
    # Before 2.21 it is no function, but a number that the profiler sets.
    is_profiled = trace.enabled if callable(trace.enabled) else lambda: trace.enabled
    in_save_context = modules[f"{PYTHON}saved_model.save_context"].in_save_context
    optional_ops = modules[f"{PYTHON}data.ops.optional_ops"]
    tracings = polymorphic.Function.experimental_get_tracing_count
    detectors = polymorphic._frequent_tracing_detector_manager
    arguments = _Arguments(
        modules[f"{PYTHON}framework.ops"].EagerTensor, modules[f"{PYTHON}data.ops.iterator_ops"].OwnedIterator
    )
    tensor_spec = modules[f"{PYTHON}framework.tensor"].TensorSpec
    results = _Results(
        modules["tensorflow.core.function.trace_type.default_types"],
        tensor_spec,
        optional_ops.OptionalSpec,
        optional_ops._OptionalImpl,
    )
    # What is absent has failed before this: nothing is changed by halves.
    _quick_optionals(optional_ops, arguments.tensor, _Elements())
    # A user's traceback ends where TensorFlow begins, and these hooks are part of it.
    tracebacks._EXCLUDED_PATHS += (__file__.rpartition("/")[0],)

    @tracebacks.filter_traceback  # type: ignore[untyped-decorator]
    def fail(function: Any, error: BaseException) -> None:
        with interpolate(function):
            raise error

    def learn(function: Any, args: Any, flat: list[Any]) -> tuple[Any, ...] | None:
        """What a call with these arguments runs, if nothing else can come of it."""
        config = function._no_variable_creation_config if function._created_variables else None
        config = config or function._variable_creation_config
        if config is None:
            return None
        bound = types_of(args, {}, function._function_type, function._default_values, function._is_pure)
        concrete = tracing.trace_function(bound.args, bound.kwargs, config)
        graph = concrete._inference_function
        now = context.context()
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
        for result in kind.flat_outputs:
            if result.dtype._handle_data:
                return None
        make = results.maker(kind.output)
        return concrete, captured, concrete.captured_inputs, graph, graph.name, len(kind.flat_outputs), make

    def call(self: Any, *args: Any, **named: Any) -> Any:
        now = context.context()
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
        except _UnlikeError:
            return original(self, *args)
        kind = tuple(key)
        graphs = len(self._function_cache)
        known = self.__dict__.get(KNOWN)
        if known is None or known[0] != graphs:
            known = self.__dict__[KNOWN] = (graphs, {})
        found = known[1].get(kind, False)
        if found:
            concrete, captured, captured_tensors, graph, name, num_outputs, make = found
            if concrete._captured_inputs is captured and graph._bound_context is now:
                try:
                    if is_profiled():
                        with trace.Trace(self._name, tf_function_call="notTraced-nonXla", tracing_count=tracings(self)):
                            outputs = now.call_function(name, flat + captured_tensors, num_outputs)
                    else:
                        outputs = now.call_function(name, flat + captured_tensors, num_outputs)
                except BaseException as error:
                    fail(graph, error)
                detectors.called_without_tracing(self._key_for_call_stats)
                return make(iter(outputs or ()))
        result = original(self, *args)
        if found is False and len(known[1]) < MOST_KINDS and graphs == len(self._function_cache):
            try:
                known[1][kind] = learn(self, args, flat)
            except _UnlikeError:
                known[1][kind] = None
        return result

    setattr(call, HOOK, True)
    call.__wrapped__ = original  # type: ignore[attr-defined]
    return call


class _Elements:
    """Makes values of tensors as the specifications of data sets' elements would, whose way to do so takes long."""

    def __init__(self) -> None:
        modules = sys.modules
        self.structure: Any = modules[f"{PYTHON}data.util.structure"]
        self.tensor_spec = modules[f"{PYTHON}framework.tensor"].TensorSpec
        # By a specification's identity: the specification, what ops want to know of it, what makes a value.
        self.known: dict[int, tuple[Any, list[Any], list[Any], Callable[[Iterator[Any]], Any] | None]] = {}

    def maker(self, spec: Any) -> Callable[[Iterator[Any]], Any]:
        """What takes the tensors of such a value, one after the other. Raises _UnlikeError."""
        if type(spec) is self.tensor_spec:
            return next
        if type(spec) is tuple:
            return _tuple_maker(spec, self.maker)
        if type(spec) is dict:
            return _dict_maker(spec, self.maker)
        raise _UnlikeError

    def find(self, spec: Any) -> tuple[Any, list[Any], list[Any], Callable[[Iterator[Any]], Any] | None]:
        found = self.known.get(id(spec))
        if found is not None and found[0] is spec:
            return found
        if len(self.known) >= MOST_KINDS:
            self.known.clear()
        types, shapes = self.structure.get_flat_tensor_types(spec), self.structure.get_flat_tensor_shapes(spec)
        try:
            found = spec, types, shapes, self.maker(spec)
        except _UnlikeError:
            found = spec, types, shapes, None
        self.known[id(spec)] = found
        return found


def _quick_optionals(optional_ops: Any, tensor: type, elements: _Elements) -> None:
    """Has ``tf.experimental.Optional``, which a step of Keras returns, keep how its value is made of tensors."""
    modules = sys.modules
    context, device = modules[f"{PYTHON}eager.context"], modules[f"{PYTHON}framework.ops"].device
    optional, operations = optional_ops._OptionalImpl, optional_ops.gen_optional_ops
    has_value, get_value = optional.has_value, optional.get_value

    def is_plain(variant: Any) -> bool:
        return type(variant) is tensor and context.executing_eagerly()

    def quick_has_value(self: Any, name: str | None = None) -> Any:
        variant = self._variant_tensor
        if not is_plain(variant):
            return has_value(self, name)
        with device(variant.device):
            return operations.optional_has_value(variant)

    def quick_get_value(self: Any, name: str | None = None) -> Any:
        variant = self._variant_tensor
        _, types, shapes, make = elements.find(self._element_spec)
        if make is None or not is_plain(variant):
            return get_value(self, name)
        with device(variant.device):
            return make(iter(operations.optional_get_value(variant, types, shapes)))

    optional.has_value, optional.get_value = quick_has_value, quick_get_value


def _quick_next(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Has an iterator in Python keep how its elements are made of tensors, whose shapes the op compares with its own.

    Source of the behaviour: tensorflow/python/data/ops/iterator_ops.py, ``OwnedIterator._next_internal``, which also
    gives the thread another executor for each element, of the kind that it has anyway.
    """
    modules = sys.modules
    context = modules[f"{PYTHON}eager.context"]
    get_next = modules[f"{PYTHON}data.ops.iterator_ops"].gen_dataset_ops.iterator_get_next
    elements = _Elements()

    def next_element(self: Any) -> Any:
        make = elements.find(self._element_spec)[3]
        if make is None or not context.executing_eagerly() or context.context().is_async():
            return original(self)
        tensors = get_next(
            self._iterator_resource, output_types=self._flat_output_types, output_shapes=self._flat_output_shapes
        )
        return make(iter(tensors))

    next_element.__wrapped__ = original  # type: ignore[attr-defined]
    return next_element


def _replaces_in_place(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of a concrete function's captures, whose list is known again by its identity."""

    def replacement(self: Any, *arguments: Any, **named: Any) -> Any:
        self._captured_inputs = list(self._captured_inputs)
        return original(self, *arguments, **named)

    replacement.__wrapped__ = original  # type: ignore[attr-defined]
    return replacement


def install() -> None:
    """Replaces ``Function.__call__``, by which Python calls what ``tf.function`` makes, and what ``next()`` calls."""
    function = sys.modules[f"{FUNCTIONS}polymorphic_function"].Function
    concrete = sys.modules[f"{FUNCTIONS}concrete_function"].ConcreteFunction
    iterator = sys.modules[f"{PYTHON}data.ops.iterator_ops"].OwnedIterator
    original = function.__call__
    if hasattr(original, HOOK):
        return

    def first(self: Any, *arguments: Any, **named: Any) -> Any:
        # All of TensorFlow is imported by now.
        try:
            caller = _caller(original)
        except (KeyError, AttributeError):
            caller = original
        function.__call__ = caller
        return caller(self, *arguments, **named)

    setattr(first, HOOK, True)
    first.__wrapped__ = original  # type: ignore[attr-defined]
    concrete.replace_capture_with_deferred_capture = _replaces_in_place(concrete.replace_capture_with_deferred_capture)
    function.__call__ = first
    iterator._next_internal = _quick_next(iterator._next_internal)
