"""Elementwise ops and reductions."""

import numpy as np
import tensorflow as tf

from tests.sweep.runner import Case

SHAPES = [(), (7,), (3, 5), (2, 0, 3), (17, 129)]
# Operand shapes of binary ops: equal, scalar on either side, rows, columns, both sides, empty.
PAIRS = [
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
COMPLEX = (tf.complex64, tf.complex128)
SMALL_INTEGERS = (tf.int8, tf.int16, tf.uint8, tf.uint16)


def first_type(types):
    return next(iter(types.values()))


def unary(low=-3.0, high=3.0, tolerance=1.0):
    return [Case(lambda t, r, s=s: {"x": r.uniform(s, first_type(t), low, high)}, tolerance) for s in SHAPES]


def special_values(t):
    dtype = first_type(t)
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 100.0, -100.0, 0.5, 2.5]
    return tf.cast(tf.constant(values), dtype)


def unary_special(low=-3.0, high=3.0, tolerance=1.0, name="x", types=(tf.float32, tf.float64)):
    """Random values in a domain, and (for floats) infinities, NaN and zeros."""
    return [Case(lambda t, r, s=s: {name: r.uniform(s, first_type(t), low, high)}, tolerance) for s in SHAPES] + [
        Case(lambda t, r: {name: special_values(t)}, tolerance, types=types)
    ]


def binary(low=-3.0, high=3.0, low2=None, high2=None, tolerance=1.0, names=("x", "y"), attrs=None, pairs=None):
    low2, high2 = (low if low2 is None else low2), (high if high2 is None else high2)

    def case(a, b):
        return Case(
            lambda t, r: {
                names[0]: r.uniform(a, first_type(t), low, high),
                names[1]: r.uniform(b, first_type(t), low2, high2),
                **(attrs or {}),
            },
            tolerance,
        )

    return [case(a, b) for a, b in (pairs or PAIRS)]


def same_shape_binary(names, low=-3.0, high=3.0, low2=None, high2=None, tolerance=2.0, attrs=None):
    return binary(
        low, high, low2, high2, tolerance, names, attrs, pairs=[((3, 5), (3, 5)), ((129,), (129,)), ((0,), (0,))]
    )


def reduction(
    axes=((), (0,), (1,), (-1,), (0, 2), (0, 1, 2)),
    shape=(3, 5, 7),
    low=-2.0,
    high=2.0,
    tolerance=10.0,
    name="input",
    axis_name="axis",
    edge_types=(),
):
    cases = [
        Case(
            lambda t, r, a=a, k=k: {
                name: r.uniform(shape, first_type(t), low, high),
                axis_name: tf.constant(a, t.get("Tidx", tf.int32)),
                "keep_dims": k,
            },
            tolerance,
        )
        for a in axes
        for k in (False, True)
    ]
    for s, a in [((130, 70), (0,)), ((130, 70), (1,)), ((4, 0, 3), (1,)), ((4, 0, 3), (0,)), ((), ()), ((2000,), (0,))]:
        cases.append(
            Case(
                lambda t, r, s=s, a=a: {
                    name: r.uniform(s, first_type(t), low, high),
                    axis_name: tf.constant(a, tf.int64),
                    "keep_dims": False,
                },
                tolerance * 5,
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
        op: unary_special(tolerance=tol)
        for op, tol in {
            "Neg": 1,
            "Abs": 1,
            "Sign": 1,
            "Square": 1,
            "Exp": 4,
            "Expm1": 4,
            "Sin": 4,
            "Cos": 4,
            "Tan": 20,
            "Atan": 4,
            "Sinh": 8,
            "Cosh": 8,
            "Tanh": 4,
            "Asinh": 8,
            "Sigmoid": 4,
            "Erfc": 8,
            "Ceil": 1,
            "Floor": 1,
            "Rint": 1,
            "IsNan": 1,
            "IsInf": 1,
            "IsFinite": 1,
            "ZerosLike": 1,
            "OnesLike": 1,
        }.items()
    },
    # On the CPU, Erf of a double infinity is NaN and Round of any integer 0.
    "Erf": unary_special(tolerance=4, types=(tf.float32,)),
    "Round": [
        Case(lambda t, r: {"x": r.uniform((7, 9), first_type(t))}, types=FLOATS),
        Case(lambda t, r: {"x": special_values(t)}, types=FLOATS),
        Case(
            lambda t, r: {"x": r.uniform((7, 9), first_type(t))},
            types=(tf.int32, tf.int64),
            expect=lambda args: [args["x"]],
        ),
    ],
    **{op: unary_special(name="input") for op in ("Conj", "Snapshot")},
    **{
        op: unary_special(low=0.05, high=6.0, tolerance=tol)
        for op, tol in {"Sqrt": 2, "Rsqrt": 4, "Log": 4, "Log1p": 4, "Reciprocal": 2, "Inv": 2}.items()
    },
    **{op: unary(low=0.05, high=6.0, tolerance=tol) for op, tol in {"Lgamma": 40, "Digamma": 80}.items()},
    "Asin": unary(-0.95, 0.95, 8),
    "Acos": unary(-0.95, 0.95, 8),
    "Atanh": unary(-0.95, 0.95, 8),
    "Acosh": unary(1.1, 5.0, 8),
    "Erfinv": unary(-0.95, 0.95, 40),
    "Ndtri": unary(0.05, 0.95, 40),
    "LogicalNot": [Case(lambda t, r: {"x": r.uniform((5, 3), tf.bool)})],
    "Invert": unary(-100, 100),
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
    **{
        op: unary_special(tolerance=4, name="features")
        for op in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign")
    },
    "LeakyRelu": [
        Case(lambda t, r, a=a: {"features": r.uniform((7, 9), t["T"]), "alpha": a}, 2) for a in (0.2, 0.0, 1.5)
    ],
    **{op: binary(tolerance=2) for op in ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference")},
    **{op: binary(low2=1, high2=4.0, tolerance=2) for op in ("Div", "RealDiv", "Atan2")},
    **{op: binary(-9, 9, 1, 5, tolerance=4) for op in ("FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod")},
    "DivNoNan": [
        *binary(tolerance=2),
        Case(lambda t, r: {"x": r.uniform((4,), first_type(t)), "y": tf.zeros((4,), first_type(t))}),
    ],
    "MulNoNan": binary(tolerance=2),
    "Pow": binary(0.5, 4.0, 0.0, 3.0, tolerance=10),
    "Xdivy": binary(tolerance=2, low2=0.5),
    "Xlogy": binary(low2=0.5, high2=4.0, tolerance=8),
    "Xlog1py": binary(low2=0.5, high2=4.0, tolerance=8),
    **{op: binary() for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")},
    "ApproximateEqual": same_shape_binary(("x", "y"), attrs={"tolerance": 0.5}),
    **{
        op: [Case(lambda t, r, a=a, b=b: {"x": r.uniform(a, tf.bool), "y": r.uniform(b, tf.bool)}) for a, b in PAIRS]
        for op in ("LogicalAnd", "LogicalOr")
    },
    **{op: binary(-100, 100) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    **{op: binary(-100, 100, 0, 7) for op in ("LeftShift", "RightShift")},
    **{op: same_shape_binary(("y", "dy"), 0.2, 2.0) for op in ("ReciprocalGrad", "InvGrad", "SqrtGrad", "RsqrtGrad")},
    **{op: same_shape_binary(("y", "dy"), -0.9, 0.9) for op in ("SigmoidGrad", "TanhGrad")},
    **{
        op: same_shape_binary(("gradients", "features"))
        for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad")
    },
    **{op: same_shape_binary(("gradients", "outputs")) for op in ("EluGrad", "SeluGrad")},
    "LeakyReluGrad": same_shape_binary(("gradients", "features"), attrs={"alpha": 0.3}),
    "AddN": [
        Case(lambda t, r, n=n: {"inputs": [r.uniform((5, 7), first_type(t)) for _ in range(n)]}, n)
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
    + [Case(lambda t, r: {"dims": tf.zeros((0,), tf.int32), "value": r.uniform((), t["T"])})],
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
        Case(lambda t, r, s=s, f=f: {"out_backprop": r.uniform(s, t["T"]), "data_format": f}, 50)
        for s, f in [((4, 5), "NHWC"), ((2, 3, 3, 8), "NHWC"), ((2, 4, 3, 5), "NCHW"), ((100, 33), "NHWC")]
    ],
    **{
        op: [Case(lambda t, r, s=s: {"tensor": r.uniform(s, t["T"]), "message": ""}) for s in SHAPES]
        for op in ("CheckNumerics", "CheckNumericsV2")
    },
    "L2Loss": [Case(lambda t, r, s=s: {"t": r.uniform(s, t["T"])}, 20) for s in [(5, 7), (), (0,), (1000,)]],
    "Sum": reduction(),
    # The mean of no complex numbers is 0 on the CPU, NaN here as for real ones; long complex products overflow.
    "Mean": reduction(edge_types=(*FLOATS, *SMALL_INTEGERS)),
    "Prod": reduction(low=0.9, high=1.1, tolerance=40, edge_types=FLOATS),
    **{op: reduction() for op in ("Max", "Min")},
    "EuclideanNorm": reduction(),
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
    Case(lambda t, r: {"x": r.uniform((5, 33), t["SrcT"], 0 if _fixed_widths(t) else -100, 100), "DstT": t["DstT"]}),
    Case(lambda t, r: {"x": r.uniform((), t["SrcT"], 0, 2), "DstT": t["DstT"]}),
    Case(lambda t, r: {"x": r.uniform((0, 3), t["SrcT"], 0, 2), "DstT": t["DstT"]}),
]
