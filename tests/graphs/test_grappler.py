"""Ops that TensorFlow's own optimizers and rewrites put on the device behind the user's back, made to happen."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels, op_def_registry

from tests.support import placement

# Every op that TensorFlow 2.21 can put into a graph on a node that a device may hold, by the source that makes it. The
# sources are in tensorflow/core/grappler/optimizers/ and tensorflow/core/common_runtime/. With each are the types of
# the first type attribute for which it does so, where that is not every type with a kernel. ALL stands for an op
# without such an attribute.
ALL, FLOATS = (), (tf.float16, tf.bfloat16, tf.float32, tf.float64)
NUMBERS = (*FLOATS, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64)
ANY = (*NUMBERS, tf.bool, tf.complex64, tf.complex128)
SIGNED = (*FLOATS, tf.int8, tf.int16, tf.int32, tf.int64, tf.complex64, tf.complex128)
HASHED = (tf.int8, tf.int16, tf.int32, tf.int64)
EMITTED = {
    "arithmetic_optimizer.cc": {
        "Add": NUMBERS,  # sums, common factors
        "AddN": NUMBERS,
        "AddV2": NUMBERS,
        "BroadcastTo": ANY,
        "Cast": ANY,
        "ConcatV2": ANY,
        "Conj": (tf.complex64, tf.complex128),
        "ConjugateTranspose": (tf.complex64, tf.complex128),
        "Const": ANY,
        "Equal": ANY,  # of a negated comparison
        "ExpandDims": ANY,
        "Expm1": FLOATS,
        "GatherV2": ANY,
        "Greater": NUMBERS,
        "GreaterEqual": NUMBERS,
        "Identity": ANY,
        "Less": NUMBERS,
        "LessEqual": NUMBERS,
        "Log1p": FLOATS,
        "LogSoftmax": FLOATS,
        "Mul": NUMBERS,
        "NotEqual": ANY,
        "OnesLike": ANY,  # a power of zero
        "Reciprocal": FLOATS,
        "Reshape": ANY,
        "Rsqrt": FLOATS,
        "Slice": ANY,
        "Snapshot": ANY,
        "Split": ANY,
        "Sqrt": FLOATS,
        "Square": SIGNED,
        "SquaredDifference": SIGNED,
        "StridedSlice": ANY,
        "Sub": NUMBERS,
        "Tile": tuple(t for t in ANY if t != tf.uint16),  # of which the CPU has none either
    },
    "constant_folding.cc": {
        "BroadcastTo": ANY,
        "ConcatV2": ANY,
        "Const": ANY,
        "Fill": ANY,
        "Identity": ANY,
        "IdentityN": ALL,
        "LogicalNot": ALL,
        "Mul": NUMBERS,
        "Neg": SIGNED,
        "NoOp": ALL,
        "Pack": ANY,
        "PartitionedCall": ALL,
        "Reciprocal": FLOATS,
        "Reshape": ANY,
        "Snapshot": ANY,
        "Squeeze": ANY,
        "StatefulPartitionedCall": ALL,
        "Sub": NUMBERS,
        "ZerosLike": ANY,
    },
    "memory_optimizer.cc": {
        "Assign": NUMBERS,
        "AssignAdd": NUMBERS,
        "DestroyTemporaryVariable": NUMBERS,
        "NoOp": ALL,
        "TemporaryVariable": NUMBERS,
        "ZerosLike": NUMBERS,
    },
    # The ops that a batch normalisation in inference is taken apart into, and the fusions that are made on every
    # device.
    "remapper.cc": {
        "Add": (tf.float32,),
        "Mul": (tf.float32,),
        "Reshape": (tf.float32,),
        "Rsqrt": (tf.float32,),
        "Sub": (tf.float32,),
        "_FusedBatchNormEx": (tf.float16, tf.bfloat16, tf.float32),
        "_TensorToHashBucketFast": HASHED,
    },
    "shape_optimizer.cc": {"Size": ANY, "Const": ANY},
    "dependency_optimizer.cc": {"Identity": ANY, "NoOp": ALL},
    "debug_stripper.cc": {"Identity": ANY, "NoOp": ALL},
    "function_optimizer.cc": {"Identity": ANY, "IdentityN": ALL, "NoOp": ALL, "PartitionedCall": ALL},
    "loop_optimizer.cc": {"Const": ANY, "Enter": ANY, "Identity": ANY},
    "implementation_selector.cc": {"Const": ANY},
    "auto_mixed_precision.cc": {"Cast": FLOATS},
    "scoped_allocator_optimizer.cc": {
        "_ScopedAllocator": ALL,
        "_ScopedAllocatorConcat": ALL,
        "_ScopedAllocatorSplit": ALL,
        "Identity": ANY,
    },
    "parallel_concat_optimizer.cc": {
        "_ParallelConcatStart": ANY,
        "_ParallelConcatUpdate": ANY,
        "ExpandDims": ANY,
        "Identity": ANY,
    },
    "accumulate_n_optimizer.cc": {
        "Assign": NUMBERS,
        "AssignAdd": NUMBERS,
        "DestroyTemporaryVariable": NUMBERS,
        "Fill": NUMBERS,
        "TemporaryVariable": NUMBERS,
    },
    "lower_functional_ops.cc": {
        **dict.fromkeys(("Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"), ANY),
        "LoopCond": ALL,
        "NoOp": ALL,
        "_SwitchN": ANY,
    },
    "graph_partition.cc, memory_types.cc": {
        **dict.fromkeys(("ControlTrigger", "_HostRecv", "_HostSend", "_Recv", "_Send"), ALL),
    },
    "function runtime": {"_Arg": ANY, "_Retval": ANY, "_DeviceArg": ALL, "_DeviceRetval": ALL},
}

# They make these only for nodes that they know to be on another device, or when an option asks for it by name.
NEVER_ON_AN_XPU = {
    "_FusedBatchNormGradEx": "remapper.cc: CPU or GPU",
    "_FusedConv2D": "remapper.cc: CPU or GPU",
    "_FusedConv3D": "remapper.cc: CPU",
    "_FusedDepthwiseConv2dNative": "remapper.cc: CPU",
    "_FusedMatMul": "remapper.cc: CPU or GPU",
    "_MklFusedBatchMatMulV2": "remapper.cc: CPU",
    "_MklFusedInstanceNorm": "remapper.cc: CPU",
    "_MklFusedMish": "remapper.cc: CPU",
    "_MklLayerNorm": "remapper.cc: CPU",
    "_MklSwish": "remapper.cc: CPU",
    "_UnaryOpsComposition": "arithmetic_optimizer.cc: CPU",
}


def kernels_of(op):
    """The constraints of the kernels that an XPU uses for `op`."""
    return [
        {c.name: {tf.as_dtype(t) for t in c.allowed_values.list.type} for c in kernel.constraint}
        for kernel in kernels.get_registered_kernels_for_op(op).kernel
        if kernel.device_type in ("XPU", "DEFAULT")
    ]


def missing(op, dtypes):
    """Those of the types of the op's first type attribute that have no kernel; [None] if there is none at all."""
    registered = kernels_of(op)
    attribute = next((a for a in op_def_registry.get(op).attr if a.type == "type"), None)
    if not dtypes or attribute is None:
        return [] if registered else [None]
    allowed = {tf.as_dtype(t) for t in attribute.allowed_values.list.type} or set(dtypes)
    return [t for t in dtypes if t in allowed and not any(t in k.get(attribute.name, {t}) for k in registered)]


@pytest.mark.parametrize("source", EMITTED)
def test_what_the_optimizers_make_has_kernels(source, xpu_device):
    lacking = {op: missing(op, dtypes) for op, dtypes in EMITTED[source].items()}
    assert {op: [t and t.name for t in types] for op, types in lacking.items() if types} == {}


def test_a_missing_kernel_is_noticed(xpu_device):
    assert missing("_FusedConv2D", (tf.float32,)) == [tf.float32]
    assert missing("Exp", (tf.float32, tf.int8)) == []  # an Exp of int8 there is not
    assert missing("Assign", (tf.float32, tf.string)) == [tf.string]
    assert missing("AudioSpectrogram", ALL) == [None]


class Ran:
    """The nodes that TensorFlow executed: filled when the block ends."""

    def __init__(self):
        self.ops = {}

    def on(self, op):
        """The device types that ran the op."""
        return self.ops.get(op, set())


@contextlib.contextmanager
def watched():
    ran = Ran()
    nodes = []
    try:
        with placement.record_nodes() as nodes:
            yield ran
    finally:
        for node in placement.with_members(nodes):
            device = node.device.rsplit("device:", 1)[-1].split(":")[0]
            ran.ops.setdefault(node.op, set()).add(device)


def on_both(function, *arguments, tolerance=1e-6):
    """Runs function(*arguments) in a graph on the XPU and on the CPU, compares, and says what ran on the XPU."""
    results = {}
    for device in ("/cpu:0", "/xpu:0"):

        @tf.function(autograph=False)
        def run(*args, device=device):
            with tf.device(device):
                return function(*args)

        with tf.device(device):
            args = [tf.identity(a) for a in arguments]
        with watched() as ran:
            results[device] = [t.numpy() for t in tf.nest.flatten(run(*args))]
    for got, want in zip(results["/xpu:0"], results["/cpu:0"], strict=True):
        if want.dtype == object or want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return ran


# A sum is taken apart when the graph is believed to need more than four fifths of 256 MB.
MANY = 256 * 2**20 // 4


@pytest.mark.of_hooks("graphs")
def test_a_sum_as_updates_of_a_temporary_variable(xpu_device):
    """Training ResNet50V2 came to this, and every token of a larger language model: the sum is one op again."""

    def total(x):
        return tf.reduce_max(tf.add_n([tf.fill([MANY // 4], float(i) + x) for i in range(4)]))

    ran = on_both(total, tf.constant(1.0))
    assert ran.on("AddN") == {"XPU"}
    assert not {"TemporaryVariable", "DestroyTemporaryVariable", "Assign", "AssignAdd"} & set(ran.ops)


@pytest.mark.of_hooks("graphs")
def test_a_sum_as_updates_in_a_loop(xpu_device):
    """Beside a sum that waits for something else, and one that is read after it."""

    def step(i, state):
        with tf.control_dependencies([tf.reduce_max(state)]):
            total = tf.add_n([tf.fill([MANY // 4], float(i) + state) for i in range(4)])
        return i + 1, tf.reduce_max(total) * 0.125 + tf.reduce_min(total)

    def total(x):
        return tf.while_loop(lambda i, state: i < 3, step, (0, x))[1]

    ran = on_both(total, tf.constant(1.0))
    assert ran.on("AddN") == {"XPU"}
    assert "TemporaryVariable" not in ran.ops


@pytest.mark.parametrize("dtype", [tf.float32, tf.int32, tf.int64, tf.bool, tf.string])
def test_parallel_stack(dtype, xpu_device):
    def stacked(*rows):
        return tf.parallel_stack(rows)

    rows = [tf.constant([i, i + 1, 7 * i]) for i in range(4)]
    rows = [tf.strings.as_string(r) if dtype == tf.string else tf.cast(r, dtype) for r in rows]
    ran = on_both(stacked, *rows)
    assert ran.on("_ParallelConcatUpdate") == ({"CPU"} if dtype == tf.string else {"XPU"})


@pytest.mark.parametrize("dtype", [*HASHED, tf.uint8, tf.uint64])
def test_hash_of_a_number_as_string(dtype, xpu_device):
    """Keras's Hashing layer and FeatureSpace do this."""

    def hashed(x):
        return tf.strings.to_hash_bucket_fast(tf.strings.as_string(x * 2), 1000)

    ran = on_both(hashed, tf.cast(tf.range(50), dtype))
    assert ("_TensorToHashBucketFast" in ran.ops) == (dtype in HASHED)


X = tf.constant(np.random.default_rng(0).uniform(0.5, 2.0, (4, 6)).astype("float32"))
Y = tf.constant(np.random.default_rng(1).uniform(0.5, 2.0, (4, 6)).astype("float32"))
ROW = tf.constant(np.random.default_rng(2).uniform(0.5, 2.0, (1, 6)).astype("float32"))

# name: (what the user wrote, arguments, the op that TensorFlow makes of it)
REWRITES = {
    "square": (lambda x: x * x + 1.0, (X,), "Square"),
    "squared difference": (lambda x, y: tf.square(x - y) + 1.0, (X, Y), "SquaredDifference"),
    "sum": (lambda x, y: (x + y) + (x * y + y), (X, Y), "AddN"),
    "power 2": (lambda x: tf.pow(x, 2.0) + 1.0, (X,), "Square"),
    "power 0.5": (lambda x: tf.pow(x, 0.5) + 1.0, (X,), "Sqrt"),
    "power -0.5": (lambda x: tf.pow(x, -0.5) + 1.0, (X,), "Rsqrt"),
    "power -1": (lambda x: tf.pow(x, -1.0) + 1.0, (X,), "Reciprocal"),
    "log1p": (lambda x: tf.math.log(1.0 + x) * 2.0, (X,), "Log1p"),
    "expm1": (lambda x: (tf.exp(x) - 1.0) * 2.0, (X,), "Expm1"),
    "log softmax": (lambda x: tf.math.log(tf.nn.softmax(x)) * 2.0, (X,), "LogSoftmax"),
    "logical not": (lambda x, y: tf.where(tf.logical_not(x < y), x, y), (X, Y), "GreaterEqual"),
    "negation": (lambda x, y: tf.tanh(x + (-y)), (X, Y), "Sub"),
    "division by a constant": (lambda x: tf.tanh(x / tf.constant(4.0)), (X,), "Mul"),
    "zero minus": (lambda x: tf.tanh(tf.zeros([4, 6]) - x), (X,), "Neg"),
    "concatenated activations": (lambda x, y: tf.concat([tf.exp(x), tf.exp(y)], 0) * 2.0, (X, Y), "Exp"),
    "a common factor": (lambda x, y: x * y + x * ROW * 1.0, (X, Y), None),
    "stacked slices": (lambda x: tf.unstack(tf.stack([x, x + 1.0]))[1] * 2.0, (X,), None),
    "size of a shape": (lambda x: tf.reduce_prod(tf.shape(x)) + 1, (X,), None),
    "zero times": (lambda x: tf.tanh(x * tf.zeros([4, 6])) + 1.0, (X,), None),
    "one times": (lambda x: tf.tanh(x * tf.ones([4, 6])) + 1.0, (X,), None),
    "accumulated": (lambda x, y: tf.math.accumulate_n([x, y, x]) * 1.0, (X, Y), "AddN"),
    "transposed twice": (lambda x: tf.tanh(tf.transpose(tf.transpose(x))) + 1.0, (X,), None),
    "transposed into a product": (lambda x, y: tf.tanh(tf.transpose(x) @ y) + 1.0, (X, Y), None),
    "cast and sliced": (lambda x: tf.cast(x, tf.float64)[1:3] * 2.0, (X,), None),
    "a loop": (lambda x: tf.while_loop(lambda i, _: i < 4, lambda i, v: (i + 1, v * 1.1), (0, x))[1], (X,), None),
    "a branch": (lambda x: tf.cond(tf.reduce_sum(x) > 1.0, lambda: x * 2.0, lambda: x - 1.0), (X,), None),
    "a switch": (lambda x: tf.switch_case(tf.constant(1), [lambda: x, lambda: x * 3.0, lambda: x - 1.0]), (X,), None),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewrites(name, xpu_device):
    function, arguments, made = REWRITES[name]
    ran = on_both(function, *arguments, tolerance=1e-5)
    assert made is None or ran.on(made) == {"XPU"}


def test_batch_normalisation_in_inference(xpu_device):
    """The remapper takes it apart."""
    x = tf.random.stateless_normal([2, 4, 4, 3], [1, 2])
    mean, offset = tf.constant([0.1, 0.2, 0.3]), tf.constant([1.0, 2.0, 3.0])

    def normalised(x, scale, offset, mean, variance):
        return tf.compat.v1.nn.fused_batch_norm(x, scale, offset, mean, variance, is_training=False)[0] * 1.0

    on_both(normalised, x, offset, offset, mean, offset, tolerance=1e-5)


def test_batch_normalisation_and_relu(xpu_device):
    """One op, where TensorFlow uses oneDNN: on machines with AVX-512, or if told to."""
    x = tf.random.stateless_normal([2, 4, 4, 4], [1, 2])
    scale, offset = tf.constant([0.1, 0.2, 0.3, 0.4]), tf.constant([0.1, 0.0, -0.1, 0.2])

    def normalised(x, scale, offset):
        return tf.nn.relu(tf.compat.v1.nn.fused_batch_norm(x, scale, offset)[0]) * 1.0

    ran = on_both(normalised, x, scale, offset, tolerance=1e-5)
    assert ran.on("_FusedBatchNormEx") | ran.on("FusedBatchNormV3") == {"XPU"}


def test_fusions_for_other_devices_are_not_made(xpu_device):
    """A convolution, a product, a normalisation, each with an activation, and the activations of oneDNN."""
    image, filters = tf.random.stateless_normal([2, 8, 8, 3], [1, 2]), tf.random.stateless_normal([3, 3, 3, 4], [3, 4])
    weights, bias = tf.random.stateless_normal([6, 4], [5, 6]), tf.constant([0.1, 0.2, 0.3, 0.4])

    def network(x):
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, filters, 1, "SAME"), bias))
        z = tf.nn.relu(tf.nn.bias_add(x @ weights, bias))
        n = tf.nn.relu(tf.compat.v1.nn.fused_batch_norm(y, bias, bias)[0])
        mish = z * tf.tanh(tf.math.softplus(z))
        return y, z * tf.sigmoid(z), n, mish, tf.sqrt(tf.exp(tf.tanh(z)))

    ran = on_both(network, X, tolerance=1e-4)
    assert {op for op in NEVER_ON_AN_XPU if "XPU" in ran.on(op)} == set()
    assert ran.on("Conv2D") == ran.on("MatMul") == {"XPU"}
