"""The networks of tests/fuzz/quantized.py: quantized layers of every mode among ordinary ones."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf
from keras import layers, quantizers

WIDTHS = (1, 3, 7, 16, 31, 32, 33, 64, 65, 100, 130)
VOCABULARIES = (2, 7, 40, 97)
ACTIVATIONS = (None, None, "relu", "gelu", "tanh", "sigmoid", "silu", "softmax", "leaky_relu", "elu")
GROUPS = (3, 10, 16, 32, 128)
EPSILON = float(np.finfo(np.float32).eps)
# One step of an integer more or less, of 127: the most that rounding leads to, where integers follow floats.
ONE_STEP = 0.03


def _absmax():
    return quantizers.AbsMaxQuantizer(axis=-1)


def _int4(**arguments):
    return quantizers.Int4QuantizationConfig(**arguments)


def _gptq(r: random.Random):
    return quantizers.GPTQConfig(dataset=None, tokenizer=None, weight_bits=r.choice((4, 8)), group_size=_group(r))


def _awq(r: random.Random):
    return quantizers.AWQConfig(dataset=None, tokenizer=None, group_size=_group(r))


def _group(r: random.Random) -> int:
    return r.choice((-1, 8, 16))


# By mode: its configuration, and whether activations become integers.
MODES: dict[str, tuple[Callable, bool]] = {
    "int8": (lambda r: quantizers.Int8QuantizationConfig(), True),
    "int8, floats as inputs": (lambda r: quantizers.Int8QuantizationConfig(activation_quantizer=None), False),
    "int4": (lambda r: _int4(), False),
    "int4 in groups": (lambda r: _int4(block_size=r.choice(GROUPS)), False),
    "int4 by channels": (lambda r: _int4(block_size=r.choice((None, -1))), False),
    "int4 by channels, integers": (lambda r: _int4(block_size=None, activation_quantizer=_absmax()), True),
    "float8": (lambda r: quantizers.Float8QuantizationConfig(), True),
    "gptq": (_gptq, False),
    "awq": (_awq, False),
}
OF_INTEGERS = ("int8", "int4 by channels, integers")
OF_EMBEDDINGS = ("int8", "int4", "int4 in groups", "int4 by channels")


@dataclasses.dataclass
class Step:
    """One call of a layer. Values have numbers: the network's argument is 0."""

    layer: keras.Layer
    arguments: tuple[int, ...]
    result: int
    mode: str | None  # None: not quantized
    options: dict

    def __str__(self):
        return f"{self.layer.name} ({type(self.layer).__name__}, {self.mode})"

    @property
    def has_integers(self) -> bool:
        """True if the layer makes numbers of few bits of its argument."""
        looks_up = isinstance(self.layer, layers.Embedding) and not self.options
        return self.mode is not None and MODES[self.mode][1] and not looks_up

    def __call__(self, arguments: list[np.ndarray]) -> np.ndarray:
        tensors = [tf.constant(argument) for argument in arguments]

        def call():
            return self.layer(tensors if len(tensors) > 1 else tensors[0], **self.options)

        # Eagerly, Keras refuses the largest of no values.
        return (call() if tensors[0].shape[0] else tf.function(call)()).numpy()

    def limit(self, arguments: list[np.ndarray], expected: np.ndarray):
        """The largest error of the result, for the arguments given."""
        finite = np.abs(expected[np.isfinite(expected)]).max(initial=0)
        if isinstance(self.layer, (layers.Embedding, layers.Add, layers.Multiply)) and not self.options:
            return 4 * EPSILON * finite
        if isinstance(self.layer, layers.LayerNormalization):
            # Means are subtracted from values that may be much larger than their differences.
            steepest = np.abs(self.layer.gamma.numpy()).max() / np.sqrt(self.layer.epsilon)
            return 1e-5 * finite + 8 * EPSILON * np.abs(arguments[0]).max(initial=0) * steepest
        if isinstance(self.layer, layers.Activation):
            return 1e-5 * finite + 1e-7
        terms, sums = self._sums_of_weights(arguments[0].shape)
        largest = np.abs(arguments[0][np.isfinite(arguments[0])]).max(initial=0)
        bias = getattr(self.layer, "bias", None)
        bias = 0 if bias is None else np.abs(bias.numpy()).max(initial=0)
        roundings = 8 if self.has_integers and self.mode != "float8" else 8 + 2 * np.sqrt(terms)
        # No activation has a slope much above one. The CPU's ELU subtracts one from a number near it.
        elu = getattr(self.layer, "activation", None) is keras.activations.elu
        return 2 * EPSILON * (roundings * largest * sums + 8 * bias + elu) + 1e-6 * np.abs(expected) + 1e-30

    def _sums_of_weights(self, shape: tuple[int, ...]):
        """How many terms a sum has, and for each result the sum of the weights' magnitudes."""
        summed = shape[2:] if len(shape) == 4 else shape[-1:]
        terms = int(np.prod(summed))
        between = (1,) * (len(shape) - 1 - len(summed))
        units = np.eye(terms, dtype=np.float32).reshape(terms, *between, *summed)
        layer = self.layer
        activation, bias = getattr(layer, "activation", None), getattr(layer, "bias", None)
        if activation is not None:
            layer.activation = keras.activations.linear
        if bias is not None:
            kept = bias.numpy()
            bias.assign(np.zeros_like(kept))
        try:
            return terms, np.abs(self([units])).sum(axis=0)
        finally:
            if activation is not None:
                layer.activation = activation
            if bias is not None:
                bias.assign(kept)


class Network:
    """The network of a seed.

    `model` gives the last value. `all_values` gives that of every step. `tolerance` says how far two orders of the
    same sums may lead apart, relative to the largest value. `same_bits`: all products are of integers.
    """

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._of_integers = self._random.random() < 0.3
        keras.utils.set_random_seed(seed)
        self.steps: list[Step] = []
        self._values: list = []
        self._begin()
        for _ in range(self._random.randrange(1, 5)):
            self._block()
        if self._reversible is not None and self._random.random() < 0.7:
            self._reverse()
        if not any(step.mode for step in self.steps):
            self._dense(self._mode())
        outputs = self._values[1:]
        self.model = keras.Model(self._values[0], outputs[-1])
        self.all_values = keras.Model(self._values[0], outputs)
        modes: dict[keras.Layer, str] = {step.layer: step.mode for step in self.steps if step.mode}
        for layer, mode in modes.items():
            config = MODES[mode][0](self._random)
            layer.quantize(config.mode, config=config)
            layer.is_gptq_calibrated, layer.is_awq_calibrated = mode == "gptq", mode == "awq"
        rng = np.random.default_rng(seed)
        for weight in self.model.weights:
            if self._may_change(weight):
                weight.assign(self.random_weight(weight, rng))
        for layer, mode in modes.items():
            if mode in ("gptq", "awq"):  # calibration would do so
                rows, groups = layer.g_idx.shape[0], layer.kernel_scale.shape[-1]
                layer.g_idx.assign(np.arange(rows) * groups // rows)
        self.changeable = [i for i, weight in enumerate(self.model.weights) if self._may_change(weight)]
        self.can_be_saved = not {"gptq", "awq"} & set(modes.values())
        self._judge()

    def _judge(self) -> None:
        rounded, self.tolerance = set[int](), 2e-5
        for step in self.steps:
            if step.has_integers and rounded.intersection(step.arguments):
                self.tolerance = ONE_STEP
            rounded.add(step.result)
        self.same_bits = self._of_integers

    @staticmethod
    def _may_change(weight) -> bool:
        return weight.name != "g_idx" and "amax" not in weight.name

    @staticmethod
    def random_weight(weight, rng: np.random.Generator) -> np.ndarray:
        dtype, shape = weight.dtype, tuple(weight.shape)
        if weight.name.endswith("zero"):
            return rng.integers(0, 16, shape).astype(dtype) - np.array(8 if dtype == "int8" else 0, dtype)
        if "int" in dtype:
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
        if weight.name.endswith("scale") and shape:
            # Keras divides by the scales of channels, and multiplies by those of groups.
            size = rng.uniform(0.5, 2, shape).astype(dtype)
            return size * np.float32(40.0 if len(shape) == 1 else 0.05)
        if weight.name.endswith(("scale", "scales", "gamma", "variance")):
            return rng.uniform(0.5, 2, shape).astype(dtype)
        return rng.uniform(-1, 1, shape).astype(dtype)

    def argument(self, batch: int, rng: np.random.Generator) -> np.ndarray:
        shape = (batch, *self.shape)
        if self.dtype == "int32":
            return rng.integers(0, self._vocabulary, shape).astype(np.int32)
        values = rng.normal(0, rng.choice([1e-3, 1, 1, 30]), shape).astype(np.float32)
        if batch and rng.random() < 0.3:
            values[rng.integers(batch)] = 0
        return values

    def _mode(self) -> str:
        return self._random.choice(OF_INTEGERS if self._of_integers else tuple(MODES))

    def _mode_or_floats(self) -> str | None:
        return self._mode() if self._of_integers or self._random.random() < 0.75 else None

    def _add(self, layer: keras.Layer, *arguments: int, mode: str | None = None, **options) -> int:
        tensors = [self._values[i] for i in arguments]
        self._values.append(layer(tensors if len(tensors) > 1 else tensors[0], **options))
        self.steps.append(Step(layer, arguments, len(self._values) - 1, mode, options))
        return len(self._values) - 1

    @property
    def _last(self) -> int:
        return len(self._values) - 1

    def _name(self) -> str:
        return f"layer_{len(self.steps)}"

    def _begin(self) -> None:
        r, self._reversible = self._random, None
        if r.random() < 0.35:
            self.dtype, self.shape = "int32", (r.randrange(1, 7),)
            self._vocabulary, width = r.choice(VOCABULARIES), r.choice(WIDTHS[1:])
            self._values.append(keras.Input(self.shape, dtype="int32"))
            mode = "int8" if self._of_integers else r.choice((*OF_EMBEDDINGS, None))
            if r.random() < 0.5:
                self._add(layers.Embedding(self._vocabulary, width, name=self._name()), 0, mode=mode)
                return
            layer = layers.ReversibleEmbedding(self._vocabulary, width, tie_weights=r.random() < 0.6, name=self._name())
            self._reversible = layer, mode, width
            self._add(layer, 0, mode=mode)
            return
        self.dtype = "float32"
        self.shape = (r.choice(WIDTHS),) if r.random() < 0.5 else (r.randrange(1, 7), r.choice(WIDTHS))
        self._values.append(keras.Input(self.shape))

    def _dense(self, mode: str | None) -> None:
        r = self._random
        layer = layers.Dense(
            r.choice(WIDTHS), activation=r.choice(ACTIVATIONS), use_bias=r.random() < 0.7, name=self._name()
        )
        self._add(layer, self._last, mode=mode)

    def _einsum(self, mode: str | None) -> None:
        r = self._random
        units, activation = r.choice(WIDTHS), r.choice(ACTIVATIONS)
        if len(self._values[-1].shape) == 2:
            equation, shape, axes = "ab,bc->ac", (units,), "c"
        elif r.random() < 0.5:
            equation, shape, axes = "abc,cd->abd", (None, units), "d"
        else:
            heads = r.randrange(1, 4)
            bias = "de" if r.random() < 0.6 else None
            split = layers.EinsumDense(
                "abc,cde->abde", (None, heads, min(units, 33)), bias_axes=bias, name=self._name()
            )
            self._add(split, self._last, mode=mode)
            equation, shape, axes = "abde,dec->abc", (None, r.choice(WIDTHS)), "c"
            mode = mode and self._mode()
        bias = axes if r.random() < 0.7 else None
        layer = layers.EinsumDense(equation, shape, bias_axes=bias, activation=activation, name=self._name())
        self._add(layer, self._last, mode=mode)

    def _reverse(self) -> None:
        layer, mode, width = self._reversible
        if self._values[-1].shape[-1] != width:
            self._add(layers.Dense(width, name=self._name()), self._last, mode=self._mode_or_floats())
        self._add(layer, self._last, mode=mode, reverse=True)

    def _block(self) -> None:
        r = self._random
        mode = self._mode_or_floats()
        kind = r.randrange(10)
        if kind < 4:
            self._dense(mode)
        elif kind < 7:
            self._einsum(mode)
        elif kind == 7:
            self._add(layers.LayerNormalization(epsilon=1e-3, name=self._name()), self._last)
        elif kind == 8:
            self._add(layers.Activation(r.choice(ACTIVATIONS[2:]), name=self._name()), self._last)
        else:
            last = self._values[-1].shape
            same = [i for i, value in enumerate(self._values) if value.shape == last and value.dtype == "float32"]
            layer = r.choice((layers.Add, layers.Multiply))(name=self._name())
            self._add(layer, r.choice(same), self._last)
