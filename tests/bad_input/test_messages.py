"""Errors read as TensorFlow's: the same exception as on the CPU, and what programs may look for in its message."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def lazily(op, **kwargs):
    """A call of a raw op; an argument that is a Var is a variable of that value."""

    def call():
        handles = {k: tf.Variable(v.value).handle if isinstance(v, Var) else v for k, v in kwargs.items()}
        return getattr(raw, op)(**handles)

    return call


class Var:
    def __init__(self, value):
        self.value = value


def scatter_nd(indices, updates, shape=(3,)):
    return lazily("ScatterNd", indices=indices, updates=updates, shape=shape)


def tensor_scatter(indices, updates, x=(3,), op="TensorScatterAdd"):
    return lazily(op, tensor=ones(*x), indices=indices, updates=updates)


def variable_scatter(indices, updates):
    return lazily("ResourceScatterNdAdd", ref=Var(ones(3, 2)), indices=indices, updates=updates)


def gather(axis=0, indices=(0,), **kwargs):
    return lazily("GatherV2", params=ones(2, 3), indices=list(indices), axis=axis, **kwargs)


def segments(ids, data=(3, 2), op="SegmentSum"):
    return lazily(op, data=ones(*data), segment_ids=ids)


def split_v(sizes, axis=0, n=2):
    return lazily("SplitV", value=ones(4), size_splits=sizes, axis=axis, num_split=n)


def pool(op="MaxPool", x=(2, 5, 5, 3), ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="VALID", **kwargs):
    name = "value" if op == "AvgPool" else "input"
    return lazily(op, **{name: ones(*x)}, ksize=list(ksize), strides=list(strides), padding=padding, **kwargs)


def padded_pool(*paddings):
    return pool(padding="EXPLICIT", explicit_paddings=[0, 0, *paddings, 0, 0])


def pool3d(op="MaxPool3D", ksize=(1, 1, 1, 1, 1), strides=(1, 1, 1, 1, 1)):
    return pool(op, (2, 5, 5, 5, 3), ksize, strides)


def pool_grad(y=(2, 2, 2, 3), dy=(2, 2, 2, 3), ksize=(1, 2, 2, 1)):
    return lazily(
        "MaxPoolGrad",
        orig_input=ones(2, 4, 4, 3),
        orig_output=ones(*y),
        grad=ones(*dy),
        ksize=list(ksize),
        strides=[1, 2, 2, 1],
        padding="VALID",
    )


def conv(op="Conv2D", x=(2, 5, 5, 4), f=(3, 3, 4, 6), strides=(1, 1, 1, 1), **kwargs):
    return lazily(op, input=ones(*x), filter=ones(*f), strides=list(strides), padding="SAME", **kwargs)


def conv3d(f=(3, 3, 3, 4, 6), strides=(1, 1, 1, 1, 1)):
    return conv("Conv3D", (2, 5, 5, 5, 4), f, strides)


def diagonal(k=0, rows=-1, cols=-1, padding=0.0):
    return lazily("MatrixDiagV3", diagonal=ones(3), k=k, num_rows=rows, num_cols=cols, padding_value=padding)


def skip(state=(1, 2, 3), algorithm=1, delta=1):
    state = tf.constant(state, tf.float32 if isinstance(state[0], float) else tf.int64)
    return lazily("RngSkip", resource=Var(state), algorithm=np.int64(algorithm), delta=np.int64(delta))


def slots(op, **kwargs):
    return lazily(op, var=Var(ones(3)), **{"grad": ones(3), **kwargs})


CALLS = [
    # Shapes that are arguments.
    (lazily("BroadcastTo", input=ones(2, 3), shape=[2, 4]), "Incompatible shapes: [2,3] vs. [2,4]"),
    (
        lazily("BroadcastTo", input=ones(2, 3), shape=[1, 3]),
        "Unable to broadcast tensor of shape [2,3] to tensor of shape [1,3]",
    ),
    (lazily("BroadcastTo", input=ones(2, 3), shape=[3]), "Rank of input (2) must be no greater than rank of output"),
    (
        lazily("BroadcastTo", input=ones(2, 3), shape=[2**30] * 10 + [2, 3]),
        "Shape [" + "1073741824," * 10 + "2,3] would have more than 2**63 - 1 elements",
    ),
    (
        lazily("BroadcastTo", input=ones(2, 3), shape=[[2, 3]]),
        "shape must be a vector of {int32,int64}, got shape [1,2]",
    ),
    (lazily("BroadcastTo", input=ones(2, 3), shape=[-1, 3]), "Dimension -1 must be >= 0"),
    (lazily("Fill", dims=[[1]], value=1.0), "dims must represent a vector, got shape [1,1]"),
    (
        lazily("RandomUniform", shape=[[2]], dtype=tf.float32),
        "shape must be a vector of {int32,int64}, got shape [1,1]",
    ),
    # Movement.
    (lazily("Bitcast", input=ones(3, dtype=np.uint8), type=tf.int16), "Cannot bitcast from 4 to 5"),
    (lazily("Bitcast", input=ones(3, 3, dtype=np.int16), type=tf.complex128), "Cannot bitcast from 5 to 18"),
    (lazily("Transpose", x=ones(2, 3), perm=[0, 0]), "1 is missing from {0,0}."),
    (lazily("ReverseV2", tensor=ones(2, 3), axis=0), "'dims' must be 1-dimension, not 0"),
    (lazily("Split", axis=[0, 1], value=ones(4), num_split=2), "split_dim must be a scalar but has rank 1"),
    (lazily("Split", axis=3, value=ones(4), num_split=2), "<= split_dim < input rank (1), but got 3"),
    (split_v([1, 3], axis=[0, 1]), "split_dim_tensor must have exactly one element."),
    (split_v([1, 2, 1]), "size of the split_tensor must be 1-D and have the same elements as outputs got 1 -D and 3"),
    (
        lazily("MirrorPad", input=ones(2, 3), paddings=[[0, 0]], mode="REFLECT"),
        "must be the rank of inputs[1,2], [2,3]",
    ),
    (lazily("SpaceToDepth", input=ones(3, 4, 1), block_size=2), "Input rank should be 4 instead of 3"),
    (
        lazily("BatchToSpaceND", input=ones(4, 1, 1, 1), block_shape=[2, 2], crops=[[2, 1], [0, 0]]),
        "cropped_shape[0]=-1 must be non-negative",
    ),
    (lazily("MatrixBandPart", input=ones(2, 2), num_lower=[0], num_upper=1), "num_lower must be scalar, got shape [1]"),
    # Diagonals.
    (diagonal(k=[0, 1]), "The number of diagonals provided in the input does not match the lower_diag_index"),
    (diagonal(k=[1, 0]), "lower_diag_index must not be larger than upper_diag_index: 1 > 0"),
    (diagonal(rows=2), "The number of rows is too small."),
    (diagonal(cols=2), "The number of columns is too small."),
    (diagonal(rows=4, cols=4), "The number of rows or columns is not consistent"),
    (diagonal(rows=[4]), "num_rows must be a scalar"),
    (diagonal(padding=[0.0]), "padding_value must be a scalar"),
    (
        lazily("MatrixDiagPartV3", input=ones(3, 3), k=5, padding_value=0.0),
        "lower_diag_index is out of bound: 5. It must be between -3 and 3",
    ),
    (lazily("MatrixSetDiagV3", input=ones(3, 3), diagonal=np.float32(1), k=0), "diagonal must be at least 1-dim"),
    (
        lazily("MatrixSetDiagV3", input=ones(3, 3), diagonal=ones(3), k=[0, 1]),
        "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` and `upper_diag_index`",
    ),
    # Gathers, scatters, segments.
    (gather(axis=2), "Shape must be at least rank 3 but is rank 2"),
    (gather(axis=-3), "Shape must be at least rank 3 but is rank 2"),
    (gather(axis=[0]), "axis must be scalar"),
    (gather(indices=[0, 7]), "indices[1] = 7 is not in [0, 2)"),
    (
        lazily("GatherNd", params=ones(2, 3), indices=[[0, 7]]),
        "indices[0] = [0, 7] does not index into param shape [2,3]",
    ),
    (scatter_nd([[0], [5]], ones(2)), "indices[1] = [5] does not index into shape [3]"),
    (
        scatter_nd([[0], [1]], ones(3)),
        "Dimensions [0,1) of indices[shape=[2,1]] must match dimensions [0,1) of updates[shape=[3]]",
    ),
    (
        scatter_nd([[0], [1]], ones(2, 2)),
        "Dimensions [1,1) of input[shape=[3]] must match dimensions [1,2) of updates[shape=[2,2]]",
    ),
    (scatter_nd([[0, 0]], ones(1)), "Dimensions [2,1) of input[shape=[3]] must match dimensions [1,1) of updates"),
    (scatter_nd([[0], [1]], np.float32(1)), "Updates shape must have rank at least one. Found:[]"),
    (scatter_nd(0, ones(1)), "Indices shape must have rank at least one. Found:[]"),
    (scatter_nd([[0]], ones(1), [0]), "Indices and updates specified for empty output.  indices shape: [1,1]"),
    (scatter_nd([[0]], ones(1), [[3]]), "Shape must be a vector"),
    (tensor_scatter([[5]], ones(1)), "indices[0] = [5] does not index into shape [3]"),
    (
        tensor_scatter([[0], [1]], ones(3)),
        "Outer dimensions of indices and update must match. Indices shape: [2,1], updates shape:[3]",
    ),
    (
        tensor_scatter([[0], [1]], ones(2, 2)),
        "Inner dimensions of output shape must match inner dimensions of updates shape. Output: [3] updates: [2,2]",
    ),
    (
        tensor_scatter([[0], [1]], ones(2, 2), (3, 3)),
        "The inner 1 dimensions of output.shape=[3,3] must match the inner 1 dimensions of updates.shape=[2,2]",
    ),
    (tensor_scatter([[0]], ones(1), (0,)), "Indices and updates specified for empty output shape"),
    (variable_scatter([[5]], ones(1, 2)), "indices[0] = [5] does not index into shape [3,2]"),
    (
        variable_scatter([[0]], ones(1, 3)),
        "Dimensions [1,2) of input[shape=[3,2]] must match dimensions [1,2) of updates[shape=[1,3]]",
    ),
    (
        variable_scatter([[0, 0, 0]], ones(1)),
        "Dimensions [3,2) of input[shape=[3,2]] must match dimensions [3,1) of updates[shape=[1]]",
    ),
    (
        lazily("ResourceScatterAdd", resource=Var(ones(3, 2)), indices=[0], updates=ones(1, 2, dtype=np.float64)),
        "DType of scatter resource and updates does not match",
    ),
    (segments([1, 0, 2]), "segment ids are not increasing"),
    (segments([-1, 0, 2]), "Segment id -1 out of range [0, 3), possibly because 'segment_ids' input is not sorted."),
    (segments([0, 1]), "segment_ids should be the same size as dimension 0 of input"),
    (segments([0], ()), "input must be at least rank 1"),
    (
        lazily("UnsortedSegmentSum", data=ones(3, 2), segment_ids=[0, 1, 5], num_segments=3),
        "segment_ids[2] = 5 is out of range [0, 3)",
    ),
    # Mathematics.
    (
        lazily("AddN", inputs=[ones(2), ones(3)]),
        "of type AddN must have the same size and shape.  Input 0: [2] != input",
    ),
    (lazily("AddN", inputs=[ones(2), ones(3)]), "Inputs to operation AddN of type AddN"),
    (lazily("ReluGrad", gradients=ones(3), features=ones(2)), "Inputs to operation ReluGrad of type ReluGrad"),
    (lazily("Select", condition=[True, False], x=ones(3), y=ones(3)), "Inputs to operation Select of type Select"),
    (lazily("MatMul", a=ones(2, 3), b=ones(4, 3)), "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,3]"),
    # Random state and optimizers.
    (skip(algorithm=[1]), "input 1 (0-based) must have shape [], not [1]"),
    (skip(delta=[1]), "input 2 (0-based) must have shape [], not [1]"),
    (skip(algorithm=9), "Unsupported algorithm id: 9"),
    (skip(algorithm=2), "Non-XLA devices don't support the ThreeFry algorithm."),
    (skip(state=(1, 2)), "the size of state must be at least 3; got 2"),
    (skip(state=(1.0, 2.0, 3.0)), "dtype of RNG state variable must be int64, not float"),
    (
        slots("ResourceApplyMomentum", accum=Var(ones(2)), lr=0.1, momentum=0.1),
        "var and accum do not have the same shape[3] [2]",
    ),
    (slots("ResourceApplyAdagrad", accum=Var(ones(3)), lr=[0.1]), "lr is not a scalar: [1]"),
    (
        slots("ResourceApplyAdagrad", accum=Var(ones(3)), lr=0.1, grad=ones(2)),
        "var and grad do not have the same shape[3] [2]",
    ),
    # Convolutions and pooling: what the CPU says with oneDNN and without.
    (conv(f=(3, 3, 4, 0)), "filter must not have zero elements (i.e. all dimensions must be non-zero)"),
    (conv("Conv", f=(0, 3, 4, 6)), "filter must not have zero elements (i.e. all dimensions must be non-zero)"),
    (conv3d(f=(3, 3, 3, 0, 6)), "filter must not have zero elements (i.e. all dimensions must be non-zero)"),
    (conv("DepthwiseConv2dNative", f=(3, 0, 4, 2)), "filter must not have zero elements"),
    (
        conv(strides=(2, 1, 1, 1)),
        "Current implementation does not yet support strides in the batch and depth dimensions",
    ),
    (conv(dilations=[1, 0, 1, 1]), "Dilated rates should be larger than 0"),
    (
        pool(ksize=(1, 2, 2, 3), strides=(1, 1, 1, 3)),
        "MaxPooling supports exactly one of pooling across depth or pooling",
    ),
    (pool(ksize=(1, 1, 1, 2), strides=(1, 1, 1, 2)), "requires the depth window to evenly divide the input depth"),
    (pool(ksize=(1, 1, 1, 3), strides=(1, 1, 1, 1)), "requires the depth window to equal the depth stride"),
    (pool(ksize=(2, 2, 2, 1)), "Pooling is not yet supported on the batch dimension."),
    (pool(ksize=(1, 0, 2, 1)), "Sliding window ksize must be positive. The specified or inferred ksize is: 1,0,2,1"),
    (pool(strides=(1, 0, 2, 1)), "Stride must be > 0, but got 0"),
    (pool("AvgPool", strides=(1, 0, 2, 1)), "Stride must be > 0, but got 0"),
    (pool("MaxPoolV2", ksize=(1, 2, 2)), "Sliding window ksize field must specify 4 dimensions"),
    (pool("MaxPoolV2", strides=(1, 2, 2)), "Sliding window stride field must specify 4 dimensions"),
    (padded_pool(3, 3, 0, 0), "Top padding 3 needs to be smaller than the window size 2"),
    (padded_pool(0, 2, 0, 0), "Bottom padding 2 needs to be smaller than the window size 2"),
    (padded_pool(0, 0, 3, 0), "Left padding 3 needs to be smaller than the window size 2"),
    (padded_pool(0, 0, 0, 2), "Right padding 2 needs to be smaller than the window size 2"),
    (pool3d(ksize=(1, 2, 2, 2, 3)), "Pooling is not yet supported on the depth dimension."),
    (pool3d(ksize=(1, 0, 1, 1, 1)), "Sliding window ksize field must have non-negative dimensions"),
    (pool3d(strides=(1, 0, 1, 1, 1)), "Stride must be > 0, but got 0"),
    (pool_grad(y=(2, 4, 4)), "tensor_out must be 4-dimensional"),
    (pool_grad(dy=(2, 4, 4)), "out_backprop must be 4-dimensional"),
    (pool_grad(ksize=(1, 2, 2, 3)), "MaxPoolingGrad is not yet supported on the depth dimension."),
]


#: Words of oneDNN's kernels. TensorFlow's other kernels accept such filters.
OF_ONEDNN = "filter must not have zero elements"
#: It uses oneDNN on processors with one of these.
FEATURES = {"avx512_vnni", "avx_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"}
USES_ONEDNN = not FEATURES.isdisjoint(pathlib.Path("/proc/cpuinfo").read_text().split())


def error_of(call, device):
    with hard_placement(), tf.device(device), pytest.raises(tf.errors.OpError) as error:
        call()
    return error.value


@pytest.mark.parametrize(("call", "phrase"), CALLS, ids=[phrase[:50] for _, phrase in CALLS])
def test_errors_read_as_on_the_cpu(xpu_device, call, phrase):
    got = error_of(call, xpu_device)
    assert phrase in got.message
    if phrase.startswith(OF_ONEDNN) and not USES_ONEDNN:
        assert type(got) is tf.errors.InvalidArgumentError
        return
    want = error_of(call, "/cpu:0")
    assert phrase in want.message, "the CPU says otherwise"
    assert type(got) is type(want)
