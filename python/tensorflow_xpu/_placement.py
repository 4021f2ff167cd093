"""The report of ``trace_placement``: which ops ran where, and why not on the XPU."""

from __future__ import annotations

import collections
import dataclasses
import functools
import html
from collections.abc import Collection
from typing import Any

from tensorflow_xpu import _core
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._subdevice import device_type

#: The kinds of reasons, in the order in which a report has them. Those of HARMLESS are as it should be.
KINDS = ("no kernel", "no type", "pinned", "resource", "beside", "string", "input", "host memory")
HARMLESS = frozenset(["input", "host memory"])


@functools.cache
def ops_of_bookkeeping() -> frozenset[str]:
    """The ops in which a device has nothing to compute, as the core knows them (framework/bookkeeping.h).

    They pass values on, call functions, give shapes, steer loops and branches, or have handles, constants and messages.
    """
    ops: list[str] | None = _core.ask_core("XpuCore_DescribeBookkeeping")
    if ops is None:
        raise XPUError("no report can be made: TensorFlow lists no XPU (`python -m tensorflow_xpu doctor` says why)")
    return frozenset(ops)


@dataclasses.dataclass(frozen=True, order=True)
class Row:
    """Ops of one type, with the same types, in the same place, for the same reason."""

    op: str
    types: str  #: ``float32, int32``: the values of its type attributes, each once
    where: str  #: ``XPU:0``, ``CPU:0``, or ``host``: an op of the XPU whose kernel has everything in host memory
    kind: str  #: "" on the XPU, else one of ``KINDS``
    reason: str  #: the same in words
    in_loop: bool  #: in the body or the condition of a loop: it may have run more often than it is counted
    in_branch: bool  #: in a branch of a condition: it may not have run

    @property
    def on_xpu(self) -> bool:
        """True if the device itself computed it."""
        return self.where.startswith(device_type() + ":")

    @property
    def bookkeeping(self) -> bool:
        """True if a device has nothing to compute in it: constants, arguments, shapes, reads of variables ..."""
        return self.op in ops_of_bookkeeping()


class PlacementReport:
    """The ops that ran inside a ``with trace_placement()``, and where. It is complete when the block has ended.

    ``print(report)`` is a table, ``report.to_pandas()`` a data frame, and a notebook shows it as HTML. An op is one
    that TensorFlow executes, after its optimizers: those inside clusters (docs/clusters.md) have their own names.

    Counts are executions, with two exceptions that TensorFlow does not tell of. Ops in a loop of a function are counted
    once per call (``in_loop``), and so are both branches of a condition (``in_branch``).
    """

    def __init__(self) -> None:
        self.counts: collections.Counter[Row] = collections.Counter()  #: how many of each
        self.optimized_away: collections.Counter[str] = collections.Counter()
        """Ops of functions of which nothing was left to run, by type: folded into a constant, replaced or unused."""
        self.functions = 0  #: how many calls of functions were counted
        self.failure = ""  #: why the trace ended before the block, so that the report has a part of the ops only
        self.complete = False  #: whether the block has ended

    def rows(self, bookkeeping: bool = False) -> list[Row]:
        """The rows, what is not on the XPU first; ``bookkeeping`` has those, too, that move and name values only."""
        chosen = [row for row in self.counts if bookkeeping or not row.bookkeeping]
        return sorted(chosen, key=lambda row: (row.on_xpu, KINDS.index(row.kind) if row.kind else 0, row))

    def on_xpu(self, op: str | None = None) -> int:
        """How many ops the XPU computed: of this type, or of all but bookkeeping."""
        return sum(n for row, n in self.counts.items() if row.on_xpu and self._is_asked_for(row, op))

    def elsewhere(self, op: str | None = None) -> int:
        """How many ops ran elsewhere, on the CPU or in host memory: of this type, or of all but bookkeeping."""
        return sum(n for row, n in self.counts.items() if not row.on_xpu and self._is_asked_for(row, op))

    @staticmethod
    def _is_asked_for(row: Row, op: str | None) -> bool:
        return not row.bookkeeping if op is None else row.op == op

    def assert_all_on_xpu(self, allow: Collection[str] = (), strict: bool = False) -> None:
        """Fails unless all that computes ran on the XPU.

        Bookkeeping does not count, nor does what every accelerator leaves to the host: integers of 32 bits, shapes, and
        the input pipeline.

        Args:
            allow: types of ops that may run anywhere.
            strict: have those fail, too.

        Raises:
            AssertionError: names each op that ran elsewhere, with the reason; also if nothing ran at all.
            XPUError: if the block has not ended yet, or ``allow`` is a string.
        """
        self._require_complete("assert_all_on_xpu()")
        if isinstance(allow, str):
            raise XPUError(f"allow={allow!r} is one string: expected a collection of op types such as [{allow!r}]")
        wrong = [
            row
            for row in self.rows()
            if not row.on_xpu and row.op not in allow and (strict or row.kind not in HARMLESS)
        ]
        if wrong:
            lines = [f"  {row.op} ({row.types or '-'}) on {row.where}: {row.reason}" for row in wrong]
            raise AssertionError("not on the XPU ran\n" + "\n".join(lines))
        if not self.counts:
            raise AssertionError("nothing ran: no eager op and no function was seen inside the block")

    def _require_complete(self, what: str) -> None:
        if not self.complete:
            raise XPUError(f"{what} came inside the block that is traced: call it when the `with` has ended")

    def to_records(self, bookkeeping: bool = False) -> list[dict[str, Any]]:
        """A dict per row: ``op``, ``types``, ``on_xpu`` and ``elsewhere`` (counts), and the other fields of a row."""
        self._require_complete("to_records()")
        return [
            {
                "op": row.op,
                "types": row.types,
                "on_xpu": self.counts[row] if row.on_xpu else 0,
                "elsewhere": 0 if row.on_xpu else self.counts[row],
                "where": row.where,
                "kind": row.kind,
                "reason": row.reason,
                "in_loop": row.in_loop,
                "in_branch": row.in_branch,
            }
            for row in self.rows(bookkeeping)
        ]

    def to_pandas(self, bookkeeping: bool = False) -> Any:
        """The records as a ``pandas.DataFrame``. pandas is optional: nothing else here needs it.

        Raises:
            XPUError: if pandas is not installed, or the block has not ended yet.
        """
        records = self.to_records(bookkeeping)
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as error:
            raise XPUError(
                "to_pandas() needs pandas, which is not installed: `pip install pandas`, or use to_records()"
            ) from error
        return pandas.DataFrame(records)

    def _cells(self) -> list[tuple[str, ...]]:
        cells: list[tuple[str, ...]] = []
        for row in self.rows():
            count = f"{self.counts[row]}{'+' if row.in_loop else ''}{'?' if row.in_branch else ''}"
            xpu, elsewhere = (count, "") if row.on_xpu else ("", count)
            cells.append((row.op, row.types, xpu, elsewhere, row.where, row.reason))
        return cells

    def _notes(self) -> list[str]:
        """The lines below the table."""
        rows = self.rows()
        moved = sum(n for row, n in self.counts.items() if row.bookkeeping)
        notes = [
            f"{self.on_xpu()} on the {device_type()}, {self.elsewhere()} elsewhere; "
            f"{moved} that move or name values are not listed"
        ]
        if self.failure:
            notes.append(f"not all of the ops are here: {self.failure}")
        if any(row.in_loop for row in rows):
            notes.append("+ in a loop: counted once per call of the function")
        if any(row.kind == "input" for row in rows):
            notes.append("what functions of tf.data do, for each element, on the CPU, is not counted")
        if any(row.in_branch for row in rows):
            notes.append("? in a branch: counted whether it was taken or not")
        if self.optimized_away:
            names = ", ".join(f"{op} {n}" for op, n in sorted(self.optimized_away.items()))
            notes.append(f"optimized away before they could run (constants, replaced, unused): {names}")
        return notes

    @staticmethod
    def _headings() -> tuple[str, ...]:
        return ("op", "types", device_type(), "elsewhere", "where", "why")

    def __str__(self) -> str:
        if not self.complete:
            return "the placement is being traced: print the report when the `with` has ended"
        if not self.counts:
            return "nothing ran: no eager op and no function was seen"
        table = [self._headings(), *self._cells()]
        widths = [max(len(cells[i]) for cells in table) for i in range(len(table[0]))]
        lines = []
        for cells in table:
            padded = [c.rjust(w) if i in (2, 3) else c.ljust(w) for i, (c, w) in enumerate(zip(cells, widths))]
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, "", *self._notes()])

    def __repr__(self) -> str:
        if not self.complete:
            return "<PlacementReport, incomplete>"
        return f"<PlacementReport: {self.on_xpu()} ops on the {device_type()}, {self.elsewhere()} elsewhere>"

    def to_html(self) -> str:
        """The table as an HTML fragment: a ``<table>`` and its notes. Ops that did not run on the XPU are shaded."""
        if not self.complete or not self.counts:
            return f"<p>{html.escape(str(self))}</p>"
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._headings())
        body = []
        for row, cells in zip(self.rows(), self._cells()):
            shaded = "" if row.on_xpu or row.kind in HARMLESS else ' style="background: #fbe9d0; color: #222"'
            body.append(f"<tr{shaded}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{notes}"

    def _repr_html_(self) -> str:
        return self.to_html()
