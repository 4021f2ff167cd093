"""Elementwise ops and reductions."""

import dataclasses

import numpy as np
import scipy.special
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, CONDITION, Case

# From 2.22 on TensorFlow's CPU kernels say something else of a few arguments that are NaN, infinite or at an edge
# (docs/versions.md). Kernels of XPU say what they say up to 2.21.
EDGES_AS_EVER = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 22)

SHAPES = [(), (7,), (3, 5), (2, 0, 3), (17, 129)]
# Operand shapes of binary ops: equal, scalar on either side, rows, columns, both sides, empty.
SHAPES_OF_PAIRS = [
    ((3, 5), (3, 5)),
    ((3, 5), ()),
    ((), (4,)),
    ((3, 5), (5,)),
    ((3, 5), (3, 1)),
    ((2, 1, 4), (3, 1)),
    ((33, 65), (33, 65)),
    ((0, 3), (1, 3)),
    ((64, 1, 7), (1, 9, 7)),
]

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
DOUBLE = (tf.float64,)
COMPLEX = (tf.complex64, tf.complex128)
SMALL_INTEGERS = (tf.int8, tf.int16, tf.uint8, tf.uint16)


def first_type(types):
    return next(iter(types.values()))


# The roundings by which the functions may err: a class by the way in which a function is computed, not an exact count.
# 0: the result is one IEEE operation, or a number that is there already.
# 4: a polynomial follows a reduction of the argument.
# 6: a few operations follow one or two functions of class 4 or 6 (Softplus is a maximum + Log1p of Exp).
# 8: the function has more steps, or a zero that cancellation makes (Lgamma, Digamma, Ndtri).
# So a formula of several instructions has 6. It has 8 if it calls a function of class 8 or makes such a zero, and 0 if
# it is exact (Relu).
ROUNDINGS = {
    **dict.fromkeys(("Neg", "Abs", "Sign", "Ceil", "Floor", "Rint", "Conj", "Snapshot", "ZerosLike", "OnesLike"), 0),
    **dict.fromkeys(("IsNan", "IsInf", "IsFinite", "Square", "Sqrt", "Reciprocal", "Inv", "Relu", "Relu6"), 0),
    **dict.fromkeys(("Exp", "Expm1", "Log", "Log1p", "Sin", "Cos", "Atan", "Rsqrt", "Erf"), 4),
    **dict.fromkeys(
        ("Asin", "Acos", "Tan", "Sinh", "Cosh", "Tanh", "Sigmoid", "Elu", "Selu", "Softplus", "Softsign"), 6
    ),
    **dict.fromkeys(("Asinh", "Acosh", "Atanh", "Erfc", "Erfinv", "Ndtri", "Lgamma", "Digamma"), 8),
}


def roundings_of(op):
    """Those of the table; what is exact on real numbers takes several operations on complex ones."""
    n = ROUNDINGS[op]
    return n or (lambda args: 4 if any(isinstance(v, tf.Tensor) and v.dtype.is_complex for v in args.values()) else 0)


def exactly(cases, f, types=FLOATS):
    """The cases, for these types expecting f of the argument as double; for others, as they are."""
    others = tuple(t for t in FLOATS if t not in types)
    exact = [
        dataclasses.replace(
            c,
            expect=lambda args: [tf.constant(f(next(iter(args.values())).numpy().astype(float)), tf.float64)],
            types=types,
        )
        for c in cases
    ]
    return exact + [dataclasses.replace(c, types=others) for c in cases if others]


def elu(x):
    return np.where(x < 0, np.expm1(np.minimum(x, 0)), x)


def selu(x):
    return 1.0507009873554804934193349852946 * np.where(x < 0, 1.6732632423543772848170429916717 * elu(x), x)


def unary(op, low=-3.0, high=3.0, name="x"):
    return [Case(lambda t, r, s=s: {name: r.uniform(s, first_type(t), low, high)}, roundings_of(op)) for s in SHAPES]


def special_values(t):
    dtype = first_type(t)
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 100.0, -100.0, 0.5, 2.5]
    return tf.cast(tf.constant(values), dtype)


def unary_special(op, low=-3.0, high=3.0, name="x", types=FLOATS):
    """Random values in a domain, and (for floats) infinities, NaN and zeros."""
    special = Case(lambda t, r: {name: special_values(t)}, roundings_of(op), types=types)
    return [*unary(op, low, high, name), special]


def binary(
    low=-3.0, high=3.0, low2=None, high2=None, roundings=0.0, names=("x", "y"), attrs=None, pairs=None, compare="close"
):
    low2, high2 = (low if low2 is None else low2), (high if high2 is None else high2)

    def case(a, b):
        return Case(
            lambda t, r: {
                names[0]: r.uniform(a, first_type(t), low, high),
                names[1]: r.uniform(b, first_type(t), low2, high2),
                **(attrs or {}),
            },
            roundings,
            compare=compare,
        )

    return [case(a, b) for a, b in (pairs or SHAPES_OF_PAIRS)]


def same_shape_binary(names, low=-3.0, high=3.0, low2=None, high2=None, roundings=4.0, attrs=None):
    return binary(
        low,
        high,
        low2,
        high2,
        roundings,
        names,
        attrs,
        pairs=[((3, 5), (3, 5)), ((129,), (129,)), ((0,), (0,)), ((6,), (6,))],
    )


def special_pairs(names, roundings=4.0, attrs=None):
    """Infinities, NaN, zeros and others, each with each; none whose powers a type may not hold."""

    def arguments(t, r):
        x = tf.cast(tf.constant([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5]), first_type(t))
        n = int(x.shape[0])
        return {names[0]: tf.repeat(x, n), names[1]: tf.tile(x, [n]), **(attrs or {})}

    return [Case(arguments, roundings, types=FLOATS)]


def reduction(
    axes=((), (0,), (1,), (-1,), (0, 2), (0, 1, 2)),
    shape=(3, 5, 7),
    low=-2.0,
    high=2.0,
    relative_to=ABSOLUTE,
    edge_types=(),
):
    """Sums, products and extrema; the extent that is reduced is the number of terms."""

    def roundings(args):
        extents, axes = args["input"].shape, args["axis"].numpy()
        return terms(int(np.prod([extents[a] for a in axes], dtype=np.int64))) + 2

    cases = [
        Case(
            lambda t, r, a=a, k=k: {
                "input": r.uniform(shape, first_type(t), low, high),
                "axis": tf.constant(a, t.get("Tidx", tf.int32)),
                "keep_dims": k,
            },
            roundings,
            relative_to,
        )
        for a in axes
        for k in (False, True)
    ]
    for s, a in [((130, 70), (0,)), ((130, 70), (1,)), ((4, 0, 3), (1,)), ((4, 0, 3), (0,)), ((), ()), ((2000,), (0,))]:
        cases.append(
            Case(
                lambda t, r, s=s, a=a: {
                    "input": r.uniform(s, first_type(t), low, high),
                    "axis": tf.constant(a, tf.int64),
                    "keep_dims": False,
                },
                roundings,
                relative_to,
                types=edge_types,
            )
        )
    return cases


def arg_reduction():
    cases = []
    for shape, axis in [((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 4), -1), ((33, 70), 1)]:
        for out in (tf.int64, tf.int32):
            cases.append(
                Case(
                    lambda t, r, s=shape, a=axis, o=out: {
                        "input": r.uniform(s, first_type(t)),
                        "dimension": tf.constant(a),
                        "output_type": t.get("output_type", o),
                    }
                )
            )
    return cases


CASES = {
    **{
        op: unary_special(op)
        for op in (
            "Neg",
            "Abs",
            "Sign",
            "Square",
            "Exp",
            "Expm1",
            "Sin",
            "Cos",
            "Tan",
            "Atan",
            "Sinh",
            "Cosh",
            "Tanh",
            "Asinh",
            "Sigmoid",
            "Erfc",
            "Ceil",
            "Floor",
            "Rint",
            "IsNan",
            "IsInf",
            "IsFinite",
            "ZerosLike",
            "OnesLike",
        )
    },
    # On the CPU, Erf of a double infinity is NaN, Round of any integer 0, Elu of a double exp(x) - 1. There Erfinv of
    # one is wrong by 3e-13.
    "Erf": exactly(unary_special("Erf"), scipy.special.erf),
    "Round": [
        Case(lambda t, r: {"x": r.uniform((7, 9), first_type(t))}, types=FLOATS),
        Case(lambda t, r: {"x": special_values(t)}, types=FLOATS),
        Case(
            lambda t, r: {"x": r.uniform((7, 9), first_type(t))},
            types=(tf.int32, tf.int64),
            expect=lambda args: [args["x"]],
        ),
    ],
    **{op: unary_special(op, name="input") for op in ("Conj", "Snapshot")},
    **{op: unary_special(op, 0.05, 6.0) for op in ("Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal", "Inv")},
    **{op: unary(op, 0.05, 6.0) for op in ("Lgamma", "Digamma")},
    **{op: unary(op, -0.95, 0.95) for op in ("Asin", "Acos", "Atanh")},
    "Erfinv": exactly(unary("Erfinv", -0.95, 0.95), scipy.special.erfinv, DOUBLE),
    "Acosh": unary("Acosh", 1.1, 5.0),
    # And far out, where 2p - 1 rounds to -1 or 1.
    "Ndtri": [
        *unary("Ndtri", 0.05, 0.95),
        Case(lambda t, r: {"x": tf.exp(r.uniform((5, 9), t["T"], -60.0, -1e-3))}, 8),
    ],
    "LogicalNot": [Case(lambda t, r: {"x": r.uniform((5, 3), tf.bool)})],
    "Invert": [Case(lambda t, r, s=s: {"x": r.uniform(s, first_type(t), -100, 100)}) for s in SHAPES],
    "Real": [Case(lambda t, r: {"input": r.uniform((5, 3), t["T"]), "Tout": t["T"].real_dtype})],
    "Imag": [Case(lambda t, r: {"input": r.uniform((5, 3), t["T"]), "Tout": t["T"].real_dtype})],
    "Angle": [Case(lambda t, r: {"input": r.uniform((5, 3), t["T"]), "Tout": t["T"].real_dtype}, 4)],
    "ComplexAbs": [Case(lambda t, r: {"x": r.uniform((5, 3), t["T"]), "Tout": t["T"].real_dtype}, 4)],
    "Complex": [
        Case(
            lambda t, r: {
                "real": r.uniform((5, 3), t["T"]),
                "imag": r.uniform((3,), t["T"]),
                "Tout": tf.complex64 if t["T"] == tf.float32 else tf.complex128,
            }
        )
    ],
    **{op: unary_special(op, name="features") for op in ("Relu", "Relu6", "Softplus", "Softsign")},
    "Elu": exactly(unary_special("Elu", name="features"), elu, DOUBLE),
    "Selu": exactly(unary_special("Selu", name="features"), selu, DOUBLE),
    "LeakyRelu": [
        Case(lambda t, r, a=a: {"features": r.uniform((7, 9), t["T"]), "alpha": a}, 1) for a in (0.2, 0.0, 1.5)
    ],
    **{op: binary() for op in ("Add", "AddV2", "Sub")},
    **{op: binary(compare="bits") for op in ("Maximum", "Minimum")},
    # A product of complex numbers is two of real ones and their difference.
    **{op: binary(roundings=2) for op in ("Mul", "SquaredDifference")},
    **{op: binary(low2=1, high2=4.0, roundings=4) + special_pairs(("x", "y")) for op in ("Div", "RealDiv")},
    "Atan2": binary(low2=1, high2=4.0, roundings=4) + special_pairs(("y", "x")),
    **{op: binary(-9, 9, 1, 5) for op in ("FloorMod", "Mod", "TruncateMod")},
    # The quotient is rounded to the type before it is rounded to a whole number.
    **{op: binary(-9, 9, 1, 5, compare="bits") for op in ("FloorDiv", "TruncateDiv")},
    "DivNoNan": [
        *binary(roundings=4),
        Case(lambda t, r: {"x": r.uniform((4,), first_type(t)), "y": tf.zeros((4,), first_type(t))}),
        *special_pairs(("x", "y")),
    ],
    "MulNoNan": binary(roundings=2) + special_pairs(("x", "y")),
    "Pow": binary(0.5, 4.0, 0.0, 3.0, roundings=4) + special_pairs(("x", "y")),
    "Xdivy": binary(low2=0.5, roundings=4) + special_pairs(("x", "y")),
    "Xlogy": binary(low2=0.5, high2=4.0, roundings=6) + special_pairs(("x", "y"), 6),
    "Xlog1py": binary(low2=0.5, high2=4.0, roundings=6) + special_pairs(("x", "y"), 6),
    # Two numbers of a continuous distribution are never equal: some of these are.
    **{
        op: [*binary(), Case(lambda t, r: {k: tf.cast(r.ints((9, 7), 0, 2), first_type(t)) for k in ("x", "y")})]
        for op in ("Equal", "NotEqual")
    },
    **{op: binary() for op in ("Less", "LessEqual", "Greater", "GreaterEqual")},
    # Two numbers of a continuous distribution never differ by just the tolerance: some of these do.
    "ApproximateEqual": [
        *same_shape_binary(("x", "y"), attrs={"tolerance": 0.5}),
        Case(
            lambda t, r: {
                **{k: tf.cast(r.ints((9, 7), 0, 4), first_type(t)) / 2 for k in ("x", "y")},
                "tolerance": 0.5,
            },
            types=FLOATS,
        ),
    ],
    **{
        op: [
            Case(lambda t, r, a=a, b=b: {"x": r.uniform(a, tf.bool), "y": r.uniform(b, tf.bool)})
            for a, b in SHAPES_OF_PAIRS
        ]
        for op in ("LogicalAnd", "LogicalOr")
    },
    **{op: binary(-100, 100) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{op: binary(-100, 100, 0, 7) for op in ("LeftShift", "RightShift")},
    **{
        op: same_shape_binary(("y", "dy"), 0.2, 2.0) + special_pairs(("y", "dy"))
        for op in ("ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad")
    },
    **{
        op: same_shape_binary(("y", "dy"), -0.9, 0.9) + special_pairs(("y", "dy")) for op in ("SigmoidGrad", "TanhGrad")
    },
    **{
        op: same_shape_binary(("gradients", "features"), roundings=n) + special_pairs(("gradients", "features"), n)
        for op, n in {"ReluGrad": 0, "Relu6Grad": 0, "SoftplusGrad": 6, "SoftsignGrad": 4}.items()
    },
    **{
        op: same_shape_binary(("gradients", "outputs")) + (special_pairs(("gradients", "outputs")) if edges else [])
        for op, edges in {"EluGrad": True, "SeluGrad": EDGES_AS_EVER}.items()
    },
    "LeakyReluGrad": same_shape_binary(("gradients", "features"), attrs={"alpha": 0.3})
    + special_pairs(("gradients", "features"), attrs={"alpha": 0.3}),
    "AddN": [
        Case(lambda t, r, n=n: {"inputs": [r.uniform((5, 7), first_type(t)) for _ in range(n)]}, n, ABSOLUTE)
        for n in (1, 2, 3, 8, 9, 20)
    ],
    "ClipByValue": [
        Case(
            lambda t, r: {
                "t": r.uniform((5, 7), first_type(t)),
                "clip_value_min": tf.cast(tf.constant(1), first_type(t)),
                "clip_value_max": tf.cast(tf.constant(2), first_type(t)),
            }
        )
    ],
    "Select": [
        Case(
            lambda t, r, s=s: {
                "condition": r.uniform(s, tf.bool),
                "x": r.uniform((5, 7), first_type(t)),
                "y": r.uniform((5, 7), first_type(t)),
            }
        )
        for s in ((5, 7), (), (5,))
    ],
    "SelectV2": [
        Case(
            lambda t, r, c=c, a=a, b=b: {
                "condition": r.uniform(c, tf.bool),
                "t": r.uniform(a, first_type(t)),
                "e": r.uniform(b, first_type(t)),
            }
        )
        for c, a, b in [((5, 7), (5, 7), (5, 7)), ((), (3,), (3,)), ((5, 1), (7,), ()), ((3,), (2, 3), (2, 1))]
    ],
    "Bitcast": [
        Case(
            lambda t, r, s=s: {
                "input": r.uniform((*s, max(1, t["type"].size // t["T"].size)), t["T"], 0, 3),
                "type": t["type"],
            },
            compare="bits",
        )
        for s in ((5,), (), (0, 3))
    ],
    "Fill": [
        Case(lambda t, r, s=s: {"dims": tf.constant(s, t.get("index_type", tf.int32)), "value": r.uniform((), t["T"])})
        for s in [(3, 5), (0,), (4000,)]
    ]
    + [Case(lambda t, r: {"dims": tf.zeros((0,), t.get("index_type", tf.int32)), "value": r.uniform((), t["T"])})],
    **{
        op: [
            Case(lambda t, r, s=s: {"value": r.uniform(s, t["T"]), "bias": r.uniform((s[-1],), t["T"])})
            for s in [(4, 5), (2, 3, 3, 8), (0, 5)]
        ]
        for op in ("BiasAddV1",)
    },
    "BiasAdd": [
        Case(
            lambda t, r, s=s, f=f: {
                "value": r.uniform(s, t["T"]),
                "bias": r.uniform((s[-1] if f == "NHWC" else s[1],), t["T"]),
                "data_format": f,
            }
        )
        for s, f in [((4, 5), "NHWC"), ((2, 3, 3, 8), "NHWC"), ((2, 4, 3, 5), "NCHW"), ((0, 5), "NHWC")]
    ],
    "BiasAddGrad": [
        Case(
            lambda t, r, s=s, f=f: {"out_backprop": r.uniform(s, t["T"]), "data_format": f}, terms(s[0] * 40), ABSOLUTE
        )
        for s, f in [((4, 5), "NHWC"), ((2, 3, 3, 8), "NHWC"), ((2, 4, 3, 5), "NCHW"), ((100, 33), "NHWC")]
    ],
    **{
        op: [Case(lambda t, r, s=s: {"tensor": r.uniform(s, t["T"]), "message": ""}) for s in SHAPES]
        for op in ("CheckNumerics", "CheckNumericsV2")
    },
    "L2Loss": [
        Case(lambda t, r, s=s: {"t": r.uniform(s, t["T"])}, terms(int(np.prod(s))) + 2)
        for s in [(5, 7), (), (0,), (1000,)]
    ],
    "Sum": reduction(),
    # The mean of no complex numbers is 0 on the CPU, NaN here as for real ones; long complex products overflow.
    "Mean": reduction(edge_types=(*FLOATS, *SMALL_INTEGERS)),
    "Prod": reduction(low=0.9, high=1.1, relative_to=CONDITION, edge_types=FLOATS),
    **{op: reduction() for op in ("Max", "Min")},
    "EuclideanNorm": reduction(relative_to=CONDITION),
    **{
        op: [
            Case(lambda t, r, s=s, a=a: {"input": r.uniform(s, tf.bool), "axis": tf.constant(a, tf.int32)})
            for s, a in [((3, 5), (0,)), ((3, 5), (1,)), ((3, 5), (0, 1)), ((7,), ()), ((0, 3), (0,))]
        ]
        for op in ("All", "Any")
    },
    **{op: arg_reduction() for op in ("ArgMax", "ArgMin")},
}


def _fixed_widths(types):
    """Casting a negative number to an unsigned type is undefined in C++: the range is chosen to avoid it."""
    return types["SrcT"].is_unsigned or types["DstT"].is_unsigned


CASES["Cast"] = [
    Case(
        lambda t, r: {"x": r.uniform((5, 33), t["SrcT"], 0 if _fixed_widths(t) else -100, 100), "DstT": t["DstT"]},
        compare="bits",
    ),
    Case(lambda t, r: {"x": r.uniform((), t["SrcT"], 0, 2), "DstT": t["DstT"]}, compare="bits"),
    Case(lambda t, r: {"x": r.uniform((0, 3), t["SrcT"], 0, 2), "DstT": t["DstT"]}, compare="bits"),
    # An element is false here, since nearly all numbers are true.
    Case(lambda t, r: {"x": tf.zeros((9,), t["SrcT"]), "DstT": t["DstT"]}, compare="bits"),
]
