"""The same program gives the same bits: every op of the sweep, and the training of a small network."""

import json

import pytest

from tests.support.processes import run
from tests.sweep.digests import DIFFERS

pytestmark = pytest.mark.host_only


# The bits of these depend on the number of threads: oneDNN divides the sums among them.
BY_THREADS = {"Conv3DBackpropFilterV2"}


def digests_with(threads, kernels, folder):
    """The output of tests.sweep.digests in a process of its own."""
    path = folder / f"{threads}.json"
    # TensorFlow's threads, too: they decide who enqueues.
    environment = {"TF_XPU_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": str(threads)}
    outcome = run("-m", "tests.sweep.digests", path, kernels, environment=environment, timeout=1200)
    assert outcome.returncode == 0, outcome
    return json.loads(path.read_text())


def check_all(kernels, threads, folder):
    """Two calls in a process and calls in processes with these numbers of threads give the same bits."""
    one, other = (digests_with(number, kernels, folder) for number in threads)
    assert list(one) == list(other) and len(one) > 1000, f"{len(one)} and {len(other)} calls"
    assert [call for found in (one, other) for call, digest in found.items() if digest == DIFFERS] == []
    assert {call.split("(")[0] for call in one if one[call] != other[call]} <= BY_THREADS
    assert len(set(one.values())) > len(one) / 3, "few of the digests are different: do they see the results?"


def test_ops_give_the_same_bits(tmp_path):
    check_all(1, (1, 3), tmp_path)


@pytest.mark.slow
def test_all_kernels_give_the_same_bits(tmp_path):
    check_all(0, (2, 5), tmp_path)


# A training in float32 with sums in all directions: gathers with repeated indices, whose gradients are scattered,
# dropout, a convolution, normalization, products.
TRAINING = """
import hashlib, json, sys
import numpy as np, tensorflow as tf
tf.config.experimental.enable_op_determinism()
tf.keras.utils.set_random_seed(int(sys.argv[1]))
layers = tf.keras.layers
rng = np.random.default_rng(0)
x, y = rng.integers(0, 50, [256, 24]), rng.integers(0, 5, [256])
with tf.device("/xpu:0"):
    model = tf.keras.Sequential([
        layers.Embedding(50, 16), layers.Conv1D(32, 3, activation="relu"), layers.BatchNormalization(),
        layers.Dropout(0.3), layers.GlobalAveragePooling1D(), layers.Dense(5),
    ])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0).history["loss"]
    # The same by hand with stateful random numbers, in a graph.
    table = tf.Variable(tf.random.normal([50, 16], seed=3))
    kernel = tf.Variable(tf.random.normal([3, 3, 1, 8], seed=4))
    @tf.function
    def step(i):
        with tf.GradientTape() as tape:
            e = tf.nn.dropout(tf.nn.embedding_lookup(table, i), 0.5, seed=9)
            value = tf.reduce_sum(tf.tanh(tf.nn.conv2d(e[..., None], kernel, 1, "SAME")) ** 2)
        for v, g in zip((table, kernel), tape.gradient(value, (table, kernel))):
            v.assign_sub(0.001 * tf.convert_to_tensor(g))
        return value
    values = [float(step(tf.constant(x[32 * k : 32 * k + 32]))) for k in range(8)]
weights = b"".join(w.numpy().tobytes() for w in [*model.weights, table, kernel])
print(json.dumps([history, values, hashlib.sha256(weights).hexdigest()]))
"""


def trained(seed, threads):
    code = TRAINING.replace("sys.argv[1]", repr(str(seed)))
    outcome = run("-c", code, environment={"TF_XPU_THREADS": str(threads)})
    assert outcome.returncode == 0, outcome
    return outcome.json


def test_training_gives_the_same_bits():
    first = trained(1, 2)
    losses, values, _ = first
    assert losses[-1] < losses[0] and all(0 < v < 1e9 for v in values)
    assert trained(1, 3) == first
    assert trained(2, 2)[2] != first[2]
