"""Calls of a small model from Python: a network of three small layers, one row, arrays in and out.

Nearly nothing is computed, so the time is that of the way from Python to the commands and back. `python -m
benchmarks.calls` prints where it goes, beside the calls themselves.
"""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.measure import CPU, XPU, Result, seconds

ROUNDS, CALLS = 60, 100
ROW = np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)

Call = Callable[[], Any]


def network() -> Any:
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(0)
    return tf.keras.Sequential(
        [layers.Input([16]), layers.Dense(32, "relu"), layers.Dense(32, "relu"), layers.Dense(4)]
    )


def calls(device: str) -> dict[str, Call]:
    """The ways to call the network, each of which gives an array."""
    with tf.device(device):
        model = network()
        function = tf.function(model)
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "model")
            model.export(path, verbose=False)
            loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    (name,) = signature.structured_input_signature[1]
    (result,) = signature.structured_outputs
    return {
        "tf.function": lambda: function(ROW).numpy(),
        "a SavedModel's signature": lambda: signature(**{name: ROW})[result].numpy(),
        "a SavedModel's serve": lambda: loaded.serve(ROW).numpy(),
        "predict_on_batch": lambda: model.predict_on_batch(ROW),
        "predict": lambda: model.predict(ROW, verbose=0),
    }


def parts(device: str) -> dict[str, Call]:
    """The parts of the first of them that Python can do by themselves."""
    with tf.device(device):
        function = tf.function(network())
        tensor = tf.constant(ROW)
        for _ in range(3):
            result = function(tensor)
    return {
        "  with a tensor, which is not read": lambda: function(tensor),
        "  an array to a tensor": lambda: tf.constant(ROW),
        "  a tensor to an array": lambda: result.numpy(),
    }


def least(call: Call, rounds: int = ROUNDS, count: int = CALLS) -> float:
    """Seconds of a call: the least of many rounds."""

    def several() -> None:
        for _ in range(count):
            call()

    several()
    return min(seconds(several) for _ in range(rounds)) / count


def measured(of: Callable[[str], dict[str, Call]]) -> Iterator[Result]:
    on_xpu, on_cpu = of(XPU), of(CPU)
    for name, call in on_xpu.items():
        # TensorFlow's own `predict` takes milliseconds.
        few = {"rounds": 5, "count": 5} if name == "predict" else {}
        yield Result(name, "one row", least(call), least(on_cpu[name], **few))


def main() -> None:
    for of in (calls, parts):
        for result in measured(of):
            print(f"{result.name:40s} {result.xpu * 1e6:8.1f} us, on the CPU {result.cpu * 1e6:8.1f} us", flush=True)


if __name__ == "__main__":
    main()
