"""Whole networks: forward, gradients and optimizer steps on XPU against the CPU, and every compute op on XPU."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement

keras = tf.keras
L = keras.layers


def mlp():
    model = keras.Sequential(
        [
            keras.Input((20,)),
            L.Dense(32, activation="relu"),
            L.Dense(16, activation="tanh"),
            L.Dropout(0.2, seed=1),
            L.Dense(5),
        ]
    )
    return model, np.random.default_rng(0).standard_normal((32, 20))


def cnn():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            L.Conv2D(8, 3, padding="same", use_bias=False),
            L.BatchNormalization(),
            L.ReLU(),
            L.MaxPooling2D(),
            L.Conv2D(16, 3, padding="same", activation="relu"),
            L.AveragePooling2D(2),
            L.Dropout(0.25, seed=1),
            L.Flatten(),
            L.Dense(5),
        ]
    )
    return model, np.random.default_rng(0).standard_normal((32, 8, 8, 1))


def transformer():
    tokens = keras.Input((12,), dtype="int32")
    x = L.Embedding(50, 16)(tokens) + L.Embedding(12, 16)(tf.range(12))
    attention = L.MultiHeadAttention(2, 8, dropout=0.1, seed=1)(x, x)
    x = L.LayerNormalization()(x + attention)
    hidden = L.Dense(32, activation="gelu")(x)
    x = L.LayerNormalization()(x + L.Dropout(0.1, seed=2)(L.Dense(16)(hidden)))
    model = keras.Model(tokens, L.Dense(5)(L.GlobalAveragePooling1D()(x)))
    return model, np.random.default_rng(0).integers(0, 50, (32, 12))


MODELS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "nesterov": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "adamw": lambda: keras.optimizers.AdamW(0.01),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.01),
}


def train(name, optimizer, device, dtype="float32", steps=4, eager=False):
    """Losses of a few steps, final weights and where the ops ran."""
    keras.backend.clear_session()
    keras.config.set_floatx(dtype if dtype != "float16" else "float32")
    keras.config.set_dtype_policy(dtype)
    try:
        keras.utils.set_random_seed(7)
        with tf.device(device):
            model, data = MODELS[name]()
            model.compile(
                OPTIMIZERS[optimizer](), keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=eager
            )
            labels = np.random.default_rng(1).integers(0, 5, len(data))
            with placement.record() as ran:
                losses = [float(model.train_on_batch(data, labels)) for _ in range(steps)]
                out = model.predict_on_batch(data)
            return losses, np.asarray(out, np.float32), ran
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


# Each network with one optimizer and one network with each; slow: the others.
TRAININGS = [
    pytest.param(name, optimizer, marks=() if name == "mlp" or optimizer == "adam" else pytest.mark.slow)
    for name in MODELS
    for optimizer in OPTIMIZERS
]


@pytest.mark.parametrize(("name", "optimizer"), TRAININGS)
def test_training_agrees_with_the_cpu(name, optimizer, xpu_device):
    losses, out, ran = train(name, optimizer, xpu_device)
    expected_losses, expected_out, _ = train(name, optimizer, "/cpu:0")
    np.testing.assert_allclose(losses, expected_losses, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(out, expected_out, rtol=3e-2, atol=3e-2)
    assert placement.compute_ops_on(ran, "XPU"), "nothing ran on XPU"
    assert placement.compute_ops_on(ran, "CPU") == set()


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-6), ("bfloat16", 0.1), ("float16", 0.02)])
@pytest.mark.parametrize("name", MODELS)
def test_types(name, dtype, tolerance, xpu_device):
    # Adam's default epsilon is 0 in half: plain momentum for the narrow types.
    optimizer = "adam" if dtype == "float64" else "sgd"
    losses, _, ran = train(name, optimizer, xpu_device, dtype)
    expected, _, _ = train(name, optimizer, "/cpu:0", dtype)
    np.testing.assert_allclose(losses, expected, rtol=tolerance, atol=tolerance)
    # TensorFlow makes a bfloat16 constant of a Python number by an eager Cast on the CPU.
    assert placement.compute_ops_on(ran, "CPU") <= {"Cast"}


@pytest.mark.parametrize("name", MODELS)
def test_eager(name, xpu_device):
    losses, _, ran = train(name, "adam", xpu_device, steps=2, eager=True)
    expected, _, _ = train(name, "adam", "/cpu:0", steps=2, eager=True)
    np.testing.assert_allclose(losses, expected, rtol=2e-3, atol=2e-4)
    assert placement.compute_ops_on(ran, "CPU") == set()
