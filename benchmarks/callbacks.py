"""The cost of copies at the callbacks of the C API, without TensorFlow: the conformance program measures them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Result

PROGRAM = [sys.executable, "-m", "tensorflow_xpu", "conformance", "--measure", "--json"]
COPY = re.compile(r"measure\.(to|from)_device_(\d+)(\w+)")
TIMES = re.compile(r"([\d.]+) us; memcpy ([\d.]+) us")


def copies() -> Iterator[Result]:
    """Dependency, copy, event and its status, against memcpy between memory in use: the least times of both."""
    done = subprocess.run(PROGRAM, capture_output=True, text=True, check=True)
    for measured in json.loads(done.stdout)["checks"]:
        if name := COPY.fullmatch(measured["name"]):
            direction, amount, unit = name.groups()
            ours, memcpy = (float(time) * 1e-6 for time in TIMES.fullmatch(measured["reason"]).groups())
            label = "host to device" if direction == "to" else "device to host"
            yield Result(label, f"{amount} {unit}", ours, memcpy)
