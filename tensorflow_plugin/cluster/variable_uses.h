// The uses that the members of a cluster have for its variables.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_VARIABLE_USES_H_
#define TENSORFLOW_PLUGIN_CLUSTER_VARIABLE_USES_H_

#include <vector>

#include "tensorflow/core/framework/node_def.pb.h"

namespace xpu::cluster {

// The uses of a variable by members of a cluster, those of loops within included.
struct VariableUses {
  bool is_written = false, is_read_on_host = false;
};
// Adds the uses by one member. `variables`: of each of its inputs, the number of the variable; -1 of other inputs.
void AddUses(const tensorflow::NodeDef& member, const std::vector<int>& variables, std::vector<VariableUses>* uses);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_VARIABLE_USES_H_
