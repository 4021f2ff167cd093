"""Where options come from: a call, the environment, the configuration file; in this order.

The plugin's loader reads the file when TensorFlow is imported, by the same rules
(tensorflow_plugin/loader/settings.cc). So it holds in programs that never import this package.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping

from tensorflow_xpu import _core, _internals
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._options import BY_VARIABLE, OPTIONS
from tensorflow_xpu.hooks.features import DEVICES

FILE_VARIABLE = "TF_XPU_CONFIG"
NO_FILE = "none"
_HEADER = (
    "# Options of XPU for TensorFlow, one TF_XPU_...=value in a line: see `python -m tensorflow_xpu config`.\n"
    "# The environment and calls of tensorflow_xpu.configure() go before them.\n"
)

# The values that calls of this process have put into the environment, by variable.
_called: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Setting:
    """The value of one option, and its source."""

    variable: str  #: ``TF_XPU_DEVICE_COUNT``
    parameter: str  #: of ``configure``: ``devices``
    value: str  #: the text that was given, or the default's description
    source: str  #: ``call``, ``environment``, ``file`` or ``default``
    origin: str  #: the file's path where it is the source, else empty
    understood: bool  #: False: makes no sense, so that the default holds instead
    default: str
    meaning: str


def user_file() -> pathlib.Path | None:
    """The file that ``python -m tensorflow_xpu use`` and ``config`` write; it need not exist. None: there is none.

    ``TF_XPU_CONFIG`` if that is set, else ``tensorflow_xpu/config`` in ``$XDG_CONFIG_HOME``, which is ``~/.config``
    unless it is an absolute path (XDG Base Directory Specification).
    """
    chosen = os.environ.get(FILE_VARIABLE, "")
    if chosen:
        return None if chosen == NO_FILE else pathlib.Path(chosen)
    home = os.environ.get("XDG_CONFIG_HOME", "")
    if not home.startswith("/"):
        home = os.environ.get("HOME", "") and f"{os.environ['HOME']}/.config"
    return pathlib.Path(home) / "tensorflow_xpu" / "config" if home.startswith("/") else None


def file_in_use() -> pathlib.Path | None:
    """The configuration file that is read: the user's, else the first in ``$XDG_CONFIG_DIRS``; None: there is none."""
    mine = user_file()
    if os.environ.get(FILE_VARIABLE, ""):
        return mine
    folders = (os.environ.get("XDG_CONFIG_DIRS", "") or "/etc/xdg").split(":")
    candidates = [pathlib.Path(folder) / "tensorflow_xpu" / "config" for folder in folders if folder.startswith("/")]
    return next((path for path in [mine, *candidates] if path is not None and path.exists()), None)


def _parse(path: pathlib.Path, text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        name, equals, value = (part.strip(" \t\r") for part in line.partition("="))
        if not equals or not re.fullmatch("TF_XPU_[A-Z_]+", name) or name == FILE_VARIABLE or name in values:
            raise XPUError(
                f'{path}:{number} has "{line[:100]}", expected TF_XPU_...=value, each name once. '
                "Mend the file or remove it: as it is, all of it is ignored"
            )
        values[name] = value
    return values


def _text_of(path: pathlib.Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise XPUError(
            f"the configuration file {path} cannot be read ({error.strerror}), so it is ignored. "
            f"Make it a readable file, or set {FILE_VARIABLE}={NO_FILE}"
        ) from error


def read_file() -> tuple[pathlib.Path | None, dict[str, str]]:
    """The configuration file in use and what it says, by variable.

    Raises:
        XPUError: if it cannot be read or is malformed. The plugin then ignores it as a whole.
    """
    path = file_in_use()
    return path, {} if path is None else _parse(path, _text_of(path))


def _from_file() -> tuple[str, dict[str, str]]:
    """The path of the file and its values, as the plugin has taken them if it is loaded, else as it would."""
    report = _core.loader_report() if "tensorflow" in sys.modules else None
    if report is not None:
        return report["settings_file"], report["settings"]
    try:
        path, values = read_file()
    except XPUError:  # who asks for the file is told (read_file); what holds without it is the question here
        return "", {}
    return str(path or ""), values


def current() -> list[Setting]:
    """All options, in the table's order."""
    path, values = _from_file()
    settings = []
    for option in OPTIONS:
        name = option.variable
        text, source = os.environ.get(name), "environment"
        if text is not None and _called.get(name) == text:
            source = "call"
        elif text is None and name in values:
            text, source = values[name], "file"
        if text is None:
            text, source = "", "default"
        settings.append(
            Setting(
                variable=name,
                parameter=option.parameter,
                value=text or option.default,
                source=source,
                origin=path if source == "file" else "",
                understood=option.understands(text),
                default=option.default,
                meaning=option.meaning,
            )
        )
    return settings


def value_of(variable: str) -> str:
    """The value of an option: its text where that makes sense, else empty, which means the default."""
    text = os.environ.get(variable)
    if text is None:
        text = _from_file()[1].get(variable, "")
    return text if BY_VARIABLE[variable].understands(text) else ""


def write_file(changes: Mapping[str, str | None]) -> pathlib.Path:
    """Changes the user's configuration file, all at once; other lines stay as they are.

    A file for all users that has been in use until now is copied, since only one of them is read.

    Args:
        changes: texts by variable; None takes a line away.

    Returns:
        The file's path.

    Raises:
        XPUError: if there is no place for it, the file there is malformed, or it cannot be written.
    """
    path = user_file()
    if path is None:
        why = f"{FILE_VARIABLE}={NO_FILE} is set" if os.environ.get(FILE_VARIABLE) else "HOME is not set"
        raise XPUError(f"there is no configuration file to write, since {why}: set {FILE_VARIABLE} to a file's path")
    before = file_in_use()
    text = _text_of(before) if before is not None and before.exists() else _HEADER
    _parse(before or path, text)
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    for name, value in changes.items():
        at = next((i for i, line in enumerate(lines) if re.match(rf"\s*{name}\s*=", line)), None)
        if at is not None:
            lines[at : at + 1] = [] if value is None else [f"{name}={value}"]
        elif value is not None:
            lines.append(f"{name}={value}")
    text = "".join(f"{line}\n" for line in lines)
    _parse(path, text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a link stays a link
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False, errors="surrogateescape") as file:
            file.write(text)
        pathlib.Path(file.name).chmod(0o644)
        pathlib.Path(file.name).replace(target)
    except OSError as error:
        raise XPUError(
            f"the configuration file {path} cannot be written ({error.strerror}): make its folder writable, "
            f"or set {FILE_VARIABLE} to another path"
        ) from error
    return path


@contextlib.contextmanager
def _in_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Puts texts into the environment; takes them out again if the block raises."""
    from_file = _from_file()[1]
    before = {name: os.environ.get(name) for name in changes}
    called = dict(_called)
    os.environ.update(changes)
    _called.update(changes)
    try:
        yield
    except BaseException:
        for name, text in before.items():
            if text is not None:
                os.environ[name] = text
            else:
                del os.environ[name]
                if name in from_file:
                    os.putenv(name, from_file[name])  # as the loader left it: for the core, unseen by os.environ
        _called.clear()
        _called.update(called)
        raise


def apply(changes: Mapping[str, str], call: str) -> None:
    """Makes options hold in this process, all of them or none.

    Args:
        changes: texts by variable, which make sense.
        call: for messages, how the user wrote it.

    Raises:
        XPUError: if it is too late for one of them, or this TensorFlow does not say so; or if the plugin takes none any
            more.
    """
    new = [name for name, text in changes.items() if _plain(name, value_of(name)) != _plain(name, text)]
    report = _core.loader_report() if "tensorflow" in sys.modules else None
    if not new or "tensorflow" not in sys.modules:
        with _in_environment(changes):
            return
    names = ", ".join(new)
    in_time = (
        f"do so before `import tensorflow`, or set {names} in the environment or with `python -m tensorflow_xpu config`"
    )
    if report is None:
        raise XPUError(f"{call} came after TensorFlow was imported, and it has not loaded the plugin: {in_time}")
    if not report["active"]:
        raise XPUError(f"{call} has no effect, since the plugin offers no devices: {report['reason']}")
    fixed = [name for name in new if BY_VARIABLE[name].at_import]
    if fixed:
        raise XPUError(
            f"{call} came after TensorFlow was imported, which is when {', '.join(fixed)} is read: {in_time}"
        )
    if _internals.devices_are_made(f"{call} after `import tensorflow`"):
        raise XPUError(f"{call} came after TensorFlow had created its devices: {in_time}, or before the first op")
    with _in_environment(changes):
        from tensorflow_xpu import _native

        trouble = _native.ask(report["core"], "XpuCore_Reconfigure")
        if trouble:
            raise XPUError(f"{call} is not possible: {trouble}. {in_time[0].upper()}{in_time[1:]}")
    if "TF_XPU_DEVICE_COUNT" in new:
        _relist(call)


def _plain(name: str, text: str) -> str:
    return "" if text == BY_VARIABLE[name].default else text


def _relist(call: str) -> None:
    """Has TensorFlow count its devices again; what other types' devices are visible stays."""
    import tensorflow as tf

    visible = [device for device in tf.config.get_visible_devices() if device.device_type != _device_type()]
    with _internals.private(DEVICES, call) as found:
        found.reinitialize(found.context())
    for device_type in {device.device_type for device in tf.config.list_physical_devices()} - {_device_type()}:
        tf.config.set_visible_devices([d for d in visible if d.device_type == device_type], device_type)


def _device_type() -> str:
    return value_of("TF_XPU_DEVICE_TYPE") or "XPU"
