#include "tensorflow_plugin/framework/registry.h"

#include <array>
#include <exception>
#include <new>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow_plugin/framework/compute_scope.h"
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/framework/left_out.h"
#include "tensorflow_plugin/tf_internals/tf_types.h"

namespace xpu {

using D = DType;
const TypeList kFloatTypes = {D::kHalf, D::kBFloat16, D::kFloat, D::kDouble};
const TypeList kComplexTypes = {D::kComplex64, D::kComplex128};
const TypeList kIntegerTypes = {D::kInt8, D::kInt16, D::kInt64, D::kUint8, D::kUint16, D::kUint32, D::kUint64};
const TypeList kRealTypes = Union(kFloatTypes, kIntegerTypes);
const TypeList kNumberTypes = Union(kRealTypes, kComplexTypes);
const TypeList kAllTypes = Union(kNumberTypes, {D::kBool});

TypeList Union(const TypeList& a, const TypeList& b) {
  TypeList all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

namespace {

// The entry behind a kernel builder's create function. The C API gives it no user data. So every entry gets a function
// of its own from a fixed set of trampolines, numbered by its slot.
struct TrampolineSlot {
  std::function<std::unique_ptr<OpKernel>(Construction&)> factory;
  bool on_host = false;
};

std::vector<TrampolineSlot>& Slots() {
  static auto* slots = new std::vector<TrampolineSlot>;
  return *slots;
}

// The slot's number; -1 if there are no more.
int AddSlot(TrampolineSlot slot) {
  if (Registry::num_entries() == Registry::kMaxEntries) return -1;
  Slots().push_back(std::move(slot));
  return Registry::num_entries() - 1;
}

void SetStatus(TF_Status* out, const Status& status) {
  TF_SetStatus(out, static_cast<TF_Code>(status.code()), status.message().c_str());
}

struct StatusDeleter {
  void operator()(TF_Status* s) const { TF_DeleteStatus(s); }
};
using StatusPtr = std::unique_ptr<TF_Status, StatusDeleter>;

using CreateFn = void* (*)(TF_OpKernelConstruction*);

}  // namespace

namespace {
OpTraits left_out;
}  // namespace

void LeaveOutOpsWith(OpTraits traits) { left_out = left_out | traits; }
bool IsLeftOut(OpTraits traits) { return traits.HasAnyOf(left_out); }

int Registry::num_entries() { return static_cast<int>(Slots().size()); }

template <int I>
struct Registry::Trampoline {
  static void* Run(TF_OpKernelConstruction* c) { return Registry::Create(I, c); }
};

template <int... I>
auto Registry::AllTrampolines(std::integer_sequence<int, I...>) {
  return std::array<CreateFn, sizeof...(I)>{&Trampoline<I>::Run...};
}

void* Registry::Create(int slot_number, TF_OpKernelConstruction* native) {
  const TrampolineSlot& slot = Slots()[slot_number];
  Construction construction(native);
  construction.on_host_ = slot.on_host;
  std::unique_ptr<OpKernel> kernel;
  try {
    kernel = slot.factory(construction);
  } catch (const std::exception& e) {
    construction.Fail(errors::Internal("constructing the kernel failed: ", e.what()));
  }
  if (!construction.status().ok()) {
    StatusPtr status(TF_NewStatus());
    SetStatus(status.get(), construction.status());
    TF_OpKernelConstruction_Failure(native, status.get());
    return nullptr;
  }
  kernel->on_host_ = slot.on_host;
  return kernel.release();
}

void Registry::Compute(void* kernel, TF_OpKernelContext* native) {
  auto* op = static_cast<OpKernel*>(kernel);
  ComputeScope scope(native);
  Context ctx(native, op->on_host_);
  try {
    Status status = op->Compute(ctx);
    if (__builtin_expect(!status.ok(), 0)) scope.Fail(status);
  } catch (const std::bad_alloc&) {
    scope.Fail(errors::ResourceExhausted("out of host memory in an XPU kernel"));
  } catch (const std::exception& e) {
    scope.Fail(errors::Internal("an XPU kernel failed: ", e.what()));
  }
}

void Registry::Delete(void* kernel) { delete static_cast<OpKernel*>(kernel); }

Registry::Entry& Registry::Entry::Types(const char* attr, TypeList types) {
  constraints_.push_back({attr, std::move(types)});
  return *this;
}
Registry::Entry& Registry::Entry::Host(std::vector<const char*> args) {
  host_args_.insert(host_args_.end(), args.begin(), args.end());
  return *this;
}
Registry::Entry& Registry::Entry::AllHostFor(DType type, std::vector<const char*> args) {
  all_host_type_ = type;
  all_host_args_ = std::move(args);
  return LabelledFor(type);
}
Registry::Entry& Registry::Entry::LabelledFor(DType type) {
  labelled_type_ = type;
  return *this;
}
Registry::Entry& Registry::Entry::OnHost() {
  on_host_ = true;
  return *this;
}
Registry::Entry& Registry::Entry::Requires(Need need) {
  needs_.push_back(std::move(need));
  return *this;
}
Registry::Entry& Registry::Entry::Requires(Opcode op) {
  return Requires(needs::Op(op, constraints_.empty() ? "T" : constraints_[0].attr));
}
Registry::Entry& Registry::Entry::Traits(OpTraits traits) {
  traits_ = traits_ | traits;
  return *this;
}
Registry::Entry& Registry::Entry::Priority(int priority) {
  priority_ = priority;
  return *this;
}
Registry::Entry& Registry::Entry::Label(const char* label) {
  label_ = label;
  return *this;
}

bool Registry::Entry::Supported(const std::vector<TypeBinding>& types) const {
  Needs needs(registry_->backend_.capabilities(), types);
  for (const Need& need : needs_) need(needs);
  if (!needs.problem().empty()) {
    std::string of;
    for (const auto& [attr, type] : types) of += std::string(of.empty() ? " of " : ", ") + attr + " " + Name(type);
    registry_->problems_.push_back(std::string(op_) + of + ": " + needs.problem());
  }
  return needs.supported();
}

void Registry::Entry::Finish(Factory factory) {
  if (IsLeftOut(traits_)) return;
  AddTraits(op_, traits_);
  const int slot = AddSlot({factory, on_host_});
  const bool has_host_type = all_host_type_ != DType::kInvalid && !constraints_.empty();
  const int host_slot = has_host_type ? AddSlot({factory, true}) : slot;
  if (slot < 0 || host_slot < 0) {
    registry_->problems_.push_back(errors::Concat(op_, ": all ", kMaxEntries, " entries are taken"));
    return;
  }
  ForEachCombination([&](const std::vector<TypeBinding>& types) { RegisterOne(types, slot, false, label_); });
  if (has_host_type) {
    constraints_[0].types = {all_host_type_};
    ForEachCombination([&](const std::vector<TypeBinding>& types) { RegisterOne(types, host_slot, true, label_); });
  }
  if (labelled_type_ != DType::kInvalid && label_ == nullptr && !constraints_.empty()) {
    constraints_[0].types = {labelled_type_};
    ForEachCombination(
        [&](const std::vector<TypeBinding>& types) { RegisterOne(types, slot, false, labels::kOnDevice); });
  }
}

// All combinations of the type constraints.
void Registry::Entry::ForEachCombination(const std::function<void(const std::vector<TypeBinding>&)>& f) const {
  std::vector<size_t> position(constraints_.size(), 0);
  for (const Constraint& c : constraints_) {
    if (c.types.empty()) return;
  }
  for (;;) {
    std::vector<TypeBinding> types;
    for (size_t i = 0; i < constraints_.size(); ++i) {
      types.emplace_back(constraints_[i].attr, constraints_[i].types[position[i]]);
    }
    f(types);
    size_t i = 0;
    while (i < position.size() && ++position[i] == constraints_[i].types.size()) position[i++] = 0;
    if (i == position.size()) return;
  }
}

void Registry::Entry::RegisterOne(const std::vector<TypeBinding>& types, int slot, bool all_host, const char* label) {
  static const auto trampolines = AllTrampolines(std::make_integer_sequence<int, kMaxEntries>());

  // Commands of an all-host kernel run on the host executor, which supports everything.
  if (!all_host && !on_host_ && !Supported(types)) return;

  TF_KernelBuilder* builder = TF_NewKernelBuilder(op_, registry_->device_type_.c_str(), trampolines[slot],
                                                  &Registry::Compute, &Registry::Delete);
  StatusPtr status(TF_NewStatus());
  for (const auto& [attr, type] : types) {
    TF_KernelBuilder_TypeConstraint(builder, attr, static_cast<TF_DataType>(ToTf(type)), status.get());
    if (TF_GetCode(status.get()) != TF_OK) {
      registry_->problems_.push_back(std::string(op_) + ": " + TF_Message(status.get()));
      TF_DeleteKernelBuilder(builder);
      return;
    }
  }
  for (const char* arg : host_args_) TF_KernelBuilder_HostMemory(builder, arg);
  if (all_host) {
    for (const char* arg : all_host_args_) TF_KernelBuilder_HostMemory(builder, arg);
  }
  const int priority = priority_ + (registry_->device_type_ == kGpu ? 1 : 0);  // TensorFlow has kernels for GPUs
  if (priority != 0) TF_KernelBuilder_Priority(builder, priority);
  if (label != nullptr) TF_KernelBuilder_Label(builder, label);
  TF_RegisterKernelBuilder(labels::kKernelClass, builder, status.get());
  if (TF_GetCode(status.get()) != TF_OK) {
    registry_->problems_.push_back(std::string(op_) + ": " + TF_Message(status.get()));
    return;
  }
  ++registry_->num_registered_;
}

}  // namespace xpu
