"""Cases for XLA's ops that are ordinary ones, too: windows whose place the device says."""

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tests.sweep.runner import Case
from tests.sweep.sessions import Built

# Shape, window, where it begins: in the middle, pushed back from both ends, a window that is all, one of nothing.
WINDOWS = [
    ((4, 5, 3), (2, 3, 3), (1, 2, 0)),
    ((4, 5, 3), (4, 1, 2), (0, 9, -2)),
    ((4, 5), (4, 5), (3, 3)),
    ((6,), (0,), (2,)),
]


def place(shape, window, start):
    """The slices that a window covers, which XLA moves inside."""
    return tuple(slice(b := min(max(s, 0), n - w), b + w) for n, w, s in zip(shape, window, start))


def updated(x, update, indices, **_):
    result = x.numpy().copy()
    result[place(x.shape, update.shape, indices.numpy())] = update.numpy()
    return [tf.constant(result)]


def sliced(x, starts, sizes):
    return [tf.constant(x.numpy()[place(x.shape, sizes, starts)])]


def update_case(shape, window, start):
    return Case(
        lambda t, r: {
            "input": r.uniform(shape, t["T"]),
            "update": r.uniform(window, t["T"], 3.0, 9.0),
            "indices": tf.constant(start, t["Tindices"]),
            "build": Built(lambda **kwargs: [gen_xla_ops.xla_dynamic_update_slice(**kwargs)]),
        },
        roundings=0,
        expect=lambda a: updated(a["input"], a["update"], a["indices"]),
    )


def slice_case(shape, window, start):
    return Case(
        lambda t, r: {
            "input": r.uniform(shape, t["T"]),
            "start_indices": tf.constant(start, t["Tindices"]),
            "size_indices": tf.constant(window, t["Tindices"]),
            "build": Built(lambda **kwargs: [gen_xla_ops.xla_dynamic_slice(**kwargs)]),
        },
        roundings=0,
        expect=lambda a: sliced(a["input"], a["start_indices"].numpy(), a["size_indices"].numpy()),
    )


CASES = {
    "XlaDynamicUpdateSlice": [update_case(*row) for row in WINDOWS],
    "XlaDynamicSlice": [slice_case(*row) for row in WINDOWS],
}
