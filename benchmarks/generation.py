"""Text generation and quantized layers: `python -m benchmarks.contest generation`.

Contestants (generators.py) generate with the same GPT-2 in weights of 32, 8 and 4 bits, the one of `python -m
tensorflow_xpu bench --generate`. Each has a process of its own. The processes take turns, there and back. Beside their
tokens per second stands what memory allows. That is the speed at which a product of one row reads, divided by the bytes
of the weights.

A figure is the best of all rounds, as that of `bench --generate` is. Threads that wait for each other take ten
times as long when something else has a processor for a moment. A median would show that.

Dense layers with weights of 8 bits run beside the same layers in float32, both on the XPU.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.generators import WEIGHTS, Plan
from benchmarks.race import CONTESTANTS, STOCK, XPU, Process, Row, take_turns

#: Who generates; JAX has XLA alone.
GENERATORS = (XPU, "TensorFlow", "TensorFlow with XLA", "JAX", "llama.cpp")
MODEL, FLOATS = "GPT-2, ", "float32"
LAYERS = [(width, rows) for width in (1024, 4096) for rows in (32, 128, 512)]
#: So many first tokens are those of most contestants, or the rest do not count.
SAME = 5
#: How often the speed of memory is measured; the highest counts.
READINGS = 10


@dataclasses.dataclass
class Generation(Row):
    """A Row of one kind of weights: seconds of a token; and the tokens per second that memory allows."""

    limit: float = 0.0
    bytes: dict[str, int] = dataclasses.field(default_factory=dict)  # of the weights that a token reads


def usual() -> Plan:
    """The model and the task of `bench --generate`."""
    from tensorflow_xpu._bench.generate import NEW, PROMPT, SIZE

    return Plan(SIZE, PROMPT, NEW)


def best(row: Row, name: str) -> float:
    """The seconds of its fastest round."""
    return min(row.rounds[name])


def rival(row: Row) -> str:
    """The fastest but the XPU."""
    return min((name for name in row.rounds if name != XPU), key=lambda name: best(row, name))


def times_as_fast(row: Row) -> float:
    """How many times as fast as its rival the XPU is."""
    return best(row, rival(row)) / best(row, XPU)


class Generator(Process):
    """A contestant with its model, or with dense layers."""

    def __init__(self, contestant: str, plan: Plan, *arguments: str):
        environment = CONTESTANTS[contestant].environment if contestant in CONTESTANTS else STOCK
        self.start(["benchmarks.generators", json.dumps(dataclasses.asdict(plan)), *arguments], environment)


def export(plan: Plan, folder: pathlib.Path) -> str:
    """Writes the model for llama.cpp; why not, if it cannot."""
    task = [sys.executable, "-m", "benchmarks.generators", json.dumps(dataclasses.asdict(plan)), "export", str(folder)]
    done = subprocess.run(task, env={**os.environ, **STOCK}, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def wrong(tokens: dict[str, list[int]], weights: str) -> dict[str, str]:
    """Whose first tokens are not those of most, and how. llama.cpp rounds to 4 bits in its own way: it is not asked."""
    asked = {name: tuple(t[:SAME]) for name, t in tokens.items() if weights != "int4" or name in CONTESTANTS}
    if not asked:
        return {}
    expected = collections.Counter(asked.values()).most_common(1)[0][0]
    return {
        name: f"its first tokens are {list(seen)}, those of most {list(expected)}"
        for name, seen in asked.items()
        if seen != expected
    }


def measure(weights: str, contestants: list[str], rounds: int, folder: pathlib.Path, plan: Plan) -> Generation:
    """A row: the contestants in turns, in at least so many rounds. llama.cpp has its files in the folder."""
    row = Generation(f"{MODEL}{weights}", {}, {}, {})
    generators: dict[str, Generator] = {}
    tokens = {}
    try:
        for contestant in contestants:
            generators[contestant] = Generator(contestant, plan, contestant, weights, str(folder))
            try:
                first = generators[contestant].answer()
                generators[contestant].turn()
            except RuntimeError as error:
                row.failed[contestant] = str(error)
                continue
            tokens[contestant], row.bytes[contestant] = first["tokens"], first["bytes"]
            row.rounds[contestant] = []
        for contestant, why in wrong(tokens, weights).items():
            row.failed[contestant] = why
            del row.rounds[contestant]
        take_turns(row, rounds, lambda contestant: generators[contestant].turn()["seconds"])
        if XPU in row.rounds:
            fastest = max(generators[XPU].turn("bandwidth")["bandwidth"] for _ in range(READINGS))
            row.limit = fastest / row.bytes[XPU]
    finally:
        for generator in generators.values():
            generator.end()
    return row


def models(contestants: list[str], rounds: int, plan: Plan) -> Iterator[Generation]:
    """A row for each kind of weights; says what it sees."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        unwritten = export(plan, folder) if "llama.cpp" in contestants else ""
        if unwritten:
            contestants = [name for name in contestants if name != "llama.cpp"]
        for weights in WEIGHTS:
            print(f"-- GPT-2, {weights}", flush=True)
            row = measure(weights, contestants, rounds, folder, plan)
            if unwritten:
                row.failed["llama.cpp"] = unwritten
            for contestant in (*row.rounds, *row.failed):
                told = f"cannot: {row.failed[contestant]}" if contestant in row.failed else ""
                if not told:
                    rest = " ".join(f"{1 / seconds:.4g}" for seconds in row.rounds[contestant])
                    told = f"{1 / best(row, contestant):8.4g} tokens/s ({rest})"
                print(f"   {contestant:20} {told}", flush=True)
            if XPU in row.rounds and len(row.rounds) > 1:
                ratio = f"{times_as_fast(row):.2f} times as fast as {rival(row)}"
                print(f"   memory allows {row.limit:.4g}; {ratio}", flush=True)
                yield row


def layers(rounds: int, plan: Plan) -> Iterator[Row]:
    """A row for each dense layer: the XPU with weights of 8 bits, and in floats."""
    calls = {XPU: Generator(XPU, plan, "dense", "int8"), FLOATS: Generator(XPU, plan, "dense", FLOATS)}
    try:
        for width, rows in LAYERS:
            row = Row(f"Dense {width}, {rows} rows", {name: [] for name in calls}, {}, {})
            asked = f"{width} {rows}"
            for call in calls.values():
                call.turn(asked)  # whatever is chosen late
            take_turns(row, rounds, lambda name, asked=asked: calls[name].turn(asked)["seconds"])
            if row.failed:
                raise RuntimeError(f"{row.workload}: {row.failed}")
            told = f"{best(row, FLOATS) * 1e3:.3g} ms in {FLOATS}, {best(row, XPU) * 1e3:.3g} in int8"
            print(f"-- {row.workload}: {told}, {times_as_fast(row):.2f} times as fast", flush=True)
            yield row
    finally:
        for call in calls.values():
            call.end()


def table(rows: list[Generation]) -> str:
    """Markdown: tokens per second, the limit, the XPU's share of it, and the best other / XPU in times."""
    names = [name for name in GENERATORS if any(name in row.rounds or name in row.failed for row in rows)]
    lines = [
        f"| weights | {' | '.join(names)} | limit | XPU / limit | best other / XPU |",
        "|---|" + "---|" * (len(names) + 3),
    ]
    for row in rows:
        cells = [f"{1 / best(row, name):.4g}" if name in row.rounds else "-" for name in names]
        cells += [f"{row.limit:.4g}", f"{1 / best(row, XPU) / row.limit:.0%}", f"{times_as_fast(row):.2f}"]
        lines.append(f"| {row.workload.removeprefix(MODEL)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def layers_table(rows: list[Row]) -> str:
    """Markdown: milliseconds of a call in floats and in 8 bits, and how many times as fast the latter is."""
    lines = [f"| layer | {FLOATS} | int8 | {FLOATS} / int8 |", "|---|---|---|---|"]
    for row in rows:
        cells = [f"{best(row, name) * 1e3:.3g}" for name in (FLOATS, XPU)]
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {times_as_fast(row):.2f} |")
    return "\n".join(lines)
