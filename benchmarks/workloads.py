"""Ordinary models in Keras alone, so that each runs as it is on TensorFlow, on an XPU or not, on JAX and on PyTorch.

A workload is a model with data of its own. It trains by `fit` or infers by `predict`, as a user would have it, on NumPy
arrays. The weights and the data are the same wherever it runs. None has dropout, whose numbers are not.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable

import keras
import numpy as np
from keras import layers, ops


@dataclasses.dataclass(frozen=True)
class Workload:
    """A model to be measured.

    make: the model and its `data`, a function of the number of examples and a generator of numbers.
    size: as users would say it.
    batch: examples in a step.
    steps: that are timed at once.
    optimizer: a name that Keras knows; None for inference.
    """

    make: Callable[[], tuple[keras.Model, Callable]]
    size: str
    batch: int
    steps: int
    optimizer: str | None = "adam"
    policy: str = "float32"


def images(size: int, channels: int = 3, classes: int = 10) -> Callable:
    return lambda n, rng: (rng.random((n, size, size, channels), np.float32), rng.integers(0, classes, n))


def tokens(length: int, vocabulary: int = 1000) -> Callable:
    return lambda n, rng: (
        rng.integers(0, vocabulary, (n, length)).astype(np.int32),
        rng.integers(0, 10, (n, length)),
    )


def plain_cnn():
    x = inputs = keras.Input((32, 32, 3))
    for width in (32, 64, 128):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D()(x)
    return keras.Model(inputs, layers.Dense(10)(layers.Flatten()(x))), images(32)


def residual():
    x = inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        for block in range(2):
            first = stride if block == 0 else 1
            y = layers.ReLU()(layers.BatchNormalization()(x))
            y = layers.Conv2D(width, 3, first, padding="same", use_bias=False)(y)
            y = layers.ReLU()(layers.BatchNormalization()(y))
            y = layers.Conv2D(width, 3, padding="same", use_bias=False)(y)
            x = y + (x if first == 1 and x.shape[-1] == width else layers.Conv2D(width, 1, first, padding="same")(x))
    x = layers.GlobalAveragePooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
    return keras.Model(inputs, layers.Dense(10)(x)), images(32)


def application(name: str, size: int, **arguments):
    make = getattr(keras.applications, name)
    model = make(weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None, **arguments)
    return model, images(size)


def unet():
    def block(x, width):
        for _ in range(2):
            x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(width, 3, padding="same")(x)))
        return x

    x = inputs = keras.Input((64, 64, 3))
    skipped = []
    for width in (16, 32, 64):
        x = block(x, width)
        skipped.append(x)
        x = layers.MaxPooling2D()(x)
    x = block(x, 128)
    for width, skip in zip((64, 32, 16), skipped[::-1], strict=True):
        x = layers.Conv2DTranspose(width, 2, 2)(x)
        x = block(layers.Concatenate()([x, skip]), width)

    def data(n, rng):
        return rng.random((n, 64, 64, 3), np.float32), rng.integers(0, 4, (n, 64, 64))

    return keras.Model(inputs, layers.Conv2D(4, 1)(x)), data


class Positions(layers.Layer):
    """Adds a learned vector for each position."""

    def build(self, shape):
        self.table = self.add_weight(shape=(shape[1], shape[2]), initializer="zeros")

    def call(self, x):
        return x + self.table


def transformer(blocks: int, width: int, length: int, causal: bool = False):
    inputs = keras.Input((length,), dtype="int32")
    x = Positions()(layers.Embedding(1000, width)(inputs))
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, width // 4)(y, y, use_causal_mask=causal)
        y = layers.Dense(4 * width, "gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(width)(y)
    return keras.Model(inputs, layers.Dense(10)(layers.LayerNormalization()(x))), tokens(length)


def one_token(blocks: int = 4, width: int = 256, heads: int = 4, context: int = 128, batch: int | None = None):
    """A decoder's next token, given what attention has kept of earlier ones.

    Keys and values are an argument. With `batch` they belong to the model, which takes so many tokens at once.
    """
    token, position = keras.Input((), batch, dtype="int32"), keras.Input((), batch, dtype="int32")
    shape = (2 * blocks, heads, context, width // heads)
    kept = Kept((batch, *shape))(token) if batch else keras.Input(shape)
    here = ops.one_hot(position, context)[:, None, :, None]
    seen = ops.less_equal(np.arange(context, dtype=np.int32), position[:, None, None, None])
    x = layers.Embedding(1000, width)(token)
    for block in range(blocks):
        parts = layers.Dense(3 * width)(layers.LayerNormalization()(x))
        query, key, value = (ops.reshape(part, (-1, heads, 1, width // heads)) for part in ops.split(parts, 3, -1))
        keys = kept[:, 2 * block] * (1 - here) + key * here
        values = kept[:, 2 * block + 1] * (1 - here) + value * here
        scores = ops.matmul(query, ops.transpose(keys, (0, 1, 3, 2))) * (width // heads) ** -0.5
        scores = ops.where(seen, scores, -1e9)
        y = ops.reshape(ops.matmul(ops.softmax(scores), values), (-1, width))
        x = x + layers.Dense(width)(y)
        x = x + layers.Dense(width)(layers.Dense(4 * width, "gelu")(layers.LayerNormalization()(x)))

    def data(n, rng):
        numbers = rng.integers(0, 1000, n), rng.integers(0, context, n)
        return numbers if batch else (*numbers, rng.random((n, *shape), np.float32)), None

    inputs = (token, position) if batch else (token, position, kept)
    return keras.Model(inputs, layers.Dense(1000)(x)), data


class Kept(layers.Layer):
    """Keys and values of earlier tokens, as numbers that the model has."""

    def __init__(self, shape: tuple[int, ...], **arguments):
        super().__init__(**arguments)
        self.kept = self.add_weight(shape=shape, initializer="ones", trainable=False)

    def call(self, token):
        return ops.cast(self.kept, self.compute_dtype)


def recurrent(layer: str, units: int, steps: int):
    make = getattr(layers, layer)
    model = keras.Sequential(
        [keras.Input((steps, 32)), make(units, return_sequences=True), make(units), layers.Dense(10)]
    )
    return model, lambda n, rng: (rng.random((n, steps, 32), np.float32), rng.integers(0, 10, n))


def recommender():
    kinds = ((100_000, 1, 32), (50_000, 1, 32), (5000, 10, 16))  # how many there are, in an example, numbers for each
    inputs = [keras.Input((n,), dtype="int32") for _, n, _ in kinds]
    users, items, tags = (layers.Embedding(known, width)(i) for (known, _, width), i in zip(kinds, inputs, strict=True))
    tags = layers.GlobalAveragePooling1D()(tags)
    joined = layers.Concatenate()([layers.Flatten()(users), layers.Flatten()(items), tags])
    rating = layers.Dense(2)(layers.Dense(64, "relu")(layers.Dense(128, "relu")(joined)))

    def data(n, rng):
        return tuple(rng.integers(0, known, (n, k)).astype(np.int32) for known, k, _ in kinds), rng.integers(0, 2, n)

    return keras.Model(inputs, rating), data


def mlp(*widths: int, features: int = 784):
    dense = [layers.Dense(width, "relu") for width in widths]
    model = keras.Sequential([keras.Input((features,)), *dense, layers.Dense(10)])
    return model, lambda n, rng: (rng.random((n, features), np.float32), rng.integers(0, 10, n))


def autoencoder():
    x = inputs = keras.Input((784,))
    for width in (256, 64, 16, 64, 256):
        x = layers.Dense(width, "elu")(x)

    def data(n, rng):
        x = rng.random((n, 784), np.float32)
        return x, x

    return keras.Model(inputs, layers.Dense(784, "sigmoid")(x)), data


class Messages(layers.Layer):
    """One round of a graph network: each node gets the sum of what its neighbours send along given edges."""

    def __init__(self, width: int, **arguments):
        super().__init__(**arguments)
        self.send, self.update = layers.Dense(width, "relu"), layers.Dense(width, "relu")

    def call(self, nodes, sources, targets):
        shape = ops.shape(nodes)
        flat = ops.reshape(nodes, (-1, shape[-1]))
        first = ops.arange(shape[0])[:, None] * shape[1]
        sent = self.send(ops.take(flat, ops.reshape(sources + first, (-1,)), 0))
        got = ops.segment_sum(sent, ops.reshape(targets + first, (-1,)), shape[0] * shape[1])
        return self.update(ops.concatenate([nodes, ops.reshape(got, (shape[0], shape[1], sent.shape[-1]))], -1))


def graph_network(batch: int = 16, nodes: int = 100, edges: int = 600):
    x, sources, targets = (
        keras.Input(batch_shape=(batch, nodes, 16)),
        keras.Input(batch_shape=(batch, edges), dtype="int32"),
        keras.Input(batch_shape=(batch, edges), dtype="int32"),
    )
    y = x
    for _ in range(3):
        y = Messages(64)(y, sources, targets)

    def data(n, rng):
        ends = (rng.integers(0, nodes, (n, edges)).astype(np.int32) for _ in range(2))
        return (rng.random((n, nodes, 16), np.float32), *ends), rng.integers(0, 10, n)

    return keras.Model((x, sources, targets), layers.Dense(10)(layers.GlobalAveragePooling1D()(y))), data


def many_small_ops(layers_: int = 25):
    """Eight ops on a few numbers each for each layer."""
    x = inputs = keras.Input((16,))
    for _ in range(layers_):
        y = layers.Dense(16, "tanh")(x)
        x = x + 0.1 * y / (1.0 + ops.abs(y)) - ops.mean(y, -1, keepdims=True)
    return keras.Model(inputs, layers.Dense(10)(x)), lambda n, rng: (
        rng.random((n, 16), np.float32),
        rng.integers(0, 10, n),
    )


def waves():
    """Dilated convolutions over a sound, with gates."""
    x = inputs = keras.Input((1024, 1))
    x = layers.Conv1D(32, 1)(x)
    for rate in (1, 2, 4, 8, 16, 32):
        gate, signal = (layers.Conv1D(32, 2, padding="causal", dilation_rate=rate)(x) for _ in range(2))
        x = x + layers.Conv1D(32, 1)(ops.tanh(signal) * ops.sigmoid(gate))

    def data(n, rng):
        return rng.random((n, 1024, 1), np.float32), rng.integers(0, 10, (n, 1024))

    return keras.Model(inputs, layers.Dense(10)(x)), data


P = functools.partial
ENCODER, ENCODER_SIZE = P(transformer, 4, 256, 128), "four blocks of 256, 128 tokens, batch 8"
WORKLOADS = {
    "plain CNN": Workload(plain_cnn, "32x32, six layers, batch 32, SGD", 32, 10, "sgd"),
    "residual CNN": Workload(residual, "32x32, 13 layers, batch 32, Adam", 32, 10),
    "ResNet50, inference": Workload(P(application, "ResNet50", 160), "160x160, batch 4", 4, 4, None),
    "MobileNetV2": Workload(P(application, "MobileNetV2", 96, alpha=0.5), "96x96, alpha 0.5, batch 16, Adam", 16, 6),
    "MobileNetV2, inference": Workload(P(application, "MobileNetV2", 160), "160x160, one image", 1, 30, None),
    "EfficientNetB0, inference": Workload(P(application, "EfficientNetB0", 128), "128x128, batch 8", 8, 5, None),
    "U-Net": Workload(unet, "64x64, batch 4, Adam", 4, 8),
    "Transformer encoder": Workload(ENCODER, f"{ENCODER_SIZE}, AdamW", 8, 5, "adamw"),
    "Transformer encoder, small": Workload(P(transformer, 2, 64, 32), "two of 64, 32 tokens, batch 16, Adam", 16, 30),
    "Transformer encoder, inference": Workload(ENCODER, ENCODER_SIZE, 8, 10, None),
    "Transformer decoder": Workload(
        P(transformer, 2, 128, 256, causal=True), "two blocks of 128, 256 tokens, batch 8, AdamW", 8, 8, "adamw"
    ),
    "one token": Workload(one_token, "four blocks of 256, 128 tokens kept", 1, 100, None),
    "LSTM": Workload(P(recurrent, "LSTM", 128, 48), "two of 128 units, 48 steps, batch 32, Adam", 32, 6),
    "GRU": Workload(P(recurrent, "GRU", 128, 48), "two of 128 units, 48 steps, batch 32, Adam", 32, 6),
    "recommender": Workload(recommender, "three embeddings, batch 512, SGD", 512, 40, "sgd"),
    "MLP": Workload(P(mlp, 256, 128), "784-256-128-10, batch 128, Adam", 128, 60),
    "MLP, wide": Workload(P(mlp, 2048, 2048, features=1024), "1024-2048-2048-10, batch 256, SGD", 256, 8, "sgd"),
    "autoencoder": Workload(autoencoder, "784-256-64-16 and back, batch 128, AdamW", 128, 60, "adamw"),
    "graph network": Workload(graph_network, "100 nodes, 600 edges, three rounds, batch 16, Adam", 16, 20),
    "many small ops": Workload(many_small_ops, "25 layers of 16, batch 8, Adam", 8, 60),
    "waves": Workload(waves, "dilated convolutions over 1024 samples, batch 8, Adam", 8, 8),
    "Transformer encoder, bfloat16": Workload(ENCODER, f"{ENCODER_SIZE}, AdamW", 8, 5, "adamw", "mixed_bfloat16"),
    "residual CNN, bfloat16": Workload(residual, "32x32, 13 layers, batch 32, Adam", 32, 10, "adam", "mixed_bfloat16"),
}
QUICK = ("plain CNN", "Transformer encoder, small", "LSTM", "MLP", "many small ops")


# Workloads of several sizes, to see what grows with what.
SCALES = {
    "batch": {n: Workload(P(mlp, 256, 128), "MLP 784-256-128-10, Adam", n, 40) for n in (1, 8, 64, 512)},
    "tokens": {
        n: Workload(P(transformer, 2, 128, n), "Transformer, two blocks of 128, batch 4, Adam", 4, 8)
        for n in (16, 64, 256, 512)
    },
    "layers": {
        n: Workload(P(mlp, *[128] * n, features=128), "layers of 128, batch 32, Adam", 32, 30) for n in (1, 4, 16, 64)
    },
    "small layers": {n: Workload(P(many_small_ops, n), "layers of 16, batch 8, Adam", 8, 20) for n in (5, 20, 80)},
}


def find(name: str) -> Workload:
    """The workload of this name; one of SCALES is called "tokens=64"."""
    kind, _, size = name.rpartition("=")
    return SCALES[kind][int(size)] if kind else WORKLOADS[name]


def same_weights(model: keras.Model) -> None:
    """Matrices and filters get numbers that do not depend on where the model runs; all else stays zeros and ones."""
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        if len(variable.shape) >= 2:
            fan_in = np.prod(variable.shape[:-1])
            variable.assign(rng.normal(0, 1 / np.sqrt(fan_in), variable.shape).astype(np.float32))


class Clock(keras.callbacks.Callback):
    """Times steps as `fit` and `predict` run them, from the first one's beginning until the last one's results are
    there. It leaves out the set-up of the data's iterator. It leaves out its end, too, which waits for tf.data's own
    tuning of it: 10, 150, 310 or 630 milliseconds.
    """

    async_safe = True  # as Keras's own are: the next step need not wait for the results of this one

    def __init__(self):
        super().__init__()
        self.seconds = 0.0
        self._began = 0.0

    def _begin(self, batch, logs=None):
        if batch == 0:
            self._began = time.perf_counter()

    def _end(self, batch, logs=None):
        for result in keras.tree.flatten(logs):  # numbers, or tensors that may still be computed
            keras.ops.convert_to_numpy(result)
        self.seconds = time.perf_counter() - self._began

    on_train_batch_begin = on_predict_batch_begin = _begin
    on_train_batch_end = on_predict_batch_end = _end


def make(name: str, jit_compile: bool = False) -> Callable[[], tuple[float, float]]:
    """A callable that runs the workload's steps once: seconds of a step, and the loss of training or a mean of what is
    inferred.
    """
    return prepared(find(name), jit_compile)


def prepared(workload: Workload, jit_compile: bool = False) -> Callable[[], tuple[float, float]]:
    """As make, of a workload that need not have a name."""
    keras.config.set_dtype_policy(workload.policy)
    model, data = workload.make()
    same_weights(model)
    x, y = data(workload.batch * workload.steps, np.random.default_rng(1))
    clock = Clock()
    common = {"batch_size": workload.batch, "verbose": 0, "callbacks": [clock]}
    if workload.optimizer is None:
        model.compile(jit_compile=jit_compile)
    else:
        is_class = np.issubdtype(y.dtype, np.integer)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True) if is_class else "mse"
        model.compile(workload.optimizer, loss, jit_compile=jit_compile)

    def work() -> tuple[float, float]:
        if workload.optimizer is None:
            result = float(np.mean(model.predict(x, **common)))
        else:
            result = model.fit(x, y, shuffle=False, **common).history["loss"][0]
        return clock.seconds / workload.steps, result

    return work
