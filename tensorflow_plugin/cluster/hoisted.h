// The invariants that runs of a capture have computed, so that later runs need not.
#ifndef TENSORFLOW_PLUGIN_CLUSTER_HOISTED_H_
#define TENSORFLOW_PLUGIN_CLUSTER_HOISTED_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/device/stream_handle.h"
#include "tensorflow_plugin/framework/invariant_values.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::cluster {

struct HoistedValues {
  std::shared_ptr<const Captured> captured;  // with `hoisted`
  std::vector<tensorflow::Tensor> tensors;   // of captured->hoisted.results
};

// Finds out for one capture whether its variables stay as they are. Its methods are called with them locked.
class Hoister {
 public:
  // The invariants that a run may use instead of running `plain`; null if it must run that.
  std::shared_ptr<const HoistedValues> FindOrCompute(tensorflow::OpKernelContext* ctx, const std::string& name,
                                                     const Members& members, const Captured& plain,
                                                     const Invocation& invocation, SP_Stream_st* stream);
  // A run has failed by one of the conditions of its list. After some of these, the list is captured without them.
  void NoteFailedCondition();
  // From now on FindOrCompute gives nothing: there was no memory for the invariants.
  void StopHoisting();

 private:
  // Calls that pass before the variables are watched. A program that trains writes them soon. Each time that happens,
  // the wait doubles.
  static constexpr int kFirstWait = 2, kLongestWait = 1024;
  // After so many runs hoisting has paid, and the wait starts small again.
  static constexpr int kRunsThatPay = 64;
  static constexpr int kMostFailedConditions = 4;

  // Those that are not held yet, too; false if one cannot be.
  bool HoldVariables(const std::vector<int>& variables, const Invocation& invocation);
  bool AreVariablesHeld(const Invocation& invocation) const;
  void DropValues();
  std::shared_ptr<const HoistedValues> ComputeValues(tensorflow::OpKernelContext* ctx, const std::string& name,
                                                     const Members& members, const Invocation& invocation,
                                                     SP_Stream_st* stream);

  Mutex mutex_;
  bool stopped_ = false;
  Capturing how_ = Capturing::kHoisted;
  int wait_ = kFirstWait, calls_ = 0, runs_ = 0, failed_conditions_ = 0;
  std::vector<int> held_variables_;  // by number
  std::vector<std::shared_ptr<const InvariantValue>> held_values_;
  std::shared_ptr<const Captured> captured_;
  std::shared_ptr<const HoistedValues> values_;
};

}  // namespace xpu::cluster

#endif  // TENSORFLOW_PLUGIN_CLUSTER_HOISTED_H_
