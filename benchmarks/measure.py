"""Timing XPU and stock CPU side by side; how, the package has: `python -m tensorflow_xpu bench` does the same."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

from tensorflow_xpu._measure import (
    CPU,
    XPU,
    Case,
    alternate,
    graphs_as_written,
    middle,
    repeated,
    seconds,
    time_case,
    wait,
)

__all__ = [
    "CPU",
    "XPU",
    "Case",
    "Result",
    "alternate",
    "compare",
    "graphs_as_written",
    "in_process",
    "lines_of",
    "middle",
    "put",
]
__all__ += ["repeated", "seconds", "wait"]


@dataclasses.dataclass(frozen=True)
class Result:
    """Seconds per operation on both devices, or bytes, of one and the same round: see middle."""

    name: str
    size: str
    xpu: float
    cpu: float
    note: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """XPU / CPU."""
        return self.xpu / self.cpu


def in_process(module: str, *arguments: str, **environment: str) -> str:
    """The output of `python -m module`, in a process of its own with these environment variables."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout


def lines_of(module: str, *arguments: str, **environment: str) -> Iterator[str]:
    """The lines that `python -m module` prints, as they come, in a process of its own with these variables."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)


def put(page: pathlib.Path, text: str) -> None:
    """Puts the text between the marks of what was measured in a document."""
    begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
    whole, count = re.subn(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", page.read_text(), flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{page} has {count} places for what was measured, from {begin} to {end}; expected 1")
    page.write_text(whole)


def compare(case: Case, rounds: int = 9) -> Result:
    """Times an op on both devices; see Result."""
    xpu, cpu = middle(time_case(case, rounds))
    return Result(case.name, case.size, xpu, cpu, f"{case.flops / xpu / 1e9:.0f} GFLOP/s" if case.flops else "")
