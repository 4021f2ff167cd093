"""The checks that tools/versions.py runs in an environment with one TensorFlow: each function is a column of
docs/versions.md.

Nothing here knows a version: what is the same everywhere is what is checked.
"""

import importlib.util
import json
import shutil

import pytest

from tests.support.installed import CORE, PACKAGES, ROOT, SITE
from tests.support.processes import run

LIST_DEVICES = """
import json
import tensorflow as tf
print(json.dumps([d.name for d in tf.config.list_physical_devices()]))
"""


def test_doctor():
    """The core that serves is the one for this version, and computes."""
    outcome = run("-m", "tensorflow_xpu", "doctor", "--json")
    assert outcome.returncode == 0, outcome
    report = json.loads(outcome.stdout)
    assert report["observed"]["loader"]["core"].endswith(CORE)
    assert report["observed"]["compute"]["device"].endswith("XPU:0")


def test_conformance():
    outcome = run("-m", "tensorflow_xpu", "conformance", "--json", timeout=500)
    report = json.loads(outcome.stdout)
    assert outcome.returncode == 0 and report["failed"] == 0, outcome
    assert report["passed"] > 50, outcome


TRAIN = """
import json, sys
import {keras} as keras, numpy as np, tensorflow as tf

def losses(device):
    keras.utils.set_random_seed(3)
    generator = np.random.default_rng(5)
    x = generator.standard_normal((256, 12, 12, 3)).astype("float32")
    y = (x.mean((1, 2, 3)) > 0).astype("int32")
    with tf.device(device):
        model = keras.Sequential([
            keras.Input((12, 12, 3)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="gelu"),
            keras.layers.LayerNormalization(),
            keras.layers.Dense(2),
        ])
        model.compile(keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(x, y, batch_size=64, epochs=5, shuffle=False, verbose=0)
        where = {getattr(v.value, "device", None) or v.device for v in model.variables}  # of Keras 3, of Keras 2
        predicted = model.predict(x, verbose=0)
    return history.history["loss"], sorted(where), predicted

xpu, where, predicted = losses("/xpu:0")
cpu, _, expected = losses("/cpu:0")
print(json.dumps([xpu, cpu, where, float(np.abs(predicted - expected).max()), float(np.abs(expected).max())]))
"""


def train(keras, folder):
    outcome = run("-c", TRAIN.replace("{keras}", keras), environment={"TF_XPU_DUMP_FUSION": str(folder)}, timeout=500)
    assert outcome.returncode == 0, outcome
    xpu, cpu, where, error, largest = outcome.json
    assert cpu[-1] < 0.8 * cpu[0]  # it does learn
    assert max(abs(a - b) / b for a, b in zip(xpu, cpu)) < 2e-3, (xpu, cpu)
    assert error < 0.02 * largest
    assert all(device.endswith("XPU:0") for device in where) and where, where
    assert list(folder.iterdir()), "no op ran in a cluster"
    assert outcome.warnings == [], outcome


def test_training(tmp_path):
    """A Keras model learns as on the CPU, on the XPU, in clusters of its ops."""
    train("keras", tmp_path)


def test_keras_2(tmp_path):
    """The same of tf_keras, where that is installed."""
    if importlib.util.find_spec("tf_keras") is None:
        pytest.skip("this environment has no tf_keras")
    train("tf_keras", tmp_path)


def test_functions(tmp_path):
    """Loops, branches, gradients, jit_compile, variables that are shared while they change, references."""
    script = tmp_path / "functions.py"  # AutoGraph reads the source
    script.write_text(
        """
import numpy as np, tensorflow as tf
v1 = tf.compat.v1
with tf.device("/xpu:0"):
    v = tf.Variable(tf.range(8, dtype=tf.float32))
    before = v.read_value()
    v.assign_add(tf.ones(8))
    v[2:4].assign([7.0, 8.0])
    assert before.numpy().tolist() == list(range(8))
    assert v.numpy().tolist() == [1, 2, 7, 8, 5, 6, 7, 8]

    @tf.function
    def f(n):
        total = tf.zeros(8)
        for i in tf.range(n):
            total = tf.where(total > 5, total, total + v * tf.cast(i, tf.float32))
        return total
    expected = np.zeros(8, "f4")
    for i in range(4):
        expected = np.where(expected > 5, expected, expected + v.numpy() * np.float32(i))
    assert np.array_equal(f(4).numpy(), expected), f(4)

    @tf.function(jit_compile=True)
    def g(x):
        return x * x + 1
    assert g(tf.constant([1.0, 2.0])).numpy().tolist() == [2, 5]
    assert g(tf.constant([3.0])).device.endswith("XPU:0")
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.map_fn(lambda x: x ** 3, v))
    assert np.allclose(tape.gradient(y, v), 3 * v.numpy() ** 2)
    array = tf.TensorArray(tf.float32, 3).unstack(tf.constant([[1.0], [2.0], [3.0]]))
    assert array.gather([2, 0]).numpy().tolist() == [[3], [1]]
    for element in tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device("/xpu:0")):
        assert element.device.endswith(("XPU:0", "CPU:0"))
with tf.Graph().as_default(), v1.Session() as session, tf.device("/xpu:0"):
    w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=False)
    update = v1.assign_add(w, [1.0, 1.0])
    session.run(v1.global_variables_initializer())
    assert session.run(update).tolist() == [2, 3]
strategy = tf.distribute.MirroredStrategy(["/xpu:0"])
print("well")
"""
    )
    outcome = run(script, timeout=300)
    assert outcome.returncode == 0 and outcome.stdout.split()[-1] == "well", outcome


def test_dlpack():
    """In and out without a copy, through the C functions, and the alignment that forces one."""
    outcome = run(
        "-c",
        """
import numpy as np, tensorflow as tf, tensorflow_xpu
from tensorflow_xpu import dlpack
assert dlpack.c_api_missing is None, dlpack.c_api_missing
exports_read_only = int(np.__version__.split(".")[0]) >= 2
for device in ("/cpu:0", "/xpu:0"):
    for dtype in (tf.float32, tf.int64, tf.bool, tf.complex64, tf.float16):
        with tf.device(device):
            tensor = tf.identity(tf.cast(tf.reshape(tf.range(12), (3, 4)) % 5, dtype))
        view = np.from_dlpack(tensor)
        assert np.array_equal(view, tensor.numpy()) and view.dtype == dtype.as_numpy_dtype
        # NumPy before 2 exports no array that is read-only, as one of a tensor that never changes is.
        again = dlpack.from_dlpack(view if exports_read_only else tensor, device=device)
        assert again.device.endswith(device[-5:].upper().lstrip("/")), again.device
        assert np.array_equal(again.numpy(), view)
        # The same memory all the way.
        assert np.from_dlpack(again).__array_interface__["data"] == view.__array_interface__["data"]
array = np.zeros(65, "f4")[1:]
array[:] = np.arange(64)
assert np.array_equal(dlpack.from_dlpack(array).numpy(), np.arange(64))
try:
    dlpack.from_dlpack(np.zeros(3, "f4")[::2], copy=False)
except BufferError:
    print("well")
""",
    )
    assert outcome.returncode == 0 and outcome.stdout.split()[-1] == "well", outcome


def test_declines(plugin_site):
    """Without the core for this version one line names the others, or the wheel; and TensorFlow lives."""
    others = sorted(path for path in plugin_site.lib.glob("libtensorflow_xpu_core_*.so") if path != plugin_site.core)
    plugin_site.core.unlink()
    outcome = plugin_site.run_code(LIST_DEVICES)
    assert outcome.returncode == 0 and outcome.json == ["/physical_device:CPU:0"], outcome
    assert len(outcome.warnings) == 1, outcome
    for other in others:
        assert other.stem.removeprefix("libtensorflow_xpu_core_").replace("_", ".") in outcome.warnings[0], outcome
    if others:  # the core for another version is not one for this
        shutil.copy(others[0], plugin_site.core)
        outcome = plugin_site.run_code(LIST_DEVICES)
        assert outcome.returncode == 0 and outcome.json == ["/physical_device:CPU:0"], outcome
        assert len(outcome.warnings) == 1 and "does not load" in outcome.warnings[0], outcome


def test_another_plugin(compile_plugin):
    """Beside another PluggableDevice: both compute, and data goes from one to the other."""
    source = ROOT / "tensorflow_plugin" / "conformance" / "tests" / "sample_plugin.cc"
    # As plugins are: 2.22 shows its C API only to libraries that are linked against it.
    folder = PACKAGES / "tensorflow"
    libraries = [
        "-Wl,--no-as-needed",
        f"-L{folder}",
        "-l:libtensorflow_framework.so.2",
        f"-Wl,-rpath,{folder}",
        "-lpthread",
    ]
    other = compile_plugin(source, "other", '-DSAMPLE_NAME="OTHER"', '-DSAMPLE_TYPE="YPU"', *libraries)
    code = f"""
import tensorflow_xpu
print([d.name for d in tensorflow_xpu.load_plugin({str(other)!r})])
import tensorflow as tf
types = [tensorflow_xpu.get_device_details(name)["subdevice_type"] for name in ("/YPU:1", "/xpu:0")]
assert types[0] == "OTHER" and types[1].startswith("XPU_"), types  # before there are devices
with tf.device("/YPU:1"):
    there = tf.identity([[1.0, 2.0], [3.0, 4.0]])
with tf.device("/xpu:0"):
    here = tf.linalg.matmul(there, there)
assert there.device.endswith("YPU:1") and here.device.endswith("XPU:0"), (there.device, here.device)
with tf.device("/YPU:0"):
    back = tf.identity(here)
assert back.device.endswith("YPU:0") and back.numpy().tolist() == [[7, 10], [15, 22]], back
print("well")
"""
    outcome = run("-c", code)
    assert outcome.returncode == 0 and outcome.stdout.split()[-1] == "well", outcome
    assert "YPU:0" in outcome.stdout and "YPU:1" in outcome.stdout, outcome


def test_processes():
    """Under multiprocessing: children compute that were spawned, or forked before and after the device was used."""
    code = """
import multiprocessing, sys
import numpy as np, tensorflow as tf

def work(n):
    with tf.device("/xpu:0"):
        return float(tf.reduce_sum(tf.linalg.matmul(tf.ones((n, n)), tf.ones((n, n)))))

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(work, [3, 4]) == [27, 64]
    with multiprocessing.get_context("fork").Pool(1) as pool:  # before this process has used a device
        assert pool.map(work, [5]) == [125]
    assert work(2) == 8
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(work, [6, 400]).get(100) == [216, 64000000]
    print("well")
"""
    script = SITE / "xpu_processes_check.py"
    script.write_text(code)
    try:
        outcome = run(script, timeout=300)
    finally:
        script.unlink()
    assert outcome.returncode == 0 and outcome.stdout.split()[-1] == "well", outcome
