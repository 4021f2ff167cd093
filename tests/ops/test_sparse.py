"""Sparse tensors on the XPU: bad input in TensorFlow's words, gradients, what programs do with tf.sparse."""

import numpy as np
import pytest
import tensorflow as tf

from tests.support import placement
from tests.sweep.runner import hard_placement

raw = tf.raw_ops


def i64(*values):
    return np.array(values, np.int64)


def f32(*values):
    return np.array(values, np.float32)


NOTHING = np.zeros((0, 2), np.int64)

# Good arguments of each op; a case of bad ones changes some of them.
GOOD = {
    "SparseTensorDenseMatMul": {
        "a_indices": i64([0, 1], [2, 0]),
        "a_values": f32(1, 2),
        "a_shape": i64(3, 2),
        "b": np.ones((2, 3), np.float32),
    },
    "SparseReorder": {"input_indices": i64([2, 0], [0, 1]), "input_values": f32(1, 2), "input_shape": i64(3, 2)},
    "SparseReshape": {"input_indices": i64([0, 1], [2, 0]), "input_shape": i64(3, 2), "new_shape": i64(2, 3)},
    "SparseConcat": {
        "indices": [i64([0, 1], [2, 0]), i64([1, 1])],
        "values": [f32(1, 2), f32(3)],
        "shapes": [i64(3, 2), i64(3, 4)],
        "concat_dim": 1,
    },
    "SparseSplit": {
        "split_dim": np.int64(1),
        "indices": i64([0, 1], [2, 0], [1, 3], [1, 4]),
        "values": f32(1, 2, 3, 4),
        "shape": i64(3, 5),
        "num_split": 2,
    },
    "SparseSlice": {
        "indices": i64([0, 1], [2, 0], [1, 3], [1, 4]),
        "values": f32(1, 2, 3, 4),
        "shape": i64(3, 5),
        "start": i64(0, 1),
        "size": i64(2, 3),
    },
    "SparseSliceGrad": {
        "backprop_val_grad": f32(10, 20),
        "input_indices": i64([0, 1], [1, 3], [1, 4], [2, 0]),
        "input_start": i64(0, 1),
        "output_indices": i64([0, 0], [1, 2]),
    },
    "SparseFillEmptyRows": {
        "indices": i64([0, 1], [3, 1], [1, 4], [1, 0]),
        "values": f32(1, 2, 3, 4),
        "dense_shape": i64(5, 5),
        "default_value": np.float32(9),
    },
    "RaggedFillEmptyRows": {
        "value_rowids": i64(0, 3, 1, 1),
        "values": f32(1, 2, 3, 4),
        "nrows": np.int64(5),
        "default_value": np.float32(9),
    },
    "SparseFillEmptyRowsGrad": {"reverse_index_map": i64(0, 3, 1), "grad_values": f32(1, 2, 4, 8, 16)},
    "RaggedFillEmptyRowsGrad": {"reverse_index_map": i64(0, 3, 1), "grad_values": f32(1, 2, 4, 8, 16)},
}

CHANGES = {
    "SparseTensorDenseMatMul": [
        {"a_indices": i64([0, 5], [0, 1])},
        {"a_indices": i64([7, 1], [0, 1])},
        {"a_indices": i64([0, 1], [-1, 1])},
        {"a_indices": i64([7, -3], [0, 1])},
        {"a_indices": i64([7, 1], [0, 1]), "adjoint_a": True, "b": np.ones((3, 2), np.float32)},
        {"a_indices": i64([0, 7], [0, 1]), "adjoint_a": True, "b": np.ones((3, 2), np.float32)},
        {"a_shape": i64([3, 2])},
        {"a_shape": i64(3, 2, 1)},
        {"b": np.ones((3, 3), np.float32)},
        {"b": np.ones(3, np.float32)},
        {"a_values": f32([1, 2])},
        {"a_values": f32(1, 2, 3)},
        {"a_indices": i64(0, 1)},
        {"a_indices": i64([0, 1, 1], [0, 1, 1])},
    ],
    "SparseReorder": [
        {"input_indices": i64(0, 1)},
        {"input_values": f32([1, 2])},
        {"input_shape": i64([3, 2])},
        {"input_values": f32(1, 2, 3)},
        {"input_shape": i64(3, 2, 1)},
    ],
    "SparseReshape": [
        {"new_shape": i64(-1, -1)},
        {"new_shape": i64(4)},
        {"new_shape": i64(4, -1)},
        {"new_shape": i64(-2, 3)},
        {"new_shape": i64([3, 2])},
        {"new_shape": np.zeros(0, np.int64)},
        {"input_indices": i64(0, 1)},
        {"input_shape": i64([3, 2])},
        {"input_shape": i64(3, 2, 1)},
        {"input_shape": i64(-3, 2)},
        {"input_shape": i64(0, 2), "new_shape": i64(0, 5)},
        {"input_shape": i64(0, 2), "new_shape": i64(0, -1), "input_indices": NOTHING},
        {"input_shape": i64(2**40, 2**40), "new_shape": i64(2**40, 2**40)},
    ],
    "SparseConcat": [
        {"concat_dim": 0},
        {"concat_dim": 5},
        {"concat_dim": -3},
        {"indices": [i64([0, 1], [2, 0]), i64(1)]},
        {"indices": [i64([0, 1], [2, 0]), i64([1, 1, 1])]},
        {"values": [f32(1, 2), f32([3])]},
        {"values": [f32(1, 2), f32(3, 4)]},
        {"shapes": [i64(3, 2), i64([3, 4])]},
        {"shapes": [i64(3, 2), i64(3, 4, 5)]},
        {"shapes": [i64(3, 2), i64(3, -4)]},
        {"shapes": [i64(3, 2), i64(3, 2**63 - 2)]},
        {"shapes": [i64(3, 2, 5), i64(3, 2, 5)]},
    ],
    "SparseSplit": [
        {"split_dim": np.int64(2)},
        {"split_dim": np.int64(-3)},
        {"split_dim": i64(1)},
        {"num_split": 6},
        {"indices": i64([0, 9], [2, 0], [1, 3], [1, 4])},
        {"indices": i64([0, 1], [7, 0], [1, 3], [1, 4])},
        {"indices": i64(1)},
        {"values": f32(1)},
        {"values": f32([1])},
        {"shape": i64([3, 5])},
        {"shape": i64(3, 5, 1)},
        {"shape": i64(2**40, 2**40)},
    ],
    "SparseSlice": [
        {"start": i64(0)},
        {"start": i64([0, 1])},
        {"size": i64(0)},
        {"size": i64([1, 2])},
        {"size": i64(-1, 1)},
        {"shape": i64([3, 5])},
        {"shape": i64(3, 5, 1)},
        {"shape": i64(-3, 5)},
        {"shape": i64(2**40, 2**40)},
        {"indices": i64(1)},
        {"indices": i64(*[[0, 1, 1]] * 4)},
        {"values": f32([1])},
        {"values": f32(1)},
    ],
    "SparseSliceGrad": [
        {"backprop_val_grad": f32(1)},
        {"backprop_val_grad": f32([1])},
        {"input_indices": i64(1)},
        {"input_indices": NOTHING},
        {"output_indices": i64(1)},
        {"output_indices": i64([0, 0], [1, 1])},
        {"output_indices": i64([0, 0, 1], [1, 1, 1])},
        {"input_start": i64(1)},
        {"input_start": i64([1, 1])},
    ],
    "SparseFillEmptyRows": [
        {"indices": i64(1)},
        {"indices": i64([0, 1], [-3, 1], [1, 4], [1, 0])},
        {"indices": np.zeros((4, 0), np.int64), "dense_shape": np.zeros(0, np.int64)},
        {"values": f32([1])},
        {"values": f32(1)},
        {"dense_shape": i64([1])},
        {"dense_shape": i64(5)},
        {"dense_shape": i64(2, 5)},
        {"dense_shape": i64(0, 5)},
        {"dense_shape": i64(-1, 5)},
        {"dense_shape": np.zeros(0, np.int64)},
        {"default_value": f32(1)},
    ],
    "RaggedFillEmptyRows": [
        {"value_rowids": i64([1])},
        {"value_rowids": i64(0, -3, 1, 1)},
        {"values": f32([1])},
        {"values": f32(1)},
        {"nrows": i64(1)},
        {"nrows": np.int64(2)},
        {"nrows": np.int64(0)},
        {"nrows": np.int64(-1)},
        {"default_value": f32(1)},
    ],
    "SparseFillEmptyRowsGrad": [
        {"reverse_index_map": i64([0])},
        {"reverse_index_map": i64(0, 5)},
        {"reverse_index_map": i64(-1, 5)},
        {"grad_values": f32([0])},
        {"grad_values": np.zeros(0, np.float32)},
    ],
    "RaggedFillEmptyRowsGrad": [{"reverse_index_map": i64([0])}, {"reverse_index_map": i64(0, 5)}],
}
BAD = [(op, change) for op, changes in CHANGES.items() for change in changes]


def words(error):
    """The words of an error, without the node and the op that TensorFlow adds."""
    return error.message.split("}} ")[-1].split(" [Op:")[0]


def outcome(device, op, arguments):
    with tf.device(device), hard_placement():
        return tf.nest.flatten(getattr(raw, op)(**arguments))


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input(number, xpu_device):
    """The CPU's exception with its words."""
    op, change = BAD[number]
    errors = []
    for device in "/cpu:0", xpu_device:
        with pytest.raises(tf.errors.OpError) as error:
            outcome(device, op, {**GOOD[op], **change})
        errors.append((type(error.value), words(error.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("op", sorted(GOOD))
def test_good_input(op, xpu_device):
    """The good input that the bad ones are changes of."""
    for x, y in zip(outcome(xpu_device, op, GOOD[op]), outcome("/cpu:0", op, GOOD[op]), strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_a_negative_shape(xpu_device):
    """Ends the process on the CPU."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape dimensions to be non-negative, got -3"):
        outcome(xpu_device, "SparseTensorDenseMatMul", {**GOOD["SparseTensorDenseMatMul"], "a_shape": i64(-3, 2)})


IDS = tf.sparse.SparseTensor(i64([0, 0], [0, 2], [1, 0], [3, 1]), i64(1, 3, 0, 1), i64(4, 3))
MATRIX = tf.sparse.SparseTensor(i64([0, 0], [0, 2], [1, 0], [3, 1]), f32(1, 3, 5, -1), i64(4, 3))
TABLE = np.linspace(-1, 2, 20, dtype=np.float32).reshape(5, 4)


def with_gradients(f, *arguments):
    """The results of f for the arguments, and the gradients of the sum of its squares."""
    arguments = [tf.identity(a) for a in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        y = f(*arguments)
        loss = tf.add_n([tf.reduce_sum(v * v) for v in tf.nest.flatten(y)])
    return [y, *map(tf.convert_to_tensor, tape.gradient(loss, arguments))]


def of_values(f):
    """The same for a function of sparse tensors, of their values."""
    return lambda v, *rest: f(tf.sparse.SparseTensor(MATRIX.indices, v, MATRIX.dense_shape), *rest)


def looked_up(weights, combiner):
    return lambda: with_gradients(lambda t: tf.nn.embedding_lookup_sparse(t, IDS, weights, combiner), TABLE)


PROGRAMS = {
    "product": lambda: with_gradients(of_values(tf.sparse.sparse_dense_matmul), MATRIX.values, TABLE[:3]),
    "product of adjoints": lambda: with_gradients(
        of_values(lambda s, d: tf.sparse.sparse_dense_matmul(s, d, adjoint_a=True, adjoint_b=True)),
        MATRIX.values,
        TABLE,
    ),
    "reorder": lambda: with_gradients(
        of_values(lambda s: tf.sparse.reorder(tf.sparse.transpose(s)).values), MATRIX.values
    ),
    "concat": lambda: [*tf.nest.flatten(tf.sparse.concat(1, [MATRIX, MATRIX]), expand_composites=True)],
    "slice": lambda: with_gradients(of_values(lambda s: tf.sparse.slice(s, [0, 1], [4, 2]).values), MATRIX.values),
    "split": lambda: [p.values for p in tf.sparse.split(MATRIX, 2, axis=0)],
    "reshape": lambda: [tf.sparse.reshape(MATRIX, [2, -1]).indices],
    "fill_empty_rows": lambda: with_gradients(
        lambda v, d: of_values(lambda s: tf.sparse.fill_empty_rows(s, d)[0].values)(v), MATRIX.values, np.float32(7)
    ),
    "weighted lookup": looked_up(tf.sparse.map_values(tf.abs, MATRIX), "sqrtn"),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_programs(name, xpu_device):
    """The public functions, with gradients: nothing is left to the CPU."""
    results = []
    for device in "/cpu:0", xpu_device:
        with tf.device(device), placement.record() as places:
            results.append(tf.function(PROGRAMS[name])())
    assert placement.compute_ops_on(places, "CPU") == set()
    for want, got in zip(*map(tf.nest.flatten, results), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


@pytest.mark.of_hooks("graphs", "tensor_lists")  # which keep lists on the XPU
def test_lists_of_masks(xpu_device):
    """A layer with a mask reads these in each step of its loop."""

    def f(x, mask):
        n = tf.shape(x)[0]
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = tf.TensorArray(tf.float32, n).unstack(x)
            masks = tf.TensorArray(tf.bool, n).unstack(mask)
            kept = tf.zeros([3])
            for i in tf.range(n):
                kept = tf.where(masks.read(i), kept * 0.5 + rows.read(i), kept)
        return tape.gradient(kept, x), kept

    of_any_length = [tf.TensorSpec([None, 3]), tf.TensorSpec([None, 3], tf.bool)]
    x, mask = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(12).reshape(4, 3) % 5 < 2
    with tf.device(xpu_device), placement.record() as places:
        got = tf.function(f, of_any_length)(tf.constant(x), tf.constant(mask))
    assert placement.compute_ops_on(places, "CPU") == set()
    with tf.device("/cpu:0"):
        want = tf.function(f, of_any_length)(tf.constant(x), tf.constant(mask))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
