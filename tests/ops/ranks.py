"""Results of ops for tensors of more dimensions than anybody counts with, and NumPy's answer: for
test_many_dimensions.py. `python -m tests.ops.ranks DEVICE SHAPE...` prints which of them a device computes.
"""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

# Cases by name: functions of a shape, which give a function that computes and what it is to give.
CASES = {}


def case(name):
    def add(make):
        CASES[name] = make
        return make

    return add


def floats(shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32)


def integers(shape, high=1000, dtype=np.int64, seed=0):
    return np.random.default_rng(seed).integers(-high, high, shape).astype(dtype)


def axes_of(shape):
    """All axes, in an order in which none stays beside its neighbour."""
    rank = len(shape)
    return [*range(1, rank, 2), *range(0, rank, 2)]


def every_other(shape, first=0):
    """The shape with an extent of 1 on every other axis."""
    return [1 if i % 2 == first else n for i, n in enumerate(shape)]


def last_wide(shape):
    """An axis that is not of extent 1, the last of those."""
    return max((i for i, n in enumerate(shape) if n > 1), default=0)


def elementwise(name, compute, expected, operands=1, dtype=np.float32):
    def make(shape):
        values = [floats(shape, i).astype(dtype) for i in range(operands)]
        return lambda: compute(*map(tf.constant, values)), expected(*values)

    CASES[name] = make


elementwise("negative", tf.negative, np.negative)
elementwise("square root", tf.sqrt, np.sqrt)
elementwise("add of one shape", tf.add, np.add, 2)
elementwise("maximum of one shape", tf.maximum, np.maximum, 2)
elementwise("add_n", lambda *x: tf.add_n(x), lambda *x: sum(x), 3)
elementwise("add of a scalar", lambda x: x + 3.0, lambda x: x + 3)
elementwise("multiply of complex numbers", tf.multiply, np.multiply, 2, np.complex64)
elementwise("cast to int32", lambda x: tf.cast(x * 10, tf.int32), lambda x: (x * np.float32(10)).astype(np.int32))
elementwise("cast to float16", lambda x: tf.cast(x, tf.float16), lambda x: x.astype(np.float16))
elementwise("cast of int64", lambda x: tf.cast(x, tf.float32), lambda x: x.astype(np.float32), 1, np.int64)
elementwise("clip", lambda x: tf.clip_by_value(x, 0.8, 1.2), lambda x: np.clip(x, np.float32(0.8), np.float32(1.2)))
elementwise("relu", lambda x: tf.nn.relu(x - 1), lambda x: np.maximum(x - 1, 0))
elementwise("ones_like", tf.ones_like, np.ones_like)
elementwise("identity", tf.identity, np.array)
elementwise("equal", tf.equal, np.equal, 2, np.int64)
elementwise("select", lambda x, y: tf.where(x > y, x, y), np.maximum, 2)
elementwise("expand_dims", lambda x: tf.expand_dims(x, 3), lambda x: np.expand_dims(x, 3))
elementwise("new axis", lambda x: x[tf.newaxis], lambda x: x[np.newaxis])
elementwise("squeeze", lambda x: tf.squeeze(x), lambda x: np.squeeze(x))
elementwise("int32", lambda x: x * 2 + x, lambda x: x * 3, 1, np.int32)
elementwise("bitcast", lambda x: tf.bitcast(x, tf.uint8), lambda x: x.view(np.uint8).reshape(*x.shape, 4))
elementwise("softmax", tf.nn.softmax, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True))
elementwise("bias_add", lambda x: tf.nn.bias_add(x, tf.ones([x.shape[-1]])), lambda x: x + 1)
elementwise("l2_loss", tf.nn.l2_loss, lambda x: np.sum(x.astype(np.float64) ** 2) / 2)
elementwise("where", lambda x: tf.where(x > 1.5), lambda x: np.argwhere(x > 1.5))
elementwise("boolean mask", lambda x: tf.boolean_mask(x, x > 1.5), lambda x: x[x > 1.5])
elementwise("check_numerics", lambda x: tf.debugging.check_numerics(x, "bad"), np.array)
elementwise("reshape and back", lambda x: tf.reshape(tf.reshape(x, [-1]) + 1, x.shape), lambda x: x + 1)
elementwise("accumulate", lambda x: tf.math.accumulate_n([x, x]), lambda x: x + x)
elementwise("fill", lambda x: tf.fill(x.shape, 7.0) + x, lambda x: x + 7)
elementwise("zeros", lambda x: tf.zeros(x.shape) + x, np.array)
elementwise("leaky relu's gradient", lambda x: gradient(tf.nn.leaky_relu, x - 1), lambda x: np.where(x > 1, 1, 0.2))
elementwise("mean's gradient", lambda x: gradient(tf.reduce_mean, x), lambda x: np.full_like(x, 1 / x.size))
elementwise(
    "transpose's gradient",
    lambda x: gradient(lambda v: tf.transpose(v, axes_of(v.shape)) ** 2, x),
    lambda x: 2 * x,
)


def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def broadcasting(name, compute, expected, first, second):
    def make(shape):
        x, y = floats(first(shape)), floats(second(shape), 1)
        return lambda: compute(tf.constant(x), tf.constant(y)), expected(x, y)

    CASES[name] = make


def whole(shape):
    return list(shape)


broadcasting("add with every other axis of 1", tf.add, np.add, whole, every_other)
broadcasting(
    "multiply where each has axes of 1", tf.multiply, np.multiply, every_other, lambda shape: every_other(shape, 1)
)
broadcasting("subtract of rows", tf.subtract, np.subtract, whole, lambda shape: shape[-2:])
broadcasting(
    "subtract of columns", tf.subtract, np.subtract, whole, lambda shape: [*shape[:2], *[1] * (len(shape) - 2)]
)
broadcasting("less with every other axis of 1", tf.less, np.less, every_other, whole)
broadcasting(
    "select with a condition of every other axis",
    lambda x, y: tf.where(y > 1, x, -x),
    lambda x, y: np.where(y > 1, x, -x),
    whole,
    every_other,
)
broadcasting(
    "broadcast_to",
    lambda x, y: tf.broadcast_to(x, y.shape),
    lambda x, y: np.broadcast_to(x, y.shape),
    every_other,
    whole,
)
broadcasting(
    "gradient of an add that broadcasts",
    lambda x, y: gradient(lambda v: tf.reduce_sum((v + y) ** 2), x),
    lambda x, y: (2 * (x + y)).sum(tuple(i for i, n in enumerate(x.shape) if n == 1), keepdims=True),
    every_other,
    whole,
)


def array(name, compute, expected, dtype=np.float32):
    """A case of one array; `compute` gets its shape, too."""

    def make(shape):
        x = integers(shape, dtype=dtype)
        return lambda: compute(tf.constant(x), shape), expected(x, shape)

    CASES[name] = make


array("transpose", lambda x, _: tf.transpose(x), lambda x, _: x.T)
array("transpose in between", lambda x, s: tf.transpose(x, axes_of(s)), lambda x, s: x.transpose(axes_of(s)))
array("transpose of int32", lambda x, s: tf.transpose(x, axes_of(s)), lambda x, s: x.transpose(axes_of(s)), np.int32)
array("transpose of the ends", lambda x, s: tf.transpose(x, ends(s)), lambda x, s: x.transpose(ends(s)))
array(
    "conjugate transpose",
    lambda x, s: tf.transpose(tf.complex(x, x + 1), axes_of(s), conjugate=True),
    lambda x, s: (x - 1j * (x + 1)).astype(np.complex64).transpose(axes_of(s)),
)
array("reverse", lambda x, s: tf.reverse(x, [*range(0, len(s), 2)]), lambda x, s: np.flip(x, range(0, len(s), 2)))
array("roll", lambda x, s: tf.roll(x, [1, 2, 1], [0, 5, 7]), lambda x, s: np.roll(x, [1, 2, 1], [0, 5, 7]))
array(
    "roll of all",
    lambda x, s: tf.roll(x, [1] * len(s), range(len(s))),
    lambda x, s: np.roll(x, [1] * len(s), range(len(s))),
)
array("tile", lambda x, s: tf.tile(x, tiles(s)), lambda x, s: np.tile(x, tiles(s)))
array(
    "slice",
    lambda x, s: tf.slice(x, [n - 1 for n in s], [1] * len(s)),
    lambda x, s: x[tuple(slice(n - 1, n) for n in s)],
)
array("slice of the middle", lambda x, s: x[:, :, 1:, ..., :1], lambda x, s: x[:, :, 1:, ..., :1])
array("strided slice", lambda x, s: x[::-1, ..., 1:, ::-1], lambda x, s: x[::-1, ..., 1:, ::-1])
array("index", lambda x, s: x[0, ..., 1, :], lambda x, s: x[0, ..., 1, :])
array("slice's gradient", lambda x, s: gradient(lambda v: v[..., 1:, :1] * 3, x), lambda x, s: slice_gradient(x))
array("concat", lambda x, s: tf.concat([x, x + 1], 5), lambda x, s: np.concatenate([x, x + 1], 5))
array("concat of the last", lambda x, s: tf.concat([x, x + 1], -1), lambda x, s: np.concatenate([x, x + 1], -1))
array("stack", lambda x, s: tf.stack([x, x + 1], 4), lambda x, s: np.stack([x, x + 1], 4))
array("unstack", lambda x, s: tf.unstack(x, axis=3), lambda x, s: [x.take(i, 3) for i in range(s[3])])
array("split", lambda x, s: tf.split(x, s[2], 2), lambda x, s: np.split(x, s[2], 2))
array("pad", lambda x, s: tf.pad(x, pads(s), constant_values=7), lambda x, s: np.pad(x, pads(s), constant_values=7))
array("pad in a mirror", lambda x, s: tf.pad(x, pads(s), "SYMMETRIC"), lambda x, s: np.pad(x, pads(s), "symmetric"))
array("gather", lambda x, s: tf.gather(x, [1, 0, 1], axis=wide(s, 1)), lambda x, s: x.take([1, 0, 1], wide(s, 1)))
array("gather_nd", lambda x, s: tf.gather_nd(x, [[0, s[1] - 1]]), lambda x, s: x[[0], [s[1] - 1]])
array(
    "one_hot",
    lambda x, s: tf.one_hot(x % 3, 3, axis=2),
    lambda x, s: np.moveaxis(np.eye(3, dtype=np.float32)[x % 3], -1, 2),
    np.int64,
)
array(
    "meshed indices",
    lambda x, s: tf.gather(tf.range(3.0), tf.cast(x % 3, tf.int32)),
    lambda x, s: (x % 3).astype(np.float32),
    np.int64,
)
array("argmax", lambda x, s: tf.argmax(x, 6), lambda x, s: x.argmax(6))
array("argmin of the last", lambda x, s: tf.argmin(x, last_wide(s)), lambda x, s: x.argmin(last_wide(s)))
array("cumsum", lambda x, s: tf.cumsum(x, wide(s, 2)), lambda x, s: x.cumsum(wide(s, 2)), np.int64)
array("cumprod", lambda x, s: tf.math.cumprod(x, wide(s, 1)), lambda x, s: x.cumprod(wide(s, 1)), np.int64)
array("sort", lambda x, s: tf.sort(x), lambda x, s: np.sort(x))
array("sum", lambda x, s: tf.reduce_sum(x), lambda x, s: x.sum(), np.int64)
array(
    "sum of int32",
    lambda x, s: tf.reduce_sum(x, axes_of(s)[::2]),
    lambda x, s: x.sum(tuple(axes_of(s)[::2]), np.int32),
    np.int32,
)
array(
    "sum of every other axis",
    lambda x, s: tf.reduce_sum(x, [*range(0, len(s), 2)]),
    lambda x, s: x.sum(tuple(range(0, len(s), 2))),
    np.int64,
)
array(
    "sum of the others, kept",
    lambda x, s: tf.reduce_sum(x, [*range(1, len(s), 2)], True),
    lambda x, s: x.sum(tuple(range(1, len(s), 2)), keepdims=True),
    np.int64,
)
array("sum of the first", lambda x, s: tf.reduce_sum(x, [0, 1, 2]), lambda x, s: x.sum((0, 1, 2)), np.int64)
array("sum of the last", lambda x, s: tf.reduce_sum(x, [-3, -1]), lambda x, s: x.sum((-3, -1)), np.int64)
array("mean", lambda x, s: tf.reduce_mean(x, [1, 4]), lambda x, s: x.mean((1, 4)))
array(
    "maximum of axes",
    lambda x, s: tf.reduce_max(x, [*range(0, len(s), 3)]),
    lambda x, s: x.max(tuple(range(0, len(s), 3))),
)
array("any", lambda x, s: tf.reduce_any(x > 990, [1, 3, 5]), lambda x, s: (x > 990).any((1, 3, 5)))
array(
    "logsumexp", lambda x, s: tf.reduce_logsumexp(x / 1000, [2, 5]), lambda x, s: np.log(np.exp(x / 1000).sum((2, 5)))
)
array("norm", lambda x, s: tf.norm(x, axis=3), lambda x, s: np.linalg.norm(x, axis=3))
array(
    "segment_sum",
    lambda x, s: tf.math.unsorted_segment_sum(x, [0] * s[0], 2),
    lambda x, s: np.stack([x.sum(0), 0 * x[0]]),
)
array(
    "scatter_nd",
    lambda x, s: tf.scatter_nd([[2]], x[:1], [3, *s[1:]]),
    lambda x, s: np.stack([0 * x[0], 0 * x[0], x[0]]),
)
array(
    "tensor_scatter_nd_add",
    lambda x, s: tf.tensor_scatter_nd_add(x, [[0]], x[:1]),
    lambda x, s: np.concatenate([2 * x[:1], x[1:]]),
)
array("matrix band", lambda x, s: tf.linalg.band_part(x, 0, -1), lambda x, s: np.triu(x))
array("diagonal", lambda x, s: tf.linalg.diag_part(x), lambda x, s: np.diagonal(x, axis1=-2, axis2=-1))
array("matrix_transpose", lambda x, s: tf.linalg.matrix_transpose(x), lambda x, s: x.swapaxes(-1, -2))
array(
    "tensordot of one axis",
    lambda x, s: tf.tensordot(GATE(s), x, [[1], [wide(s, 1)]]),
    lambda x, s: np.tensordot(GATE(s), x, [[1], [wide(s, 1)]]),
)
array(
    "tensordot of axes",
    lambda x, s: tf.tensordot(x, x, [odd(s), odd(s)]),
    lambda x, s: np.tensordot(x, x, [odd(s), odd(s)]),
)
array("matmul with a batch", lambda x, s: tf.matmul(x, x, transpose_b=True), lambda x, s: x @ x.swapaxes(-1, -2))
array(
    "matmul that broadcasts",
    lambda x, s: tf.matmul(x, x[..., :1, :, :], transpose_b=True),
    lambda x, s: x @ x[..., :1, :, :].swapaxes(-1, -2),
)
array(
    "einsum of one axis",
    lambda x, s: tf.einsum(einsum_of(s), x, GATE(s)),
    lambda x, s: np.einsum(einsum_of(s), x, GATE(s)),
)
array("einsum that sums", lambda x, s: tf.einsum(sum_of(s), x), lambda x, s: np.einsum(sum_of(s), x))
array("einsum of two states", lambda x, s: tf.einsum(inner_of(s), x, x), lambda x, s: np.einsum(inner_of(s), x, x))
array(
    "einsum with an ellipsis",
    lambda x, s: tf.einsum("...ab,bc->...ac", x, tf.ones([s[-1], 3])),
    lambda x, s: x @ np.ones([s[-1], 3]),
)
array("variable", lambda x, s: assigned(x, lambda v: v.assign_add(x)), lambda x, s: 2 * x)
array(
    "variable of a slice",
    lambda x, s: assigned(x, lambda v: v[..., :1].assign(0 * x[..., :1])),
    lambda x, s: np.where(np.arange(s[-1]) == 0, 0, x),
)
array(
    "variable's rows",
    lambda x, s: assigned(x, lambda v: v.scatter_add(tf.IndexedSlices(x[:1], [0]))),
    lambda x, s: np.concatenate([2 * x[:1], x[1:]]),
)
array("random uniform", lambda x, s: tf.random.stateless_uniform(s, [1, 2]) * 0 + x, lambda x, s: x)
array(
    "function",
    lambda x, s: tf.function(lambda v: tf.transpose(v * 2 + v, axes_of(s)) - 1)(x),
    lambda x, s: (3 * x - 1).transpose(axes_of(s)),
)
array(
    "function of sums",
    lambda x, s: tf.function(lambda v: tf.reduce_sum(tf.transpose(v, axes_of(s)) * 2, [0, 2, 4]))(x),
    lambda x, s: 2 * x.transpose(axes_of(s)).sum((0, 2, 4)),
)
array(
    "while loop",
    lambda x, s: tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + x), [0, x])[1],
    lambda x, s: 4 * x,
)
array("map_fn", lambda x, s: tf.map_fn(lambda v: v + 1, x), lambda x, s: x + 1)
array("tensor list", lambda x, s: tf.TensorArray(tf.float32, s[0]).unstack(x).stack(), lambda x, s: x)


def batch(name, compute, expected):
    """A case of a batch of matrices that can be inverted."""

    def make(shape):
        x = np.random.default_rng(0).uniform(-1, 1, [*shape[:-2], 2, 2]).astype(np.float32) + 3 * np.eye(
            2, dtype=np.float32
        )
        x = x + x.swapaxes(-1, -2)
        return lambda: compute(tf.constant(x)), expected(x)

    CASES[name] = make


batch("cholesky", tf.linalg.cholesky, np.linalg.cholesky)
batch("inverse", tf.linalg.inv, np.linalg.inv)
batch("determinant", tf.linalg.det, np.linalg.det)
batch("solve", lambda x: tf.linalg.solve(x, x), lambda x: np.broadcast_to(np.eye(2), x.shape))
batch(
    "triangular solve",
    lambda x: tf.linalg.triangular_solve(x, tf.linalg.band_part(x, -1, 0)),
    lambda x: np.broadcast_to(np.eye(2), x.shape),
)
batch("eigenvalues", lambda x: tf.linalg.eigvalsh(x), lambda x: np.linalg.eigvalsh(x))
batch("singular values", lambda x: tf.linalg.svd(x, compute_uv=False), lambda x: np.linalg.svd(x, compute_uv=False))
batch("qr", lambda x: tf.matmul(*tf.linalg.qr(x)), lambda x: x)
batch("lu", lambda x: tf.reduce_prod(tf.linalg.diag_part(tf.linalg.lu(x)[0]), -1), lambda x: np.linalg.det(x))
batch("diag", lambda x: tf.linalg.diag(x), lambda x: x[..., np.newaxis] * np.eye(2))
batch(
    "set_diag",
    lambda x: tf.linalg.set_diag(x, x[..., 0]),
    lambda x: np.where(np.eye(2) > 0, x[..., :1, :].swapaxes(-1, -2), x),
)
batch("fft", lambda x: tf.signal.fft(tf.cast(x, tf.complex64)), lambda x: np.fft.fft(x))
batch("fft2d", lambda x: tf.signal.fft2d(tf.cast(x, tf.complex64)), lambda x: np.fft.fft2(x))
batch("rfft and back", lambda x: tf.signal.irfft(tf.signal.rfft(x), [2]), lambda x: x)
batch("top_k", lambda x: tf.math.top_k(x, 1).values, lambda x: x.max(-1, keepdims=True))
batch("argsort", lambda x: tf.argsort(x), lambda x: x.argsort(-1))
batch("searchsorted", lambda x: tf.searchsorted(tf.sort(x), x), lambda x: (x > x[..., ::-1]) * 1)
array("optimizer", lambda x, s: trained(x), lambda x, s: x - np.float32(0.5) * x)
array("adam", lambda x, s: trained(x, "adam"), lambda x, s: x - 0.5 * np.sign(x))
array(
    "bincount",
    lambda x, s: tf.math.bincount(tf.cast(x % 3, tf.int32)),
    lambda x, s: np.bincount((x % 3).astype(int).ravel()),
)
array(
    "bucketize",
    lambda x, s: tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 10.0]),
    lambda x, s: np.digitize(x, [0, 10]),
)
array(
    "fake quantization",
    lambda x, s: tf.quantization.fake_quant_with_min_max_args(x, 0, 255),
    lambda x, s: np.clip(x, 0, 255),
)
array("dynamic partition", lambda x, s: tf.dynamic_partition(x, [0] * s[0], 2)[0], lambda x, s: x)
array(
    "dynamic stitch",
    lambda x, s: tf.dynamic_stitch([[1], [0]], [x[:1], x[:1] + 1]),
    lambda x, s: np.concatenate([x[:1] + 1, x[:1]]),
)
array(
    "unique rows",
    lambda x, s: tf.raw_ops.UniqueV2(x=tf.concat([x, x], 0), axis=[0])[1],
    lambda x, s: np.arange(2 * s[0]) % s[0],
)
array(
    "histogram",
    lambda x, s: tf.histogram_fixed_width(x, [-1000.0, 1000.0], 2),
    lambda x, s: np.array([(x < 0).sum(), (x >= 0).sum()]),
)
array(
    "approximate equality",
    lambda x, s: tf.raw_ops.ApproximateEqual(x=x, y=x + 1, tolerance=0.5),
    lambda x, s: np.zeros(s, bool),
)
array("dropout", lambda x, s: tf.nn.experimental.stateless_dropout(x, 0.5, [1, 2]) * 0, lambda x, s: 0 * x)
array("space to batch", lambda x, s: tf.space_to_batch(x, [1], [[0, 0]]), lambda x, s: x)
array(
    "diag of all",
    lambda x, s: tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(x[(0,) * (len(s) - 2)])),
    lambda x, s: x[(0,) * (len(s) - 2)],
)
array(
    "cross",
    lambda x, s: tf.linalg.cross(tf.stack([x, x, x], -1), tf.stack([x, -x, x], -1)),
    lambda x, s: np.cross(np.stack([x, x, x], -1), np.stack([x, -x, x], -1)),
)
array(
    "string",
    lambda x, s: tf.strings.length(tf.strings.as_string(tf.cast(x, tf.int64) % 10 + 10)),
    lambda x, s: np.full(s, 2),
)
array("py_function", lambda x, s: tf.py_function(lambda v: v + 1, [x], tf.float32), lambda x, s: x + 1)
array("data set", lambda x, s: next(iter(tf.data.Dataset.from_tensors(x))) + 1, lambda x, s: x + 1)
array(
    "cond",
    lambda x, s: tf.function(lambda v: tf.cond(tf.reduce_sum(v) > 1e9, lambda: v, lambda: v + 1))(x),
    lambda x, s: x + 1,
)
array("scan", lambda x, s: tf.scan(lambda a, v: a + v, x), lambda x, s: x.cumsum(0))
array("references", lambda x, s: reference(x), lambda x, s: 2 * x)


def trained(x, how="sgd"):
    variable = tf.Variable(x)
    arguments = {"var": variable.handle, "grad": x, "use_locking": False}
    if how == "sgd":
        tf.raw_ops.ResourceApplyGradientDescent(alpha=0.5, delta=x, var=variable.handle)
    else:
        slots = [tf.Variable(tf.zeros_like(x)) for _ in range(2)]
        decay = {"beta1_power": 0.9, "beta2_power": 0.999, "beta1": 0.9, "beta2": 0.999, "lr": 0.5, "epsilon": 1e-9}
        tf.raw_ops.ResourceApplyAdam(m=slots[0].handle, v=slots[1].handle, **decay, **arguments)
    return variable.read_value()


def reference(x):
    """Twice a variable of TensorFlow 1, in a function as TensorFlow 2 runs its graphs."""
    v1 = tf.compat.v1
    value = x.numpy()
    with tf.Graph().as_default(), tf.device("/xpu:0"):
        variable = v1.get_variable("v", initializer=value, use_resource=False)
        doubled = v1.assign_add(variable, value)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            result = session.run(doubled)
    return tf.constant(result)


def ends(shape):
    return [len(shape) - 1, *range(1, len(shape) - 1), 0]


def tiles(shape):
    return [2 if i % 6 == 2 else 1 for i in range(len(shape))]


def pads(shape):
    return [(1, 0) if i in (0, 7) else (0, 1) if i == 4 and shape[i] > 1 else (0, 0) for i in range(len(shape))]


def wide(shape, number):
    """The axis with this number among those that are not of extent 1."""
    return [i for i, n in enumerate(shape) if n > 1][number]


def odd(shape):
    """All axes but the first one and every fourth one."""
    return [i for i in range(len(shape)) if i % 4]


def GATE(shape):  # noqa: N802
    n = shape[wide(shape, 1)]
    return np.arange(1, n * n + 1, dtype=np.float32).reshape(n, n)


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum_of(shape):
    names, at = LETTERS[: len(shape)], wide(shape, 1)
    return f"{names},Z{names[at]}->{names.replace(names[at], 'Z')}"


def sum_of(shape):
    names = LETTERS[: len(shape)]
    return f"{names}->{names[::-2]}"


def inner_of(shape):
    names = LETTERS[: len(shape)]
    return f"{names},{names}->{names[::3]}"


def slice_gradient(x):
    result = np.zeros_like(x)
    result[..., 1:, :1] = 3
    return result


def assigned(x, assign):
    variable = tf.Variable(x)
    assign(variable)
    return variable.read_value()


def outcome(name, shape, device):
    """None if the device computes it right, else what is wrong."""
    compute, expected = CASES[name](shape)
    try:
        with tf.device(device):
            got = compute()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    got, expected = (list(v) if isinstance(v, list) else [v] for v in (got, expected))
    for of_device, right in zip(got, expected, strict=True):
        of_device, right = of_device.numpy(), np.asarray(right)
        if of_device.shape != right.shape:
            return f"the shape is {of_device.shape}, expected {right.shape}"
        scale = np.abs(right).max(initial=0).astype(np.float64) if right.dtype.kind not in "bc" else 1
        exact = right.dtype.kind in "biu"
        if not (np.array_equal(of_device, right) if exact else np.allclose(of_device, right, 1e-5, 1e-6 * scale)):
            wrong = np.argwhere(~np.isclose(of_device, right, 1e-5, 1e-6 * scale))
            return f"{len(wrong)} of {right.size} elements are wrong, the first at {wrong[0].tolist()}"
    return None


if __name__ == "__main__":
    shapes = [[int(n) for n in text.split(",")] for text in sys.argv[2:]]
    for case_name in CASES:
        print(case_name, *(outcome(case_name, shape, sys.argv[1]) or "ok" for shape in shapes), sep=" | ", flush=True)
