"""TensorLists of types for which TensorFlow has no kernels but the CPU's."""

import tensorflow as tf

from tests.sweep.runner import Case
from tests.sweep.sessions import Built

raw = tf.raw_ops
SHAPE = [16]  # of an element
LIKE = {"element_shape": SHAPE}


def listed(x):
    return raw.TensorListFromTensor(tensor=x, element_shape=SHAPE)


def elements(handle, x, n=3):
    """All of a list, one by one: what a test of another op can trust."""
    return [raw.TensorListGetItem(input_handle=handle, index=i, element_dtype=x.dtype, **LIKE) for i in range(n)]


def stacked(handle, x, n=-1):
    return raw.TensorListStack(input_handle=handle, element_dtype=x.dtype, num_elements=n, **LIKE)


def reserved(x, n=3):
    return raw.TensorListReserve(element_dtype=x.dtype, num_elements=n, **LIKE)


def from_tensor(x):
    return elements(listed(x), x)


def get_item(x):
    """An element of a list that was never set: zeros."""
    return elements(raw.TensorListSetItem(input_handle=reserved(x), index=1, item=x[1]), x)


def set_item(x):
    return elements(raw.TensorListSetItem(input_handle=listed(x), index=2, item=x[0]), x)


def pop_back(x):
    rest, last = raw.TensorListPopBack(input_handle=listed(x), element_dtype=x.dtype, **LIKE)
    return [last, *elements(rest, x, 2)]


def stack(x):
    """All, and with an element that was never set."""
    some = raw.TensorListSetItem(input_handle=reserved(x), index=0, item=x[2])
    return [stacked(listed(x), x), stacked(some, x, 3)]


def gather(x):
    return [raw.TensorListGather(input_handle=listed(x), indices=[2, 0], element_dtype=x.dtype, **LIKE)]


def scatter(x):
    return elements(raw.TensorListScatter(tensor=x, indices=[2, 0, 1], **LIKE), x)


def scatter_v2(x):
    return elements(raw.TensorListScatterV2(tensor=x, indices=[2, 0, 1], num_elements=3, **LIKE), x)


def scatter_into(x):
    return elements(raw.TensorListScatterIntoExistingList(input_handle=listed(x), tensor=x[:2], indices=[1, 2]), x)


def split(x):
    """Into pieces of one row and of two."""
    lengths = tf.constant([1, 2], tf.int64)
    handle = raw.TensorListSplit(tensor=x, element_shape=[-1, 16], lengths=lengths)
    return [
        raw.TensorListGetItem(input_handle=handle, index=i, element_shape=[-1, 16], element_dtype=x.dtype)
        for i in range(2)
    ]


def concat(x):
    return list(raw.TensorListConcat(input_handle=listed(x), element_dtype=x.dtype, **LIKE))


def concat_v2(x):
    """With an element that was never set, of which the lengths say how long it is."""
    some = raw.TensorListSetItem(input_handle=reserved(x), index=0, item=x[2])
    dims = tf.constant([16, 16, 16], tf.int64)
    return list(raw.TensorListConcatV2(input_handle=some, element_dtype=x.dtype, leading_dims=dims, **LIKE))


def cases(build):
    return [
        Case(
            lambda t, r: {"x": r.uniform((3, 16), t["element_dtype"], 1, 9), "build": Built(build)},
            compare="bits",
        )
    ]


CASES = {
    "TensorListConcat": cases(concat),
    "TensorListConcatV2": cases(concat_v2),
    "TensorListFromTensor": cases(from_tensor),
    "TensorListGather": cases(gather),
    "TensorListGetItem": cases(get_item),
    "TensorListPopBack": cases(pop_back),
    "TensorListScatter": cases(scatter),
    "TensorListScatterIntoExistingList": cases(scatter_into),
    "TensorListScatterV2": cases(scatter_v2),
    "TensorListSetItem": cases(set_item),
    "TensorListSplit": cases(split),
    "TensorListStack": cases(stack),
}
