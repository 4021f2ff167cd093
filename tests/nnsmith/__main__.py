"""Runs graphs that NNSmith generates in clusters, op by op and on the CPU, and compares them as tests/fuzz does.

    python -m tests.nnsmith --graphs 3000 --seed 0   these seeds and the 2999 that follow
    python -m tests.nnsmith --show 17                the program of a seed, as a person can run it

Needs what requirements-search.txt lists. NNSmith solves constraints on shapes and attributes, so all graphs are valid.
`operators.py` has a function of TensorFlow ops for each of its operators.
"""

from __future__ import annotations

import sys

from tests.fuzz.__main__ import main

if __name__ == "__main__":
    sys.exit(main("python -m tests.nnsmith", "tests.nnsmith.generate"))
