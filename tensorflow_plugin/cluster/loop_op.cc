#include "tensorflow_plugin/cluster/loop_op.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/capture.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/loop_blocks.h"
#include "tensorflow_plugin/cluster/loop_counter.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/register_op.h"
#include "tensorflow_plugin/device/stream_handle.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

// So many iterations are counted at least, for the next try of a capture.
constexpr int64_t kCountedAhead = 256;

class LoopKernel final : public tf::OpKernel {
 public:
  explicit LoopKernel(tf::OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, CreateMembers(c, &members_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kConditionMembers, &condition_members_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kVariables, &variables_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kExits, &exits_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kConditionOnDevice, &condition_on_device_));
    const int members = static_cast<int>(members_.members().size());
    OP_REQUIRES(c, condition_members_ >= 0 && condition_members_ <= members,
                absl::InvalidArgumentError(
                    absl::StrCat(name(), " has ", members, " members, not ", condition_members_, " and more")));
    OP_REQUIRES(c, members_.results().size() == variables_.size() + 1,
                absl::InvalidArgumentError(absl::StrCat(name(), " needs a condition and a next value for each of ",
                                                        variables_.size(), " variables")));
    for (int argument : variables_) {
      OP_REQUIRES(c, argument >= 0 && argument < num_inputs(),
                  absl::InvalidArgumentError(absl::StrCat(name(), " has no argument ", argument)));
    }
    OP_REQUIRES(c, static_cast<int>(exits_.size()) == num_outputs(),
                absl::InvalidArgumentError(absl::StrCat(name(), " gives ", num_outputs(), " values")));
    for (int variable : exits_) {
      OP_REQUIRES(c, variable >= 0 && variable < static_cast<int>(variables_.size()),
                  absl::InvalidArgumentError(absl::StrCat(name(), " has no variable ", variable)));
    }
    std::vector<tf::DataType> host;
    OP_REQUIRES_OK(c, c->GetAttr(attr::kHost, &host));
    bool no_member = false;
    OP_REQUIRES_OK(c, c->GetAttr(attr::kNoMember, &no_member));
    if (no_member) return;
    const int num_host = static_cast<int>(host.size());
    int num_resources = 0;
    OP_REQUIRES_OK(c, c->GetAttr(attr::kResources, &num_resources));
    counter_ = LoopCounter(members_, variables_, num_host);
    LoopParts parts;
    if (parts.Read(members_, variables_, condition_members_, input_types(), num_host, num_resources)) {
      blocks_ = std::make_unique<LoopBlocks>(std::move(parts));
    }
  }

  void Compute(tf::OpKernelContext* ctx) override {
    Members::Environment environment;
    environment.device = ctx->device();
    environment.resources = ctx->resource_manager();
    std::vector<int> invariant_arguments;
    for (int i = 0; i < ctx->num_inputs(); ++i) {
      environment.arguments.push_back(ctx->input(i));
      if (std::find(variables_.begin(), variables_.end(), i) == variables_.end()) invariant_arguments.push_back(i);
    }
    const std::vector<ValueRef>& results = members_.results();
    std::vector<tf::Tensor> next(variables_.size());
    const CaptureObserver* const observer = CaptureObserver::Current();
    CapturedLoop captured;
    if (observer != nullptr) {
      const int64_t most = std::max(observer->iterations_left(), kCountedAhead);
      captured.iterations = counter_.CountIterations(ctx, environment, most);
    }
    if (observer == nullptr && blocks_ != nullptr) OP_REQUIRES_OK(ctx, blocks_->Advance(ctx, &environment));
    Members::Execution iteration(members_, ctx, environment, invariant_arguments);
    for (;; iteration.StartOver()) {
      OP_REQUIRES(ctx, ctx->cancellation_manager() == nullptr || !ctx->cancellation_manager()->IsCancelled(),
                  absl::CancelledError(absl::StrCat("the loop ", name(), " was cancelled")));
      OP_REQUIRES_OK(ctx, iteration.RunUntil(condition_members_, true));
      const tf::Tensor condition = iteration.TakeValue(results[0], true);
      OP_REQUIRES(ctx, condition.dtype() == tf::DT_BOOL && condition.NumElements() == 1,
                  absl::InvalidArgumentError(absl::StrCat("the condition of ", name(), " must be one bool, not ",
                                                          tf::DataTypeString(condition.dtype()), " of shape ",
                                                          condition.shape().DebugString())));
      bool goes_on = false;
      OP_REQUIRES_OK(ctx, ReadCondition(ctx, condition, &goes_on));
      if (!goes_on) break;
      if (observer != nullptr && !observer->BeginIteration(&captured)) {
        // Not by OP_REQUIRES, which tells the user of it.
        ctx->SetStatus(absl::FailedPreconditionError("so many iterations are captured when they come again"));
        return;
      }
      if (observer == nullptr) NoteIteration();
      OP_REQUIRES_OK(ctx, iteration.RunUntil(static_cast<int>(members_.members().size()), false));
      for (size_t i = 0; i < variables_.size(); ++i) next[i] = iteration.TakeValue(results[i + 1]);
      // A value that changes belongs to the next iteration alone, which may write into it.
      for (size_t i = 0; i < variables_.size(); ++i) environment.arguments[variables_[i]] = std::move(next[i]);
    }
    for (size_t i = 0; i < exits_.size(); ++i) {
      ctx->set_output(static_cast<int>(i), environment.arguments[variables_[exits_[i]]]);
    }
  }

 private:
  absl::Status ReadCondition(tf::OpKernelContext* ctx, const tf::Tensor& condition, bool* value) const {
    if (!condition_on_device_) {
      *value = *static_cast<const bool*>(condition.data());
      return absl::OkStatus();
    }
    SP_Stream_st* stream = nullptr;
    TF_RETURN_IF_ERROR(StreamOf(ctx, &stream));
    TF_RETURN_IF_ERROR(ToAbsl(stream->stream->CopyDeviceToHost(value, condition.data(), sizeof(*value))));
    stream->stream->Wait();
    return ToAbsl(stream->stream->TakeStatus());
  }

  Members members_;
  LoopCounter counter_;
  std::unique_ptr<LoopBlocks> blocks_;  // null if it runs without them
  bool condition_on_device_ = false;
  int condition_members_ = 0;
  std::vector<int> variables_, exits_;
};

}  // namespace

std::string RegisterLoopOp(const std::string& device_type) {
  const OpDefinition op = DefinitionWithMembers(
      kLoopOp, {absl::StrCat(attr::kConditionMembers, ": int >= 0"), absl::StrCat(attr::kVariables, ": list(int)"),
                absl::StrCat(attr::kExits, ": list(int)"), absl::StrCat(attr::kNoMember, ": bool"),
                absl::StrCat(attr::kConditionOnDevice, ": bool")});
  return RegisterOp<LoopKernel>(op, device_type);
}

}  // namespace xpu::cluster
