// Where a tensor lies: TensorFlow's devices as DLPack's.
//
// XPU memory that the host can address is CPU memory to DLPack, device (kDLCPU, 0): the only one that every consumer
// takes. Such consumers know of no streams, so the work queued on the device must be done before they get the tensor.
// XPU memory that the host cannot address is that of the extension device (kDLExtDev, n) for /xpu:n, unsynchronised.
#ifndef TENSORFLOW_PLUGIN_INTEROP_DEVICES_H_
#define TENSORFLOW_PLUGIN_INTEROP_DEVICES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "dlpack/dlpack.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow_plugin/direct_call/direct_call.h"

namespace xpu::interop {

constexpr DLDevice kHost = {kDLCPU, 0};

// Finds the functions of the plugin's core, the loaded library at `path` (device/interop.h); false if they are not
// there. Before that there are no XPUs.
bool ConnectCore(const char* path);

struct TensorLocation {
  DLDevice device = kHost;
  // The compute stream of the XPU that the tensor lies on; null for host memory that no XPU knows.
  SP_Stream stream = nullptr;
  bool known() const { return device.device_type != 0; }
  // True if the stream must have run before somebody may look at the memory.
  bool must_wait() const { return stream != nullptr && device.device_type == kDLCPU; }
};

// Where memory of a TensorFlow device lies. null stands for the host's CPU. Not known for devices that are neither a
// CPU nor an XPU. Needs the interpreter's lock.
TensorLocation PlaceOf(const tensorflow::Device* device, const void* memory);

// True if `device` is one of this plugin's.
bool IsXpu(const tensorflow::Device& device);
// The name of the XPU of this number, which the devices' type is part of: "/device:XPU:0". Without a core there is
// none.
std::string XpuName(int index);
SP_Stream ComputeStream(const tensorflow::Device& xpu);
bool HostCanAddress(const void* memory);
// True if the XPUs work on host memory as they do on their own.
bool SharesHostMemory();

// To be called before somebody else gets memory of an XPU's tensor, who may write into it.
void WillWrite(const void* memory);

// True if everything enqueued on the stream has run and none of it failed.
bool IsSettled(SP_Stream stream);
// Blocks until everything enqueued has run. The first failure since this or TensorFlow last asked. Without the
// interpreter's lock, please.
absl::Status Settle(SP_Stream stream);
// Copies to the host what the stream's work leaves there, and returns when it has; the failure as of Settle. Without
// the interpreter's lock, please.
absl::Status Read(SP_Stream stream, void* host, const void* device, size_t bytes);
// Tells the core in what state a hook is. Only where the core is connected.
void TakeHook(const char* name, const char* state);
// See direct_call/function_graph.h. Only where the core is connected.
void ExpectGraph(const char* function);
std::unique_ptr<direct_call::DirectCall> TakeCall(const tensorflow::ProcessFunctionLibraryRuntime& library);
// As Settle, for callers that cannot tell anybody of a failure: it stays for the next one that asks.
void WaitFor(SP_Stream stream);

}  // namespace xpu::interop

#endif  // TENSORFLOW_PLUGIN_INTEROP_DEVICES_H_
