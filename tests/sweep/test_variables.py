"""Every op that reads or changes a variable has a kernel for each type of which variables are on an XPU.

Such an op runs where its variable is: soft placement cannot move it to the CPU, and a program would end with
NotFoundError.
"""

import re

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2, types_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import kernels

# Variables of other types are on the CPU, with or without an XPU.
TYPES = {
    *(tf.bool, tf.int8, tf.int16, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64),
    *(tf.half, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128),
}

# Ops on resources that are no variables, by the beginnings of their names. TensorFlow makes such a resource on the CPU,
# or keeps the op with it there.
OF_OTHER_RESOURCES = """
    Accumulator Barrier CacheDataset CloseSummary Collective CreateSummary DataService Delete Deserialize Experimental
    FakeQueue FlushSummary GlobalShuffle ImportEvent InitializeTable IteratorGet LookupTable MultiDeviceIterator Queue
    RandomDataset Reader ResourceAccumulator Rpc Serialize SetStatsAggregator Shuffle StatsAggregator ThreadPool Write
    XlaLaunch TensorArray Stack
"""
# Ops that programs do not have: those that test TensorFlow itself, and one that it refuses in graphs of today.
OF_NO_PROGRAM = {
    "IsResourceHandleRefCounting",
    "ResourceCreateOp",
    "ResourceInitializedOp",
    "ResourceUsingOp",
    "StatefulStandardNormal",
}


def ops():
    found = op_def_pb2.OpList()
    found.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return found.op


def lacks(registered, of_variables):
    """`Op(dtype=float32)` for each kernel that the CPU has and the XPU has not. `registered`: KernelDefs."""
    by_op = {}
    for kernel in registered:
        if kernel.label:
            continue
        types = {
            (c.name, tf.as_dtype(t)) for c in kernel.constraint for t in c.allowed_values.list.type if c.name != "S"
        }
        by_op.setdefault(kernel.op, {}).setdefault(kernel.device_type, []).append(types)
    for op in of_variables:
        devices = by_op.get(op, {})
        ours = devices.get("XPU", []) + devices.get("DEFAULT", [])
        for of_cpu in devices.get("CPU", []):
            elements = [t for name, t in of_cpu if name in ("T", "dtype")]
            if all(t in TYPES for t in elements) and not any(types <= of_cpu for types in ours):
                yield f"{op}({', '.join(sorted(f'{name}={t.name}' for name, t in of_cpu))})"


def test_ops_on_variables_have_kernels():
    other = re.compile("|".join(OF_OTHER_RESOURCES.split()))
    of_variables = {
        op.name
        for op in ops()
        if any(arg.type == types_pb2.DT_RESOURCE for arg in op.input_arg)
        and not other.match(op.name)
        and op.name not in OF_NO_PROGRAM
    }
    assert {"AssignVariableOp", "ResourceApplyAdam", "ResourceGather", "StatefulRandomBinomial"} <= of_variables
    registered = kernels.get_all_registered_kernels().kernel
    assert sorted(lacks(registered, of_variables)) == []
    # The check itself.
    without = [k for k in registered if k.op != "StatefulRandomBinomial" or k.device_type != "XPU"]
    assert "StatefulRandomBinomial(T=float32, dtype=float32)" in list(lacks(without, of_variables))
