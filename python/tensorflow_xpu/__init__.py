"""XPU for TensorFlow: what the ``XPU`` devices of this machine are.

Nothing here is needed to use an XPU: with the wheel installed, ``import tensorflow`` finds the plugin by itself and
unmodified programs run on ``/xpu:0``. This package shows what TensorFlow's own API leaves out
(``tf.config.experimental.get_device_details`` returns a platform name and nothing else), chooses the backend, and
makes the one strategy of ``tf.distribute`` that TensorFlow would not run on an XPU by itself.

    >>> import tensorflow_xpu
    >>> tensorflow_xpu.list_physical_devices()
    [PhysicalDevice(name='/physical_device:XPU:0', device_type='XPU', subdevice_type='XPU_HOST', ...)]

It also gives TensorFlow the whole of DLPack, once TensorFlow is imported: :mod:`tensorflow_xpu.dlpack`.

``python -m tensorflow_xpu doctor`` says whether the installation works and what is wrong if it does not.
"""

import sys as _sys

from tensorflow_xpu import _keras_hook
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
    _sys.meta_path.insert(0, _keras_hook.AfterImport("tensorflow", _install_dlpack))
