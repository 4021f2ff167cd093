"""The XPU against the engines that people deploy trained models with: `python -m benchmarks.contest inference`.

Each engine (engines.py) loads the same Keras model (inference_models.py) in a process of its own. The processes take
turns, there and back. They take NumPy arrays and give NumPy arrays. All compute in float32.

A row has, for each engine:

- the median and the 99th percentile of a call,
- the seconds from the start of its process to its first result,
- the memory that it takes beyond its imports.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.engines import ENGINES, XPU
from benchmarks.inference_models import BATCHES
from benchmarks.race import Process, Row, take_turns
from benchmarks.roofline import Roof

#: Of an engine's calls, the one that so many of a hundred are not slower than.
PERCENTILE = 99


@dataclasses.dataclass
class Deployment(Row):
    """A Row whose steps are calls; of each engine also the slow calls, the memory, and the import.

    slow: seconds, the 99th percentile of all calls.
    imported: the seconds of `first` that the import took. `first` counts from the start of the process.
    bytes: held at most, beyond what the import took.
    """

    slow: dict[str, float] = dataclasses.field(default_factory=dict)
    imported: dict[str, float] = dataclasses.field(default_factory=dict)
    bytes: dict[str, int] = dataclasses.field(default_factory=dict)


class Server(Process):
    """An engine with a model."""

    def __init__(self, engine: str, model: str, batch: int, folder: pathlib.Path):
        self._start = time.perf_counter()
        self.start(["benchmarks.engines", engine, model, str(batch), str(folder)], ENGINES[engine].environment)

    def ready(self) -> dict[str, float]:
        """Waits for its first result; "whole" is the time since it was started."""
        answer = self.answer()
        return answer | {"whole": time.perf_counter() - self._start}


def export(model: str, batch: int, folder: pathlib.Path) -> dict[str, str]:
    """The model in each engine's format; by format, why not."""
    command = [sys.executable, "-m", "benchmarks.engines", "export", model, str(batch), str(folder)]
    variables = {**os.environ, **ENGINES["TensorFlow"].environment, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(model: str, batch: int, engines: list[str], rounds: int, folder: pathlib.Path) -> Deployment:
    """A row: the engines in turns, in at least so many rounds."""
    row = Deployment(f"{model}, {batch}", {}, {}, {})
    unexported = export(model, batch, folder)
    servers: dict[str, Server] = {}
    calls: dict[str, list[float]] = {}
    results: dict[str, float] = {}
    try:
        for engine in engines:
            if why := unexported.get(ENGINES[engine].needs):
                row.failed[engine] = why
                continue
            servers[engine] = Server(engine, model, batch, folder)
            try:
                first = servers[engine].ready()
                servers[engine].turn()  # whatever is compiled or chosen late
            except RuntimeError as error:
                row.failed[engine] = str(error)
                continue
            row.first[engine], row.imported[engine], results[engine] = first["whole"], first["imported"], first["loss"]
            row.rounds[engine], calls[engine] = [], []

        def seconds(engine: str) -> float:
            seen = servers[engine].turn()
            calls[engine] += seen["times"]
            row.bytes[engine] = seen["bytes"]
            return statistics.median(seen["times"])

        take_turns(row, rounds, seconds)
        row.slow = {engine: float(np.percentile(calls[engine], PERCENTILE)) for engine in row.rounds}
        if XPU in row.rounds:
            row.commands = [(flops, size) for flops, size in servers[XPU].turn("profile")["events"]]
    finally:
        for server in servers.values():
            server.end()
    for engine, result in results.items():
        if engine in row.rounds and not math.isclose(
            result, expected := statistics.median(results.values()), rel_tol=0.01
        ):
            row.failed[engine] = f"its result is {result:.5g}, that of most {expected:.5g}"
            del row.rounds[engine]
    return row


def measured(models: list[str], engines: list[str], rounds: int) -> Iterator[Deployment]:
    """A row for each model and batch; says what it sees."""
    asked = [(model, batch) for model in models for batch in BATCHES]
    for number, (model, batch) in enumerate(asked, 1):
        print(f"-- {number} of {len(asked)}: {model}, batch {batch}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            row = measure(model, batch, engines, rounds, pathlib.Path(folder))
        for engine in engines:
            if engine in row.rounds:
                print(f"   {engine:20} {row.median(engine) * 1e3:8.3g} ms, {row.slow[engine] * 1e3:.3g} at worst, "
                      f"first result after {row.first[engine]:.1f} s ({row.imported[engine]:.1f} s of import), "
                      f"{row.bytes[engine] / 2**20:.0f} MiB", flush=True)  # fmt: skip
            else:
                print(f"   {engine:20} cannot: {row.failed[engine]}", flush=True)
        if XPU in row.rounds and len(row.rounds) > 1:
            print(f"   {row.times_as_fast(row.best()):.2f} times as fast as {row.best()}", flush=True)
            yield row


def raced(rows: list[Deployment]) -> list[str]:
    """The engines that took part, whether or not they could run a model."""
    return [name for name in ENGINES if any(name in row.rounds or name in row.failed for row in rows)]


def cells(row: Deployment, names: list[str], of: dict[str, float], scale: float) -> list[str]:
    return [f"{of[name] * scale:.3g}" if name in row.rounds else "-" for name in names]


def table(rows: list[Deployment], roof: Roof | None = None) -> str:
    """Markdown: milliseconds of a call, the XPU's 99th percentile, the best other engine / XPU, and the roof."""
    names = raced(rows)
    lines = [
        f"| model, batch | {' | '.join(names)} | XPU, {PERCENTILE}th percentile | best other / XPU | roof |",
        "|---|" + "---|" * (len(names) + 3),
    ]
    for row in rows:
        medians = {name: row.median(name) for name in row.rounds}
        share = "-"
        if roof is not None and row.commands:
            share = f"{roof.seconds(row.commands) / row.median(XPU):.0%}"
        ratio = f"{row.times_as_fast(row.best()):.2f}"
        figures = [*cells(row, names, medians, 1e3), f"{row.slow[XPU] * 1e3:.3g}", ratio, share]
        lines.append(f"| {row.workload} | {' | '.join(figures)} |")
    ratios = {n: [row.times_as_fast(n) for row in rows if n in row.rounds] for n in names}
    means = [f"{statistics.geometric_mean(ratios[n]):.2f}" if ratios[n] else "-" for n in names]
    best = statistics.geometric_mean([row.times_as_fast(row.best()) for row in rows])
    lines.append(f"| geometric mean of time / XPU's | {' | '.join(means)} | | {best:.2f} | |")
    return "\n".join(lines)


def costs_table(rows: list[Deployment]) -> str:
    """Markdown: what a process takes until its first result, in seconds beyond its imports, and its memory in MiB."""
    names = raced(rows)
    lines = [f"| model, batch | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for row in rows:
        begun = cells(row, names, {name: row.first[name] - row.imported[name] for name in row.rounds}, 1)
        memory = cells(row, names, row.bytes, 2**-20)
        pairs = [f"{a} s, {b}" if a != "-" else "-" for a, b in zip(begun, memory, strict=True)]
        lines.append(f"| {row.workload} | {' | '.join(pairs)} |")
    return "\n".join(lines)
