#include "tensorflow_plugin/interop/devices.h"

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_status_helper.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow_plugin/device/interop.h"
#include "tensorflow_plugin/tf_internals/tensorflow_stream.h"

namespace xpu::interop {
namespace {

struct CoreFunctions {
  decltype(XpuCore_StreamIsSettled)* stream_is_settled = nullptr;
  decltype(XpuCore_SettleStream)* settle_stream = nullptr;
  decltype(XpuCore_WaitForStream)* wait_for_stream = nullptr;
  decltype(XpuCore_Read)* read = nullptr;
  decltype(XpuCore_HostCanAddress)* host_can_address = nullptr;
  decltype(XpuCore_SharesHostMemory)* shares_host_memory = nullptr;
  decltype(XpuCore_DeviceType)* device_type = nullptr;
  decltype(XpuCore_ExpectGraph)* expect_graph = nullptr;
  decltype(XpuCore_TakeCall)* take_call = nullptr;
  decltype(XpuCore_WillWrite)* will_write = nullptr;
  decltype(XpuCore_TakeHook)* take_hook = nullptr;
};
CoreFunctions core;

#define XPU_TEXT_OF(name) #name
#define XPU_TEXT(name) XPU_TEXT_OF(name)
// A core of another release lacks it, and may have other objects behind the same functions.
constexpr char kRelease[] = XPU_TEXT(XPU_RELEASE);

template <typename Function>
bool Resolve(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool ConnectCore(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  CoreFunctions found;
  const bool complete = dlsym(library, kRelease) != nullptr &&
                        Resolve(library, "XpuCore_StreamIsSettled", &found.stream_is_settled) &&
                        Resolve(library, "XpuCore_SettleStream", &found.settle_stream) &&
                        Resolve(library, "XpuCore_WaitForStream", &found.wait_for_stream) &&
                        Resolve(library, "XpuCore_Read", &found.read) &&
                        Resolve(library, "XpuCore_HostCanAddress", &found.host_can_address) &&
                        Resolve(library, "XpuCore_SharesHostMemory", &found.shares_host_memory) &&
                        Resolve(library, "XpuCore_DeviceType", &found.device_type) &&
                        Resolve(library, "XpuCore_ExpectGraph", &found.expect_graph) &&
                        Resolve(library, "XpuCore_TakeCall", &found.take_call) &&
                        Resolve(library, "XpuCore_WillWrite", &found.will_write) &&
                        Resolve(library, "XpuCore_TakeHook", &found.take_hook);
  dlclose(library);  // TensorFlow never unloads it
  if (complete) core = found;
  return complete;
}

void WillWrite(const void* memory) {
  if (core.will_write != nullptr) core.will_write(memory);
}

bool IsXpu(const tensorflow::Device& device) {
  return core.device_type != nullptr && device.device_type() == core.device_type();
}

std::string XpuName(int index) {
  return std::string("/device:") + (core.device_type != nullptr ? core.device_type() : "XPU") + ":" +
         std::to_string(index);
}

SP_Stream ComputeStream(const tensorflow::Device& xpu) {
  const auto* info = xpu.tensorflow_accelerator_device_info();
  if (info == nullptr || info->stream == nullptr) return nullptr;
  return HandleOf(info->stream);
}

bool HostCanAddress(const void* memory) { return core.host_can_address(memory); }

bool SharesHostMemory() { return core.shares_host_memory() != 0; }

namespace {

// The facts that all tensors of a device have in common.
struct Facts {
  const tensorflow::Device* device;
  uint64_t incarnation;
  TensorLocation place;
  bool depends_on_memory;  // the place is that of memory which the host cannot address
};

Facts Examine(const tensorflow::Device& device) {
  Facts facts{&device, device.attributes().incarnation(), TensorLocation(), false};
  if (device.device_type() == "CPU") return facts;
  if (!IsXpu(device)) {
    facts.place.device = DLDevice{};
    return facts;
  }
  facts.place.stream = ComputeStream(device);
  facts.depends_on_memory = !SharesHostMemory();
  if (facts.depends_on_memory) facts.place.device = {kDLExtDev, device.parsed_name().id};
  return facts;
}

// Kept, since to find out takes as long as the rest of an export. A TensorFlow context that is reset makes its devices
// anew, perhaps where the old ones were: their incarnation, a random number, tells them apart.
const Facts& FactsOf(const tensorflow::Device& device) {
  constexpr size_t kMost = 64;  // so that contexts which come and go do not fill it
  static std::vector<Facts>& known = *new std::vector<Facts>;
  for (Facts& facts : known) {
    if (facts.device != &device) continue;
    if (facts.incarnation != device.attributes().incarnation()) facts = Examine(device);
    return facts;
  }
  if (known.size() == kMost) known.clear();
  known.push_back(Examine(device));
  return known.back();
}

}  // namespace

TensorLocation PlaceOf(const tensorflow::Device* device, const void* memory) {
  if (device == nullptr) return TensorLocation();
  const Facts& facts = FactsOf(*device);
  TensorLocation place = facts.place;
  if (facts.depends_on_memory && memory != nullptr && HostCanAddress(memory)) place.device = kHost;
  return place;
}

bool IsSettled(SP_Stream stream) { return core.stream_is_settled(stream); }

absl::Status Settle(SP_Stream stream) {
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  core.settle_stream(stream, status.get());
  return tensorflow::StatusFromTF_Status(status.get());
}

absl::Status Read(SP_Stream stream, void* host, const void* device, size_t bytes) {
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status(TF_NewStatus(), &TF_DeleteStatus);
  core.read(stream, host, device, bytes, status.get());
  return tensorflow::StatusFromTF_Status(status.get());
}

void TakeHook(const char* name, const char* state) { core.take_hook(name, state); }

void ExpectGraph(const char* function) { core.expect_graph(function); }

std::unique_ptr<direct_call::DirectCall> TakeCall(const tensorflow::ProcessFunctionLibraryRuntime& library) {
  return std::unique_ptr<direct_call::DirectCall>(static_cast<direct_call::DirectCall*>(core.take_call(&library)));
}

void WaitFor(SP_Stream stream) { core.wait_for_stream(stream); }

}  // namespace xpu::interop
