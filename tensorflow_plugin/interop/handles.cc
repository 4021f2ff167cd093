#include "tensorflow_plugin/interop/handles.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_status_helper.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"
#include "tensorflow_plugin/interop/python_error.h"
#include "tensorflow_plugin/tf_internals/eager_tensors.h"

namespace xpu::interop {
namespace {

using tensorflow::Device;
using tensorflow::Tensor;
using tensorflow::TensorHandle;
using tensorflow::TensorShape;

bool knows_handles = false, knows_holders = false;

struct StatusDeleter {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};
using StatusPtr = std::unique_ptr<TF_Status, StatusDeleter>;

absl::Status StatusIn(const StatusPtr& status) { return tensorflow::StatusFromTF_Status(status.get()); }

bool RaiseCustomDevice() {
  PyErr_SetString(PyExc_BufferError, "a tensor of a custom device cannot be exported");
  return false;
}

bool RaiseElsewhere(const std::string& kind) {
  PyErr_Format(PyExc_BufferError, "a %s tensor cannot be exported: it is not in this process's memory", kind.c_str());
  return false;
}

// ---- By TensorHandle's own members.

bool ViewInside(TFE_TensorHandle* wrapped, EagerView* view) {
  auto* const interface = tensorflow::unwrap(wrapped);
  if (!TensorHandle::classof(interface)) return RaiseCustomDevice();
  auto* const handle = static_cast<TensorHandle*>(interface);
  if (handle->Type() != TensorHandle::LOCAL) return RaiseElsewhere(handle->TypeString());
  absl::Status status;
  {
    // The operation may be waiting for the lock, being a Python function.
    WithoutLock unlocked(!tf_internals::IsReady(*handle));
    status = handle->Tensor(&view->tensor);
  }
  if (!status.ok()) return Raise(status) == 0;
  view->handle = wrapped;
  view->device = handle->device();
  view->owner = handle;
  if (knows_holders) view->counted = view->tensor;
  view->place = PlaceOf(view->device, tensorflow::DMAHelper::base(view->tensor));
  return true;
}

// ---- By the C API.

// The memory of a handle's tensor, which the handle keeps.
class HandleBuffer final : public tensorflow::TensorBuffer {
 public:
  HandleBuffer(void* data, size_t size, HandlePtr handle)
      : TensorBuffer(data), size_(size), handle_(std::move(handle)) {}
  size_t size() const override { return size_; }
  TensorBuffer* root_buffer() override { return this; }
  bool OwnsMemory() const override { return false; }
  void FillAllocationDescription(tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(size_);
    description->set_allocator_name("handle");
  }

 private:
  const size_t size_;
  const HandlePtr handle_;
};

// TFE_TensorHandleDevicePointer refuses tensors of other processes, and packed ones, with these words around the kind.
std::string KindOf(const absl::Status& status) {
  constexpr char kBefore[] = "may not be called on a ", kAfter[] = " tensor handle";
  const std::string message(status.message());
  const size_t before = message.find(kBefore), start = before + sizeof(kBefore) - 1;
  if (before == std::string::npos) return "";
  const size_t end = message.find(kAfter, start);
  return end == std::string::npos ? "" : message.substr(start, end - start);
}

bool ViewByCApi(TFE_TensorHandle* handle, EagerView* view) {
  TFE_Context* const context = TheContext();
  if (context == nullptr) return false;
  const StatusPtr status(TF_NewStatus());
  const char* const name = TFE_TensorHandleBackingDeviceName(handle, status.get());
  if (TF_GetCode(status.get()) != TF_OK) return Raise(StatusIn(status)) == 0;
  if (TFE_IsCustomDevice(context, name)) return RaiseCustomDevice();
  // There is none of that name for a packed tensor, which is refused below.
  (void)EagerContextOfPython()->FindDeviceFromName(name, &view->device).ok();
  const SP_Stream stream = view->device != nullptr && IsXpu(*view->device) ? ComputeStream(*view->device) : nullptr;
  const auto type = static_cast<tensorflow::DataType>(TFE_TensorHandleDataType(handle));
  view->has_no_memory = !tensorflow::DataTypeCanUseMemcpy(type);  // TensorFlow ends the process when it is asked
  void* data = nullptr;
  absl::Status failure;
  {
    WithoutLock unlocked;
    // TensorFlow waits, too, and drops the words of what failed.
    if (stream != nullptr) failure = Settle(stream);
    if (failure.ok() && !view->has_no_memory) {
      data = TFE_TensorHandleDevicePointer(handle, status.get());
      failure = StatusIn(status);
    }
  }
  if (!failure.ok()) {
    const std::string kind = KindOf(failure);
    return kind.empty() ? Raise(failure) == 0 : RaiseElsewhere(kind);
  }
  const int rank = TFE_TensorHandleNumDims(handle, status.get());
  std::vector<int64_t> dims;
  for (int i = 0; i < rank && TF_GetCode(status.get()) == TF_OK; ++i) {
    dims.push_back(TFE_TensorHandleDim(handle, i, status.get()));
  }
  TensorShape shape;
  failure = StatusIn(status);
  if (failure.ok()) failure = TensorShape::BuildTensorShape(dims, &shape);
  if (!failure.ok()) return Raise(failure) == 0;
  HandlePtr shared(TFE_TensorHandleCopySharingTensor(handle, status.get()));
  if (shared == nullptr) return Raise(StatusIn(status)) == 0;
  const size_t bytes = shape.num_elements() * tensorflow::DataTypeSize(type);
  const tensorflow::core::RefCountPtr<HandleBuffer> buffer(new HandleBuffer(data, bytes, std::move(shared)));
  view->handle = handle;
  view->made.emplace(type, shape, buffer.get());
  view->tensor = &*view->made;
  view->owner = buffer.get();
  view->place = PlaceOf(view->device, data);
  const Tensor* inside = nullptr;
  if (knows_holders && static_cast<TensorHandle*>(tensorflow::unwrap(handle))->Tensor(&inside).ok() &&
      tensorflow::DMAHelper::base(inside) == data) {
    view->counted = inside;
  }
  return true;
}

HandlePtr HandleByCApi(Device* device, Tensor tensor) {
  TFE_Context* const context = TheContext();
  if (context == nullptr) return nullptr;
  const StatusPtr status(TF_NewStatus());
  std::vector<int64_t> dims;
  for (int i = 0; i < tensor.dims(); ++i) dims.push_back(tensor.dim_size(i));
  const auto type = static_cast<TF_DataType>(tensor.dtype());
  const size_t bytes = tensor.TotalBytes();
  void* const data = tensorflow::DMAHelper::base(&tensor);
  const std::string name = device == nullptr ? "/device:CPU:0" : device->name();
  HandlePtr handle(TFE_NewTensorHandleFromDeviceMemory(
      context, name.c_str(), type, dims.data(), static_cast<int>(dims.size()), data, bytes,
      [](void*, size_t, void* owner) { delete static_cast<Tensor*>(owner); }, new Tensor(std::move(tensor)),
      status.get()));
  if (handle == nullptr) Raise(StatusIn(status));
  return handle;
}

}  // namespace

void LookInside(bool eager_tensors, bool holders) {
  knows_handles = eager_tensors;
  knows_holders = holders;
}

bool ViewOfHandle(TFE_TensorHandle* handle, EagerView* view) {
  return knows_handles ? ViewInside(handle, view) : ViewByCApi(handle, view);
}

HandlePtr HandleOn(Device* device, Tensor tensor) {
  if (!knows_handles) return HandleByCApi(device, std::move(tensor));
  tensorflow::EagerContext* const context = device == nullptr ? nullptr : EagerContextOfPython();
  TensorHandle* const handle = TensorHandle::CreateLocalHandle(std::move(tensor), device, device, context);
  return HandlePtr(tensorflow::wrap(static_cast<tensorflow::ImmediateExecutionTensorHandle*>(handle)));
}

HandlePtr CopyTo(TFE_TensorHandle* handle, const std::string& device) {
  TFE_Context* const context = TheContext();
  if (context == nullptr) return nullptr;
  const StatusPtr status(TF_NewStatus());
  HandlePtr copy;
  {
    WithoutLock unlocked;
    copy.reset(TFE_TensorHandleCopyToDevice(handle, context, device.c_str(), status.get()));
  }
  if (TF_GetCode(status.get()) == TF_OK) return copy;
  Raise(StatusIn(status));
  return nullptr;
}

bool EnsureContext() {
  // Once is enough: a context that is reset makes itself anew when it is used.
  static bool done = false;
  if (done) return true;
  Owned context(PyImport_ImportModule("tensorflow.python.eager.context"));
  if (!context) return false;
  Owned result(PyObject_CallMethod(context.get(), "ensure_initialized", nullptr));
  return done = static_cast<bool>(result);
}

TFE_Context* TheContext() {
  if (!EnsureContext()) return nullptr;
  Owned context(GetPyEagerContext());
  if (!context) return nullptr;
  Owned capsule(PyObject_GetAttrString(context.get(), "_handle"));
  if (!capsule) return nullptr;
  // The name of the capsule is TensorFlow's business: there is none before 2.22.
  const char* const name = PyCapsule_GetName(capsule.get());
  return PyErr_Occurred() ? nullptr : static_cast<TFE_Context*>(PyCapsule_GetPointer(capsule.get(), name));
}

tensorflow::EagerContext* EagerContextOfPython() {
  TFE_Context* const context = TheContext();
  return context == nullptr ? nullptr : tensorflow::ContextFromInterface(tensorflow::unwrap(context));
}

}  // namespace xpu::interop
