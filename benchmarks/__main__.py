"""`python -m benchmarks [group ...]`: measures and prints; for all groups, or with --write, writes docs/benchmarks.md.

The group dlpack compares libraries instead of devices and writes docs/dlpack.md; the group opencl, which is measured
only if it is named, compares backends and with --write writes docs/opencl.md.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import sys

import tensorflow as tf

from benchmarks import dlpack, opencl, suite
from benchmarks.measure import Result
from tensorflow_xpu._measure import amount

PATH = pathlib.Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

#: The sections about whole models (contest.py); the second is written by hand.
MODELS = ("contest", "where the XPU is behind", "scales", "variants")

HEADER = """# Benchmarks

First models against all that could run them, then where the XPU is behind there; each part names its machine. Below
that single ops, copies, models and devices against TensorFlow's own CPU kernels.

XPU (backend {backend}) against TensorFlow {version}'s own CPU kernels on the same machine ({cpu}, {cores} cores),
written by `make bench`. Both run in one process and alternate, round by round. The times of a row are those of one
round, the one whose ratio XPU time / CPU time is the median of all rounds' ratios: below 1 XPU is faster. "Copies
without TensorFlow" has the least time of each side; first calls and memory of models, memory options and devices are
those of processes of their own, in turns. Single ops (from matmul to the op table) run op by op, without clusters,
which would compute a repeated op once. Sizes are float32. The op table has the slowest rows first.
"""


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def row(r: Result) -> str:
    xpu, cpu = (amount(value, r.unit) for value in (r.xpu, r.cpu))
    return f"| {r.name} | {r.size} | {xpu} | {cpu} | {r.ratio:.2f} | {r.note} |"


def sections(text: str) -> dict[str, str]:
    """The parts of a document by their headings, the one before the first by nothing."""
    head, *parts = text.split("\n## ")
    return {"": head, **{part.partition("\n")[0]: part.partition("\n")[2] for part in parts}}


def written(text: str, measured: dict[str, str]) -> str:
    """A document with what was measured in the place of its sections of those names, the others as they were."""
    parts = sections(text) | measured
    head = parts.pop("")
    order = sorted(parts, key=[*MODELS, *suite.GROUPS, *parts].index)
    return head + "".join(f"\n## {name}\n{parts[name].rstrip()}\n" for name in order)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *suite.GROUPS, "dlpack", "opencl"], help="default: all")
    parser.add_argument("--write", action="store_true", help="put these groups in the place of theirs in the document")
    options = parser.parse_args()
    asked = options.groups or [*suite.GROUPS, "dlpack"]
    groups = [group for group in asked if group in suite.GROUPS]
    if not tf.config.list_physical_devices("XPU"):
        print("no XPU is visible: run `python -m tensorflow_xpu doctor`", file=sys.stderr)
        return 1
    measured = {}
    everything = len(groups) == len(suite.GROUPS)
    for group in groups:
        columns = " | ".join(suite.COLUMNS.get(group, ("XPU", "CPU", "XPU / CPU")))
        lines = ["", f"| what | size | {columns} | |", "|---|---|---|---|---|---|"]
        print(f"-- {group}", flush=True)
        for result in suite.GROUPS[group]():
            lines.append(row(result))
            print(row(result), flush=True)
        # Not in the run that the header speaks of.
        alone = [] if everything else ["", f"Measured later, on {cpu_name()}, {os.cpu_count()} cores."]
        measured[group] = "\n".join(alone + lines)
    if everything:
        backend = os.environ.get("TF_XPU_SUBDEVICE", "XPU_HOST")
        measured[""] = HEADER.format(backend=backend, version=tf.__version__, cpu=cpu_name(), cores=os.cpu_count())
    if everything or (groups and options.write):
        text = PATH.read_text()
        if everything:  # anew, but for what others write
            measured = {name: part for name, part in sections(text).items() if name in MODELS} | measured
        PATH.write_text(written("" if everything else text, measured))
        print(f"wrote {PATH}")
    if "dlpack" in asked:
        dlpack.run()
    if "opencl" in asked:
        opencl.run(options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
