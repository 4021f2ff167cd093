"""``python -m tensorflow_xpu conformance [OPTION]... [LIBRARY]``: examines a PluggableDevice library.

The program is ``bin/conformance`` of this package (docs/conformance.md). It needs neither Python nor TensorFlow. Where
no library is named it gets this plugin's loader, and the folder of the installed TensorFlow's libraries.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys
from collections.abc import Sequence

from tensorflow_xpu._devices import LOADER, PACKAGE

PROGRAM = PACKAGE / "bin" / "conformance"
WITH_VALUE = ("--tensorflow", "--only", "--timeout", "--jobs")


def _library_named(arguments: Sequence[str]) -> bool:
    """True if one of the arguments is a library: neither an option nor the value of one."""
    previous = ["", *arguments]
    return any(not now.startswith("-") and before not in WITH_VALUE for before, now in zip(previous, arguments))


def command(arguments: Sequence[str]) -> list[str]:
    """The command line of the program.

    Args:
        arguments: what the user gave, without the word ``conformance``.

    Returns:
        The program, ``--tensorflow FOLDER`` unless the user gave it or there is no TensorFlow, the arguments, and this
        plugin's loader unless a library is named.
    """
    line = [str(PROGRAM)]
    tensorflow = importlib.util.find_spec("tensorflow")  # finds without importing
    if "--tensorflow" not in arguments and tensorflow is not None and tensorflow.origin:
        line += ["--tensorflow", str(pathlib.Path(tensorflow.origin).parent)]
    line += arguments
    return line if _library_named(arguments) else [*line, str(LOADER)]


def main(arguments: Sequence[str]) -> int:
    """Becomes the program, whose exit code is 0 if no check fails, 1 if one does, 2 for wrong usage.

    Returns:
        2 where the program cannot be started; otherwise this does not return.
    """
    line = command(arguments)
    try:
        os.execv(line[0], line)
    except OSError as error:
        print(f"tensorflow_xpu: {PROGRAM} does not start: {error.strerror}", file=sys.stderr)
        return 2
