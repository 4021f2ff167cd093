"""DLPack through Python: every direction between TensorFlow, on CPU and XPU, and NumPy, PyTorch, JAX and tvm_ffi."""

import ctypes
import gc
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch
import tvm_ffi

from tensorflow_xpu import dlpack
from tests.hooks.each_off import left_out
from tests.support.differences import has_type
from tests.support.dlpack_c import (
    IS_COPIED,
    PADDED,
    PLACES,
    READ_ONLY,
    TYPES,
    Producer,
    capsule_name,
    is_in_host_memory,
    opened,
    reachable,
    shares,
)

jax.config.update("jax_enable_x64", True)
# Consumers that see memory, each with a function that gives the address of what it imported.
CONSUMERS = {
    "numpy": (np.from_dlpack, lambda a: a.__array_interface__["data"][0]),
    "torch": (torch.from_dlpack, lambda a: a.data_ptr()),
    "jax": (jnp.from_dlpack, lambda a: a.unsafe_buffer_pointer()),
    "tvm_ffi": (tvm_ffi.from_dlpack, lambda a: a.data_ptr()),
}
BY_C_FUNCTIONS = {"tvm_ffi"}
TO_NUMPY = {"numpy": np.asarray, "torch": lambda a: a.numpy(), "jax": np.asarray, "tvm_ffi": np.from_dlpack}


@pytest.fixture(params=["/cpu:0", "/xpu:0"])
def device(request, xpu_device):
    return request.param


def make(device, value, dtype=None):
    """A tensor that lies on the device and is not one of TensorFlow's shared constants."""
    with tf.device(device):
        made = tf.raw_ops.DeepCopy(x=value) if device == "/cpu:0" else tf.identity(tf.constant(value, dtype))
        return tf.cast(made, dtype) if dtype and made.dtype != dtype else made


def address(tensor):
    return opened(tensor.__dlpack__(copy=False)).dl_tensor.data


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_export_shares_memory(device, consumer):
    take, address_of = CONSUMERS[consumer]
    value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = make(device, value)
    assert tensor.__dlpack_device__() == PLACES[device]
    view = take(reachable(tensor))
    by_c_functions = consumer in BY_C_FUNCTIONS
    assert (address_of(view) == address(tensor)) == shares(tensor, by_c_functions=by_c_functions)
    np.testing.assert_array_equal(TO_NUMPY[consumer](view), value)
    del tensor
    gc.collect()
    np.testing.assert_array_equal(TO_NUMPY[consumer](view), value)


def test_writes_are_seen_where_memory_is_shared(device):
    tensor = make(device, np.zeros(16, np.float32))
    shared = shares(tensor)
    view = torch.from_dlpack(reachable(tensor))
    view[3] = 7
    assert torch.from_dlpack(reachable(tensor))[3] == (7 if shared else 0)
    assert (tensor + 0).numpy()[3] == (7 if shared else 0)
    theirs = torch.zeros(16)
    ours = dlpack.from_dlpack(theirs, device=device)
    theirs[5] = 9
    assert (ours + 0).numpy()[5] == (9 if is_in_host_memory(tensor) else 0)
    assert ours.device.lower().endswith(device[1:])


MAKERS = {
    "numpy": np.asarray,
    "torch": torch.tensor,
    "jax": jnp.asarray,
    "tvm_ffi": lambda value: tvm_ffi.from_dlpack(torch.tensor(value)),
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0, 3), ()])
def test_import(device, maker, shape):
    value = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    tensor = dlpack.from_dlpack(MAKERS[maker](value), device=device)
    assert tensor.dtype == tf.float32
    assert tensor.shape == shape
    assert tensor.device.lower().endswith(device[1:])
    np.testing.assert_array_equal(tensor.numpy(), value)
    np.testing.assert_array_equal((tensor * 2).numpy(), value * 2)


_COMMON = {"bool", "float16", "float32", "float64", "complex64", "complex128"}
_COMMON |= {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_FLOAT8 = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}
# The types of TensorFlow that each of them imports.
TAKES = {
    "numpy": _COMMON,
    "torch": _COMMON | {"bfloat16"} | _FLOAT8,
    "jax": _COMMON | {"bfloat16"} | _FLOAT8 | {"float8_e4m3b11fnuz"},
    "tvm_ffi": _COMMON | {"bfloat16"} | _FLOAT8 | {"float8_e4m3b11fnuz"},
}


def raw(managed):
    """The bytes of a tensor in row-major order, one element of less than a byte in a byte."""
    view = managed.dl_tensor
    return ctypes.string_at(view.data, math.prod(view.dims()) * ((view.dtype.bits + 7) // 8))


@pytest.mark.host_only
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type(device, dtype):
    code, bits = TYPES[dtype]
    producer = Producer((2, 3), (code, bits), flags=PADDED if bits < 8 else 0)
    content = bytes([0, 1, 1, 0, 1, 1] if bits < 8 or dtype == "bool" else range(1, 1 + 6 * bits // 8))
    producer.write(content)
    if not has_type(dtype):
        with pytest.raises(BufferError, match=f"TensorFlow has no type for DLPack tensors of {dtype}"):
            dlpack.from_dlpack(producer.capsule(), device=device)
        return
    tensor = dlpack.from_dlpack(producer.capsule(), device=device)
    assert tensor.dtype == dtype
    assert tensor.device.lower().endswith(device[1:])
    visible, shared = reachable(tensor), shares(tensor)
    exported = opened(visible.__dlpack__(max_version=(1, 3)))
    assert (exported.dl_tensor.dtype.code, exported.dl_tensor.dtype.bits) == (code, bits)
    assert exported.flags == (READ_ONLY if shared else IS_COPIED) | (PADDED if bits < 8 else 0)
    assert (exported.dl_tensor.data == producer.aligned) == shared
    if is_in_host_memory(tensor):
        assert opened(tensor.__dlpack__(max_version=(1, 3), copy=False)).dl_tensor.data == producer.aligned
    assert raw(exported) == content
    if bits < 8:
        with pytest.raises(BufferError, match="one element per byte"):
            tensor.__dlpack__()
    for consumer, types in TAKES.items():
        if dtype in types:
            take, address_of = CONSUMERS[consumer]
            theirs = take(visible)
            is_shared = shares(tensor, by_c_functions=consumer in BY_C_FUNCTIONS)
            assert (address_of(theirs) == producer.aligned) == is_shared
            again = dlpack.from_dlpack(theirs)
            assert again.dtype == dtype
            assert raw(opened(again.__dlpack__())) == content
        else:
            with pytest.raises((BufferError, RuntimeError, TypeError, ValueError, KeyError, NotImplementedError)):
                CONSUMERS[consumer][0](visible)


@pytest.mark.host_only
@pytest.mark.parametrize("dtype", [tf.string, tf.resource, tf.variant, tf.qint8])
def test_what_dlpack_has_not(dtype):
    if dtype == tf.string:
        tensor = tf.constant(["a", "b"])
    elif dtype == tf.resource:
        tensor = tf.Variable([1.0, 2.0]).handle
    elif dtype == tf.variant:
        tensor = tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=3, element_dtype=tf.float32)
    else:
        tensor = tf.quantization.quantize([1.0, 2.0], 0.0, 3.0, tf.qint8).output
    for call in (
        tensor.__dlpack__,
        lambda: tensor.__dlpack__(copy=True),
        lambda: np.from_dlpack(tensor),
        lambda: torch.from_dlpack(tensor),
    ):
        with pytest.raises(BufferError, match=dtype.name):
            call()
    assert tensor.__dlpack_device__() == PLACES["/cpu:0"]


def test_scalars_are_copies(device):
    with tf.device(device):
        tensor = reachable(tf.constant(1))
        managed = opened(tensor.__dlpack__(max_version=(1, 0)))
        assert managed.flags == IS_COPIED
        torch.from_dlpack(tensor).add_(41)
        assert tf.constant(1).numpy() == 1
        with pytest.raises(BufferError, match="scalar"):
            tensor.__dlpack__(copy=False)


@pytest.mark.host_only
def test_read_only_is_said():
    array = np.from_dlpack(make("/cpu:0", np.zeros(4, np.float32)), copy=False)
    assert not array.flags.writeable
    copy = np.from_dlpack(make("/cpu:0", np.zeros(4, np.float32)), copy=True)
    assert copy.flags.writeable


@pytest.mark.host_only
def test_arguments_of_dlpack(device):
    tensor = make(device, np.arange(6, dtype=np.float32))
    assert tensor.__dlpack_device__() == PLACES[device]
    assert capsule_name(tensor.__dlpack__()) == "dltensor"
    assert capsule_name(tensor.__dlpack__(max_version=None)) == "dltensor"
    assert capsule_name(tensor.__dlpack__(max_version=(0, 8))) == "dltensor"
    for version in ((1, 0), (1, 3), (2, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        assert capsule_name(capsule) == "dltensor_versioned"
        assert (opened(capsule).version.major, opened(capsule).version.minor) == (1, 3)
    here = address(tensor)
    for arguments in ({"stream": -1}, {"stream": None}, {"dl_device": PLACES[device]}, {}):
        assert opened(tensor.__dlpack__(copy=False, **arguments)).dl_tensor.data == here
        assert (opened(tensor.__dlpack__(**arguments)).dl_tensor.data == here) == ("holders" not in left_out())
    copied = tensor.__dlpack__(copy=True, max_version=(1, 0))
    assert opened(copied).dl_tensor.data != here
    assert opened(copied).flags == IS_COPIED
    view = opened(tensor.__dlpack__()).dl_tensor
    assert view.dims() == (6,)
    assert view.steps() == (1,)
    assert view.byte_offset == 0


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"stream": 1}, BufferError, "stream must be None or -1 for a tensor on CPU:0, got 1"),
        ({"stream": "x"}, BufferError, "got 'x'"),
        ({"dl_device": (2, 0)}, BufferError, r"cannot be exported to dl_device=\(2, 0\)"),
        ({"dl_device": (1, 1)}, BufferError, r"dl_device=\(1, 1\)"),
        ({"dl_device": 1}, TypeError, "dl_device must be None or a pair of integers, got 1"),
        ({"max_version": "1.0"}, TypeError, "max_version must be None or a pair"),
        ({"max_version": (1 << 80, 0)}, TypeError, "max_version must be None or a pair"),
        ({"copy": 1}, TypeError, "copy must be None, True or False, got 1"),
        ({"other": 1}, TypeError, "unexpected keyword argument 'other'"),
    ],
)
def test_bad_arguments_of_dlpack(arguments, error, message):
    tensor = make("/cpu:0", np.zeros(2, np.float32))
    with pytest.raises(error, match=message):
        tensor.__dlpack__(**arguments)
    with pytest.raises(TypeError, match="positional"):
        tensor.__dlpack__(None)


@pytest.mark.host_only
def test_arguments_that_stock_tensorflow_refused(device):
    tensor = make(device, np.arange(6, dtype=np.float32))
    for take in (
        lambda: np.from_dlpack(tensor, device="cpu"),
        lambda: np.from_dlpack(reachable(tensor), copy=True),
        lambda: torch.from_dlpack(reachable(tensor), device="cpu"),
        lambda: torch.from_dlpack(reachable(tensor), copy=True),
        lambda: np.from_dlpack(tensor, copy=False) if shares(tensor) else np.arange(6),
    ):
        np.testing.assert_array_equal(np.asarray(take()), np.arange(6))


VIEWS = {
    "transposed": lambda a: a.T,
    "column": lambda a: a[:, 1],
    "step": lambda a: a[::2, 1::2],
    "misaligned": lambda a: a.reshape(-1)[1:],
    "rows from 1": lambda a: a[1:],
    "one row": lambda a: a[2:3],
}
LIBRARIES = {"numpy": np.asarray, "torch": torch.tensor}
LAYOUTS = [(library, how, view) for library in LIBRARIES for how, view in VIEWS.items()]
# PyTorch has no negative strides.
LAYOUTS += [("numpy", "reversed", lambda a: a[::-1, ::-1])]
LAYOUTS += [("numpy", "broadcast", lambda a: np.broadcast_to(a[0], (3, 7)))]
LAYOUTS += [("torch", "broadcast", lambda a: a[0].expand(3, 7))]


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("library", "view"), [pytest.param(lib, view, id=f"{lib}-{how}") for lib, how, view in LAYOUTS]
)
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_layouts(device, library, view, dtype):
    theirs = view(LIBRARIES[library](np.arange(35).reshape(5, 7).astype(dtype)))
    tensor = dlpack.from_dlpack(theirs, device=device)
    np.testing.assert_array_equal(tensor.numpy(), np.asarray(theirs))
    np.testing.assert_array_equal((tensor + tensor).numpy(), np.asarray(theirs) + np.asarray(theirs))


@pytest.mark.host_only
def test_misaligned_numpy_arrays_are_copied():
    """Stock TensorFlow aborts the process on the first kernel that reads such a tensor."""
    memory = np.zeros(1024 + 64, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    aligned = memory[start : start + 400].view(np.float32)
    misaligned = memory[start + 16 : start + 416].view(np.float32)
    assert address(dlpack.from_dlpack(aligned, copy=False)) == aligned.__array_interface__["data"][0]
    np.testing.assert_array_equal((dlpack.from_dlpack(misaligned) + 1).numpy(), misaligned + 1)
    with pytest.raises(BufferError, match="copy=False, but a copy is needed: its data is not aligned to 64 bytes"):
        dlpack.from_dlpack(misaligned, copy=False)
    with pytest.raises(BufferError, match="not in row-major order"):
        dlpack.from_dlpack(aligned[::2], copy=False)
    copied = dlpack.from_dlpack(aligned, copy=True)
    aligned[0] = 5
    assert copied.numpy()[0] == 0


@pytest.mark.host_only
@pytest.mark.parametrize("name", ["cpu", "/cpu:0", "/device:CPU:0", "CPU:0"])
def test_names_of_devices(name):
    assert dlpack.from_dlpack(torch.ones(3), device=name).device.endswith("/device:CPU:0")


@pytest.mark.host_only
def test_more_names_of_devices(xpu_device):
    theirs = torch.ones(3)
    full = "/job:localhost/replica:0/task:0/device:XPU:0"
    for device in (
        "xpu",
        "/xpu:0",
        full,
        tf.DeviceSpec.from_string("/xpu:0"),
        tf.config.list_logical_devices("XPU")[0],
    ):
        assert dlpack.from_dlpack(theirs, device).device == full


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((), TypeError, "missing 1 required positional argument"),
        (("text",), TypeError, "from_dlpack.. needs an object with __dlpack__ .*, got str"),
        ((torch.ones(2), "/tpu:0"), ValueError, "device '/tpu:0' does not exist"),
        ((torch.ones(2), "/xpu:77"), ValueError, "device '/xpu:77' does not exist"),
        ((torch.ones(2), 3), TypeError, "device must be None or a name such as '/xpu:0', got 3"),
        ((torch.ones(2), None, 0), TypeError, "copy must be None, True or False, got 0"),
    ],
)
def test_bad_arguments_of_from_dlpack(arguments, error, message):
    with pytest.raises(error, match=message):
        dlpack.from_dlpack(*arguments)


@pytest.mark.host_only
def test_capsules_are_used_once():
    tensor = make("/cpu:0", np.arange(4, dtype=np.float32))
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        np.testing.assert_array_equal(dlpack.from_dlpack(capsule).numpy(), tensor.numpy())
        with pytest.raises(BufferError, match=r"'used_dltensor.*' holds no DLPack tensor"):
            dlpack.from_dlpack(capsule)
        del capsule


def test_variables(device):
    with tf.device(device):
        variable = tf.Variable([1.0, 2.0, 3.0])
    assert variable.__dlpack_device__() == PLACES[device]
    for take in (np.from_dlpack, torch.from_dlpack, jnp.from_dlpack):
        np.testing.assert_array_equal(np.asarray(take(reachable(variable))), [1, 2, 3])
    view = np.from_dlpack(reachable(variable))
    variable.assign_add([1.0, 1.0, 1.0])
    variable.assign([7.0, 8.0, 9.0])
    np.testing.assert_array_equal(view, [1, 2, 3])
    np.testing.assert_array_equal(np.from_dlpack(reachable(variable)), [7, 8, 9])


def test_tensorflow_never_writes_to_imported_memory(device):
    theirs = torch.arange(64.0)
    expected = theirs.clone()
    with tf.device(device):
        tf.nn.relu(-dlpack.from_dlpack(theirs, device))
        tf.negative(dlpack.from_dlpack(theirs, device))
        variable = tf.Variable(dlpack.from_dlpack(theirs, device))
        variable.assign_add(tf.ones(64))
        tf.function(lambda x: tf.nn.relu(x - 3) * 2)(dlpack.from_dlpack(theirs, device)).numpy()
    np.testing.assert_array_equal(variable.numpy(), expected.numpy() + 1)
    assert torch.equal(theirs, expected)


@pytest.mark.host_only
def test_uninstall_restores_tensorflow():
    eager = type(tf.constant(1.0))
    ours = eager.__dlpack__
    try:
        dlpack.uninstall()
        dlpack.uninstall()
        assert not hasattr(eager, "__dlpack_c_exchange_api__")
        assert not hasattr(tf.Variable(1.0), "__dlpack__")
        assert eager.__dlpack__ is not ours
        with pytest.raises(RuntimeError, match="copy=True"):
            tf.constant([1.0]).__dlpack__(copy=True)
        assert dlpack.from_dlpack(torch.ones(2)).numpy().tolist() == [1, 1]
    finally:
        dlpack.install()
        dlpack.install()
    assert eager.__dlpack__ is ours
    assert hasattr(eager, "__dlpack_c_exchange_api__")
