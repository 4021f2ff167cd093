#include "tensorflow_plugin/cluster/hoisted.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/replay.h"
#include "tensorflow_plugin/commands/dependencies.h"

namespace xpu::cluster {

namespace tf = tensorflow;

namespace {

// True if no command can have written an input when a condition fails. So another list can run instead.
bool ConditionsPrecedeWrites(const CommandList& list) {
  const auto last = std::find_if(list.commands.rbegin(), list.commands.rend(),
                                 [](const Command& command) { return command.is_condition; });
  return std::none_of(last, list.commands.rend(), [&](const Command& command) { return WritesInput(list, command); });
}

}  // namespace

std::shared_ptr<const HoistedValues> Hoister::FindOrCompute(tf::OpKernelContext* ctx, const std::string& name,
                                                            const Members& members, const Captured& plain,
                                                            const Invocation& invocation, SP_Stream_st* stream) {
  if (!plain.may_hoist) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return nullptr;
  if (!held_values_.empty() || values_ != nullptr) {
    if (!AreVariablesHeld(invocation)) {
      DropValues();
      return nullptr;
    }
    ++runs_;
    if (values_ == nullptr) values_ = ComputeValues(ctx, name, members, invocation, stream);
    return values_;
  }
  if (++calls_ <= wait_) return nullptr;
  if (!HoldVariables(plain.invariant_variables, invocation)) {
    DropValues();
  } else if (held_values_.empty()) {
    values_ = ComputeValues(ctx, name, members, invocation, stream);  // of constants
  }
  return values_;
}

void Hoister::NoteFailedCondition() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (++failed_conditions_ != kMostFailedConditions) return;
  how_ = Capturing::kHoistedWithoutBytes;
  captured_ = nullptr;
  values_ = nullptr;
}

void Hoister::StopHoisting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  DropValues();
  captured_ = nullptr;
  stopped_ = true;
}

bool Hoister::HoldVariables(const std::vector<int>& variables, const Invocation& invocation) {
  for (int i : variables) {
    if (std::find(held_variables_.begin(), held_variables_.end(), i) != held_variables_.end()) continue;
    held_variables_.push_back(i);
    held_values_.push_back(InvariantValue::Hold(*invocation.variables[i]->tensor()));
    if (held_values_.back() == nullptr) return false;
  }
  return true;
}

bool Hoister::AreVariablesHeld(const Invocation& invocation) const {
  for (size_t i = 0; i < held_values_.size(); ++i) {
    if (!held_values_[i]->Is(*invocation.variables[held_variables_[i]]->tensor())) return false;
  }
  return true;
}

void Hoister::DropValues() {
  wait_ = runs_ >= kRunsThatPay ? kFirstWait : std::min(2 * wait_, kLongestWait);
  calls_ = runs_ = 0;
  held_variables_.clear();
  held_values_.clear();
  values_ = nullptr;
}

std::shared_ptr<const HoistedValues> Hoister::ComputeValues(tf::OpKernelContext* ctx, const std::string& name,
                                                            const Members& members, const Invocation& invocation,
                                                            SP_Stream_st* stream) {
  if (captured_ == nullptr) {
    Obstacle obstacle;
    captured_ = Capture(members, ctx, *stream->device, invocation, how_, /*max_iterations=*/INT64_MAX, &obstacle);
    if (captured_ != nullptr && how_ == Capturing::kHoisted && !ConditionsPrecedeWrites(*captured_->list)) {
      how_ = Capturing::kHoistedWithoutBytes;
      captured_ = nullptr;
      return ComputeValues(ctx, name, members, invocation, stream);
    }
    Dump(name + ", hoisted", members, captured_.get(), obstacle.why);
  }
  // Passes may have it read more variables.
  if (captured_ == nullptr || captured_->hoisted.list == nullptr ||
      !HoldVariables(captured_->hoisted.variables, invocation)) {
    stopped_ = true;
    DropValues();
    captured_ = nullptr;
    return nullptr;
  }
  auto values = std::make_shared<HoistedValues>();
  values->captured = captured_;
  if (!RunHoisted(ctx, *captured_, invocation, stream, &values->tensors).ok()) {
    const std::vector<Command>& commands = captured_->hoisted.list->commands;
    if (how_ != Capturing::kHoistedAsFloats &&
        std::any_of(commands.begin(), commands.end(), [](const Command& command) { return command.may_fail(); })) {
      how_ = Capturing::kHoistedAsFloats;
      captured_ = nullptr;
      return ComputeValues(ctx, name, members, invocation, stream);
    }
    stopped_ = true;
    DropValues();
    return nullptr;
  }
  return values;
}

}  // namespace xpu::cluster
