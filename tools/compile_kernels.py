#!/usr/bin/env python3
"""Does NVRTC compile the kernels of the CUDA backend? It needs no GPU.

    tools/compile_kernels.py [--all] [--architecture NUMBER ...] [--seconds N]

The tests of primitives run on the stand-ins for the driver and the compiler (backends/cuda/tests). Their results are
wrong, since kernels do nothing there. But the source of each kernel is kept. Then NVRTC compiles sources for compute
capabilities 8.0, 9.0 and 12.0, or those given. Without --all these are few: together they have every line of the kernel
files, and every function and macro of what is generated. With --all they are the sources of all tests. After N seconds
the rest is left out, and counted: another part each time.

Fails if a source does not compile, or if a kernel file is in none. NVRTC is in the package nvidia-cuda-nvrtc
(requirements-test.txt). The programs have to be built.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import dataclasses
import os
import pathlib
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tensorflow_plugin/backends/gpu/kernels"
SOURCES = ROOT / "tensorflow_plugin/backends/tests"
PROGRAMS = ROOT / "bazel-bin/tensorflow_plugin/backends/tests"
STAND_INS = ROOT / "bazel-bin/tensorflow_plugin/backends/cuda/tests"
ARCHITECTURES = (80, 90, 120)

# Files that no kernel for a GPU has.
NOT_FOR_GPUS = ("prelude_opencl.cl", "matmul/product_complex.cl", "matmul/product_processor.cl", "reduction/reduce.cl")

# As OptionsFor of backends/cuda/nvrtc.cc, and no warnings.
OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space", "--disable-warnings")

# Tests that take seconds for the results to expect, and have no kernels of their own but those of more sizes.
SLOW = "*.Large*:*.LongSums*:*.FloatFunctionsAreAccurate:*.SharedOut:Sort.TypesShapesAndOrders"


def programs_of(sources: pathlib.Path, programs: pathlib.Path) -> list[pathlib.Path]:
    """The programs of the tests of primitives. Bazel leaves programs in its folder that have no source any longer."""
    found = sorted(path for path in programs.glob("*_test") if (sources / f"{path.name}.cc").exists())
    return [path for path in found if path.name not in ("backends_test", "fixture_test")]


def record(folder: pathlib.Path, filter_of_tests: str) -> dict[str, str]:
    """The sources that the tests make, each with the name of a test that did."""
    programs = programs_of(SOURCES, PROGRAMS)
    if not programs or not (STAND_INS / "libnvrtc.so.13").exists():
        raise SystemExit("the tests of primitives are not built: tools/bazel.sh build //tensorflow_plugin/backends/...")
    # Nothing else that is there: vendors' libraries would do what kernels do otherwise.
    libraries = folder / "libraries"
    libraries.mkdir()
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        (libraries / name).symlink_to(STAND_INS / name)

    def sources_of(program: pathlib.Path) -> pathlib.Path:
        return run(program, folder / program.name, libraries, filter_of_tests)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folders = list(pool.map(sources_of, programs))
    return {path.read_text(): of.name for of in folders for path in sorted(of.glob("*.cu"))}


def run(program: pathlib.Path, sources: pathlib.Path, libraries: pathlib.Path, filter_of_tests: str) -> pathlib.Path:
    """Runs a test on the stand-ins; the folder with its sources."""
    sources.mkdir()
    environment = {
        **os.environ,
        "XPU_TEST_BACKEND": "XPU_CUDA",
        "XPU_TEST_AWAITED": "1",  # each command once
        "LD_LIBRARY_PATH": str(libraries),
        "XDG_CACHE_HOME": str(sources),  # what is in the user's cache would not be compiled
        "STAND_IN_NVRTC_SOURCES": str(sources),
    }
    command = [str(program), f"--gtest_filter={filter_of_tests}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    # Most cases are wrong.
    if done.returncode not in (0, 1) or not re.search("^XPU_CUDA: [0-9]+ cases", done.stdout, re.MULTILINE):
        end = (done.stdout + done.stderr)[-3000:]
        raise SystemExit(f"{program.name} ended with status {done.returncode} on the stand-in for the driver:\n{end}")
    return sources


def lines_of(text: str) -> frozenset[str]:
    return frozenset(filter(None, map(str.strip, text.splitlines())))


def kernel_files() -> dict[str, frozenset[str]]:
    """The lines of each file that kernels for GPUs are made of."""
    files = {str(path.relative_to(KERNELS)): lines_of(path.read_text()) for path in KERNELS.rglob("*.cl")}
    return {name: lines for name, lines in files.items() if name not in NOT_FOR_GPUS}


def unused(files: Mapping[str, frozenset[str]], sources: Iterable[str]) -> list[str]:
    """The files of which no source has the lines that are in no other file."""
    made = frozenset[str]().union(*map(lines_of, sources))
    others = {name: frozenset[str]().union(*(files[other] for other in files if other != name)) for name in files}
    return sorted(name for name, lines in files.items() if not (lines - others[name]) & made)


def parts_of(source: str, written: frozenset[str]) -> frozenset[str]:
    """A source's lines of kernel files, and the words of its other lines, which are generated."""
    parts = set()
    for line in lines_of(source):
        if line in written:
            parts.add(line)
        else:
            parts.update(re.findall(r"\b[A-Za-z_]+\b", line))
    return frozenset(parts)


def cover(parts: Mapping[str, frozenset[str]]) -> list[str]:
    """Few of the keys whose parts are together all parts: always the one that adds most."""
    left = frozenset[str]().union(*parts.values())
    chosen = []
    while left:
        best = max(parts, key=lambda key: (len(parts[key] & left), -len(parts[key])))
        left -= parts[best]
        chosen.append(best)
    return chosen


def nvrtc_library() -> pathlib.Path:
    """NVRTC of this Python environment."""
    found = sorted(pathlib.Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/lib/libnvrtc.so.1[23]"))
    if not found:
        raise SystemExit("NVRTC is not installed: tools/setup.sh requirements-test.txt")
    return found[-1]


@dataclasses.dataclass(frozen=True)
class Task:
    library: pathlib.Path
    source: str
    architecture: int


def compile_source(task: Task) -> str:
    """Compiles a source to machine code. The compiler's errors; empty if there are none."""
    nvrtc = ctypes.CDLL(str(task.library))
    program = ctypes.c_void_p()
    options = [f"--gpu-architecture=sm_{task.architecture}".encode(), *map(str.encode, OPTIONS)]
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), task.source.encode(), b"kernel.cu", 0, None, None)
    if created != 0:
        return f"nvrtcCreateProgram failed with {created}"
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if failed == 0:
            return ""
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        return f"error {failed}: {log.value.decode(errors='replace').strip()}"
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def tasks_for(
    library: pathlib.Path, architectures: Sequence[int], files: Sequence[str], others: Sequence[str]
) -> list[Task]:
    """`files` for each architecture, each of `others` for one of them."""
    tasks = [Task(library, source, architecture) for source in files for architecture in architectures]
    for i, source in enumerate(others):
        tasks.append(Task(library, source, architectures[i % len(architectures)]))
    return tasks


def compile_all(tasks: Sequence[Task], seconds: float) -> list[str | None]:
    """The errors of each task; None where there was no time for it."""
    end = time.monotonic() + seconds
    results: list[str | None] = [None] * len(tasks)
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(compile_source, task): i for i, task in enumerate(tasks)}
        try:
            for future in concurrent.futures.as_completed(running, timeout=max(end - time.monotonic(), 0.1)):
                results[running[future]] = future.result()
        except TimeoutError:
            pool.shutdown(cancel_futures=True)
    return results


def report(tasks: Sequence[Task], results: Sequence[str | None], names: Mapping[str, str]) -> int:
    """Prints what does not compile, with the file that has the source; how many sources that are."""
    failed: dict[str, list[str]] = {}
    for task, result in zip(tasks, results, strict=True):
        if result:
            failed.setdefault(task.source, []).append(f"for compute capability {task.architecture / 10}, {result}")
    for source, problems in failed.items():
        with tempfile.NamedTemporaryFile("w", prefix="kernel_", suffix=".cu", delete=False) as file:
            file.write(source)
        print(f"a kernel of {names[source]}, in {file.name}: " + "\n".join(problems)[:3000], file=sys.stderr)
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--architecture", type=int, action="append", metavar="NUMBER")
    parser.add_argument("--seconds", type=float, default=600)
    options = parser.parse_args()
    began = time.monotonic()
    architectures, files = options.architecture or ARCHITECTURES, kernel_files()
    library = nvrtc_library()
    with tempfile.TemporaryDirectory() as folder:
        names = record(pathlib.Path(folder), "*" if options.all else f"-{SLOW}")
    if missing := unused(files, names):
        print(f"no kernel of these files is compiled: {', '.join(missing)}", file=sys.stderr)
        return 1
    if options.all:
        tasks = tasks_for(library, architectures, random.sample(list(names), len(names)), [])
    else:
        written = frozenset[str]().union(*files.values())
        of_files = cover({source: lines_of(source) & written for source in names})
        parts = {source: parts_of(source, written) for source in names}
        known = frozenset[str]().union(*(parts[source] for source in of_files))
        of_all = cover({source: of - known for source, of in parts.items()})
        tasks = tasks_for(library, architectures, of_files, of_all)
    print(f"{len(names)} sources recorded in {time.monotonic() - began:.0f} s; {len(tasks)} compilations", flush=True)
    results = compile_all(tasks, began + options.seconds - time.monotonic())
    failed = report(tasks, results, names)
    if left := results.count(None):
        print(f"left out for time: {left} compilations")
    ended = f"{len(tasks) - left} compilations by {library.name} in {time.monotonic() - began:.0f} s"
    print(f"{failed} of the kernels do not compile; {ended}" if failed else f"all compile; {ended}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
