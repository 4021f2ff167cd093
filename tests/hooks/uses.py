"""Programs that use functions of the package whose work needs private names of TensorFlow, by feature."""

import pathlib
import tempfile


def devices():
    """Calls before and after TensorFlow has made its devices."""
    import tensorflow as tf

    import tensorflow_xpu

    tensorflow_xpu.configure(devices=2)
    count = len(tf.config.list_physical_devices("XPU"))
    with tf.device("/xpu:1"):
        x = tf.ones([250, 4]) + 1
    tensorflow_xpu.synchronize()
    free = tensorflow_xpu.list_physical_devices("XPU", enabled=True)[1].memory_free
    try:
        tensorflow_xpu.configure(devices=1)
    except tensorflow_xpu.XPUError:
        return [count, free > 0, float(x[0, 0])]
    return []


def registry():
    """The kernels of some ops."""
    import tensorflow_xpu

    return [tensorflow_xpu.explain(op).on_xpu for op in ("MatMul", "Conv2D", "StringJoin")]


def placement():
    """Eager ops and a function."""
    import tensorflow as tf

    import tensorflow_xpu

    f = tf.function(lambda x: tf.tanh(x) @ x)
    with tensorflow_xpu.trace_placement() as report:
        x = tf.exp(tf.ones([3, 3]))
        y = f(x)
    return [report.on_xpu(op) for op in ("Exp", "Tanh", "MatMul")] + [float(y[0, 0])]


def workers():
    """A strategy with the devices of this process."""
    import tensorflow_xpu

    return [tensorflow_xpu.multi_worker_mirrored_strategy().num_replicas_in_sync]


def libraries():
    """A file that is no library is refused."""
    import tensorflow as tf  # noqa: F401

    from tensorflow_xpu import XPUError, _plugins

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "libnothing.so"
        path.write_text("nothing")
        try:
            _plugins._register(_plugins.Plugin(path, "NOTHING", "NOTHING", 1))
        except XPUError as error:
            if "does not load" in str(error):
                return [1]
            raise
    return []


def profiles():
    """A profile of a matrix product."""
    import tensorflow as tf

    import tensorflow_xpu

    with tempfile.TemporaryDirectory() as folder:
        with tensorflow_xpu.profile(folder) as profile:
            tf.linalg.matmul(tf.ones([20, 20]), tf.ones([20, 20])).numpy()
        return [len(profile.events) > 0]


USES = {use.__name__: use for use in (devices, registry, placement, workers, libraries, profiles)}


def run(name):
    """The numbers of a feature's program, or its exception."""
    try:
        return [float(number) for number in USES[name]()]
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
