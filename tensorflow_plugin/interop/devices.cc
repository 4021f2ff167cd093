#include "tensorflow_plugin/interop/devices.h"

#include <dlfcn.h>

#include <string>

#include "tensorflow/c/experimental/stream_executor/stream_executor_internal.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow_plugin/device/interop.h"

namespace xpu::interop {
namespace {

struct Core {
  decltype(XpuCore_StreamIsSettled)* stream_is_settled = nullptr;
  decltype(XpuCore_SettleStream)* settle_stream = nullptr;
  decltype(XpuCore_HostCanAddress)* host_can_address = nullptr;
  decltype(XpuCore_SharesHostMemory)* shares_host_memory = nullptr;
};
Core core;

template <typename Function>
bool Resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool ConnectCore(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  Core found;
  const bool complete = Resolve(library, "XpuCore_StreamIsSettled", &found.stream_is_settled) &&
                        Resolve(library, "XpuCore_SettleStream", &found.settle_stream) &&
                        Resolve(library, "XpuCore_HostCanAddress", &found.host_can_address) &&
                        Resolve(library, "XpuCore_SharesHostMemory", &found.shares_host_memory);
  dlclose(library);  // TensorFlow never unloads it
  if (complete) core = found;
  return complete;
}

bool IsXpu(const tensorflow::Device& device) { return core.settle_stream != nullptr && device.device_type() == "XPU"; }

SP_Stream ComputeStream(const tensorflow::Device& xpu) {
  const auto* info = xpu.tensorflow_accelerator_device_info();
  if (info == nullptr || info->stream == nullptr) return nullptr;
  return static_cast<stream_executor::CStream*>(info->stream)->Handle();
}

bool HostCanAddress(const void* memory) { return core.host_can_address(memory); }

bool SharesHostMemory() { return core.shares_host_memory() != 0; }

Place PlaceOf(const tensorflow::Device* device, const void* memory) {
  if (device == nullptr || device->device_type() == "CPU") return Place();
  if (!IsXpu(*device)) return {DLDevice{}, nullptr};
  const DLDevice place = HostCanAddress(memory) ? kHost : DLDevice{kDLExtDev, device->parsed_name().id};
  return {place, ComputeStream(*device)};
}

bool IsSettled(SP_Stream stream) { return core.stream_is_settled(stream); }

Status Settle(SP_Stream stream) {
  const char* const failure = core.settle_stream(stream);
  return failure == nullptr ? OkStatus() : errors::Internal(failure);
}

}  // namespace xpu::interop
