"""Fourier transforms through tf.signal: gradients, lengths that do not fit, and what runs where."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops
SOUND = np.random.default_rng(1).uniform(-1, 1, (2, 512))
IMAGE = SOUND.reshape(2, 16, 32)


def complex_fft(f):
    return lambda x: tf.abs(f(tf.cast(x, tf.complex128)))


FUNCTIONS = {
    "fft": (complex_fft(tf.signal.fft), SOUND),
    "ifft": (complex_fft(tf.signal.ifft), SOUND),
    "fft2d": (complex_fft(tf.signal.fft2d), IMAGE),
    "ifft3d": (complex_fft(tf.signal.ifft3d), IMAGE),
    "rfft": (lambda x: tf.abs(tf.signal.rfft(x)), SOUND),
    "irfft": (lambda x: tf.signal.irfft(tf.cast(x, tf.complex128)), SOUND),
    "rfft2d": (lambda x: tf.abs(tf.signal.rfft2d(x)), IMAGE),
    "irfft2d": (lambda x: tf.signal.irfft2d(tf.cast(x, tf.complex128)), IMAGE),
    "stft": (lambda x: tf.abs(tf.signal.stft(x, 64, 32)), SOUND),
    "inverse_stft": (lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 64, 32), 64, 32), SOUND),
    "dct": (tf.signal.dct, SOUND),
    "idct": (tf.signal.idct, SOUND),
    "mfcc": (lambda x: tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(tf.abs(x) + 1.0)), SOUND),
}


def with_gradients(f, x, device):
    with tf.device(device), tf.GradientTape() as tape:
        x = tf.convert_to_tensor(x)
        tape.watch(x)
        y = f(x)
        loss = tf.reduce_sum(tf.square(y))
    return [y, tape.gradient(loss, x)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_their_gradients(name, xpu_device):
    f, x = FUNCTIONS[name]
    for run in (with_gradients, tf.function(with_gradients, autograph=False)):
        expected = run(f, x, "/cpu:0")
        for got, want in zip(run(f, x, xpu_device), expected, strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            # 20 log2(n) roundings of double, twice over.
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * max(1.0, np.abs(want).max()))


def ones(*shape):
    return np.ones(shape, np.float32)


BAD = {
    "FFT of a scalar": lambda: raw.FFT(input=tf.constant(1j, tf.complex64)),
    "FFT2D of a vector": lambda: raw.FFT2D(input=np.ones(3, np.complex64)),
    "RFFT of a negative length": lambda: raw.RFFT(input=ones(2, 3), fft_length=[-1]),
    "RFFT of too great a length": lambda: raw.RFFT(input=ones(2, 3), fft_length=[5]),
    "RFFT2D of one length": lambda: raw.RFFT2D(input=ones(2, 3), fft_length=[2]),
    "IRFFT of too great a length": lambda: raw.IRFFT(input=np.ones((2, 3), np.complex64), fft_length=[6]),
}


def failure(f, device):
    """The exception's class and its words, without where it came from."""
    with hard_placement(), tf.device(device), pytest.raises((tf.errors.OpError, ValueError)) as caught:
        f()
    message = str(caught.value).split("}} ")[-1].split(" [Op:")[0].split("\n")[0]
    return type(caught.value), message


@pytest.mark.parametrize("name", BAD)
def test_bad_input_fails_as_on_the_cpu(name, xpu_device):
    for run in (BAD[name], tf.function(BAD[name], autograph=False)):
        assert failure(run, xpu_device) == failure(run, "/cpu:0")


@pytest.mark.parametrize(
    ("axes", "lengths", "message"),
    [
        ([0], [2], "The last axis to perform transform on must be -1."),
        ([0, 2], [2, 2], "axes must be successive and ascending."),
        ([1, 2], [2], r"fft_length must have shape \[2\]"),
        ([0, 1, 2, 3], [1, 1, 1, 1], "Input must have rank of at least 4"),
    ],
)
def test_axes_that_no_nd_transform_has(axes, lengths, message, xpu_device):
    with tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match=message):
        raw.FFTND(input=tf.ones((2, 2, 2), tf.complex64), fft_length=lengths, axes=axes)


@pytest.mark.parametrize(("shape", "length"), [((2, 0), 4), ((2, 3), 0), ((0, 4), 4)])
def test_transforms_of_and_to_nothing(shape, length, xpu_device):
    """Where TensorFlow's own kernel ends the process, or leaves memory as it was, there are zeros or nothing."""
    with tf.device(xpu_device):
        y = raw.RFFT(input=ones(*shape), fft_length=[length])
    np.testing.assert_array_equal(y, np.zeros((shape[0], length // 2 + 1 if length else 0)))
