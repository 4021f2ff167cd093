"""Which TensorFlow and which plugin the tests run with, and where they are installed."""

import ctypes
import functools
import importlib.metadata
import importlib.util
import pathlib
import re

import tensorflow_xpu

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def site_of(package):
    """The folder that an installed package lies in."""
    return pathlib.Path(importlib.util.find_spec(package).origin).parent.parent


PACKAGES, SITE = site_of("tensorflow"), site_of("tensorflow_xpu")
LOADER = "libtensorflow_xpu_loader.so"
# The TensorFlow that the tests run with, as it writes its version, and what of the plugin is for its minor version.
TENSORFLOW = next(
    distribution.version.replace("rc", "-rc").replace(".dev", "-dev")
    for distribution in importlib.metadata.distributions(path=[str(PACKAGES)])
    if distribution.metadata["Name"].replace("_", "-") in ("tensorflow", "tensorflow-cpu", "tf-nightly-cpu")
)
MINOR = "_".join(TENSORFLOW.split(".")[:2])
SHARED = "libtensorflow_xpu_backends.so"
CORE = f"libtensorflow_xpu_core_{MINOR}.so"

# The subdevice types that have a device where tests run: tools/setup.sh installs a driver of OpenCL, and no GPU.
BACKENDS = tuple(name for name in tensorflow_xpu.SUBDEVICE_TYPES if name != "XPU_CUDA")


@functools.cache
def is_on_host_memory():
    """True if the host can address all memory of the devices under test, by the core's own answer.

    Such a backend has plain loops for all that it has no faster kernel for, so it lacks nothing.
    """
    import tensorflow as tf  # loads the core

    assert tf.config.list_physical_devices(), "TensorFlow has no device at all"
    core = ctypes.CDLL(str(SITE / "tensorflow_xpu" / "lib" / CORE))
    return bool(core.XpuCore_SharesHostMemory())


def is_bus(bus, ordinal):
    """True if a device of that ordinal may say it is at that PCI address. Hardware on a bus is where it is, and several
    XPUs may be one piece. Other devices are in a domain in which no machine has a device.
    """
    real = not bus.startswith("ffff:") and not is_on_host_memory()
    wanted = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]" if real else rf"ffff:{ordinal:02x}:00\.0"
    return re.fullmatch(wanted, bus) is not None
