"""Names of devices, and several of them (TF_XPU_DEVICE_COUNT), each number in a process of its own."""

import re

import numpy as np
import pytest

from tests.support.installed import is_bus
from tests.support.missing_capabilities import BACKEND
from tests.support.processes import run_code


def run(code, count, **environment):
    """The last output of a program, as JSON, when there are `count` devices."""
    prelude = "import json\nimport numpy as np\nimport tensorflow as tf\ntf.config.set_soft_device_placement(False)\n"
    variables = {"TF_XPU_DEVICE_COUNT": str(count), "TF_XPU_MEMORY_LIMIT": "512MiB", **environment}
    outcome = run_code(prelude + code, environment=variables)
    assert outcome.returncode == 0, outcome
    assert outcome.warnings == [], outcome
    return outcome.json


@pytest.fixture(scope="module", params=["0", "1"], ids=["shared", "isolated"])
def four(request, xpu_device):
    """A program's view of four devices."""
    return run(
        """
import tensorflow_xpu
from tensorflow.python.client import device_lib

seen = {
    "physical": [d.name for d in tf.config.list_physical_devices("XPU")],
    "logical": [d.name for d in tf.config.list_logical_devices("XPU")],
    "described": [vars(d) for d in tensorflow_xpu.list_physical_devices("XPU", enabled=True)],
    "local": {d.name: d.physical_device_desc for d in device_lib.list_local_devices()},
}

# Memory of their own.
def in_use():
    return [tensorflow_xpu.memory_info(i).current for i in range(4)]
before = in_use()
with tf.device("/xpu:2"):
    kept = tf.zeros([1 << 20]) + 1
seen["grown"] = [b - a for a, b in zip(before, in_use())]
del kept
seen["full"] = []
for i in range(4):  # no device could hold two of these
    with tf.device(f"/xpu:{i}"):
        seen["full"].append(tf.fill([40 << 20], float(i)))
for i in range(4):
    with tf.device(f"/xpu:{i}"):
        seen["full"][i] = [float(tf.reduce_min(seen["full"][i])), float(tf.reduce_max(seen["full"][i]))]

# Each hop multiplies by a matrix of 1/256 (the work that is queued when the copy is asked for) and adds 1.
n = 256
matrices = []
for i in range(4):
    with tf.device(f"/xpu:{i}"):
        matrices.append(tf.fill([n, n], 1.0 / n))

def ring(x):
    for hop in range(24):
        with tf.device(f"/xpu:{hop % 4}"):
            for _ in range(3):
                x = tf.linalg.matmul(x, matrices[hop % 4])
            x = x + 1.0
    return x

with tf.device("/xpu:0"):
    start = tf.zeros([n, n])
seen["ring"] = [sorted(set(f(start).numpy().ravel().tolist())) for f in (ring, tf.function(ring))]

# Tensors that die while copies of them are queued: their memory is taken by others at once.
def exchange(rounds):
    wrong = 0
    for r in range(rounds):
        moved = []
        for i in range(4):
            with tf.device(f"/xpu:{i}"):
                made = tf.fill([n, n], float(r)) * tf.fill([n, n], float(i))
            with tf.device(f"/xpu:{(i + 1) % 4}"):
                moved.append(tf.identity(made))
        wrong += sum(not np.all(m.numpy() == r * i) for i, m in enumerate(moved))
    return wrong
seen["wrong"] = exchange(40)
print(json.dumps(seen))
""",
        4,
        TF_XPU_ISOLATE_MEMORY=request.param,
    )


def test_are_listed(four):
    assert four["physical"] == [f"/physical_device:XPU:{i}" for i in range(4)]
    assert four["logical"] == [f"/device:XPU:{i}" for i in range(4)]
    for i in range(4):
        assert re.match(rf"device: {i}, name: XPU_\w+, ", four["local"][f"/device:XPU:{i}"])


def test_are_described(four):
    described = four["described"]
    buses = [d["bus_id"] for d in described]
    assert len(buses) == 4 and all(is_bus(bus, i) for i, bus in enumerate(buses)), buses
    for device in described:
        assert device["memory_total"] == 512 << 20
        if BACKEND == "XPU_OPENCL":  # which measures nothing
            assert device["bandwidth_bytes_per_s"] is device["gflops"] is None
        else:
            assert 1e8 < device["bandwidth_bytes_per_s"] < 1e13
            assert 0.01 < device["gflops"] < 1e5
        assert device["numa_node"] is None or device["numa_node"] >= 0


def test_have_memory_of_their_own(four):
    assert [round(grown / 2**20) for grown in four["grown"]] == [0, 0, 4, 0]
    assert four["full"] == [[i, i] for i in range(4)]


def test_copies_wait_for_queued_work(four):
    """Every hop's matrices have equal entries, so each product leaves the values as they are."""
    assert four["ring"] == [[24.0], [24.0]]


def test_memory_is_not_reused_under_a_copy(four):
    assert four["wrong"] == 0


def test_every_spelling_of_a_name_is_the_device(xpu_device):
    import tensorflow as tf

    tripled = tf.function(lambda x: x * 3.0)
    for name in ("/xpu:0", "/XPU:0", "xpu:0", "/device:XPU:0", "/device:xpu:0", tf.DeviceSpec.from_string("/XPU:0")):
        with tf.device(name):
            for made in (tf.ones([2]) * 2.0, tf.Variable([1.0]), tripled(tf.ones([2]))):
                assert made.device.endswith("/device:XPU:0"), name


def test_a_subset_can_be_made_visible(xpu_device):
    """TensorFlow numbers the devices that it sees from 0, in the order of the physical ones."""
    seen = run(
        """
from tensorflow.python.client import device_lib
from tensorflow.python.eager import context

physical = tf.config.list_physical_devices("XPU")
tf.config.set_visible_devices([physical[2], physical[1]], "XPU")
with tf.device("/xpu:1"):
    value = float(tf.reduce_sum(tf.ones(8) + 1))
try:
    with tf.device("/xpu:2"):
        tf.ones(8) + 1
    third = "works"
except (ValueError, tf.errors.InvalidArgumentError) as error:
    third = str(error)
local = device_lib.list_local_devices(context.context().config)
print(json.dumps({
    "visible": [d.name for d in tf.config.get_visible_devices("XPU")],
    "logical": [d.name for d in tf.config.list_logical_devices("XPU")],
    "local": [d.physical_device_desc.split(",")[0] for d in local if d.device_type == "XPU"],
    "value": value,
    "third": third,
}))
""",
        3,
    )
    assert seen["visible"] == ["/physical_device:XPU:2", "/physical_device:XPU:1"]
    assert seen["logical"] == ["/device:XPU:0", "/device:XPU:1"]
    assert seen["local"] == ["device: 1", "device: 2"]
    assert seen["value"] == 16
    assert "XPU:2" in seen["third"]


@pytest.mark.host_only
def test_visible_device_list(xpu_device):
    """The option of TensorFlow 1 sessions, which may also change the order."""
    seen = run(
        """
config = tf.compat.v1.ConfigProto()
config.pluggable_device_options.visible_device_list = "2,0"
with tf.Graph().as_default(), tf.device("/device:XPU:0"):
    y = tf.constant(3.0) + 4
    with tf.compat.v1.Session(config=config) as session:
        devices = [d.name[-5:] for d in session.list_devices() if d.device_type == "XPU"]
        value = float(session.run(y))
from tensorflow.python.client import device_lib
local = device_lib.list_local_devices(config)
bad = tf.compat.v1.ConfigProto()
bad.pluggable_device_options.visible_device_list = "7"
try:
    with tf.Graph().as_default():
        tf.compat.v1.Session(config=bad)
    message = ""
except tf.errors.InvalidArgumentError as error:
    message = str(error)
local = [d.physical_device_desc.split(",")[0] for d in local if d.device_type == "XPU"]
print(json.dumps({"devices": devices, "value": value, "local": local, "message": message}))
""",
        3,
    )
    assert seen["devices"] == ["XPU:0", "XPU:1"]
    assert seen["value"] == 7
    assert seen["local"] == ["device: 2", "device: 0"]
    assert "'7'" in seen["message"]


@pytest.mark.host_only
def test_as_many_as_there_can_be(xpu_device):
    seen = run(
        """
import time
start = time.perf_counter()
count = len(tf.config.list_logical_devices("XPU"))
created = time.perf_counter() - start
total = None
for i in range(count):
    with tf.device(f"/xpu:{i}"):
        total = tf.fill([1000], float(i)) + (0.0 if total is None else total)
print(json.dumps([count, created, total.device[-6:], total.numpy().tolist()]))
""",
        64,
        TF_XPU_MEMORY_LIMIT="16MiB",
    )
    count, created, device, values = seen
    assert (count, device) == (64, "XPU:63")
    assert np.all(np.array(values) == 63 * 64 / 2)
    assert created < 20, created
