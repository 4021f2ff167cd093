"""Networks with FakeQuant ops multiply bytes, and give what they give in floats.

Where scales are powers of two, and what follows is exact, all results are those of the CPU to the last bit.
"""

from __future__ import annotations

import platform

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_xpu

quantization = tf.quantization

#: Calls after which a function keeps what it computes once.
MANY = 12
SIZE, CHANNELS = 12, 96  # so large that it pays to keep anything


def numbers(shape: tuple[int, ...], step: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-40, 41, shape).astype(np.float32) * np.float32(step)


class Network(tf.Module):
    """A convolution, one for each channel, one of a pixel whose result is added to what came before, and a product.

    `from_step`: the step of the activations' range that stands for 0.
    `ranges_are_attributes`: ops have the ranges of activations as attributes, not as inputs.
    """

    def __init__(self, bits: int = 8, symmetric: bool = True, ranges_are_attributes: bool = False):
        super().__init__()
        self.bits, self.ranges_are_attributes = bits, ranges_are_attributes
        shapes = {"first": (3, 3, 3, CHANNELS), "depthwise": (3, 3, CHANNELS, 1), "pixel": (1, 1, CHANNELS, CHANNELS)}
        shapes["dense"] = (CHANNELS, 10)
        self.weights = {name: tf.Variable(numbers(shape, 0.11, i)) for i, (name, shape) in enumerate(shapes.items())}
        steps = 2**bits - 1
        low = -127 if symmetric else -40
        scale = np.float32(2.0) ** -(np.arange(CHANNELS, dtype=np.float32) % 4 + 1)
        #: Of filters, by channel.
        self.ends = [tf.Variable(low * scale), tf.Variable((254 + low) * scale)]
        #: Of activations: least and greatest number. The scales are 1/8 for the image, 2 and 4 behind it.
        self.ranges = {
            name: tf.Variable([float(-from_step * scale), float((steps - from_step) * scale)])
            for name, from_step, scale in (
                ("first", 100 % steps, 1 / 8),
                ("depthwise", 0, 2),
                ("pixel", 30 % steps, 4),
                ("dense", 0, 16),
            )
        }

    def x(self, value: tf.Tensor, name: str) -> tf.Tensor:
        if self.ranges_are_attributes:
            with tf.init_scope():
                low, high = (float(end) for end in self.ranges[name].numpy())
            return quantization.fake_quant_with_min_max_args(value, low, high, num_bits=self.bits)
        low, high = tf.unstack(self.ranges[name])
        return quantization.fake_quant_with_min_max_vars(value, low, high, num_bits=self.bits)

    def w(self, name: str) -> tf.Tensor:
        weights = self.weights[name]
        columns = CHANNELS if name == "depthwise" else weights.shape[-1]
        rows = tf.reshape(weights, (-1, columns))
        low, high = (end[:columns] for end in self.ends)
        rows = quantization.fake_quant_with_min_max_vars_per_channel(rows, low, high, narrow_range=True)
        return tf.reshape(rows, weights.shape)

    @tf.function
    def __call__(self, image: tf.Tensor) -> tf.Tensor:
        y = tf.nn.conv2d(self.x(image, "first"), self.w("first"), 1, "SAME")
        y = tf.nn.relu6(y * 0.0625) * 64.0
        z = tf.nn.depthwise_conv2d(self.x(y, "depthwise"), self.w("depthwise"), (1, 1, 1, 1), "SAME")
        z = tf.nn.bias_add(z, tf.range(CHANNELS, dtype=tf.float32))
        y = tf.nn.relu(tf.nn.conv2d(self.x(z, "pixel"), self.w("pixel"), 1, "VALID") + y)
        return self.x(y[:, 3, 4], "dense") @ self.w("dense")


def on(device: str, *args, **kwargs) -> Network:
    with tf.device(device):
        return Network(*args, **kwargs)


def call(network: Network, device: str, image: np.ndarray, from_host: bool = False) -> np.ndarray:
    with tf.device(device):
        return network(image if from_host else tf.constant(image)).numpy()


def commands(network: Network, image: np.ndarray, folder, from_host: bool = False) -> list[str]:
    with tensorflow_xpu.profile(folder) as profile:
        call(network, "/xpu:0", image, from_host)
    return [event.name for event in profile.events if event.kind == "command"]


IMAGES = [numbers((2, SIZE, SIZE, 3), 0.3, seed) for seed in (5, 6)]


def compare(network: Network, reference: Network) -> None:
    for image in IMAGES:
        np.testing.assert_array_equal(call(network, "/xpu:0", image), call(reference, "/cpu:0", image))


def multiplies_bytes() -> bool:
    """The device has a fast form of such convolutions."""
    device = next(d for d in tensorflow_xpu.list_physical_devices() if d.device_type == "XPU" and d.enabled)
    return device.subdevice_type == "XPU_HOST" and platform.machine() == "x86_64"


@pytest.mark.parametrize("ranges_are_attributes", [False, True], ids=["", "ranges in attributes"])
@pytest.mark.parametrize("symmetric", [True, False], ids=["", "filters without symmetry"])
@pytest.mark.parametrize("bits", [8, 4])
def test_results_are_those_of_the_cpu(bits, symmetric, ranges_are_attributes):
    network, reference = (on(device, bits, symmetric, ranges_are_attributes) for device in ("/xpu:0", "/cpu:0"))
    for _ in range(MANY):
        compare(network, reference)


@pytest.mark.parametrize("ranges_are_attributes", [False, True], ids=["", "ranges in attributes"])
def test_bytes_are_multiplied_and_made_by_epilogues(ranges_are_attributes, tmp_path):
    network = on("/xpu:0", ranges_are_attributes=ranges_are_attributes)
    for _ in range(MANY):
        call(network, "/xpu:0", IMAGES[0])
    names = commands(network, IMAGES[0], tmp_path)
    products = [name for name in names if name.startswith(("Convolution", "MatMul"))]
    if not multiplies_bytes():
        assert not any("uint8" in name for name in names)
        return
    assert len(products) == 4, names
    assert all("Convolution of uint8 and int8 to int32" in name for name in products), names
    # Those between them are parts of the products. The last one reads a part of what the third one makes.
    assert sum("with an epilogue" in name for name in products) >= 3, names


def test_what_is_assigned_is_seen():
    network, reference = on("/xpu:0"), on("/cpu:0")
    for _ in range(MANY):
        compare(network, reference)
    for name in network.weights:
        for each in (network, reference):
            each.weights[name].assign(each.weights[name][..., ::-1] * 0.75)
        compare(network, reference)
    for name, low, high in (("first", -8.0, 255 / 4 - 8.0), ("pixel", -40.0, 215.0), ("dense", 0.0, 510.0)):
        for each in (network, reference):
            each.ranges[name].assign([low, high])
        compare(network, reference)
        compare(network, reference)


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("name", ["first", "pixel", "dense"])
@pytest.mark.parametrize(
    "ends", [(NAN, 1.0), (-1.0, NAN), (-INFINITY, 1.0), (-1.0, INFINITY), (1.0, -1.0), (0.0, 0.0), (-8.0, -4.0)]
)
def test_strange_ranges(name, ends):
    network, reference = on("/xpu:0"), on("/cpu:0")
    for each in (network, reference):
        each.ranges[name].assign(ends)
    for _ in range(MANY):
        call(network, "/xpu:0", IMAGES[0])
    for image in IMAGES:
        got, want = call(network, "/xpu:0", image), call(reference, "/cpu:0", image)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.nanmax(np.abs(want), initial=0))


#: Calls with an input that is not finite, after which a cluster stays in floats.
MOST_IN_FLOATS = 4


@pytest.mark.parametrize("value", [NAN, INFINITY, -INFINITY])
def test_images_that_are_not_finite(value, tmp_path):
    """Such calls run in floats, and after some of them all calls do."""
    network, reference = on("/xpu:0"), on("/cpu:0")
    for _ in range(MANY):
        compare(network, reference)
    for calls in range(MOST_IN_FLOATS + 2):
        image = IMAGES[0].copy()
        image[0, 3, calls, 1] = value
        np.testing.assert_array_equal(call(network, "/xpu:0", image), call(reference, "/cpu:0", image))
        compare(network, reference)
        names = commands(network, IMAGES[0], tmp_path / str(calls))
        in_bytes = multiplies_bytes() and calls + 1 < MOST_IN_FLOATS
        assert any("uint8 and int8" in name for name in names) == in_bytes, (calls, names)


def test_images_of_the_host(tmp_path):
    """An image that is copied to the device by the cluster."""
    network, reference = on("/xpu:0"), on("/cpu:0")
    for i in range(MANY + 4):
        image = IMAGES[i % 2].copy()
        image[0, 3, 4, 1] = NAN if i == MANY else 1
        got = call(network, "/xpu:0", image, from_host=True)
        np.testing.assert_array_equal(got, call(reference, "/cpu:0", image))
    names = commands(network, IMAGES[0], tmp_path, from_host=True)
    assert sum("uint8 and int8" in name for name in names) == (4 if multiplies_bytes() else 0), names


@pytest.mark.parametrize("name", ["first", "depthwise", "pixel", "dense"])
def test_weights_that_are_not_finite(name):
    network, reference = on("/xpu:0"), on("/cpu:0")
    for each in (network, reference):
        weights = each.weights[name].numpy()
        weights.flat[7] = NAN
        each.weights[name].assign(weights)
    for _ in range(MANY):
        compare(network, reference)


def test_values_that_become_nan_between_products():
    """The image is finite, and so are all weights."""

    class Rooted(tf.Module):
        def __init__(self):
            super().__init__()
            self.network, self.count = Network(), tf.Variable(0.0)

        @tf.function
        def __call__(self, image):
            network = self.network
            y = tf.nn.conv2d(network.x(image, "first"), network.w("first"), 1, "SAME")
            y = tf.sqrt(y + 8.0)  # of some negative numbers
            self.count.assign_add(1.0)
            return tf.nn.depthwise_conv2d(network.x(y, "depthwise"), network.w("depthwise"), (1, 1, 1, 1), "SAME")

    results = {}
    for device in ("/xpu:0", "/cpu:0"):
        with tf.device(device):
            network = Rooted()
            results[device] = [network(tf.constant(IMAGES[i % 2])).numpy() for i in range(MANY)]
            assert network.count.numpy() == MANY
    assert np.isnan(results["/cpu:0"]).any()
    np.testing.assert_allclose(results["/xpu:0"], results["/cpu:0"], rtol=1e-5)


def test_weights_in_training_are_those_of_the_step(tmp_path):
    """Filters that change in every step are floats, and gradients pass."""

    def train(device: str) -> tuple[np.ndarray, list[np.ndarray]]:
        network = on(device)

        @tf.function
        def step(image):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(network(image)) * 2.0**-12
            weights = list(network.weights.values())
            for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(gradient)
            return loss

        with tf.device(device):
            losses = [step(tf.constant(IMAGES[i % 2])).numpy() for i in range(4)]
        return np.array(losses), [weight.numpy() for weight in network.weights.values()]

    (losses, weights), (want, wanted) = train("/xpu:0"), train("/cpu:0")
    np.testing.assert_allclose(losses, want, rtol=1e-4)
    for got, expected in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
