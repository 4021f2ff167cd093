// A cluster's commands for one signature: its members' kernels run once, on memory that is not there.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_CAPTURE_H_
#define TENSORFLOW_PLUGIN_CLUSTER_CAPTURE_H_

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/trace/trace_events.h"

namespace xpu::cluster {

inline absl::Status ToAbsl(const Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(static_cast<int>(status.code())), status.message());
}

// A tensor that a replay of the list yields.
struct ResultValue {
  enum class Kind {
    kTensor,    // `tensor` itself: computed on the host, or a constant
    kArgument,  // the device argument `index`, in another shape maybe
    kVariable,  // the tensor of the variable `index`, whose buffer commands may have written in place
    kBuffer,    // the buffer `index`
    kEmpty,     // no elements
  };
  Kind kind = Kind::kTensor;
  int index = 0;
  tensorflow::Tensor tensor;
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  tensorflow::TensorShape shape;
};

// The effect of a replay on one variable.
struct VariableUpdate {
  bool written_in_place = false;  // commands write into its buffer, or into a copy if somebody else holds that
  bool assigned = false;          // afterwards it holds `value`
  ResultValue value;
};

// The commands that compute invariants. They run before all others. Its list has the buffers of the capture's.
struct HoistedList {
  std::shared_ptr<const CommandList> list;  // null if there is nothing
  MemoryPlan memory;
  std::unique_ptr<const Executable> executable;
  std::vector<int> results;    // buffers
  std::vector<int> variables;  // that it reads
};

struct Captured {
  // The list's commands, each with the op that made it. They are made when a profiler first listens.
  trace::ScopedListLabels::Labels Labels() const;

  std::shared_ptr<const CommandList> list;
  MemoryPlan memory;
  std::unique_ptr<const Executable> executable;  // of the list
  // The op that each command is of. The members come first, then those of their loops.
  std::vector<const tensorflow::NodeDef*> origins;
  trace::ListOps::Ops ops;     // the names of the same
  std::vector<int> uploaded;   // the buffer of each argument that is uploaded
  std::vector<int> numbers;    // for iterations: the buffer of each of Invocation::numbers
  std::vector<int> elements;   // and of Invocation::elements
  std::vector<int> arguments;  // the buffer of each device argument
  std::vector<int> variables;  // the buffer of each variable
  std::vector<ResultValue> results;
  std::vector<VariableUpdate> variable_updates;  // by variable
  std::vector<int> written_arguments;            // buffers of device arguments that commands write into
  // Device arguments, by number, whose memory becomes a buffer that commands write. The buffer is a copy if anything
  // else refers to the argument.
  struct DonatedArgument {
    int argument, buffer;
  };
  std::vector<DonatedArgument> donated_arguments;

  // For Capturing::kInOneList: whether anything is computed of nothing but variables that no run writes, and of which.
  bool may_hoist = false;
  std::vector<int> invariant_variables;
  // For Capturing::kHoisted: its results are given to `list`.
  HoistedList hoisted;

 private:
  mutable std::once_flag labels_made_;
  mutable trace::ScopedListLabels::Labels labels_;
};

// The arguments and variables of the call that is captured.
struct Invocation {
  // So many of a kind take no memory of their own.
  static constexpr size_t kFew = 8;

  // Arguments, in this order: in host memory, there but read on the device, in device memory. The last are the
  // kernel's own: further references would keep commands from writing them in place.
  std::vector<tensorflow::Tensor> host, uploaded;
  absl::InlinedVector<const tensorflow::Tensor*, kFew> device;
  absl::InlinedVector<tensorflow::Var*, kFew> variables;  // each once, locked
  // By variable, if members look at its value: that value, in host memory. Variables of the CPU have no other place.
  // Both are empty if members look at no value.
  std::vector<std::optional<tensorflow::Tensor>> known_values;
  std::vector<bool> is_of_cpu;
  const tensorflow::Tensor* KnownValue(size_t variable) const {
    return known_values.empty() || !known_values[variable] ? nullptr : &*known_values[variable];
  }
  bool IsOfCpu(size_t variable) const { return !is_of_cpu.empty() && is_of_cpu[variable]; }
  // Resource arguments follow: which variable each one is, and its handle, which lives as long as the call.
  absl::InlinedVector<int, kFew> variable_of_resource;
  absl::InlinedVector<const tensorflow::ResourceHandle*, kFew> handles;
  // The results that are fetched from the device: so many, after so many others.
  int num_fetched = 0, first_fetched = 0;
  // Further arguments for a block of iterations (docs/clusters.md). Numbers that the body computes with and that the
  // host knows, such as the count. Each is a vector in host memory, with an element for each iteration. Members that
  // read one copy it to the device and do not look at it.
  std::vector<tensorflow::Tensor> numbers;
  // Tensors that the body reads at the count, in device memory, such as rows x[i]. Those of the first iteration come
  // first, then those of the second, and so on.
  std::vector<tensorflow::Tensor> elements;
};

// The first uploaded argument that has the same elements, at the same place, as number i: i or less. A reshaped value
// does, and is uploaded once.
inline size_t FirstWithElements(const Invocation& invocation, size_t i) {
  const tensorflow::Tensor& value = invocation.uploaded[i];
  size_t first = 0;
  while (first < i && (invocation.uploaded[first].data() != value.data() || value.data() == nullptr ||
                       invocation.uploaded[first].TotalBytes() != value.TotalBytes())) {
    ++first;
  }
  return first;
}

// So many iterations of a loop, whose members are the cluster's. Their first results are the next values of
// `variables`, which are arguments. The values of these at the end are the first results of all. The members' other
// results follow, those of each iteration.
struct Iterations {
  int64_t count;
  std::vector<int> variables;
  // An iteration's part of Invocation::elements.
  std::vector<std::pair<tensorflow::DataType, tensorflow::TensorShape>> elements;
};

enum class Capturing {
  kInOneList,
  kHoisted,              // into two lists: see HoistedList
  kHoistedWithoutBytes,  // the same, without MultiplyInBytes, whose conditions fail again and again, or fail too late
  kHoistedAsFloats,      // the same, without any pass that adds conditions, where a hoisted one has failed
};

// The reason why a capture failed.
struct Obstacle {
  std::string why;                   // for people
  bool has_many_iterations = false;  // of loops, more than it was to capture
  int64_t iterations = 0;            // so many at least
  bool has_many_commands = false;    // more than a list may have, or would have with all iterations
};

// Captures the members' commands for `real`, the device of the cluster: not more than `max_iterations` of its loops,
// all of them together. On failure nothing has happened.
std::unique_ptr<Captured> Capture(const Members& members, tensorflow::OpKernelContext* outer, Device& real,
                                  const Invocation& invocation, Capturing how, int64_t max_iterations,
                                  Obstacle* obstacle);

// Captures that many iterations of a loop, which compute what they would compute one by one, to the bit. Loops within
// have not more than `max_iterations`, all of them together.
std::unique_ptr<Captured> CaptureIterations(const Members& members, tensorflow::OpKernelContext* outer, Device& real,
                                            const Invocation& invocation, const Iterations& iterations,
                                            int64_t max_iterations, Obstacle* obstacle);

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_CAPTURE_H_
