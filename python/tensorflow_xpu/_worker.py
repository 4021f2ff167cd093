"""Runs tasks one by one in a process of their own, and outlives whatever they do: errors, crashes, hangs.

A module has its tasks in ``TASKS``: functions without parameters, by name, which return what JSON can hold. As a
program, ``python -m tensorflow_xpu._worker MODULE DESCRIPTOR NAME...``, this is that process. It reports on a pipe of
its own, since TensorFlow and its plugins may print anything anywhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any


class TaskError(Exception):
    """Raised by a task that has found out what is wrong: the text says all of it."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a task."""

    name: str
    result: Any = None  #: what it returned
    error: str = ""  #: why it returned nothing; "" if it did
    details: str = ""  #: of an error that is no ``TaskError``: the traceback, or what the process printed last
    seconds: float = 0.0
    died: bool = False  #: the process ended in it, or was ended since it took too long
    not_run: bool = False


def run(
    module: str,
    names: Sequence[str],
    environment: Mapping[str, str],
    limit: float,
    begins: Callable[[str], None] = lambda name: None,
) -> Iterator[Outcome]:
    """Runs these tasks of a module, in this order, in one process for as long as that lives, and then in another.

    Args:
        module: that has ``TASKS``.
        names: of tasks.
        environment: of the process, all of it.
        limit: seconds that a task may take, the first one of a process together with its start.
        begins: is told the name of each task when it begins.

    Yields:
        An outcome for each name. Where the very first task ends its process, the others are not run: they would end
        in the same way.
    """
    left = list(names)
    while left:
        outcome = None
        for outcome in _in_one_process(module, tuple(left), environment, limit, begins):
            left.remove(outcome.name)
            yield outcome
        if outcome is not None and outcome.died and outcome.name == names[0]:
            for name in left:
                yield Outcome(name, error="not run, since the process ended in the first one", not_run=True)
            return


def _in_one_process(
    module: str, names: Sequence[str], environment: Mapping[str, str], limit: float, begins: Callable[[str], None]
) -> Iterator[Outcome]:
    """Outcomes until all tasks have run, or the process ended in one of them."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile("w+", errors="replace") as said, open(reading, "rb", buffering=0) as pipe:
        command = [sys.executable, "-m", "tensorflow_xpu._worker", module, str(writing), *names]
        process = subprocess.Popen(
            command, env=dict(environment), pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        os.close(writing)
        try:
            name = names[0]
            began = time.monotonic()
            for message in _messages(pipe, limit):
                began = time.monotonic()
                if "begin" in message:
                    name = message["begin"]
                    begins(name)
                    continue
                yield Outcome(**message)
                if name == names[-1]:
                    return
            in_time = time.monotonic() - began < limit
            if not in_time:
                process.kill()
            code = process.wait()
            error = _end_of(code) if in_time else f"did not end within {limit:.0f} s"
            yield Outcome(name, None, error, _last_words(said), time.monotonic() - began, died=True)
        finally:
            process.kill()  # if all has run, it has nothing more to do
            process.wait()


def _messages(pipe: IO[bytes], limit: float) -> Iterator[dict[str, Any]]:
    """The lines of JSON that come, until the pipe is closed or none has come for so many seconds."""
    rest = b""
    while select.select([pipe], [], [], limit)[0]:
        chunk = pipe.read(1 << 16)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from map(json.loads, lines)


def _end_of(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _last_words(said: IO[str]) -> str:
    """TensorFlow's message when it ends a process, or the last lines."""
    said.seek(0)
    lines = [line for line in said.read().splitlines() if line.strip()]
    fatal = [line for line in lines if re.match(r"F\d{4} ", line) or line.startswith("tensorflow_xpu: ")]
    return "\n".join((fatal or lines)[-10:])


def main(module: str, descriptor: str, *names: str) -> None:
    """Is the process: runs the tasks, and ends it."""
    with open(int(descriptor), "w", encoding="utf-8", buffering=1) as pipe:
        for name in names:
            print(json.dumps({"begin": name}), file=pipe)
            result, error, details = None, "", ""
            began = time.monotonic()
            try:
                result = importlib.import_module(module).TASKS[name]()
            except TaskError as failure:
                error = str(failure)
            except Exception as unforeseen:
                error = f"{type(unforeseen).__name__}: {unforeseen}".partition("\n")[0]
                details = traceback.format_exc()
            outcome = Outcome(name, result, error, details, time.monotonic() - began)
            print(json.dumps(dataclasses.asdict(outcome)), file=pipe)
        pipe.flush()
    os._exit(0)  # what it has made needs no tidying up


if __name__ == "__main__":
    # Not this file's own, whose TaskError nobody raises: as a program it is another module, __main__.
    from tensorflow_xpu import _worker

    _worker.main(*sys.argv[1:])
