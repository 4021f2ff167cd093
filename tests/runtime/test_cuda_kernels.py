"""Kernels of the CUDA backend without a GPU: the stand-ins compile them by g++, and the processor runs them.

So command lists that became graphs are seen to compute what they should, while the stand-in for the GPU runs late.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from tests.runtime.test_cuda import LIBRARIES, SOURCES, compile_into
from tests.support.installed import ROOT
from tests.support.processes import run_code

PROGRAMS = ROOT / "bazel-bin/tensorflow_plugin/backends/tests"

# The tests of each program that need few kernels: a kernel takes g++ most of a second.
TESTS = {
    "copy_strided_test": "*ByHand:*.Tiles",
    "elementwise_test": "*.GeluChain:*.OutputsOverInputs:*.FailuresAreReported",
    "gather_test": "*.TakesRowsAlongAnAxis:*.ReadsSeveralCoordinates:*.BadIndexIsNamedAndGivesZeros",
    "matmul_test": "*ByHand:*.LongSumsOfFewElements:*.OneLongSumOfFewElements",
    "reduce_test": "*ByHand:*.EmptyGivesTheIdentity",
    "scatter_test": "*ByHand",
    "softmax_test": "*ByHand:*.CrossEntropyBroadcasts:*.InfinitiesAndNan",
}

# The indices of the second gather have been checked for the first one. So graphs have it, though its kernel reports.
TRAINING = """
import os
import numpy as np, tensorflow as tf
import tensorflow_xpu

rng = np.random.default_rng(0)
tokens, labels = rng.integers(0, 20, (4, 6)).astype(np.int32), rng.integers(0, 5, (4, 6)).astype(np.int32)
shapes = [(20, 8), (8, 24), (8, 8), (8, 5), (20, 5)]
start = [rng.normal(0, 0.3, shape).astype(np.float32) for shape in shapes]

def losses(device, steps):
    with tf.device(device):
        table, qkv, out, classes, offsets = weights = [tf.Variable(value) for value in start]
        moments = [tf.Variable(tf.zeros(shape)) for shape in shapes]
        x_of_all, y_of_all = tf.constant(tokens), tf.constant(labels)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                x = tf.gather(table, x_of_all)
                mean, variance = tf.nn.moments(x, -1, keepdims=True)
                y = (x - mean) * tf.math.rsqrt(variance + 1e-5)
                q, k, v = tf.split(y @ qkv, 3, -1)
                x += tf.nn.softmax(tf.matmul(q, k, transpose_b=True)) @ v @ out
                logits = tf.nn.gelu(x) @ classes + tf.gather(offsets, x_of_all)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y_of_all, logits))
            gradients = tape.gradient(loss, weights)
            for weight, moment, gradient in zip(weights, moments, gradients):
                moment.assign(0.9 * moment + tf.convert_to_tensor(gradient))
                weight.assign_sub(0.05 * moment)
            return loss

        return [float(step()) for _ in range(steps)]

expected, seen = losses("/cpu:0", 60), losses("/xpu:0", 60)  # addresses come again after some steps
assert expected[-1] < 0.8 * expected[0], expected
np.testing.assert_allclose(seen, expected, rtol=1e-3)
print("right")
"""

# The replicas add up their gradients in copies from device to device.
MIRRORED = """
import numpy as np, tensorflow as tf
import tensorflow_xpu

assert len(tf.config.list_physical_devices("XPU")) == 2
rng = np.random.default_rng(0)
x, y = rng.normal(size=(8, 6)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32)
start = [rng.normal(0, 0.5, shape).astype(np.float32) for shape in [(6, 16), (16,), (16, 3)]]

def loss_and_gradients(weights, x, y):
    hidden, bias, out = weights
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.relu(x @ hidden + bias) @ out - y)) / 8
    return loss, tape.gradient(loss, weights)

def on_the_cpu(steps):
    losses = []
    with tf.device("/cpu:0"):
        weights = [tf.Variable(value) for value in start]
        for _ in range(steps):
            loss, gradients = loss_and_gradients(weights, x, y)
            for weight, gradient in zip(weights, gradients):
                weight.assign_sub(0.1 * gradient)
            losses.append(float(loss))
    return losses, [weight.numpy() for weight in weights]

def mirrored(steps):
    strategy = tf.distribute.MirroredStrategy(["/xpu:0", "/xpu:1"])
    part = lambda numbers: strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(numbers[4 * context.replica_id_in_sync_group :][:4]))
    parts = part(x), part(y)
    with strategy.scope():
        weights = [tf.Variable(value) for value in start]

    @tf.function
    def step():
        def replica(x, y):
            loss, gradients = loss_and_gradients(weights, x, y)
            gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
            for weight, gradient in zip(weights, gradients):
                weight.assign_sub(0.1 * gradient)
            return loss
        return strategy.reduce("SUM", strategy.run(replica, args=parts), axis=None)

    losses = [float(step()) for _ in range(steps)]
    copies = [strategy.experimental_local_results(weight) for weight in weights]
    for each in copies:
        assert [copy.device[-5:] for copy in each] == ["XPU:0", "XPU:1"], each
    return losses, [[copy.numpy() for copy in each] for each in copies]

expected, weights = on_the_cpu(12)
seen, copies = mirrored(12)
assert expected[-1] < 0.8 * expected[0], expected
np.testing.assert_allclose(seen, expected, rtol=1e-4)
for (first, second), weight in zip(copies, weights):
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, weight, rtol=1e-3, atol=1e-5)
print("right")
"""


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs on the stand-ins, with kernels that compute."""
    folder = tmp_path_factory.mktemp("stand_ins")
    compile_into(folder, {name: LIBRARIES[name] for name in ("libcuda.so.1", "libnvrtc.so.13")})
    (folder / "kernels").mkdir()
    return {
        "TF_XPU_SUBDEVICE": "XPU_CUDA",
        "XPU_TEST_BACKEND": "XPU_CUDA",
        "LD_LIBRARY_PATH": str(folder),
        "LD_PRELOAD": str(folder / "libnvrtc.so.13"),  # or an installed package's would be found
        "XDG_CACHE_HOME": str(folder),
        "STAND_IN_KERNELS": str(folder / "kernels"),
        "STAND_IN_PRELUDE": str(SOURCES / "host_kernel.h"),
    }


def run_program(program: str, tests: str, stand_ins: dict[str, str]) -> None:
    built = (PROGRAMS / program).exists()
    assert built, f"{program} is not built: tools/bazel.sh build //tensorflow_plugin/backends/tests/..."
    command = [str(PROGRAMS / program), f"--gtest_filter={tests}"]
    environment = {**os.environ, **stand_ins}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "XPU_CUDA: " in done.stdout and ", 0 wrong" in done.stdout


@pytest.mark.slow
@pytest.mark.host_only
def test_training_computes_what_the_cpu_does(stand_ins: dict[str, str]) -> None:
    outcome = run_code(TRAINING, environment={**stand_ins, "STAND_IN_LATE": "500"}, timeout=900)
    assert outcome.returncode == 0 and "right" in outcome.stdout, outcome.stderr
    assert len(list(pathlib.Path(stand_ins["STAND_IN_KERNELS"]).glob("*.so"))) > 10


@pytest.mark.slow
@pytest.mark.host_only
@pytest.mark.parametrize("devices", ["STAND_IN_DEVICES", "TF_XPU_DEVICE_COUNT"], ids=["two GPUs", "two devices of one"])
def test_replicas_train_as_one_device_does(stand_ins: dict[str, str], devices: str) -> None:
    outcome = run_code(MIRRORED, environment={**stand_ins, devices: "2", "STAND_IN_LATE": "500"}, timeout=900)
    assert outcome.returncode == 0 and "right" in outcome.stdout, outcome.stderr


@pytest.mark.slow
@pytest.mark.host_only
@pytest.mark.parametrize("program", TESTS)
def test_primitives_compute_what_they_should(stand_ins: dict[str, str], program: str) -> None:
    run_program(program, TESTS[program], stand_ins)


# A kernel turns the second matrix for it, as cuBLASLt wants it.
@pytest.mark.slow
@pytest.mark.host_only
def test_products_of_bytes_by_the_library_are_exact(stand_ins: dict[str, str], tmp_path: pathlib.Path) -> None:
    compile_into(tmp_path, {name: LIBRARIES[name] for name in ("libcublasLt.so.13",)})
    folders = f"{stand_ins['LD_LIBRARY_PATH']}:{tmp_path}"
    run_program("matmul_test", "*.LargeProductsOfBytes", {**stand_ins, "LD_LIBRARY_PATH": folders})
