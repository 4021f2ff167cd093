"""The XPU against what else a user of the same machine could choose: stock TensorFlow in three settings, JAX, PyTorch.

    python -m benchmarks.contest [--quick] [--write] [WORKLOAD ...]

Each contestant runs a workload (workloads.py) in a process of its own, and all of them wait for their turn: the rounds
alternate. A figure is the median of the rounds; what it is compared with comes from the same rounds. --write puts the
table into docs/benchmarks.md, and all figures into benchmarks/results/contest.json.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

RESULTS = pathlib.Path(__file__).resolve().parent / "results" / "contest.json"
ROUNDS, QUICK_ROUNDS = 7, 3


@dataclasses.dataclass(frozen=True)
class Contestant:
    """Who runs Keras models.

    environment: of its processes.
    jit_compile: Model.compile's: XLA for TensorFlow and JAX (which has nothing else), torch.compile for PyTorch.
    """

    environment: dict[str, str]
    jit_compile: bool = False


STOCK = {"KERAS_BACKEND": "tensorflow", "TF_XPU_DISABLE": "1"}
CONTESTANTS = {
    "XPU": Contestant({"KERAS_BACKEND": "tensorflow"}),
    "TensorFlow": Contestant(STOCK),
    "TensorFlow without oneDNN": Contestant({**STOCK, "TF_ENABLE_ONEDNN_OPTS": "0"}),
    "TensorFlow with XLA": Contestant(STOCK, jit_compile=True),
    "JAX": Contestant({"KERAS_BACKEND": "jax"}, jit_compile=True),
    "PyTorch": Contestant({"KERAS_BACKEND": "torch"}),
    "PyTorch, compiled": Contestant({"KERAS_BACKEND": "torch"}, jit_compile=True),
}


@dataclasses.dataclass
class Row:
    """A workload's figures: seconds of a step by contestant, in each round; those that could not run it say why."""

    workload: str
    rounds: dict[str, list[float]]
    first: dict[str, float]  # seconds until the steps had run once
    failed: dict[str, str]

    def median(self, contestant: str) -> float:
        return statistics.median(self.rounds[contestant])

    def best(self) -> str:
        """The fastest but the XPU."""
        return min((c for c in self.rounds if c != "XPU"), key=self.median)

    def times_as_fast(self, contestant: str) -> float:
        """How many times as fast as it the XPU is: the median of the rounds' ratios."""
        pairs = zip(self.rounds[contestant], self.rounds["XPU"], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)


class Process:
    """A contestant at a workload."""

    def __init__(self, contestant: str, workload: str):
        command = [sys.executable, "-m", "benchmarks.contest", "--run", contestant, workload]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **CONTESTANTS[contestant].environment}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, **pipes)

    def turn(self) -> dict[str, float]:
        """Has it run the steps once: {"seconds": of a step, "whole": of the turn, "loss": ...}. Raises RuntimeError
        if it cannot.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        errors = self._process.communicate()[1].strip().splitlines()
        raise RuntimeError(errors[-1] if errors else f"exit code {self._process.returncode}")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def run(contestant: str, workload: str) -> None:
    """What a process does: a turn for each line of its input."""
    from benchmarks.workloads import make

    work = None
    for _ in sys.stdin:
        start = time.perf_counter()
        work = work or make(workload, CONTESTANTS[contestant].jit_compile)
        seconds, loss = work()
        whole = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "whole": whole, "loss": loss}), flush=True)


def measure(workload: str, contestants: list[str], rounds: int) -> Row:
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
        for _ in range(rounds):
            for contestant in list(row.rounds):
                try:
                    row.rounds[contestant].append(processes[contestant].turn()["seconds"])
                except RuntimeError as error:
                    row.failed[contestant] = str(error)
                    del row.rounds[contestant]
    finally:
        for process in processes.values():
            process.end()
    for contestant, loss in losses.items():
        expected = statistics.median(losses.values())
        if not math.isclose(loss, expected, rel_tol=0.05):
            print(f"   {contestant}: the first loss is {loss:.5g}, that of most {expected:.5g}", flush=True)
    return row


def mean(ratios: list[float]) -> str:
    """Their geometric mean, for people."""
    return f"{statistics.geometric_mean(ratios):.2f}" if ratios else "-"


def table(rows: list[Row], sizes: dict[str, str]) -> str:
    """Markdown: milliseconds of a step, and how many times as fast as the best of the others the XPU is."""
    names = list(CONTESTANTS)
    lines = [f"| workload | {' | '.join(names)} | best other / XPU |", "|---|" + "---|" * (len(names) + 1)]
    for row in rows:
        cells = [f"{row.median(name) * 1e3:.3g}" if name in row.rounds else "-" for name in names]
        ratio = f"{row.times_as_fast(row.best()):.2f}"
        lines.append(f"| {row.workload}: {sizes[row.workload]} | {' | '.join(cells)} | {ratio} |")
    means = [mean([row.times_as_fast(name) for row in rows if name in row.rounds]) for name in names]
    best = mean([row.times_as_fast(row.best()) for row in rows])
    lines.append(f"| geometric mean of time / XPU's | {' | '.join(means)} | {best} |")
    return "\n".join(lines)


def measured(workloads: list[str], contestants: list[str], rounds: int) -> Iterator[Row]:
    for number, workload in enumerate(workloads, 1):
        print(f"-- {number} of {len(workloads)}: {workload}", flush=True)
        row = measure(workload, contestants, rounds)
        for contestant in contestants:
            if contestant in row.failed:
                print(f"   {contestant:26} cannot: {row.failed[contestant]}", flush=True)
            else:
                times = row.rounds[contestant]
                spread = f"{min(times) * 1e3:.3g} to {max(times) * 1e3:.3g}"
                print(f"   {contestant:26} {row.median(contestant) * 1e3:8.3g} ms ({spread})", flush=True)
        if "XPU" in row.rounds and len(row.rounds) > 1:
            print(f"   {row.times_as_fast(row.best()):.2f} times as fast as {row.best()}", flush=True)
            yield row


def main() -> int:
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:])
        return 0
    from benchmarks.workloads import QUICK, WORKLOADS

    parser = argparse.ArgumentParser(prog="python -m benchmarks.contest", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="default: all")
    parser.add_argument("--quick", action="store_true", help="a few workloads and rounds, against stock TensorFlow")
    parser.add_argument("--against", help="contestants, with commas between; default: all")
    parser.add_argument("--rounds", type=int)
    parser.add_argument(
        "--write", action="store_true", help="write docs/benchmarks.md and benchmarks/results/contest.json"
    )
    options = parser.parse_args()
    workloads = options.workloads or list(QUICK if options.quick else WORKLOADS)
    contestants = ["TensorFlow"] if options.quick else [name for name in CONTESTANTS if name != "XPU"]
    contestants = ["XPU", *(options.against.split(",") if options.against else contestants)]
    for given, known in ((workloads, WORKLOADS), (contestants, CONTESTANTS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"there is no {unknown[0]!r}; expected some of: {'; '.join(known)}")
    rows = list(measured(workloads, contestants, options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)))
    text = table(rows, {name: workload.size for name, workload in WORKLOADS.items()})
    print(text)
    if options.write:
        from benchmarks.__main__ import PATH, written

        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n")
        PATH.write_text(written(PATH.read_text(), {"contest": f"\n{INTRODUCTION}\n{text}\n"}))
    return 0


INTRODUCTION = """Milliseconds of a step, in Keras's own `fit` or `predict` on NumPy arrays, by `python -m
benchmarks.contest`: ordinary models, the same weights and data for all, each contestant in a process of its own, in
turns. The last column is the fastest of the others' time as a multiple of the XPU's: above 1 the XPU is first.
"""


if __name__ == "__main__":
    sys.exit(main())
