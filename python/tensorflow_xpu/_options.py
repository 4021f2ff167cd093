"""The options: one table, from which environment, calls, configuration file, documentation and doctor all take them.

The core reads the environment variables (tensorflow_plugin/device/options.cc) and takes the default for a value that it
does not understand, with a line that says so. The functions here say no to such a value before anybody relies on it.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._vocabulary import PASSES, PRIMITIVES, SUBDEVICE_TYPES
from tensorflow_xpu.hooks import NAMES
from tensorflow_xpu.hooks.internals import MAY_BE_LEFT_OUT

#: What the devices may be to TensorFlow, the default first.
DEVICE_TYPES = ("XPU", "GPU")

#: In any place where a value is expected: what the option is if nobody says anything.
DEFAULT = "default"

Parse = Callable[[Any], "str | None"]  # the text of a variable, None where the value makes no sense

_UNITS = {"": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("KMGT", 1)
    for suffix, base in (("B", 1000), ("iB", 1024))
}
_SMALLEST_MEMORY = 1 << 20
_LARGEST_MEMORY = (1 << 63) - 1

_RULE = re.compile(
    r"(?:xpu:[0-9]{1,3}/)?(?P<call>alloc|copy|command)(?:=(?P<primitive>[A-Za-z]+))?:"
    r"(?:fail|delay=[0-9]{1,9}(?:us|ms|s)|(?P<result>result=(?:zeros|scale|one|last|stale))|"
    r"(?P<workspace>workspace=0*[1-9][0-9]{0,8}(?:B|KiB|MiB)))(?P<which>@(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})?)?)?"
)


_LIE = re.compile(r"internal=[a-z0-9_]+:lie(?:@[1-9][0-9]{0,2})?")


def _flag(value: Any) -> str | None:
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return str(int(value))
    return value if value in ("0", "1") else None


def _number(smallest: int, largest: int) -> Parse:
    def parse(value: Any) -> str | None:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not re.fullmatch("[0-9]{1,9}", text):
            return None
        return text if smallest <= int(text) <= largest else None

    return parse


def _choice(*names: str) -> Parse:
    return lambda value: value if isinstance(value, str) and value in names else None


def _one_of(*names: str) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _some_of(*names: str) -> Parse:
    return lambda value: value if isinstance(value, str) and value and set(value.split(",")) <= set(names) else None


def _memory(value: Any) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = re.fullmatch(r"([0-9]{1,19})([KMGT]i?B|%|)", text) if isinstance(text, str) else None
    if match is None:
        return None
    number, unit = int(match[1]), match[2]
    if unit == "%":
        return text if 1 <= number <= 100 else None
    return text if _SMALLEST_MEMORY <= number * _UNITS[unit] <= _LARGEST_MEMORY else None


def _folder(value: Any) -> str | None:
    try:
        path = pathlib.Path(value).resolve()
        there = next(folder for folder in (path, *path.parents) if folder.exists())
        return os.fspath(path) if there.is_dir() and os.access(there, os.W_OK | os.X_OK) else None
    except (TypeError, ValueError, OSError):
        return None


def _name_or_number(value: Any) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and re.fullmatch(r"[^\s-][^\n\r]*", text) else None


def _rule_is_good(text: str) -> bool:
    if _LIE.fullmatch(text):
        return True
    match = _RULE.fullmatch(text)
    if match is None:
        return False
    of_commands = match["primitive"] or match["result"] or match["workspace"]
    if of_commands and match["call"] != "command":
        return False
    if match["primitive"] and match["primitive"] not in PRIMITIVES:
        return False
    if match["which"] is None:
        return True
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return not match["workspace"] and 1 <= first <= last


def _faults(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    return value if all(_rule_is_good(rule) for rule in value.split(",")) else None


@dataclasses.dataclass(frozen=True)
class Option:
    """One option: an environment variable, and a parameter of ``configure``."""

    variable: str
    parameter: str
    values: str  #: for people: what it may be
    default: str  #: for people
    meaning: str
    parse: Parse
    #: Whether it is read when TensorFlow is imported; else it may change until TensorFlow makes its devices.
    at_import: bool = False

    def text(self, value: object) -> str:
        """The variable's text for a value given in Python or on the command line.

        Args:
            value: of the kind that ``values`` says; ``"default"`` is the empty text, which is what the core takes for
                the default.

        Raises:
            XPUError: if it makes no sense.
        """
        text = "" if isinstance(value, str) and value == DEFAULT else self.parse(value)
        if text is None:
            raise XPUError(f"{self.parameter}={value!r} makes no sense: expected {self.values}")
        return text

    def understands(self, text: str) -> bool:
        """True if the core takes this text of the variable as it is."""
        return text == "" or self.parse(text) is not None


_MEMORY = "bytes, or a number with KB, MB, GB, TB, KiB, MiB, GiB, TiB or %"

OPTIONS = (
    Option(
        "TF_XPU_DISABLE",
        "disable",
        "0 or 1",
        "0",
        "1: the plugin offers no devices, as if it were not installed",
        _flag,
        at_import=True,
    ),
    Option(
        "TF_XPU_DEVICE_TYPE",
        "device_type",
        "XPU or GPU",
        "XPU",
        "GPU: the devices are /gpu:0, /gpu:1, ... to TensorFlow, for programs that ask for those (docs/gpu.md)",
        _choice(*DEVICE_TYPES),
        at_import=True,
    ),
    Option(
        "TF_XPU_SUBDEVICE",
        "subdevice",
        _one_of(*SUBDEVICE_TYPES),
        SUBDEVICE_TYPES[0],
        "the backend behind /xpu. In this order: vectorised loops and oneDNN; plain loops, easy to trust and slow; "
        "OpenCL devices (docs/opencl.md); NVIDIA GPUs (docs/cuda.md)",
        _choice(*SUBDEVICE_TYPES),
    ),
    Option(
        "TF_XPU_DEVICE_COUNT",
        "devices",
        "1 to 64",
        "1",
        "how many XPU devices there are; processors and memory are shared out evenly",
        _number(1, 64),
    ),
    Option(
        "TF_XPU_MEMORY_LIMIT",
        "memory_limit",
        _MEMORY,
        "what the machine offers",
        "memory of each device (%: of the machine's or container's), at least 1MiB; what does not fit is a "
        "ResourceExhaustedError",
        _memory,
    ),
    Option(
        "TF_XPU_ALLOCATOR",
        "allocator",
        "bfc or pool",
        "bfc",
        "who places tensors in device memory: TensorFlow's best-fit allocator, or the plugin's own pool of blocks",
        _choice("bfc", "pool"),
        at_import=True,
    ),
    Option(
        "TF_XPU_LARGE_PAGES",
        "large_pages",
        "0 or 1",
        "1",
        "1: device memory from 2 MiB on, and the host's where large copies go, asks the system for large pages",
        _flag,
    ),
    Option(
        "TF_XPU_THREADS",
        "threads",
        "1 to 1024",
        "its share of the processors",
        "how many threads compute one operation of a device",
        _number(1, 1024),
    ),
    Option(
        "TF_XPU_ISA",
        "isa",
        "baseline, avx2, avx512, avx512_vnni or amx",
        "the best there is",
        "the instruction set that XPU_HOST's own loops use (oneDNN chooses its own)",
        _choice("baseline", "avx2", "avx512", "avx512_vnni", "amx"),
        at_import=True,
    ),
    Option(
        "TF_XPU_WINOGRAD",
        "winograd",
        "0 or 1",
        "1",
        "0: XPU_HOST multiplies convolutions out. 1: those of 3x3 go by Winograd's algorithm where that is quicker, "
        "with rounding errors a few times as large (docs/runtime.md)",
        _flag,
        at_import=True,
    ),
    Option(
        "TF_XPU_OPENCL_DEVICE",
        "opencl_device",
        "a part of a device's name, or its number",
        "all that can be used",
        "which OpenCL devices XPU_OPENCL uses; `clinfo -l` lists them, and numbers count from 0 through all platforms",
        _name_or_number,
    ),
    Option(
        "TF_XPU_FUSION",
        "fusion",
        "0 or 1",
        "1",
        "0: every op of a graph runs by itself; 1: they run in clusters (docs/clusters.md)",
        _flag,
        at_import=True,
    ),
    Option(
        "TF_XPU_FUSION_WITHOUT",
        "fusion_without",
        "names of passes, with commas between",
        "none",
        "the passes over lists of commands (docs/clusters.md) that are left out, to see what one does",
        _some_of(*PASSES),
        at_import=True,
    ),
    Option(
        "TF_XPU_DIRECT_CALLS",
        "direct_calls",
        "0 or 1",
        "1",
        "1: a function that is a few ops and clusters is called without TensorFlow's executor (docs/clusters.md)",
        _flag,
        at_import=True,
    ),
    Option(
        "TF_XPU_HOOKS",
        "hooks",
        "0 or 1",
        "1",
        "0: none of the hooks into TensorFlow and Keras that save time (docs/internals.md), only those without which "
        "something would be wrong",
        _flag,
        at_import=True,
    ),
    Option(
        "TF_XPU_HOOKS_WITHOUT",
        "hooks_without",
        "names of hooks, with commas between",
        "none",
        "the hooks into TensorFlow and Keras (docs/internals.md) that are left out, to see what one does",
        _some_of(*NAMES, *MAY_BE_LEFT_OUT),
        at_import=True,
    ),
    Option(
        "TF_XPU_DUMP_FUSION",
        "dump_fusion",
        "a folder",
        "none",
        "clusters are written there, before and after, for people to read; it is made if need be",
        _folder,
        at_import=True,
    ),
    Option(
        "TF_XPU_FAULT",
        "fault",
        "rules, such as alloc:fail@3 or copy:delay=20ms",
        "none",
        "chosen calls of the devices fail, take their time or give wrong results, to test how a program bears it and "
        "whether its tests notice",
        _faults,
    ),
    Option(
        "TF_XPU_ISOLATE_MEMORY",
        "isolate_memory",
        "0 or 1",
        "0",
        "1: touching device memory from the host faults at once (a check for bugs)",
        _flag,
    ),
)

BY_VARIABLE = {option.variable: option for option in OPTIONS}
BY_PARAMETER = {option.parameter: option for option in OPTIONS}


def named(name: str) -> Option:
    """The option of this variable or parameter.

    Raises:
        XPUError: if there is none.
    """
    option = BY_VARIABLE.get(name) or BY_PARAMETER.get(name)
    if option is None:
        known = ", ".join(f"{option.parameter} ({option.variable})" for option in OPTIONS)
        raise XPUError(f"there is no option {name!r}: there are {known}")
    return option


def documentation() -> str:
    """The table in docs/configuration.md, in Markdown: ``python -m tensorflow_xpu config --markdown`` prints it."""
    lines = ["| variable | `configure()` | values | default | meaning |", "|---|---|---|---|---|"]
    lines += [f"| `{o.variable}` | `{o.parameter}` | {o.values} | {o.default} | {o.meaning} |" for o in OPTIONS]
    return "\n".join(lines)
