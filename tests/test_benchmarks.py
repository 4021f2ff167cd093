"""The figures that the benchmarks print belong together."""

import pytest

from benchmarks.measure import Result, alternate, middle

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


def test_the_middle_round_is_one_that_was_seen():
    rounds = [(3.0, 1.0), (1.0, 4.0), (2.0, 2.0), (8.0, 3.0), (1.0, 9.0)]
    assert middle(rounds) == (2.0, 2.0)
    assert middle(rounds[:4]) == (2.0, 2.0)  # of two in the middle, the lower one
    assert middle([(5.0, 2.0)]) == (5.0, 2.0)


def test_the_ratio_is_that_of_the_times_beside_it():
    assert Result("", "", *middle([(3.0, 1.0), (1.0, 4.0), (1.0, 2.0)])).ratio == 0.5


def test_both_sides_take_turns():
    calls = []
    times = alternate(lambda: calls.append("a"), lambda: calls.append("b"), rounds=3, warmup=1)
    assert calls == ["a", "b"] * 4
    assert len(times) == 2
