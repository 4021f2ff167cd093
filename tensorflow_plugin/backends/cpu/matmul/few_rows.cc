#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"

#include <algorithm>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/matmul/few_rows_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

// Threads get columns of b in multiples of kColumns, a cache line. A thread computes at most kBlockSums sums at a time,
// which stay in the first cache.
constexpr int64_t kColumns = 64, kBlockSums = 2048;
// A matrix of fewer bytes may well be in the second cache. To fetch it again would take time.
constexpr int64_t kFetchedBytes = 1 << 19;

}  // namespace

template <typename T>
void MultiplyFewRows(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                     StridedMatrix<T> c, const host_runtime::ThreadTeam& team) {
  const auto multiply = XPU_PICK_ISA(FewRows<T>);
  const auto store = XPU_PICK_ISA(StoreSums<T>);
  const bool in_columns = b.row_stride == 1;
  const bool fetch = n * k * static_cast<int64_t>(sizeof(T)) >= kFetchedBytes;
  ScratchFrame frame;
  const float* rows = nullptr;
  int64_t ld_rows = a.row_stride;
  if constexpr (std::is_same_v<T, float>) {
    if (a.col_stride == 1) rows = a.data;
  }
  if (rows == nullptr) {
    float* dense = frame.Get<float>(m * k);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t l = 0; l < k; ++l) {
        dense[i * k + l] = static_cast<float>(a.data[i * a.row_stride + l * a.col_stride]);
      }
    }
    rows = dense;
    ld_rows = k;
  }
  const int64_t grain = (kGrainElements / k / kColumns + 1) * kColumns;
  const int64_t block = std::min(kBlockSums / m / kColumns * kColumns, (n + kColumns - 1) / kColumns * kColumns);
  team.ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    float* sums = inner.Get<float>(2 * m * block);
    for (int64_t j = begin; j < end; j += block) {
      const int64_t here = std::min(block, end - j);
      multiply(fetch, in_columns, m, here, k, rows, ld_rows, b.data + j * b.col_stride,
               in_columns ? b.col_stride : b.row_stride, sums, block);
      for (int64_t i = 0; i < m; ++i) {
        T* to = c.data + i * c.row_stride + j * c.col_stride;
        const float* from = sums + i * block;
        if (c.col_stride == 1) {
          store(from, here, to);
        } else {
          for (int64_t l = 0; l < here; ++l) to[l * c.col_stride] = static_cast<T>(from[l]);
        }
      }
    }
  });
}

#define XPU_FEW_ROWS(T)                                                                                       \
  template void MultiplyFewRows<T>(int64_t, int64_t, int64_t, StridedMatrix<const T>, StridedMatrix<const T>, \
                                   StridedMatrix<T>, const host_runtime::ThreadTeam&)
XPU_FEW_ROWS(float);
XPU_FEW_ROWS(Half);
XPU_FEW_ROWS(BFloat16);

}  // namespace xpu::cpu
