"""The CUDA backend under TensorFlow without a GPU: on stand-ins for the driver, the compiler and cuBLASLt.

The stand-in for the driver copies, and its kernels do nothing. So programs are tested to run, and copies to arrive. The
compiler is NVRTC where its package is installed, and products of float are computed.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run_code

SOURCES = ROOT / "tensorflow_plugin/backends/cuda/tests"
LIBRARIES = {
    "libcuda.so.1": "stand_in_driver.cc",
    "libnvrtc.so.13": "stand_in_nvrtc.cc",
    "libcublasLt.so.13": "stand_in_cublaslt.cc",
}
CUDNN = {"libcudnn.so.9": "stand_in_cudnn.cc"}


def compile_into(folder: pathlib.Path, libraries: dict[str, str]) -> None:
    for name, source in libraries.items():
        command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{name}", f"-I{ROOT}"]
        subprocess.run([*command, str(SOURCES / source), "-o", str(folder / name), "-lpthread", "-ldl"], check=True)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder that has the stand-ins."""
    folder = tmp_path_factory.mktemp("driver")
    compile_into(folder, LIBRARIES)
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


PROFILE = """
import json
import tensorflow as tf
import tensorflow_xpu

a, b = tf.ones([30, 20]), tf.ones([20, 10])

@tf.function
def step(a, b):
    return tf.nn.softmax(tf.matmul(a, b, name="scores"), name="shares")

for _ in range(4):
    step(a, b).numpy()
tf.matmul(a, b).numpy()
with tensorflow_xpu.profile("FOLDER") as profile:
    for _ in range(3):
        step(a, b).numpy()
    tf.matmul(a, b).numpy()
print(json.dumps({"events": [vars(event) for event in profile.events], "warnings": profile.warnings}))
"""


PRODUCT = """
import numpy as np, tensorflow as tf
import tensorflow_xpu
a, b, bias = (np.random.default_rng(i).integers(-3, 4, shape).astype(np.float32)
              for i, shape in enumerate([(30, 20), (20, 10), (10,)]))

@tf.function
def layer(a, b, bias):
    return tf.nn.relu(tf.nn.bias_add(a @ b, bias))

with tf.device("/xpu:0"):
    for _ in range(4):
        assert np.array_equal(layer(a, b, bias), np.maximum(a @ b + bias, 0))
print("right")
"""


CONVOLUTIONS = """
import ctypes, json
import tensorflow as tf
import tensorflow_xpu

x = tf.ones([2, 8, 9, 6])
w = tf.Variable(tf.ones([3, 5, 6, 4]))
cudnn = None

def engines(step):
    # What cuDNN has been asked for: the engine, and the first word of the direction.
    global cudnn
    for number in tf.nest.flatten(step()):
        number.numpy()
    cudnn = cudnn or ctypes.CDLL("libcudnn.so.9")
    cudnn.StandInDnnExecutions.restype = ctypes.c_char_p
    lines = cudnn.StandInDnnExecutions().decode().splitlines()
    return [(int(line.split()[1]), " ".join(line.split(" x ")[0].split()[2:])) for line in lines]

def forward():
    return tf.nn.conv2d(x, w, 2, "SAME")

@tf.function
def training():
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.square(forward()))
    return tape.gradient(loss, [x, w])

seen = {"tf32": engines(forward), "steps of tf32": [engines(training) for _ in range(3)]}
tf.config.experimental.enable_tensor_float_32_execution(False)
seen["float"] = engines(forward)
seen["step"] = engines(training)
tf.config.experimental.enable_op_determinism()
seen["deterministic"] = engines(forward)
print(json.dumps(seen))
"""


@pytest.fixture
def environment(driver, tmp_path):
    return {"TF_XPU_SUBDEVICE": "XPU_CUDA", "LD_LIBRARY_PATH": str(driver), "XDG_CACHE_HOME": str(tmp_path)}


@pytest.mark.host_only
def test_a_program_runs(environment):
    outcome = run_code(PROGRAM, environment=environment)
    assert outcome.returncode == 0 and "ran" in outcome.stdout, outcome.stderr


# No kernel runs: all that there is to do is in the library's epilogue. The third call's commands become a graph.
@pytest.mark.of_hooks("clusters")
@pytest.mark.host_only
def test_a_layer_is_one_product_of_the_library(environment):
    outcome = run_code(PRODUCT, environment=environment)
    assert outcome.returncode == 0 and "right" in outcome.stdout, outcome.stderr


@pytest.mark.of_hooks("copies", "clusters")
@pytest.mark.host_only
def test_a_profile_has_the_commands(environment, tmp_path):
    outcome = run_code(PROFILE.replace("FOLDER", str(tmp_path / "profile")), environment=environment)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.json["warnings"] == []
    of_device = [event for event in outcome.json["events"] if event["device"] == "XPU:0"]
    events = [event for event in of_device if event["line"] == "compute"]
    (eager,) = [event for event in events if event["op"] == "MatMul"]
    assert (eager["name"], eager["op_type"], eager["flops"]) == ("MatMul of float", "MatMul", 2 * 30 * 20 * 10)
    clusters = [event for event in events if event["kind"] == "cluster"]
    assert len(clusters) == 3
    for cluster in clusters:
        end = cluster["start_ns"] + cluster["duration_ns"]
        within = [
            event["op"].rpartition("/")[2]
            for event in events
            if event["kind"] == "command"
            and cluster["start_ns"] <= event["start_ns"]
            and event["start_ns"] + event["duration_ns"] <= end
        ]
        assert {"scores", "shares"} <= set(within), within
    copies = [event for event in of_device if event["name"] == "copy to the host"]
    assert {event["bytes"] for event in copies} == {2 * 4 * 30 * 10}  # read and written


@pytest.mark.host_only
def test_convolutions_are_cudnns_and_round_as_the_program_wants(environment, driver, tmp_path):
    compile_into(tmp_path, CUDNN)
    outcome = run_code(CONVOLUTIONS, environment={**environment, "LD_LIBRARY_PATH": f"{driver}:{tmp_path}"})
    assert outcome.returncode == 0, outcome.stderr
    # stand_in_cudnn.cc says what its engines do.
    assert outcome.json["tf32"] == [[10, "forward"]]
    for step in outcome.json["steps of tf32"]:
        assert sorted(step) == [[10, "forward"], [10, "to filter"], [10, "to images"]]
    assert outcome.json["float"] == [[12, "forward"]]
    assert outcome.json["step"] == [[12, "forward"]]  # kernels have the gradients
    assert outcome.json["deterministic"] == [[13, "forward"]]


@pytest.mark.slow
@pytest.mark.host_only
def test_the_doctor_says_which_libraries_are_missing(environment):
    command = [sys.executable, "-m", "tensorflow_xpu", "doctor", "--json"]
    outcome = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    findings = {finding["topic"]: finding for finding in json.loads(outcome.stdout)["findings"]}
    assert findings["cuBLASLt"]["state"] == "ok"
    assert findings["cuDNN"]["state"] == "note"
    assert "libcudnn.so.9 was not found" in findings["cuDNN"]["text"]
    assert findings["cuDNN"]["fix"] == "pip install 'tensorflow_xpu[cuda]'"


@pytest.mark.slow
@pytest.mark.host_only
def test_the_device_conforms(environment):
    command = [sys.executable, "-m", "tensorflow_xpu", "conformance", "--timeout", "60"]
    outcome = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0 and " 0 failed" in outcome.stdout, outcome.stdout
