"""The XPU devices of this process, as the plugin's core describes them."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

from tensorflow_xpu._subdevice import device_type

PACKAGE = pathlib.Path(__file__).resolve().parent
LOADER = PACKAGE.parent / "tensorflow-plugins" / "libtensorflow_xpu_loader.so"


@dataclasses.dataclass(frozen=True)
class PhysicalDevice:
    """An XPU device: the fields of ``tf.config.PhysicalDevice`` and what else the plugin knows.

    The field ``subdevice_type`` is that of TensorFlow's RFC 262 (PluggableDevice); the hardware's fields are those of
    ``SP_Device`` and ``SP_DeviceFns`` in RFC 257 (StreamExecutor C API). ``None`` means that it is not known.
    """

    name: str  #: ``/physical_device:XPU:0``, as in ``tf.config.list_physical_devices``
    device_type: str  #: ``XPU``, or ``GPU`` (``TF_XPU_DEVICE_TYPE``)
    subdevice_type: str  #: the backend: ``XPU_HOST`` or ``XPU_REFERENCE``
    hardware_name: str
    vendor: str
    memory_bytes: int  #: how much may be allocated on the device
    pci_bus_id: str | None
    numa_node: int | None
    bandwidth_bytes_per_s: int | None  #: of the device's memory
    gflops: float | None  #: single precision, 1e9 operations per second


def _ask(path: pathlib.Path | str, function: str) -> dict[str, Any] | None:
    """The JSON that a function of a loaded library returns, ``None`` where it is not loaded."""
    from tensorflow_xpu import _native

    text = _native.ask(str(path), function)
    return None if text is None else json.loads(text)


def loader_report() -> dict[str, Any] | None:
    """What the plugin's loader decided when TensorFlow was imported; ``None`` if TensorFlow did not load it.

    Keys: ``active``, ``reason`` (why it offers no devices), ``loader``, ``core``, ``tensorflow_version``,
    ``device_count``.
    """
    return _ask(LOADER, "XpuLoader_Report")


def core_description() -> dict[str, Any] | None:
    """What the core says of its backend and devices (see tensorflow_plugin/device/describe.h); ``None`` if unused."""
    report = loader_report()
    if report is None or not report["active"]:
        return None
    return _ask(report["core"], "XpuCore_DescribeDevices")


def list_physical_devices() -> list[PhysicalDevice]:
    """The XPU devices that TensorFlow lists, in the order of ``/xpu:0``, ``/xpu:1``, ...

    Imports TensorFlow if that has not been done.

    Returns:
        One entry per device; an empty list where the plugin offers none. ``python -m tensorflow_xpu doctor`` says why.
    """
    import tensorflow as tf

    listed = tf.config.list_physical_devices(device_type())
    description = core_description() if listed else None
    if description is None:
        return []
    return [
        PhysicalDevice(
            name=device.name,
            device_type=device.device_type,
            subdevice_type=known["subdevice_type"],
            hardware_name=known["hardware_name"],
            vendor=known["vendor"],
            memory_bytes=known["memory_bytes"],
            pci_bus_id=known["pci_bus_id"] or None,
            numa_node=known["numa_node"],
            bandwidth_bytes_per_s=known["bandwidth_bytes_per_s"],
            gflops=known["gflops"],
        )
        for device, known in zip(listed, description["devices"])
    ]
