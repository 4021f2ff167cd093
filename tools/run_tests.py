#!/usr/bin/env python3
"""Runs the tests: `make test` (tools/run_tests.py test) and `make test-all` (tools/run_tests.py rest).

`test` stops at the first step that fails. `rest` goes on and lists all that failed at the end. With --seconds a run
ends in about that time. Steps that no longer fit are left out, and so is the rest of one that turns out slow; the
closing lines name both. The exit status is 1 if anything failed, 0 otherwise, and 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import TextIO

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = ".venv/bin/python"

# When the run's time is over, what began before has this long to end, in seconds.
GRACE = 120


@dataclasses.dataclass(frozen=True)
class Step:
    """One command of a run.

    seconds: what it takes on a slow machine of two cores, without `build`.
    build: a command to run before, which takes minutes where nothing is cached. A step whose build runs out of time is
        left out.
    divisible: whether the command leaves out its last tests by itself where time is over, as those of pytest do
        (tests/conftest.py).
    """

    title: str
    command: Sequence[str]
    seconds: int
    build: Sequence[str] = ()
    divisible: bool = False
    environment: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def worthwhile(self) -> float:
        """How many seconds have to be left for it to begin: enough for a part, or for all on a slower machine."""
        return self.seconds / 2 if self.divisible else self.seconds * 2

    @property
    def limit(self) -> float:
        """After so many seconds it hangs."""
        return 3 * self.seconds + 120


def bazel(verb: str, *arguments: str, targets: Sequence[str] = ("//tensorflow_plugin/...",)) -> Sequence[str]:
    program = "tools/bazel_build.py" if verb == "build" else "tools/bazel.sh"  # the former shows its progress
    return (program, verb, "--build_tests_only", *arguments, "--", *targets)


def sanitized(title: str, config: str, seconds: int) -> Step:
    """The C++ tests under a sanitizer."""
    arguments = (f"--config={config}", "--test_tag_filters=-slow,-no-sanitizer")
    build = bazel("build", f"--config={config}", "--build_tag_filters=-slow,-no-sanitizer")
    return Step(f"C++ tests under the {title}", bazel("test", *arguments), seconds, build=build)


def python_tests(
    title: str, seconds: int, *arguments: str, marks: Sequence[str] = (), backend: str = "XPU_HOST", **environment: str
) -> Step:
    """Python tests, in two processes: most of a test's time is TensorFlow's tracing, on one thread. A worker with none
    left takes tests from the other.
    """
    command = [PYTHON, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--durations", "15"]
    command += ["-o", "faulthandler_timeout=300"]  # says where a test hangs
    if marks:
        command += ["-m", " and ".join(marks)]
    environment = {"TF_XPU_SUBDEVICE": backend, **environment}
    return Step(title, (*command, *arguments), seconds, divisible=True, environment=environment)


# The folders of the Python tests that most changes would break, and that say so soonest. See tests/README.md for the
# place of a test, and the marks that decide where it runs.
OPS = ("tests/ops", "tests/bad_input", "tests/sweep")
FIRST = ("tests/docs", *OPS)

# All kernels of each op are for one run of the sweep; the others have some of them, and the next ones the next day.
SOME_KERNELS = {"XPU_SWEEP_KERNELS": "5"}

TEST = (
    Step("style and types", ("tools/lint.sh",), 30),
    Step("C++ tests", bazel("test", "--test_tag_filters=-slow"), 150, build=bazel("build")),
    Step("kernels of the CUDA backend compile", (PYTHON, "tools/compile_kernels.py"), 60, build=bazel("build")),
    python_tests("Python tests of ops", 300, *FIRST, marks=["not slow"], **SOME_KERNELS),
    python_tests("Python tests of all else", 500, *(f"--ignore={path}" for path in FIRST), marks=["not slow"]),
)

# It changes from day to day.
DAY = str(int(time.time() // 86400))

# Every run of the second tier begins with these.
ALWAYS = (
    # A host access to device memory ends the process at once, and every tensor is an allocation of its own. The sweep
    # has all kernels here.
    python_tests(
        "Python tests, device memory isolated and from the plugin's pool",
        400,
        marks=["not without_isolation", "not slow"],
        TF_XPU_ISOLATE_MEMORY="1",
        TF_XPU_ALLOCATOR="pool",
    ),
    sanitized("address and undefined-behaviour sanitizers", "asan", 200),
    python_tests(
        "Python tests of ops, each op by itself", 300, *OPS, marks=["not slow"], TF_XPU_FUSION="0", **SOME_KERNELS
    ),
    python_tests(
        "Python tests, reference backend",
        350,
        marks=["not host_only", "not slow"],
        backend="XPU_REFERENCE",
        **SOME_KERNELS,
    ),
)

# The others follow, another one first every day: a run that has no time for all of them has time for each in turn.
IN_TURN = (
    Step("slow C++ tests", bazel("test", "--test_tag_filters=slow,-opencl"), 250, build=bazel("build")),
    sanitized("thread sanitizer", "tsan", 350),
    # These show whether the tests notice wrong results.
    Step("mutations of primitives", ("tools/mutate_primitives.py",), 150, build=bazel("build")),
    # Another kernel of each op every day.
    Step("mutations of ops", (PYTHON, "-m", "tests.mutation", "--each", DAY), 150),
    Step(
        "a third of the Python tests of ops under the address, undefined-behaviour and leak sanitizers",
        (PYTHON, "tools/sanitized.py", "test"),
        250,
        build=(PYTHON, "tools/sanitized.py", "build"),
        divisible=True,
    ),
    python_tests("slow Python tests", 1200, marks=["slow"]),
    Step("mutations of passes", ("tools/mutate_passes.py",), 900, build=bazel("build")),
    # PoCL takes most of a second to compile a kernel: the backend's cache on disk makes all but the first run short.
    # The sweep takes another kernel of each op every day.
    python_tests(
        "Python tests, OpenCL backend",
        900,
        marks=["not host_only", "not slow"],
        backend="XPU_OPENCL",
        XPU_SWEEP_KERNELS="1",
    ),
    # For another architecture every day.
    Step(
        "all kernels of the CUDA backend compile",
        (PYTHON, "tools/compile_kernels.py", "--all", "--architecture", ("80", "90", "120")[int(DAY) % 3]),
        600,
        build=bazel("build"),
    ),
    # Races, and what a device that is no processor does.
    Step("kernels of the OpenCL backend under Oclgrind", ("tools/oclgrind.py",), 120, build=bazel("build")),
    Step("C++ tests, OpenCL backend", bazel("test", "--test_tag_filters=opencl"), 1200, build=bazel("build")),
    # Another hook every day.
    Step(
        f"Python tests with a hook left out (tests.hooks.each_off --nth {DAY})",
        (PYTHON, "-m", "tests.hooks.each_off", "--nth", DAY),
        300,
        divisible=True,
    ),
    # Fetches TensorFlows, and compiles what depends on their C++.
    Step(
        f"another version of TensorFlow (tools/versions.py test --nth {DAY})",
        (PYTHON, "tools/versions.py", "test", "--nth", DAY),
        250,
        build=(PYTHON, "tools/versions.py", "wheel", "--own"),
        divisible=True,
    ),
)

# These are for runs that have hours.
LAST = (
    # Fetches the versions of Keras.
    Step("tests of hooks, models and Keras with other versions of Keras", (PYTHON, "tools/keras_versions.py"), 900),
    Step(
        "all Python tests without the hooks for speed, and without each hook",
        (PYTHON, "-m", "tests.hooks.each_off", "--suite"),
        20 * 900,
        divisible=True,
    ),
)


def rest(day: int) -> Sequence[Step]:
    """The second tier on a day since 1970. Its last steps are the first that are left out."""
    first = day % len(IN_TURN)
    return (*ALWAYS, *IN_TURN[first:], *IN_TURN[:first], *LAST)


# So much of the log of a failed C++ test is repeated at the end of a run, in characters.
REPORT = 3000


def with_events(command: Sequence[str], events: pathlib.Path) -> Sequence[str]:
    """The command; one that runs Bazel's tests writes down what becomes of them."""
    if tuple(command[:2]) != ("tools/bazel.sh", "test"):
        return command
    return (*command[:2], f"--build_event_json_file={events}", *command[2:])


def failures_in(events: pathlib.Path) -> list[str]:
    """The tests that did not pass, each with the end of its log, by Bazel's events."""
    failures = []
    for line in events.read_text().splitlines() if events.exists() else ():
        event = json.loads(line)
        summary = event.get("testSummary", {})
        if summary.get("overallStatus", "PASSED") == "PASSED":
            continue
        logs = [pathlib.Path(log["uri"].removeprefix("file://")) for log in summary.get("failed", ())]
        ends = [log.read_text(errors="replace")[-REPORT:] for log in logs if log.exists()]
        failures.append("\n".join([event["id"]["testSummary"]["label"], summary["overallStatus"], *ends]))
    return failures


class Run:
    """A run of steps: its clock, and what became of each."""

    def __init__(self, seconds: float | None = None) -> None:
        """With this many seconds for all of it; None for as many as it takes."""
        self.start = time.monotonic()
        self.seconds = seconds
        self.failed: list[str] = []
        self.reports: list[str] = []
        self.left_out: list[str] = []

    def left(self) -> float:
        """Seconds left of the run's time."""
        return float("inf") if self.seconds is None else self.start + self.seconds - time.monotonic()

    def step(self, step: Step) -> bool:
        """Runs one; False if it failed."""
        began = time.monotonic()
        if self.left() < step.worthwhile:
            self.left_out.append(step.title)
            return True
        say(step.title)
        if step.build:
            ended = execute(step.build, {}, self.left() - step.worthwhile)
            if ended == "timeout":
                self.left_out.append(step.title)
                return True
            if ended != 0:
                return self._fail(step, began, "it does not build")
        with tempfile.TemporaryDirectory() as folder:
            note, reports = pathlib.Path(folder) / "left_out", pathlib.Path(folder) / "reports"
            reports.mkdir()
            events = pathlib.Path(folder) / "events"
            environment = {**step.environment, "XPU_TESTS_LEFT_OUT": str(note), "XPU_TESTS_REPORTS": str(reports)}
            if self.seconds is not None:
                environment["XPU_TESTS_UNTIL"] = str(time.time() + min(self.left(), 2 * step.seconds))
            limit = min(step.limit, self.left() + GRACE)
            ended = execute(with_events(step.command, events), environment, limit)
            if note.exists():
                self.left_out.append(f"{note.read_text()} of {step.title}")
            told = [text for path in sorted(reports.iterdir()) if (text := path.read_text())] + failures_in(events)
            if ended != 0 and told:
                self.reports.append("\n".join([step.title, *told]))
        if ended == "timeout" and limit < step.limit:
            self.left_out.append(f"the rest of {step.title}")
            return True
        if ended == "timeout":
            return self._fail(step, began, f"it did not end within {limit:.0f} s")
        if ended != 0:
            return self._fail(step, began, f"exit status {ended}")
        say(f"{step.title}: {time.monotonic() - began:.0f} s")
        return True

    def _fail(self, step: Step, began: float, why: str) -> bool:
        self.failed.append(step.title)
        say(f"FAILED after {time.monotonic() - began:.0f} s: {step.title}: {why}", sys.stderr)
        return False

    def close(self) -> int:
        """Prints the closing lines; the exit status. An early failure is told once more, where people look."""
        for report in self.reports:
            say(f"failed in {report}", sys.stderr)
        if self.left_out:
            say("left out for time: " + "; ".join(self.left_out))
        seconds = f"{time.monotonic() - self.start:.0f} s"
        if self.failed:
            say(f"{len(self.failed)} failed in {seconds}: " + "; ".join(self.failed), sys.stderr)
            return 1
        say(f"what ran passed in {seconds}" if self.left_out else f"passed in {seconds}")
        return 0


def say(words: str, file: TextIO | None = None) -> None:
    print(f"=== {words}", file=file or sys.stdout, flush=True)


def execute(command: Sequence[str], environment: dict[str, str], limit: float) -> int | str:
    """The exit status of a command, or "timeout" if it had to be ended. With it end the processes that it started."""
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True)
    try:
        return process.wait(None if limit == float("inf") else max(limit, 0))
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        if process.returncode is None:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and those that it started; pytest first reports what it has seen, and Bazel tells its server."""
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tier", choices=["test", "rest"])
    parser.add_argument("--seconds", type=float, help="how long the run may take")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    run = Run(options.seconds)
    for step in TEST if options.tier == "test" else rest(int(DAY)):
        if not run.step(step) and options.tier == "test":
            break
    return run.close()


if __name__ == "__main__":
    sys.exit(main())
