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
// which stay in the first cache, unless it reads whole rows of b.
constexpr int64_t kColumns = 64, kBlockSums = 2048;
// A matrix from this size on is large: it is fetched ahead. A smaller one may well be in the second cache. A matrix
// with gaps between its rows, such as a head's keys, is fetched at any size, since the processor does not follow gaps.
// One that SumRow reads is never fetched: that costs a sixth of the speed, wherever the matrix is.
constexpr int64_t kLargeBytes = 1 << 19;
// A large matrix in rows is divided into blocks of so many terms at least, in multiples of kTermsOfPartialSum. The
// results depend on the blocks, so these do not depend on the team.
constexpr int64_t kFewestTerms = 128, kMostBlocks = 16;

// For each worth of kGrainElements of a matrix with so many elements in a column.
int64_t ColumnsOfGrain(int64_t elements) { return RoundUp(kGrainElements / elements + 1, kColumns); }

// One call, with the rows of a as floats. Matrices that lie side by side are one: in rows it has all of their columns,
// in columns it has all of their sums.
template <typename T>
class Product {
 public:
  Product(int64_t m, int64_t n, int64_t k, bool side_by_side, const float* rows, int64_t ld_rows,
          StridedMatrix<const T> b, StridedMatrix<T> c)
      : side_by_side_(side_by_side),
        in_columns_(b.row_stride == 1),
        m_(side_by_side && !in_columns_ ? 1 : m),
        n_(side_by_side && !in_columns_ ? m * n : n),
        k_(k),
        width_(n),
        rows_(rows),
        ld_rows_(ld_rows),
        b_(b),
        c_(c),
        is_large_(Bytes() >= kLargeBytes),
        fetch_(is_large_ ? !ReadsInOrder() : (in_columns_ ? b.col_stride > k : b.row_stride > n)),
        at_once_(ReadsInOrder()
                     ? n_
                     : std::min(std::max(kBlockSums / m_ / kColumns, int64_t{1}) * kColumns, RoundUp(n_, kColumns))) {}

  void Run(const ThreadTeam& team) const {
    if (in_columns_ || !is_large_ || k_ < 2 * kFewestTerms) {
      RunInColumns(team);
    } else {
      RunInBlocks(team);
    }
  }

 private:
  int64_t ElementsOfColumn() const { return side_by_side_ && in_columns_ ? m_ * k_ : k_; }
  int64_t Bytes() const { return n_ * ElementsOfColumn() * static_cast<int64_t>(sizeof(T)); }  // of b
  // True if SumRow takes whole rows of b.
  bool ReadsInOrder() const { return m_ == 1 && !in_columns_ && b_.row_stride == n_ && n_ % kColumns == 0; }

  // Each thread computes some columns.
  void RunInColumns(const ThreadTeam& team) const {
    // Sums of keys are few: the threads get equal parts.
    const int64_t parts = std::clamp<int64_t>(n_ * ElementsOfColumn() / kGrainElements, 1, team.size());
    const int64_t grain = side_by_side_ && in_columns_ ? Count(n_, parts) : ColumnsOfGrain(ElementsOfColumn());
    team.ParallelFor(n_, grain, [&](int64_t begin, int64_t end) {
      Multiply(0, k_, begin, end,
               [this](int64_t i, int64_t j, int64_t count, const float* sums) { Write(i, j, count, sums); });
    });
  }

  // Each thread adds up some terms of all columns.
  void RunInBlocks(const ThreadTeam& team) const {
    const int64_t terms = RoundUp(Count(k_, std::min(k_ / kFewestTerms, kMostBlocks)), kTermsOfPartialSum);
    BlockSums{Count(k_, terms), m_, n_, kColumns}.Run(
        team,
        [&](int64_t block, bool, int64_t begin, int64_t end, float* of_block) {
          const int64_t term = block * terms;
          Multiply(term, std::min(terms, k_ - term), begin, end,
                   [&](int64_t i, int64_t j, int64_t count, const float* sums) {
                     std::copy_n(sums, count, of_block + i * n_ + j);
                   });
        },
        [&](int64_t i, int64_t j, int64_t count, const float* sums) { Write(i, j, count, sums); });
  }

  // The sums of `terms` terms from `term` on, of columns [begin, end): take(row, column, count, sums) gets each row's.
  template <typename Take>
  void Multiply(int64_t term, int64_t terms, int64_t begin, int64_t end, const Take& take) const {
    ScratchFrame frame;
    float* const sums = frame.Get<float>(2 * m_ * at_once_ + kFloatsOfPage);
    for (int64_t j = begin; j < end; j += at_once_) {
      const int64_t count = std::min(at_once_, end - j);
      const float* const a = rows_ + term;
      const T* const b = b_.data + term * b_.row_stride + j * b_.col_stride;
      if (!side_by_side_) {
        XPU_PICK_ISA(FewRows<T>)
        (fetch_, in_columns_, m_, count, terms, a, ld_rows_, b, in_columns_ ? b_.col_stride : b_.row_stride, sums,
         at_once_);
      } else if (in_columns_) {
        XPU_PICK_ISA(DotsSideBySide<T>)(m_, count, k_, a, ld_rows_, b, b_.col_stride, sums, at_once_);
      } else {
        XPU_PICK_ISA(SumRow<T>)({j, width_, ld_rows_}, count, terms, a, b, b_.row_stride, sums, sums + at_once_);
      }
      for (int64_t i = 0; i < m_; ++i) take(i, j, count, sums + i * at_once_);
    }
  }

  void Write(int64_t i, int64_t j, int64_t count, const float* sums) const {
    while (count > 0) {  // columns of each product
      const int64_t product = j / width_, column = j % width_, here = std::min(count, width_ - column);
      WriteColumns(i + product, column, here, sums);
      j += here, sums += here, count -= here;
    }
  }
  void WriteColumns(int64_t i, int64_t j, int64_t count, const float* sums) const {
    T* const to = c_.data + i * c_.row_stride + j * c_.col_stride;
    if (c_.col_stride == 1) return XPU_PICK_ISA(StoreSums<T>)(sums, count, to);
    for (int64_t l = 0; l < count; ++l) to[l * c_.col_stride] = static_cast<T>(sums[l]);
  }

  const bool side_by_side_, in_columns_;
  const int64_t m_, n_, k_, width_;  // width_: a product's columns
  const float* const rows_;
  const int64_t ld_rows_;
  const StridedMatrix<const T> b_;
  const StridedMatrix<T> c_;
  const bool is_large_, fetch_;
  const int64_t at_once_;  // columns
};

template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, bool side_by_side, StridedMatrix<const T> a, StridedMatrix<const T> b,
              StridedMatrix<T> c, const ThreadTeam& team) {
  if constexpr (std::is_same_v<T, float>) {
    if (a.col_stride == 1) return Product<T>(m, n, k, side_by_side, a.data, a.row_stride, b, c).Run(team);
  }
  ScratchFrame frame;
  float* const rows = frame.Get<float>(m * k);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      rows[i * k + l] = static_cast<float>(a.data[i * a.row_stride + l * a.col_stride]);
    }
  }
  Product<T>(m, n, k, side_by_side, rows, k, b, c).Run(team);
}

}  // namespace

template <typename T>
void MultiplyFewRows(int64_t m, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                     StridedMatrix<T> c, const ThreadTeam& team) {
  Multiply(m, n, k, /*side_by_side=*/false, a, b, c, team);
}

template <typename T>
void MultiplySideBySide(int64_t products, int64_t n, int64_t k, StridedMatrix<const T> a, StridedMatrix<const T> b,
                        StridedMatrix<T> c, const ThreadTeam& team) {
  Multiply(products, n, k, /*side_by_side=*/true, a, b, c, team);
}

void BlockSums::Run(const ThreadTeam& team, AddBlock add_block, Take take) const {
  ScratchFrame frame;
  float* const of_blocks = frame.Get<float>(blocks * m * n);
  const int64_t width = RoundUp(Count(n, Count(team.size(), blocks)), unit), across = Count(n, width);
  team.ParallelFor(blocks * across, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t block = part / across, first = part % across * width;
      add_block(block, part == begin, first, std::min(first + width, n), of_blocks + block * m * n);
    }
  });
  const auto add_up = XPU_PICK_ISA(AddUp);
  team.ParallelFor(n, ColumnsOfGrain(blocks * m), [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    float* const sums = inner.Get<float>(end - begin);
    for (int64_t row = 0; row < m; ++row) {
      add_up(blocks, end - begin, of_blocks + row * n + begin, m * n, sums);
      take(row, begin, end - begin, sums);
    }
  });
}

#define XPU_FEW_ROWS(T)                                                                                          \
  template void MultiplyFewRows<T>(int64_t, int64_t, int64_t, StridedMatrix<const T>, StridedMatrix<const T>,    \
                                   StridedMatrix<T>, const host_runtime::ThreadTeam&);                           \
  template void MultiplySideBySide<T>(int64_t, int64_t, int64_t, StridedMatrix<const T>, StridedMatrix<const T>, \
                                      StridedMatrix<T>, const host_runtime::ThreadTeam&)
XPU_FEW_ROWS(float);
XPU_FEW_ROWS(Half);
XPU_FEW_ROWS(BFloat16);

}  // namespace xpu::cpu
