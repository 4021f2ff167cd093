"""DLPack's C structs and functions through ctypes: what a consumer or producer written in C sees."""

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)

from tests.hooks.each_off import left_out
from tests.support.installed import is_on_host_memory

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4
CPU, CUDA, EXT_DEV = 1, 2, 12
HOST = (CPU, 0)
# The host cannot address isolated memory, nor the memory of an accelerator.
BEYOND = os.environ.get("TF_XPU_ISOLATE_MEMORY") == "1" or not is_on_host_memory()
# Where DLPack sees the memory of /cpu:0 and /xpu:0.
PLACES = {"/cpu:0": HOST, "/xpu:0": (EXT_DEV, 0) if BEYOND else HOST}

# (code, bits) of every type that DLPack 1.3 and TensorFlow share.
TYPES = {
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "float16": (2, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "int4": (0, 4),
    "uint4": (1, 4),
    "int2": (0, 2),
    "uint2": (1, 2),
    "float4_e2m1fn": (17, 4),
}


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]

    def dims(self):
        return tuple(self.shape[: self.ndim])

    def steps(self):
        return tuple(self.strides[: self.ndim])


DELETER = CFUNCTYPE(None, c_void_p)


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", DELETER)]


class DLPackVersion(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", DELETER),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class DLPackExchangeAPI(Structure):
    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", c_void_p),
        ("allocator", CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SET_ERROR)),
        ("from_py_object", PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))),
        ("to_py_object", PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))),
        ("dltensor_from", PYFUNCTYPE(c_int, py_object, POINTER(DLTensor))),
        ("current_work_stream", PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))),
    ]


class OnHost:
    """A tensor for consumers of host memory: exported with dl_device=(kDLCPU, 0)."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **arguments):
        return self.tensor.__dlpack__(**{**arguments, "dl_device": HOST})

    def __dlpack_device__(self):
        return HOST


def is_in_host_memory(tensor):
    """False on an XPU whose memory is isolated."""
    return tensor.__dlpack_device__() == HOST


def shares(tensor, *, by_c_functions=False):
    """True if consumers of host memory get at the tensor's own when they do not ask for it."""
    return is_in_host_memory(tensor) and (by_c_functions or "holders" not in left_out())


def reachable(tensor):
    """A tensor that consumers of host memory can import: the tensor, or where the host cannot address it, a copy."""
    return tensor if is_in_host_memory(tensor) else OnHost(tensor)


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, [py_object, c_char_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = c_char_p, [py_object]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
_decrement = ctypes.pythonapi.Py_DecRef
_decrement.argtypes = [c_void_p]


def api_of(tensor_type):
    """The table of functions that a type publishes."""
    return DLPackExchangeAPI.from_address(_get_pointer(tensor_type.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def capsule_name(capsule):
    return _get_name(capsule).decode()


def opened(capsule):
    """The managed tensor in a capsule, which keeps it."""
    name = _get_name(capsule)
    kind = DLManagedTensorVersioned if b"versioned" in name else DLManagedTensor
    managed = kind.from_address(_get_pointer(capsule, name))
    managed.capsule = capsule
    return managed


def export(api, tensor):
    """Calls managed_tensor_from_py_object_no_sync; the caller calls the deleter."""
    out = c_void_p()
    api.from_py_object(tensor, out)
    return DLManagedTensorVersioned.from_address(out.value)


def delete(managed):
    managed.deleter(ctypes.addressof(managed))


def imported(api, managed):
    """Calls managed_tensor_to_py_object_no_sync."""
    out = c_void_p()
    api.to_py_object(ctypes.addressof(managed), out)
    tensor = ctypes.cast(out, py_object).value
    _decrement(out)
    return tensor


class Producer:
    """A managed tensor made by hand, over memory of its own; `deleted` counts the calls of its deleter."""

    def __init__(self, shape, dtype=(2, 32), *, strides=None, data=None, legacy=False, nbytes=1 << 12, **fields):
        self.memory = (c_uint8 * (nbytes + 64))()
        self.aligned = (ctypes.addressof(self.memory) + 63) // 64 * 64
        self.deleted = 0
        self.dims = (c_int64 * max(1, len(shape)))(*shape)
        self.steps = None if strides is None else (c_int64 * max(1, len(strides)))(*strides)
        self.managed = (DLManagedTensor if legacy else DLManagedTensorVersioned)()
        tensor = self.managed.dl_tensor
        tensor.data = self.aligned if data is None else data
        tensor.device = DLDevice(*fields.pop("device", (CPU, 0)))
        tensor.ndim = fields.pop("ndim", len(shape))
        tensor.dtype = DLDataType(*dtype, fields.pop("lanes", 1))
        tensor.shape = self.dims if fields.pop("with_shape", True) else None
        tensor.strides = self.steps
        tensor.byte_offset = fields.pop("byte_offset", 0)
        if not legacy:
            self.managed.version = DLPackVersion(*fields.pop("version", (1, 3)))
            self.managed.flags = fields.pop("flags", 0)
        self._deleter = DELETER(self._delete)
        if fields.pop("with_deleter", True):
            self.managed.deleter = self._deleter
        assert not fields, fields

    def _delete(self, _):
        self.deleted += 1

    def write(self, raw):
        ctypes.memmove(self.aligned, bytes(raw), len(raw))

    @property
    def name(self):
        return b"dltensor_versioned" if isinstance(self.managed, DLManagedTensorVersioned) else b"dltensor"

    def capsule(self):
        """Without a destructor: only a consumer releases the tensor."""
        return _new_capsule(ctypes.addressof(self.managed), self.name, None)
