"""Clusters: functions whose ops run as one, against the same ops run one by one, and against the CPU.

An eager call runs every op by itself, so that `function(x)` in eager mode is the unclustered run of a tf.function.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import in_threads, run_code

SIZES = (0, 1, 3, 4, 17)


class Maker:
    """A random program: `steps` drawn with a seed, that any device and mode can run."""

    UNARY = (tf.abs, tf.square, tf.tanh, tf.sigmoid, tf.negative, tf.nn.relu, tf.floor, tf.nn.gelu, tf.identity)
    BINARY = (tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.math.squared_difference)

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.rows, self.cols = (int(self.rng.choice(SIZES)) for _ in range(2))
        self.inputs = [self.values((self.rows, self.cols)) for _ in range(2)]
        self.inputs += [self.values((self.cols,)), self.values(())]
        self.initial = [self.values((self.rows, self.cols)), self.values((self.cols,))]
        self.steps = [self.step() for _ in range(int(self.rng.integers(5, 30)))]
        self.results = self.rng.integers(0, 1000, 3)

    def values(self, shape):
        return np.round(self.rng.uniform(-2, 2, shape), 2).astype(np.float32)

    def step(self):
        kind = self.rng.choice(
            [
                "unary",
                "binary",
                "reduce",
                "matmul",
                "shape",
                "select",
                "cast",
                "assign",
                "read",
                "branch",
                "loop",
                "order",
                "rows",
            ],
            p=[0.22, 0.22, 0.08, 0.06, 0.1, 0.05, 0.05, 0.07, 0.05, 0.02, 0.02, 0.02, 0.04],
        )
        return str(kind), self.rng.integers(0, 1000, 4)

    def __call__(self, variables, *inputs):
        """Runs it on variables (rows, cols) and (cols,)."""
        values = list(inputs)
        for kind, (a, b, c, which) in self.steps:
            x, y, z = (values[i % len(values)] for i in (a, b, c))
            values.append(self.apply(kind, which, x, y, z, variables))
        return [values[i % len(values)] for i in self.results] + [v.read_value() for v in variables]

    @staticmethod
    def fit(x, shape):
        """x, or its mean where it does not broadcast."""
        try:
            if tuple(tf.broadcast_static_shape(x.shape, shape)) == tuple(shape):
                return x
        except ValueError:
            pass
        return tf.reduce_sum(x) * 0.1

    def apply(self, kind, which, x, y, z, variables):
        if kind == "unary":
            return self.UNARY[which % len(self.UNARY)](x)
        if kind == "binary":
            return tf.clip_by_value(self.BINARY[which % len(self.BINARY)](x, self.fit(y, x.shape)), -9.0, 9.0)
        if kind == "reduce":
            reduce = (tf.reduce_sum, tf.reduce_max, tf.reduce_mean, tf.reduce_min)[which % 4]
            if x.shape.rank == 0 or 0 in x.shape:
                return tf.reduce_sum(x)
            return reduce(x, int(which) % x.shape.rank, keepdims=bool(which & 16)) * 0.2
        if kind == "matmul":
            return tf.tanh(tf.matmul(x, x, transpose_b=True)) if x.shape.rank == 2 else x + 1.0
        if kind == "shape":
            if x.shape.rank != 2:
                return tf.reshape(x, [-1])
            return (
                lambda: tf.transpose(x),
                lambda: tf.concat([x, x * 2.0], 0)[: x.shape[0]],
                lambda: tf.ensure_shape(tf.reshape(tf.reshape(x, [-1]), tf.shape(x)), x.shape),
                lambda: tf.reverse(x, [1]),
                lambda: tf.stack([x, -x])[which % 2],
                lambda: tf.pad(x, [[1, 0], [0, 1]])[1:, :-1],
            )[which % 6]()
        if kind == "select":
            return tf.where(x > 0.0, x, self.fit(y, x.shape))
        if kind == "cast":
            return tf.cast(tf.cast(x * 3.0, (tf.int64, tf.float64, tf.bool, tf.bfloat16)[which % 4]), tf.float32)
        variable = variables[which % 2]
        if kind == "assign":
            value = self.fit(x, variable.shape) + tf.zeros(variable.shape)
            (variable.assign, variable.assign_add, variable.assign_sub)[which // 2 % 3](tf.tanh(value))
            return value
        if kind == "read":
            return variable.read_value() + 0.5
        if kind == "branch":
            other = self.fit(z, x.shape)
            return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.tanh(x) + 1.0, lambda: tf.sigmoid(x) - other * 0.0)
        if kind == "loop":
            other = self.fit(y, x.shape)
            return tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, tf.tanh(t * 0.5 + other * 0.0)), (0, x))[1]
        if kind == "rows":
            return self.rows_of(x, variable, which)
        with tf.control_dependencies([x]):
            return tf.identity(z)

    @staticmethod
    def rows_of(x, variable, which):
        """Some rows of x or of a variable, whose own are maybe updated."""
        n = int((x if which & 1 else variable).shape[0]) if x.shape.rank else 0
        if n == 0 or 0 in x.shape or variable.shape[0] == 0:
            return x + 0.5
        indices = tf.cast(tf.math.floormod(tf.range(float(x.shape[0])) * float(which), float(n)), tf.int64)
        if which & 1:
            return tf.gather(x, indices)
        if which & 2:
            variable.scatter_add(tf.IndexedSlices(tf.tanh(tf.gather(variable, indices)) * 0.5, indices))
        return x + tf.reduce_sum(tf.gather(variable, indices)) * 0.01

    def run(self, device, in_graph, calls=2):
        with tf.device(device):
            variables = [tf.Variable(v) for v in self.initial]
            function = tf.function(lambda *inputs: self(variables, *inputs), autograph=False) if in_graph else None
            for _ in range(calls):
                inputs = [tf.constant(v) for v in self.inputs]
                results = function(*inputs) if in_graph else self(variables, *inputs)
            return [r.numpy() for r in results]


def check_random_program(seed, device):
    maker = Maker(seed)
    clustered = maker.run(device, True)
    for name, expected in (("one by one", maker.run(device, False)), ("on the CPU", maker.run("/cpu:0", True))):
        for i, (got, want) in enumerate(zip(clustered, expected, strict=True)):
            # A loop may turn a difference of rounding at a step (floor, where, bfloat16) into a large one: few of them.
            assert got.shape == want.shape, (seed, name, i)
            wrong = ~np.isclose(got, want, rtol=2e-4, atol=2e-4, equal_nan=True)
            assert np.count_nonzero(wrong) <= 0.02 * wrong.size, (seed, name, i, got[wrong][:5], want[wrong][:5])


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed, xpu_device):
    check_random_program(seed, xpu_device)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_more_random_programs(block, xpu_device):
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        check_random_program(seed, xpu_device)


@pytest.mark.of_hooks("clusters")
def test_the_ops_are_in_a_cluster():
    """Or the tests here would compare nothing."""
    code = """
import tensorflow as tf
from tests.support import placement
with placement.record_nodes() as nodes, tf.device("/xpu:0"):
    tf.function(lambda x: tf.tanh(x) * 2 + tf.exp(x))(tf.ones([4]))
ops = [node.op for node in nodes]
assert ops.count("_XpuCluster") == 1 and not {"Tanh", "Exp"} & set(ops), ops
"""
    outcome = run_code(code)
    assert outcome.returncode == 0, outcome


def function_on(device, body, *variables):
    """A function over variables with these values."""
    with tf.device(device):
        made = [tf.Variable(v) for v in variables]
        return tf.function(lambda *inputs: body(made, *inputs)), made


def test_a_value_read_before_an_update_stays(xpu_device):
    def body(v, x):
        before = v[0].read_value()
        v[0].assign_add(x)
        between = v[0] * 1.0
        v[0].assign(between * x)
        return before, between

    f, (v,) = function_on(xpu_device, body, [1.0, 2.0])
    for _ in range(3):
        old = v.numpy()
        before, between = f(tf.constant([3.0, 4.0]))
        np.testing.assert_array_equal(before, old)
        np.testing.assert_array_equal(between, old + np.float32([3, 4]))
        np.testing.assert_array_equal(v, (old + np.float32([3, 4])) * [3, 4])


def test_a_value_held_outside_stays(xpu_device):
    def body(v, x):
        v[0].assign_add(tf.tanh(x) * 0 + x)

    f, (v,) = function_on(xpu_device, body, [1.0, 2.0])
    with tf.device(xpu_device):
        f(tf.constant([1.0, 1.0]))
        held = v.read_value()
        for _ in range(3):
            f(tf.constant([1.0, 1.0]))
    np.testing.assert_array_equal(held, [2, 3])
    np.testing.assert_array_equal(v, [5, 6])


def test_one_variable_under_two_names(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable([1.0, 2.0])

        @tf.function
        def f(a, b):
            tf.raw_ops.AssignAddVariableOp(resource=a, value=tf.tanh([0.0, 0.0]) + 1)
            subtracted = tf.raw_ops.AssignSubVariableOp(resource=b, value=tf.tanh([0.0, 0.0]) + 3)
            with tf.control_dependencies([subtracted]):
                return tf.raw_ops.ReadVariableOp(resource=a, dtype=tf.float32)

        w = tf.Variable([5.0, 5.0])
        np.testing.assert_array_equal(f(v.handle, w.handle), [2, 3])
        np.testing.assert_array_equal(f(v.handle, v.handle), [0, 1])
        np.testing.assert_array_equal(w, [2, 2])


def test_swapped_variables(xpu_device):
    def body(v):
        a, b = v[0].read_value(), v[1].read_value()
        v[0].assign(tf.identity(b))
        v[1].assign(tf.identity(a))
        return tf.tanh(a) + tf.tanh(b)

    f, (v, w) = function_on(xpu_device, body, [1.0, 2.0], [3.0, 4.0])
    for i in range(4):
        f()
        first, second = ([3, 4], [1, 2]) if i % 2 == 0 else ([1, 2], [3, 4])
        np.testing.assert_array_equal(v, first)
        np.testing.assert_array_equal(w, second)


def test_an_uninitialized_variable_is_the_usual_error(xpu_device):
    with tf.device(xpu_device):
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="never_initialized")

        @tf.function
        def f(x):
            return tf.tanh(tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)) + tf.exp(x)

        for _ in range(3):
            with pytest.raises(tf.errors.FailedPreconditionError, match=r"(?s)uninitialized|does not exist"):
                f(tf.ones([2]))


def test_an_error_names_the_op_and_later_calls_work(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable([1.0])

        @tf.function(input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])])
        def f(x, y):
            v.assign_add([1.0])
            return tf.matmul(tf.tanh(x), y, name="the_product") + tf.exp(v)

        good = f(tf.ones([2, 3]), tf.ones([3, 2]))
        for _ in range(12):
            with pytest.raises(tf.errors.InvalidArgumentError, match="the_product"):
                f(tf.ones([2, 3]), tf.ones([2, 2]))
        again = f(tf.ones([2, 3]), tf.ones([3, 2]))
    assert v.numpy() == [15.0], "what runs before the op that fails has run, as without clusters"
    assert good.shape == again.shape == (2, 2)


@pytest.mark.of_hooks("clusters")
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["gather", "points", "variable", "segments", "scatter", "update", "division"])
def test_a_failure_on_data_names_the_op_and_ends_the_step(kind, large, xpu_device):
    """`large`: the commands are handed to another thread."""
    n = 1 << 18 if large else 4
    with tf.device(xpu_device):
        table, before, behind = tf.Variable(tf.ones([4, 2])), tf.Variable(tf.zeros([n])), tf.Variable(tf.zeros([n]))

        def fail(x, i):
            return {
                "gather": lambda: tf.gather(x, i, name="it"),
                "points": lambda: tf.gather_nd(x, i[:, None], name="it"),
                "variable": lambda: tf.raw_ops.ResourceGather(
                    resource=table.handle, indices=i, dtype=tf.float32, name="it"
                ),
                "segments": lambda: tf.math.unsorted_segment_sum(x[:2], i, 4, name="it"),
                "scatter": lambda: tf.tensor_scatter_nd_add(x, i[:, None], x[:2], name="it"),
                "update": lambda: table.scatter_sub(tf.IndexedSlices(x[:2], i), name="it"),
                "division": lambda: tf.math.floordiv(i, 9 - i, name="it"),
            }[kind]()

        @tf.function
        def f(i):
            before.assign_add(tf.ones([n]))
            x = tf.tanh(table) * 2.0
            with tf.control_dependencies([before.read_value()]):
                failed = fail(x, i)
            with tf.control_dependencies([tf.identity(failed)]):
                behind.assign_add(tf.exp(before * 0.0))
            return tf.cast(failed, tf.float32) + 1.0

        good, bad = tf.constant([0, 2], tf.int64), tf.constant([1, 9], tf.int64)
        first = f(good).numpy()
        for call in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)\b9\b.*\bit\b|by zero") as raised:
                f(bad)
            assert "xpu_cluster" in str(raised.value), "or this tests nothing"
            assert before.numpy()[-1] == 2 * call + 2
            assert behind.numpy()[-1] == call + 1
            if kind != "update":
                np.testing.assert_array_equal(f(good), first)
            else:
                f(good)


def test_an_op_in_a_loop_is_named(xpu_device):
    with tf.device(xpu_device):
        table = tf.Variable(tf.ones([4, 2]))

        @tf.function
        def f(indices):
            total = tf.zeros([2])
            for k in tf.range(3):
                total += tf.gather(table, indices[k], name="row")
            return total * 2.0

        np.testing.assert_array_equal(f(tf.constant([0, 1, 3], tf.int64)), [6, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)node while/row.*indices = 9 is not in \[0, 4\)"):
            f(tf.constant([0, 9, 3], tf.int64))


@pytest.mark.of_hooks("clusters")
def test_indices_that_change_are_no_signature(tmp_path):
    """A training step of embeddings, whose 32-bit indices TensorFlow keeps in host memory, is one cluster, captured
    once."""
    code = """
import numpy as np, tensorflow as tf
values = {}
for device in ("/xpu:0", "/cpu:0"):
    with tf.device(device):
        table, dense = tf.Variable(tf.ones([50, 4])), tf.Variable(tf.ones([4, 3]))
        @tf.function
        def step(i, y):
            with tf.GradientTape() as tape:
                found = tf.gather(table, tf.where(i < 0, i + 50, i))
                loss = tf.reduce_mean((tf.tanh(tf.reduce_mean(found, 1) @ dense) - y) ** 2)
            of_table, of_dense = tape.gradient(loss, [table, dense])
            flat = tf.reshape(of_table.indices, [-1])
            table.scatter_sub(tf.IndexedSlices(0.1 * of_table.values, flat))
            dense.assign_sub(0.1 * of_dense)
            return loss
        rng = np.random.default_rng(0)
        for _ in range(10):
            indices = tf.constant(rng.integers(-50, 50, (8, 5)), tf.int32)
            loss = step(indices, tf.constant(rng.random((8, 3)), tf.float32))
        values[device] = [loss.numpy(), table.numpy(), dense.numpy()]
for got, want in zip(*values.values()):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
"""
    outcome = run_code(code, environment={"TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    (dump,) = tmp_path.glob("*.txt")
    ops = set(re.findall(r"^\d+: (\w+) ", dump.read_text(), re.MULTILINE))
    assert {"ResourceGather", "ResourceScatterSub", "AssignSubVariableOp", "MatMul"} <= ops
    assert "Not captured" not in dump.read_text()


ASSERTIONS = {
    "equal": lambda x, y: tf.debugging.assert_equal(tf.shape(x), tf.shape(y), "not alike", summarize=5),
    "less": lambda x, y: tf.debugging.assert_less(tf.shape(x)[0], tf.shape(y)[0] + 1),
    "text alone": lambda x, y: tf.debugging.Assert(tf.reduce_all(tf.shape(x) == tf.shape(y)), ["one", "or", "two"]),
    "text among values": lambda x, y: tf.debugging.Assert(
        tf.reduce_any(tf.shape(x)[:1] == tf.shape(y)[:1]), [tf.shape(x), "is not", tf.shape(y), 1.5]
    ),
    "computed text": lambda x, y: tf.debugging.Assert(
        tf.reduce_all(tf.shape(x) == tf.shape(y)), [tf.strings.as_string(tf.shape(x))]
    ),
    "of values": lambda x, y: tf.debugging.assert_less(tf.size(x), 7 + tf.cast(y[0, 0], tf.int32)),
}


@pytest.mark.parametrize("kind", ASSERTIONS)
def test_assertions_of_shapes(kind, xpu_device):
    """They fail as on the CPU, before what comes after them."""

    def step_on(device):
        with tf.device(device):
            steps = tf.Variable(0.0)

        @tf.function(input_signature=[tf.TensorSpec([None, None])] * 2)
        def step(x, y):
            with tf.device(device):
                z = tf.tanh(x) * 2
                with tf.control_dependencies([ASSERTIONS[kind](z, tf.exp(y) - 1)]):
                    steps.assign_add(1.0)
                    return tf.reduce_sum(z * 2 + 1)

        return step, steps

    good, bad = tf.zeros([3, 2]), tf.zeros([4, 2])
    (step, steps), (on_cpu, _) = step_on(xpu_device), step_on("/cpu:0")
    for count in (1, 2, 3):
        assert step(good, good).numpy() == 6
        assert steps.numpy() == count
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed: ") as caught:
                step(bad, good)
            with pytest.raises(tf.errors.InvalidArgumentError) as expected:
                on_cpu(bad, good)
            said = [re.search("assertion failed: .*", error.value.message)[0] for error in (caught, expected)]
            assert said[0] == said[1]
            assert steps.numpy() == count


def test_many_signatures(xpu_device):
    with tf.device(xpu_device):
        f = tf.function(lambda x: tf.tanh(x) * 2 + tf.reduce_sum(x), input_signature=[tf.TensorSpec([None])])
        for _ in range(2):
            for n in range(100):
                x = np.linspace(-1, 1, n).astype(np.float32)
                np.testing.assert_allclose(f(x), np.tanh(x) * 2 + x.sum(), rtol=1e-5, atol=1e-5)


def test_host_values_that_never_repeat(xpu_device):
    with tf.device(xpu_device):
        f = tf.function(lambda x, i: tf.tanh(x)[i:] * 2 + tf.cast(i, tf.float32))
        x = np.linspace(-1, 1, 200).astype(np.float32)
        for i in range(150):
            np.testing.assert_allclose(f(x, tf.constant(i)), np.tanh(x)[i:] * 2 + i, rtol=1e-5, atol=1e-5)


def test_a_branch_that_is_not_taken_is_not_run(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable([0.0])

        @tf.function
        def f(x):
            if tf.reduce_sum(x) > 0:
                v.assign_add(tf.tanh(x) * 0 + 1)
                y = tf.exp(x) + tf.tanh(x)
            else:
                y = tf.square(x) - tf.tanh(x)
            return y * 2 + tf.sigmoid(x)

        for value in (1.0, -1.0, 1.0, -2.0):
            x = np.float32([value])
            expected = np.exp(x) + np.tanh(x) if value > 0 else x**2 - np.tanh(x)
            np.testing.assert_allclose(f(x), expected * 2 + 1 / (1 + np.exp(-x)), rtol=1e-5)
        assert v.numpy() == [2.0]


def test_threads_share_a_function(xpu_device):
    def body(v, x):
        v[0].assign_add(tf.ones_like(x) * tf.exp(x * 0))
        return tf.tanh(x) * 2 + x

    f, (v,) = function_on(xpu_device, body, np.zeros(100, np.float32))
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).uniform(-1, 1, 100).astype(np.float32)
        for _ in range(50):
            if not np.allclose(f(x), np.tanh(x) * 2 + x, 1e-5, 1e-5):
                wrong.append(seed)

    in_threads(work)
    assert not wrong
    np.testing.assert_array_equal(v, np.full(100, 200.0))


def test_bad_values_of_the_options_are_named():
    code = "import tensorflow as tf\nassert tf.config.list_physical_devices('XPU')"
    for variable, value in (("TF_XPU_FUSION", "maybe"), ("TF_XPU_DUMP_FUSION", "/dev/null/folder")):
        outcome = run_code(code, environment={variable: value})
        assert outcome.returncode == 0, outcome
        assert any(f"{variable}={value} is ignored" in w for w in outcome.warnings), outcome
