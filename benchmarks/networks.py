"""Networks of many kinds that people deploy and keras.applications lacks, as inference_models.py takes them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import keras
import numpy as np
from keras import layers, ops

from benchmarks.workloads import images, tokens


def samples(*shape: int) -> Callable:
    return lambda n, rng: (rng.random((n, *shape), np.float32), None)


def normalized(x, width: int, kernel: int = 3, stride: int = 1, activation: str | Callable | None = "relu"):
    """A convolution, its batch normalization and an activation."""
    x = layers.Conv2D(width, kernel, stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return x if activation is None else layers.Activation(activation)(x)


def one_stage_detector(size: int = 256):
    """Residual blocks with leaky rectifiers, and three levels that are joined upwards, as YOLOv3-tiny has them."""
    leaky = functools.partial(keras.activations.leaky_relu, negative_slope=0.1)
    x = inputs = keras.Input((size, size, 3))
    x = normalized(x, 16, activation=leaky)
    levels = []
    for width in (32, 64, 128, 256):
        x = normalized(x, width, stride=2, activation=leaky)
        x = x + normalized(normalized(x, width // 2, 1, activation=leaky), width, activation=leaky)
        levels.append(x)
    found, x = [], levels.pop()
    for level in [*levels[:0:-1], None]:
        found.append(layers.Reshape((-1, 15))(layers.Conv2D(45, 1)(x)))
        if level is not None:
            x = layers.UpSampling2D()(normalized(x, level.shape[-1] // 2, 1, activation=leaky))
            x = normalized(ops.concatenate([x, level], -1), level.shape[-1], activation=leaky)
    return keras.Model(inputs, ops.concatenate(found, 1)), images(size)


def shuffled(x, groups: int = 2):
    height, width, channels = x.shape[1:]
    x = ops.reshape(x, (-1, height, width, groups, channels // groups))
    return ops.reshape(ops.transpose(x, (0, 1, 2, 4, 3)), (-1, height, width, channels))


def shufflenet(size: int = 224):
    """ShuffleNetV2, 1.0."""

    def branch(x, width, stride):
        x = normalized(x, width, 1)
        x = layers.BatchNormalization()(layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x))
        return normalized(x, width, 1)

    inputs = keras.Input((size, size, 3))
    x = layers.MaxPooling2D(3, 2, padding="same")(normalized(inputs, 24, stride=2))
    for width, blocks in ((58, 4), (116, 8), (232, 4)):
        y = layers.BatchNormalization()(layers.DepthwiseConv2D(3, 2, padding="same", use_bias=False)(x))
        x = shuffled(ops.concatenate([normalized(y, width, 1), branch(x, width, 2)], -1))
        for _ in range(blocks - 1):
            kept, y = ops.split(x, 2, -1)
            x = shuffled(ops.concatenate([kept, branch(y, width, 1)], -1))
    x = layers.GlobalAveragePooling2D()(normalized(x, 1024, 1))
    return keras.Model(inputs, layers.Dense(10)(x)), images(size)


def generator(noise: int = 100):
    """Images of 64x64 from noise by transposed convolutions, as DCGAN makes them."""
    inputs = keras.Input((noise,))
    x = layers.Reshape((4, 4, 256))(layers.Dense(4 * 4 * 256, use_bias=False)(inputs))
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for width in (128, 64, 32):
        x = layers.Conv2DTranspose(width, 4, 2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh")(x)), samples(noise)


def super_resolution(size: int = 96, times: int = 3):
    """An image that is `times` as large: convolutions, then channels become pixels, as in ESPCN."""
    x = inputs = keras.Input((size, size, 1))
    for width, kernel in ((64, 5), (64, 3), (32, 3), (times * times, 3)):
        x = layers.Conv2D(width, kernel, padding="same", activation="relu")(x)
    x = ops.transpose(ops.reshape(x, (-1, size, size, times, times)), (0, 1, 3, 2, 4))
    return keras.Model(inputs, ops.reshape(x, (-1, size * times, size * times, 1))), images(size, 1)


def mixer(blocks: int = 8, width: int = 256, size: int = 224, patch: int = 16):
    """Dense layers over patches and over channels in turns."""
    inputs = keras.Input((size, size, 3))
    x = layers.Reshape((-1, width))(layers.Conv2D(width, patch, patch)(inputs))
    patches = x.shape[1]
    for _ in range(blocks):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(patches)(layers.Dense(2 * patches, "gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        x = x + layers.Dense(width)(layers.Dense(4 * width, "gelu")(layers.LayerNormalization()(x)))
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, layers.Dense(10)(x)), images(size)


def wavenet(width: int = 32, length: int = 2048):
    """Gated causal convolutions, dilated by 1 to 512."""
    x = inputs = keras.Input((length, 1))
    x = layers.Conv1D(width, 2, padding="causal")(x)
    skipped = []
    for dilation in (2**i for i in range(10)):
        gate = layers.Conv1D(width, 2, padding="causal", dilation_rate=dilation, activation="sigmoid")(x)
        y = layers.Conv1D(width, 2, padding="causal", dilation_rate=dilation, activation="tanh")(x) * gate
        y = layers.Conv1D(width, 1)(y)
        skipped.append(y)
        x = x + y
    x = layers.Conv1D(64, 1, activation="relu")(layers.ReLU()(layers.Add()(skipped)))
    return keras.Model(inputs, layers.Conv1D(1, 1)(x)), samples(length, 1)


def tagger(words: int = 48, width: int = 96, tags: int = 17):
    """Words by GRUs in both directions."""
    inputs = keras.Input((words,), dtype="int32")
    x = layers.Embedding(5000, width)(inputs)
    for _ in range(2):
        x = layers.Bidirectional(layers.GRU(width, return_sequences=True))(x)
    return keras.Model(inputs, layers.Dense(tags, "softmax")(x)), tokens(words, 5000)


def text_cnn(words: int = 128, width: int = 100):
    """Convolutions over three, four and five words, each with its maximum."""
    inputs = keras.Input((words,), dtype="int32")
    x = layers.Embedding(5000, width)(inputs)
    found = [layers.GlobalMaxPooling1D()(layers.Conv1D(100, kernel, activation="relu")(x)) for kernel in (3, 4, 5)]
    return keras.Model(inputs, layers.Dense(2)(ops.concatenate(found, -1))), tokens(words, 5000)


def click_rate(categories: int = 26, width: int = 16):
    """Embeddings of categories with products of each two of them, and dense layers beside: DLRM."""
    numbers, chosen = keras.Input((13,)), keras.Input((categories,), dtype="int32")
    x = layers.Dense(width, "relu")(layers.Dense(64, "relu")(numbers))
    vectors = [layers.Embedding(1000, width)(chosen[:, i]) for i in range(categories)]
    every = ops.stack([x, *vectors], 1)
    pairs = ops.reshape(ops.matmul(every, ops.transpose(every, (0, 2, 1))), (-1, (categories + 1) ** 2))
    x = layers.Dense(64, "relu")(layers.Dense(128, "relu")(ops.concatenate([x, pairs], -1)))

    def data(n, rng):
        return (rng.random((n, 13), np.float32), rng.integers(0, 1000, (n, categories)).astype(np.int32)), None

    return keras.Model([numbers, chosen], layers.Dense(1, "sigmoid")(x)), data


def residual_mlp(blocks: int = 6, width: int = 256, features: int = 100):
    """Normalized dense layers with residuals, for tables."""
    inputs = keras.Input((features,))
    x = layers.Dense(width)(inputs)
    for _ in range(blocks):
        y = layers.Dense(2 * width, "relu")(layers.BatchNormalization()(x))
        x = x + layers.Dense(width)(y)
    return keras.Model(inputs, layers.Dense(10)(layers.ReLU()(layers.BatchNormalization()(x)))), samples(features)


def forecast(blocks: int = 6, past: int = 96, future: int = 24, width: int = 256):
    """Dense blocks that each explain a part of a series and take it away, as in N-BEATS."""
    x = inputs = keras.Input((past,))
    found = []
    for _ in range(blocks):
        y = x
        for _ in range(4):
            y = layers.Dense(width, "relu")(y)
        x = x - layers.Dense(past)(y)
        found.append(layers.Dense(future)(y))
    return keras.Model(inputs, layers.Add()(found)), samples(past)


def point_cloud(points: int = 1024):
    """PointNet without its transforms: one network for all points, and their maximum."""
    x = inputs = keras.Input((points, 3))
    for width in (64, 64, 128, 512):
        x = layers.ReLU()(layers.BatchNormalization()(layers.Dense(width, use_bias=False)(x)))
    x = layers.GlobalMaxPooling1D()(x)
    return keras.Model(inputs, layers.Dense(40)(layers.Dense(256, "relu")(x))), samples(points, 3)


def volumes(size: int = 32):
    """Convolutions over scans of three dimensions."""
    x = inputs = keras.Input((size, size, size, 1))
    for width in (16, 32, 64):
        x = layers.Conv3D(width, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling3D()(x)
    return keras.Model(inputs, layers.Dense(2)(layers.GlobalAveragePooling3D()(x))), samples(size, size, size, 1)


def segmentation(size: int = 128):
    """Dilated convolutions of several distances beside each other, as in DeepLab, on strided residual ones."""
    x = inputs = keras.Input((size, size, 3))
    for width in (32, 64, 128):
        x = normalized(x, width, stride=2)
        x = ops.relu(x + normalized(normalized(x, width), width, activation=None))
    distances = []
    for dilation in (2, 4, 6):
        y = layers.Conv2D(64, 3, padding="same", dilation_rate=dilation, use_bias=False)(x)
        distances.append(layers.ReLU()(layers.BatchNormalization()(y)))
    x = normalized(ops.concatenate([normalized(x, 64, 1), *distances], -1), 64, 1)
    x = layers.UpSampling2D(8, interpolation="bilinear")(layers.Conv2D(21, 1)(x))
    return keras.Model(inputs, x), images(size)
