// Convolutions by cuDNN. The kernels of backends/gpu compute those that it does not support, and all where it is
// missing.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_CONVOLUTION_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_CONVOLUTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cuda {

class Machine;
class Queue;

class DnnConvolution {
 public:
  DnnConvolution();
  ~DnnConvolution();
  DnnConvolution(const DnnConvolution&) = delete;
  DnnConvolution& operator=(const DnnConvolution&) = delete;

  // Enqueues the convolution if cuDNN can compute it; else `enqueued` is false and nothing has happened. `how`, which
  // may be null, gets the engine, or why there is none.
  Status Enqueue(Machine& machine, Queue& queue, const ConvolutionDesc& desc, const Args& args, bool* enqueued,
                 std::string* how = nullptr);

 private:
  struct Plan;
  struct Key;
  // Null: cuDNN is not there.
  const Plan* FindPlan(Machine& machine, Queue& queue, const Key& key, std::string* why);
  // The same, with the scratch memory that it needs. Null: there is none.
  Status FindPlanAndScratch(Machine& machine, Queue& queue, Key* key, const Plan** plan, void** scratch,
                            std::string* how);
  Status MakePlan(const Key& key, Plan* plan);
  Status TryOnNan(Machine& machine, const Key& key, const Plan& plan);
  // Under mutex_.
  Status Execute(const Plan& plan, StreamHandle stream, const std::vector<void*>& pointers, void* workspace);

  // A handle is one thread's at a time.
  std::mutex mutex_;
  DnnHandle handle_ = nullptr;
  std::string why_absent_;
  std::map<std::vector<int64_t>, std::unique_ptr<Plan>> plans_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_DNN_DNN_CONVOLUTION_H_
