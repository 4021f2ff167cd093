"""`python -m benchmarks.rates`: what the XPU's device does in a second, in copies, elementwise programs and products.

For devices that are not the processor: each figure is to be read beside what the device's maker promises. Ops run one
by one, so many after each other that they take longer than what it costs to ask for them. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial as P
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.measure import XPU, seconds, wait

ENOUGH = 5  # runs, of which the shortest counts
PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def shortest(run: Callable[[], Any], times: int) -> float:
    """Seconds of one of so many runs that follow each other."""

    def all_of_them() -> None:
        for _ in range(times - 1):
            run()
        wait(run())

    all_of_them()
    return min(seconds(all_of_them) for _ in range(ENOUGH)) / times


def normal(*shape: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
    return tf.cast(tf.random.stateless_normal(shape, (1, 2)), dtype)


def of_memory(n: int, times: int) -> Iterator[tuple[str, float, float, str]]:
    """Name, seconds, amount and unit; for vectors of n floats."""
    host, x, y = np.ones(n, np.float32), normal(n), normal(n)
    kept = tf.Variable(tf.zeros(n))
    bytes_of_one = 4 * n
    yield "copy from the host", shortest(lambda: tf.constant(host), 2), bytes_of_one, "B/s"
    yield "copy to the host", min(seconds((x + i).numpy) for i in range(ENOUGH)), bytes_of_one, "B/s"
    yield "copy on the device", shortest(lambda: kept.assign(x).value(), times), 2 * bytes_of_one, "B/s"
    yield "Add", shortest(lambda: x + y, times), 3 * bytes_of_one, "B/s"
    yield "Tanh", shortest(lambda: tf.tanh(x), times), 2 * bytes_of_one, "B/s"
    yield "Sum", shortest(lambda: tf.reduce_sum(x), times), bytes_of_one, "B/s"
    rows = tf.reshape(x, [-1, 1024])
    yield "Sum of rows of 1024", shortest(lambda: tf.reduce_sum(rows, 1), times), bytes_of_one, "B/s"
    yield "Sum of columns", shortest(lambda: tf.reduce_sum(rows, 0), times), bytes_of_one, "B/s"
    yield "Softmax of rows of 1024", shortest(lambda: tf.nn.softmax(rows), times), 2 * bytes_of_one, "B/s"
    yield "Transpose", shortest(lambda: tf.transpose(rows), times), 2 * bytes_of_one, "B/s"
    indices = tf.random.stateless_uniform([n // 1024], (3, 4), 0, n // 1024, tf.int32)
    yield "Gather of rows of 1024", shortest(lambda: tf.gather(rows, indices), times), 2 * bytes_of_one, "B/s"
    uniform = tf.random.stateless_uniform
    yield "random numbers", shortest(lambda: uniform([n], (5, 6)), times), bytes_of_one, "B/s"


def of_arithmetic(n: int, images: int, times: int) -> Iterator[tuple[str, float, float, str]]:
    """The same of products of n x n, and of convolutions of so many images."""
    for dtype in (tf.float32, tf.bfloat16, tf.float16, tf.float64):
        a, b = normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)
        yield f"MatMul {n}, {dtype.name}", shortest(lambda a=a, b=b: tf.matmul(a, b), times), 2.0 * n**3, "FLOP/s"
    a = normal(n, n)
    yield f"MatMul {n}, a transposed", shortest(lambda: tf.matmul(a, a, transpose_a=True), times), 2.0 * n**3, "FLOP/s"
    yield f"MatMul {n}, b transposed", shortest(lambda: tf.matmul(a, a, transpose_b=True), times), 2.0 * n**3, "FLOP/s"
    long, few = 16 * n, max(16, n // 16)
    x, y = normal(long, few), normal(long, few)
    name = f"MatMul, sums of {long} for {few} x {few}"
    yield name, shortest(lambda: tf.matmul(x, y, transpose_a=True), times), 2.0 * long * few * few, "FLOP/s"
    small = normal(256, 128, 128)
    yield "MatMul, 256 of 128", shortest(lambda: tf.matmul(small, small), times), 256 * 2.0 * 128**3, "FLOP/s"
    for size, channels, window in ((56, 64, 3), (28, 256, 1), (14, 256, 3)):
        x, filters = normal(images, size, size, channels), normal(window, window, channels, channels)
        work = 2.0 * images * size * size * channels * channels * window * window
        name = f"convolution {window} x {window} of {images} x {size} x {size} x {channels}"
        yield name, shortest(lambda x=x, f=filters: tf.nn.conv2d(x, f, 1, "SAME"), times), work, "FLOP/s"
        common = {"strides": [1] * 4, "padding": "SAME"}
        gradients = {
            "images": P(tf.raw_ops.Conv2DBackpropInput, input_sizes=x.shape, filter=filters, out_backprop=x, **common),
            "filters": P(
                tf.raw_ops.Conv2DBackpropFilter, input=x, filter_sizes=filters.shape, out_backprop=x, **common
            ),
        }
        for to, gradient in gradients.items():
            yield f"its gradient to {to}", shortest(gradient, times), work, "FLOP/s"


def small_ops(times: int = 1000) -> Iterator[tuple[str, float, float, str]]:
    """How many ops of one element."""
    x = tf.constant([1.0])
    yield "Add of one element, op by op", shortest(lambda: x + x, times), 1, "ops/s"

    @tf.function
    def chain(x: tf.Tensor) -> tf.Tensor:
        for _ in range(100):
            x = tf.linalg.matmul(x, x)
        return x

    y = tf.eye(4)
    yield "MatMul of 4 x 4, of 100 in a function", shortest(lambda: chain(y), 10) / 100, 1, "ops/s"


def measured(vector: int, matrix: int, images: int, times: int) -> Iterator[tuple[str, float, float, str]]:
    with tf.device(XPU):
        yield from of_memory(vector, times)
        yield from of_arithmetic(matrix, images, times)
        yield from small_ops()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--vector", type=int, default=1 << 26, help="floats of a vector, a multiple of 1024 (%(default)s)"
    )
    parser.add_argument("--matrix", type=int, default=4096, help="rows of a matrix (%(default)s)")
    parser.add_argument("--images", type=int, default=64, help="images that are convolved (%(default)s)")
    parser.add_argument(
        "--times", type=int, default=10, help="how often an op runs before it is waited for (%(default)s)"
    )
    chosen = parser.parse_args()
    import tensorflow_xpu

    print(f"{tensorflow_xpu.list_physical_devices('XPU')[0].hardware_name}\n\n| what | time | rate |\n|---|---|---|")
    for what, took, amount, unit in measured(chosen.vector, chosen.matrix, chosen.images, chosen.times):
        rate = amount / took
        prefix, scale = next((p, s) for p, s in PREFIXES if rate >= s)
        print(f"| {what} | {took * 1e3:.3g} ms | {rate / scale:.3g} {prefix}{unit} |", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
