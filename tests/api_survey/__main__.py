"""Examines items and prints a line for each that is not whole on the XPU.

python -m tests.api_survey               all of them
python -m tests.api_survey LSTM einsum   those whose name has one of these words in it
"""

import sys
import time
import traceback

import tensorflow as tf

from tests.api_survey.cases import ITEMS
from tests.api_survey.runner import examine


def main(words: list[str]) -> None:
    tf.get_logger().setLevel("ERROR")
    chosen = [item for item in ITEMS if not words or any(word in item.name for word in words)]
    start = time.monotonic()
    whole = 0
    for item in chosen:
        began = time.monotonic()
        try:
            outcome = examine(item)
        except Exception as exception:
            print(f"TABLE {item.name}: {type(exception).__name__}: {str(exception)[-300:]}", flush=True)
            if len(chosen) < 4:
                traceback.print_exc()
            continue
        seconds = time.monotonic() - began
        slow = f" [{seconds:.1f} s]" if seconds > 3 else ""
        if outcome.error:
            print(f"ERROR {item.name}: {outcome.error[:600]}", flush=True)
        if outcome.on_cpu:
            print(f"CPU   {item.name}: {' '.join(sorted(outcome.on_cpu))}{slow}", flush=True)
        elif slow:
            print(f"slow  {item.name}{slow}", flush=True)
        if not outcome.on_xpu:
            print(f"none  {item.name}", flush=True)
        whole += not outcome.error and not outcome.on_cpu
    print(f"{whole} of {len(chosen)} are whole on the XPU, {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
