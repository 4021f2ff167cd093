"""Gathers, scatters and segment reductions, on tensors and on variables."""

import dataclasses

import numpy as np
import tensorflow as tf

from tests.sweep.cases.array import STRIDED, i32
from tests.sweep.runner import ABSOLUTE, CONDITION, Case, Var


def index_type(t):
    return t.get("Tindices") or t.get("indices") or tf.int64


def first(t):
    for name in ("Tparams", "T", "dtype"):
        if name in t:
            return t[name]
    return next(iter(t.values()))


def repeats(args):
    """How many updates one element gets at most: so often its sum or product is rounded."""
    indices = args["segment_ids"].numpy().reshape(-1, 1) if "segment_ids" in args else args["indices"].numpy()
    if "resource" in args:
        indices = indices.reshape(-1, 1)
    return int(np.unique(indices.reshape(-1, indices.shape[-1]), axis=0, return_counts=True)[1].max(initial=0)) + 1


# A scatter is an op on a buffer of the output's type, update by update; a segment reduction accumulates in float.
SCATTER = {"roundings": repeats, "stored": True}


def sums_like(op):
    """The function that computes the magnitude of a sum: sums of absolute values, also for differences."""
    return {"relative_to": op.replace("Sub", "Add") if "Sub" in op else ABSOLUTE}


def gather_v2():
    return [
        Case(
            lambda t, r, s=s, n=n, a=a, b=b: {
                "params": r.uniform(s, first(t)),
                "indices": r.ints(n, 0, s[a], index_type(t)),
                "axis": tf.constant(a),
                "batch_dims": b,
            },
            compare="bits",
        )
        for s, n, a, b in [
            ((7, 3), (4,), 0, 0),
            ((7, 3), (2, 5), 0, 0),
            ((4, 9), (3,), 1, 0),
            ((2, 5, 3), (2, 4), 1, 1),
            ((7,), (), 0, 0),
            ((7, 3), (0,), 0, 0),
            ((100, 33), (50,), 0, 0),
        ]
    ]


def everywhere(op, r, shape, dtype):
    """(buffer, rows in another order, updates): each element is updated, and changed by that in any type."""
    small, large = r.uniform(shape, dtype, 2, 4), r.uniform(shape, dtype, 5, 8)
    buffer, updates = (large, small) if op.endswith("Min") else (small, large)
    if dtype == tf.bool:
        updates = tf.logical_not(buffer)
    return buffer, updates


def scatter_nd_like(op, tensor):
    """(tensor or shape, indices, updates) with unique and with repeated indices."""
    cases = []
    for shape, indices, updates in [((8, 3), (4, 1), (4, 3)), ((6, 5), (7, 2), (7,)), ((4, 3, 2), (3, 2), (3, 2))]:

        def make(t, r, shape=shape, indices=indices, updates=updates):
            index = r.ints(indices, 0, min(shape[: indices[-1]]), index_type(t))
            if op.endswith("Update"):
                # Which of two updates of one element wins is not defined: rows are distinct.
                n = min(*shape[: indices[-1]], indices[0])
                index = tf.stack([tf.cast(r.permutation(n), index_type(t))] * indices[-1], 1)
                updates = (int(index.shape[0]), *updates[1:])
            return {
                "indices": index,
                "updates": r.uniform(updates, first(t)),
                **({"tensor": r.uniform(shape, first(t))} if tensor else {"shape": tf.constant(shape, index_type(t))}),
            }

        cases.append(Case(make, **SCATTER, **sums_like(op)))

    def make_everywhere(t, r):
        buffer, updates = everywhere(op, r, (5, 3), first(t))
        where = {"tensor": buffer} if tensor else {"shape": tf.constant((5, 3), index_type(t))}
        return {"indices": tf.range(5, dtype=index_type(t))[:, None], "updates": updates, **where}

    def make_false(t, r):
        where = {"tensor": tf.zeros((5, 3), tf.bool)} if tensor else {"shape": tf.constant((5, 3), index_type(t))}
        return {"indices": tf.range(5, dtype=index_type(t))[:, None], "updates": tf.zeros((5, 3), tf.bool), **where}

    return [*cases, Case(make_everywhere, **SCATTER, **sums_like(op)), Case(make_false, types=(tf.bool,))]


def resource_scatter(op, low=-2.0, relative_to=None):
    unique = op.endswith("Update")
    cases = []
    for shape, n, updates in [((8, 3), 4, (4, 3)), ((100,), 7, (7,)), ((5, 2, 2), 3, (3, 2, 2)), ((8, 3), 4, ())]:

        def make(t, r, shape=shape, n=n, updates=updates):
            index = r.permutation(shape[0], index_type(t))[:n] if unique else r.ints((n,), 0, shape[0], index_type(t))
            return {
                "resource": Var(r.uniform(shape, t["dtype"])),
                "indices": index,
                "updates": r.uniform(updates, t["dtype"], low, 3),
            }

        cases.append(Case(make, **SCATTER, **({"relative_to": relative_to} if relative_to else sums_like(op))))

    def make_everywhere(t, r):
        buffer, updates = everywhere(op, r, (5, 3), t["dtype"])
        return {"resource": Var(buffer), "indices": tf.range(5, dtype=index_type(t)), "updates": updates}

    cases.append(dataclasses.replace(cases[0], make=make_everywhere))
    return cases


def resource_scatter_nd(op):
    unique = op.endswith("Update")

    def make(t, r):
        index = r.permutation(6, index_type(t))[:4, None] if unique else r.ints((4, 1), 0, 6, index_type(t))
        return {"ref": Var(r.uniform((6, 3), t["T"])), "indices": index, "updates": r.uniform((4, 3), t["T"])}

    def make_everywhere(t, r):
        buffer, updates = everywhere(op, r, (5, 3), t["T"])
        return {"ref": Var(buffer), "indices": tf.range(5, dtype=index_type(t))[:, None], "updates": updates}

    def make_false(t, r):
        no = tf.zeros((5, 3), tf.bool)
        return {"ref": Var(no), "indices": tf.range(5, dtype=index_type(t))[:, None], "updates": no}

    def make_true(t, r):
        yes = tf.ones((5, 3), tf.bool)
        return {"ref": Var(yes), "indices": tf.constant([[0], [4], [4], [0], [0]], index_type(t)), "updates": yes}

    cases = [Case(m, **SCATTER, **sums_like(op)) for m in (make, make_everywhere)]
    return [*cases, Case(make_false, types=(tf.bool,)), Case(make_true, types=(tf.bool,))]


def unsorted_segment(op):
    return [
        Case(
            lambda t, r, s=s, ids=ids, n=n: {
                "data": r.uniform(s, t["T"], -1.5, 1.5),
                "segment_ids": r.ints(ids, -1, n, index_type(t)),
                "num_segments": tf.constant(n),
            },
            repeats,
            CONDITION if op.endswith("Prod") else ABSOLUTE,
            compare="bits" if op.endswith(("Min", "Max")) else "close",
        )
        for s, ids, n in [((9, 3), (9,), 4), ((4, 5), (4, 5), 7), ((50, 16), (50,), 20), ((0, 3), (0,), 2)]
    ]


def segment(op):
    return [
        Case(
            lambda t, r, s=s, ids=ids: {
                "data": r.uniform(s, t["T"], -1.5, 1.5),
                "segment_ids": tf.constant(ids, index_type(t)),
            },
            repeats,
            CONDITION if op.endswith("Prod") else ABSOLUTE,
            compare="bits" if op.endswith(("Min", "Max")) else "close",
        )
        for s, ids in [((5, 3), (0, 0, 2, 2, 5)), ((4, 2, 3), (1, 1, 1, 1)), ((3,), (0, 1, 2))]
    ]


def resource_strided_slice_assign():
    cases = []
    for s, b, e, st, m in STRIDED:

        def make(t, r, s=s, b=b, e=e, st=st, m=m):
            out = tf.raw_ops.StridedSlice(input=tf.zeros(s), begin=i32(*b), end=i32(*e), strides=i32(*st), **m).shape
            return {
                "ref": Var(r.uniform(s, t["T"])),
                "begin": i32(*b),
                "end": i32(*e),
                "strides": i32(*st),
                "value": r.uniform(out, t["T"]),
                **m,
            }

        cases.append(Case(make, compare="bits"))
    return cases


def dynamic_stitch():
    return [
        Case(
            lambda t, r: {
                "indices": [tf.constant([4, 0, 1]), tf.constant([[3, 2], [5, 0]])],
                "data": [r.uniform((3, 2), t["T"]), r.uniform((2, 2, 2), t["T"])],
            },
            compare="bits",
        )
    ]


CASES = {
    "Gather": [
        Case(
            lambda t, r: {"params": r.uniform((7, 3), first(t)), "indices": r.ints((2, 4), 0, 7, index_type(t))},
            compare="bits",
        )
    ],
    "GatherV2": gather_v2(),
    "GatherNd": [
        Case(
            lambda t, r, s=s, i=i: {
                "params": r.uniform(s, first(t)),
                "indices": r.ints(i, 0, min(s[: i[-1]] or (1,)), index_type(t)),
            },
            compare="bits",
        )
        for s, i in [((7, 3), (4, 1)), ((7, 3), (2, 4, 2)), ((4, 3, 2), (5, 2)), ((4, 3), (0, 1))]
    ],
    "ResourceGather": [
        Case(
            lambda t, r, s=s, n=n: {
                "resource": Var(r.uniform(s, t["dtype"])),
                "indices": r.ints(n, 0, s[0], index_type(t)),
                "dtype": t["dtype"],
            },
            compare="bits",
        )
        for s, n in [((7, 3), (4,)), ((7,), (2, 3)), ((50, 4, 2), (9,))]
    ],
    "ResourceGatherNd": [
        Case(
            lambda t, r: {
                "resource": Var(r.uniform((7, 3), t["dtype"])),
                "indices": r.ints((5, 2), 0, 3, index_type(t)),
                "dtype": t["dtype"],
            },
            compare="bits",
        )
    ],
    "ScatterNd": scatter_nd_like("ScatterNd", tensor=False),
    "ScatterNdNonAliasingAdd": [
        Case(
            lambda t, r, index=index: {
                "input": r.uniform((6, 3), t["T"]),
                "indices": index(r, index_type(t)),
                "updates": r.uniform((4, 3), t["T"], 1, 3),
            },
            relative_to=ABSOLUTE,
            **SCATTER,
        )
        # The last row among them, and not.
        for index in (lambda r, i: r.ints((4, 1), 0, 6, i), lambda r, i: tf.constant([[5], [2], [5], [0]], i))
    ]
    + [
        Case(
            lambda t, r, update=update: {
                "input": tf.zeros((6, 3), tf.bool),
                "indices": tf.constant([[5], [0]], index_type(t)),
                "updates": tf.fill((2, 3), update),
            },
            types=(tf.bool,),
        )
        for update in (False, True)
    ],
    **{
        op: scatter_nd_like(op, tensor=True)
        for op in (
            "TensorScatterAdd",
            "TensorScatterSub",
            "TensorScatterMax",
            "TensorScatterMin",
            "TensorScatterUpdate",
        )
    },
    **{
        op: resource_scatter(op)
        for op in (
            "ResourceScatterAdd",
            "ResourceScatterSub",
            "ResourceScatterMin",
            "ResourceScatterMax",
            "ResourceScatterUpdate",
        )
    },
    "ResourceScatterMul": resource_scatter("ResourceScatterMul", relative_to=CONDITION),
    "ResourceScatterDiv": resource_scatter("ResourceScatterDiv", low=1.0, relative_to=CONDITION),
    **{
        op: resource_scatter_nd(op)
        for op in (
            "ResourceScatterNdAdd",
            "ResourceScatterNdSub",
            "ResourceScatterNdMin",
            "ResourceScatterNdMax",
            "ResourceScatterNdUpdate",
        )
    },
    **{
        op: unsorted_segment(op)
        for op in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax")
    },
    **{op: segment(op) for op in ("SegmentSum", "SegmentProd", "SegmentMin", "SegmentMax", "SegmentMean")},
    "ResourceStridedSliceAssign": resource_strided_slice_assign(),
    "DynamicStitch": dynamic_stitch(),
    "ParallelDynamicStitch": dynamic_stitch(),
}
