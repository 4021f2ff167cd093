"""Contestants that run a workload in turns, each in a process of its own.

As a program, `python -m benchmarks.race CONTESTANT WORKLOAD`, it is such a process. It takes a turn for each line of
its input; if the line is "profile", the operations are counted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who runs Keras models.

    environment: of its processes.
    jit_compile: Model.compile's: XLA for TensorFlow and JAX (which has nothing else), torch.compile for PyTorch.
    """

    environment: dict[str, str]
    jit_compile: bool = False


XPU = "XPU"
STOCK = {"KERAS_BACKEND": "tensorflow", "TF_XPU_DISABLE": "1"}
CONTESTANTS = {
    XPU: Contestant({"KERAS_BACKEND": "tensorflow"}),
    "TensorFlow": Contestant(STOCK),
    "TensorFlow without oneDNN": Contestant({**STOCK, "TF_ENABLE_ONEDNN_OPTS": "0"}),
    "TensorFlow with XLA": Contestant(STOCK, jit_compile=True),
    "JAX": Contestant({"KERAS_BACKEND": "jax"}, jit_compile=True),
    "PyTorch": Contestant({"KERAS_BACKEND": "torch"}),
    "PyTorch, compiled": Contestant({"KERAS_BACKEND": "torch"}, jit_compile=True),
}


# The XPU with something left out.
PASSES = ("FuseElementwise", "FuseEpilogues", "FuseReductions", "PropagateCopiesForward", "PropagateCopiesBackward")
PASSES += ("BatchMatMuls", "FoldMatMulBatch", "EliminateCommonSubexpressions", "HoistInvariants", "Rematerialize")
VARIANTS = {
    **{f"without {name}": Contestant({"TF_XPU_FUSION_WITHOUT": name}) for name in PASSES},
    "without direct calls": Contestant({"TF_XPU_DIRECT_CALLS": "0"}),
    "without clusters": Contestant({"TF_XPU_FUSION": "0"}),
    "with one thread": Contestant({"TF_XPU_THREADS": "1"}),
}


@dataclasses.dataclass
class Row:
    """A workload's figures: seconds of a step by contestant, in each round; those that could not run it say why."""

    workload: str
    rounds: dict[str, list[float]]
    first: dict[str, float]  # seconds until the steps had run once
    failed: dict[str, str]
    # The operations and bytes of each command of a step on the XPU, if they were counted.
    commands: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def median(self, contestant: str) -> float:
        return statistics.median(self.rounds[contestant])

    def best(self) -> str:
        """The fastest but the XPU."""
        return min((c for c in self.rounds if c != XPU), key=self.median)

    def times_as_fast(self, contestant: str) -> float:
        """How many times as fast as it the XPU is: the median of the rounds' ratios."""
        pairs = zip(self.rounds[contestant], self.rounds[XPU], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)


class Process:
    """A contestant at a workload."""

    def __init__(self, contestant: str, workload: str):
        who = (CONTESTANTS | VARIANTS)[contestant]
        self.start(["benchmarks.race", json.dumps(who.jit_compile), workload], who.environment)

    def start(self, module: list[str], environment: dict[str, str]) -> None:
        """Runs `python -m module`, whose arguments stand behind its name; it answers each line with one of JSON."""
        command = [sys.executable, "-m", *module]
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=variables, **pipes)

    def turn(self, what: str = "") -> dict[str, Any]:
        """Has it run the steps once: {"seconds": of a step, "whole": of the turn, "loss": ...}; or what `profiled`
        gives, for "profile". Raises RuntimeError if it cannot.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{what}\n")
            self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Its next line of JSON. Raises RuntimeError if it ends without one."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        errors = self._process.communicate()[1].strip().splitlines()
        raise RuntimeError(errors[-1] if errors else f"exit code {self._process.returncode}")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def run(jit_compile: bool, workload: str) -> None:
    """The work of a process: a turn for each line of its input."""
    from benchmarks.workloads import find, make

    work = None
    for line in sys.stdin:
        if work is not None and line == "profile\n":
            print(json.dumps(profiled(work, find(workload).steps)), flush=True)
            continue
        start = time.perf_counter()
        work = work or make(workload, jit_compile)
        seconds, loss = work()
        whole = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "whole": whole, "loss": loss}), flush=True)


def profiled(work: Callable[[], object], steps: int) -> dict[str, Any]:
    """Operations and bytes of each command and copy of a turn on an XPU, and how many steps it has."""
    import tensorflow_xpu

    with tempfile.TemporaryDirectory() as folder, tensorflow_xpu.profile(folder) as profile:
        work()
    events = [[event.flops, event.bytes] for event in profile.events if event.kind in ("command", "copy", "fill")]
    return {"events": events, "steps": steps}


# If the middle half of a contestant's rounds is further apart than this, the machine was another one meanwhile. The row
# then gets more rounds, up to so many times as many.
STEADY, MOST = 1.15, 3


def is_steady(times: list[float]) -> bool:
    """True if the middle half of rounds is close together."""
    outside = len(times) // 4
    middle = sorted(times)[outside : len(times) - outside]
    return not middle or middle[-1] <= STEADY * middle[0]


def take_turns(row: Row, rounds: int, seconds: Callable[[str], float]) -> None:
    """Adds rounds to a row, at least so many. One that raises RuntimeError is out, and its words are kept.

    seconds: of a step, in a turn of the contestant of that name.
    """
    for number in range(MOST * rounds):
        if number >= rounds and all(is_steady(times) for times in row.rounds.values()):
            break
        # There and back: nobody is always behind the same one, whose threads may spin for a while.
        for contestant in list(row.rounds)[:: -1 if number % 2 else 1]:
            try:
                row.rounds[contestant].append(seconds(contestant))
            except RuntimeError as error:
                row.failed[contestant] = str(error)
                del row.rounds[contestant]


def measure(workload: str, contestants: list[str], rounds: int, counted: bool = False) -> Row:
    """Runs the workload in turns, in at least so many rounds. counted: then one of the XPU's is profiled."""
    row = Row(workload, {}, {}, {})
    processes: dict[str, Process] = {}
    try:
        losses = {}
        for contestant in contestants:
            processes[contestant] = Process(contestant, workload)
            try:
                first = processes[contestant].turn()
                processes[contestant].turn()  # whatever is compiled or chosen late
            except RuntimeError as error:
                row.failed[contestant] = str(error)
                continue
            row.first[contestant], losses[contestant] = first["whole"], first["loss"]
            row.rounds[contestant] = []
        take_turns(row, rounds, lambda contestant: processes[contestant].turn()["seconds"])
        if counted and XPU in row.rounds:
            seen = processes[XPU].turn("profile")
            row.commands = [(flops / seen["steps"], size / seen["steps"]) for flops, size in seen["events"]]
    finally:
        for process in processes.values():
            process.end()
    for contestant, loss in losses.items():
        expected = statistics.median(losses.values())
        if not math.isclose(loss, expected, rel_tol=0.05):
            print(f"   {contestant}: the first loss is {loss:.5g}, that of most {expected:.5g}", flush=True)
    return row


def measured(workloads: list[str], contestants: list[str], rounds: int, counted: bool = False) -> Iterator[Row]:
    """A row for each workload that the XPU and another one could run; says what it sees."""
    for number, workload in enumerate(workloads, 1):
        print(f"-- {number} of {len(workloads)}: {workload}", flush=True)
        row = measure(workload, contestants, rounds, counted)
        for contestant in contestants:
            if contestant in row.failed:
                print(f"   {contestant:26} cannot: {row.failed[contestant]}", flush=True)
            else:
                times = row.rounds[contestant]
                spread = f"{min(times) * 1e3:.3g} to {max(times) * 1e3:.3g}"
                print(f"   {contestant:26} {row.median(contestant) * 1e3:8.3g} ms ({spread})", flush=True)
        if XPU in row.rounds and len(row.rounds) > 1:
            print(f"   {row.times_as_fast(row.best()):.2f} times as fast as {row.best()}", flush=True)
            yield row


if __name__ == "__main__":
    run(json.loads(sys.argv[1]), sys.argv[2])
