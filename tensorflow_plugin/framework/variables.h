// Access to variables: resources, and the references of TensorFlow 1, which a kernel need not tell apart.
//
// The C API for variables (kernels_experimental.h) is declared but not exported by TensorFlow 2.20 and 2.21, so
// variables.cc reads tensorflow::Var through the wheel's C++ headers. This ties the core to one TensorFlow minor
// version; the loader picks the core that fits.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLES_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLES_H_

#include <memory>
#include <vector>

#include "tensorflow_plugin/framework/context.h"

namespace xpu {

enum class LockMode { kShared, kExclusive };

// A variable, found and locked; unlocks when destroyed, which must be before the Context is.
//
// A resource's values are immutable once shared. An op that updates a value whose buffer somebody else holds (a
// read_value() result, a queued gradient) works on a copy. A reference is written in place: TensorFlow 1 reads a
// variable once, when it is made. Its value must show later writes. Kernels only enqueue while they hold the lock, so
// references are locked whatever their attribute use_locking says: its false allows updates to mix, no more.
class LockedVariable {
 public:
  LockedVariable();
  ~LockedVariable();
  LockedVariable(LockedVariable&&) noexcept;
  LockedVariable& operator=(LockedVariable&&) noexcept;

  // Finds the variable whose handle, or reference, is input `i`. FailedPrecondition if it is not initialised.
  static Status Lock(Context& ctx, int i, LockMode mode, LockedVariable* out);
  // The same for several inputs, locked in one global order so that two kernels can not deadlock. A variable that
  // is named twice is locked once.
  static Status LockAll(Context& ctx, const std::vector<int>& inputs, LockMode mode, std::vector<LockedVariable>* out);

  // For a reference that is to be assigned as a whole: it need not be initialised.
  static Status LockToAssign(Context& ctx, int i, LockedVariable* out);

  // For LockToAssign: makes input i the value, in the buffer that there is if it has the size.
  Status Assign(Context& ctx, int i);

  Tensor value() const;
  DType dtype() const;
  // True if both are one variable. Two variables may share a buffer until one of them is written.
  bool IsSameAs(const LockedVariable& other) const;

  // For updates that write every element: *dst is the variable's own buffer when nobody else holds it, else a fresh
  // one. Write to it, then Commit() makes it the value.
  Status BeginOverwrite(Context& ctx, Tensor* dst);
  // For updates that write some elements: the variable's own buffer, copied first if somebody else holds it.
  Status BeginUpdate(Context& ctx, Tensor* dst);
  void Commit();

 private:
  static Status Acquire(Context& ctx, const std::vector<int>& inputs, LockMode mode, std::vector<LockedVariable>* out);
  struct State;
  std::unique_ptr<State> state_;
};

// A kernel calls this before it writes into a buffer that is not its own, such as an in-place op. Values computed from
// a variable's value that lies there are then computed again.
void WillWrite(const void* data);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_VARIABLES_H_
