"""Has Python take elements from iterators, and values from optionals, without building types for each.

The elements that Python takes from an iterator need 110 microseconds of types for three tensors. So do the
``tf.experimental.Optional`` values that a step of Keras returns. With this hook both keep how a value is made of
tensors; the op compares their shapes with its own.

Source of the behaviour: tensorflow/python/data/ops/iterator_ops.py, ``OwnedIterator._next_internal``, which also gives
the thread another executor for each element, of the kind that it has anyway;
tensorflow/python/data/ops/optional_ops.py, ``_OptionalImpl``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import eager_device
from tensorflow_xpu.hooks.structures import UnlikeError, dict_maker, tuple_maker

PYTHON = "tensorflow.python."
OPS = f"{PYTHON}ops."
OPTIONALS = f"{PYTHON}data.ops.optional_ops"
ITERATORS = f"{PYTHON}data.ops.iterator_ops"
STRUCTURE = f"{PYTHON}data.util.structure"
# Specifications of elements that are kept.
MOST_SPECS = 64


class _Elements:
    """Makes values of tensors as the specifications of data sets' elements would, whose way to do so takes long."""

    def __init__(self, found: SimpleNamespace) -> None:
        self.flat_types, self.flat_shapes, self.tensor_spec = found.flat_types, found.flat_shapes, found.tensor_spec
        # By a specification's identity: the specification, what ops want to know of it, what makes a value.
        self.known: dict[int, tuple[Any, list[Any], list[Any], Callable[[Iterator[Any]], Any] | None]] = {}

    def maker(self, spec: Any) -> Callable[[Iterator[Any]], Any]:
        """A function that takes the tensors of such a value, one after the other. Raises UnlikeError."""
        if type(spec) is self.tensor_spec:
            return next
        if type(spec) is tuple:
            return tuple_maker(spec, self.maker)
        if type(spec) is dict:
            return dict_maker(spec, self.maker)
        raise UnlikeError

    def find(self, spec: Any) -> tuple[Any, list[Any], list[Any], Callable[[Iterator[Any]], Any] | None]:
        """The kept facts of a specification."""
        found = self.known.get(id(spec))
        if found is not None and found[0] is spec:
            return found
        if len(self.known) >= MOST_SPECS:
            self.known.clear()
        types, shapes = self.flat_types(spec), self.flat_shapes(spec)
        try:
            found = spec, types, shapes, self.maker(spec)
        except UnlikeError:
            found = spec, types, shapes, None
        self.known[id(spec)] = found
        return found


def _optionals(found: SimpleNamespace, elements: _Elements) -> Mapping[str, Any]:
    tensor, device, eagerly = found.tensor, found.device, found.executing_eagerly
    has_value, get_value = found.has_value, found.get_value
    has_value_op, get_value_op = found.has_value_op, found.get_value_op

    def is_plain(variant: Any) -> bool:
        return type(variant) is tensor and eagerly()

    def quick_has_value(self: Any, name: str | None = None) -> Any:
        variant = self._variant_tensor
        if not is_plain(variant):
            return has_value(self, name)
        with device(variant.device):
            return has_value_op(variant)

    def quick_get_value(self: Any, name: str | None = None) -> Any:
        variant = self._variant_tensor
        _, types, shapes, make = elements.find(self._element_spec)
        if make is None or not is_plain(variant):
            return get_value(self, name)
        with device(variant.device):
            return make(iter(get_value_op(variant, types, shapes)))

    return {"has_value": quick_has_value, "get_value": quick_get_value}


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    elements = _Elements(found)
    original, get_next, eagerly, context = found.next_internal, found.get_next, found.executing_eagerly, found.context

    def next_internal(self: Any) -> Any:
        make = elements.find(self._element_spec)[3]
        if make is None or not eagerly() or context().is_async():
            return original(self)
        tensors = get_next(
            self._iterator_resource, output_types=self._flat_output_types, output_shapes=self._flat_output_shapes
        )
        return make(iter(tensors))

    return {"next_internal": next_internal, **_optionals(found, elements)}


def _check() -> list[Any]:
    """Elements that are tuples and dicts, the end of a data set, and optional values with and without one."""
    with eager_device() as tf:
        data = {"x": [[1.5, 2.0], [3.0, 4.5]], "y": ([1, 2], [["a"], ["b"]])}
        dataset = tf.data.Dataset.from_tensor_slices(data)
        iterator = iter(dataset)
        optional, element = iterator.get_next_as_optional(), next(iterator)
        elements = [*dataset, element, optional.get_value()]
        found = [tf.nest.map_structure(lambda t: t.numpy().tolist(), element) for element in elements]
        return [*found, bool(optional.has_value()), bool(iterator.get_next_as_optional().has_value())]


FIRST, SECOND = {"x": [1.5, 2.0], "y": (1, [b"a"])}, {"x": [3.0, 4.5], "y": (2, [b"b"])}


HOOK = Patch(
    name="iterators",
    kind=SPEED,
    purpose="Python takes elements of data sets, and the results of Keras's steps, without building types.",
    without="Elements of data sets are made by their types, which takes longer.",
    needs={
        "next_internal": f"{ITERATORS}:OwnedIterator._next_internal(self)",
        "has_value": f"{OPTIONALS}:_OptionalImpl.has_value(self, name=)",
        "get_value": f"{OPTIONALS}:_OptionalImpl.get_value(self, name=)",
        "get_next": f"{OPS}gen_dataset_ops:iterator_get_next(iterator, output_types, output_shapes, name=)",
        "has_value_op": f"{OPS}gen_optional_ops:optional_has_value(optional, name=)",
        "get_value_op": f"{OPS}gen_optional_ops:optional_get_value(optional, output_types, output_shapes, name=)",
        "flat_types": f"{STRUCTURE}:get_flat_tensor_types(element_spec)",
        "flat_shapes": f"{STRUCTURE}:get_flat_tensor_shapes(element_spec)",
        "context": f"{PYTHON}eager.context:context()",
        "executing_eagerly": f"{PYTHON}eager.context:executing_eagerly()",
        "device": f"{PYTHON}framework.ops:device(device_name_or_function)",
        "tensor": f"{PYTHON}framework.ops:EagerTensor[class]",
        "tensor_spec": f"{PYTHON}framework.tensor:TensorSpec[class]",
    },
    relies=(
        f"{ITERATORS}:OwnedIterator.__init__",
        f"{ITERATORS}:OwnedIterator._create_iterator",
        f"{OPTIONALS}:_OptionalImpl.__init__",
        f"{STRUCTURE}:from_compatible_tensor_list",
        f"{STRUCTURE}:from_tensor_list",
        f"{PYTHON}eager.context:Context.is_async",
    ),
    attributes={
        f"{ITERATORS}:OwnedIterator": (
            "_element_spec",
            "_iterator_resource",
            "_flat_output_types",
            "_flat_output_shapes",
        ),
        f"{OPTIONALS}:_OptionalImpl": ("_variant_tensor", "_element_spec"),
    },
    public="a `tf.data` whose iterators keep what their elements' types say",
    make=_make,
    check=("next_internal", _check, (FIRST, SECOND, SECOND, FIRST, True, False)),
)
