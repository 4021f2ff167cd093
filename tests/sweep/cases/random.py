"""Random ops: stateless ones bit for bit, seeded stateful ones too, call by call; of the others, the distribution."""

import itertools
import math

import numpy as np
import tensorflow as tf

from tests.support.missing_capabilities import BACKEND
from tests.sweep.rounding import COMPUTED_IN, FORMATS
from tests.sweep.runner import Case, Var

NUMBERS = (tf.int8, tf.uint8, tf.int16, tf.int32, tf.int64, tf.half, tf.bfloat16, tf.float32, tf.float64)
SHAPES = [(), (1,), (7,), (3, 5), (0,), (1000,), (20011,)]


def shape_tensor(s):
    return tf.constant(s, tf.int32, shape=(len(s),))


def v1(dtype_attr="dtype"):
    return [
        Case(
            lambda t, r, s=s: {"shape": shape_tensor(s), "seed": r.ints((2,), 0, 1 << 30), dtype_attr: t[dtype_attr]},
            compare="bits",
        )
        for s in SHAPES
    ]


def key_counter(r):
    return {
        "key": tf.cast(r.ints((1,), 0, 1 << 60), tf.uint64),
        "counter": tf.cast(r.ints((2,), 0, 1 << 60), tf.uint64),
        "alg": tf.constant(1),
    }


def v2():
    return [
        Case(lambda t, r, s=s: {"shape": shape_tensor(s), **key_counter(r), "dtype": t["dtype"]}, compare="bits")
        for s in SHAPES
    ]


# Kernels of an eager op are kept by its attributes, and a seed that was never used gets one that begins its sequence.
FRESH_SEEDS = itertools.count(1)


def fresh_seed():
    return {"seed": 3, "seed2": next(FRESH_SEEDS)}


def normal_cdf(x):
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


# The distribution function of each op's values.
DISTRIBUTIONS = {
    "RandomUniform": lambda x: x,
    "RandomStandardNormal": normal_cdf,
    "TruncatedNormal": lambda x: (normal_cdf(x) - normal_cdf(-2)) / (normal_cdf(2) - normal_cdf(-2)),
    "RandomUniformInt": lambda x: (x - 4) / 995,
}
RANGES = {
    "RandomUniform": (0, 1 - 2**-24),
    "RandomStandardNormal": (-6, 6),
    "TruncatedNormal": (-2, 2),
    "RandomUniformInt": (5, 999),
}
COUNT = 4000


def distribution(op):
    """Values without a seed lie in their range, are distributed as they should be, and differ from call to call."""

    def check(runs):
        values = [np.ravel(run[0]).astype(np.float64) for run in runs]
        for x in values:
            low, high = RANGES[op]
            assert x.shape == (COUNT,), f"{x.shape} values"
            assert low <= x.min(), f"{x.min()} is below {low}"
            assert x.max() <= high, f"{x.max()} is above {high}"
            # Kolmogorov and Smirnov: a step of the sample's distribution function is as large as one value is frequent.
            # A distance of 2.7 / sqrt(n) is exceeded once in a million samples.
            steps, counts = np.unique(x, return_counts=True)
            above = np.cumsum(counts) / COUNT
            expected = DISTRIBUTIONS[op](steps)
            largest = max(np.abs(above - expected).max(), np.abs(above - counts / COUNT - expected).max())
            allowed = 2.7 / math.sqrt(COUNT) + counts.max() / COUNT
            assert largest <= allowed, f"the distribution function is wrong by {largest:.3g}, more than {allowed:.3g}"
            # No value is more frequent than its type, or the range, makes it: 16-bit types hold 128 in [0.5, 1).
            assert counts.max() <= COUNT / 40, f"{steps[counts.argmax()]} occurs {counts.max()} times"
        for x, y in itertools.pairwise(values):
            assert np.mean(x == y) < 0.05, "two calls give the same values"

    return check


# Stateful ops promise no bits, and a device rounds logarithms and sines as it likes. The numbers that may differ by
# more. One at the end of its range may be drawn again, and then the rest of its group is another.
MOVED = {"RandomStandardNormal": 0, "TruncatedNormal": 4} if BACKEND == "XPU_OPENCL" else {}


def of_the_same_bits(op):
    """Box and Muller's numbers of the CPU's uniform ones, within the roundings of sqrt(-2 log(u)) sin(2 pi v)."""

    def compare(got, want):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        dtype = tf.as_dtype(got.dtype)
        radius = 8.0  # at most, and the angle is 2 pi, of which a rounding is one of the sine
        allowed = 4 * radius * 2 * np.pi * COMPUTED_IN[dtype].roundoff
        got, want = (x.astype(np.float64) for x in (got, want))
        wrong = ~(np.abs(got - want) <= allowed + 4 * FORMATS[dtype].roundoff * np.abs(want))
        assert wrong.sum() <= MOVED[op], f"{op} of {dtype.name}: {got[wrong][:5]}, expected {want[wrong][:5]}"

    return compare


def stateful(op):
    """With a seed, and without one."""

    def arguments(t, seed):
        dtype = t.get("dtype") or t["Tout"]
        limits = {"minval": tf.constant(5, dtype), "maxval": tf.constant(1000, dtype)}
        own = limits if op == "RandomUniformInt" else {"dtype": dtype}
        return {"shape": shape_tensor((COUNT,)), **own, **seed}

    compare = of_the_same_bits(op) if op in MOVED else "bits"
    return [
        Case(lambda t, r: arguments(t, fresh_seed()), compare=compare, stateful=True),
        Case(lambda t, r: arguments(t, {"seed": 0, "seed2": 0}), check=distribution(op)),
    ]


def all_there(runs):
    """The rows of 0, 1, 2, ... in another order, each time in another one."""
    for run in runs:
        assert sorted(run[0][:, 0].tolist()) == list(range(len(run[0]))), "rows are lost or repeated"
        assert (run[0] == run[0][:, :1]).all(), "rows are torn"
    for x, y in itertools.pairwise(runs):
        assert (x[0] != y[0]).any(), "two calls give the same order"
        assert np.mean(x[0] == np.arange(len(x[0]))[:, None]) < 0.2, "the order is hardly changed"


def from_state(bounds=False):
    def make(t, s):
        range_ = {"minval": tf.constant(5, t["dtype"]), "maxval": tf.constant(1000, t["dtype"])}
        return {
            "resource": Var(tf.constant([-3, 5, 7], tf.int64)),
            "algorithm": tf.constant(1, tf.int64),
            "shape": shape_tensor(s),
            **(range_ if bounds else {"dtype": t["dtype"]}),
        }

    return [Case(lambda t, r, s=s: make(t, s), compare="bits") for s in SHAPES]


def binomial():
    """Few successes are counted by inversion, many by rejection.

    The CPU's kernel does not move on a state whose buffer a constant shares, but changes the constant.
    """

    def make(t, s):
        return {
            "resource": Var(tf.constant([-3, 5, 7], tf.int64)),
            "algorithm": tf.constant(1, tf.int64),
            "shape": shape_tensor(s),
            "counts": tf.constant([3.0, 1000.0, 0.0], t["T"]),
            "probs": tf.constant([0.25, 0.5, 0.875], t["T"]),
            "dtype": t["dtype"],
        }

    def on_cpu(arguments):
        with tf.device("/cpu:0"):
            state = tf.Variable(arguments["resource"].value + 0)
            drawn = tf.raw_ops.StatefulRandomBinomial(**{**arguments, "resource": state.handle})
            return [drawn, state.read_value()]

    return [Case(lambda t, r, s=s: make(t, s), compare="bits", expect=on_cpu) for s in [(3,), (0, 3), (500, 3)]]


CASES = {
    **{
        op: v1()
        for op in (
            "StatelessRandomUniform",
            "StatelessRandomNormal",
            "StatelessTruncatedNormal",
            "StatelessRandomUniformFullInt",
        )
    },
    "StatelessRandomUniformInt": [
        Case(
            lambda t, r, s=s: {
                "shape": shape_tensor(s),
                "seed": r.ints((2,), 0, 1 << 30),
                "minval": tf.constant(5, t["dtype"]),
                "maxval": tf.constant(1000, t["dtype"]),
            },
            compare="bits",
        )
        for s in SHAPES
    ],
    **{
        op: v2()
        for op in (
            "StatelessRandomUniformV2",
            "StatelessRandomNormalV2",
            "StatelessTruncatedNormalV2",
            "StatelessRandomUniformFullIntV2",
        )
    },
    "StatelessRandomUniformIntV2": [
        Case(
            lambda t, r, s=s: {
                "shape": shape_tensor(s),
                **key_counter(r),
                "minval": tf.constant(5, t["dtype"]),
                "maxval": tf.constant(1000, t["dtype"]),
            },
            compare="bits",
        )
        for s in SHAPES
    ],
    "StatelessRandomGetKeyCounter": [Case(lambda t, r: {"seed": r.ints((2,), 0, 1 << 30)}, compare="bits")],
    "StatelessRandomGetAlg": [Case(lambda t, r: {}, compare="bits")],
    "StatelessRandomGetKeyCounterAlg": [Case(lambda t, r: {"seed": r.ints((2,), 0, 1 << 30)}, compare="bits")],
    **{op: stateful(op) for op in DISTRIBUTIONS},
    "RandomShuffle": [
        Case(lambda t, r, s=s: {"value": r.uniform(s, t["T"]), **fresh_seed()}, compare="bits", stateful=True)
        for s in [(4000,), (500, 3, 2)]
    ]
    + [
        Case(
            lambda t, r: {
                # A type of 8 bits holds no more, a bfloat16 no whole number beyond.
                "value": tf.cast(tf.repeat(tf.range(100)[:, None], 3, axis=1), t["T"]),
                "seed": 0,
                "seed2": 0,
            },
            check=all_there,
            types=NUMBERS,
        )
    ],
    **{
        op: from_state()
        for op in (
            "StatefulUniform",
            "StatefulStandardNormalV2",
            "StatefulTruncatedNormal",
            "StatefulUniformFullInt",
        )
    },
    "StatefulUniformInt": from_state(bounds=True),
    "StatefulRandomBinomial": binomial(),
    "RngReadAndSkip": [
        Case(
            lambda t, r: {
                "resource": Var(tf.constant([-1, 5, 7], tf.int64)),
                "alg": tf.constant(1),
                "delta": tf.constant(3, tf.uint64),
            },
            compare="bits",
        )
    ],
    "RngSkip": [
        Case(
            lambda t, r: {
                "resource": Var(tf.constant([-1, 5, 7], tf.int64)),
                "algorithm": tf.constant(1, tf.int64),
                "delta": tf.constant(3, tf.int64),
            },
            compare="bits",
        )
    ],
}
