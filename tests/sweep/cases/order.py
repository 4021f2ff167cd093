"""Scans, sorts, searches, counts, what is unique, and reductions of chosen rows by segment."""

import numpy as np
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, CONDITION, Case


def scan(relative_to, low, high):
    cases = []
    for s, axis, exclusive, reverse in [
        ((3, 7, 2), 1, False, False),
        ((6,), -1, True, False),
        ((7, 5), 0, False, True),
        ((2, 6), 1, True, True),
    ]:

        def make(t, r, s=s, axis=axis, exclusive=exclusive, reverse=reverse):
            return {
                "x": r.uniform(s, t["T"], low, high),
                "axis": tf.constant(axis, t["Tidx"]),
                "exclusive": exclusive,
                "reverse": reverse,
            }

        # Element i is made of i + 1 elements, so often it is rounded at most.
        cases.append(Case(make, roundings=terms(s[axis]), relative_to=relative_to))
    return cases


def of_logarithms(arguments, exact):
    """A step to a + log1p(exp(b - a)) errs by some roundings of log 2 and of its result. The result is no larger than
    the largest element and the logarithm of their number."""
    largest = np.abs(arguments["x"]).max() + np.log(arguments["x"].size)
    return [np.full(exact[0].shape, largest + 4 * np.log(2))]


def top_k(t, r, shape, k, **more):
    return {"input": r.uniform(shape, t["T"], -50, 100), "k": k, **more}


def in_top_k(t, r):
    predictions = r.uniform((6, 5), tf.float32).numpy()
    predictions[1, 2], predictions[2] = np.inf, 1  # says nothing; all the best
    return {"predictions": tf.constant(predictions), "targets": tf.constant([1, 3, 0, 7, -1, 4], t["T"])}


def in_order(x):
    return tf.cast(tf.constant(np.sort(tf.cast(x, tf.float64).numpy())), x.dtype)


def bound(t, r):
    return {
        "sorted_inputs": in_order(r.uniform((2, 9), t["T"], 0, 9)),
        "values": r.uniform((2, 7), t["T"], 0, 9),
        "out_type": t["out_type"],
    }


def most_often(arguments):
    """How many elements share a bin at most."""
    x = arguments["arr" if "arr" in arguments else "input"].numpy().ravel()
    return int(np.bincount(x).max(initial=0))


def bincount(t, r, name, shape, weighted, **more):
    return {
        name: r.ints(shape, 0, 9, t.get("Tidx", tf.int32)),
        "size": tf.constant(7, t.get("Tidx", tf.int32)),
        "weights": r.uniform(shape if weighted else (0,), t["T"], 1, 4),
        **more,
    }


def unique(t, r, shape, axis=None):
    axis = {} if axis is None else {"axis": tf.constant(axis, tf.int64)}
    return {"x": r.uniform(shape, t["T"], 0, 4), "out_idx": t["out_idx"], **axis}


UNIQUE_V2 = [
    Case(lambda t, r, s=s, a=a: unique(t, r, s, a), compare="bits")
    for s, a in [((12,), ()), ((9, 2), (0,)), ((2, 9, 1), (1,)), ((0,), (0,))]
]


def in_segment(arguments):
    """The rows of a segment are added up, divided by a root; of a gradient, those of an index."""
    numbers = arguments["segment_ids" if "data" in arguments else "indices"].numpy()
    return int(np.unique(numbers, return_counts=True)[1].max(initial=0)) + 3


def sparse_segment(t, r, rows=None):
    rows = {} if rows is None else {"num_segments": tf.constant(rows)}
    return {
        "data": r.uniform((6, 3), t["T"], 1, 3),
        "indices": tf.constant([4, 0, 5, 5, 1, 0, 2, 3], t["Tidx"]),
        "segment_ids": tf.constant([0, 0, 0, 2, 2, 3, 4, 4], t["Tsegmentids"]),
        **rows,
    }


def sparse_segment_gradient(t, r, size):
    return {
        "grad": r.uniform((4, 3), t["T"], 1, 3),
        "indices": tf.constant([4, 0, 6, 6, 1, 0, 2], t["Tidx"]),
        "segment_ids": tf.constant([0, 0, 0, 2, 2, 3, 3], t["Tsegmentids"]),
        size: tf.constant(8),
    }


def sparse_to_dense(t, r, indices, shape, values, **more):
    return {
        "sparse_indices": tf.constant(indices, t["Tindices"]),
        "output_shape": tf.constant(shape, t["Tindices"]),
        "sparse_values": r.uniform(values, t["T"], 1, 5),
        "default_value": tf.cast(1, t["T"]),
        **more,
    }


def exactly(*makes):
    return [Case(make, compare="bits") for make in makes]


CASES = {
    "Cumsum": scan(ABSOLUTE, -3, 3),
    "Cumprod": scan(CONDITION, 1, 4),
    "CumulativeLogsumexp": scan(of_logarithms, -4, 4),
    "TopKV2": exactly(
        lambda t, r: top_k(t, r, (2, 3, 17), 5, index_type=t["index_type"]),
        lambda t, r: top_k(t, r, (40,), tf.constant(40, tf.int64), index_type=t["index_type"]),
        lambda t, r: top_k(t, r, (3, 4), tf.constant(1, tf.int16), index_type=t["index_type"]),
    ),
    "ApproxTopK": exactly(lambda t, r: top_k(t, r, (3, 9), 4)),
    "InTopK": exactly(lambda t, r: {**in_top_k(t, r), "k": 2}, lambda t, r: {**in_top_k(t, r), "k": 0}),
    "InTopKV2": exactly(lambda t, r: {**in_top_k(t, r), "k": tf.constant(3, t["T"])}),
    "NthElement": exactly(
        lambda t, r: {"input": r.uniform((2, 3, 9), t["T"], -50, 50), "n": 7, "reverse": False},
        lambda t, r: {"input": r.uniform((6,), t["T"], -50, 50), "n": 1, "reverse": True},
    ),
    "LowerBound": exactly(bound),
    "UpperBound": exactly(bound),
    "Bucketize": exactly(
        lambda t, r: {
            "input": tf.concat([r.uniform((20,), t["T"], -3, 3), tf.cast([2], t["T"])], 0),
            "boundaries": [-1.5, -1.0, 0.0, 2.0],
        },
        lambda t, r: {"input": r.uniform((3,), t["T"], -3, 3), "boundaries": []},
    ),
    "Bincount": [Case(lambda t, r, w=w: bincount(t, r, "arr", (20,), w), most_often, ABSOLUTE) for w in (False, True)],
    "DenseBincount": [
        Case(lambda t, r, s=s, w=w, b=b: bincount(t, r, "input", s, w, binary_output=b), most_often, ABSOLUTE)
        for s, w, b in [((20,), True, False), ((3, 8), True, False), ((3, 8), False, False), ((3, 8), False, True)]
    ],
    "HistogramFixedWidth": exactly(
        lambda t, r: {
            "values": r.uniform((4, 9), t["T"], -1, 2),
            "value_range": tf.constant([-0.5, 1.5], t["T"]),
            "nbins": 6,
            "dtype": t["dtype"],
        }
    ),
    "UniqueWithCounts": exactly(lambda t, r: unique(t, r, (12,)), lambda t, r: unique(t, r, (0,))),
    "UniqueV2": UNIQUE_V2,
    "UniqueWithCountsV2": UNIQUE_V2,
    "DynamicPartition": exactly(
        lambda t, r: {
            "data": r.uniform((9, 2), t["T"]),
            "partitions": r.ints((9,), 0, 3, tf.int32),
            "num_partitions": 4,
        },
        lambda t, r: {
            "data": r.uniform((2, 3), t["T"]),
            "partitions": tf.constant([[1, 0, 1], [1, 1, 0]]),
            "num_partitions": 2,
        },
    ),
    "ReverseSequence": exactly(
        *(
            lambda t, r, s=s, n=n, seq=seq, batch=batch: {
                "input": r.uniform(s, t["T"]),
                "seq_lengths": tf.constant(n, t["Tlen"]),
                "seq_dim": seq,
                "batch_dim": batch,
            }
            for s, n, seq, batch in [
                ((3, 5), (5, 0, 3), 1, 0),
                ((2, 5, 2, 3, 2), (4, 2, 1), 1, 3),
                ((2, 3, 2, 4), (3, 4, 0), 3, 1),
            ]
        )
    ),
    **{
        op + more: [Case(lambda t, r, rows=rows: sparse_segment(t, r, rows), in_segment, ABSOLUTE)]
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
        for more, rows in (("", None), ("WithNumSegments", 7))
    },
    **{
        op + more: [Case(lambda t, r, size=size: sparse_segment_gradient(t, r, size), in_segment, ABSOLUTE)]
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
        for more, size in (("Grad", "output_dim0"), ("GradV2", "dense_output_dim0"))
    },
    "SparseToDense": exactly(
        lambda t, r: sparse_to_dense(t, r, [[0, 2], [1, 0], [2, 1]], (3, 4), (3,)),
        lambda t, r: sparse_to_dense(t, r, [4, 1], (6,), (), validate_indices=False),
        lambda t, r: sparse_to_dense(t, r, 2, (3,), ()),
    ),
}
