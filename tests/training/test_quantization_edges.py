"""A quantized layer's results where its scales or its arguments are at an edge: those of the CPU."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import quantizers

from tests.support.missing_capabilities import BACKEND

pytestmark = pytest.mark.without_isolation

ROWS, WIDTH, UNITS = 4, 33, 7  # neither are whole pairs, nor do groups of 10 divide them

CONFIGS = {
    "int8": lambda: quantizers.Int8QuantizationConfig(),
    "int8, floats as inputs": lambda: quantizers.Int8QuantizationConfig(activation_quantizer=None),
    "int4 in groups": lambda: quantizers.Int4QuantizationConfig(block_size=10),
    "int4 by channels": lambda: quantizers.Int4QuantizationConfig(block_size=None),
    "int4, integers": lambda: quantizers.Int4QuantizationConfig(
        activation_quantizer=quantizers.AbsMaxQuantizer(), block_size=-1
    ),
}
FINITE = np.random.default_rng(0).normal(0, 1, (ROWS, WIDTH)).astype(np.float32)


def with_values(*values: float) -> np.ndarray:
    """One row of which has these."""
    argument = FINITE.copy()
    argument[1, 3 : 3 + len(values)] = values
    return argument


ARGUMENTS = {
    "finite": FINITE,
    "NaN": with_values(np.nan),
    "infinite": with_values(np.inf),
    "both infinities": with_values(np.inf, -np.inf),
    "a row of NaN": with_values(*[np.nan] * (WIDTH - 3)),
    "huge": with_values(3e38),  # one number: the order of a sum does not decide whether it overflows
    "zeros": FINITE * 0,
    "subnormal": FINITE * np.float32(1e-42),
    "no rows": FINITE[:0],
    "one row": FINITE[:1],
    "another width": FINITE[:, :-1],
}
if BACKEND != "XPU_HOST":
    # XPU_HOST takes subnormal values for zero, as the CPU does.
    del ARGUMENTS["subnormal"]
# A product takes a subnormal scale for zero, as the CPU does. Where no cluster makes one op of it, it counts as such.
SUBNORMAL = pytest.param(1e-45, marks=[pytest.mark.of_hooks("clusters"), pytest.mark.host_only])
SCALES = (None, 0.0, -1.0, np.inf, np.nan, SUBNORMAL, 3e38)


def layer_of(name: str) -> keras.layers.Dense:
    keras.utils.set_random_seed(1)
    layer = keras.layers.Dense(UNITS)
    layer.build((None, WIDTH))
    layer.bias.assign(np.arange(UNITS) - 3.0)
    config = CONFIGS[name]()
    layer.quantize(config.mode, config=config)
    return layer


def outcomes_of(layer: keras.layers.Dense, argument: np.ndarray, calls: int) -> list:
    """The results of several calls, or the exceptions' types."""
    function = tf.function(lambda x: layer(x, training=False))
    outcomes = []
    for _ in range(calls):
        try:
            outcomes.append(function(tf.constant(argument)).numpy())
        except Exception as error:
            outcomes.append(type(error))
    return outcomes


def differs(found, expected, name: str, what: str) -> bool:
    if isinstance(found, type) or isinstance(expected, type):
        return found is not expected
    if "infini" in what and name in ("int8", "int4, integers"):
        # The integer of a NaN is undefined, and the CPU's depends on its sign. No result of it is a number.
        finite = np.isfinite(expected)
        if not np.array_equal(np.isfinite(found), finite):
            return True
        found, expected = found[finite], expected[finite]
    return not np.allclose(found, expected, 1e-5, 1e-5, equal_nan=True)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CONFIGS)
def test_edges_are_the_cpus(xpu_device, name, scale):
    with tf.device("/cpu:0"):
        on_cpu = layer_of(name)
    with tf.device("/xpu:0"):
        layer = layer_of(name)
    scales = on_cpu.kernel_scale.numpy()
    if scale is not None:
        scales[..., ::3] = scale
    wrong = {}
    for what, argument in ARGUMENTS.items():
        with tf.device("/cpu:0"):
            on_cpu.kernel_scale.assign(scales)
            (expected,) = outcomes_of(on_cpu, argument, calls=1)
        with tf.device("/xpu:0"):
            layer.kernel_scale.assign(scales)
            results = outcomes_of(layer, argument, calls=5)  # from the fourth on, results of weights alone are kept
        for found in results:
            if differs(found, expected, name, what):
                wrong[what] = found, expected
    assert not wrong


# Keras counts tokens from -9 to -1 from the end.
@pytest.mark.parametrize("token", [-10, 9, 2**31 - 1])
@pytest.mark.parametrize("kind", [keras.layers.Embedding, keras.layers.ReversibleEmbedding])
@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_token_out_of_range_is_refused(xpu_device, mode, kind, token):
    with tf.device("/xpu:0"):
        layer = kind(9, 7)
        layer.build((None, None))
        layer.quantize(mode)
        function = tf.function(layer)
        assert function(tf.constant([[0, 8]])).shape == (1, 2, 7)
        for _ in range(5):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                function(tf.constant([[0, token]]))
