// Glue between our types and TensorFlow's C++ ones. Only this folder's .cc files include it: TensorFlow's
// headers take a quarter of a minute to compile.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_NATIVE_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_NATIVE_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/framework/tensor.h"
#include "tensorflow_plugin/tf_internals/tf_types.h"

namespace xpu {

inline tensorflow::OpKernelContext* Native(const Context& ctx) {
  return reinterpret_cast<tensorflow::OpKernelContext*>(ctx.native());
}

inline const tensorflow::Tensor& Native(const Tensor& t) { return *static_cast<const tensorflow::Tensor*>(t.native()); }

inline tensorflow::DataType NativeType(DType t) { return static_cast<tensorflow::DataType>(ToTf(t)); }

inline Status FromNative(const absl::Status& s) {
  if (s.ok()) return OkStatus();
  return Status(static_cast<Code>(static_cast<int>(s.code())), std::string(s.message()));
}

inline absl::Status ToNative(const Status& s) {
  return absl::Status(static_cast<absl::StatusCode>(static_cast<int>(s.code())), s.message());
}

inline Status ToNativeShape(const Dims& dims, tensorflow::TensorShape* shape) {
  return FromNative(
      tensorflow::TensorShape::BuildTensorShape(absl::Span<const int64_t>(dims.begin(), dims.rank()), shape));
}

struct Temporary::Native {
  tensorflow::Tensor tensor;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_NATIVE_H_
