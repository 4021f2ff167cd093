"""Operators that move, choose and count elements."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from tests.onnx_nodes.interpreter import constant, constant_of, known, on_host, operator, type_of, whole


@operator("Constant")
def constant_(node):
    if node["value"] is not None:
        return constant(node["value"])
    for name, dtype in (("float", tf.float32), ("int", tf.int64), ("string", tf.string)):
        for value in (node[f"value_{name}"], node[f"value_{name}s"]):
            if value is not None:
                return constant_of(value, dtype)
    raise NotImplementedError("a sparse constant")


@operator("ConstantOfShape")
def constant_of_shape(node, shape):
    value = tf.constant(0.0) if node["value"] is None else tf.reshape(constant(node["value"]), [])
    return tf.fill(shape, value)


@operator("Shape")
def shape_(node, x):
    part = slice(node["start"] or 0, node["end"])
    if x.shape.is_fully_defined():
        return constant_of(x.shape.as_list()[part], tf.int64)
    return tf.shape(x, tf.int64)[part]


@operator("Size")
def size(node, x):
    if x.shape.is_fully_defined():
        return constant_of(x.shape.num_elements(), tf.int64)
    return tf.size(x, tf.int64)


@operator("Reshape")
def reshape(node, x, shape=None):
    """A 0 stands for the dimension of x, unless allowzero is set."""
    if shape is None:
        shape = tf.constant(node["shape"], tf.int64)
    if not node["allowzero"]:
        number = shape.shape[0]
        of_x = tf.concat([tf.shape(x, tf.int64), tf.zeros([number], tf.int64)], 0)[:number]
        shape = tf.where(shape == 0, of_x, shape)
    return tf.reshape(x, shape)


@operator("Flatten")
def flatten(node, x):
    axis = node["axis"] + (x.shape.rank if node["axis"] < 0 else 0)
    rows = tf.reduce_prod(tf.shape(x)[:axis])
    return tf.reshape(x, [rows, tf.reduce_prod(tf.shape(x)[axis:])])


@operator("Squeeze")
def squeeze(node, x, axes=None):
    return tf.squeeze(x, node["axes"] if axes is None else whole(axes))


@operator("Unsqueeze")
def unsqueeze(node, x, axes=None):
    axes = node["axes"] if axes is None else whole(axes)
    for axis in sorted(axis % (x.shape.rank + len(axes)) for axis in axes):
        x = tf.expand_dims(x, axis)
    return x


@operator("Expand")
def expand(node, x, shape):
    return tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x, tf.int64), shape))


@operator("Tile")
def tile(node, x, repeats):
    return tf.tile(x, repeats)


@operator("Transpose")
def transpose(node, x):
    return tf.transpose(x, node["perm"])


@operator("Concat")
def concat(node, *values):
    return tf.concat(values, 1 if node["axis"] is None else node["axis"])


@operator("Split")
def split(node, x, sizes=None):
    axis = node["axis"]
    sizes = node["split"] if sizes is None else sizes
    if sizes is None:
        number = node["num_outputs"] or node.outputs
        each = -(-x.shape[axis] // number)
        sizes = [min(each, x.shape[axis] - i * each) for i in range(number)]
    return tuple(tf.split(x, sizes, axis, num=node.outputs))


@operator("Slice")
def slice_(node, x, starts=None, ends=None, axes=None, steps=None):
    if starts is None:
        starts, ends, axes = node["starts"], node["ends"], node["axes"]
    starts, ends = tf.cast(starts, tf.int64), tf.cast(ends, tf.int64)
    number, rank = starts.shape[0], x.shape.rank
    axes = tf.cast(tf.range(number) if axes is None else axes, tf.int64)
    at = tf.where(axes < 0, axes + rank, axes)[:, tf.newaxis]
    steps = tf.ones([number], tf.int64) if steps is None else tf.cast(steps, tf.int64)
    begin = tf.tensor_scatter_nd_update(tf.zeros([rank], tf.int64), at, starts)
    end = tf.tensor_scatter_nd_update(tf.shape(x, tf.int64), at, ends)
    return tf.strided_slice(x, begin, end, tf.tensor_scatter_nd_update(tf.ones([rank], tf.int64), at, steps))


@operator("Pad")
def pad(node, x, pads=None, value=None, axes=None):
    pads = (node["pads"] or node["paddings"]) if pads is None else whole(pads)
    value = node["value"] if value is None else tf.reshape(value, [])
    axes = list(range(x.shape.rank)) if axes is None else [a % x.shape.rank for a in whole(axes)]
    around = np.zeros([x.shape.rank, 2], np.int64)
    around[axes] = np.reshape(pads, [2, -1]).T
    begin, end = np.maximum(-around, 0).T  # a negative one cuts
    x = x[tuple(slice(b, n - e) for b, n, e in zip(begin, x.shape, end))]
    around = np.maximum(around, 0)
    if node["mode"] in ("constant", "reflect"):
        return tf.pad(x, around, node["mode"], constant_values=0 if value is None else value)
    for axis, (before, after) in enumerate(around):
        at, n = np.arange(-before, x.shape[axis] + after), x.shape[axis]
        x = tf.gather(x, np.clip(at, 0, n - 1) if node["mode"] == "edge" else at % n, axis=axis)
    return x


@operator("CenterCropPad")
def center_crop_pad(node, x, shape):
    axes = range(x.shape.rank) if node["axes"] is None else node["axes"]
    for axis, to in zip(axes, whole(shape)):
        n = x.shape[axis]
        cut = [slice(None)] * (axis % x.shape.rank) + [slice(max((n - to) // 2, 0), max((n - to) // 2, 0) + to)]
        more = max(to - n, 0)
        around = np.zeros([x.shape.rank, 2], int)
        around[axis] = more // 2, more - more // 2
        x = tf.pad(x[tuple(cut)], around)
    return x


def natural(indices: tf.Tensor, length) -> tf.Tensor:
    """Makes negative indices, which count from the end, count from the beginning."""
    return tf.where(indices < 0, indices + tf.cast(length, indices.dtype), indices)


@operator("Gather")
def gather(node, x, indices):
    return tf.gather(x, natural(indices, tf.shape(x)[node["axis"]]), axis=node["axis"])


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(node, x, indices):
    return tf.gather(x, tf.reshape(indices, [-1]), axis=-1)


@operator("GatherND")
def gather_nd(node, x, indices):
    return tf.gather_nd(x, indices, batch_dims=node["batch_dims"] or 0)


def places(x: tf.Tensor, indices: tf.Tensor, axis: int) -> tf.Tensor:
    """Indices for gather_nd: an index gives the coordinate on one axis, its own position gives the others."""
    axis %= x.shape.rank
    grid = tf.meshgrid(*map(tf.range, tf.unstack(tf.shape(indices))), indexing="ij")
    grid = [tf.cast(g, indices.dtype) for g in grid]
    grid[axis] = natural(indices, tf.shape(x)[axis])
    return tf.stack(grid, -1)


@operator("GatherElements")
def gather_elements(node, x, indices):
    return tf.gather_nd(x, places(x, indices, node["axis"]))


SCATTER = {
    "none": tf.tensor_scatter_nd_update,
    "add": tf.tensor_scatter_nd_add,
    "min": tf.tensor_scatter_nd_min,
    "max": tf.tensor_scatter_nd_max,
}


@operator("Scatter", "ScatterElements")
def scatter_elements(node, x, indices, updates):
    return SCATTER[node["reduction"] or "none"](x, places(x, indices, node["axis"]), updates)


@operator("ScatterND")
def scatter_nd(node, x, indices, updates):
    lengths = tf.shape(x, indices.dtype)[: indices.shape[-1]]
    return SCATTER[node["reduction"] or "none"](x, natural(indices, lengths), updates)


@operator("TensorScatter")
def tensor_scatter(node, cache, update, starts=None):
    """Writes each batch's update along an axis, from its start on. A circular write wraps around."""
    axis, batches = node["axis"] % cache.shape.rank, cache.shape[0]
    starts = tf.zeros([batches], tf.int64) if starts is None else starts
    at = starts[:, tf.newaxis] + tf.cast(tf.range(update.shape[axis]), starts.dtype)
    if node["mode"] == "circular":
        at %= cache.shape[axis]
    lengths = [n if k in (0, axis) else 1 for k, n in enumerate(update.shape)]
    return scatter_elements_at(cache, tf.broadcast_to(tf.reshape(at, lengths), update.shape), update, axis)


def scatter_elements_at(x, indices, updates, axis):
    return tf.tensor_scatter_nd_update(x, places(x, indices, axis), updates)


@operator("OneHot")
def one_hot(node, indices, depth, values):
    depth = tf.cast(tf.reshape(depth, []), tf.int32)
    indices, axis = natural(tf.cast(indices, tf.int64), depth), node["axis"]
    axis = axis + indices.shape.rank + 1 if axis < -1 else axis
    return tf.one_hot(indices, depth, values[1], values[0], axis, values.dtype)


@operator("EyeLike")
def eye_like(node, x):
    dtype = x.dtype if node["dtype"] is None else type_of(node["dtype"])
    rows, columns = x.shape
    length = max(min(rows + min(node["k"], 0), columns - max(node["k"], 0)), 0)
    return tf.linalg.diag(tf.ones([length], dtype), k=node["k"], num_rows=rows, num_cols=columns)


@operator("Trilu")
def trilu(node, x, k=None):
    """band_part needs a band around the diagonal; other triangles are a difference."""
    k = 0 if k is None else int(known(k))
    rows, columns = x.shape[-2:]
    if node["upper"]:
        if k <= 0:
            return tf.linalg.band_part(x, min(-k, rows), -1)
        return x - tf.linalg.band_part(x, -1, min(k - 1, columns))
    if k >= 0:
        return tf.linalg.band_part(x, -1, min(k, columns))
    return x - tf.linalg.band_part(x, min(-k - 1, rows), -1)


@operator("ReverseSequence")
def reverse_sequence(node, x, lengths):
    return tf.reverse_sequence(x, lengths, node["time_axis"], node["batch_axis"])


@operator("DepthToSpace")
def depth_to_space(node, x):
    block = node["blocksize"]
    if node["mode"] == "CRD":
        n, c, h, w = x.shape
        x = tf.reshape(x, [n, c // block**2, block**2, h, w])
        x = tf.reshape(tf.transpose(x, [0, 2, 1, 3, 4]), [n, c, h, w])
    return tf.transpose(tf.nn.depth_to_space(tf.transpose(x, [0, 2, 3, 1]), block), [0, 3, 1, 2])


@operator("SpaceToDepth")
def space_to_depth(node, x):
    block = node["blocksize"]
    found = tf.transpose(tf.nn.space_to_depth(tf.transpose(x, [0, 2, 3, 1]), block), [0, 3, 1, 2])
    if node["mode"] == "CRD":
        n, c, h, w = found.shape
        found = tf.reshape(tf.reshape(found, [n, block**2, c // block**2, h, w]), [n, block**2, -1, h, w])
        found = tf.reshape(tf.transpose(found, [0, 2, 1, 3, 4]), [n, c, h, w])
    return found


@operator("Compress")
def compress(node, x, condition):
    if node["axis"] is None:
        x = tf.reshape(x, [-1])
    return tf.gather(x, tf.where(condition)[:, 0], axis=node["axis"] or 0)


@operator("NonZero")
def non_zero(node, x):
    return tf.transpose(tf.where(x))


@operator("Range")
def range_(node, start, limit, delta):
    if start.dtype == tf.int32:
        return tf.range(start, limit, delta)
    with on_host():
        return tf.range(start, limit, delta)


@operator("TopK")
def top_k(node, x, k=None):
    k = tf.constant(node["k"]) if k is None else tf.cast(tf.reshape(k, []), tf.int32)
    axis, rank = node["axis"] % x.shape.rank, x.shape.rank
    order = [i for i in range(rank) if i != axis] + [axis]
    back = list(np.argsort(order))
    moved = tf.transpose(x, order)
    smallest = node["largest"] not in (1, None)
    if smallest:
        moved = ~moved if x.dtype.is_integer else -moved
    values, indices = tf.math.top_k(moved, k)
    if smallest:
        values = ~values if x.dtype.is_integer else -values
    return tf.transpose(values, back), tf.cast(tf.transpose(indices, back), tf.int64)


@operator("Unique")
def unique(node, x):
    """TensorFlow's values are in the order of their first occurrence, and are sorted here."""
    if node["axis"] is None:
        x = tf.reshape(x, [-1])
    axis = (node["axis"] or 0) % x.shape.rank
    values, inverse, counts = tf.raw_ops.UniqueWithCountsV2(x=x, axis=[axis], out_idx=tf.int64)
    number = tf.shape(counts)[0]
    first = tf.math.unsorted_segment_min(tf.cast(tf.range(tf.size(inverse)), tf.int64), inverse, number)
    if node["sorted"]:
        rows = tf.reshape(tf.experimental.numpy.moveaxis(values, axis, 0), [number, -1])
        order = tf.range(number)
        columns = math.prod(n for k, n in enumerate(x.shape) if k != axis)
        for column in range(columns - 1, -1, -1):  # stable sorts, the first column last
            order = tf.gather(order, tf.argsort(tf.gather(rows[:, column], order), stable=True))
        values, first, counts = (tf.gather(v, order, axis=a) for v, a in ((values, axis), (first, 0), (counts, 0)))
        inverse = tf.gather(tf.cast(tf.argsort(order), tf.int64), inverse)
    return values, first, inverse, counts
