"""docs/benchmarks.md: the answer first, then a section for each part; and the figures behind it in benchmarks/results.

Each group of `python -m benchmarks` has its rows in results/GROUP.tsv; results/runs.json says where and with what they
were measured. The contest's parts have a file each (contest.py). `python -m benchmarks --render` writes the page anew
from these, but for the tables of the contest, which it leaves as they are.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import textwrap
from collections.abc import Iterable, Sequence

from benchmarks import suite
from benchmarks.families import SLOW
from benchmarks.measure import Result
from benchmarks.race import XPU, Row
from tensorflow_xpu._bench.ops import SINGLE_OPS
from tensorflow_xpu._measure import amount

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATH, RESULTS = ROOT / "docs" / "benchmarks.md", ROOT / "benchmarks" / "results"
RUNS = RESULTS / "runs.json"

#: The sections about whole models (contest.py); the second is written by hand.
CONTEST = ("contest", "where the lead is smallest", "inference", "generation", "scales", "variants")
#: Groups of so many rows that the page has the slowest of them only.
LONG = (*SINGLE_OPS, "op table")
ORDER = (
    "",
    *CONTEST,
    "how the rest is measured",
    "single ops",
    *(group for group in suite.GROUPS if group not in LONG),
)
COLUMNS = ("what", "size", "XPU", "CPU", "unit", "note")


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def machine() -> str:
    """The processor and how many of its cores this process may use."""
    return f"{cpu_name()}, {len(os.sched_getaffinity(0))} cores"


def data_of(group: str, folder: pathlib.Path = RESULTS) -> pathlib.Path:
    return folder / f"{group.replace(' ', '_')}.tsv"


def write_data(group: str, results: Iterable[Result], folder: pathlib.Path = RESULTS) -> None:
    """The rows of a group, in seconds or bytes."""
    with data_of(group, folder).open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((r.name, r.size, f"{r.xpu:.4g}", f"{r.cpu:.4g}", r.unit, r.note) for r in results)


def read_data(group: str, folder: pathlib.Path = RESULTS) -> list[Result]:
    with data_of(group, folder).open(newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    if tuple(header) != COLUMNS:
        raise ValueError(f"{data_of(group, folder)} has the columns {header}; expected {list(COLUMNS)}")
    return [Result(name, size, float(xpu), float(cpu), note, unit) for name, size, xpu, cpu, unit, note in rows]


def measured_now(groups: Iterable[str], **about: str) -> None:
    """Notes where and with what these groups have been measured."""
    runs = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    runs |= {group: {"machine": machine(), **about} for group in groups}
    RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")


def row(r: Result) -> str:
    xpu, cpu = (amount(value, r.unit) for value in (r.xpu, r.cpu))
    return f"| {r.name} | {r.size} | {xpu} | {cpu} | {r.ratio:.2f} | {r.note} |"


def table(group: str, results: Iterable[Result]) -> str:
    """Markdown: all rows of a group."""
    columns = " | ".join(suite.COLUMNS.get(group, ("XPU", "CPU", "XPU / CPU")))
    return "\n".join([f"| what | size | {columns} | |", "|---|---|---|---|---|---|", *map(row, results)])


def is_slow(r: Result) -> bool:
    """True if the page has the row of an op: the XPU is slower than the CPU, by more than chance."""
    return r.ratio > SLOW


SINGLE = """Each op runs by itself, without clusters: a cluster would compute a repeated op once. The table has the
ratio XPU time / CPU time. Below 1 the XPU is faster.

| group | rows | geometric mean | lowest | highest | slower than {slow:.2f} |
|---|---|---|---|---|---|
{groups}

"op table" has ops of every family in [ops.md](ops.md) at three sizes. The rows below are slower than {slow:.2f}, the
slowest first. Their notes explain the medium and large sizes.

{header}
{slowest}"""


def single_ops(groups: dict[str, Sequence[Result]]) -> str:
    """The section about single ops: a line for each group, and the slowest rows of all."""
    lines = []
    for group, results in groups.items():
        ratios = [r.ratio for r in results]
        cells = [f"{value:.2f}" for value in (statistics.geometric_mean(ratios), min(ratios), max(ratios))]
        link = f"[{group}](../benchmarks/results/{data_of(group).name})"
        lines.append(f"| {link} | {len(results)} | {' | '.join(cells)} | {sum(map(is_slow, results))} |")
    slow = sorted((r for results in groups.values() for r in results if is_slow(r)), key=lambda r: -r.ratio)
    header = "| op | size | XPU | CPU | XPU / CPU | why |\n|---|---|---|---|---|---|"
    return wrapped(SINGLE.format(slow=SLOW, groups="\n".join(lines), header=header, slowest="\n".join(map(row, slow))))


HEAD = """# Benchmarks

{count} models run {mean} times as fast on the XPU as on the fastest alternative on the same CPU. This is a geometric
mean; the lowest ratio is {least} ({worst}), the highest {most} ({best}). The alternatives are JAX, PyTorch, eager and
compiled, and stock TensorFlow: as it is, without oneDNN, and with XLA. The [contest](#contest) has every figure.

{deployed}![the mean time of a step, relative to the XPU's](plots/means.svg)

| question | section |
|---|---|
| How fast are whole models? | [contest](#contest), [scales](#scales) |
| Where is the lead smallest, and why? | [where the lead is smallest](#where-the-lead-is-smallest) |
{inference}{generating}| How much is each fusion pass worth? | [variants](#variants) |
| How fast are single ops, and which are slow? | [single ops](#single-ops) |
| How long is a first call, and how much memory is used? | [first calls](#first-calls), [memory](#memory-of-models) |

`make contest` measures the models, `make bench` everything. The figures are in `benchmarks/results/`.
"""


DEPLOYED = """{count} deployed models, with one example and with eight, run {mean} times as fast as on the fastest of
{engines}. That is a geometric mean, too; the lowest ratio is {least} ({worst}): [inference](#inference).

"""
GENERATION_ROW = "| How fast are text generation and quantized layers? | [generation](#generation) |\n"
DEPLOYED_ROW = "| How fast are deployed models against inference engines? | [inference](#inference) |\n"


def rows_of(part: str) -> list[Row]:
    """The last result of a part of the contest; none if it was not measured."""
    records = json.loads(data(part).read_text()) if data(part).exists() else []
    return [Row(r["workload"], r["rounds"], r["first"], r["failed"]) for r in records]


def answers() -> dict[str, list[Row]]:
    """The parts that answer how fast whole models are, by what the plot of their means says above them."""
    return {"training and inference in Keras": rows_of("contest"), "deployed models": rows_of("inference")}


def data(part: str) -> pathlib.Path:
    """The figures of a part of the contest."""
    return RESULTS / f"{part}.json"


def means(rows: Sequence[Row]) -> dict[str, float]:
    """By contestant: the geometric mean of how many times as long as the XPU it takes, where it ran."""
    names = dict.fromkeys(name for row in rows for name in row.rounds)
    ratios = {name: [row.times_as_fast(name) for row in rows if name in row.rounds] for name in names}
    return {name: statistics.geometric_mean(values) for name, values in ratios.items()}


def best_ratios(rows: Sequence[Row]) -> dict[str, float]:
    """By workload: how many times as long as the XPU the best of the others takes."""
    return {row.workload: row.times_as_fast(row.best()) for row in rows}


def wrapped(text: str) -> str:
    """With the lines of plain paragraphs as wide as the documents' are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(("#", "!", "|", "-")) else textwrap.fill(p, 120) for p in paragraphs)


def listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def head(rows: Sequence[Row], deployed: Sequence[Row] = (), generation: bool = False) -> str:
    """The page's first part: the answers of the contest, and of its part about deployed models."""
    ratios = best_ratios(rows)
    worst, best = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    told = ""
    if deployed:
        there = best_ratios(deployed)
        lowest = min(there, key=there.__getitem__)
        told = DEPLOYED.format(
            count=len({name.rpartition(",")[0] for name in there}),
            mean=f"{statistics.geometric_mean(there.values()):.2f}",
            engines=listed([name for name in means(deployed) if name != XPU]),
            least=f"{there[lowest]:.2f}",
            worst=lowest,
        )
    text = HEAD.format(
        count=len(ratios),
        mean=f"{statistics.geometric_mean(ratios.values()):.2f}",
        least=f"{ratios[worst]:.2f}",
        worst=worst,
        most=f"{ratios[best]:.2f}",
        best=best,
        deployed=told,
        inference=DEPLOYED_ROW if deployed else "",
        generating=GENERATION_ROW if generation else "",
    )
    return wrapped(text)


HOW = """The sections below compare the XPU (backend {backend}) with TensorFlow {tensorflow}'s own CPU kernels on
{machine}.

- Both run in one process and take turns, round by round. A row has the times of one round: the round whose ratio XPU
  time / CPU time is the median. Below 1 the XPU is faster.
- "copies without TensorFlow" has the least time of each side.
- First calls, memory and devices are measured in processes of their own, which take turns.
- Floating-point sizes are float32.
"""


def parts(text: str) -> dict[str, str]:
    """The sections that the figures give: all but those about whole models."""
    runs = json.loads(RUNS.read_text())
    usual = runs["models"]
    made = {
        "": head(*answers().values(), generation=data("generation").exists()),
        "how the rest is measured": wrapped(HOW.format(**usual)),
    }
    made["single ops"] = single_ops({group: read_data(group) for group in LONG})
    made |= {group: table(group, read_data(group)) for group in suite.GROUPS if group not in LONG}
    for group in (*LONG, *made):
        if group in runs and runs[group]["machine"] != usual["machine"]:
            section = "single ops" if group in LONG else group
            made[section] = f"{group}: measured on {runs[group]['machine']}.\n\n{made[section]}"
    return {name: part for name, part in sections(text).items() if name in CONTEST} | made


def sections(text: str) -> dict[str, str]:
    """The parts of a document by their headings, the one before the first by nothing."""
    head, *others = text.split("\n## ")
    return {"": head, **{part.partition("\n")[0]: part.partition("\n")[2] for part in others}}


def written(sections: dict[str, str]) -> str:
    """The document with these sections."""
    named = sorted((name for name in sections if name), key=[*ORDER, *sections].index)
    return sections[""].strip() + "\n" + "".join(f"\n## {name}\n\n{sections[name].strip()}\n" for name in named)


def render(**changed: str) -> None:
    """Writes the document anew, with these sections of the contest."""
    text = PATH.read_text()
    PATH.write_text(written(parts(text) | changed))


def keep(part: str, rows: Sequence[Row], text: str) -> None:
    """Writes down a part of the contest: its figures and its section."""
    RESULTS.mkdir(exist_ok=True)
    records = [dataclasses.asdict(row) | {"commands": len(row.commands)} for row in rows]
    data(part).write_text(json.dumps(records, indent=1) + "\n")
    render(**{part: text})
