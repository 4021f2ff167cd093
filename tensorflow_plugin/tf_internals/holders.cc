#include "tensorflow_plugin/tf_internals/holders.h"

#include "tensorflow/core/common_runtime/dma_helper.h"

namespace xpu::tf_internals {

bool IsHeldBy(int holders, const tensorflow::Tensor& tensor) {
  auto* const buffer = const_cast<tensorflow::TensorBuffer*>(tensorflow::DMAHelper::buffer(&tensor));
  if (buffer == nullptr) return true;
  // A part of a buffer is one holder of the whole.
  const tensorflow::TensorBuffer* const whole = buffer->root_buffer();
  return buffer->RefCount() <= holders && (whole == buffer || whole->RefCount() <= 1);
}

}  // namespace xpu::tf_internals
