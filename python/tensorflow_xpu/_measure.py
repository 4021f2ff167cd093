"""Timing the XPU and TensorFlow's CPU side by side: they alternate, so that a slow spell of the machine hits both."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_xpu._subdevice import device_type

CPU, XPU = "/device:CPU:0", f"/device:{device_type()}:0"

#: Units and what they stand for, the largest first.
UNITS = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)),
    "B": (("GiB", float(1 << 30)), ("MiB", float(1 << 20)), ("KiB", float(1 << 10)), ("B", 1.0)),
}

Rounds = list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Case:
    """An op to be timed."""

    name: str
    size: str  #: as users would say it
    op: Callable[..., Any]
    inputs: Callable[[], list[Any]]  #: makes its arguments, arrays
    repeats: int  #: how often a round runs it
    flops: int = 0  #: of one run


def amount(value: float, unit: str) -> str:
    """The value with a unit in which it is at least 1, if there is one."""
    name, scale = next(((name, scale) for name, scale in UNITS[unit] if value >= scale), UNITS[unit][-1])
    return f"{value / scale:.3g} {name}"


def wait(value: Any) -> None:
    """Returns when ``value`` has been computed: fetches one element of it."""
    value = tf.nest.flatten(value)[0]
    tf.reshape(value, [-1])[:1].numpy()


def repeated(op: Callable[..., Any], inputs: list[Any], device: str, repeats: int) -> Callable[[], None]:
    """A callable that runs ``op(*inputs)`` ``repeats`` times in one tf.function on ``device`` and waits for the last.

    Each run waits for the one before (control dependencies), so that neither device merges or overlaps them. Clusters
    would: with them, what nobody reads is not computed.
    """
    with tf.device(device):
        inputs = [tf.identity(tf.constant(x)) for x in inputs]

        def run(*args: Any) -> Any:
            with tf.device(device):
                out = op(*args)
                for _ in range(repeats - 1):
                    with tf.control_dependencies(tf.nest.flatten(out)):
                        out = op(*args)
                return tf.nest.flatten(out)[0]

        function = tf.function(run, autograph=False)
    return lambda: wait(function(*inputs))


def middle(rounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The round whose ratio of the two times is the median of all rounds' ratios.

    Least times would be steadier. But each side has its own from another spell of the machine, and their ratio is not
    one that was ever seen.
    """
    median = statistics.median_low(a / b for a, b in rounds)
    return next((a, b) for a, b in rounds if a / b == median)


def seconds(f: Callable[[], Any]) -> float:
    """The time of a call."""
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def in_turns(
    a: Callable[[], Any], b: Callable[[], Any], rounds: int, warmup: int = 2, limit: float = float("inf")
) -> Rounds:
    """Seconds of ``a()`` and ``b()`` in rounds that alternate the two; after ``limit`` seconds five are enough."""
    for _ in range(warmup):
        a()
        b()
    begin = time.perf_counter()
    measured: Rounds = []
    while len(measured) < rounds and (len(measured) < 5 or time.perf_counter() - begin < limit):
        measured.append((seconds(a), seconds(b)))
    return measured


def alternate(a: Callable[[], Any], b: Callable[[], Any], rounds: int = 9, warmup: int = 2) -> tuple[float, float]:
    """Seconds of ``a()`` and ``b()`` in the middle one of rounds that alternate the two."""
    return middle(in_turns(a, b, rounds, warmup))


@contextlib.contextmanager
def graphs_as_written() -> Iterator[None]:
    """Graphs traced inside are run as written: Grappler would drop all but the last of repeated ops."""
    saved = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False, **saved})


def time_case(case: Case, rounds: int = 9, limit: float = float("inf")) -> Rounds:
    """Seconds of one run of the op on the XPU and on the CPU, in rounds."""
    inputs = case.inputs()
    with graphs_as_written():
        on_xpu, on_cpu = (repeated(case.op, inputs, device, case.repeats) for device in (XPU, CPU))
        measured = in_turns(on_xpu, on_cpu, rounds, limit=limit)
    return [(xpu / case.repeats, cpu / case.repeats) for xpu, cpu in measured]
