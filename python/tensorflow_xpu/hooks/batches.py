"""How Keras gets batches of arrays: ``predict`` without a data set of TensorFlow's, ``fit`` from one that costs less.

Keras makes a data set of the arrays that it is given. It traces three functions for it, for each call. Its iterator
gathers each batch's rows into new memory on threads of its own. That takes 30 milliseconds before the first batch of
``predict``, which takes batches in Python. With this hook they are views of the arrays. In all other cases Keras has to
get what TensorFlow makes. Our data set and iterator turn into ordinary ones when anything but the next element in
Python is asked of them. They do so at the place where they are then.

An iterator of tf.data has a thread that tunes it, and wakes up after 10 milliseconds, 20 more, 40 more ... Its
destructor waits for that. There is nothing to tune in gathering rows: what ``fit`` and ``evaluate`` get is told not to.
And Keras makes two iterators for each epoch, of which it uses one: they are made when somebody uses them.

Source of the behaviour: keras/src/trainers/data_adapters/array_data_adapter.py, ``ArrayDataAdapter.get_tf_dataset``;
keras/src/backend/tensorflow/trainer.py, ``TensorFlowTrainer.predict``; tensorflow/core/data/root_dataset.cc.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu.hooks.patch import SPEED, Patch
from tensorflow_xpu.hooks.runtime import AFTER_KERAS, eager_device, keras_uses_xpu
from tensorflow_xpu.hooks.trial import NotNowError

PYTHON = "tensorflow.python."
# Where a stand-in keeps what makes the ordinary object; what takes the next batch; what makes an iterator.
MAKE, TAKE, ITERATOR = "_xpu_make", "_xpu_take", "_xpu_iterator"
# The types of numbers, as NumPy calls them, that are TensorFlow's, too.
NUMBERS = "?bhilqBHILQefdFD"
# Where TensorFlow's data sets have their elements.
HOST = "/device:CPU:0"
# For the functions that turn objects into others.
LOCK = threading.RLock()


class _StandIn:
    """An object that turns into the ordinary one, which MAKE makes, as soon as that one's attributes are asked for."""

    __slots__ = ()  # the layout is that of the other base, which comes first

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or MAKE not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(_become(self), name)


def _become(stand_in: Any) -> Any:
    """Turns an object into the one that it stands for, which is no part of the graph that may be under way."""
    with LOCK, sys.modules["tensorflow"].init_scope():
        if MAKE in stand_in.__dict__:
            ordinary = stand_in.__dict__[MAKE]()
            del stand_in.__dict__[MAKE]
            stand_in.__dict__.update(ordinary.__dict__)
            stand_in.__class__ = type(ordinary)
    return stand_in


class _Arrays:
    """The arrays that Keras's adapter has been given, and the way in which batches are made of them."""

    def __init__(self, found: SimpleNamespace) -> None:
        numpy: Any = sys.modules["numpy"]
        self.arrays, self.tensor, self.dtype = (numpy.ndarray, numpy.memmap), found.tensor, numpy.dtype
        self.to_sliceable = found.to_sliceable

    def are(self, value: Any) -> bool:
        """True if a value is arrays or eager tensors, of TensorFlow's and NumPy's numbers, or a structure of such."""
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


def _late(found: SimpleNamespace, dataset_type: type) -> type:
    """The type of data sets, with iterators that are made when something is asked of them."""

    class LateIterator(found.iterator, _StandIn):  # type: ignore[name-defined]
        def __init__(self, make: Callable[[], Any]) -> None:
            self.__dict__[MAKE] = make

    class LateDataset(dataset_type):
        def __iter__(self) -> Any:
            make = super().__iter__
            return LateIterator(make) if found.executing_eagerly() else make()

    return LateDataset


def _classes(found: SimpleNamespace, arrays: _Arrays) -> type:
    """The stand-in for a data set, which makes one for its iterator."""
    executing_eagerly = found.executing_eagerly

    class ArrayIterator(found.iterator, _StandIn):  # type: ignore[name-defined]
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
                raise sys.modules["tensorflow"].errors.OutOfRangeError(None, None, "End of sequence")

            self.__dict__.update({MAKE: at_same_place, TAKE: take})

        def _next_internal(self) -> Any:
            if executing_eagerly():
                return self.__dict__[TAKE]()
            return _become(self)._next_internal()

    class ArrayDataset(found.dataset, _StandIn):  # type: ignore[name-defined]
        def __init__(self, adapter: Any, make: Callable[[], Any]) -> None:
            values: list[Any] = []  # what was read, for the next iterator, too
            self.__dict__.update({MAKE: make, ITERATOR: lambda: ArrayIterator(adapter, self, values)})

        def __iter__(self) -> Any:
            return self.__dict__[ITERATOR]() if executing_eagerly() else iter(_become(self))

        # TensorFlow leaves these to the classes of its data sets.
        def _inputs(self) -> Any:
            return _become(self)._inputs()

        @property
        def element_spec(self) -> Any:
            return _become(self).element_spec

    return ArrayDataset


def _is_distributed() -> bool:
    """True if Keras may divide a data set among processes."""
    return sys.modules["keras"].distribution.distribution() is not None


def _make(found: SimpleNamespace) -> Mapping[str, Any]:
    original, arrays = found.get_tf_dataset, _Arrays(found)
    dataset_type, late_types = _classes(found, arrays), dict[type, type]()

    def stand_in(self: Any) -> Any:
        """That for the data set of an adapter; None if there is none."""
        inputs = self._inputs
        # Where there are targets it is fit or evaluate.
        if self._shuffle or not self._num_samples or (type(inputs) is tuple and len(inputs) > 1):
            return None
        return dataset_type(self, lambda: untuned(self)) if arrays.are(inputs) else None

    def untuned(self: Any) -> Any:
        options = sys.modules["tensorflow"].data.Options()
        options.autotune.enabled = False
        return original(self).with_options(options)

    def late(dataset: Any) -> Any:
        kind = type(dataset)
        if kind not in late_types:
            late_types[kind] = _late(found, kind)
        dataset.__class__ = late_types[kind]
        return dataset

    def get_tf_dataset(self: Any) -> Any:
        if not found.executing_eagerly() or not keras_uses_xpu() or _is_distributed():
            return original(self)
        stand_in_dataset = stand_in(self)
        return late(untuned(self)) if stand_in_dataset is None else stand_in_dataset

    return {"get_tf_dataset": get_tf_dataset}


def _check() -> list[Any]:
    """Batches of ``fit`` and ``predict``, of NumPy's arrays and of tensors, as the steps of a model get them."""
    if not keras_uses_xpu() or _is_distributed():
        raise NotNowError
    keras: Any = sys.modules["keras"]
    numpy: Any = sys.modules["numpy"]
    seen: list[Any] = []
    with eager_device() as tf:

        def note(data: Any) -> Any:
            seen.append([tensor.numpy().tolist() for tensor in tf.nest.flatten(data)])
            return tf.nest.flatten(data)[0]

        class Probe(keras.Model):
            def call(self, x: Any) -> Any:
                return x

            def train_step(self, data: Any) -> Any:
                return {"loss": tf.reduce_sum(note(data))}

            def predict_step(self, data: Any) -> Any:
                return note(data) * 2

        model = Probe()
        model.compile(run_eagerly=True)
        model.built = True
        x, y = numpy.arange(6.0).reshape(3, 2), numpy.arange(3)
        model.fit(x, y, batch_size=2, shuffle=False, verbose=0)
        results = [
            model.predict({"a": x, "b": y}, batch_size=2, verbose=0),
            model.predict(tf.constant(x, tf.float32), batch_size=2, steps=1, verbose=0),
        ]
    return [*seen, *(result.tolist() for result in results)]


BOTH, LAST = [[[0, 1], [2, 3]], [0, 1]], [[[4, 5]], [2]]
BATCHES = (BOTH, LAST, BOTH, LAST, BOTH[:1], [[0, 2], [4, 6], [8, 10]], [[0, 2], [4, 6]])

KERAS = "keras.src."
ADAPTERS = f"{KERAS}trainers.data_adapters."
TRAINER = f"{KERAS}backend.tensorflow.trainer"
HOOK = Patch(
    name="batches",
    kind=SPEED,
    purpose="Keras's `predict` takes batches from arrays without a data set, and `fit` makes a cheaper one.",
    without="Keras makes data sets of arrays, which takes longer.",
    needs={
        "get_tf_dataset": f"{ADAPTERS}array_data_adapter:ArrayDataAdapter.get_tf_dataset(self)",
        "to_sliceable": f"{ADAPTERS}array_slicing:convert_to_sliceable(arrays, target_backend=)",
        "executing_eagerly": f"{PYTHON}eager.context:executing_eagerly()",
        "tensor": f"{PYTHON}framework.ops:EagerTensor[class]",
        "dataset": f"{PYTHON}data.ops.dataset_ops:DatasetV2[class]",
        "iterator": f"{PYTHON}data.ops.iterator_ops:OwnedIterator[class]",
    },
    relies=(
        f"{ADAPTERS}array_data_adapter:ArrayDataAdapter.__init__",
        f"{TRAINER}:TensorFlowTrainer.predict",
        f"{TRAINER}:TFEpochIterator.__init__",
        f"{TRAINER}:TFEpochIterator._get_iterator",
        f"{KERAS}trainers.epoch_iterator:EpochIterator._enumerate_iterator",
        f"{PYTHON}data.ops.dataset_ops:DatasetV2.__iter__",
        f"{PYTHON}data.ops.iterator_ops:OwnedIterator.__init__",
        f"{PYTHON}data.ops.iterator_ops:OwnedIterator.__next__",
        f"{PYTHON}framework.ops:_EagerTensorBase._numpy",
    ),
    attributes={
        f"{ADAPTERS}array_data_adapter:ArrayDataAdapter": ("_batch_size", "_inputs", "_num_samples", "_shuffle"),
        f"{PYTHON}data.ops.dataset_ops:DatasetV2": ("_inputs",),
        f"{PYTHON}data.ops.iterator_ops:OwnedIterator": ("_next_internal",),
        f"{PYTHON}framework.ops:EagerTensor": ("_numpy",),
    },
    after=AFTER_KERAS,
    public="`tf.data` from arrays on the host without functions, or a `predict` that takes NumPy batches",
    make=_make,
    check=("get_tf_dataset", _check, BATCHES),
)
