"""The devices' type, and which backend is behind it: RFC 262's subdevice mapping, which TensorFlow does not have."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tensorflow_xpu import _settings
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._options import DEVICE_TYPES, named
from tensorflow_xpu._vocabulary import SUBDEVICE_TYPES

VARIABLE = "TF_XPU_SUBDEVICE"
TYPE_VARIABLE = "TF_XPU_DEVICE_TYPE"


def device_type() -> str:
    """``XPU``, or ``GPU`` where the option ``device_type`` says so."""
    return _settings.value_of(TYPE_VARIABLE) or DEVICE_TYPES[0]


def get_subdevice_mapping() -> dict[str, str]:
    """The backend that serves, or will serve, the device type (RFC 262, "Front-end Mirroring").

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.get_subdevice_mapping()
    {'XPU': 'XPU_HOST'}
    """
    return {device_type(): _settings.value_of(VARIABLE) or SUBDEVICE_TYPES[0]}


def set_subdevice_mapping(mapping: str | Mapping[str, str]) -> None:
    """Chooses the backend behind the device type (RFC 262, "Front-end Mirroring", option 2).

    It takes effect in this process if TensorFlow has not created its devices yet, which the first op does. A mapping
    that changes the device type has to come before ``import tensorflow``. It goes before the environment and the
    configuration file, and processes started from this one inherit it. The command ``python -m tensorflow_xpu use``
    makes the choice for all programs.

    TensorFlow's own ``get_device_details`` goes on naming the backend that was chosen when TensorFlow was imported.

    Args:
        mapping: a subdevice type, such as ``"XPU_REFERENCE"``; or a mapping from device type to subdevice type, such as
            ``{"XPU": "XPU_REFERENCE"}``, or ``{"GPU": "XPU_HOST"}`` for devices that TensorFlow calls GPUs.

    Raises:
        XPUError: for device types other than one of ``XPU`` and ``GPU``, a subdevice type that the wheel does not have,
            and calls that come too late.

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.set_subdevice_mapping("XPU_REFERENCE")
    >>> tensorflow_xpu.get_subdevice_mapping()
    {'XPU': 'XPU_REFERENCE'}
    """
    if isinstance(mapping, str):
        wanted = {device_type(): mapping}
    elif isinstance(mapping, Mapping):
        wanted = dict(mapping)
    else:
        raise XPUError(
            f"{mapping!r} is no subdevice mapping: expected one of {', '.join(SUBDEVICE_TYPES)}, or a dictionary "
            f"such as { {DEVICE_TYPES[0]: SUBDEVICE_TYPES[0]} }"
        )
    if len(wanted) != 1:
        raise XPUError(f"{wanted!r} has {len(wanted)} device types, but all devices have the same: name one")
    ((its_type, subdevice),) = wanted.items()
    changes = {
        TYPE_VARIABLE: named(TYPE_VARIABLE).text(its_type),
        VARIABLE: named(VARIABLE).text(subdevice),
    }
    if its_type == device_type():  # then the mapping does not speak of it
        del changes[TYPE_VARIABLE]
    _settings.apply(changes, f"set_subdevice_mapping({mapping!r})")


def configure(
    *,
    devices: int | str | None = None,
    memory_limit: int | str | None = None,
    threads: int | str | None = None,
    subdevice: str | None = None,
    device_type: str | None = None,
    allocator: str | None = None,
    isolate_memory: bool | str | None = None,
    large_pages: bool | str | None = None,
    fusion: bool | str | None = None,
    fusion_without: str | None = None,
    direct_calls: bool | str | None = None,
    hooks: bool | str | None = None,
    hooks_without: str | None = None,
    dump_fusion: str | os.PathLike[str] | None = None,
    isa: str | None = None,
    opencl_device: str | int | None = None,
    winograd: bool | str | None = None,
    fault: str | None = None,
    disable: bool | str | None = None,
) -> None:
    """Sets options of the plugin for this process: what the environment variables ``TF_XPU_*`` say, from Python.

    All of them hold, or none does. They go before the environment and the configuration file, and processes started
    from this one inherit them. Call it before ``import tensorflow``; ``devices``, ``memory_limit``, ``threads``,
    ``subdevice``, ``opencl_device``, ``isolate_memory``, ``large_pages`` and ``fault`` may change until TensorFlow
    creates its devices, which the first op does. ``None`` leaves an option alone, ``"default"`` makes it what it is if
    nobody says anything.

    Args:
        devices: how many devices there are, 1 to 64 (``TF_XPU_DEVICE_COUNT``).
        memory_limit: of each device: bytes, or text such as ``"4GiB"`` or ``"25%"`` (``TF_XPU_MEMORY_LIMIT``).
        threads: that compute one operation of a device, 1 to 1024 (``TF_XPU_THREADS``).
        subdevice: the backend, ``XPU_HOST``, ``XPU_REFERENCE``, ``XPU_OPENCL`` or ``XPU_CUDA``
            (``TF_XPU_SUBDEVICE``).
        device_type: ``XPU`` or ``GPU`` (``TF_XPU_DEVICE_TYPE``).
        allocator: ``bfc`` or ``pool`` (``TF_XPU_ALLOCATOR``).
        isolate_memory: whether the host faults when it touches device memory (``TF_XPU_ISOLATE_MEMORY``).
        large_pages: whether memory asks for large pages (``TF_XPU_LARGE_PAGES``).
        fusion: whether graphs run in clusters (``TF_XPU_FUSION``).
        fusion_without: passes over lists of commands to leave out, ``"Rematerialize,FuseEpilogues"``
            (``TF_XPU_FUSION_WITHOUT``).
        direct_calls: whether functions of a few ops are called without TensorFlow's executor
            (``TF_XPU_DIRECT_CALLS``).
        hooks: whether hooks into TensorFlow and Keras save time (``TF_XPU_HOOKS``).
        hooks_without: hooks to leave out, ``"batches,calls"`` (``TF_XPU_HOOKS_WITHOUT``).
        dump_fusion: a folder for clusters as text (``TF_XPU_DUMP_FUSION``).
        isa: ``baseline``, ``avx2``, ``avx512``, ``avx512_vnni`` or ``amx`` (``TF_XPU_ISA``).
        opencl_device: a part of a device's name, or its number (``TF_XPU_OPENCL_DEVICE``).
        winograd: whether convolutions of 3x3 go by Winograd's algorithm (``TF_XPU_WINOGRAD``).
        fault: rules of faults to inject (``TF_XPU_FAULT``).
        disable: whether the plugin offers no devices (``TF_XPU_DISABLE``).

    Raises:
        XPUError: for a value that makes no sense, and for what comes too late.

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.configure(devices=2, memory_limit="512MiB")
    >>> import tensorflow as tf
    >>> len(tf.config.list_physical_devices("XPU"))
    2
    """
    given = {name: value for name, value in locals().items() if value is not None}
    changes = {named(name).variable: named(name).text(value) for name, value in given.items()}
    _settings.apply(changes, f"configure({', '.join(f'{name}={value!r}' for name, value in given.items())})")
