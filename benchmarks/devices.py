"""The worth of a second device: two independent chains of matrix products, on two devices or on one.

As a program, `python -m benchmarks.devices N`, it is a process that spreads them over N devices and prints seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from benchmarks.measure import Result, graphs_as_written, in_process, middle, wait

PAIRS, ROUNDS, CHAINS, LENGTH, SIZE = 5, 25, 2, 20, 512

# Name, and the environment of the process with one device; the other has two devices of one thread each.
CASES = (
    ("2 devices of 1 thread, against 1 of 1", {"TF_XPU_DEVICE_COUNT": "1", "TF_XPU_THREADS": "1"}),
    ("2 devices of 1 thread, against 1 of 2", {"TF_XPU_DEVICE_COUNT": "1", "TF_XPU_THREADS": "2"}),
)
TWO = {"TF_XPU_DEVICE_COUNT": "2", "TF_XPU_THREADS": "1"}


def seconds(environment: dict[str, str]) -> float:
    printed = in_process("benchmarks.devices", environment["TF_XPU_DEVICE_COUNT"], **environment)
    return float(printed.split()[-1])


def scaling() -> Iterator[Result]:
    """Time on two devices and on one: processes in turns, of which the middle pair."""
    for name, one in CASES:
        pairs = [(seconds(TWO), seconds(one)) for _ in range(PAIRS)]
        a, b = middle(pairs)
        size = f"{CHAINS} x {LENGTH} MatMul {SIZE}"
        yield Result(name, size, a, b, f"{b / a:.2f} times as fast")


def main() -> None:
    count = int(sys.argv[1])
    places = [f"/xpu:{i % count}" for i in range(CHAINS)]
    matrices = []
    for place in places:
        with tf.device(place):
            matrices.append(tf.constant(np.eye(SIZE, dtype=np.float32)))

    # One function per device, since a function's results lie on one device. TensorFlow polls for the end of a copy
    # between devices on a thread of its own as long as the chain before it runs.
    @tf.function(autograph=False)
    def chain(start):
        x = start
        for _ in range(LENGTH):
            x = tf.linalg.matmul(x, start)
        return x

    def run():
        results = []
        for place, start in zip(places, matrices):
            with tf.device(place):
                results.append(chain(start))
        return results

    times = []
    with graphs_as_written():
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for result in run():
                wait(result)
            times.append(time.perf_counter() - start)
    print(min(times[1:]))


if __name__ == "__main__":
    main()
