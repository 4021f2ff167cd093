"""Special functions, NextAfter, PopulationCount and Cross.

Functions are computed in double, whatever the type: what is float or narrower takes the rounding of the result alone.
In double they are rational approximations (8 roundings, as of Erfc), or series and continued fractions, whose terms are
made one from the other (16). Derivatives of those cancel (48). Those of the CPU, the exact values here, miss by more.
For 400 arguments, measured with 40 digits, Eigen's derivatives missed by up to 80 and 203 roundings (99 of 100 by less
than 27). Those of the OpenCL backend missed by 16.
"""

import numpy as np
import tensorflow as tf

from tests.sweep.cases.math import EDGES_AS_EVER, binary, first_type, special_pairs
from tests.sweep.runner import Case

RATIONAL, SERIES, DERIVATIVE = 8, 16, 48
SHAPES_OF_PAIRS = [((7, 9), (7, 9)), ((3, 5), ()), ((2, 1, 4), (3, 1)), ((0, 3), (1, 3))]
EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5)


def function(low, high, roundings, edges=EDGES):
    """Over a domain, at edges, and of nothing."""
    return [
        Case(lambda t, r: {"x": r.uniform((17, 9), t["T"], low, high)}, roundings),
        Case(lambda t, r: {"x": tf.cast(tf.constant(edges, tf.float64), t["T"])}, roundings),
        Case(lambda t, r: {"x": r.uniform((2, 0), t["T"])}),
    ]


def of_gamma(low, high, low2, high2, names=("a", "x"), roundings=SERIES):
    """Over a domain, and every edge with every other one."""
    return binary(low, high, low2, high2, roundings, names, pairs=SHAPES_OF_PAIRS) + special_pairs(names, roundings)


def polygamma(t, r):
    """Orders are whole numbers."""
    return {"a": tf.cast(r.ints((7, 9), 0, 5), t["T"]), "x": r.uniform((7, 9), t["T"], 0.1, 8.0)}


def betainc(shapes):
    return Case(
        lambda t, r: {
            "a": r.uniform(shapes[0], t["T"], 0.2, 6.0),
            "b": r.uniform(shapes[1], t["T"], 0.2, 6.0),
            "x": r.uniform(shapes[2], t["T"], 0.02, 0.98),
        },
        SERIES,
    )


def betainc_edges(t, r):
    a, b, x = np.meshgrid(*[[-1.0, 0.0, 0.5, 2.0, np.nan], [0.0, 1.0, 3.0], [-0.5, 0.0, 0.25, 1.0, 2.0, np.nan]])
    return {k: tf.constant(v.ravel(), t["T"]) for k, v in (("a", a), ("b", b), ("x", x))}


def products(args, exact):
    """Each component is the difference of two products."""
    a, b = (np.abs(args[k].astype(np.float64)) for k in ("a", "b"))
    return [np.roll(a, -1, -1) * np.roll(b, -2, -1) + np.roll(a, -2, -1) * np.roll(b, -1, -1)]


CASES = {
    **{f"Bessel{op}": function(-8.0, 8.0, RATIONAL) for op in ("I0", "I0e", "I1", "I1e", "J0", "J1")},
    **{f"Bessel{op}": function(0.05, 12.0, RATIONAL) for op in ("K0", "K0e", "K1", "K1e", "Y0", "Y1")},
    "Dawsn": function(-12.0, 12.0, SERIES),
    # On the CPU, Expint of infinity is NaN.
    "Expint": function(0.01, 60.0, SERIES, edges=(0.0, -0.0, 1.0, -1.0, -np.inf, np.nan, 0.5, 2.5)),
    "FresnelCos": function(-5.0, 5.0, SERIES),
    "FresnelSin": function(-5.0, 5.0, SERIES),
    "Spence": function(0.01, 5.0, SERIES, edges=(0.0, 1.0, -1.0, -np.inf, np.nan, 0.5, 2.5)),
    **{op: of_gamma(0.2, 8.0, 0.05, 8.0) for op in ("Igamma", "Igammac")},
    "IgammaGradA": of_gamma(0.2, 8.0, 0.05, 8.0, roundings=DERIVATIVE),
    "RandomGammaGrad": of_gamma(0.2, 8.0, 0.05, 8.0, ("alpha", "sample"), DERIVATIVE),
    "Zeta": of_gamma(1.2, 6.0, 0.1, 6.0, ("x", "q")),
    "Polygamma": [Case(polygamma, SERIES), *special_pairs(("a", "x"), SERIES)],
    "Betainc": [
        *(betainc(shapes) for shapes in (((7, 9),) * 3, ((), (4,), ()), ((2, 0),) * 3)),
        *([Case(betainc_edges, SERIES)] if EDGES_AS_EVER else []),
    ],
    "NextAfter": [
        *binary(names=("x1", "x2"), pairs=SHAPES_OF_PAIRS, compare="bits"),
        *(Case(lambda t, r, c=c: c.make(t, r), compare="bits") for c in special_pairs(("x1", "x2"))),
    ],
    "PopulationCount": [
        Case(lambda t, r: {"x": r.uniform((7, 9), first_type(t), -100, 100)}),
        Case(lambda t, r: {"x": tf.constant([t["T"].min, t["T"].max, 0, 1], t["T"])}),
    ],
    "Cross": [
        Case(lambda t, r, s=s: {"a": r.uniform(s, t["T"]), "b": r.uniform(s, t["T"])}, 2, products)
        for s in [(3,), (70, 3), (2, 0, 3), (2, 1, 4, 3)]
    ],
}
