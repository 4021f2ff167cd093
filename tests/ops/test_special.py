"""Special functions, quantization and random numbers with parameters: gradients, and arguments that make no sense."""

import re

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from tests.support.missing_capabilities import marked, needs
from tests.sweep.runner import hard_placement

raw = tf.raw_ops
POSITIVE = np.array([0.3, 0.8, 1.5, 2.5, 6.0], np.float32)
OTHERS = np.array([1.2, 0.4, 2.0, 3.5, 1.0], np.float32)
SIGNED = np.array([-3.0, -0.6, 0.2, 1.4, 2.6], np.float32)
INSIDE = np.array([0.1, 0.4, 0.5, 0.7, 0.9], np.float32)
special = tf.math.special


GRADIENTS = {
    **{
        name: (getattr(special, name), (SIGNED,))
        for name in (
            "bessel_i0",
            "bessel_i0e",
            "bessel_i1",
            "bessel_i1e",
            "bessel_j0",
            "bessel_j1",
            "dawsn",
            "fresnel_cos",
            "fresnel_sin",
        )
    },
    **{
        name: (getattr(special, name), (POSITIVE,))
        for name in (
            "bessel_k0",
            "bessel_k0e",
            "bessel_k1",
            "bessel_k1e",
            "bessel_y0",
            "bessel_y1",
            "expint",
            "spence",
        )
    },
    "igamma": (tf.math.igamma, (POSITIVE, OTHERS)),
    "igammac": (tf.math.igammac, (POSITIVE, OTHERS)),
    "betainc": (lambda x: tf.math.betainc(POSITIVE, OTHERS, x), (INSIDE,)),
    "polygamma": (lambda x: tf.math.polygamma(tf.constant(1.0), x), (POSITIVE,)),
    "zeta": (lambda q: tf.math.zeta(tf.constant(2.5), q), (POSITIVE,)),
    "digamma": (tf.math.digamma, (POSITIVE,)),
    "cross": (tf.linalg.cross, (SIGNED[:3], POSITIVE[:3])),
    "fake_quant_args": (lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.0, 2.0), (SIGNED,)),
    "fake_quant_vars": (
        tf.quantization.fake_quant_with_min_max_vars,
        (SIGNED, np.float32(-1.0), np.float32(2.0)),
    ),
    "fake_quant_vars_per_channel": (
        tf.quantization.fake_quant_with_min_max_vars_per_channel,
        (np.stack([SIGNED, -SIGNED]), -INSIDE, POSITIVE),
    ),
    "quantize_and_dequantize": (
        lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 2.0, range_given=True),
        (SIGNED,),
    ),
    "gamma": (lambda a: tf.random.stateless_gamma([3, 5], seed=[1, 2], alpha=a), (POSITIVE,)),
}


@pytest.mark.parametrize(
    "name",
    marked(GRADIENTS, {"gamma": "gamma"}),
)
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_gradients_are_the_cpus(name, graph):
    function, arguments = GRADIENTS[name]

    def step(*x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(*x)
        return tape.gradient(y, x)

    results = {}
    for device in ("/xpu:0", "/cpu:0"):
        with hard_placement(), tf.device(device):
            call = tf.function(step, autograph=False) if graph else step
            results[device] = call(*map(tf.constant, arguments))
    for got, want in zip(results["/xpu:0"], results["/cpu:0"]):
        assert "XPU" in got.device
        # The allowed error of several floats: the sums in gradients lose a digit or two.
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-6)


def ones(*shape):
    return np.ones(shape, np.float32)


def seeded(op, **defaults):
    return lambda **k: lambda: getattr(raw, op)(**{**defaults, **k})


X = ones(2, 3)
per_channel = seeded("FakeQuantWithMinMaxVarsPerChannel", inputs=X, min=np.zeros(3, np.float32), max=ones(3))
per_channel_gradient = seeded(
    "FakeQuantWithMinMaxVarsPerChannelGradient", gradients=X, inputs=X, min=np.zeros(3, np.float32), max=ones(3)
)
fake_vars = seeded("FakeQuantWithMinMaxVars", inputs=X, min=0.0, max=1.0)
fake_vars_gradient = seeded("FakeQuantWithMinMaxVarsGradient", gradients=X, inputs=X, min=0.0, max=1.0)
fake_args = seeded("FakeQuantWithMinMaxArgs", inputs=X)
quantize2 = seeded("QuantizeAndDequantizeV2", input=X, input_min=0.0, input_max=1.0, range_given=True)
quantize3 = seeded("QuantizeAndDequantizeV3", input=X, input_min=0.0, input_max=1.0, num_bits=8)
quantize4_gradient = seeded("QuantizeAndDequantizeV4Grad", gradients=X, input=X, input_min=0.0, input_max=1.0)
gamma2 = seeded("StatelessRandomGammaV2", shape=[3, 2], seed=[1, 2], alpha=np.array([1.0, 2.0], np.float32))
gamma3 = seeded(
    "StatelessRandomGammaV3",
    shape=[3, 2],
    key=np.array([1], np.uint64),
    counter=np.array([1, 2], np.uint64),
    alg=1,
    alpha=np.array([1.0, 2.0], np.float32),
)
multinomial = seeded("Multinomial", logits=X, num_samples=4)
stateless_multinomial = seeded("StatelessMultinomial", logits=X, num_samples=4, seed=[1, 2])
normal = seeded("ParameterizedTruncatedNormal", shape=[3, 2], means=0.0, stdevs=1.0, minvals=-1.0, maxvals=1.0)
stateless_normal = seeded(
    "StatelessParameterizedTruncatedNormal",
    shape=[3, 2],
    seed=[1, 2],
    means=0.0,
    stddevs=1.0,
    minvals=-1.0,
    maxvals=1.0,
)
betainc = seeded("Betainc", a=1.0, b=1.0, x=0.5)

BAD = {
    "igamma shapes": lambda: raw.Igamma(a=ones(3), x=ones(4)),
    "betainc a b": betainc(a=ones(3), b=ones(4)),
    "betainc a x": betainc(a=ones(3), x=ones(3, 1)),
    "betainc b x": betainc(b=ones(3), x=ones(2)),
    "cross shapes": lambda: raw.Cross(a=ones(3), b=ones(2, 3)),
    "cross rank": lambda: raw.Cross(a=np.float32(1), b=np.float32(1)),
    "cross size": lambda: raw.Cross(a=ones(3, 2), b=ones(3, 2)),
    "fake range": fake_args(min=1.0, max=-1.0),
    "fake bits": fake_args(num_bits=1),
    "fake gradient": lambda: raw.FakeQuantWithMinMaxArgsGradient(gradients=X, inputs=ones(3, 2)),
    "fake vars bits": fake_vars(num_bits=17),
    "fake vars min": fake_vars(min=ones(1)),
    "fake vars max": fake_vars(max=ones(2)),
    "fake vars gradient": fake_vars_gradient(gradients=ones(3, 2)),
    "fake vars gradient max": fake_vars_gradient(max=ones(1)),
    "per channel min": per_channel(min=ones(1)),
    "per channel max": per_channel(max=ones(4)),
    "per channel rank": per_channel(min=0.0),
    "per channel gradient": per_channel_gradient(gradients=ones(3, 2)),
    "per channel gradient max": per_channel_gradient(max=ones(1)),
    "quantize bits": quantize2(num_bits=63),
    "quantize range": quantize2(input_min=2.0),
    "quantize axis": quantize2(axis=2, input_min=ones(1), input_max=ones(1)),
    "quantize low axis": quantize2(axis=-2),
    "quantize vector": quantize2(input_min=ones(2)),
    "quantize scalar": quantize2(axis=1),
    "quantize 3 bits": quantize3(num_bits=63),
    "quantize 3 bits' shape": quantize3(num_bits=[8]),
    "quantize 3 axis": quantize3(axis=2),
    "quantize 3 low axis": quantize3(axis=-3),
    "quantize 3 min": quantize3(axis=1, input_min=ones(1), input_max=ones(1)),
    "quantize 3 max": quantize3(axis=1, input_min=np.zeros(3, np.float32), input_max=ones(1)),
    "quantize gradient axis": quantize4_gradient(axis=2),
    "quantize gradient": quantize4_gradient(input=ones(3, 2)),
    "quantize gradient rank": quantize4_gradient(input_min=ones(1, 1)),
    "quantize gradient vector": quantize4_gradient(input_max=ones(1)),
    "quantize gradient size": quantize4_gradient(axis=1, input_min=ones(1), input_max=ones(1)),
    "quantize gradient scalar": quantize4_gradient(axis=1),
    "gamma seed": gamma2(seed=[1]),
    "gamma end": gamma2(shape=[3, 3]),
    "gamma extent": gamma2(shape=[-1, 2]),
    "gamma shape": gamma2(shape=3),
    "gamma key": gamma3(key=np.array([1, 2], np.uint64)),
    "gamma alg": gamma3(alg=2),
    "gamma key's end": gamma3(shape=[3, 3]),
    "multinomial rank": multinomial(logits=ones(3)),
    "multinomial samples": multinomial(num_samples=[4]),
    "multinomial negative": multinomial(num_samples=-1),
    "multinomial classes": multinomial(logits=ones(2, 0)),
    "multinomial seed": stateless_multinomial(seed=[1]),
    "normal shape": normal(shape=3),
    "normal means": normal(means=ones(1, 1)),
    "normal length": normal(maxvals=ones(2)),
    "normal deviation": normal(stdevs=-1.0),
    "normal bounds": normal(minvals=1.0),
    "normal infinite": normal(minvals=-np.inf, maxvals=np.inf),
    "stateless normal seed": stateless_normal(seed=[1]),
    "stateless normal parameters": stateless_normal(means=ones(3), stddevs=ones(2)),
    "stateless normal end": stateless_normal(means=ones(3)),
    "stateless normal deviation": stateless_normal(stddevs=-1.0),
}


def failure(call, device):
    with hard_placement(), tf.device(device), pytest.raises(tf.errors.OpError) as caught:
        call()
    # Without what names the device, the node, or where TensorFlow found it.
    return type(caught.value), re.sub(r"\{\{.*?\}\} | \[Op:.*| in shape", "", caught.value.message, flags=re.S).strip()


@pytest.mark.parametrize(
    "name",
    marked(BAD, {"gamma": "(gamma|normal|stateless normal) .*"}),
)
def test_bad_arguments_fail_as_on_the_cpu(name):
    assert failure(BAD[name], "/xpu:0") == failure(BAD[name], "/cpu:0")


def test_what_the_cpu_cannot_do():
    """Ranges of an axis with a number of bits that is an attribute; a rank that ends its process."""
    low, high = np.array([-1.0, 0.0, -2.0], np.float32), np.array([1.0, 3.0, 0.5], np.float32)
    x = np.random.default_rng(0).uniform(-3, 3, (4, 3)).astype(np.float32)
    given = {"input": x, "input_min": low, "input_max": high, "axis": 1, "range_given": True}
    with hard_placement(), tf.device("/cpu:0"):
        want = raw.QuantizeAndDequantizeV3(**given, num_bits=8)
    with hard_placement(), tf.device("/xpu:0"):
        for op in (raw.QuantizeAndDequantizeV2, raw.QuantizeAndDequantizeV4):
            np.testing.assert_array_equal(op(**given, num_bits=8), want)
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least rank 1"):
            raw.FakeQuantWithMinMaxVarsPerChannel(inputs=1.0, min=[0.0], max=[1.0])


@needs("gamma")
def test_a_gamma_distribution_that_is_none():
    """Nothing is ever accepted of it: the CPU draws for ever."""
    with hard_placement(), tf.device("/xpu:0"):
        assert np.isnan(tf.random.stateless_gamma([2], seed=[1, 2], alpha=-1.0).numpy()).all()


def test_learned_ranges_in_a_cluster():
    """Ranges that move from step to step, in one program."""

    def train(device):
        with hard_placement(), tf.device(device):
            low, high = tf.Variable(-1.0), tf.Variable(1.0)
            x = tf.constant(np.random.default_rng(1).normal(size=(64, 8)).astype(np.float32))

            @tf.function
            def step():
                with tf.GradientTape() as tape:
                    y = tf.quantization.fake_quant_with_min_max_vars(x, low, high, num_bits=4)
                    loss = tf.reduce_sum((y - x) ** 2)
                for variable, gradient in zip((low, high), tape.gradient(loss, (low, high))):
                    variable.assign_sub(0.001 * gradient)
                return loss

            return [float(step()) for _ in range(5)]

    np.testing.assert_allclose(train("/xpu:0"), train("/cpu:0"), rtol=1e-4)


@pytest.mark.host_only
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=lambda t: t.name)
def test_incomplete_gamma_functions_of_large_and_of_small_numbers(dtype, xpu_device):
    """Where series take too long, and where 1 less what is nearly 1 would be noise, even below 0."""
    large = [(a, a + z * a**0.5) for a in (1e4, 1e6, 1e8, 1e10) for z in (-3.0, -1.0, 0.0, 0.5, 4.0)]
    small = [(a, x) for a in (1e-30, 1e-10, 1e-4, 0.015, 0.2, 1.0) for x in (1e-20, 1e-3, 0.5, 1.0)]
    a, x = np.array(large + small).astype(dtype.as_numpy_dtype).T
    with tf.device(xpu_device):
        lower, upper = tf.math.igamma(a, x).numpy(), tf.math.igammac(a, x).numpy()
    wide = a.astype(np.float64), x.astype(np.float64)
    tolerance = 1e-6 if dtype == tf.float32 else 1e-11
    np.testing.assert_allclose(lower, scipy.special.gammainc(*wide), rtol=tolerance)
    np.testing.assert_allclose(upper, scipy.special.gammaincc(*wide), rtol=tolerance)
