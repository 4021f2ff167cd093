"""Tools that need the packages of .venv run with its Python, whichever Python they were begun with."""

import os
import pathlib
import sys

PYTHON = pathlib.Path(__file__).resolve().parent.parent / ".venv" / "bin" / "python"


def use_own_python() -> None:
    """Begins the program anew with the Python of .venv, if there is one and this is another."""
    if PYTHON.exists() and pathlib.Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
