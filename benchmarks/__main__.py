"""`python -m benchmarks [group ...]`: measures and prints; for all groups, or with --write, writes docs/benchmarks.md.

The figures go into benchmarks/results, from which the page is made; --render makes the page without measuring. The
group dlpack compares libraries instead of devices and writes docs/dlpack.md. The group opencl compares backends, only
if it is named, and with --write writes docs/opencl.md.
"""

from __future__ import annotations

import argparse
import os
import sys

import tensorflow as tf

from benchmarks import dlpack, document, opencl, suite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[[], *suite.GROUPS, "dlpack", "opencl"], help="default: all")
    parser.add_argument("--write", action="store_true", help="write these groups' figures, and the document")
    parser.add_argument("--render", action="store_true", help="measure nothing; write the document from the figures")
    options = parser.parse_args()
    if options.render:
        document.render()
        print(f"wrote {document.PATH}")
        return 0
    asked = options.groups or [*suite.GROUPS, "dlpack"]
    groups = [group for group in asked if group in suite.GROUPS]
    if not tf.config.list_physical_devices("XPU"):
        print("no XPU is visible: run `python -m tensorflow_xpu doctor`", file=sys.stderr)
        return 1
    measured = {}
    for group in groups:
        print(f"-- {group}", flush=True)
        measured[group] = []
        for result in suite.GROUPS[group]():
            measured[group].append(result)
            print(document.row(result), flush=True)
    if len(groups) == len(suite.GROUPS) or (groups and options.write):
        for group, results in measured.items():
            document.write_data(group, results)
        backend = os.environ.get("TF_XPU_SUBDEVICE", "XPU_HOST")
        document.measured_now(groups, backend=backend, tensorflow=tf.__version__)
        document.render()
        print(f"wrote {document.PATH}")
    if "dlpack" in asked:
        dlpack.run()
    if "opencl" in asked:
        opencl.run(options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
