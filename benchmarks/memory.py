"""The cost or worth of the options of device memory: the same work in processes with and without each.

As a program, `python -m benchmarks.memory step|stream`, it is such a process and prints seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from benchmarks.measure import XPU, Result, in_process, middle, repeated

PAIRS, ROUNDS = 3, 9


def training_step() -> Callable[[], None]:
    """Ten steps of the demo's network in batches of 128."""
    from benchmarks import suite

    return suite.training_stepper(XPU)


def stream() -> Callable[[], None]:
    """Ten passes over 64 MiB, to other 64 MiB: nothing but memory counts."""
    # For the whole process: with this set back, TensorFlow would optimise the function anew and drop all but the last.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    return repeated(lambda x: x * 1.5, [np.ones(1 << 24, np.float32)], XPU, 10)


WORK = {"step": training_step, "stream": stream}

CASES = (
    ("training step, TF_XPU_ISOLATE_MEMORY=1", "batch 128", "step", ("TF_XPU_ISOLATE_MEMORY", "1", "0")),
    ("training step, TF_XPU_ALLOCATOR=pool", "batch 128", "step", ("TF_XPU_ALLOCATOR", "pool", "bfc")),
    ("training step, TF_XPU_LARGE_PAGES=1", "batch 128", "step", ("TF_XPU_LARGE_PAGES", "1", "0")),
    ("Mul by scalar, TF_XPU_LARGE_PAGES=1", "64 MiB", "stream", ("TF_XPU_LARGE_PAGES", "1", "0")),
)


def seconds(work: str, variable: str, value: str) -> float:
    """The seconds of one piece of work in a process with this environment variable."""
    return float(in_process("benchmarks.memory", work, **{variable: value}).split()[-1])


def options() -> Iterator[Result]:
    """With and without each option: processes in turns, of which the middle pair."""
    for name, size, work, (variable, with_it, without) in CASES:
        pairs = [(seconds(work, variable, with_it), seconds(work, variable, without)) for _ in range(PAIRS)]
        yield Result(name, size, *middle(pairs))


def main() -> None:
    run = WORK[sys.argv[1]]()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(min(times[1:]) / 10)


if __name__ == "__main__":
    main()
