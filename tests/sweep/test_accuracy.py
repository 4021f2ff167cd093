"""docs/accuracy.md: what the numbers in it mean, and that it knows the ops that there are."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep import accuracy
from tests.sweep.registrations import all_registrations

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def test_units():
    """In float32, 1 + 2^-23 is next to 1, and 0.5 + 2^-24 next to 0.5. A number that is not normal does not count."""
    got = tf.constant([1 + 2**-23, 0.5 + 2**-24, 3.0, np.inf, 1e-42, np.nan], tf.float32)
    exact = np.array([1.0, 0.5, 3.0 + 2**-23, np.inf, 0.0, np.nan])
    np.testing.assert_allclose(accuracy.units(got, exact), [1, 1, 0.5])
    half = tf.constant([1024.0], tf.float16)
    np.testing.assert_allclose(accuracy.units(half, np.array([1024.25])), [0.25])


def test_a_row():
    errors = accuracy.Errors()
    errors.add(np.array([0.0, 1.0]))
    errors.add(np.array([5.0, 0.0]))
    row = accuracy.Row({tf.float32: errors}, of_bound=0.5)
    row.cpu_roundings.add(np.array([0.25, 0.0]))
    assert row.line("Op") == "| Op | 5 / 1.5 | - | - / 0.25 | - | - | - | 0.50 |"
    assert accuracy.wider(tf.float32, tf.float16) and not accuracy.wider(tf.float32, tf.complex64)
    assert not row.exact and accuracy.Row().exact


def test_an_op_is_measured(xpu_device):
    """Tanh of float32 is not rounded correctly, and within four units; that of half is."""
    row = accuracy.measured("Tanh")["Tanh"]
    assert 0.5 < row.by_type[tf.float32].largest < 4 and 0.5 < row.cpu.largest < 8
    assert row.by_type[tf.float16].largest <= 0.51
    assert 0 < row.of_bound <= 1


def test_cancellation_is_no_loss(xpu_device):
    """A result that is nearly nothing, and so thousands of units off, is a rounding or two of the terms off."""
    row = accuracy.measured("BatchMatMulV2")["BatchMatMulV2"]
    assert row.by_type[tf.float32].largest > 100
    assert 0.5 < row.roundings.largest < 4 and 0.5 < row.cpu_roundings.largest < 4


def test_the_page_knows_the_ops():
    """Those in it are registered, and most of those that compute are in it."""
    ops = set(re.findall(r"^\| (\w+) \|", accuracy.PATH.read_text(), re.MULTILINE)) - {"op"}
    assert ops <= {r.op for r in all_registrations()}
    assert {"MatMul", "Conv2D", "Softmax", "ResourceApplyAdam", "FFT", "Digamma", "LRN"} <= ops
    assert len(ops) > 200
