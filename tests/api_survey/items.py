"""The items that are examined: a layer, a loss, a function or a model, written as the expression that uses it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

# Absolute difference allowed, as a part of the largest value. Sums in another order make some hundred roundings of
# float32 in a training step.
TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Item:
    """One row of docs/data/models.tsv.

    group: the heading that it stands under, such as keras.layers.
    text: the expression.
    build: called on the device, where it may make variables; returns the function to call with the arguments.
    arguments: names of ARGUMENTS, or arrays.
    tolerance: what a result may differ from the CPU's, as a part of the largest value in it; infinity compares shapes
        and types alone.
    trains: whether gradients of the results are taken, for the floating-point arguments and the variables.
    eager: not inside a tf.function: it makes its own, or asks for values.
    """

    group: str
    text: str
    build: Callable[[], Callable[..., Any]]
    arguments: tuple[Any, ...] = ()
    tolerance: float = TOLERANCE
    trains: bool = True
    eager: bool = False

    @property
    def name(self) -> str:
        return f"{self.group}: {self.text}"

    def values(self) -> list[Any]:
        return [ARGUMENTS[a] if isinstance(a, str) else a for a in self.arguments]


def _arguments() -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    def uniform(low: float, high: float, *shape: int) -> np.ndarray:
        return rng.uniform(low, high, shape).astype(np.float32)

    squares = normal(2, 4, 4)
    symmetric = squares @ squares.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
    probabilities = uniform(0.1, 1, 4, 6)
    frequencies = normal(2, 8) + 1j * normal(2, 8)
    return {
        "x": normal(4, 6),
        "y": normal(4, 6),
        "p": uniform(0.1, 0.9, 4, 6),
        "q": probabilities / probabilities.sum(1, keepdims=True),
        "big": uniform(1.1, 5, 4, 6),
        "v": normal(6),
        "w": normal(6),
        "b": rng.integers(0, 2, (4, 6)).astype(bool),
        "i": rng.integers(0, 6, (4, 6)).astype(np.int32),
        "j": rng.integers(1, 6, (4, 6)).astype(np.int32),
        "ids": np.array([0, 0, 1, 3], np.int32),
        "labels": np.array([1, 0, 5, 2], np.int32),
        "onehot": np.eye(6, dtype=np.float32)[[1, 0, 5, 2]],
        "binary": rng.integers(0, 2, (4, 6)).astype(np.float32),
        "c": (normal(4, 6) + 1j * normal(4, 6)).astype(np.complex64),
        "z": frequencies.astype(np.complex64),
        "m": squares + 4 * np.eye(4, dtype=np.float32),
        "spd": symmetric.astype(np.float32),
        "r": normal(2, 4, 3),
        "seq": normal(2, 5, 6),
        "tokens": rng.integers(0, 10, (2, 5)).astype(np.int32),
        "im": uniform(0.05, 0.95, 2, 8, 8, 3),
        "im2": uniform(0.05, 0.95, 2, 8, 8, 3),
        "bytes": uniform(0, 255, 2, 8, 8, 3),
        "vol": normal(2, 6, 6, 6, 2),
        "film1": normal(2, 3, 6, 2),
        "film": normal(2, 3, 6, 6, 2),
        "film3": normal(2, 2, 4, 4, 4, 2),
        "wave": normal(2, 64),
        "wave1": normal(2, 64, 1),
        "k1": normal(3, 6, 4),
        "k2": normal(3, 3, 3, 4),
        "kd": normal(3, 3, 3, 2),
        "k3": normal(3, 3, 3, 2, 4),
        "boxes": np.array([[0, 0, 0.5, 0.5], [0, 0.1, 0.5, 0.6], [0.5, 0.5, 1, 1]], np.float32),
        "scores": np.array([0.9, 0.8, 0.7], np.float32),
    }


ARGUMENTS: Mapping[str, Any] = _arguments()

Row = str | tuple[str, Mapping[str, Any]]


def words(text: str) -> list[str]:
    return text.split()


def _row(row: Row) -> tuple[str, dict[str, Any]]:
    return (row, {}) if isinstance(row, str) else (row[0], dict(row[1]))


def functions(group: str, names: Mapping[str, Any], rows: Iterable[Row]) -> list[Item]:
    """Items of expressions such as "add(x, y)", which see `names` and take what they name of ARGUMENTS."""
    items = []
    for row in rows:
        text, options = _row(row)
        code = compile(text, group, "eval")
        used = tuple(n for n in ARGUMENTS if n in code.co_names or any(n in c.co_names for c in _inner(code)))
        function = eval(f"lambda {', '.join(used)}: {text}", dict(names))
        items.append(Item(group, text, lambda function=function: function, used, **options))
    return items


def _inner(code: Any) -> list[Any]:
    return [c for c in code.co_consts if hasattr(c, "co_names")]


def layers(group: str, names: Mapping[str, Any], rows: Iterable[tuple[Any, ...]]) -> list[Item]:
    """Items of rows (expression that makes a layer, its arguments, options), called as in training.

    Arguments are "seq", or "[x, y]" for a layer that takes a list.
    """
    items = []
    for text, arguments, *options in rows:

        def build(text: str = text, arguments: str = arguments) -> Callable[..., Any]:
            layer = eval(text, dict(names))
            if arguments.startswith("["):
                return lambda *inputs: layer(list(inputs), training=True)
            return lambda *inputs: layer(*inputs, training=True)

        used = tuple(arguments.strip("[]").split(", "))
        items.append(Item(group, text, build, used, **(options[0] if options else {})))
    return items
