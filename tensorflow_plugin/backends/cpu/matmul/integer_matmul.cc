#include "tensorflow_plugin/backends/cpu/matmul/integer_matmul.h"

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/matmul/integer_matmul_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

#if defined(__x86_64__)
#define XPU_PICK_BYTES(function) (ActiveIsa() >= Isa::kAvx512Vnni ? &vnni::function : XPU_PICK_ISA(function))
#else
#define XPU_PICK_BYTES(function) XPU_PICK_ISA(function)
#endif

// The rows and columns of b that are packed at a time. A block of that size fits into the second cache. The number of
// rows is a multiple of 4.
constexpr int64_t kBlockTerms = 2048, kBlockColumns = 256;
// Where b is read as it lies: the columns at a time, whose sums stay in the first cache.
constexpr int64_t kDirectColumns = 1024;
// The work that is worth another thread: multiplications, or elements of b where each is read only once.
constexpr int64_t kGrainWork = 1 << 20, kGrainBytes = 1 << 17;
// Rows of a are padded to a multiple of so many elements: vectors of any width may be read to the end of a row.
constexpr int64_t kPadding = 64;

// A copy of the rows of a, each followed by zeros. corrections[i] is to be added to all sums of row i.
struct Rows {
  uint8_t* data;
  int64_t stride;
  int32_t* corrections;
};

// The correction of a row is the sum of its elements times `factor`.
Rows CopyRows(int64_t m, int64_t k, const ByteMatrix& a, int32_t factor, const ThreadTeam& team, ScratchFrame* frame) {
  Rows rows{};
  rows.stride = RoundUp(k, kPadding);
  rows.data = frame->Get<uint8_t>(m * rows.stride);
  rows.corrections = frame->Get<int32_t>(m);
  team.ParallelFor(m, kGrainBytes / k + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint8_t* to = rows.data + i * rows.stride;
      const uint8_t* from = a.data + i * a.row_stride;
      if (a.col_stride == 1) {
        std::memcpy(to, from, static_cast<size_t>(k));
      } else {
        for (int64_t l = 0; l < k; ++l) to[l] = from[l * a.col_stride];
      }
      std::memset(to + k, 0, static_cast<size_t>(rows.stride - k));
      uint32_t sum = 0;
      if (factor != 0) {
        for (int64_t l = 0; l < k; ++l) sum += static_cast<uint32_t>(a.is_signed ? static_cast<int8_t>(to[l]) : to[l]);
      }
      rows.corrections[i] = static_cast<int32_t>(sum * static_cast<uint32_t>(factor));
    }
  });
  return rows;
}

}  // namespace

void MultiplyBytes(MatMulEngine engine, int64_t m, int64_t n, int64_t k, ByteMatrix a, ByteMatrix b,
                   StridedMatrix<int32_t> c, const ThreadTeam& team) {
  const auto pack = XPU_PICK_BYTES(PackBytes);
  const auto multiply_group = XPU_PICK_BYTES(MultiplyGroup);
  const auto multiply_directly = XPU_PICK_BYTES(MultiplyDirectly);
  const int64_t group = XPU_PICK_BYTES(GroupColumns)(), rows_at_once = XPU_PICK_BYTES(RowsAtOnce)();
  const auto multiply_columns = XPU_PICK_BYTES(MultiplyColumns);

  // A dot product of bytes wants one signed and one unsigned side. If both are signed, 128 is added to each element of
  // b; if both are unsigned, 128 is subtracted.
  const bool flips = a.is_signed == b.is_signed;
  const uint8_t flip = flips ? 0x80 : 0;
  const int32_t factor = !flips ? 0 : b.is_signed ? -128 : 128;
  const bool in_columns = engine == MatMulEngine::kBytesByColumns;
  const int64_t ldb = in_columns ? b.col_stride : b.row_stride;
  const auto b_at = [&](int64_t l, int64_t j) { return b.data + l * b.row_stride + j * b.col_stride; };

  ScratchFrame frame;
  const Rows rows = CopyRows(m, k, a, factor, team, &frame);

  // Packs some columns of b, and multiplies them with some rows of a.
  const auto multiply_packed = [&](int64_t row_begin, int64_t row_end, int64_t begin, int64_t end) {
    ScratchFrame inner;
    const int64_t terms = std::min(RoundUp(k, 4), kBlockTerms), group_bytes = terms * group;
    uint8_t* const packed = inner.Get<uint8_t>(RoundUp(end - begin, group) * terms);
    for (int64_t l = 0; l < k; l += kBlockTerms) {
      const int64_t deep = std::min(kBlockTerms, k - l);
      pack(b_at(l, begin), ldb, flip, deep, end - begin, packed, group_bytes);
      for (int64_t i = row_begin; i < row_end; i += rows_at_once) {
        for (int64_t j = begin; j < end; j += group) {
          multiply_group(a.is_signed, std::min(rows_at_once, row_end - i), RoundUp(deep, 4) / 4,
                         rows.data + i * rows.stride + l, rows.stride, packed + (j - begin) / group * group_bytes,
                         std::min(group, end - j), rows.corrections + i, l > 0, c.data + i * c.row_stride + j,
                         c.row_stride);
        }
      }
    }
  };

  if (engine == MatMulEngine::kBytesAsTheyLie) {
    team.ParallelFor(n, RoundUp(kGrainBytes / k + 1, 64), [&](int64_t begin, int64_t end) {
      ScratchFrame inner;
      int32_t* const sums = inner.Get<int32_t>(m * kDirectColumns);
      for (int64_t j = begin; j < end; j += kDirectColumns) {
        const int64_t here = std::min(kDirectColumns, end - j), whole = here / group * group;
        if (whole > 0) {
          multiply_directly(a.is_signed, m, whole, k, rows.data, rows.stride, b_at(0, j), ldb, flip, rows.corrections,
                            sums, c.data + j, c.row_stride);
        }
        if (whole < here) multiply_packed(0, m, j + whole, j + here);
      }
    });
    return;
  }

  // Each part packs its own columns of b. So parts divide the columns first, and the rows only where columns do not
  // suffice. If b is in columns and there are few rows, reading b is most of the work.
  const int64_t work = in_columns ? std::max(m * n * k / kGrainWork, n * k / kGrainBytes) : m * n * k / kGrainWork;
  const int64_t parts = std::clamp<int64_t>(work, 1, 2 * team.size());
  const int64_t most_columns = in_columns ? std::max(n, group) : kBlockColumns;
  const int64_t columns = std::clamp(RoundUp((n + parts - 1) / parts, group), group, most_columns);
  const int64_t across = (n + columns - 1) / columns, down = std::max<int64_t>(1, parts / across);
  const int64_t tall = RoundUp((m + down - 1) / down, rows_at_once);
  const int64_t stacks = (m + tall - 1) / tall;
  team.ParallelFor(across * stacks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t row = part / across * tall, column = part % across * columns;
      const int64_t rows_here = std::min(tall, m - row), columns_here = std::min(columns, n - column);
      if (in_columns) {
        multiply_columns(a.is_signed, rows_here, columns_here, k, rows.data + row * rows.stride, rows.stride,
                         b_at(0, column), ldb, flip, rows.corrections + row, c.data + row * c.row_stride + column,
                         c.row_stride);
      } else {
        multiply_packed(row, row + rows_here, column, column + columns_here);
      }
    }
  });
}

}  // namespace xpu::cpu
