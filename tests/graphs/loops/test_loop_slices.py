"""Slices that begin at the count of a loop that copies values between host and device.

They are members of the loop's cluster, which uploads the begin. The numbers and errors are the CPU's.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.support.processes import run_code

TABLE = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
CUBE = np.linspace(-2, 3, 6 * 5 * 7, dtype=np.float32).reshape(6, 5, 7)
FLAGS = np.arange(24).reshape(4, 6) % 3 == 0
NOTHING = np.zeros((6, 0, 3), np.float32)


def copying(step):
    """A loop that reads a number of the device in each iteration, as that of text generation does. `step` gets the
    count, which begins at an argument."""

    def loop(table, first):
        written = tf.zeros([3], tf.int32)
        x = tf.zeros([3])
        for i in tf.range(3):
            x = tf.sin(x) + tf.cast(written[i // 2], tf.float32) + step(table, first + i)
            token = 1 + tf.argmax(tf.reshape(x, [-1]), output_type=tf.int32)
            written = tf.where(tf.equal(tf.range(3), i), token, written)
        return x, written

    return tf.function(loop)


def total(x):
    return tf.reduce_sum(tf.cast(x, tf.float32)) * tf.constant([0.5, 0.7, 0.3])


FORMS = {
    "a row": (TABLE, lambda t, i: total(t[i])),
    "a column": (TABLE.T, lambda t, i: total(t[:, i])),
    "a column of flags": (FLAGS, lambda t, i: total(t[:, i])),
    "behind an ellipsis": (CUBE, lambda t, i: total(t[..., i])),
    "from the end": (TABLE, lambda t, i: total(t[-1 - i])),
    "an axis in the middle": (CUBE.transpose(1, 0, 2), lambda t, i: total(t[:, i] * tf.range(7.0))),
    "two axes": (CUBE, lambda t, i: total(t[i, 1] * tf.range(7.0))),
    "two axes in the middle": (CUBE[None].repeat(2, 0), lambda t, i: total(t[:, i, 2 - i, :] * tf.range(7.0))),
    "a new axis": (CUBE, lambda t, i: total(t[i, tf.newaxis] * tf.range(7.0))),
    "every other row": (TABLE.T, lambda t, i: total(t[::2, i] * tf.range(2.0))),
    "backwards": (TABLE.T, lambda t, i: total(t[::-1, i] * tf.range(4.0))),
    "a number of 64 bits": (TABLE, lambda t, i: total(t[tf.cast(i, tf.int64)])),
    "a row of nothing": (NOTHING, lambda t, i: total(t[i])),
    "a window of rows": (TABLE, lambda t, i: total(tf.slice(t, [i, 0], [2, 4]) * tf.range(4.0))),
    "a window of columns": (TABLE.T, lambda t, i: total(tf.slice(t, [1, i], [2, 2]) * tf.range(2.0))),
    "a window of a cube": (CUBE, lambda t, i: total(tf.slice(t, [i, 1, i], [2, 3, 2]) * tf.range(2.0))),
    "a window without elements": (TABLE, lambda t, i: total(tf.slice(t, [i, 0], [0, 4]))),
    "a window of nothing": (NOTHING, lambda t, i: total(tf.slice(t, [i, 0, 0], [2, 0, 3]))),
}


def members_of_loops(nodes):
    """The ops within the loop, and those within its clusters."""
    [loop] = [node for node in nodes if node.op == "_XpuLoop"]
    members = list(tf.compat.v1.GraphDef.FromString(loop.attr["members"].s).node)
    clusters = [member for member in members if member.op == "_XpuCluster"]
    return members, [
        node for cluster in clusters for node in tf.compat.v1.GraphDef.FromString(cluster.attr["members"].s).node
    ]


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("form", FORMS)
def test_a_slice_is_a_member(xpu_device, form):
    table, step = FORMS[form]
    firsts = [0, 1, 0, 2, 1]
    with tf.device("/cpu:0"):
        function = copying(step)
        expected = [[t.numpy() for t in function(tf.constant(table), first)] for first in map(tf.constant, firsts)]
    with tf.device(xpu_device), placement.record_nodes() as nodes:
        function = copying(step)
        results = [[t.numpy() for t in function(tf.constant(table), first)] for first in map(tf.constant, firsts)]
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(result[0], want[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(result[1], want[1])
    graphs = {node.name: node for node in nodes if node.op == "_XpuLoop"}
    members, within = members_of_loops(graphs.values())
    labelled = [node.op for node in within if node.attr["_kernel"].s == b"XpuBeginOnDevice"]
    assert labelled == ["Slice" if "window" in form else "StridedSlice"], [node.op for node in members]
    assert not {"_XpuToDevice", "_XpuToHost"} & {node.op for node in members}


# By form: begins of the first iteration, and the failure of the first one that is out of range.
OUT_OF_RANGE = {
    "a row": {
        4: "slice index 6 of dimension 0",
        6: "slice index 6 of dimension 0",
        -9: "slice index -9 of dimension 0",
    },
    "a column": {4: "slice index 6 of dimension 1", -7: "slice index -7 of dimension 1"},
    "behind an ellipsis": {5: "slice index 7 of dimension 2", -10: "slice index -10 of dimension 2"},
    "two axes in the middle": {
        -3: "slice index 5 of dimension 2",
        7: "slice index 7 of dimension 1",
        -9: "slice index -9 of dimension 1",
    },
    "a number of 64 bits": {4: "slice index 6 of dimension 0", -7: "slice index -7 of dimension 0"},
    "a row of nothing": {4: "slice index 6 of dimension 0", -8: "slice index -8 of dimension 0"},
    "a window of rows": {
        3: "Expected size[0] in [0, 1], but got 2",
        6: "Expected size[0] in [0, 0], but got 2",
        7: "Expected begin[0] in [0, 6], but got 7",
        -1: "Expected begin[0] in [0, 6], but got -1",
    },
    "a window of a cube": {3: "Expected size[0] in [0, 1], but got 2", -1: "Expected begin[0] in [0, 6], but got -1"},
    "a window without elements": {
        5: "Expected begin[0] in [0, 6], but got 7",
        -1: "Expected begin[0] in [0, 6], but got -1",
    },
    "a window of nothing": {3: "Expected size[0] in [0, 1], but got 2", -1: "Expected begin[0] in [0, 6], but got -1"},
}


@pytest.mark.parametrize("form", OUT_OF_RANGE)
def test_a_slice_out_of_range_fails_in_the_words_of_the_cpu(xpu_device, form):
    """Also once other begins have been in range, and the loop goes on with begins in range afterwards. The CPU runs
    iterations side by side, so that there the failure may be that of a later one."""
    table, step = FORMS[form]
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            function = copying(step)
            right = function(tf.constant(table), tf.constant(0))[0].numpy()
            for first, words in OUT_OF_RANGE[form].items():
                words = re.escape(words) if device == xpu_device else words.split()[0]
                with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                    function(tf.constant(table), tf.constant(first))[0].numpy()
            np.testing.assert_array_equal(function(tf.constant(table), tf.constant(0))[0], right)


STAY = {
    "an interval": (TABLE, lambda t, i: total(t[i : i + 2])),
    "to the end": (TABLE, lambda t, i: total(tf.slice(t, [i, 0], [-1, 4]))),
    "two axes with one between": (CUBE, lambda t, i: total(t[i, :, i])),
    "an axis and an interval": (CUBE, lambda t, i: total(t[i, 1:3])),
    "a size that differs": (TABLE, lambda t, i: total(tf.slice(t, [i, 0], [1, i + 1]))),
}


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("form", STAY)
def test_slices_of_other_forms_stay_as_they_are(xpu_device, form):
    table, step = STAY[form]
    results = []
    for device in ("/cpu:0", xpu_device):
        with tf.device(device), placement.record_nodes() as nodes:
            results.append([t.numpy() for t in copying(step)(tf.constant(table), tf.constant(1))])
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5, atol=1e-6)
    members, within = members_of_loops(nodes)
    assert not any(node.attr["_kernel"].s == b"XpuBeginOnDevice" for node in [*members, *within])


def test_a_loop_that_copies_nothing_counts_on_the_host(xpu_device):
    """It may be captured, and its slices are parts of the array there."""

    @tf.function
    def f(x):
        state = tf.zeros([4])
        for i in tf.range(6):
            state = tf.tanh(state + x[i])
        return state

    with tf.device(xpu_device), placement.record_nodes() as nodes:
        f(tf.constant(TABLE)).numpy()
    assert not any(node.attr["_kernel"].s == b"XpuBeginOnDevice" for node in placement.with_members(nodes))


def test_gradients(xpu_device):
    def f(table, first):
        with tf.GradientTape() as tape:
            tape.watch(table)
            loss = tf.reduce_sum(loop(table, first)[0])
        return loss, tape.gradient(loss, table)

    results = []
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            loop = copying(lambda t, i: total(tf.sin(t[i])) + total(tf.slice(t, [i, 1], [2, 2])))
            results.append([t.numpy() for t in tf.function(f)(tf.constant(TABLE), tf.constant(1))])
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-5, atol=1e-6)


CAPTURES = """
import os, pathlib
import tensorflow as tf
from tests.graphs.loops.test_loop_slices import FORMS, copying
with tf.device("/xpu:0"):
    table, step = FORMS["a row"]
    function = copying(step)
    for first in (0, 1, 2, 3, 0, 1):
        function(tf.constant(table), tf.constant(first))
pages = [page.read_text() for page in pathlib.Path(os.environ["TF_XPU_DUMP_FUSION"]).iterdir()]
print(sum("StridedSlice" in page and page.startswith("Cluster") for page in pages), "captures")
"""


@pytest.mark.of_hooks("clusters")
def test_one_capture_serves_all_begins(tmp_path):
    outcome = run_code(CAPTURES, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.stdout == "1 captures\n", outcome
