"""The kernels that are registered for XPU, read back from TensorFlow's own kernel registry, and the mistakes in
them."""

from __future__ import annotations

import collections
import dataclasses

import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

from tensorflow_xpu import _kernels


@dataclasses.dataclass(frozen=True)
class Registration:
    """One kernel: an op, the types it is constrained to, and the arguments it keeps in host memory."""

    op: str
    types: tuple[tuple[str, tf.DType], ...]
    host_args: tuple[str, ...]
    label: str
    priority: int

    @property
    def type_map(self) -> dict[str, tf.DType]:
        return dict(self.types)

    def __str__(self) -> str:
        types = ", ".join(f"{a}={t.name}" for a, t in self.types)
        return f"{self.op}({types})"


# The labels of kernels that graph passes give to 32-bit integers that are data
# (tensorflow_plugin/graph/integer_placement.cc), and to what is decided on the host (placement_pass.cc).
ON_DEVICE, ON_HOST = "XpuOnDevice", "XpuOnHost"


def all_registrations(device_type: str = "XPU", label: str = "") -> list[Registration]:
    """Every kernel of `device_type`, sorted by op and types: those that programs get, or those with this label."""
    found = []
    for k in kernels.get_all_registered_kernels().kernel:
        if k.device_type != device_type or k.op in (*_kernels.CLUSTERS, *_kernels.INSTEAD):  # test_clusters.py
            continue
        if k.label != label and (label or k.label.startswith("Xpu")):  # chosen by graph passes, not by programs
            continue
        types = []
        for c in k.constraint:
            for t in c.allowed_values.list.type:
                types.append((c.name, tf.as_dtype(t)))
        found.append(Registration(k.op, tuple(types), tuple(sorted(k.host_memory_arg)), k.label, k.priority))
    return sorted(found, key=lambda r: (r.op, [(a, t.as_datatype_enum) for a, t in r.types]))


def problems(registrations: list[Registration]) -> list[str]:
    """One line for each registration that is a duplicate or can never run."""
    lines = []
    seen = collections.Counter((r.op, r.types, r.label, r.priority) for r in registrations)
    lines += [
        f"{op}{[(a, t.name) for a, t in types]}: registered {n} times" for (op, types, _, _), n in seen.items() if n > 1
    ]
    for r in registrations:
        op_def = op_def_registry.get(r.op)
        if op_def is None:
            lines.append(f"{r.op}: TensorFlow has no op of this name")
            continue
        attrs = {a.name: a for a in op_def.attr}
        args = {a.name for a in [*op_def.input_arg, *op_def.output_arg]}
        for arg in r.host_args:
            if arg not in args:
                lines.append(f"{r}: host argument '{arg}' is not one of {sorted(args)}")
        if len({a for a, _ in r.types}) != len(r.types):
            lines.append(f"{r}: an attribute is constrained twice")
        for attr, dtype in r.types:
            if attr not in attrs:
                lines.append(f"{r}: the op has no attribute '{attr}'")
            elif attrs[attr].type not in ("type", "list(type)"):
                lines.append(f"{r}: attribute '{attr}' is of type {attrs[attr].type}")
            else:
                allowed = attrs[attr].allowed_values.list.type
                if allowed and dtype.as_datatype_enum not in allowed:
                    lines.append(f"{r}: attribute '{attr}' does not allow {dtype.name}")
    # A kernel without a constraint on an attribute matches all its values: one that has it matches twice.
    by_op = collections.defaultdict(list)
    for r in registrations:
        by_op[(r.op, r.label, r.priority)].append(set(r.types))
    for (op, _, _), sets in by_op.items():
        for i, a in enumerate(sets):
            for b in sets[i + 1 :]:
                if a != b and (a <= b or b <= a):
                    lines.append(f"{op}: a kernel for {sorted(map(str, a))} also matches {sorted(map(str, b))}")
    return lines
