"""The checks of ``selftest``: functions that return what they found, or raise a ``TaskError``."""

from __future__ import annotations

import functools
import gc
import os
import pathlib
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorflow_xpu
from tensorflow_xpu import _op_checks
from tensorflow_xpu._core import loader_report
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu._worker import TaskError

MEBI = 1 << 20


def _xpu(index: int = 0) -> str:
    return f"/device:{device_type()}:{index}"


def _require(holds: Any, text: str) -> None:
    if not holds:
        raise TaskError(text)


def _same(found: Any, right: Any, what: str, tolerance: float = 0.0) -> None:
    found, right = np.asarray(found), np.asarray(right)
    _require(found.shape == right.shape, f"{what}: the shape is {found.shape} instead of {right.shape}")
    wrong = ~(np.abs(found - right) <= tolerance * np.maximum(np.abs(right), 1e-30))
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise TaskError(f"{what}: element {list(place)} is {found[place]} instead of {right[place]}")


def devices(tf: Any) -> str:
    """The devices that TensorFlow lists, and the library behind them."""
    report = loader_report()
    _require(report is not None, "TensorFlow did not load the plugin")
    assert report is not None
    _require(report["active"], f"the plugin offers no devices: {report['reason']}")
    listed = tensorflow_xpu.list_physical_devices(device_type(), enabled=True)
    _require(listed, f"TensorFlow lists no {device_type()}")
    first = listed[0]
    _require(first.memory_total, f"{first.name} has no memory")
    logical = tensorflow_xpu.list_logical_devices(device_type())
    _require(len(logical) == len(listed), f"{len(listed)} physical devices, but {len(logical)} logical ones")
    facts = [f"{len(listed)} {device_type()}", first.subdevice_type, first.hardware_name, first.instruction_set]
    return ", ".join([*map(str, facts), f"{(first.memory_total or 0) / 2**30:.1f} GiB"])


def copies(tf: Any) -> str:
    """To the device and back, to the last bit, at sizes on both sides of pages and of what is copied in parts."""
    rng = np.random.default_rng(1)
    sizes = (0, 1, 63, 4096, 4097, MEBI + 3, 16 * MEBI + 1)
    for size in sizes:
        sent = rng.integers(0, 256, size, np.uint8)
        with tf.device(_xpu()):
            there = tf.identity(tf.constant(sent))
        _require(there.backing_device.upper().endswith(_xpu().upper()), f"the copy is on {there.backing_device}")
        _same(there.numpy(), sent, f"{size} bytes to the device and back")
    return f"{len(sizes)} sizes up to {sizes[-1] >> 20} MiB, to the last bit"


def order(tf: Any) -> str:
    """Work that is queued while copies and frees go on sees what was written before it."""
    with tf.device(_xpu()):
        total, expected = tf.zeros([1000]), np.zeros(1000, np.float32)
        for step in range(200):
            addend = np.full(1000, step % 7, np.float32)
            total = total + tf.constant(addend)
            expected += addend
            if step % 50 == 0:
                _same(total.numpy(), expected, f"the sum after step {step}")
    _same(total.numpy(), expected, "the sum after 200 steps")
    return "200 steps with copies between them"


def threads(tf: Any) -> str:
    """Several threads use one device at once."""
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        with tf.device(_xpu()):
            x = tf.fill([64, 64], float(number))
            for _ in range(20):
                x = tf.linalg.matmul(x, tf.eye(64)) + 1.0
            found[number] = x.numpy()

    workers = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for number in range(4):
        _require(number in found, f"thread {number} ended with an error")
        _same(found[number], np.full((64, 64), number + 20.0), f"thread {number}")
    return "4 threads"


def training(tf: Any) -> str:
    """Steps of a small network: losses as on the CPU, the weights and all that computes on the device."""
    import keras

    rng = np.random.default_rng(3)
    images, labels = rng.random((48, 12, 12, 3)).astype(np.float32), rng.integers(0, 5, 48)
    layers = keras.layers

    def losses(device: str) -> list[float]:
        keras.utils.set_random_seed(0)
        with tf.device(device):
            model = keras.Sequential(
                [
                    keras.Input((12, 12, 3)),
                    layers.Conv2D(8, 3, padding="same"),
                    layers.BatchNormalization(),
                    layers.ReLU(),
                    layers.MaxPooling2D(),
                    layers.Flatten(),
                    layers.Dense(5),
                ]
            )
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            history = model.fit(images, labels, batch_size=16, epochs=3, shuffle=False, verbose=0)
        for weight in model.trainable_weights:
            where = weight.value.device
            _require(where.upper().endswith(device.upper()), f"the weight {weight.path} is on {where}")
        return [float(value) for value in history.history["loss"]]

    right = losses("/device:CPU:0")
    with tensorflow_xpu.trace_placement() as report:
        found = losses(_xpu())
    _same(found, right, "the losses of three epochs", 2e-3)
    _require(found[-1] < found[0], f"the losses do not fall: {found}")
    try:
        report.assert_all_on_xpu()
    except AssertionError as error:
        raise TaskError(" ".join(str(error).split())) from error
    return (
        f"losses {found[0]:.4f} to {found[-1]:.4f} as on the CPU, {report.on_xpu()} ops on the device, none elsewhere"
    )


def saving(tf: Any) -> str:
    """Variables of the device to a file and back."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tf.device(_xpu()), tempfile.TemporaryDirectory() as folder:
        variable = tf.Variable(values)
        path = tf.train.Checkpoint(v=variable).save(str(pathlib.Path(folder) / "saved"))
        variable.assign(values * 0)
        tf.train.Checkpoint(v=variable).restore(path).assert_consumed()
        _same(variable.numpy(), values, "the variable that was restored")
        _require(variable.device.upper().endswith(_xpu().upper()), f"it is on {variable.device}")
    return "a variable, saved and restored"


def pipeline(tf: Any) -> str:
    """``prefetch_to_device``: elements come in order and are on the device."""
    data = tf.data.Dataset.range(20).map(lambda i: tf.fill([100], tf.cast(i, tf.float32))).batch(4)
    data = data.apply(tf.data.experimental.prefetch_to_device(_xpu()))
    total = 0
    for number, batch in enumerate(data):
        _require(batch.backing_device.upper().endswith(_xpu().upper()), f"an element is on {batch.backing_device}")
        _same(batch.numpy()[:, 0], np.arange(4 * number, 4 * number + 4), f"batch {number}")
        total += 1
    _require(total == 5, f"{total} batches instead of 5")
    return "5 batches, on the device, in order"


def placement(tf: Any) -> str:
    """``trace_placement`` tells what ran where."""
    with tensorflow_xpu.trace_placement() as report:
        tf.linalg.matmul(tf.ones([4, 4]), tf.ones([4, 4]))
        tf.strings.length(["a"])
    _require(report.on_xpu("MatMul") == 1, f"MatMul is not among what ran on the device:\n{report}")
    _require(report.elsewhere("StringLength") == 1, f"StringLength is not among what ran on the CPU:\n{report}")
    return "a product on the device, an op on strings on the CPU"


def dlpack(tf: Any) -> str:
    """Tensors to and from NumPy, without a copy where memory is shared."""
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    with tf.device(_xpu()):
        on_device = tf.constant(values) * 2
    _same(np.from_dlpack(on_device), values * 2, "from the device to NumPy")
    from tensorflow_xpu.dlpack import from_dlpack

    back = from_dlpack(np.from_dlpack(on_device), device=_xpu())
    _require(back.backing_device.upper().endswith(_xpu().upper()), f"the tensor is on {back.backing_device}")
    _same((back + 1).numpy(), values * 2 + 1, "from NumPy to the device")
    with tf.device("/device:CPU:0"):
        on_cpu = tf.constant(values) + 0
        again = from_dlpack(np.from_dlpack(on_cpu))
    pointers = [np.from_dlpack(t).__array_interface__["data"][0] for t in (on_cpu, again)]
    _require(pointers[0] == pointers[1], "a tensor on the CPU went to NumPy and back by a copy")
    return "to NumPy and back; on the CPU without a copy"


def memory(tf: Any) -> str:
    """``memory_info`` counts what tensors take and give back."""
    size = 64 * MEBI
    tensorflow_xpu.synchronize()
    gc.collect()
    before = tensorflow_xpu.memory_info().current
    with tf.device(_xpu()):
        tensor = tf.zeros([size // 4])
    tensor.numpy()
    during = tensorflow_xpu.memory_info()
    del tensor
    gc.collect()
    tensorflow_xpu.synchronize()
    after = tensorflow_xpu.memory_info()
    _require(size <= during.current - before < size + MEBI, f"{size} bytes are counted as {during.current - before}")
    _require(after.current <= before, f"of {size} bytes {after.current - before} are not given back")
    _require(after.peak >= before + size, f"the peak is {after.peak}, but {before + size} bytes were in use")
    _require(after.reserved <= after.limit, f"{after.reserved} bytes are reserved, and {after.limit} there are")
    return f"64 MiB taken and given back, {after.allocator}"


def errors(tf: Any) -> str:
    """The device refuses bad input with the CPU's exceptions, and goes on."""
    wrong: dict[str, Callable[[], Any]] = {
        "a product of shapes that do not fit": lambda: tf.linalg.matmul(tf.ones([2, 3]), tf.ones([2, 3])),
        "an index out of range": lambda: tf.raw_ops.GatherNd(params=tf.ones([3]), indices=[[7]]),
        "an axis that is not there": lambda: tf.raw_ops.Sum(input=tf.ones([2]), axis=[4]),
    }
    for what, call in wrong.items():
        kinds = []
        for device in ("/device:CPU:0", _xpu()):
            try:
                with tf.device(device):
                    call().numpy()
                kinds.append("no error")
            except tf.errors.OpError as error:
                kinds.append(type(error).__name__)
        _require(kinds[0] == kinds[1], f"{what}: {kinds[1]} instead of the CPU's {kinds[0]}")
    with tf.device(_xpu()):
        _same(tf.ones([3]) + 1, np.full(3, 2.0), "after errors")
    return f"{len(wrong)} kinds, with the CPU's exceptions"


def profiler(tf: Any) -> str:
    """TensorFlow's profiler gets the device's events, with their operations."""
    with tempfile.TemporaryDirectory() as folder:
        with tensorflow_xpu.profile(folder) as profile:
            tf.linalg.matmul(tf.ones([64, 32]), tf.ones([32, 16])).numpy()
        flops = [event.flops for event in profile.events if event.op_type == "MatMul"]
        _require(flops == [2 * 64 * 32 * 16], f"a product of {2 * 64 * 32 * 16} operations is seen as {flops}")
    return f"{len(profile.events)} events"


def out_of_memory(tf: Any) -> str:
    """A tensor that does not fit is an error, and a smaller one afterwards fits."""
    limit = tensorflow_xpu.memory_info().limit
    _require(limit == 512 * MEBI, f"TF_XPU_MEMORY_LIMIT=512MiB makes {limit} bytes")
    with tf.device(_xpu()):
        try:
            tf.zeros([768 * MEBI // 4]).numpy()
            raise TaskError("768 MiB fit into 512 MiB")
        except tf.errors.ResourceExhaustedError:
            pass
        _same(tf.reduce_sum(tf.ones([8 * MEBI])), 8.0 * MEBI, "a sum afterwards")
    return "768 MiB into 512 MiB: ResourceExhaustedError; 32 MiB afterwards"


def configuration_file(tf: Any) -> str:
    """The file's settings hold, and the devices that it makes exchange tensors."""
    listed = len(tf.config.list_physical_devices(device_type()))
    _require(listed == 2, f"{os.environ['TF_XPU_CONFIG']} says TF_XPU_DEVICE_COUNT=2, TensorFlow lists {listed}")
    values = np.arange(1000, dtype=np.float32)
    with tf.device(_xpu(0)):
        first = tf.constant(values) + 1
    with tf.device(_xpu(1)):
        second = tf.identity(first) * 2
    _require(second.backing_device.upper().endswith(_xpu(1).upper()), f"the copy is on {second.backing_device}")
    _same(second.numpy(), (values + 1) * 2, "from the first device to the second")
    return "2 devices by a file, and a copy between them"


def other_backend(tf: Any) -> str:
    """The one that is not the default."""
    (device,) = tensorflow_xpu.list_physical_devices(device_type(), enabled=True)
    _require(device.subdevice_type == "XPU_REFERENCE", f"the backend is {device.subdevice_type}")
    return f"{device.subdevice_type}: {_op_checks.compare(tf, 'nn', _xpu())}"


def type_gpu(tf: Any) -> str:
    """The same device under the type GPU."""
    listed = [device.name for device in tf.config.list_physical_devices("GPU")]
    _require("/physical_device:GPU:0" in listed, f"TensorFlow lists {listed or 'no GPU'}")
    return f"/gpu:0: {_op_checks.compare(tf, 'nn', '/device:GPU:0')}"


def disabled(tf: Any) -> str:
    """Without its devices TensorFlow is as ever."""
    _require(not tf.config.list_physical_devices(device_type()), f"TF_XPU_DISABLE=1, but there is a {device_type()}")
    _same(tf.linalg.matmul(tf.ones([3, 4]), tf.ones([4, 2])), np.full((3, 2), 4.0), "a product on the CPU")
    report = loader_report()
    _require(report is not None and not report["active"], "the loader does not say that it is disabled")
    return "no device, and the CPU computes"


# By what the process's environment has to have; "" is the user's own. The first checks are needed by all others.
CHECKS: dict[str, dict[str, Callable[[Any], str]]] = {
    "": {
        "devices": devices,
        **{
            f"ops: {family}": functools.partial(
                lambda tf, family: _op_checks.compare(tf, family, _xpu()), family=family
            )
            for family in _op_checks.OP_CHECKS
        },
        "copies": copies,
        "order": order,
        "threads": threads,
        "training": training,
        "saving": saving,
        "input pipeline": pipeline,
        "placement": placement,
        "DLPack": dlpack,
        "memory": memory,
        "errors": errors,
        "profiler": profiler,
    },
    "TF_XPU_MEMORY_LIMIT=512MiB": {"out of memory": out_of_memory},
    "TF_XPU_CONFIG=FILE": {"configuration file": configuration_file},
    "TF_XPU_SUBDEVICE=XPU_REFERENCE": {"other backend": other_backend},
    "TF_XPU_DEVICE_TYPE=GPU": {"type GPU": type_gpu},
    "TF_XPU_DISABLE=1": {"disabled": disabled},
}
FILE = "TF_XPU_DEVICE_COUNT=2\n"  # of TF_XPU_CONFIG=FILE


def _with_tensorflow(check: Callable[[Any], str]) -> str:
    import tensorflow as tf

    return check(tf)


TASKS: dict[str, Callable[[], str]] = {
    name: functools.partial(_with_tensorflow, check) for group in CHECKS.values() for name, check in group.items()
}
