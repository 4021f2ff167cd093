// A function whose graph is a few ops in a row, called without TensorFlow's executor.
//
// TensorFlow's way into a function costs 50 microseconds and 2.5 for each argument. Most of it repeats in each call:
// keys of caches, copies of handles, an executor's node for each argument. A graph with ops on two devices takes two
// threads. In a training step of a small model, whose variables are arguments and whose ops are one cluster, that is
// most of the time.
#ifndef TENSORFLOW_PLUGIN_DIRECT_CALL_DIRECT_CALL_H_
#define TENSORFLOW_PLUGIN_DIRECT_CALL_DIRECT_CALL_H_

#include <functional>
#include <vector>

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/tensor.h"

namespace xpu::direct_call {

class DirectCall {
 public:
  // Where an argument must lie, or a result does.
  struct Placement {
    tensorflow::DataType type = tensorflow::DT_INVALID;  // DT_INVALID: an argument that nobody reads
    tensorflow::Device* device = nullptr;                // of a resource, its own
    bool in_host_memory = true;
  };
  using Runner = std::function<void(std::function<void()>)>;

  virtual ~DirectCall() = default;
  virtual const std::vector<Placement>& arguments() const = 0;
  virtual const std::vector<Placement>& results() const = 0;
  // One op after the other, on the calling thread; any number of threads may. An error names the op. `arguments` lie
  // where they must; beyond those of arguments() there may be some that nothing reads. `runner` is for ops that have
  // work for other threads.
  virtual absl::Status Run(const std::vector<tensorflow::Tensor>& arguments, Runner* runner,
                           std::vector<tensorflow::Tensor>* results) const = 0;
};

}  // namespace xpu::direct_call

#endif  // TENSORFLOW_PLUGIN_DIRECT_CALL_DIRECT_CALL_H_
