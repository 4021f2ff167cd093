#include "tensorflow_plugin/backends/cpu/matmul/weight_digits.h"

#include <algorithm>
#include <atomic>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"
#include "tensorflow_plugin/backends/cpu/matmul/weight_columns.h"
#include "tensorflow_plugin/backends/cpu/matmul/weight_digits_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {

#if defined(__x86_64__)

namespace {

using host_runtime::ThreadTeam;
using plain::Weights;

#define XPU_PICK_DIGITS(function)                      \
  (ActiveIsa() >= Isa::kAvx512Vnni ? &vnni::function   \
   : ActiveIsa() == Isa::kAvx512   ? &avx512::function \
                                   : &avx2::function)

// Rows of a that are digits at a time.
constexpr int64_t kMostRows = 256;
// Elements of a, and weights that four rows of a meet, worth handing to another thread.
constexpr int64_t kGrainDigits = 1 << 14, kGrainWeights = 1 << 15;

Blocks BlocksOf(const Weights& w) { return {w.k, w.groups == 1 ? w.k : w.group}; }

int64_t NumBlocks(const Weights& w, const Blocks& blocks) {
  const int64_t of_last = w.k - (w.groups - 1) * blocks.group;
  return (w.groups - 1) * blocks.PerGroup() + Count(of_last, kBlockRows);
}

// Those that the loops take at once.
int64_t UnitColumns(const Weights& w) { return XPU_PICK_DIGITS(UnitBytes)() * (w.halves == Halves::kAcross ? 2 : 1); }

// Rows of a as digits. False if those of a block have no common power.
bool MakeDigits(const Weights& w, const Blocks& blocks, int64_t num_blocks, int64_t m, const float* a, int64_t lda,
                const ThreadTeam& team, ScratchFrame* frame, DigitsOfRow* rows) {
  const bool apart = w.halves != Halves::kAcross;
  const int64_t per_byte = apart ? 2 : 1, stride = Count(w.k / per_byte + 2 * kBlockRows, 64) * 64;
  auto* const planes = frame->Get<int8_t>(m * per_byte * kDigits * stride);
  auto* const factors = frame->Get<BlockFactor>(m * num_blocks);
  const auto write = XPU_PICK_DIGITS(WriteDigits);
  std::atomic<bool> fits{true};
  team.ParallelFor(m, kGrainDigits / w.k + 1, [&](int64_t from, int64_t until) {
    for (int64_t i = from; i < until; ++i) {
      int8_t* const to = planes + i * per_byte * kDigits * stride;
      rows[i] = {to, stride, factors + i * num_blocks};
      for (int64_t b = 0; b < num_blocks; ++b) {  // in this order: a short block overwrites the zeros of the last one
        const int64_t begin = blocks.Begin(b);
        if (!write(a + i * lda + begin, blocks.End(b) - begin, apart, to + begin / per_byte, stride, kDigits * stride,
                   &factors[i * num_blocks + b])) {
          fits.store(false, std::memory_order_relaxed);
          return;
        }
      }
    }
  });
  return fits.load(std::memory_order_relaxed);
}

// Computes the columns of the units [begin, end).
void MultiplyColumnsOf(const Weights& w, const Blocks& blocks, int64_t num_blocks, int64_t begin, int64_t end,
                       const DigitRows& a, float* c) {
  const auto multiply = XPU_PICK_DIGITS(MultiplyUnits);
  const auto multiply_turned = XPU_PICK_DIGITS(MultiplyTurned);
  const int64_t unit_bytes = XPU_PICK_DIGITS(UnitBytes)(), columns = UnitColumns(w);
  const int64_t whole = std::min(end, w.n / columns), first = begin * columns;
  ScratchFrame frame;
  auto* const unpacked = frame.Get<uint8_t>(2 * kBlockRows * unit_bytes);  // both halves of a block's bytes
  const BlockRange all{0, num_blocks, /*is_cold=*/true};
  const auto multiply_turned_unit = [&](int64_t column, const ProductRows& to) {
    multiply_turned(blocks, num_blocks, std::min(columns, w.n - column), a, ColumnsFrom(w, column), unpacked, to);
  };
  const bool turned = w.halves == Halves::kTurned, down = w.halves == Halves::kDown;
  if (turned && a.m == 1) {
    auto* const starts = frame.Get<int32_t>(num_blocks * unit_bytes / sizeof(int32_t));
    XPU_PICK_DIGITS(StartLanes)(a.rows[0], num_blocks, starts);
    auto* const elements = frame.Get<float>(w.groups);
    std::fill_n(elements, w.groups, 0.0f);
    for (int64_t b = 0; b < num_blocks; ++b) {
      elements[b / blocks.PerGroup()] += a.rows[0].factors[b].sum * a.rows[0].factors[b].power;
    }
    XPU_PICK_DIGITS(MultiplyRowTurned)
    (blocks, std::min(end * columns, w.n) - first, a.rows[0], starts, elements, ColumnsFrom(w, first), c + first);
    return;
  }
  if (turned) {
    for (int64_t column = first; column < whole * columns; column += columns)
      multiply_turned_unit(column, {c + column, w.n});
  } else if (begin < whole) {
    multiply(down, blocks, all, whole - begin, a, ColumnsFrom(w, first), unpacked, {c + first, w.n});
  }
  if (whole == end) return;
  // The last one has columns that fill no vector.
  const int64_t column = whole * columns, here = w.n - column;
  float* const sums = frame.Get<float>(a.m * columns);
  if (turned) {
    multiply_turned_unit(column, {sums, columns});
  } else {
    multiply(down, blocks, all, 1, a, PadColumns(w, column, columns, &frame), unpacked, {sums, columns});
  }
  for (int64_t i = 0; i < a.m; ++i) std::copy_n(sums + i * columns, here, c + i * w.n + column);
}

// A long sum of one row, in chunks of blocks that threads share. A thread would have too few blocks of a shorter sum:
// it would lose more time on the first of them.
class RowInChunks {
 public:
  RowInChunks(const Weights& w, const Blocks& blocks, int64_t num_blocks)
      : w_(w),
        blocks_(blocks),
        num_blocks_(num_blocks),
        chunks_(std::clamp<int64_t>(w.k / kFewestTerms, 1, std::min(num_blocks, kMostChunks))) {}

  bool Pays() const { return chunks_ >= kFewestChunks && w_.halves != Halves::kTurned && w_.n % UnitColumns(w_) == 0; }

  void Run(const DigitsOfRow& row, float* c, const ThreadTeam& team) const {
    const int64_t columns = UnitColumns(w_);
    BlockSums{chunks_, 1, w_.n, columns}.Run(
        team,
        [&](int64_t chunk, bool is_first, int64_t begin, int64_t end, float* sums) {
          const BlockRange some{num_blocks_ * chunk / chunks_, num_blocks_ * (chunk + 1) / chunks_, is_first};
          XPU_PICK_DIGITS(MultiplyUnits)
          (w_.halves == Halves::kDown, blocks_, some, (end - begin) / columns, {&row, 1}, ColumnsFrom(w_, begin),
           nullptr, {sums + begin, w_.n});
        },
        [&](int64_t, int64_t begin, int64_t count, const float* sums) { std::copy_n(sums, count, c + begin); });
  }

 private:
  static constexpr int64_t kFewestTerms = 256, kFewestChunks = 4, kMostChunks = 8;

  const Weights& w_;
  const Blocks& blocks_;
  const int64_t num_blocks_, chunks_;
};

}  // namespace

bool DigitsFit(const Weights& w) {
  const int64_t whole = w.halves == Halves::kTurned ? kBlockRows : w.halves == Halves::kDown ? 8 : 4;
  return ActiveIsa() != Isa::kBaseline && (w.groups == 1 || w.group % whole == 0);
}

bool MultiplyDigits(const Weights& w, int64_t m, const float* a, int64_t lda, float* c, const ThreadTeam& team) {
  const Blocks blocks = BlocksOf(w);
  const int64_t num_blocks = NumBlocks(w, blocks);
  for (int64_t i = 0; i < m; i += kMostRows) {
    const int64_t here = std::min(kMostRows, m - i);
    ScratchFrame frame;
    auto* const rows = frame.Get<DigitsOfRow>(here);
    if (!MakeDigits(w, blocks, num_blocks, here, a + i * lda, lda, team, &frame, rows)) return false;
    float* const to = c + i * w.n;
    if (const RowInChunks chunks(w, blocks, num_blocks); here == 1 && chunks.Pays()) {
      chunks.Run(rows[0], to, team);
      continue;
    }
    const int64_t units = Count(w.n, UnitColumns(w)), unit_weights = w.k * UnitColumns(w);
    // A thread reads long pieces of each row.
    const int64_t grain =
        std::max(kGrainWeights / Count(here, 4) / unit_weights + 1, Count(units, kPartsPerThread * team.size()));
    team.ParallelFor(units, grain, [&](int64_t begin, int64_t end) {
      MultiplyColumnsOf(w, blocks, num_blocks, begin, end, {rows, here}, to);
    });
  }
  return true;
}

#else  // no dot products of bytes

bool DigitsFit(const plain::Weights&) { return false; }
bool MultiplyDigits(const plain::Weights&, int64_t, const float*, int64_t, float*, const host_runtime::ThreadTeam&) {
  return false;
}

#endif

}  // namespace xpu::cpu
