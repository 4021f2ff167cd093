"""Random ops on XPU give the CPU's bits: stateless ones, sequences of seeded stateful ones, shuffles, generators."""

import re

import numpy as np
import pytest
import tensorflow as tf

from tests.support.processes import run_code
from tests.sweep.cases.random import MOVED, of_the_same_bits
from tests.sweep.runner import hard_placement

raw = tf.raw_ops
FLOATS = (tf.half, tf.bfloat16, tf.float32, tf.float64)
INTS = (tf.int32, tf.int64)
# Whole groups and not, several threads and not, empty and scalar.
SHAPES = ([], [0], [1], [7], [3, 5], [5003], [100003])


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


def same_bits(got, want):
    for g, w in zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True):
        g, w = g.numpy(), w.numpy()
        assert g.dtype == w.dtype
        assert g.shape == w.shape
        assert g.tobytes() == w.tobytes(), (g.ravel()[:5], w.ravel()[:5])


def check(device, fn):
    """fn() gives the same bits on `device`, eagerly and in a tf.function, as on the CPU."""
    with tf.device("/cpu:0"):
        want = fn()
    with tf.device(device):
        same_bits(fn(), want)
        same_bits(tf.function(fn, autograph=False)(), want)


def check_sequence(device, fn, calls=3, compare=same_bits):
    """A node that is run several times continues its sequence as on the CPU."""

    def run(where):
        @tf.function(autograph=False)
        def node():
            with tf.device(where):
                return fn()

        return [node() for _ in range(calls)]

    for got, want in zip(run(device), run("/cpu:0"), strict=True):
        compare(got, want)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("op", ["Uniform", "Normal", "TruncatedNormal"])
def test_stateless_floats(xpu_device, op, dtype, shape):
    name = "Stateless" + ("" if op == "TruncatedNormal" else "Random") + op
    shape = tf.constant(shape, tf.int32)
    check(xpu_device, lambda: getattr(raw, name)(shape=shape, seed=[3, -4], dtype=dtype))
    key, counter = tf.constant([2**63 + 5], tf.uint64), tf.constant([2**64 - 2, 2**64 - 1], tf.uint64)
    for alg in (1, 3):
        check(
            xpu_device,
            lambda alg=alg: getattr(raw, name + "V2")(shape=shape, key=key, counter=counter, alg=alg, dtype=dtype),
        )


@pytest.mark.parametrize("dtype", INTS, ids=lambda t: t.name)
@pytest.mark.parametrize("low,high", [(0, 1), (-5, 100), (None, None)])
def test_stateless_integers(xpu_device, dtype, low, high):
    low, high = (dtype.min, dtype.max) if low is None else (low, high)
    bounds = {"minval": tf.constant(low, dtype), "maxval": tf.constant(high, dtype)}
    key, counter = tf.constant([7], tf.uint64), tf.constant([8, 9], tf.uint64)
    for shape in SHAPES:
        size = tf.constant(shape, tf.int32)
        check(xpu_device, lambda size=size: raw.StatelessRandomUniformInt(shape=size, seed=[1, 2], **bounds))
        check(
            xpu_device,
            lambda size=size: raw.StatelessRandomUniformIntV2(shape=size, key=key, counter=counter, alg=1, **bounds),
        )


@pytest.mark.parametrize("dtype", [*INTS, tf.uint32, tf.uint64], ids=lambda t: t.name)
def test_stateless_full_integers(xpu_device, dtype):
    key, counter = tf.constant([7], tf.uint64), tf.constant([8, 9], tf.uint64)
    check(xpu_device, lambda: raw.StatelessRandomUniformFullInt(shape=[77], seed=[1, 2], dtype=dtype))
    check(
        xpu_device,
        lambda: raw.StatelessRandomUniformFullIntV2(shape=[77], key=key, counter=counter, alg=1, dtype=dtype),
    )


@pytest.mark.parametrize("seed", [[0, 0], [1, 2], [-1, 2**31 - 1]], ids=str)
@pytest.mark.parametrize("dtype", INTS, ids=lambda t: t.name)
def test_keys(xpu_device, seed, dtype):
    seed = tf.constant(seed, dtype)
    check(xpu_device, lambda: raw.StatelessRandomGetKeyCounter(seed=seed))
    check(xpu_device, lambda: raw.StatelessRandomGetKeyCounterAlg(seed=seed))
    check(xpu_device, lambda: raw.StatelessRandomGetAlg())
    check(xpu_device, lambda: tf.random.stateless_uniform([10, 10], seed=seed))
    check(xpu_device, lambda: tf.nn.experimental.stateless_dropout(tf.ones([100]), 0.5, seed))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_stateful_floats(xpu_device, op, dtype, shape):
    shape, compare = tf.constant(shape, tf.int32), same_bits
    if op in MOVED:

        def compare(got, want):
            of_the_same_bits(op)(got.numpy(), want.numpy())

    for seeds in ({"seed": 3, "seed2": 5}, {"seed": 0, "seed2": -7}):
        check_sequence(
            xpu_device, lambda seeds=seeds: getattr(raw, op)(shape=shape, dtype=dtype, **seeds), compare=compare
        )


@pytest.mark.parametrize("dtype", INTS, ids=lambda t: t.name)
def test_stateful_integers(xpu_device, dtype):
    bounds = {"minval": tf.constant(-5, dtype), "maxval": tf.constant(100, dtype)}
    check_sequence(xpu_device, lambda: raw.RandomUniformInt(shape=[1001], seed=3, seed2=5, **bounds))


def test_unseeded_numbers_differ(xpu_device):
    with tf.device(xpu_device):
        a, b = (raw.RandomUniform(shape=[100], dtype=tf.float32).numpy() for _ in range(2))
        node = tf.function(lambda: raw.RandomUniform(shape=[100], dtype=tf.float32), autograph=False)
        c, d = (node().numpy() for _ in range(2))
    assert len({x.tobytes() for x in (a, b, c, d)}) == 4
    assert all(x.min() >= 0 and x.max() < 1 for x in (a, b, c, d))


@pytest.mark.parametrize("shape", [[0], [1], [2], [9], [1000], [7, 3], [0, 2], [70001]], ids=str)
@pytest.mark.parametrize("dtype", [tf.float32, tf.half, tf.int32, tf.int64, tf.bool], ids=lambda t: t.name)
def test_shuffle(xpu_device, dtype, shape):
    value = tf.cast(tf.constant(np.arange(np.prod(shape)).reshape(shape) % 120), dtype)
    check_sequence(xpu_device, lambda: raw.RandomShuffle(value=value, seed=4, seed2=9))


def test_generator(xpu_device):
    def run(where):
        with tf.device(where):
            generator = tf.random.Generator.from_state([-1, 5, 7], alg="philox")  # the low half carries at once
            values = [generator.normal([5]), generator.uniform([3, 3], maxval=9, dtype=tf.int32)]
            snapshot = generator.state.read_value()  # keeps the buffer: the next update must not write to it
            generator.skip(10)
            values += [generator.truncated_normal([2]), generator.make_seeds(2)]
            values += [tf.function(generator.uniform, autograph=False)([4]), generator.state.read_value(), snapshot]
        return values

    same_bits(run(xpu_device), run("/cpu:0"))


def seeds(**arguments):
    return {"shape": [3], "seed": [1, 2], **arguments}


def keys(**arguments):
    return {
        "shape": [3],
        "key": tf.constant([1], tf.uint64),
        "counter": tf.constant([1, 2], tf.uint64),
        "alg": 1,
        **arguments,
    }


@pytest.mark.parametrize(
    "op,arguments,message",
    [
        ("StatelessRandomUniformV2", keys(alg=2), "Unsupported algorithm id: 2"),
        ("StatelessRandomUniformV2", keys(alg=[1]), "input 3 (0-based) must have shape [], not [1]"),
        (
            "StatelessRandomUniformV2",
            keys(counter=tf.constant([1], tf.uint64)),
            "counter must be a vector with length at least 2; got shape: [1]",
        ),
        ("StatelessRandomUniformV2", keys(key=tf.constant([1, 2], tf.uint64)), "key must have shape [1], not [2]"),
        ("StatelessRandomUniform", seeds(seed=[1, 2, 3]), "seed must have shape [2], not [3]"),
        ("StatelessRandomUniform", seeds(shape=[-3]), "-3"),
        ("StatelessRandomUniformInt", seeds(minval=7, maxval=7), "Need minval < maxval, got 7 >= 7"),
        ("RandomUniformInt", {"shape": [1], "minval": 7, "maxval": 6}, "Need minval < maxval, got 7 >= 6"),
        ("RandomUniformInt", {"shape": [3], "minval": [7], "maxval": 8}, "minval must be 0-D, got shape [1]"),
        ("RandomUniform", {"shape": [[3]], "dtype": tf.float32}, "shape must be a vector"),
    ],
)
def test_bad_arguments(xpu_device, op, arguments, message):
    with tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError) as error:
        getattr(raw, op)(**arguments)
    assert message in error.value.message


def test_bad_generator_state(xpu_device):
    with tf.device(xpu_device):
        short, wrong = tf.Variable(tf.zeros([2], tf.int64)), tf.Variable(tf.zeros([3], tf.float32))
        delta = tf.constant(1, tf.uint64)
        for variable, alg, message, kind in (
            (short, 1, "size of state must be at least 3; got 2", tf.errors.InvalidArgumentError),
            (wrong, 1, "dtype of RNG state variable must be int64, not float", tf.errors.InvalidArgumentError),
            (short, 9, "Unsupported algorithm id: 9", tf.errors.InvalidArgumentError),
            (short, 2, "don't support the ThreeFry algorithm", tf.errors.UnimplementedError),
        ):
            with pytest.raises(kind) as error:
                raw.RngReadAndSkip(resource=variable.handle, alg=alg, delta=delta)
            assert message in error.value.message


# Ops that draw from the state of a generator, on a variable of the device: where a sequence of calls leaves it.
DRAWS = {
    "StatefulUniform": {"dtype": tf.float32},
    "StatefulStandardNormalV2": {"dtype": tf.float64},
    "StatefulTruncatedNormal": {"dtype": tf.half},
    "StatefulUniformInt": {"minval": tf.constant(-5, tf.int64), "maxval": tf.constant(100, tf.int64)},
    "StatefulUniformFullInt": {"dtype": tf.uint32},
}


@pytest.mark.parametrize("op", DRAWS)
def test_draws_from_a_variable(xpu_device, op):
    """The counter, here about to overflow, moves on as on the CPU; what was read before keeps its value."""

    def run(device):
        with tf.device(device):
            state = tf.Variable(tf.constant([-2, -1, 9], tf.int64))
            before = state.read_value()
            draws = [
                getattr(raw, op)(resource=state.handle, algorithm=tf.constant(a, tf.int64), shape=shape, **DRAWS[op])
                for a, shape in ((1, [3]), (3, [0]), (1, [2, 501]), (1, []))
            ]
            return [*draws, before, state.read_value()]

    same_bits(run(xpu_device), run("/cpu:0"))


@pytest.mark.parametrize(
    ("state", "algorithm", "shape", "error", "message"),
    [
        ([1, 2], 1, [3], "InvalidArgument", "the size of state must be at least 3; got 2"),
        ([[1, 2, 3]], 1, [3], "InvalidArgument", "RNG state must have one and only one dimension, not 2"),
        ([1.0, 2.0, 3.0], 1, [3], "InvalidArgument", "dtype of RNG state variable must be int64, not float"),
        ([1, 2, 3], 7, [3], "InvalidArgument", "Unsupported algorithm id: 7"),
        ([1, 2, 3], 2, [3], "Unimplemented", "don't support the ThreeFry algorithm"),
        ([1, 2, 3], [1], [3], "InvalidArgument", r"input 1 \(0-based\) must have shape \[\], not \[1\]"),
        ([1, 2, 3], 1, [-3], "InvalidArgument", "Dimension -3 must be >= 0"),
        ([1, 2, 3], 1, [[3]], "InvalidArgument", "shape must be a vector"),
    ],
)
def test_bad_draws_from_a_variable(xpu_device, state, algorithm, shape, error, message):
    for device in ("/cpu:0", xpu_device):
        with tf.device(device), pytest.raises(getattr(tf.errors, error + "Error"), match=message):
            variable = tf.Variable(tf.constant(state, tf.float32 if isinstance(state[0], float) else tf.int64))
            raw.StatefulUniform(
                resource=variable.handle, algorithm=tf.constant(algorithm, tf.int64), shape=tf.constant(shape)
            )


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float16, tf.float64])
def test_binomial_numbers_of_a_generator(xpu_device, dtype):
    """TensorFlow has them on the CPU alone, where it cannot place an op on a variable of another device."""

    def run(device):
        with tf.device(device):
            generator = tf.random.Generator.from_state([1, 2, 3], alg="philox")

            def draw():
                of_one = generator.binomial([2, 5], counts=3.0, probs=0.5, dtype=dtype)
                return of_one, generator.binomial([4, 2], counts=[900.0, 7.0], probs=[0.3, 0.9], dtype=dtype)

            function = tf.function(draw)
            return [*draw(), *function(), generator.normal([3]), *function(), generator.state.read_value()]

    got = run(xpu_device)
    same_bits(got, run("/cpu:0"))
    if dtype != tf.int32:  # which is in host memory
        assert got[0].device.endswith(xpu_device[1:].upper())


def test_a_state_read_before_binomial_numbers(xpu_device):
    """It keeps its value. (TensorFlow's kernel writes to it, and leaves the variable as it is.)"""
    with tf.device(xpu_device):
        state = tf.Variable(tf.constant([-2, -1, 9], tf.int64))
        before = state.read_value()
        one = {"algorithm": tf.constant(1, tf.int64), "shape": [2], "counts": 40.0, "probs": 0.5}
        raw.StatefulRandomBinomial(resource=state.handle, **one)
        assert before.numpy().tolist() == [-2, -1, 9]
        assert state.numpy().tolist() == [63998, 0, 9]


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ([1, 2], {}),
        ([[1, 2, 3]], {}),
        ([1.0, 2.0, 3.0], {}),
        ([1, 2, 3], {"algorithm": tf.constant(7, tf.int64)}),
        ([1, 2, 3], {"algorithm": tf.constant(2, tf.int64)}),
        ([1, 2, 3], {"algorithm": tf.constant([1], tf.int64)}),
        ([1, 2, 3], {"shape": tf.constant([-3])}),
        ([1, 2, 3], {"shape": tf.constant([[3]])}),
        ([1, 2, 3], {"shape": tf.constant([2])}),
        ([1, 2, 3], {"counts": tf.constant([1.0, 2.0])}),
        ([1, 2, 3], {"probs": tf.constant([[0.5, 0.5]])}),
    ],
)
def test_bad_binomial_numbers(xpu_device, state, change):
    """The words are the CPU's, and the state stays as it is."""

    def run(device):
        with tf.device(device):
            variable = tf.Variable(tf.constant(state, tf.float32 if isinstance(state[0], float) else tf.int64))
            arguments = {
                "algorithm": tf.constant(1, tf.int64),
                "shape": tf.constant([3]),
                "counts": tf.constant([1.0, 2.0, 3.0]),
                "probs": tf.constant([0.5]),
            }
            with pytest.raises(tf.errors.OpError) as error:
                raw.StatefulRandomBinomial(resource=variable.handle, **{**arguments, **change})
            assert np.array_equal(variable.numpy(), state)
            return type(error.value), error.value.message

    assert run(xpu_device) == run("/cpu:0")


def test_binomial_numbers_up_to_nan(xpu_device):
    """TensorFlow's kernel would search without end."""
    with tf.device(xpu_device):
        state = tf.Variable(tf.constant([1, 2, 3], tf.int64))
        one = {"algorithm": tf.constant(1, tf.int64), "shape": [2], "probs": 0.5}
        with pytest.raises(tf.errors.InvalidArgumentError, match="counts must be numbers, got nan as element 1"):
            raw.StatefulRandomBinomial(resource=state.handle, counts=[3.0, np.nan], **one)


def test_an_empty_range(xpu_device):
    """Refused when a number has to be drawn from it; for no numbers at all, only where TensorFlow does."""
    three = {"minval": tf.constant(3), "maxval": tf.constant(3)}

    def from_variable(shape):
        state = tf.Variable(tf.constant([1, 2, 3], tf.int64)).handle
        return raw.StatefulUniformInt(resource=state, algorithm=tf.constant(1, tf.int64), shape=shape, **three)

    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            for draw in (
                lambda shape: raw.RandomUniformInt(shape=shape, seed=1, **three),
                lambda shape: raw.StatelessRandomUniformInt(shape=shape, seed=[1, 2], **three),
            ):
                assert draw([0, 2]).shape == (0, 2)
                with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
                    draw([1])
            for shape in ([0], [1]):
                with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
                    from_variable(shape)
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"minval must be 0-D, got shape \[1\]"):
                raw.RandomUniformInt(shape=[0], minval=tf.constant([3]), maxval=tf.constant(3), seed=1)


@pytest.mark.host_only
def test_determinism():
    """Where a program asks for the same results in every run, random ops without a seed refuse, as on the CPU."""
    outcome = run_code(
        """
        import json
        import tensorflow as tf

        raw = tf.raw_ops
        tf.config.experimental.enable_op_determinism()
        draws = {
            "RandomUniform": lambda **seed: raw.RandomUniform(shape=[3], dtype=tf.float32, **seed),
            "RandomStandardNormal": lambda **seed: raw.RandomStandardNormal(shape=[3], dtype=tf.float32, **seed),
            "TruncatedNormal": lambda **seed: raw.TruncatedNormal(shape=[3], dtype=tf.float32, **seed),
            "RandomUniformInt": lambda **seed: raw.RandomUniformInt(shape=[3], minval=0, maxval=9, **seed),
            "RandomShuffle": lambda **seed: raw.RandomShuffle(value=tf.range(9.0), **seed),
            "in a function": lambda **seed: tf.function(lambda: raw.RandomUniform(shape=[3], dtype=tf.half, **seed))(),
        }
        said = {}
        for device in ("/cpu:0", "/xpu:0"):
            with tf.device(device):
                for name, draw in draws.items():
                    draw(seed=1)
                    try:
                        draw()
                        said[device + name] = None
                    except tf.errors.InvalidArgumentError as error:
                        said[device + name] = str(error)
        print(json.dumps(said))
        """
    )
    assert outcome.returncode == 0, outcome
    assert len(outcome.json) == 12
    for call, message in outcome.json.items():
        assert "When determinism is enabled, random ops must have a seed specified." in (message or ""), call


SUMS = {
    "TensorScatterAdd": lambda i, x: raw.TensorScatterAdd(tensor=tf.zeros((50, 3)), indices=i[:, None], updates=x),
    "ScatterNd": lambda i, x: raw.ScatterNd(shape=[50, 3], indices=i[:, None], updates=x),
    "UnsortedSegmentSum": lambda i, x: raw.UnsortedSegmentSum(data=x, segment_ids=i, num_segments=50),
    "SegmentSum": lambda i, x: raw.SegmentSum(data=x, segment_ids=np.sort(i)),
    "SegmentMean": lambda i, x: raw.SegmentMean(data=x, segment_ids=np.sort(i)),
    "Sum": lambda i, x: raw.Sum(input=x, axis=[0]),
    "BiasAddGrad": lambda i, x: raw.BiasAddGrad(out_backprop=x),
}


@pytest.mark.parametrize("op", SUMS)
def test_sums_are_the_same_every_time(xpu_device, op):
    """Scattered and segment sums add in the order of the indices, whichever thread comes first."""
    rng = np.random.default_rng(7)
    with tf.device(xpu_device):
        i = tf.constant(rng.integers(0, 50, 40000), tf.int64)
        # The sizes are very different, so that another order gives other bits.
        x = tf.constant((rng.standard_normal((40000, 3)) * 10.0 ** rng.integers(-4, 5, (40000, 3))).astype(np.float32))
        first = SUMS[op](i, x).numpy()
        for _ in range(20):
            np.testing.assert_array_equal(SUMS[op](i, x), first)
        if op in ("TensorScatterAdd", "ScatterNd", "UnsortedSegmentSum"):
            in_order = np.zeros((50, 3), np.float32)
            np.add.at(in_order, i.numpy(), x.numpy())
            np.testing.assert_array_equal(first, in_order)


SEEDED = {
    "uniform": lambda seed: tf.random.stateless_uniform([50, 7], seed),
    "normal": lambda seed: tf.random.stateless_normal([350], seed, dtype=tf.float64),
    "truncated": lambda seed: tf.random.stateless_truncated_normal([10, 35], seed),
    "integers": lambda seed: tf.random.stateless_uniform([350], seed, -5, 1000, tf.int64),
    "all integers": lambda seed: tf.random.stateless_uniform([350], seed, None, None, tf.uint32),
    "dropout": lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([20, 17]), 0.3, seed),
}


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
@pytest.mark.parametrize("name", SEEDED)
def test_seeds_on_the_device(name, dtype, xpu_device):
    """Seeds that a variable counts, as Keras's do: the CPU's numbers, bit for bit, in every step of a function."""
    found = {}
    for device in (xpu_device, "/cpu:0"):
        with tf.device(device):
            state = tf.Variable(tf.constant([0xFFFFFFFE, 3], tf.uint32))

            @tf.function
            def step(state=state):
                seed = tf.cast(state + tf.constant([0, 0], tf.uint32), dtype)
                state.assign_add(tf.constant([1, 0], tf.uint32))
                return (
                    SEEDED[name](seed),
                    SEEDED[name](seed * 2 + 1),
                    tf.reduce_sum(tf.tanh(tf.cast(state, tf.float32))),
                )

            found[device] = [step()[:2] for _ in range(5)]
    for on_xpu, on_cpu in zip(*found.values(), strict=True):
        for got, want in zip(on_xpu, on_cpu, strict=True):
            np.testing.assert_array_equal(got, want)
    assert not np.array_equal(found[xpu_device][0][0], found[xpu_device][1][0])


def test_seeds_in_a_loop(xpu_device):
    found = {}
    for device in (xpu_device, "/cpu:0"):
        with tf.device(device):

            @tf.function
            def f(seed):
                total = tf.zeros([100])
                for i in range(3):
                    total += tf.random.stateless_uniform([100], [i, seed])
                for i in tf.range(4):
                    total += tf.random.stateless_normal([100], tf.stack([i, seed]))
                return total

            found[device] = [f(tf.constant(seed)).numpy() for seed in (7, -1, 7)]
    np.testing.assert_array_equal(*found.values())
    assert not np.array_equal(found[xpu_device][0], found[xpu_device][1])


@pytest.mark.of_hooks("clusters")
def test_a_step_with_dropout_is_one_cluster(tmp_path):
    code = """
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(0)
layers = tf.keras.layers
with tf.device("/xpu:0"):
    model = tf.keras.Sequential([layers.Dense(32, "relu"), layers.Dropout(0.5), layers.Dense(16), layers.Dropout(0.1)])
    model.compile("adam", "mse")
    history = model.fit(np.ones([64, 8], np.float32), np.ones([64, 16], np.float32), batch_size=16, epochs=2, verbose=0)
assert np.isfinite(history.history["loss"]).all()
"""
    outcome = run_code(code, environment={"TF_XPU_FUSION": "1", "TF_XPU_DUMP_FUSION": str(tmp_path)})
    assert outcome.returncode == 0, outcome
    (dump,) = [text for text in (path.read_text() for path in tmp_path.glob("*.txt")) if "StatelessRandom" in text]
    assert "Not captured" not in dump
    assert len(re.findall("from a start on the device", dump)) == 4
    assert "MatMul" in dump and "AssignSubVariableOp" in dump


def test_bad_seeds_on_the_device(xpu_device):
    with tf.device(xpu_device):

        @tf.function(input_signature=[tf.TensorSpec(None, tf.int32)])
        def f(seed):
            return tf.random.stateless_uniform([3], seed) + tf.random.stateless_normal([3], seed)

        with pytest.raises(tf.errors.InvalidArgumentError, match=r"seed must have shape \[2\], not \[3\]"):
            f(tf.constant([1, 2, 3]))
        assert f(tf.constant([1, 2])).shape == [3]
