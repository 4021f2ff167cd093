"""Fourier transforms.

A fast one of n elements x errs by less than 8 log2(n) u sqrt(n) |x| (Higham, chapter 24). Here |x| is the Euclidean
norm of the input. An inverse errs by that divided by n. For lengths with large prime factors it is 20 instead of 8.
"""

import numpy as np
import tensorflow as tf

from tests.sweep.runner import Case

RANKS = {"": 1, "2D": 2, "3D": 3, "ND": 0}


def axes_of(rank):
    return tuple(range(-rank, 0))


def relative(rank, lengths, inverse):
    """m: sqrt(n) times the norm of each transform's input, or that over n."""

    def m(arguments, exact):
        size = np.prod(lengths)
        norms = np.sqrt(np.sum(np.abs(arguments["input"]) ** 2, axis=axes_of(rank), keepdims=True))
        scale = np.sqrt(size) / (size if inverse else 1)
        return [2 * norms * scale * np.ones(exact[0].shape)]

    return m


def numpy_name(kind):
    return {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}[kind]


def fft(kind, suffix, shape, lengths):
    """The transform over the last len(lengths) axes of an input of this shape."""
    rank, inverse, real = len(lengths), kind.startswith("I"), "R" in kind

    def make(t, r):
        arguments = {"input": r.uniform(shape, t["Treal" if kind == "RFFT" else "Tcomplex"])}
        if real or suffix == "ND":
            arguments["fft_length"] = tf.constant(lengths, tf.int32)
        if suffix == "ND":
            arguments["axes"] = tf.constant(axes_of(rank), tf.int32)
        if real:
            arguments["Tcomplex" if kind == "RFFT" else "Treal"] = t["Tcomplex" if kind == "RFFT" else "Treal"]
        return arguments

    def expect(arguments):
        """The CPU has no kernel of an ND transform."""
        x = arguments["input"].numpy()
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        y = getattr(np.fft, numpy_name(kind))(wide, s=lengths, axes=axes_of(rank))
        return [tf.constant(y)]

    large = max(max(p for p in range(1, n + 1) if n % p == 0 and all(p % q for q in range(2, p))) for n in lengths) > 5
    return Case(
        make,
        roundings=(20 if large else 8) * (1 + np.log2(np.prod(lengths))),
        relative_to=relative(rank, lengths, inverse),
        expect=expect if suffix == "ND" else None,
    )


def half(shape):
    return (*shape[:-1], shape[-1] // 2 + 1)


# By the number of axes: shapes and, of transforms that have them, other lengths. 0: ND.
SHAPES = {
    1: [((3, 8), (8,)), ((2, 2, 15), (15,)), ((37,), (37,))],
    2: [((3, 4, 6), (4, 6)), ((5, 9), (5, 9))],
    3: [((2, 3, 4, 6), (3, 4, 6)), ((2, 3, 5), (2, 3, 5))],
    0: [((3, 8), (8,)), ((2, 3, 2, 4, 6), (3, 2, 4, 6))],
}


def cases(kind, suffix):
    table = []
    for shape, lengths in SHAPES[RANKS[suffix]]:
        table.append(fft(kind, suffix, half(shape) if kind == "IRFFT" else shape, lengths))
        if "R" in kind and suffix != "ND":  # what is longer is cut off
            table.append(fft(kind, suffix, shape, tuple(max(1, n - 1) for n in lengths)))
    return table


CASES = {kind + suffix: cases(kind, suffix) for kind in ("FFT", "IFFT", "RFFT", "IRFFT") for suffix in RANKS}
