"""The fuzzer of graphs in its short form, and that it sees what is wrong and nothing else. Half a minute."""

import dataclasses
import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from tests.fuzz import generate, programs, reference
from tests.fuzz.__main__ import Report, check
from tests.fuzz.comparison import Comparison
from tests.fuzz.programs import Op, Program, Value
from tests.fuzz.workers import EndedError, Worker, execute, make
from tests.support.processes import run as run_python
from tests.sweep.cases import CASES
from tests.sweep.runner import hard_placement

pytestmark = pytest.mark.host_only

# Seeds whose graphs once differed.
ONCE_WRONG = (8, 53, 70, 448, 708)


def run(seeds, **environment):
    """The output of the fuzzer for these seeds."""
    report, said = Report(), []
    check(seeds, report, said.append, reduce=False, environment=environment)
    return report, "\n".join(said)


def test_random_graphs(xpu_device):
    report, said = run([*ONCE_WRONG, *range(10_000, 10_012)])
    assert not report.failed, said
    assert len(report.clusters.ops) > 30 and report.clusters.captured > 8, report.table()
    assert sum(report.refused.values()) < report.graphs / 4, report.table()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_more_random_graphs(block, xpu_device):
    report, said = run(range(20_000 + 60 * block, 20_060 + 60 * block))
    assert not report.failed, said


def test_a_wrong_element_is_seen(xpu_device):
    report, _ = run(range(10_000, 10_003), TF_XPU_FAULT="command:result=one")
    assert {"differs: with clusters, op by op"} <= set(report.failed), report.table()


def test_a_crash_is_seen(xpu_device):
    worker = Worker({})
    first = worker.ask("make", 1)
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(EndedError, match="ended with -9"):
        worker.ask("make", 2)
    assert worker.ask("make", 1).text()[0] == first.text()[0]  # another process makes the same of the seed
    worker.stop()


def program(steps, *values, outputs):
    return Program(tuple(range(len(values))), (values,), (0,), False, (), tuple(steps), outputs)


def unary(op, x, number, dtype=tf.float32):
    return Op(op, {"T": dtype}, 0, {"x": Value(x)}, (number,))


def bounded(steps, *values, outputs):
    with hard_placement():
        return reference.results(program(steps, *values, outputs=outputs))[0][0]


def test_what_is_exact_has_no_error():
    x = np.float32([0.5, 2.25, -3.0])
    floor, square = bounded([unary("Floor", 0, 1), unary("Square", 0, 2)], x, outputs=(1, 2))
    assert floor.error is None and square.error is None


def test_one_operation_is_exact_where_the_cpu_has_rounded_it():
    case, fifth = CASES["Reciprocal"][0], np.float64([0.2])
    rounded = fifth.astype(np.float32)
    assert reference.exact_on_any_device(case, rounded, fifth, {})
    assert not reference.exact_on_any_device(case, np.nextafter(rounded, np.float32(0)), fifth, {})


def test_errors_grow_with_what_is_made_of_them():
    x = np.float32([0.5, 2.25, 3.0])
    tanh, exp = bounded([unary("Tanh", 0, 1), unary("Exp", 1, 2)], x, outputs=(1, 2))
    assert np.all(tanh.error > 0) and np.all(tanh.error < 1e-6)
    assert np.all(exp.error > tanh.error) and np.all(exp.error < 1e-5)


def test_an_index_out_of_range_is_refused_everywhere(xpu_device):
    arguments = {"params": Value(0), "indices": Value(1), "axis": np.array(0, np.int32), "batch_dims": 0}
    gather = Op("GatherV2", {"Tparams": tf.float32, "Tindices": tf.int64, "Taxis": tf.int32}, 0, arguments, (2,))
    good = program([unary("Neg", 0, 3), gather], np.float32([1, 2, 3]), np.int64([2, 0]), outputs=(2, 3))
    good = dataclasses.replace(good, values=2 * good.values, calls=(0, 1, 0))
    bad = generate.Generator(0).spoiled(good)
    assert np.array_equal(bad.values[0][1], [2, 0]) and bad.values[1][1].max() == generate.OUT_OF_RANGE
    comparison = Comparison()
    for spoiled, refused in ((good, ""), (bad, "InvalidArgumentError")):
        verdict = comparison.verdict(spoiled)
        assert (verdict.kind, verdict.refused) == ("", refused), verdict.details
    comparison.stop()


def test_a_step_that_turns_rounding_into_something_else_is_not_suitable():
    zero_or_one = np.float32(1) - np.tanh(np.float32(0.5))  # their sum is 1, or nearly
    steps = [unary("Tanh", 0, 2), Op("AddV2", {"T": tf.float32}, 0, {"x": Value(2), "y": Value(1)}, (3,))]
    values = np.float32([0.5]), np.float32([zero_or_one])
    assert bounded(steps, *values, outputs=(3,))[0].error > 0
    with pytest.raises(reference.UnsuitableError, match="error too large"):
        bounded([*steps, unary("Floor", 3, 4)], *values, outputs=(4,))


def test_what_is_printed_runs(xpu_device, tmp_path):
    """And gives what the fuzzer has run."""
    for seed in range(10_003, 10_020):  # some have an index that is none, and fail
        found = make(seed)
        on_device = execute(found, xpu_device)
        if not on_device.error:
            break
    file = tmp_path / "program.py"
    file.write_text(programs.standalone(found, f"Seed {seed}"))
    outcome = run_python(file)
    assert outcome.returncode == 0, outcome
    lines = [*(str(a) for call in on_device.calls for a in call), *(f"variable {a!s}" for a in on_device.variables)]
    assert outcome.stdout.strip() == "\n".join(lines).strip()


def test_a_program_without_a_step_is_without_what_hangs_on_it():
    steps = [unary("Floor", 0, 1), unary("Square", 1, 2), unary("Neg", 0, 3)]
    whole = program(steps, np.float32([1.5]), outputs=(2, 3))
    rest = programs.reduced(whole, [steps[0]])
    assert rest.steps == (steps[2],) and rest.outputs == (3,)
    assert dataclasses.replace(rest, steps=whole.steps, outputs=whole.outputs) == whole
