"""The contest's plots, for docs/: each from the figures of its table."""

from __future__ import annotations

import pathlib
import statistics
from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure

from benchmarks import document
from benchmarks.engines import ENGINES
from benchmarks.race import CONTESTANTS, XPU, Row

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "plots"
OTHERS = [name for name in dict.fromkeys([*CONTESTANTS, *ENGINES]) if name != XPU]
COLOURS = dict(zip(OTHERS, matplotlib.colormaps["tab10"].colors, strict=False))


def save(figure: Figure, name: str) -> pathlib.Path:
    """As SVG with text as text, the same bytes for the same figures."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.svg"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "xpu"}):
        figure.savefig(path, metadata={"Date": None})
    return path


def contest(rows: Sequence[Row], machine: str, name: str = "contest") -> pathlib.Path:
    """For each workload how many times as long as the XPU's step the others' take; the best of them decides."""
    rows = sorted(rows, key=lambda row: -row.times_as_fast(row.best()))
    figure = Figure(figsize=(9, 1.6 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(1e-3, 1, color="#b5533c", alpha=0.08, linewidth=0)
    axes.axvline(1, color="black", linewidth=0.8)
    for other, colour in COLOURS.items():
        points = [(row.times_as_fast(other), y) for y, row in enumerate(rows) if other in row.rounds]
        if points:
            axes.scatter(*zip(*points, strict=True), label=other, color=[colour], s=26, zorder=3)
    best = [row.times_as_fast(row.best()) for row in rows]
    axes.plot(best, range(len(rows)), color="#444444", linewidth=1, label="best of the others")
    everything = [row.times_as_fast(name) for row in rows for name in row.rounds if name != XPU]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(0.45, min(everything) * 0.9), min(8, max(everything)) * 1.1)
    axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
    axes.set_yticks(range(len(rows)), [row.workload for row in rows])
    axes.grid(axis="y", linewidth=0.3)
    axes.set_xlabel("time of a step / the XPU's (to the right of 1 the XPU is faster)")
    title = f"{statistics.geometric_mean(best):.2f} times as fast as the best of the others\n{machine}"
    figure.suptitle(title, fontsize=10)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    return save(figure, name)


def means(parts: dict[str, Sequence[Row]], machine: str) -> pathlib.Path:
    """A panel for each part of the contest: the geometric means of the times / the XPU's, and of the best."""
    parts = {title: rows for title, rows in parts.items() if rows}
    figure = Figure(figsize=(7, 2.9 * len(parts)), layout="constrained")
    for axes, (title, rows) in zip(figure.subplots(len(parts), squeeze=False)[:, 0], parts.items(), strict=True):
        ratios = document.means(rows)
        best = statistics.geometric_mean(document.best_ratios(rows).values())
        bars = [(XPU, 1.0, "black"), ("the best of the others", best, "#444444")]
        others = sorted(ratios.items(), key=lambda pair: pair[1])
        bars += [(name, ratio, COLOURS[name]) for name, ratio in others if name != XPU]
        names = [name for name, _, _ in bars]
        drawn = axes.barh(names, [ratio for _, ratio, _ in bars], color=[colour for _, _, colour in bars], height=0.65)
        axes.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
        axes.invert_yaxis()
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, fontsize=9, loc="left")
        label = f"time of a step / the XPU's, geometric mean of {len(rows)} models on {machine}"
        axes.set_xlabel(label, fontsize=8)
    return save(figure, "means")


def scales(rows: dict[str, dict[int, Row]], contestants: list[str]) -> pathlib.Path:
    """Seconds of a step against what grows."""
    figure = Figure(figsize=(4 * len(rows), 3.6), layout="constrained")
    for axes, (kind, by_size) in zip(figure.subplots(1, len(rows), squeeze=False)[0], rows.items(), strict=True):
        for name in contestants:
            points = [(size, row.median(name) * 1e3) for size, row in by_size.items() if name in row.rounds]
            colour = "black" if name == XPU else COLOURS[name]
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=name, color=colour)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
        axes.grid(linewidth=0.3)
        axes.set_xlabel(kind)
        axes.set_ylabel("ms a step")
    axes.legend(fontsize=8)
    return save(figure, "scales")
