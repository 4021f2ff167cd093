"""Says whether TensorFlow can use an XPU here and, if it cannot, what is wrong and what to do.

``python -m tensorflow_xpu doctor`` prints a report, ``--json`` prints it as JSON; the exit code is 0 if all is well.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import signal
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from typing import Any

from tensorflow_xpu import _core, _devices, _settings
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._options import BY_VARIABLE
from tensorflow_xpu._subdevice import device_type
from tensorflow_xpu._terminal import GREEN, RED, YELLOW, Progress, paint
from tensorflow_xpu._version import __version__

HERE = pathlib.Path(__file__).resolve()
OK, NOTE, PROBLEM = "ok", "note", "problem"
REINSTALL = "pip install --force-reinstall --no-deps tensorflow_xpu"
OTHER_VARIABLES = ("KERAS_BACKEND", "TF_ENABLED_DEVICE_TYPES", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "TF_XLA_FLAGS")
TENSORFLOW_DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-rocm")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, what was found, and what to do where that is not as it should be."""

    topic: str
    state: str  # OK, NOTE or PROBLEM
    text: str
    fix: str = ""


def _ok(topic: str, text: str) -> Finding:
    return Finding(topic, OK, text)


def _note(topic: str, text: str, fix: str = "") -> Finding:
    return Finding(topic, NOTE, text, fix)


def _problem(topic: str, text: str, fix: str = "") -> Finding:
    return Finding(topic, PROBLEM, text, fix)


def _installed_tensorflows() -> list[str]:
    found = []
    for name in TENSORFLOW_DISTRIBUTIONS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _plugin_libraries() -> list[pathlib.Path]:
    """All libraries that TensorFlow loads as plugins at import, each once however many spellings its folder has."""
    folders = [*site.getsitepackages(), *(p for p in sys.path if "site-packages" in p)]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += [
        sysconfig.get_path(kind, scheme) for scheme in sysconfig.get_scheme_names() for kind in ("purelib", "platlib")
    ]
    plugins = [pathlib.Path(folder) / "tensorflow-plugins" for folder in folders]
    extra = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "")
    libraries = [library for plugin in plugins if plugin.is_dir() for library in plugin.glob("*.so*")]
    if extra:
        path = pathlib.Path(extra)
        libraries += path.glob("*.so*") if path.is_dir() else [path]
    return sorted({library.resolve() for library in libraries})


def _probe() -> tuple[dict[str, Any] | None, int, str]:
    """Runs _probe.py in a fresh process. Returns its report, its exit code and its stderr."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        run = subprocess.run(
            [sys.executable, "-m", "tensorflow_xpu._probe", str(report)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1")},
            check=False,
        )
        seen = json.loads(report.read_text(encoding="utf-8")) if report.exists() else None
    return seen, run.returncode, run.stderr


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def _files() -> list[Finding]:
    """The files on the disk."""
    findings = []
    tensorflows = _installed_tensorflows()
    if not tensorflows:
        findings.append(_problem("TensorFlow", "not installed", _core.how_to_install_tensorflow()))
    elif len(tensorflows) > 1:
        several = f"several at once: {', '.join(tensorflows)}; they share one folder"
        findings.append(_problem("TensorFlow", several, "uninstall all of them, then install one"))
    else:
        findings.append(_ok("TensorFlow", tensorflows[0]))
    if _devices.LOADER.exists():
        findings.append(_ok("loader", str(_devices.LOADER)))
    else:
        findings.append(_problem("loader", f"{_devices.LOADER} is missing", REINSTALL))
    versions = _core.cores()
    if versions:
        findings.append(_ok("cores", f"for TensorFlow {', '.join(versions)} in {_core.LIB}"))
    else:
        findings.append(_problem("cores", f"none in {_core.LIB}", REINSTALL))
    others = [str(library) for library in _plugin_libraries() if library != _devices.LOADER.resolve()]
    if others:
        advice = "a plugin that also provides the device type XPU cannot be used together with this one"
        findings.append(_note("other plugins", ", ".join(others), advice))
    return findings


def _configuration() -> list[Finding]:
    """The configuration file, and what it and the environment say."""
    try:
        path, values = _settings.read_file()
        to_write = _settings.user_file()
        none = "none" if to_write is None else f"none; `python -m tensorflow_xpu use` and `config` write {to_write}"
        findings = [_ok("configuration", none if path is None else str(path))]
    except XPUError as error:
        path, values = None, {}
        findings = [_problem("configuration", str(error))]
    for name, value, origin in [
        *((name, value, "") for name, value in sorted(os.environ.items())),
        *((name, value, f" ({path})") for name, value in values.items() if name not in os.environ),
    ]:
        if name in BY_VARIABLE:
            findings.append(_note(name, f"{value}{origin}", BY_VARIABLE[name].meaning))
        elif name in (*OTHER_VARIABLES, _settings.FILE_VARIABLE):
            findings.append(_note(name, value))
        elif name.startswith("TF_XPU_"):
            text = f"{value}{origin} (there is no such variable)"
            findings.append(_note(name, text, f"there are {', '.join(sorted(BY_VARIABLE))}"))
    return findings


def _died(code: int, stderr: str, said: list[str]) -> Finding:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
    fatal = re.findall(r"^F\d{4} .*\] (.*)$", stderr, re.MULTILINE)  # TensorFlow's format for what ends the process
    last = [line for line in stderr.splitlines() if line.strip()][-1:]
    why = "".join((said or fatal or last)[:1])
    return _problem("import tensorflow", f"{how}: {why}", "python -c 'import tensorflow' shows all of it")


def _computing(seen: dict[str, Any]) -> Finding:
    """True if an op really ran on the device and was right."""
    compute = seen["compute"]
    if compute is None:
        return _problem("computing", f"an op on /xpu:0 failed: {seen['compute_error']}")
    error = max(compute["max_error"].values())
    if f"{device_type()}:0" not in compute["device"]:
        return _problem("computing", f"an op on /xpu:0 ran on {compute['device']}")
    if not error <= compute["tolerance"]:  # also for NaN
        return _problem("computing", f"a matrix product on /xpu:0 is wrong by {error:.3g}")
    return _ok("computing", f"a matrix product and a ReLU ran on {compute['device']} and are right")


def _hook(hook: dict[str, str]) -> Finding:
    """How a hook into TensorFlow or Keras is doing (docs/internals.md)."""
    topic, state = f"hook {hook['name']}", hook["state"]
    if state == "on" or state.startswith("on since "):
        return _ok(topic, f"on: {hook['purpose']}")
    # A hook that waits for Keras, or has nothing to do in this process, costs nothing.
    return _note(topic, state, hook["without"] if state.startswith(("off: ", "off by")) else "")


def _cuda_libraries() -> list[Finding]:
    """The libraries that XPU_CUDA can do without, looked for where the core looks (docs/cuda.md)."""
    findings = []
    for topic, names, without in (
        ("cuBLASLt", ("libcublasLt.so.13", "libcublasLt.so.12"), "matmuls"),
        ("cuDNN", ("libcudnn.so.9",), "convolutions"),
    ):
        folders = [folder for above in HERE.parents for folder in sorted(above.glob("nvidia/*/lib"))]
        found = [str(folder / name) for folder in folders for name in names if (folder / name).exists()]
        for name in names:
            for path, text in ((name, f"{name}, by the loader"), (f"/usr/local/cuda/lib64/{name}",) * 2):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(path)
                    found.append(text)
        if found:
            findings.append(_ok(topic, found[0]))
        else:
            text = f"{names[0]} was not found: the plugin's kernels compute {without}, and are slower"
            findings.append(_note(topic, text, "pip install 'tensorflow_xpu[cuda]'"))
    return findings


def _process(seen: dict[str, Any] | None, code: int, stderr: str) -> list[Finding]:
    """The findings of a process with TensorFlow."""
    prefix = "tensorflow_xpu: "
    said = [line.removeprefix(prefix) for line in stderr.splitlines() if line.startswith(prefix)]
    if seen is None:
        return [_died(code, stderr, said)]
    findings = [_ok("import tensorflow", f"{seen['tensorflow']} from {seen['tensorflow_path']}")]
    loader, core = seen["loader"], seen["core"]
    if loader is None:
        where = f"it looks in the tensorflow-plugins folders of its own Python; this one is {_devices.LOADER.parent}"
        return [*findings, _problem("plugin", "TensorFlow did not load it", where)]
    if not loader["active"]:
        what, _, fix = loader["reason"].partition(" Fix: ")
        return [*findings, _problem("plugin", what, fix)]
    findings += [_note("warning", text) for text in said]
    if core is None:
        return [*findings, _problem("plugin", f"the core {loader['core']} does not describe its devices", REINSTALL)]
    backends = f"{core['subdevice_type']} (of {', '.join(core['subdevice_types'])})"
    built_for = f", built for TensorFlow {loader['built_for']}" if loader["built_for"] else ""
    findings.append(_ok("plugin", f"{pathlib.Path(loader['core']).name}{built_for}, backend {backends}"))
    findings.append(_ok("instructions", core["instruction_set"]))
    listed = [name for name in seen["physical_devices"] if f":{device_type()}:" in name]
    if not listed:
        fix = "unset TF_ENABLED_DEVICE_TYPES" if "TF_ENABLED_DEVICE_TYPES" in os.environ else ""
        why = f": {core['why_none']}" if core["why_none"] else ""
        return [*findings, _problem("devices", f"TensorFlow lists no XPU{why}", fix)]
    for name, device in zip(listed, core["devices"]):
        facts = [device["hardware_name"] or "unknown hardware", f"{_size(device['memory_bytes'])} of memory"]
        facts += [f"{device['gflops']:.3g} GFLOP/s"] if device["gflops"] else []
        findings.append(_ok(name.removeprefix("/physical_device:"), ", ".join(facts)))
    if core["subdevice_type"] == "XPU_CUDA":
        findings += _cuda_libraries()
    findings.append(_computing(seen))
    if seen["keras"]:
        findings.append(_ok("Keras", seen["keras"]))
    findings += [_hook(hook) for hook in seen["hooks"]]
    if seen["c_api_missing"] is None:
        findings.append(_ok("DLPack", "through the C exchange API"))
    else:
        findings.append(_note("DLPack", f"in Python only, by copy: {seen['c_api_missing']}"))
    return findings


def diagnose() -> dict[str, Any]:
    """Examines the installation.

    Returns:
        ``{"ok": bool, "version", "python", "platform": str, "findings": [{"topic", "state", "text", "fix"}],
        "observed": what a fresh process with TensorFlow saw, or None}``.
    """
    findings = _files()
    seen = None
    if _installed_tensorflows():
        seen, code, stderr = _probe()
        findings += _process(seen, code, stderr)
    findings += _configuration()
    return {
        "ok": all(finding.state != PROBLEM for finding in findings),
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "observed": seen,
    }


def render(report: dict[str, Any]) -> str:
    """The report as text for people."""
    colours = {OK: GREEN, NOTE: YELLOW, PROBLEM: RED}
    marks = {OK: "ok", NOTE: "--", PROBLEM: "!!"}
    width = max(len(finding["topic"]) for finding in report["findings"])
    lines = [f"tensorflow_xpu {report['version']} · Python {report['python']} · {report['platform']}", ""]
    for finding in report["findings"]:
        mark = paint(marks[finding["state"]], colours[finding["state"]])
        lines.append(f" {mark}  {finding['topic']:<{width}}  {finding['text']}")
        if finding["fix"]:
            lines.append(f"     {'':<{width}}  -> {finding['fix']}")
    problems = sum(finding["state"] == PROBLEM for finding in report["findings"])
    lines += [
        "",
        "All is well: TensorFlow can use the XPU."
        if report["ok"]
        else f"{problems} problem{'s' if problems > 1 else ''} found (!!).",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``python -m tensorflow_xpu doctor``. Returns 0 if all is well, 1 if not, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow_xpu doctor",
        description="Says whether TensorFlow can use an XPU here, and if not, why.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    with Progress(text="examining the installation"):
        report = diagnose()
    print(json.dumps(report, indent=2) if options.json else render(report))
    return 0 if report["ok"] else 1
