"""Ops that move elements without computing on them."""

import tensorflow as tf

from tests.sweep.runner import ABSOLUTE, Case


def any_type(t):
    return t.get("T") or t.get("Tparams") or t.get("dtype") or next(iter(t.values()))


def case(make, **kw):
    return Case(lambda t, r: make(any_type(t), r), **{"compare": "bits", **kw})


def i32(*values):
    return tf.constant(values, tf.int32, shape=(len(values),))


def over(shapes, make):
    return [case(lambda t, r, s=s: make(t, r, s)) for s in shapes]


STRIDED = [  # shape, begin, end, strides, masks
    ((6, 7), (1, 2), (5, 6), (1, 1), {}),
    ((6, 7), (0, 0), (6, 7), (2, 3), {}),
    ((6, 7), (-1, -1), (-6, -5), (-1, -2), {}),
    ((6, 7), (2, 0), (3, 0), (1, 1), {"shrink_axis_mask": 1, "end_mask": 2}),
    ((6, 7), (0, 0), (0, 0), (1, 1), {"begin_mask": 3, "end_mask": 3}),
    ((2, 3, 4), (0, 1), (0, 3), (1, 1), {"ellipsis_mask": 1}),
    ((5,), (0, 1), (0, 4), (1, 1), {"new_axis_mask": 1}),
    ((6, 7), (3, 0), (3, 7), (1, 1), {}),
    ((40, 33), (1, 0), (39, 33), (1, 2), {}),
]


def strided_slice(names):
    return [
        case(
            lambda t, r, s=s, b=b, e=e, st=st, m=m: {
                "input": r.uniform(s, t),
                "begin": i32(*b),
                "end": i32(*e),
                "strides": i32(*st),
                **m,
            }
        )
        for s, b, e, st, m in STRIDED
    ]


def strided_slice_grad():
    cases = []
    for s, b, e, st, m in STRIDED:
        shape = tf.raw_ops.StridedSlice

        def make(t, r, s=s, b=b, e=e, st=st, m=m, op=shape):
            out = op(input=tf.zeros(s), begin=i32(*b), end=i32(*e), strides=i32(*st), **m).shape
            return {
                "shape": i32(*s),
                "begin": i32(*b),
                "end": i32(*e),
                "strides": i32(*st),
                "dy": r.uniform(out, t),
                **m,
            }

        cases.append(case(make))
    return cases


def strided_slice_update():
    cases = []
    for s, b, e, st, m in STRIDED:

        def make(t, r, s=s, b=b, e=e, st=st, m=m):
            out = tf.raw_ops.StridedSlice(input=tf.zeros(s), begin=i32(*b), end=i32(*e), strides=i32(*st), **m).shape
            return {
                "input": r.uniform(s, t),
                "begin": i32(*b),
                "end": i32(*e),
                "strides": i32(*st),
                "value": r.uniform(out, t),
                **m,
            }

        cases.append(case(make))
    return cases


PADS = [
    ((3, 5), ((1, 2), (0, 3))),
    ((4,), ((2, 2),)),
    ((2, 3, 4), ((0, 0), (1, 1), (2, 0))),
    ((3, 5), ((0, 0), (0, 0))),
]


def paddings(p):
    return tf.constant(p, tf.int32)


def where():
    """Whole numbers, a good part of them zero; all zero; none zero."""
    shapes = [(7,), (5, 6), (2, 1, 9), (3, 4, 5, 2), (300, 401), (0,), (4, 0, 2)]
    some = [case(lambda t, r, s=s: {"condition": tf.cast(r.ints(s, 0, 3), t)}) for s in shapes]
    same = [
        case(lambda t, r, s=s, v=v: {"condition": tf.cast(tf.fill(s, v), t)}) for s in [(7,), (5, 6)] for v in (0, 1)
    ]
    return some + same


def diag_k():
    return {"k": tf.constant(0), "num_rows": tf.constant(-1), "num_cols": tf.constant(-1)}


CASES = {
    "Transpose": [
        case(lambda t, r, s=s, p=p: {"x": r.uniform(s, t), "perm": i32(*p)})
        for s, p in [
            ((3, 5), (1, 0)),
            ((3, 5), (0, 1)),
            ((2, 3, 4), (2, 0, 1)),
            ((2, 3, 4, 5), (0, 3, 1, 2)),
            ((2, 3, 4, 5), (0, 2, 1, 3)),
            ((7,), (0,)),
            ((), ()),
            ((0, 3), (1, 0)),
            ((130, 67), (1, 0)),
            ((1, 5, 1, 3), (3, 2, 1, 0)),
        ]
    ],
    "ConjugateTranspose": [case(lambda t, r: {"x": r.uniform((3, 5), t), "perm": i32(1, 0)})],
    "ConcatV2": [
        case(lambda t, r, a=a, n=n: {"values": [r.uniform((2, 3, 4), t) for _ in range(n)], "axis": tf.constant(a)})
        for a in (0, 1, -1)
        for n in (2, 3, 5)
    ]
    + [
        case(
            lambda t, r: {
                "values": [r.uniform((2, 3), t), r.uniform((2, 0), t), r.uniform((2, 4), t)],
                "axis": tf.constant(1),
            }
        )
    ],
    "Concat": [
        case(lambda t, r, a=a: {"concat_dim": tf.constant(a), "values": [r.uniform((2, 3, 4), t) for _ in range(3)]})
        for a in (0, 1, 2)
    ],
    "Split": [
        case(lambda t, r, a=a, n=n: {"axis": tf.constant(a), "value": r.uniform((4, 6, 8), t), "num_split": n})
        for a, n in [(0, 2), (1, 3), (2, 4), (-1, 1)]
    ],
    "SplitV": [
        case(
            lambda t, r, a=a, z=z: {
                "value": r.uniform((4, 6, 8), t),
                "size_splits": i32(*z),
                "axis": tf.constant(a),
                "num_split": len(z),
            }
        )
        for a, z in [(0, (1, 3)), (1, (2, -1, 1)), (2, (8,)), (2, (0, 3, 5))]
    ],
    "Pack": [
        case(lambda t, r, a=a, n=n: {"values": [r.uniform((2, 3), t) for _ in range(n)], "axis": a})
        for a in (0, 1, 2, -1)
        for n in (1, 3)
    ],
    "Unpack": [
        case(lambda t, r, a=a, n=n: {"value": r.uniform((2, 3, 4), t), "num": n, "axis": a})
        for a, n in [(0, 2), (1, 3), (-1, 4)]
    ],
    "Slice": [
        case(lambda t, r, s=s, b=b, z=z: {"input": r.uniform(s, t), "begin": i32(*b), "size": i32(*z)})
        for s, b, z in [
            ((6, 7), (1, 2), (3, 4)),
            ((6, 7), (0, 0), (-1, -1)),
            ((6, 7), (2, 0), (2, 7)),
            ((2, 3, 4), (0, 1, 2), (2, -1, 1)),
            ((6, 7), (1, 1), (0, 3)),
        ]
    ],
    "StridedSlice": strided_slice(None),
    "StridedSliceGrad": strided_slice_grad(),
    "TensorStridedSliceUpdate": strided_slice_update(),
    "Pad": [case(lambda t, r, s=s, p=p: {"input": r.uniform(s, t), "paddings": paddings(p)}) for s, p in PADS],
    "PadV2": [
        case(
            lambda t, r, s=s, p=p: {
                "input": r.uniform(s, t),
                "paddings": paddings(p),
                "constant_values": tf.cast(tf.constant(2), t),
            }
        )
        for s, p in PADS
    ],
    "MirrorPad": [
        case(lambda t, r, s=s, p=p, m=m: {"input": r.uniform(s, t), "paddings": paddings(p), "mode": m})
        for s, p in [((3, 5), ((1, 2), (0, 3))), ((4,), ((2, 2),))]
        for m in ("REFLECT", "SYMMETRIC")
    ],
    "MirrorPadGrad": [
        case(
            lambda t, r, s=s, p=p, m=m: {"input": r.uniform(s, t), "paddings": paddings(p), "mode": m},
            compare="close",
            roundings=8,
            relative_to=ABSOLUTE,
        )
        for s, p in [((6, 8), ((1, 2), (0, 3))), ((8,), ((2, 2),))]
        for m in ("REFLECT", "SYMMETRIC")
    ],
    "Tile": [
        case(lambda t, r, s=s, m=m: {"input": r.uniform(s, t), "multiples": i32(*m)})
        for s, m in [((3, 5), (2, 3)), ((4,), (1,)), ((2, 1, 3), (1, 4, 2)), ((3,), (0,)), ((), ())]
    ],
    "BroadcastTo": [
        case(lambda t, r, a=a, b=b: {"input": r.uniform(a, t), "shape": i32(*b)})
        for a, b in [((3, 1), (3, 5)), ((), (4, 2)), ((5,), (3, 5)), ((3, 5), (3, 5)), ((1, 3), (0, 3))]
    ],
    "ReverseV2": [
        case(lambda t, r, s=s, a=a: {"tensor": r.uniform(s, t), "axis": i32(*a)})
        for s, a in [((3, 5), (0,)), ((3, 5), (1,)), ((3, 5), (0, -1)), ((2, 3, 4), ()), ((2, 3, 4), (1,))]
    ],
    "Reverse": [case(lambda t, r: {"tensor": r.uniform((3, 5), t), "dims": tf.constant([True, False])})],
    "SpaceToDepth": [
        case(
            lambda t, r, f=f: {
                "input": r.uniform((2, 4, 6, 3) if f == "NHWC" else (2, 3, 4, 6), t),
                "block_size": 2,
                "data_format": f,
            }
        )
        for f in ("NHWC",)
    ],
    "DepthToSpace": [
        case(
            lambda t, r, f=f: {
                "input": r.uniform((2, 4, 6, 12) if f == "NHWC" else (2, 12, 4, 6), t),
                "block_size": 2,
                "data_format": f,
            }
        )
        for f in ("NHWC",)
    ],
    "SpaceToBatchND": [
        case(
            lambda t, r: {
                "input": r.uniform((2, 4, 6, 3), t),
                "block_shape": i32(2, 3),
                "paddings": paddings(((0, 0), (1, 2))),
            }
        )
    ],
    "BatchToSpaceND": [
        case(
            lambda t, r: {
                "input": r.uniform((12, 2, 3, 3), t),
                "block_shape": i32(2, 3),
                "crops": paddings(((0, 0), (1, 2))),
            }
        )
    ],
    "SpaceToBatch": [
        case(
            lambda t, r: {"input": r.uniform((2, 4, 6, 3), t), "block_size": 2, "paddings": paddings(((0, 0), (1, 1)))}
        )
    ],
    "BatchToSpace": [
        case(lambda t, r: {"input": r.uniform((8, 2, 3, 3), t), "block_size": 2, "crops": paddings(((0, 0), (1, 1)))})
    ],
    "Roll": [
        case(lambda t, r, s=s, sh=sh, a=a: {"input": r.uniform(s, t), "shift": i32(*sh), "axis": i32(*a)})
        for s, sh, a in [((6, 7), (2,), (0,)), ((6, 7), (-3, 9), (0, 1)), ((5,), (0,), (0,))]
    ],
    "OneHot": [
        Case(
            lambda t, r, a=a, s=s: {
                "indices": r.ints(s, -1, 6, t.get("TI", tf.int64)),
                "depth": tf.constant(5),
                "on_value": tf.cast(tf.constant(2), t["T"]),
                "off_value": tf.cast(tf.constant(0), t["T"]),
                "axis": a,
            },
            compare="bits",
        )
        for a, s in [(-1, (4,)), (0, (4,)), (1, (2, 3)), (-1, ())]
    ],
    "InvertPermutation": [case(lambda t, r: {"x": r.permutation(9, t)})],
    "MatrixBandPart": [
        case(
            lambda t, r, lo=lo, up=up: {
                "input": r.uniform((2, 4, 5), t),
                "num_lower": tf.constant(lo, tf.int64),
                "num_upper": tf.constant(up, tf.int64),
            }
        )
        for lo, up in [(0, 0), (1, -1), (-1, 2), (-1, -1)]
    ],
    "MatrixDiag": [case(lambda t, r: {"diagonal": r.uniform((2, 4), t)})],
    "MatrixDiagPart": [case(lambda t, r: {"input": r.uniform((2, 4, 5), t)})],
    "MatrixSetDiag": [case(lambda t, r: {"input": r.uniform((2, 4, 5), t), "diagonal": r.uniform((2, 4), t)})],
    **{
        op: [
            case(
                lambda t, r: {"diagonal": r.uniform((2, 4), t), **diag_k(), "padding_value": tf.cast(tf.constant(0), t)}
            )
        ]
        for op in ("MatrixDiagV2", "MatrixDiagV3")
    },
    **{
        op: [
            case(
                lambda t, r: {
                    "input": r.uniform((2, 4, 5), t),
                    "k": tf.constant(0),
                    "padding_value": tf.cast(tf.constant(0), t),
                }
            )
        ]
        for op in ("MatrixDiagPartV2", "MatrixDiagPartV3")
    },
    **{
        op: [
            case(lambda t, r: {"input": r.uniform((2, 4, 5), t), "diagonal": r.uniform((2, 4), t), "k": tf.constant(0)})
        ]
        for op in ("MatrixSetDiagV2", "MatrixSetDiagV3")
    },
    "Diag": [case(lambda t, r: {"diagonal": r.uniform((4,), t)})],
    "DiagPart": [case(lambda t, r: {"input": r.uniform((4, 4), t)})],
    "Range": [
        Case(
            lambda t, r: {
                "start": tf.cast(tf.constant(1), t["Tidx"]),
                "limit": tf.cast(tf.constant(9), t["Tidx"]),
                "delta": tf.cast(tf.constant(2), t["Tidx"]),
            }
        )
    ],
    "Where": where(),
    "LinSpace": [
        Case(
            lambda t, r: {
                "start": tf.cast(tf.constant(1), t["T"]),
                "stop": tf.cast(tf.constant(9), t["T"]),
                "num": tf.constant(7),
            },
            4,
        )
    ],
}
