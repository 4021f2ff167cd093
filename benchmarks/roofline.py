"""The best that the machine can do: products, and memory. `python -m benchmarks.roofline` prints it as JSON.

No step is quicker than the sum of the times that its commands need at these rates. The contest's table has that sum as
a share of the time of a workload's step.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable

#: Bytes that a command reads and writes up to which they may be in a core's cache.
CACHED_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Roof:
    """Rates of all cores together.

    flops: floating-point operations of a product of float32 per second; bfloat16_flops: of bfloat16.
    memory, cached: bytes per second, read and written, beyond and within CACHED_BYTES.
    """

    flops: float
    bfloat16_flops: float
    memory: float
    cached: float

    def seconds(self, commands: Iterable[tuple[float, float]], bfloat16: bool = False) -> float:
        """The least time of commands of so many (operations, bytes), one after the other."""
        flops = self.bfloat16_flops if bfloat16 else self.flops
        return sum(
            max(n / flops, size / (self.cached if size <= CACHED_BYTES else self.memory)) for n, size in commands
        )

    def __str__(self) -> str:
        return (
            f"{self.flops / 1e9:.0f} GFLOP/s in matmuls of float32, {self.bfloat16_flops / 1e9:.0f} of bfloat16. "
            f"Memory gives {self.memory / 1e9:.0f} GB/s, caches {self.cached / 1e9:.0f} GB/s"
        )


def least(run: Callable[[], object], enough: float = 1.0) -> float:
    """Seconds of the shortest of as many runs as fit into so many."""
    from benchmarks.measure import seconds

    run()
    best, end = float("inf"), time.perf_counter() + enough
    while time.perf_counter() < end:
        best = min(best, seconds(run))
    return best


def measure() -> Roof:
    """With the XPU's own products and sums of long vectors, the best that this machine has shown; NumPy for caches."""
    import numpy as np
    import tensorflow as tf

    from benchmarks.measure import XPU, wait

    def product(dtype: tf.DType, n: int = 1536) -> float:
        with tf.device(XPU):
            a = tf.cast(tf.random.stateless_uniform((n, n), (1, 2)), dtype)
            return 2 * n**3 / least(lambda: wait(tf.linalg.matmul(a, a)))

    def adding(n: int = 1 << 24) -> float:
        with tf.device(XPU):
            v, x = tf.Variable(tf.zeros(n)), tf.ones(n)
            return 12 * n / least(lambda: wait(v.assign_add(x)))

    small, other = np.ones(1 << 15, np.float32), np.ones(1 << 15, np.float32)

    def copies() -> None:
        for _ in range(100):
            np.copyto(other, small)

    cores = len(os.sched_getaffinity(0))
    return Roof(product(tf.float32), product(tf.bfloat16), adding(), cores * 200 * small.nbytes / least(copies))


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(measure())))
