"""Random work on several devices from several threads, each result checked against numpy (make stress).

    python -m tests.stress [--seconds 600] [--checks N] [--threads 4] [--seed N]

Threads compute chains of ops that hop between the devices, eagerly and in graphs. They copy back and forth, update
variables, and hand tensors on while their memory is freed. They hold blocks that fill the devices up to their limit and
beyond, where ResourceExhaustedError is the right answer. Ends at the first wrong result or unexpected error with exit
code 1, after two minutes without progress with 2. The seed gives each thread's sequence of work; how the threads
interleave is the machine's choice.
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

# Read when TensorFlow is imported.
os.environ.setdefault("TF_XPU_DEVICE_COUNT", "2")
os.environ.setdefault("TF_XPU_MEMORY_LIMIT", "512MiB")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

HANGS_AFTER = 120  # seconds without progress of a thread


class WrongResultError(Exception):
    """A device computed something else than numpy did."""


@dataclasses.dataclass
class Progress:
    """The work that one thread has done."""

    checks: int = 0
    exhausted: int = 0
    last: float = dataclasses.field(default_factory=time.monotonic)

    def step(self) -> None:
        self.checks += 1
        self.last = time.monotonic()


def out_of_memory(error: Exception) -> bool:
    """True if a device was full. TensorFlow calls it an InternalError when it was a copy that found no room."""
    no_room = isinstance(error, tf.errors.InternalError) and "Dst tensor is not initialized" in str(error)
    return no_room or isinstance(error, tf.errors.ResourceExhaustedError)


def check(what: str, found: tf.Tensor, expected: np.ndarray) -> None:
    found = np.asarray(found)
    exact = not np.issubdtype(expected.dtype, np.floating)
    if found.shape != expected.shape:
        raise WrongResultError(f"{what}: shape {found.shape} where {expected.shape} was expected")
    good = found == expected if exact else np.abs(found - expected) <= 2e-4 * (1 + np.abs(expected))
    if not np.all(good):
        where = tuple(np.argwhere(~good)[0])
        raise WrongResultError(
            f"{what}: {np.count_nonzero(~good)} of {good.size} elements are wrong, the first at {where}: "
            f"{found[where]} where {expected[where]} was expected"
        )


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# Name, types, what a step needs besides the matrix, TensorFlow's way, numpy's way. Nothing grows without bounds.
Step = tuple[str, str, Callable, Callable, Callable]
NOTHING = lambda rng, shape: None  # noqa: E731
OPS: list[Step] = [
    ("add", "fi", lambda rng, s: int(rng.integers(-9, 9)), lambda x, p: x + p, lambda x, p: x + p),
    ("scale", "f", lambda rng, s: rng.uniform(-1, 1), lambda x, p: x * p, lambda x, p: x * p),
    ("times", "i", lambda rng, s: int(rng.integers(-3, 4)), lambda x, p: x * p, lambda x, p: x * p),
    ("tanh", "f", NOTHING, lambda x, p: tf.tanh(x), lambda x, p: np.tanh(x)),
    ("relu", "fi", NOTHING, lambda x, p: tf.nn.relu(x), lambda x, p: np.maximum(x, 0)),
    ("softmax", "f", NOTHING, lambda x, p: tf.nn.softmax(x), lambda x, p: softmax(x)),
    ("clip", "f", NOTHING, lambda x, p: tf.clip_by_value(x, -1, 1), lambda x, p: np.clip(x, -1, 1)),
    ("transpose", "fi", NOTHING, lambda x, p: tf.transpose(x), lambda x, p: x.T),
    ("reverse", "fi", NOTHING, lambda x, p: tf.reverse(x, [1]), lambda x, p: x[:, ::-1]),
    ("rows", "fi", lambda rng, s: rng.permutation(s[0]), lambda x, p: tf.gather(x, p), lambda x, p: x[p]),
    ("fold", "fi", NOTHING, lambda x, p: tf.concat([x, x], 0)[::2], lambda x, p: np.concatenate([x, x])[::2]),
    ("centre", "f", NOTHING, lambda x, p: x - tf.reduce_mean(x, 1, True), lambda x, p: x - x.mean(1, keepdims=True)),
    ("maximum", "fi", NOTHING, lambda x, p: x - tf.reduce_max(x, 0), lambda x, p: x - x.max(0)),
    (
        "matmul",
        "f",
        lambda rng, s: rng.standard_normal((s[1], int(rng.integers(1, 200)))) / np.sqrt(s[1]),
        lambda x, p: tf.linalg.matmul(x, tf.constant(p, x.dtype)),
        lambda x, p: x @ p,
    ),
]


class Worker(threading.Thread):
    """One thread's random work; `failure` is set if something was wrong."""

    def __init__(self, seed: int, index: int, devices: list[str], limit: int, stop: threading.Event):
        super().__init__(name=f"stress-{index}", daemon=True)
        self.rng = np.random.default_rng([seed, index])
        self.devices, self.limit, self.stop = devices, limit, stop
        self.progress = Progress()
        self.failure = ""
        self.blocks: list[tuple[tf.Tensor, str, float]] = []
        self.work = [self.chain, self.chain, self.graph, self.round_trip, self.variable, self.exchange, self.block]

    def run(self) -> None:
        while not self.stop.is_set():
            work = self.work[self.rng.integers(len(self.work))]
            try:
                work()
            except Exception as error:
                if out_of_memory(error):
                    self.progress.exhausted += 1
                    self.blocks.clear()
                    self.progress.last = time.monotonic()
                    continue
                self.failure = (
                    f"{self.name}, {work.__name__}, after {self.progress.checks} checks\n{traceback.format_exc()}"
                )
                self.stop.set()
            self.progress.step()

    def device(self, cpu: float = 0.05) -> str:
        return "/cpu:0" if self.rng.random() < cpu else self.devices[self.rng.integers(len(self.devices))]

    def size(self, most: int) -> int:
        return int(np.exp(self.rng.uniform(0, np.log(most))))

    def matrix(self) -> tuple[np.ndarray, np.ndarray, str]:
        """A random matrix as TensorFlow gets it, the same as numpy computes with it, and which ops suit it."""
        shape = self.size(600), self.size(600)
        if self.rng.random() < 0.3:
            x = self.rng.integers(-100, 100, shape)
            return x, x, "i"
        x = self.rng.standard_normal(shape).astype(self.rng.choice(["float32", "float64"]))
        return x, x.astype(np.float64), "f"

    def steps(self, shape: tuple[int, int], kind: str) -> tuple[list, str]:
        """A chain of ops for a matrix of that shape: each with its parameters and its device."""
        x, chain, suited = np.zeros(shape), [], [op for op in OPS if kind in op[1]]
        for _ in range(self.rng.integers(1, 9)):
            _, _, parameters, _, with_numpy = op = suited[self.rng.integers(len(suited))]
            p = parameters(self.rng, x.shape)
            x = with_numpy(x, p)
            chain.append((op, p, self.device()))
        return chain, " ".join(op[0] for op, _, _ in chain)

    @staticmethod
    def apply(chain: list, x: tf.Tensor) -> tf.Tensor:
        for (_, _, _, with_tf, _), p, device in chain:
            with tf.device(device):
                x = with_tf(x, p)
        return x

    @staticmethod
    def expected(chain: list, x: np.ndarray) -> np.ndarray:
        for (*_, with_numpy), p, _ in chain:
            x = with_numpy(x, p)
        return x

    def chain(self) -> None:
        x, reference, kind = self.matrix()
        chain, names = self.steps(x.shape, kind)
        check(f"{x.dtype}{x.shape} {names}", self.apply(chain, tf.constant(x)), self.expected(chain, reference))

    def graph(self) -> None:
        x, reference, kind = self.matrix()
        chain, names = self.steps(x.shape, kind)
        function = tf.function(lambda t: self.apply(chain, t), autograph=False)
        results = [function(tf.constant(x + i)) for i in range(3)]
        for i, result in enumerate(results):
            check(f"graph {x.dtype}{x.shape} {names}", result, self.expected(chain, reference + i))

    def round_trip(self) -> None:
        data = self.rng.integers(0, 256, self.size(4 << 20), dtype=np.uint8)
        with tf.device(self.device(cpu=0)):
            first = tf.identity(tf.constant(data))
        with tf.device(self.device(cpu=0)):
            second = tf.identity(first)
        del first
        check(f"round trip of {data.size} bytes", second, data)

    def variable(self) -> None:
        shape = self.size(300), self.size(300)
        with tf.device(self.device(cpu=0)):
            variable = tf.Variable(np.zeros(shape, "float32"))
            total, kept = np.zeros(shape), []
            for i in range(self.rng.integers(1, 12)):
                delta = self.rng.integers(-8, 8, shape).astype("float32")
                variable.assign_add(delta)
                total += delta
                if i % 3 == 0:
                    kept.append((variable.read_value(), total.copy()))  # must not change afterwards
            kept.append((variable.read_value(), total))
        for value, then in kept:
            check(f"variable {shape}", value, then.astype("float32"))

    def exchange(self) -> None:
        """Tensors that die while copies of them are under way."""
        shape = self.size(1000), self.size(300)
        moved, values = [], self.rng.integers(1, 1000, 6)
        for value in values:
            with tf.device(self.device(cpu=0)):
                made = tf.fill(shape, float(value)) * tf.fill(shape, 2.0)
            with tf.device(self.device(cpu=0)):
                moved.append(tf.identity(made))
            del made
        for value, tensor in zip(values, moved):
            check(f"exchange {shape}", tensor, np.full(shape, 2.0 * value, "float32"))

    def block(self) -> None:
        """Takes a large block or gives one back, which must be as it was filled."""
        if self.blocks and (len(self.blocks) > 2 or self.rng.random() < 0.5):
            tensor, device, value = self.blocks.pop(self.rng.integers(len(self.blocks)))
            with tf.device(device):
                ends = tf.stack([tf.reduce_min(tensor), tf.reduce_max(tensor)])
            check("block", ends, np.full(2, value, "float32"))
        else:
            device, value = self.device(cpu=0), float(self.rng.integers(1, 1 << 20))
            with tf.device(device):
                self.blocks.append((tf.fill([self.size(self.limit // 8)], value), device, value))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--checks", type=int, help="end earlier, after so many checks")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args(arguments)
    devices = [device.name for device in tf.config.list_logical_devices("XPU")]
    if not devices:
        print("stress: no XPU is visible", file=sys.stderr)
        return 1
    import tensorflow_xpu

    limit = tensorflow_xpu.list_physical_devices("XPU")[0].memory_total
    print(
        f"stress: seed {options.seed}, {options.threads} threads, {len(devices)} devices of {limit >> 20} MiB, "
        f"{options.seconds:g} s",
        flush=True,
    )
    stop = threading.Event()
    workers = [Worker(options.seed, i, devices, limit, stop) for i in range(options.threads)]
    start = time.monotonic()

    def checks() -> int:
        return sum(w.progress.checks for w in workers)

    def state() -> str:
        exhausted = sum(w.progress.exhausted for w in workers)
        return f"{time.monotonic() - start:.0f} s, {checks()} checks, memory exhausted {exhausted} times"

    for worker in workers:
        worker.start()
    said = start
    while time.monotonic() - start < options.seconds and not stop.wait(1):
        now = time.monotonic()
        if options.checks and checks() >= options.checks:
            break
        if now - said >= 10:
            said = now
            print(f"stress: {state()}", flush=True)
        if stuck := [w.name for w in workers if now - w.progress.last > HANGS_AFTER]:
            print(f"stress: seed {options.seed}: no progress of {stuck} for {HANGS_AFTER} s", file=sys.stderr)
            faulthandler.dump_traceback(all_threads=True)
            os._exit(2)
    stop.set()
    for worker in workers:
        worker.join(HANGS_AFTER)
    failures = [w.failure for w in workers if w.failure]
    failures += [f"{w.name} does not end" for w in workers if w.is_alive()]
    for failure in failures:
        print(f"stress: seed {options.seed}: {failure}", file=sys.stderr)
    print(f"stress: {'FAILED' if failures else 'no wrong result'}: seed {options.seed}, {state()}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
