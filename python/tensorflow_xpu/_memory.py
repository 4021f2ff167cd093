"""How much memory the tensors of an XPU use: what TensorFlow's own functions leave out."""

from __future__ import annotations

import dataclasses
from typing import Any

from tensorflow_xpu import _core, _devices, _internals
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu.hooks.features import DEVICES


@dataclasses.dataclass(frozen=True)
class MemoryInfo:
    """The memory of one XPU device, in bytes. Peaks and counts are those since the start or the last reset."""

    current: int  #: in use by tensors
    peak: int  #: the most that was in use by tensors
    limit: int  #: what the device has: ``TF_XPU_MEMORY_LIMIT``, or its share of the machine's memory
    reserved: int  #: taken from the system: tensors, and what the allocator keeps for the next ones
    peak_reserved: int
    allocations: int  #: that reached the device: one per tensor with ``pool``, one per region with ``bfc``
    largest_allocation: int  #: of these
    allocator: str  #: ``bfc`` (TensorFlow's) or ``pool`` (the plugin's): ``TF_XPU_ALLOCATOR``


def _ask(function: str, index: int) -> dict[str, Any]:
    """The core's report on a device, which TensorFlow makes first if it has not yet."""
    import tensorflow as tf

    tf.config.list_logical_devices(device_type())
    report: dict[str, Any] | None = _core.ask_about(index, function)
    if report is None:
        raise XPUError(
            f"{device_type()}:{index} is not in use: it is not among tf.config.get_visible_devices({device_type()!r})"
        )
    return report


def in_use(index: int) -> int:
    """Bytes of tensors on the device of this index; 0 if TensorFlow has not made it. Makes none."""
    import tensorflow as tf

    report = _core.ask_about(index, "XpuCore_MemoryReport")
    if report is None:
        return 0
    if report["allocator"] == "bfc" and _tells_of_memory():
        try:
            return int(tf.config.experimental.get_memory_info(_logical_name(index))["current"])
        except ValueError:  # of a session of TensorFlow 1, with other devices
            pass
    return int(report["bytes_in_use"])


def _tells_of_memory() -> bool:
    """True if TensorFlow has made its devices, so that it can be asked without making them."""
    try:
        return _internals.devices_are_made("the exact count of bytes in use")
    except XPUError as error:
        _internals.note_once(DEVICES, str(error))
        return False


def _logical_name(index: int) -> str:
    """TensorFlow's name for the physical device of this index: it counts the visible ones only."""
    import tensorflow as tf

    visible = [d.name for d in tf.config.get_visible_devices(device_type()) or tf.config.list_physical_devices()]
    visible = [name for name in visible if f":{device_type()}:" in name]  # TensorFlow ignores that all are hidden
    return f"{device_type()}:{visible.index(f'/physical_device:{device_type()}:{index}')}"


def memory_info(device: Any = 0) -> MemoryInfo:
    """The memory of an XPU as it is now.

    With ``bfc``, ``current`` and ``peak`` are those of ``tf.config.experimental.get_memory_info``; with ``pool`` that
    function returns zeros, as TensorFlow asks no plugin for them, and the numbers here are the pool's.

    Args:
        device: an index as in ``tf.config.list_physical_devices("XPU")``, a name such as ``"/xpu:0"``, or an entry of a
            list of devices.

    Returns:
        Bytes and counts.

    Raises:
        XPUError: if there is no such device, or it is not visible.
    """
    import tensorflow as tf

    index = _devices.physical_index(device)
    report = _ask("XpuCore_MemoryReport", index)
    current, peak = report["bytes_in_use"], report["peak_bytes_in_use"]
    if report["allocator"] == "bfc":
        tensors = tf.config.experimental.get_memory_info(_logical_name(index))
        current, peak = tensors["current"], tensors["peak"]
    return MemoryInfo(
        current=current,
        peak=peak,
        limit=report["bytes_limit"],
        reserved=report["bytes_reserved"],
        peak_reserved=report["peak_bytes_reserved"],
        allocations=report["num_allocs"],
        largest_allocation=report["largest_alloc_size"],
        allocator=report["allocator"],
    )


def reset_memory_stats(device: Any = 0) -> None:
    """Peaks become what is in use now, and counts 0: the same as ``tf.config.experimental.reset_memory_stats``.

    Args:
        device: an index as in ``tf.config.list_physical_devices("XPU")``, a name such as ``"/xpu:0"``, or an entry of a
            list of devices.

    Raises:
        XPUError: if there is no such device, or it is not visible.
    """
    import tensorflow as tf

    index = _devices.physical_index(device)
    report = _ask("XpuCore_ResetMemoryReport", index)
    if report["allocator"] == "bfc":
        tf.config.experimental.reset_memory_stats(_logical_name(index))
