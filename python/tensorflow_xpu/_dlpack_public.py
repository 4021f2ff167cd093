"""DLPack through TensorFlow's public API only: what tensorflow_xpu.dlpack uses without its interop module.

TensorFlow's own functions abort the process for types they do not know, and on import of memory that is not aligned to
64 bytes. So exports are checked here first, and imports go through NumPy and copy. Exports are copied as well. The API
does not tell if others use a tensor's memory, whom a consumer that writes to it would disturb.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

_HOST = (1, 0)  # (kDLCPU, 0)
_INTEGERS = {tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64}
_TYPES = _INTEGERS | {tf.bool, tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128}


def dlpack_device(self: tf.Tensor) -> tuple[int, int]:
    """DLPack's (device type, device id) of the tensor, once exported: host memory in any case."""
    return _HOST


def dlpack(
    self: tf.Tensor,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule with the tensor in host memory. A capsule of the old kind, which consumers of all versions take."""
    if self.dtype not in _TYPES:
        raise BufferError(f"tensors of {self.dtype.name} cannot be exported")
    if stream not in (None, -1):
        raise BufferError(f"stream must be None or -1 for a tensor in host memory, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != _HOST:
        raise BufferError(f"a tensor in host memory cannot be exported to dl_device={dl_device!r}")
    if copy is not False:
        with tf.device("/cpu:0"):
            return tf.experimental.dlpack.to_dlpack(tf.raw_ops.DeepCopy(x=tf.identity(self)))
    # TensorFlow has one tensor for all equal scalar constants.
    if tf.DeviceSpec.from_string(self.backing_device).device_type != "CPU" or self.shape.rank == 0:
        raise BufferError("copy=False, but a scalar or a tensor of another device is exported as a copy")
    return tf.experimental.dlpack.to_dlpack(self)


class _FromCapsule:
    """The methods that NumPy needs to import a capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST


def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> tf.Tensor:
    """A copy of x as a tensor, see tensorflow_xpu.dlpack.from_dlpack."""
    if copy is False:
        raise BufferError("copy=False, but without the interop module tensors are imported by copy")
    if type(x).__name__ == "PyCapsule":
        x = _FromCapsule(x)
    elif not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack() needs an object with __dlpack__ or a DLPack capsule, got {type(x).__name__}")
    try:
        array = np.from_dlpack(x)
    except RuntimeError as error:
        raise BufferError(str(error)) from error
    with tf.device(device or "/cpu:0"):
        return tf.convert_to_tensor(np.array(array))
