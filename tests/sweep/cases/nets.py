"""Parts of networks beyond the layers: positions of maxima, second gradients of pooling, local response normalization."""

import numpy as np
import tensorflow as tf

from tests.sweep.cases.nn import pools
from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, Case


def distinct(r, shape, dtype):
    """All values differ, as far as the type has so many; a maximum is where it is for every device."""
    count = int(np.prod(shape))
    most = {tf.float16: 2048, tf.bfloat16: 256}.get(dtype, count)
    return tf.reshape(tf.cast(r.permutation(count) % most, dtype), shape)


def windows(op_rank, few):
    """(shape, attributes) of a few of the pools; with few values one image of one channel, whose values differ."""
    for shape, ksize, strides, padding in list(pools(op_rank))[:3]:
        shape = (1, *shape[1:-1], 1) if few else (*shape[:-1], 3)
        yield shape, {"ksize": ksize, "strides": strides, "padding": padding}


def pooled(x, attrs):
    f = tf.raw_ops.MaxPool3D if len(x.shape) == 5 else tf.raw_ops.MaxPool
    return tf.cast(f(input=tf.cast(x, tf.float32), **attrs), x.dtype)


def positions(x, attrs, in_batch):
    wide = tf.cast(x, tf.float32)
    return tf.raw_ops.MaxPoolWithArgmax(input=wide, **attrs, include_batch_in_index=in_batch).argmax


def with_argmax(op):
    cases = []
    for number in range(3):
        for in_batch in (False, True):

            def make(t, r, number=number, in_batch=in_batch):
                shape, attrs = list(windows(2, False))[number]
                x = distinct(r, shape, t["T"])
                both = {**attrs, "include_batch_in_index": in_batch}
                if op == "MaxPoolWithArgmax":
                    return {"input": x, **both, "Targmax": t["Targmax"]}
                argmax = positions(x, attrs, in_batch)
                grad = r.uniform(shape if op == "MaxPoolGradGradWithArgmax" else argmax.shape, t["T"])
                return {"input": x, "grad": grad, "argmax": argmax, **both}

            cases.append((make, in_batch))
    if op == "MaxPoolGradWithArgmax":
        # Windows of 3 that are 2 apart: a maximum is that of 4 at most, added to 0.
        return [Case(make, 4, ABSOLUTE, stored=True) for make, _ in cases]
    if op == "MaxPoolWithArgmax":
        return [Case(make, compare="bits") for make, _ in cases]

    def gathered(args):  # TensorFlow has no such CPU kernel
        grad = args["grad"]
        flat = tf.reshape(grad, [1, -1] if args["include_batch_in_index"] else [grad.shape[0], -1])
        argmax = args["argmax"]
        found = tf.gather(flat, tf.reshape(argmax, [flat.shape[0], -1]), axis=1, batch_dims=1)
        return [tf.reshape(found, argmax.shape)]

    return [Case(make, compare="bits", expect=gathered) for make, _ in cases]


def second_gradient(op_rank, v2=False):
    cases = []
    for number in range(3):

        def make(t, r, number=number):
            few = t["T"] in (tf.float16, tf.bfloat16)
            shape, attrs = list(windows(op_rank, few))[number]
            x = distinct(r, shape, t["T"])
            y = pooled(x, attrs)
            if v2:
                attrs = {**attrs, "ksize": tf.constant(attrs["ksize"]), "strides": tf.constant(attrs["strides"])}
            return {"orig_input": x, "orig_output": y, "grad": r.uniform(shape, t["T"]), **attrs}

        cases.append(Case(make, compare="bits"))
    return cases


# (shape, depth_radius, bias, alpha, beta)
RESPONSES = [
    ((2, 3, 3, 7), 2, 1.0, 0.5, 0.5),
    ((1, 2, 2, 33), 5, 2.0, 0.1, 0.75),
    ((2, 2, 1, 4), 9, 1.5, 1.0, 1.0),
]


def lrn(gradient):
    """Roundings: the sum of 2r + 1 squares, 1 more for each, the factor and the bias; the power of what is 1 to 100, so
    that the logarithm's error is at most 5 times as large; the product. A gradient has a second sum of products of 3.
    """
    cases = []
    for shape, radius, bias, alpha, beta in RESPONSES:
        attrs = {"depth_radius": radius, "bias": bias, "alpha": alpha, "beta": beta}

        def make(t, r, shape=shape, attrs=attrs):
            x = r.uniform(shape, t["T"], -2, 2)
            if not gradient:
                return {"input": x, **attrs}
            y = tf.cast(tf.raw_ops.LRN(input=tf.cast(x, tf.float32), **attrs), t["T"])
            return {"input_grads": r.uniform(shape, t["T"]), "input_image": x, "output_image": y, **attrs}

        window = min(2 * radius + 1, shape[-1])
        power = terms(window) + 3 + 10
        cases.append(
            Case(
                make,
                power + 2 if not gradient else 2 * power + terms(window) + 5,
                gradient_sizes if gradient else ABSOLUTE,
            )
        )
    return cases


def gradient_sizes(args, exact):
    """|dy| norm^-beta + 2 alpha beta |x| sum |dy y| / norm, as the difference of the two would be without its sign."""
    x, dy, y = (np.abs(args[k].astype(np.float64)) for k in ("input_image", "input_grads", "output_image"))
    radius, alpha, beta = args["depth_radius"], args["alpha"], args["beta"]

    def around(v):
        padded = np.pad(v, [(0, 0)] * 3 + [(radius, radius)])
        return sum(padded[..., i : i + v.shape[-1]] for i in range(2 * radius + 1))

    norm = args["bias"] + alpha * around(x * x)
    return [dy * norm**-beta + 2 * alpha * beta * x * around(dy * y / norm)]


CASES = {
    "MaxPoolWithArgmax": with_argmax("MaxPoolWithArgmax"),
    "MaxPoolGradWithArgmax": with_argmax("MaxPoolGradWithArgmax"),
    "MaxPoolGradGradWithArgmax": with_argmax("MaxPoolGradGradWithArgmax"),
    "MaxPoolGradGrad": second_gradient(2),
    "MaxPoolGradGradV2": second_gradient(2, v2=True),
    "MaxPool3DGradGrad": second_gradient(3),
    "LRN": lrn(gradient=False),
    "LRNGrad": lrn(gradient=True),
}
