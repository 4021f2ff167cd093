#!/usr/bin/env python3
"""Do kernels of the OpenCL backend race, or touch what is not theirs? Runs tests of primitives under Oclgrind.

    tools/oclgrind.py [--seconds N] [TEST ...]

Oclgrind simulates a device that is no processor to the backend. Groups have many items, which share tiles in local
memory and wait for one another. For each primitive's test (matmul_test; all of them if none is named) it runs the
filter in SMALL, a few hundred commands. An item takes thousands of times what it takes elsewhere. Fails if a test does,
or if Oclgrind reports anything: it is first seen to report a race. After N seconds (200) the rest is left out, and
named. Where Oclgrind is not installed it fails and says what to do. The programs have to be built.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bazel-bin/tensorflow_plugin/backends/tests"

# Which tests of a program run, as a filter of googletest. Others take too long, or meet a fault of Oclgrind 21.10. It
# knows no abs of 8 and 16 bits, and takes comparisons within an epilogue for -1.
SMALL = {
    "compact_test": "*.GivesRowMajorCoordinatesInOrder",
    "convolution_test": "*.ByHand:*.EpilogueByHand:*.GroupsAndPartsOfWholeNumbers",
    "copy_strided_test": "*.TransposesAndReversesByHand:*.Tiles",
    "elementwise_test": "*.Broadcasting",
    "factorize_test": "*.ByHand:*.OfRankOneAndOfNothing:*.WhatIsNotPositiveDefinite*",
    "fft_test": "*.ByHand",
    "gather_test": "*.TakesRowsAlongAnAxis:*.ReadsSeveralCoordinates",
    "instructions_test": "*.ComplexByHand",
    "matmul_test": "*.ComplexConjugatesByHand:*.BytesByHand:*.EmptyExtents:*.OneLongSumOfFewElements",
    "normalize_test": "*.ByHand",
    "pool_test": "*.ByHand:*.PositionsByHand",
    "random_test": "*.IntegersStayInRange",
    "reduce_test": "*.ByHand:*.ComplexByHand",
    "resample_test": "*.ByHand",
    "sample_test": "*.ByHand:*.ImageGradientByHand:*.PointGradientByHand",
    "scan_test": "*.IntegersWrap",
    "scatter_test": "*.KindsByHand",
    "search_test": "*.NanIsNeitherLessNorGreater",
    "softmax_test": "*.ByHand:*.RowsOfManyElements",
    "solve_test": "*.ByHand",
    "sort_test": "*.NanComesLastAndZerosAreEqual",
    "suppress_test": "*.Boxes:*.Pairs",
    "unique_test": "*.ZerosAreEqualAndNanIsLikeNoOther:*.ImaginaryPartsCount",
}

# All items write the same place.
RACE = "kernel void run(global int *x) { x[0] = (int)get_global_id(0); }\n"
RACE_RUN = "race.cl\nrun\n4 1 1\n4 1 1\n<size=16 fill=0>\n"


def driver_of(oclgrind: str) -> pathlib.Path:
    """Oclgrind as a driver, for the loader of OpenCL, which the backend opens by itself."""
    return pathlib.Path(oclgrind).resolve().parent.parent / "lib/oclgrind/liboclgrind-rt-icd.so"


def finds_a_race(folder: pathlib.Path) -> bool:
    """True if Oclgrind reports a race where there is one."""
    (folder / "race.cl").write_text(RACE)
    (folder / "race.sim").write_text(RACE_RUN)
    command = ["oclgrind-kernel", "--data-races", "race.sim"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "data race" in done.stdout + done.stderr


def problem_of(program: str, driver: pathlib.Path, folder: pathlib.Path, seconds: float) -> str:
    """The mistake in the kernels of a test; empty if they are right. Raises TimeoutExpired."""
    vendors, log = folder / "vendors", folder / f"{program}.log"
    vendors.mkdir(exist_ok=True)
    (vendors / "oclgrind.icd").write_text(f"{driver}\n")
    environment = {
        **os.environ,
        "XPU_TEST_BACKEND": "XPU_OPENCL",
        "XPU_TEST_AWAITED": "1",  # it runs commands when they are flushed
        "XDG_CACHE_HOME": str(folder),
        "OCL_ICD_VENDORS": str(vendors),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_LOG": str(log),
    }
    command = [str(PROGRAMS / program), f"--gtest_filter={SMALL[program]}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=seconds)
    report = log.read_text() if log.exists() else ""
    if report:
        return report[:3000]
    if done.returncode != 0:
        return (done.stdout + done.stderr)[-3000:]
    ran = "XPU_OPENCL: " in done.stdout and "XPU_OPENCL: 0 cases" not in done.stdout
    return "" if ran else f"no case ran:\n{done.stdout[-3000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", metavar="TEST")
    parser.add_argument("--seconds", type=float, default=200)
    options = parser.parse_args()
    if unknown := sorted(set(options.tests) - set(SMALL)):
        parser.error(f"no such test: {', '.join(unknown)}")
    oclgrind = shutil.which("oclgrind")
    if oclgrind is None or not driver_of(oclgrind).exists():
        print("tools/oclgrind.py: Oclgrind is not installed. Fix: apt-get install oclgrind", file=sys.stderr)
        return 1
    failed, left_out = [], []
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not finds_a_race(folder):
            print("Oclgrind does not report a race that there is", file=sys.stderr)
            return 1
        for program in options.tests or SMALL:
            began = time.monotonic()
            try:
                problem = problem_of(program, driver_of(oclgrind), folder, max(end - began, 0.1))
            except subprocess.TimeoutExpired:
                left_out.append(program)
                continue
            print(f"{program}: {'FAILED' if problem else 'right'}, {time.monotonic() - began:.1f} s\n{problem}", end="")
            if problem:
                failed.append(program)
    if left_out:
        print(f"left out for time: {', '.join(left_out)}")
    if failed:
        print(f"{len(failed)} failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
