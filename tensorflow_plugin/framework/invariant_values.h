// Values of variables that somebody counts on to stay as they are, because of what has been computed of them.
//
// A variable is written in place only if nobody else refers to its buffer. So a holder of a reference knows that the
// value does not change. A writer has the value given up first, rather than work on a copy.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_INVARIANT_VALUES_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_INVARIANT_VALUES_H_

#include <atomic>
#include <memory>

#include "tensorflow/core/framework/tensor.h"

namespace xpu {

class InvariantValue : public std::enable_shared_from_this<InvariantValue> {
 public:
  // Holds the value of a variable, which the caller has locked. Null if somebody else who may write into it refers to
  // it; other holders do not count.
  static std::shared_ptr<const InvariantValue> Hold(const tensorflow::Tensor& value);
  // To be called before anybody writes at this address: what is held there is not any more. A nanosecond if nothing is.
  static void StopHolding(const void* data);

  explicit InvariantValue(tensorflow::Tensor value);
  ~InvariantValue();
  InvariantValue(const InvariantValue&) = delete;
  InvariantValue& operator=(const InvariantValue&) = delete;

  // True if the variable with this value, which the caller has locked, still has the one that is held.
  bool Is(const tensorflow::Tensor& value) const { return valid_.load() && value.data() == data_; }

 private:
  struct Registry;
  static Registry& All();

  const char* const data_;
  std::atomic<bool> valid_{true};
  tensorflow::Tensor value_;  // none once it has been given up
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_INVARIANT_VALUES_H_
