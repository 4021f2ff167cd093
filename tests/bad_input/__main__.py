"""python -m tests.bad_input                        draws and runs calls of every op, and prints what is wrong
python -m tests.bad_input --ops 'MatMul|Conv.*'   of these alone
python -m tests.bad_input --isolated              with device memory protected from the host
python -m tests.bad_input --traced                in tf.functions that know the types of their tensors alone
python -m tests.bad_input --call '{"op": ...}'    one call, as it was printed
"""

from __future__ import annotations

import argparse
import collections
import re
import sys
import time

from tests.bad_input import spoil
from tests.bad_input.excused import excused
from tests.bad_input.verdicts import verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default=".*", help="a regular expression for the whole name")
    parser.add_argument("--count", type=int, default=8, help="so many calls of each op")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--isolated", action="store_true", help="TF_XPU_ISOLATE_MEMORY=1")
    parser.add_argument("--traced", action="store_true", help="in a tf.function, all shapes unknown")
    parser.add_argument("--call", action="append", help="a call as JSON")
    parser.add_argument("--all", action="store_true", help="print what is right, too")
    options = parser.parse_args()
    ops = [op for op in spoil.choices() if re.fullmatch(options.ops, op)]
    calls = [s for op in ops for s in spoil.draw(op, options.count, options.seed, options.traced)]
    if options.call:
        calls = [spoil.Spoiled.from_json(text) for text in options.call]
    print(f"{len(calls)} calls of {len({c.op for c in calls})} ops", flush=True)
    began = time.monotonic()
    environment = {"TF_XPU_ISOLATE_MEMORY": "1"} if options.isolated else {}
    found = verdicts(
        calls, environment, lambda words: print(f"{words} after {time.monotonic() - began:.0f} s", flush=True)
    )
    wrong = 0
    for call, verdict in zip(calls, found):
        bad = verdict.wrong and not excused(call, verdict)
        wrong += bad
        if bad or options.all or options.call:
            print(f"{'WRONG ' if bad else ''}{verdict.kind}: {call}\n    {call.to_json()}\n    {verdict.details}")
    print(collections.Counter(verdict.kind for verdict in found))
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
