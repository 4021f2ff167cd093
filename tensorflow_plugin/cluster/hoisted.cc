#include "tensorflow_plugin/cluster/hoisted.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/replay.h"
#include "tensorflow_plugin/commands/dependencies.h"

namespace xpu::cluster {

namespace tf = tensorflow;

std::shared_ptr<const HoistedValues> Hoister::Find(tf::OpKernelContext* ctx, const std::string& name,
                                                   const Members& members, const Captured& plain,
                                                   const Invocation& invocation, SP_Stream_st* stream) {
  if (!plain.may_hoist) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (given_up_) return nullptr;
  if (!held_.empty() || values_ != nullptr) {
    if (!AreHeld(invocation)) {
      Drop();
      return nullptr;
    }
    ++runs_;
    if (values_ == nullptr) values_ = Make(ctx, name, members, invocation, stream);
    return values_;
  }
  if (++calls_ <= wait_) return nullptr;
  if (!Hold(plain.invariant_variables, invocation)) {
    Drop();
  } else if (held_.empty()) {
    values_ = Make(ctx, name, members, invocation, stream);  // of constants
  }
  return values_;
}

void Hoister::GiveUp() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Drop();
  captured_ = nullptr;
  given_up_ = true;
}

bool Hoister::Hold(const std::vector<int>& variables, const Invocation& invocation) {
  which_ = variables;
  for (int i : variables) {
    held_.push_back(InvariantValue::Hold(*invocation.variables[i]->tensor()));
    if (held_.back() == nullptr) return false;
  }
  return true;
}

bool Hoister::AreHeld(const Invocation& invocation) const {
  for (size_t i = 0; i < held_.size(); ++i) {
    if (!held_[i]->Is(*invocation.variables[which_[i]]->tensor())) return false;
  }
  return true;
}

void Hoister::Drop() {
  wait_ = runs_ >= kMany ? kFirstWait : std::min(2 * wait_, kMostWait);
  calls_ = runs_ = 0;
  held_.clear();
  values_ = nullptr;
}

std::shared_ptr<const HoistedValues> Hoister::Make(tf::OpKernelContext* ctx, const std::string& name,
                                                   const Members& members, const Invocation& invocation,
                                                   SP_Stream_st* stream) {
  if (captured_ == nullptr) {
    Obstacle obstacle;
    captured_ = Capture(members, ctx, *stream->device, invocation, how_, /*max_iterations=*/INT64_MAX, &obstacle);
    Dump(name + ", hoisted", members, captured_.get(), obstacle.why);
  }
  // The list must not read a variable that is not held.
  const auto is_held = [&](int variable) { return std::find(which_.begin(), which_.end(), variable) != which_.end(); };
  if (captured_ == nullptr || captured_->hoisted.list == nullptr ||
      !std::all_of(captured_->hoisted.variables.begin(), captured_->hoisted.variables.end(), is_held)) {
    given_up_ = true;
    Drop();
    captured_ = nullptr;
    return nullptr;
  }
  auto values = std::make_shared<HoistedValues>();
  values->captured = captured_;
  if (!RunHoisted(ctx, *captured_, invocation, stream, &values->tensors).ok()) {
    if (how_ == Capturing::kHoisted && commands::Has<FindWeightsDesc>(*captured_->hoisted.list)) {
      how_ = Capturing::kHoistedAsFloats;
      captured_ = nullptr;
      return Make(ctx, name, members, invocation, stream);
    }
    given_up_ = true;
    Drop();
    return nullptr;
  }
  return values;
}

}  // namespace xpu::cluster
