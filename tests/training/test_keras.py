"""Keras as people use it: a script that knows nothing of this package, and the examples."""

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run, run_code

SCRIPT = """
import json, sys
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x = np.random.default_rng(0).standard_normal((256, 8)).astype("float32")
y = (x.sum(1) > 0).astype("float32")
with tf.device({device!r}):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"),
                              keras.layers.BatchNormalization(), keras.layers.Dropout(0.1), keras.layers.Dense(1)])
    model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
    losses = model.fit(x, y, epochs=8, batch_size=32, verbose=0).history["loss"]
    predictions = model.predict(x, verbose=0)
    model.save({path!r})
    loaded = keras.saving.load_model({path!r})
    difference = float(np.abs(loaded.predict(x, verbose=0) - predictions).max())
    resumed = loaded.fit(x, y, epochs=1, batch_size=32, verbose=0).history["loss"][0]
print(json.dumps({{
    "losses": losses, "difference": difference, "resumed": resumed, "jit": model.jit_compile,
    "kernel": model.layers[0].kernel.value.device, "imported": "tensorflow_xpu" in sys.modules,
}}))
"""


def train(device, path, **options):
    outcome = run_code(SCRIPT.format(device=device, path=str(path)), **options)
    assert outcome.returncode == 0, outcome
    return outcome


def test_a_script_that_knows_nothing_of_this_package(xpu_device, tmp_path):
    outcome = train("/xpu:0", tmp_path / "model.keras")
    seen = outcome.json
    assert seen["imported"] is False
    assert seen["jit"] is False
    assert seen["kernel"].endswith("/device:XPU:0")
    assert seen["losses"][-1] < 0.75 * seen["losses"][0]
    assert seen["resumed"] < seen["losses"][-1] * 1.2
    assert seen["difference"] < 1e-5
    assert outcome.warnings == []
    on_cpu = train("/cpu:0", tmp_path / "cpu.keras").json
    assert seen["losses"] == pytest.approx(on_cpu["losses"], rel=2e-3)


def test_no_device_named_at_all(xpu_device, tmp_path):
    """TensorFlow prefers the XPU, so a script that names no device trains on it."""
    code = SCRIPT.replace("with tf.device({device!r}):", "if True:")
    outcome = run_code(code.format(path=str(tmp_path / "model.keras")))
    assert outcome.returncode == 0, outcome
    assert outcome.json["kernel"].endswith("/device:XPU:0")


def test_jit_is_left_alone_without_an_xpu(tmp_path):
    outcome = train("/cpu:0", tmp_path / "model.keras", environment={"TF_XPU_DISABLE": "1"})
    assert outcome.json["jit"] is False, "Keras does not use XLA where there is only a CPU"


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        pytest.param(
            "digits_cnn.py",
            (),
            ["Accuracy on the test set", "demo.keras", "times as long as /cpu:0"],
            marks=pytest.mark.slow,
        ),
        ("mlp_custom_loop.py", (), ["Accuracy on the 114 tumours"]),
        pytest.param(
            "transformer_text.py",
            ("--epochs", "4", "--samples", "3200"),
            ["of the masked characters"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_examples(xpu_device, tmp_path, script, arguments, words):
    outcome = run(ROOT / "examples" / script, *arguments, cwd=tmp_path, timeout=900)
    assert outcome.returncode == 0, outcome
    for word in words:
        assert word in outcome.stdout, outcome
    if script == "digits_cnn.py":
        assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_says_that_there_is_no_xpu(tmp_path):
    environment = {"TF_XPU_DISABLE": "1"}
    outcome = run(ROOT / "examples" / "digits_cnn.py", cwd=tmp_path, environment=environment)
    assert outcome.returncode == 1
    assert "There is no /xpu:0" in outcome.stderr


UNREADABLE = """
import keras, tensorflow as tf
import numpy as np
from keras.src.utils.python_utils import pythonify_logs

stock = pythonify_logs.__wrapped__

class Raises:
    def __float__(self):
        raise SystemError("no number")
    __array__ = numpy = __bool__ = __float__

class Counted:
    times = 0
    def __float__(self):
        self.times += 1
        return float(self.times)

def words(logs):
    if isinstance(logs, dict):
        return {key: words(value) for key, value in logs.items()}
    try:
        return repr(logs)
    except SystemError:  # an old Keras leaves a tensor that cannot be read as it is
        return type(logs).__name__

def refused(name):
    tensor = tf.constant(1.0)
    setattr(tensor, name, Raises().numpy)
    return tensor

values = {
    "a tensor": tf.constant(1.0), "a vector": tf.ones([3]), "a string": tf.constant("a"), "an integer": tf.constant(3),
    "empty": tf.zeros([0]), "a variant": tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant([], tf.int32), max_num_elements=1, element_dtype=tf.float32),
    "a resource": tf.Variable(1.0).handle, "a variable": tf.Variable(2.0), "variables": tf.Variable([2.0, 1.0]),
    "ragged": tf.ragged.constant([[1.0], [2.0, 3.0]]), "sparse": tf.sparse.from_dense(tf.eye(3)),
    "no numpy()": refused("numpy"), "no _numpy()": refused("_numpy"), "no array": refused("__array__"),
    "raises": Raises(), "text": "a", "none": None, "a class": int, "array": np.ones(3), "one": np.ones(1),
    "objects": np.full(2, None), "Keras's": keras.Variable(1.0), "symbolic": keras.Input((3,)),
    "nested": {"b": {"c": Raises(), "d": tf.constant(1.0)}}, "empty dict": {}, "a list": [Raises()],
}
for name, value in values.items():
    for logs in ({"x": value}, {"x": value, "more": {"y": value}}):
        assert words(pythonify_logs(logs)) == words(stock(logs)), name
counted = Counted()
assert pythonify_logs({"x": counted}) == {"x": 1.0} and counted.times == 1, "read once, as Keras does"
for logs in (None, {}):
    assert pythonify_logs(logs) == {}
for logs in ([1], "a", Raises(), {1: 1, "a": 2}):
    seen = []
    for function in (pythonify_logs, stock):
        try:
            function(logs)
        except Exception as error:
            seen.append(repr(error))
    assert len(seen) == 2 and seen[0] == seen[1], seen
print("well")
"""


def test_logs_that_cannot_be_read_are_keras_business(xpu_device):
    outcome = run_code(UNREADABLE)
    assert outcome.stdout == "well\n", outcome
