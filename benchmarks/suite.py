"""What is measured: one generator of results per group."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from benchmarks import callbacks, devices, memory, models
from benchmarks.measure import CPU, XPU, Result, alternate, compare, lines_of, wait

_rng = np.random.default_rng(0)


def normal(*shape) -> np.ndarray:
    return _rng.standard_normal(shape).astype(np.float32)


def dispatch() -> Iterator[Result]:
    """Cost per op in a chain of 400 small ops, in one tf.function."""

    def chain(op):
        def run(x):
            for _ in range(400):
                x = op(x)
            return x

        return run

    chains = {
        "Mul": lambda x: tf.raw_ops.Mul(x=x, y=x),
        "AddV2 + scalar": lambda x: x + 1.5,
        "Tanh": tf.tanh,
        "MatMul 8x8": lambda x: tf.matmul(x, x),
        "Transpose 8x8": tf.transpose,
    }
    for name, op in chains.items():
        r = compare(name, "8x8", chain(op), [normal(8, 8) * 0.1], 1, rounds=15)
        yield Result(r.name, "per op", r.xpu / 400, r.cpu / 400)


def copies() -> Iterator[Result]:
    """Copies to and from the device, against memcpy between memory of the same kind (the column 'memcpy').

    TensorFlow keeps the copy of an eager tensor that it made once, so each round copies a tensor of its own, and the
    memcpy has another source than the round before, too: memory of the CPU's tensors, which nobody frees meanwhile.
    To the device both write to memory that was in use before. From the device both make the host's memory, as
    TensorFlow does for each copy, and give it back. (`tensor.numpy()` copies once more, on the host.)
    """
    rounds = 12
    for label, n in (("4 KiB", 1 << 10), ("1 MiB", 1 << 18), ("16 MiB", 1 << 22), ("64 MiB", 1 << 24)):
        host, target = normal(n), np.zeros(n, np.float32)
        with tf.device(CPU):
            on_host = [tf.constant(host) + i for i in range(rounds + 2)]
        with tf.device(XPU):
            on_device = [tf.identity(tf.constant(host)) + i for i in range(rounds + 2)]
        wait(on_device[-1])
        sources = itertools.cycle([tensor._numpy() for tensor in on_host])  # views, which keep the memory

        def to_device(tensors=on_host):
            with tf.device(XPU):
                tf.identity(tensors.pop())  # an eager copy between devices returns when it is done

        def from_device(tensors=on_device):
            with tf.device(CPU):
                tf.identity(tensors.pop())

        def memcpy(sources=sources, target=target):
            np.copyto(target, next(sources))

        def memcpy_to_fresh(sources=sources):
            next(sources).copy()

        for name, copy, plain in (
            ("host to device, memory in use", to_device, memcpy),
            ("device to host, fresh memory", from_device, memcpy_to_fresh),
        ):
            a, b = alternate(copy, plain, rounds)
            yield Result(name, label, a, b, f"{4 * n / a / 1e9:.1f} GB/s")


def matmul() -> Iterator[Result]:
    for n, repeats in ((32, 200), (128, 100), (512, 10), (1024, 3)):
        r = compare("MatMul", f"{n}x{n}x{n}", tf.matmul, [normal(n, n), normal(n, n)], repeats)
        yield Result(r.name, r.size, r.xpu, r.cpu, f"{2 * n**3 / r.xpu / 1e9:.0f} GFLOP/s")
    yield compare("MatMul (thin)", "64x1024x10", tf.matmul, [normal(64, 1024), normal(1024, 10)], 50)
    yield compare("BatchMatMul", "32x64x64x64", tf.matmul, [normal(32, 64, 64), normal(32, 64, 64)], 20)
    yield compare(
        "Einsum abc,cde->abde",
        "8x64x64x8x8",
        lambda a, b: tf.einsum("abc,cde->abde", a, b),
        [normal(8, 64, 64), normal(64, 8, 8)],
        20,
    )


def convolution() -> Iterator[Result]:
    shapes = [
        ("small 8x8x8", (8, 8, 8, 16), (3, 3, 16, 16), 50),
        ("medium 28x28x32", (16, 28, 28, 32), (3, 3, 32, 32), 5),
        ("large 56x56x64", (8, 56, 56, 64), (3, 3, 64, 64), 2),
        ("first layer 64x64x3", (16, 64, 64, 3), (3, 3, 3, 32), 5),
    ]
    for label, x, f, repeats in shapes:
        dy = normal(*x[:3], f[3])
        args = {"strides": 1, "padding": "SAME"}
        yield compare("Conv2D", label, lambda a, b: tf.nn.conv2d(a, b, **args), [normal(*x), normal(*f)], repeats)
        raw = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        yield compare(
            "Conv2DBackpropInput",
            label,
            lambda b, d: tf.raw_ops.Conv2DBackpropInput(input_sizes=x, filter=b, out_backprop=d, **raw),
            [normal(*f), dy],
            repeats,
        )
        yield compare(
            "Conv2DBackpropFilter",
            label,
            lambda a, d: tf.raw_ops.Conv2DBackpropFilter(input=a, filter_sizes=f, out_backprop=d, **raw),
            [normal(*x), dy],
            repeats,
        )
    yield compare("MaxPool", "16x56x56x64", lambda a: tf.nn.max_pool2d(a, 2, 2, "VALID"), [normal(16, 56, 56, 64)], 5)


SIZES = (("small 1k", (32, 32), 100), ("medium 256k", (512, 512), 50), ("large 4M", (2048, 2048), 5))


def elementwise() -> Iterator[Result]:
    ops = {
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
            yield compare(name, label, op, [np.abs(normal(*shape)), normal(*shape)], repeats)


def reduction() -> Iterator[Result]:
    for label, shape, repeats in SIZES:
        x = normal(*shape)
        yield compare("Sum all", label, tf.reduce_sum, [x], repeats)
        yield compare("Sum rows", label, lambda a: tf.reduce_sum(a, 1), [x], repeats)
        yield compare("Sum columns", label, lambda a: tf.reduce_sum(a, 0), [x], repeats)
        yield compare("Max rows", label, lambda a: tf.reduce_max(a, 1), [x], repeats)
        yield compare("ArgMax rows", label, lambda a: tf.argmax(a, 1), [x], repeats)


def softmax() -> Iterator[Result]:
    for label, shape, repeats in (
        ("64x10", (64, 10), 100),
        ("512x1000", (512, 1000), 20),
        ("4096x1000", (4096, 1000), 3),
    ):
        yield compare("Softmax", label, tf.nn.softmax, [normal(*shape)], repeats)
        labels = tf.nn.softmax(normal(*shape)).numpy()
        yield compare(
            "SoftmaxCrossEntropy",
            label,
            lambda a, b: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=a, labels=b),
            [normal(*shape), labels],
            repeats,
        )


def movement() -> Iterator[Result]:
    for label, shape, repeats in SIZES:
        x = normal(*shape)
        yield compare("Transpose 2-D", label, tf.transpose, [x], repeats)
        yield compare("Concat", label, lambda a: tf.concat([a, a], 1), [x], repeats)
        yield compare("Slice", label, lambda a: a[1:, 3:], [x], repeats)
    yield compare("Transpose 0213", "8x128x8x64", lambda a: tf.transpose(a, [0, 2, 1, 3]), [normal(8, 128, 8, 64)], 10)
    indices = _rng.integers(0, 10000, 4096)
    yield compare("Gather rows", "4096 of 10000x128", lambda p, i: tf.gather(p, i), [normal(10000, 128), indices], 10)


def checked() -> Iterator[Result]:
    """Ops whose failure depends on data, so that each waits for its command (zeros and bad indices are errors)."""
    for size, rows, columns, n, repeats in (("small", 100, 16, 64, 100), ("medium", 10000, 128, 4096, 10)):
        table, updates = normal(rows, columns), normal(n, columns)
        indices = _rng.integers(0, rows, (n, 1))
        label = f"{size} {n} of {rows}x{columns}"
        yield compare("Gather", label, tf.gather, [table, indices[:, 0]], repeats)
        yield compare("TensorScatterAdd", label, tf.tensor_scatter_nd_add, [table, indices, updates], repeats)
    for size, n, repeats in (("small 1k", 1 << 10, 100), ("medium 256k", 1 << 18, 10)):
        for dtype in (np.int32, np.int64):
            x, y = (_rng.integers(1, 1000, n).astype(dtype) for _ in range(2))
            yield compare(f"FloorDiv of {dtype.__name__}", size, tf.math.floordiv, [x, y], repeats)


def random() -> Iterator[Result]:
    for label, n, repeats in (("1k", 1 << 10, 50), ("1M", 1 << 20, 5)):
        for name, f in (("uniform", tf.random.stateless_uniform), ("normal", tf.random.stateless_normal)):
            yield compare(f"stateless {name}", label, lambda s, f=f, n=n: f([n], s), [np.array([1, 2])], repeats)


def training_stepper(device: str) -> Callable[[], None]:
    """Ten training steps of the demo's network, on random digits in batches of the demo's size."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
    import digits_cnn

    with tf.device(device):
        tf.keras.utils.set_random_seed(0)
        model = digits_cnn.make_model()
        # XLA, which Keras would choose on a machine without XPU, is for neither.
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        x, y = tf.constant(normal(128, 8, 8, 1)), tf.constant(_rng.integers(0, 10, 128))

    def step():
        with tf.device(device):
            for _ in range(10):
                loss = model.train_on_batch(x, y)
            np.asarray(loss)

    return step


def training() -> Iterator[Result]:
    a, b = alternate(training_stepper(XPU), training_stepper(CPU), rounds=9)
    yield Result("demo training step", "batch 128", a / 10, b / 10)


# Ops one by one, each run again and again.
SINGLE_OPS = {
    "matmul": matmul,
    "convolution": convolution,
    "elementwise": elementwise,
    "reduction": reduction,
    "softmax": softmax,
    "data movement": movement,
    "checked": checked,
    "random": random,
}


def by_themselves(group: str) -> Iterator[Result]:
    """The results of single ops, from a process without clusters: a cluster runs an op that is repeated once."""
    for line in lines_of("benchmarks.suite", group, TF_XPU_FUSION="0"):
        yield Result(**json.loads(line))


GROUPS = {
    "dispatch": dispatch,
    "copies": copies,
    "copies without TensorFlow": callbacks.copies,
    **{group: functools.partial(by_themselves, group) for group in SINGLE_OPS},
    "training": training,
    "models": models.steps,
    "first calls": models.first_calls,
    "memory of models": models.memory,
    "memory options": memory.options,
    "devices": devices.scaling,
}

# The columns of a group that compares something else than XPU and CPU.
COLUMNS = {
    "copies": ("XPU", "memcpy", "XPU / memcpy"),
    "copies without TensorFlow": ("XPU", "memcpy", "XPU / memcpy"),
    "memory options": ("with", "without", "with / without"),
    "devices": ("two devices", "one device", "two / one"),
}


def main() -> None:
    """Prints the results of one group of single ops, a line of JSON each."""
    for result in SINGLE_OPS[sys.argv[1]]():
        print(json.dumps(dataclasses.asdict(result)), flush=True)


if __name__ == "__main__":
    main()
