"""No lie to a check of a hook in C++ makes a wrong result, a strange exception or silence (tests/hooks/lies.py)."""

import sys
import time

import pytest

from tensorflow_xpu.hooks.internals import MAY_BE_LEFT_OUT, REQUIRED
from tests.hooks import lies
from tests.support.installed import TENSORFLOW
from tests.support.processes import run

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]

# The table is of these versions: with others the checks look at other things.
TENSORFLOW_OF_THE_TABLE, PYTHON_OF_THE_TABLE = "2.21.0", (3, 11)


def test_the_table_has_every_lie(xpu_device, no_options):
    code = "import json; from tests.hooks.lies import rows_of_checks; print(json.dumps(rows_of_checks()))"
    of_checks = [tuple(row) for row in run("-c", code, cwd=lies.ROOT).json]
    assert {name for name, _, _ in of_checks} == {*REQUIRED, *MAY_BE_LEFT_OUT}, "each check looks at something"
    rows = lies.rows_of_table()
    if (TENSORFLOW, sys.version_info[:2]) == (TENSORFLOW_OF_THE_TABLE, PYTHON_OF_THE_TABLE):
        assert [row[:3] for row in rows] == of_checks, "python -m tests.hooks.lies --write"
    good = ("off with a line", "no XPU, with a line")
    assert [row for row in rows if not row[3].startswith(good) or "results are right" not in row[3]] == []


def outcomes(*options):
    outcome = run("-m", "tests.hooks.lies", *options, cwd=lies.ROOT, timeout=3000)
    assert outcome.returncode == 0 and "BAD" not in outcome.stdout, outcome
    return [tuple(line.split("\t")) for line in outcome.stdout.splitlines()]


def test_the_most_telling_ones(xpu_device, no_options):
    """One without which there is no XPU, and one that others need."""
    found = outcomes("--telling")
    assert {row[0]: row[3] for row in found} == {
        "variables": "no XPU, with a line; results are right",
        "copies": "off with a line, direct_copies off with it, fork_threads off with it; results are right, "
        "a forked child is refused",
    }


@pytest.mark.slow
def test_others(xpu_device, no_options):
    """Others every day, so that each has its turn."""
    assert len(outcomes("--part", f"{int(time.time() // 86400) % 8}/8")) > 10
