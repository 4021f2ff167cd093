"""A core's expectations of TensorFlow's C++ beyond its symbols: the headers that it was compiled with.

A core refers to classes whose layout no symbol tells. Releases of one minor version keep it; a nightly or a candidate
may not. TensorFlow installs its headers. So the loader (tensorflow_plugin/loader/abi.cc) can compare those of a
TensorFlow it does not know with the list beside each core, which is written here:

    tensorflow 2.22.0-rc0
    9c1f03f1 38405 tensorflow/core/framework/op_kernel.h
    ...

that is CRC-32 and size of each.
"""

from __future__ import annotations

import pathlib
import re
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Abseil, protobuf and Eigen are not followed: their symbols and their own checks name their versions.
INCLUDE = re.compile(rb'^\s*#\s*include\s+["<]((?:tensorflow|tsl|xla)/[^">]+)[">]', re.MULTILINE)
FOLDERS = ("framework", "cluster", "graph", "interop")  # of this project: what includes TensorFlow's C++


def headers(include: pathlib.Path) -> list[str]:
    """The headers under ``include`` that the core reaches, whatever the preprocessor leaves out; sorted."""
    found: set[str] = set()
    waiting: list[pathlib.Path] = []
    for folder in FOLDERS:
        waiting += [path for path in (ROOT / "tensorflow_plugin" / folder).glob("*.*") if path.suffix in (".cc", ".h")]
    while waiting:
        for name in INCLUDE.findall(waiting.pop().read_bytes()):
            header = name.decode()
            if header not in found and (include / header).is_file():
                found.add(header)
                waiting.append(include / header)
    return sorted(found)


def listing(include: pathlib.Path, version: str) -> str:
    """The text of the file beside a core, for the TensorFlow whose headers are in ``include``."""
    text = f"tensorflow {version}\n"
    for header in headers(include):
        data = (include / header).read_bytes()
        text += f"{zlib.crc32(data):08x} {len(data)} {header}\n"
    return text
