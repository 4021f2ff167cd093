// The types of elements that NVIDIA's libraries compute with.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_TYPES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_TYPES_H_

#include <optional>

#include "tensorflow_plugin/backends/cuda/blas/cublaslt.h"
#include "tensorflow_plugin/backends/cuda/dnn/cudnn.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cuda {

// cuBLASLt's name of a type that it multiplies; none: it does not.
std::optional<BlasType> BlasTypeOf(DType type);
// cuDNN's name of a type of its convolutions.
std::optional<DnnNumber> DnnNumberOf(DType type);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_LIBRARY_TYPES_H_
