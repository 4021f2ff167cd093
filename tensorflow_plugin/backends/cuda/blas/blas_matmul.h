// Matmuls by cuBLASLt. The kernels of backends/gpu compute the products that it does not support, and all products
// where it is missing.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_MATMUL_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_MATMUL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"
#include "tensorflow_plugin/backends/cuda/driver.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cuda {

class Machine;
class Queue;

class BlasMatmul {
 public:
  BlasMatmul();
  ~BlasMatmul();
  BlasMatmul(const BlasMatmul&) = delete;
  BlasMatmul& operator=(const BlasMatmul&) = delete;

  // Enqueues the matmul if cuBLASLt can compute it; else `enqueued` is false and nothing has happened.
  Status Enqueue(Machine& machine, Queue& queue, const MatMulDesc& desc, const Args& args, bool* enqueued);

 private:
  struct Plan;
  // All that a plan depends on.
  using Key = std::vector<int64_t>;
  struct Operands {
    const void *a, *b;
    const void *bias, *added;  // null where the plan has none
    void* out;
  };
  // Null: there is none.
  const Plan* FindPlan(Machine& machine, Queue& queue, const Key& key);
  std::unique_ptr<Plan> MakePlan(const Key& key);
  // True if the Relu of a plan gives NaN for NaN, as it must.
  bool KeepsNan(Machine& machine, const Key& key, const Plan& plan);
  // Gives the product to a stream.
  Status Run(const Plan& plan, const Operands& operands, void* scratch, StreamHandle stream) const;

  std::mutex mutex_;
  BlasHandle handle_ = nullptr;
  bool is_absent_ = false;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_MATMUL_H_
