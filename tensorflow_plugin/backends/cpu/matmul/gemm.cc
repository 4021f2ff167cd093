#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/matmul/gemm_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

// Blocks whose panels fit in the second-level cache. Rows are a multiple of every register tile's.
constexpr int64_t kBlockRows = 96, kBlockCols = 256, kBlockDepth = 256;

template <typename T>
StridedMatrix<T> At(const StridedMatrix<T>& m, int64_t row, int64_t col) {
  return {m.data + row * m.row_stride + col * m.col_stride, m.row_stride, m.col_stride};
}

}  // namespace

template <typename T>
void Gemm(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b, StridedMatrix<T> c,
          T alpha, bool accumulate, const host_runtime::ThreadTeam& team) {
  const int64_t row_blocks = (m + kBlockRows - 1) / kBlockRows, col_blocks = (n + kBlockCols - 1) / kBlockCols;
  const auto multiply = XPU_PICK_ISA(MultiplyBlock<T>);
  const auto panel_elements = XPU_PICK_ISA(PanelElements<T>);
  const int64_t block_work = std::max<int64_t>(1, std::min(m, kBlockRows) * std::min(n, kBlockCols) * k);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / block_work);
  team.ParallelFor(row_blocks * col_blocks, grain, [&](int64_t begin, int64_t end) {
    ScratchFrame frame;
    T* panels =
        frame.Get<T>(panel_elements(std::min(m, kBlockRows), std::min(n, kBlockCols), std::min(k, kBlockDepth)));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i = block % row_blocks * kBlockRows, j = block / row_blocks * kBlockCols;
      for (int64_t l = 0; l < k; l += kBlockDepth) {
        multiply(std::min(kBlockRows, m - i), std::min(kBlockCols, n - j), std::min(kBlockDepth, k - l), At(a, i, l),
                 At(b, l, j), At(c, i, j), alpha, accumulate || l > 0, panels);
      }
    }
  });
}

#define XPU_GEMM(T)                                                                                                  \
  template void Gemm<T>(int64_t, int64_t, int64_t, StridedMatrix<const T>, StridedMatrix<const T>, StridedMatrix<T>, \
                        T, bool, const host_runtime::ThreadTeam&)
XPU_GEMM(float);
XPU_GEMM(double);
XPU_GEMM(uint32_t);
XPU_GEMM(uint64_t);

}  // namespace xpu::cpu
