#include "tensorflow_plugin/cluster/loop_op.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/cluster/cluster_op.h"
#include "tensorflow_plugin/cluster/members.h"
#include "tensorflow_plugin/cluster/register_op.h"

namespace xpu::cluster {
namespace {

namespace tf = tensorflow;

class LoopKernel final : public tf::OpKernel {
 public:
  explicit LoopKernel(tf::OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, CreateMembers(c, &members_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kConditionMembers, &condition_members_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kVariables, &variables_));
    OP_REQUIRES_OK(c, c->GetAttr(attr::kExits, &exits_));
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
  }

  void Compute(tf::OpKernelContext* ctx) override {
    Members::Environment environment;
    environment.device = ctx->device();
    environment.resources = ctx->resource_manager();
    std::vector<tf::Tensor> arguments;
    for (int i = 0; i < ctx->num_inputs(); ++i) arguments.push_back(ctx->input(i));
    const std::vector<Source>& results = members_.results();
    for (;;) {
      OP_REQUIRES(ctx, ctx->cancellation_manager() == nullptr || !ctx->cancellation_manager()->IsCancelled(),
                  absl::CancelledError(absl::StrCat("the loop ", name(), " was cancelled")));
      environment.arguments = arguments;
      // What changes is nobody's but the iteration's, which may write into it.
      for (int argument : variables_) arguments[argument] = tf::Tensor();
      Members::Run iteration(members_, ctx, environment);
      OP_REQUIRES_OK(ctx, iteration.Until(condition_members_, true));
      const tf::Tensor condition = iteration.Take(results[0], true);
      OP_REQUIRES(ctx, condition.dtype() == tf::DT_BOOL && condition.NumElements() == 1,
                  absl::InvalidArgumentError(absl::StrCat("the condition of ", name(), " must be one bool, not ",
                                                          tf::DataTypeString(condition.dtype()), " of shape ",
                                                          condition.shape().DebugString())));
      if (!*static_cast<const bool*>(condition.data())) break;
      OP_REQUIRES_OK(ctx, iteration.Until(static_cast<int>(members_.members().size()), false));
      for (size_t i = 0; i < variables_.size(); ++i) arguments[variables_[i]] = iteration.Take(results[i + 1]);
    }
    for (size_t i = 0; i < exits_.size(); ++i) {
      ctx->set_output(static_cast<int>(i), environment.arguments[variables_[exits_[i]]]);
    }
  }

 private:
  Members members_;
  int condition_members_ = 0;
  std::vector<int> variables_, exits_;
};

}  // namespace

std::string RegisterLoopOp(const std::string& device_type) {
  return RegisterOp<LoopKernel>(
      kLoopOp,
      {absl::StrCat(attr::kConditionMembers, ": int >= 0"), absl::StrCat(attr::kVariables, ": list(int)"),
       absl::StrCat(attr::kExits, ": list(int)")},
      device_type);
}

}  // namespace xpu::cluster
