// ComputeScope: what surrounds every Compute: error reporting after it, and whose commands come is known
// meanwhile.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_

#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/trace/trace_events.h"

struct TF_OpKernelContext;

namespace xpu {

class ComputeScope {
 public:
  explicit ComputeScope(TF_OpKernelContext* native);
  void Fail(const Status& status);

 private:
  TF_OpKernelContext* native_;
  const trace::ScopedOp op_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_COMPUTE_SCOPE_H_
