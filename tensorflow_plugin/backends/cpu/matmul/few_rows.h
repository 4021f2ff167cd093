// Matrix products that read one large matrix once, for one or a few rows: they take as long as reading takes.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"

namespace xpu::cpu {

constexpr int64_t kMaxFewRows = 4;
// Elements of a matrix that is read once, worth handing to another thread.
constexpr int64_t kGrainElements = 1 << 15;

// c = a * b for [m,k] by [k,n], 0 < m <= kMaxFewRows, k > 0, where the rows or the columns of b are without gaps. T is
// float, or half or bfloat16, which are summed in float. The order of summation does not depend on the team.
template <typename T>
void MultiplyFewRows(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                     StridedMatrix<T> c, const host_runtime::ThreadTeam& team);

// The sum of so many rows of n elements without gaps. Threads share the columns.
void AddUpRows(int64_t num_rows, int64_t n, const float* rows, float* sums, const host_runtime::ThreadTeam& team);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
