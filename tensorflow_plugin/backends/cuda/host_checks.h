// Commands that may fail on data, where the host knows the data before they run. The GPU then takes no wait for them,
// and they may be in a graph.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_HOST_CHECKS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_HOST_CHECKS_H_

#include <cstddef>
#include <vector>

#include "tensorflow_plugin/primitives/command_list.h"

namespace xpu::cuda {

// True if it may fail, and changes nothing. A list begins with such checks of its indices.
bool IsCheck(const Command& command);

class HostChecks {
 public:
  // The list outlives it.
  explicit HostChecks(const CommandList& list);

  // True if command i cannot fail in a run in which FindFailure finds nothing.
  bool IsSafe(size_t i) const { return is_safe_[i]; }

  // The first command whose indices are out of range, among those whose indices the list copies from the host; -1 if
  // there is none. `failure` is what the command would report.
  int FindFailure(char* const* addresses, Status* failure) const;

 private:
  // Indices of a gather or a scatter, in the host's memory.
  struct Indices {
    size_t command;
    BufferSlice place;
    DType type;
    int64_t batches, in_each;  // rows of coordinates
    bool skip_negative;
  };
  bool FindIndices(size_t i, Indices* found) const;

  const CommandList& list_;
  std::vector<std::vector<size_t>> writers_;  // by buffer
  std::vector<Indices> indices_;
  std::vector<bool> is_safe_;  // by command
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_HOST_CHECKS_H_
