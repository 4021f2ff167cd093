"""Which kernels there are for an XPU, as TensorFlow's registry has them, and which one a node gets.

The rules are TensorFlow's (``FindKernelRegistration`` in tensorflow/core/framework/op_kernel.cc): a kernel of the exact
device type whose constraints the node's attributes meet, else one that is registered for every device (``DEFAULT``).
"""

from __future__ import annotations

import collections
import dataclasses
import difflib
import functools
from collections.abc import Mapping
from typing import Any

from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._internals import private
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu.hooks.features import REGISTRY

#: The ops that stand for others in a graph (docs/clusters.md).
CLUSTERS = ("_XpuCluster", "_XpuLoop")
#: And one in another form, by the op that it is.
INSTEAD = {
    "_XpuAssert": "Assert",
    "_XpuReadHostVariable": "ReadVariableOp",
    "_XpuToDevice": "Identity",
    "_XpuToHost": "Identity",
}
#: Kernels with such a label are for the passes over graphs; no program can ask for them.
OWN_LABEL = "Xpu"
EVERY_DEVICE = "DEFAULT"


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A registered kernel."""

    op: str
    device_type: str  #: ``XPU`` (or ``GPU``), or ``DEFAULT``: TensorFlow's own, for every device
    types: tuple[tuple[str, frozenset[int]], ...]  #: attributes and the values of ``DataType`` that they may have
    host_args: frozenset[str]  #: inputs and outputs in host memory
    label: str
    priority: int

    def takes(self, types: Mapping[str, tuple[int, ...]]) -> bool:
        """True if it serves a node with these type attributes; attributes that are not named may be anything."""
        return all(allowed.issuperset(types.get(name, ())) for name, allowed in self.types)


@functools.cache
def _all(its_type: str, _count: int) -> dict[str, list[Kernel]]:
    found: dict[str, list[Kernel]] = collections.defaultdict(list)
    with private(REGISTRY, "a list of kernels") as names:
        registered = names.kernels().kernel
    for k in registered:
        if k.device_type in (its_type, EVERY_DEVICE) and k.op not in (*CLUSTERS, *INSTEAD):
            types = tuple((c.name, frozenset(c.allowed_values.list.type)) for c in k.constraint)
            kernel = Kernel(k.op, k.device_type, types, frozenset(k.host_memory_arg), k.label, k.priority)
            found[k.op].append(kernel)
    for of_op in found.values():  # the device's own first, of these the ones with the highest priority
        of_op.sort(key=lambda kernel: (kernel.device_type == EVERY_DEVICE, -kernel.priority))
    return dict(found)


def all_kernels() -> dict[str, list[Kernel]]:
    """The kernels of each op for this process's device type, those for every device last; none if there is no XPU."""
    import tensorflow as tf

    count = len(tf.config.list_physical_devices(device_type()))
    return _all(device_type(), count) if count else {}


def kernels_of(op: str) -> list[Kernel]:
    """Those of one op that programs can have."""
    return [kernel for kernel in all_kernels().get(op, []) if not kernel.label.startswith(OWN_LABEL)]


def find(op: str, types: Mapping[str, tuple[int, ...]], label: str = "") -> Kernel | None:
    """The kernel that a node with these type attributes gets on an XPU, ``None`` where it cannot run there."""
    for kernel in all_kernels().get(op, []):
        if kernel.label == label and kernel.takes(types):
            return kernel
    return None


def op_def(op: str) -> Any:
    """TensorFlow's definition of an op, ``None`` if there is none (a function's name, say)."""
    with private(REGISTRY, "a description of ops") as names:
        return names.op_def(op)


@functools.cache
def type_attributes(op: str) -> tuple[str, ...]:
    """The names of an op's attributes that are types or lists of types, in the order of its definition."""
    definition = op_def(op)
    return tuple(a.name for a in definition.attr if a.type in ("type", "list(type)")) if definition is not None else ()


@functools.cache
def tensor_args(op: str) -> frozenset[str]:
    """The inputs and outputs of an op that are neither resources nor references to them."""
    import tensorflow as tf

    definition = op_def(op)
    args = [*definition.input_arg, *definition.output_arg] if definition is not None else []
    return frozenset(arg.name for arg in args if arg.type != tf.resource.as_datatype_enum)


def in_host_memory(kernel: Kernel) -> bool:
    """True if all its inputs and outputs, handles apart, are in host memory: the device does nothing then."""
    args = tensor_args(kernel.op)
    return bool(args) and args <= kernel.host_args


def type_name(value: int) -> str:
    """``float32`` of a ``DataType``."""
    import tensorflow as tf

    return str(tf.as_dtype(value).name)


def served_types(op: str, attribute: str) -> dict[str, bool]:
    """The types that an attribute may have on an XPU, by name; ``True`` where all is in host memory with it."""
    found: dict[str, bool] = {}
    for kernel in kernels_of(op):
        for name in (type_name(v) for a, values in kernel.types if a == attribute for v in values):
            found[name] = found.get(name, True) and in_host_memory(kernel)
    return dict(sorted(found.items()))


def works_on_strings(op: str, types: Mapping[str, tuple[int, ...]]) -> bool:
    """True if an input or output of it is a string."""
    import tensorflow as tf

    string = tf.string.as_datatype_enum
    definition = op_def(op)
    args = [*definition.input_arg, *definition.output_arg] if definition is not None else []
    return any(arg.type == string for arg in args) or any(string in values for values in types.values())


def no_kernel(op: str, types: Mapping[str, tuple[int, ...]]) -> tuple[str, str]:
    """Why ``find`` has found nothing: the kind of reason, and the reason in words."""
    if works_on_strings(op, types):
        return "string", "works on strings, which are in host memory"
    there = kernels_of(op)
    if not there:
        return "no kernel", f"no kernel for {device_type()}"
    for attribute in type_attributes(op):
        constrained = {a for kernel in there for a, _ in kernel.types}
        served = served_types(op, attribute)
        wrong = [name for name in map(type_name, types.get(attribute, ())) if name not in served]
        if attribute in constrained and wrong:
            return "no type", f"no kernel for {attribute}={wrong[0]}, only for {', '.join(served)}"
    named = ", ".join(f"{a}={type_name(v)}" for a in type_attributes(op) for v in types.get(a, ()))
    return "no type", f"no kernel for these types together: {named}"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Where an op runs and why. ``print(explanation)`` has it in words."""

    op: str
    dtype: str | None  #: the name of the type that was asked for
    where: str  #: ``XPU``, ``host`` (on the XPU's list of kernels, but all in host memory) or ``CPU``
    kind: str  #: "" on the XPU, else ``host memory``, ``string``, ``no kernel`` or ``no type``
    reason: str  #: "" on the XPU
    types: dict[str, list[str]]  #: what each type attribute may be on an XPU

    @property
    def on_xpu(self) -> bool:
        """True if the device itself computes it."""
        return self.where == device_type()

    def __str__(self) -> str:
        subject = self.op if self.dtype is None else f"{self.op} of {self.dtype}"
        places = {"host": "in host memory", "CPU": "on the CPU"}
        place = places.get(self.where, f"on the {self.where}")
        lines = [f"{subject} runs {place}{f': {self.reason}' if self.reason else ''}"]
        lines += [f"  {attribute}: {', '.join(names)}" for attribute, names in self.types.items()]
        return "\n".join(lines)


def explain(op: str, dtype: Any = None) -> Explanation:
    """Where TensorFlow runs an op that nothing pins to another device, and if not on the XPU, why.

    Args:
        op: the name of an op of TensorFlow, as in ``tf.raw_ops`` and in reports of ``trace_placement``.
        dtype: anything that ``tf.as_dtype`` takes: the value of the op's first type attribute (``T`` of most). Without
            it, of types that the op has kernels for, any.

    Returns:
        An :class:`Explanation`, to be printed or read.

    Raises:
        XPUError: if TensorFlow has no op of this name, or the op cannot have this type on any device.

    >>> import tensorflow_xpu
    >>> print(tensorflow_xpu.explain("MatrixLogarithm", "complex64"))
    MatrixLogarithm of complex64 runs on the CPU: no kernel for XPU
    """
    import tensorflow as tf

    definition = op_def(op) if isinstance(op, str) else None
    if definition is None:
        close = difflib.get_close_matches(str(op), dir(tf.raw_ops), 3)
        hint = f"; did you mean {' or '.join(close)}?" if close else "; dir(tf.raw_ops) lists them"
        raise XPUError(f"TensorFlow has no op {op!r}{hint}")
    attributes = type_attributes(op)
    types: dict[str, tuple[int, ...]] = {}
    name = None
    if dtype is not None:
        try:
            asked = tf.as_dtype(dtype)
        except TypeError as error:
            raise XPUError(f"{dtype!r} is no type of TensorFlow: expected one such as 'float32' or tf.int64") from error
        name = str(asked.name)
        if not attributes:
            raise XPUError(f"{op} has no type to choose: call explain({op!r}) without one")
        attribute = next(a for a in definition.attr if a.name == attributes[0])
        allowed = list(attribute.allowed_values.list.type)
        if allowed and asked.as_datatype_enum not in allowed:
            names = ", ".join(map(type_name, allowed))
            raise XPUError(f"{op} cannot be of {name} on any device: its {attribute.name} is one of {names}")
        types[attribute.name] = (asked.as_datatype_enum,)
    served = {a: list(served_types(op, a)) for a in attributes}
    served = {a: names for a, names in served.items() if names}
    fitting = [kernel for kernel in kernels_of(op) if kernel.label == "" and kernel.takes(types)]
    if not fitting:
        return Explanation(op, name, "CPU", *no_kernel(op, types), served)
    if all(map(in_host_memory, fitting)):
        return Explanation(op, name, "host", "host memory", host_memory_reason(types), served)
    return Explanation(op, name, device_type(), "", "", served)


def host_memory_reason(types: Mapping[str, tuple[int, ...]]) -> str:
    """Why a kernel has everything in host memory, in words."""
    import tensorflow as tf

    values = {v for of_attribute in types.values() for v in of_attribute}
    if tf.int32.as_datatype_enum in values:
        return "int32, which TensorFlow keeps in host memory"
    if tf.string.as_datatype_enum in values:
        return "works on strings, which are in host memory"
    return "shapes and other small values, which TensorFlow keeps in host memory"
