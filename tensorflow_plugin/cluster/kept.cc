#include "tensorflow_plugin/cluster/kept.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/dump.h"
#include "tensorflow_plugin/cluster/replay.h"

namespace xpu::cluster {

namespace tf = tensorflow;

std::shared_ptr<const KeptValues> Keeper::Find(tf::OpKernelContext* ctx, const std::string& name,
                                               const Members& members, const Captured& plain,
                                               const Situation& situation, SP_Stream_st* stream) {
  if (!plain.may_keep) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (hopeless_) return nullptr;
  if (!held_.empty() || values_ != nullptr) {
    if (!AreHeld(situation)) {
      Drop();
      return nullptr;
    }
    ++runs_;
    if (values_ == nullptr) values_ = Make(ctx, name, members, situation, stream);
    return values_;
  }
  if (++calls_ <= wait_) return nullptr;
  if (!Hold(plain.staying, situation)) {
    Drop();
  } else if (held_.empty()) {
    values_ = Make(ctx, name, members, situation, stream);  // of constants
  }
  return values_;
}

void Keeper::GiveUp() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Drop();
  captured_ = nullptr;
  hopeless_ = true;
}

bool Keeper::Hold(const std::vector<int>& variables, const Situation& situation) {
  which_ = variables;
  for (int i : variables) {
    held_.push_back(HeldValue::Hold(*situation.variables[i]->tensor()));
    if (held_.back() == nullptr) return false;
  }
  return true;
}

bool Keeper::AreHeld(const Situation& situation) const {
  for (size_t i = 0; i < held_.size(); ++i) {
    if (!held_[i]->Is(*situation.variables[which_[i]]->tensor())) return false;
  }
  return true;
}

void Keeper::Drop() {
  wait_ = runs_ >= kMany ? kFirstWait : std::min(2 * wait_, kMostWait);
  calls_ = runs_ = 0;
  held_.clear();
  values_ = nullptr;
}

std::shared_ptr<const KeptValues> Keeper::Make(tf::OpKernelContext* ctx, const std::string& name,
                                               const Members& members, const Situation& situation,
                                               SP_Stream_st* stream) {
  if (captured_ == nullptr) {
    Obstacle obstacle;
    captured_ = Capture(members, ctx, *stream->device, situation, Capturing::kWhatStaysOnce,
                        /*max_iterations=*/INT64_MAX, &obstacle);
    Dump(name + ", with what is kept", members, captured_.get(), obstacle.why);
  }
  // Another list may be read of other variables, but not of more.
  const auto is_held = [&](int variable) { return std::find(which_.begin(), which_.end(), variable) != which_.end(); };
  if (captured_ == nullptr || captured_->once.list == nullptr ||
      !std::all_of(captured_->once.variables.begin(), captured_->once.variables.end(), is_held)) {
    hopeless_ = true;
    Drop();
    captured_ = nullptr;
    return nullptr;
  }
  auto values = std::make_shared<KeptValues>();
  values->captured = captured_;
  if (!RunOnce(ctx, *captured_, situation, stream, &values->tensors).ok()) {
    hopeless_ = true;
    Drop();
    return nullptr;
  }
  return values;
}

}  // namespace xpu::cluster
