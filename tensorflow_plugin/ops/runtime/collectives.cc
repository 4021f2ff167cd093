// Collective ops beside those that TensorFlow has for every device: their kernels hand tensors to the collective
// executor, which copies between devices. CollectiveReduce and CollectiveReduceV3 are not among them. Their kernels
// make the Add that they merge with for the device type that they were registered for, a GPU.
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {

void RegisterCollectives(Registry& registry) {
  registry.Adopt({"CollectiveAllToAllV3", "CollectiveGather", "CollectiveInitializeCommunicator"});
}

}  // namespace xpu
