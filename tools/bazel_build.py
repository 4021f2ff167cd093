#!/usr/bin/env python3
"""Runs Bazel and shows how far it has come.

tools/bazel_build.py --wheel                what setup.py puts into the wheel, for this Python
tools/bazel_build.py build //some:target    any command of Bazel

On a terminal one line moves: actions done of how many, the time, the time left, what is being done. Elsewhere there is
a line every 30 seconds. Bazel's other output is shown if it fails. The exit status is Bazel's.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import IO, TextIO

ROOT = pathlib.Path(__file__).resolve().parent.parent
BAZEL = str(ROOT / "tools" / "bazel.sh")
QUIET = ("--curses=no", "--color=no", "--show_progress_rate_limit=1")

#: Seconds between two lines where there is no terminal, and between two looks at the clock where there is one.
EVERY, TICK = 30.0, 0.5
#: The time left follows from the actions of so many seconds.
WINDOW = 90.0
#: A build of so many seconds says at its end how long it took.
LONG = 10.0
_WIDTH = 24  # of the bar, in characters
_ERASE = "\r\033[K"

_COUNTED = re.compile(r"\[([\d,]+) / ([\d,]+)\] ?(.*)")
_BEFORE = re.compile(r"(Loading|Analyzing): ?(.*)")


def wheel_tree() -> str:
    """The target whose files go into the wheel: for one version of TensorFlow, or for all with XPU_ALL_VERSIONS=1."""
    return "wheel_tree_all" if os.environ.get("XPU_ALL_VERSIONS") == "1" else "wheel_tree"


def wheel_command() -> list[str]:
    """The command that builds it, with the TensorFlow of this Python."""
    repositories = {"PYTHON_BIN_PATH": sys.executable, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    options = [f"--repo_env={name}={value}" for name, value in repositories.items()]
    return [BAZEL, "build", f"//:{wheel_tree()}", *options]


def spoken(seconds: float) -> str:
    """A time for people: "40 s", "3 min 20 s", "12 min"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds / 10) * 10, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if rest and minutes < 10 else f"{minutes:.0f} min"


class Progress:
    """The progress that Bazel's lines tell.

    It counts actions: a compilation, a link, a test. It finds them while it looks at targets, so that their number
    grows at first.
    """

    def __init__(self, now: float) -> None:
        self.began = now
        self.done = self.total = 0
        self.doing = "starting Bazel"
        self.said: list[str] = []  # all lines that are no progress
        self._seen: collections.deque[tuple[float, int]] = collections.deque()  # when how many were done
        self._expects_detail = False

    def read(self, line: str, now: float) -> None:
        """Takes in a line of Bazel's."""
        line = line.rstrip()
        if counted := _COUNTED.fullmatch(line):
            self.done, self.total = (int(number.replace(",", "")) for number in counted.group(1, 2))
            self._seen.append((now, self.done))
            if counted[3]:
                self.doing = counted[3]
            self._expects_detail = True
        elif before := _BEFORE.fullmatch(line):
            self.doing = f"{before[1].lower()} {before[2]}".strip()
            self._expects_detail = True
        elif self._expects_detail and line.startswith("    "):
            if detail := line.strip():
                self.doing = detail
        elif line:
            self._expects_detail = False
            self.said.append(line)

    def seconds_left(self, now: float) -> float | None:
        """At the rate of the last actions; None as long as nothing can be said."""
        while len(self._seen) > 2 and self._seen[0][0] < now - WINDOW:
            self._seen.popleft()
        if not self._seen:
            return None
        began, done_then = self._seen[0]
        if now - began < 5 or self.done <= done_then:
            return None
        return (self.total - self.done) * (now - began) / (self.done - done_then)

    def line(self, now: float) -> str:
        """All of it, without a bar."""
        parts = [f"{self.done} of {self.total} actions done"] if self.total else [self.doing]
        parts.append(spoken(now - self.began))
        left = self.seconds_left(now)
        if left is not None:
            parts.append(f"about {spoken(left)} left")
        return f"build: {', '.join(parts)}"

    def bar(self, now: float, columns: int) -> str:
        """The same for a terminal of this width, with what is being done."""
        filled = _WIDTH * self.done // self.total if self.total else 0
        text = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {self.line(now).removeprefix('build: ')}"
        return f"{text}  {self.doing if self.total else ''}"[: columns - 1].rstrip()


def is_terminal(stream: TextIO) -> bool:
    """True if people see the output, on something that knows escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Reporter:
    """Shows a Progress on a stream until the ``with`` ends, from a thread: time passes while Bazel says nothing."""

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._moves = is_terminal(stream)
        self._last = progress.began
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._moves:
            self._write(_ERASE)

    def read(self, line: str) -> None:
        with self._lock:
            self._progress.read(line, time.monotonic())

    def _go_on(self) -> None:
        while not self._ended.wait(TICK):
            with self._lock:
                self._show(time.monotonic())

    def _show(self, now: float) -> None:
        if self._moves:
            self._write(_ERASE + self._progress.bar(now, shutil.get_terminal_size().columns))
        elif now >= self._last + EVERY:
            self._last = now
            self._write(self._progress.line(now) + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def run(command: Sequence[str], stream: TextIO | None = None) -> int:
    """Runs a command of Bazel's and shows its progress, on stderr if nothing else is said; its exit status."""
    stream = stream or sys.stderr
    program, verb, *arguments = command
    progress = Progress(time.monotonic())
    process = subprocess.Popen(
        [program, verb, *QUIET, *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stderr is not None
    previous = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        with Reporter(progress, stream) as reporter:
            for line in lines_of(process.stderr):
                reporter.read(line)
            status = process.wait()
    finally:
        signal.signal(signal.SIGTERM, previous)
        if process.poll() is None:  # a second Ctrl-C, or an error here
            process.terminate()
            process.wait()
    seconds = time.monotonic() - progress.began
    if status != 0:
        print("\n".join(progress.said), file=stream)
        print(f"build: failed after {spoken(seconds)}", file=stream)
    elif seconds >= LONG:
        print(f"build: {progress.total} actions in {spoken(seconds)}", file=stream)
    stream.flush()
    return status


def lines_of(stream: IO[str]) -> Iterable[str]:
    """The lines; Ctrl-C reaches Bazel, too, whose last words are read."""
    while True:
        try:
            line = stream.readline()
        except KeyboardInterrupt:
            continue
        if not line:
            return
        yield line


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    return run(wheel_command() if list(arguments) == ["--wheel"] else [BAZEL, *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
