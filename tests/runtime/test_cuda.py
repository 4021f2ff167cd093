"""The CUDA backend under TensorFlow without a GPU: on stand-ins for the driver and the compiler.

The stand-in for the driver copies, and its kernels do nothing. So programs are tested to run, and copies to arrive.
"""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from tests.conftest import ROOT, run_code

SOURCES = ROOT / "tensorflow_plugin/backends/cuda/tests"
LIBRARIES = {"libcuda.so.1": "stand_in_driver.cc", "libnvrtc.so.13": "stand_in_nvrtc.cc"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that has the stand-ins."""
    folder = tmp_path_factory.mktemp("driver")
    for name, source in LIBRARIES.items():
        command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{name}", f"-I{ROOT}"]
        subprocess.run([*command, str(SOURCES / source), "-o", str(folder / name), "-lpthread"], check=True)
    return folder


PROGRAM = """
import numpy as np, tensorflow as tf
import tensorflow_xpu
(device,) = tf.config.list_physical_devices("XPU")
with tf.device("/xpu:0"):
    numbers = np.arange(3_000_000, dtype=np.float32)
    x = tf.constant(numbers)
    assert "XPU:0" in x.device and np.array_equal(tf.identity(x).numpy(), numbers)
    v = tf.Variable(numbers[:10])
    v.assign(numbers[10:20])
    assert np.array_equal(v.numpy(), numbers[10:20])
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(3)])
    model.compile("adam", "mse")
    model.fit(np.ones((64, 8), np.float32), np.ones((64, 3), np.float32), verbose=0, epochs=3)
    assert "XPU:0" in model.weights[0].value.device
print("ran")
"""


@pytest.mark.host_only
def test_a_program_runs(driver, tmp_path):
    environment = {"TF_XPU_SUBDEVICE": "XPU_CUDA", "LD_LIBRARY_PATH": str(driver), "XDG_CACHE_HOME": str(tmp_path)}
    outcome = run_code(PROGRAM, environment=environment)
    assert outcome.returncode == 0 and "ran" in outcome.stdout, outcome.stderr
