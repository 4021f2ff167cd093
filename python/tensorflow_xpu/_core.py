"""The reports of the plugin's libraries about themselves, as TensorFlow has loaded them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

PACKAGE = pathlib.Path(__file__).resolve().parent
LIB = PACKAGE / "lib"
LOADER = PACKAGE.parent / "tensorflow-plugins" / "libtensorflow_xpu_loader.so"


def _ask(path: pathlib.Path | str, function: str) -> Any:
    """The JSON that a function of a loaded library returns, ``None`` where it is not loaded."""
    from tensorflow_xpu import _native

    text = _native.ask(str(path), function)
    return None if text is None else json.loads(text)


def cores() -> dict[str, str]:
    """The minor versions of TensorFlow that this package has a core for, oldest first, and what each was built for.

    ``{"2.20": "2.20.0", "2.22": "2.22.0-rc0"}``, with ``""`` where that is not known.
    """
    found = {}
    for core in LIB.glob("libtensorflow_xpu_core_*_*.so"):
        listing = core.with_suffix(".abi")
        built_for = listing.read_text(encoding="utf-8").split()[1] if listing.exists() else ""
        found[core.stem.removeprefix("libtensorflow_xpu_core_").replace("_", ".")] = built_for
    return dict(sorted(found.items(), key=lambda core: [int(number) for number in core[0].split(".")]))


def how_to_install_tensorflow() -> str:
    """The command that installs the newest release of TensorFlow that this package has a core for."""
    releases = [minor for minor, built_for in cores().items() if "-" not in built_for]
    return f'pip install "tensorflow-cpu=={releases[-1]}.*"' if releases else "pip install tensorflow-cpu"


def loader_report() -> dict[str, Any] | None:
    """The decision of the plugin's loader when TensorFlow was imported; ``None`` if TensorFlow did not load it.

    Keys: ``active``, ``reason`` (why it offers no devices), ``loader``, ``core``, ``built_for`` (the TensorFlow for
    which it was compiled), ``tensorflow_version``, ``device_count``, ``settings_file`` and ``settings`` (what came
    from the configuration file, by variable).
    """
    return _ask(LOADER, "XpuLoader_Report")


def ask_core(function: str) -> Any:
    """The JSON that a function of the core returns; ``None`` if there is no core in use."""
    report = loader_report()
    if report is None or not report["active"]:
        return None
    return _ask(report["core"], function)


def core_description() -> dict[str, Any] | None:
    """The core's account of its backend and devices (tensorflow_plugin/device/describe.h); ``None`` if unused."""
    return ask_core("XpuCore_DescribeDevices")


def internals() -> list[dict[str, Any]]:
    """The parts of TensorFlow behind its C API that the core uses, and the state of each such hook.

    Keys: ``name``, ``kind``, ``state``, ``purpose``, ``without``, ``instead``, ``source`` and ``parts``: the private
    parts of TensorFlow with what guards them (tensorflow_plugin/tf_internals/table.h). Empty if no core is in use.
    """
    found: list[dict[str, Any]] | None = ask_core("XpuCore_DescribeInternals")
    return found or []


def ask_about(index: int, function: str) -> Any:
    """The JSON that a function of the core returns for the device of this index; ``None`` where there is none."""
    from tensorflow_xpu import _native

    report = loader_report()
    if report is None or not report["active"]:
        return None
    text = _native.ask_of(report["core"], function, index)
    return None if text is None else json.loads(text)
