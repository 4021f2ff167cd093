// A general matrix product for what oneDNN does not do: double and integers, and matrices of any strides.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_H_

#include <cstdint>

#include "tensorflow_plugin/backends/host_runtime/thread_team.h"

namespace xpu::cpu {

template <typename T>
struct StridedMatrix {
  T* data;
  int64_t row_stride, col_stride;  // in elements
};

// c = alpha * a * b, or c += alpha * a * b, for [m,k] by [k,n], k > 0. T is float, double, uint32_t or uint64_t (for
// signed types too: the low bits are the same). The order of summation does not depend on the team.
template <typename T>
void Gemm(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b, StridedMatrix<T> c,
          T alpha, bool accumulate, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_GEMM_H_
