#include "tensorflow_plugin/interop/eager.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow_plugin/interop/export.h"
#include "tensorflow_plugin/interop/handles.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/interop/types.h"
#include "tensorflow_plugin/tf_internals/differences.h"
#include "tensorflow_plugin/tf_internals/eager_tensors.h"
#include "tensorflow_plugin/tf_internals/holders.h"
#include "xla/stream_executor/stream.h"

namespace xpu::interop {
namespace {

using tensorflow::Device;
using tensorflow::Tensor;
using tensorflow::TensorHandle;
using tf_internals::IsHeldBy;
using tf_internals::IsReady;
using tf_internals::kOfOneHandle;

// Copies of less than this are made with the interpreter's lock held.
constexpr int64_t kLongCopyBytes = 64 << 10;

TFE_TensorHandle* Wrap(TensorHandle* handle) {
  return tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle));
}

PyObject* ObjectOf(HandlePtr handle) {
  return handle == nullptr ? nullptr : EagerTensorFromHandle(handle.release(), /*is_packed=*/false);
}

// An XPU's tensor in host memory. Commands queued on the XPU may use it after TensorFlow has dropped it, so it waits.
std::function<void()> Waiter(SP_Stream stream) {
  return [stream] { WaitFor(stream); };
}

Status NoCopy(const char* why) { return errors::InvalidArgument("copy=False, but a copy is needed: ", why); }

// The foreign tensor, which the host can address, as a tensor for the host or for an XPU that shares its memory.
Status FromHost(Foreign* foreign, const TensorLayout& layout, Copy copy, SP_Stream xpu, Tensor* out) {
  const bool copied = foreign->flags() & DLPACK_FLAG_BITMASK_IS_COPIED;
  if (layout.shareable() && (copy != Copy::kAlways || copied)) {
    *out = Share(std::move(*foreign), layout, xpu == nullptr ? std::function<void()>() : Waiter(xpu));
    return OkStatus();
  }
  if (copy == Copy::kNever) return NoCopy(layout.obstacle());
  XPU_RETURN_IF_ERROR(CopyFrom(*foreign, layout, out));
  foreign->Release();
  if (xpu == nullptr || layout.bytes == 0) return OkStatus();
  TensorLayout made = layout;
  made.first = static_cast<char*>(tensorflow::DMAHelper::base(out));
  *out = Share(Foreign(), made, [xpu, owner = *out] { WaitFor(xpu); });
  return OkStatus();
}

}  // namespace

bool ViewOf(PyObject* object, EagerView* view) {
  if (!EagerTensor_CheckExact(object)) {
    PyErr_Format(PyExc_TypeError, "expected an eager tf.Tensor, got %s", Py_TYPE(object)->tp_name);
    return false;
  }
  TFE_TensorHandle* const handle = EagerTensor_Handle(object);
  if (handle != nullptr) return ViewOfHandle(handle, view);
  PyErr_SetString(PyExc_BufferError, "a tensor without a handle cannot be exported");
  return false;
}

bool Settle(const EagerView& view) {
  if (!view.place.known()) {
    PyErr_Format(PyExc_BufferError, "a tensor on %s cannot be exchanged here", view.device->name().c_str());
    return false;
  }
  if (!view.place.must_wait() || IsSettled(view.place.stream)) return true;
  absl::Status status;
  {
    WithoutLock unlocked;
    status = Settle(view.place.stream);
  }
  return status.ok() || Raise(status) == 0;
}

bool IsExclusive(const EagerView& view) { return view.counted != nullptr && IsHeldBy(kOfOneHandle, *view.counted); }

TensorHandle* ReadyHandleOf(PyObject* object) {
  if (!EagerTensor_CheckExact(object)) return nullptr;
  TFE_TensorHandle* const wrapped = EagerTensor_Handle(object);
  auto* const interface = wrapped == nullptr ? nullptr : tensorflow::unwrap(wrapped);
  if (interface == nullptr || !TensorHandle::classof(interface)) return nullptr;
  auto* const handle = static_cast<TensorHandle*>(interface);
  return handle->Type() == TensorHandle::LOCAL && IsReady(*handle) ? handle : nullptr;
}

PyObject* EagerTensorOf(Tensor tensor, Device* device, Device* op_device, Device* resource_device,
                        tensorflow::EagerContext* context) {
  return ObjectOf(
      HandlePtr(Wrap(TensorHandle::CreateLocalHandle(std::move(tensor), device, op_device, resource_device, context))));
}

bool MirrorOnHost(PyObject* object) {
  TensorHandle* const handle = ReadyHandleOf(object);
  const Device* const device = handle == nullptr ? nullptr : handle->device();
  if (device == nullptr || !IsXpu(*device)) return true;
  const Tensor* tensor = nullptr;
  if (handle->HasLocalMirror(nullptr) || !handle->Tensor(&tensor).ok()) return true;
  if (!tensorflow::DataTypeCanUseMemcpy(tensor->dtype()) || tensor->TotalBytes() == 0) return true;
  const SP_Stream stream = ComputeStream(*device);
  if (stream == nullptr) return true;
  Tensor mirror(tensor->dtype(), tensor->shape());
  if (!mirror.IsInitialized()) return true;  // TensorFlow has the words for that
  absl::Status status;
  {
    WithoutLock unlocked;
    const Tensor held = *tensor;
    status = Read(stream, tensorflow::DMAHelper::base(&mirror), tensorflow::DMAHelper::base(&held), held.TotalBytes());
  }
  if (!status.ok()) return Raise(status) == 0;
  // Another thread may have been quicker.
  (void)handle->AddLocalMirror(std::move(mirror), nullptr).ok();
  return true;
}

bool SettleAll() {
  tensorflow::EagerContext* const context = EagerContextOfPython();
  if (context == nullptr) return false;
  for (Device* device : context->ListLocalTfDevices()) {
    const SP_Stream stream = IsXpu(*device) ? ComputeStream(*device) : nullptr;
    if (stream == nullptr) continue;
    absl::Status status;
    {
      WithoutLock unlocked;
      status = Settle(stream);
    }
    if (!status.ok()) return Raise(status) == 0;
  }
  return true;
}

bool CopyToHost(const EagerView& view, Tensor* copy) {
  if (view.place.device.device_type == kDLCPU) {
    Status status;
    {
      WithoutLock unlocked(static_cast<int64_t>(view.tensor->TotalBytes()) >= kLongCopyBytes);
      status = CopyOnHost(*view.tensor, copy);
    }
    return status.ok() || Raise(status) == 0;
  }
  const HandlePtr handle = CopyTo(view.handle, "/device:CPU:0");
  EagerView copied;
  if (handle == nullptr || !ViewOfHandle(handle.get(), &copied)) return false;
  *copy = *copied.tensor;
  return true;
}

bool AllocateOnDevice(Device* device, tensorflow::DataType type, const tensorflow::TensorShape& shape, Tensor* out) {
  *out = Tensor(device->GetAllocator(tensorflow::AllocatorAttributes()), type, shape);
  return out->IsInitialized();
}

bool CopyOnDevice(Device* device, const Tensor& tensor, Tensor* copy) {
  if (!AllocateOnDevice(device, tensor.dtype(), tensor.shape(), copy)) {
    PyErr_Format(PyExc_MemoryError, "no memory left on %s", device->name().c_str());
    return false;
  }
  const size_t bytes = tensor.TotalBytes();
  DeviceAddress to(tensorflow::DMAHelper::base(copy), bytes);
  const DeviceAddress from(const_cast<void*>(tensorflow::DMAHelper::base(&tensor)), bytes);
  const absl::Status status = device->tensorflow_accelerator_device_info()->stream->Memcpy(&to, from, bytes);
  return status.ok() || Raise(status) == 0;
}

Device* FindDevice(const char* name) {
  tensorflow::EagerContext* const context = EagerContextOfPython();
  if (context == nullptr) return nullptr;
  // "xpu", "/xpu:0" and "/device:XPU:0" are all the same; a name that starts with a job is complete.
  std::string full = name;
  if (full.rfind("/job:", 0) != 0) {
    full.erase(0, full.find_first_not_of('/'));
    for (char& c : full) c = absl::ascii_toupper(c);
    if (full.rfind("DEVICE:", 0) == 0) full.erase(0, 7);
    if (full.find(':') == std::string::npos) full += ":0";
    full = "/device:" + full;
  }
  Device* device = nullptr;
  const absl::Status status = context->FindDeviceFromName(full.c_str(), &device);
  if (!status.ok()) {
    PyErr_Format(PyExc_ValueError, "device '%s' does not exist: expected a name such as '/cpu:0' or '/xpu:0'", name);
    return nullptr;
  }
  return device;
}

PyObject* Alias(PyObject* object) {
  EagerView view;
  if (!ViewOf(object, &view)) return nullptr;
  if (view.has_no_memory) {
    Raise(CheckType(*view.tensor));
    return nullptr;
  }
  return ObjectOf(HandleOn(view.device, view.counted != nullptr ? *view.counted : *view.tensor));
}

namespace {

// For a foreign tensor in memory that the host can address.
PyObject* FromHostMemory(Foreign* foreign, const TensorLayout& layout, Copy copy, Device* target) {
  const bool on_xpu = target != nullptr && IsXpu(*target);
  const bool direct = target == nullptr || target->device_type() == "CPU" || (on_xpu && SharesHostMemory());
  if (!direct && copy == Copy::kNever) {
    Raise(NoCopy(("the host and " + target->name() + " share no memory").c_str()));
    return nullptr;
  }
  Tensor tensor;
  Status status;
  {
    WithoutLock unlocked(layout.bytes >= kLongCopyBytes);
    status = FromHost(foreign, layout, direct ? copy : Copy::kIfNeeded,
                      direct && on_xpu ? ComputeStream(*target) : nullptr, &tensor);
  }
  if (!status.ok()) {
    Raise(status);
    return nullptr;
  }
  HandlePtr handle = HandleOn(direct ? target : nullptr, std::move(tensor));
  if (handle != nullptr && !direct) handle = CopyTo(handle.get(), target->name());
  return ObjectOf(std::move(handle));
}

// For memory of an XPU that the host cannot address.
PyObject* FromXpuMemory(Foreign* foreign, const TensorLayout& layout, Copy copy, Device* target) {
  const DLDevice place = foreign->view()->device;
  Device* const owner = FindDevice(XpuName(place.device_id).c_str());
  Status status;
  if (owner == nullptr || !IsXpu(*owner) || (layout.bytes != 0 && HostCanAddress(layout.first))) {
    PyErr_Clear();
    status = errors::Unimplemented("the memory of ", NameOf(place), " is not that of an XPU");
  } else if (!layout.row_major || layout.packed) {
    status = errors::Unimplemented("a tensor on ", NameOf(place), " cannot be imported: ", layout.obstacle());
  } else if (copy == Copy::kNever && target != nullptr && target != owner) {
    status = NoCopy(("it lies on " + owner->name()).c_str());
  }
  if (!status.ok()) {
    Raise(status);
    return nullptr;
  }
  Tensor tensor = Share(std::move(*foreign), layout, Waiter(ComputeStream(*owner)));
  const bool moves = target != nullptr && target != owner;
  if (copy == Copy::kAlways && !moves) {
    Tensor fresh;
    if (!CopyOnDevice(owner, tensor, &fresh)) return nullptr;
    tensor = std::move(fresh);
  }
  HandlePtr handle = HandleOn(owner, std::move(tensor));
  if (handle != nullptr && moves) handle = CopyTo(handle.get(), target->name());
  return ObjectOf(std::move(handle));
}

}  // namespace

PyObject* ToEager(Foreign* foreign, Copy copy, const char* device_name) {
  Device* target = nullptr;
  if (!EnsureContext() || (device_name != nullptr && (target = FindDevice(device_name)) == nullptr)) return nullptr;
  TensorLayout layout;
  Status status = Examine(*foreign, &layout);
  if (status.ok()) {
    switch (foreign->view()->device.device_type) {
      case kDLCPU:
      case kDLCUDAHost:
      case kDLROCMHost:
        return FromHostMemory(foreign, layout, copy, target);
      case kDLExtDev:
        return FromXpuMemory(foreign, layout, copy, target);
      default:
        status = errors::Unimplemented("a DLPack tensor on ", NameOf(foreign->view()->device),
                                       " cannot be imported: only host memory and that of XPUs can");
    }
  }
  Raise(status);
  return nullptr;
}

}  // namespace xpu::interop
