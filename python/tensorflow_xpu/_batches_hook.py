"""How Keras gets batches of arrays: ``predict`` without a data set of TensorFlow's, ``fit`` from one that costs less.

Keras makes a data set of the arrays that it is given. It traces three functions for it, for each call, and that one's
iterator gathers each batch's rows into new memory on threads of its own: 30 milliseconds before the first batch of
``predict``, which takes batches in Python. With this hook they are views of the arrays. In all other cases Keras has to
get what TensorFlow makes: what stands in for the data set, and for its iterator, turns into the ordinary one as soon as
anything else than the next element in Python is asked of it, at the place where it is then.

An iterator of tf.data has a thread that tunes it, and wakes up after 10 milliseconds, 20 more, 40 more ...; whoever
destroys the iterator waits for that. There is nothing to tune in gathering rows: what ``fit`` and ``evaluate`` get is
told not to. And Keras makes two iterators for each epoch, of which it uses one: they are made when somebody uses them.

``_hooks`` runs this file while TensorFlow is being imported: it imports nothing, and waits for Keras.

Source of the behaviour: keras/src/trainers/data_adapters/array_data_adapter.py, ``ArrayDataAdapter.get_tf_dataset``;
keras/src/backend/tensorflow/trainer.py, ``TensorFlowTrainer.predict``; tensorflow/core/data/root_dataset.cc.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # a name that type checkers know: nothing is imported for them
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

PYTHON = "tensorflow.python."
TARGET = "keras.src.trainers.data_adapters.array_data_adapter"
ADAPTER = "ArrayDataAdapter"
# The devices' type, and what acts on a module that is imported later: ``_hooks`` has put them here.
DEVICE_TYPE: str = globals().get("DEVICE_TYPE", "XPU")
AfterImport: Any = globals().get("AfterImport")
# Where a stand-in keeps what makes the ordinary object; what takes the next batch; what makes an iterator.
MAKE, TAKE, ITERATOR = "_xpu_make", "_xpu_take", "_xpu_iterator"
# The types of numbers, as NumPy calls them, that are TensorFlow's, too.
NUMBERS = "?bhilqBHILQefdFD"
# Where TensorFlow's data sets have their elements.
HOST = "/device:CPU:0"
# Of those that turn objects into others.
LOCK = sys.modules["_thread"].RLock()


class _StandIn:
    """An object that turns into the ordinary one, which MAKE makes, as soon as that one's attributes are asked for."""

    __slots__ = ()  # the layout is that of the other base, which comes first

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or MAKE not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(_become(self), name)


def _become(stand_in: Any) -> Any:
    """Turns an object into the one that it stands for, which is no part of the graph that may be under way."""
    with LOCK, sys.modules[f"{PYTHON}framework.ops"].init_scope():
        if MAKE in stand_in.__dict__:
            ordinary = stand_in.__dict__[MAKE]()
            del stand_in.__dict__[MAKE]
            stand_in.__dict__.update(ordinary.__dict__)
            stand_in.__class__ = type(ordinary)
    return stand_in


class _Arrays:
    """What Keras's adapter of arrays has been given, and how batches are made of it."""

    def __init__(self, to_sliceable: Callable[..., Any]) -> None:
        modules = sys.modules
        numpy, ops = modules["numpy"], modules[f"{PYTHON}framework.ops"]
        self.arrays, self.tensor, self.dtype = (numpy.ndarray, numpy.memmap), ops.EagerTensor, numpy.dtype
        self.to_sliceable = to_sliceable

    def are(self, value: Any) -> bool:
        """Whether a value is arrays, or eager tensors, of TensorFlow's and NumPy's numbers, and what holds such."""
        if type(value) in (tuple, list):
            return all(self.are(item) for item in value)
        if type(value) is dict:
            return all(self.are(item) for item in value.values())
        if isinstance(value, self.tensor):
            return self.dtype(value.dtype.as_numpy_dtype).char in NUMBERS
        return type(value) in self.arrays and value.dtype.char in NUMBERS and value.dtype.isnative

    def read(self, value: Any) -> Any:
        """The arrays in NumPy, of the types that Keras gives them."""
        if type(value) in (tuple, list):
            return tuple(self.read(item) for item in value)
        if type(value) is dict:
            return {key: self.read(item) for key, item in value.items()}
        value = self.to_sliceable(value, target_backend="tensorflow")
        # Not numpy(), which may be the user's own by now.
        return self.tensor._numpy(value).copy() if isinstance(value, self.tensor) else value

    def batch(self, value: Any, rows: slice) -> Any:
        """Some rows of what was read, as tensors on the host: of their memory if that is aligned, else of a copy."""
        if type(value) is tuple:
            return tuple([self.batch(item, rows) for item in value])
        if type(value) is dict:
            return {key: self.batch(item, rows) for key, item in value.items()}
        return self.tensor(value[rows], HOST, None)


def _late(dataset_type: type) -> type:
    """The type of data sets, with iterators that are made when something is asked of them."""
    modules = sys.modules
    iterator_type, context = modules[f"{PYTHON}data.ops.iterator_ops"].OwnedIterator, modules[f"{PYTHON}eager.context"]

    class LateIterator(iterator_type, _StandIn):  # type: ignore[misc,valid-type]
        def __init__(self, make: Callable[[], Any]) -> None:
            self.__dict__[MAKE] = make

    class LateDataset(dataset_type):
        def __iter__(self) -> Any:
            make = super().__iter__
            return LateIterator(make) if context.executing_eagerly() else make()

    return LateDataset


def _classes(arrays: _Arrays) -> type:
    """The stand-in for a data set, which makes one for its iterator."""
    modules = sys.modules
    dataset_type = modules[f"{PYTHON}data.ops.dataset_ops"].DatasetV2
    iterator_type = modules[f"{PYTHON}data.ops.iterator_ops"].OwnedIterator
    context, errors = modules[f"{PYTHON}eager.context"], modules[f"{PYTHON}framework.errors_impl"]

    class ArrayIterator(iterator_type, _StandIn):  # type: ignore[misc,valid-type]
        def __init__(self, adapter: Any, dataset: Any, values: list[Any]) -> None:
            rows, size = adapter._num_samples, adapter._batch_size
            starts: Any = iter(range(0, rows, size))  # each is taken once, also by several threads
            batches = starts.__length_hint__()

            def at_same_place() -> Any:
                ordinary = iter(_become(dataset))
                for _ in range(batches - starts.__length_hint__()):
                    next(ordinary)
                return ordinary

            def take() -> Any:
                if not values:
                    values.append(arrays.read(adapter._inputs))
                for start in starts:
                    return arrays.batch(values[0], slice(start, start + size))
                raise errors.OutOfRangeError(None, None, "End of sequence")

            self.__dict__.update({MAKE: at_same_place, TAKE: take})

        def _next_internal(self) -> Any:
            if context.executing_eagerly():
                return self.__dict__[TAKE]()
            return _become(self)._next_internal()

    class ArrayDataset(dataset_type, _StandIn):  # type: ignore[misc,valid-type]
        def __init__(self, adapter: Any, make: Callable[[], Any]) -> None:
            values: list[Any] = []  # what was read, for the next iterator, too
            self.__dict__.update({MAKE: make, ITERATOR: lambda: ArrayIterator(adapter, self, values)})

        def __iter__(self) -> Any:
            return self.__dict__[ITERATOR]() if context.executing_eagerly() else iter(_become(self))

        # What TensorFlow leaves to the classes of its data sets.
        def _inputs(self) -> Any:
            return _become(self)._inputs()

        @property
        def element_spec(self) -> Any:
            return _become(self).element_spec

    return ArrayDataset


def patch(module: ModuleType) -> None:
    """Replaces what makes a data set of arrays."""
    adapter = getattr(module, ADAPTER, None)
    original = getattr(adapter, "get_tf_dataset", None)
    to_sliceable = getattr(getattr(module, "array_slicing", None), "convert_to_sliceable", None)
    if adapter is None or original is None or to_sliceable is None or hasattr(original, "__wrapped__"):
        return
    known: list[Any] = []
    late_types: dict[type, type] = {}

    def stand_in(self: Any) -> Any:
        """That for the data set of an adapter; None if there is none. Raises AttributeError in another Keras."""
        inputs = self._inputs
        # Where there are targets it is fit or evaluate.
        if self._shuffle or not self._num_samples or (type(inputs) is tuple and len(inputs) > 1):
            return None
        if not known:
            arrays = _Arrays(to_sliceable)
            known.extend((arrays, _classes(arrays)))
        arrays, dataset = known
        return dataset(self, lambda: untuned(self)) if arrays.are(inputs) else None

    def untuned(self: Any) -> Any:
        options = sys.modules["tensorflow"].data.Options()
        options.autotune.enabled = False
        return original(self).with_options(options)

    def late(dataset: Any) -> Any:
        kind = type(dataset)
        if kind not in late_types:
            late_types[kind] = _late(kind)
        dataset.__class__ = late_types[kind]
        return dataset

    def get_tf_dataset(self: Any) -> Any:
        tensorflow = sys.modules["tensorflow"]
        if not tensorflow.executing_eagerly() or not tensorflow.config.list_physical_devices(DEVICE_TYPE):
            return original(self)
        try:
            found = stand_in(self)
        except AttributeError:
            found = None
        return late(untuned(self)) if found is None else found

    get_tf_dataset.__doc__ = original.__doc__
    get_tf_dataset.__wrapped__ = original  # type: ignore[attr-defined]
    adapter.get_tf_dataset = get_tf_dataset


def install() -> None:
    """Patches Keras now if it is imported, else as soon as it is."""
    AfterImport.install(TARGET, patch, ADAPTER)
