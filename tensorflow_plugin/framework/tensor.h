// Tensor: a borrowed view of a tensor that TensorFlow owns. Cheap to copy, valid while the kernel runs.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow_plugin/primitives/dims.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

class Tensor {
 public:
  Tensor() = default;
  // `native` is a tensorflow::Tensor. Fills in everything below in one go.
  explicit Tensor(const void* native);

  DType dtype() const { return dtype_; }
  int rank() const { return dims_.rank(); }
  int64_t dim(int i) const { return dims_[i]; }
  const Dims& dims() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }
  size_t bytes() const { return num_elements_ * SizeOf(dtype_); }
  bool IsScalar() const { return dims_.rank() == 0; }
  bool IsVector() const { return dims_.rank() == 1; }
  std::string ShapeString() const { return dims_.ToString(); }

  // A device address, unless the argument is in host memory.
  const void* data() const { return data_; }
  void* mutable_data() const { return data_; }
  // Element i of a tensor in host memory.
  template <typename T>
  const T* host() const {
    return static_cast<const T*>(data_);
  }

  const void* native() const { return native_; }

 private:
  const void* native_ = nullptr;
  void* data_ = nullptr;
  int64_t num_elements_ = 0;
  DType dtype_ = DType::kInvalid;
  Dims dims_;
};

// TensorFlow's number of a type, which some of its messages name instead of the type.
int EnumValue(DType t);

// The integers of an int32 or int64 tensor in host memory (a shape, axes, paddings). `what` names the argument in the
// message when it has another type.
Status HostIntegers(const Tensor& t, const char* what, std::vector<int64_t>* values);
// The one integer of a host tensor with one element.
Status HostInteger(const Tensor& t, const char* what, int64_t* value);
// A shape held in a host tensor: a vector of non-negative extents.
Status HostShape(const Tensor& t, const char* what, Dims* shape);

// A tensor that this kernel owns: device memory for the duration of Compute (stream order keeps it for the queued
// commands after that).
class Temporary {
 public:
  Temporary();
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const Tensor& tensor() const { return view_; }
  void* data() const { return view_.mutable_data(); }

 private:
  friend class Context;
  friend class LockedVariable;
  struct Native;
  std::unique_ptr<Native> native_;
  Tensor view_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_H_
