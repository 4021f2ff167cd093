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

// The same for products of one row each, as the heads of attention have them. Their matrices b lie side by side: a row
// in memory has a row of each of them. Each product has a row of a and one of c. A matrix in rows has n columns, and
// one in columns has k rows: both are multiples of kSideBySideElements. The strides of b are those of one matrix.
constexpr int64_t kSideBySideElements = 16;
template <typename T>
void MultiplySideBySide(int64_t products, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                        StridedMatrix<T> c, const host_runtime::ThreadTeam& team);

// Sums of m rows of n columns, whose terms lie in some blocks that threads share. So each thread reads a matrix in rows
// from beginning to end. Where threads read columns of the same rows, the processor fetches in advance what only the
// other thread reads: that halves the speed. The results depend on the blocks, so these must not depend on the team.
struct BlockSums {
  int64_t blocks, m, n;
  int64_t unit;  // threads that share a block get multiples of so many columns

  // Adds up a block's terms for the columns [begin, end) of each row, to `sums`, whose rows have n elements.
  // `is_first`: the thread has added up no block just before this one.
  using AddBlock =
      host_runtime::FunctionRef<void(int64_t block, bool is_first, int64_t begin, int64_t end, float* sums)>;
  // Takes the sums of all blocks for `count` columns of a row, from column `begin` on.
  using Take = host_runtime::FunctionRef<void(int64_t row, int64_t begin, int64_t count, const float* sums)>;
  void Run(const host_runtime::ThreadTeam& team, AddBlock add_block, Take take) const;
};

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_MATMUL_FEW_ROWS_H_
