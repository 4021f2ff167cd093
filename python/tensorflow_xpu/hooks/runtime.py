"""The hooks' facts of this process: the devices' type, and the native module."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys
from typing import Any

from tensorflow_xpu.hooks.patch import UnknownError


class Devices:
    """The loader's facts of the devices."""

    type = "XPU"  # to TensorFlow


# Where a context keeps what it knows of functions that are called directly: by name, then by all else that TensorFlow
# optimises them for.
CALLS = "_xpu_direct_calls"


def native() -> Any:
    """The native module for this TensorFlow, connected with the core.

    The package is not imported for it: that would replace TensorFlow's DLPack for who has not asked.

    Raises:
        UnknownError: if there is none.
    """
    folder = pathlib.Path(__file__).parent.parent
    version = sys.modules["tensorflow"].__version__
    minor = "_".join(version.split(".")[:2])
    name = f"tensorflow_xpu._interop_{minor}"
    module = sys.modules.get(name)
    if module is None:
        paths = [folder / f"_interop_{minor}{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            raise UnknownError(f"the wheel has no native module for TensorFlow {version} and this Python")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
        except ImportError as error:  # it refuses another patch version than that which it was built for
            raise UnknownError(f"no native module for TensorFlow {version} ({error})") from error
        sys.modules[name] = module
    if not module.connect_core(str(folder / "lib" / f"libtensorflow_xpu_core_{minor}.so")):
        raise UnknownError("the native module does not find its core")
    return module


# The last of Keras's modules that the hooks are about: when its class is there, all of them are.
AFTER_KERAS = "keras.src.backend.tensorflow.trainer:TensorFlowTrainer"


def keras_uses_xpu() -> bool:
    """True if Keras computes with TensorFlow, and TensorFlow lists an XPU."""
    tensorflow, keras = sys.modules["tensorflow"], sys.modules["keras"]
    return keras.config.backend() == "tensorflow" and bool(tensorflow.config.list_physical_devices(Devices.type))
