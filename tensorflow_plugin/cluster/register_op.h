// The registration of this folder's ops and kernels, and what their kernels have in common.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/op_traits.h"

namespace xpu::cluster {

// The members that the attributes of an op describe.
absl::Status CreateMembers(tensorflow::OpKernelConstruction* construction, Members* members);

// All that TensorFlow has to know of an op. Attributes, arguments and results are written as in a REGISTER_OP.
struct OpDefinition {
  const char* name;
  OpTraits traits;
  std::vector<std::string> attributes, inputs, outputs;
  std::vector<const char*> on_host;  // names of arguments and results that are in host memory
  bool is_stateful = false;          // nobody may fold it, drop it or make one of two
};

// The definition of an op with the attributes of cluster_op.h and `more`.
OpDefinition DefinitionWithMembers(const char* name, const std::vector<std::string>& more);

// Registers an op, and its kernel for devices of this type. Returns what went wrong, or nothing.
std::string RegisterOp(const OpDefinition& op, const std::string& device_type,
                       std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> factory);

// The stream of the device that runs a kernel; null, and an error, if it has none.
absl::Status StreamOf(tensorflow::OpKernelContext* ctx, SP_Stream_st** stream);

template <typename Kernel>
class KernelFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  tensorflow::OpKernel* Create(tensorflow::OpKernelConstruction* construction) override {
    return new Kernel(construction);
  }
};

template <typename Kernel>
std::string RegisterOp(const OpDefinition& op, const std::string& device_type) {
  return RegisterOp(op, device_type, std::make_unique<KernelFactory<Kernel>>());
}

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_
