// A list of commands as one entry of a stream on host memory.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_EXECUTABLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_EXECUTABLE_H_

#include <memory>
#include <optional>

#include "tensorflow_plugin/backends/host_runtime/adaptive_choice.h"
#include "tensorflow_plugin/backends/host_runtime/command_queue.h"
#include "tensorflow_plugin/backends/host_runtime/device_memory.h"
#include "tensorflow_plugin/backends/host_runtime/kernels.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::host_runtime {

class HostExecutable final : public Executable {
 public:
  // nullptr if `kernels` do not estimate what each command costs: then nothing can be said about who should run it.
  // `memory` translates device addresses; null: they are what they are. Both outlive the executable and its runs.
  static std::unique_ptr<Executable> Make(const KernelSet& kernels, const DeviceMemory* memory, int team_size,
                                          std::shared_ptr<const CommandList> list, const MemoryPlan& plan);

  Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data, int* failed) const override;

 private:
  class Schedule;
  class Rest;

  HostExecutable(const DeviceMemory* memory, std::shared_ptr<const Schedule> schedule);

  const DeviceMemory* const memory_;
  const std::shared_ptr<const Schedule> schedule_;  // what is queued shares it
  // Which thread runs the rest. If it has to be found out, `here_` is set: true for the one that enqueues it.
  CommandQueue::Where where_ = CommandQueue::Where::kHere;
  mutable std::optional<AdaptiveChoice> here_;
};

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_HOST_EXECUTABLE_H_
