"""Ops to be timed one by one, in groups: ``bench`` takes some of them, ``make bench`` all."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_xpu._measure import Case

_rng = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    """Numbers of the normal distribution, as an array of float32."""
    return _rng.standard_normal(shape).astype(np.float32)


def _normals(*shapes: tuple[int, ...]) -> Callable[[], list[Any]]:
    return lambda: [normal(*shape) for shape in shapes]


def _positive_and_any(shape: tuple[int, ...]) -> list[Any]:
    return [np.abs(normal(*shape)), normal(*shape)]


def _scores_and_shares(shape: tuple[int, ...]) -> list[Any]:
    return [normal(*shape), tf.nn.softmax(normal(*shape)).numpy()]


def matmul() -> Iterator[Case]:
    """Products of matrices."""
    for n, repeats in ((32, 200), (128, 100), (512, 10), (1024, 3)):
        yield Case("MatMul", f"{n}x{n}x{n}", tf.matmul, _normals((n, n), (n, n)), repeats, 2 * n**3)
    yield Case("MatMul (thin)", "64x1024x10", tf.matmul, _normals((64, 1024), (1024, 10)), 50)
    yield Case("BatchMatMul", "32x64x64x64", tf.matmul, _normals((32, 64, 64), (32, 64, 64)), 20)
    yield Case(
        "Einsum abc,cde->abde",
        "8x64x64x8x8",
        lambda a, b: tf.einsum("abc,cde->abde", a, b),
        _normals((8, 64, 64), (64, 8, 8)),
        20,
    )


def convolution() -> Iterator[Case]:
    """Convolutions with their gradients, and a pool."""
    shapes = [
        ("small 8x8x8", (8, 8, 8, 16), (3, 3, 16, 16), 50),
        ("medium 28x28x32", (16, 28, 28, 32), (3, 3, 32, 32), 5),
        ("large 56x56x64", (8, 56, 56, 64), (3, 3, 64, 64), 2),
        ("first layer 64x64x3", (16, 64, 64, 3), (3, 3, 3, 32), 5),
    ]
    raw = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    for label, x, f, repeats in shapes:
        dy = (*x[:3], f[3])
        yield Case("Conv2D", label, lambda a, b: tf.nn.conv2d(a, b, 1, "SAME"), _normals(x, f), repeats)
        yield Case(
            "Conv2DBackpropInput",
            label,
            lambda b, d, x=x: tf.raw_ops.Conv2DBackpropInput(input_sizes=x, filter=b, out_backprop=d, **raw),
            _normals(f, dy),
            repeats,
        )
        yield Case(
            "Conv2DBackpropFilter",
            label,
            lambda a, d, f=f: tf.raw_ops.Conv2DBackpropFilter(input=a, filter_sizes=f, out_backprop=d, **raw),
            _normals(x, dy),
            repeats,
        )
    pool = (16, 56, 56, 64)
    yield Case("MaxPool", "16x56x56x64", lambda a: tf.nn.max_pool2d(a, 2, 2, "VALID"), _normals(pool), 5)


SIZES = (("small 1k", (32, 32), 100), ("medium 256k", (512, 512), 50), ("large 4M", (2048, 2048), 5))


def elementwise() -> Iterator[Case]:
    """Ops on each element."""
    ops: dict[str, Callable[..., Any]] = {
        "AddV2": lambda a, b: a + b,
        "Mul by scalar": lambda a, b: a * 1.5,
        "Add row": lambda a, b: a + b[0],
        "Exp": lambda a, b: tf.exp(a),
        "Tanh": lambda a, b: tf.tanh(a),
        "Sigmoid": lambda a, b: tf.sigmoid(a),
        "Relu": lambda a, b: tf.nn.relu(a),
        "Erf": lambda a, b: tf.math.erf(a),
        "Sqrt": lambda a, b: tf.sqrt(a),
        "Greater": lambda a, b: tf.greater(a, b),
        "Cast to bfloat16": lambda a, b: tf.cast(a, tf.bfloat16),
    }
    for name, op in ops.items():
        for label, shape, repeats in SIZES:
            yield Case(name, label, op, functools.partial(_positive_and_any, shape), repeats)


def reduction() -> Iterator[Case]:
    """Sums and the like over axes."""
    ops: dict[str, Callable[..., Any]] = {
        "Sum all": tf.reduce_sum,
        "Sum rows": lambda a: tf.reduce_sum(a, 1),
        "Sum columns": lambda a: tf.reduce_sum(a, 0),
        "Max rows": lambda a: tf.reduce_max(a, 1),
        "ArgMax rows": lambda a: tf.argmax(a, 1),
    }
    for label, shape, repeats in SIZES:
        for name, op in ops.items():
            yield Case(name, label, op, _normals(shape), repeats)


def softmax() -> Iterator[Case]:
    """Shares, and the cross entropy of them."""
    sizes = (("64x10", (64, 10), 100), ("512x1000", (512, 1000), 20), ("4096x1000", (4096, 1000), 3))
    for label, shape, repeats in sizes:
        yield Case("Softmax", label, tf.nn.softmax, _normals(shape), repeats)
        yield Case(
            "SoftmaxCrossEntropy",
            label,
            lambda a, b: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=a, labels=b),
            functools.partial(_scores_and_shares, shape),
            repeats,
        )


def movement() -> Iterator[Case]:
    """Elements put elsewhere."""
    for label, shape, repeats in SIZES:
        yield Case("Transpose 2-D", label, tf.transpose, _normals(shape), repeats)
        yield Case("Concat", label, lambda a: tf.concat([a, a], 1), _normals(shape), repeats)
        yield Case("Slice", label, lambda a: a[1:, 3:], _normals(shape), repeats)
    yield Case("Transpose 0213", "8x128x8x64", lambda a: tf.transpose(a, [0, 2, 1, 3]), _normals((8, 128, 8, 64)), 10)
    yield Case(
        "Gather rows",
        "4096 of 10000x128",
        lambda p, i: tf.gather(p, i),
        lambda: [normal(10000, 128), _rng.integers(0, 10000, 4096)],
        10,
    )


def checked() -> Iterator[Case]:
    """Ops whose failure depends on data, so that each waits for its command (zeros and bad indices are errors)."""
    for size, rows, columns, n, repeats in (("small", 100, 16, 64, 100), ("medium", 10000, 128, 4096, 10)):
        label = f"{size} {n} of {rows}x{columns}"
        table, updates, indices = normal(rows, columns), normal(n, columns), _rng.integers(0, rows, (n, 1))
        yield Case("Gather", label, tf.gather, functools.partial(list, [table, indices[:, 0]]), repeats)
        yield Case(
            "TensorScatterAdd",
            label,
            tf.tensor_scatter_nd_add,
            functools.partial(list, [table, indices, updates]),
            repeats,
        )
    for size, n, repeats in (("small 1k", 1 << 10, 100), ("medium 256k", 1 << 18, 10)):
        for dtype in (np.int32, np.int64):
            x, y = (_rng.integers(1, 1000, n).astype(dtype) for _ in range(2))
            yield Case(
                f"FloorDiv of {dtype.__name__}", size, tf.math.floordiv, functools.partial(list, [x, y]), repeats
            )


def random() -> Iterator[Case]:
    """Random numbers."""
    for label, n, repeats in (("1k", 1 << 10, 50), ("1M", 1 << 20, 5)):
        for name, f in (("uniform", tf.random.stateless_uniform), ("normal", tf.random.stateless_normal)):
            yield Case(f"stateless {name}", label, lambda s, f=f, n=n: f([n], s), lambda: [np.array([1, 2])], repeats)


# By themselves in a process without clusters, which would compute a repeated op once.
SINGLE_OPS: dict[str, Callable[[], Iterator[Case]]] = {
    "matmul": matmul,
    "convolution": convolution,
    "elementwise": elementwise,
    "reduction": reduction,
    "softmax": softmax,
    "data movement": movement,
    "checked": checked,
    "random": random,
}
