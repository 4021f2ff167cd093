"""The op table: ops of every family (docs/ops.md) at three sizes, the slowest against TensorFlow's CPU kernels first.

`python -m benchmarks.families [family ...]` prints the lines of `measure`, as they come; `table` puts them in order.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.measure import Case, Result, lines_of, middle, time_case

Args = list[Any]
Op = Callable[..., Any]
#: An op and what makes its arguments, arrays, for a size of its family.
Entry = tuple[Op, Callable[[int], Args]]

raw = tf.raw_ops
_rng = np.random.default_rng(0)

LABELS = ("small", "medium", "large")
REPEATS = (20, 5, 1)  #: of a round, by size
LIMIT = 0.2  #: seconds after which five rounds are enough

#: Elements of an argument where cost grows with them, and rows of a matrix where it grows with their cube.
ELEMENTS, ROWS = (1 << 10, 1 << 16, 1 << 20), (16, 64, 256)


def normal(*shape: int) -> Any:
    return _rng.standard_normal(shape).astype(np.float32)


def share(*shape: int) -> Any:
    """Between 0 and 1, neither included."""
    return (_rng.random(shape) * 0.98 + 0.01).astype(np.float32)


def whole(below: int, *shape: int) -> Any:
    return _rng.integers(0, below, shape).astype(np.int32)


def spectrum(*shape: int) -> Any:
    return (normal(*shape) + 1j * normal(*shape)).astype(np.complex64)


def normals(count: int) -> Callable[[int], Args]:
    return lambda n: [normal(n) for _ in range(count)]


def shares(count: int) -> Callable[[int], Args]:
    return lambda n: [share(n) for _ in range(count)]


def table_of(n: int, *columns: int) -> Any:
    """A matrix (or more) of n elements with rows of so many."""
    return normal(n // int(np.prod(columns)), *columns)


def picture(n: int, channels: int = 4, batch: int = 4) -> Any:
    """Squares of `batch` x side x side x `channels`, of n elements at most."""
    side = int((n / channels / batch) ** 0.5)
    return share(batch, side, side, channels)


def definite(n: int) -> Any:
    a = normal(n, n)
    return a @ a.T / n + np.eye(n, dtype=np.float32)


def sparse(n: int, rows: int = 1000) -> Args:
    """Indices, in order, and values of n elements or fewer of a square matrix."""
    places = np.unique(_rng.integers(0, rows * rows, n))
    return [np.stack([places // rows, places % rows], 1), normal(len(places))]


def on_variable(update: Op) -> Op:
    """An op that calls `update` with a variable and the arguments; calls with the same device and shape share it."""
    variables: dict[tuple[str, tuple[int, ...]], tf.Variable] = {}

    def op(first: Any, *others: Any) -> Any:
        device = tf.identity(first).device
        key = device, tuple(first.shape)
        if key not in variables:
            with tf.init_scope(), tf.device(device):
                variables[key] = tf.Variable(np.zeros(first.shape, np.float32))
        with tf.control_dependencies([update(variables[key].handle, first, *others)]):
            return tf.identity(first)[..., :1]

    return op


def with_slots(update: Op, count: int) -> Op:
    """As on_variable, with more variables of the same shape."""
    slots: dict[tuple[str, tuple[int, ...], int], tf.Variable] = {}

    def op(handle: Any, gradient: Any) -> Any:
        device = tf.identity(gradient).device
        keys = [(device, tuple(gradient.shape), i) for i in range(count)]
        for key in keys:
            if key not in slots:
                with tf.init_scope(), tf.device(device):
                    slots[key] = tf.Variable(np.ones(gradient.shape, np.float32))
        return update(handle, gradient, *(slots[key].handle for key in keys))

    return on_variable(op)


@dataclasses.dataclass(frozen=True)
class Family:
    ops: dict[str, Entry]  #: by the op's name
    sizes: tuple[int, int, int] = ELEMENTS


MATH = Family(
    {
        "AddV2": (lambda a, b: a + b, normals(2)),
        "Mul": (lambda a, b: a * b[:1], normals(2)),
        "Exp": (tf.exp, normals(1)),
        "Log": (tf.math.log, shares(1)),
        "Pow": (tf.pow, shares(2)),
        "Tanh": (tf.tanh, normals(1)),
        "Sigmoid": (tf.sigmoid, normals(1)),
        "Erf": (tf.math.erf, normals(1)),
        "Erfinv": (tf.math.erfinv, shares(1)),
        "Ndtri": (tf.math.ndtri, shares(1)),
        "Lgamma": (tf.math.lgamma, shares(1)),
        "Digamma": (tf.math.digamma, shares(1)),
        "Sin": (tf.sin, normals(1)),
        "Atan2": (tf.atan2, normals(2)),
        "FloorMod": (tf.math.floormod, shares(2)),
        "SelectV2": (lambda a, b: tf.where(a > 0, a, b), normals(2)),
        "Cast": (lambda a: tf.cast(a, tf.bfloat16), normals(1)),
        "AddN": (lambda *a: tf.add_n(a), normals(4)),
        "BiasAdd": (lambda a, b: tf.nn.bias_add(a, b), lambda n: [table_of(n, 64), normal(64)]),
        "BiasAddGrad": (lambda a: raw.BiasAddGrad(out_backprop=a), lambda n: [table_of(n, 64)]),
        "Sum": (lambda a: tf.reduce_sum(a, 1), lambda n: [table_of(n, 128)]),
        "Max": (lambda a: tf.reduce_max(a, 0), lambda n: [table_of(n, 128)]),
        "Mean": (tf.reduce_mean, normals(1)),
        "ArgMax": (lambda a: tf.argmax(a, 1), lambda n: [table_of(n, 128)]),
        "Sqrt": (tf.sqrt, shares(1)),
    }
)

ARRAY = Family(
    {
        "Transpose": (tf.transpose, lambda n: [table_of(n, 64)]),
        "ConcatV2": (lambda a, b: tf.concat([a, b], 1), lambda n: [table_of(n, 64), table_of(n, 64)]),
        "Slice": (lambda a: raw.Slice(input=a, begin=[1, 3], size=[-1, -1]), lambda n: [table_of(n, 64)]),
        "Split": (lambda a: tf.split(a, 4, 1), lambda n: [table_of(n, 64)]),
        "Pack": (lambda a, b: tf.stack([a, b], 1), lambda n: [table_of(n, 64), table_of(n, 64)]),
        "Tile": (lambda a: tf.tile(a, [1, 3]), lambda n: [table_of(n, 64)]),
        "Pad": (lambda a: tf.pad(a, [[1, 1], [2, 2]]), lambda n: [table_of(n, 64)]),
        "MirrorPad": (lambda a: tf.pad(a, [[1, 1], [2, 2]], "REFLECT"), lambda n: [table_of(n, 64)]),
        "ReverseV2": (lambda a: tf.reverse(a, [1]), lambda n: [table_of(n, 64)]),
        "Roll": (lambda a: tf.roll(a, 5, 1), lambda n: [table_of(n, 64)]),
        "OneHot": (lambda i: tf.one_hot(i, 64), lambda n: [whole(64, n // 64)]),
        "MatrixBandPart": (lambda a: tf.linalg.band_part(a, 3, 0), lambda n: [table_of(n, 32, 32)]),
        "MatrixDiagPartV3": (tf.linalg.diag_part, lambda n: [table_of(n, 32, 32)]),
        "SpaceToDepth": (lambda a: tf.nn.space_to_depth(a, 2), lambda n: [table_of(n, 16, 16, 4)]),
        "Where": (lambda a: tf.where(a > 0), lambda n: [table_of(n, 64)]),
    }
)

GATHER = Family(
    {
        "GatherV2": (tf.gather, lambda n: [table_of(n, 64), whole(n // 64, n // 64)]),
        "GatherNd": (tf.gather_nd, lambda n: [table_of(n, 32), whole(32, n, 2)]),
        "ScatterNd": (
            lambda i, u: tf.scatter_nd(i, u, [1000, 64]),
            lambda n: [whole(1000, n // 64, 1), table_of(n, 64)],
        ),
        "TensorScatterUpdate": (
            tf.tensor_scatter_nd_update,
            lambda n: [normal(1000, 64), whole(1000, n // 64, 1), table_of(n, 64)],
        ),
        "DynamicStitch": (
            lambda i, a: raw.DynamicStitch(indices=[i], data=[a]),
            lambda n: [_rng.permutation(n // 64).astype(np.int32), table_of(n, 64)],
        ),
        "SegmentSum": (tf.math.segment_sum, lambda n: [table_of(n, 32), np.sort(whole(100, n // 32))]),
        "UnsortedSegmentMax": (
            lambda a, i: tf.math.unsorted_segment_max(a, i, 100),
            lambda n: [table_of(n, 32), whole(100, n // 32)],
        ),
        "UnsortedSegmentSum": (
            lambda a, i: tf.math.unsorted_segment_sum(a, i, 100),
            lambda n: [table_of(n, 32), whole(100, n // 32)],
        ),
    }
)

NN = Family(
    {
        "MatMul": (tf.matmul, lambda n: [table_of(n, 64), normal(64, 64)]),
        "BatchMatMulV2": (tf.matmul, lambda n: [table_of(n, 32, 32), table_of(n, 32, 32)]),
        "Einsum": (lambda a, b: tf.einsum("abc,cd->adb", a, b), lambda n: [table_of(n, 16, 32), normal(32, 32)]),
        "Conv2D": (lambda x, f: tf.nn.conv2d(x, f, 1, "SAME"), lambda n: [picture(n, 16), normal(3, 3, 16, 16)]),
        "Conv3D": (
            lambda x, f: tf.nn.conv3d(x, f, [1] * 5, "SAME"),
            lambda n: [table_of(n, 4, 4, 4, 8), normal(3, 3, 3, 8, 8)],
        ),
        "DepthwiseConv2dNative": (
            lambda x, f: tf.nn.depthwise_conv2d(x, f, [1] * 4, "SAME"),
            lambda n: [picture(n, 16), normal(3, 3, 16, 1)],
        ),
        "MaxPool": (lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), lambda n: [picture(n, 16)]),
        "AvgPool": (lambda x: tf.nn.avg_pool2d(x, 3, 1, "SAME"), lambda n: [picture(n, 16)]),
        "AvgPool3D": (lambda x: tf.nn.avg_pool3d(x, 2, 2, "SAME"), lambda n: [table_of(n, 4, 4, 4, 8)]),
        "FusedBatchNormV3": (
            lambda x, s, o: tf.compat.v1.nn.fused_batch_norm(x, s, o)[0],
            lambda n: [picture(n, 16), normal(16), normal(16)],
        ),
        "Softmax": (tf.nn.softmax, lambda n: [table_of(n, 64)]),
        "LogSoftmax": (tf.nn.log_softmax, lambda n: [table_of(n, 64)]),
        "SparseSoftmaxCrossEntropyWithLogits": (
            lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x),
            lambda n: [table_of(n, 64), whole(64, n // 64)],
        ),
    }
)

CELL = 32


def _gru(x: Any, h: Any, w: Any, v: Any, b: Any, c: Any) -> Any:
    return raw.GRUBlockCell(x=x, h_prev=h, w_ru=w, w_c=v, b_ru=b, b_c=c)


def _gru_arguments(n: int) -> Args:
    x = table_of(n, CELL)
    w = normal(2 * CELL, 2 * CELL), normal(2 * CELL, CELL)
    return [x, normal(*x.shape), *w, normal(2 * CELL), normal(CELL)]


def _lstm(x: Any, c: Any, h: Any, w: Any, b: Any) -> Any:
    p = tf.zeros([CELL])
    return raw.LSTMBlockCell(x=x, cs_prev=c, h_prev=h, w=w, wci=p, wcf=p, wco=p, b=b)


def _lstm_arguments(n: int) -> Args:
    x = table_of(n, CELL)
    return [x, normal(*x.shape), normal(*x.shape), normal(2 * CELL, 4 * CELL), normal(4 * CELL)]


NETS = Family(
    {
        "LRN": (tf.nn.local_response_normalization, lambda n: [picture(n, 16)]),
        "MaxPoolWithArgmax": (
            lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "SAME")[0],
            lambda n: [picture(n, 16)],
        ),
        "GRUBlockCell": (_gru, _gru_arguments),
        "LSTMBlockCell": (_lstm, _lstm_arguments),
        "CTCLossV2": (
            lambda x, y: tf.nn.ctc_loss(y, x, [8] * 16, [x.shape[0]] * 16, blank_index=0),
            lambda n: [normal(max(n // 512, 20), 16, 32), whole(31, 16, 8) + 1],
        ),
    },
    (1 << 10, 1 << 14, 1 << 18),
)

QUANTIZE = Family(
    {
        "FakeQuantWithMinMaxArgs": (lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x), normals(1)),
        "FakeQuantWithMinMaxVars": (lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0), normals(1)),
        "FakeQuantWithMinMaxVarsPerChannel": (
            lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(x, -tf.ones(64), tf.ones(64)),
            lambda n: [table_of(n, 64)],
        ),
        "QuantizeAndDequantizeV4": (lambda x: tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0), normals(1)),
    }
)


def _drawn(draw: Callable[[tuple[int], Any], Any]) -> Entry:
    """An op that draws as many numbers as its second argument has; the first is the seed."""
    return lambda seed, like: draw(like.shape, seed), lambda n: [np.array([1, 2]), normal(n)]


RANDOM = Family(
    {
        "StatelessRandomUniformV2": _drawn(tf.random.stateless_uniform),
        "StatelessRandomNormalV2": _drawn(tf.random.stateless_normal),
        "StatelessTruncatedNormalV2": _drawn(tf.random.stateless_truncated_normal),
        "StatelessRandomUniformIntV2": _drawn(
            lambda shape, seed: tf.random.stateless_uniform(shape, seed, 0, 1000, tf.int32)
        ),
        "RandomUniform": _drawn(lambda shape, seed: tf.random.uniform(shape)),
        "RandomShuffle": (tf.random.shuffle, lambda n: [table_of(n, 64)]),
    }
)

PARAMETERS = Family(
    {
        "StatelessMultinomial": (
            lambda x: tf.random.stateless_categorical(x, 4, [1, 2]),
            lambda n: [table_of(n, 64)],
        ),
        "StatelessRandomGammaV3": _drawn(lambda shape, seed: tf.random.stateless_gamma(shape, seed, 2.0)),
        "StatelessParameterizedTruncatedNormal": _drawn(
            lambda shape, seed: tf.random.stateless_parameterized_truncated_normal(shape, seed)
        ),
    },
    (1 << 10, 1 << 14, 1 << 17),
)

ORDER = Family(
    {
        "DenseBincount": (lambda i: tf.math.bincount(i, minlength=100, maxlength=100), lambda n: [whole(100, n)]),
        "HistogramFixedWidth": (lambda x: tf.histogram_fixed_width(x, [0.0, 1.0], 100), shares(1)),
        "Bucketize": (lambda x: raw.Bucketize(input=x, boundaries=[0.1, 0.2, 0.5, 0.7]), shares(1)),
        "Cumsum": (lambda x: tf.cumsum(x, 1), lambda n: [table_of(n, 128)]),
        "Cumprod": (lambda x: tf.math.cumprod(x, 0), lambda n: [table_of(n, 128)]),
        "InTopKV2": (lambda x, y: tf.math.in_top_k(y, x, 5), lambda n: [table_of(n, 128), whole(128, n // 128)]),
        "TopKV2": (lambda x: tf.math.top_k(x, 8), lambda n: [table_of(n, 512)]),
        "LowerBound": (
            lambda x, v: tf.searchsorted(x, v),
            lambda n: [np.sort(share(1, 1024)), share(1, n)],
        ),
        "NthElement": (lambda x: raw.NthElement(input=x, n=5), lambda n: [table_of(n, 128)]),
        "ReverseSequence": (
            lambda x: tf.reverse_sequence(x, [9] * x.shape[0], seq_axis=1),
            lambda n: [table_of(n, 16, 16)],
        ),
        "SparseSegmentSum": (
            tf.sparse.segment_sum,
            lambda n: [normal(1000, 64), whole(1000, n // 64), np.sort(whole(50, n // 64))],
        ),
        "DynamicPartition": (
            lambda x, p: tf.dynamic_partition(x, p, 4),
            lambda n: [table_of(n, 16), whole(4, n // 16)],
        ),
        "UniqueV2": (lambda x: tf.unique(x)[0], lambda n: [whole(1000, n)]),
    }
)

SPECIAL = Family(
    {
        "BesselI0": (tf.math.bessel_i0, normals(1)),
        "BesselI1e": (tf.math.bessel_i1e, normals(1)),
        "BesselJ0": (tf.math.special.bessel_j0, normals(1)),
        "BesselK0": (tf.math.special.bessel_k0, shares(1)),
        "Betainc": (tf.math.betainc, shares(3)),
        "Cross": (tf.linalg.cross, lambda n: [normal(n // 3, 3), normal(n // 3, 3)]),
        "Dawsn": (tf.math.special.dawsn, normals(1)),
        "Expint": (tf.math.special.expint, shares(1)),
        "FresnelSin": (tf.math.special.fresnel_sin, normals(1)),
        "Igamma": (tf.math.igamma, shares(2)),
        "Polygamma": (lambda x: tf.math.polygamma(tf.ones_like(x), x), shares(1)),
        "PopulationCount": (lambda i: raw.PopulationCount(x=i), lambda n: [whole(1 << 30, n).astype(np.int64)]),
        "Spence": (tf.math.special.spence, shares(1)),
        "Zeta": (lambda a: tf.math.zeta(a + 2, a + 1), shares(1)),
    },
    (1 << 10, 1 << 14, 1 << 17),
)

STATE = Family(
    {
        "AssignAddVariableOp": (on_variable(lambda v, g: raw.AssignAddVariableOp(resource=v, value=g)), normals(1)),
        "ResourceApplyGradientDescent": (
            on_variable(lambda v, g: raw.ResourceApplyGradientDescent(var=v, alpha=1e-3, delta=g)),
            normals(1),
        ),
        "ResourceApplyKerasMomentum": (
            with_slots(
                lambda v, g, a: raw.ResourceApplyKerasMomentum(var=v, accum=a, lr=1e-3, grad=g, momentum=0.9), 1
            ),
            normals(1),
        ),
        "ResourceApplyAdam": (
            with_slots(
                lambda v, g, m, s: raw.ResourceApplyAdam(
                    var=v, m=m, v=s, beta1_power=0.9, beta2_power=0.99, lr=1e-3, beta1=0.9, beta2=0.99, epsilon=1e-7,
                    grad=g,
                ),
                2,
            ),
            normals(1),
        ),
        "ResourceSparseApplyAdagradV2": (
            with_slots(
                lambda v, g, a: raw.ResourceSparseApplyAdagradV2(
                    var=v, accum=a, lr=1e-3, epsilon=1e-7, grad=g, indices=tf.range(g.shape[0])
                ),
                1,
            ),
            lambda n: [table_of(n, 64)],
        ),
    }
)  # fmt: skip

INPLACE = Family(
    {
        "DeepCopy": (lambda x: raw.DeepCopy(x=x), normals(1)),
        "InplaceAdd": (
            lambda x, v: raw.InplaceAdd(x=x, i=[1, 3], v=v),
            lambda n: [table_of(n, n // 8), normal(2, n // 8)],
        ),
    }
)

SPARSE = Family(
    {
        "SparseTensorDenseMatMul": (
            lambda i, v, b: tf.sparse.sparse_dense_matmul(tf.SparseTensor(i, v, [1000, 1000]), b),
            lambda n: [*sparse(n), normal(1000, 4)],
        ),
        "SparseReorder": (
            lambda i, v: tf.sparse.reorder(tf.SparseTensor(i[::-1], v, [1000, 1000])).values,
            sparse,
        ),
        "SparseSlice": (
            lambda i, v: tf.sparse.slice(tf.SparseTensor(i, v, [1000, 1000]), [10, 10], [900, 900]).values,
            sparse,
        ),
        "SparseConcat": (
            lambda i, v: tf.sparse.concat(1, [tf.SparseTensor(i, v, [1000, 1000])] * 2).values,
            sparse,
        ),
        "SparseFillEmptyRows": (
            lambda i, v: tf.sparse.fill_empty_rows(tf.SparseTensor(i, v, [1000, 1000]), 1.0)[0].values,
            sparse,
        ),
    },
    (1 << 8, 1 << 12, 1 << 17),
)

IMAGES = Family(
    {
        "ResizeBilinear": (lambda x: raw.ResizeBilinear(images=x, size=[100, 100]), lambda n: [picture(n)]),
        "ResizeBicubic": (lambda x: raw.ResizeBicubic(images=x, size=[100, 100]), lambda n: [picture(n)]),
        "ResizeNearestNeighbor": (
            lambda x: raw.ResizeNearestNeighbor(images=x, size=[100, 100]),
            lambda n: [picture(n)],
        ),
        "ResizeArea": (lambda x: raw.ResizeArea(images=x, size=[50, 50]), lambda n: [picture(n)]),
        "CropAndResize": (
            lambda x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.8]] * 4, [0, 1, 2, 3], [50, 50]),
            lambda n: [picture(n)],
        ),
        "ScaleAndTranslate": (
            lambda x: raw.ScaleAndTranslate(images=x, size=[50, 50], scale=[1.0, 1.0], translation=[0.5, 0.5]),
            lambda n: [picture(n)],
        ),
        "AdjustHue": (lambda x: tf.image.adjust_hue(x, 0.1), lambda n: [picture(n, 3)]),
        "AdjustContrastv2": (lambda x: tf.image.adjust_contrast(x, 0.5), lambda n: [picture(n, 3)]),
        "RGBToHSV": (tf.image.rgb_to_hsv, lambda n: [picture(n, 3)]),
        "HSVToRGB": (tf.image.hsv_to_rgb, lambda n: [picture(n, 3)]),
        "Dilation2D": (
            lambda x, f: tf.nn.dilation2d(x, f, [1] * 4, "SAME", "NHWC", [1] * 4),
            lambda n: [picture(n, 8), normal(3, 3, 8)],
        ),
        "ExtractImagePatches": (
            lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1] * 4, "SAME"),
            lambda n: [picture(n)],
        ),
        "ImageProjectiveTransformV3": (
            lambda x: raw.ImageProjectiveTransformV3(
                images=x, transforms=[[1.0, 0.1, 0, 0, 1, 0, 0, 0]], output_shape=x.shape[1:3], fill_value=0.0,
                interpolation="BILINEAR",
            ),
            lambda n: [picture(n)],
        ),
        "NonMaxSuppressionV3": (
            lambda b, s: tf.image.non_max_suppression(tf.concat([b, b + 0.1], 1), s, 50),
            lambda n: [share(n // 512, 2), share(n // 512)],
        ),
    }
)  # fmt: skip

LINALG = Family(
    {
        "Cholesky": (tf.linalg.cholesky, lambda n: [definite(n)]),
        "Lu": (tf.linalg.lu, lambda n: [definite(n)]),
        "LogMatrixDeterminant": (lambda a: tf.linalg.slogdet(a)[1], lambda n: [definite(n)]),
        "MatrixInverse": (tf.linalg.inv, lambda n: [definite(n)]),
        "MatrixSolve": (tf.linalg.solve, lambda n: [definite(n), normal(n, 16)]),
        "MatrixTriangularSolve": (tf.linalg.triangular_solve, lambda n: [np.tril(definite(n)), normal(n, 16)]),
        "Qr": (tf.linalg.qr, lambda n: [normal(n, n)]),
        "SelfAdjointEigV2": (tf.linalg.eigh, lambda n: [definite(n)]),
        "Svd": (lambda a: tf.linalg.svd(a), lambda n: [normal(n // 2, n // 2)]),
        "TridiagonalSolve": (
            lambda d, b: tf.linalg.tridiagonal_solve(d, b, partial_pivoting=False),
            lambda n: [np.stack([share(64, n), share(64, n) + 4, share(64, n)], 1), normal(64, n, 1)],
        ),
    },
    ROWS,
)

SIGNAL = Family(
    {
        "FFT": (tf.signal.fft, lambda n: [spectrum(n // 256, 256)]),
        "IFFT": (tf.signal.ifft, lambda n: [spectrum(n // 1024, 1024)]),
        "FFT2D": (tf.signal.fft2d, lambda n: [spectrum(n // 1024, 32, 32)]),
        "FFT3D": (tf.signal.fft3d, lambda n: [spectrum(n // 512, 8, 8, 8)]),
        "RFFT": (tf.signal.rfft, lambda n: [normal(n // 256, 256)]),
        "IRFFT": (tf.signal.irfft, lambda n: [spectrum(n // 256, 129)]),
    },
    (1 << 10, 1 << 15, 1 << 19),
)

#: By the names of docs/ops.md.
FAMILIES = {
    "math": MATH,
    "array": ARRAY,
    "gather and scatter": GATHER,
    "nn": NN,
    "nets": NETS,
    "quantize": QUANTIZE,
    "random": RANDOM,
    "order": ORDER,
    "random and parameters": PARAMETERS,
    "special": SPECIAL,
    "state": STATE,
    "inplace": INPLACE,
    "sparse": SPARSE,
    "images": IMAGES,
    "linalg": LINALG,
    "signal": SIGNAL,
}

#: Families that are not measured, and why.
NOT_MEASURED = {
    "references": "the commands of 'state', on TensorFlow 1's variables",
    "tensor and arrays": "copies of whole tensors, which 'array' measures; the container is TensorFlow's",
    "tensor and lists": "copies of whole tensors, which 'array' measures; the container is TensorFlow's",
    "datasets and iterators": "TensorFlow's own kernels",
    "xla": "TensorFlow's CPU has no kernel to compare with",
}

#: Why an op takes longer than the CPU's, and is left so.
NOTES: dict[str, str] = {
    **dict.fromkeys(
        ["Betainc", "Igamma", "Polygamma", "Zeta"],
        "computed in double, one element after the other, as exact as float can tell",
    ),
    "BesselI0": "as exact as float can tell: half a unit in the last place, where the CPU is 4 off",
    "CTCLossV2": "two commands for each step in time",
    "DenseBincount": "TensorFlow keeps int32 on the host: it finds the largest there, and copies them for each count",
    "HistogramFixedWidth": "two commands with the bins' numbers between them",
    "LRN": "squares, a padded copy of them, the windows' sums and the result are commands of their own",
    "NonMaxSuppressionV3": "waits for the number of boxes, by which the output is allocated",
    "QuantizeAndDequantizeV4": "finds the range by two reductions, which are short at the medium size",
    "SegmentSum": "waits for the last id, by which the output is allocated",
    "SparseFillEmptyRows": "sorts, which the CPU does not for rows in order; waits for the number of empty rows",
    "SparseSegmentSum": "rows are gathered by one command and added up by another; waits for the last id",
    "SparseSlice": "waits for the number of entries, by which the outputs are allocated",
    "SparseTensorDenseMatMul": "rows are gathered, multiplied and added up by three commands",
    "StatelessParameterizedTruncatedNormal": "the CPU's algorithm, one number after the other, for the CPU's bits",
}

#: XPU / CPU from which a medium or large op is slow, and wants a note.
SLOW = 1 / 0.9


def measure(family: str) -> Iterator[Result]:
    """The ops of a family at its sizes, in the order of the tables."""
    table = FAMILIES[family]
    for name, (op, arguments) in table.ops.items():
        for label, n, repeats in zip(LABELS, table.sizes, REPEATS, strict=True):
            inputs = arguments(n)
            shapes = ", ".join("x".join(map(str, np.shape(x))) for x in inputs)
            case = Case(name, label, op, lambda inputs=inputs: inputs, repeats)
            times = [middle(time_case(case, 9, LIMIT))]
            if slow := label != LABELS[0] and times[0][0] / times[0][1] > SLOW:
                # A busy machine shows one op or another so: twice more, and what is between the others.
                times += [middle(time_case(case, 9, LIMIT)) for _ in range(2)]
            xpu, cpu = sorted(times, key=lambda pair: pair[0] / pair[1])[len(times) // 2]
            note = NOTES.get(name, "") if slow and xpu / cpu > SLOW else ""
            yield Result(name, f"{label}: {shapes}", xpu, cpu, note)


def table() -> Iterator[Result]:
    """The op table, the slowest first, from a process without clusters: a cluster runs an op that is repeated once."""
    lines = lines_of("benchmarks.families", *FAMILIES, TF_XPU_FUSION="0")
    yield from sorted((Result(**json.loads(line)) for line in lines), key=lambda result: -result.ratio)


def main() -> None:
    """Prints the results of the families that the arguments name, or of all, a line of JSON each.

    An op that an XPU lacks is an error: TensorFlow would put it on the CPU, with which it is compared.
    """
    tf.config.set_soft_device_placement(False)
    for family in sys.argv[1:] or FAMILIES:
        for result in measure(family):
            print(json.dumps(dataclasses.asdict(result)), flush=True)


if __name__ == "__main__":
    main()
