"""The hooks' facts of this process: the devices' type, and the interop module."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow_xpu.hooks.patch import NeedsHookError, UnknownError
from tensorflow_xpu.hooks.trial import NotNowError


class Devices:
    """The loader's facts of the devices."""

    type = "XPU"  # to TensorFlow


# Where a context keeps what it knows of functions that are called directly: by name, then by all else that TensorFlow
# optimises them for.
CALLS = "_xpu_direct_calls"


# The hook in C++ that hooks need of the interop module, and the one that functions' arguments need besides.
EAGER_TENSORS, THREAD_STATE = "eager_tensors", "thread_state"


class DirectCalls(dict[Any, Any]):
    """The direct calls of a function; None where it has none. An undecided call is not in it.

    If several threads make the first call at once, one of them sees the graph. The others decide nothing until then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.under_way: list[None] = []  # an entry for each call that may see the graph: append and pop are atomic


PACKAGE = pathlib.Path(__file__).parent.parent
FIX = "pip install --force-reinstall --no-deps tensorflow_xpu"


def _running() -> tuple[str, str]:
    """The version of TensorFlow, and its minor version as file names have it."""
    version: str = sys.modules["tensorflow"].__version__
    return version, "_".join(version.split(".")[:2])


def _core_path() -> str:
    return str(PACKAGE / "lib" / f"libtensorflow_xpu_core_{_running()[1]}.so")


@functools.cache
def release() -> str:
    """The version of the Python files. Their file with it is read: to import that would import the package.

    Raises:
        UnknownError: if it is gone.
    """
    try:
        text = (PACKAGE / "_version.py").read_text(encoding="utf-8")
        return str(re.findall('__version__ = "(.+)"', text)[0])
    except (OSError, IndexError) as error:
        raise UnknownError(f"the package does not say its release ({error}; {FIX} mends that)") from error


def _core() -> ctypes.PyDLL:
    """The core that TensorFlow has loaded.

    Raises:
        UnknownError: if it is not loaded, or of another release than these files: half the package was upgraded.
    """
    try:
        core = ctypes.PyDLL(_core_path(), mode=os.RTLD_NOLOAD)
    except OSError as error:
        raise UnknownError(f"the core is not loaded ({error})") from error
    if not hasattr(core, re.sub(r"\W", "_", f"xpu_release_{release()}")):
        raise UnknownError(f"the core is not of release {release()} ({FIX} mends that)")
    return core


def core_functions(*names: str) -> Sequence[Callable[[], object]]:
    """Functions of the core that TensorFlow has loaded, which take nothing and return nothing.

    Raises:
        UnknownError: if it is not loaded, is of another release, or has no such function.
    """
    core = _core()
    try:
        found = [core[name] for name in names]
    except AttributeError as error:
        raise UnknownError(f"the core lacks a function ({error})") from error
    for function in found:
        function.restype = None
    return found


def interop_module(*needed: str) -> Any:
    """The interop module for this TensorFlow, connected with the core.

    The package is not imported for it: that would replace TensorFlow's DLPack for who has not asked.

    Args:
        needed: hooks in C++ of that module which have to be on, besides the one that all need.

    Raises:
        UnknownError: if there is none.
        NeedsHookError: if such a hook is off.
    """
    _core()
    version, minor = _running()
    name = f"tensorflow_xpu._interop_{minor}"
    module = sys.modules.get(name)
    if module is None:
        paths = [PACKAGE / f"_interop_{minor}{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
        path = next((path for path in paths if path.exists()), None)
        if path is None:
            raise UnknownError(f"the wheel has no interop module for TensorFlow {version} and this Python")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
        except ImportError as error:  # it refuses another minor version, or lacks a name in TensorFlow
            raise UnknownError(f"no interop module for TensorFlow {version} ({error})") from error
        sys.modules[name] = module
    if not module.connect_core(_core_path()):
        raise UnknownError(f"the interop module is not of release {release()} ({FIX} mends that)")
    for hook in (EAGER_TENSORS, *needed):
        if module.hooks[hook] != "on":
            raise NeedsHookError(f"it needs {hook}, which is {module.hooks[hook]}")
    return module


@contextlib.contextmanager
def eager_device() -> Iterator[Any]:
    """Around the program of a self-check: TensorFlow, whose eager ops in the block run on the first device.

    Raises:
        NotNowError: in a graph, or in the scope of a strategy.
    """
    tensorflow = sys.modules["tensorflow"]
    if not tensorflow.executing_eagerly() or tensorflow.distribute.has_strategy():
        raise NotNowError
    with tensorflow.init_scope(), tensorflow.device(f"/{Devices.type}:0"):
        yield tensorflow


# The two programs below have no more ops than they need: TensorFlow takes milliseconds to trace an op and rewrite a
# graph.


def _call_functions() -> list[Any]:
    """The program of the self-check of ``calls``: a structure, a variable that changes with each call."""
    with eager_device() as tf:
        variable = tf.Variable(2.0, trainable=False)

        def step(x: Any, i: Any, more: Any) -> Any:
            variable.assign_add(i, read_value=False)
            return {"y": [x * variable, (i,)], "n": more["n"]}

        function = tf.function(step, autograph=False)
        found: list[Any] = []
        for i in (1.0, 0.5, 0.25):
            given = function(tf.constant([1.0, -2.0]), tf.constant(i), {"n": tf.constant([len(found), 7])})
            found.append([value.numpy().tolist() for value in tf.nest.flatten(given)])
        return [*found, float(variable)]


CALLED = ([[0, 7], [3, -6], 1], [[1, 7], [3.5, -7], 0.5], [[2, 7], [3.75, -7.5], 0.25], 3.75)
CALLING = (_call_functions, CALLED)


def _find_functions() -> list[Any]:
    """The program of the self-check of ``functions``: arguments of two shapes in turns, in a structure."""
    with eager_device() as tf:
        # Each graph has a structure of its own, and no ops.
        function = tf.function(lambda x, more: {"y": x, "n": [more["n"]] * x.shape[0]}, autograph=False)
        found: list[Any] = []
        for size in (3, 3, 3, 2, 2, 2, 3):
            given = function(tf.constant([1.0, -2.0, 4.0][:size]), {"n": tf.constant(float(len(found)))})
            found.append([value.numpy().tolist() for value in tf.nest.flatten(given)])
        return found


FOUND = tuple([*[i] * size, [1, -2, 4][:size]] for i, size in enumerate((3, 3, 3, 2, 2, 2, 3)))
FINDING = (_find_functions, FOUND)


# The last of Keras's modules that the hooks are about: when its class is there, all of them are.
AFTER_KERAS = "keras.src.backend.tensorflow.trainer:TensorFlowTrainer"


def keras_uses_xpu() -> bool:
    """True if Keras computes with TensorFlow, and TensorFlow lists an XPU."""
    tensorflow, keras = sys.modules["tensorflow"], sys.modules["keras"]
    return keras.config.backend() == "tensorflow" and bool(tensorflow.config.list_physical_devices(Devices.type))
