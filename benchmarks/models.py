"""Whole models: a step of each, what its first call takes, and the memory that a step holds.

Steps of both devices alternate in one process. First calls and memory are those of processes of their own, in turns; as
a program, `python -m benchmarks.models MODEL DEVICE`, it is such a process and prints seconds and bytes.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from benchmarks.measure import CPU, XPU, Result, alternate, in_process, middle, seconds, wait

ROUNDS, PROCESSES = 15, 3


def training(model: tf.keras.Model, optimizer, loss, x, y) -> Callable[[], object]:
    """A callable that trains on a batch, which stays on the device, and gives the loss on the device."""
    # XLA, which Keras would choose on a machine without XPU, is for neither.
    model.compile(optimizer, loss, jit_compile=False)
    batch = (tf.nest.map_structure(tf.constant, x), tf.constant(y))
    model.make_train_function()
    batches = itertools.repeat(batch)
    return lambda: model.train_function(batches)


def labels(rng: np.random.Generator, *shape: int):
    return rng.integers(0, 10, shape), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(rng: np.random.Generator) -> Callable[[], object]:
    layers = tf.keras.layers
    dense = [layers.Dense(256, "relu"), layers.Dense(128, "relu"), layers.Dense(10)]
    y, loss = labels(rng, 128)
    return training(tf.keras.Sequential(dense), "adam", loss, rng.random((128, 784), np.float32), y)


def recommender(rng: np.random.Generator) -> Callable[[], object]:
    """Users, items, and ten tags of each."""
    layers = tf.keras.layers
    kinds = ((100_000, 1, 32), (50_000, 1, 32), (5000, 10, 16))  # how many there are, in an example, numbers for each
    inputs = [tf.keras.Input((n,), dtype="int32") for _, n, _ in kinds]
    users, items, tags = (layers.Embedding(known, width)(i) for (known, _, width), i in zip(kinds, inputs, strict=True))
    tags = layers.GlobalAveragePooling1D()(tags)
    joined = layers.Concatenate()([layers.Flatten()(users), layers.Flatten()(items), tags])
    rating = layers.Dense(1)(layers.Dense(64, "relu")(layers.Dense(128, "relu")(joined)))
    x = tuple(rng.integers(0, known, (512, n)).astype(np.int32) for known, n, _ in kinds)
    model = tf.keras.Model(inputs, rating)
    return training(model, tf.keras.optimizers.SGD(0.1), "mse", x, rng.random((512, 1), np.float32))


def lstm(rng: np.random.Generator) -> Callable[[], object]:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.LSTM(256, return_sequences=True), layers.LSTM(256), layers.Dense(10)])
    y, loss = labels(rng, 32)
    return training(model, "adam", loss, rng.random((32, 64, 64), np.float32), y)


def transformer(rng: np.random.Generator) -> Callable[[], object]:
    """An encoder of four blocks, normalised first."""
    layers = tf.keras.layers
    tokens = tf.keras.Input((128,), dtype="int32")
    x = layers.Embedding(1000, 256)(tokens)
    for _ in range(4):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 64)(y, y)
        y = layers.Dense(1024, "gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(256)(y)
    model = tf.keras.Model(tokens, layers.Dense(10)(x))
    y, loss = labels(rng, 16, 128)
    return training(model, "adam", loss, rng.integers(0, 1000, (16, 128)).astype(np.int32), y)


def decoder(rng: np.random.Generator, layers: int = 4, width: int = 256, heads: int = 4, context: int = 128):
    """One token after the other, with what earlier ones gave attention kept in variables."""

    def weights(*shape: int) -> tf.Variable:
        return tf.Variable(rng.normal(0, 0.02, shape).astype(np.float32))

    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    blocks = [{name: weights(*shape) for name, shape in shapes.items()} for _ in range(layers)]
    scales = [tf.Variable(tf.ones(width)) for _ in range(2 * layers)]
    caches = [[tf.Variable(tf.zeros([heads, context, width // heads])) for _ in range(2)] for _ in range(layers)]
    embedding = weights(1000, width)

    def normalised(x, scale):
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale

    @tf.function
    def next_token(token, position):
        x = tf.gather(embedding, token)[None]
        here = tf.one_hot(position, context)[None, :, None]
        for block, (keys, values), before, after in zip(blocks, caches, scales[::2], scales[1::2], strict=True):
            parts = tf.split(normalised(x, before) @ block["qkv"], 3, -1)
            query, key, value = (tf.reshape(part, [heads, 1, -1]) for part in parts)
            keys.assign(keys * (1 - here) + key * here)
            values.assign(values * (1 - here) + value * here)
            scores = tf.matmul(query, keys, transpose_b=True) / np.sqrt(width // heads)
            scores = tf.where(tf.range(context) <= position, scores, -1e9)
            x += tf.reshape(tf.nn.softmax(scores) @ values, [1, width]) @ block["out"]
            x += tf.nn.gelu(normalised(x, after) @ block["up"]) @ block["down"]
        return tf.argmax(tf.matmul(x, embedding, transpose_b=True)[0], output_type=tf.int32)

    positions = itertools.cycle(range(context))
    return lambda: next_token(tf.constant(5), tf.constant(next(positions)))


# By name: what makes a step, its size as users would say it, and how many steps are timed at once.
MODELS = {
    "MLP": (mlp, "784-256-128-10, batch 128, Adam", 50),
    "recommender": (recommender, "three embeddings, batch 512, SGD", 50),
    "decoder": (decoder, "four layers of 256, one token", 50),
    "LSTM": (lstm, "two of 256 units, 64 steps, batch 32, Adam", 3),
    "Transformer": (transformer, "four blocks of 256, 128 tokens, batch 16, Adam", 3),
}


def make(name: str, device: str) -> Callable[[], object]:
    """A step of a model, its weights and data the same on every device."""
    with tf.device(device):
        tf.keras.utils.set_random_seed(0)
        step = MODELS[name][0](np.random.default_rng(0))

    def on_device() -> object:
        with tf.device(device):
            return step()

    return on_device


def steps() -> Iterator[Result]:
    for name, (_, size, repeats) in MODELS.items():

        def several(step: Callable[[], object]) -> Callable[[], None]:
            def run() -> None:
                for _ in range(repeats):
                    results = step()
                wait(results)

            return run

        xpu, cpu = alternate(several(make(name, XPU)), several(make(name, CPU)), ROUNDS)
        yield Result(name, size, xpu / repeats, cpu / repeats, f"{cpu / xpu:.2f} times as fast")


@functools.cache
def in_processes(name: str) -> list[tuple[dict[str, float], dict[str, float]]]:
    """What processes on XPU and CPU, in turns, print of a model."""

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
