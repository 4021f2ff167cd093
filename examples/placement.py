"""Shows where the operations of a compiled TensorFlow function ran, as TensorFlow itself reports it.

TensorFlow can hand out the graphs that it executes, after its optimizer and placer have done their work. Each node
names its operation and its device. Soft placement hides what a device cannot do (the operation runs on the CPU); this
shows it.
"""

import collections
import contextlib
import re

import keras
from tensorflow.python.eager import context

# Ops that feed a program rather than compute: data pipelines, arguments, constants, copies between devices.
HOUSEKEEPING = re.compile(
    r".*Dataset.*|.*Iterator.*|Optional.*|_Arg|_Retval|_?(Host)?(Send|Recv)|NoOp|Const|VarHandleOp|VarIsInitializedOp|"
    r"StatelessRandomGetKeyCounter|Assert|Identity"
)
# These read no element of a tensor, so they may run wherever the tensor is.
ANYWHERE = {"Shape", "ShapeN", "Size", "Rank"}


@contextlib.contextmanager
def placements():
    """Yields a dict that is filled at the end: {op type: {device such as 'XPU:0': how many nodes}}.

    Counts the functions that TensorFlow compiles inside the block; one that it has compiled before does not show.
    """
    found = collections.defaultdict(collections.Counter)
    context.enable_graph_collection()
    try:
        yield found
        metadata = context.export_run_metadata()
    finally:
        context.disable_graph_collection()
    for function in metadata.function_graphs:
        for graph in function.partition_graphs:
            for node in graph.node:
                found[node.op][node.device.rpartition("/device:")[2]] += 1


class TrainingStepPlacement(keras.callbacks.Callback):
    """Records in ``self.found`` where the ops of the first training step are (compiled then, and used for all)."""

    def __init__(self):
        super().__init__()
        self.found = {}
        self._block = None

    def on_train_begin(self, logs=None):
        """Starts to listen."""
        self._block = placements()
        self.found = self._block.__enter__()

    def on_train_batch_end(self, batch, logs=None):
        """Stops after the first step."""
        if self._block is not None:
            self._block.__exit__(None, None, None)
            self._block = None


def strays(found, device):
    """The op types that compute, but not on ``device`` ('XPU:0'): {op type: [other devices]}."""
    return {
        op: sorted(set(devices) - {device})
        for op, devices in found.items()
        if not HOUSEKEEPING.fullmatch(op) and op not in ANYWHERE and set(devices) - {device}
    }


def table(found, devices):
    """The counts as lines of text, one per op type that computes, with a column per device."""
    ops = sorted(op for op in found if not HOUSEKEEPING.fullmatch(op))
    width = max((len(op) for op in ops), default=0)
    lines = [" ".join([f"  {'op type':<{width}}", *(f"{device:>7}" for device in devices)])]
    for op in ops:
        counts = (found[op][device] for device in devices)
        lines.append(" ".join([f"  {op:<{width}}", *(f"{count or '-':>7}" for count in counts)]))
    return lines
