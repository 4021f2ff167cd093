"""The measured part of docs/cuda.md, from what tools/gpu_check.py wrote on a machine with a GPU.

    python -m benchmarks.gpu_page [FILE]

FILE becomes benchmarks/results/gpu.json; without it, the tables are written anew from there.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import statistics
import sys
from typing import Any

from benchmarks.document import wrapped
from benchmarks.measure import put

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs" / "cuda.md", ROOT / "benchmarks" / "results" / "gpu.json"
XPU = "XPU"


def head(report: dict[str, Any]) -> str:
    machine = report["machine"]
    gpus = "; ".join(machine.get("gpus", [])) or "a machine without a GPU"
    return wrapped(
        f"`tools/gpu_check.py` measured all below: {report['subdevice']} on {gpus}, {machine['cores']} cores, Python "
        f"{machine['python']}. A rate is the best of five rounds. A step's time is the median of its rounds."
    )


def result_of(stage: dict[str, Any]) -> str:
    """A stage's result, for people."""
    words = [stage["status"]]
    words += [
        f"{stage[key]} {key}" for key in ("cases", "wrong", "passed", "failed") if isinstance(stage.get(key), int)
    ]
    words += [stage[key] for key in ("summary", "why") if stage.get(key)]
    parts = stage.get("parts", {}).items()
    words += [f"{name} {part['status']}" for name, part in parts if part["status"] != "passed"]
    return "; ".join(words)


def checks(report: dict[str, Any]) -> str:
    lines = ["| check | result | seconds |", "|---|---|---|"]
    for name, stage in report["stages"].items():
        if name not in ("rates", "models"):
            lines.append(f"| {name} | {result_of(stage)} | {stage['took']:.0f} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def rates(report: dict[str, Any]) -> str:
    rows = report["stages"].get("rates", {}).get("rates", [])
    lines = ["| what | time | rate |", "|---|---|---|"]
    lines += [f"| {row['what']} | {row['ms']:.3g} ms | {row['rate']:.3g} {row['unit']} |" for row in rows]
    return "\n".join(lines) if rows else ""


def models(report: dict[str, Any]) -> str:
    """Milliseconds of a step for each contestant, and how many times as long the best of the others takes."""
    contestants = report["stages"].get("models", {}).get("parts", {})
    steps: dict[tuple[str, str], dict[str, float]] = {}
    sizes: dict[tuple[str, str], str] = {}
    for name, part in contestants.items():
        for row in part["rows"]:
            key = row["model"], row["type"]
            sizes[key] = f"{row['model']}: {row['size']}"
            if "seconds" in row:
                steps.setdefault(key, {})[name] = statistics.median(row["seconds"])
    if not sizes:
        return ""
    names = list(contestants)
    lines = [f"| model | type | {' | '.join(f'{n}, ms' for n in names)} | examples/s | best other / XPU |"]
    lines.append("|---|---|" + "---|" * (len(names) + 2))
    batches = {(row["model"], row["type"]): row["batch"] for part in contestants.values() for row in part["rows"]}
    for key, size in sizes.items():
        of = steps.get(key, {})
        cells = [f"{of[name] * 1e3:.3g}" if name in of else "-" for name in names]
        others = [seconds for name, seconds in of.items() if name != XPU]
        speed = f"{batches[key] / of[XPU]:,.0f}" if XPU in of else "-"
        ratio = f"{min(others) / of[XPU]:.2f}" if XPU in of and others else "-"
        lines.append(f"| {size} | {key[1]} | {' | '.join(cells)} | {speed} | {ratio} |")
    return "\n".join(lines)


def text_of(report: dict[str, Any]) -> str:
    """Markdown: all that was measured."""
    return "\n\n".join(filter(None, [head(report), checks(report), rates(report), models(report)]))


def main() -> None:
    if len(sys.argv) > 1:
        shutil.copyfile(sys.argv[1], DATA)
    put(PAGE, text_of(json.loads(DATA.read_text())))


if __name__ == "__main__":
    main()
