// TensorArrays, in which loops of TensorFlow 1 gather values and gradients: resources whose elements are in device
// memory.
#ifndef TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_ARRAYS_H_
#define TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_ARRAYS_H_

#include <memory>

#include "tensorflow_plugin/framework/kernel.h"

namespace xpu {

// The ways in which ops treat elements. Each has a version for every way in which TensorFlow has named a TensorArray:
// by a reference, a string or a resource. That is input 0.
enum class OnTensorArray : uint8_t {
  kWrite,    // index, value: sets an element, or adds to it
  kRead,     // index: gives an element
  kGather,   // indices: gives elements in one tensor
  kPack,     // gives all elements in one tensor
  kConcat,   // the same, along their first dimension, and their lengths in it
  kScatter,  // indices, value: sets elements to the rows of the value
  kUnpack,   // value: the same, all elements
  kSplit,    // value, lengths: sets elements to parts of the value
};

// Elements are added up as programs; needs Add of the type.
class TensorArrayKernel : public OpKernel {
 public:
  TensorArrayKernel(Construction& c, OnTensorArray what);
  ~TensorArrayKernel() override;
  Status Compute(Context& ctx) override;

 private:
  struct Native;
  std::unique_ptr<Native> native_;
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_FRAMEWORK_TENSOR_ARRAYS_H_
