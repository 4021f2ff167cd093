"""tf.distribute over two devices, against one device or the CPU: each in fresh processes. 60 seconds in all."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.support.installed import ROOT
from tests.support.processes import run_code

pytestmark = pytest.mark.host_only

PRELUDE = """
import json
import numpy as np
import tensorflow as tf

DEVICES = ["/xpu:0", "/xpu:1"]
STRATEGIES = {
    "default": lambda: tf.distribute.MirroredStrategy(DEVICES),
    "one device": lambda: tf.distribute.MirroredStrategy(
        DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice()),
    "hierarchical": lambda: tf.distribute.MirroredStrategy(
        DEVICES, cross_device_ops=tf.distribute.HierarchicalCopyAllReduce()),
    "central": lambda: tf.distribute.experimental.CentralStorageStrategy(DEVICES, "/cpu:0"),
    "single": lambda: tf.distribute.OneDeviceStrategy("/xpu:1"),
}
"""


def run(code, **environment):
    """The last output of a program, as JSON, when there are two devices."""
    outcome = run_code(PRELUDE + code, environment={"TF_XPU_DEVICE_COUNT": "2", **environment})
    assert outcome.returncode == 0, outcome
    assert outcome.warnings == [], outcome
    return outcome.json


REDUCTIONS = """
seen = {}
types = ["float32", "float64", "float16", "bfloat16", "int64", "int32"]
for name in ("default", "one device", "hierarchical"):
    strategy = STRATEGIES[name]()

    @tf.function
    def reduced():
        def replica():
            context = tf.distribute.get_replica_context()
            i = context.replica_id_in_sync_group
            value = tf.reshape(tf.range(6.0), [2, 3]) * tf.cast(2 * i + 1, tf.float32)
            out = {}
            for t in types:
                for op in ("SUM", "MEAN"):
                    out[f"{t} {op}"] = context.all_reduce(op, tf.cast(value, t))
            big = tf.fill([300_000], tf.cast(i + 1, tf.float32))
            big = context.all_reduce("SUM", big)
            out["big SUM"] = tf.reduce_max(big) + tf.reduce_min(big)
            out["gather"] = context.all_gather(value[:1], axis=0)
            out["scalar MEAN"] = context.all_reduce("MEAN", tf.cast(i, tf.float32))
            return out
        return strategy.run(replica)

    results = reduced()
    seen[name] = {
        key: [np.asarray(tf.cast(r, tf.float64)).ravel().tolist() for r in strategy.experimental_local_results(value)]
        for key, value in results.items()
    }
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    seen[name]["devices"] = [x.device[-5:] for x in v.values]
    seen[name]["eager"] = strategy.reduce("SUM", strategy.run(lambda: v * 2.0), axis=None).numpy().tolist()
    seen[name]["eager mean"] = strategy.reduce("MEAN", strategy.run(lambda: v[None] * 2.0), axis=0).numpy().tolist()
print(json.dumps(seen))
"""


@pytest.fixture(scope="module", params=["0", "1"], ids=["shared", "isolated"])
def reductions(request, xpu_device):
    return run(REDUCTIONS, TF_XPU_ISOLATE_MEMORY=request.param)


@pytest.mark.parametrize("strategy", ["default", "one device", "hierarchical"])
def test_sums_and_means(reductions, strategy):
    seen = reductions[strategy]
    assert seen["devices"] == ["XPU:0", "XPU:1"]
    base = np.arange(6.0)
    for name in ("float32", "float64", "float16", "bfloat16", "int64", "int32"):
        assert seen[f"{name} SUM"] == [(4 * base).tolist()] * 2, name
        assert seen[f"{name} MEAN"] == [(2 * base).tolist()] * 2, name
    assert seen["big SUM"] == [[6.0]] * 2
    assert seen["scalar MEAN"] == [[0.5]] * 2
    assert seen["gather"] == [[0, 1, 2, 0, 3, 6]] * 2
    assert seen["eager"] == [4, 8]
    assert seen["eager mean"] == [2, 4]


# Four steps over a dataset, with an embedding (whose gradient is sparse), synchronised batch normalisation and dense
# layers. Keras 3 cannot synchronise it under CentralStorageStrategy, on no device. The reference is the same on the CPU
# with the whole batch.
LOOP = """
rng = np.random.default_rng(0)
ids = rng.integers(0, 20, (64, 5))
y = rng.standard_normal((64, 1)).astype("float32")

def train(strategy, normalise):
    tf.keras.utils.set_random_seed(3)
    data = tf.data.Dataset.from_tensor_slices((ids, y)).batch(16)
    with strategy.scope():
        model = tf.keras.Sequential([
            tf.keras.Input((5,), dtype="int64"), tf.keras.layers.Embedding(20, 8), tf.keras.layers.Flatten(),
            *([tf.keras.layers.BatchNormalization(synchronized=True)] if normalise else []),
            tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam(0.01)
        optimizer.build(model.trainable_variables)

    @tf.function
    def step(batch):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / 16
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
            return loss
        return strategy.reduce("SUM", strategy.run(replica, args=batch), axis=None)

    losses = [float(step(batch)) for batch in strategy.experimental_distribute_dataset(data)]
    return losses, [v.numpy().ravel().tolist() for v in model.weights]

cpu = tf.distribute.OneDeviceStrategy("/cpu:0")
expected = {normalise: train(cpu, normalise) for normalise in (False, True)}
seen = {}
for name, make in STRATEGIES.items():
    normalise = name != "central"
    seen[name] = [train(make(), normalise), expected[normalise]]
print(json.dumps(seen))
"""


def test_custom_loops_train_as_one_device_does(xpu_device):
    seen = run(LOOP)
    assert len(seen) == 5
    for name, ((its_losses, its_weights), (losses, weights)) in seen.items():
        assert losses[-1] != losses[0]
        np.testing.assert_allclose(its_losses, losses, rtol=1e-4, err_msg=name)
        for a, b in zip(its_weights, weights, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4, err_msg=name)


FIT = """
x = np.random.default_rng(0).standard_normal((64, 8)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")

def train(strategy):
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    losses = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0).history["loss"]
    return {
        "losses": losses,
        "evaluated": model.evaluate(x, y, batch_size=16, verbose=0),
        "predicted": model.predict(x, batch_size=16, verbose=0).ravel().tolist(),
        "weights": [w.ravel().tolist() for w in model.get_weights()],
        "devices": [v.device[-5:] for v in strategy.experimental_local_results(model.layers[0].kernel.value)],
    }

seen = {"cpu": train(tf.distribute.OneDeviceStrategy("/cpu:0"))}
for name, make in STRATEGIES.items():
    seen[name] = train(make())
print(json.dumps(seen))
"""


@pytest.mark.slow
def test_keras_fit_trains_as_on_one_device(xpu_device):
    seen = run(FIT)
    expected = seen.pop("cpu")
    for name, found in seen.items():
        for a, b in zip(found["weights"], expected["weights"], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=name)
        np.testing.assert_allclose(found["predicted"], expected["predicted"], rtol=1e-3, atol=1e-4, err_msg=name)
        if name == "central":  # Keras 3 aggregates its metrics wrongly there, on CPUs too
            assert found["devices"] == ["CPU:0"]
            continue
        assert found["devices"] == (["XPU:1"] if name == "single" else ["XPU:0", "XPU:1"])
        np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-4, err_msg=name)
        np.testing.assert_allclose(found["evaluated"], expected["evaluated"], rtol=1e-4, err_msg=name)


def free_ports(count):
    """Ports of the loopback interface that nobody uses: they differ, as all are held until all are known."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def run_workers(code, count=2, **environment):
    """The outcomes of `count` processes that form a cluster on the loopback interface."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]

    def worker(index):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        # Proxies are not for addresses of this machine.
        variables = {"TF_CONFIG": json.dumps(cluster), "no_proxy": "*", "no_grpc_proxy": "127.0.0.1", **environment}
        return run_code(code, environment=variables, timeout=120)

    with ThreadPoolExecutor(count) as pool:
        outcomes = list(pool.map(worker, range(count)))
    for outcome in outcomes:
        assert outcome.returncode == 0, outcomes
    return outcomes


WORKER = """
import json
import numpy as np
import tensorflow as tf
import tensorflow_xpu

strategy = tensorflow_xpu.multi_worker_mirrored_strategy()
with strategy.scope():
    w = tf.Variable(tf.ones([8, 1]) * 0.1)
    b = tf.Variable(tf.zeros([1]))
x = np.random.default_rng(0).standard_normal((64, 8)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, (x.sum(1, keepdims=True) > 0).astype("float32"))).batch(16)

@tf.function
def step(batch):
    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b - y)) / 16
        gradients = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, [w, b]))
        for variable, gradient in zip([w, b], gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return strategy.reduce("SUM", strategy.run(replica, args=batch), axis=None)

batches = list(strategy.experimental_distribute_dataset(data))
tf.config.set_soft_device_placement(False)  # what has no kernel on an XPU fails from here on
losses = [float(step(batch)) for batch in batches]
print(json.dumps({
    "replicas": strategy.num_replicas_in_sync,
    "devices": [v.device for v in strategy.experimental_local_results(w)],
    "losses": losses,
    "w": w.numpy().ravel().tolist(),
    "b": b.numpy().tolist(),
}))
"""


@pytest.mark.parametrize("devices", [1, 2])
def test_two_workers_train_as_one_process_does(xpu_device, devices):
    seen = [outcome.json for outcome in run_workers(WORKER, TF_XPU_DEVICE_COUNT=str(devices))]
    for task, worker in enumerate(seen):
        assert worker["replicas"] == 2 * devices
        assert worker["devices"] == [f"/job:worker/replica:0/task:{task}/device:XPU:{i}" for i in range(devices)]
    assert seen[0]["w"] == seen[1]["w"]
    assert seen[0]["b"] == seen[1]["b"]
    assert seen[0]["losses"] == seen[1]["losses"]
    # The same training in numpy, in one process.
    x = np.random.default_rng(0).standard_normal((64, 8)).astype("float32")
    y = x.sum(1, keepdims=True) > 0
    w, b, losses = np.full((8, 1), 0.1), np.zeros(1), []
    for i in range(0, 64, 16):
        error = x[i : i + 16] @ w + b - y[i : i + 16]
        losses.append((error**2).sum() / 16)
        w -= 0.1 * 2 * x[i : i + 16].T @ error / 16
        b -= 0.1 * 2 * error.sum(0) / 16
    np.testing.assert_allclose(seen[0]["w"], w.ravel(), rtol=1e-5)
    np.testing.assert_allclose(seen[0]["b"], b, rtol=1e-5)
    np.testing.assert_allclose(seen[0]["losses"], losses, rtol=1e-5)


def programs():
    """The programs in docs/distribution.md, by section."""
    text = (ROOT / "docs" / "distribution.md").read_text()
    return dict(re.findall(r"^## (.+?)$(?:(?!^## ).)*?^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def test_programs_in_the_documentation(xpu_device):
    mirrored, workers = programs().values()
    outcome = run_code(mirrored, environment={"TF_XPU_DEVICE_COUNT": "2"})
    assert outcome.returncode == 0, outcome
    assert "device:XPU:0" in outcome.stdout and "device:XPU:1" in outcome.stdout, outcome
    first, second = run_workers(workers)
    assert first.stdout == second.stdout
    assert "[" in first.stdout


def test_what_the_documentation_says_does_not_work(xpu_device):
    seen = run(
        """
from tensorflow.experimental import dtensor

def error(f):
    try:
        f()
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {e}"

x = np.ones((8, 2), "float32")
implicit = tf.distribute.MirroredStrategy()
print(json.dumps({
    "implicit": implicit.extended.worker_devices,
    "nccl": error(lambda: tf.distribute.MirroredStrategy(
        DEVICES, cross_device_ops=tf.distribute.NcclAllReduce()).run(
            lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(2)))),
    "dtensor": error(lambda: dtensor.create_mesh([("x", 2)], device_type="XPU")),
}))
"""
    )
    assert all(device.endswith("CPU:0") for device in seen["implicit"])
    assert "No OpKernel was registered to support Op 'NcclAllReduce'" in seen["nccl"], seen
    assert "ValueError: Device type XPU is not CPU, GPU, or TPU" in seen["dtensor"], seen


def test_dtensor_over_a_mesh_of_named_devices(xpu_device):
    """Products and sums over what is spread out, and a training step on replicated weights: errors, per device."""
    seen = run(
        """
from tensorflow.experimental import dtensor

mesh = dtensor.create_mesh([("x", 2)], devices=["XPU:0", "XPU:1"])
rng = np.random.default_rng(0)
a, b = (rng.standard_normal(shape).astype("float32") for shape in ((8, 4), (4, 3)))

def replicated(value):
    return dtensor.copy_to_mesh(value, dtensor.Layout.replicated(mesh, 2))

def spread(value, *dimensions):
    return dtensor.relayout(replicated(value), dtensor.Layout(dimensions, mesh))

def error(tensor, expected):
    return [float(np.abs(part.numpy() - expected).max()) for part in dtensor.unpack(tensor)]

rows, columns = ("x", "unsharded"), ("unsharded", "x")
variable = dtensor.DVariable(replicated(b))

@tf.function
def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.matmul(batch, variable)))
    variable.assign_sub(0.01 * tape.gradient(loss, variable))

step(spread(a, *rows))
print(json.dumps({
    "product": error(tf.matmul(spread(a, *columns), spread(b, *rows)), a @ b),
    "sum": error(tf.reduce_sum(spread(a, *rows)), a.sum()),
    "training": error(variable.read_value(), b - 0.02 * a.T @ (a @ b)),
    "devices": [part.device[-5:] for part in dtensor.unpack(spread(a, *rows))],
}))
"""
    )
    assert seen.pop("devices") == ["XPU:0", "XPU:1"]
    for what, errors in seen.items():
        assert len(errors) == 2 and max(errors) < 1e-5, what


def test_no_xpu_for_the_workers():
    outcome = run_code(
        """
        import tensorflow_xpu
        try:
            tensorflow_xpu.multi_worker_mirrored_strategy()
        except RuntimeError as error:
            print(error)
        """,
        environment={"TF_XPU_DISABLE": "1"},
    )
    assert "no XPU is visible" in outcome.stdout, outcome
