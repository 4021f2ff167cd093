"""XPU for TensorFlow: what the ``XPU`` devices of this machine are.

Nothing here is needed to use an XPU: with the wheel installed, ``import tensorflow`` finds the plugin by itself and
unmodified programs run on ``/xpu:0``. This package shows what TensorFlow's own API leaves out
(``tf.config.experimental.get_device_details`` returns a platform name and nothing else), chooses the backend, and
makes the one strategy of ``tf.distribute`` that TensorFlow would not run on an XPU by itself.

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.list_physical_devices()
    [PhysicalDevice(name='/physical_device:XPU:0', device_type='XPU', subdevice_type='XPU_HOST', ...)]

``python -m tensorflow_xpu doctor`` says whether the installation works and what is wrong if it does not.
"""

from tensorflow_xpu._devices import PhysicalDevice, list_physical_devices
from tensorflow_xpu._distribute import multi_worker_mirrored_strategy
from tensorflow_xpu._memory import MemoryInfo, memory_info, reset_memory_stats
from tensorflow_xpu._subdevice import SUBDEVICE_TYPES, get_subdevice_mapping, set_subdevice_mapping
from tensorflow_xpu._version import __version__

__all__ = [
    "SUBDEVICE_TYPES",
    "MemoryInfo",
    "PhysicalDevice",
    "__version__",
    "get_subdevice_mapping",
    "list_physical_devices",
    "memory_info",
    "multi_worker_mirrored_strategy",
    "reset_memory_stats",
    "set_subdevice_mapping",
]
