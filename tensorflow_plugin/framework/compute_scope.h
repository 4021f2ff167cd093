// ComputeScope: what surrounds every Compute: error reporting after it, and a profiler that listens is told whose
// commands come.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_

#include <optional>

#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/recording/recording.h"

struct TF_OpKernelContext;

namespace xpu {

class ComputeScope {
 public:
  explicit ComputeScope(TF_OpKernelContext* native);
  void Fail(const Status& status);

 private:
  TF_OpKernelContext* native_;
  std::optional<recording::Op> op_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_
