// The kernels that a backend on host memory has to write: one synchronous function per primitive. HostDevice
// (host_device.h) turns these into streams of asynchronous commands.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNELS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNELS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::host_runtime {

class KernelSet : public Capabilities {
 public:
  // The instruction set of the kernels, for people.
  virtual const char* instruction_set() const { return "the compiler's"; }

  // Nanoseconds that a command takes on one thread, roughly: to tell what the submitting thread does best itself. A
  // command without an estimate is worth a thread of its own.
  static constexpr int64_t kNoEstimate = INT64_MAX;
#define XPU_ESTIMATE(name) \
  virtual int64_t EstimateNs(const name##Desc&) const { return kNoEstimate; }
  XPU_PRIMITIVES(XPU_ESTIMATE)
#undef XPU_ESTIMATE

  // Runs the primitive to its end on the team. The descriptor has passed Check (check.h). Addresses in `args` are plain
  // host addresses; args.status is not used: a failure that depends on data is returned. Stateless and thread-safe.
  // A set need not have kernels for what it does not support.
#define XPU_RUN(name)                                                                \
  virtual Status Run(const name##Desc& desc, const Args&, const ThreadTeam&) const { \
    return errors::Unimplemented(Name(desc), " has no kernel");                      \
  }
  XPU_PRIMITIVES(XPU_RUN)
#undef XPU_RUN
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_KERNELS_H_
