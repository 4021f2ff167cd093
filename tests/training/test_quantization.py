"""Keras's quantized layers: every mode that `quantize` takes, from floats to a saved model and back."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import quantizers

import tensorflow_xpu

pytestmark = [pytest.mark.slow, pytest.mark.without_isolation]

VOCABULARY, LENGTH, WIDTH, HEADS = 48, 6, 32, 4
TOKENS = np.random.default_rng(1).integers(0, VOCABULARY, (3, LENGTH)).astype(np.int32)

CONFIGS = {
    "int8": lambda: quantizers.Int8QuantizationConfig(),
    "int8, floats as inputs": lambda: quantizers.Int8QuantizationConfig(activation_quantizer=None),
    "int4": lambda: quantizers.Int4QuantizationConfig(),
    "int4 in small groups": lambda: quantizers.Int4QuantizationConfig(block_size=10),
    "int4 by channels": lambda: quantizers.Int4QuantizationConfig(block_size=None),
    "int4 by channels, integers as inputs": lambda: quantizers.Int4QuantizationConfig(
        activation_quantizer=quantizers.AbsMaxQuantizer(), block_size=-1
    ),
    "float8": lambda: quantizers.Float8QuantizationConfig(),
    "gptq": lambda: quantizers.GPTQConfig(**calibration(), group_size=16),
    "gptq in order of activations": lambda: quantizers.GPTQConfig(
        **calibration(), group_size=16, activation_order=True
    ),
    "gptq of 8 bits": lambda: quantizers.GPTQConfig(**calibration(), weight_bits=8, group_size=-1),
    "awq": lambda: quantizers.AWQConfig(**calibration(), group_size=16, num_grid_points=4),
}


def calibration() -> dict:
    return {
        "dataset": list(TOKENS),
        "tokenizer": lambda text: text,
        "num_samples": 4,
        "sequence_length": LENGTH,
    }


def model_of(name: str | None) -> keras.Model:
    """Tokens to logits, by layers of all the kinds that can be quantized; of floats without a name."""
    keras.utils.set_random_seed(3)
    embedding = keras.layers.Embedding(VOCABULARY, WIDTH)
    reversible = keras.layers.ReversibleEmbedding(VOCABULARY, WIDTH)
    x = inputs = keras.Input((LENGTH, WIDTH))
    x = keras.layers.EinsumDense("abc,cde->abde", (None, HEADS, WIDTH // HEADS), bias_axes="de")(x)
    x = keras.layers.EinsumDense("abde,dec->abc", (None, WIDTH), bias_axes="c")(x)
    x = keras.layers.Dense(39, activation="gelu")(x)  # whose bytes do not hold whole pairs
    block = keras.Model(inputs, keras.layers.Dense(WIDTH)(x))
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = block(keras.layers.add([embedding(tokens), reversible(tokens)]))
    model = keras.Model(tokens, reversible(x, reverse=True))
    rng = np.random.default_rng(4)
    for weight in model.weights:  # biases that are not zero, too
        weight.assign(rng.uniform(-1, 1, weight.shape))
    if name is None:
        return model
    # Calibration reads the structure here. A configuration that held it could not be saved.
    model.get_quantization_layer_structure = lambda mode: {
        "pre_block_layers": [embedding],
        "sequential_blocks": [block],
    }
    model.quantize(config=CONFIGS[name]())
    for weight in model.weights:
        if weight.name == "awq_scales":  # all ones where calibration finds nothing better
            weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    return model


def logits_of(model: keras.Model, calls: int = 6) -> list[np.ndarray]:
    """Logits of several calls. From the fourth call on, results of weights alone are kept."""
    function = tf.function(lambda tokens: model(tokens, training=False))
    return [function(tf.constant(TOKENS)).numpy() for _ in range(calls)]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_mode_computes_what_the_cpu_does(xpu_device, name):
    with tf.device("/cpu:0"):
        on_cpu = model_of(name)
        (expected,) = logits_of(on_cpu, calls=1)
    with tf.device("/xpu:0"):
        model = model_of(name)
        model.set_weights(on_cpu.get_weights())
        with tensorflow_xpu.trace_placement() as report:
            results = logits_of(model)
    # Where a row of activations is scaled to 8 bits, another rounding of a float may lead to the next integer.
    for result in results:
        np.testing.assert_allclose(result, expected, atol=0.02 * np.abs(expected).max(), rtol=0)
    if name != "float8":  # whose casts have no kernels
        elsewhere = {row.op for row in report.rows() if not row.on_xpu}
        assert not elsewhere & {"MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "GatherV2", "Cast"}, report


# Keras does not save the zeros of `gptq` and `awq`, and so it cannot load such a model, wherever that ran.
@pytest.mark.parametrize("name", [name for name in CONFIGS if not name.startswith(("gptq", "awq"))])
def test_a_quantized_model_is_saved_and_loaded(xpu_device, tmp_path, name):
    path = str(tmp_path / "model.keras")
    with tf.device("/xpu:0"):
        (floats,) = logits_of(model_of(None), calls=1)
        model = model_of(name)
        results = logits_of(model)
        model.save(path)
        loaded = keras.models.load_model(path)
        again = logits_of(loaded)
    saved = {weight.path: weight.numpy() for weight in loaded.weights}
    assert saved.keys() == {weight.path for weight in model.weights}
    for weight in model.weights:
        np.testing.assert_array_equal(weight.numpy(), saved[weight.path], err_msg=weight.path)
    for result in again:
        np.testing.assert_allclose(result, results[0], atol=0.02 * np.abs(floats).max(), rtol=0)
    # Few bits are still about the same function.
    assert np.abs(results[0] - floats).mean() < 0.3 * np.abs(floats).mean()
