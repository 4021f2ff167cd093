"""The private names of TensorFlow that the package uses, with errors of its own (hooks/features.py)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace

from tensorflow_xpu._errors import XPUError
from tensorflow_xpu.hooks.features import DEVICES, Feature
from tensorflow_xpu.hooks.patch import UnknownError


@contextlib.contextmanager
def private(feature: Feature, call: str) -> Iterator[SimpleNamespace]:
    """Around calls of a feature's private names and nothing else.

    Args:
        feature: whose names they are.
        call: for the message: which function of the package needs them.

    Raises:
        XPUError: if this TensorFlow lacks one of the names, or one raises something.
    """
    try:
        with feature.used() as found:
            yield found
    except UnknownError as error:
        raise XPUError(f"{call} is not possible with this TensorFlow: {error}. {feature.without}") from error


def devices_are_made(call: str) -> bool:
    """True if TensorFlow, which is imported, has made its devices. Makes none.

    Raises:
        XPUError: if this TensorFlow does not say; ``call`` is for the message.
    """
    with private(DEVICES, call) as found:
        return found.context()._context_handle is not None


_noted: set[str] = set()


def note_once(feature: Feature, text: str) -> None:
    """One line on stderr: the effect of a feature that is off. Later ones of the same feature are not printed."""
    if feature.name not in _noted:
        _noted.add(feature.name)
        print(f"tensorflow_xpu: {text}", file=sys.stderr)
