#include "tensorflow_plugin/backends/cpu/matmul/panels.h"

#include <algorithm>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/chain_epilogue.h"
#include "tensorflow_plugin/backends/cpu/matmul/panels_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Elements of `a` that stay in the second cache, and rows that a panel is copied for.
constexpr int64_t kCachedElements = 1 << 16, kRowsOfPanel = 96;
// Rows of a part whose epilogue follows it, at least.
constexpr int64_t kFewestRowsOfPart = 32;
// Fewer rows are no whole tiles of any width.
constexpr int64_t kRowsOfTiles = 12;
// Multiplications worth a part. A large product has two parts for each thread: one may be held up.
constexpr int64_t kPartWork = 1 << 17, kLargeWork = 1 << 22;
// Fewer rows do not multiply faster with a part of `b`: they wait for it.
constexpr int64_t kRowsThatWait = 4;
// A line that another thread has written takes so many times as long as a line of the outer cache.
constexpr int64_t kLineOfOther = 3;
// Shares of threads may differ by so much of their mean.
constexpr double kUneven = 0.05;

// Panels of longer sums are half as wide, so that one stays in the second cache.
constexpr int64_t kShortSum = 2048;

// The columns of a product of k terms in panels of about the same number of vectors.
struct ColumnPanels {
  ColumnPanels(int64_t n, int64_t k)
      : n(n),
        lanes(XPU_PICK_ISA(LanesOfPanel)()),
        vectors(Count(n, lanes)),
        count(Count(vectors, k <= kShortSum ? XPU_PICK_ISA(VectorsOfPanel)() : XPU_PICK_ISA(VectorsOfPanel)() / 2)) {}

  struct Panel {
    int64_t col, cols;  // the first column, and how many there are
    int vectors, tail;  // of columns, and the lanes of the last one
  };
  Panel at(int64_t panel) const {
    const int64_t first = vectors * panel / count, end = vectors * (panel + 1) / count;
    const int64_t cols = std::min(end * lanes, n) - first * lanes;
    return {first * lanes, cols, static_cast<int>(end - first), static_cast<int>(cols - (end - first - 1) * lanes)};
  }

  int64_t n, lanes, vectors, count;
};

}  // namespace

PanelParts::PanelParts(int64_t m, int64_t n, int64_t k, bool is_packed, bool on_whole_rows, int threads) : m_(m) {
  panels_ = ColumnPanels(n, k).count;
  across_ = on_whole_rows ? 1 : panels_;
  const int64_t work = std::max(m, kRowsThatWait) * n * k;
  const int64_t shares = std::clamp<int64_t>(work / kPartWork, 1, threads);
  int64_t rows = std::min(m, std::max(kRowsOfPanel, kCachedElements / k));
  if (on_whole_rows) rows = std::min(rows, std::max<int64_t>(kFewestRowsOfPart, kPartElements / n));
  int64_t down = Count(m, rows);
  // Shares of rows find them in the thread's own cache, where the same thread has written them, and all threads read
  // all of `b`. Shares of columns meet the lines of the other threads, in `a` and in what reads the result.
  const bool shares_rows = k * n < kLineOfOther * m * (k + n);
  if (shares > 1) {
    const int64_t wanted = work > kLargeWork * shares ? 2 * shares : shares;
    const int64_t parts = shares_rows ? wanted : Count(wanted, across_);
    down = std::max(down, std::min(parts, Count(m, is_packed ? kRowsOfTiles : kRowsOfPanel)));
    down = EvenRows(down, on_whole_rows ? kFewestRowsOfPart : kRowsOfTiles, shares);
  }
  down_ = down;
  // A thread's share is then of all rows and some columns, so that each thread reads a part of `b`.
  by_columns_ = !shares_rows && n > m && m * k <= 2 * kCachedElements;
  grain_ = shares == 1 ? count() : std::max<int64_t>(1, kPartWork * count() / work);
}

int64_t PanelParts::EvenRows(int64_t down, int64_t fewest_rows, int64_t shares) const {
  int64_t best = down;
  double least = 2;
  for (int64_t tried = down; tried < down + shares && (tried == down || m_ >= tried * fewest_rows); ++tried) {
    const double uneven = Unevenness(tried * across_, shares);
    if (uneven < least) best = tried, least = uneven;
    if (least <= kUneven) break;
  }
  return best;
}

PanelParts::Part PanelParts::at(int64_t i) const {
  const int64_t row = by_columns_ ? i % down_ : i / across_, column = by_columns_ ? i / down_ : i % across_;
  const int64_t begin = m_ * row / down_;
  return {begin, m_ * (row + 1) / down_ - begin, panels_ * column / across_, panels_ * (column + 1) / across_};
}

void RunPanels(const MatMulDesc& d, const Args& args, const ThreadTeam& team, std::optional<FusedEpilogue>* epilogue) {
  const auto pack = XPU_PICK_ISA(PackPanel);
  const auto multiply = XPU_PICK_ISA(MultiplyPanel);
  const ColumnPanels panels(d.n, d.k);
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(d.n) : nullptr;
  const bool runs_on_rows = *epilogue && chain == nullptr;  // which is run on whole rows

  const PanelParts parts(d.m, d.n, d.k, /*is_packed=*/false, runs_on_rows, team.size());
  const auto* const a = static_cast<const float*>(args.in[0]);
  const auto* const b = static_cast<const float*>(args.in[1]);
  auto* const c = static_cast<float*>(args.out[0]);
  const RowTerms terms = RowTerms::InOnePiece(d.k);
  team.ParallelFor(parts.count(), parts.grain(), [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    float* const packed = inner.Get<float>(d.k * XPU_PICK_ISA(VectorsOfPanel)() * panels.lanes);
    for (int64_t i = begin; i < end; ++i) {
      const auto [row, count, first, last] = parts.at(i);
      for (int64_t panel = first; panel < last; ++panel) {
        const auto [col, cols, vectors, tail] = panels.at(panel);
        const int64_t at = row * d.ldc + col;
        pack(d.k, cols, vectors, b + col, d.ldb, packed);
        multiply(count, terms, a + row * d.lda, d.lda, packed, false, vectors, {c + at, d.ldc, at, col, tail, chain});
      }
      if (runs_on_rows) (*epilogue)->Run(row * d.n, count * d.n);
    }
  });
  epilogue->reset();
}

void RunUnpacked(const MatMulDesc& d, const Args& args, const ThreadTeam& team,
                 std::optional<FusedEpilogue>* epilogue) {
  const auto multiply = XPU_PICK_ISA(MultiplyUnpacked);
  const ColumnPanels panels(d.n, d.k);
  const ChainEpilogue* const chain = *epilogue ? (*epilogue)->InRegisters(d.n) : nullptr;
  const int64_t lda = d.lda == 0 ? d.k : d.lda, ldb = d.ldb == 0 ? d.n : d.ldb, ldc = d.ldc == 0 ? d.n : d.ldc;
  const auto* const a = static_cast<const float*>(args.in[0]);
  const auto* const b = static_cast<const float*>(args.in[1]);
  auto* const c = static_cast<float*>(args.out[0]);
  const int64_t work = std::max(d.m, kRowsThatWait) * d.k * panels.lanes * XPU_PICK_ISA(VectorsOfPanel)();  // a panel's
  const int64_t grain = (kPartWork - 1) / work + 1;
  team.ParallelFor(panels.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const auto [col, cols, vectors, tail] = panels.at(panel);
      multiply(d.m, d.k, a, lda, b + col, ldb, vectors, {c + col, ldc, col, col, tail, chain});
    }
  });
  if (chain != nullptr) epilogue->reset();
}

int64_t PanelMatrix::Elements(int64_t k, int64_t n) {
  const ColumnPanels panels(n, k);
  return k * panels.vectors * panels.lanes;
}

void PanelMatrix::Pack(int64_t k, int64_t n, const float* b, float* packed) {
  const ColumnPanels panels(n, k);
  for (int64_t panel = 0; panel < panels.count; ++panel) {
    const auto [col, cols, vectors, tail] = panels.at(panel);
    XPU_PICK_ISA(PackPanel)(k, cols, vectors, b + col, n, packed + k * col);
  }
}

int64_t PanelMatrix::count() const { return ColumnPanels(n_, k_).count; }

void PanelMatrix::MultiplyBy(int64_t panel, int64_t m, const RowTerms& terms, const float* a, int64_t lda, float* c,
                             int64_t ldc, int64_t offset, const ChainEpilogue* chain) const {
  const auto multiply = XPU_PICK_ISA(MultiplyPanel);
  const auto [col, cols, vectors, tail] = ColumnPanels(n_, k_).at(panel);
  multiply(m, terms, a, lda, packed_ + k_ * col, false, vectors, {c + col, ldc, offset + col, col, tail, chain});
}

void PanelMatrix::MultiplySome(int64_t begin, int64_t end, int64_t m, const float* a, int64_t lda, float* c,
                               int64_t offset, const ChainEpilogue* chain) const {
  const auto multiply = XPU_PICK_ISA(MultiplyPanel);
  const auto multiply_few = XPU_PICK_ISA(MultiplyUnpacked);
  const ColumnPanels panels(n_, k_);
  for (int64_t panel = begin; panel < end; ++panel) {
    const auto [col, cols, vectors, tail] = panels.at(panel);
    const float* const packed = packed_ + k_ * col;
    const PanelOutput to{c + col, n_, offset + col, col, tail, chain};
    if (m < kRowsOfTiles) {
      multiply_few(m, k_, a, lda, packed, vectors * panels.lanes, vectors, to);
    } else {
      multiply(m, RowTerms::InOnePiece(k_), a, lda, packed, panel + 1 < panels.count, vectors, to);
    }
  }
}

}  // namespace xpu::cpu
