// The epilogues that cuBLASLt and cuDNN apply to their sums: a bias for each column, a matrix that is added, Relu.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_EPILOGUE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_EPILOGUE_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cuda {

struct BlasEpilogue {
  // Inputs of the program; 0: there is none.
  int bias = 0;   // [n], added to each row
  int added = 0;  // [batch..., m, n]
  bool relu = false;
};

// True if the epilogue of a product of that type with that many columns is nothing but these. Sums of 16-bit types are
// rounded once, at the end, where the program would round each.
bool FindBlasEpilogue(DType type, int64_t columns, const ElementwiseDesc& desc, BlasEpilogue* epilogue);

}  // namespace xpu::cuda

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CUDA_BLAS_BLAS_EPILOGUE_H_
