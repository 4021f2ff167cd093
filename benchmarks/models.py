"""Whole models: a step of each, what its first call takes, and the memory that a step holds.

Steps of both devices alternate in one process. First calls and memory are those of processes of their own, in turns. As
a program, `python -m benchmarks.models MODEL DEVICE`, it is such a process and prints seconds and bytes.
"""

from __future__ import annotations

import functools
import json
import pathlib
import sys
from collections.abc import Iterator

import tensorflow as tf

from benchmarks.measure import CPU, XPU, Result, alternate, in_process, middle, seconds, wait
from tensorflow_xpu._bench.models import MODELS, make, several

ROUNDS, PROCESSES = 15, 3


def steps() -> Iterator[Result]:
    for name, (_, size, repeats) in MODELS.items():
        xpu, cpu = alternate(several(name, XPU), several(name, CPU), ROUNDS)
        yield Result(name, size, xpu / repeats, cpu / repeats, f"{cpu / xpu:.2f} times as fast")


@functools.cache
def in_processes(name: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The output of processes on XPU and CPU, in turns, about a model."""

    def printed(device: str) -> dict[str, float]:
        return json.loads(in_process("benchmarks.models", name, device))

    return [(printed(XPU), printed(CPU)) for _ in range(PROCESSES)]


def of_processes(figure: str, unit: str) -> Iterator[Result]:
    for name, (_, size, _) in MODELS.items():
        pairs = [(on_xpu[figure], on_cpu[figure]) for on_xpu, on_cpu in in_processes(name)]
        yield Result(name, size, *middle(pairs), unit=unit)


def first_calls() -> Iterator[Result]:
    """Seconds from a function's first call to its result: tracing, optimising, capturing, running."""
    return of_processes("first", "s")


def memory() -> Iterator[Result]:
    """Bytes that the process holds at most during four steps, beyond what it held before the model was made."""
    return of_processes("bytes", "B")


def held_at_most() -> int:
    """Bytes of memory that the program has held since it began: getrusage has those of its parent in it."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


def main() -> None:
    name, device = sys.argv[1:]
    with tf.device(device):
        wait(tf.function(lambda x: tf.matmul(x, x))(tf.ones([8, 8])))  # what is made once
    before = held_at_most()
    step = make(name, device)
    first = seconds(lambda: wait(step()))
    for _ in range(3):
        wait(step())
    print(json.dumps({"first": first, "bytes": held_at_most() - before}))


if __name__ == "__main__":
    main()
