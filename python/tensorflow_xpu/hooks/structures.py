"""How values of several tensors are made of tensors in a row, without TensorFlow's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class UnlikeError(Exception):
    """A value of which nothing is kept."""


def tuple_maker(parts: Any, maker: Callable[[Any], Any]) -> Callable[[Iterator[Any]], tuple[Any, ...]]:
    """Takes the tensors of a tuple's parts, for each of which ``maker`` says what makes it."""
    makers = [maker(part) for part in parts]
    return lambda tensors: tuple([make(tensors) for make in makers])


def dict_maker(parts: Any, maker: Callable[[Any], Any]) -> Callable[[Iterator[Any]], dict[Any, Any]]:
    """The same of a dict, whose tensors come in the order of sorted names."""
    names = list(parts)
    makers = {name: maker(parts[name]) for name in sorted(names)}
    if names == list(makers) and all(make is next for make in makers.values()):
        return lambda tensors: dict(zip(names, tensors))

    def make_all(tensors: Iterator[Any]) -> dict[Any, Any]:
        values = {name: make(tensors) for name, make in makers.items()}
        return {name: values[name] for name in names}

    return make_all
