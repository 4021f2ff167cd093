"""Distribution across processes, with the XPUs of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_xpu._internals import private
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu.hooks.features import WORKERS

if TYPE_CHECKING:
    import tensorflow as tf


def multi_worker_mirrored_strategy(
    cluster_resolver: tf.distribute.cluster_resolver.ClusterResolver | None = None,
    communication_options: tf.distribute.experimental.CommunicationOptions | None = None,
) -> tf.distribute.MultiWorkerMirroredStrategy:
    """``tf.distribute.MultiWorkerMirroredStrategy`` with one replica per visible XPU of each worker.

    TensorFlow's own constructor counts GPUs and TPUs only, and puts one replica on the CPU of a worker that has
    neither. Nothing else in the strategy, nor in the collectives below it, minds the type of the device. As with
    TensorFlow's, call this at the start of the program, before anything has run: it starts the worker's gRPC server.

    Args:
        cluster_resolver: who the workers are; by default what the environment variable ``TF_CONFIG`` says.
        communication_options: as for ``tf.distribute.MultiWorkerMirroredStrategy``.

    Returns:
        The strategy; ``num_replicas_in_sync`` is the number of XPUs of all workers.

    Raises:
        RuntimeError: no XPU is visible, or something has already run in this TensorFlow (TensorFlow's own error).
        XPUError: this TensorFlow chooses a worker's devices in another way; a RuntimeError, too.
    """
    import tensorflow as tf

    with private(WORKERS, "multi_worker_mirrored_strategy()") as found:
        extended_class: Any = found.extended
    count = len(tf.config.get_visible_devices(device_type()))
    if count == 0:
        raise RuntimeError("no XPU is visible: run `python -m tensorflow_xpu doctor`")

    class Extended(extended_class):
        """TensorFlow's, but for the one place where it chooses a worker's devices."""

        def _initialize_local_devices(
            self, cluster_resolver: object, worker_device: str
        ) -> tuple[tuple[str, ...], str]:
            return tuple(f"{worker_device}/device:{device_type()}:{i}" for i in range(count)), device_type()

    # This does the work of the strategy's own constructor, with these devices.
    strategy = object.__new__(tf.distribute.MultiWorkerMirroredStrategy)
    options = communication_options or tf.distribute.experimental.CommunicationOptions()
    extended = Extended(strategy, cluster_resolver=cluster_resolver, communication_options=options)
    tf.distribute.Strategy.__init__(strategy, extended)
    return strategy
