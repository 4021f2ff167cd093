#include "tensorflow_plugin/framework/variables.h"

#include <algorithm>

#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/framework/native.h"

namespace xpu {

struct LockedVariable::State {
  tensorflow::core::RefCountPtr<tensorflow::Var> var;
  LockMode mode = LockMode::kShared;
  bool locked = false;
  bool pending = false;  // a fresh buffer waits for Commit
  tensorflow::Tensor fresh;

  ~State() {
    if (!locked) return;
    if (mode == LockMode::kShared) {
      var->mu()->unlock_shared();
    } else {
      var->mu()->unlock();
    }
  }
  void Acquire() {
    if (mode == LockMode::kShared) {
      var->mu()->lock_shared();
    } else {
      var->mu()->lock();
    }
    locked = true;
  }
  Status CheckUsable() const {
    if (!var->is_initialized) {
      return errors::FailedPrecondition(
          "Error while reading resource variable: it is uninitialized, or it has been destroyed.");
    }
    const int rank = var->tensor()->dims();
    if (rank > Dims::kMaxRank) {
      return errors::Unimplemented("XPU kernels take variables of at most ", Dims::kMaxRank, " dimensions, got ", rank);
    }
    return OkStatus();
  }
};

LockedVariable::LockedVariable() = default;
LockedVariable::~LockedVariable() = default;
LockedVariable::LockedVariable(LockedVariable&&) noexcept = default;
LockedVariable& LockedVariable::operator=(LockedVariable&&) noexcept = default;

Status LockedVariable::Lock(Context& ctx, int i, LockMode mode, LockedVariable* out) {
  std::vector<LockedVariable> one;
  XPU_RETURN_IF_ERROR(LockAll(ctx, {i}, mode, &one));
  *out = std::move(one[0]);
  return OkStatus();
}

Status LockedVariable::LockAll(Context& ctx, const std::vector<int>& inputs, LockMode mode,
                               std::vector<LockedVariable>* out) {
  out->clear();
  std::vector<State*> order;
  for (int i : inputs) {
    LockedVariable v;
    v.state_ = std::make_unique<State>();
    v.state_->mode = mode;
    tensorflow::ResourceHandle handle;
    XPU_RETURN_IF_ERROR(FromNative(tensorflow::HandleFromInput(Native(ctx), i, &handle)));
    XPU_RETURN_IF_ERROR(FromNative(tensorflow::LookupResource(Native(ctx), handle, &v.state_->var)));
    order.push_back(v.state_.get());
    out->push_back(std::move(v));
  }
  // Locked by address: the one order that all kernels agree on. The first state of a variable named twice holds it.
  std::stable_sort(order.begin(), order.end(), [](State* a, State* b) { return a->var.get() < b->var.get(); });
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i]->var.get() == order[i - 1]->var.get()) continue;
    order[i]->Acquire();
  }
  for (State* s : order) XPU_RETURN_IF_ERROR(s->CheckUsable());
  return OkStatus();
}

Tensor LockedVariable::value() const { return Tensor(state_->var->tensor()); }
DType LockedVariable::dtype() const { return FastFromTf(state_->var->tensor()->dtype()); }

bool LockedVariable::IsSameAs(const LockedVariable& other) const {
  return state_->var.get() == other.state_->var.get();
}

Status LockedVariable::BeginOverwrite(Context& ctx, Tensor* dst) {
  tensorflow::Tensor* current = state_->var->tensor();
  if (current->RefCountIsOne()) {
    *dst = Tensor(current);
    return OkStatus();
  }
  XPU_RETURN_IF_ERROR(FromNative(Native(ctx)->allocate_temp(current->dtype(), current->shape(), &state_->fresh)));
  state_->pending = true;
  *dst = Tensor(&state_->fresh);
  return OkStatus();
}

Status LockedVariable::BeginUpdate(Context& ctx, Tensor* dst) {
  const Tensor old = value();
  XPU_RETURN_IF_ERROR(BeginOverwrite(ctx, dst));
  if (dst->data() != old.data()) {
    XPU_RETURN_IF_ERROR(ctx.Copy(dst->mutable_data(), old.data(), old.bytes()));
    Commit();
    *dst = value();
  }
  return OkStatus();
}

void LockedVariable::Commit() {
  if (!state_->pending) return;
  *state_->var->tensor() = std::move(state_->fresh);
  state_->pending = false;
}

}  // namespace xpu
