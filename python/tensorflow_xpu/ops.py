"""``python -m tensorflow_xpu ops``: which ops have kernels for an XPU, for which types, and what is in host memory."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import fnmatch
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from tensorflow_xpu import _kernels
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._families import FAMILIES
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu._terminal import Progress

#: Ops whose kernels are TensorFlow's own: registered once, for every device.
EVERY_DEVICE = "every device"
OTHER = "other"


@dataclasses.dataclass(frozen=True)
class Op:
    """An op with kernels for an XPU."""

    name: str
    family: str  #: a section of docs/ops.md, or ``every device``
    kernels: int
    types: dict[str, list[str]]  #: type attributes and what they may be
    host_types: dict[str, list[str]]  #: of these, those with which all inputs and outputs are in host memory
    host_memory: list[str]  #: inputs and outputs that are in host memory with every type


def families() -> list[str]:
    """The names of all families."""
    return [*FAMILIES, EVERY_DEVICE]


def _described(name: str, family: str) -> Op:
    kernels = _kernels.kernels_of(name)
    served = {a: _kernels.served_types(name, a) for a in _kernels.type_attributes(name)}
    types = {a: list(values) for a, values in served.items() if values}
    common = frozenset.intersection(*(kernel.host_args for kernel in kernels))
    on_host = {a: [t for t, host in values.items() if host] for a, values in served.items()}
    on_host = {a: values for a, values in on_host.items() if values}
    return Op(name, family, len(kernels), types, on_host, sorted(common))


def list_ops(names: Sequence[str] = (), dtype: str | None = None, family: str | None = None) -> list[Op]:
    """The ops that have kernels for an XPU, sorted by family and name.

    Args:
        names: patterns such as ``*MatMul*``; without a ``*``, part of a name will do. Upper and lower case are alike.
            An op is listed if one of them fits; without any, all are.
        dtype: lists ops that have a kernel for this type, such as ``float64``.
        family: lists those of one family: a section of docs/ops.md, or ``every device``.

    Raises:
        XPUError: for a type or a family that does not exist, or if TensorFlow lists no XPU.

    >>> from tensorflow_xpu import ops
    >>> [op.name for op in ops.list_ops(["cholesky"], dtype="float64")]
    ['Cholesky']
    """
    import tensorflow as tf

    if dtype is not None:
        try:
            dtype = str(tf.as_dtype(dtype).name)
        except TypeError as error:
            raise XPUError(f"{dtype!r} is no type of TensorFlow: expected one such as float32 or int64") from error
    if family is not None and family not in families():
        close = difflib.get_close_matches(family, families(), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(families())}"
        raise XPUError(f"there is no family {family!r}: {hint}")
    if not _kernels.all_kernels():
        raise XPUError(f"TensorFlow lists no {device_type()}: `python -m tensorflow_xpu doctor` says why")
    family_of = {op: name for name, listed in FAMILIES.items() for op in listed.split()}
    patterns = [name.lower() if "*" in name else f"*{name.lower()}*" for name in names]
    found = []
    for name in _kernels.all_kernels():
        kernels = _kernels.kernels_of(name)
        if not kernels or (patterns and not any(fnmatch.fnmatchcase(name.lower(), p) for p in patterns)):
            continue
        default = EVERY_DEVICE if all(k.device_type == _kernels.EVERY_DEVICE for k in kernels) else OTHER
        op = _described(name, family_of.get(name, default))
        if dtype is not None and not any(dtype in values for values in op.types.values()):
            continue
        if family is None or op.family == family:
            found.append(op)
    order = [*families(), OTHER]
    return sorted(found, key=lambda op: (order.index(op.family), op.name))


def _text(listed: list[Op]) -> str:
    lines: list[str] = []
    family = None
    for op in listed:
        if op.family != family:
            family = op.family
            lines += ["", family, "-" * len(family)] if lines else [family, "-" * len(family)]
        lines.append(op.name)
        for attribute, names in op.types.items():
            on_host = op.host_types.get(attribute, [])
            lines.append(f"    {attribute}: " + ", ".join(f"{n} (host)" if n in on_host else n for n in names))
        if op.host_memory:
            lines.append(f"    in host memory: {', '.join(op.host_memory)}")
    kernels = sum(op.kernels for op in listed)
    return "\n".join([*lines, *([""] if lines else []), f"{len(listed)} ops, {kernels} kernels"])


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, 1 if no op fits, or 2 for a type or family that does not exist and without an XPU."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_xpu ops",
        description="Lists the ops that have kernels for an XPU, with their types; (host): all of it in host memory.",
        epilog="families: " + ", ".join(families()),
    )
    parser.add_argument("name", nargs="*", help="part of an op's name, or a pattern such as 'Conv*' (all without it)")
    parser.add_argument("--type", metavar="TYPE", help="ops that have a kernel for this type, such as float64")
    parser.add_argument("--family", help="ops of one family; they are named below")
    parser.add_argument("--json", action="store_true", help="a list of objects instead of text")
    options = parser.parse_args(list(arguments))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported
    try:
        with Progress(text="importing TensorFlow"):
            listed = list_ops(options.name, options.type, options.family)
    except XPUError as error:
        print(f"ops: {error}", file=sys.stderr)
        return 2
    if options.json:
        records: list[dict[str, Any]] = [dataclasses.asdict(op) for op in listed]
        print(json.dumps(records, indent=1))
    else:
        print(_text(listed))
    return 0 if listed else 1
