// Matrices factorized and solved by Eigen, with AVX2 and FMA. dense.cc is compiled once for each type, as a library
// each.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_DENSE_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_DENSE_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/factorize_descriptors.h"

namespace xpu::cpu {

// A command's dense buffers, in the order of its descriptor.
struct Matrices {
  const void* const* in;
  void* const* out;
};

// V(type): those that matrices can have.
#define XPU_DENSE_TYPES(V) \
  V(kFloat)                \
  V(kDouble)               \
  V(kComplex64)            \
  V(kComplex128)

// Run the descriptor's matrices [begin, end) of the batch on the calling thread; the first of them that fails, or -1.
// They throw std::bad_alloc.
template <DType type>
int64_t FactorizeDense(const FactorizeDesc& desc, const Matrices& buffers, int64_t begin, int64_t end);
// Not for kTridiagonal.
template <DType type>
int64_t SolveDense(const SolveDesc& desc, const Matrices& buffers, int64_t begin, int64_t end);

#define XPU_DENSE(type)                                                                         \
  template <>                                                                                   \
  int64_t FactorizeDense<DType::type>(const FactorizeDesc&, const Matrices&, int64_t, int64_t); \
  template <>                                                                                   \
  int64_t SolveDense<DType::type>(const SolveDesc&, const Matrices&, int64_t, int64_t);
XPU_DENSE_TYPES(XPU_DENSE)
#undef XPU_DENSE

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_DENSE_H_
