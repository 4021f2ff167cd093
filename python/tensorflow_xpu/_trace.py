"""``trace_placement``: finds out where ops run.

Two sources, both TensorFlow's. Eager ops come to a callback (``op_callbacks.add_op_callback``) with their results,
whose device is known. TensorFlow hands out the graphs of a function that it executes, one per device, but only when it
prepares the function. So its cache of prepared ones is emptied at the beginning. The calls that follow are counted by
the callback, to which they are ops like others.
"""

from __future__ import annotations

import collections
import contextlib
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from tensorflow_xpu import _kernels
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._internals import note_once, private
from tensorflow_xpu._placement import PlacementReport, Row, ops_of_bookkeeping
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu.hooks.features import PLACEMENT

CALL = "trace_placement()"
# The names of nodes contain this when a function, a loop's or a branch's, was put into the graph around it.
INLINED = re.compile(r"/_\d+/")
BRANCH = re.compile(r"/(then|else|branch\d*)/_\d+/")
LOOP = re.compile(r"/(body|cond)/_\d+/")

# Ops that prepare data and hand it over.
PIPELINE = re.compile(r"Dataset|Iterator|^Optional")


def short(device: str) -> str:
    """``CPU:0`` of ``/job:localhost/replica:0/task:0/device:CPU:0`` or ``/device:CPU:0``; "" of nothing."""
    return device.rpartition("device:")[2].lstrip("/").upper()


def hand_out_graphs() -> None:
    """Has TensorFlow hand out the graphs that it has collected.

    It does so after each op that runs; those of a function that failed would be handed out with the next one.
    """
    import tensorflow as tf

    with tf.init_scope():
        tf.no_op()


def with_members(nodes: Iterable[Any]) -> Iterator[Any]:
    """Nodes that were executed, with those that a cluster or a loop stands for behind it."""
    import tensorflow as tf

    for node in nodes:
        node.op = _kernels.INSTEAD.get(node.op, node.op)
        if node.op != "_XpuCluster":
            yield node
        if node.op in _kernels.CLUSTERS:
            members = tf.compat.v1.GraphDef.FromString(node.attr["members"].s).node
            for member in members:
                member.device = node.device
            yield from with_members(members)


def _types_of_node(node: Any) -> dict[str, tuple[int, ...]]:
    """The type attributes of a NodeDef."""
    found = {}
    for name in _kernels.type_attributes(node.op):
        value = node.attr[name]
        found[name] = (value.type,) if value.WhichOneof("value") == "type" else tuple(value.list.type)
    return found


def _named(types: dict[str, tuple[int, ...]]) -> str:
    """Each type once."""
    return ", ".join(dict.fromkeys(_kernels.type_name(v) for values in types.values() for v in values))


def _reason(
    op: str, types: dict[str, tuple[int, ...]], label: str, device: str, pinned: str, resource: str
) -> tuple[str, str, str]:
    """The place where an op ran, the kind of the reason and the reason for that, "" on the XPU itself.

    ``device`` is where it ran, ``pinned`` what the program asked for, and ``resource`` where one among its arguments
    is: ``CPU:0``, ``CPU`` or "".
    """
    kernel = _kernels.find(op, types, label)
    if device.startswith(device_type() + ":"):
        if kernel is not None and _kernels.in_host_memory(kernel):
            return "host", "host memory", _kernels.host_memory_reason(types)
        return device, "", ""
    if PIPELINE.search(op):
        return device, "input", "the input pipeline, which is on the CPU"
    if kernel is None:
        return device, *_kernels.no_kernel(op, types)
    if _kernels.in_host_memory(kernel):
        return device, "host memory", _kernels.host_memory_reason(types)
    if pinned == device or pinned == device.partition(":")[0]:
        return device, "pinned", f"pinned to {device} by a device scope"
    if resource == device:
        of = types.get("dtype", ())
        if of and _kernels.find("VarHandleOp", {"dtype": of}) is None:
            return device, "host memory", f"its variable is of {_named(types)}, which TensorFlow keeps in host memory"
        return device, "resource", f"its variable or other resource is on {device}"
    return device, "beside", f"placed on {device} beside what it reads or what reads it; there is a kernel"


class _Graphs:
    """The graphs of a function that TensorFlow has just prepared: before its optimizers, and as executed."""

    def __init__(self, function_graphs: Any) -> None:
        original = function_graphs.pre_optimization_graph
        self._main = {node.name: node for node in original.node}
        self._inlined: dict[str, list[Any]] = collections.defaultdict(list)
        for function in original.library.function:
            for node in function.node_def:
                self._inlined[node.name].append(node)
        self.rows: collections.Counter[Row] = collections.Counter()
        for graph in function_graphs.partition_graphs:
            self._add(graph.node)
        before = collections.Counter(
            node.op for nodes in (self._main.values(), *self._inlined.values()) for node in nodes
        )
        ran = {row.op for row in self.rows}
        self.gone = collections.Counter(
            {
                op: n
                for op, n in before.items()
                if op not in ran and op not in ops_of_bookkeeping() and _kernels.op_def(op)
            }
        )

    def _pinned(self, node: Any) -> str:
        """The device that the program gave a node, also one of a function that was put into this graph."""
        origin = self._main.get(node.name)
        if origin is not None:
            return short(origin.device)
        candidates = self._inlined.get(INLINED.split(node.name)[-1], ())
        return next((short(c.device) for c in candidates if c.device), "")

    def _add(self, nodes: Any) -> None:
        looped = _in_loops(nodes)
        resources = {n.name: short(n.device) for n in nodes if _gives_resource(n)}
        for node in nodes:
            in_loop = node.name in looped
            for member in with_members([node]):
                if member.op in _kernels.CLUSTERS:
                    continue
                types = _types_of_node(member)
                arguments = [name.lstrip("^").partition(":")[0] for name in member.input]
                resource = next((resources[name] for name in arguments if name in resources), "")
                label = member.attr["_kernel"].s.decode() if "_kernel" in member.attr else ""
                where, kind, reason = _reason(
                    member.op, types, label, short(member.device), self._pinned(member), resource
                )
                in_this = in_loop or node.op == "_XpuLoop" or LOOP.search(member.name) is not None
                in_branch = BRANCH.search(member.name) is not None
                self.rows[Row(member.op, _named(types), where, kind, reason, in_this, in_branch)] += 1


def _gives_resource(node: Any) -> bool:
    """True if a node's first result is a resource: an argument, or a handle made here."""
    import tensorflow as tf

    resource = tf.resource.as_datatype_enum
    if "T" in node.attr:
        return node.attr["T"].type == resource
    definition = _kernels.op_def(node.op)
    return definition is not None and any(arg.type == resource for arg in definition.output_arg)


def _in_loops(nodes: Any) -> set[str]:
    """The names of nodes that are in a loop: all that depend on an Enter and are not behind its Exit."""
    readers: dict[str, list[Any]] = collections.defaultdict(list)
    for node in nodes:
        for name in node.input:
            readers[name.lstrip("^").partition(":")[0]].append(node)
    found: set[str] = set()
    todo = [node for node in nodes if node.op == "Enter"]
    while todo:
        node = todo.pop()
        if node.name not in found:
            found.add(node.name)
            todo += [reader for reader in readers[node.name] if reader.op != "Exit"]
    return found


class _Tracer:
    """Fills a report."""

    def __init__(self, report: PlacementReport) -> None:
        self._report = report
        self._names = SimpleNamespace()  # TensorFlow's private ones
        self._context: Any = None
        # The graphs of the functions that were called, by name and by the devices of the arguments.
        self._functions: dict[tuple[str, ...], list[_Graphs]] = {}
        self._lock = threading.Lock()  # callbacks come from all threads that are traced
        self._profile: Any = None  # what others have threads begin with

    def start(self) -> None:
        """Begins it. If a private name is absent or fails, nothing is traced, and an XPUError says why."""
        with private(PLACEMENT, CALL) as self._names:
            self._context = self._names.context()
            self._names.ensure_initialized(self._context)
            self._names.clear_kernel_cache(self._context)
            self._names.enable_graph_collection(self._context)
        try:
            hand_out_graphs()
            with private(PLACEMENT, CALL):
                self._names.export_run_metadata(self._context)  # and forgets those of an earlier tracing
                self._names.add_op_callback(self._callback)
        except XPUError:
            with self._contained():
                self._names.disable_graph_collection(self._context)
            raise
        # Callbacks belong to threads: those that begin from now on get theirs before they do anything.
        self._profile = threading.getprofile()
        threading.setprofile(self._begin_thread)

    @contextlib.contextmanager
    def _contained(self) -> Iterator[None]:
        """Around all that runs in the middle of the user's program: it goes on, and the report says what failed."""
        try:
            yield
        except Exception as error:
            if not self._report.failure:
                self._report.failure = f"the trace ended early: {error!r}"
                note_once(PLACEMENT, f"{CALL} saw a part of the ops: it failed with {error!r}")

    def _begin_thread(self, frame: Any, event: str, argument: Any) -> None:
        sys.setprofile(self._profile)
        if not self._report.complete:
            with self._contained():
                self._names.add_op_callback(self._callback)

    def stop(self) -> None:
        """Ends it; the report is complete then, whatever happened."""
        if threading.getprofile() == self._begin_thread:
            threading.setprofile(self._profile)
        with self._contained():
            with contextlib.suppress(ValueError, KeyError):  # remove_op_callback(): it belongs to another thread
                self._names.remove_op_callback(self._callback)
            hand_out_graphs()
            for graphs in self._new_graphs():  # of functions that failed, or that other threads called
                self._report.counts.update(graphs.rows)
        with self._contained():
            self._names.disable_graph_collection(self._context)  # disable_run_metadata() would go on collecting
        self._report.complete = True

    def _new_graphs(self) -> list[_Graphs]:
        metadata = self._names.export_run_metadata(self._context)
        new = [_Graphs(graphs) for graphs in metadata.function_graphs]
        for graphs in new:
            self._report.optimized_away.update(graphs.gone)
        return new

    def _callback(
        self, op_type: Any, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """As ``tensorflow/python/framework/op_callbacks.py`` has it; ``graph`` is that of a function being traced."""
        if self._report.complete:  # on a thread that began inside the block and is still there
            with self._contained(), contextlib.suppress(ValueError, KeyError):
                self._names.remove(self._context, self._callback)
            return
        if graph is not None or self._report.failure:
            return
        op = op_type.decode() if isinstance(op_type, bytes) else str(op_type)
        with self._contained(), self._lock:
            if _kernels.op_def(op) is None or op in ("PartitionedCall", "StatefulPartitionedCall"):
                self._call(op, inputs)
            else:
                self._eager(op, inputs, attrs or (), outputs)

    def _call(self, name: str, inputs: Any) -> None:
        key = (name, *(getattr(value, "device", "") or "" for value in inputs))
        new = self._new_graphs()
        if new:
            self._functions[key] = new
        called = self._functions.get(key)
        if called is None:  # prepared for the same devices in other words
            called = next((graphs for other, graphs in self._functions.items() if other[0] == name), [])
        for graphs in called:
            self._report.counts.update(graphs.rows)
        self._report.functions += 1

    def _eager(self, op: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        types = _types_of_call(op, attrs, inputs)
        scope = short(self._names.device_name.fget(self._context) or "")
        handles = [value for value in inputs if getattr(value, "dtype", None) == "resource"]
        resource = next((short(value.device) for value in handles), "")
        device = next((short(value.device) for value in outputs if getattr(value, "device", None)), "")
        if not device:  # without results, it ran where its variable is, or where the program wants it and it can
            device = resource or scope or (f"{device_type()}:0" if _kernels.find(op, types) else "CPU:0")
        where, kind, reason = _reason(op, types, "", device, scope, resource)
        self._report.counts[Row(op, _named(types), where, kind, reason, False, False)] += 1


def _types_of_call(op: str, attrs: Any, inputs: Any) -> dict[str, tuple[int, ...]]:
    """The type attributes of an eager op, from ``(name, value, name, value, ...)``."""
    import tensorflow as tf

    given = dict(zip(attrs[::2], attrs[1::2]))
    found = {}
    for name in _kernels.type_attributes(op):
        value = given.get(name)
        if value is not None:
            values = value if isinstance(value, (list, tuple)) else [value]
            found[name] = tuple(tf.as_dtype(v).as_datatype_enum for v in values)
    return found


_active: tuple[_Tracer, bool] | None = None


def _begin(report: PlacementReport, may_be_left: bool = False) -> _Tracer:
    """Starts the one tracer there may be. A trace that may be left is replaced by another one."""
    import tensorflow as tf

    global _active
    if not tf.executing_eagerly():
        raise XPUError("the placement cannot be traced from within a function or a graph: trace the call of it")
    if not tf.config.list_physical_devices(device_type()):
        raise XPUError(
            f"TensorFlow lists no {device_type()}, so nothing can run there: `python -m tensorflow_xpu doctor` says why"
        )
    if _active is not None and not _active[1]:
        raise XPUError("the placement is being traced already: end that `with trace_placement()` before the next one")
    if _active is not None:
        _end(_active[0])
    tracer = _Tracer(report)
    tracer.start()
    _active = (tracer, may_be_left)
    return tracer


def _end(tracer: _Tracer) -> None:
    global _active
    if _active is not None and _active[0] is tracer:
        _active = None
        tracer.stop()


@contextlib.contextmanager
def trace_placement() -> Iterator[PlacementReport]:
    """Finds out where the ops inside the ``with`` run, and why not on the XPU.

    Around any code: eager ops, functions, Keras. It sees eager ops of the thread that it is called on and of threads
    that begin inside. It sees functions that any thread calls (of threads that began before, each once), and the ops
    inside clusters and loops. It does not see the functions of ``tf.data``, which always run on the CPU, and sessions
    of TensorFlow 1.

    TensorFlow prepares each function anew inside the block, so that the first call takes as long as a first call does.
    Random ops with a seed and a state of their own begin it anew, as after ``tf.random.set_seed``. Without the block
    nothing is slower.

    Yields:
        A :class:`PlacementReport`, complete when the block has ended, be it by an exception.

    Raises:
        XPUError: if a block is inside another or inside a function, or TensorFlow lists no XPU. Also if this TensorFlow
            does not tell of the ops that it runs.

    >>> import tensorflow as tf
    >>> import tensorflow_xpu
    >>> with tensorflow_xpu.trace_placement() as report:
    ...     _ = tf.tanh(tf.ones([2, 2])) @ tf.ones([2, 2])
    >>> report.on_xpu("MatMul"), report.elsewhere("MatMul")
    (1, 0)
    """
    report = PlacementReport()
    tracer = _begin(report)
    try:
        yield report
    finally:
        _end(tracer)


def placement_callback(output: Callable[[str], object] = print) -> Any:
    """A callback for Keras's ``fit`` that reports on the first batch, and costs nothing after it.

    Args:
        output: is given the report's text.

    Returns:
        A ``keras.callbacks.Callback``, for one ``fit`` after another; ``report`` of it is the latest
        :class:`PlacementReport`, or ``None``.

    >>> import keras
    >>> import numpy as np
    >>> import tensorflow_xpu
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> callback = tensorflow_xpu.placement_callback(output=lambda text: None)
    >>> _ = model.fit(np.ones([8, 2]), np.ones([8, 1]), verbose=0, callbacks=[callback])
    >>> callback.report.assert_all_on_xpu()
    """
    import keras

    class PlacementCallback(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.report: PlacementReport | None = None
            self._tracer: _Tracer | None = None
            self._seen = False

        def on_train_begin(self, logs: Any = None) -> None:
            self._seen = False

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if not self._seen:
                self._seen = True
                report = PlacementReport()
                self._tracer = _begin(report, may_be_left=True)  # by a batch that fails
                self.report = report

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if self._tracer is not None:
                _end(self._tracer)
                self._tracer = None
                output(str(self.report))

    return PlacementCallback()
