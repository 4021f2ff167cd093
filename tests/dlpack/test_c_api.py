"""DLPack's C exchange API, called as a consumer in C calls it, and with the consumers that use it."""

import ctypes
import gc
import threading

import numpy as np
import pytest
import tensorflow as tf
import torch
import tvm_ffi
from tensorflow.python.framework import ops

from tensorflow_xpu import dlpack
from tests.support.dlpack_c import (
    CPU,
    CUDA,
    HOST,
    IS_COPIED,
    PLACES,
    READ_ONLY,
    SET_ERROR,
    DLDevice,
    DLTensor,
    Producer,
    api_of,
    delete,
    export,
    imported,
    opened,
    reachable,
)
from tests.support.installed import ROOT
from tests.support.processes import run_code


@pytest.fixture(scope="module")
def api(xpu_device):
    return api_of(ops.EagerTensor)


def make(device="/cpu:0", count=24):
    with tf.device(device):
        return tf.range(count, dtype=tf.float32) + 0.0


def view_of(api, tensor):
    view = DLTensor()
    api.dltensor_from(tensor, view)
    return view


def test_the_table(api):
    assert (api.version.major, api.version.minor) == (1, 3)
    assert not api.prev_api
    assert "dlpack_exchange_api" in repr(ops.EagerTensor.__dlpack_c_exchange_api__)
    assert api_of(ops.EagerTensor).version.major == api_of(torch.Tensor).version.major
    for name, _ in api._fields_[2:]:
        assert getattr(api, name), name


@pytest.mark.parametrize("device", ["/cpu:0", "/xpu:0"])
@pytest.mark.parametrize("shape", [(24,), (2, 3, 4), (1, 1, 1, 1, 1, 2, 3, 4), (70000, 1, 1, 1), (3, 0, 2), (0,)])
def test_views(api, device, shape):
    with tf.device(device):
        tensor = tf.reshape(tf.range(np.prod(shape), dtype=tf.float32), shape)
    strides = np.empty([max(1, n) for n in shape], np.float32).strides
    for view in (view_of(api, tensor), (managed := export(api, tensor)).dl_tensor):
        assert view.dims() == shape
        assert view.steps() == tuple(stride // 4 for stride in strides)
        assert (view.device.device_type, view.device.device_id) == PLACES[device]
        assert (view.dtype.code, view.dtype.bits, view.dtype.lanes, view.byte_offset) == (2, 32, 1, 0)
        if 0 in shape:
            assert view.data is None
        elif PLACES[device] == HOST:
            values = np.ctypeslib.as_array(ctypes.cast(view.data, ctypes.POINTER(ctypes.c_float)), shape)
            np.testing.assert_array_equal(values, tensor.numpy())
    assert managed.flags == READ_ONLY
    assert (managed.version.major, managed.version.minor) == (1, 3)
    delete(managed)


def test_equal_shapes_share_their_storage(api):
    a, b = view_of(api, make()), view_of(api, make())
    assert ctypes.addressof(a.shape.contents) == ctypes.addressof(b.shape.contents)
    c = view_of(api, make(count=25))
    assert ctypes.addressof(a.shape.contents) != ctypes.addressof(c.shape.contents)


@pytest.mark.host_only
@pytest.mark.without_isolation
def test_shapes_cannot_be_written():
    """A consumer that writes into a shape faults: it would change the shape of every tensor like that."""
    outcome = run_code(
        """
        import tensorflow as tf, tensorflow_xpu
        from tensorflow.python.framework import ops
        from tests.support.dlpack_c import DLTensor, api_of
        view, tensor = DLTensor(), tf.ones([3, 4])
        api_of(ops.EagerTensor).dltensor_from(tensor, view)
        print(view.dims(), flush=True)
        view.shape[0] = 5
        """,
        cwd=ROOT,
    )
    assert outcome.stdout.strip() == "(3, 4)"
    assert outcome.returncode == -11


@pytest.mark.parametrize("device", ["/cpu:0", *(["/xpu:0"] if PLACES["/xpu:0"] == HOST else [])])
def test_scalars_in_host_memory(api, device):
    with tf.device(device):
        tensor = tf.constant(2.5)
    view = view_of(api, tensor)
    assert (view.ndim, view.dims(), view.steps()) == (0, (), ())
    managed = export(api, tensor)
    assert managed.flags == IS_COPIED
    for data in (view.data, managed.dl_tensor.data):
        value = ctypes.c_float.from_address(data)
        assert value.value == 2.5
        value.value = -1
    with tf.device(device):
        assert tf.constant(2.5).numpy() == 2.5
    delete(managed)


def test_managed_tensors_outlive_their_tensor(api):
    tensor = make(count=1 << 16)
    expected = tensor.numpy()
    managed = export(api, tensor)
    del tensor
    gc.collect()
    others = [make(count=1 << 16) * 0 for _ in range(8)]
    values = np.ctypeslib.as_array(ctypes.cast(managed.dl_tensor.data, ctypes.POINTER(ctypes.c_float)), (1 << 16,))
    np.testing.assert_array_equal(values, expected)
    del others
    # From a thread that Python does not know, without the interpreter's lock.
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ctypes.cast(managed.deleter, ctypes.c_void_p).value)
    thread = threading.Thread(target=deleter, args=[ctypes.addressof(managed)])
    thread.start()
    thread.join()


def test_import_takes_the_tensor(api):
    producer = Producer((3, 4), data=None)
    producer.write(np.arange(12, dtype=np.float32).tobytes())
    tensor = imported(api, producer.managed)
    np.testing.assert_array_equal(tensor.numpy(), np.arange(12).reshape(3, 4))
    assert opened(tensor.__dlpack__(copy=False)).dl_tensor.data == producer.aligned
    assert producer.deleted == 0
    with tf.device("/cpu:0"):
        again = tf.reshape(tensor, [12])
    del tensor
    gc.collect()
    assert producer.deleted == 0
    del again
    gc.collect()
    assert producer.deleted == 1


def test_import_by_copy_releases_at_once(api):
    producer = Producer((3, 4), strides=(1, 3))
    producer.write(np.arange(12, dtype=np.float32).tobytes())
    tensor = imported(api, producer.managed)
    assert producer.deleted == 1
    np.testing.assert_array_equal(tensor.numpy(), np.arange(12).reshape(4, 3).T)


def test_a_failed_import_leaves_the_tensor_to_its_owner(api):
    producer = Producer((2,), dtype=(7, 8))
    with pytest.raises(BufferError, match="no type for DLPack tensors of float8_e3m4"):
        imported(api, producer.managed)
    assert producer.deleted == 0


def allocate(api, shape, dtype, device=(CPU, 0)):
    prototype = Producer(shape, dtype, device=device, data=8).managed.dl_tensor
    errors, out = [], ctypes.c_void_p()
    report = SET_ERROR(lambda _, kind, message: errors.append((kind.decode(), message.decode())))
    result = api.allocator(prototype, out, None, report)
    assert (result == 0) == (not errors)
    return out.value, errors


def test_allocator(api):
    address, errors = allocate(api, (5, 7), (0, 16))
    assert errors == []
    managed = type(Producer((1,)).managed).from_address(address)
    view = managed.dl_tensor
    assert view.data % 64 == 0
    assert (view.dims(), view.steps()) == ((5, 7), (7, 1))
    assert managed.flags == 0
    ctypes.memset(view.data, 1, 70)
    tensor = imported(api, managed)
    assert tensor.dtype == tf.int16
    assert tensor.numpy().tolist() == [[257] * 7] * 5


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("shape", "dtype", "device", "kind", "message"),
    [
        ((2,), (2, 32), (CUDA, 3), "BufferError", "cannot allocate on CUDA:3: expected CPU:0"),
        ((2,), (15, 6), (CPU, 0), "BufferError", "no type for DLPack tensors of float6_e2m3fn"),
        ((-2,), (2, 32), (CPU, 0), "BufferError", "dimension 0 of a DLPack tensor is -2"),
        ((1 << 40, 1 << 40), (2, 32), (CPU, 0), "BufferError", ""),
        ((1 << 58,), (2, 32), (CPU, 0), "MemoryError", "out of host memory for a tensor of shape"),
    ],
)
def test_allocator_errors(api, shape, dtype, device, kind, message):
    address, errors = allocate(api, shape, dtype, device)
    assert address is None
    assert errors[0][0] == kind
    assert message in errors[0][1]


def test_current_work_stream(api):
    stream = ctypes.c_void_p(1)
    assert api.current_work_stream(CPU, 0, stream) == 0
    assert stream.value is None
    with pytest.raises(BufferError, match="no work stream for CUDA:0"):
        api.current_work_stream(CUDA, 0, stream)


@pytest.mark.parametrize("make_object", [lambda: 1, lambda: np.ones(2), lambda: tf.Variable(1.0)])
def test_objects_that_are_no_eager_tensors(api, make_object):
    with pytest.raises(TypeError, match=r"expected an eager tf\.Tensor, got"):
        export(api, make_object())
    with pytest.raises(TypeError, match=r"expected an eager tf\.Tensor, got"):
        view_of(api, make_object())


@pytest.mark.host_only
def test_symbolic_tensors_have_none_of_it():
    @tf.function
    def trace(x):
        assert not hasattr(type(x), "__dlpack_c_exchange_api__")
        return x

    trace(tf.constant(1.0))


# tvm_ffi, which calls these functions for each argument of a kernel.


def test_tvm_ffi_kernels_run_on_tensors(api):
    echo = tvm_ffi.get_global_func("testing.echo")
    for device in ("/cpu:0", "/xpu:0"):
        tensor = make(device)
        result = echo(tensor)
        assert isinstance(result, ops.EagerTensor)
        assert view_of(api, result).data == view_of(api, tensor).data
        np.testing.assert_array_equal(result.numpy(), tensor.numpy())
    with pytest.raises(BufferError, match="string"):
        echo(tf.constant(["text", "more"]))


def test_pytorch_ops_run_on_tensors():
    a, b = make("/xpu:0", 12), make("/cpu:0", 12)
    product = torch.outer(torch.from_dlpack(reachable(a)), torch.from_dlpack(b))
    result = dlpack.from_dlpack(product, device="/xpu:0")
    assert result.device.endswith("XPU:0")
    np.testing.assert_array_equal(tf.reduce_sum(result, 0).numpy(), np.outer(np.arange(12), np.arange(12)).sum(0))


def test_torch_tensors_come_in_through_the_c_api(api):
    theirs = torch.arange(6.0).reshape(2, 3)
    managed = export(api_of(torch.Tensor), theirs)
    tensor = imported(api, managed)
    assert opened(tensor.__dlpack__(copy=False)).dl_tensor.data == theirs.data_ptr()
    with pytest.raises(BufferError, match="copy=False"):
        dlpack.from_dlpack(theirs.T, copy=False)


def test_a_device_tag_of_nobody(api):
    managed = Producer((2,)).managed
    managed.dl_tensor.device = DLDevice(CUDA, 0)
    with pytest.raises(BufferError, match="a DLPack tensor on CUDA:0 cannot be imported"):
        imported(api, managed)
