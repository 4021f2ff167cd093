"""Matrix products, convolutions, pooling, normalization, softmax."""

import numpy as np
import tensorflow as tf

from tests.sweep.rounding import terms
from tests.sweep.runner import ABSOLUTE, Case


def matmul(names, types_of, adjoint):
    """Matrix products of many shapes; `adjoint` are the names of the two transposition attributes."""
    cases = []
    shapes = [(1, 1, 1), (3, 4, 5), (17, 33, 9), (64, 64, 64), (1, 100, 7), (5, 0, 3), (0, 4, 5), (130, 70, 50)]
    for m, k, n in shapes:
        for ta, tb in [(False, False), (True, False), (False, True), (True, True)]:

            def make(t, r, m=m, k=k, n=n, ta=ta, tb=tb):
                return {
                    names[0]: r.uniform((k, m) if ta else (m, k), types_of(t), -2, 2),
                    names[1]: r.uniform((n, k) if tb else (k, n), types_of(t), -2, 2),
                    adjoint[0]: ta,
                    adjoint[1]: tb,
                }

            cases.append(Case(make, terms(k), ABSOLUTE))
    return cases


def batch_matmul(broadcast):
    cases = []
    shapes = [((2,), (2,)), ((2, 3), (2, 3)), ((0,), (0,))] + (
        [((2, 1), (3,)), ((), (4,)), ((4, 1, 2), (3, 1))] if broadcast else []
    )
    for a, b in shapes:
        for adj in (False, True):

            def make(t, r, a=a, b=b, adj=adj):
                dtype = t.get("T") or t["Ta"]
                kwargs = {
                    "x": r.uniform((*a, 5, 7), dtype, -2, 2),
                    "y": r.uniform((*b, 9, 7) if adj else (*b, 7, 9), t.get("Tb", dtype), -2, 2),
                    "adj_y": adj,
                }
                if "Ta" in t or "Tout" in t:
                    kwargs["Tout"] = t.get("Tout", dtype)
                return kwargs

            cases.append(Case(make, terms(7), ABSOLUTE))
    return cases


def einsum():
    equations = [
        ("ij,jk->ik", (3, 4), (4, 5)),
        ("abc,cde->abde", (2, 3, 4), (4, 5, 6)),
        ("aecd,abcd->acbe", (2, 3, 4, 5), (2, 6, 4, 5)),
        ("acbe,aecd->abcd", (2, 4, 6, 3), (2, 3, 4, 5)),
        ("abcd,cde->abe", (2, 3, 4, 5), (4, 5, 6)),
        ("i,j->ij", (3,), (4,)),
        ("ij,ij->", (3, 4), (3, 4)),
        ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
        ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)),
        ("abc,abd->cd", (2, 3, 4), (2, 3, 5)),
        ("ij,k->k", (2, 3), (4,)),
    ]
    single = [
        ("ij->ji", (3, 4)),
        ("ij->", (3, 4)),
        ("ijk->ik", (2, 3, 4)),
        ("ii->i", (4, 4)),
        ("ii->", (4, 4)),
        ("...ij->...ji", (2, 3, 4)),
    ]
    return [
        Case(
            lambda t, r, e=e, a=a, b=b: {
                "inputs": [r.uniform(a, t["T"], -2, 2), r.uniform(b, t["T"], -2, 2)],
                "equation": e,
            },
            terms(24),
            ABSOLUTE,
        )
        for e, a, b in equations
    ] + [
        Case(lambda t, r, e=e, a=a: {"inputs": [r.uniform(a, t["T"], -2, 2)], "equation": e}, terms(12), ABSOLUTE)
        for e, a in single
    ]


# (spatial input, spatial filter, in channels, out channels, groups, stride, dilation, padding)
CONVOLUTIONS = [
    ((8, 8), (3, 3), 4, 6, 1, 1, 1, "SAME"),
    ((8, 8), (3, 3), 4, 6, 1, 1, 1, "VALID"),
    ((9, 7), (3, 2), 3, 5, 1, 2, 1, "SAME"),
    ((9, 7), (3, 2), 3, 5, 1, 2, 1, "VALID"),
    ((8, 8), (1, 1), 4, 8, 1, 1, 1, "SAME"),
    ((10, 10), (3, 3), 2, 3, 1, 1, 2, "SAME"),
    ((6, 6), (3, 3), 4, 8, 2, 1, 1, "SAME"),
    ((5, 5), (1, 1), 3, 4, 1, 3, 1, "VALID"),
    ((28, 28), (5, 5), 1, 16, 1, 1, 1, "SAME"),
    ((7, 7), (7, 7), 8, 8, 1, 1, 1, "VALID"),
    ((8, 8), (3, 3), 4, 6, 1, 1, 1, "EXPLICIT"),
]


def _extent(size, window, stride, dilation, padding):
    effective = (window - 1) * dilation + 1
    if padding == "SAME":
        return -(-size // stride)
    pad = 3 if padding == "EXPLICIT" else 0
    return (size + pad - effective) // stride + 1


def conv(direction, op_rank=2, batch=3):
    cases = []
    for spatial, window, cin, cout, groups, stride, dilation, padding in CONVOLUTIONS:
        if op_rank == 3:
            if groups > 1 or padding == "EXPLICIT" or dilation > 1:
                continue
            spatial, window = (5, *spatial), (2, *window)
        x_shape = (batch, *spatial, cin)
        f_shape = (*window, cin // groups, cout)
        y_shape = (batch, *(_extent(s, w, stride, dilation, padding) for s, w in zip(spatial, window)), cout)
        attrs = {
            "strides": [1] + [stride] * op_rank + [1],
            "dilations": [1] + [dilation] * op_rank + [1],
            "padding": padding,
        }
        if padding == "EXPLICIT":
            attrs["explicit_paddings"] = [0, 0] + [1, 2] * op_rank + [0, 0]
        # TensorFlow's CPU kernels do not do the gradients of these.
        if direction != "forward" and (groups > 1 or dilation > 1):
            continue
        taps = {"forward": (*window, cin // groups), "data": (*window, cout // groups), "filter": y_shape[:-1]}
        make = _conv_maker(direction, x_shape, f_shape, y_shape, attrs, op_rank)
        cases.append(Case(make, terms(int(np.prod(taps[direction]))), ABSOLUTE))
    return cases


def _conv_maker(direction, x_shape, f_shape, y_shape, attrs, op_rank):
    def make(t, r):
        if direction == "forward":
            return {"input": r.uniform(x_shape, t["T"], -1, 1), "filter": r.uniform(f_shape, t["T"], -1, 1), **attrs}
        dy = r.uniform(y_shape, t["T"], -1, 1)
        if direction == "data":
            return {
                "input_sizes": tf.constant(x_shape),
                "filter": r.uniform(f_shape, t["T"], -1, 1),
                "out_backprop": dy,
                **attrs,
            }
        return {
            "input": r.uniform(x_shape, t["T"], -1, 1),
            "filter_sizes": tf.constant(f_shape),
            "out_backprop": dy,
            **attrs,
        }

    return make


def depthwise(direction):
    cases = []
    for size, window, cin, multiplier, stride, padding in [
        (8, 3, 4, 1, 1, "SAME"),
        (9, 3, 3, 2, 2, "VALID"),
        (7, 2, 2, 3, 1, "SAME"),
    ]:
        y = _extent(size, window, stride, 1, padding)
        x_shape, f_shape = (2, size, size, cin), (window, window, cin, multiplier)
        y_shape = (2, y, y, cin * multiplier)
        attrs = {"strides": [1, stride, stride, 1], "padding": padding}
        taps = {"forward": window**2, "data": window**2 * multiplier, "filter": 2 * y * y}[direction]
        make = _conv_maker(direction, x_shape, f_shape, y_shape, attrs, 2)
        cases.append(Case(make, terms(taps), ABSOLUTE))
    return cases


POOLS = [
    ((8, 8), 2, 2, "VALID"),
    ((9, 7), 3, 2, "SAME"),
    ((5, 5), 3, 1, "SAME"),
    ((6, 6), 1, 2, "VALID"),
    ((6, 6), 6, 1, "VALID"),
]


def pools(op_rank):
    """(shape, ksize, strides, padding) of each pool."""
    for spatial, window, stride, padding in POOLS:
        shape = (2, *((4,) if op_rank == 3 else ()), *spatial, 5)
        if op_rank == 3 and window > 4 and padding == "VALID":
            continue
        ksize, strides = [1] + [window] * op_rank + [1], [1] + [stride] * op_rank + [1]
        yield shape, ksize, strides, padding


def pool(op_rank=2, v2=False, name="input"):
    cases = []
    for shape, ksize, strides, padding in pools(op_rank):
        cases.append(
            Case(
                lambda t, r, s=shape, k=ksize, st=strides, p=padding: {
                    name: r.uniform(s, t["T"]),
                    "ksize": tf.constant(k) if v2 else k,
                    "strides": tf.constant(st) if v2 else st,
                    "padding": p,
                },
                terms(int(np.prod(ksize))) + 1,
                ABSOLUTE,
            )
        )
    return cases


def pool_gradient(kind, op_rank=2, v2=False):
    cases = []
    for shape, ksize, strides, padding in pools(op_rank):
        out = (2, *(_extent(s, ksize[1], strides[1], 1, padding) for s in shape[1:-1]), 5)

        def make(t, r, shape=shape, ksize=ksize, strides=strides, padding=padding, out=out):
            attrs = {
                "ksize": tf.constant(ksize) if v2 else ksize,
                "strides": tf.constant(strides) if v2 else strides,
                "padding": padding,
            }
            grad = r.uniform(out, t["T"])
            if kind == "avg":
                return {"orig_input_shape": tf.constant(shape), "grad": grad, **attrs}
            # All values differ (ties may go to any of them): few enough for that even in bfloat16.
            shape = (1, *shape[1:-1], 1) if t["T"] in (tf.float16, tf.bfloat16) else shape
            grad = grad[:1, ..., :1] if t["T"] in (tf.float16, tf.bfloat16) else grad
            count = int(np.prod(shape))
            x = tf.reshape(tf.cast(r.permutation(count), t["T"]), shape)
            wide = tf.cast(x, tf.float32)
            f = tf.raw_ops.MaxPool3D if op_rank == 3 else tf.raw_ops.MaxPool
            y = tf.cast(f(input=wide, ksize=ksize, strides=strides, padding=padding), t["T"])
            return {"orig_input": x, "orig_output": y, "grad": grad, **attrs}

        cases.append(Case(make, terms(int(np.prod(ksize))) + 1, ABSOLUTE))
    return cases


def _statistics(args, gradient):
    """Scale / deviation, the mean of |x - mean| taken apart, per channel and broadcast over x; and the reduced axes."""
    x = np.abs(args["x"]).astype(np.float64)
    axes, channels = ((0, 1, 2), (-1,)) if args["data_format"] == "NHWC" else ((0, 2, 3), (-1, 1, 1))
    if gradient:
        mean, variance = args["reserve_space_1"], args["reserve_space_2"]
    elif args["is_training"]:
        mean, variance = args["x"].mean(axes), args["x"].var(axes)
    else:
        mean, variance = args["mean"], args["variance"]
    inverse = (1 / np.sqrt(variance + args["epsilon"])).reshape(channels)
    return x, x + np.abs(mean).reshape(channels), inverse, np.abs(args["scale"]).reshape(channels), axes


def batch_norm_magnitudes(args, exact):
    """y = (x - mean) * scale / sqrt(variance + epsilon) + offset; the variance may be E[x^2] - E[x]^2."""
    x, centred, inverse, scale, axes = _statistics(args, False)
    mean, square = x.mean(axes, keepdims=True), (x * x).mean(axes, keepdims=True)
    y = (centred + mean) * scale * inverse + np.abs(args["offset"]).reshape(scale.shape)
    if args["is_training"]:
        y *= 1 + square * inverse**2
    per_channel = [v.reshape(-1) for v in (mean, square, mean, square)]
    return [y, *per_channel]


def batch_norm_gradient_magnitudes(args, exact):
    """dx = scale * r * (dy - mean(dy) - (x - mean) * r^2 * mean(dy * (x - mean))), r = 1 / sqrt(variance + epsilon)."""
    _, centred, inverse, scale, axes = _statistics(args, True)
    dy = np.abs(args["y_backprop"]).astype(np.float64)
    products = dy * centred
    correction = centred * inverse**2 * products.mean(axes, keepdims=True)
    dx = scale * inverse * (dy + dy.mean(axes, keepdims=True) + correction)
    return [dx, (products * inverse).sum(axes), dy.sum(axes)]


def channels_first_inference_gradient(args):
    """dx = dy * scale * r, dscale = sum(dy * (x - mean)) * r, doffset = sum(dy), in double.

    TensorFlow's CPU kernel has no channels first here unless it uses oneDNN, which depends on the processor.
    """
    double = {k: v.numpy().astype(np.float64) for k, v in args.items() if tf.is_tensor(v)}
    dy, per_channel = double["y_backprop"], (-1, 1, 1)
    inverse = 1 / np.sqrt(double["reserve_space_2"] + args["epsilon"])
    centred = double["x"] - double["reserve_space_1"].reshape(per_channel)
    dx = dy * (double["scale"] * inverse).reshape(per_channel)
    dscale = (dy * centred).sum((0, 2, 3)) * inverse
    return [tf.constant(output) for output in (dx, dscale, dy.sum((0, 2, 3)))]


def batch_norm(version, gradient=False):
    cases = []
    for order, shape in [("NHWC", (4, 5, 3, 6)), ("NHWC", (8, 1, 1, 33)), ("NCHW", (4, 6, 5, 3))]:
        for training in (True, False):

            def make(t, r, order=order, shape=shape, training=training):
                c = shape[3] if order == "NHWC" else shape[1]
                x = r.uniform(shape, t["T"])
                scale = r.uniform((c,), tf.float32, 0.5, 1.5)
                if not gradient:
                    stats = {"mean": r.uniform((c,), tf.float32), "variance": r.uniform((c,), tf.float32, 0.5, 2)}
                    if training:
                        stats = {k: tf.zeros((0,)) for k in stats}
                    return {
                        "x": x,
                        "scale": scale,
                        "offset": r.uniform((c,), tf.float32),
                        **stats,
                        "epsilon": 1e-3,
                        "data_format": order,
                        "is_training": training,
                    }
                mean, var = r.uniform((c,), tf.float32, -0.1, 0.1), r.uniform((c,), tf.float32, 2.5, 3.5)
                kwargs = {
                    "y_backprop": r.uniform(shape, t["T"]),
                    "x": x,
                    "scale": scale,
                    "reserve_space_1": mean,
                    "reserve_space_2": var,
                    "epsilon": 1e-3,
                    "data_format": order,
                    "is_training": training,
                }
                if version == 3:
                    kwargs["reserve_space_3"] = tf.zeros((0,))
                return kwargs

            # TensorFlow's CPU gradient kernels read reserve_space_2 as they like; the first three outputs matter.
            n = terms(int(np.prod(shape)) // (shape[3] if order == "NHWC" else shape[1])) + 8
            magnitudes = batch_norm_gradient_magnitudes if gradient else batch_norm_magnitudes
            expect = channels_first_inference_gradient if gradient and order == "NCHW" and not training else None
            outputs = 3 if gradient else (5 if training else 1)
            cases.append(Case(make, n, magnitudes, outputs=outputs, expect=expect))
    return cases


SOFTMAX_SHAPES = [(3, 5), (1, 1), (7, 1000), (128, 10), (2, 3, 7), (0, 5)]
# Beside the sum: exp, whose argument, at most 6, is rounded first, and a division or a log.
SOFTMAX_STEPS = 12


def logarithm_magnitudes(args, exact):
    """x - max - log(sum): the sum's relative error is the absolute one of its logarithm."""
    return [1 + np.abs(exact[0])]


def cross_entropy_magnitudes(args, exact):
    """The loss is a sum of labels times logarithms; the gradient is the softmax less the labels."""
    labels = np.broadcast_to(np.abs(args["labels"]).astype(np.float64), exact[1].shape)
    softmax = np.abs(exact[1] + labels)
    with np.errstate(divide="ignore"):
        logarithms = 1 + np.abs(np.log(np.maximum(softmax, 1e-300)))
    return [(labels * logarithms).sum(-1), softmax + labels]


def sparse_cross_entropy_magnitudes(args, exact):
    """The same with labels of 0 and 1: where the gradient is negative, it is the softmax less 1."""
    return [1 + np.abs(exact[0]), np.where(exact[1] < 0, exact[1] + 2, exact[1])]


CASES = {
    "MatMul": matmul(("a", "b"), lambda t: t["T"], ("transpose_a", "transpose_b")),
    "BatchMatMul": batch_matmul(False),
    "BatchMatMulV2": batch_matmul(True),
    "BatchMatMulV3": batch_matmul(True),
    "Einsum": einsum(),
    "Conv": [
        Case(
            lambda t, r, s=s, f=f, n=n, p=p: {
                "input": r.uniform(s, t["T"], -1, 1),
                "filter": r.uniform(f, t["T"], -1, 1),
                "strides": [1] * (n + 2),
                "dilations": [1] * (n + 2),
                "padding": p,
            },
            terms(36),
            ABSOLUTE,
        )
        for s, f, n, p in [
            ((2, 8, 7, 3), (3, 2, 3, 4), 2, "SAME"),
            ((2, 8, 7, 3), (3, 2, 3, 4), 2, "VALID"),
            ((2, 5, 6, 7, 2), (2, 3, 3, 2, 3), 3, "SAME"),
        ]
    ],
    "Conv2D": conv("forward"),
    "Conv2DBackpropInput": conv("data"),
    "Conv2DBackpropFilter": conv("filter"),
    "Conv3D": conv("forward", 3),
    "Conv3DBackpropInputV2": conv("data", 3),
    "Conv3DBackpropFilterV2": conv("filter", 3),
    "DepthwiseConv2dNative": depthwise("forward"),
    "DepthwiseConv2dNativeBackpropInput": depthwise("data"),
    "DepthwiseConv2dNativeBackpropFilter": depthwise("filter"),
    "MaxPool": pool(),
    "MaxPoolV2": pool(v2=True),
    "MaxPool3D": pool(3),
    "AvgPool": pool(name="value"),
    "AvgPool3D": pool(3),
    "MaxPoolGrad": pool_gradient("max"),
    "MaxPoolGradV2": pool_gradient("max", v2=True),
    "MaxPool3DGrad": pool_gradient("max", 3),
    "AvgPoolGrad": pool_gradient("avg"),
    "AvgPool3DGrad": pool_gradient("avg", 3),
    "FusedBatchNorm": batch_norm(1),
    "FusedBatchNormV2": batch_norm(2),
    "FusedBatchNormV3": batch_norm(3),
    "FusedBatchNormGrad": batch_norm(1, True),
    "FusedBatchNormGradV2": batch_norm(2, True),
    "FusedBatchNormGradV3": batch_norm(3, True),
    "Softmax": [
        Case(lambda t, r, s=s: {"logits": r.uniform(s, t["T"])}, terms(s[-1]) + SOFTMAX_STEPS) for s in SOFTMAX_SHAPES
    ],
    "LogSoftmax": [
        Case(lambda t, r, s=s: {"logits": r.uniform(s, t["T"])}, terms(s[-1]) + SOFTMAX_STEPS, logarithm_magnitudes)
        for s in SOFTMAX_SHAPES
    ],
    "SoftmaxCrossEntropyWithLogits": [
        Case(
            lambda t, r, a=a, b=b: {"features": r.uniform(a, t["T"]), "labels": r.uniform(b, t["T"], 0, 1)},
            terms(a[1]) + SOFTMAX_STEPS,
            cross_entropy_magnitudes,
        )
        for a, b in [((3, 5), (3, 5)), ((64, 10), (64, 10)), ((3, 5), (1, 5)), ((1, 5), (3, 5))]
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [
        Case(
            lambda t, r, n=n, c=c: {
                "features": r.uniform((n, c), t["T"]),
                "labels": r.ints((n,), 0, c, t.get("Tlabels", tf.int64)),
            },
            terms(c) + SOFTMAX_STEPS,
            sparse_cross_entropy_magnitudes,
        )
        for n, c in [(3, 5), (64, 10), (1, 1000)]
    ],
}
