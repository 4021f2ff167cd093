"""`python -m tensorflow_xpu bench`: what it says belongs together, and bad input is refused at once."""

import json
import re

import pytest

from tensorflow_xpu import bench
from tensorflow_xpu.bench import CASES, Measurement, draw, geometric_mean
from tests.support.processes import run
from tests.support.requirements import need

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation, pytest.mark.usefixtures("no_options")]


def benchmark(*arguments, **options):
    return run("-m", "tensorflow_xpu", "bench", *arguments, **options)


def test_a_measurement_has_medians_of_times_and_of_ratios():
    rounds = [(1.0, 2.0), (2.0, 2.0), (1.0, 4.0), (4.0, 2.0), (1.0, 3.0)]
    assert Measurement.of("x", rounds) == Measurement("x", 1.0, 2.0, 2.0, 1.0, 3.0, 5)


def test_faster_and_slower_cancel_out():
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([2.0, 2.0, 16.0]) == pytest.approx(4.0)


def test_every_case_can_be_measured():
    from tensorflow_xpu._bench import models, ops

    there = {group: {(c.name, c.size) for c in cases()} for group, cases in ops.SINGLE_OPS.items()}
    there["models"] = {(name, "") for name in models.MODELS}
    assert [case for case in CASES if (case.name, case.size) not in there[case.group]] == []
    assert len({case.title for case in CASES}) == len(CASES)


def test_one_op_and_the_plot_of_it(xpu_device, tmp_path):
    outcome = benchmark("sum col*", "--json", "--plot", tmp_path / "seen.svg")
    assert outcome.returncode == 0, outcome
    report = json.loads(outcome.stdout)
    (case,) = report["cases"]
    assert case["title"] == "Sum columns medium 256k"
    assert report["backend"] == "XPU_HOST"
    assert report["geometric_mean"] == pytest.approx(case["times_as_fast"])
    assert case["low"] <= case["times_as_fast"] <= case["high"]
    assert 5 <= case["rounds"] <= 15
    # The medians of times are of other rounds than the median of ratios.
    assert case["cpu"] / case["xpu"] == pytest.approx(case["times_as_fast"], rel=0.9)
    assert 5e-6 < case["xpu"] < 0.5, "seconds of one sum of 256 k elements"
    assert "<svg" in (tmp_path / "seen.svg").read_text()


@pytest.mark.slow
def test_a_model_as_text(xpu_device):
    outcome = benchmark("MLP")
    assert outcome.returncode == 0, outcome
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith("XPU_HOST and TensorFlow's CPU on ")
    assert lines[2].split() == ["XPU", "CPU", "times", "as", "fast"]
    assert re.fullmatch(r"MLP step +\S+ [mu]?s +\S+ [mu]?s +[\d.]+  \([\d.]+ to [\d.]+\)", lines[3])
    assert re.fullmatch(r"All in all [\d.]+ times as fast \(the geometric mean\)\.", lines[-1])
    assert "\033[" not in outcome.stdout + outcome.stderr


def test_the_plot_shows_the_numbers(tmp_path):
    from matplotlib.figure import Figure

    drawn = []
    save = Figure.savefig
    try:
        Figure.savefig = lambda figure, path: drawn.append(figure)
        draw([Measurement("a", 1, 2, 2.0, 1.5, 2.25, 5), Measurement("b", 4, 1, 0.25, 0.2, 0.3, 5)], "t", tmp_path)
    finally:
        Figure.savefig = save
    (axes,) = drawn[0].axes
    assert [patch.get_x() + patch.get_width() for patch in axes.patches] == [2.0, 0.25]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    (spread,) = axes.collections
    assert [segment[:, 0].tolist() for segment in spread.get_segments()] == [[1.5, 2.25], [0.2, 0.3]]


def test_wrong_usage(tmp_path):
    for arguments, words in [
        (["nonsense"], "no case is called 'nonsense': --list names them"),
        (["--plot", tmp_path / "x.nonsense"], "expected one of"),
        (["--plot", tmp_path / "nowhere" / "x.png"], "cannot be written: expected a file in a folder that can be"),
    ]:
        outcome = benchmark(*arguments)
        assert outcome.returncode == 2, outcome
        assert words in outcome.stderr
        assert outcome.stdout == ""
    assert benchmark("--list").stdout.splitlines() == [case.title for case in CASES]


def test_without_matplotlib_or_an_xpu(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.backends.backend_agg", None)
    with pytest.raises(SystemExit) as ended:
        bench.main(["--plot", str(tmp_path / "x.png")])
    assert ended.value.code == 2
    assert "pip install matplotlib" in capsys.readouterr().err
    outcome = benchmark("--json", environment={"TF_XPU_DISABLE": "1"})
    assert outcome.returncode == 1, outcome
    assert "TensorFlow lists no XPU" in json.loads(outcome.stdout)["error"]


@pytest.mark.slow
def test_tokens_per_second(xpu_device):
    need("keras_hub", file="requirements-models.txt")
    from tensorflow_xpu._bench import generate

    size = {"vocabulary_size": 100, "num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
    weights = {}
    for mode in bench.MODES:
        result = generate.generate(mode, size, prompt=4, new=8)
        assert 1 < result["tokens_per_second"] < 1e6
        weights[mode] = result["weight_bytes"]
    # Words, four products of attention and two behind it, which are twice as wide.
    assert 4 * (100 * 16 + 8 * 16 * 16) < weights["float32"] < 5 * (100 * 16 + 8 * 16 * 16)
    assert weights["float32"] > weights["int8"] > weights["int4"] > 0
    assert 1e8 < generate.bandwidth(256) < 1e13


def test_generation_goes_alone():
    outcome = benchmark("--generate", "MLP")
    assert outcome.returncode == 2, outcome
    assert "--generate goes with --json only" in outcome.stderr


def test_generation_without_an_xpu(monkeypatch, capsys):
    monkeypatch.setenv("TF_XPU_DISABLE", "1")
    assert bench.main(["--generate", "--json"]) == 1
    assert "doctor" in json.loads(capsys.readouterr().out)["error"]
