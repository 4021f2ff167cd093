"""Bad arguments of the neural network ops are errors that name the value and what was expected."""

import numpy as np
import pytest
import tensorflow as tf

from tests.sweep.runner import hard_placement

raw = tf.raw_ops


def ones(*shape):
    return np.ones(shape, np.float32)


def conv2d(x=(2, 5, 5, 4), f=(3, 3, 4, 6), strides=(1, 1, 1, 1), padding="SAME", **kwargs):
    return lambda: raw.Conv2D(input=ones(*x), filter=ones(*f), strides=list(strides), padding=padding, **kwargs)


def conv2d_input(sizes=(2, 5, 5, 4), f=(3, 3, 4, 6), dy=(2, 5, 5, 6)):
    return lambda: raw.Conv2DBackpropInput(
        input_sizes=sizes, filter=ones(*f), out_backprop=ones(*dy), strides=[1] * 4, padding="SAME"
    )


def max_pool(x=(2, 5, 5, 3), ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="VALID", **kwargs):
    return lambda: raw.MaxPool(input=ones(*x), ksize=list(ksize), strides=list(strides), padding=padding, **kwargs)


def max_pool_grad(x=(2, 4, 4, 3), y=(2, 2, 2, 3), dy=(2, 2, 2, 3)):
    return lambda: raw.MaxPoolGrad(
        orig_input=ones(*x),
        orig_output=ones(*y),
        grad=ones(*dy),
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="VALID",
    )


def batch_norm(x=(2, 3, 4, 5), scale=(5,), mean=(5,), **kwargs):
    return lambda: raw.FusedBatchNormV3(
        x=ones(*x), scale=ones(*scale), offset=ones(5), mean=ones(*mean), variance=ones(5), **kwargs
    )


BAD = [
    (lambda: raw.MatMul(a=ones(2, 3), b=ones(4, 5)), r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[4,5\]"),
    (lambda: raw.MatMul(a=ones(2, 3, 1), b=ones(4, 5)), r"different ndims: \[2,3,1\] vs. \[4,5\]"),
    (lambda: raw.MatMul(a=ones(2), b=ones(5)), "ndims must be == 2: 1"),
    (lambda: raw.BatchMatMul(x=ones(2, 2, 3), y=ones(3, 3, 5)), r"must be the same: \[2,2,3\] vs \[3,3,5\]"),
    (lambda: raw.BatchMatMulV2(x=ones(2, 2, 3), y=ones(3, 3, 5)), "must have compatible batch dimensions"),
    (lambda: raw.BatchMatMulV2(x=ones(3), y=ones(3, 5)), r"In\[0\] ndims must be >= 2: 1"),
    (lambda: raw.BatchMatMulV2(x=ones(2, 2, 3), y=ones(2, 4, 5)), r"Matrix size-incompatible: In\[0\]: \[2,2,3\]"),
    (lambda: raw.Einsum(inputs=[ones(2, 3), ones(4, 5)], equation="ab,bc->ac"), "Expected dimension 3 at axis 0"),
    (lambda: raw.Einsum(inputs=[ones(2, 3)], equation="ab"), "Expecting exactly one '->'"),
    (lambda: raw.Einsum(inputs=[ones(2, 3)], equation="ab,cd->ab"), "Expected 2 inputs but got: 1"),
    (lambda: raw.Einsum(inputs=[ones(2, 3)], equation="ab->abz"), "Label 'z'"),
    (lambda: raw.Einsum(inputs=[ones(2, 3)], equation="aa->a"), "Expected dimension 2 at axis 1"),
    (conv2d(f=(3, 3, 3, 6)), "input depth must be evenly divisible by filter depth: 4 vs 3"),
    (conv2d(f=(3, 3, 2, 5)), "output depth must be evenly divisible by number of groups: 5 vs 2"),
    (conv2d(x=(5, 5, 4)), r"input must be 4-dimensional: \[5,5,4\]"),
    (conv2d(f=(3, 3, 4)), r"filter must be 4-dimensional: \[3,3,4\]"),
    (conv2d(f=(3, 3, 0, 6)), "filter must not have zero elements"),
    (conv2d(x=(0, 5, 5, 4), f=(3, 0, 4, 6)), "filter must not have zero elements"),
    (conv2d(x=(1, 2, 2, 4), f=(5, 5, 4, 1), padding="VALID"), "Computed output size would be negative"),
    (conv2d(strides=(2, 1, 1, 1)), "does not yet support strides in the batch and depth dimensions"),
    (conv2d(strides=(1, 0, 1, 1)), "should be larger than 0"),
    (conv2d(strides=(1, 1, 1)), "must specify 4 dimensions"),
    (conv2d(dilations=[1, 0, 1, 1]), "should be larger than 0"),
    (conv2d(explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]), "must be empty if the padding attribute is not EXPLICIT"),
    (conv2d(padding="EXPLICIT", explicit_paddings=[0, 0, 1, 1]), "must contain 8 values, but got: 4"),
    (conv2d(padding="EXPLICIT", explicit_paddings=[0, 0, 1, -1, 0, 0, 0, 0]), "must be nonnegative"),
    (conv2d(padding="EXPLICIT", explicit_paddings=[1, 0, 0, 0, 0, 0, 0, 0]), "batch or depth dimensions"),
    (conv2d_input(sizes=[[2, 5, 5, 4]]), "input_sizes input must be 1-dim, not 2"),
    (conv2d_input(sizes=(2, 5, 5)), "to contain 4 values or 2 values, but got: 3"),
    (conv2d_input(sizes=(2, -5, 5, 4)), "Dimension -5 must be >= 0"),
    (conv2d_input(sizes=(3, 5, 5, 4)), "same batch size. Input batch: 3, outbackprop batch: 2"),
    (conv2d_input(dy=(2, 4, 5, 6)), "doesn't match computed: actual = 4, computed = 5"),
    (conv2d_input(dy=(2, 5, 5, 5)), "same out_depth"),
    (conv2d_input(dy=(2, 5, 5)), "out_backprop must be 4-dimensional"),
    (max_pool(x=(5, 5, 3)), "must be 4-dimensional"),
    (max_pool(ksize=(2, 2, 2, 1)), "not yet supported on the batch dimension"),
    (max_pool(ksize=(1, 2, 2, 3)), "across depth"),
    (max_pool(ksize=(1, 0, 2, 1)), "must be positive"),
    (max_pool(ksize=(1, 9, 9, 1)), "Computed output size would be negative"),
    (max_pool(padding="EXPLICIT", explicit_paddings=[0, 0, 3, 3, 0, 0, 0, 0]), "smaller than the window size 2"),
    (max_pool_grad(y=(2, 2, 3, 3)), r"Expected orig_output shape to be \[2,2,2,3\], but got \[2,2,3,3\]"),
    (max_pool_grad(dy=(2, 2, 3, 3)), r"Expected grad shape to be \[2,2,2,3\], but got \[2,2,3,3\]"),
    (batch_norm(x=(3, 4, 5)), r"input must be 4 or 5-dimensional\[3,4,5\]"),
    (batch_norm(scale=(4,)), "scale must have the same number of elements as the channels of x, got 4 and 5"),
    (batch_norm(mean=(0,), is_training=False), "When is_training=false, mean must have"),
    (batch_norm(mean=(0,), exponential_avg_factor=0.5), "When exponential_avg_factor != 1, mean must have"),
    (lambda: raw.Softmax(logits=np.float32(1)), "logits must have >= 1 dimension"),
    (lambda: raw.SoftmaxCrossEntropyWithLogits(features=ones(2, 3), labels=ones(4, 3)), "must be broadcastable"),
    (lambda: raw.SoftmaxCrossEntropyWithLogits(features=ones(3), labels=ones(3)), "2-dimensional"),
    (lambda: raw.SparseSoftmaxCrossEntropyWithLogits(features=ones(2, 3), labels=[1]), "same first dimension"),
    (lambda: raw.SparseSoftmaxCrossEntropyWithLogits(features=ones(2, 0), labels=[1, 1]), "at least one class"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m[:40] for _, m in BAD])
def test_bad_arguments_are_named(call, message):
    with (
        hard_placement(),
        tf.device("/xpu:0"),
        pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError), match=message),
    ):
        call()
