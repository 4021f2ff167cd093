"""`python -m benchmarks opencl`: what the OpenCL backend costs, with --write put into docs/opencl.md.

Each primitive, by an op that is one, beside the reference backend's and TensorFlow's own CPU kernel. Also the demo's
first steps, while kernels are compiled, and in a second process, which finds them on disk. Backends have a process of
their own each, which run an op in turns. As a program, `python -m benchmarks.opencl BACKEND` is such a process, a turn
for each line of its input, "PRIMITIVE SIZE". The command `python -m benchmarks.opencl BACKEND steps` prints the seconds
of steps.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from benchmarks import families, race
from benchmarks.families import Entry
from benchmarks.measure import CPU, XPU, graphs_as_written, in_process, put, repeated, seconds
from tensorflow_xpu._measure import amount

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "opencl.md"

OPENCL, REFERENCE, STOCK = "XPU_OPENCL", "XPU_REFERENCE", "CPU"
#: Of a backend's processes. Without clusters, which would run an op that is repeated once.
ENVIRONMENTS = {
    OPENCL: {"TF_XPU_SUBDEVICE": OPENCL, "TF_XPU_FUSION": "0"},
    REFERENCE: {"TF_XPU_SUBDEVICE": REFERENCE, "TF_XPU_FUSION": "0"},
    STOCK: {"TF_XPU_DISABLE": "1"},
}

#: By primitive: an op that is that primitive, what makes it and its arguments for a size, and the sizes.
CASES: dict[str, tuple[str, Entry, tuple[int, int]]] = {
    "Elementwise": ("Tanh", families.MATH.ops["Tanh"], (1 << 14, 1 << 20)),
    "Reduce": ("Sum", families.MATH.ops["Sum"], (1 << 14, 1 << 20)),
    "MatMul": ("MatMul", (tf.matmul, lambda n: [families.normal(n, n), families.normal(n, n)]), (64, 512)),
    "Convolution": ("Conv2D", families.NN.ops["Conv2D"], (1 << 14, 1 << 18)),
    "Pool": ("MaxPool", families.NN.ops["MaxPool"], (1 << 14, 1 << 20)),
    "Normalize": ("FusedBatchNormV3", families.NN.ops["FusedBatchNormV3"], (1 << 14, 1 << 20)),
    "Softmax": ("Softmax", families.NN.ops["Softmax"], (1 << 14, 1 << 20)),
    "CopyStrided": ("Transpose", families.ARRAY.ops["Transpose"], (1 << 14, 1 << 20)),
    "Gather": ("GatherV2", families.GATHER.ops["GatherV2"], (1 << 14, 1 << 20)),
    "Scatter": ("ScatterNd", families.GATHER.ops["ScatterNd"], (1 << 14, 1 << 20)),
    "Random": ("RandomUniform", families.RANDOM.ops["RandomUniform"], (1 << 14, 1 << 20)),
    "Compact": ("Where", families.ARRAY.ops["Where"], (1 << 14, 1 << 20)),
    "Scan": ("Cumsum", families.ORDER.ops["Cumsum"], (1 << 14, 1 << 20)),
    "Sort": ("TopKV2", families.ORDER.ops["TopKV2"], (1 << 14, 1 << 20)),
    "Search": ("LowerBound", families.ORDER.ops["LowerBound"], (1 << 14, 1 << 20)),
    "Unique": ("UniqueV2", (lambda x: tf.unique(x)[0], lambda n: [families.whole(1000, n) / 2]), (1 << 14, 1 << 20)),
    "Sample": ("ResizeBilinear", families.IMAGES.ops["ResizeBilinear"], (1 << 14, 1 << 20)),
    "Resample": ("ScaleAndTranslate", families.IMAGES.ops["ScaleAndTranslate"], (1 << 14, 1 << 20)),
    "Fft": ("FFT", families.SIGNAL.ops["FFT"], (1 << 14, 1 << 17)),
    "Factorize": ("Cholesky", families.LINALG.ops["Cholesky"], (64, 256)),
    "Solve": ("MatrixSolve", families.LINALG.ops["MatrixSolve"], (64, 256)),
    "Suppress": ("NonMaxSuppressionV3", families.IMAGES.ops["NonMaxSuppressionV3"], (1 << 14, 1 << 19)),
}
SIZES, REPEATS = ("small", "large"), (20, 2)
ROUNDS, PROCESSES = 5, 2


class Process(race.Process):
    """A backend at its cases."""

    def __init__(self, backend: str):
        self.start(["benchmarks.opencl", backend], ENVIRONMENTS[backend])


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of an op in each round, by backend."""

    primitive: str
    size: str
    rounds: dict[str, list[float]]

    def median(self, backend: str = OPENCL) -> float:
        return statistics.median(self.rounds[backend])

    def ratio(self, backend: str) -> float:
        """XPU_OPENCL's time as a multiple of that one's: the median of the rounds' ratios."""
        pairs = zip(self.rounds[OPENCL], self.rounds[backend], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def label(primitive: str, size: str) -> str:
    """The shapes of a case's arguments, for people."""
    _, (_, arguments), sizes = CASES[primitive]
    return ", ".join("x".join(map(str, np.shape(x))) for x in arguments(sizes[SIZES.index(size)]))


def measured(primitives: Sequence[str], rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for each size of each primitive."""
    processes = {backend: Process(backend) for backend in ENVIRONMENTS}
    try:
        for primitive in primitives:
            for size in SIZES:
                turn = f"{primitive} {size}"
                times: dict[str, list[float]] = {backend: [] for backend in processes}
                for number in range(rounds + 2):
                    for backend, process in processes.items():
                        took = process.turn(turn)["seconds"]
                        if number >= 2:  # what is traced and compiled is
                            times[backend].append(took)
                yield Row(primitive, size, times)
    finally:
        for process in processes.values():
            process.end()


def first_steps() -> dict[str, list[dict[str, float]]]:
    """The seconds of the first three steps of the demo's network, in processes without and with kernels on disk, and on
    the CPU. Also the number of kernels on disk at the end.
    """
    seen: dict[str, list[dict[str, float]]] = {"compiles": [], "finds them": [], STOCK: []}
    for _ in range(PROCESSES):
        with tempfile.TemporaryDirectory() as cache:
            environment = ENVIRONMENTS[OPENCL] | {"XDG_CACHE_HOME": cache, "POCL_KERNEL_CACHE": "0"}
            del environment["TF_XPU_FUSION"]  # as users have it
            for what, backend, variables in (
                ("compiles", OPENCL, environment),
                ("finds them", OPENCL, environment),
                (STOCK, STOCK, ENVIRONMENTS[STOCK]),
            ):
                steps = json.loads(in_process("benchmarks.opencl", backend, "steps", **variables).splitlines()[-1])
                kernels = sum(path.is_file() for path in pathlib.Path(cache).rglob("*"))
                seen[what].append({"first": steps[0], "second": steps[1], "third": steps[2], "kernels": kernels})
    return seen


def table(rows: Sequence[Row]) -> str:
    """Markdown: each op's time, and as a multiple of the others'."""
    lines = [
        f"| primitive, by the op | arguments | {OPENCL} | / {REFERENCE} | / TensorFlow's CPU |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [amount(row.median(), "s"), *(f"{row.ratio(other):.2f}" for other in (REFERENCE, STOCK))]
        name = f"{row.primitive}, {CASES[row.primitive][0]}"
        lines.append(f"| {name} | {label(row.primitive, row.size)} | {' | '.join(cells)} |")
    means = [f"{statistics.geometric_mean(row.ratio(other) for row in rows):.2f}" for other in (REFERENCE, STOCK)]
    return "\n".join([*lines, f"| geometric mean | | | {' | '.join(means)} |"])


def steps_table(seen: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: the least of each step's times."""
    kernels = max(int(process["kernels"]) for process in seen["compiles"])
    names = {
        "compiles": f"{OPENCL}, a first process, which compiles {kernels} kernels",
        "finds them": f"{OPENCL}, a second process, which finds them on disk",
        STOCK: "TensorFlow's CPU",
    }
    lines = ["| | first step | second step | third step |", "|---|---|---|---|"]
    for what, name in names.items():
        least = (min(process[step] for process in seen[what]) for step in ("first", "second", "third"))
        lines.append(f"| {name} | {' | '.join(amount(value, 's') for value in least)} |")
    return "\n".join(lines)


TEXT = """By `python -m benchmarks opencl --write`, on {machine}, with the OpenCL device
"{device}".

The reference backend is plain loops on one thread. Each backend has a process of its own, and the processes run an op
in turns. The time is the median of {rounds} rounds. A ratio is the median of the rounds' ratios; below 1 OpenCL is
faster. Ops run one by one, without clusters.

{table}

The next table has the first steps of training the demo's network (`examples/digits_cnn.py`, batches of 128). Each
figure is the least of {processes} processes.

{steps}"""


def run(write: bool, primitives: Sequence[str] = tuple(CASES)) -> None:
    """Measures, prints the tables, and with `write` puts them into docs/opencl.md."""
    from benchmarks.document import machine

    rows = []
    for row in measured(primitives):
        rows.append(row)
        print(table([row]).splitlines()[2], flush=True)
    steps = steps_table(first_steps())
    device = in_process("benchmarks.opencl", OPENCL, "device", **ENVIRONMENTS[OPENCL]).splitlines()[-1]
    text = TEXT.format(
        machine=machine(), device=device, rounds=ROUNDS, table=table(rows), processes=PROCESSES, steps=steps
    )
    print(text)
    if write:
        put(PAGE, text)


def turns(device: str) -> None:
    """A case for each line of the input."""
    runs: dict[str, Callable[[], None]] = {}
    with graphs_as_written():
        for line in sys.stdin:
            primitive, size = line.split()
            _, (op, arguments), sizes = CASES[primitive]
            which = SIZES.index(size)
            if line not in runs:
                runs[line] = repeated(op, arguments(sizes[which]), device, REPEATS[which])
            print(json.dumps({"seconds": seconds(runs[line]) / REPEATS[which]}), flush=True)


def main() -> None:
    backend, *what = sys.argv[1:]
    device = CPU if backend == STOCK else XPU
    if what == ["steps"]:
        from benchmarks.suite import demo_step

        step = demo_step(device)
        print(json.dumps([seconds(lambda: np.asarray(step())) for _ in range(3)]))
    elif what == ["device"]:
        import tensorflow_xpu

        print(tensorflow_xpu.list_physical_devices("XPU")[0].hardware_name)
    else:
        # An op that a backend lacks is an error: the CPU, on which TensorFlow would put it, is measured by itself.
        tf.config.set_soft_device_placement(False)
        turns(device)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
