"""Where ops ran: read from the graphs that TensorFlow reports it executed."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Iterator

from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.eager import context

# Ops that TensorFlow's core runs for every device, that only pass values on, or that work on strings, shapes and
# handles in host memory: a device has nothing to compute in them.
BOOKKEEPING = {
    "_Arg",
    "_Retval",
    "_DeviceArg",
    "_DeviceRetval",
    "_Send",
    "_Recv",
    "_HostSend",
    "_HostRecv",
    "NoOp",
    "Const",
    "Identity",
    "IdentityN",
    "Placeholder",
    "VarHandleOp",
    "ReadVariableOp",
    "AssignVariableOp",
    "VarIsInitializedOp",
    "DestroyResourceOp",
    "VariableShape",
    "PartitionedCall",
    "StatefulPartitionedCall",
    "If",
    "StatelessIf",
    "While",
    "StatelessWhile",
    "Switch",
    "Merge",
    "Enter",
    "Exit",
    "NextIteration",
    "LoopCond",
    "Assert",
    "StringFormat",
    "PrintV2",
    "Shape",
    "ShapeN",
    "Size",
    "Rank",
    "Reshape",
    "Squeeze",
    "ExpandDims",
    "BroadcastGradientArgs",
    "StopGradient",
    "PreventGradient",
    "EnsureShape",
}


def with_members(nodes: Iterable[node_def_pb2.NodeDef]) -> Iterator[node_def_pb2.NodeDef]:
    """Nodes that were executed, with those that a cluster or a loop stands for behind it."""
    for node in nodes:
        if node.op != "_XpuCluster":
            yield node
        if node.op in ("_XpuCluster", "_XpuLoop"):
            members = graph_pb2.GraphDef.FromString(node.attr["members"].s).node
            for member in members:
                member.device = node.device
            yield from with_members(members)


@contextlib.contextmanager
def record_nodes() -> Iterator[list[node_def_pb2.NodeDef]]:
    """Yields a list that is filled at the end: the nodes that were executed, clusters as they are."""
    nodes: list[node_def_pb2.NodeDef] = []
    context.context().enable_run_metadata()
    context.context().export_run_metadata()  # and forgets: what a tracing that was stopped without asking left there
    try:
        yield nodes
    finally:
        metadata = context.context().export_run_metadata()
        context.context().disable_run_metadata()
        for graph in metadata.partition_graphs:
            nodes.extend(graph.node)


@contextlib.contextmanager
def record() -> Iterator[dict[str, set[str]]]:
    """Yields a dict that is filled at the end: op type -> device types ("XPU", "CPU") it ran on."""
    placement: dict[str, set[str]] = collections.defaultdict(set)
    nodes: list[node_def_pb2.NodeDef] = []
    try:
        with record_nodes() as nodes:
            yield placement
    finally:
        for node in with_members(nodes):
            if node.device:
                placement[node.op].add(node.device.rsplit("device:", 1)[-1].split(":")[0])


def compute_ops_on(placement: dict[str, set[str]], device: str) -> set[str]:
    """Op types, other than bookkeeping, that ran on `device`."""
    return {op for op, devices in placement.items() if device in devices and op not in BOOKKEEPING}
