"""The bits that every call of the sweep gives: python -m tests.sweep.digests FILE writes a digest of each, as JSON.

Each op is called twice in the process; a call whose results differ has the digest "differs". Processes with other
numbers of threads are compared by the files (tests/runtime/test_determinism.py).
"""

from __future__ import annotations

import collections
import hashlib
import json
import pathlib
import sys

from tests.sweep.adopted import OPS as ADOPTED
from tests.sweep.cases import CASES
from tests.sweep.registrations import all_registrations
from tests.sweep.runner import Call, Rng, _call, calls_of, hard_placement, nothing_folded

DIFFERS = "differs"


def digest(op: str, kwargs: dict, device: str) -> str:
    """The digest of all results of a call."""
    hashed = hashlib.sha256()
    for t in _call(op, kwargs, device):
        array = t.numpy()
        hashed.update(f"{t.dtype.name}{array.shape}".encode() + array.tobytes())
    return hashed.hexdigest()[:16]


def draws_without_a_seed(call: Call) -> bool:
    """True if two calls are meant to differ: the case examines their results, and no comparison is made."""
    return call.case.check is not None or call.case.stateful


def digests(kernels_of_each: int, device: str = "/xpu:0") -> dict[str, str]:
    """By call; of each op so many kernels, evenly spread over all, or all if that is 0."""
    import tensorflow as tf

    by_op = collections.defaultdict(list)
    for registration in all_registrations():
        if registration.op not in ADOPTED:
            by_op[registration.op].append(registration)
    found = {}
    for op, registrations in by_op.items():
        step = max(len(registrations) // kernels_of_each, 1) if kernels_of_each else 1
        for registration in registrations[::step][: kernels_of_each or None]:
            for call in calls_of(op, CASES[op], registration.type_map):
                if draws_without_a_seed(call):
                    continue
                with hard_placement(), nothing_folded():
                    with tf.device("/cpu:0"):
                        kwargs = call.case.make(call.types, Rng(call.seed))
                    first, second = (digest(op, kwargs, device) for _ in range(2))
                found[str(call)] = first if first == second else DIFFERS
    return found


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(json.dumps(digests(int(sys.argv[2]))))
