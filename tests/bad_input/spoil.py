"""Valid calls from the sweep's cases, each with one thing changed: a shape, a type, an index or an attribute."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import inspect
import json
import math
from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from tensorflow.python.framework import op_def_registry

from tests.sweep.adopted import OPS as ADOPTED
from tests.sweep.cases import CASES
from tests.sweep.registrations import Registration, all_registrations
from tests.sweep.runner import Rng, Var, calls_of

# Arrays of at most so many elements are changed: nothing is wrong with large ones that small ones could not have.
LARGEST = 1 << 16
# An argument with at most so many elements may say how the op works, though it is no integer.
FEW = 4

INTEGERS = (-(2**63), -(2**31), -1000, -3, -2, -1, 0, 1, 2, 3, 5, 7, 1000, 2**31 - 1, 2**31, 2**63 - 1)
FLOATS = (-math.inf, -1.0, 0.0, 0.5, 2.0, 1e30, math.inf, math.nan)
TYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "bool", "complex64", "string")

# The changes of the shape of an array `a` at axis `i`; an array with less than two axes takes some of them.
SHAPES = {
    "has one more axis": lambda a, i: np.expand_dims(a, i),
    "has one axis less": lambda a, i: a.take(0, i) if a.shape[i] else np.zeros(np.delete(a.shape, i), a.dtype),
    "is a scalar": lambda a, i: a.ravel()[0] if a.size else np.zeros((), a.dtype),
    "is flat": lambda a, i: a.ravel(),
    "is longer": lambda a, i: np.concatenate(
        [a, a.take([0], i) if a.shape[i] else np.zeros_like(a, shape=one(a, i))], i
    ),
    "is shorter": lambda a, i: a.take(range(max(a.shape[i] - 1, 0)), i),
    "is empty": lambda a, i: a.take([], i),
    "is turned": lambda a, i: np.moveaxis(a, i, 0 if i else -1),
}
NEED_AN_AXIS = set(SHAPES) - {"has one more axis", "is a scalar", "is flat"}
MOST_AXES = 8


def one(a: np.ndarray, axis: int) -> list[int]:
    """The shape with one element along an axis."""
    return [1 if i == axis else n for i, n in enumerate(a.shape)]


@dataclasses.dataclass(frozen=True)
class Spoiled:
    """A call of the sweep, and what is changed in it.

    types, case: which call.
    argument: its name, or an attribute's.
    item: which of a list; None for the argument itself.
    change: how.
    at: the axis or the element that is changed.
    value: the new one.
    traced: the call is made in a tf.function that knows the types of its tensors alone.
    """

    op: str
    types: tuple[tuple[str, str], ...]
    case: int
    argument: str
    item: int | None
    change: str
    at: int = 0
    value: Any = None
    traced: bool = False

    def __str__(self) -> str:
        types = ", ".join(f"{a}={t}" for a, t in self.types)
        which = self.argument if self.item is None else f"{self.argument}[{self.item}]"
        value = "" if self.value is None else f" {self.value!r}"
        return (
            f"{self.op}({types}), case {self.case}: {which} {self.change}{value} at {self.at}{', traced' * self.traced}"
        )

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Spoiled:
        fields = json.loads(text)
        value = fields["value"]
        return cls(
            **{
                **fields,
                "types": tuple(map(tuple, fields["types"])),
                "value": tuple(value) if isinstance(value, list) else value,
            }
        )

    def arguments(self) -> dict:
        """The arguments of tf.raw_ops.<op>, as the sweep's cases have them, with the change made."""
        with tf.device("/cpu:0"):
            return self._arguments()

    def _arguments(self) -> dict:
        kwargs = valid(self.op, self.types, self.case)
        whole = kwargs.get(self.argument)
        if self.item is None:
            return {**kwargs, self.argument: self._changed(whole)}
        items = list(whole)
        items[self.item] = self._changed(items[self.item])
        return {**kwargs, self.argument: items}

    def _changed(self, what):
        if isinstance(what, Var):
            return dataclasses.replace(what, value=self._changed(tf.convert_to_tensor(what.value)))
        if self.change == "has items":
            return what[: self.at] + what[self.at + 1 :] if self.value == 0 else what + what[self.at : self.at + 1]
        if self.change == "is":
            return tf.as_dtype(self.value) if isinstance(what, tf.DType) else self.value
        if self.change == "is of type":
            if self.value == "string" or what.dtype == tf.string:
                return tf.fill(what.shape, "a") if self.value == "string" else tf.zeros(what.shape, self.value)
            return tf.cast(what, self.value)
        array = what.numpy()
        if self.change == "has an element that is":
            array = array.copy()
            with np.errstate(all="ignore"):
                array.reshape(-1)[self.at] = self.value
            return tf.constant(array)
        return tf.constant(SHAPES[self.change](array, self.at), what.dtype)


def type_names(types: dict) -> tuple[tuple[str, str], ...]:
    return tuple((a, t.name) for a, t in types.items())


@functools.lru_cache(maxsize=8)
def valid(op: str, types: tuple[tuple[str, str], ...], case: int) -> dict:
    """The arguments of a call as the sweep makes it."""
    with tf.device("/cpu:0"):
        return CASES[op][case].make({a: tf.as_dtype(t) for a, t in types}, Rng(case))


@functools.cache
def choices() -> dict[str, list[tuple[dict, int]]]:
    """By op: the types and numbers of its cases, for types of which the CPU has a kernel, too."""
    of_cpu = collections.defaultdict(list)
    for r in all_registrations("CPU"):
        of_cpu[r.op].append(r.type_map)

    def known(r: Registration) -> bool:
        return any(all(t.get(a, dtype) == dtype for a, dtype in r.types) for t in of_cpu[r.op])

    found = collections.defaultdict(list)
    for r in all_registrations():
        if r.op not in ADOPTED and known(r):
            found[r.op] += [(r.type_map, call.seed) for call in calls_of(r.op, CASES[r.op], r.type_map)]
    return {op: found[op] for op in sorted(found)}


@functools.cache
def attributes(op: str) -> dict[str, Any]:
    """An op's attributes that have a default, with that."""
    function = getattr(tf.raw_ops, op, None)
    if function is None:
        return {}
    parameters = inspect.signature(function).parameters
    return {
        name: p.default
        for name, p in parameters.items()
        if name != "name" and p.default is not p.empty and p.default is not None
    }


def allowed_strings(op: str, attribute: str) -> list[str]:
    for a in op_def_registry.get(op).attr:
        if a.name == attribute:
            return [s.decode() for s in a.allowed_values.list.s]
    return []


def _of_tensor(draw, t: tf.Tensor) -> tuple[str, int, Any]:
    """A change of a tensor, where, and what to."""
    rank, size = len(t.shape), int(np.prod(t.shape))
    kinds = ["shape", "shape", "type"]
    if size and (t.dtype.is_integer or (t.dtype.is_floating and size <= FEW)):
        kinds += ["element"] * 3
    kind = draw(st.sampled_from(kinds))
    if kind == "type":
        return "is of type", 0, draw(st.sampled_from([name for name in TYPES if name != t.dtype.name]))
    if kind == "element":
        if t.dtype.is_integer:
            least, most = t.dtype.min, t.dtype.max
            values = [v for v in (*INTEGERS, *t.shape.as_list()) if least <= v <= most]
        else:
            values = list(FLOATS)
        return "has an element that is", draw(st.integers(0, size - 1)), draw(st.sampled_from(values))
    changes = [c for c in SHAPES if rank or c not in NEED_AN_AXIS]
    if rank >= MOST_AXES:
        changes.remove("has one more axis")
    change = draw(st.sampled_from(changes))
    return change, draw(st.integers(0, rank if change == "has one more axis" else max(rank - 1, 0))), None


def _of_attribute(draw, op: str, name: str, v: Any) -> tuple[str, int, Any] | None:
    if isinstance(v, bool):
        return "is", 0, not v
    if isinstance(v, int):
        return "is", 0, draw(st.sampled_from([i for i in INTEGERS if i != v]))
    if isinstance(v, float):
        return "is", 0, draw(st.sampled_from(FLOATS))
    if isinstance(v, str):
        return "is", 0, draw(st.sampled_from([*(s for s in allowed_strings(op, name) if s != v), "BANANA", ""]))
    if isinstance(v, tf.DType):
        return "is", 0, draw(st.sampled_from([t for t in TYPES if t != v.name]))
    if isinstance(v, (list, tuple)) and all(isinstance(i, int) for i in v):
        numbers = list(v)
        how = draw(st.sampled_from(["one", "one", "one", "fewer", "more", "none"] if numbers else ["more"]))
        if how == "one":
            numbers[draw(st.integers(0, len(numbers) - 1))] = draw(st.sampled_from(INTEGERS))
        elif how == "fewer":
            numbers.pop(draw(st.integers(0, len(numbers) - 1)))
        elif how == "more":
            numbers.append(draw(st.sampled_from(INTEGERS)))
        return "is", 0, tuple(numbers if how != "none" else [])
    return None


@st.composite
def spoiled(draw, op: str) -> Spoiled:
    """A call of the op with one change."""
    types, case = draw(st.sampled_from(choices()[op]))
    names = type_names(types)
    kwargs = valid(op, names, case)
    places = [(name, None) for name, v in kwargs.items() if isinstance(v, (tf.Tensor, Var, list, tuple))]
    for name, v in kwargs.items():
        if isinstance(v, (list, tuple)):
            places += [(name, i) for i in range(len(v)) if isinstance(v[i], (tf.Tensor, Var))]
    with_attributes = {**attributes(op), **kwargs}
    places += [(n, None) for n, v in with_attributes.items() if isinstance(v, (bool, int, float, str, tf.DType))]
    places += [(n, None) for n, v in attributes(op).items() if isinstance(v, (list, tuple)) and n not in kwargs]
    places = list(dict.fromkeys(places))
    assume(places)
    name, item = draw(st.sampled_from(places))
    what = with_attributes[name] if item is None else with_attributes[name][item]
    if isinstance(what, Var):
        what = tf.convert_to_tensor(what.value)
    if isinstance(what, tf.Tensor):
        if int(np.prod(what.shape)) > LARGEST:
            return Spoiled(op, names, case, name, item, "is of type", 0, "complex64")
        change = _of_tensor(draw, what)
    elif isinstance(what, (list, tuple)) and what and not isinstance(what[0], (int, str, float, tuple, list)):
        change = "has items", draw(st.integers(0, len(what) - 1)), draw(st.integers(0, 1))
    else:
        change = _of_attribute(draw, op, name, what)
    assume(change is not None)
    return Spoiled(op, names, case, name, item, *change)


def draw(op: str, count: int, number: int = 0, traced: bool = False) -> list[Spoiled]:
    """So many examples, or fewer where there are no more; always the same ones for a number."""
    found: dict[Spoiled, None] = {}

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(spoiled(op))
    def collect(example: Spoiled) -> None:
        found[dataclasses.replace(example, traced=traced)] = None

    with contextlib.suppress(Unsatisfiable):  # an op without arguments
        collect()
    return list(found)
