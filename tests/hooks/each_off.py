"""The tests of the front end, training and DLPack with each hook left out: they give the same results, or else fail.

`python -m tests.hooks.each_off` runs them once for each hook that may be left out, in Python and in C++, and once
without all that are for speed. `--suite` has it run all tests that are not slow, in two processes, which takes hours.
`--names calls,clusters` takes some of the hooks, `--nth 7` the one whose turn it is; arguments after `--` are pytest's,
in place of the folders. Tests that are about a hook have the mark `of_hooks` and are left out with it
(tests/conftest.py). The exit status is 1 if a test failed, and a line for each hook says so.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time

from tensorflow_xpu.hooks import HOOKS
from tensorflow_xpu.hooks.internals import MAY_BE_LEFT_OUT
from tensorflow_xpu.hooks.patch import SPEED
from tests.support.installed import ROOT

ALL = "all for speed"
# The hooks that are off where this one is, since they need it.
OFF_WITH = {
    "graphs": {"clusters", "direct_calls"},
    "clusters": {"direct_calls"},
    "copies": {"direct_copies", "fork_threads"},
    "eager_tensors": {"thread_state"},
}
OFF_WITH_IN_PYTHON = {"eager_tensors": {"reading", "calls", "functions"}, "thread_state": {"functions"}}
# The hooks that are on and have nothing to do.
IDLE_WITH = {"direct_calls": {"calls"}}
# The hooks in C++ that TF_XPU_HOOKS=0 turns off.
SMALL = {"direct_copies", "shapes"}
FOLDERS = ("tests/front_end", "tests/training", "tests/dlpack")


def left_out():
    """The hooks that an option leaves out of this process, and those that need them; never by a hook's state."""
    names = set(os.environ.get("TF_XPU_HOOKS_WITHOUT", "").split(","))
    if os.environ.get("TF_XPU_HOOKS") == "0":
        names |= {hook.name for hook in HOOKS if hook.kind == SPEED} | SMALL
    for off_with in (OFF_WITH, OFF_WITH_IN_PYTHON, IDLE_WITH):
        names = names.union(*(off_with.get(name, ()) for name in names))
    return names


def rows():
    """The hooks, and the variables that leave each out."""
    names = [*(hook.name for hook in HOOKS if hook.kind == SPEED), *MAY_BE_LEFT_OUT]
    return {ALL: {"TF_XPU_HOOKS": "0"}} | {name: {"TF_XPU_HOOKS_WITHOUT": name} for name in names}


def chosen(names, nth):
    every = list(rows())
    if nth is not None:
        return [every[nth % len(every)]]
    wanted = [name for name in names.split(",") if name] or every
    unknown = sorted(set(wanted) - set(every))
    if unknown:
        raise SystemExit(f"each_off: {unknown[0]!r} may not be left out, expected some of {', '.join(every)}")
    return wanted


def run(name, suite, arguments):
    """True if all tests pass without the hook."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    if suite:
        command += ["-n", "2", "--dist", "worksteal", "-o", "faulthandler_timeout=300", "tests"]
    elif not arguments:
        command += FOLDERS
    environment = {**os.environ, "XPU_SWEEP_KERNELS": "1"} | rows()[name]
    return subprocess.run([*command, *arguments], env=environment, cwd=ROOT, check=False).returncode == 0


def left_out_for_time(names):
    """Says so, and tells tools/run_tests.py."""
    words = f"those without {', '.join(names)}"
    print(f"each_off: left out for time: {words}", flush=True)
    if "XPU_TESTS_LEFT_OUT" in os.environ:
        note = pathlib.Path(os.environ["XPU_TESTS_LEFT_OUT"])
        note.write_text(f"{note.read_text()} and {words}" if note.exists() else words)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default="", help="hooks, with commas between; all if there are none")
    parser.add_argument("--nth", type=int, help="the one whose turn it is on such a day")
    parser.add_argument("--suite", action="store_true", help="all tests that are not slow, not some folders alone")
    parser.add_argument("arguments", nargs="*", help="pytest's, after --")
    options = parser.parse_args()
    names, failed = chosen(options.names, options.nth), []
    for number, name in enumerate(names, 1):
        if number > 1 and time.time() > float(os.environ.get("XPU_TESTS_UNTIL", "inf")):
            left_out_for_time(names[number - 1 :])
            break
        print(f"each_off: without {name} ({number} of {len(names)})", flush=True)
        began = time.monotonic()
        passed = run(name, options.suite, options.arguments)
        print(
            f"each_off: without {name}: {'passed' if passed else 'FAILED'}, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        failed += [] if passed else [name]
    if failed:
        print(f"each_off: a test failed without {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
