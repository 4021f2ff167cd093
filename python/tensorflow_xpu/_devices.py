"""Devices as RFC 262 (PluggableDevice) shows them: with their subdevice types, and those that are not in use."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

from tensorflow_xpu import _core, _internals
from tensorflow_xpu._core import LOADER, PACKAGE, core_description, loader_report
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._subdevice import device_type as xpu_type
from tensorflow_xpu._vocabulary import SUBDEVICE_TYPES
from tensorflow_xpu.hooks.features import DEVICES

__all__ = [
    "LOADER",
    "PACKAGE",
    "LogicalDevice",
    "PhysicalDevice",
    "core_description",
    "get_device_details",
    "list_logical_devices",
    "list_physical_devices",
    "loader_report",
    "physical_index",
    "synchronize",
]


@dataclasses.dataclass(frozen=True)
class PhysicalDevice:
    """A device: the fields of ``tf.config.PhysicalDevice``, and what else is known.

    ``subdevice_type`` and ``enabled`` are those of TensorFlow's RFC 262; the hardware's fields are those of
    ``SP_Device`` and ``SP_DeviceFns`` in RFC 257 (StreamExecutor C API). ``None`` means that it is not known.
    """

    name: str  #: ``/physical_device:XPU:0``, as in ``tf.config.list_physical_devices``
    device_type: str  #: ``XPU``, ``CPU``, ``GPU``, or what another plugin has
    subdevice_type: str  #: the backend, such as ``XPU_HOST``; of another plugin, its platform; of a CPU, ``CPU``
    enabled: bool  #: whether TensorFlow has it; False: what could serve this type in its place
    hardware_name: str | None = None
    vendor: str | None = None
    bus_id: str | None = None  #: in the form of PCI's
    numa_node: int | None = None
    memory_total: int | None = None  #: bytes that may be allocated on the device
    memory_free: int | None = None  #: bytes of these that no tensor has; None where the device is not enabled
    instruction_set: str | None = None  #: of the backend's own loops, in words: ``avx2``
    bandwidth_bytes_per_s: int | None = None  #: of the device's memory, measured
    gflops: float | None = None  #: single precision, 1e9 operations per second, measured

    @property
    def index(self) -> int:
        """The number in its name."""
        return int(self.name.rpartition(":")[2])


@dataclasses.dataclass(frozen=True)
class LogicalDevice:
    """A device as ops are placed on it."""

    name: str  #: ``/device:XPU:0``, as in ``tf.config.list_logical_devices``
    device_type: str
    subdevice_type: str
    physical: PhysicalDevice


def _proc(path: str, pattern: str) -> str | None:
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return match[1].strip() if match else None


#: What a processor has for each set of the backend's loops. Each set has those before it.
_INSTRUCTION_SETS = {
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "avx512_vnni": {"avx512_vnni"},
    "amx": {"amx_tile", "amx_int8"},
}


def _cpu(name: str) -> PhysicalDevice:
    """The processor, as Linux and the container's limits describe it."""
    kilobytes = [_proc("/proc/meminfo", rf"^{field}:\s+(\d+) kB") for field in ("MemTotal", "MemAvailable")]
    total, free = (int(number) * 1024 if number else None for number in kilobytes)
    limits = [("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")]
    limits.append(("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"))
    for limit_path, usage_path in limits:
        limit, usage = (_proc(path, r"^(\d+)$") for path in (limit_path, usage_path))
        if limit and total and int(limit) < total:
            total = int(limit)
            free = min(free or 0, max(total - int(usage or 0), 0))
    flags = set((_proc("/proc/cpuinfo", r"^flags\s*:(.*)$") or "").split())
    instruction_set = None
    if flags:
        instruction_set = "baseline"
        for wider, needed in _INSTRUCTION_SETS.items():
            if not needed <= flags:
                break
            instruction_set = wider
    return PhysicalDevice(
        name=name,
        device_type="CPU",
        subdevice_type="CPU",
        enabled=True,
        hardware_name=_proc("/proc/cpuinfo", r"^model name\s*:(.*)$"),
        vendor=_proc("/proc/cpuinfo", r"^vendor_id\s*:(.*)$"),
        memory_total=total,
        memory_free=free,
        instruction_set=instruction_set,
    )


def _another(device: Any) -> PhysicalDevice:
    """A device that is neither ours nor a processor, with the little that TensorFlow says of it."""
    import tensorflow as tf

    from tensorflow_xpu import _plugins

    details = _said_by_tensorflow(device)
    # TensorFlow names the hardware of a CUDA device, and the platform of a PluggableDevice, from 2.22 on hardware.
    cuda = "compute_capability" in details
    is_hardware = cuda or tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 22)
    platform = device.device_type if is_hardware else details.get("device_name", device.device_type)
    return PhysicalDevice(
        name=device.name,
        device_type=device.device_type,
        subdevice_type="CUDA_GPU" if cuda else _plugins.platform_of(device.device_type) or platform,
        enabled=True,
        hardware_name=details.get("device_name") if is_hardware else None,
    )


def _said_by_tensorflow(device: Any) -> dict[str, Any]:
    """TensorFlow's details of a device: in 2.22 there are none until it has made its devices."""
    import tensorflow as tf

    try:
        return tf.config.experimental.get_device_details(device)
    except tf.errors.NotFoundError:
        return {}


def _bytes_in_use(index: int) -> int:
    """The bytes of tensors on our device; 0 if TensorFlow has not made it. Makes none."""
    from tensorflow_xpu import _memory

    return _memory.in_use(index)


def _of_core(known: dict[str, Any], enabled: bool) -> PhysicalDevice:
    return PhysicalDevice(
        name=f"/physical_device:{known['device_type']}:{known['ordinal']}",
        device_type=known["device_type"],
        subdevice_type=known["subdevice_type"],
        enabled=enabled,
        hardware_name=known["hardware_name"],
        vendor=known["vendor"],
        bus_id=known["pci_bus_id"] or None,
        numa_node=known["numa_node"],
        memory_total=known["memory_bytes"],
        memory_free=known["memory_bytes"] - _bytes_in_use(known["ordinal"]) if enabled else None,
        instruction_set=known["instruction_set"] or None,
        bandwidth_bytes_per_s=known["bandwidth_bytes_per_s"],
        gflops=known["gflops"],
    )


def _installed_only(subdevice_type: str) -> PhysicalDevice:
    """A backend of the wheel when the plugin is not in use, so that nobody has asked it anything."""
    return PhysicalDevice(f"/physical_device:{xpu_type()}:0", xpu_type(), subdevice_type, enabled=False)


def list_physical_devices(device_type: str | None = None, *, enabled: bool | None = None) -> list[PhysicalDevice]:
    """All devices that are installed: TensorFlow's, and those of subdevice types that are not enabled (RFC 262).

    Imports TensorFlow if that has not been done. TensorFlow need not have created its devices, and does not do so here.

    Args:
        device_type: only devices of this type, such as ``"XPU"``; in capital letters, as TensorFlow has them.
        enabled: True: only those that TensorFlow has, in its order; False: only the others; None: all of them, those
            that are enabled first.

    Returns:
        One entry per device. Devices of several subdevice types of a type have the same names: one type is enabled, and
        ``set_subdevice_mapping`` chooses it. An empty list where there are none; ``python -m tensorflow_xpu doctor``
        says why no XPU is enabled.

    Raises:
        XPUError: if ``device_type`` is not a string.

    >>> import tensorflow_xpu
    >>> for device in tensorflow_xpu.list_physical_devices():
    ...     print(device.name, device.subdevice_type, device.enabled)
    /physical_device:CPU:0 CPU True
    /physical_device:XPU:0 XPU_HOST True
    /physical_device:XPU:0 XPU_REFERENCE False
    """
    if device_type is not None and not isinstance(device_type, str):
        raise XPUError(f"{device_type!r} is no device type: expected a string such as 'XPU', or None for all")
    import tensorflow as tf

    listed = tf.config.list_physical_devices()
    description = core_description()
    ours = description["devices"] if description is not None else []
    devices = []
    for device in listed:
        index = int(device.name.rpartition(":")[2])
        if device.device_type == "CPU":
            devices.append(_cpu(device.name))
        elif ours and device.device_type == ours[0]["device_type"] and index < len(ours):
            devices.append(_of_core(ours[index], True))
        else:
            devices.append(_another(device))
    if description is None:
        devices += [_installed_only(subdevice) for subdevice in SUBDEVICE_TYPES]
    else:
        hidden = not any(device.subdevice_type == description["subdevice_type"] for device in devices)
        others = (ours if hidden else []) + _core.ask_core("XpuCore_DescribeOthers")
        devices += [_of_core(known, False) for known in others]
    return [
        device for device in devices if device_type in (None, device.device_type) and enabled in (None, device.enabled)
    ]


def _physical_of(logical_index: int, device_type: str) -> int:
    """The physical device of a type that TensorFlow numbers so among those that it uses; -1: there is none."""
    import tensorflow as tf

    physical = tf.config.list_physical_devices(device_type)
    used = tf.config.get_visible_devices(device_type) or physical  # TensorFlow ignores that all are hidden
    counts = [len(tf.config.get_logical_device_configuration(device) or [None]) for device in used]
    owners = [device for device, count in zip(used, counts) for _ in range(count)]
    if not 0 <= logical_index < len(owners):
        return -1
    return int(owners[logical_index].name.rpartition(":")[2])


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that ops are placed on, and what is behind each. TensorFlow creates its devices if it has not yet.

    Args:
        device_type: only devices of this type, such as ``"XPU"``.

    Returns:
        One entry for each of ``tf.config.list_logical_devices(device_type)``, in the same order.

    Raises:
        XPUError: if ``device_type`` is not a string.

    >>> import tensorflow_xpu
    >>> [(device.name, device.subdevice_type) for device in tensorflow_xpu.list_logical_devices("XPU")]
    [('/device:XPU:0', 'XPU_HOST')]
    """
    import tensorflow as tf

    physical = {device.name: device for device in list_physical_devices(device_type, enabled=True)}
    found = []
    for logical in tf.config.list_logical_devices(device_type):
        index = _physical_of(int(logical.name.rpartition(":")[2]), logical.device_type)
        device = physical[f"/physical_device:{logical.device_type}:{index}"]
        found.append(LogicalDevice(logical.name, logical.device_type, device.subdevice_type, device))
    return found


def _name_of(device: Any) -> str:
    """A device's type, a colon, and its index among the physical ones, such as ``XPU:0``."""
    import tensorflow as tf

    text = device if isinstance(device, str) else getattr(device, "name", None)
    if not isinstance(text, str):
        raise XPUError(f"{device!r} is no device: expected a name such as '/xpu:0', or an entry of a list of devices")
    match = re.fullmatch(r"(?:.*/)?(?:(physical_device|device):)?([A-Za-z_]+)(?::(\d+))?", text)
    if match is None:
        raise XPUError(f"{text!r} is no device's name: expected one such as '/xpu:0' or '/physical_device:XPU:0'")
    kind, index = match[2].upper(), int(match[3] or 0)
    listed = [d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()]
    physical = index if match[1] == "physical_device" else _physical_of(index, kind)
    if f"{kind}:{physical}" not in listed:
        raise XPUError(f"there is no device {text!r}: TensorFlow has {', '.join(listed)}")
    return f"{kind}:{physical}"


def physical_index(device: Any) -> int:
    """The index of an XPU, as in ``tf.config.list_physical_devices``, from it or a name or a description of it.

    Raises:
        XPUError: if it is none, or there is none such.
    """
    import tensorflow as tf

    count = len(tf.config.list_physical_devices(xpu_type()))
    if isinstance(device, int) and not isinstance(device, bool):
        if not 0 <= device < count:
            expected = (
                f"expected 0 to {count - 1}" if count else "`python -m tensorflow_xpu doctor` says why there is none"
            )
            raise XPUError(f"there is no XPU of index {device}: {expected}, TensorFlow lists {count}")
        return device
    kind, _, index = _name_of(device).partition(":")
    if kind != xpu_type():
        raise XPUError(
            f"{device!r} is not one of this plugin's devices: expected a name such as '/{xpu_type().lower()}:0'"
        )
    return int(index)


def get_device_details(device: Any) -> dict[str, Any]:
    """The details of a device, its real name first (RFC 262, "physical device name").

    ``tf.config.experimental.get_device_details``, of which the RFC says so, gives the platform's name.

    Args:
        device: an entry of a list of devices, TensorFlow's or this package's, or a name: ``"/xpu:0"``,
            ``"/device:XPU:0"``, ``"/physical_device:XPU:0"``.

    Returns:
        ``device_name``, the hardware's, and every field of :class:`PhysicalDevice` that is known under its name; for
        other plugins' devices what TensorFlow says.

    Raises:
        XPUError: if there is no such device.

    >>> import tensorflow_xpu
    >>> details = tensorflow_xpu.get_device_details("/xpu:0")
    >>> details["subdevice_type"], details["bus_id"]
    ('XPU_HOST', 'ffff:00:00.0')
    """
    import tensorflow as tf

    if isinstance(device, PhysicalDevice):
        found = device
        details: dict[str, Any] = {}
    else:
        name = f"/physical_device:{_name_of(device)}"
        found = next(d for d in list_physical_devices(enabled=True) if d.name == name)
        listed = next(d for d in tf.config.list_physical_devices() if d.name == name)
        details = _said_by_tensorflow(listed)
    fields = {name: value for name, value in dataclasses.asdict(found).items() if value is not None}
    real = {"device_name": found.hardware_name} if found.hardware_name else {}
    return {**details, **real, **fields}


def synchronize(device: Any = None) -> None:
    """Waits until all work that has been given to XPUs is done.

    TensorFlow's ops on an XPU return before they are computed; a program that measures time calls this before and
    after. Errors of ops are not raised here: what next uses the device or the result raises them.

    Args:
        device: an index, a name such as ``"/xpu:0"`` or an entry of a list of devices; None: all of them.

    Raises:
        XPUError: if there is no such device.

    >>> import tensorflow as tf, tensorflow_xpu
    >>> with tf.device("/xpu:0"):
    ...     product = tf.linalg.matmul(tf.ones([500, 500]), tf.ones([500, 500]))
    >>> tensorflow_xpu.synchronize()
    """
    import tensorflow as tf

    indexes = range(len(tf.config.list_physical_devices(xpu_type()))) if device is None else [physical_index(device)]
    try:
        if _internals.devices_are_made("synchronize()"):
            with _internals.private(DEVICES, "synchronize()") as found:
                wait = found.executor.fget(found.context()).wait
            wait()  # where eager ops are asynchronous
    except XPUError as error:
        _internals.note_once(DEVICES, f"asynchronous eager ops are not waited for: {error}")
    for index in indexes:
        _core.ask_about(index, "XpuCore_Synchronize")
