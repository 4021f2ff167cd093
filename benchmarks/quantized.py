"""Convolutional networks in 8 bits, as other engines have them, beside the XPU in float32: part of the contest of
generation. Keras has no convolutions of 8 bits.

`python -m benchmarks.quantized MODEL BATCH FOLDER` writes the model for each of them, into a folder of the FOLDER. It
prints what each of them said if it could not. LiteRT quantizes weights alone, or weights and activations by the ranges
that it sees in examples. OpenVINO's NNCF does the latter: `pip install nncf==3.4.0`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.generation import best, times_as_fast
from benchmarks.race import STOCK, XPU, Row, take_turns

if TYPE_CHECKING:
    import keras

MODELS, BATCH = ("MobileNetV2", "ResNet50"), 1
#: How many examples show the ranges of activations.
EXAMPLES = 16
#: The part by which the size of a result in 8 bits may differ from that in floats.
ERROR = 0.1


def examples(arguments: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Examples like the arguments of a call."""
    rng = np.random.default_rng(6)
    for _ in range(EXAMPLES):
        yield [rng.random(argument.shape, np.float32) for argument in arguments]


def in_floats(model: keras.Model, arguments: list[np.ndarray], folder: pathlib.Path) -> None:
    model.save_weights(folder / "model.weights.h5")


def litert_weights(model: keras.Model, arguments: list[np.ndarray], folder: pathlib.Path, **options: Any) -> None:
    import tensorflow as tf

    options = {"optimizations": [tf.lite.Optimize.DEFAULT], **options}
    model.export(str(folder / "model.tflite"), format="litert", verbose=False, **options)


def litert_activations(model: keras.Model, arguments: list[np.ndarray], folder: pathlib.Path) -> None:
    litert_weights(model, arguments, folder, representative_dataset=lambda: examples(arguments))


def openvino_activations(model: keras.Model, arguments: list[np.ndarray], folder: pathlib.Path) -> None:
    import nncf
    import openvino

    model.export(str(folder / "floats.xml"), format="openvino", verbose=False)
    floats = openvino.Core().read_model(folder / "floats.xml")
    data = nncf.Dataset([given[0] for given in examples(arguments)])
    openvino.save_model(nncf.quantize(floats, data, subset_size=EXAMPLES), folder / "model.xml")


@dataclasses.dataclass(frozen=True)
class Contestant:
    """The engine (engines.py), and what writes the model for it into a folder."""

    engine: str
    write: Callable[[Any, list[np.ndarray], pathlib.Path], None]


CONTESTANTS = {
    XPU: Contestant(XPU, in_floats),
    "LiteRT, weights": Contestant("LiteRT", litert_weights),
    "LiteRT": Contestant("LiteRT", litert_activations),
    "OpenVINO": Contestant("OpenVINO", openvino_activations),
}


def export(name: str, batch: int, folder: pathlib.Path) -> dict[str, str]:
    """Writes the model for each contestant, with its arguments; by contestant, why it could not."""
    from benchmarks.inference_models import make

    model, arguments = make(name, batch)
    failed = {}
    for contestant, how in CONTESTANTS.items():
        here = folder / contestant
        here.mkdir()
        np.savez(here / "arguments.npz", *arguments)
        (here / "arguments.json").write_text(json.dumps([argument.shape for argument in arguments]))
        try:
            how.write(model, arguments, here)
        except Exception as error:  # of any exporter, whatever it says: the table shows that it could not
            failed[contestant] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return failed


def exported(name: str, batch: int, folder: pathlib.Path) -> dict[str, str]:
    """`export` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.quantized", name, str(batch), str(folder)]
    variables = {**os.environ, **STOCK, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, batch: int, rounds: int, folder: pathlib.Path) -> Row:
    """A row: the contestants in turns, in at least so many rounds; seconds of their fastest calls."""
    from benchmarks.inference import Server

    row = Row(f"{name}, {batch}", {}, {}, exported(name, batch, folder))
    servers: dict[str, Server] = {}
    results = {}
    try:
        for contestant, how in CONTESTANTS.items():
            if contestant in row.failed:
                continue
            servers[contestant] = Server(how.engine, name, batch, folder / contestant)
            try:
                results[contestant] = servers[contestant].ready()["loss"]
                servers[contestant].turn()
                row.rounds[contestant] = []
            except RuntimeError as error:
                row.failed[contestant] = str(error)
        expected = results.get(XPU, statistics.median(results.values()))
        for contestant in list(row.rounds):
            if not math.isclose(results[contestant], expected, rel_tol=ERROR):
                row.failed[contestant] = f"its result is {results[contestant]:.5g}, that in floats {expected:.5g}"
                del row.rounds[contestant]
        take_turns(row, rounds, lambda contestant: min(servers[contestant].turn()["times"]))
    finally:
        for server in servers.values():
            server.end()
    return row


def measured(rounds: int) -> Iterator[Row]:
    """A row for each model that the XPU and another one could run; says what it sees."""
    for name in MODELS:
        print(f"-- {name}, in 8 bits but on the XPU", flush=True)
        folder = pathlib.Path(tempfile.mkdtemp())
        try:
            row = measure(name, BATCH, rounds, folder)
        finally:
            shutil.rmtree(folder)
        for contestant in CONTESTANTS:
            told = f"cannot: {row.failed[contestant]}" if contestant in row.failed else ""
            told = told or f"{best(row, contestant) * 1e3:8.3g} ms"
            print(f"   {contestant:20} {told}", flush=True)
        if XPU in row.rounds and len(row.rounds) > 1:
            yield row


def table(rows: list[Row]) -> str:
    """Markdown: milliseconds of a call, and the best of the others / XPU."""
    heads = [f"{name}, {'float32' if name == XPU else 'int8'}" for name in CONTESTANTS]
    lines = [f"| model, batch | {' | '.join(heads)} | best other / XPU |", "|---|" + "---|" * (len(heads) + 1)]
    for row in rows:
        cells = [f"{best(row, name) * 1e3:.3g}" if name in row.rounds else "-" for name in CONTESTANTS]
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {times_as_fast(row):.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(export(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))), flush=True)
