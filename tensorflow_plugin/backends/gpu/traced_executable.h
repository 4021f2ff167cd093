// Command lists whose commands a profiler sees one by one, each with its op.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_TRACED_EXECUTABLE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_TRACED_EXECUTABLE_H_

#include <memory>

#include "tensorflow_plugin/backends/gpu/machine.h"
#include "tensorflow_plugin/primitives/backend.h"

namespace xpu::gpu {

class TracedExecutable : public SequentialExecutable {
 public:
  using SequentialExecutable::SequentialExecutable;

  Status Run(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data, int* failed) const final;

 protected:
  // Does the work of Run. While a profiler listens, commands that are enqueued by Enqueue are in the profile.
  virtual Status RunCommands(Stream& stream, char* const* addresses, std::shared_ptr<const void> host_data,
                             int* failed) const {
    return SequentialExecutable::Run(stream, addresses, std::move(host_data), failed);
  }
  Status Enqueue(Stream& stream, size_t i, char* const* addresses, Status* on_data) const final;
};

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_TRACED_EXECUTABLE_H_
