#!/usr/bin/env python3
"""Do the tests of primitives notice wrong results? Runs each on a backend that spoils every command's result.

    tools/mutate_primitives.py [--jobs N] [TEST ...]

A test is a program of tensorflow_plugin/backends/tests such as matmul_test; all of them if none is named. Each runs
once for each kind of wrong result that TF_XPU_FAULT knows (tensorflow_plugin/faults/rules.h), all outputs zero for
example. In every line of a test's summary (primitive, kind and type, such as "MatMul of half") at least one case has to
go wrong then. Any other line is a survivor. So is a test that no kind of wrong result breaks. Survivors that are as
they should be have a line in EXPLAINED below. Prints what survives and exits with 1 if anything does that is not
explained, with 2 for a wrong command line. Takes two minutes on two cores, once built.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "tensorflow_plugin/backends/tests"
MUTATIONS = ("zeros", "scale", "one", "last", "stale")

# Survivors that are allowed, as patterns of the whole line that is printed, and why.
EXPLAINED = {
    r"\S+ notices nothing: \w+\.Reference\w+": "examines the reference, which is not spoiled",
    r"\S+ notices nothing: \w+\.BackpropIsTheDerivativeOfTheLoss": "examines the reference, which is not spoiled",
    r"\S+ notices nothing: Reduce\.ThreadsDoNotChangeTheResult": "compares devices that are all spoiled the same way",
}


@dataclasses.dataclass
class Outcome:
    """For one test program under one mutation: the tests that passed, and the cases and wrong ones by label."""

    passed: set[str]
    cases: collections.Counter[str]
    wrong: collections.Counter[str]


def test_programs() -> list[str]:
    """The test programs of primitives: those of primitive_test.bzl."""
    build = (ROOT / PACKAGE / "BUILD").read_text()
    block = re.search(r"\[primitive_test\(.*?\) for name in \[(.*?)\]\]", build, re.DOTALL)
    assert block is not None, f"{PACKAGE}/BUILD has no list of primitive tests"
    return re.findall(r'"(\w+)"', block[1])


def run(program: str, mutation: str) -> Outcome:
    """Runs a test program under a mutation; an empty one is none."""
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder, "summary.tsv")
        environment = {**os.environ, "XPU_TEST_SUMMARY": str(summary)}
        environment.pop("XPU_TEST_FAULTS", None)
        if mutation:
            environment["XPU_TEST_FAULTS"] = f"command:result={mutation}"
        process = subprocess.run(
            [ROOT / "bazel-bin" / PACKAGE / program], env=environment, capture_output=True, text=True, check=False
        )
        if not summary.exists():
            sys.exit(f"{program} did not finish under {mutation or 'no mutation'}:\n{process.stderr[-2000:]}")
        outcome = Outcome(set(), collections.Counter(), collections.Counter())
        outcome.passed = set(re.findall(r"^\[ +OK \] (\S+)", process.stdout, re.MULTILINE))
        for line in summary.read_text().splitlines():
            label, cases, wrong, denied = line.split("\t")
            outcome.cases[label] += int(cases) - int(denied)
            outcome.wrong[label] += int(wrong)
        return outcome


def survivors(outcomes: dict[tuple[str, str], Outcome]) -> list[str]:
    """A line for each label that no case notices under some mutation, and for each test that notices none at all."""
    lines = []
    for mutation in MUTATIONS:
        cases: collections.Counter[str] = collections.Counter()
        wrong: collections.Counter[str] = collections.Counter()
        for (_, of), outcome in outcomes.items():
            if of == mutation:
                cases.update(outcome.cases)
                wrong.update(outcome.wrong)
        lines += [
            f"{mutation} survives in {cases[label]} cases: {label}" for label in sorted(cases) if not wrong[label]
        ]
    for program in sorted({program for program, _ in outcomes}):
        passed = set.intersection(*(o.passed for (p, of), o in outcomes.items() if p == program and of))
        lines += [f"{program} notices nothing: {test}" for test in sorted(passed)]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs that run at a time")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="such as matmul_test")
    arguments = parser.parse_args()
    known = test_programs()
    for test in arguments.tests:
        if test not in known:
            parser.error(f"there is no test {test}, expected some of {' '.join(known)}")
    programs = arguments.tests or known
    targets = [f"//{PACKAGE}:{program}" for program in programs]
    subprocess.run(["tools/bazel.sh", "build", *targets], cwd=ROOT, check=True)

    # Without a mutation all is right, or the rest says nothing.
    pairs = [(program, mutation) for mutation in ("", *MUTATIONS) for program in programs]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = dict(zip(pairs, pool.map(lambda pair: run(*pair), pairs), strict=True))
    failed = [f"wrong without a mutation: {label}" for (_, of), o in outcomes.items() if not of for label in +o.wrong]
    cases = sum((outcome.cases for (_, of), outcome in outcomes.items() if not of), collections.Counter[str]())

    unexplained = failed
    for line in survivors(outcomes):
        why = next((why for pattern, why in EXPLAINED.items() if re.fullmatch(pattern, line)), None)
        print(f"{line} ({why})" if why else line)
        if why is None:
            unexplained.append(line)
    print(
        f"{len(programs)} tests, {len(cases)} primitives by kind and type, {len(MUTATIONS)} kinds of wrong results: "
        f"{len(unexplained)} survivors that are not explained"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
