"""The measurements: one generator of results per group."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import callbacks, devices, families, memory, models
from benchmarks.measure import CPU, XPU, Case, Result, alternate, compare, lines_of, wait
from tensorflow_xpu._bench.ops import SINGLE_OPS, normal


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
        r = compare(Case(name, "8x8", chain(op), lambda: [normal(8, 8) * 0.1], 1), rounds=15)
        yield Result(r.name, "per op", r.xpu / 400, r.cpu / 400)


def copies() -> Iterator[Result]:
    """Copies to and from the device, against memcpy between memory of the same kind (the column 'memcpy').

    TensorFlow keeps the copy of an eager tensor that it made once, so each round copies a tensor of its own. The memcpy
    has another source than the round before, too: memory of the CPU's tensors, which nobody frees meanwhile. To the
    device both write to memory that was in use before. From the device both make the host's memory, as TensorFlow does
    for each copy, and give it back. (`tensor.numpy()` copies once more, on the host.)
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


def demo_step(device: str) -> Callable[[], Any]:
    """A training step of the demo's network, on random digits in batches of the demo's size, which gives the loss."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
    import digits_cnn

    with tf.device(device):
        tf.keras.utils.set_random_seed(0)
        model = digits_cnn.make_model()
        # XLA, which Keras would choose on a machine without XPU, is for neither.
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        x, y = tf.constant(normal(128, 8, 8, 1)), tf.constant(np.random.default_rng(0).integers(0, 10, 128))

    def step():
        with tf.device(device):
            return model.train_on_batch(x, y)

    return step


def training_stepper(device: str) -> Callable[[], None]:
    """Ten of the demo's training steps."""
    step = demo_step(device)

    def steps():
        for _ in range(9):
            step()
        np.asarray(step())

    return steps


def training() -> Iterator[Result]:
    a, b = alternate(training_stepper(XPU), training_stepper(CPU), rounds=9)
    yield Result("demo training step", "batch 128", a / 10, b / 10)


def by_themselves(group: str) -> Iterator[Result]:
    """The results of single ops, from a process without clusters: a cluster runs an op that is repeated once."""
    for line in lines_of("benchmarks.suite", group, TF_XPU_FUSION="0"):
        yield Result(**json.loads(line))


GROUPS = {
    "dispatch": dispatch,
    "copies": copies,
    "copies without TensorFlow": callbacks.copies,
    **{group: functools.partial(by_themselves, group) for group in SINGLE_OPS},
    "op table": families.table,
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
    for case in SINGLE_OPS[sys.argv[1]]():
        print(json.dumps(dataclasses.asdict(compare(case))), flush=True)


if __name__ == "__main__":
    main()
