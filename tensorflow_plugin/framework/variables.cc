#include "tensorflow_plugin/framework/variables.h"

#include <optional>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow_plugin/framework/invariant_values.h"
#include "tensorflow_plugin/framework/native.h"
#include "tensorflow_plugin/framework/op_traits.h"
#include "tensorflow_plugin/framework/variable_lock.h"

namespace xpu {

// The tensor of a variable and the mutex that guards it, whichever kind of variable it is.
struct LockedVariable::State {
  Context* ctx = nullptr;
  int input = 0;
  tensorflow::core::RefCountPtr<tensorflow::Var> var;  // null for a reference
  std::optional<VariableLock> lock;
  bool pending = false;  // a fresh buffer waits for Commit
  tensorflow::Tensor fresh;
  tensorflow::Tensor referred;  // a reference's tensor, while it is locked
  State* first = this;          // of several states of one variable, the one that holds it

  bool is_reference() const { return var == nullptr; }
  tensorflow::Tensor* tensor() const { return first->is_reference() ? &first->referred : first->var->tensor(); }

  Status Find(LockMode mode) {
    tensorflow::OpKernelContext* native = Native(*ctx);
    if (native->input_is_ref(input)) {
      lock.emplace(native->input_ref_mutex(input), mode);
      return OkStatus();
    }
    tensorflow::ResourceHandle handle;
    XPU_RETURN_IF_ERROR(FromNative(tensorflow::HandleFromInput(native, input, &handle)));
    XPU_RETURN_IF_ERROR(FromNative(tensorflow::LookupResource(native, handle, &var)));
    lock.emplace(var->mu(), mode);
    return OkStatus();
  }
  // After the locks: of `all`, the one that holds this one's variable.
  void FindFirst(const std::vector<LockedVariable>& all) {
    if (lock->is_locked()) {
      if (is_reference()) referred = Native(*ctx)->mutable_input(input, true);
      return;
    }
    for (const LockedVariable& other : all) {
      if (other.state_->lock->is_locked() && other.state_->lock->mutex() == lock->mutex()) first = other.state_.get();
    }
  }
  Status CheckUsable() const {
    if (is_reference() && !tensor()->IsInitialized()) {
      return errors::FailedPrecondition("Attempting to use uninitialized value ",
                                        Native(*ctx)->op_kernel().requested_input(input));
    }
    if (!is_reference() && !var->is_initialized) {
      tensorflow::ResourceHandle handle;
      XPU_RETURN_IF_ERROR(FromNative(tensorflow::HandleFromInput(Native(*ctx), input, &handle)));
      return errors::FailedPrecondition("Error while reading resource variable ", handle.name(),
                                        ": it is uninitialized, or it has been destroyed.");
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
  XPU_RETURN_IF_ERROR(Acquire(ctx, inputs, mode, out));
  for (const LockedVariable& v : *out) XPU_RETURN_IF_ERROR(v.state_->CheckUsable());
  return OkStatus();
}

Status LockedVariable::LockToAssign(Context& ctx, int i, LockedVariable* out) {
  std::vector<LockedVariable> one;
  XPU_RETURN_IF_ERROR(Acquire(ctx, {i}, LockMode::kExclusive, &one));
  *out = std::move(one[0]);
  return OkStatus();
}

Status LockedVariable::Acquire(Context& ctx, const std::vector<int>& inputs, LockMode mode,
                               std::vector<LockedVariable>* out) {
  if (mode == LockMode::kExclusive && observes_kernels.load(std::memory_order_relaxed)) {
    NoteObserved(Native(ctx)->op_kernel().type_string(), Observed::kLockedToWrite);
  }
  out->clear();
  std::vector<VariableLock*> locks;
  for (int i : inputs) {
    LockedVariable v;
    v.state_ = std::make_unique<State>();
    v.state_->ctx = &ctx;
    v.state_->input = i;
    XPU_RETURN_IF_ERROR(v.state_->Find(mode));
    locks.push_back(&*v.state_->lock);
    out->push_back(std::move(v));
  }
  LockInOrder(absl::MakeSpan(locks));
  for (const LockedVariable& v : *out) v.state_->FindFirst(*out);
  return OkStatus();
}

void WillWrite(const void* data) { InvariantValue::StopHolding(data); }

Tensor LockedVariable::value() const { return Tensor(state_->tensor()); }
DType LockedVariable::dtype() const { return FastFromTf(state_->tensor()->dtype()); }

bool LockedVariable::IsSameAs(const LockedVariable& other) const {
  return state_->lock->mutex() == other.state_->lock->mutex();
}

Status LockedVariable::BeginOverwrite(Context& ctx, Tensor* dst) {
  tensorflow::Tensor* current = state_->tensor();
  if (state_->is_reference() || ClaimForWriting(*current)) {
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
  *state_->tensor() = std::move(state_->fresh);
  state_->pending = false;
}

Status LockedVariable::Assign(Context& ctx, int i) {
  tensorflow::OpKernelContext* native = Native(ctx);
  const tensorflow::Tensor& value = native->input(i);
  if (!value.IsInitialized()) return errors::Internal("Right hand side of AssignOp is not initialized");
  tensorflow::Tensor& referred = state_->referred;
  tensorflow::Tensor dst;
  if (referred.IsInitialized() && referred.NumElements() == value.NumElements()) {
    // An op that has read the variable, and later uses what it read, expects to see this.
    if (!dst.CopyFrom(referred, value.shape())) {
      return errors::Internal("Unable to copy the value tensor to the ref input");
    }
  } else {
    const std::unique_ptr<tensorflow::Tensor> forwarded =
        native->forward_input(i, tensorflow::OpKernelContext::Params::kNoReservation, value.dtype(), value.shape(),
                              tensorflow::DEVICE_MEMORY, tensorflow::AllocatorAttributes());
    if (forwarded != nullptr) {
      native->replace_ref_input(state_->input, *forwarded, true);
      return OkStatus();
    }
    XPU_RETURN_IF_ERROR(FromNative(native->allocate_temp(value.dtype(), value.shape(), &dst)));
  }
  native->replace_ref_input(state_->input, dst, true);
  return ctx.Copy(Tensor(&dst).mutable_data(), Tensor(&value).data(), Tensor(&value).bytes());
}

}  // namespace xpu
