"""Batches that run as strands, side by side: the same results as on the CPU, and the pages say so."""

import pytest

from tests.support.processes import run_code

CODE = """
import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).standard_normal((2, {batch}, 24, 16)).astype(np.float32)
results = {{}}
for device in ("/cpu:0", "/xpu:0"):
    keras.utils.set_random_seed(1)
    with tf.device(device):
        layers = [getattr(keras.layers, "{layer}")(96, return_sequences=more) for more in (True, False)]
        model = keras.Sequential([keras.Input((24, 16)), *layers, keras.layers.Dense(3)])
        call = tf.function(lambda data: model(data))
        found = [call(data).numpy() for data in (*x, *x)]
        for variable in model.trainable_variables:
            variable.assign(variable * 1.5)
        results[device] = found + [call(data).numpy() for data in x]
for got, want in zip(*results.values(), strict=True):
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
"""


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize(
    ("layer", "batch", "environment", "strands"),
    [
        ("LSTM", 8, {"TF_XPU_THREADS": "2"}, 2),
        ("GRU", 12, {"TF_XPU_THREADS": "4"}, 4),
        ("LSTM", 7, {"TF_XPU_THREADS": "2"}, 0),
        ("LSTM", 8, {"TF_XPU_THREADS": "1"}, 0),
        ("LSTM", 8, {"TF_XPU_THREADS": "2", "TF_XPU_FUSION_WITHOUT": "ShareBatch"}, 0),
    ],
)
@pytest.mark.host_only
def test_recurrent_layers_of_a_batch(layer, batch, environment, strands, tmp_path):
    outcome = run_code(
        CODE.format(layer=layer, batch=batch), environment={**environment, "TF_XPU_DUMP_FUSION": str(tmp_path)}
    )
    assert outcome.returncode == 0, outcome
    pages = "".join(page.read_text() for page in tmp_path.glob("*.txt"))
    assert "MatMul of float" in pages
    found = {i for i in range(8) if f", strand {i}  #" in pages}
    assert found == set(range(strands))
