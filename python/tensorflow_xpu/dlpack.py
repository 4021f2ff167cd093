"""DLPack: tensors in from, and out to, PyTorch, JAX, NumPy and every other library, mostly without a copy.

Importing this module (``import tensorflow_xpu`` does it as soon as TensorFlow is imported) gives TensorFlow what it
lacks:

* ``tf.Tensor.__dlpack__`` and ``__dlpack_device__`` with all arguments of the array API, and the same on
  ``tf.Variable``, so that ``numpy.from_dlpack(t)``, ``torch.from_dlpack(t)`` and so on work, for tensors on XPUs too;
* the C exchange API of DLPack 1.3, ``__dlpack_c_exchange_api__`` on the type of eager tensors, for consumers that call
  C functions instead of Python ones;
* :func:`from_dlpack`, which makes a ``tf.Tensor`` of another library's tensor, on the CPU or straight on an XPU.

The C exchange API is there with the TensorFlow versions that the wheel was built for; :data:`c_api_missing` says why it
is not.
Everything else then goes through TensorFlow's public API, slower and with more copies.

``docs/dlpack.md`` says what is copied when. TensorFlow's context is not initialised by any of this, so ``tf.config``
can be used afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import tensorflow as tf

from tensorflow_xpu import _devices, _dlpack_public
from tensorflow_xpu.hooks.patch import CORRECTNESS, Patch

__all__ = ["c_api_missing", "from_dlpack", "install", "uninstall"]


def _load_interop() -> tuple[ModuleType | None, str | None]:
    """The interop module for the running TensorFlow, or why there is none."""
    minor = "_".join(tf.__version__.split(".")[:2])
    try:
        interop = importlib.import_module(f"tensorflow_xpu._interop_{minor}")
    except ImportError as error:
        return None, f"no interop module for TensorFlow {tf.__version__}: {error}"
    report = _devices.loader_report()
    if report is not None and report["active"] and not interop.connect_core(report["core"]):
        return None, "no interop module of the core's release"
    return interop, None


_interop, _interop_missing = _load_interop()
c_api_missing: str | None = _interop_missing
_from_dlpack = _interop.from_dlpack if _interop else _dlpack_public.from_dlpack


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
    export = _interop.dlpack_of_variable if _interop and WITHOUT_COPY.is_on else _dlpack_public.dlpack
    return export(self.value(), stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _variable_dlpack_device(self: tf.Variable) -> tuple[int, int]:
    """DLPack's (device type, device id) of the variable's value."""
    return self.value().__dlpack_device__()


def _make_without_copy(found: SimpleNamespace) -> Mapping[str, Any]:
    assert _interop is not None, "unless() says that there is none"
    interop, put = _interop, found.put

    def put_and_mark(self: Any, key: Any, value: tf.Tensor) -> None:
        """Marks what TensorFlow caches (gradients of zero) as used by somebody else, so that it is exported by copy."""
        # alias() raises these for tensors that cannot be exported either.
        with WITHOUT_COPY.contained(), contextlib.suppress(TypeError, BufferError, tf.errors.OpError):
            value._xpu_alias = interop.alias(value)
        put(self, key, value)

    return {
        "tensor": interop.dlpack,
        "tensor_device": interop.dlpack_device,
        "exchange_api": interop.exchange_api,
        "variable": _variable_dlpack,
        "variable_device": _variable_dlpack_device,
        "put": put_and_mark,
    }


_TENSOR = "tensorflow.python.framework.ops:EagerTensor"
_VARIABLE = "tensorflow.python.ops.resource_variable_ops:BaseResourceVariable"
_PUBLIC_NEEDS = {
    "tensors": f"{_TENSOR}[class]",
    "variables": f"{_VARIABLE}[class]",
    "tensor": f"{_TENSOR}.__dlpack__[added]",
    "tensor_device": f"{_TENSOR}.__dlpack_device__[added]",
    "variable": f"{_VARIABLE}.__dlpack__[added]",
    "variable_device": f"{_VARIABLE}.__dlpack_device__[added]",
}

#: Not among ``hooks.HOOKS``, which programs have that never import this package.
WITHOUT_COPY = Patch(
    name="dlpack",
    kind=CORRECTNESS,
    purpose="Tensors and variables go to other libraries without a copy, also by DLPack's C functions.",
    without="DLPack goes through TensorFlow's public API and copies.",
    needs={
        **_PUBLIC_NEEDS,
        "exchange_api": f"{_TENSOR}.__dlpack_c_exchange_api__[added]",
        "put": "tensorflow.python.eager.context:_EagerTensorCache.put(self, key, value)",
    },
    public="DLPack's methods and C functions in TensorFlow itself",
    unless=lambda: f"since there is {_interop_missing}" if _interop_missing else "",
    make=_make_without_copy,
)

#: In place of the other one.
BY_COPY = Patch(
    name="dlpack_by_copy",
    kind=CORRECTNESS,
    purpose="The same through TensorFlow's public API, where there is no interop module.",
    without="Tensors and variables have TensorFlow's own DLPack.",
    needs=_PUBLIC_NEEDS,
    public="DLPack's methods with all arguments of the array API in TensorFlow itself",
    make=lambda found: {
        "tensor": _dlpack_public.dlpack,
        "tensor_device": _dlpack_public.dlpack_device,
        "variable": _variable_dlpack,
        "variable_device": _variable_dlpack_device,
    },
)


def install() -> None:
    """Puts DLPack's methods and C functions onto TensorFlow's classes; importing this module has done it."""
    global c_api_missing
    if WITHOUT_COPY.is_on or BY_COPY.is_on:
        return
    WITHOUT_COPY.install()
    if not WITHOUT_COPY.is_on:
        BY_COPY.install()
    c_api_missing = None if WITHOUT_COPY.is_on else _interop_missing or WITHOUT_COPY.state.removeprefix("off: ")


def uninstall() -> None:
    """Restores what TensorFlow has by itself. :func:`from_dlpack` still works; :func:`install` undoes it."""
    for patch in (WITHOUT_COPY, BY_COPY):
        if patch.is_on:
            patch.uninstall()


install()
