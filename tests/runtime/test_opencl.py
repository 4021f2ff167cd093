"""The OpenCL backend under TensorFlow: on PoCL, a driver for the processor, where there is no other device."""

import pytest

from tests.support import missing_capabilities
from tests.support.installed import ROOT
from tests.support.processes import run, run_code

pytestmark = [
    pytest.mark.without_isolation,
    pytest.mark.host_only,
    pytest.mark.usefixtures("opencl_driver"),
]
OPENCL = {"TF_XPU_SUBDEVICE": "XPU_OPENCL"}


def test_a_layer_and_its_gradient():
    """Values by numpy; each of these ops really runs there."""
    outcome = run_code(
        """
        import json
        import numpy as np, tensorflow as tf
        random = np.random.default_rng(0)
        x, w = (random.standard_normal(s, np.float32) for s in ((37, 70), (70, 45)))

        def step(x, w):
            with tf.GradientTape() as tape:
                tape.watch(w)
                y = tf.nn.relu(x @ w)
                z = y * y
            return y, tape.gradient(z, w)

        def on(run):
            with tf.device("/xpu:0"):
                y, gradient = run(tf.constant(x), tf.constant(w))
            assert y.device.endswith("XPU:0") and gradient.device.endswith("XPU:0"), (y.device, gradient.device)
            want = np.maximum(x.astype(np.float64) @ w, 0)
            wanted = x.T.astype(np.float64) @ (2 * want)
            assert np.count_nonzero(want) > 500
            pairs = (y, want), (gradient, wanted)
            return [float(np.max(np.abs(a.numpy() - b)) / np.max(np.abs(b))) for a, b in pairs]

        tf.config.set_soft_device_placement(False)
        errors = on(step) + on(tf.function(step)) + on(tf.function(step))
        print(json.dumps(errors))
        """,
        environment=OPENCL,
    )
    assert outcome.returncode == 0, outcome
    assert max(outcome.json) < 70 * 2**-23, outcome  # sums of so many products, each rounded once
    assert outcome.warnings == []


# Layers of a network, the shape of what they classify, and steps an epoch.
NETWORKS = {
    "dense": ('[layers.Dense(64, activation="relu"), layers.Dense(10)]', (32,), 32),
    "convolutional": (
        """[
            layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3, strides=2, padding="same"), layers.LayerNormalization(),
            layers.Conv2D(24, 1, activation="gelu"), layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(10),
        ]""",
        (12, 12, 3),
        8,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_a_keras_classifier_with_adam_trains_as_on_the_cpu(network):
    layers, shape, steps = NETWORKS[network]
    outcome = run_code(
        f"""
        import json
        import numpy as np, tensorflow as tf
        shape, steps = {shape}, {steps}
        random = np.random.default_rng(0)
        y = random.integers(10, size=64 * steps)
        x = random.standard_normal((64 * steps, *shape), np.float32)
        x += random.standard_normal((10, *shape), np.float32)[y]

        def train(device):
            tf.keras.utils.set_random_seed(1)
            layers = tf.keras.layers
            with tf.device(device):
                model = tf.keras.Sequential({layers})
                loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
                model.compile(tf.keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
                history = model.fit(x, y, epochs=6, batch_size=64, verbose=0, shuffle=False).history
            assert device[1:].upper() in model.variables[0].value.device, model.variables[0].value.device
            return history["loss"], history["accuracy"][-1]

        print(json.dumps([train("/xpu:0"), train("/cpu:0")]))
        """,
        environment=OPENCL,
    )
    (losses, accuracy), (expected, expected_accuracy) = outcome.json
    assert expected[-1] < 0.6 * expected[0]
    assert losses == pytest.approx(expected, rel=1e-4)  # roundings of all steps
    assert accuracy == pytest.approx(expected_accuracy, abs=0.005)


def test_data_that_an_op_cannot_work_on_is_its_error():
    outcome = run_code(
        """
        import json
        import tensorflow as tf
        with tf.device("/xpu:0"):
            a, b = tf.constant([7, 8, 9], tf.int64), tf.constant([2, 0, 2], tf.int64)
            try:
                print(a // b)
            except tf.errors.InvalidArgumentError as error:
                print(json.dumps([error.message, (a // (b + 1)).numpy().tolist()]))
        """,
        environment=OPENCL,
    )
    message, right = outcome.json
    assert "Integer division by zero" in message
    assert right == [2, 8, 3]


def test_an_allocation_beyond_the_limit_is_an_error_and_the_device_goes_on():
    outcome = run_code(
        """
        import json
        import tensorflow as tf
        with tf.device("/xpu:0"):
            try:
                tf.zeros([1 << 26]) + 1
            except tf.errors.ResourceExhaustedError as error:
                print(json.dumps(float((tf.zeros([1 << 10]) + 1)[5])))
        """,
        environment={**OPENCL, "TF_XPU_MEMORY_LIMIT": "64MiB"},
    )
    assert outcome.json == 1, outcome


def test_a_device_that_there_is_not_costs_one_line():
    outcome = run_code(
        "import tensorflow as tf, json; print(json.dumps(len(tf.config.list_physical_devices('XPU'))))",
        environment={**OPENCL, "TF_XPU_OPENCL_DEVICE": "no such device"},
    )
    assert outcome.json >= 1
    (line,) = outcome.warnings
    assert (
        "TF_XPU_OPENCL_DEVICE=no such device is ignored: expected a part of the name or the number of one of 0:" in line
    )


def test_without_a_driver_there_is_no_device_no_noise_and_the_doctor_knows_why():
    none = {**OPENCL, "OCL_ICD_VENDORS": "/nowhere/"}
    code = "import tensorflow as tf, json; print(json.dumps([d.name for d in tf.config.list_physical_devices()]))"
    outcome = run_code(code, environment=none)
    assert outcome.returncode == 0
    assert outcome.json == ["/physical_device:CPU:0"]
    assert outcome.warnings == []
    outcome = run("-m", "tensorflow_xpu", "doctor", environment=none)
    assert outcome.returncode == 1
    assert "TensorFlow lists no XPU: no OpenCL driver on this machine has a device" in outcome.stdout, outcome


def test_kernels_that_are_missing_are_of_what_it_may_lack():
    """An op that needs nothing of that, and has no kernel, would run on the CPU without a word."""
    code = """
        import json
        from tests.sweep.registrations import all_registrations
        print(json.dumps([str(registration) for registration in all_registrations()]))
    """
    there, all_there = (
        frozenset(run_code(code, environment={"TF_XPU_SUBDEVICE": backend}, cwd=ROOT).json)
        for backend in ("XPU_OPENCL", "XPU_HOST")
    )
    assert there <= all_there
    assert missing_capabilities.unexplained(all_there - there, there) == []
    assert [what for what, lack in missing_capabilities.MAY_LACK.items() if lack.kernel not in all_there] == []


def test_a_kernel_that_is_missing_by_mistake_is_found():
    gamma = "ParameterizedTruncatedNormal(dtype=float32)"
    missing, there = ["Mul(T=complex64)", "MatMul(T=float32)", gamma], frozenset({"AddV2(T=complex64)"})
    assert missing_capabilities.unexplained(missing, there) == ["MatMul(T=float32)", "Mul(T=complex64)"]
    there |= {"StatelessRandomGammaV3(dtype=float32)"}
    assert missing_capabilities.unexplained(missing, there) == ["MatMul(T=float32)", "Mul(T=complex64)", gamma]
