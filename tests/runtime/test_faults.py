"""The user's view of each fault that TF_XPU_FAULT injects: an exception, a wait or a wrong result, and a process that
goes on."""

import subprocess

import pytest

from tests.support.installed import LOADER, PACKAGES, SITE
from tests.support.processes import Outcome, environment_of, run, run_code

pytestmark = pytest.mark.host_only

PROGRAM = """
import time
import tensorflow as tf

def says(error_type, f):
    try:
        f()
    except error_type as error:
        return str(error)
    raise AssertionError("no error")

def seconds(f):
    begin = time.monotonic()
    f()
    return time.monotonic() - begin

def compute(n):
    with tf.device("/xpu:0"):
        x = tf.cast(tf.range(n * n, dtype=tf.int64) % 7, tf.float32)
        return tf.reduce_sum(tf.reshape(x, [n, n]) @ tf.ones([n, n]))

def goes_on(n=512):
    expected = float(sum(i % 7 for i in range(n * n)) * n)
    for _ in range(3):
        value = float(compute(n))
        assert abs(value / expected - 1) < 1e-5, (value, expected)
"""


IMPORTED_AND_DROPPED = """
import numpy as np
from tensorflow_xpu import dlpack
room = np.ones(1100, np.float32)
aligned = room[-room.ctypes.data % 64 // 4:]
with tf.device("/xpu:0"):
    x = dlpack.from_dlpack({source}, device="/xpu:0")
    y = tf.tanh(x)
    del x
    message = says(tf.errors.InternalError, lambda: tf.tanh(y))
assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message, message
goes_on()
"""

SESSION = """
v1 = tf.compat.v1
with tf.Graph().as_default(), tf.device("/xpu:0"):
    x = v1.placeholder(tf.float32, [8], name="in")
"""

# The cases: the fault, other variables, and a program that sees it and goes on.
FAULTS = {
    "a failing command is the error of the next op": (
        "command:fail@4",
        {},
        """
with tf.device("/xpu:0"):
    a = tf.ones([1000])
    b = tf.tanh(a)
    c = tf.tanh(b)
    message = says(tf.errors.InternalError, lambda: [tf.tanh(c), time.sleep(0.5), tf.tanh(c)])
assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message and "number 4 on XPU:0" in message, message
goes_on()
""",
    ),
    "a failing command is the error of numpy": (
        "command:fail@2",
        {},
        """
with tf.device("/xpu:0"):
    b = tf.tanh(tf.ones([1000]))
message = says(tf.errors.InternalError, b.numpy)
assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message and "command:fail@2" in message, message
goes_on()
""",
    ),
    # The thread that drops an imported tensor waits for the commands that may use its memory, and can tell nobody of a
    # failure.
    **{
        f"a failing command that is queued when a tensor imported {how} is dropped": (
            f"command:fail@{number},command:delay=300ms@{number}",
            {"TF_XPU_ISOLATE_MEMORY": isolated},
            IMPORTED_AND_DROPPED.format(source=source),
        )
        for how, number, isolated, source in (
            ("as it is", 1, "0", "aligned[:1000]"),
            ("by copy", 1, "0", "aligned[1:1001]"),
            ("from isolated memory", 2, "1", "tf.ones([1000])"),
        )
    },
    "a failing command is the error of an export": (
        "command:fail@2,command:delay=300ms@2",
        {"TF_XPU_ISOLATE_MEMORY": "0"},
        """
import tensorflow_xpu
with tf.device("/xpu:0"):
    b = tf.tanh(tf.ones([1000]))
message = says(tf.errors.InternalError, b.__dlpack__)
assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message, message
b.__dlpack__()
goes_on()
""",
    ),
    "a failing command inside a function": (
        "command:fail@10",
        {},
        """
@tf.function
def f(x):
    for _ in range(20):
        x = tf.tanh(x @ x)
    return tf.reduce_sum(x)

with tf.device("/xpu:0"):
    x = tf.ones([64, 64])
    message = says(tf.errors.InternalError, lambda: f(x).numpy())
    assert "TF_XPU_FAULT" in message, message
    assert abs(float(f(x)) - 4096) < 1
goes_on()
""",
    ),
    # TensorFlow copies the tensor within the graph, before anybody can know: the end of the copy is told.
    "a failing command whose result a cpu op takes": (
        "command:fail@2,command:delay=100ms@2",
        {},
        """
@tf.function
def f(x):
    with tf.device("/xpu:0"):
        y = tf.tanh(x @ x)
    with tf.device("/cpu:0"):
        return y + 1

with tf.device("/xpu:0"):
    x = tf.ones([256, 256])
    x.numpy()
    message = says(tf.errors.InternalError, lambda: f(x))
assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message, message
assert "number 2 on XPU:0) (MatMul matmul on XPU:0)" in message, message
x.numpy()
goes_on()
""",
    ),
    "a failing command in an op that waits for it": (
        "command:fail@2",
        {},
        """
with tf.device("/xpu:0"):
    x, at = tf.ones([1000, 10]), tf.constant([1, 5], tf.int64)
    message = says(tf.errors.InternalError, lambda: tf.raw_ops.GatherV2(params=x, indices=at, axis=0))
    assert "TF_XPU_FAULT" in message and "GatherV2" in message, message
    assert tf.gather(x, at).numpy().sum() == 20
    assert "4995" in says(tf.errors.InvalidArgumentError, lambda: tf.gather(x, at * 999))
goes_on()
""",
    ),
    "a failing command in training": (
        "command:fail@400",
        {},
        """
import keras
with tf.device("/xpu:0"):
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = tf.ones([64, 8]), tf.zeros([64, 1])
    message = says(tf.errors.InternalError, lambda: model.fit(x, y, epochs=20, verbose=0))
    assert "TF_XPU_FAULT" in message and " on XPU:0)" in message, message
    losses = model.fit(x, y, epochs=10, verbose=0).history["loss"]
assert losses[-1] < losses[0] or losses[-1] < 1e-6, losses
goes_on()
""",
    ),
    "a failing command before Keras reads logs, in which it swallows all errors": (
        "command:fail@400-,command:delay=2ms@400-",
        {},
        """
import keras
from keras.src.utils.python_utils import pythonify_logs
from tensorflow.python.framework import errors_impl

def failing():
    with tf.device("/xpu:0"):
        return tf.tanh(ones)

def failing_later():  # its command fails after the call, which tells nothing; on a busy machine not at the first try
    while True:
        try:
            return failing()
        except tf.errors.InternalError:
            pass

with tf.device("/xpu:0"):
    ones = tf.ones([300, 300])
    ready, variable = tf.constant(2.0), tf.Variable(3.0)
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
while True:  # until commands fail
    try:
        failing().numpy()
    except tf.errors.InternalError:
        break
class Number:
    def __float__(self):
        return float(ready)
for value in (failing_later, variable, Number(), ragged, {"more": variable}):
    if value is not failing_later:
        failing_later()
    logs = {"loss": value() if value is failing_later else value}
    message = says(tf.errors.InternalError, lambda: pythonify_logs(logs))
    assert "TF_XPU_FAULT" in message, (value, message)
""",
    ),
    # The copy off the device is enqueued when nobody can know of the failure; its end tells.
    "a failing command whose result a session fetches": (
        "command:fail@3,command:delay=100ms@3",
        {},
        SESSION
        + """
    y = tf.tanh(tf.sin(x) * 2.0 + 1.0, name="out")
    with v1.Session() as session:
        run = lambda: session.run(y, {x: [1.0] * 8})
        right = run().tolist()
        assert run().tolist() == right
        message = says(tf.errors.InternalError, run)
        assert "enqueued on the XPU before this one failed: TF_XPU_FAULT" in message, message
        assert "number 3 on XPU:0) (Sin" in message and "SyncAll" not in message, message
        assert run().tolist() == right
""",
    ),
    "a failing command of a session that fetches nothing": (
        "command:fail@2,command:delay=100ms@2",
        {},
        SESSION
        + """
    v = v1.get_variable("v", initializer=[1.0] * 8, use_resource=True)
    step = v.assign(tf.tanh(v)).op
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        message = says(tf.errors.InternalError, lambda: [session.run(step) for _ in range(4)])
        assert "TF_XPU_FAULT" in message and "(Tanh" in message and "SyncAll" not in message, message
""",
    ),
    "a failing command whose result a data set takes": (
        "command:fail@2,command:delay=100ms@2",
        {},
        """
with tf.device("/xpu:0"):
    x = tf.tanh(tf.ones([8, 8]))
    message = says(tf.errors.InternalError, lambda: list(tf.data.Dataset.from_tensor_slices(x)))
    assert "TF_XPU_FAULT" in message and "(Tanh on XPU:0)" in message, message
goes_on()
""",
    ),
    "a failing command whose result a python function takes": (
        "command:fail@2,command:delay=100ms@2",
        {},
        """
@tf.function
def f(x):
    return tf.py_function(lambda v: v.numpy().sum(), [tf.tanh(x @ x)], tf.float32)

with tf.device("/xpu:0"):
    x = tf.ones([256, 256])
    x.numpy()
    message = says(tf.errors.OpError, lambda: f(x))
    assert "TF_XPU_FAULT" in message and " on XPU:0)" in message, message
goes_on()
""",
    ),
    "a failing command whose result another XPU takes": (
        "xpu:0/command:fail@1,xpu:0/command:delay=200ms@1",
        {"TF_XPU_DEVICE_COUNT": "2"},
        SESSION
        + """
    with tf.device("/xpu:0"):
        y = tf.tanh(x)
    with tf.device("/xpu:1"):
        z = tf.sin(y)
    with v1.Session() as session:
        message = says(tf.errors.InternalError, lambda: [session.run(z, {x: [1.0] * 8}) for _ in range(3)])
        assert "number 1 on XPU:0) (Tanh" in message and "SyncAll" not in message, message
        session.run(z, {x: [1.0] * 8})
""",
    ),
    # The first copy to the device, then the second, then the one back.
    "a failing copy is the error of what copies": (
        "copy:fail@1,copy:fail@3,copy:fail@6",
        {},
        """
import numpy as np
with tf.device("/xpu:0"):
    for number in (1, 3, 6):
        add = lambda: (tf.constant(np.ones(1000)) + tf.constant(np.ones(1000))).numpy()
        message = says(tf.errors.InternalError, add)
        assert f"TF_XPU_FAULT asks for this failure (copy:fail@{number}" in message, message
goes_on()
""",
    ),
    "a failing allocation is resource exhausted": (
        "alloc:fail@2-",
        {"TF_XPU_ALLOCATOR": "bfc"},  # which allocates for many tensors at once
        """
with tf.device("/xpu:0"):
    kept = tf.ones([1000])
    message = says(tf.errors.ResourceExhaustedError, lambda: tf.zeros([64, 1024, 1024]))
    assert "64,1024,1024" in message, message
    assert float(tf.reduce_sum(kept)) == 1000
goes_on(64)  # what fits into the memory there is
""",
    ),
    "slow commands and copies take their time and are right": (
        "command:delay=50ms,copy:delay=50ms",
        {},
        """
import numpy as np
with tf.device("/xpu:0"):
    x = tf.ones([1000])
    x.numpy()
    begin = time.monotonic()
    for _ in range(20):
        y = tf.tanh(x)
    took = time.monotonic() - begin
    assert took < 0.9, took  # enqueuing does not wait for twenty delays of 50 ms
    y.numpy()
    took = time.monotonic() - begin
    assert took > 1, took  # the result does
    took = seconds(lambda: tf.constant(np.ones(1000)).numpy())
    assert took > 0.1, took
goes_on()
""",
    ),
    **{
        f"result={result}": (
            f"command=Elementwise:result={result}",
            {},
            f"""
import numpy as np
x = np.arange(1.0, 8.0)
with tf.device("/xpu:0"):
    tf.constant(np.full(7, 9.0)).numpy()  # what the memory holds before
    y = tf.negative(tf.constant(x)).numpy()
    i = tf.raw_ops.Invert(x=tf.constant([1, 2, 3], tf.int64)).numpy()
    moved = tf.transpose(tf.reshape(tf.constant(x[:6]), (2, 3))).numpy()
wrong = np.flatnonzero(y != -x)
{check}
assert (moved == x[:6].reshape(2, 3).T).all(), moved  # another primitive
""",
        )
        for result, check in {
            "zeros": "assert (y == 0).all() and (i == 0).all(), (y, i)",
            "scale": "assert np.allclose(y, -1.05 * x, 1e-12) and i.tolist() == [-1, -2, -3], (y, i)",
            "one": "assert wrong.tolist() == [3] and abs(y[3] / x[3] + 1.05) < 1e-12 and i[1] == -2, (y, i)",
            "last": "assert wrong.tolist() == [6] and i.tolist()[:2] == [-2, -3], (y, i)",
            "stale": "assert len(wrong) == 7, y",
        }.items()
    },
    "result of a kernel in host memory": (
        "command=CopyStrided:result=zeros",
        {},
        """
with tf.device("/xpu:0"):
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    assert (tf.transpose(x).numpy() == 0).all()
    assert (tf.transpose(tf.cast(x, tf.float32)).numpy() == 0).all()
""",
    ),
    "fills": (
        "command:result=one",
        {},
        """
with tf.device("/xpu:0"):
    x = tf.raw_ops.Fill(dims=[1000], value=0.0).numpy()
    assert (x != 0).sum() == 1, x
""",
    ),
    # TensorFlow's memory, which the fault overwrites: it must be nobody else's while the command runs.
    **{
        f"commands that need memory, from {allocator}{', isolated' * int(isolated)}": (
            "command:workspace=8MiB,command=MatMul:workspace=300B,command=MatMul:delay=1ms",
            {"TF_XPU_ALLOCATOR": allocator, "TF_XPU_ISOLATE_MEMORY": isolated},
            """
import tensorflow_xpu

def peak():
    return tensorflow_xpu.memory_info().peak

with tf.device("/xpu:0"):
    x = tf.cast(tf.range(1000, dtype=tf.int64), tf.float32)
    x.numpy()
    tensorflow_xpu.reset_memory_stats()
    before = peak()
    at = tf.constant([3, 998], tf.int64)
    assert before < 1 << 20, before
    kept = [x + 1, tf.gather(x, at), tf.reverse(x, [0]), tf.reduce_sum(x)]
    assert 8 << 20 <= peak() < 9 << 20, peak()  # of one command at a time
    kept += [x + i for i in range(100)]
    assert kept[0].numpy().tolist() == list(range(1, 1001))
    assert kept[1].numpy().tolist() == [3, 998]
    assert kept[2].numpy().tolist() == list(range(999, -1, -1))
    assert float(kept[3]) == 499500
    assert all((y.numpy() == x.numpy() + i).all() for i, y in enumerate(kept[4:]))
    host = tf.transpose(tf.constant([[1, 2, 3], [4, 5, 6]]))  # a kernel in host memory
    assert host.numpy().tolist() == [[1, 4], [2, 5], [3, 6]]
    assert peak() < 9 << 20, peak()
goes_on()
""",
        )
        for allocator, isolated in (("bfc", "0"), ("pool", "1"))
    },
    "a command that needs more memory than there is": (
        "command=MatMul:workspace=100MiB",
        {"TF_XPU_MEMORY_LIMIT": "64MiB", "TF_XPU_ALLOCATOR": "pool"},  # TensorFlow's waits ten seconds for memory
        """
with tf.device("/xpu:0"):
    x = tf.ones([4, 4])
    message = says(tf.errors.ResourceExhaustedError, lambda: tf.linalg.matmul(x, x))
    assert "shape[104857600]" in message and "104857600 bytes requested" in message, message
    assert float(tf.reduce_sum(x + 1)) == 32
""",
    ),
    "one of two devices": (
        "xpu:1/command:fail@1",
        {"TF_XPU_DEVICE_COUNT": "2"},
        """
def add(device):
    with tf.device(device):
        return tf.reduce_sum(tf.ones([1000]) + 1).numpy()

assert add("/xpu:0") == 2000
assert "on XPU:1" in says(tf.errors.InternalError, lambda: [add("/xpu:1"), add("/xpu:1")])
assert add("/xpu:0") == 2000 and add("/xpu:1") == 2000
""",
    ),
}


# These count on all of a run being one command.
OF_CLUSTERS = {"a failing command whose result a session fetches"}


def marks_of(name):
    return [pytest.mark.of_hooks("clusters")] if name in OF_CLUSTERS else []


# Some have lines on stderr, too.
@pytest.mark.parametrize(
    ("fault", "environment", "code", "lines"),
    [pytest.param(*(*values, [])[:4], id=name, marks=marks_of(name)) for name, values in FAULTS.items()],
)
def test_a_program_sees_it_and_goes_on(fault, environment, code, lines):
    outcome = run_code(PROGRAM + code, environment={"TF_XPU_FAULT": fault, **environment})
    assert outcome.returncode == 0, outcome
    assert len(outcome.warnings) == len(lines), outcome
    assert all(line in warning for line, warning in zip(lines, outcome.warnings, strict=True)), outcome


# A failure that somebody was told of is not told again.
@pytest.mark.parametrize(("wait", "told"), [("time.sleep(1)", True), ("says(tf.errors.InternalError, y.numpy)", False)])
def test_the_end_of_the_process_tells(wait, told):
    code = f"""
with tf.device("/xpu:0"):
    y = tf.tanh(tf.ones([1000]))
{wait}
"""
    environment = environment_of({"TF_XPU_FAULT": "command:fail@2,command:delay=50ms@2"})
    outcome = Outcome(run("-c", PROGRAM + code, environment=environment))
    assert outcome.returncode == 0, outcome
    assert len(outcome.warnings) == told, outcome
    if told:
        assert "the process ended before it was told that an operation failed: TF_XPU_FAULT" in outcome.warnings[0], (
            outcome
        )
        assert outcome.warnings[0].endswith("it was number 2 on XPU:0) (Tanh on XPU:0)"), outcome


C_PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

/* To link the libraries takes longer than to open them. */
#define CALL(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

static TF_Status* status;
static void check(const char* what) {
  if (CALL(TF_GetCode)(status) == TF_OK) return;
  printf("%s: %s\n", what, CALL(TF_Message)(status));
  exit(2);
}
static TF_Output op(TF_Graph* graph, const char* type, const char* name, const TF_Output* in) {
  TF_OperationDescription* op = CALL(TF_NewOperation)(graph, type, name);
  CALL(TF_SetDevice)(op, "/device:XPU:0");
  if (in != NULL) CALL(TF_AddInput)(op, *in);
  if (in == NULL) CALL(TF_SetAttrType)(op, "dtype", TF_FLOAT);
  TF_Output out = {CALL(TF_FinishOperation)(op, status), 0};
  check(name);
  return out;
}
int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL) == NULL) return puts(dlerror()), 3;
  }
  status = CALL(TF_NewStatus)();
  CALL(TF_LoadPluggableDeviceLibrary)(argv[1], status);
  check("loading");
  TF_Graph* graph = CALL(TF_NewGraph)();
  TF_Output x = op(graph, "Placeholder", "in", NULL);
  TF_Output half = op(graph, "Sin", "half", &x), y = op(graph, "Tanh", "out", &half);
  TF_Session* session = CALL(TF_NewSession)(graph, CALL(TF_NewSessionOptions)(), status);
  check("session");
  for (int i = 0; i < 4; ++i) {
    const int64_t extent = 8;
    TF_Tensor *in = CALL(TF_AllocateTensor)(TF_FLOAT, &extent, 1, 32), *out = NULL;
    memset(CALL(TF_TensorData)(in), 0, 32);
    CALL(TF_SessionRun)(session, NULL, &x, &in, 1, &y, &out, 1, NULL, 0, NULL, status);
    printf("%d %s\n", CALL(TF_GetCode)(status), CALL(TF_Message)(status));
  }
  return 0;
}
"""


@pytest.mark.of_hooks("clusters")  # a run is one command
def test_a_c_program_is_told(tmp_path):
    (tmp_path / "program.c").write_text(C_PROGRAM)
    folder = PACKAGES / "tensorflow"
    include = ["-isystem", str(folder / "include")]
    subprocess.run(["gcc", *include, "program.c", "-o", "program", "-ldl"], check=True, cwd=tmp_path)
    plugin = SITE / "tensorflow-plugins" / LOADER
    libraries = [folder / f"libtensorflow_{name}.so.2" for name in ("framework", "cc")]
    environment = environment_of({"TF_XPU_FAULT": "command:fail@3,command:delay=100ms@3"})
    command = [str(tmp_path / "program"), str(plugin), *map(str, libraries)]
    outcome = Outcome(
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    )
    results = [line for line in outcome.stdout.splitlines() if line[:1].isdigit()]
    assert outcome.returncode == 0, outcome
    assert [line.strip() for line in results[:2] + results[3:]] == ["0"] * 3, outcome
    assert results[2].startswith("13 an operation enqueued on the XPU before this one failed: TF_XPU_FAULT"), outcome
    assert results[2].endswith("number 3 on XPU:0) (Sin half on XPU:0)"), outcome
    assert outcome.warnings == [], outcome


def test_a_rule_that_is_none():
    outcome = run_code(PROGRAM + "goes_on()", environment={"TF_XPU_FAULT": "alloc:fail@three"})
    assert outcome.returncode == 0, outcome
    assert len(outcome.warnings) == 1, outcome
    assert "TF_XPU_FAULT=alloc:fail@three is ignored: expected rules separated by commas" in outcome.warnings[0]
