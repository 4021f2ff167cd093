// The ops of a cluster: their kernels, which are TensorFlow's objects, and how values pass between them.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_
#define TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace xpu::cluster {

// Where a value comes from: output `index` of a member, or argument `index` of the cluster.
struct Source {
  static constexpr int kArgument = -1;
  int member = kArgument;
  int index = 0;
};

// How a source is written in a NodeDef's input: "3:0", or ":2" for an argument.
std::string ToString(const Source& source);
absl::Status ParseSource(const std::string& text, Source* source);

class Members {
 public:
  struct Member {
    std::unique_ptr<tensorflow::OpKernel> kernel;
    std::vector<Source> inputs;
    std::vector<tensorflow::AllocatorAttributes> input_attrs, output_attrs;
    // How often each output is read: by members, and once if it is a result of the cluster.
    std::vector<int> uses;
  };

  // Makes the kernels of the nodes of `graph`, which are in an order that may run, on the device of `construction`.
  // `results` are the values that the cluster gives.
  absl::Status Create(tensorflow::OpKernelConstruction* construction, const tensorflow::GraphDef& graph,
                      std::vector<Source> results);

  const std::vector<Member>& members() const { return members_; }
  const std::vector<Source>& results() const { return results_; }

  // Where members run: on the device of the cluster, or where their commands are recorded.
  struct Environment {
    tensorflow::DeviceBase* device = nullptr;
    tensorflow::ResourceMgr* resources = nullptr;
    std::vector<tensorflow::Tensor> arguments;  // of the cluster
    // If set: called before each member, and with each tensor that a member gives.
    std::function<void(int member)> before;
    std::function<void(const tensorflow::Tensor&)> on_value;
  };

  // Runs them one after the other as TensorFlow's executor would, on the calling thread; values that nobody reads any
  // more are let go. `outer`: the execution of the cluster. An error is the member's, which it names.
  absl::Status Run(tensorflow::OpKernelContext* outer, Environment& environment,
                   std::vector<tensorflow::Tensor>* results) const;

 private:
  absl::Status RunOne(const Member& member, tensorflow::OpKernelContext* outer, const Environment& environment,
                      std::vector<tensorflow::Tensor>* inputs, std::vector<tensorflow::Tensor>* outputs) const;

  std::vector<Member> members_;
  std::vector<Source> results_;
};

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_MEMBERS_H_
