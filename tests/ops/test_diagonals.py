"""MatrixDiag, MatrixDiagPart and MatrixSetDiag on XPU against the CPU: every small band, extent and alignment."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops
ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
EXTENTS = (-1, 1, 2, 3, 4, 5)


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


def outcome(device, call):
    """The result of `call` on `device`, or its error."""
    with tf.device(device):
        try:
            return call().numpy()
        except tf.errors.InvalidArgumentError as error:
            return error.message.split(" [Op:")[0]


def compare(device, call, what):
    """True if `call` succeeded; on `device` it does the same as on the CPU."""
    want, got = outcome("/cpu:0", call), outcome(device, call)
    if isinstance(want, str):
        assert isinstance(got, str), f"{what}: {got} where the CPU says {want}"
        assert got.startswith(want.rstrip(".")), f"{what}: {got}, where the CPU says {want}"
        return False
    assert not isinstance(got, str), f"{what}: {got}"
    np.testing.assert_array_equal(got, want, err_msg=str(what))
    return True


def bands(limit):
    return [(lower, upper) for lower in range(-limit, limit + 1) for upper in range(lower, min(limit, lower + 3) + 1)]


@pytest.mark.parametrize("align", ALIGNMENTS)
@pytest.mark.parametrize("longest", [1, 2, 3])
def test_matrices_of_diagonals(xpu_device, longest, align):
    succeeded = 0
    for (lower, upper), rows, cols in itertools.product(bands(3), EXTENTS, EXTENTS):
        count = upper - lower + 1
        shape = (2, longest) if count == 1 else (2, count, longest)
        diagonal = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        arguments = {"diagonal": diagonal, "k": [lower, upper], "num_rows": rows, "num_cols": cols}
        succeeded += compare(
            xpu_device, lambda a=arguments: raw.MatrixDiagV3(**a, padding_value=-7.0, align=align), (arguments, align)
        )
    assert succeeded > 100


@pytest.mark.parametrize("align", ALIGNMENTS)
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_diagonals_of_matrices(xpu_device, rows, align):
    succeeded = 0
    for (lower, upper), cols in itertools.product(bands(4), (1, 2, 3, 5)):
        matrix = np.arange(1, 1 + 2 * rows * cols, dtype=np.float32).reshape((2, rows, cols))
        band = {"k": [lower, upper], "align": align}
        part = lambda m=matrix, band=band: raw.MatrixDiagPartV3(input=m, padding_value=-7.0, **band)  # noqa: E731
        if not compare(xpu_device, part, (rows, cols, band)):
            continue
        succeeded += 1
        diagonal = -outcome("/cpu:0", part)
        assert compare(
            xpu_device,
            lambda m=matrix, d=diagonal, band=band: raw.MatrixSetDiagV3(input=m, diagonal=d, **band),
            (rows, cols, band, "set"),
        )
    assert succeeded > 20


def test_the_form_before_alignments(xpu_device):
    for (lower, upper), rows, cols in itertools.product(bands(2), EXTENTS, EXTENTS):
        count = upper - lower + 1
        diagonal = np.arange(1, 1 + 2 * count, dtype=np.float32).reshape((2,) if count == 1 else (count, 2))[..., :2]
        arguments = {"diagonal": diagonal, "k": [lower, upper], "num_rows": rows, "num_cols": cols}
        compare(xpu_device, lambda a=arguments: raw.MatrixDiagV2(**a, padding_value=-7.0), arguments)
    compare(xpu_device, lambda: raw.MatrixDiag(diagonal=np.ones((2, 3), np.float32)), "MatrixDiag")
    compare(xpu_device, lambda: raw.DiagPart(input=np.float32(3)), "the diagonal of a scalar")
