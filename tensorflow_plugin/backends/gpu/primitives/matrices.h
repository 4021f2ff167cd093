// Matrices of a batch, each the work of a group: what Factorize and Solve share.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_MATRICES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_MATRICES_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensorflow_plugin/backends/gpu/call.h"
#include "tensorflow_plugin/backends/gpu/codegen/sources.h"

namespace xpu::gpu {

// True if there are kernels for matrices of the type.
bool HasMatrices(const Abilities& abilities, DType type);

// Partial pivoting in place, for kernels of a source that stands behind it.
extern const std::string kLuSource;

// T, REAL, LANES and matrix.cl, with what stands behind it.
std::string MatrixSource(const Hardware& hardware, DType type, const std::string& kernel);

// Enqueues a group of as many items as MatrixSource says for each matrix.
Status RunMatrices(Call& call, const Hardware& hardware, int64_t batch);

}  // namespace xpu::gpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_GPU_PRIMITIVES_MATRICES_H_
