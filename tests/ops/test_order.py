"""Ops that order, count and find: through the public API on the XPU with the CPU's results, and with bad arguments."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.sweep.runner import hard_placement

raw = tf.raw_ops
RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 30)).astype(np.float32)
INTS = RNG.integers(0, 9, 40).astype(np.int32)
LABELS = RNG.integers(0, 30, 4).astype(np.int64)
EDGES = np.linspace(-2, 2, 9).astype(np.float32)


def gradient_of(f):
    def run(x):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return lambda: run(X)


USES = {
    "sort": lambda: tf.sort(X),
    "sort descending": lambda: tf.sort(X, axis=0, direction="DESCENDING"),
    "sort int32": lambda: tf.sort(INTS),
    "sort uint8": lambda: tf.sort(tf.cast(INTS, tf.uint8)),
    "argsort": lambda: tf.argsort(X, stable=True),
    "argsort int64": lambda: tf.argsort(tf.cast(INTS, tf.int64), stable=True),
    "top_k": lambda: tf.math.top_k(X, 7),
    "in_top_k": lambda: tf.math.in_top_k(LABELS, X, 9),
    "searchsorted": lambda: tf.searchsorted(tf.sort(X), tf.sort(-X), side="right"),
    "cumsum": lambda: tf.cumsum(X, 1, exclusive=True),
    "cumprod": lambda: tf.math.cumprod(X, 0, reverse=True),
    "cumulative_logsumexp": lambda: tf.math.cumulative_logsumexp(X, 1),
    "unique_with_counts": lambda: tf.unique_with_counts(tf.cast(INTS, tf.int64)),
    "bincount": lambda: tf.math.bincount(INTS, minlength=12, dtype=tf.float32),
    "bincount rows": lambda: tf.math.bincount(INTS.reshape(4, 10), axis=-1, minlength=12),
    "histogram": lambda: tf.histogram_fixed_width(X, [-1.0, 1.0], 7),
    "dynamic_partition": lambda: tf.dynamic_partition(X, [0, 1, 0, 1], 2),
    "reverse_sequence": lambda: tf.reverse_sequence(X, [3, 30, 0, 8], seq_axis=1, batch_axis=0),
    "sparse segments": lambda: tf.sparse.segment_mean(X, [3, 0, 0, 1], [0, 0, 1, 3], num_segments=5),
    "sparse.to_dense": lambda: tf.sparse.to_dense(tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])),
    "keras sort": lambda: keras.ops.sort(X, axis=0),
    "keras argsort": lambda: keras.ops.argsort(X),
    "keras top_k": lambda: keras.ops.top_k(X, 3),
    "keras in_top_k": lambda: keras.ops.in_top_k(LABELS, X, 5),
    "keras searchsorted": lambda: keras.ops.searchsorted(EDGES, X[0]),
    "keras digitize": lambda: keras.ops.digitize(X, EDGES),
    "keras cumsum": lambda: keras.ops.cumsum(X, axis=1),
    "keras cumprod": lambda: keras.ops.cumprod(X, axis=0),
    "keras bincount": lambda: keras.ops.bincount(INTS, minlength=3),
    "keras median": lambda: keras.ops.median(X, axis=1),
    "keras quantile": lambda: keras.ops.quantile(X, [0.1, 0.5], axis=0),
    "keras histogram": lambda: keras.ops.histogram(X[0], 5),
    "gradient of sort": gradient_of(lambda x: tf.sort(x) ** 2 * np.arange(30, dtype=np.float32)),
    "gradient of top_k": gradient_of(lambda x: tf.math.top_k(x, 5).values ** 2),
    "gradient of cumsum": gradient_of(lambda x: tf.cumsum(x, 1, reverse=True) ** 2),
    "gradient of cumprod": gradient_of(lambda x: tf.math.cumprod(x, 0)),
    "gradient of cumulative_logsumexp": gradient_of(lambda x: tf.math.cumulative_logsumexp(x, 1)),
    "gradient of segments": gradient_of(lambda x: tf.sparse.segment_sqrt_n(x, [3, 0, 0], [0, 0, 1]) ** 2),
    "gradient of reverse_sequence": gradient_of(lambda x: tf.reverse_sequence(x, [3, 0, 9, 8], 1, 0) ** 2),
    "gradient of dynamic_partition": gradient_of(lambda x: tf.dynamic_partition(x, [0, 1, 0, 1], 2)[1] ** 2),
}
# How far the two devices may be apart: sums and products of 30 numbers in float, in other orders.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture
def no_folding():
    """Graphs here are of constants, which TensorFlow would compute on the host before they run."""
    saved = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"constant_folding": False})
    yield
    tf.config.optimizer.set_experimental_options({"constant_folding": saved.get("constant_folding", True)})


# Ranges of int64, in gradients: TensorFlow has kernels for int32 alone.
ON_HOST = {"Range"}


def values_of(result):
    return [np.asarray(v) for v in tf.nest.flatten(tf.nest.map_structure(tf.convert_to_tensor, result))]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("use", USES)
def test_runs_on_the_xpu_with_the_cpus_results(xpu_device, no_folding, use, compiled):
    f = tf.function(USES[use], autograph=False) if compiled else USES[use]
    with tf.device("/cpu:0"):
        want = values_of(USES[use]())
    with tf.device(xpu_device), placement.record() as where:
        got = values_of(f())
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, **CLOSE)
    assert not placement.compute_ops_on(where, "CPU") - ON_HOST, use


def test_metrics(xpu_device):
    y = RNG.integers(0, 2, 50).astype(np.float32)
    p = RNG.uniform(0, 1, 50).astype(np.float32)
    classes = np.eye(30, dtype=np.float32)[LABELS]
    metrics = [
        (keras.metrics.AUC, {}, y, p),
        (keras.metrics.AUC, {"curve": "PR"}, y, p),
        (keras.metrics.PrecisionAtRecall, {"recall": 0.6}, y, p),
        (keras.metrics.TopKCategoricalAccuracy, {"k": 9}, classes, X),
        (keras.metrics.SparseTopKCategoricalAccuracy, {"k": 9}, LABELS, X),
    ]
    for metric, arguments, truth, predictions in metrics:
        results = []
        for device in ("/cpu:0", xpu_device):
            with tf.device(device):
                m = metric(**arguments)
                m.update_state(truth, predictions)
                results.append(float(m.result()))
        assert results[1] == pytest.approx(results[0], rel=1e-6), metric.__name__


def test_equal_elements_keep_their_order_and_nan_comes_last(xpu_device):
    x = np.array([2, np.nan, -0.0, 5, 0.0, 5, np.nan], np.float32)
    with tf.device(xpu_device):
        values, positions = tf.math.top_k(x, 7)
    np.testing.assert_array_equal(values, [5, 5, 2, 0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(positions, [3, 5, 0, 2, 4, 1, 6])


def test_ranks_and_empty_extents(xpu_device):
    shapes = [((2, 1, 2, 1, 3, 1, 2, 2), 4), ((0, 3), 1), ((3, 0), 1), ((2, 0, 3), 0)]
    for shape, axis in shapes:
        x = RNG.standard_normal(shape).astype(np.float32)
        with tf.device(xpu_device):
            np.testing.assert_allclose(tf.cumsum(x, axis), np.cumsum(x, axis), rtol=1e-6, atol=1e-6)
            np.testing.assert_array_equal(tf.sort(x), np.sort(x))
            rows, numbers = raw.UniqueV2(x=x, axis=tf.constant([axis]))
            assert tf.gather(rows, numbers, axis=axis).shape == x.shape


F = tf.float32


def i32(*values):
    return tf.constant(values, tf.int32)


def data():
    return tf.ones((4, 2))


def bincount(op=raw.Bincount, weights=(), **more):
    return lambda: op(**more, weights=tf.constant(weights, F))


def reverse(lengths=(1, 2), seq=1, batch=0, shape=(2, 3)):
    return lambda: raw.ReverseSequence(input=tf.ones(shape), seq_lengths=lengths, seq_dim=seq, batch_dim=batch)


def segment(ids=(0, 0, 2), indices=(0, 1, 2), op=raw.SparseSegmentMean, **more):
    return lambda: op(data=data(), indices=i32(*indices), segment_ids=i32(*ids), **more)


def segment_gradient(ids=(0, 0, 2), indices=(0, 1, 2), op=raw.SparseSegmentSqrtNGrad, size=4):
    name = "dense_output_dim0" if op.__name__.endswith("v2") else "output_dim0"
    return lambda: op(grad=tf.ones((3, 2)), indices=i32(*indices), segment_ids=i32(*ids), **{name: size})


def dense(indices, shape=(2, 3), values=(1.0, 2.0), default=0.0, **more):
    return lambda: raw.SparseToDense(
        sparse_indices=indices, output_shape=shape, sparse_values=values, default_value=default, **more
    )


def histogram(values=(0.5,), value_range=(0.0, 1.0), nbins=3):
    return lambda: raw.HistogramFixedWidth(
        values=tf.constant(values), value_range=tf.constant(value_range), nbins=nbins
    )


BAD = {
    "scan axis": lambda: raw.Cumsum(x=data(), axis=5),
    "scan negative axis": lambda: raw.Cumprod(x=data(), axis=-3),
    "scan axes": lambda: raw.Cumsum(x=data(), axis=[0, 1]),
    "scan of a scalar": lambda: raw.CumulativeLogsumexp(x=1.0, axis=0),
    "top negative k": lambda: raw.TopKV2(input=data(), k=-1),
    "top large k": lambda: raw.TopKV2(input=data(), k=4),
    "top of a scalar": lambda: raw.TopKV2(input=1.0, k=1),
    "top ks": lambda: raw.TopKV2(input=data(), k=[1, 2]),
    "approximate large k": lambda: raw.ApproxTopK(input=data(), k=4),
    "nth large n": lambda: raw.NthElement(input=data(), n=2),
    "nth negative n": lambda: raw.NthElement(input=data(), n=-1),
    "nth ns": lambda: raw.NthElement(input=data(), n=[1, 1]),
    "nth of a scalar": lambda: raw.NthElement(input=1.0, n=0),
    "in top rank": lambda: raw.InTopKV2(predictions=[1.0], targets=[1], k=2),
    "in top targets": lambda: raw.InTopKV2(predictions=[[1.0]], targets=[[1]], k=2),
    "in top length": lambda: raw.InTopKV2(predictions=[[1.0]], targets=[1, 2], k=2),
    "in top ks": lambda: raw.InTopKV2(predictions=[[1.0]], targets=[1], k=[2, 3]),
    "bound rank": lambda: raw.LowerBound(sorted_inputs=[1.0], values=[[1.0]]),
    "bound values": lambda: raw.UpperBound(sorted_inputs=[[1.0]], values=[1.0]),
    "bound batch": lambda: raw.UpperBound(sorted_inputs=[[1.0], [2.0]], values=[[1.0]]),
    "buckets": lambda: raw.Bucketize(input=data(), boundaries=[3.0, 1.0]),
    "count negative": bincount(arr=[1, -1], size=3),
    "count weights": bincount(arr=[1, 1], size=3, weights=[1.0]),
    "count size": bincount(arr=[1, 1], size=-3),
    "count sizes": bincount(arr=[1, 1], size=[3]),
    "dense count rank": bincount(raw.DenseBincount, input=np.zeros((1, 2, 2), np.int32), size=3),
    "dense count negative": bincount(raw.DenseBincount, input=[1, -1], size=3, binary_output=True),
    "dense count negative rows": bincount(raw.DenseBincount, input=[[1, 2], [0, -7]], size=3),
    "dense count weights": bincount(raw.DenseBincount, input=[[1, 1]], size=3, weights=[1.0]),
    "dense count size": bincount(raw.DenseBincount, input=[1, 1], size=-3),
    "histogram NaN": histogram((0.5, np.nan)),
    "histogram range": histogram(value_range=(1.0, 1.0)),
    "histogram ranges": histogram(value_range=((0.0, 1.0),)),
    "histogram bins": histogram(nbins=0),
    "histogram binses": histogram(nbins=[3, 3]),
    "unique rank": lambda: raw.UniqueWithCounts(x=data()),
    "unique axes": lambda: raw.UniqueV2(x=data(), axis=[0, 1]),
    "unique no axis": lambda: raw.UniqueV2(x=data(), axis=tf.constant([], tf.int32)),
    "unique axis": lambda: raw.UniqueWithCountsV2(x=data(), axis=[5]),
    "partition number": lambda: raw.DynamicPartition(data=data(), partitions=[0, 1, 3, 1], num_partitions=2),
    "partition shape": lambda: raw.DynamicPartition(data=data(), partitions=[0, 1], num_partitions=2),
    "reverse one axis": reverse(seq=0),
    "reverse axis": reverse(seq=2),
    "reverse batch": reverse(batch=2),
    "reverse negative axis": reverse(seq=-1),
    "reverse lengths": reverse((1, 2, 3)),
    "reverse negative length": reverse((1, -2)),
    "reverse long length": reverse((4, 1)),
    "reverse long length in a later axis": reverse((1, 5, 4), 0, 2, (3, 2, 3)),
    "reverse rank": reverse(shape=(2, 3, 1, 1, 1, 1)),
    "reverse lengths rank": reverse([[1, 2]]),
    "segment index": segment(indices=(0, 1, 7)),
    "segment negative index": segment(indices=(0, -1, 2), op=raw.SparseSegmentSum),
    "segment order": segment((0, 2, 1)),
    "segment order, last": segment((5, 2, 1)),
    "segment negative": segment((-1, 0, 1)),
    "segment all negative": segment((-3, -2, -2)),
    "segment size": segment((0, 0)),
    "segment of a scalar": lambda: raw.SparseSegmentSum(data=1.0, indices=i32(0), segment_ids=i32(0)),
    "segment indices": lambda: raw.SparseSegmentSum(data=data(), indices=[[0]], segment_ids=i32(0)),
    "segment ids": lambda: raw.SparseSegmentSum(data=data(), indices=[0], segment_ids=[[0]]),
    "segments few": segment(op=raw.SparseSegmentSumWithNumSegments, num_segments=2),
    "segments negative": segment(op=raw.SparseSegmentMeanWithNumSegments, num_segments=-2),
    "segments vector": segment(op=raw.SparseSegmentMeanWithNumSegments, num_segments=[3]),
    "segments order": segment((0, 7, 1), op=raw.SparseSegmentSqrtNWithNumSegments, num_segments=5),
    "segments negative id": segment((-1, 0, 1), op=raw.SparseSegmentSumWithNumSegments, num_segments=5),
    "gradient index": segment_gradient(indices=(0, 1, 7)),
    "gradient id": segment_gradient((0, 0, 3)),
    "gradient id, not the last": segment_gradient((0, 5, 1), op=raw.SparseSegmentSumGrad),
    "gradient negative id": segment_gradient((-1, 0, 1)),
    "gradient size": segment_gradient(size=-4),
    "gradient sizes": segment_gradient(size=[4, 4]),
    "rows of a gradient index": segment_gradient(indices=(0, -1, 7), op=raw.SparseSegmentMeanGradV2),
    "rows of a gradient id": segment_gradient((0, 0, 3), op=raw.SparseSegmentSumGradV2),
    "rows of a gradient negative id": segment_gradient((-1, 0, 2), op=raw.SparseSegmentSqrtNGradV2),
    "dense bounds": dense([[0, 1], [1, 3]]),
    "dense negative": dense([[-1, 1], [1, 1]]),
    "dense bounds, not validated": dense([[0, 1], [1, 3]], validate_indices=False),
    "dense order": dense([[1, 1], [0, 2]]),
    "dense repeated": dense([[1, 1], [1, 1]]),
    "dense vector order": dense([2, 1], (3,)),
    "dense rank": dense([[[0, 1], [1, 1]]]),
    "dense shape": dense([[1, 1], [1, 2]], (2, 3, 4)),
    "dense shape rank": dense([[1, 1], [1, 2]], ((2, 3),)),
    "dense values": dense([[1, 1], [1, 2]], values=(1.0, 2.0, 3.0)),
    "dense default": dense([[1, 1], [1, 2]], default=[0.0]),
}


def failure_of(call, device):
    """The class of the error and its words, without the node and what TensorFlow puts around them."""
    with tf.device(device), hard_placement(), pytest.raises(tf.errors.OpError) as error:
        for t in tf.nest.flatten(call()):
            t.numpy()
    message = error.value.message.split("}} ", 1)[-1]
    return type(error.value), message.split(" [Op:")[0].split(" name:")[0].rstrip()


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused_in_the_cpus_words(xpu_device, case):
    assert failure_of(BAD[case], xpu_device) == failure_of(BAD[case], "/cpu:0")


DATA_DEPENDENT = (
    "count negative",
    "dense count negative rows",
    "histogram NaN",
    "reverse negative length",
    "reverse long length in a later axis",
    "segments few",
    "segments order",
    "gradient index",
    "gradient id",
    "dense bounds",
    "dense order",
    "dense repeated",
)


@pytest.mark.parametrize("case", DATA_DEPENDENT)
def test_a_cluster_refuses_bad_data_in_the_same_words(xpu_device, no_folding, case):
    words = failure_of(BAD[case], "/cpu:0")[1]

    @tf.function(autograph=False)
    def run():
        results = tf.nest.flatten(BAD[case]())
        return [r + tf.cast(1, r.dtype) for r in results]

    with tf.device(xpu_device), pytest.raises(tf.errors.InvalidArgumentError) as error:
        run()
    assert words in error.value.message
