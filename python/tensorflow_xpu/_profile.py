"""A shortcut to TensorFlow's profiler: what the XPU did, as numbers, for TensorBoard and for Chrome."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

from tensorflow_xpu._errors import XPUError

_PLANE = "/device:CUSTOM:"
_OPS = ": ops"  # the lines that repeat the commands op by op
_OUTSIDE = ("wait", "cluster", "allocate", "free")  # what is no work of the device, or counted within


@dataclasses.dataclass(frozen=True)
class ProfileEvent:
    """Something that an XPU did."""

    name: str  #: of the primitive with its types, ``MatMul of float``, or of a copy
    kind: str  #: ``command``, ``copy``, ``fill``, ``wait``, ``callback``, ``cluster``, ``allocate`` or ``free``
    device: str  #: ``XPU:0``; ``XPU's ops in host memory``
    line: str  #: of the timeline: the stream, ``compute``, or ``memory``
    op: str  #: the name of the graph's node, or of the eager op; "" if it is none's
    op_type: str  #: ``MatMul``
    start_ns: int  #: since the profile began
    duration_ns: int
    flops: int  #: floating-point operations of the mathematics; 0 where elements are only moved or compared
    bytes: int  #: read and written, each operand once; of ``allocate`` and ``free`` the size


@dataclasses.dataclass
class Profile:
    """What :func:`profile` recorded; complete when its ``with`` block has ended. Printed, it is a table of kernels."""

    directory: pathlib.Path  #: for ``tensorboard --logdir``
    xplane: pathlib.Path | None = None  #: TensorFlow's file, of the host and of the XPU
    chrome_trace: pathlib.Path | None = None  #: the same for chrome://tracing and ui.perfetto.dev
    events: list[ProfileEvent] = dataclasses.field(default_factory=list)  #: of the XPUs, in order of their start
    warnings: list[str] = dataclasses.field(default_factory=list)  #: TensorFlow's, and about what had no room

    def __str__(self) -> str:
        rows: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0, 0])
        for event in self.events:
            if event.kind not in _OUTSIDE:
                for i, value in enumerate((1, event.duration_ns, event.flops, event.bytes)):
                    rows[event.name][i] += value
        lines = [f"{'count':>7} {'ms':>10} {'GFLOP/s':>9} {'GB/s':>8} {'flop/byte':>10}  kernel"]
        for name, (count, ns, flops, size) in sorted(rows.items(), key=lambda row: -row[1][1]):
            short = name if len(name) <= 60 else name[:57] + "..."
            lines.append(
                f"{count:7} {ns * 1e-6:10.3f} {flops / max(ns, 1):9.2f} {size / max(ns, 1):8.2f}"
                f" {flops / max(size, 1):10.2f}  {short}"
            )
        return "\n".join(lines)


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


def _write_chrome_trace(space: Any, path: pathlib.Path) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for i, event in enumerate(_chrome_events(space)):
            file.write((",\n" if i else "") + json.dumps(event))
        file.write("\n]}\n")


def _leave_earlier_ones(directory: pathlib.Path) -> None:
    """TensorFlow names a profile by the second in which it ends: one that follows too soon would replace the last."""
    runs = [path.stat().st_mtime for path in directory.glob("plugins/profile/*/*.xplane.pb")]
    if runs and 0 <= time.time() - max(runs) < 1.1:
        time.sleep(1.1)


def _finish(result: Profile) -> None:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    files = sorted(result.directory.glob("plugins/profile/*/*.xplane.pb"), key=lambda path: path.stat().st_mtime_ns)
    if not files:
        raise XPUError(
            f"TensorFlow left no profile in {result.directory}: expected plugins/profile/*/*.xplane.pb there. "
            "What it printed to stderr says why"
        )
    space = xplane_pb2.XSpace.FromString(files[-1].read_bytes())
    result.xplane = files[-1]
    result.events = _device_events(space)
    result.warnings = [*space.errors, *space.warnings]
    result.chrome_trace = result.directory / f"{result.xplane.parent.name}.trace.json"
    _write_chrome_trace(space, result.chrome_trace)


@contextlib.contextmanager
def profile(path: str | os.PathLike[str]) -> Iterator[Profile]:
    """Records what the XPUs and TensorFlow do in a ``with`` block.

    It is ``tf.profiler.experimental.start(path)`` and ``stop()``, for which the XPU has events of its own: every
    command of every stream with the op that it is of, those inside clusters, copies, waits, and what was allocated on
    the device, with floating-point operations and bytes. The work that is still queued when the block ends belongs to
    it. Beside TensorFlow's file a trace for Chrome is written.

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
    result = Profile(directory)
    try:
        yield result
    finally:
        _leave_earlier_ones(directory)
        tf.profiler.experimental.stop()
        _finish(result)
