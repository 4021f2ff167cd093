"""Models to be timed by their steps: ``bench`` and ``make bench`` do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_xpu._measure import wait


def training(model: Any, optimizer: Any, loss: Any, x: Any, y: Any) -> Callable[[], object]:
    """A callable that trains on a batch, which stays on the device, and gives the loss on the device."""
    # XLA, which Keras would choose on a machine without XPU, is for neither.
    model.compile(optimizer, loss, jit_compile=False)
    batch = (tf.nest.map_structure(tf.constant, x), tf.constant(y))
    model.make_train_function()
    batches = itertools.repeat(batch)
    return lambda: model.train_function(batches)


def labels(rng: np.random.Generator, *shape: int) -> Any:
    """One of ten for each, and the loss."""
    return rng.integers(0, 10, shape), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(rng: np.random.Generator) -> Callable[[], object]:
    """Dense layers."""
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


def cnn(rng: np.random.Generator) -> Callable[[], object]:
    """Convolutions with batch normalization, at three resolutions."""
    layers = tf.keras.layers
    stack = []
    for width in (32, 64, 128):
        for _ in range(2):
            stack += [layers.Conv2D(width, 3, padding="same", use_bias=False), layers.BatchNormalization()]
            stack += [layers.ReLU()]
        stack += [layers.MaxPooling2D()]
    y, loss = labels(rng, 32)
    model = tf.keras.Sequential([*stack, layers.GlobalAveragePooling2D(), layers.Dense(10)])
    return training(model, "adam", loss, rng.random((32, 32, 32, 3), np.float32), y)


def lstm(rng: np.random.Generator) -> Callable[[], object]:
    """Two layers, one after the other."""
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


def decoder(
    rng: np.random.Generator, layers: int = 4, width: int = 256, heads: int = 4, context: int = 128
) -> Callable[[], object]:
    """One token after the other, with what earlier ones gave attention kept in variables."""

    def weights(*shape: int) -> Any:
        return tf.Variable(rng.normal(0, 0.02, shape).astype(np.float32))

    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, 4 * width), "down": (4 * width, width)}
    blocks = [{name: weights(*shape) for name, shape in shapes.items()} for _ in range(layers)]
    scales = [tf.Variable(tf.ones(width)) for _ in range(2 * layers)]
    caches = [[tf.Variable(tf.zeros([heads, context, width // heads])) for _ in range(2)] for _ in range(layers)]
    embedding = weights(1000, width)

    def normalised(x: Any, scale: Any) -> Any:
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale

    def next_token(token: Any, position: Any) -> Any:
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
    function = tf.function(next_token)
    return lambda: function(tf.constant(5), tf.constant(next(positions)))


# By name: what makes a step, its size as users would say it, and how many steps are timed at once.
MODELS: dict[str, tuple[Callable[[np.random.Generator], Callable[[], object]], str, int]] = {
    "MLP": (mlp, "784-256-128-10, batch 128, Adam", 50),
    "CNN": (cnn, "six convolutions of 32 to 128, 32x32x3, batch 32, Adam", 3),
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


def several(name: str, device: str) -> Callable[[], None]:
    """As many steps of a model as are timed at once, and the wait for the last."""
    step, repeats = make(name, device), MODELS[name][2]

    def run() -> None:
        for _ in range(repeats):
            results = step()
        wait(results)

    return run
