"""Numbers below a type's least normal one: the rule of docs/accuracy.md, on every thread that computes."""

import numpy as np
import pytest
import tensorflow as tf

BITS = {tf.float32: np.uint32, tf.float64: np.uint64, tf.bfloat16: np.uint16, tf.float16: np.uint16}
TYPES = (tf.float32, tf.bfloat16, tf.float64)
LEAST = {tf.float32: 2.0**-126, tf.bfloat16: 2.0**-126, tf.float64: 2.0**-1022}


def called(functions, arguments, size, how):
    """An element of each function of so many equal arguments, as double; all are the same."""
    filled = [tf.constant(np.full(size, a.numpy(), a.dtype.as_numpy_dtype)) for a in arguments]

    def all_of_them(*arguments):
        return [f(*arguments) for f in functions]

    with tf.device("/xpu:0"):
        results = (tf.function(all_of_them) if how == "function" else all_of_them)(*filled)
    first = []
    for result in results:
        values = result.numpy().reshape(-1)
        bits = values.view(BITS.get(result.dtype, values.dtype))
        assert (bits == bits[0]).all(), "elements differ"
        first.append(values[0].astype(np.float64))
    return first


@pytest.fixture(params=[(3, "eager"), (3, "function"), (1 << 18, "function")], ids=str)
def call(request, xpu_device):
    """Few elements are computed by the thread that asks, many by the device's."""
    return lambda functions, *arguments: called(functions, arguments, *request.param)


def number(x, dtype):
    """Without TensorFlow's conversion, which could take it for 0."""
    return tf.constant(np.array(x, np.float64).astype(dtype.as_numpy_dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
def test_arguments_are_what_they_are(call, dtype):
    tiny = LEAST[dtype] / 16
    x, wide = number(tiny, dtype), tf.float64 if dtype == tf.float64 else tf.float32
    expected = {
        tf.math.log: np.log(tiny),
        tf.math.rsqrt: tiny**-0.5,
        tf.sqrt: tiny**0.5,
        tf.math.sign: 1.0,
        tf.math.ceil: 1.0,
        (lambda x: tf.math.floor(-x)): -1.0,
        (lambda x: tf.cast(x, wide) * tf.constant(2.0**60, wide)): tiny * 2.0**60,
        (lambda x: tf.pow(x, number(-0.125, dtype))): tiny**-0.125,
        (lambda x: tf.atan2(x, x)): np.pi / 4,
        (lambda x: x / number(LEAST[dtype], dtype)): 1 / 16,
        (lambda x: tf.math.log(-x)): np.nan,
        (lambda x: tf.sqrt(-x)): np.nan,
    }
    if dtype != tf.bfloat16:
        expected[tf.math.lgamma] = -np.log(tiny)
    tolerance = 2.0**-7 if dtype == tf.bfloat16 else 1e-6
    assert call(list(expected), x) == pytest.approx(list(expected.values()), rel=tolerance, abs=0, nan_ok=True)


@pytest.mark.parametrize("dtype", (*TYPES, tf.float16), ids=lambda t: t.name)
def test_what_does_not_compute_keeps_them(call, dtype):
    tiny = 2.0**-24 if dtype == tf.float16 else LEAST[dtype] / 16
    x, zero = number(tiny, dtype), number(0.0, dtype)
    keep = [
        lambda x: tf.negative(tf.negative(x)),
        lambda x: tf.abs(-x),
        lambda x: tf.maximum(x, zero),
        tf.nn.relu,
        lambda x: tf.where(x > zero, x, zero),
        lambda x: tf.reduce_max(x, keepdims=True),
        tf.sort,
        lambda x: tf.concat([x, x], 0),
        lambda x: tf.cast(x, tf.float64),
    ]
    assert call(keep, x) == [tiny] * len(keep)
    looks = [
        lambda x: tf.cast(tf.equal(x, zero), tf.float32),
        lambda x: tf.cast(tf.cast(x, tf.bool), tf.float32),
        lambda x: tf.argmax(tf.stack([zero * x, x]), 0),
    ]
    assert call(looks, x) == [0, 1, 1]
    ordered = number(np.array([3, -2, 1, 0, -1, 2, -3] * 9) * tiny, dtype)
    with tf.device("/xpu:0"):
        assert (np.sort(ordered.numpy()) == tf.sort(ordered).numpy()).all()
        assert tf.math.top_k(ordered, 10).indices.numpy().tolist() == [*range(0, 63, 7), 5]


@pytest.mark.host_only  # an OpenCL device computes with them if it can
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
def test_what_would_be_one_is_zero(call, dtype):
    """As on TensorFlow's CPU, whose test of that multiplies by 0.1; zeros have the sign of what they stand for."""
    half = number(0.5, dtype)
    zeros = {
        (lambda x: x * half): 1,
        (lambda x: -x * half): -1,
        (lambda x: x / number(2.0, dtype)): 1,
        (lambda x: x * number(1.5, dtype) - x): 1,
        (lambda x: tf.exp(tf.math.log(x) - number(1.0, dtype))): 1,
        (lambda x: tf.reduce_sum(tf.reshape(x, [-1, 1]) * half, 1)): 1,
    }
    results = call(list(zeros), number(LEAST[dtype], dtype))
    assert [(r, bool(np.signbit(r))) for r in results] == [(0, sign < 0) for sign in zeros.values()]


def test_half_has_all_its_numbers(call):
    least = number(2.0**-14, tf.float16)
    assert call([lambda x: x * number(0.5, tf.float16), lambda x: x * least * least], least) == [2.0**-15, 0]


def test_no_result_is_lost_on_the_way(call):
    """The least normal number, where a function is its argument, and the sign of what is below."""
    least = LEAST[tf.float32]
    functions = [tf.math.expm1, tf.math.log1p, tf.sin, tf.nn.elu, tf.tanh]
    for x in (-least, -1.5 * least):
        assert call(functions, number(x, tf.float32)) == [x] * len(functions)
    for result in call(functions, number(-least / 2, tf.float32)):
        assert result in (0, -least / 2) and np.signbit(result)


def test_gradients_near_the_least_number(call):
    least = number(LEAST[tf.float32], tf.float32)

    def gradient(op, y):
        return lambda dy: op(y=number(y, tf.float32) * tf.ones_like(dy), dy=dy)

    root, reciprocal, angle = call(
        [
            gradient(tf.raw_ops.SqrtGrad, 2.0**-62),
            gradient(tf.raw_ops.RsqrtGrad, 1.5),
            lambda x: tf.atan2(x, number(1.5, tf.float32) * x),
        ],
        least,
    )
    assert root == 2.0**-65
    assert reciprocal == pytest.approx(-0.5 * 1.5**3 * LEAST[tf.float32], rel=1e-6, abs=0)
    assert angle == pytest.approx(np.arctan2(1, 1.5), rel=1e-6)


@pytest.mark.host_only  # an OpenCL device's root and sign are made of its own squares
def test_complex_numbers(call):
    tiny, least, large = 2.0**-130, 2.0**-149, 2.0**127

    def expect(functions, re, im):
        z = tf.constant(np.array(complex(re, im), np.complex64))
        parts = [lambda z, f=f, part=part: part(f(z)) for f in functions for part in (tf.math.real, tf.math.imag)]
        exact = [part for value in functions.values() for part in (value.real, value.imag)]
        assert call(parts, z) == pytest.approx(exact, rel=1e-6, abs=0)

    def sign(z):  # tf.sign divides by the magnitude
        return tf.raw_ops.Sign(x=z)

    root, unit = 2.0**-74.5 * complex(0.5**0.5, 0.5**0.5), complex(0.5**0.5, -(0.5**0.5))
    expect({tf.math.log: np.log(tiny * (1 - 1j)), tf.sqrt: np.sqrt(complex(tiny, -tiny))}, tiny, -tiny)
    expect({tf.math.conj: complex(tiny, tiny), sign: unit}, tiny, -tiny)
    expect({tf.sqrt: root, tf.math.rsqrt: 1 / root}, 0, least)
    expect({tf.math.log1p: complex(np.log(tiny), np.pi / 2)}, -1, tiny)
    expect({sign: unit}, large, -large)


def test_doubles(call):
    """Next to a pole, and next to zeros."""
    x = number(-6.877776027210504e-309, tf.float64)
    assert call([tf.math.digamma], x) == pytest.approx([1.4539583668379225e308], rel=1e-12)
    x = number(259.93234445315153, tf.float64)
    bessel = [tf.math.special.bessel_j0, tf.math.special.bessel_y1]
    assert call(bessel, x) == pytest.approx([0.0017282294328974509, -0.0016330949412343267], rel=1e-13)


def test_the_threads_of_python_keep_their_mode(xpu_device):
    for size in (3, 1 << 18):
        with tf.device("/xpu:0"):
            (tf.zeros(size) + 1.0).numpy()
        assert float(np.float32(2.0**-126) * np.float32(0.5)) == 2.0**-127
