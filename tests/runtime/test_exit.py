"""However a process ends with work queued on the XPU: no hang, no crash. Each case is a process of its own."""

import signal

import pytest

from tests.support.processes import run_code

# Eight seconds of work are on the device when the process is to end.
WITH_WORK_QUEUED = """
import os, signal, sys, threading, time
import tensorflow as tf
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
with tf.device("/xpu:0"):
    x = tf.ones([8, 8])
    for _ in range(40):
        x = tf.tanh(x)
print("enqueued", flush=True)
"""
SLOW = {"TF_XPU_FAULT": "command:delay=200ms"}

ENDS = {
    "the end of the program": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an uncaught exception": ("raise RuntimeError('uncaught')", 1),
    "sys.exit in a thread": ("t = threading.Thread(target=sys.exit); t.start(); t.join()", 0),
    "an exception while others wait": (
        "threading.Thread(target=x.numpy, daemon=True).start(); time.sleep(0.3); raise RuntimeError('uncaught')",
        1,
    ),
    "os._exit": ("os._exit(4)", 4),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    # The first numpy() of a process runs Python code from C++, where TensorFlow loses a KeyboardInterrupt.
    "SIGINT while waiting for the device": (
        "with tf.device('/cpu:0'): tf.constant(0).numpy()\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start(); x.numpy(); time.sleep(60)",
        -signal.SIGINT,
    ),
}


@pytest.mark.host_only
@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_with_work_queued(end, code):
    outcome = run_code(WITH_WORK_QUEUED + end, environment=SLOW, timeout=60)
    assert outcome.stdout == "enqueued\n", outcome
    assert outcome.returncode == code, outcome
    assert "Fatal" not in outcome.stderr
    assert "core dumped" not in outcome.stderr


FORK = """
import multiprocessing, os, sys
import tensorflow as tf
{before}
def child():
    {child}
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
for _ in range(400):  # short waits: if the machine stops meanwhile, one of them is lost
    process.join(0.1)
if process.is_alive():
    process.kill()
    sys.exit("the child hangs")
print(process.exitcode)
with tf.device("/xpu:0"):
    assert tf.reduce_sum(tf.ones([1000]) * 2).numpy() == 2000
"""
USE = "with tf.device('/xpu:0'): kept = tf.ones([1000]) * 3; assert tf.reduce_sum(kept).numpy() == 3000"


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("before", "child"),
    [
        pytest.param("", USE, id="the child alone uses the device"),
        pytest.param(USE, "pass", id="the child does nothing"),
        pytest.param(USE, "sys.exit(0)", id="the child exits"),
        pytest.param(USE, USE, id="both use it", marks=pytest.mark.of_hooks("copies", "fork_threads")),
    ],
)
def test_fork(before, child):
    outcome = run_code(FORK.format(before=before, child=child), timeout=100)
    assert outcome.returncode == 0, outcome
    assert outcome.stdout == "0\n", outcome


@pytest.mark.host_only
def test_a_forked_child_drops_an_imported_tensor_with_work_queued():
    """Queued work runs there, too."""
    use = """
import numpy as np
from tensorflow_xpu import dlpack
with tf.device("/xpu:0"):
    imported = [dlpack.from_dlpack(np.ones(1000, np.float32), device="/xpu:0")]
    kept = tf.tanh(imported[0])
"""
    slow = {"TF_XPU_FAULT": "command:delay=3s@1", "TF_XPU_ISOLATE_MEMORY": "0"}
    outcome = run_code(FORK.format(before=use, child="imported.clear()"), environment=slow, timeout=100)
    assert outcome.returncode == 0, outcome
    assert outcome.stdout == "0\n", outcome
