"""``python -m tensorflow_xpu`` with ``devices``, ``use`` and ``config``.

Exit codes: 0 all is well, 1 there is no XPU to show or what was asked cannot be done, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_xpu import _config, _options, _settings, _tables
from tensorflow_xpu._errors import XPUError
from tensorflow_xpu._options import DEFAULT, DEVICE_TYPES, named
from tensorflow_xpu._terminal import Progress
from tensorflow_xpu._vocabulary import SUBDEVICE_TYPES

PROGRAM = "python -m tensorflow_xpu"


def size(size: int | None) -> str:
    """Bytes for people."""
    if size is None:
        return "-"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {command}", description=description)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _run(action: Callable[[], int], as_json: bool) -> int:
    """Runs a command; an error of ours is a line on stderr, and JSON where that was asked for."""
    try:
        return action()
    except XPUError as error:
        print(f"tensorflow_xpu: {error}", file=sys.stderr)
        if as_json:
            print(json.dumps({"error": str(error)}))
        return 1


def devices(arguments: Sequence[str]) -> int:
    """Runs ``devices``: all devices that are installed. 0 if an XPU is enabled, 1 if not, 2 for wrong usage."""
    parser = _parser("devices", "Lists the devices that are installed, and which subdevice type serves each type.")
    parser.add_argument("--type", help="only devices of this type, such as XPU")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

    def show() -> int:
        from tensorflow_xpu._devices import list_physical_devices
        from tensorflow_xpu._subdevice import device_type

        with Progress(text="importing TensorFlow"):
            try:
                import tensorflow  # noqa: F401
            except ImportError as error:
                text = f"TensorFlow cannot be imported ({error}): `{PROGRAM} doctor` says what to do"
                raise XPUError(text) from error
            everything = list_physical_devices()
        found = [d for d in everything if options.type is None or d.device_type == options.type.upper()]
        if options.json:
            print(json.dumps([dataclasses.asdict(device) for device in found], indent=2))
        elif found:
            heading = ("device", "subdevice type", "enabled", "hardware", "memory", "free", "instructions")
            rows = [
                (
                    device.name.removeprefix("/physical_device:"),
                    device.subdevice_type,
                    "yes" if device.enabled else "no",
                    device.hardware_name or "-",
                    size(device.memory_total),
                    size(device.memory_free),
                    device.instruction_set or "-",
                )
                for device in found
            ]
            print(_tables.text([heading, *rows]))
        if options.type is not None and not found:
            types = ", ".join(sorted({device.device_type for device in everything}))
            raise XPUError(f"there is no device of the type {options.type!r}: expected one of {types}")
        if any(
            d.enabled and d.device_type == device_type() and d.subdevice_type in SUBDEVICE_TYPES for d in everything
        ):
            return 0
        print(f"tensorflow_xpu: no XPU is enabled: `{PROGRAM} doctor` says why", file=sys.stderr)
        return 1

    return _run(show, options.json)


def _overridden(variables: Sequence[str]) -> list[str]:
    """The variables of these that the environment has, so that the file does not matter."""
    return [name for name in variables if name in os.environ]


def _write(changes: dict[str, str | None], as_json: bool, said: str) -> int:
    path = _settings.write_file(changes)
    overridden = _overridden(list(changes))
    if as_json:
        print(json.dumps({"file": str(path), "changed": changes, "overridden_by_environment": overridden}))
    else:
        print(f"{said} ({path})")
    for name in overridden:
        print(f"tensorflow_xpu: {name}={os.environ[name]} in the environment goes before the file", file=sys.stderr)
    return 0


def use(arguments: Sequence[str]) -> int:
    """Runs ``use``: chooses the backend for all programs. Returns 0, 1 if that failed, 2 for wrong usage."""
    parser = _parser("use", "Chooses the backend behind the devices, and their type, for all programs of this user.")
    parser.add_argument("subdevice", help=f"{', '.join(SUBDEVICE_TYPES)}, or {DEFAULT} to choose none")
    parser.add_argument("--type", help=f"what the devices are to TensorFlow: {', '.join(DEVICE_TYPES)}, or {DEFAULT}")
    options = parser.parse_args(arguments)

    def choose() -> int:
        given = {"TF_XPU_SUBDEVICE": options.subdevice}
        if options.type is not None:
            given["TF_XPU_DEVICE_TYPE"] = options.type
        changes = {name: named(name).text(value) or None for name, value in given.items()}
        said = f"{options.subdevice} is used from now on"
        if options.type is not None:
            said += f", as {options.type}"
        if options.subdevice == DEFAULT:
            said = f"no backend is chosen any more: {SUBDEVICE_TYPES[0]} is the default"
        return _write(changes, options.json, said)

    return _run(choose, options.json)


def config(arguments: Sequence[str]) -> int:
    """Runs ``config``: shows or changes options. Returns 0, 1 if that failed, 2 for wrong usage."""
    parser = _parser("config", "Shows the options and who set them, or changes the configuration file.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--set", nargs="+", metavar="NAME=VALUE", help="write options to the file: devices=4, ...")
    action.add_argument("--unset", nargs="+", metavar="NAME", help="take options out of the file")
    action.add_argument("--path", action="store_true", help="print the path of the file that --set and use write")
    action.add_argument("--markdown", action="store_true", help="print the documentation's table of options")
    options = parser.parse_args(arguments)

    def change() -> int:
        changes: dict[str, str | None] = {}
        for item in options.set or []:
            name, equals, value = item.partition("=")
            if not equals:
                raise XPUError(f"{item!r} is not NAME=VALUE: expected such as devices=4")
            changes[named(name).variable] = named(name).text(value) or None
        for name in options.unset or []:
            # It must be possible to take out a name that is no option any more, or never was.
            path = _settings.file_in_use()
            in_file = path is not None and path.exists() and name in _settings.read_file()[1]
            changes[name if in_file else named(name).variable] = None
        return _write(changes, options.json, "written")

    def show() -> int:
        path, mine = _settings.file_in_use(), _settings.user_file()
        if options.markdown:
            print(_options.documentation())
            return 0
        if options.path:
            print(json.dumps({"file": mine and str(mine)}) if options.json else mine or "none")
            return 0
        _settings.read_file()
        settings = _config.show_config()
        if options.json:
            seen: dict[str, Any] = {"file": path and str(path), "file_to_write": mine and str(mine)}
            print(json.dumps({**seen, "options": [dataclasses.asdict(setting) for setting in settings]}, indent=2))
        else:
            print(settings)
            print(f"\nconfiguration file: {path or f'none ({PROGRAM} use and config --set write {mine})'}")
        return 0

    return _run(change if options.set or options.unset else show, options.json)
