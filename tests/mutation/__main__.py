"""Do the tests notice? Runs the sweep's cases on a device whose results are wrong, and says which ops get away with it.

python -m tests.mutation                          every registered op and type, under every fault of results
python -m tests.mutation --ops 'MatMul|Conv.*'    only ops of these names
python -m tests.mutation --results zeros,one      only these faults
python -m tests.mutation --sample 7               60 kernels, drawn with this seed; --each 7: one of each op

Each fault is one process with TF_XPU_FAULT=command:result=... (docs/runtime.md). In it each op and type runs its cases,
eagerly and once, until one notices. That takes a quarter of an hour for all of them, two minutes for one of each op.
The exit code is 1 if a mutation survives that is not explained in EQUIVALENT.
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
import tempfile
import time
from collections.abc import Iterator

RESULTS = ("zeros", "scale", "one", "last", "stale")

NO_COMMAND = "its kernel runs no command: the output is the input's buffer or a copy, or is computed on the host"
# (kernels, faults of which nothing can be seen): why. Each has to be needed.
EQUIVALENT = {
    (r"Snapshot\(.*|Bitcast\(.*|Cast\((\w+),\1\)|Assign\(.*", RESULTS): NO_COMMAND,
    (r"StatelessRandomGet.*|(Resource)?CountUpTo\(.*|SyncDevice\(.*|_TensorToHashBucketFast\(.*", RESULTS): NO_COMMAND,
    (
        r"Variable(V2)?\(.*|IsVariableInitialized\(.*|DeepCopy\(.*|_ParallelConcat(Start|Update)\(.*",
        RESULTS,
    ): NO_COMMAND,
    (r"StatefulRandomBinomial\(.*", RESULTS): NO_COMMAND,
    (
        r"TensorArray(Scatter|Split|Unpack|Size|Grad)(V[23])?\(.*|"
        r"TensorList(FromTensor|PopBack|Scatter|ScatterV2|Split)\(.*",
        RESULTS,
    ): NO_COMMAND,
    (r"ZerosLike\(.*", ("zeros",)): "zeros are what it gives",
    (r"Empty\(.*", ("zeros",)): "zeros are what it gives",
    (r"Round\(int(32|64)\)", ("last", "stale")): "where TensorFlow lets it have the input's buffer, all is right there",
}


def explained(op: str, types: str, result: str) -> str | None:
    """Why this kernel survives this fault."""
    for (kernels, results), why in EQUIVALENT.items():
        if result in results and re.fullmatch(kernels, f"{op}({types})"):
            return why
    return None


def fill_free_memory(byte: int) -> None:
    """An element that a command does not write is then this, not a right result of an earlier call."""
    import numpy as np
    import tensorflow as tf

    # As many blocks as may be free, of each size that an allocator keeps apart. On the device it divides memory into
    # pieces of 256 bytes, and begins with the least that is large enough.
    powers = [256 << i for i in range(9) for _ in range(8 + (256 >> i))]
    for device, sizes in (("/xpu:0", powers), ("/cpu:0", [*range(16, 1040, 16)] * 8)):
        with tf.device(device):
            held = [tf.constant(np.full(size, byte, np.uint8)) for size in sizes]
        held[-1].numpy()
        del held


def types_of(types: dict) -> str:
    return ",".join(t.name for t in types.values())


def verdict_on(prepared, device: str) -> str:
    """True if a call notices that the device's results are wrong."""
    import tensorflow as tf

    try:
        prepared.run_eagerly(device, 1)
    except AssertionError:
        return "noticed"
    except (tf.errors.OpError, ValueError) as error:
        return f"failed: {type(error).__name__}"
    return "survived"


def drawn(registrations: list, sample: int | None, each: int | None) -> list:
    """The part of the registrations that --sample or --each, if given, leave."""
    if sample is not None:
        registrations = random.Random(sample).sample(registrations, min(len(registrations), SAMPLE))
    if each is not None:
        by_op = collections.defaultdict(list)
        for registration in registrations:
            by_op[registration.op].append(registration)
        registrations = [random.Random(f"{each} {op}").choice(of_op) for op, of_op in by_op.items()]
    return registrations


def verdicts(result: str, ops: str, skip: int, sample: int | None, each: int | None) -> Iterator[tuple[str, str, str]]:
    """(op, types, verdict) of each registration but the first `skip`, in this process, whose device is at fault."""
    from tests.sweep.adopted import OPS
    from tests.sweep.cases import CASES
    from tests.sweep.registrations import all_registrations
    from tests.sweep.runner import Prepared, calls_of

    ours = [r for r in all_registrations() if re.fullmatch(ops, r.op) and r.op not in OPS]
    chosen = drawn(ours, sample, each)
    for registration in chosen[skip:]:
        types = registration.type_map
        calls = [Prepared(call) for call in calls_of(registration.op, CASES[registration.op], types)]
        # With memory as it happens to be, and with other bytes there, should it hold the expected values where nothing
        # is written. Those are truth values, and numbers that no rounding explains.
        once = explained(registration.op, types_of(types), result) or result not in ("last", "stale")
        for byte in (None,) if once else (None, 0, 1, 0x41):
            if byte is not None:
                fill_free_memory(byte)
            verdict = next((v for v in (verdict_on(p, "/xpu:0") for p in calls) if v != "survived"), "survived")
            if verdict != "survived":
                break
        yield registration.op, types_of(types), verdict


SAMPLE = 60


def run_fault(
    result: str, ops: str, sample: int | None, progress=print, each: int | None = None
) -> list[tuple[str, str, str]]:
    """The verdicts of all registrations under one fault; a process that dies is followed by another."""
    found: list[tuple[str, str, str]] = []
    environment = {**os.environ, "TF_XPU_FAULT": f"command:result={result}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    began = time.monotonic()
    while True:
        command = [sys.executable, "-m", "tests.mutation", "--child", "--results", result, "--ops", ops]
        command += ["--skip", str(len(found))]
        command += [] if sample is None else ["--sample", str(sample)]
        command += [] if each is None else ["--each", str(each)]
        with tempfile.TemporaryFile("w+") as log:
            child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
            for line in child.stdout:
                found.append(tuple(json.loads(line)))
                if len(found) % 500 == 0:
                    progress(f"{result}: {len(found)} after {time.monotonic() - began:.0f} s")
            if child.wait() == 0:
                return found
            log.seek(0)
            said = log.read()[-2000:]
        if child.returncode > 0:
            raise RuntimeError(f"{' '.join(command)} ended with exit code {child.returncode}:\n{said}")
        found.append(("?", "", f"crashed: signal {-child.returncode}, after {found[-1][:2] if found else 'nothing'}"))


def report(results: list[str], ops: str, sample: int | None, progress=print, each: int | None = None) -> list[str]:
    """Prints what became of each fault, and returns a line for each op that nothing explains."""
    survivors = []
    table = []
    for result in results:
        found = run_fault(result, ops, sample, progress, each)
        count = collections.Counter(verdict.split(":")[0] for _, _, verdict in found)
        by_op = collections.defaultdict(list)
        for op, types, verdict in found:
            why = explained(op, types, result)
            if verdict == "survived" and why:
                count["explained"] += 1
            elif verdict == "survived" or verdict.startswith("crashed"):
                by_op[op, verdict].append(types)
        survivors += [f"{result}: {op}({'; '.join(types)}) {verdict}" for (op, verdict), types in by_op.items()]
        other = sum(map(len, by_op.values()))
        table.append((result, len(found), count["noticed"], count["failed"], count["explained"], other))
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
    parser.add_argument("--each", type=int, help="one kernel of each op, drawn with this seed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--skip", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        for line in verdicts(options.results, options.ops, options.skip, options.sample, options.each):
            print(json.dumps(line), flush=True)
        return 0
    results = options.results.split(",")
    if unknown := set(results) - set(RESULTS):
        parser.error(f"--results: {', '.join(sorted(unknown))} is none of {', '.join(RESULTS)}")
    survivors = report(results, options.ops, options.sample, each=options.each)
    print(f"\n{len(survivors)} unexplained" + "".join(f"\n{line}" for line in survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
