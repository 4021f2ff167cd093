"""Processes that run programs: one with clusters, which also makes the programs, and one without."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import importlib
import multiprocessing
import os
import pathlib
import re
import tempfile
from typing import Any

import numpy as np

# A call that takes longer hangs.
SECONDS = 120


class EndedError(Exception):
    """A worker has ended, or hangs."""


@dataclasses.dataclass
class Outcome:
    """The result of a program on a device: the arrays of each call and the variables at the end, or its exception's
    type."""

    calls: list[list[np.ndarray]]
    variables: list[np.ndarray]
    error: str = ""
    message: str = ""


@dataclasses.dataclass
class Clusters:
    """The fate of clusters, and the ops that were in them."""

    captured: int = 0
    not_captured: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    ops: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, other: Clusters) -> None:
        self.captured += other.captured
        self.not_captured.update(other.not_captured)
        self.ops.update(other.ops)


def execute(program, device: str) -> Outcome:
    """Runs the text of a program."""
    import tensorflow as tf

    text, constants = program.text()
    scope: dict[str, Any] = {"tf": tf, "raw": tf.raw_ops, "c": constants}
    exec(compile(text, "<program>", "exec"), scope)
    outcome = Outcome([], [])
    with tf.device(device):
        variables = [tf.Variable(v) for v in program.variables]

        def body(inputs):
            with tf.device(device):
                return scope["program"](inputs, variables)

        signature = [program.signature()] if program.free else None
        function = tf.function(body, autograph=False, input_signature=signature)
        try:
            for call in program.calls:
                outcome.calls.append([r.numpy() for r in function([tf.constant(v) for v in program.values[call]])])
            outcome.variables = [v.numpy() for v in variables]
        except Exception as error:  # of whatever type: that is what is compared
            outcome.error, outcome.message = type(error).__name__, str(error)[-2000:]
    return outcome


def read_dumps(folder: pathlib.Path) -> Clusters:
    """The dumps that clusters wrote there; they are removed."""
    found = Clusters()
    for file in folder.iterdir():
        text = file.read_text(errors="replace")
        if why := re.search(r"^Not captured: (.*)", text, re.MULTILINE):
            found.not_captured[why[1][:60]] += 1
        else:
            found.captured += 1
        found.ops.update(re.findall(r"^\d+: (\w+) \S+ \(", text, re.MULTILINE))
        file.unlink()
    return found


def serve(channel) -> None:
    """Answers requests, each a function of this module and its arguments, until there are no more."""
    while True:
        try:
            name, arguments = channel.recv()
        except EOFError:
            return
        channel.send(globals()[name](*arguments))


def make(seed: int, source: str = "tests.fuzz.generate"):
    """The program of a seed, by the function `generate` of a module."""
    from tests.sweep.runner import hard_placement

    with hard_placement():
        return importlib.import_module(source).generate(seed)


def expected(program):
    """The value of reference.results; None if the program is not suitable after all."""
    from tests.fuzz import reference
    from tests.sweep.runner import hard_placement

    with hard_placement(), contextlib.suppress(reference.UnsuitableError):
        return reference.results(program)
    return None


def run(program, devices: list[str]) -> tuple[list[Outcome], Clusters]:
    outcomes = [execute(program, device) for device in devices]
    folder = os.environ.get("TF_XPU_DUMP_FUSION")
    return outcomes, read_dumps(pathlib.Path(folder)) if folder else Clusters()


class Worker:
    """A process that answers; another one after it has ended."""

    def __init__(self, environment: dict[str, str]):
        self._folder = tempfile.TemporaryDirectory()
        self._environment = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_XPU_DUMP_FUSION": self._folder.name, **environment}
        self._process: Any = None
        self._asked = 0

    def ask(self, name: str, *arguments) -> Any:
        """The result of a function of this module in the process. Raises EndedError."""
        # TensorFlow never frees what it keeps of functions.
        self._asked += 1
        if self._process is None or self._asked % 1000 == 0:
            self.restart()
        try:
            self._channel.send((name, arguments))
            if not self._channel.poll(SECONDS):
                raise EndedError(f"no answer in {SECONDS} s")
            return self._channel.recv()
        except (EOFError, OSError) as error:
            self._process.join(10)
            raise EndedError(f"the process ended with {self._process.exitcode}") from error
        except EndedError:
            self._process.kill()
            raise
        finally:
            if not self._process.is_alive():
                self._process = None

    def restart(self) -> None:
        self.stop()
        context = multiprocessing.get_context("spawn")
        self._channel, theirs = context.Pipe()
        saved = dict(os.environ)
        os.environ.update(self._environment)
        try:
            self._process = context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
        finally:
            os.environ.clear()
            os.environ.update(saved)
        theirs.close()

    def stop(self) -> None:
        if self._process is not None:
            self._channel.close()
            self._process.join(10)
            self._process.kill()
            self._process = None
