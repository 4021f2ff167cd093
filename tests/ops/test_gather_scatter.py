"""Gathers, scatters and segments on XPU against the CPU: argument forms, bad indices, shared buffers, variables."""

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


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_gather(xpu_device, index_type):
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.int32, np.int64, np.bool_):
        x = values(3, 4, 5, 2, dtype=dtype)
        for axis in range(4):
            for batch_dims in range(axis + 1):
                for extra in ((), (3,), (2, 2), (0,)):
                    shape = x.shape[:batch_dims] + extra
                    indices = rng.integers(0, x.shape[axis], shape).astype(index_type)
                    check(
                        xpu_device,
                        lambda p, i, a=axis, b=batch_dims: raw.GatherV2(params=p, indices=i, axis=a, batch_dims=b),
                        x,
                        indices,
                    )
        for depth in range(5):
            for extra in ((), (3,), (2, 2), (0,)):
                indices = rng.integers(0, 2, (*extra, depth)).astype(index_type)
                check(xpu_device, lambda p, i: raw.GatherNd(params=p, indices=i), x, indices)


def test_gather_names_bad_indices(xpu_device):
    x = values(5, 3)
    for bad in (9, -1, 5):
        check_fails(
            xpu_device,
            f"indices[0,1] = {bad} is not in [0, 5)",
            lambda p, i: raw.GatherV2(params=p, indices=i, axis=0),
            x,
            np.array([[0, bad], [1, 2]]),
        )
    check_fails(
        xpu_device,
        "indices[1] = 7 is not in [0, 3)",
        lambda p, i: raw.GatherV2(params=p, indices=i, axis=1),
        x,
        np.array([0, 7], np.int32),
    )
    check_fails(
        xpu_device,
        "indices[1] = [1, 3] does not index into param shape [5,3]",
        lambda p, i: raw.GatherNd(params=p, indices=i),
        x,
        np.array([[4, 2], [1, 3]]),
    )
    # The kernel goes on working, and the next op does not inherit the error.
    check(xpu_device, lambda p, i: raw.GatherV2(params=p, indices=i, axis=0), x, np.array([1, 4]))
    check_fails(
        xpu_device,
        "Expected axis in the range [-2, 2), but got 2",
        lambda p, i: raw.GatherV2(params=p, indices=i, axis=2),
        x,
        np.array([0]),
    )
    check_fails(
        xpu_device,
        "batch_dims (1) must be less than or equal to axis (0)",
        lambda p, i: raw.GatherV2(params=p, indices=i, axis=0, batch_dims=1),
        x,
        np.array([0] * 5),
    )


def test_bad_indices_may_be_ignored(xpu_device):
    x = values(5, 3) + 1
    i = np.array([[4], [7], [-1], [0]])
    check(xpu_device, lambda p, i: raw.GatherNd(params=p, indices=i, bad_indices_policy="IGNORE"), x, i)
    u = values(4, 3) + 10
    check(
        xpu_device,
        lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=np.array([5, 3], np.int64), bad_indices_policy="IGNORE"),
        i,
        u,
    )
    check(
        xpu_device,
        lambda p, i, u: raw.TensorScatterAdd(tensor=p, indices=i, updates=u, bad_indices_policy="IGNORE"),
        x,
        i,
        u,
    )


TENSOR_SCATTERS = [
    raw.TensorScatterUpdate,
    raw.TensorScatterAdd,
    raw.TensorScatterSub,
    raw.TensorScatterMin,
    raw.TensorScatterMax,
]


@pytest.mark.parametrize("op", TENSOR_SCATTERS, ids=lambda op: op.__name__)
def test_tensor_scatter(xpu_device, op):
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.int32, np.int64, np.float64):
        x = values(4, 5, 3, dtype=dtype)
        for depth in range(1, 4):
            cells = np.indices(x.shape[:depth]).reshape(depth, -1).T
            some = rng.permutation(cells)[:6]
            updates = rng.integers(-9, 9, (len(some), *x.shape[depth:])).astype(dtype)
            check(xpu_device, lambda t, i, u: op(tensor=t, indices=i, updates=u), x, some, updates)
    with tf.device(xpu_device):
        original = tf.constant(values(4, 2))
        op(tensor=original, indices=[[1]], updates=[[9.0, 9.0]])
    np.testing.assert_array_equal(original.numpy(), values(4, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64, np.uint8])
def test_scatter_nd_of_types(xpu_device, dtype):
    for index_type in (np.int32, np.int64):
        check(
            xpu_device,
            lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=tf.constant([5, 2], i.dtype)),
            np.array([[1], [3], [1], [0]], index_type),
            values(4, 2, dtype=dtype) + 1,
        )


def test_scatter_nd(xpu_device):
    for index_type in (np.int32, np.int64):
        indices = np.array([[1], [3], [1], [0]], index_type)
        truth = np.array([True, False, False, True])
        check(
            xpu_device,
            lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=tf.constant([5], i.dtype)),
            indices,
            truth,
        )
    check(
        xpu_device,
        lambda t, i, u: raw.ScatterNdNonAliasingAdd(input=t, indices=i, updates=u),
        values(5, 2),
        indices,
        values(4, 2),
    )
    check_fails(
        xpu_device,
        "indices[1] = [5] does not index into shape [5]",
        lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[5]),
        np.array([[0], [5]], np.int32),
        values(2),
    )
    check_fails(
        xpu_device,
        "must match dimensions",
        lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=[5]),
        np.array([[0], [4]], np.int32),
        values(3),
    )


ROW_SCATTERS = ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"]


@pytest.mark.parametrize("kind", ROW_SCATTERS)
def test_resource_scatter_and_copy_on_write(xpu_device, kind):
    op = getattr(raw, "ResourceScatter" + kind)
    rng = np.random.default_rng(3)
    for index_type in (np.int32, np.int64):
        for shape, index in (((6, 3), [4, 0, 2]), ((6,), [[1, 5], [0, 3]]), ((6, 2, 2), [[0], [4]])):
            index = np.array(index, index_type)
            start = rng.uniform(1, 5, shape).astype(np.float32)
            for update in (rng.uniform(1, 5, (*index.shape, *shape[1:])).astype(np.float32), np.float32(3)):
                results = []
                for device in ("/cpu:0", xpu_device):
                    with tf.device(device):
                        v = tf.Variable(start)
                        before = v.read_value()
                        op(resource=v.handle, indices=index, updates=update)
                        results.append(
                            (v.numpy(), raw.ResourceGather(resource=v.handle, indices=index, dtype=tf.float32).numpy())
                        )
                    np.testing.assert_array_equal(before.numpy(), start)
                for want, got in zip(*results):
                    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("batch_dims", [-42, -1, 2, 5])
def test_resource_gather_names_batch_dims_that_do_not_fit(xpu_device, batch_dims):
    words = []
    for device in ("/cpu:0", xpu_device):
        with tf.device(device):
            v = tf.Variable([1.0])
            with pytest.raises(tf.errors.InvalidArgumentError) as raised:
                raw.ResourceGather(resource=v.handle, indices=[0], dtype=tf.float32, batch_dims=batch_dims)
            words.append(raised.value.message)
    assert str(batch_dims) in words[0]
    assert words[1] == words[0]


def test_resource_scatter_in_a_function(xpu_device):
    with tf.device(xpu_device):
        v = tf.Variable(tf.zeros([5, 2]))

        @tf.function
        def step(i):
            old = v.read_value()
            v.scatter_add(tf.IndexedSlices(tf.ones([2, 2]), i))
            return old

        for n in range(3):
            old = step(tf.constant([1, 1]))
            np.testing.assert_array_equal(old.numpy()[1], [2 * n, 2 * n])
        np.testing.assert_array_equal(v.numpy()[1], [6, 6])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 5 is not in \[0, 5\)"):
            step(tf.constant([0, 5]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Must have updates\.shape"):
            raw.ResourceScatterAdd(resource=v.handle, indices=[0, 1], updates=tf.ones([2, 3]))
        v.scatter_nd_add([[0, 1], [4, 0]], [10.0, 20.0])
        np.testing.assert_array_equal(v.gather_nd([[0, 1], [4, 0], [1, 1]]).numpy()[1:], [20, 6])


def test_dynamic_stitch(xpu_device):
    for dtype in (np.float32, np.int32, np.int64):
        check(
            xpu_device,
            lambda a, b: raw.DynamicStitch(indices=[[5, 0, 2], [[1, 4], [3, 0]]], data=[a, b]),
            values(3, 2, dtype=dtype),
            values(2, 2, 2, dtype=dtype) + 50,
        )
    check(xpu_device, lambda a: raw.DynamicStitch(indices=[[]], data=[a]), values(0, 3))


def test_segments(xpu_device):
    rng = np.random.default_rng(4)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        data = rng.integers(-5, 6, (8, 3)).astype(dtype)
        for index_type in (np.int32, np.int64):
            ids = np.array([3, 0, -1, 3, 5, 0, 3, -7], index_type)
            ordered = np.array([0, 0, 2, 2, 2, 3, 6, 6], index_type)
            for kind in ("Sum", "Prod", "Min", "Max"):
                op = getattr(raw, "UnsortedSegment" + kind)
                check(xpu_device, lambda d, i, op=op: op(data=d, segment_ids=i, num_segments=7), data, ids)
                check(
                    xpu_device,
                    lambda d, i, op=op: op(data=d, segment_ids=i, num_segments=7),
                    data[:4, :2],
                    np.array([[0, 1], [2, -1], [1, 6], [4, 4]], index_type),
                )
                op = getattr(raw, "Segment" + kind)
                check(xpu_device, lambda d, i, op=op: op(data=d, segment_ids=i), data, ordered)
            if dtype in (np.float32, np.float64):
                check(xpu_device, lambda d, i: raw.SegmentMean(data=d, segment_ids=i), data, ordered, tolerance=1e-6)
    check_fails(
        xpu_device,
        "segment_ids[1] = 4 is out of range [0, 4)",
        lambda d, i: raw.UnsortedSegmentSum(data=d, segment_ids=i, num_segments=4),
        values(3, 2),
        np.array([-1, 4, 0]),
    )
    check_fails(
        xpu_device,
        "segment ids are not increasing",
        lambda d, i: raw.SegmentSum(data=d, segment_ids=i),
        values(3, 2),
        np.array([0, 2, 1]),
    )
    check_fails(
        xpu_device,
        "does not start with",
        lambda d, i: raw.UnsortedSegmentSum(data=d, segment_ids=i, num_segments=4),
        values(3, 2),
        np.array([0, 2]),
    )
