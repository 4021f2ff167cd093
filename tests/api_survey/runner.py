"""Runs an item on the XPU and on the CPU, compares the results, and reads where the ops ran."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tests.api_survey.items import Item
from tests.support import placement
from tests.sweep.registrations import all_registrations

# Where all values are smaller, the difference is taken as a part of this: some gradients are nothing but roundings.
SMALL = 1e-2


@dataclasses.dataclass
class Outcome:
    """The result of an item: the compute ops by the device that they ran on, and the error, or ""."""

    item: Item
    on_xpu: set[str]
    on_cpu: set[str]
    difference: float = 0.0
    error: str = ""


def weights_like(tensor: tf.Tensor) -> Any:
    """Factors that give every element of a result its own part in the loss."""
    if not tensor.shape.is_fully_defined():
        return tf.ones([], tensor.dtype)
    factors = np.cos(np.arange(tensor.shape.num_elements())).reshape(tensor.shape)
    return tf.constant(factors.astype(tensor.dtype.as_numpy_dtype))


def differentiable(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and (value.dtype.is_floating or value.dtype.is_complex)


def dense(value: Any) -> Any:
    """A tensor, or the tensors of a composite one."""
    return tf.nest.flatten(value, expand_composites=True)


def run(item: Item, device: str) -> list[np.ndarray]:
    """The results and gradients on a device."""
    import keras

    keras.utils.set_random_seed(1)
    with tf.device(device):
        function = item.build()
        arguments = [tf.nest.map_structure(tf.constant, value) for value in item.values()]

        def step(arguments: list[Any]) -> tuple[list[Any], list[Any]]:
            # Without a tape where there is nothing to differentiate: a program may have its own.
            with tf.GradientTape() if item.trains else contextlib.nullcontext() as tape:
                sources = [a for a in tf.nest.flatten(arguments) if differentiable(a)]
                if item.trains:
                    tape.watch(sources)
                results = [r for r in dense(function(*arguments)) if r is not None]
                losses = [tf.reduce_sum(tf.math.real(r * weights_like(r))) for r in results if differentiable(r)]
                loss = tf.add_n([tf.cast(loss, tf.float32) for loss in losses]) if losses else None
            if not item.trains or loss is None:
                return results, []
            gradients = tape.gradient(loss, [*sources, *tape.watched_variables()])
            return results, [tf.convert_to_tensor(g) for g in gradients if g is not None]

        results, gradients = (step if item.eager else tf.function(step, autograph=False))(arguments)
        return [np.asarray(r.numpy()) for r in (*results, *gradients)]


def difference(value: np.ndarray, expected: np.ndarray) -> float:
    """The largest one between two arrays, as a part of the largest value; infinite if they are not alike at all."""
    if value.shape != expected.shape or value.dtype != expected.dtype:
        return float("inf")
    if expected.size == 0:
        return 0.0
    if value.dtype.kind not in "fcV" and value.dtype.name not in ("bfloat16", "float16"):
        return 0.0 if np.array_equal(value, expected) else float("inf")
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    value, expected = value.astype(wide), expected.astype(wide)
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    if not np.array_equal(np.isfinite(value) | same, np.isfinite(expected) | same):
        return float("inf")
    with np.errstate(invalid="ignore"):
        distance = np.where(same, 0, np.abs(value - expected)).max()
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return float(distance / max(largest, SMALL))


def examine(item: Item) -> Outcome:
    """Runs it on both devices. An item that fails on the CPU is a mistake of its table, and raises."""
    try:
        expected = run(item, "/cpu:0")
    except LookupError:  # TensorFlow has no gradient of it
        item = dataclasses.replace(item, trains=False)
        expected = run(item, "/cpu:0")
    error, results = "", []
    with placement.record() as ran:
        try:
            results = run(item, "/xpu:0")
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
    outcome = Outcome(item, placement.compute_ops_on(ran, "XPU"), placement.compute_ops_on(ran, "CPU"), error=error)
    if error:
        return outcome
    if len(results) != len(expected):
        outcome.error = f"{len(results)} results and gradients instead of {len(expected)}"
        return outcome
    if item.tolerance == float("inf"):
        alike = all(r.shape == e.shape and r.dtype == e.dtype for r, e in zip(results, expected))
        outcome.error = "" if alike else "shapes or types differ from the CPU's"
        return outcome
    differences = [difference(r, e) for r, e in zip(results, expected)]
    outcome.difference = max(differences, default=0.0)
    if outcome.difference > item.tolerance:
        worst = differences.index(outcome.difference)
        outcome.error = f"result {worst} of {len(results)} differs by {outcome.difference:.2g} of its largest value"
    return outcome


@functools.cache
def registered() -> frozenset[str]:
    """Ops that have a kernel for XPU, for some types at least."""
    return frozenset(r.op for r in all_registrations())
