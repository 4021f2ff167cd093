"""Tells PyInstaller about this package: it finds the folder by the entry point ``pyinstaller40``."""

from __future__ import annotations

import pathlib


def get_hook_dirs() -> list[str]:
    """The folder with the hooks."""
    return [str(pathlib.Path(__file__).parent)]
