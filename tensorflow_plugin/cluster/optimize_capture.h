// The passes over a captured list, and what its replays need of it: memory, and the variables and arguments that the
// list writes in place.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_OPTIMIZE_CAPTURE_H_
#define TENSORFLOW_PLUGIN_CLUSTER_OPTIMIZE_CAPTURE_H_

#include <functional>
#include <vector>

#include "tensorflow_plugin/cluster/capture.h"

namespace xpu::cluster {

// Completes `captured`, whose results and variable updates are known, with the list that makes them. `is_of_loop`: the
// list has iterations of a loop. `constant_at` gives the bytes of a fixed buffer, or none if it does not know them.
void OptimizeCapture(const Invocation& invocation, Device& device, bool is_of_loop, Capturing how,
                     const std::function<std::vector<char>(const void* address)>& constant_at, CommandList list,
                     Captured* captured);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_OPTIMIZE_CAPTURE_H_
