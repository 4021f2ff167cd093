"""XPU for TensorFlow: what the ``XPU`` devices of this machine are.

Nothing here is needed to use an XPU: with the wheel installed, ``import tensorflow`` finds the plugin by itself and
unmodified programs run on ``/xpu:0``. This package shows what TensorFlow's own API leaves out
(``tf.config.experimental.get_device_details`` returns a platform name and nothing else), chooses the backend and other
options, loads other plugins, and makes the one strategy of ``tf.distribute`` that TensorFlow would not run on an XPU by
itself.

    >>> import tensorflow_xpu
    >>> for device in tensorflow_xpu.list_physical_devices("XPU"):
    ...     print(device.name, device.subdevice_type, "enabled" if device.enabled else "not enabled")
    /physical_device:XPU:0 XPU_HOST enabled
    /physical_device:XPU:0 XPU_REFERENCE not enabled

It also gives TensorFlow the whole of DLPack, once TensorFlow is imported: :mod:`tensorflow_xpu.dlpack`.

``python -m tensorflow_xpu doctor`` says whether the installation works and what is wrong if it does not.
"""

import sys as _sys

from tensorflow_xpu import hooks
from tensorflow_xpu._config import Config, show_config
from tensorflow_xpu._devices import (
    LogicalDevice,
    PhysicalDevice,
    get_device_details,
    list_logical_devices,
    list_physical_devices,
    synchronize,
)
from tensorflow_xpu._distribute import multi_worker_mirrored_strategy
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._kernels import Explanation, explain
from tensorflow_xpu._memory import MemoryInfo, memory_info, reset_memory_stats
from tensorflow_xpu._placement import PlacementReport
from tensorflow_xpu._plugins import load_plugin, load_plugin_with_highest_priority
from tensorflow_xpu._profile import MemoryEvent, Profile, ProfileEvent, profile
from tensorflow_xpu._settings import Setting
from tensorflow_xpu._subdevice import configure, get_subdevice_mapping, set_subdevice_mapping
from tensorflow_xpu._trace import placement_callback, trace_placement
from tensorflow_xpu._version import __version__
from tensorflow_xpu._vocabulary import SUBDEVICE_TYPES
from tensorflow_xpu.hooks.after_import import AfterImport

__all__ = [
    "SUBDEVICE_TYPES",
    "Config",
    "Explanation",
    "LogicalDevice",
    "MemoryEvent",
    "MemoryInfo",
    "PhysicalDevice",
    "PlacementReport",
    "Profile",
    "ProfileEvent",
    "Setting",
    "XPUError",
    "__version__",
    "configure",
    "explain",
    "get_device_details",
    "get_subdevice_mapping",
    "hooks",
    "list_logical_devices",
    "list_physical_devices",
    "load_plugin",
    "load_plugin_with_highest_priority",
    "memory_info",
    "multi_worker_mirrored_strategy",
    "placement_callback",
    "profile",
    "reset_memory_stats",
    "set_subdevice_mapping",
    "show_config",
    "synchronize",
    "trace_placement",
]


def _install_dlpack(_tensorflow: object) -> None:
    """Replaces TensorFlow's DLPack. A failure here must not disturb ``import tensorflow``."""
    try:
        from tensorflow_xpu import dlpack  # noqa: F401
    except Exception as error:
        print(f"tensorflow_xpu: TensorFlow's own DLPack stays in place ({error!r})", file=_sys.stderr)


# TensorFlow is not imported here: set_subdevice_mapping comes before that.
if "tensorflow" in _sys.modules:
    _install_dlpack(_sys.modules["tensorflow"])
else:
    _sys.meta_path.insert(0, AfterImport("tensorflow", _install_dlpack))
