// The OpenCL driver, opened when it is first asked for: this library links with none, and a machine may have none.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DRIVER_H_
#define TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DRIVER_H_

// The functions that every device since OpenCL 1.2 has; functions of later versions are not even declared.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>
#include <utility>

#include "tensorflow_plugin/primitives/status.h"

namespace xpu::opencl {

// V(name): each function of the ICD loader that is used, without its "cl".
#define XPU_OPENCL_FUNCTIONS(V) \
  V(BuildProgram)               \
  V(CreateBuffer)               \
  V(CreateCommandQueue)         \
  V(CreateContext)              \
  V(CreateKernel)               \
  V(CreateProgramWithBinary)    \
  V(CreateProgramWithSource)    \
  V(CreateUserEvent)            \
  V(EnqueueBarrierWithWaitList) \
  V(EnqueueCopyBuffer)          \
  V(EnqueueFillBuffer)          \
  V(EnqueueMapBuffer)           \
  V(EnqueueMarkerWithWaitList)  \
  V(EnqueueNDRangeKernel)       \
  V(EnqueueReadBuffer)          \
  V(EnqueueUnmapMemObject)      \
  V(EnqueueWriteBuffer)         \
  V(Finish)                     \
  V(Flush)                      \
  V(GetDeviceIDs)               \
  V(GetDeviceInfo)              \
  V(GetEventInfo)               \
  V(GetEventProfilingInfo)      \
  V(GetKernelWorkGroupInfo)     \
  V(GetPlatformIDs)             \
  V(GetPlatformInfo)            \
  V(GetProgramBuildInfo)        \
  V(GetProgramInfo)             \
  V(ReleaseCommandQueue)        \
  V(ReleaseContext)             \
  V(ReleaseEvent)               \
  V(ReleaseKernel)              \
  V(ReleaseMemObject)           \
  V(ReleaseProgram)             \
  V(RetainEvent)                \
  V(SetEventCallback)           \
  V(SetKernelArg)               \
  V(SetUserEventStatus)         \
  V(WaitForEvents)

struct Driver {
#define XPU_FIELD(name) decltype(&::cl##name) name = nullptr;
  XPU_OPENCL_FUNCTIONS(XPU_FIELD)
#undef XPU_FIELD
};

// nullptr where there is no ICD loader, or one that lacks a function. `why` may be null.
const Driver* FindDriver(std::string* why);
// For a process that has found it: an owner of one of its objects has.
const Driver& Cl();

// "CL_OUT_OF_RESOURCES"; "OpenCL error -9999" of one that has no name.
std::string ErrorName(cl_int error);
// OK of CL_SUCCESS. Lack of resources is ResourceExhausted, all else Internal: "clFlush failed with
// CL_DEVICE_NOT_FOUND".
Status ToStatus(cl_int error, const std::string& what);

#define XPU_RETURN_IF_CL_ERROR(error, what)                                         \
  do {                                                                              \
    const cl_int xpu_error_ = (error);                                              \
    if (xpu_error_ != CL_SUCCESS) return ::xpu::opencl::ToStatus(xpu_error_, what); \
  } while (0)

// One reference to an object of the driver's.
template <typename T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T object) : object_(object) {}  // takes over the caller's reference
  Handle(Handle&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Handle& operator=(Handle&& o) noexcept {
    if (this != &o) Reset(std::exchange(o.object_, nullptr));
    return *this;
  }
  ~Handle() { Reset(nullptr); }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void Reset(T object) {
    if (object_ != nullptr) Release(object_);
    object_ = object;
  }
  static void Release(cl_command_queue o) { Cl().ReleaseCommandQueue(o); }
  static void Release(cl_context o) { Cl().ReleaseContext(o); }
  static void Release(cl_event o) { Cl().ReleaseEvent(o); }
  static void Release(cl_kernel o) { Cl().ReleaseKernel(o); }
  static void Release(cl_mem o) { Cl().ReleaseMemObject(o); }
  static void Release(cl_program o) { Cl().ReleaseProgram(o); }

  T object_ = nullptr;
};

// Another reference to the same event.
inline Handle<cl_event> Share(const Handle<cl_event>& event) {
  if (event) Cl().RetainEvent(event.get());
  return Handle<cl_event>(event.get());
}

}  // namespace xpu::opencl

#endif  // TENSORFLOW_PLUGIN_BACKENDS_OPENCL_DRIVER_H_
