#!/usr/bin/env python3
"""Examines the plugin on a machine with a GPU, in eight minutes.

    tools/gpu_check.py [--write FILE] [--programs FOLDER] [--peer-python PATH] [--only STAGE ...] [--seconds N]

Needs Python with TensorFlow, Keras, pytest and the plugin, and this checkout; no build and no network. Each stage is a
process of its own with a limit. One that fails, or takes too long, does not stop the others. First the checks run, at
the same time; then what is timed, one after the other. All that was seen goes into FILE (gpu_check.json) after each
stage, and `python -m benchmarks.gpu_page FILE` writes the tables of docs/cuda.md from it.

    checks      doctor       what the plugin says of the machine
                primitives   the test programs in FOLDER, which `tools/bazel.sh build //tensorflow_plugin/backends/...`
                             leaves in bazel-bin/tensorflow_plugin/backends/tests
                sweep        a kernel of each op against the CPU
                conformance  python -m tensorflow_xpu conformance
                demo         examples/digits_cnn.py, which needs scikit-learn
                sanitizer    compute-sanitizer over a few tests of each program in FOLDER, where it is installed
    timings     rates        the program `rates` in FOLDER
                models       networks in Keras: on this device, and on JAX and PyTorch by the Python at PATH, which
                             needs keras and, for JAX, optree; --peer-path FOLDERS has packages for it

--subdevice XPU_HOST or XPU_OPENCL and --small try the program on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import oclgrind  # noqa: E402

PROGRAMS = ROOT / "bazel-bin/tensorflow_plugin/backends/tests"
# Tests that take longest first; each of them compiles hundreds of kernels.
LONGEST = ("instructions_test", "convolution_test", "elementwise_test", "scatter_test", "sample_test", "matmul_test")
# Characters of a process's output that are kept.
KEPT = 4000

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Done:
    """A process that ended, or was ended: then status is None."""

    status: int | None
    output: str


@dataclasses.dataclass
class Check:
    """A run: its options and its clock."""

    options: argparse.Namespace
    folder: pathlib.Path
    began: float = dataclasses.field(default_factory=time.monotonic)

    def left(self) -> float:
        return float(self.began + self.options.seconds - time.monotonic())

    def variables(self, **more: str) -> dict[str, str]:
        """The environment of processes that use the device."""
        return {
            **os.environ,
            "TF_XPU_SUBDEVICE": self.options.subdevice,
            "XPU_TEST_BACKEND": self.options.subdevice,
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "PYTHONPATH": paths(os.environ.get("PYTHONPATH", ""), str(ROOT)),
            **more,
        }

    def run(self, command: Sequence[str], until: float, environment: Mapping[str, str] | None = None) -> Done:
        """Runs a command until then, with all that it starts."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(
                command,
                env=environment or self.variables(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status: int | None
            try:
                status = process.wait(max(until - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                status = None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            output.seek(0)
            return Done(status, output.read())


def paths(*lists: str) -> str:
    """Lists of folders as one, for processes whose working folder is another."""
    folders = [folder for each in lists for folder in each.split(os.pathsep) if folder]
    return os.pathsep.join(str(pathlib.Path(folder).absolute()) for folder in folders)


class LeftOutError(Exception):
    """A stage has no place here; its words say why."""


def verdict(done: Done, **facts: object) -> Result:
    """The result of a stage of one process."""
    status = "out of time" if done.status is None else "passed" if done.status == 0 else "failed"
    return {"status": status, **facts, "output": done.output[-KEPT:]}


def together(results: Mapping[str, Result], **facts: object) -> Result:
    """The result of a stage of several."""
    kinds = [result["status"] for result in results.values()]
    status = next((kind for kind in ("failed", "out of time") if kind in kinds), "passed")
    return {"status": status, **facts, "parts": dict(results)}


def programs_of(check: Check) -> list[pathlib.Path]:
    folder = pathlib.Path(check.options.programs).resolve()
    found = sorted(path for path in folder.glob("*_test") if path.name in oclgrind.SMALL)
    if not found:
        raise LeftOutError(f"there are no test programs in {folder}")
    return sorted(found, key=lambda path: LONGEST.index(path.name) if path.name in LONGEST else len(LONGEST))


def doctor(check: Check, until: float) -> Result:
    return verdict(check.run([sys.executable, "-m", "tensorflow_xpu", "doctor"], until))


def of_test(done: Done) -> Result:
    """The result of a test program: its cases, and the tests that failed."""
    cases = re.search(r"^\w+: (\d+) cases, (\d+) wrong, (\d+) not supported", done.output, re.MULTILINE)
    numbers = zip(("cases", "wrong", "not supported"), map(int, cases.groups()), strict=True) if cases else ()
    failed = re.findall(r"^\[  FAILED  \] (\S+) \(", done.output, re.MULTILINE)
    result = verdict(done, **dict(numbers), failed=failed)
    return {key: value for key, value in result.items() if key != "output" or result["status"] != "passed"}


def primitives(check: Check, until: float) -> Result:
    small = {"XPU_TEST_AWAITED": "1"} if check.options.small else {}

    def run(program: pathlib.Path) -> Result:
        filters = [f"--gtest_filter={oclgrind.SMALL[program.name]}"] if check.options.small else []
        return of_test(check.run([str(program), *filters], until, check.variables(**small)))

    programs = programs_of(check)
    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as pool:
        results = dict(zip([program.name for program in programs], pool.map(run, programs), strict=True))
    totals = {what: sum(result.get(what, 0) for result in results.values()) for what in ("cases", "wrong")}
    return together(results, **totals)


def sweep(check: Check, until: float) -> Result:
    if importlib.util.find_spec("pytest") is None:
        raise LeftOutError("pytest is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=line", "-p", "no:cacheprovider"]
    if importlib.util.find_spec("xdist") is not None:
        command += ["-n", str(min(4, os.cpu_count() or 1)), "--dist", "worksteal"]
    tests = [f"{ROOT}/tests/sweep/test_sweep.py", f"--rootdir={ROOT}", f"--confcutdir={ROOT}"]
    selected = ["-k", "Add or MatMul"] if check.options.small else []
    ends = time.time() + until - time.monotonic()
    done = check.run(
        [*command, *tests, *selected],
        until,
        check.variables(XPU_SWEEP_KERNELS="1", XPU_TESTS_UNTIL=str(ends - 10)),
    )
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|error)", done.output)}
    return verdict(done, **counts, failures=re.findall(r"^FAILED (.*)$", done.output, re.MULTILINE)[:50])


def conformance(check: Check, until: float) -> Result:
    command = [sys.executable, "-m", "tensorflow_xpu", "conformance", "--timeout", "30"]
    if check.options.small:
        command += ["--only", "devices"]
    done = check.run(command, until)
    summary = next((line for line in reversed(done.output.splitlines()) if " failed" in line), "")
    return verdict(done, summary=summary)


def demo(check: Check, until: float) -> Result:
    if importlib.util.find_spec("sklearn") is None:
        raise LeftOutError("scikit-learn is not installed")
    return verdict(check.run([sys.executable, str(ROOT / "examples/digits_cnn.py")], until))


def sanitizer(check: Check, until: float) -> Result:
    tool = shutil.which("compute-sanitizer", path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")
    if tool is None:
        raise LeftOutError("compute-sanitizer is not installed")
    if check.options.subdevice != "XPU_CUDA":
        raise LeftOutError(f"compute-sanitizer sees nothing of {check.options.subdevice}")
    results: dict[str, Result] = {}
    for program in programs_of(check):
        if time.monotonic() < until:
            # The driver says "invalid argument" of ordinary memory, which is a question and no error.
            options = ["--error-exitcode", "9", "--report-api-errors", "no"]
            command = [tool, *options, str(program), f"--gtest_filter={oclgrind.SMALL[program.name]}"]
            results[program.name] = of_test(check.run(command, until, check.variables(XPU_TEST_AWAITED="1")))
    return together(results)


def rates(check: Check, until: float) -> Result:
    program = pathlib.Path(check.options.programs).resolve() / "rates"
    if not program.exists():
        raise LeftOutError(f"there is no program {program}")
    done = check.run([str(program)], until)
    rows = re.findall(r"^\| (.+?) \| ([\d.e+-]+) ms \| ([\d.e+-]+) (\S+) \|$", done.output, re.MULTILINE)
    made = [{"what": what, "ms": float(ms), "rate": float(rate), "unit": unit} for what, ms, rate, unit in rows]
    return verdict(done, device=done.output.partition("\n")[0], rates=made)


def peers_of(check: Check) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Command and environment of each contestant of the models; those first that matter most."""
    small = ["--small", "--rounds", "1"] if check.options.small else []
    module = ["-m", "benchmarks.gpu_models", *small]
    peers = {"XPU": ([sys.executable, *module], check.variables(KERAS_BACKEND="tensorflow"))}
    if check.options.peer_python:
        # This interpreter's packages are not for that one.
        path = paths(str(ROOT), check.options.peer_path)
        shared = {**os.environ, "PYTHONPATH": path, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        for name, backend, jit in (
            ("JAX", "jax", ["--jit"]),
            ("PyTorch, compiled", "torch", ["--jit"]),
            ("PyTorch", "torch", []),
        ):
            peers[name] = ([check.options.peer_python, *module, *jit], {**shared, "KERAS_BACKEND": backend})
    return peers


def models(check: Check, until: float) -> Result:
    results: dict[str, Result] = {}
    peers = peers_of(check)
    for number, (name, (command, environment)) in enumerate(peers.items()):
        # The rest of the time is shared by those that follow, and the device itself gets a double share.
        shares = len(peers) - number + (number == 0)
        share = (until - time.monotonic()) * (2 if number == 0 else 1) / shares
        try:
            done = check.run(command, time.monotonic() + share, environment)
        except OSError as error:  # there is no such interpreter
            done = Done(127, str(error))
        rows = [json.loads(line) for line in done.output.splitlines() if line.startswith('{"model"')]
        results[name] = verdict(done, rows=rows)
        if any("failed" in row for row in rows):
            results[name]["status"] = "failed"
        for row in rows:
            step = f"{min(row['seconds']) * 1e3:.3g} ms" if "seconds" in row else row["failed"][:100]
            say(f"models: {name}, {row['model']}, {row['type']}: {step}")
    return together(results)


@dataclasses.dataclass(frozen=True)
class Stage:
    run: Callable[[Check, float], Result]
    limit: float
    is_timed: bool = False


STAGES = {
    "doctor": Stage(doctor, 40),
    "primitives": Stage(primitives, 150),
    "sweep": Stage(sweep, 130),
    "conformance": Stage(conformance, 100),
    "demo": Stage(demo, 60),
    "sanitizer": Stage(sanitizer, 130),
    "rates": Stage(rates, 60, is_timed=True),
    "models": Stage(models, 420, is_timed=True),
}

_saying = threading.Lock()


def say(words: str) -> None:
    with _saying:
        print(words, flush=True)


def run_stage(check: Check, name: str) -> Result:
    """Whatever it meets, a stage gives a result."""
    stage, began = STAGES[name], time.monotonic()
    try:
        if check.left() < 5:
            raise LeftOutError("there was no time")
        say(f"{name}: begins, for at most {min(stage.limit, check.left()):.0f} s")
        result = stage.run(check, began + min(stage.limit, check.left()))
    except LeftOutError as error:
        result = {"status": "left out", "why": str(error)}
    except Exception as error:
        result = {"status": "failed", "why": f"{type(error).__name__}: {error}"}
    result["took"] = round(time.monotonic() - began, 1)
    facts = [f"{result[key]} {key}" for key in ("cases", "wrong", "passed") if key in result]
    facts += [result[key] for key in ("summary", "why") if result.get(key)]
    facts += [f"{part} {of['status']}" for part, of in result.get("parts", {}).items() if of["status"] != "passed"]
    say(f"{name}: {result['status']} in {result['took']} s" + "".join(f"; {fact}" for fact in facts))
    return result


def machine() -> Result:
    """The GPUs and their driver, as nvidia-smi says, and the processor's cores."""
    found: Result = {"cores": os.cpu_count(), "python": sys.version.split()[0]}
    if tool := shutil.which("nvidia-smi"):
        query = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
            found["gpus"] = done.stdout.strip().splitlines()
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", default="gpu_check.json", metavar="FILE")
    parser.add_argument("--programs", default=str(PROGRAMS), metavar="FOLDER")
    parser.add_argument("--peer-python", default="", metavar="PATH")
    parser.add_argument("--peer-path", default="", metavar="FOLDERS")
    parser.add_argument("--only", action="append", choices=list(STAGES), metavar="STAGE")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--subdevice", default="XPU_CUDA")
    parser.add_argument("--small", action="store_true")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if "/" in options.peer_python:
        options.peer_python = str(pathlib.Path(options.peer_python).absolute())
    target = pathlib.Path(options.write).resolve()
    names = [name for name in STAGES if not options.only or name in options.only]
    report: Result = {"subdevice": options.subdevice, "small": options.small, "machine": machine(), "stages": {}}

    def note(name: str, result: Result) -> None:
        with _saying:
            report["stages"][name] = result
            target.write_text(json.dumps(report, indent=1) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        check = Check(options, pathlib.Path(folder))
        checks = [name for name in names if not STAGES[name].is_timed]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(checks))) as pool:
            running = {pool.submit(run_stage, check, name): name for name in checks}
            for future in concurrent.futures.as_completed(running):
                note(running[future], future.result())
        for name in names:
            if STAGES[name].is_timed:
                note(name, run_stage(check, name))
    bad = [f"{name} {result['status']}" for name, result in report["stages"].items() if result["status"] != "passed"]
    took = f"{time.monotonic() - check.began:.0f} s"
    say(f"in {took}, all is in {target}" + (f"; not passed: {', '.join(bad)}" if bad else "; all passed"))
    return 1 if any(result["status"] in ("failed", "out of time") for result in report["stages"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
