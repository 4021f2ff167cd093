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


@pytest.mark.slow
@pytest.mark.host_only
def test_training_computes_what_the_cpu_does(stand_ins: dict[str, str]) -> None:
    outcome = run_code(TRAINING, environment={**stand_ins, "STAND_IN_LATE": "500"}, timeout=900)
    assert outcome.returncode == 0 and "right" in outcome.stdout, outcome.stderr
    assert len(list(pathlib.Path(stand_ins["STAND_IN_KERNELS"]).glob("*.so"))) > 10


@pytest.mark.slow
@pytest.mark.host_only
@pytest.mark.parametrize("program", TESTS)
def test_primitives_compute_what_they_should(stand_ins: dict[str, str], program: str) -> None:
    built = (PROGRAMS / program).exists()
    assert built, f"{program} is not built: tools/bazel.sh build //tensorflow_plugin/backends/tests/..."
    command = [str(PROGRAMS / program), f"--gtest_filter={TESTS[program]}"]
    environment = {**os.environ, **stand_ins}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "XPU_CUDA: " in done.stdout and ", 0 wrong" in done.stdout
