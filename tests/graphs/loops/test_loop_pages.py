"""The pages of TF_XPU_DUMP_FUSION say of each loop why its iterations are in no cluster's command list."""

import re

import pytest
import tensorflow as tf

from tests.support.loop_programs import branches, condition_of_data, numbers_of_the_device, ops_on_the_cpu
from tests.support.processes import run_code


def with_a_state(x):
    for _ in tf.range(4):
        x += tf.random.uniform([4])
    return x


def that_waits(x):
    for _ in tf.range(4):
        x += tf.cast(tf.shape(tf.where(x > 0))[0], tf.float32)
    return x


def around_another(x):
    for _ in tf.range(2):
        for i in tf.range(6):
            if tf.equal(i % 2, 0):
                x += 1
    return x


def captured(x):
    for i in tf.range(6):
        x = tf.sin(x) + tf.cast(i, tf.float32)
    return x


def of_the_cpu(x):
    with tf.device("/cpu:0"):
        return branches(tf.identity(x))


FUNCTIONS = (
    branches,
    with_a_state,
    ops_on_the_cpu,
    that_waits,
    condition_of_data,
    numbers_of_the_device,
    around_another,
    captured,
    of_the_cpu,
)


def run_each(folder):
    """Runs each function, and prints the lines of the pages of loops that it brings, behind its name."""
    seen = set()
    for function in FUNCTIONS:
        with tf.device("/xpu:0"):
            tf.function(function)(tf.ones([4]))
        for page in sorted(set(folder.iterdir()) - seen):
            seen.add(page)
            if page.name.endswith("_loops.txt"):
                title, empty, *loops = page.read_text().splitlines()
                assert title == "Loops whose iterations are in no cluster's command list" and not empty
                for line in loops:
                    print(f"{function.__name__}: {line}")


LINES = {
    "branches": r"while\S*: not one op, because (Merge|Switch) \S+ is of a condition within the loop",
    "with_a_state": r"while\S*: not one op, because RandomUniform \S+ keeps a state of its own",
    "ops_on_the_cpu": r"while\S*: not one op, because \w+ \S+ is on CPU:0",
    "that_waits": r"while\S*: not one op, because Where \S+ waits for values that the device computes",
    "condition_of_data": r"while\S*: one op, which reads its condition from the device in each iteration",
    "numbers_of_the_device": r"while\S*: one op, which copies values between host and device in each iteration",
}


@pytest.mark.of_hooks("clusters")
def test_each_loop_that_is_in_no_list_has_a_line(tmp_path):
    """A loop that is captured has none, and neither has one that the CPU runs."""
    code = "import os, pathlib\nfrom tests.graphs.loops.test_loop_pages import run_each\n"
    code += "run_each(pathlib.Path(os.environ['TF_XPU_DUMP_FUSION']))"
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome.stderr
    lines = [line.split(": ", 1) for line in outcome.stdout.splitlines()]
    for function, expected in LINES.items():
        found = [line for name, line in lines if name == function]
        assert len(found) == 1 and re.fullmatch(expected, found[0]), outcome.stdout
    inner, outer = sorted((line for name, line in lines if name == "around_another"), key=lambda line: "is not" in line)
    assert re.fullmatch(LINES["branches"], inner), inner
    assert re.fullmatch(r"while\S*: not one op, because the loop within it is not one op: \S+", outer), outer
    assert {name for name, _ in lines} == {*LINES, "around_another"}, outcome.stdout
