// The common parts of ops that hold other ops: attributes, and the registration of ops and kernels.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_
#define TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/members.h"

namespace xpu::cluster {

// The members that the attributes of an op describe.
absl::Status CreateMembers(tensorflow::OpKernelConstruction* construction, Members* members);

// Registers an op with the attributes of cluster_op.h and `more`, and its kernel for devices of this type. Returns what
// went wrong, or nothing.
std::string RegisterOp(const char* name, const std::vector<std::string>& more, const std::string& device_type,
                       std::unique_ptr<tensorflow::kernel_factory::OpKernelFactory> factory);

template <typename Kernel>
class KernelFactory : public tensorflow::kernel_factory::OpKernelFactory {
 public:
  tensorflow::OpKernel* Create(tensorflow::OpKernelConstruction* construction) override {
    return new Kernel(construction);
  }
};

template <typename Kernel>
std::string RegisterOp(const char* name, const std::vector<std::string>& more, const std::string& device_type) {
  return RegisterOp(name, more, device_type, std::make_unique<KernelFactory<Kernel>>());
}

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_REGISTER_OP_H_
