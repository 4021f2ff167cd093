"""Sparse tensors: products with dense matrices, order, shape, parts, rows without entries."""

import numpy as np
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, Case


def coordinates(r, shape, entries, ordered=True):
    """Distinct coordinates [entries, rank] in a tensor of this shape, in order or not."""
    if not shape:
        return tf.zeros((entries, 0), tf.int64)
    flat = r.permutation(int(np.prod(shape))).numpy()[:entries]
    flat = np.sort(flat) if ordered else flat
    return tf.constant(np.stack(np.unravel_index(flat, shape), 1), tf.int64)


def i64(*values):
    return tf.constant(values, tf.int64)


def products(args):
    """As many terms as the fullest row has entries: a product and a sum for each, on complex numbers two of them."""
    column = args["a_indices"].numpy()[:, 1 if args["adjoint_a"] else 0]
    most = int(np.unique(column, return_counts=True)[1].max(initial=0))
    return terms(2 * most) + 2


def dense_matmul():
    """Wide enough for more than one block of products; adjoints; duplicate entries; none; a row of the result alone."""
    return [
        Case(
            lambda t, r, s=s, n=n, w=w, a=a, b=b: {
                "a_indices": tf.cast(r.ints((n, 2), 0, min(s)), t["Tindices"]),
                "a_values": r.uniform((n,), t["T"], 0.5, 3),
                "a_shape": i64(*s),
                "b": r.uniform((w, s[0 if a else 1]) if b else (s[0 if a else 1], w), t["T"], 0.5, 3),
                "adjoint_a": a,
                "adjoint_b": b,
            },
            products,
            ABSOLUTE,
        )
        for s, n, w, a, b in [
            ((5, 4), 9, 3, False, False),
            ((5, 4), 9, 3, True, False),
            ((4, 6), 7, 1, False, True),
            ((4, 6), 7, 5, True, True),
            ((3, 3), 0, 2, False, False),
            ((2, 3), 31, 27000, False, False),
        ]
    ]


def reorder():
    return [
        Case(
            lambda t, r, s=s, n=n: {
                "input_indices": coordinates(r, s, n, ordered=False),
                "input_values": r.uniform((n,), t["T"]),
                "input_shape": i64(*s),
            },
            compare="bits",
        )
        for s, n in [((4, 5), 11), ((3, 2, 4), 9), ((30,), 12), ((4, 5), 1), ((4, 5), 0)]
    ]


def reshape():
    return [
        Case(
            lambda t, r, s=s, to=to, n=n: {
                "input_indices": coordinates(r, s, n),
                "input_shape": i64(*s),
                "new_shape": i64(*to),
            }
        )
        for s, to, n in [
            ((4, 6), (3, 8), 9),
            ((4, 6), (2, -1, 3), 9),
            ((2, 3, 4), (-1,), 8),
            ((24,), (2, 3, 4), 5),
            ((4, 6), (4, 6), 5),
            ((0, 6), (0, 2), 0),
            ((), (1, 1), 1),
        ]
    ]


def concat():
    """Along each axis, one input without entries, entries out of order."""
    return [
        Case(
            lambda t, r, axis=axis, shapes=shapes, n=n: {
                "indices": [coordinates(r, s, k, ordered=False) for s, k in zip(shapes, n)],
                "values": [r.uniform((k,), t["T"]) for k in n],
                "shapes": [i64(*s) for s in shapes],
                "concat_dim": axis,
            },
            compare="bits",
        )
        for axis, shapes, n in [
            (1, ((3, 4), (3, 2), (3, 5)), (6, 0, 4)),
            (0, ((3, 4), (2, 4)), (5, 3)),
            (-1, ((2, 2, 3), (2, 2, 1)), (4, 2)),
            (0, ((4,), (3,)), (2, 3)),
        ]
    ]


def split():
    """Parts of one size and of two, some without entries."""
    return [
        Case(
            lambda t, r, axis=axis, s=s, n=n, parts=parts: {
                "split_dim": tf.constant(axis, tf.int64),
                "indices": coordinates(r, s, n, ordered=n != 8),
                "values": r.uniform((n,), t["T"]),
                "shape": i64(*s),
                "num_split": parts,
            },
            compare="bits",
        )
        for axis, s, n, parts in [(1, (3, 5), 8, 2), (0, (6, 4), 9, 3), (-1, (2, 2, 7), 5, 5), (0, (3, 2), 0, 2)]
    ]


def slices():
    """Inside, across an edge, nothing of it, all of it."""
    return [
        Case(
            lambda t, r, s=s, n=n, start=start, size=size: {
                "indices": coordinates(r, s, n),
                "values": r.uniform((n,), t["T"]),
                "shape": i64(*s),
                "start": i64(*start),
                "size": i64(*size),
            },
            compare="bits",
        )
        for s, n, start, size in [
            ((4, 6), 15, (1, 2), (2, 3)),
            ((4, 6), 15, (2, 4), (9, 9)),
            ((4, 6), 9, (4, 0), (1, 1)),
            ((3, 2, 4), 24, (0, 0, 0), (3, 2, 4)),
            ((4, 6), 0, (0, 0), (2, 2)),
        ]
    ]


def slice_grad():
    """The gradient of parts that SparseSlice would give."""

    def make(t, r, s, n, start, size):
        whole = coordinates(r, s, n)
        inside = np.all((whole >= start) & (whole < np.add(start, size)), 1)
        part = tf.constant(whole.numpy()[inside] - np.array(start), tf.int64)
        return {
            "backprop_val_grad": r.uniform((int(inside.sum()),), t["T"], 1, 5),
            "input_indices": whole,
            "input_start": i64(*start),
            "output_indices": part,
        }

    return [
        Case(lambda t, r, case=case: make(t, r, *case), compare="bits")
        for case in [
            ((4, 6), 15, (1, 2), (2, 3)),
            ((3, 2, 4), 20, (0, 1, 1), (3, 1, 9)),
            ((7,), 5, (0,), (7,)),
            ((4, 6), 9, (4, 0), (1, 1)),
        ]
    ]


def default_of(values):
    """Another value than any of these."""
    if values.dtype == tf.bool:
        return tf.constant(True)
    return tf.cast(7, values.dtype)


def fill_empty_rows(sparse):
    """Rows at both ends and in between, entries out of order, no row empty, all of them, none at all."""

    def make(t, r, rows, of_rows):
        n = len(of_rows)
        values = r.uniform((n,), t["T"], -3, 3)
        row = np.array(of_rows, np.int64).reshape(n, 1)
        column = r.ints((n, 1), 0, 4).numpy()
        return {
            **(
                {"indices": tf.constant(np.concatenate([row, column], 1)), "dense_shape": i64(rows, 4)}
                if sparse
                else {"value_rowids": tf.constant(row[:, 0]), "nrows": tf.constant(rows, tf.int64)}
            ),
            "values": values,
            "default_value": default_of(values),
        }

    return [
        Case(lambda t, r, case=case: make(t, r, *case), compare="bits")
        for case in [
            (6, [1, 1, 3, 4]),
            (5, [4, 0, 2, 0, 2]),
            (3, [0, 1, 1, 2]),
            (3, []),
            # The CPU has a matrix for the numbers of no rows.
            *([(0, [])] if sparse else []),
        ]
    ]


def fill_empty_rows_grad():
    return [
        Case(
            lambda t, r, n=n, of=of: {
                "reverse_index_map": r.permutation(n)[:of],
                "grad_values": r.uniform((n,), t["T"], 0.5, 4),
            },
            lambda args: terms(int(args["grad_values"].shape[0])),
            ABSOLUTE,
        )
        for n, of in [(9, 5), (4, 4), (3, 0), (0, 0)]
    ]


CASES = {
    "SparseTensorDenseMatMul": dense_matmul(),
    "SparseReorder": reorder(),
    "SparseReshape": reshape(),
    "SparseConcat": concat(),
    "SparseSplit": split(),
    "SparseSlice": slices(),
    "SparseSliceGrad": slice_grad(),
    "SparseFillEmptyRows": fill_empty_rows(sparse=True),
    "RaggedFillEmptyRows": fill_empty_rows(sparse=False),
    "SparseFillEmptyRowsGrad": fill_empty_rows_grad(),
    "RaggedFillEmptyRowsGrad": fill_empty_rows_grad(),
}
