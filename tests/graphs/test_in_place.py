"""A result that begins as a copy of an argument takes its place if nobody else has that, as caches of a decoder do."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_xpu

LAYERS, STEPS, HEADS, SIZE = 3, 24, 2, 16
SHAPE = (1, LAYERS, 2, STEPS, HEADS, SIZE)


def step(cache, token, index):
    """A token of a decoder: each layer writes a key and a value into the cache, and attends to all of them."""
    parts = []
    for layer in range(LAYERS):
        mine = cache[:, layer]
        key, value = (
            keras.ops.slice_update(mine[:, part], [0, index, 0, 0], tf.tanh(token * (layer + 1.0 + part)))
            for part in range(2)
        )
        weights = tf.nn.softmax(tf.einsum("bthd,bshd->bhs", token, key))
        token = tf.einsum("bhs,bshd->bhd", weights, value)[:, None]
        parts.append(tf.stack([key, value], axis=1))
    return tf.stack(parts, axis=1), token


def generate(cache, token):
    for index in tf.range(STEPS):
        cache, token = step(cache, token, index)
    return cache, token


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    return rng.standard_normal(SHAPE, np.float32), rng.standard_normal((1, 1, HEADS, SIZE), np.float32)


def copied(events) -> int:
    """Bytes that commands have moved from one place of the device to another."""
    return sum(event.bytes for event in events if "opy" in event.name and "host" not in event.name)


@pytest.mark.of_hooks("clusters")
def test_a_loop_writes_its_cache_in_place(xpu_device, arguments, tmp_path):
    with tf.device("/cpu:0"):
        expected = tf.function(generate)(*map(tf.constant, arguments))
    with tf.device("/xpu:0"):
        function = tf.function(generate)
        given = [tf.constant(a) for a in arguments]
        for _ in range(4):
            results = function(*given)
            for result, value in zip(results, expected):
                np.testing.assert_allclose(result, value, rtol=1e-3, atol=1e-3)
        with tensorflow_xpu.profile(tmp_path) as profile:
            function(*given)
        # One copy of the caller's cache, which is his: of `STEPS` there would be `STEPS` times as many bytes.
        size = given[0].numpy().nbytes
        assert copied(profile.events) <= 6 * size, profile
        np.testing.assert_array_equal(given[0], arguments[0])


@pytest.mark.parametrize("kept", ["variable", "tensor", "twice", "result"])
def test_whoever_has_the_argument_keeps_it(xpu_device, arguments, kept):
    cache, token = arguments
    with tf.device("/xpu:0"):
        given, first = tf.constant(cache), tf.constant(token)
        variable = tf.Variable(given) if kept == "variable" else None

        @tf.function
        def function(given, token):
            value = variable.value() if kept == "variable" else given
            new, _ = step(value, token, tf.constant(1))
            if kept == "twice":
                return new, step(value, token + 1.0, tf.constant(2))[0]
            return (new, value) if kept == "result" else (new, tf.zeros([]))

        for _ in range(6):
            results = [r.numpy() for r in function(given, first)]
            np.testing.assert_array_equal(given, cache)
            if kept == "variable":
                np.testing.assert_array_equal(variable, cache)
    with tf.device("/cpu:0"):
        expected = step(tf.constant(cache), tf.constant(token), tf.constant(1))[0]
        np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-4)
        if kept == "result":
            np.testing.assert_array_equal(results[1], cache)
        if kept == "twice":
            second = step(tf.constant(cache), tf.constant(token) + 1.0, tf.constant(2))[0]
            np.testing.assert_allclose(results[1], second, rtol=1e-4, atol=1e-4)
