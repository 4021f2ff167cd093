"""The computations of ``selftest`` for each family of ops: a table of functions, run on the device and on the CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorflow_xpu._worker import TaskError


class Arrays(NamedTuple):
    """The arguments of the ops; functions take them as arguments, too, so that no optimizer computes with them."""

    x: Any
    square: Any
    positive: Any
    definite: Any
    image: Any
    filters: Any
    seed: Any

    @classmethod
    def make(cls) -> Arrays:
        """The same on every device."""
        rng = np.random.default_rng(7)
        square = rng.standard_normal((8, 8)).astype(np.float32)
        return cls(
            x=rng.standard_normal((6, 8)).astype(np.float32),
            square=square,
            positive=(rng.random((6, 8)) + 0.1).astype(np.float32),
            definite=square @ square.T + 8 * np.eye(8, dtype=np.float32),
            image=rng.random((2, 9, 10, 4)).astype(np.float32),
            filters=rng.standard_normal((3, 3, 4, 8)).astype(np.float32),
            seed=np.array([5, 6], np.int32),
        )


@dataclasses.dataclass(frozen=True)
class OpCheck:
    """Ops of one family. ``run(tf, arrays)`` returns tensors, which have to be as on the CPU."""

    ops: str  #: their names
    run: Callable[[Any, Arrays], Any]
    #: How far a result may be from the CPU's, relative to the largest one: sums of tens of rounded terms, in another
    #: order. 0: to the last bit, as for what is moved, compared or drawn by the same generator.
    tolerance: float = 2e-5


def _state(tf: Any, a: Arrays) -> Any:
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=a.x.shape)
    tf.raw_ops.AssignVariableOp(resource=handle, value=a.x)
    tf.raw_ops.ResourceApplyGradientDescent(var=handle, alpha=0.5, delta=a.x + 1)
    tf.raw_ops.AssignAddVariableOp(resource=handle, value=a.x)
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)


def _references(tf: Any, a: Arrays) -> Any:
    variable = tf.raw_ops.VariableV2(shape=a.x.shape, dtype=tf.float32)
    with tf.control_dependencies([tf.raw_ops.Assign(ref=variable, value=a.x)]):
        return tf.raw_ops.AssignAdd(ref=variable, value=a.x * 0.25)


def _tensor_arrays(tf: Any, a: Arrays) -> Any:
    array = tf.raw_ops.TensorArrayV3(size=3, dtype=tf.float32)
    with tf.device(None):
        index = tf.constant(1)
    flow = tf.raw_ops.TensorArrayScatterV3(handle=array.handle, indices=[0, 1, 2], value=a.x[:3], flow_in=array.flow)
    return tf.raw_ops.TensorArrayReadV3(handle=array.handle, index=index, flow_in=flow, dtype=tf.float32)


def _tensor_lists(tf: Any, a: Arrays) -> Any:
    items = tf.raw_ops.TensorListFromTensor(tensor=a.x, element_shape=[8])
    items = tf.raw_ops.TensorListSetItem(input_handle=items, index=2, item=a.x[0] * 2)
    return tf.raw_ops.TensorListStack(input_handle=items, element_shape=[8], element_dtype=tf.float32)


def _sparse(tf: Any, a: Arrays) -> Any:
    matrix = tf.sparse.SparseTensor([[0, 1], [2, 0], [2, 5]], [2.0, -1.0, 0.5], [4, 6])
    return tf.sparse.sparse_dense_matmul(matrix, a.x)


def _lists_of_data(tf: Any, a: Arrays) -> Any:
    return tf.raw_ops.OptionalGetValue(
        optional=tf.raw_ops.OptionalFromValue(components=[tf.identity(a.x)]),
        output_types=[tf.float32],
        output_shapes=[a.x.shape],
    )


def _window(tf: Any, a: Arrays) -> Any:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    return gen_xla_ops.xla_dynamic_update_slice(a.x, a.x[:2, :3] * 2, [3, 4])


OP_CHECKS: dict[str, OpCheck] = {
    "math": OpCheck("Mul, Tanh, AddV2, Sum", lambda tf, a: tf.reduce_sum(tf.tanh(a.x) * a.x + 1.5, 1)),
    "array": OpCheck(
        "Pad, Transpose, Tile", lambda tf, a: tf.tile(tf.transpose(tf.pad(a.x, [[1, 0], [2, 3]])), [2, 1]), 0
    ),
    "gather and scatter": OpCheck(
        "GatherV2, TensorScatterAdd",
        lambda tf, a: tf.tensor_scatter_nd_add(a.x, [[1], [3], [1]], tf.gather(a.x, [5, 0, 2])),
    ),
    "nn": OpCheck(
        "Conv2D, MatMul, Softmax",
        lambda tf, a: tf.nn.softmax(tf.reshape(tf.nn.conv2d(a.image, a.filters, 1, "SAME"), [-1, 8]) @ a.square),
    ),
    "nets": OpCheck("LRN", lambda tf, a: tf.nn.local_response_normalization(a.image, 1)),
    "quantize": OpCheck(
        "FakeQuantWithMinMaxArgs", lambda tf, a: tf.quantization.fake_quant_with_min_max_args(a.x, -2, 2)
    ),
    "random": OpCheck(
        "StatelessRandomUniformV2, StatelessRandomNormalV2",
        lambda tf, a: (tf.random.stateless_uniform([99], a.seed), tf.random.stateless_normal([99], a.seed)),
        1e-6,  # of the logarithms and sines of normal numbers
    ),
    "order": OpCheck("TopKV2, Cumsum", lambda tf, a: (tf.math.top_k(a.x, 3).values, tf.cumsum(a.x, 1))),
    "random and parameters": OpCheck(
        "StatelessMultinomial", lambda tf, a: tf.random.stateless_categorical(a.x, 20, a.seed, dtype=tf.int64), 0
    ),
    "special": OpCheck(
        "BesselI0e, Igamma", lambda tf, a: (tf.math.bessel_i0e(a.x), tf.math.igamma(a.positive, a.positive))
    ),
    "state": OpCheck("ResourceApplyGradientDescent, AssignAddVariableOp", _state),
    "references": OpCheck("VariableV2, Assign, AssignAdd", _references),
    "inplace": OpCheck(
        "DeepCopy, InplaceAdd", lambda tf, a: tf.raw_ops.InplaceAdd(x=tf.raw_ops.DeepCopy(x=a.x), i=[2], v=a.x[:1])
    ),
    "sparse": OpCheck("SparseTensorDenseMatMul", _sparse),
    "tensor and arrays": OpCheck("TensorArrayScatterV3, TensorArrayReadV3", _tensor_arrays, 0),
    "images": OpCheck(
        "ResizeBilinear, AdjustHue", lambda tf, a: tf.image.adjust_hue(tf.image.resize(a.image[..., :3], [7, 5]), 0.2)
    ),
    "linalg": OpCheck(
        "Cholesky, MatrixInverse", lambda tf, a: (tf.linalg.cholesky(a.definite), tf.linalg.inv(a.definite)), 2e-4
    ),
    "signal": OpCheck("RFFT", lambda tf, a: tf.signal.rfft(a.x)),
    "tensor and lists": OpCheck("TensorListSetItem, TensorListStack", _tensor_lists, 0),
    "xla": OpCheck("XlaDynamicUpdateSlice", _window, 0),
    "datasets and iterators": OpCheck("OptionalFromValue, OptionalGetValue", _lists_of_data, 0),
}
#: Families that are of TensorFlow 1: a session runs them.
_IN_SESSIONS = ("references", "tensor and arrays")


def compare(tf: Any, family: str, device: str) -> str:
    """Runs the ops of a family on a device and on the CPU, op by op and in a function, without leave to move them.

    Returns:
        The results that were compared.

    Raises:
        TaskError: if a result is another one, or is not on the device.
    """
    check = OP_CHECKS[family]
    if family in _IN_SESSIONS:
        expected, *found = (_in_session(tf, check, where) for where in ("/device:CPU:0", device))
        ways = ["in a session"]
    else:
        expected = _run(tf, check, "/device:CPU:0")
        found = [_run(tf, check, device), _run(tf, check, device, in_function=True)]
        ways = ["op by op", "in a function"]
    worst = 0.0
    for way, values in zip(ways, found):
        for value, right in zip(values, expected):
            worst = max(worst, _difference(f"{check.ops} {way}", value, right, check.tolerance))
    return f"{check.ops}: as on the CPU" + (f", within {worst:.1g}" if worst else ", to the last bit")


def _run(tf: Any, check: OpCheck, device: str, in_function: bool = False) -> list[Any]:
    def run(arrays: Arrays) -> Any:
        with tf.device(device):
            return check.run(tf, arrays)

    with tf.device(device):
        arrays = tf.nest.map_structure(tf.constant, Arrays.make())
    tf.config.set_soft_device_placement(False)
    try:
        results = tf.nest.flatten(tf.function(run, autograph=False)(arrays) if in_function else run(arrays))
    finally:
        tf.config.set_soft_device_placement(True)
    for result in results:
        if not result.backing_device.upper().endswith(device.upper()):
            raise TaskError(f"{check.ops} ran on {result.backing_device} instead of {device}")
    return [result.numpy() for result in results]


def _in_session(tf: Any, check: OpCheck, device: str) -> list[Any]:
    v1, arrays = tf.compat.v1, Arrays.make()
    with tf.Graph().as_default(), tf.device(device):
        given = Arrays(*(v1.placeholder(array.dtype, array.shape) for array in arrays))
        fetched = tf.nest.flatten(check.run(tf, given))
        with v1.Session(config=v1.ConfigProto(allow_soft_placement=False)) as session:
            return list(session.run(fetched, dict(zip(given, arrays))))


def _difference(what: str, found: Any, right: Any, tolerance: float) -> float:
    """The largest one, relative to the largest result."""
    if found.shape != right.shape or found.dtype != right.dtype:
        raise TaskError(
            f"{what}: {found.dtype}{list(found.shape)} instead of the CPU's {right.dtype}{list(right.shape)}"
        )
    scale = max(float(np.abs(right).max()), 1e-30)
    differences = np.abs(found.astype(np.complex128) - right) / scale
    worst = float(differences.max())
    if not worst <= tolerance:  # also for NaN
        place = np.unravel_index(int(np.argmax(np.where(np.isnan(differences), np.inf, differences))), found.shape)
        index = ", ".join(map(str, place))
        raise TaskError(
            f"{what}: element [{index}] is {found[place]} instead of the CPU's {right[place]}: wrong by {worst:.2g} of "
            f"the largest result, and {tolerance:g} may be"
        )
    return worst
