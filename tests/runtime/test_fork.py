"""Processes that are forked from one that has used the XPU. Nothing may hang: each child has a limit, and is killed."""

import pytest

from tests.support.processes import run_code

# Each use is made in a child of its own, and once more in the parent, whose result the child's has to be.
CHILDREN = """
import json, multiprocessing, os, pathlib, sys, tempfile, threading, time, traceback
import numpy as np
import tensorflow as tf

context = multiprocessing.get_context("fork")
LIMIT = 120

def in_child(use):
    receiver, sender = context.Pipe(duplex=False)
    def child():
        try:
            sender.send(("is", use()))
        except Exception as error:
            sender.send((type(error).__name__, str(error)))
    process = context.Process(target=child)
    process.start()
    sender.close()
    seen = ("hangs", None)
    if receiver.poll(LIMIT):
        try:
            seen = receiver.recv()
        except EOFError:
            seen = ("dies", None)
    process.kill() if seen[0] == "hangs" else process.join(LIMIT)
    if process.exitcode not in (0, None):
        seen = (f"{seen[0]}, and ends with {process.exitcode}", seen[1])
    return seen

def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b))
"""

WORK = """
random = np.random.default_rng(0)
x = tf.constant(random.random((64, 64), np.float32))
large = tf.constant(random.random((1500, 1500), np.float32))
unread = large * 2
variable = tf.Variable(tf.ones([1000]))
images, filters = tf.constant(random.random((8, 32, 32, 16), np.float32)), tf.ones([3, 3, 16, 32])

@tf.function
def known(a):
    return tf.reduce_sum(tf.tanh(a @ a) * 2 + 1, 1)

@tf.function
def step(by):
    variable.assign_add(by)
    return variable.read_value()

def convolve():
    return tf.nn.conv2d(images, filters, 1, "SAME").numpy()

def add_in_place():
    variable.assign_add(tf.ones([1000]) * 2)
    return variable.numpy()

def gradient():
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(variable * variable)
    return tape.gradient(y, variable).numpy()

def indices():
    try:
        tf.gather(x, [1, 99]).numpy()
    except tf.errors.InvalidArgumentError as error:
        return "99" in str(error)

def in_thread(use):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(use()))
    thread.start()
    thread.join()
    return seen[0]

def in_session():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/xpu:0"):
            y = tf.constant([1.0, 2.0]) * 3
        return session.run(y)

def restored():
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(v=variable).write(folder + "/checkpoint")
        other = tf.Variable(tf.zeros([1000]))
        tf.train.Checkpoint(v=other).read(path)
        return other.numpy()

def grandchild():
    kind, value = in_child(lambda: (large @ large).numpy())
    assert kind == "is", (kind, value)
    return value

def between_devices():
    with tf.device("/xpu:1"):
        there = tf.identity(x)
        empty = tf.identity(tf.zeros([0, 3]))
        return (tf.identity(there) + 1).numpy(), empty.numpy().shape == (0, 3)

USES = {
    "a tensor that was read": lambda: x.numpy(),
    "a tensor that was not": lambda: unread.numpy(),
    "a constant": lambda: tf.constant([[1.0, 2.0]]).numpy(),
    "a large constant": lambda: tf.constant(np.arange(4 << 20, dtype=np.float32)).numpy(),
    "an empty one": lambda: tf.zeros([0, 3]).numpy(),
    "a few elements": lambda: (x + 1).numpy(),
    "many elements": lambda: (large * 3 + 1).numpy(),
    "a product": lambda: (large @ large).numpy(),
    "a convolution": convolve,
    "a sum": lambda: tf.reduce_sum(large).numpy(),
    "random numbers": lambda: tf.random.stateless_normal([300, 300], [1, 2]).numpy(),
    "sorting": lambda: tf.sort(tf.reshape(large, [-1])).numpy(),
    "indices of what is true": lambda: tf.where(x > 0.5).numpy(),
    "an index out of range": indices,
    "strings": lambda: tf.strings.join([tf.constant(["a"]), ["b"]]).numpy(),
    "a new variable": lambda: tf.Variable(x).numpy(),
    "a variable": add_in_place,
    "a gradient": gradient,
    "a known function": lambda: known(x).numpy(),
    "a known function of a variable": lambda: step(tf.ones([1000])).numpy(),
    "map_fn": lambda: tf.map_fn(lambda a: a * 2, x).numpy(),
    "data": lambda: [e.numpy() for e in tf.data.Dataset.range(5).map(lambda a: a * 2, num_parallel_calls=2)],
    "a session": in_session,
    "a checkpoint": restored,
    "text of it": lambda: str(x + 1),
    "the cpu": lambda: tf.raw_ops.Add(x=x.cpu(), y=1.0).numpy(),
    "another thread": lambda: in_thread(lambda: (large @ large).numpy()),
    "a child of its own": grandchild,
    "waiting for all": lambda: tf.test.experimental.sync_devices(),
    "another device": between_devices,
}
"""

EACH_USE = """
known(x), known(x), step(tf.zeros([1000])), step(tf.zeros([1000]))
wrong = {}
for name, use in USES.items():
    before = variable.numpy()
    kind, value = in_child(use)
    assert same(variable.numpy(), before), "what the child writes is its own"
    want = use()
    variable.assign(before)
    pairs = zip(value, want) if isinstance(want, tuple) and kind == "is" else [(value, want)]
    if kind != "is" or not all(same(a, b) for a, b in pairs):
        wrong[name] = (kind, str(value)[:300])
print(json.dumps(wrong))
"""

pytestmark = [pytest.mark.host_only, pytest.mark.without_isolation]


@pytest.mark.of_hooks("calls", "copies", "fork_threads")
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({}, id="as it is"),
        pytest.param({"TF_XPU_ALLOCATOR": "pool", "TF_XPU_THREADS": "3"}, id="pool", marks=pytest.mark.slow),
        pytest.param({"TF_XPU_ISOLATE_MEMORY": "1"}, id="isolated", marks=pytest.mark.slow),
        pytest.param({"TF_XPU_SUBDEVICE": "XPU_REFERENCE"}, id="reference", marks=pytest.mark.slow),
    ],
)
def test_a_child_computes_as_its_parent(environment):
    environment = {"TF_XPU_DEVICE_COUNT": "2", **environment}
    outcome = run_code(CHILDREN + WORK + EACH_USE, environment=environment, timeout=900)
    assert outcome.returncode == 0, outcome
    assert outcome.json == {}, outcome


def test_what_would_hang_is_refused():
    """TensorFlow's executor has no threads in a child."""
    outcome = run_code(
        f"""{CHILDREN}{WORK}
known(x), known(x)
never_called = tf.function(lambda a: a + 1)
USES = [
    lambda: never_called(x).numpy(),
    lambda: known(tf.ones([3, 3])).numpy(),
    lambda: tf.vectorized_map(lambda a: a * 2, x).numpy(),
    lambda: in_thread(lambda: str(in_child(lambda: never_called(x).numpy()))),
]
for use in USES:
    kind, value = in_child(use)
    assert "FailedPreconditionError" in kind or "FailedPreconditionError" in value, (kind, value)
    assert "forked" in value and "spawn" in value, value
assert never_called(x).numpy()[0, 0] == x[0, 0] + 1
print("well")
"""
    )
    assert outcome.stdout == "well\n", outcome


@pytest.mark.of_hooks("copies", "fork_threads")
def test_work_in_flight_goes_on_in_both():
    """Forty commands are queued that take 20 ms each. The fork waits for one of them."""
    outcome = run_code(
        f"""{CHILDREN}
x = tf.ones([100])
for _ in range(40):
    x = x + 1
kind, value = in_child(lambda: (x * 2).numpy())
assert kind == "is" and (value == 82).all(), (kind, value)
assert (x * 3).numpy().sum() == 12300
print("well")
""",
        environment={"TF_XPU_FAULT": "command:delay=20ms"},
    )
    assert outcome.stdout == "well\n", outcome


@pytest.mark.slow
def test_while_other_threads_run_ops():
    """TensorFlow takes locks of its own in each op; a child in which one is held waits for ever."""
    outcome = run_code(
        f"""{CHILDREN}{WORK}
LIMIT = 20
known(x), known(x), step(tf.zeros([1000])), step(tf.zeros([1000]))
stop = False

def until_stopped(use):
    while not stop:
        use()

@tf.function
def branches(a):
    return tf.cond(tf.reduce_sum(a) > 0, lambda: a @ a, lambda: a - 1)

def eagerly():
    y = x
    for _ in range(10):
        y = tf.tanh(y @ x) * 0.5
    return y.numpy()

branches(x)
USES = [
    eagerly, lambda: known(x).numpy(), lambda: branches(x).numpy(), gradient, lambda: tf.Variable(x).assign_add(x),
]
want, value = known(x).numpy(), (x + 1).numpy()
hung = []
for running in (USES[:1], USES[:2], USES[2:3], USES):
    stop, threads = False, [threading.Thread(target=until_stopped, args=[use]) for use in running]
    for thread in threads:
        thread.start()
    for i in range(40):
        time.sleep(0.01 + 0.003 * (i % 7))
        kind, seen = in_child(lambda: ((x + 1).numpy(), known(x).numpy()))
        if kind != "is" or not same(seen[0], value) or not same(seen[1], want):
            hung.append((len(running), i, kind, str(seen)[:200]))
    stop = True
    for thread in threads:
        thread.join()
assert not hung, hung
print("well")
""",
        timeout=900,
    )
    assert outcome.stdout == "well\n", outcome


@pytest.mark.slow
def test_a_server_forks_workers_for_its_model(tmp_path):
    """As Keras's own test of loading a model in another process does, and with a pool."""
    outcome = run_code(
        f"""{CHILDREN}
import keras
path = {str(tmp_path / "model.keras")!r}
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(2)])
model.compile("sgd", "mse")
model.save(path)
inputs = np.random.default_rng(0).random((64, 4), np.float32)
for _ in range(2):
    model.predict(inputs, verbose=0), model(inputs)
want = model(inputs).numpy()

def answer(i):
    return model(inputs[i : i + 1]).numpy()

def load():
    return keras.models.load_model(path)(inputs).numpy()

kind, value = in_child(load)
assert kind == "is" and np.allclose(value, want), (kind, value)
kind, value = in_child(lambda: model.predict(inputs, verbose=0))
assert kind == "is" and np.allclose(value, want), (kind, value)
with context.Pool(2) as pool:
    answers = pool.map_async(answer, range(10)).get(LIMIT)
assert np.allclose(np.concatenate(answers), want[:10])
assert np.allclose(model.predict(inputs, verbose=0), want)
model.fit(inputs, want, verbose=0)
print("well")
"""
    )
    assert outcome.stdout == "well\n", outcome


def test_opencl_says_that_it_cannot_be_used(opencl_driver):
    outcome = run_code(
        f"""{CHILDREN}
kept = tf.ones([1000]) * 3
assert tf.reduce_sum(kept).numpy() == 3000
for use in (lambda: tf.ones([1000]) * 3, lambda: kept.numpy(), lambda: tf.constant([1.0]) + 1):
    kind, value = in_child(use)
    assert kind == "FailedPreconditionError" and "forked" in value and "spawn" in value, (kind, value)
assert tf.reduce_sum(kept).numpy() == 3000
print("well")
""",
        environment={"TF_XPU_SUBDEVICE": "XPU_OPENCL"},
    )
    assert outcome.stdout == "well\n", outcome
