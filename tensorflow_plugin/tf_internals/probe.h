// Runs one of TensorFlow's CPU kernels as clusters and direct calls run kernels, on a device and with resources of its
// own: what a check looks at.
#ifndef TENSORFLOW_PLUGIN_TF_INTERNALS_PROBE_H_
#define TENSORFLOW_PLUGIN_TF_INTERNALS_PROBE_H_

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"

namespace xpu::tf_internals {

// Counts what it is asked for.
class ProbeDevice final : public tensorflow::DeviceBase {
 public:
  ProbeDevice();

  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes attributes) override;
  const tensorflow::DeviceAttributes& attributes() const override { return attributes_; }
  const std::string& name() const override { return attributes_.name(); }
  const tensorflow::DeviceNameUtils::ParsedName& parsed_name() const override { return parsed_name_; }
  const std::string& device_type() const override { return attributes_.device_type(); }

  int allocators_asked_for() const { return allocators_asked_for_; }

 private:
  tensorflow::DeviceAttributes attributes_;
  tensorflow::DeviceNameUtils::ParsedName parsed_name_;
  int allocators_asked_for_ = 0;
};

class Probe {
 public:
  static constexpr int64_t kStep = (int64_t{1} << 62) - 1;

  Probe();

  // Runs a node's kernel. `look` is called once it has run. The outputs; none, and a reason, if that fails.
  using Outputs = std::vector<tensorflow::Tensor>;
  using Look = std::function<void(tensorflow::OpKernelContext&)>;
  Outputs Run(const tensorflow::NodeDef& node, const std::vector<tensorflow::Tensor>& inputs, std::string* why,
              const Look& look = nullptr);

  ProbeDevice& device() { return device_; }
  tensorflow::ResourceMgr& resources() { return resources_; }
  tensorflow::CancellationManager& cancellation() { return cancellation_; }
  tensorflow::ScopedStepContainer& of_step() { return of_step_; }

 private:
  absl::Status TryRun(tensorflow::NodeDef node, const std::vector<tensorflow::Tensor>& inputs, Outputs* outputs,
                      const Look& look);

  ProbeDevice device_;
  tensorflow::ResourceMgr resources_;
  tensorflow::CancellationManager cancellation_;
  tensorflow::ScopedStepContainer of_step_;
};

// A node without inputs; attributes are added by tensorflow::AddNodeAttr.
tensorflow::NodeDef NodeOf(const std::string& op);

// A scalar of the host.
tensorflow::Tensor Scalar(int32_t value);

}  // namespace xpu::tf_internals

#endif  // TENSORFLOW_PLUGIN_TF_INTERNALS_PROBE_H_
