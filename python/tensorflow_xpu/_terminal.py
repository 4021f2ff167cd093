"""Output for terminals alone: colours, and the progress of a long task."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

GREEN, YELLOW, RED, GREY = "32", "33", "31", "90"
_ERASE = "\r\033[K"
_WIDTH = 24  # of a bar, in characters


def is_terminal(stream: TextIO) -> bool:
    """True if people see the output, on something that knows escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """The text in a colour where stdout is a terminal; ``NO_COLOR`` in the environment says no."""
    if "NO_COLOR" in os.environ or not is_terminal(sys.stdout):
        return text
    return f"\033[{colour}m{text}\033[0m"


class Progress:
    """A line on stderr, if that is a terminal, which says what is being done, and is gone when the ``with`` ends.

    With a number of steps it has a bar. The line lives on a thread of its own, so that it also moves while one step
    takes long.

        with Progress(3) as progress:
            for name in names:
                progress.step(name)
    """

    def __init__(self, steps: int = 0, text: str = "") -> None:
        self._steps, self._text = steps, text
        self._done = -1 if steps else 0
        self._shown = is_terminal(sys.stderr)
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, daemon=True)

    def __enter__(self) -> Progress:
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        if self._shown:
            self._thread.join()
            self._write(_ERASE)

    def step(self, text: str) -> None:
        """The next step begins: the one before it is done."""
        with self._lock:
            self._done, self._text = self._done + 1, text
            self._draw()

    def print(self, text: str) -> None:
        """Writes a line to stdout, above the progress."""
        with self._lock:
            if self._shown:
                self._write(_ERASE)
            print(text, flush=True)
            self._draw()

    def _line(self) -> str:
        seconds = f"{time.monotonic() - self._begin:.0f} s"
        if not self._steps:
            return f"{self._text} {seconds}"
        done = max(self._done, 0)
        filled = _WIDTH * done // self._steps
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{self._steps}  {seconds}  {self._text}"

    def _draw(self) -> None:
        if self._shown and not self._ended.is_set():
            self._write(_ERASE + self._line()[: shutil.get_terminal_size().columns - 1])

    def _draw_on(self) -> None:
        while not self._ended.wait(0.2):
            with self._lock:
                self._draw()

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
