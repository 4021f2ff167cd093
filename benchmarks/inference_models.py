"""Models as people deploy them, in Keras alone, so that each engine's exporter can take them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import keras
import numpy as np
from keras import layers, ops

from benchmarks import networks
from benchmarks.workloads import application, images, one_token, recurrent, same_weights, transformer, unet


@dataclasses.dataclass(frozen=True)
class Deployed:
    """A model that is deployed.

    make: -> (model, a function of the number of examples and a generator of numbers), as in workloads.py. That function
    gives the model's arguments and something that nobody reads.
    size: as users would say it.
    """

    make: Callable[[], tuple[keras.Model, Callable]]
    size: str


def vision_transformer(blocks: int = 12, width: int = 192, size: int = 224, patch: int = 16):
    inputs = keras.Input((size, size, 3))
    x = layers.Reshape((-1, width))(layers.Conv2D(width, patch, patch)(inputs))
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(3, width // 3)(y, y)
        x = x + layers.Dense(width)(layers.Dense(4 * width, "gelu")(layers.LayerNormalization()(x)))
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(inputs, layers.Dense(10)(x)), images(size)


class Suppress(layers.Layer):
    """The boxes and scores that non-maximum suppression keeps, 100 of each image: TensorFlow's own op."""

    def call(self, boxes, scores):
        import tensorflow as tf

        kept = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 100, 100, 0.5, 0.1)
        return ops.concatenate([kept.nmsed_boxes, kept.nmsed_scores[..., None]], -1)


def detector(size: int = 256, width: int = 64):
    """A feature pyramid of three levels on a MobileNetV2, a head that all levels share, and suppression."""
    body = keras.applications.MobileNetV2(weights=None, include_top=False, input_shape=(size, size, 3))
    levels = [body.get_layer(name).output for name in ("block_6_expand_relu", "block_13_expand_relu", "out_relu")]
    x = layers.Conv2D(width, 1)(levels[-1])
    pyramid = [x]
    for level in levels[-2::-1]:
        x = layers.UpSampling2D()(x) + layers.Conv2D(width, 1)(level)
        pyramid.append(x)
    head = [layers.Conv2D(width, 3, padding="same", activation="relu") for _ in range(2)]
    to_boxes, to_scores = layers.Conv2D(4, 3, padding="same"), layers.Conv2D(8, 3, padding="same", activation="sigmoid")
    boxes, scores = [], []
    for x in pyramid:
        for layer in head:
            x = layer(x)
        corner, extent = ops.split(layers.Reshape((-1, 4))(to_boxes(x)), 2, -1)
        boxes.append(ops.concatenate([corner, corner + ops.abs(extent)], -1))
        scores.append(layers.Reshape((-1, 8))(to_scores(x)))
    found = Suppress()(ops.concatenate(boxes, 1), ops.concatenate(scores, 1))
    return keras.Model(body.input, found), images(size)


def tabular():
    model = keras.Sequential(
        [keras.Input((32,)), layers.Dense(64, "relu"), layers.Dense(32, "relu"), layers.Dense(2, "softmax")]
    )
    return model, lambda n, rng: (rng.random((n, 32), np.float32), None)


def audio():
    """Convolutions over one second of sound at 16 kHz, each with a normalization."""
    x = inputs = keras.Input((16000, 1))
    for width, kernel, stride in ((64, 80, 4), (64, 3, 1), (128, 3, 1), (256, 3, 1), (512, 3, 1)):
        x = layers.Conv1D(width, kernel, stride, padding="same", use_bias=False)(x)
        x = layers.MaxPooling1D(4)(layers.ReLU()(layers.BatchNormalization()(x)))
    model = keras.Model(inputs, layers.Dense(35)(layers.GlobalAveragePooling1D()(x)))
    return model, lambda n, rng: (rng.random((n, 16000, 1), np.float32), None)


P = functools.partial
MODELS = {
    "ResNet50": Deployed(P(application, "ResNet50", 224), "224x224"),
    "ResNet50V2": Deployed(P(application, "ResNet50V2", 224), "224x224"),
    "MobileNetV2": Deployed(P(application, "MobileNetV2", 224), "224x224"),
    "MobileNetV3-small": Deployed(P(application, "MobileNetV3Small", 224), "224x224"),
    "EfficientNetB0": Deployed(P(application, "EfficientNetB0", 224), "224x224"),
    "EfficientNetV2-B0": Deployed(P(application, "EfficientNetV2B0", 224), "224x224"),
    "ConvNeXt-tiny": Deployed(P(application, "ConvNeXtTiny", 224), "224x224"),
    "DenseNet121": Deployed(P(application, "DenseNet121", 224), "224x224"),
    "vision transformer": Deployed(vision_transformer, "12 blocks of 192, 224x224 in patches of 16"),
    "detector": Deployed(detector, "MobileNetV2, 256x256, feature pyramid, suppression"),
    "U-Net": Deployed(unet, "64x64"),
    "text encoder": Deployed(P(transformer, 6, 384, 64), "6 blocks of 384, 64 tokens"),
    "decoder step": Deployed(P(one_token, 6, 256, 4, 128), "6 blocks of 256, 128 tokens kept"),
    "LSTM": Deployed(P(recurrent, "LSTM", 128, 48), "two of 128 units, 48 steps"),
    "tabular MLP": Deployed(tabular, "32-64-32-2"),
    "audio": Deployed(audio, "five 1-D convolutions, 16,000 samples"),
    "MobileNet": Deployed(P(application, "MobileNet", 224), "224x224"),
    "NASNet": Deployed(P(application, "NASNetMobile", 224), "mobile, 224x224"),
    "Xception": Deployed(P(application, "Xception", 160), "160x160"),
    "one-stage detector": Deployed(networks.one_stage_detector, "256x256, leaky rectifiers, three levels"),
    "ShuffleNetV2": Deployed(networks.shufflenet, "1.0, 224x224"),
    "generator": Deployed(networks.generator, "four transposed convolutions, 64x64"),
    "super-resolution": Deployed(networks.super_resolution, "96x96 to 288x288"),
    "mixer": Deployed(networks.mixer, "8 blocks of 256, 224x224 in patches of 16"),
    "WaveNet": Deployed(networks.wavenet, "ten gated convolutions of 32, 2048 samples"),
    "tagger": Deployed(networks.tagger, "two bidirectional GRUs of 96, 48 words"),
    "text CNN": Deployed(networks.text_cnn, "three widths of 100, 128 words"),
    "click rate": Deployed(networks.click_rate, "26 embeddings of 16, products of pairs"),
    "residual MLP": Deployed(networks.residual_mlp, "6 blocks of 256-512-256"),
    "forecast": Deployed(networks.forecast, "6 blocks of four dense layers of 256"),
    "point cloud": Deployed(networks.point_cloud, "1024 points"),
    "volumes": Deployed(networks.volumes, "three 3-D convolutions, 32x32x32"),
    "segmentation": Deployed(networks.segmentation, "128x128, dilations of 2 to 6"),
}
BATCHES = (1, 8)


#: What batch normalizations get: a range for each of their variables. As Keras makes them they change nothing.
NORMALIZATION = {"gamma": (0.8, 1.2), "beta": (-0.2, 0.2), "moving_mean": (-0.2, 0.2), "moving_variance": (0.5, 1.5)}


def make(name: str, batch: int) -> tuple[keras.Model, list[np.ndarray]]:
    """The model with weights that do not depend on where it runs, and its arguments for one call."""
    model, data = MODELS[name].make()
    same_weights(model)
    rng = np.random.default_rng(2)
    for variable in model.variables:
        if variable.name in NORMALIZATION:
            variable.assign(rng.uniform(*NORMALIZATION[variable.name], variable.shape).astype(np.float32))
    arguments = data(batch, np.random.default_rng(1))[0]
    arguments = list(arguments) if isinstance(arguments, tuple) else [arguments]
    wanted = [keras.backend.standardize_dtype(tensor.dtype) for tensor in model.inputs]
    return model, [np.ascontiguousarray(a, dtype) for a, dtype in zip(arguments, wanted, strict=True)]
