"""Bad input gives TensorFlow's usual error or one warning that names the value; nothing is lost, the process lives."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import run_code

LIST_DEVICES = """
import json
import tensorflow as tf
with tf.device("/xpu:0"):
    assert float(tf.reduce_sum(tf.ones(8) + 1)) == 16
print(json.dumps([d.name for d in tf.config.list_physical_devices("XPU")]))
"""


@pytest.fixture
def exact_placement():
    tf.config.set_soft_device_placement(False)
    yield
    tf.config.set_soft_device_placement(True)


@pytest.fixture(autouse=True)
def the_device_still_works(xpu_device):
    with tf.device(xpu_device):
        kept = tf.constant([1.0, 2.0])
        variable = tf.Variable([3.0])
    yield
    with tf.device(xpu_device):
        assert (kept + variable).numpy().tolist() == [4, 5]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("TF_XPU_DEVICE_COUNT", "abc", "expected a whole number from 1 to 64"),
        ("TF_XPU_DEVICE_COUNT", "-1", "expected a whole number from 1 to 64"),
        ("TF_XPU_DEVICE_COUNT", "1000000", "expected a whole number from 1 to 64"),
        ("TF_XPU_SUBDEVICE", "XPU_BANANA", "expected XPU_HOST or XPU_REFERENCE"),
        ("TF_XPU_MEMORY_LIMIT", "plenty", "expected bytes"),
    ],
)
def test_environment(name, value, expected):
    outcome = run_code(LIST_DEVICES, environment={name: value})
    assert outcome.returncode == 0, outcome
    assert outcome.json == ["/physical_device:XPU:0"]
    assert len(outcome.warnings) == 1, outcome
    assert f"{name}={value} is ignored: {expected}" in outcome.warnings[0]


def test_a_device_that_there_is_not(exact_placement):
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=r"(?i)xpu:9"), tf.device("/xpu:9"):
        tf.constant(1.0) + 1


def test_a_device_that_there_is_not_with_soft_placement():
    with tf.device("/device:XPU:9"):
        assert float(tf.constant(1.0) + 1) == 2


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.linalg.matmul(tf.ones((2, 3)), tf.ones((4, 5))),
        lambda: tf.ones((2, 3)) + tf.ones((4, 5)),
        lambda: tf.nn.conv2d(tf.ones((1, 4, 4, 3)), tf.ones((2, 2, 5, 7)), 1, "VALID"),
        lambda: tf.reshape(tf.ones((2, 3)), (4, 4)),
        lambda: tf.concat([tf.ones((2, 3)), tf.ones((3, 2))], 0),
    ],
    ids=["matmul", "add", "conv2d", "reshape", "concat"],
)
def test_incompatible_shapes(xpu_device, compiled, call):
    with tf.device(xpu_device), pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        tf.function(call)() if compiled else call()


def test_incompatible_shapes_found_while_running(xpu_device):
    """Shapes that only the running op can compare."""

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec(None)])
    def product(a, b):
        return tf.linalg.matmul(a, b)

    with tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)2.*3.*4.*5"):
        product(tf.ones((2, 3)), tf.ones((4, 5)))


def test_a_type_that_the_op_has_not(xpu_device, exact_placement):
    text = tf.constant(["a"])
    with tf.device(xpu_device), pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError, TypeError)):
        tf.raw_ops.Exp(x=text)


def test_types_that_do_not_match(xpu_device):
    with tf.device(xpu_device), pytest.raises((tf.errors.InvalidArgumentError, TypeError), match="float"):
        tf.constant(1.0) + tf.constant(1.0, tf.float64)


def test_more_memory_than_there_is():
    outcome = run_code(
        """
        import json
        import tensorflow as tf
        said = []
        with tf.device("/xpu:0"):
            kept = tf.range(1000, dtype=tf.float32)
            for shape in ((1024, 1024, 1024), (4096, 4096, 4096, 4096)):
                try:
                    tf.fill(shape, 1.0)
                except (tf.errors.ResourceExhaustedError, tf.errors.InvalidArgumentError) as error:
                    said.append(type(error).__name__ + str(error)[:200])
            assert float(tf.reduce_sum(kept)) == 499500
        print(json.dumps(said))
        """,
        environment={"TF_XPU_MEMORY_LIMIT": "512MiB"},
    )
    assert outcome.returncode == 0, outcome
    assert len(outcome.json) == 2, outcome
    assert "ResourceExhausted" in outcome.json[0], outcome
    assert "1024,1024,1024" in outcome.json[0], outcome


def test_an_index_out_of_range(xpu_device):
    values = np.arange(4, dtype=np.float32)
    with tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError, match="7"):
        tf.gather(tf.constant(values), tf.constant([1, 7])).numpy()
