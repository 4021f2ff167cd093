"""TF_XPU_DEVICE_TYPE=GPU: programs that ask for GPUs run as they are. Each in a fresh process."""

import re

import numpy as np
import pytest

from tests.hooks.each_off import left_out
from tests.support.installed import ROOT
from tests.support.processes import run_code

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

MODELS = """
import json
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
layers = keras.layers
MODELS = {
    "mlp": ((10,), lambda: [layers.Dense(16, "relu"), layers.Dense(1)]),
    "cnn": ((8, 8, 3), lambda: [layers.Conv2D(8, 3, activation="relu"), layers.BatchNormalization(),
                                layers.MaxPooling2D(), layers.Flatten(), layers.Dense(1)]),
    "lstm": ((5, 4), lambda: [layers.LSTM(8), layers.Dense(1)]),
    "gru": ((5, 4), lambda: [layers.GRU(8), layers.Dense(1)]),
}
seen = {"gpus": [d.name for d in tf.config.list_physical_devices("GPU")]}
for name, (shape, make) in MODELS.items():
    x, y = rng.standard_normal((64, *shape)).astype("float32"), rng.standard_normal((64, 1)).astype("float32")
    seen[name] = []
    for device in ("/cpu:0", "/gpu:0"):
        keras.utils.set_random_seed(1)
        with tf.device(device):
            model = keras.Sequential(make())
            model.compile("sgd", "mse")
            losses = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False).history["loss"]
        assert model.weights[0].value.device[-5:].lower() == device[1:], model.weights[0].value.device
        seen[name].append(losses)
print(json.dumps(seen))
"""


def test_models_train_on_gpus_as_on_the_cpu(xpu_device, tmp_path):
    environment = {"TF_XPU_DEVICE_TYPE": "GPU", "TF_XPU_DUMP_FUSION": str(tmp_path)}
    outcome = run_code(MODELS, environment=environment)
    assert outcome.returncode == 0, outcome
    assert outcome.warnings == [], outcome
    seen = outcome.json
    assert seen["gpus"] == ["/physical_device:GPU:0"]
    for name in ("mlp", "cnn", "lstm", "gru"):
        on_cpu, on_gpu = seen[name]
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4, err_msg=name)
        assert on_gpu[1] != on_gpu[0]
    # Clusters, and convolutions in the layout in which they were written.
    clusters = "".join(path.read_text() for path in tmp_path.iterdir())
    assert ("Convolution" in clusters) == ("clusters" not in left_out())
    assert "NCHW" not in clusters


USES = """
import json
import numpy as np
import tensorflow as tf
import tensorflow_xpu

strategy = tf.distribute.MirroredStrategy()

@tf.function
def total():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones([3])))

@tf.function(jit_compile=True)
def compiled(x):
    return x * 2 + 1

data = tf.data.Dataset.from_tensor_slices(np.arange(4.0)).batch(2)
data = data.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))
with tf.device("/gpu:1"):
    exported = np.from_dlpack(tf.ones(3) * 2)
devices = tensorflow_xpu.list_physical_devices("GPU", enabled=True)
print(json.dumps({
    "replicas": strategy.num_replicas_in_sync,
    "total": strategy.experimental_local_results(total())[0].numpy().tolist(),
    "compiled": compiled(tf.ones(1)).numpy().tolist(),
    "difference": tf.math.squared_difference([3, 4], [1, 1]).numpy().tolist(),
    "data": [x.device[-5:] for x in data],
    "exported": exported.tolist(),
    "devices": [[d.name, d.device_type, d.subdevice_type] for d in devices],
    "mapping": tensorflow_xpu.get_subdevice_mapping(),
    "in use": tensorflow_xpu.memory_info(0).current > 0,
}))
"""


def test_what_asks_for_gpus_finds_them(xpu_device):
    outcome = run_code(USES, environment={"TF_XPU_DEVICE_TYPE": "GPU", "TF_XPU_DEVICE_COUNT": "2"})
    assert outcome.returncode == 0, outcome
    assert outcome.json == {
        "replicas": 2,
        "total": [2, 2, 2],
        "compiled": [3],
        "difference": [4, 9],
        "data": ["GPU:0", "GPU:0"],
        "exported": [2, 2, 2],
        "devices": [[f"/physical_device:GPU:{i}", "GPU", "XPU_HOST"] for i in range(2)],
        "mapping": {"GPU": "XPU_HOST"},
        "in use": True,
    }


MAPPING = """
import json
import tensorflow_xpu
tensorflow_xpu.set_subdevice_mapping({"GPU": "XPU_REFERENCE"})
import tensorflow as tf
print(json.dumps([d.name for d in tf.config.list_physical_devices("GPU")] + [tensorflow_xpu.get_subdevice_mapping()]))
"""


def test_the_mapping_chooses_the_type(xpu_device):
    outcome = run_code(MAPPING)
    assert outcome.returncode == 0, outcome
    assert outcome.json == ["/physical_device:GPU:0", {"GPU": "XPU_REFERENCE"}]


@pytest.mark.slow
def test_the_documentations_program(xpu_device):
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/gpu.md").read_text(), re.DOTALL)
    outcome = run_code(program, environment={"TF_XPU_DEVICE_TYPE": "GPU"})
    assert outcome.returncode == 0, outcome
    assert "GPU:0" in outcome.stdout


NAMES = """
import json
import tensorflow as tf
from tensorflow_xpu.dlpack import from_dlpack

with tf.device("/gpu:1"):
    x = tf.identity(tf.constant([1.0, 2.0]))
y = from_dlpack(x)
try:
    with tf.device("/gpu:1"):
        (y * 2).numpy()
except tf.errors.InternalError as error:
    print(json.dumps([y.device[-5:], y.numpy().tolist(), str(error)]))
"""


def test_messages_and_exchanged_tensors_name_the_gpu(xpu_device):
    """With memory that the host cannot address, whose DLPack device has the number alone."""
    variables = {"TF_XPU_ISOLATE_MEMORY": "1", "TF_XPU_FAULT": "xpu:1/command=Elementwise:fail@1"}
    outcome = run_code(NAMES, environment={"TF_XPU_DEVICE_TYPE": "GPU", "TF_XPU_DEVICE_COUNT": "2", **variables})
    assert outcome.returncode == 0, outcome
    device, values, error = outcome.json
    assert (device, values) == ("GPU:1", [1.0, 2.0])
    assert "it was number 1 on GPU:1)" in error
