"""Training steps in clusters: how few clusters and commands they are, and that they learn the same without a pass."""

import pathlib
import re

import numpy as np
import pytest

from tensorflow_xpu import _options
from tests.support.processes import run_code


def clusters_of(code, folder):
    """The text of each cluster that a program makes."""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(folder)})
    assert outcome.returncode == 0, outcome
    return [path.read_text() for path in sorted(folder.glob("*.txt"))]


@pytest.mark.of_hooks("clusters")
def test_a_step_of_batches_of_any_size_is_one_cluster(tmp_path):
    """The ops that Keras traces when the last batch is smaller: shapes of integers in host memory, stitched together,
    and assertions that they agree.
    """
    code = """
import numpy as np, tensorflow as tf
values = {}
for device in ("/xpu:0", "/cpu:0"):
    with tf.device(device):
        table, dense = tf.Variable(tf.ones([50, 4])), tf.Variable(tf.ones([4, 3]))
        seen = tf.Variable(0.0)
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int64)])
        def step(i, y):
            with tf.GradientTape() as tape:
                found = tf.tanh(tf.gather(table, i)) * (1 + tf.reduce_mean(tf.gather(table, i), 1)[:, None])
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, found @ dense)
                loss = tf.reduce_sum(losses) / tf.cast(tf.shape(y)[0], tf.float32)
            of_table, of_dense = tape.gradient(loss, [table, dense])
            table.assign_sub(0.01 * tf.convert_to_tensor(of_table))
            dense.assign_sub(0.001 * of_dense)
            seen.assign_add(tf.cast(tf.shape(y)[0], tf.float32))
            return loss
        rng = np.random.default_rng(0)
        for _ in range(10):
            indices = tf.constant(rng.integers(0, 50, (64, 40)), tf.int32)  # more than a signature may have
            loss = step(indices, tf.constant(rng.integers(0, 3, (64, 40))))
        values[device] = [loss.numpy(), table.numpy(), dense.numpy(), seen.numpy()]
for got, want in zip(*values.values()):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
"""
    (cluster,) = clusters_of(code, tmp_path)
    ops = set(re.findall(r"^\d+: (\w+) ", cluster, re.MULTILINE))
    assert {"_XpuAssert", "DynamicStitch", "ResourceGather", "MatMul", "AssignSubVariableOp"} <= ops
    assert "Not captured" not in cluster


TRAINING = """
import numpy as np, tensorflow as tf, keras
keras.utils.set_random_seed(1)
L = keras.layers
with tf.device("/xpu:0"):
    hidden = [L.Dense(32, activation="relu"), L.Dense(16, activation="relu")]
    model = keras.Sequential([keras.Input((20,)), *hidden, L.Dense(5)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.random.rand(32, 20), np.random.randint(0, 5, 32)
    print("losses", [float(model.train_on_batch(x, y)) for _ in range(20)])
"""


@pytest.mark.of_hooks("clusters")
@pytest.mark.host_only
def test_a_training_step_is_a_few_commands(tmp_path):
    outcome = run_code(TRAINING, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)}, timeout=200)
    assert outcome.returncode == 0, outcome
    dumps = [path.read_text() for path in sorted(pathlib.Path(tmp_path).iterdir())]
    sizes = [tuple(int(re.search(p, d)[1]) for p in (r": (\d+) ops", r"(\d+) commands")) for d in dumps]
    assert max(ops for ops, _ in sizes) > 150, sizes
    assert all(commands < 40 for _, commands in sizes), sizes
    alone = run_code(TRAINING, environment={"TF_XPU_FUSION": "0"}, timeout=200)
    losses, expected = (np.array(eval(re.search(r"losses (\[.*\])", o.stdout)[1])) for o in (outcome, alone))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < losses[0]


def losses_and_clusters(folder, **environment):
    """Losses of a network with a bit of everything, and the text of its clusters."""
    folder.mkdir()
    code = """
        import json
        import numpy as np, tensorflow as tf, keras
        keras.utils.set_random_seed(1)
        L = keras.layers
        with tf.device("/xpu:0"):
            sentence = keras.Input((6,), dtype="int32")
            x = L.LayerNormalization()(L.Embedding(30, 16)(sentence))
            x = x + L.MultiHeadAttention(2, 8)(x, x)
            x = L.Conv1D(8, 3, activation="relu")(L.ZeroPadding1D((2, 1))(x))
            x = L.Concatenate()([L.LSTM(12, unroll=True)(x), L.GlobalMaxPooling1D()(x)])
            model = keras.Model(sentence, L.Dense(5)(x))
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            x, y = np.random.randint(0, 30, (32, 6)), np.random.randint(0, 5, 32)
            print(json.dumps([float(model.train_on_batch(x, y)) for _ in range(8)]))
    """
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(folder), **environment}, timeout=200)
    return outcome.json, "\n".join(path.read_text() for path in sorted(folder.iterdir()))


@pytest.fixture(scope="module")
def with_all_passes(tmp_path_factory):
    return losses_and_clusters(tmp_path_factory.mktemp("passes") / "all")


@pytest.mark.slow
@pytest.mark.host_only
@pytest.mark.parametrize("name", _options.PASSES)
def test_without_a_pass_a_network_learns_the_same(name, tmp_path, with_all_passes):
    losses, clusters = losses_and_clusters(tmp_path / "without", TF_XPU_FUSION_WITHOUT=name)
    np.testing.assert_allclose(losses, with_all_passes[0], rtol=1e-5)
    assert losses[-1] < losses[0]
    if name not in ("DeduplicateIndexChecks", "FoldMatMulBatch", "ScheduleCopiesToHost"):  # nothing to do for them here
        assert clusters != with_all_passes[1]


@pytest.mark.of_hooks("clusters")
def test_constants_that_grappler_ties_to_an_op_divide_nothing(tmp_path):
    """The gradient of a mean divides by a constant that is alive when an op of the same cluster has run."""
    code = """
import numpy as np, tensorflow as tf
layers = tf.keras.layers
with tf.device("/xpu:0"):
    normalised = [layer for _ in range(3) for layer in (layers.LayerNormalization(), layers.Dense(16, "gelu"))]
    model = tf.keras.Sequential([*normalised, layers.Dense(4)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).random([64, 8]).astype(np.float32)
    loss = model.fit(x, x[:, :4], batch_size=16, epochs=3, verbose=0).history["loss"]
assert loss[-1] < loss[0]
"""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    (step,) = [text for text in (dump.read_text() for dump in tmp_path.glob("*.txt")) if ": MatMul " in text]
    assert len(re.findall(": MatMul ", step)) >= 4 * 3 - 1
