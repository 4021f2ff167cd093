"""The figures that the benchmarks print belong together."""

import dataclasses
import json
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import contest, document, families, models, opencl, plots, race, suite, workloads
from benchmarks.measure import CPU, XPU, Result, alternate, middle, put
from benchmarks.roofline import Roof
from tensorflow_xpu import _families
from tensorflow_xpu._measure import amount
from tests.support.installed import ROOT
from tests.support.processes import run, run_code

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


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(1.5, "s", "1.5 s"), (0.0213, "s", "21.3 ms"), (2e-10, "s", "0.2 ns"), (3 << 20, "B", "3 MiB"), (0, "B", "0 B")],
)
def test_amounts_have_units(value, unit, said):
    assert amount(value, unit) == said


@pytest.mark.parametrize("name", ["MLP", "decoder"])
def test_models_do_the_same_on_both_devices(name, xpu_device):
    """Or their times could not be compared."""
    xpu, cpu = models.make(name, XPU), models.make(name, CPU)
    seen = [[np.asarray(value) for value in tf.nest.flatten((xpu(), cpu()))] for _ in range(3)]
    for on_xpu, on_cpu in seen:
        np.testing.assert_allclose(on_xpu, on_cpu, rtol=1e-4)
    assert name != "MLP" or seen[2][0] < seen[0][0]  # it learns


def test_the_sections_of_the_page_have_an_order():
    text = "# Head\nof it\n\n## dispatch\n\nold\n\n## devices\n\nkept\n"
    parts = document.sections(text)
    assert parts == {"": "# Head\nof it\n", "dispatch": "\nold\n", "devices": "\nkept\n"}
    assert document.written(parts) == text
    more = parts | {"models": "added", "contest": "first", "dispatch": "new"}
    new = "# Head\nof it\n\n## contest\n\nfirst\n\n## dispatch\n\nnew\n\n## models\n\nadded\n\n## devices\n\nkept\n"
    assert document.written(more) == new
    assert document.written(document.sections(new)) == new


def test_figures_are_written_and_read(tmp_path):
    results = [Result("Mul", "8x8", 1.5e-6, 3e-6, "a note"), Result("MLP", "", 1024.0, 4096.0, unit="B")]
    document.write_data("op table", results, tmp_path)
    assert document.read_data("op table", tmp_path) == results
    (tmp_path / "models.tsv").write_text("what\tsize\n")
    with pytest.raises(ValueError, match=r"models\.tsv has the columns \['what', 'size'\]"):
        document.read_data("models", tmp_path)


def test_the_page_is_what_the_figures_say():
    """After `python -m benchmarks --render`, whatever has been measured."""
    text = document.PATH.read_text()
    assert document.written(document.parts(text)) == text


def test_the_page_begins_with_the_contests_answer():
    rows = [row(XPU=[1.0], TensorFlow=[2.0], JAX=[4.0]), row(XPU=[1.0], PyTorch=[8.0])]
    rows[1].workload = "another"
    assert document.head(rows).startswith("# Benchmarks\n\n2 models run 4.00 times as fast")
    assert "lowest ratio is 2.00 (MLP)" in document.head(rows).replace("\n", " ")
    assert document.means(rows) == pytest.approx({"XPU": 1, "TensorFlow": 2, "JAX": 4, "PyTorch": 8})
    assert "deployed" not in document.head(rows)
    deployed = [row(XPU=[1.0], LiteRT=[0.5], OpenVINO=[4.0]), row(XPU=[1.0], LiteRT=[2.0], OpenVINO=[4.0])]
    for one, batch in zip(deployed, (1, 8), strict=True):
        one.workload = f"MLP, {batch}"
    told = document.head(rows, deployed).replace("\n", " ")
    assert (
        "1 deployed models, with one example and with eight, run 1.00 times as fast as on the fastest of LiteRT" in told
    )
    assert "the lowest ratio is 0.50 (MLP, 1)" in told


def test_the_readme_has_the_contests_answer():
    rows = document.rows_of("contest")
    ratios = document.best_ratios(rows).values()
    said = f"{len(rows)} models run {statistics.geometric_mean(ratios):.2f} times as fast"
    range_said = f"(geometric mean, {min(ratios):.2f} to {max(ratios):.2f})"
    readme = (ROOT / "README.md").read_text()
    assert said in readme and range_said in readme
    ratios = document.best_ratios(document.rows_of("inference")).values()
    said = f"run {statistics.geometric_mean(ratios):.2f} times as fast as on the best of OpenVINO"
    assert said in readme and f"({min(ratios):.2f} to {max(ratios):.2f})" in readme


def test_the_page_has_the_slow_ops_alone():
    few = [Result("Fast", "", 1.0, 2.0), Result("Slow", "", 3.0, 2.0, "waits"), Result("Slowest", "", 4.0, 2.0)]
    text = document.single_ops({"op table": few, "random": [Result("Even", "", 1.0, 1.0)]})
    assert "| [op table](../benchmarks/results/op_table.tsv) | 3 | 1.14 | 0.50 | 2.00 | 2 |\n" in text
    assert text.endswith("| Slowest |  | 4 s | 2 s | 2.00 |  |\n| Slow |  | 3 s | 2 s | 1.50 | waits |")


REPEATED = """
import json
import numpy as np
from benchmarks.measure import XPU, graphs_as_written, repeated, seconds
x = np.ones((768, 768), np.float32)
with graphs_as_written():
    once, often = (repeated(lambda a, b: a @ b, [x, x], XPU, n) for n in (1, 16))
    once(), often()
    print(json.dumps(min(seconds(often) for _ in range(5)) / min(seconds(once) for _ in range(5))))
"""


def test_repeated_ops_are_computed_repeatedly(xpu_device):
    """Their time would else be divided by a number of runs that never were. Clusters compute one, which is why single
    ops are measured without them.
    """
    assert run_code(REPEATED, environment={"TF_XPU_FUSION": "0"}).json > 8
    assert run_code(REPEATED, environment={"TF_XPU_FUSION": "1"}).json < 4


def test_single_ops_are_measured_without_clusters(monkeypatch):
    asked = []
    monkeypatch.setattr(suite, "lines_of", lambda *command, **environment: asked.append((command, environment)) or [])
    for group in suite.SINGLE_OPS:
        assert list(suite.GROUPS[group]()) == []
    assert asked == [(("benchmarks.suite", group), {"TF_XPU_FUSION": "0"}) for group in suite.SINGLE_OPS]


def test_the_op_table_has_every_family():
    assert not families.FAMILIES.keys() & families.NOT_MEASURED.keys()
    assert families.FAMILIES.keys() | families.NOT_MEASURED.keys() == _families.FAMILIES.keys()
    for name, family in families.FAMILIES.items():
        assert set(family.ops) <= set(_families.FAMILIES[name].split()), name
        assert list(family.sizes) == sorted(set(family.sizes)), name
    assert families.NOTES.keys() <= {op for family in families.FAMILIES.values() for op in family.ops}


def test_the_slowest_ops_come_first(monkeypatch):
    results = [Result("a", "", 2.0, 1.0), Result("b", "", 8.0, 1.0), Result("c", "", 1.0, 2.0)]
    printed = [json.dumps(dataclasses.asdict(result)) for result in results]
    monkeypatch.setattr(families, "lines_of", lambda *command, **environment: printed)
    assert [r.name for r in families.table()] == ["b", "a", "c"]


def test_the_op_table_of_a_family(xpu_device):
    done = run("-m", "benchmarks.families", "state", environment={"TF_XPU_FUSION": "0"}, cwd=ROOT)
    results = [Result(**json.loads(line)) for line in done.stdout.splitlines()]
    assert [r.name for r in results] == [op for op in families.STATE.ops for _ in families.LABELS]
    assert results[2].size == "large: 1048576"
    for result in results:
        assert 1e-7 < result.xpu < 1 and 1e-7 < result.cpu < 1


def row(**rounds):
    return race.Row("MLP", rounds, {}, {})


def test_the_best_of_the_others_is_beaten_or_not():
    won = row(XPU=[1.0, 2.0, 4.0], TensorFlow=[2.0, 6.0, 4.0], JAX=[9.0, 9.0, 9.0])
    assert won.best() == "TensorFlow"
    assert won.times_as_fast("TensorFlow") == 2.0  # of 2, 3 and 1: each round's own ratio
    lost = row(XPU=[4.0], TensorFlow=[6.0], JAX=[1.0])
    assert (lost.best(), lost.times_as_fast("JAX")) == ("JAX", 0.25)
    lines = contest.table([won, lost], {"MLP": "of some size"}).splitlines()
    assert lines[2].startswith("| MLP: of some size | 2e+03 | 4e+03 | - |")
    assert lines[2].endswith("| 2.00 | - |")
    assert lines[-1].endswith("| 0.71 | |")  # the geometric mean of 2 and 1/4
    roof = Roof(flops=1e9, bfloat16_flops=1e10, memory=1e8, cached=1e9)
    won.commands = [(1e9, 10.0), (0.0, 1e6), (1e3, 1e8)]  # 1 s by operations, 1 ms in the cache, 1 s by memory
    assert roof.seconds(won.commands) == pytest.approx(2.001)
    assert roof.seconds(won.commands, bfloat16=True) == pytest.approx(1.101)
    assert contest.table([won], {"MLP": "of some size"}, roof).splitlines()[2].endswith("| 2.00 | 100% |")


def test_plots_show_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "FOLDER", tmp_path)
    rows = [row(XPU=[1.0], TensorFlow=[2.0], JAX=[0.5]), row(XPU=[1.0], PyTorch=[3.0])]
    rows[1].workload = "another"
    text = plots.contest(rows, "a machine").read_text()
    assert all(word in text for word in ("MLP", "another", "JAX", "PyTorch", "a machine", "1.22 times as fast"))
    text = plots.means({"in Keras": rows, "not measured": [], "deployed": rows[:1]}, "a machine").read_text()
    assert "in Keras" in text and "deployed" in text and "not measured" not in text
    assert all(
        word in text for word in ("TensorFlow", "JAX", "PyTorch", "2 models on a machine", "1.22", "0.50", "3.00")
    )
    text = plots.scales({"batch": {1: rows[0], 8: rows[0]}}, ["XPU", "JAX"]).read_text()
    assert "batch" in text
    assert plots.scales({"batch": {1: rows[0], 8: rows[0]}}, ["XPU", "JAX"]).read_text() == text


def test_a_workload_of_a_scale_is_found():
    for kind, sizes in workloads.SCALES.items():
        for size, workload in sizes.items():
            assert workloads.find(f"{kind}={size}") is workload
    assert workloads.find("MLP") is workloads.WORKLOADS["MLP"]
    assert set(contest.VARIED) <= set(workloads.WORKLOADS)


def test_the_commands_of_a_step_are_counted(xpu_device):
    commands = race.measure("MLP", [race.XPU], rounds=1, counted=True).commands
    # Three products forward, five backward, each 2 x 128 x rows x columns.
    least = 2 * 128 * (784 * 256 * 2 + 256 * 128 * 3 + 128 * 10 * 3)
    assert least <= sum(flops for flops, _ in commands) <= 1.2 * least


CONTESTANT = """
import json, sys
for turn, _ in enumerate(sys.stdin):
    if turn == {turns}:
        sys.exit("out of strength")
    print("chatter"); print(json.dumps({{"seconds": {seconds}, "whole": 9.0, "loss": 1.0}}), flush=True)
"""


@pytest.fixture
def contestants(monkeypatch):
    """Makes contestants of (seconds of a step, turns until it fails)."""

    def make(**given):
        def start(self, contestant, workload):
            seconds, turns = given[contestant]
            code = CONTESTANT.format(seconds=seconds, turns=turns)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            self._process = subprocess.Popen([sys.executable, "-c", code], **pipes)

        monkeypatch.setattr(race.Process, "__init__", start)
        return race.measure("MLP", list(given), rounds=3)

    return make


def test_contestants_take_turns_and_may_fail(contestants):
    measured = contestants(XPU=(0.5, 99), TensorFlow=(1.5, 99), JAX=(1.0, 1))
    assert measured.rounds == {"XPU": [0.5] * 3, "TensorFlow": [1.5] * 3}
    assert measured.failed == {"JAX": "out of strength"}
    assert measured.times_as_fast("TensorFlow") == 3.0


def test_one_that_fails_late_is_out(contestants):
    measured = contestants(XPU=(0.5, 99), TensorFlow=(1.5, 4))
    assert list(measured.rounds) == ["XPU"]
    assert measured.failed == {"TensorFlow": "out of strength"}


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [
        ("1 if turn < 5 else 1.1", 3),
        ("2 if turn == 2 else 1", 4),  # the first of the rounds: turns 0 and 1 are none
        ("1 + turn % 2", 9),  # never
    ],
)
def test_rounds_that_differ_are_more(contestants, seconds, rounds):
    measured = contestants(XPU=(1.0, 99), JAX=(seconds, 99))
    assert [len(times) for times in measured.rounds.values()] == [rounds, rounds]


@pytest.mark.parametrize("name", ["many small ops", "graph network", "one token"])
def test_workloads_do_the_same_on_both_devices(name, xpu_device):
    losses = []
    for device in (XPU, CPU):
        with tf.device(device):
            start = time.perf_counter()
            seconds, loss = workloads.make(name)()
            whole = time.perf_counter() - start
        losses.append(loss)
        assert 0.05 * whole < seconds * workloads.WORKLOADS[name].steps < whole
    assert np.isfinite(losses[0])
    np.testing.assert_allclose(*losses, rtol=1e-3)


def test_only_what_was_measured_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Head\n\n<!-- measured: begin -->\nold\n<!-- measured: end -->\n\nkept\n")
    put(page, "new \\1")
    assert page.read_text() == "# Head\n\n<!-- measured: begin -->\nnew \\1\n<!-- measured: end -->\n\nkept\n"
    page.write_text("# Head\n")
    with pytest.raises(ValueError, match=r"page\.md has 0 places for what was measured"):
        put(page, "new")


def test_every_primitive_of_the_opencl_backend_can_be_measured():
    """Its figures need a quiet machine: they come with the next `python -m benchmarks opencl --write`."""
    there = (ROOT / "tensorflow_plugin/backends/gpu/primitives/primitives.h").read_text()
    assert re.findall(r"^XPU_HAS_KERNELS\((\w+)\)$", there, re.MULTILINE) == list(opencl.CASES)
    measured = opencl.PAGE.read_text().partition("measured: begin")[2]
    rows = re.findall(r"^\| (\w+, \w+) \|", measured, re.MULTILINE)
    known = [f"{name}, {op}" for name, (op, _, _) in opencl.CASES.items()]
    assert len(rows) > 30
    assert rows == [name for name in known for _ in opencl.SIZES if name in rows]


def test_the_table_of_the_opencl_backend():
    rounds = {opencl.OPENCL: [2.0, 8.0, 3.0], opencl.REFERENCE: [4.0, 4.0, 4.0], opencl.STOCK: [1.0, 1.0, 3.0]}
    other = {name: [1.0] * 3 for name in rounds}
    text = opencl.table([opencl.Row("MatMul", "small", rounds), opencl.Row("Softmax", "large", other)])
    assert text.splitlines()[2:] == [
        "| MatMul, MatMul | 64x64, 64x64 | 3 s | 0.75 | 2.00 |",
        "| Softmax, Softmax | 16384x64 | 1 s | 1.00 | 1.00 |",
        "| geometric mean | | | 0.87 | 1.41 |",
    ]


def test_backends_take_turns_at_a_primitive(tmp_path, monkeypatch, opencl_driver):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small, large = opencl.measured(["MatMul"], rounds=2)
    assert (small.size, large.size) == opencl.SIZES
    for backend in opencl.ENVIRONMENTS:
        assert len(small.rounds[backend]) == len(large.rounds[backend]) == 2
        assert large.median(backend) > small.median(backend)  # 512 times as many products
    assert small.ratio(opencl.OPENCL) == 1.0
    assert large.ratio(opencl.REFERENCE) < 1  # plain loops on one thread
    assert list(tmp_path.rglob("*")) != []  # kernels: it was the OpenCL backend
