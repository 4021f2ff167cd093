"""Training for 200 steps: the losses are the CPU's, but for rounding."""

import functools

import numpy as np
import pytest
import tensorflow as tf

keras = tf.keras
L = keras.layers

pytestmark = [pytest.mark.host_only, pytest.mark.slow]

STEPS, BATCHES, BATCH, CLASSES = 200, 5, 32, 5


def mlp():
    return [keras.Input((20,)), L.Dense(32, "tanh"), L.Dense(16, "gelu"), L.Dense(CLASSES)]


def cnn():
    filters = [L.Conv2D(8, 3, activation="tanh"), L.AveragePooling2D(2), L.Conv2D(8, 3, activation="tanh")]
    return [keras.Input((10, 10, 1)), *filters, L.Flatten(), L.Dense(CLASSES)]


def lstm():
    return [keras.Input((8, 6)), L.LSTM(16, return_sequences=True), L.GRU(12), L.Dense(CLASSES)]


class Block(L.Layer):
    """A block of a Transformer: attention and a dense layer, each normalised and added to its input."""

    def __init__(self):
        super().__init__()
        self.norms, self.attention = [L.LayerNormalization(), L.LayerNormalization()], L.MultiHeadAttention(2, 8)
        self.dense = [L.Dense(32, "gelu"), L.Dense(16)]

    def call(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y)
        return x + self.dense[1](self.dense[0](self.norms[1](x)))


def transformer():
    return [keras.Input((8, 16)), Block(), L.GlobalAveragePooling1D(), L.Dense(CLASSES)]


MODELS = {
    "mlp": (mlp, lambda: keras.optimizers.Adam(0.003)),
    "cnn": (cnn, lambda: keras.optimizers.SGD(0.02, momentum=0.9)),
    "lstm": (lstm, lambda: keras.optimizers.RMSprop(0.002, momentum=0.5)),
    "transformer": (transformer, lambda: keras.optimizers.AdamW(0.002)),
}
# Relative, of the loss at any step: rounding makes 4e-6 at most, what is wrong twenty times this and more.
TOLERANCE = 2e-4


@functools.cache
def losses(name, device, wrong=""):
    """The loss of each step. wrong: "gradient" for one that is 5% of another off, "slot" for one that is forgotten."""
    layers, make_optimizer = MODELS[name]
    keras.utils.set_random_seed(3)
    with tf.device(device):
        model, optimizer = keras.Sequential(layers()), make_optimizer()
        optimizer.build(model.trainable_variables)
        kernel = next(i for i, v in enumerate(model.trainable_variables) if len(v.shape) > 1)
        slot = next(v for v in reversed(optimizer.variables) if len(v.shape) > 1)
        rng = np.random.default_rng(0)
        x = tf.constant(rng.standard_normal((BATCHES, BATCH, *model.input_shape[1:])), tf.float32)
        y = tf.constant(rng.integers(0, CLASSES, (BATCHES, BATCH)))

        @tf.function(autograph=False)
        def step(x, y):
            with tf.GradientTape() as tape:
                logits = model(x, training=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
            gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
            if wrong == "gradient":
                gradients[kernel] += 0.05 * tf.reverse(gradients[kernel], [0, 1])
            optimizer.apply(gradients, model.trainable_variables)
            if wrong == "slot":
                slot.assign(tf.zeros_like(slot.value))
            return loss

        found = [step(x[i % BATCHES], y[i % BATCHES]) for i in range(STEPS)]
        return np.array([float(loss) for loss in found])


def distance(found, expected):
    return np.max(np.abs(found - expected) / expected)


@pytest.mark.parametrize("name", MODELS)
def test_losses_are_the_cpus(name, xpu_device):
    expected = losses(name, "/cpu:0")
    assert expected[-BATCHES:].mean() < 0.8 * expected[:BATCHES].mean(), "it does not learn"
    assert distance(losses(name, xpu_device), expected) < TOLERANCE


@pytest.mark.parametrize("wrong", ["gradient", "slot"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_wrong_is_seen(name, wrong):
    """One kernel of many is wrong: the tolerance is worth something."""
    assert distance(losses(name, "/cpu:0", wrong), losses(name, "/cpu:0")) > 10 * TOLERANCE
