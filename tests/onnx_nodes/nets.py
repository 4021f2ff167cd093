"""Convolutions, pools, images and normalizations of channels, which ONNX has first and TensorFlow's CPU last."""

from __future__ import annotations

import functools
import math

import numpy as np
import tensorflow as tf

from tests.onnx_nodes.interpreter import known, on_host, operator, whole


def last(x: tf.Tensor) -> tf.Tensor:
    """Moves channels from the second dimension to the last."""
    return tf.transpose(x, [0, *range(2, x.shape.rank), 1])


def second(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [0, x.shape.rank - 1, *range(1, x.shape.rank - 1)])


class Window:
    """A window's sizes and the padding of an input, for each spatial dimension."""

    def __init__(self, node, size, kernel):
        self.size, self.kernel = list(size), list(kernel)
        number = len(self.kernel)
        self.strides, self.dilations = node["strides"] or [1] * number, node["dilations"] or [1] * number
        self.extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        auto = node["auto_pad"]
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out = [-(-n // s) for n, s in zip(self.size, self.strides)]
            sums = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(out, self.strides, self.extents, self.size)]
            small = [p // 2 for p in sums]
            pairs = [(a, p - a) if auto == "SAME_UPPER" else (p - a, a) for a, p in zip(small, sums)]
        else:
            pads = node["pads"] or [0] * 2 * number
            pairs = list(zip(pads[:number], pads[number:]))
        self.pads = pairs
        # Padding for a last window that is not whole, in ceil mode. A window that starts in the padding does not count.
        self.more = [0] * number
        if node["ceil_mode"]:
            for i, (n, e, s, (before, after)) in enumerate(zip(self.size, self.extents, self.strides, pairs)):
                out = -(-(n + before + after - e) // s) + 1
                out -= (out - 1) * s >= n + before
                self.more[i] = max((out - 1) * s + e - n - before - after, 0)

    def padded(self, x: tf.Tensor, value=0, more: bool = True) -> tf.Tensor:
        """Pads an input whose channels are last."""
        around = [(b, a + (m if more else 0)) for (b, a), m in zip(self.pads, self.more)]
        if not np.any(around):
            return x
        return tf.pad(x, [(0, 0), *around, (0, 0)], constant_values=tf.constant(value, x.dtype))


def biased(x: tf.Tensor, bias: tf.Tensor | None) -> tf.Tensor:
    return x if bias is None else tf.nn.bias_add(x, bias)


@operator("Conv")
def conv(node, x, w, bias=None):
    return second(biased(convolution(node, x, w), bias))


def convolution(node, x, w, zero=0):
    """The result has channels last."""
    window = Window(node, x.shape[2:], w.shape[2:])
    filters = tf.transpose(w, [*range(2, w.shape.rank), 1, 0])
    padded, groups = window.padded(last(x), zero), node["group"] if x.shape.rank == 5 else 1
    parts = zip(tf.split(padded, groups, -1), tf.split(filters, groups, -1))  # the CPU has no groups in 3-D
    return tf.concat([strided(functools.partial(tf.nn.convolution, *p, padding="VALID"), window) for p in parts], -1)


def strided(function, window):
    """TensorFlow has either strides or dilations: with both, it computes all results, and strides choose some."""
    if max(window.dilations) == 1:
        return function(strides=window.strides)
    found = function(dilations=window.dilations)
    return found[(slice(None), *(slice(None, None, s) for s in window.strides))]


def dilated(filters: tf.Tensor, dilations) -> tf.Tensor:
    """Filters [sizes..., a, b] with zeros between their elements."""
    for axis, d in enumerate(dilations):
        if d > 1:
            n = filters.shape[axis]
            at = tf.range(n)[:, tf.newaxis] * d
            moved = tf.experimental.numpy.moveaxis(filters, axis, 0)
            spread = tf.scatter_nd(at, moved, [(n - 1) * d + 1, *moved.shape[1:]])
            filters = tf.experimental.numpy.moveaxis(spread, 0, axis)
    return filters


def transposed_convolution(x, filters, strides) -> tf.Tensor:
    """The whole transposed convolution, channels last. Filters are [sizes..., outputs, inputs]."""
    space = [(n - 1) * s + k for n, s, k in zip(x.shape[1:-1], strides, filters.shape)]
    shape = [x.shape[0], *space, filters.shape[-2]]
    return tf.nn.conv_transpose(x, filters, shape, strides, "VALID")


@operator("ConvTranspose")
def conv_transpose(node, x, w, bias=None):
    number = x.shape.rank - 2
    strides, dilations = node["strides"] or [1] * number, node["dilations"] or [1] * number
    filters = dilated(tf.transpose(w, [*range(2, w.shape.rank), 1, 0]), dilations)
    parts = zip(tf.split(last(x), node["group"], -1), tf.split(filters, node["group"], -1))
    found = tf.concat([transposed_convolution(a, f, strides) for a, f in parts], -1)
    more = node["output_padding"] or [0] * number
    natural = [n + m for n, m in zip(found.shape[1:-1], more)]
    if node["auto_pad"] in ("SAME_UPPER", "SAME_LOWER") or node["output_shape"]:
        out = node["output_shape"] or [n * s for n, s in zip(x.shape[2:], strides)]
        sums = [n - o for n, o in zip(natural, out)]
        low = node["auto_pad"] != "SAME_UPPER"
        pads = [(p - p // 2, p // 2) if low else (p // 2, p - p // 2) for p in sums]
    else:
        given = node["pads"] or [0] * 2 * number
        pads = list(zip(given[:number], given[number:]))
    found = tf.pad(found, [(0, 0), *((max(-b, 0), m + max(-a, 0)) for m, (b, a) in zip(more, pads)), (0, 0)])
    cut = [slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(found.shape[1:-1], pads)]
    return second(biased(found[(slice(None), *cut)], bias))


@operator("Col2Im")
def col2im(node, x, image_shape, block_shape):
    """A transposed convolution whose filters have one 1 moves each column to its place."""
    block, image = whole(block_shape), whole(image_shape)
    window = Window(node, image, block)
    columns = [(n + b + a - e) // s + 1 for n, (b, a), e, s in zip(image, window.pads, window.extents, window.strides)]
    n, elements = x.shape[0], math.prod(block)
    channels = x.shape[1] // elements
    places = last(tf.reshape(x, [n * channels, elements, *columns]))
    filters = tf.reshape(tf.eye(elements, dtype=x.dtype), [*block, 1, elements])
    found = transposed_convolution(places, dilated(filters, window.dilations), window.strides)
    whole_size = [n + b + a for n, (b, a) in zip(image, window.pads)]
    found = tf.pad(found, [(0, 0), *((0, w - f) for w, f in zip(whole_size, found.shape[1:-1])), (0, 0)])
    cut = [slice(b, b + n) for n, (b, _) in zip(image, window.pads)]
    return tf.reshape(second(found[(slice(None), *cut)]), [n, channels, *image])


@operator("MaxPool")
def max_pool(node, x):
    window = Window(node, x.shape[2:], node["kernel_shape"])
    lowest = -np.inf if x.dtype.is_floating else x.dtype.min
    padded = window.padded(last(x), lowest)
    if node.outputs == 1:
        return second(pooled("MAX", padded, window))
    return with_indices(node, x, padded, window)


def pooled(kind, padded, window):
    if padded.dtype.is_integer:
        with on_host():
            return tf.nn.max_pool(padded, window.kernel, window.strides, "VALID")
    if kind == "MAX" and max(window.dilations) == 1 and len(window.kernel) > 1:
        return tf.nn.max_pool(padded, window.kernel, window.strides, "VALID")
    return strided(lambda **how: tf.nn.pool(padded, window.kernel, kind, padding="VALID", **how), window)


def with_indices(node, x, padded, window):
    """The largest values and their indices in the flattened x."""
    if len(window.kernel) == 1:
        padded = padded[:, tf.newaxis]
    kernel, strides = ([1] * (2 - len(v)) + list(v) for v in (window.kernel, window.strides))
    values, at = tf.nn.max_pool_with_argmax(padded, kernel, strides, "VALID", output_dtype=tf.int64)
    _, _, width, channels = padded.shape
    row, column, channel = at // channels // width, at // channels % width, at % channels
    if len(window.kernel) == 1:
        values, row, column, channel = (v[:, 0] for v in (values, row, column, channel))
        place, area = column - window.pads[0][0], x.shape[2]
    else:
        row, column = row - window.pads[0][0], column - window.pads[1][0]
        (h, w), area = x.shape[2:], x.shape[2] * x.shape[3]
        place = column * h + row if node["storage_order"] else row * w + column
    batch = tf.reshape(tf.cast(tf.range(x.shape[0]), tf.int64), [-1] + [1] * (place.shape.rank - 1))
    return second(values), second((batch * x.shape[1] + channel) * area + place)


@operator("AveragePool")
def average_pool(node, x):
    """An attribute says whether padding counts; padding of ceil mode never does."""
    window = Window(node, x.shape[2:], node["kernel_shape"])
    ones = tf.ones([1, *x.shape[2:], 1], x.dtype)
    if node["count_include_pad"]:
        ones = window.padded(ones, 1, more=False)
        counted = tf.pad(ones, [(0, 0), *((0, m) for m in window.more), (0, 0)])
    else:
        counted = window.padded(ones)
    return second(pooled("AVG", window.padded(last(x)), window) / pooled("AVG", counted, window))


@operator("LpPool")
def lp_pool(node, x):
    window, p = Window(node, x.shape[2:], node["kernel_shape"]), node["p"]
    averages = pooled("AVG", window.padded(tf.pow(tf.abs(last(x)), p)), window)
    return second(tf.pow(averages * math.prod(window.kernel), 1 / p))


@operator("MaxUnpool")
def max_unpool(node, x, indices, output_shape=None):
    """Indices refer to the smallest output, which is the corner of a larger one."""
    pads = node["pads"] or [0] * 2 * (x.shape.rank - 2)
    number = len(pads) // 2
    strides = node["strides"] or [1] * number
    natural = [
        (n - 1) * s - pads[i] - pads[i + number] + k
        for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, node["kernel_shape"]))
    ]
    shape = [*x.shape[:2], *natural]
    flat = tf.scatter_nd(tf.reshape(indices, [-1, 1]), tf.reshape(x, [-1]), [math.prod(shape)])
    found = tf.reshape(flat, shape)
    return found if output_shape is None else tf.pad(found, [(0, w - n) for w, n in zip(whole(output_shape), shape)])


def of_space(function):
    return lambda node, x: function(x, list(range(2, x.shape.rank)), keepdims=True)


operator("GlobalAveragePool")(of_space(tf.reduce_mean))
operator("GlobalMaxPool")(of_space(tf.reduce_max))


@operator("GlobalLpPool")
def global_lp_pool(node, x):
    return tf.norm(x, node["p"], list(range(2, x.shape.rank)), keepdims=True)


def along_channels(v: tf.Tensor, rank: int) -> tf.Tensor:
    return tf.reshape(v, [1, -1] + [1] * (rank - 2))


@operator("BatchNormalization")
def batch_normalization(node, x, scale, offset, mean, variance):
    if node["training_mode"]:
        axes = [0, *range(2, x.shape.rank)]
        now, its_variance = tf.nn.moments(x, axes)
        m = node["momentum"]
        means, variances = mean * m + now * (1 - m), variance * m + its_variance * (1 - m)
        return normalized(node, x, scale, offset, now, its_variance), means, variances
    if x.shape.rank == 4 and x.dtype == tf.float32:
        epsilon = node["epsilon"]
        return second(fused(last(x), scale, offset, mean, variance, epsilon))
    return normalized(node, x, scale, offset, mean, variance)


def fused(x, scale, offset, mean, variance, epsilon):
    return tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=mean, variance=variance, epsilon=epsilon, is_training=False
    ).y


def normalized(node, x, scale, offset, mean, variance):
    values = (along_channels(v, x.shape.rank) for v in (mean, variance, offset, scale))
    return tf.nn.batch_normalization(x, *values, node["epsilon"])


@operator("InstanceNormalization")
def instance_normalization(node, x, scale, offset):
    mean, variance = tf.nn.moments(x, list(range(2, x.shape.rank)), keepdims=True)
    scale, offset = along_channels(scale, x.shape.rank), along_channels(offset, x.shape.rank)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, node["epsilon"])


@operator("GroupNormalization")
def group_normalization(node, x, scale, offset):
    grouped = tf.reshape(x, [x.shape[0], node["num_groups"], -1])
    mean, variance = tf.nn.moments(grouped, [2], keepdims=True)
    found = tf.reshape((grouped - mean) * tf.math.rsqrt(variance + node["epsilon"]), x.shape)
    return found * along_channels(scale, x.shape.rank) + along_channels(offset, x.shape.rank)


@operator("LRN")
def lrn(node, x):
    """TensorFlow's alpha multiplies the sum of squares, ONNX's alpha their mean."""
    radius, alpha = (node["size"] - 1) // 2, node["alpha"] / node["size"]
    return second(tf.nn.local_response_normalization(last(x), radius, node["bias"], alpha, node["beta"]))


@operator("Dropout")
def dropout(node, x, ratio=None, training=None):
    """Cases that drop nothing can be compared."""
    rate = 0.0 if ratio is None or training is None else tf.cast(ratio, x.dtype)
    found = x if ratio is None or training is None else tf.where(training, tf.nn.dropout(x, rate), x)
    return tf.identity(found), tf.ones_like(x, tf.bool)


@operator("Resize", "Upsample")
def resize(node, x, *rest):
    """Uses TensorFlow's ops for images; exceptions.py says where their definitions differ."""
    roi, scales, sizes = (*rest, None, None, None)[:3] if len(rest) > 1 else (None, *rest, None)
    axes = [a % x.shape.rank for a in node["axes"] or range(x.shape.rank)]
    rates = [1.0] * x.shape.rank
    to = list(x.shape)
    if sizes is None:
        for axis, rate in zip(axes, node["scales"] if scales is None else known(scales)):
            rates[axis], to[axis] = float(rate), math.floor(x.shape[axis] * float(rate))
    else:
        wanted = whole(sizes)
        policy = {"not_larger": min, "not_smaller": max}.get(node["keep_aspect_ratio_policy"])
        same = policy and policy(w / x.shape[a] for a, w in zip(axes, wanted))
        for axis, size in zip(axes, wanted):
            to[axis] = math.floor(x.shape[axis] * same + 0.5) if policy else size
            rates[axis] = same if policy else size / x.shape[axis]
    return second(resized(node, last(x), roi, axes, rates[2:], to[2:]))


def resized(node, image, roi, axes, rates, size):
    """The image and the result have channels last."""
    coordinates = node["coordinate_transformation_mode"] or "asymmetric"
    if coordinates == "tf_crop_and_resize":
        ends = np.array([[0.0] * 4, [1.0] * 4])
        ends[:, axes] = np.reshape(known(roi), [2, -1])
        box = [[*ends[0, 2:], *ends[1, 2:]]] * image.shape[0]
        return tf.image.crop_and_resize(
            image, box, range(image.shape[0]), size, extrapolation_value=node["extrapolation_value"]
        )
    half, corners = coordinates in ("half_pixel", "pytorch_half_pixel"), coordinates == "align_corners"
    how = {"images": image, "size": size}
    if node["mode"] == "nearest":
        return tf.raw_ops.ResizeNearestNeighbor(**how, align_corners=corners)
    uneven = any(r * n != s for r, n, s in zip(rates, image.shape[1:-1], size))
    if half and (node["antialias"] or uneven or node["cubic_coeff_a"] == -0.5):
        kernel = "triangle" if node["mode"] == "linear" else "keyscubic"
        antialias = bool(node["antialias"])
        none = [0.0, 0.0]
        return tf.raw_ops.ScaleAndTranslate(
            **how, scale=rates, translation=none, kernel_type=kernel, antialias=antialias
        )
    linear = node["mode"] == "linear"
    return (tf.raw_ops.ResizeBilinear if linear else tf.raw_ops.ResizeBicubic)(
        **how, align_corners=corners, half_pixel_centers=half
    )


@operator("NonMaxSuppression")
def non_max_suppression(node, boxes, scores, number=None, overlap=None, least=None):
    """Runs for each batch and class."""
    if number is None:
        return tf.zeros([0, 3], tf.int64)
    if node["center_point_box"]:
        x, y, w, h = tf.unstack(boxes, axis=-1)
        boxes = tf.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], -1)
    overlap = 0.0 if overlap is None else tf.reshape(overlap, [])
    least = float("-inf") if least is None else tf.reshape(least, [])
    number = tf.cast(tf.reshape(number, []), tf.int32)
    rows = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            at = tf.image.non_max_suppression(boxes[batch], scores[batch, kind], number, overlap, least)
            at = tf.cast(at, tf.int64)
            rows.append(tf.stack([tf.fill(tf.shape(at), tf.constant(v, tf.int64)) for v in (batch, kind)] + [at], 1))
    return tf.concat(rows, 0)
