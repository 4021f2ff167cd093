"""Convolutional networks in 8 bits, on the XPU and as other engines have them: part of the contest of generation.

`python -m benchmarks.quantized MODEL BATCH FOLDER` writes the model for each of them, into a folder of the FOLDER. It
prints what each of them said if it could not. Keras has no convolutions of 8 bits. So the XPU's model has TensorFlow's
fake quantization before each convolution and product, as one that was trained for 8 bits has. Its ranges are those of
the weights, by channel, and of activations in examples. LiteRT quantizes weights alone, or weights and activations by
the ranges that it sees in examples. OpenVINO's NNCF does the latter: `pip install nncf==3.4.0`.
"""

from __future__ import annotations

import dataclasses
import functools
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


def ranges_of_inputs(model: keras.Model, arguments: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    """By layer that multiplies: the least and the greatest number of its input in examples, and 0."""
    import keras
    from keras import layers

    multiply = layers.Conv2D, layers.DepthwiseConv2D, layers.Dense
    names = [layer.name for layer in model.layers if isinstance(layer, multiply)]
    observed = keras.Model(model.input, [model.get_layer(name).input for name in names])
    low, high = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for given in examples(arguments):
        for name, value in zip(names, observed(given), strict=True):
            low[name] = min(low[name], float(np.min(value)))
            high[name] = max(high[name], float(np.max(value)))
    return {name: (low[name], high[name]) for name in names}


def fake_quantized(model: keras.Model, arguments: list[np.ndarray]) -> keras.Model:
    """The model with fake quantization of what each layer multiplies. Zeros around an image are added afterwards."""
    import keras
    import tensorflow as tf
    from keras import layers, ops

    quantize = tf.quantization
    ranges = ranges_of_inputs(model, arguments)
    padded = {}
    for name in ranges:
        before = model.get_layer(name).input._keras_history.operation
        if isinstance(before, layers.ZeroPadding2D):
            padded[before.name] = name

    def columns(layer: Any) -> int:
        kernel = layer.kernel
        return kernel.shape[-1] * (kernel.shape[-2] if isinstance(layer, layers.DepthwiseConv2D) else 1)

    kernels = {name: ops.convert_to_numpy(model.get_layer(name).kernel) for name in ranges}
    most = {name: np.abs(kernels[name]).reshape(-1, columns(model.get_layer(name))).max(0) for name in ranges}

    def in_bits(x: Any, name: str) -> Any:
        return quantize.fake_quant_with_min_max_vars(x, *ranges[name])

    def weights(layer: Any) -> Any:
        rows = ops.reshape(layer.kernel, (-1, columns(layer)))
        rows = quantize.fake_quant_with_min_max_vars_per_channel(rows, layer.least, layer.most, narrow_range=True)
        return ops.reshape(rows, layer.kernel.shape)

    def multiplied(layer: Any, x: Any) -> Any:
        if layer.name not in padded.values():
            x = in_bits(x, layer.name)
        if isinstance(layer, layers.Dense):
            x = ops.matmul(x, weights(layer))
        else:
            convolve = ops.depthwise_conv if isinstance(layer, layers.DepthwiseConv2D) else ops.conv
            x = convolve(x, weights(layer), layer.strides, layer.padding, dilation_rate=layer.dilation_rate)
        return layer.activation(x + layer.bias if layer.use_bias else x)

    def clone(layer: Any) -> Any:
        copy = type(layer).from_config(layer.get_config())
        if layer.name in ranges:
            # Variables, as training has them.
            copy.least, copy.most = (tf.Variable(sign * most[layer.name], trainable=False) for sign in (-1, 1))
            copy.call = functools.partial(multiplied, copy)
        elif layer.name in padded:
            call = copy.call
            copy.call = lambda x: call(in_bits(x, padded[layer.name]))
        return copy

    quantized = keras.models.clone_model(model, clone_function=clone)
    quantized.set_weights(model.get_weights())
    return quantized


def saved_with_fake_quantization(model: keras.Model, arguments: list[np.ndarray], folder: pathlib.Path) -> None:
    fake_quantized(model, arguments).export(str(folder / "saved"), verbose=False)


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
    XPU: Contestant(XPU, saved_with_fake_quantization),
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
                row.failed[contestant] = f"its result is {results[contestant]:.5g}, that of the XPU {expected:.5g}"
                del row.rounds[contestant]
        take_turns(row, rounds, lambda contestant: min(servers[contestant].turn()["times"]))
    finally:
        for server in servers.values():
            server.end()
    return row


def measured(rounds: int) -> Iterator[Row]:
    """A row for each model that the XPU and another one could run; says what it sees."""
    for name in MODELS:
        print(f"-- {name}, in 8 bits", flush=True)
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
    heads = [f"{name}, int8" for name in CONTESTANTS]
    lines = [f"| model, batch | {' | '.join(heads)} | best other / XPU |", "|---|" + "---|" * (len(heads) + 1)]
    for row in rows:
        cells = [f"{best(row, name) * 1e3:.3g}" if name in row.rounds else "-" for name in CONTESTANTS]
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {times_as_fast(row):.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(export(sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3]))), flush=True)
