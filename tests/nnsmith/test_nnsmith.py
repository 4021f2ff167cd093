"""A few graphs of NNSmith's. `python -m tests.nnsmith` runs thousands."""

import pytest
from nnsmith.abstract import op as core
from nnsmith.materialize.tensorflow import dialect

from tests.fuzz.__main__ import Report, check
from tests.nnsmith.operators import ABSENT, OPERATORS

pytestmark = [pytest.mark.slow, pytest.mark.host_only]

# Seeds whose graphs once failed: a normalization, whose last outputs nobody compares.
ONCE_WRONG = (1090,)

SOURCE = "tests.nnsmith.generate"


def run(seeds, **environment):
    report, said = Report(), []
    check(seeds, report, said.append, reduce=False, environment=environment, source=SOURCE)
    return report, "\n".join(said)


def test_every_operator_of_nnsmith_is_made_or_has_a_reason():
    known = {cls for name in ("core", "tensorflow") for cls in core.FULL_OPERATOR_SETS[name]}
    assert dialect and known == OPERATORS.keys() | ABSENT.keys()
    assert not OPERATORS.keys() & ABSENT.keys()


def test_graphs_of_nnsmith(xpu_device):
    report, said = run([*ONCE_WRONG, *range(38)])
    assert not report.failed, said
    assert len(report.ops) > 30 and report.steps > 250 and report.clusters.captured > 30, report.table()
    assert sum(report.refused.values()) < report.graphs / 4, report.table()


def test_a_wrong_element_is_seen(xpu_device):
    report, _ = run(range(40, 43), TF_XPU_FAULT="command:result=one")
    assert "differs: with clusters, op by op" in report.failed, report.table()
