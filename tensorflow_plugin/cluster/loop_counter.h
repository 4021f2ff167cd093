// The number of a loop's iterations, known before the loop runs.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_LOOP_COUNTER_H_
#define TENSORFLOW_PLUGIN_CLUSTER_LOOP_COUNTER_H_

#include <cstdint>
#include <set>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/number_program.h"

namespace xpu::cluster {

// True if a member may run once more, since it changes nothing and needs nothing but the host's values.
bool CountsOnHost(const Members::Member& member);
// The arguments that are values: handles of variables aside that are read in host memory.
std::set<int> ArgumentsOf(const Members& members);

// Runs the members of a loop that decide its condition, and no others, if all their values are in host memory.
class LoopCounter {
 public:
  static constexpr int64_t kUnknown = -1;

  // `members` and `variables` are the loop's (loop_op.h). Its first arguments, `num_host` of them, are in host memory.
  LoopCounter(const Members& members, const std::vector<int>& variables, int num_host);
  LoopCounter() = default;

  // The number of iterations from `arguments` on, or `most` + 1 if there are more.
  int64_t CountIterations(tensorflow::OpKernelContext* ctx, Members::Environment arguments, int64_t most) const;

 private:
  bool can_count_ = false;
  Members members_;  // their results are the condition and the next values of the variables
  bool has_program_ = false;
  NumberProgram program_;  // that computes the same
  std::vector<int> variables_, invariant_arguments_;
};

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_LOOP_COUNTER_H_
