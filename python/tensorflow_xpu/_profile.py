"""A shortcut to TensorFlow's profiler: what the XPU did, as numbers, for TensorBoard and for Chrome."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import time
from collections.abc import Iterator
from typing import Any

from tensorflow_xpu import _core, _memory, _tables
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._internals import note_once, private
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu.hooks.features import PROFILES

_PLANE = "/device:CUSTOM:"
_OPS = ": ops"  # the lines that repeat the commands op by op
_OUTSIDE = ("wait", "cluster", "allocate", "free")  # what is no work of the device, or counted within


@dataclasses.dataclass(frozen=True)
class ProfileEvent:
    """Something that an XPU did."""

    #: of the primitive with its types, ``MatMul of float``, and on XPU_HOST the engine, ``MatMul of float: panels``; or
    #: of a copy
    name: str
    kind: str  #: ``command``, ``copy``, ``fill``, ``wait``, ``callback``, ``cluster``, ``allocate`` or ``free``
    device: str  #: ``XPU:0``; ``XPU's ops in host memory``
    line: str  #: of the timeline: the stream, ``compute``, or ``memory``
    op: str  #: the name of the graph's node, or of the eager op; "" if it is none's
    op_type: str  #: ``MatMul``
    start_ns: int  #: since the profile began
    duration_ns: int
    flops: int  #: floating-point operations of the mathematics; 0 where elements are only moved or compared
    bytes: int  #: read and written, each operand once; of ``allocate`` and ``free`` the size


@dataclasses.dataclass(frozen=True)
class MemoryEvent:
    """A tensor's memory that was taken or given back, as the allocator in use tells it (``TF_XPU_ALLOCATOR``)."""

    device: str  #: ``XPU:0``
    kind: str  #: ``allocate`` or ``free``
    time_ns: int  #: since the profile began
    bytes: int  #: with what the allocator adds
    in_use: int  #: bytes of tensors on the device after it
    op: str  #: the op that it was taken for, by TensorFlow's allocator ``bfc``; "" if nobody says so
    shape: str  #: of the tensor, ``[16,3]``, likewise


@dataclasses.dataclass
class Profile:
    """The recording of :func:`profile`; complete when its ``with`` block has ended. It prints a table of kernels."""

    directory: pathlib.Path  #: for ``tensorboard --logdir``
    xplane: pathlib.Path | None = None  #: TensorFlow's file, of the host and of the XPU
    chrome_trace: pathlib.Path | None = None  #: the same for chrome://tracing and ui.perfetto.dev
    events: list[ProfileEvent] = dataclasses.field(default_factory=list)  #: of the XPUs, in order of their start
    memory: list[MemoryEvent] = dataclasses.field(default_factory=list)  #: of the XPUs' tensors, in order of time
    warnings: list[str] = dataclasses.field(default_factory=list)  #: TensorFlow's, and about what had no room

    def rows(self) -> list[tuple[str, ...]]:
        """A heading, and a row for each kernel, the one with most time first."""
        sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
        for event in self.events:
            if event.kind not in _OUTSIDE:
                for i, value in enumerate((1, event.duration_ns, event.flops, event.bytes)):
                    sums[event.name][i] += value
        rows: list[tuple[str, ...]] = [("count", "ms", "GFLOP/s", "GB/s", "flop/byte", "kernel")]
        for name, (count, ns, flops, size) in sorted(sums.items(), key=lambda row: -row[1][1]):
            short = name if len(name) <= 72 else name[:69] + "..."
            rates = (flops / max(ns, 1), size / max(ns, 1), flops / max(size, 1))
            rows.append((str(count), f"{ns * 1e-6:.3f}", *(f"{rate:.2f}" for rate in rates), short))
        return rows

    def __str__(self) -> str:
        widths = (7, 10, 9, 8, 10)
        lines = [" ".join(f"{cell:>{w}}" for cell, w in zip(row, widths)) + f"  {row[-1]}" for row in self.rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _tables.as_html(self.rows())


def _stats(plane: Any, stats: Any) -> dict[str, Any]:
    names = plane.stat_metadata
    found = {}
    for stat in stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind) if kind else None
        found[names[stat.metadata_id].name] = names[value].name if kind == "ref_value" else value
    return found


def _device_events(space: Any) -> list[ProfileEvent]:
    planes = [plane for plane in space.planes if plane.name.startswith(_PLANE)]
    events = []
    for plane in planes:
        for line in plane.lines:
            if line.name.endswith(_OPS):
                continue
            for event in line.events:
                stats = _stats(plane, event.stats)
                op, _, op_type = stats.get("tf_op", "").rpartition(":")
                start = line.timestamp_ns + event.offset_ps // 1000
                events.append(
                    ProfileEvent(
                        name=plane.event_metadata[event.metadata_id].name,
                        kind=stats["kind"],
                        device=plane.name.removeprefix(_PLANE),
                        line=line.name,
                        op=op,
                        op_type=op_type,
                        start_ns=start,
                        duration_ns=event.duration_ps // 1000,
                        flops=stats.get("flops", 0),
                        bytes=stats.get("bytes_accessed", 0),
                    )
                )
    return sorted(events, key=lambda event: (event.start_ns, -event.duration_ns))


# The events of TensorFlow's own allocator, on the host's plane; it numbers devices as the plugin does.
_ALLOCATIONS = {"MemoryAllocation": "allocate", "MemoryDeallocation": "free"}
_ALLOCATOR = re.compile(r"PluggableDevice_(\d+)_bfc")


def _memory_of_tensorflow(space: Any) -> Iterator[MemoryEvent]:
    """The events of tensors from the allocator ``bfc``."""
    for plane in space.planes:
        known = {number: _ALLOCATIONS[m.name] for number, m in plane.event_metadata.items() if m.name in _ALLOCATIONS}
        for line in plane.lines if known else ():
            for event in line.events:
                stats = _stats(plane, event.stats) if event.metadata_id in known else {}
                allocator = _ALLOCATOR.fullmatch(stats.get("allocator_name", ""))
                if allocator is not None:
                    yield MemoryEvent(
                        device=f"{device_type()}:{allocator[1]}",
                        kind=known[event.metadata_id],
                        time_ns=line.timestamp_ns + event.offset_ps // 1000,
                        bytes=stats["allocation_bytes"],
                        in_use=stats["bytes_allocated"],
                        op=stats.get("tf_op", ""),
                        shape=stats.get("shape", ""),
                    )


def _memory_of_pool(events: list[ProfileEvent], before: dict[str, int]) -> Iterator[MemoryEvent]:
    """The events of the plugin's own allocator in the line ``memory``, from the bytes in use when the profile began."""
    in_use = dict(before)
    for event in events:
        if event.line == "memory" and event.device in in_use and event.name in ("allocate", "free"):
            in_use[event.device] += event.bytes if event.kind == "allocate" else -event.bytes
            yield MemoryEvent(event.device, event.kind, event.start_ns, event.bytes, in_use[event.device], event.op, "")


def _memory_events(space: Any, events: list[ProfileEvent], before: dict[str, int]) -> list[MemoryEvent]:
    """The events of all devices. With ``bfc`` the line ``memory`` has what TensorFlow took for many tensors at once."""
    report = _core.ask_about(0, "XpuCore_MemoryReport")
    pool = report is not None and report["allocator"] == "pool"
    found = _memory_of_pool(events, before) if pool else _memory_of_tensorflow(space)
    return sorted(found, key=lambda event: event.time_ns)


def _bytes_in_use() -> dict[str, int]:
    """The bytes of tensors, by device."""
    import tensorflow as tf

    count = len(tf.config.list_physical_devices(device_type()))
    return {f"{device_type()}:{index}": _memory.in_use(index) for index in range(count)}


def _counters(memory: list[MemoryEvent], pids: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Chrome's counters: a track with the bytes in use, in the process of the device's plane."""
    for event in memory:
        pid = pids.setdefault(_PLANE + event.device, len(pids) + 1)
        yield {
            "ph": "C",
            "pid": pid,
            "name": "memory of tensors",
            "ts": event.time_ns * 1e-3,
            "args": {"bytes": event.in_use},
        }


def _chrome_events(space: Any) -> Iterator[dict[str, Any]]:
    """The trace event format of Chrome: times in microseconds, a process per plane and a thread per line."""
    for pid, plane in enumerate((plane for plane in space.planes if plane.lines), 1):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane.name}}
        for tid, line in enumerate(plane.lines, 1):
            yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": line.name}}
            yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                yield {
                    "ph": "X",
                    "pid": pid,
                    "tid": tid,
                    "name": metadata.display_name or metadata.name,
                    "ts": line.timestamp_ns * 1e-3 + event.offset_ps * 1e-6,
                    "dur": event.duration_ps * 1e-6,
                    "args": {name: str(value) for name, value in _stats(plane, event.stats).items()},
                }


def _write_chrome_trace(space: Any, memory: list[MemoryEvent], path: pathlib.Path) -> None:
    pids = {plane.name: pid for pid, plane in enumerate((plane for plane in space.planes if plane.lines), 1)}
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for i, event in enumerate(itertools.chain(_chrome_events(space), _counters(memory, pids))):
            file.write((",\n" if i else "") + json.dumps(event))
        file.write("\n]}\n")


def _leave_earlier_ones(directory: pathlib.Path) -> None:
    """TensorFlow names a profile by the second in which it ends: one that follows too soon would replace the last."""
    runs = [path.stat().st_mtime for path in directory.glob("plugins/profile/*/*.xplane.pb")]
    if runs and 0 <= time.time() - max(runs) < 1.1:
        time.sleep(1.1)


def _finish(result: Profile, before: dict[str, int]) -> None:
    files = sorted(result.directory.glob("plugins/profile/*/*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    if not files:
        raise XPUError(
            f"TensorFlow left no profile in {result.directory}: expected plugins/profile/*/*.xplane.pb there. "
            "What it printed to stderr says why"
        )
    result.xplane = files[-1]
    try:
        with private(PROFILES, "a table of the profile") as names:
            space = names.space.FromString(files[-1].read_bytes())
    except XPUError as error:  # the file is there all the same
        note_once(PROFILES, str(error))
        result.warnings = [str(error)]
        return
    result.events = _device_events(space)
    result.memory = _memory_events(space, result.events, before)
    result.warnings = [*space.errors, *space.warnings]
    result.chrome_trace = result.directory / f"{result.xplane.parent.name}.trace.json"
    _write_chrome_trace(space, result.memory, result.chrome_trace)


@contextlib.contextmanager
def profile(path: str | os.PathLike[str]) -> Iterator[Profile]:
    """Records what the XPUs and TensorFlow do in a ``with`` block.

    It is ``tf.profiler.experimental.start(path)`` and ``stop()``, for which the XPU has events of its own. They are
    every command of every stream with its op, those inside clusters, copies, waits, and allocations on the device, with
    floating-point operations and bytes. The work that is still queued when the block ends belongs to it. Beside
    TensorFlow's file a trace for Chrome is written.

    Args:
        path: the folder for the files, made if it is not there.

    Yields:
        A :class:`Profile`, which is filled in when the block has ended, also by an exception.

    Raises:
        XPUError: if the folder cannot be written, or a profile is being taken already. The block is not run then.

    Example:
        >>> import tensorflow as tf, tensorflow_xpu
        >>> with tensorflow_xpu.profile("/tmp/profile") as profile:
        ...     product = tf.linalg.matmul(tf.ones([300, 200]), tf.ones([200, 100]))
        >>> [event.flops for event in profile.events if event.op_type == "MatMul"]
        [12000000]
    """
    import tensorflow as tf

    directory = pathlib.Path(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        writable = os.access(directory, os.W_OK | os.X_OK)
    except OSError as error:
        raise XPUError(f"{directory} is no folder and cannot be made one: {error}. Give a path that can be") from error
    if not writable:
        raise XPUError(f"the folder {directory} cannot be written: give one that can be, or change its permissions")
    try:
        tf.profiler.experimental.start(str(directory))
    except tf.errors.AlreadyExistsError as error:
        raise XPUError(
            "a profile is being taken already, and TensorFlow takes one at a time: end the other one first, "
            "by tf.profiler.experimental.stop() or at the end of its `with`"
        ) from error
    result, before = Profile(directory), _bytes_in_use()
    try:
        yield result
    finally:
        _leave_earlier_ones(directory)
        tf.profiler.experimental.stop()
        _finish(result, before)
