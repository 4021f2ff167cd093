"""Random ops of distributions with parameters: the CPU's numbers, where it makes them on one thread, as it does few."""

import itertools
import math

import numpy as np
import tensorflow as tf

from tests.support.missing_capabilities import BACKEND
from tests.sweep.cases.random import fresh_seed, key_counter, shape_tensor
from tests.sweep.rounding import FORMATS
from tests.sweep.runner import Case
from tests.sweep.sessions import Built, hidden

ALPHAS = [0.5, 1.0, 3.25, 40.0]
# Most of the bell, its middle, a tail, the other tail.
INTERVALS = ([0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 2.0], [-2.0, -0.5, 3.0, -np.inf], [3.0, 0.5, np.inf, -2.0])
COUNT = 4000


def seed(r):
    return {"seed": r.ints((2,), 0, 1 << 30)}


def differ(mean, deviation):
    """Many numbers have their distribution's mean, within six deviations of a mean; no two calls give the same ones."""

    def check(runs):
        values = [np.ravel(run[0]).astype(np.float64) for run in runs]
        for x in values:
            assert abs(x.mean() - mean) <= 6 * deviation / np.sqrt(COUNT), f"the mean is {x.mean()}, expected {mean}"
            assert abs(x.std() / deviation - 1) < 0.2, f"the deviation is {x.std()}, expected {deviation}"
        for x, y in itertools.pairwise(values):
            assert np.mean(x == y) < 0.5, "two calls give the same numbers"

    return check


def gamma(start):
    shapes = [((3, 4), ALPHAS), ((50,), 0.3), ((0, 4), ALPHAS), ((2, 3, 2, 2), [[0.7, 2.0], [1.0, 9.0]])]
    return [
        Case(
            lambda t, r, s=s, a=a: {"shape": shape_tensor(s), **start(r), "alpha": tf.constant(a, t["dtype"])},
            compare="bits",
        )
        for s, a in shapes
    ]


def of_the_same_gammas(got, want):
    """Within the roundings of a power and a logarithm, which are a device's own."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=4 * FORMATS[tf.as_dtype(got.dtype)].roundoff, atol=0)


def intervals(dtype, names):
    return {name: tf.constant(v, dtype) for name, v in zip(names, INTERVALS)}


def alike(dtype, names):
    return {name: tf.constant(v, dtype) for name, v in zip(names, (1.0, 2.0, -1.0, 4.0))}


STATELESS = ("means", "stddevs", "minvals", "maxvals")
STATEFUL = ("means", "stdevs", "minvals", "maxvals")


def logits(t, r):
    """One row has numbers that are not finite, one a class that is all but certain."""
    rows = np.array([[0.0, 1.0, 2.0, -1.0], [np.nan, 0.5, -np.inf, 0.0], [9.0, 0.0, 0.0, 0.0]])
    return {"logits": tf.constant(rows, t["T"]), "num_samples": tf.constant(9), "output_dtype": t["output_dtype"]}


# In the middle integers, which stay, and at the end, too: an element that is wrong there is seen.
BETWEEN, TIMES, WHOLE = (-2.75, -0.25, 0.25, 0.5, 3.75), 600, np.arange(-60.0, 61.0)
NUMBERS = np.concatenate([np.repeat(BETWEEN, TIMES), WHOLE, np.repeat(BETWEEN, TIMES), [0.0, 77.0]])
BEYOND = [np.nan, np.inf, -np.inf, 6e4, -6e4, 3e38, -3e38, 127.0, -128.0, 33.0]


def stochastic(t, numbers, **key):
    """TensorFlow has no Python function for this op."""

    def build(**arguments):
        return [hidden("StochasticCastToInt", Tout=t["Tout"], **arguments)]

    with np.errstate(over="ignore"):
        return {"input": tf.cast(tf.constant(numbers, tf.float64), t["Tin"]), **key, "build": Built(build)}


def neighbours(runs):
    """Each number becomes one of the integers beside it, and their mean is the number."""
    for (rounded,) in runs:
        got = rounded.astype(np.float64)
        assert np.all((np.floor(NUMBERS) <= got) & (got <= np.ceil(NUMBERS)))
        for x in BETWEEN:
            fraction = x - np.floor(x)
            error = got[x == NUMBERS].mean() - x
            allowed = 5 * math.sqrt(fraction * (1 - fraction) / (2 * TIMES))
            assert abs(error) < allowed, f"the mean of what becomes of {x} is wrong by {error:.3g}, above {allowed:.3g}"
    np.testing.assert_array_equal(runs[0][0], runs[1][0])


def beyond(runs):
    """NaN is 0, and what is beyond the type its last integer."""
    for (rounded,) in runs:
        limits = np.iinfo(rounded.dtype)
        # 6e4 and 3e38 as half are 6e4 and infinity, as bfloat16 59904 and nearly 3e38.
        high = 59904 if limits.max > 59904 and rounded[3] == 59904 else min(60000, limits.max)
        low = max(-high, limits.min) if limits.max > 59904 else limits.min
        np.testing.assert_array_equal(rounded[:5], [0, limits.max, limits.min, high, low])
        np.testing.assert_array_equal(rounded[5:], [limits.max, limits.min, 127, -128, 33])


CASES = {
    "StochasticCastToInt": [
        Case(lambda t, r: stochastic(t, NUMBERS, **key_counter(r)), check=neighbours),
        Case(lambda t, r: stochastic(t, [], **key_counter(r)), compare="bits"),
        Case(lambda t, r: stochastic(t, BEYOND, **key_counter(r)), check=beyond),
    ],
    "StatelessRandomGammaV2": gamma(seed),
    "StatelessRandomGammaV3": gamma(key_counter),
    "RandomGamma": [
        Case(
            lambda t, r: {"shape": shape_tensor((3, 2)), "alpha": tf.constant(ALPHAS, t["T"]), **fresh_seed()},
            compare=of_the_same_gammas if BACKEND == "XPU_OPENCL" else "bits",
            stateful=True,
        ),
        Case(
            lambda t, r: {"shape": shape_tensor((COUNT,)), "alpha": tf.constant(4.0, t["T"]), "seed": 0, "seed2": 0},
            check=differ(4.0, 2.0),
        ),
    ],
    "StatelessParameterizedTruncatedNormal": [
        Case(
            lambda t, r, s=s, p=p: {"shape": shape_tensor(s), **seed(r), **p(t["dtype"], STATELESS)},
            compare="bits",
        )
        for s, p in [((5, 4), intervals), ((3, 7), alike), ((0, 4), intervals)]
    ],
    "ParameterizedTruncatedNormal": [
        *(
            Case(
                lambda t, r, s=s, p=p: {"shape": shape_tensor(s), **p(t["dtype"], STATEFUL), **fresh_seed()},
                compare="bits",
                stateful=True,
            )
            for s, p in [((4, 5), intervals), ((3, 7), alike), ((0, 4), alike)]
        ),
        Case(
            # A uniform distribution, nearly.
            lambda t, r: {
                "shape": shape_tensor((COUNT,)),
                **{k: tf.constant(v, t["dtype"]) for k, v in zip(STATEFUL, (0.0, 30.0, -3.0, 3.0))},
                "seed": 0,
                "seed2": 0,
            },
            check=differ(0.0, 3**0.5),
        ),
    ],
    "StatelessMultinomial": [Case(lambda t, r: {**logits(t, r), **seed(r)}, compare="bits")],
    "Multinomial": [
        Case(lambda t, r: {**logits(t, r), **fresh_seed()}, compare="bits", stateful=True),
        Case(
            lambda t, r: {
                "logits": tf.zeros((1, 1001), t["T"]),
                "num_samples": tf.constant(COUNT),
                "output_dtype": t["output_dtype"],
                "seed": 0,
                "seed2": 0,
            },
            check=differ(500.0, (1001**2 / 12) ** 0.5),
        ),
    ],
}
