// NVIDIA's driver, opened when it is first asked for: this library links with none, and a machine may have none. Types
// and numbers are those of cuda.h, which the build does not need.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DRIVER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DRIVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::cuda {

using Result = int;              // CUresult
using DeviceId = int;            // CUdevice
using DeviceAddress = uint64_t;  // CUdeviceptr
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;

inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr Result kNotReady = 600;   // CUDA_ERROR_NOT_READY

// CUdevice_attribute.
enum DeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kMultiprocessorCount = 16,
  kMemoryClockRateKhz = 36,
  kMemoryBusWidthBits = 37,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};
inline constexpr int kFunctionMaxThreadsPerBlock = 0;  // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
inline constexpr unsigned kStreamNonBlocking = 1;      // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventDisableTiming = 2;     // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kHostPortable = 1;           // CU_MEMHOSTALLOC_PORTABLE
inline constexpr int kCaptureRelaxed = 2;              // CU_STREAM_CAPTURE_MODE_RELAXED

// V(field, symbol, parameters): each function of the driver that is used; all return a Result. The symbols are those of
// CUDA 12 and later.
#define XPU_CUDA_FUNCTIONS(V)                                                                                         \
  V(Init, "cuInit", (unsigned flags))                                                                                 \
  V(DriverGetVersion, "cuDriverGetVersion", (int* version))                                                           \
  V(GetErrorName, "cuGetErrorName", (Result error, const char** name))                                                \
  V(GetErrorString, "cuGetErrorString", (Result error, const char** text))                                            \
  V(DeviceGetCount, "cuDeviceGetCount", (int* count))                                                                 \
  V(DeviceGet, "cuDeviceGet", (DeviceId * device, int ordinal))                                                       \
  V(DeviceGetName, "cuDeviceGetName", (char* name, int length, DeviceId device))                                      \
  V(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t* bytes, DeviceId device))                                          \
  V(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, DeviceId device))                         \
  V(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char* id, int length, DeviceId device))                                \
  V(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (ContextHandle * context, DeviceId device))                   \
  V(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (DeviceId device))                                       \
  V(CtxSetCurrent, "cuCtxSetCurrent", (ContextHandle context))                                                        \
  V(DeviceCanAccessPeer, "cuDeviceCanAccessPeer", (int* can, DeviceId device, DeviceId peer))                         \
  V(CtxEnablePeerAccess, "cuCtxEnablePeerAccess", (ContextHandle peer, unsigned flags))                               \
  V(MemAlloc, "cuMemAlloc_v2", (DeviceAddress * address, size_t bytes))                                               \
  V(MemFree, "cuMemFree_v2", (DeviceAddress address))                                                                 \
  V(MemGetInfo, "cuMemGetInfo_v2", (size_t* free, size_t* total))                                                     \
  V(MemHostAlloc, "cuMemHostAlloc", (void** address, size_t bytes, unsigned flags))                                   \
  V(MemFreeHost, "cuMemFreeHost", (void* address))                                                                    \
  V(PointerGetAttribute, "cuPointerGetAttribute", (void* value, int attribute, DeviceAddress address))                \
  V(LaunchHostFunc, "cuLaunchHostFunc", (StreamHandle stream, void (*call)(void*), void* data))                       \
  V(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (DeviceAddress to, const void* from, size_t bytes, StreamHandle stream)) \
  V(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void* to, DeviceAddress from, size_t bytes, StreamHandle stream))       \
  V(MemcpyAsync, "cuMemcpyAsync", (DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream))          \
  V(MemsetD8Async, "cuMemsetD8Async", (DeviceAddress to, unsigned char value, size_t n, StreamHandle stream))         \
  V(MemsetD32Async, "cuMemsetD32Async", (DeviceAddress to, unsigned value, size_t n, StreamHandle stream))            \
  V(StreamCreateWithPriority, "cuStreamCreateWithPriority", (StreamHandle * stream, unsigned flags, int priority))    \
  V(CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int* least, int* greatest))                            \
  V(StreamDestroy, "cuStreamDestroy_v2", (StreamHandle stream))                                                       \
  V(StreamSynchronize, "cuStreamSynchronize", (StreamHandle stream))                                                  \
  V(StreamQuery, "cuStreamQuery", (StreamHandle stream))                                                              \
  V(StreamWaitEvent, "cuStreamWaitEvent", (StreamHandle stream, EventHandle event, unsigned flags))                   \
  V(StreamBeginCapture, "cuStreamBeginCapture_v2", (StreamHandle stream, int mode))                                   \
  V(StreamEndCapture, "cuStreamEndCapture", (StreamHandle stream, GraphHandle * graph))                               \
  V(GraphInstantiate, "cuGraphInstantiateWithFlags", (GraphExecHandle * exec, GraphHandle graph, uint64_t flags))     \
  V(GraphLaunch, "cuGraphLaunch", (GraphExecHandle exec, StreamHandle stream))                                        \
  V(GraphExecDestroy, "cuGraphExecDestroy", (GraphExecHandle exec))                                                   \
  V(GraphDestroy, "cuGraphDestroy", (GraphHandle graph))                                                              \
  V(EventCreate, "cuEventCreate", (EventHandle * event, unsigned flags))                                              \
  V(EventDestroy, "cuEventDestroy_v2", (EventHandle event))                                                           \
  V(EventRecord, "cuEventRecord", (EventHandle event, StreamHandle stream))                                           \
  V(EventQuery, "cuEventQuery", (EventHandle event))                                                                  \
  V(EventSynchronize, "cuEventSynchronize", (EventHandle event))                                                      \
  V(EventElapsedTime, "cuEventElapsedTime", (float* milliseconds, EventHandle begin, EventHandle end))                \
  V(ModuleLoadData, "cuModuleLoadData", (ModuleHandle * module, const void* image))                                   \
  V(ModuleUnload, "cuModuleUnload", (ModuleHandle module))                                                            \
  V(ModuleGetFunction, "cuModuleGetFunction", (FunctionHandle * function, ModuleHandle module, const char* name))     \
  V(FuncGetAttribute, "cuFuncGetAttribute", (int* value, int attribute, FunctionHandle function))                     \
  V(LaunchKernel, "cuLaunchKernel",                                                                                   \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,  \
     unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** arguments, void** extra))

struct Driver {
#define XPU_FIELD(name, symbol, parameters) Result(*name) parameters = nullptr;
  XPU_CUDA_FUNCTIONS(XPU_FIELD)
#undef XPU_FIELD
  int version = 0;  // 13000: CUDA 13.0
};

// nullptr where there is no driver, or one that is too old. `why` may be null.
const Driver* FindDriver(std::string* why);
// For a process that has found the driver.
const Driver& Cu();

// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string ErrorName(Result error);
// OK of success. Lack of memory is ResourceExhausted, all else Internal: "a kernel failed with CUDA_ERROR_...".
Status ToStatus(Result error, const std::string& what);

#define XPU_RETURN_IF_CUDA_ERROR(error, what)                                                \
  do {                                                                                       \
    const ::xpu::cuda::Result xpu_error_ = (error);                                          \
    if (xpu_error_ != ::xpu::cuda::kSuccess) return ::xpu::cuda::ToStatus(xpu_error_, what); \
  } while (0)

inline DeviceAddress AddressOf(const void* address) { return reinterpret_cast<DeviceAddress>(address); }
// The greatest power of two up to `most` that divides the address; 0 for null.
inline int64_t AlignmentOf(const void* address, uint64_t most) {
  const uint64_t at = AddressOf(address);
  return static_cast<int64_t>(std::min(most, at & (~at + 1)));
}

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DRIVER_H_
