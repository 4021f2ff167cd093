"""The package's exception."""

from __future__ import annotations


class XPUError(RuntimeError):
    """A request to this package that cannot be met; nothing has been changed.

    The message says what was found, what was expected and what to do. It is the one class that the package's functions
    raise. They raise it for bad input, calls that come too late, and files that are not what they should be.

    >>> import tensorflow_xpu
    >>> try:
    ...     tensorflow_xpu.set_subdevice_mapping("XPU_BANANA")
    ... except tensorflow_xpu.XPUError as error:
    ...     print(error)
    subdevice='XPU_BANANA' makes no sense: expected XPU_HOST, XPU_REFERENCE, XPU_OPENCL or XPU_CUDA
    """
