"""Every model of keras.applications trains for a step on the XPU, as on the CPU."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.support.installed import ROOT
from tests.support.processes import run_code

MODELS = [
    "ConvNeXtBase",
    "ConvNeXtLarge",
    "ConvNeXtSmall",
    "ConvNeXtTiny",
    "ConvNeXtXLarge",
    "DenseNet121",
    "DenseNet169",
    "DenseNet201",
    "EfficientNetB0",
    "EfficientNetB1",
    "EfficientNetB2",
    "EfficientNetB3",
    "EfficientNetB4",
    "EfficientNetB5",
    "EfficientNetB6",
    "EfficientNetB7",
    "EfficientNetV2B0",
    "EfficientNetV2B1",
    "EfficientNetV2B2",
    "EfficientNetV2B3",
    "EfficientNetV2L",
    "EfficientNetV2M",
    "EfficientNetV2S",
    "InceptionResNetV2",
    "InceptionV3",
    "MobileNet",
    "MobileNetV2",
    "MobileNetV3Large",
    "MobileNetV3Small",
    "NASNetLarge",
    "NASNetMobile",
    "ResNet101",
    "ResNet101V2",
    "ResNet152",
    "ResNet152V2",
    "ResNet50",
    "ResNet50V2",
    "VGG16",
    "VGG19",
    "Xception",
]
# The smallest image that a model takes, where that is not 32; at 80 ResNet50V2 met rewrites that it does not at 32.
# The deepest models normalise so few numbers at 32 that a millionth more of them is some percent of the loss.
DEEP = ["EfficientNetB3", "EfficientNetB4", "EfficientNetB5", "EfficientNetB6", "EfficientNetB7"]
DEEP += ["EfficientNetV2L", "EfficientNetV2M", "ResNet101", "ResNet101V2", "ResNet152", "ResNet152V2"]
SIZES = {"InceptionResNetV2": 75, "InceptionV3": 75, "ResNet50V2": 80, "Xception": 71, **dict.fromkeys(DEEP, 64)}
FAST = {"MobileNet"}
# Two larger models with Adam's slots have no room beside each other.
ADAMS_PARAMETERS = 60e6

CLASSES, IMAGES = 10, 4


def build(name, device):
    import keras

    size = SIZES.get(name, 32)
    keras.utils.set_random_seed(1)
    with tf.device(device):
        return getattr(keras.applications, name)(weights=None, classes=CLASSES, input_shape=(size, size, 3))


def images(name):
    rng = np.random.default_rng(0)
    size = SIZES.get(name, 32)
    return rng.uniform(0, 255, (IMAGES, size, size, 3)).astype("float32"), rng.integers(0, CLASSES, IMAGES)


def train(name):
    """A step, in a process that does nothing else."""
    import keras

    x, y = images(name)
    model = build(name, "/xpu:0")
    before = [w.numpy() for w in model.trainable_weights[:3]]
    optimizer = "adam" if model.count_params() < ADAMS_PARAMETERS else "sgd"
    with tf.device("/xpu:0"), placement.record() as ran:
        model.compile(optimizer, "sparse_categorical_crossentropy")
        loss = float(model.train_on_batch(x, y))
    assert placement.compute_ops_on(ran, "XPU")
    assert placement.compute_ops_on(ran, "CPU") == set()
    assert all("XPU" in w.value.device for w in model.weights if w.dtype == "float32")
    assert all(np.isfinite(w.numpy()).all() for w in model.weights)
    assert not all(np.array_equal(a, b.numpy()) for a, b in zip(before, model.trainable_weights))
    # The loss before the step, of the same model on the CPU: the same weights, batch statistics and dropped units.
    model = build(name, "/cpu:0")
    with tf.device("/cpu:0"):
        predictions = model(x, training=True)
        on_cpu = float(tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, predictions)))
    assert loss == pytest.approx(on_cpu, rel=2e-2)


@pytest.mark.host_only
@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
def test_a_training_step(name):
    """Keras keeps the weights of every model that it has trained until its process ends."""
    code = f"import keras\nfrom tests.training import test_applications\ntest_applications.train({name!r})"
    outcome = run_code(code, cwd=ROOT, timeout=1200)
    assert outcome.returncode == 0, outcome


def test_the_list_is_complete():
    import keras

    assert sorted(n for n in dir(keras.applications) if n[0].isupper()) == sorted(MODELS)
