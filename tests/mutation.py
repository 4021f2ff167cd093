"""Do the tests notice? Runs the sweep's cases on a device whose results are wrong, and says which ops get away with it.

python -m tests.mutation                          every registered op and type, under every fault of results
python -m tests.mutation --ops 'MatMul|Conv.*'    only ops of these names
python -m tests.mutation --results zeros,one      only these faults

Each fault is one process with TF_XPU_FAULT=command:result=... (docs/runtime.md), in which each op and type runs its
cases, eagerly and once, until one notices. What survives and is not explained in EQUIVALENT makes the exit code 1.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator

RESULTS = ("zeros", "scale", "one", "last", "stale")

NO_COMMAND = "its kernel runs no command: the output is the input's buffer, or comes from the host"
# (ops, faults of which nothing can be seen): why.
EQUIVALENT = {
    ("Snapshot|CheckNumerics(V2)?|Bitcast|BroadcastTo", RESULTS): NO_COMMAND,
    ("StatelessRandomGet.*|Rng.*", RESULTS): NO_COMMAND,
    ("ZerosLike", ("zeros", "scale")): "zeros are what it gives, and 5% more of them",
}


def explained(op: str, result: str) -> str | None:
    for (ops, results), why in EQUIVALENT.items():
        if result in results and re.fullmatch(ops, op):
            return why
    return None


def verdicts(ops: str, skip: int, sample: int | None) -> Iterator[tuple[str, str, str]]:
    """(op, types, verdict) of each registration but the first `skip`, in this process, whose device is at fault."""
    import numpy as np
    import tensorflow as tf

    from tests.sweep.cases import CASES
    from tests.sweep.registrations import all_registrations
    from tests.sweep.runner import Prepared, calls_of

    chosen = [r for r in all_registrations() if re.fullmatch(ops, r.op)]
    if sample is not None:
        chosen = random.Random(sample).sample(chosen, min(len(chosen), SAMPLE))
    # What memory holds before a command writes it is no right result by chance.
    with tf.device("/xpu:0"):
        tf.constant(np.random.default_rng(1).integers(1, 255, 1 << 26).astype(np.uint8)).numpy()
    for registration in chosen[skip:]:
        types = registration.type_map
        verdict = "survived"
        for call in calls_of(registration.op, CASES[registration.op], types):
            prepared = Prepared(call)
            try:
                prepared.run_eagerly("/xpu:0", 1)
            except AssertionError:
                verdict = "noticed"
            except (tf.errors.OpError, ValueError) as error:
                verdict = f"failed: {type(error).__name__}"
            if verdict != "survived":
                break
        yield registration.op, ",".join(t.name for t in types.values()), verdict


SAMPLE = 60


def run_fault(result: str, ops: str, sample: int | None, progress=print) -> list[tuple[str, str, str]]:
    """The verdicts of all registrations under one fault; a process that dies is followed by another."""
    found: list[tuple[str, str, str]] = []
    environment = {**os.environ, "TF_XPU_FAULT": f"command:result={result}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    began = time.monotonic()
    while True:
        command = [sys.executable, "-m", "tests.mutation", "--child", "--ops", ops, "--skip", str(len(found))]
        command += [] if sample is None else ["--sample", str(sample)]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in child.stdout:
            found.append(tuple(json.loads(line)))
            if len(found) % 500 == 0:
                progress(f"{result}: {len(found)} after {time.monotonic() - began:.0f} s")
        if child.wait() == 0:
            return found
        if child.returncode > 0:
            raise RuntimeError(f"{' '.join(command)} ended with exit code {child.returncode}")
        found.append(("?", "", f"crashed: signal {-child.returncode}, after {found[-1][:2] if found else 'nothing'}"))


def report(results: list[str], ops: str, sample: int | None, progress=print) -> list[str]:
    """Prints what became of each fault, and returns a line for each op that nothing explains."""
    survivors = []
    table = []
    for result in results:
        found = run_fault(result, ops, sample, progress)
        count = collections.Counter(verdict.split(":")[0] for _, _, verdict in found)
        by_op = collections.defaultdict(list)
        for op, types, verdict in found:
            if verdict == "survived" or verdict.startswith("crashed"):
                by_op[op, verdict].append(types)
        unexplained = {k: v for k, v in by_op.items() if not explained(k[0], result)}
        survivors += [f"{result}: {op}({'; '.join(types)}) {verdict}" for (op, verdict), types in unexplained.items()]
        other = sum(map(len, unexplained.values()))
        table.append((result, len(found), count["noticed"], count["failed"], count["survived"] - other, other))
        progress(f"{result}: {other} of {len(found)} kernels survive unexplained")
    progress(
        "\n| result | kernels | noticed | failed with an error | explained | survived |\n|---|---|---|---|---|---|"
    )
    for row in table:
        progress("| " + " | ".join(map(str, row)) + " |")
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default=".*", help="a regular expression for the whole name")
    parser.add_argument("--results", default=",".join(RESULTS))
    parser.add_argument("--sample", type=int, help=f"only {SAMPLE} kernels, drawn with this seed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        for line in verdicts(options.ops, options.skip, options.sample):
            print(json.dumps(line), flush=True)
        return 0
    results = options.results.split(",")
    if unknown := set(results) - set(RESULTS):
        parser.error(f"--results: {', '.join(sorted(unknown))} is none of {', '.join(RESULTS)}")
    survivors = report(results, options.ops, options.sample)
    print(f"\n{len(survivors)} unexplained" + "".join(f"\n{line}" for line in survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
