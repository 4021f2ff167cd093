"""The stress run's short form, and that it sees a wrong result. 35 seconds."""

import re

import pytest

from tests.support.installed import ROOT
from tests.support.processes import run, run_code

pytestmark = pytest.mark.host_only


@pytest.mark.slow
@pytest.mark.parametrize("allocator", ["bfc", "pool"])
def test_nothing_is_wrong(xpu_device, allocator):
    arguments = ["-m", "tests.stress", "--checks", "400", "--seconds", "240"]
    outcome = run(*arguments, environment={"TF_XPU_ALLOCATOR": allocator}, cwd=ROOT)
    assert outcome.returncode == 0, outcome
    assert "no wrong result" in outcome.stdout, outcome
    assert int(re.findall(r"(\d+) checks", outcome.stdout)[-1]) >= 400, outcome


def test_a_wrong_result_is_seen(xpu_device):
    outcome = run_code(
        """
        import sys
        from tests.stress import __main__ as stress
        name, kinds, parameters, with_tf, with_numpy = stress.OPS[0]
        stress.OPS[0] = name, kinds, parameters, lambda x, p: x + (p + 1), with_numpy
        sys.exit(stress.main(["--seconds", "60", "--seed", "5"]))
        """,
        cwd=ROOT,
    )
    assert outcome.returncode == 1, outcome
    assert "FAILED" in outcome.stdout
    assert "WrongResultError" in outcome.stderr and "seed 5" in outcome.stderr, outcome
