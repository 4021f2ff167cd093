// Replays: runs of captured commands.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_REPLAY_H_
#define TENSORFLOW_PLUGIN_CLUSTER_REPLAY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/variable_lock.h"

namespace xpu::cluster {

// The variables of a cluster, each once, locked in the order that all kernels keep.
class ClusterVariables {
 public:
  using VariableList = decltype(Invocation::variables);

  // The number of the variable; the same for one that was added before.
  int Add(tensorflow::core::RefCountPtr<tensorflow::Var> variable, bool write);
  void Lock();
  const VariableList& variables() const { return variables_; }

 private:
  // So many are found without a table.
  static constexpr size_t kFew = 16;
  int NumberOf(tensorflow::Var* variable);

  absl::InlinedVector<tensorflow::core::RefCountPtr<tensorflow::Var>, Invocation::kFew> owned_;
  VariableList variables_;
  absl::flat_hash_map<tensorflow::Var*, int> numbers_;  // of all, once there are more
  // By number; unlocked before the variables are released.
  absl::InlinedVector<VariableLock, Invocation::kFew> locks_;
};

// Finds the variable of a handle, which is the next resource argument. False if there is none. `anywhere`: the CPU may
// have it.
bool AddVariable(tensorflow::OpKernelContext* ctx, const tensorflow::Tensor& handle, bool anywhere, bool write,
                 Invocation* invocation, ClusterVariables* variables);
// Locks what has been added. False if a variable has no value, or one that each read copies.
bool LockVariables(ClusterVariables* variables, Invocation* invocation);

// How far a replay came.
struct ReplayProgress {
  // Memory is there and enqueuing has begun, so that commands may have written variables in place.
  bool began = false;
  // A condition was not met (Command::is_condition).
  bool has_failed_condition = false;
};

// Allocates, enqueues, and sets the outputs of `ctx` and the variables of `invocation`.
// `hoisted`: the results of captured->hoisted; none for a capture in one list. `results`: takes the results, instead of
// the outputs of `ctx`.
absl::Status Replay(tensorflow::OpKernelContext* ctx, const std::shared_ptr<const Captured>& captured,
                    const Invocation& invocation, const std::vector<tensorflow::Tensor>& hoisted, SP_Stream_st* stream,
                    ReplayProgress* progress, std::vector<tensorflow::Tensor>* results = nullptr);

// Enqueues captured.hoisted, and gives its results; nothing is done where those would take much of what memory is free.
absl::Status RunHoisted(tensorflow::OpKernelContext* ctx, const Captured& captured, const Invocation& invocation,
                        SP_Stream_st* stream, std::vector<tensorflow::Tensor>* results);

// A copy of the host's data, which the list reads later. The owner of shared memory, such as a NumPy array, may write
// into it once the op has returned.
absl::Status CopyOnHost(tensorflow::OpKernelContext* ctx, const tensorflow::Tensor& value, tensorflow::Tensor* copy);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_REPLAY_H_
