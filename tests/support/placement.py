"""Where ops ran: read from the graphs that TensorFlow reports it executed."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.eager import context

from tensorflow_xpu._placement import ops_of_bookkeeping
from tensorflow_xpu._trace import hand_out_graphs, with_members

__all__ = ["compute_ops_on", "ops_of_bookkeeping", "record", "record_nodes", "with_members"]


@contextlib.contextmanager
def record_nodes() -> Iterator[list[node_def_pb2.NodeDef]]:
    """Yields a list that is filled at the end: the nodes that were executed, clusters as they are."""
    nodes: list[node_def_pb2.NodeDef] = []
    context.context().enable_graph_collection()
    hand_out_graphs()
    context.context().export_run_metadata()  # and forgets
    try:
        yield nodes
    finally:
        hand_out_graphs()
        metadata = context.context().export_run_metadata()
        context.context().disable_graph_collection()
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
    return {op for op, devices in placement.items() if device in devices and op not in ops_of_bookkeeping()}
