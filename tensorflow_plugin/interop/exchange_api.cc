// The five functions. "No sync" they are where the consumer could synchronise by itself, with current_work_stream: for
// memory of an XPU that the host cannot address. Memory that is exported as CPU memory is ready to be read.
#include "tensorflow_plugin/interop/exchange_api.h"

#include <string>

#include "tensorflow_plugin/interop/devices.h"
#include "tensorflow_plugin/interop/eager.h"
#include "tensorflow_plugin/interop/export.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/interop/types.h"

namespace xpu::interop {
namespace {

using SetErrorFunction = void(void* error_ctx, const char* kind, const char* message);

// The interpreter's lock, whether or not this thread has it.
class WithLock {
 public:
  ~WithLock() { PyGILState_Release(state_); }

 private:
  const PyGILState_STATE state_ = UntilTheEnd(PyGILState_Ensure);
};

// The XPU of an extension device; null if there is none, without an exception.
tensorflow::Device* XpuOf(DLDevice device) {
  if (device.device_type != kDLExtDev) return nullptr;
  const WithLock lock;
  tensorflow::Device* const found = FindDevice(XpuName(device.device_id).c_str());
  PyErr_Clear();
  return found != nullptr && IsXpu(*found) ? found : nullptr;
}

Status Allocate(const DLTensor& prototype, DLManagedTensorVersioned** out) {
  // Only type, shape and device of a prototype mean anything.
  DLManagedTensorVersioned described{};
  described.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  described.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  described.dl_tensor = prototype;
  described.dl_tensor.data = &described;
  described.dl_tensor.strides = nullptr;
  described.dl_tensor.byte_offset = 0;
  TensorLayout layout;
  XPU_RETURN_IF_ERROR(Examine(Foreign(&described), &layout));
  if (prototype.device.device_type == kDLCPU) return ExportFresh(layout.type, layout.shape, out);
  tensorflow::Device* const xpu = XpuOf(prototype.device);
  XPU_REQUIRE(xpu != nullptr, errors::Unimplemented("TensorFlow cannot allocate on ", NameOf(prototype.device),
                                                    ": expected CPU:0, or ExtDev:n for /xpu:n"));
  tensorflow::Tensor tensor;
  XPU_REQUIRE(AllocateOnDevice(xpu, layout.type, layout.shape, &tensor),
              errors::ResourceExhausted("no memory left on ", xpu->name()));
  return Export(tensor, BufferOf(tensor), prototype.device, Access::kFresh, out);
}

int ManagedTensorAllocator(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                           SetErrorFunction* set_error) {
  Status status;
  try {
    status = Allocate(*prototype, out);
  } catch (const std::exception& e) {
    status = errors::ResourceExhausted(e.what());
  }
  if (status.ok()) return 0;
  *out = nullptr;
  set_error(error_ctx, status.code() == Code::kResourceExhausted ? "MemoryError" : "BufferError",
            status.message().c_str());
  return -1;
}

int ManagedTensorFromPyObject(void* object, DLManagedTensorVersioned** out) {
  return Guarded([&] {
    EagerView view;
    if (!SettledViewOf(static_cast<PyObject*>(object), &view)) return false;
    WillWrite(view.tensor->data());
    const Status status = Export(*view.tensor, view.owner, view.place.device, Access::kShared, out);
    return status.ok() || Raise(status) == 0;
  })
             ? 0
             : -1;
}

int ManagedTensorToPyObject(DLManagedTensorVersioned* tensor, void** out) {
  return Guarded([&] {
    Foreign foreign(tensor);
    *out = ToEager(&foreign, Copy::kIfNeeded, nullptr);
    // Consumers call the deleter when this fails.
    if (*out == nullptr) foreign.GiveBack();
    return *out != nullptr;
  })
             ? 0
             : -1;
}

int DLTensorFromPyObject(void* object, DLTensor* out) {
  return Guarded([&] {
    EagerView view;
    if (!SettledViewOf(static_cast<PyObject*>(object), &view)) return false;
    WillWrite(view.tensor->data());
    const Status status = View(*view.tensor, view.place.device, out);
    return status.ok() || Raise(status) == 0;
  })
             ? 0
             : -1;
}

int CurrentWorkStream(DLDeviceType device_type, int32_t device_id, void** out) {
  *out = nullptr;
  if (device_type == kDLCPU) return 0;
  return Guarded([&] {
    const DLDevice device = {device_type, device_id};
    tensorflow::Device* const xpu = XpuOf(device);
    if (xpu == nullptr) {
      const Status status = errors::Unimplemented("TensorFlow has no work stream for ", NameOf(device),
                                                  ": expected CPU:0, or ExtDev:n for /xpu:n");
      return Raise(status) == 0;
    }
    *out = ComputeStream(*xpu);
    return true;
  })
             ? 0
             : -1;
}

}  // namespace

const DLPackExchangeAPI* ExchangeApi() {
  static const DLPackExchangeAPI api = {
      {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
      ManagedTensorAllocator,
      ManagedTensorFromPyObject,
      ManagedTensorToPyObject,
      DLTensorFromPyObject,
      CurrentWorkStream,
  };
  return &api;
}

}  // namespace xpu::interop
