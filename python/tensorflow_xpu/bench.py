"""``python -m tensorflow_xpu bench``: how fast the XPU is here, beside TensorFlow's own CPU kernels.

Both run in one process and take turns, round by round; a ratio is that of the two times of one round. Single ops run op
by op, models as a user would have them. The exit code is 0, 1 if something could not be measured, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import importlib.util
import json
import math
import os
import pathlib
import platform
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tensorflow_xpu import _worker
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._terminal import GREEN, GREY, RED, Progress, paint
from tensorflow_xpu._version import __version__

MODELS = "models"
DEVICE = "the device"  # the task that says what is measured
MEMORY = "memory"  # the task that says how fast a product of one row reads it
MODES = ("float32", "int8", "int4")  # of Keras's quantize(), but the first
LIMIT = 300  # seconds that a case may take, with the start of its process


@dataclasses.dataclass(frozen=True)
class Case:
    """One of what is timed."""

    group: str  #: of ``_bench.ops.SINGLE_OPS``, or ``models``
    name: str
    size: str = ""  #: of a model, that of ``_bench.models.MODELS``

    @property
    def title(self) -> str:
        """Its name here."""
        return f"{self.name} {self.size}".rstrip() + (" step" if self.group == MODELS else "")


CASES = (
    Case("matmul", "MatMul", "512x512x512"),
    Case("matmul", "MatMul", "1024x1024x1024"),
    Case("matmul", "BatchMatMul", "32x64x64x64"),
    Case("convolution", "Conv2D", "medium 28x28x32"),
    Case("convolution", "Conv2DBackpropFilter", "medium 28x28x32"),
    Case("convolution", "MaxPool", "16x56x56x64"),
    Case("elementwise", "AddV2", "large 4M"),
    Case("elementwise", "Tanh", "medium 256k"),
    Case("reduction", "Sum columns", "medium 256k"),
    Case("softmax", "Softmax", "512x1000"),
    Case("data movement", "Transpose 2-D", "medium 256k"),
    Case("data movement", "Gather rows", "4096 of 10000x128"),
    Case("random", "stateless normal", "1M"),
    *(Case(MODELS, name) for name in ("MLP", "CNN", "LSTM", "decoder")),
)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The figures of one case. Times are medians of all rounds, in seconds of one op or step."""

    title: str
    xpu: float
    cpu: float
    times_as_fast: float  #: the median of the rounds' ratios CPU / XPU: above 1 the XPU is faster
    low: float  #: the first and the third quartile of these: half of the rounds were between
    high: float
    rounds: int

    @classmethod
    def of(cls, title: str, rounds: Sequence[Sequence[float]]) -> Measurement:
        """From the seconds of each round, of XPU and CPU; at least two rounds."""
        ratios = [cpu / xpu for xpu, cpu in rounds]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        xpu, cpu = (statistics.median(times) for times in zip(*rounds))
        return cls(title, xpu, cpu, middle, low, high, len(ratios))


def _time(seconds: float) -> str:
    unit, scale = next((u for u in (("s", 1.0), ("ms", 1e-3)) if seconds >= u[1]), ("us", 1e-6))
    return f"{seconds / scale:.3g} {unit}"


def _line(measured: Measurement, width: int) -> str:
    colour = GREEN if measured.low > 1 else RED if measured.high < 1 else GREY
    ratio = paint(f"{measured.times_as_fast:8.2f}", colour)
    spread = f"({measured.low:.2f} to {measured.high:.2f})"
    return f"{measured.title:<{width}}  {_time(measured.xpu):>9}  {_time(measured.cpu):>9}  {ratio}  {spread}"


def geometric_mean(values: Sequence[float]) -> float:
    """The mean of ratios, as faster and slower should cancel out."""
    return math.exp(statistics.fmean(map(math.log, values)))


def measure(titles: Sequence[str], progress: Progress) -> Iterator[_worker.Outcome]:
    """Runs the tasks of ``_bench.tasks``: ``DEVICE``, without which there is no other, and these cases."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}
    first = [DEVICE]
    for models in (False, True):
        names = [case.title for case in CASES if case.title in titles and (case.group == MODELS) == models]
        # Clusters would compute a repeated op once.
        environment = {**os.environ, **quiet, **({} if models else {"TF_XPU_FUSION": "0"})}
        if not names:
            continue
        for outcome in _worker.run("tensorflow_xpu._bench.tasks", [*first, *names], environment, LIMIT, progress.step):
            yield outcome
            if outcome.name == DEVICE and outcome.error:
                return
        first = []


def _require_plot(path: pathlib.Path) -> None:
    """Finds out before anything is measured whether a plot can be written there.

    Raises:
        XPUError: if not.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise XPUError(
            f"--plot needs matplotlib, which cannot be imported ({error}): pip install matplotlib"
        ) from error
    kinds = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.removeprefix(".") not in kinds:
        raise XPUError(f"--plot {path} has no ending that says what it is to be: expected one of {', '.join(kinds)}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise XPUError(f"--plot {path} cannot be written: expected a file in a folder that can be")


def draw(measured: Sequence[Measurement], title: str, path: pathlib.Path) -> None:
    """Draws how many times as fast the XPU is, a bar for each case, from where both are alike.

    Args:
        measured: at least one.
        title: above all.
        path: the file to be written; its ending says of which kind.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.6 + 0.32 * len(measured)), layout="constrained")
    axes = figure.subplots()
    rows = range(len(measured))
    ratios = [m.times_as_fast for m in measured]
    spread = [[m.times_as_fast - m.low for m in measured], [m.high - m.times_as_fast for m in measured]]
    colours = ["#3a7d44" if ratio >= 1 else "#b5533c" for ratio in ratios]
    axes.barh(rows, [ratio - 1 for ratio in ratios], left=1, color=colours, xerr=spread, ecolor="#444444", capsize=2)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(rows, [m.title for m in measured])
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as TensorFlow's CPU kernels (lines: half of the rounds)")
    axes.set_title(title)
    figure.savefig(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_xpu bench",
        description="Times ops and models on the XPU and on TensorFlow's CPU, in turns. It takes a minute or two; what "
        "else the machine does meanwhile is measured, too.",
    )
    parser.add_argument("case", nargs="*", help="part of a case's name, or a pattern such as 'MatMul*' (default: all)")
    parser.add_argument(
        "--generate",
        action="store_true",
        help="measure tokens per second of a small language model in floats, int8 and int4, beside what memory allows; "
        "needs Keras Hub",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and measure none")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE", help="draw the result: .png, .svg, .pdf ...")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Runs ``bench``. Returns 0, 1 if there is no XPU or something could not be measured, 2 for wrong usage."""
    parser = _parser()
    options = parser.parse_args(list(arguments))
    wanted = [case.lower() if "*" in case else f"*{case.lower()}*" for case in options.case]
    titles = [c.title for c in CASES if not wanted or any(fnmatch.fnmatchcase(c.title.lower(), w) for w in wanted)]
    if not titles:
        parser.error(f"no case is called {' or '.join(map(repr, options.case))}: --list names them")
    if options.generate and (options.case or options.list or options.plot):
        parser.error("--generate goes with --json only")
    if options.list:
        print("\n".join(titles))
        return 0
    if options.plot:
        try:
            _require_plot(options.plot)
        except XPUError as error:
            parser.error(str(error))
    if importlib.util.find_spec("tensorflow") is None:
        return _refuse('TensorFlow is not installed: pip install "tensorflow-cpu==2.21.*"', options)
    return _report_generation(options) if options.generate else _report(options, titles)


def _report_generation(options: argparse.Namespace) -> int:
    results: dict[str, Any] = {}
    failed: dict[str, str] = {}
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}
    with Progress(2 + len(MODES)) as progress:
        names = [DEVICE, MEMORY, *MODES]
        for outcome in _worker.run("tensorflow_xpu._bench.generate", names, environment, LIMIT, progress.step):
            if outcome.error:
                failed[outcome.name] = outcome.error
                if outcome.name in (DEVICE, MEMORY):
                    return _refuse(outcome.error, options)
                lines = [paint(f"{outcome.name:<8}  {outcome.error}", RED), *outcome.details.splitlines()]
            elif outcome.name == DEVICE:
                results[DEVICE] = outcome.result
                lines = [f"{outcome.result['backend']} on {outcome.result['hardware']}"]
            elif outcome.name == MEMORY:
                results[MEMORY] = outcome.result
                lines = [f"A product of one row reads {outcome.result * 1e-9:.1f} GB/s.", ""]
                lines += [f"{'weights':<8}  {'tokens/s':>9}  {'limit':>9}  {'share':>6}"]
            else:
                limit = results[MEMORY] / outcome.result["weight_bytes"]
                speed = outcome.result["tokens_per_second"]
                results[outcome.name] = {**outcome.result, "limit": limit, "share": speed / limit}
                lines = [f"{outcome.name:<8}  {speed:>9.1f}  {limit:>9.1f}  {speed / limit:>6.0%}"]
            if not options.json:
                progress.print("\n".join(lines))
    if options.json:
        modes = {mode: results[mode] for mode in MODES if mode in results}
        report = {"version": __version__, **results[DEVICE], "bytes_per_second": results[MEMORY]}
        print(json.dumps({**report, "modes": modes, "failed": failed}, indent=2))
    return 1 if failed else 0


def _refuse(text: str, options: argparse.Namespace) -> int:
    print(f"tensorflow_xpu: {text}", file=sys.stderr)
    if options.json:
        print(json.dumps({"error": text}))
    return 1


def _report(options: argparse.Namespace, titles: Sequence[str]) -> int:
    width = max(map(len, titles))
    device: dict[str, Any] = {}
    measured: list[Measurement] = []
    failed: list[_worker.Outcome] = []
    with Progress(1 + len(titles)) as progress:
        for outcome in measure(titles, progress):
            if outcome.name == DEVICE and not outcome.error:
                device = outcome.result
                lines = [f"{device['backend']} and TensorFlow's CPU on {device['hardware']}", ""]
                lines += [f"{'':<{width}}  {'XPU':>9}  {'CPU':>9}  {'times as fast':>8}"]
            elif outcome.error:
                failed.append(outcome)
                lines = [paint(f"{outcome.name:<{width}}  {outcome.error}", RED), *outcome.details.splitlines()]
            else:
                measured.append(Measurement.of(outcome.name, outcome.result))
                lines = [_line(measured[-1], width)]
            if device and not options.json:
                progress.print("\n".join(lines))
    if not device:
        return _refuse(failed[0].error, options)
    mean = geometric_mean([m.times_as_fast for m in measured]) if measured else None
    if options.plot and measured:
        draw(measured, f"{device['backend']} on {device['hardware']}", options.plot)
    if options.json:
        report = {
            "version": __version__,
            **device,
            "processors": os.cpu_count(),
            "platform": platform.platform(),
            "cases": [dataclasses.asdict(m) for m in measured],
            "geometric_mean": mean,
            "failed": {outcome.name: outcome.error for outcome in failed},
        }
        print(json.dumps(report, indent=2))
    elif mean is not None:
        print(f"\nAll in all {mean:.2f} times as fast (the geometric mean).")
        if options.plot:
            print(f"The plot is in {options.plot}.")
    return 1 if failed else 0
