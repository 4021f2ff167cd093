"""The devices' type, and which backend is behind it: RFC 262's subdevice mapping, which TensorFlow does not have."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

VARIABLE = "TF_XPU_SUBDEVICE"
TYPE_VARIABLE = "TF_XPU_DEVICE_TYPE"

#: What the devices may be to TensorFlow, the default first.
DEVICE_TYPES = ("XPU", "GPU")

#: The backends in the wheel, the default first.
SUBDEVICE_TYPES = ("XPU_HOST", "XPU_REFERENCE")


def device_type() -> str:
    """``XPU``, or ``GPU`` where the environment variable ``TF_XPU_DEVICE_TYPE`` says so."""
    chosen = os.environ.get(TYPE_VARIABLE, "")
    return chosen if chosen in DEVICE_TYPES else DEVICE_TYPES[0]


def get_subdevice_mapping() -> dict[str, str]:
    """The backend that serves, or will serve, the device type: ``{"XPU": "XPU_HOST"}``."""
    chosen = os.environ.get(VARIABLE, "")
    return {device_type(): chosen if chosen in SUBDEVICE_TYPES else SUBDEVICE_TYPES[0]}


def set_subdevice_mapping(mapping: Mapping[str, str]) -> None:
    """Chooses the backend; call it before ``import tensorflow``.

    The same as setting the environment variables ``TF_XPU_SUBDEVICE`` and ``TF_XPU_DEVICE_TYPE``, so processes started
    from this one inherit it.

    Args:
        mapping: from device type to subdevice type, such as ``{"XPU": "XPU_REFERENCE"}``, or ``{"GPU": "XPU_HOST"}``
            for devices that TensorFlow calls GPUs.

    Raises:
        ValueError: for device types other than one of ``XPU`` and ``GPU``, or a subdevice type that the wheel does not
            have.
        RuntimeError: if TensorFlow is imported already, since the choice can no longer change.
    """
    for its_type, subdevice_type in mapping.items():
        if its_type not in DEVICE_TYPES:
            raise ValueError(f"unknown device type {its_type!r}: expected one of {', '.join(DEVICE_TYPES)}")
        if subdevice_type not in SUBDEVICE_TYPES:
            raise ValueError(f"unknown subdevice type {subdevice_type!r}: expected one of {', '.join(SUBDEVICE_TYPES)}")
    if len(mapping) > 1:
        raise ValueError(f"{dict(mapping)!r} has {len(mapping)} device types, but all devices have the same")
    if not mapping or dict(mapping) == get_subdevice_mapping():
        return
    if "tensorflow" in sys.modules:
        raise RuntimeError(
            f"set_subdevice_mapping({dict(mapping)!r}) came after TensorFlow was imported: the backend is chosen then. "
            f"Call it before `import tensorflow`, or set {VARIABLE} and {TYPE_VARIABLE} in the environment"
        )
    ((os.environ[TYPE_VARIABLE], os.environ[VARIABLE]),) = mapping.items()
