"""TensorArrays of TensorFlow 1 on the XPU: in loops, with gradients, and misused."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep import sessions

raw, tf1 = tf.raw_ops, tf.compat.v1


@pytest.fixture
def loops_of_tensorflow_1():
    """While loops of Enter, Switch and Merge, in which tf.TensorArray is one."""
    tf1.disable_control_flow_v2()
    yield
    tf1.enable_control_flow_v2()


def words(error):
    """The words of an error without its place: the node, the lines of the program, which number an array has."""
    message = re.sub(r".*\nNode: '[^\n]*'\n", "", error.message, flags=re.S)
    message = re.sub(r"^[0-9]+ root error\(s\) found.\n *\(0\) [A-Z_ ]+: ", "", message)
    return re.sub(r"TensorArrayV3[_0-9]*", "TensorArrayV3", message.split("\n")[0])


def run(device, build, soft=False):
    """The result of `build` in a session that puts everything on the device; an error is its class and words."""
    with tf.Graph().as_default() as graph, graph.device(device):
        tf1.set_random_seed(1)
        fetches = build()
        names = {op.type for op in graph.get_operations()}
        config = sessions.config()
        config.allow_soft_placement = soft
        with tf1.Session(graph=graph, config=config) as session:
            session.run(tf1.global_variables_initializer())
            try:
                return session.run(fetches), names
            except tf.errors.OpError as error:
                return (type(error), words(error)), names


def same(device, build, rtol=1e-6, soft=False):
    (want, _), (got, names) = run("/cpu:0", build), run(device, build, soft)
    assert isinstance(want, list), want
    assert isinstance(got, list), got
    for x, y in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)
    return names


def accumulated():
    """x, 2x + x', ... of rows of a matrix, and the gradients of a loss of them."""
    x, w = tf.constant(np.arange(12, dtype=np.float32).reshape(4, 3) / 7), tf.constant([[1.0, -0.5, 0.25]])
    rows = tf.TensorArray(tf.float32, 4).unstack(x)

    def body(i, state, out):
        state = state * w + rows.read(i) * rows.read(i)
        return i + 1, state, out.write(i, state)

    rows = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    _, last, out = tf1.while_loop(lambda i, *_: i < 4, body, [0, tf.zeros([1, 3]), tf.TensorArray(tf.float32, 4)])
    y = out.concat()
    return [y, last, *tf1.gradients(tf.reduce_sum(y * y) + tf.reduce_sum(last), [x, w])]


def grown():
    """An array without a size, in a loop that ends when its data say so."""

    def body(i, v, out):
        return i + 1, v * 2, out.write(i, v)

    start = [0, tf.constant([1.0, 3.0]), tf.TensorArray(tf.float32, 0, True, clear_after_read=False)]
    n, _, out = tf1.while_loop(lambda i, v, _: tf.reduce_sum(v) < 100, body, start)
    return [n, out.size(), out.stack(), out.gather([1, 0])]


def pieces():
    """Parts of different lengths, split, changed and put together."""
    x = tf.constant(np.arange(10, dtype=np.float32).reshape(5, 2))
    parts = tf.TensorArray(tf.float32, 3, infer_shape=False).split(x, [2, 0, 3])
    out = tf.TensorArray(tf.float32, 3, infer_shape=False)
    for i in range(3):
        out = out.write(i, tf.square(parts.read(i)))
    y = out.concat()
    return [y, *tf1.gradients(y, x)]


@pytest.mark.parametrize("build", [accumulated, grown, pieces])
def test_loops(build, xpu_device, loops_of_tensorflow_1):
    names = same(xpu_device, build)
    assert "TensorArrayV3" in names and "TensorListReserve" not in names


def test_dynamic_rnn(xpu_device, loops_of_tensorflow_1):
    """Sequences of different lengths, with gradients of the cell's weights."""

    class Cell:
        state_size = output_size = 3

        def zero_state(self, batch_size, dtype):
            return tf.zeros([batch_size, 3], dtype)

        def __call__(self, inputs, state, scope=None):
            shape = [inputs.shape[1] + 3, 3]
            w = tf1.get_variable("w", initializer=np.linspace(-1, 1, shape[0] * 3, dtype=np.float32).reshape(shape))
            out = tf.tanh(tf.concat([inputs, state], 1) @ w)
            return out, out

    def build():
        x = tf.constant(np.random.default_rng(0).uniform(-1, 1, (2, 5, 4)).astype(np.float32))
        y, state = tf1.nn.dynamic_rnn(Cell(), x, sequence_length=[5, 2], dtype=tf.float32)
        loss = tf.reduce_sum(y * y) + tf.reduce_sum(state)
        return [y, state, *tf1.gradients(loss, [x, *tf1.trainable_variables()])]

    assert "TensorArrayV3" in same(xpu_device, build, rtol=1e-5, soft=True)  # it asserts with strings


def made(size=2, dtype=tf.float32, **attributes):
    return raw.TensorArrayV3(size=size, dtype=dtype, **attributes)


def then(change, give):
    """A use of an array after another one."""

    def build():
        handle, flow = made()
        changed = change(handle, flow)
        with tf.control_dependencies([changed]):
            return give(handle, changed if isinstance(changed, tf.Tensor) else flow)

    return build


def write(i, value, index=None):
    return lambda h, f: raw.TensorArrayWriteV3(handle=h, index=i if index is None else index, value=value, flow_in=f)


def read(i, dtype=tf.float32):
    return lambda h, f: raw.TensorArrayReadV3(handle=h, index=i, dtype=dtype, flow_in=f)


def gather(indices, **attributes):
    return lambda h, f: raw.TensorArrayGatherV3(handle=h, indices=indices, dtype=tf.float32, flow_in=f, **attributes)


def scatter(indices, value):
    return lambda h, f: raw.TensorArrayScatterV3(handle=h, indices=indices, value=value, flow_in=f)


def split(value, lengths):
    return lambda h, f: raw.TensorArraySplitV3(handle=h, value=value, lengths=tf.constant(lengths, tf.int64), flow_in=f)


def concat(**attributes):
    return lambda h, f: raw.TensorArrayConcatV3(handle=h, dtype=tf.float32, flow_in=f, **attributes)


def both(*changes):
    def change(handle, flow):
        for one in changes:
            with tf.control_dependencies([flow]):
                flow = one(handle, flow)
        return flow

    return change


ONE = [1.0, 2.0]
MISUSES = {
    "write beyond": then(write(2, ONE), read(0)),
    "write before": then(write(-1, ONE), read(0)),
    "write twice": then(both(write(0, ONE), write(0, ONE)), read(0)),
    "write another type": then(write(0, np.float64([1.0])), read(0)),
    "write another shape": then(both(write(0, ONE), write(1, [1.0])), gather([0, 1])),
    "read before it is written": then(write(0, ONE), read(1)),
    "read beyond": then(write(0, ONE), read(7)),
    "read twice": then(both(write(0, ONE), write(1, ONE)), lambda h, f: gather([0, 0])(h, f)),
    "read another type": then(write(0, ONE), read(0, tf.float64)),
    "gather another shape": then(write(0, ONE), gather([0], element_shape=[3])),
    "gather nothing": then(write(0, ONE), gather(np.zeros(0, np.int32))),
    "scatter too few": then(
        lambda h, f: scatter(tf1.placeholder_with_default(np.int32([0]), None), np.ones((2, 2), np.float32))(h, f),
        read(0),
    ),
    "scatter beyond": then(scatter([0, 5], np.ones((2, 2), np.float32)), read(0)),
    "split into too few": then(split(np.ones(3, np.float32), [1, 1]), read(0)),
    "split another number": then(split(np.ones(3, np.float32), [3]), read(0)),
    "concatenate scalars": then(both(write(0, 1.0), write(1, 2.0)), concat()),
    "concatenate another shape": then(both(write(0, ONE), write(1, ONE)), concat(element_shape_except0=[3])),
    "use when it is closed": then(lambda h, f: raw.TensorArrayCloseV3(handle=h), read(0)),
    "a negative size": lambda: made(size=-1),
}


@pytest.mark.parametrize("misuse", sorted(MISUSES))
def test_misuse(misuse, xpu_device):
    """The CPU's exception with its words."""
    (want, _), (got, _) = run("/cpu:0", MISUSES[misuse]), run(xpu_device, MISUSES[misuse])
    assert got == want and issubclass(want[0], tf.errors.OpError)


def test_no_elements(xpu_device):
    """Empty arrays and elements of nothing."""

    def build():
        none = made(size=0)
        some = made(size=2)
        flow = write(0, np.zeros((0, 3), np.float32))(*some)
        return [
            gather(np.zeros(0, np.int32), element_shape=[2, 3])(*none),
            *concat(element_shape_except0=[3])(*none),
            gather([0])(some[0], flow),
        ]

    (got, _), (want, _) = run(xpu_device, build), run("/cpu:0", build)
    assert [x.shape for x in got] == [x.shape for x in want] == [(0, 2, 3), (0, 3), (0,), (1, 0, 3)]
