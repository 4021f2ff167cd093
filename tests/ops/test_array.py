"""Array ops on XPU against the CPU: the argument forms that one sweep case per op does not reach, errors, variables."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.support.op_checks import check, check_fails, values
from tests.sweep.runner import hard_placement

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def placed_hard():
    with hard_placement():
        yield


# Movement.


@pytest.mark.parametrize("rank", range(6))
def test_transpose_every_permutation(xpu_device, rank):
    x = values(*(2, 3, 1, 4, 5)[:rank])
    for perm in itertools.permutations(range(rank)):
        check(xpu_device, lambda t, p=perm: raw.Transpose(x=t, perm=np.array(p, np.int64)), x)


def test_transpose_types_and_sizes(xpu_device):
    for dtype in (np.int32, np.int64, np.float64, np.complex64, np.bool_, np.uint8, np.float16):
        check(xpu_device, lambda t: raw.Transpose(x=t, perm=[1, 0]), values(70, 33, dtype=dtype))
    check(xpu_device, lambda t: raw.Transpose(x=t, perm=[0, 3, 1, 2]), values(2, 30, 40, 7))


def test_conjugate_transpose(xpu_device):
    z = values(3, 4).astype(np.complex64) * (1 + 2j)
    check(xpu_device, lambda t: raw.ConjugateTranspose(x=t, perm=[1, 0]), z)
    check(xpu_device, lambda t: raw.ConjugateTranspose(x=t, perm=[0, 1]), z)


def test_transpose_errors(xpu_device):
    x = values(2, 3)
    check_fails(xpu_device, "transpose expects a vector of size 2", lambda t: raw.Transpose(x=t, perm=[0]), x)
    check_fails(xpu_device, "5 is out of range", lambda t: raw.Transpose(x=t, perm=[0, 5]), x)
    check_fails(xpu_device, "1 is missing from", lambda t: raw.Transpose(x=t, perm=[0, 0]), x)
    check_fails(xpu_device, "perm must be rank 1", lambda t: raw.Transpose(x=t, perm=[[0, 1]]), x)


def test_reverse_roll_tile_broadcast(xpu_device):
    x = values(3, 4, 5)
    for n in range(4):
        for axes in itertools.combinations(range(3), n):
            a = np.array(axes, np.int32)
            check(xpu_device, lambda t, a=a: raw.ReverseV2(tensor=t, axis=a), x)
            shift = np.array([7, -2, 3][:n], np.int32)
            check(xpu_device, lambda t, a=a, s=shift: raw.Roll(input=t, shift=s, axis=a), x)
            dims = np.isin(np.arange(3), axes)
            check(xpu_device, lambda t, d=dims: raw.Reverse(tensor=t, dims=d), x)
    check(xpu_device, lambda t: raw.Roll(input=t, shift=[1, 2, -4], axis=[0, 0, 2]), x)
    check(xpu_device, lambda t: raw.Roll(input=t, shift=3, axis=-1), x)
    for multiples in itertools.product((0, 1, 2, 3), repeat=3):
        check(xpu_device, lambda t, m=multiples: raw.Tile(input=t, multiples=list(m)), x)
    for shape in ([3, 4, 5], [2, 3, 4, 5], [0, 3, 4, 5]):
        check(xpu_device, lambda t, s=shape: raw.BroadcastTo(input=t, shape=s), x)
    for a, b in [((1, 4, 1), [3, 4, 5]), ((), [2, 3]), ((1,), [0]), ((5, 1), [2, 5, 6])]:
        for dtype in (np.float32, np.int32, np.int64):
            check(xpu_device, lambda t, b=b: raw.BroadcastTo(input=t, shape=b), values(*a, dtype=dtype))


def test_movement_errors(xpu_device):
    x = values(3, 4)
    check_fails(xpu_device, "is out of valid range", lambda t: raw.ReverseV2(tensor=t, axis=[2]), x)
    check_fails(xpu_device, "specified more than once", lambda t: raw.ReverseV2(tensor=t, axis=[0, -2]), x)
    check_fails(xpu_device, "'dims' must have", lambda t: raw.Reverse(tensor=t, dims=[True]), x)
    check_fails(xpu_device, "axis 2 is out of range", lambda t: raw.Roll(input=t, shift=[1], axis=[2]), x)
    check_fails(xpu_device, "must have the same size", lambda t: raw.Roll(input=t, shift=[1, 2], axis=[0]), x)
    check_fails(xpu_device, "vector of length 2", lambda t: raw.Tile(input=t, multiples=[1]), x)
    check_fails(xpu_device, "Expected multiples[1] >= 0", lambda t: raw.Tile(input=t, multiples=[1, -1]), x)
    check_fails(xpu_device, "Incompatible shapes", lambda t: raw.BroadcastTo(input=t, shape=[3, 5]), x)


# Joining and splitting.


def test_concat_pack(xpu_device):
    for dtype in (np.float32, np.int64, np.bool_, np.complex128):
        parts = [values(2, n, 3, dtype=dtype) for n in (1, 0, 4, 2)]
        check(xpu_device, lambda *p: raw.ConcatV2(values=p, axis=1), *parts)
        check(xpu_device, lambda *p: raw.Concat(concat_dim=1, values=p), *parts)
    one = [values(0, 3), values(2, 3), values(0, 3)]
    check(xpu_device, lambda *p: raw.ConcatV2(values=p, axis=0), *one)
    check(xpu_device, lambda *p: raw.ConcatV2(values=p, axis=-1), values(0, 3), values(0, 4))
    check(xpu_device, lambda *p: raw.ConcatV2(values=p, axis=0), *[values(3) for _ in range(40)])
    for dtype in (np.float32, np.int32, np.int64, np.bool_):
        parts = (
            [values(2, 3, dtype=dtype) + k for k in range(4)]
            if dtype != np.bool_
            else [values(2, 3) > k for k in range(3)]
        )
        for axis in range(-3, 3):
            check(xpu_device, lambda *p, a=axis: raw.Pack(values=p, axis=a), *parts)
    check(xpu_device, lambda *p: raw.Pack(values=p, axis=0), np.float32(1), np.float32(2))


def test_split_unpack(xpu_device):
    for dtype in (np.float32, np.int32, np.int64):
        x = values(4, 6, 5, dtype=dtype)
        check(xpu_device, lambda t: raw.Split(axis=1, value=t, num_split=3), x)
        check(xpu_device, lambda t: raw.Split(axis=-3, value=t, num_split=2), x)
        check(xpu_device, lambda t: raw.Split(axis=0, value=t, num_split=1), x)
        for sizes in ([1, 2, 3], [0, -1, 6], [-1, 1, 1]):
            for size_type in (np.int32, np.int64):
                s = np.array(sizes, size_type)
                check(xpu_device, lambda t, s=s: raw.SplitV(value=t, size_splits=s, axis=1, num_split=3), x)
    for axis in (0, 1, 2, -1):
        x = values(2, 3, 4)
        check(xpu_device, lambda t, a=axis: raw.Unpack(value=t, num=t.shape[a], axis=a), x)
    check(xpu_device, lambda t: raw.Unpack(value=t, num=1, axis=0), values(1, 3))


def test_joining_errors(xpu_device):
    a, b = values(2, 3), values(2, 4)
    check_fails(xpu_device, "Dimension 1 in both shapes must be equal", lambda *p: raw.ConcatV2(values=p, axis=0), a, b)
    check_fails(xpu_device, "range [-2, 2), but got 5", lambda *p: raw.ConcatV2(values=p, axis=5), a, a)
    check_fails(xpu_device, "Ranks of all input", lambda *p: raw.ConcatV2(values=p, axis=0), a, values(3))
    check_fails(xpu_device, "Shapes of all inputs must match", lambda *p: raw.Pack(values=p, axis=0), a, b)
    check_fails(xpu_device, "axis = 3 not in", lambda *p: raw.Pack(values=p, axis=3), a, a)
    check_fails(xpu_device, "should evenly divide", lambda t: raw.Split(axis=1, value=t, num_split=2), a)
    check_fails(xpu_device, "but got 2", lambda t: raw.Split(axis=2, value=t, num_split=1), a)
    check_fails(
        xpu_device, "Determined shape", lambda t: raw.SplitV(value=t, size_splits=[1, 1], axis=1, num_split=2), a
    )
    check_fails(
        xpu_device, "only be one -1", lambda t: raw.SplitV(value=t, size_splits=[-1, -1], axis=1, num_split=2), a
    )


# Slices.

SPECS = [
    np.s_[:],
    np.s_[2],
    np.s_[-1, 1:],
    np.s_[..., 0],
    np.s_[..., ::-1],
    np.s_[::-2, 1::2, ::-3],
    np.s_[5:1:-1],
    np.s_[1:1],
    np.s_[4:2],
    np.s_[10:, -10:2],
    np.s_[-100:100:7],
    np.s_[tf.newaxis, 1, ..., tf.newaxis, -2:],
    np.s_[1:3, tf.newaxis, ..., tf.newaxis],
    np.s_[..., 1:2, tf.newaxis],
    np.s_[:, 2, ::2],
    np.s_[0, 0, 0],
    np.s_[tf.newaxis],
    np.s_[1:-1, 1:-1, 1:-1],
    np.s_[:, :, :],
]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.complex128, np.bool_])
def test_strided_slice_like_numpy(xpu_device, dtype):
    x = values(6, 5, 4, dtype=dtype)
    for spec in SPECS:
        check(xpu_device, lambda t, s=spec: t[s], x)
        with tf.device(xpu_device):
            np.testing.assert_array_equal(tf.constant(x)[spec].numpy(), x[spec])


def random_spec(rng, rank):
    n = int(rng.integers(1, rank + 2))
    masks = {f"{m}_mask": int(rng.integers(0, 1 << n)) for m in ("begin", "end", "new_axis", "shrink_axis")}
    masks["ellipsis_mask"] = int(rng.choice([0, *(1 << i for i in range(n))]))
    bounds = [rng.integers(-7, 8, n).astype(np.int32) for _ in range(2)]
    strides = rng.choice([-3, -2, -1, 1, 1, 1, 2, 3], n).astype(np.int32)
    return {"begin": bounds[0], "end": bounds[1], "strides": strides, **masks}


def test_what_is_not_looked_at_where_there_is_nothing_to_do(xpu_device):
    """TensorFlow assigns a value of any shape to a slice of nothing, and reverses nothing along any axis."""
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            x, ends = tf.ones([6, 7]), {"begin": [3, 0], "end": [3, 7], "strides": [1, 1]}
            np.testing.assert_array_equal(raw.TensorStridedSliceUpdate(input=x, value=tf.zeros([3, 3]), **ends), x)
            variable = tf.Variable(x)
            raw.ResourceStridedSliceAssign(ref=variable.handle, value=tf.zeros([3, 3]), **ends)
            np.testing.assert_array_equal(variable, x)
            assert raw.ReverseV2(tensor=tf.constant(5.0), axis=[3]) == 5
            assert raw.ReverseV2(tensor=tf.zeros([0, 3]), axis=[7]).shape == (0, 3)
            with pytest.raises(tf.errors.InvalidArgumentError):
                raw.ReverseV2(tensor=x, axis=[7])


def test_strided_slice_at_random(xpu_device):
    """Random bounds, strides and masks: the same result as on the CPU, or an error on both."""
    rng = np.random.default_rng(0)
    x = values(5, 4, 3)
    good = bad = 0
    for _ in range(600):
        spec = random_spec(rng, 3)
        with tf.device("/cpu:0"):
            try:
                want = raw.StridedSlice(input=x, **spec).numpy()
            except tf.errors.InvalidArgumentError:
                want = None
        with tf.device(xpu_device):
            if want is None:
                bad += 1
                with pytest.raises(tf.errors.InvalidArgumentError):
                    raw.StridedSlice(input=x, **spec)
                continue
            good += 1
            got = raw.StridedSlice(input=x, **spec).numpy()
            assert got.shape == want.shape, spec
            np.testing.assert_array_equal(got, want, err_msg=str(spec))
            grad = raw.StridedSliceGrad(shape=[5, 4, 3], dy=want + 1, **spec).numpy()
            update = raw.TensorStridedSliceUpdate(input=x, value=-want, **spec).numpy()
            variable = tf.Variable(x)
            raw.ResourceStridedSliceAssign(ref=variable.handle, value=-want, **spec)
        with tf.device("/cpu:0"):
            np.testing.assert_array_equal(
                grad, raw.StridedSliceGrad(shape=[5, 4, 3], dy=want + 1, **spec).numpy(), err_msg=str(spec)
            )
            expected = raw.TensorStridedSliceUpdate(input=x, value=-want, **spec).numpy()
        np.testing.assert_array_equal(update, expected, err_msg=str(spec))
        np.testing.assert_array_equal(variable.numpy(), expected, err_msg=str(spec))
    assert good > 150 and bad > 50


def test_slice_and_errors(xpu_device):
    x = values(4, 5)
    check(xpu_device, lambda t: raw.Slice(input=t, begin=[1, 2], size=[2, -1]), x)
    check(xpu_device, lambda t: raw.Slice(input=t, begin=[4, 0], size=[0, 5]), x)
    check(xpu_device, lambda t: raw.Slice(input=t, begin=[0, 0], size=[4, 5]), x)
    check(xpu_device, lambda t: raw.Slice(input=t, begin=[0, 1], size=[-1, 2]), values(0, 5))
    check_fails(
        xpu_device, "Expected begin[0] in [0, 4], but got 5", lambda t: raw.Slice(input=t, begin=[5, 0], size=[0, 1]), x
    )
    check_fails(
        xpu_device, "Expected size[1] in [0, 2], but got 3", lambda t: raw.Slice(input=t, begin=[0, 3], size=[1, 3]), x
    )
    check_fails(xpu_device, "slice index 9 of dimension 1 out of bounds", lambda t: t[1, 9], x)
    check_fails(xpu_device, "strides[0] must be non-zero", lambda t: t[::0], x)
    check_fails(
        xpu_device,
        "Multiple ellipses",
        lambda t: raw.StridedSlice(input=t, begin=[0, 0], end=[1, 1], strides=[1, 1], ellipsis_mask=3),
        x,
    )
    check_fails(
        xpu_device,
        "shape of dy was [2] instead of [3]",
        lambda t: raw.StridedSliceGrad(shape=[5], begin=[0], end=[3], strides=[1], dy=t),
        values(2),
    )


def test_assign_to_slices_broadcasts(xpu_device):
    for value in (np.float32(7), values(5) + 100, values(2, 1) + 100, values(2, 5) + 100):
        with tf.device(xpu_device):
            v = tf.Variable(values(4, 5))
            before = v.read_value()
            v[1:3].assign(value)
            tensor = raw.TensorStridedSliceUpdate(
                input=values(4, 5), begin=[1, 0], end=[3, 5], strides=[1, 1], value=value
            )
        want = values(4, 5)
        want[1:3] = value
        np.testing.assert_array_equal(v.numpy(), want)
        np.testing.assert_array_equal(tensor.numpy(), want)
        np.testing.assert_array_equal(before.numpy(), values(4, 5))


# Padding and blocks.


def test_pad(xpu_device):
    for dtype in (np.float32, np.int32, np.int64, np.uint8):
        x = values(3, 4, 2, dtype=dtype)
        for p in ([[0, 0], [0, 0], [0, 0]], [[1, 2], [0, 0], [3, 0]], [[0, 0], [2, 2], [0, 0]]):
            check(xpu_device, lambda t, p=p: raw.Pad(input=t, paddings=p), x)
            check(xpu_device, lambda t, p=p: raw.PadV2(input=t, paddings=p, constant_values=tf.constant(9, t.dtype)), x)
    check(xpu_device, lambda t: raw.Pad(input=t, paddings=[[1, 1], [0, 2]]), values(0, 3))
    check(xpu_device, lambda t: raw.Pad(input=t, paddings=np.zeros((0, 2), np.int32)), np.float32(3))


def test_mirror_pad(xpu_device):
    for mode, most in (("REFLECT", 1), ("SYMMETRIC", 0)):
        for p in itertools.product(range(4 - most), repeat=4):
            paddings = [[p[0], p[1]], [0, 0], [p[2], p[3]]]
            x = values(3, 2, 4)
            check(xpu_device, lambda t, p=paddings, m=mode: raw.MirrorPad(input=t, paddings=p, mode=m), x)
            dy = values(3 + p[0] + p[1], 2, 4 + p[2] + p[3])
            check(xpu_device, lambda t, p=paddings, m=mode: raw.MirrorPadGrad(input=t, paddings=p, mode=m), dy)


def test_pad_errors(xpu_device):
    x = values(3, 4)
    check_fails(xpu_device, "non-negative", lambda t: raw.Pad(input=t, paddings=[[0, -1], [0, 0]]), x)
    check_fails(xpu_device, "matrix with 2 columns", lambda t: raw.Pad(input=t, paddings=[[0], [0]]), x)
    check_fails(xpu_device, "must be the rank of inputs", lambda t: raw.Pad(input=t, paddings=[[0, 0]]), x)
    check_fails(
        xpu_device,
        "paddings must be less than the dimension size",
        lambda t: raw.MirrorPad(input=t, paddings=[[3, 0], [0, 0]], mode="REFLECT"),
        x,
    )
    check_fails(
        xpu_device,
        "paddings must be no greater than the dimension size",
        lambda t: raw.MirrorPad(input=t, paddings=[[0, 4], [0, 0]], mode="SYMMETRIC"),
        x,
    )


def test_space_to_batch_and_back(xpu_device):
    cases = [
        ((2, 5, 7, 3), (2, 3), ((1, 0), (0, 2))),
        ((2, 4, 6, 3), (2, 3), ((0, 0), (0, 0))),
        ((1, 2, 3), (4,), ((5, 1),)),
        ((2, 3, 2, 5), (1, 2, 5), ((0, 0), (1, 1), (0, 0))),
        ((2, 3), (), np.zeros((0, 2))),
        ((3, 4, 2), (1,), ((0, 0),)),
    ]
    for shape, block, margins in cases:
        block, margins = np.array(block, np.int32), np.array(margins, np.int32).reshape(-1, 2)
        x = values(*shape)
        to_batch = lambda t, b=block, m=margins: raw.SpaceToBatchND(input=t, block_shape=b, paddings=m)  # noqa: E731
        check(xpu_device, to_batch, x)
        with tf.device("/cpu:0"):
            y = to_batch(x).numpy()
        check(xpu_device, lambda t, b=block, m=margins: raw.BatchToSpaceND(input=t, block_shape=b, crops=m), y)
    check(xpu_device, lambda t: raw.SpaceToBatch(input=t, paddings=[[1, 0], [0, 1]], block_size=3), values(2, 5, 8, 2))
    check(xpu_device, lambda t: raw.BatchToSpace(input=t, crops=[[1, 0], [0, 1]], block_size=3), values(18, 2, 3, 2))
    check_fails(
        xpu_device,
        "is not divisible by block_shape",
        lambda t: raw.SpaceToBatchND(input=t, block_shape=[2], paddings=[[0, 0]]),
        values(2, 5, 2),
    )
    check_fails(
        xpu_device,
        "is not divisible by product",
        lambda t: raw.BatchToSpaceND(input=t, block_shape=[2], crops=[[0, 0]]),
        values(3, 5, 2),
    )


def test_depth_and_space(xpu_device):
    for block in (2, 3):
        x = values(2, 2 * block, 3 * block, 5)
        y = values(2, 2, 3, 5 * block * block)
        check(xpu_device, lambda t, b=block: raw.SpaceToDepth(input=t, block_size=b), x)
        check(xpu_device, lambda t, b=block: raw.DepthToSpace(input=t, block_size=b), y)
        # The CPU has no NCHW: its NHWC, with the axes moved, says what is right.
        for op, data in ((raw.SpaceToDepth, x), (raw.DepthToSpace, y)):
            with tf.device("/cpu:0"):
                want = tf.transpose(op(input=data, block_size=block), [0, 3, 1, 2]).numpy()
            with tf.device(xpu_device):
                got = op(input=tf.constant(data.transpose(0, 3, 1, 2)), block_size=block, data_format="NCHW").numpy()
            np.testing.assert_array_equal(got, want)
    check_fails(xpu_device, "divisible by", lambda t: raw.SpaceToDepth(input=t, block_size=2), values(1, 3, 4, 1))
    check_fails(xpu_device, "divisible by", lambda t: raw.DepthToSpace(input=t, block_size=2), values(1, 2, 2, 3))


# Diagonals and masks.


def test_diagonals(xpu_device):
    x = values(2, 4, 5) + 1
    check(
        xpu_device,
        lambda t: raw.MatrixDiagV2(diagonal=t, k=[1], num_rows=-1, num_cols=7, padding_value=3.0),
        values(2, 4),
    )
    for dtype in (np.float32, np.int32, np.complex64):
        check(xpu_device, lambda t: raw.MatrixDiag(diagonal=t), values(2, 3, dtype=dtype))
        check(xpu_device, lambda t: raw.MatrixDiagPart(input=t), values(2, 3, 5, dtype=dtype))
        check(xpu_device, lambda t: raw.Diag(diagonal=t), values(2, 3, dtype=dtype))
        check(xpu_device, lambda t: raw.DiagPart(input=t), values(2, 3, 2, 3, dtype=dtype))
        check(
            xpu_device,
            lambda t, d: raw.MatrixSetDiag(input=t, diagonal=d),
            values(2, 3, 5, dtype=dtype),
            values(2, 3, dtype=dtype) + 50,
        )
    check_fails(
        xpu_device,
        "out of bound: 5",
        lambda t: raw.MatrixDiagPartV2(input=t, k=[0, 5], padding_value=0.0),
        x,
    )
    check_fails(
        xpu_device, "must not be larger", lambda t: raw.MatrixDiagPartV2(input=t, k=[1, 0], padding_value=0.0), x
    )
    check_fails(xpu_device, "do not match", lambda t: raw.DiagPart(input=t), values(2, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_, np.complex64])
def test_band_part(xpu_device, dtype):
    x = values(2, 4, 5, dtype=dtype)
    for lower, upper in itertools.product((-1, 0, 1, 4), (-1, 0, 2, 5)):
        check(
            xpu_device,
            lambda t, lo=lower, up=upper: raw.MatrixBandPart(input=t, num_lower=lo, num_upper=up),
            x,
        )
    check_fails(
        xpu_device, "num_lower must be negative", lambda t: raw.MatrixBandPart(input=t, num_lower=5, num_upper=0), x
    )


def test_one_hot(xpu_device):
    for index_type in (np.uint8, np.int8, np.int32, np.int64):
        low = 0 if index_type == np.uint8 else -1
        indices = np.arange(low, low + 6).reshape(2, 3).astype(index_type)
        for depth, axis in itertools.product((0, 1, 4, 300), (-1, 0, 1, 2)):
            for on in (np.float32(3), np.int32(3), np.True_):
                off = np.zeros_like(on)
                check(
                    xpu_device,
                    lambda i, on, off, d=depth, a=axis: raw.OneHot(
                        indices=i, depth=d, on_value=on, off_value=off, axis=a
                    ),
                    indices,
                    on,
                    off,
                )
    check_fails(
        xpu_device,
        "depth must be non-negative",
        lambda i: raw.OneHot(indices=i, depth=-1, on_value=1.0, off_value=0.0),
        np.array([1]),
    )


def test_more_dimensions_than_tensorflow_has_are_refused(xpu_device):
    with tf.device(xpu_device):
        x = tf.constant(values(*[1] * 64))
        np.testing.assert_array_equal(raw.Transpose(x=x, perm=list(range(63, -1, -1))).numpy(), values(*[1] * 64))
        most = raw.Pack(values=[tf.reshape(x, [1] * 253)], axis=0)  # Reshape makes no more than these
        assert (raw.Transpose(x=most, perm=list(range(253, -1, -1))) + most).shape.rank == 254
        for more in (
            lambda: raw.Pack(values=[most, most], axis=0),
            lambda: raw.OneHot(indices=tf.cast(most, tf.int64), depth=2, on_value=1.0, off_value=0.0),
            lambda: raw.MatrixDiag(diagonal=most),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Too many dimensions"):
                more()


def test_what_is_assigned_to_a_slice_is_broadcast_to_it(xpu_device):
    """Axes of one element that the slice does not have may stand before those that it has."""
    shapes = [[], [1], [3], [1, 3], [1, 1, 3], [1, 1, 1, 1], [0], [2, 3], [3, 1], [1, 2], [2, 1, 3], [1, 3, 1]]
    spec = {"begin": [0, 1], "end": [0, 4], "strides": [1, 1], "new_axis_mask": 1}
    for shape in shapes:
        value = tf.reshape(tf.range(1.0, 1.0 + np.prod(shape, dtype=np.float32)), shape)

        def assigned(where, value=value):
            with tf.device(where):
                variable = tf.Variable(tf.zeros([5]))
                raw.ResourceStridedSliceAssign(ref=variable.handle, value=value, **spec)
                updated = raw.TensorStridedSliceUpdate(input=tf.zeros([5]), value=value, **spec)
                return variable.numpy().tolist(), updated.numpy().tolist()

        if shapes.index(shape) < 6:
            assert assigned(xpu_device) == assigned("/cpu:0")
            continue
        for where in ("/cpu:0", xpu_device):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot broadcast input shape"):
                assigned(where)


def test_where(xpu_device):
    check(xpu_device, lambda t: raw.Where(condition=t), np.array([[0, np.nan, -0.0], [np.inf, 0, 1e-30]], np.float32))
    check(xpu_device, lambda t: tf.where(t > 100), values(300, 70))
    check_fails(xpu_device, "Unhandled input dimensions: 0", lambda t: raw.Where(condition=t), np.float32(1))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_where_complex_numbers_are_not_zero(xpu_device, dtype):
    """Some of which a cast to bool would take for zeros."""
    numbers = np.array([0j, 1j, complex(0, np.nan), 2, complex(-0.0, -0.0), 1e-30j], dtype)
    check(xpu_device, lambda t: raw.Where(condition=t), numbers)
