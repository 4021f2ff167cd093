"""DLPack: tensors in from, and out to, PyTorch, JAX, NumPy and every other library, mostly without a copy.

Importing this module (``import tensorflow_xpu`` does it as soon as TensorFlow is imported) gives TensorFlow what it
lacks:

* ``tf.Tensor.__dlpack__`` and ``__dlpack_device__`` with all arguments of the array API, and the same on
  ``tf.Variable``, so that ``numpy.from_dlpack(t)``, ``torch.from_dlpack(t)`` and so on work, for tensors on XPUs too;
* the C exchange API of DLPack 1.3, ``__dlpack_c_exchange_api__`` on the type of eager tensors, for consumers that call
  C functions instead of Python ones;
* :func:`from_dlpack`, which makes a ``tf.Tensor`` of another library's tensor, on the CPU or straight on an XPU.

The C exchange API is there with the TensorFlow that the wheel was built for; :data:`c_api_missing` says why it is not.
Everything else then goes through TensorFlow's public API, slower and with more copies.

``docs/dlpack.md`` says what is copied when. TensorFlow's context is not initialised by any of this, so ``tf.config``
can be used afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
from types import ModuleType
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.ops import resource_variable_ops

from tensorflow_xpu import _devices, _dlpack_public

__all__ = ["c_api_missing", "from_dlpack", "install", "uninstall"]


def _load_native() -> tuple[ModuleType | None, str | None]:
    """The native module for the running TensorFlow, or why there is none."""
    minor = "_".join(tf.__version__.split(".")[:2])
    try:
        native = importlib.import_module(f"tensorflow_xpu._interop_{minor}")
    except ImportError as error:
        return None, f"no native module for TensorFlow {tf.__version__}: {error}"
    report = _devices.loader_report()
    if report is not None and report["active"]:
        native.connect_core(report["core"])
    return native, None


_native, c_api_missing = _load_native()
_from_dlpack = _native.from_dlpack if _native else _dlpack_public.from_dlpack


def from_dlpack(x: Any, device: Any = None, copy: bool | None = None) -> tf.Tensor:
    """A ``tf.Tensor`` with the elements of another library's tensor.

    Args:
        x: an object with ``__dlpack_c_exchange_api__`` or ``__dlpack__``, or a DLPack capsule, which is used up.
        device: where the tensor is to be: ``"/cpu:0"``, ``"/xpu:1"``, a ``tf.DeviceSpec`` or a
            ``tf.config.LogicalDevice``. ``None``: where the memory is, so ``/cpu:0`` for memory of the host.
        copy: ``True`` copies in any case, ``False`` in none. ``None`` copies where the memory cannot be shared: if it
            is not aligned to 64 bytes (TensorFlow's kernels need that; NumPy's arrays often are not), if the elements
            are not in row-major order without gaps, or if ``device`` cannot reach it.

    Returns:
        An eager tensor. Where the memory is shared, it stays alive with the tensor, TensorFlow never writes to it, and
        what others write to it is seen.

    Raises:
        BufferError: if DLPack or TensorFlow cannot express ``x`` (the type, the device, another major version), if it
            is malformed, or if ``copy=False`` and a copy is needed.
        TypeError: if ``x`` does not support DLPack.
        ValueError: if there is no such device.
    """
    return _from_dlpack(x, device, copy)


def _variable_dlpack(
    self: tf.Variable,
    *,
    stream: int | None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule with the variable's memory, see ``tf.Tensor.__dlpack__``. Later assignments are not seen in it."""
    export = _native.dlpack_of_variable if _native else _dlpack_public.dlpack
    return export(self.value(), stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _variable_dlpack_device(self: tf.Variable) -> tuple[int, int]:
    """DLPack's (device type, device id) of the variable's value."""
    return self.value().__dlpack_device__()


_put = context._EagerTensorCache.put


def _put_and_mark(self: context._EagerTensorCache, key: Any, tensor: tf.Tensor) -> None:
    """Marks what TensorFlow caches (gradients of zero) as used by somebody else, so that it is exported by copy."""
    assert _native is not None  # it is what this is installed for
    with contextlib.suppress(Exception):  # tensors without an alias cannot be exported either
        tensor._xpu_alias = _native.alias(tensor)
    _put(self, key, tensor)


_PATCHES: list[tuple[type, str, Any]] = [
    (resource_variable_ops.BaseResourceVariable, "__dlpack__", _variable_dlpack),
    (resource_variable_ops.BaseResourceVariable, "__dlpack_device__", _variable_dlpack_device),
    (ops.EagerTensor, "__dlpack__", _native.dlpack if _native else _dlpack_public.dlpack),
    (ops.EagerTensor, "__dlpack_device__", _native.dlpack_device if _native else _dlpack_public.dlpack_device),
]
if _native:
    _PATCHES += [
        (ops.EagerTensor, "__dlpack_c_exchange_api__", _native.exchange_api),
        (context._EagerTensorCache, "put", _put_and_mark),
    ]

_ABSENT = object()
_replaced: list[tuple[type, str, Any]] = []


def install() -> None:
    """Puts DLPack's methods and C functions onto TensorFlow's classes; importing this module has done it."""
    if _replaced:
        return
    for owner, name, value in _PATCHES:
        _replaced.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)


def uninstall() -> None:
    """Restores what TensorFlow has by itself. :func:`from_dlpack` still works; :func:`install` undoes it."""
    while _replaced:
        owner, name, value = _replaced.pop()
        if value is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, value)


install()
