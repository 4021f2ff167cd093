"""Timing XPU and stock CPU side by side: the two alternate in one process, so that a slow spell hits both."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import tensorflow as tf

CPU, XPU = "/cpu:0", "/xpu:0"


@dataclasses.dataclass(frozen=True)
class Result:
    """Seconds per operation on both devices, or bytes, of one and the same round: see middle."""

    name: str
    size: str
    xpu: float
    cpu: float
    note: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """XPU / CPU."""
        return self.xpu / self.cpu


def wait(value) -> None:
    """Returns when `value` has been computed: fetches one element of it."""
    value = tf.nest.flatten(value)[0]
    tf.reshape(value, [-1])[:1].numpy()


def repeated(op: Callable, inputs: list, device: str, repeats: int) -> Callable[[], None]:
    """A callable that runs `op(*inputs)` `repeats` times in one tf.function on `device` and waits for the last.

    Each run waits for the one before (control dependencies), so that neither device merges or overlaps them. Clusters
    would: with them, what nobody reads is not computed.
    """
    with tf.device(device):
        inputs = [tf.identity(tf.constant(x)) for x in inputs]

        @tf.function(autograph=False)
        def run(*args):
            with tf.device(device):
                out = op(*args)
                for _ in range(repeats - 1):
                    with tf.control_dependencies(tf.nest.flatten(out)):
                        out = op(*args)
                return tf.nest.flatten(out)[0]

    def call():
        wait(run(*inputs))

    return call


def middle(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    """The round whose ratio of the two times is the median of all rounds' ratios.

    Least times would be steadier, but each side has its own from another spell of the machine, and their ratio is not
    one that was ever seen.
    """
    median = statistics.median_low(a / b for a, b in rounds)
    return next((a, b) for a, b in rounds if a / b == median)


def seconds(f: Callable[[], None]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def in_process(module: str, *arguments: str, **environment: str) -> str:
    """What `python -m module` prints, in a process of its own with these environment variables."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout


def lines_of(module: str, *arguments: str, **environment: str) -> Iterator[str]:
    """The lines that `python -m module` prints, as they come, in a process of its own with these variables."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)


def alternate(a: Callable[[], None], b: Callable[[], None], rounds: int = 9, warmup: int = 2) -> tuple[float, float]:
    """Seconds of a() and b() in the middle one of rounds that alternate the two."""
    for _ in range(warmup):
        a()
        b()
    return middle([(seconds(a), seconds(b)) for _ in range(rounds)])


@contextlib.contextmanager
def graphs_as_written() -> Iterator[None]:
    """Graphs traced inside are run as written: Grappler would drop all but the last of repeated ops."""
    saved = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False, **saved})


def compare(name: str, size: str, op: Callable, inputs: list, repeats: int, rounds: int = 9) -> Result:
    """Times `op` on both devices; see Result."""
    with graphs_as_written():
        runs = [repeated(op, inputs, device, repeats) for device in (XPU, CPU)]
        xpu, cpu = alternate(*runs, rounds)
    return Result(name, size, xpu / repeats, cpu / repeats)
