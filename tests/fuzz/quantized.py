"""Random networks of quantized and ordinary layers of Keras, whose weights change between calls.

python -m tests.fuzz.quantized 0 50    prints the seeds, of 50, whose network differs between /xpu:0 and /cpu:0

Each layer is compared on the values that it got on the XPU, so that no rounding decides which integers come next. A
function that returns the last value alone is compared with one that returns all. Another process runs it without the
passes about quantized products. Where all products are of integers, both give the same bits. A saved network is loaded
and called again.
"""

from __future__ import annotations

import dataclasses
import pickle
import sys
import tempfile
import traceback
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tests.fuzz.quantized_layers import Network
from tests.support.processes import run

PASSES = ("ReadPackedWeights", "FuseQuantization", "HoistInvariants", "FuseEpilogues")
CALLS = 9  # results of weights alone are kept from the fourth call with the same shapes on
BATCHES = (0, 1, 1, 2, 3, 5, 17, 70)


@dataclasses.dataclass
class Call:
    """A call, and what changes before it."""

    changes: dict[int, np.ndarray]  # new values of weights, by index
    argument: np.ndarray


def history(network: Network, seed: int) -> list[Call]:
    """The calls of a seed. Some batches repeat, so that what weights alone decide is kept, and then weights change."""
    rng = np.random.default_rng(seed)
    batches = [int(rng.choice(BATCHES)), max(1, int(rng.choice(BATCHES)))]
    calls = []
    for number in range(CALLS):
        changes = {}
        if number >= 5 and number % 2:
            for index in rng.permutation(len(network.changeable))[: rng.integers(1, 4)]:
                weight = network.changeable[index]
                changes[weight] = network.random_weight(network.model.weights[weight], rng)
        calls.append(Call(changes, network.argument(batches[number in (2, 6)], rng)))
    return calls


def assign(network: Network, changes: dict[int, np.ndarray]) -> None:
    for index, value in changes.items():
        network.model.weights[index].assign(value)


def function_of(model: keras.Model, network: Network, seed: int, jit_compile: bool | None):
    signature = None
    if seed % 2:
        signature = [tf.TensorSpec([None, *network.shape], network.dtype)]
    return tf.function(lambda x: model(x, training=False), input_signature=signature, jit_compile=jit_compile)


def results_of(network: Network, calls: list[Call], seed: int) -> list[np.ndarray]:
    """The last value alone, of all calls and of the loaded network."""
    found = []
    function = function_of(network.model, network, seed, True if seed % 3 == 0 else None)
    for call in calls:
        assign(network, call.changes)
        found.append(function(tf.constant(call.argument)).numpy())
    return found


def inside(network: Network, calls: list[Call], seed: int) -> list[np.ndarray]:
    """The last value before and after an assignment, which are in the same function, by several calls of it."""
    rng = np.random.default_rng([seed, 1])
    index = int(rng.choice(network.changeable))
    weight, argument = network.model.weights[index], tf.constant(calls[-1].argument)
    before, after = tf.constant(weight.numpy()), tf.constant(network.random_weight(weight, rng))

    @tf.function
    def both(x):
        weight.assign(after)
        changed = network.model(x, training=False)
        weight.assign(before)
        return network.model(x, training=False), changed

    return [value.numpy() for _ in range(5) for value in both(argument)]


def saved_and_loaded(network: Network, calls: list[Call], seed: int) -> np.ndarray | None:
    """The last result, by a network from a file; None where Keras does not save all weights."""
    if not network.can_be_saved:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        network.model.save(path)
        loaded = keras.models.load_model(path)
    return function_of(loaded, network, seed, None)(tf.constant(calls[-1].argument)).numpy()


def compare(what: str, found: np.ndarray, expected: np.ndarray, most: np.ndarray | float) -> list[str]:
    """A line if a value is further than `most` from the one expected."""
    if found.shape != expected.shape:
        return [f"{what}: shape {found.shape}, expected {expected.shape}"]
    with np.errstate(invalid="ignore"):
        close = (found == expected) | (np.abs(found - expected) <= most) | (np.isnan(found) & np.isnan(expected))
    if np.all(close):
        return []
    wrong = np.argwhere(~close)
    first = tuple(wrong[0])
    limit = np.broadcast_to(most, found.shape)[first]
    return [f"{what}: {len(wrong)} of {close.size}, {first}: {found[first]!r}, {expected[first]!r}, limit {limit:.2g}"]


def magnitude(value: np.ndarray) -> float:
    return float(np.max(np.abs(value), initial=0, where=np.isfinite(value)))


def differences(seed: int, unfused: list[np.ndarray] | None = None, change=assign) -> list[str]:
    """The lines about differences. unfused: the results without the passes. change: assigns on the XPU."""
    with tf.device("/cpu:0"):
        on_cpu = Network(seed)
        calls = history(on_cpu, seed)
    with tf.device("/xpu:0"):
        network = Network(seed)
        network.model.set_weights(on_cpu.model.get_weights())
        initial = network.model.get_weights()
        results = results_of(network, calls, seed)
        network.model.set_weights(initial)
        all_values = function_of(network.all_values, network, seed, None)
    lines = []
    for number, (call, result) in enumerate(zip(calls, results, strict=True)):
        with tf.device("/xpu:0"):
            change(network, call.changes)
            found = tf.nest.flatten(all_values(tf.constant(call.argument)))
            values = [call.argument, *(value.numpy() for value in found)]
        assign(on_cpu, call.changes)
        for step in on_cpu.steps:
            with tf.device("/cpu:0"):
                arguments = [values[i] for i in step.arguments]
                expected = step(arguments)
                limit = step.limit(arguments, expected)
            lines += compare(f"call {number}, {step}", values[step.result], expected, limit)
        most = on_cpu.tolerance * magnitude(values[-1])
        lines += compare(f"call {number}, the last value alone", result, values[-1], most)
        if unfused is not None:
            most = 0 if on_cpu.same_bits else on_cpu.tolerance * magnitude(result)
            lines += compare(f"call {number}, without the passes", unfused[number], result, most)
    with tf.device("/xpu:0"):
        others = inside(network, calls, seed)
        loaded = saved_and_loaded(network, calls, seed)
    most = on_cpu.tolerance * magnitude(values[-1])
    for number, other in enumerate(others[::2]):
        lines += compare(f"inside, call {number}", other, values[-1], most)
    with tf.device("/cpu:0"):
        expected = inside(on_cpu, calls, seed)[1]
    for number, other in enumerate(others[1::2]):
        most = max(on_cpu.tolerance, 1e-4) * magnitude(expected)
        lines += compare(f"inside after the assignment, call {number}", other, expected, most)
    if loaded is not None:
        lines += compare("loaded", loaded, values[-1], on_cpu.tolerance * magnitude(values[-1]))
    return lines


def unfused_results(seeds: range) -> dict[int, list[np.ndarray]]:
    """The results of another process, without the passes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results"
        environment = {"PYTHONPATH": ".", "TF_XPU_FUSION_WITHOUT": ",".join(PASSES)}
        outcome = run(
            "-m", "tests.fuzz.quantized", seeds.start, len(seeds), path, environment=environment, timeout=3000
        )
        assert outcome.returncode == 0, outcome
        return pickle.loads(path.read_bytes())


def results(seed: int) -> list[np.ndarray]:
    with tf.device("/cpu:0"):
        on_cpu = Network(seed)
        calls = history(on_cpu, seed)
    with tf.device("/xpu:0"):
        network = Network(seed)
        network.model.set_weights(on_cpu.model.get_weights())
        return results_of(network, calls, seed)


def main(first: int, count: int, path: str = "") -> int:
    seeds = range(first, first + count)
    if path:  # this is the process without the passes
        Path(path).write_bytes(pickle.dumps({seed: results(seed) for seed in seeds}))
        return 0
    wrong = 0
    unfused = unfused_results(seeds)
    for seed in seeds:
        try:
            lines = differences(seed, unfused[seed])
        except Exception:
            lines = [traceback.format_exc()]
        wrong += bool(lines)
        print(f"seed {seed} {'differs' if lines else 'is right'}", *lines[:12], sep="\n  ", flush=True)
        keras.backend.clear_session()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
