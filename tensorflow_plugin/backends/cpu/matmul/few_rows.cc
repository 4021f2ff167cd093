#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"

#include <algorithm>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/matmul/few_rows_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Threads get columns of b in multiples of kColumns, a cache line. A thread computes at most kBlockSums sums at a time,
// which stay in the first cache.
constexpr int64_t kColumns = 64, kBlockSums = 2048;
// A matrix of fewer bytes may well be in the second cache. To fetch it again would take time.
constexpr int64_t kFetchedBytes = 1 << 19;
// A large matrix in rows is divided into blocks of so many terms at least, in multiples of kTermsOfPartialSum. The
// results depend on the blocks, so these do not depend on the team.
constexpr int64_t kFewestTerms = 128, kTermsOfPartialSum = 32, kMostBlocks = 16;

int64_t RoundUp(int64_t n, int64_t to) { return Count(n, to) * to; }

// For each worth of kGrainElements of a matrix with so many elements in a column.
int64_t ColumnsOfGrain(int64_t elements) { return RoundUp(kGrainElements / elements + 1, kColumns); }

// One call of MultiplyFewRows, with the rows of a as floats.
template <typename T>
class Product {
 public:
  Product(int64_t m, int64_t n, int64_t k, const float* rows, int64_t ld_rows, StridedMatrix<const T> b,
          StridedMatrix<T> c)
      : m_(m),
        n_(n),
        k_(k),
        rows_(rows),
        ld_rows_(ld_rows),
        b_(b),
        c_(c),
        in_columns_(b.row_stride == 1),
        fetch_(n * k * static_cast<int64_t>(sizeof(T)) >= kFetchedBytes),
        at_once_(std::min(kBlockSums / m / kColumns * kColumns, RoundUp(n, kColumns))) {}

  void Run(const ThreadTeam& team) const {
    if (in_columns_ || !fetch_ || k_ < 2 * kFewestTerms) {
      RunInColumns(team);
    } else {
      RunInBlocks(team);
    }
  }

 private:
  // Each thread computes some columns.
  void RunInColumns(const ThreadTeam& team) const {
    team.ParallelFor(n_, ColumnsOfGrain(k_), [&](int64_t begin, int64_t end) {
      Multiply(0, k_, begin, end,
               [this](int64_t i, int64_t j, int64_t count, const float* sums) { Write(i, j, count, sums); });
    });
  }

  // Each thread adds up some terms of all columns, so that it reads memory from beginning to end. Where threads read
  // columns of the same rows, the processor fetches in advance what only the other thread reads: that halves the speed.
  void RunInBlocks(const ThreadTeam& team) const {
    const int64_t terms = RoundUp(Count(k_, std::min(k_ / kFewestTerms, kMostBlocks)), kTermsOfPartialSum);
    const int64_t blocks = Count(k_, terms);
    const int64_t width = RoundUp(Count(n_, Count(team.size(), blocks)), kColumns), across = Count(n_, width);
    ScratchFrame frame;
    float* const of_blocks = frame.Get<float>(blocks * m_ * n_);
    team.ParallelFor(blocks * across, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t block = part / across, first = part % across * width, term = block * terms;
        Multiply(term, std::min(terms, k_ - term), first, std::min(first + width, n_),
                 [&](int64_t i, int64_t j, int64_t count, const float* sums) {
                   std::copy_n(sums, count, of_blocks + (block * m_ + i) * n_ + j);
                 });
      }
    });
    const auto add = XPU_PICK_ISA(AddUp);
    team.ParallelFor(n_, ColumnsOfGrain(blocks * m_), [&](int64_t begin, int64_t end) {
      ScratchFrame inner;
      float* const sums = inner.Get<float>(end - begin);
      for (int64_t i = 0; i < m_; ++i) {
        add(blocks, end - begin, of_blocks + i * n_ + begin, m_ * n_, sums);
        Write(i, begin, end - begin, sums);
      }
    });
  }

  // The sums of `terms` terms from `term` on, of columns [begin, end): take(row, column, count, sums) gets each row's.
  template <typename Take>
  void Multiply(int64_t term, int64_t terms, int64_t begin, int64_t end, const Take& take) const {
    const auto multiply = XPU_PICK_ISA(FewRows<T>);
    ScratchFrame frame;
    float* const sums = frame.Get<float>(2 * m_ * at_once_);
    for (int64_t j = begin; j < end; j += at_once_) {
      const int64_t count = std::min(at_once_, end - j);
      multiply(fetch_, in_columns_, m_, count, terms, rows_ + term, ld_rows_,
               b_.data + term * b_.row_stride + j * b_.col_stride, in_columns_ ? b_.col_stride : b_.row_stride, sums,
               at_once_);
      for (int64_t i = 0; i < m_; ++i) take(i, j, count, sums + i * at_once_);
    }
  }

  void Write(int64_t i, int64_t j, int64_t count, const float* sums) const {
    T* const to = c_.data + i * c_.row_stride + j * c_.col_stride;
    if (c_.col_stride == 1) return XPU_PICK_ISA(StoreSums<T>)(sums, count, to);
    for (int64_t l = 0; l < count; ++l) to[l * c_.col_stride] = static_cast<T>(sums[l]);
  }

  const int64_t m_, n_, k_;
  const float* const rows_;
  const int64_t ld_rows_;
  const StridedMatrix<const T> b_;
  const StridedMatrix<T> c_;
  const bool in_columns_, fetch_;
  const int64_t at_once_;  // columns
};

}  // namespace

template <typename T>
void MultiplyFewRows(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                     StridedMatrix<T> c, const ThreadTeam& team) {
  if constexpr (std::is_same_v<T, float>) {
    if (a.col_stride == 1) return Product<T>(m, n, k, a.data, a.row_stride, b, c).Run(team);
  }
  ScratchFrame frame;
  float* const rows = frame.Get<float>(m * k);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      rows[i * k + l] = static_cast<float>(a.data[i * a.row_stride + l * a.col_stride]);
    }
  }
  Product<T>(m, n, k, rows, k, b, c).Run(team);
}

void AddUpRows(int64_t num_rows, int64_t n, const float* rows, float* sums, const ThreadTeam& team) {
  const auto add = XPU_PICK_ISA(AddUp);
  team.ParallelFor(n, ColumnsOfGrain(num_rows),
                   [&](int64_t begin, int64_t end) { add(num_rows, end - begin, rows + begin, n, sums + begin); });
}

#define XPU_FEW_ROWS(T)                                                                                       \
  template void MultiplyFewRows<T>(int64_t, int64_t, int64_t, StridedMatrix<const T>, StridedMatrix<const T>, \
                                   StridedMatrix<T>, const host_runtime::ThreadTeam&)
XPU_FEW_ROWS(float);
XPU_FEW_ROWS(Half);
XPU_FEW_ROWS(BFloat16);

}  // namespace xpu::cpu
