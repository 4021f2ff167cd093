"""How much memory the tensors of an XPU use: what TensorFlow's own functions leave out."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from tensorflow_xpu import _devices
from tensorflow_xpu._subdevice import device_type


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

    if isinstance(index, bool) or not isinstance(index, int):
        raise TypeError(f"the index of a device must be an int, not {index!r}")
    count = len(tf.config.list_physical_devices(device_type()))
    if not 0 <= index < count:
        raise ValueError(f"there is no XPU of index {index}: expected 0 to {count - 1}, TensorFlow lists {count}")
    tf.config.list_logical_devices(device_type())
    from tensorflow_xpu import _native

    loader = _devices.loader_report()
    text = _native.ask_of(loader["core"], function, index) if loader is not None else None
    report = json.loads(text) if text is not None else None
    if report is None:
        raise ValueError(
            f"{device_type()}:{index} is not in use: it is not among tf.config.get_visible_devices({device_type()!r})"
        )
    return report


def _logical_name(index: int) -> str:
    """TensorFlow's name for the physical device of this index: it counts the visible ones only."""
    import tensorflow as tf

    visible = [device.name for device in tf.config.get_visible_devices(device_type())]
    return f"{device_type()}:{visible.index(f'/physical_device:{device_type()}:{index}')}"


def memory_info(index: int = 0) -> MemoryInfo:
    """The memory of an XPU as it is now.

    With ``bfc``, ``current`` and ``peak`` are those of ``tf.config.experimental.get_memory_info``; with ``pool`` that
    function returns zeros, as TensorFlow asks no plugin for them, and the numbers here are the pool's.

    Args:
        index: of the device, as in ``tf.config.list_physical_devices("XPU")``.

    Returns:
        Bytes and counts.

    Raises:
        TypeError: if ``index`` is no integer.
        ValueError: if there is no such device, or it is not visible.
    """
    import tensorflow as tf

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


def reset_memory_stats(index: int = 0) -> None:
    """Peaks become what is in use now, and counts 0: the same as ``tf.config.experimental.reset_memory_stats``.

    Args:
        index: of the device, as in ``tf.config.list_physical_devices("XPU")``.

    Raises:
        TypeError: if ``index`` is no integer.
        ValueError: if there is no such device, or it is not visible.
    """
    import tensorflow as tf

    report = _ask("XpuCore_ResetMemoryReport", index)
    if report["allocator"] == "bfc":
        tf.config.experimental.reset_memory_stats(_logical_name(index))
