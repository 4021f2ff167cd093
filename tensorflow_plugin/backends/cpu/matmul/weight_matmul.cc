#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/elementwise/epilogue.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/matmul/engine.h"
#include "tensorflow_plugin/backends/cpu/matmul/weight_columns.h"
#include "tensorflow_plugin/backends/cpu/matmul/weight_digits.h"
#include "tensorflow_plugin/backends/cpu/matmul/weight_matmul_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/float_mode.h"
#include "tensorflow_plugin/backends/host_runtime/kernel_span.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/plain/weights.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;
using plain::Weights;

// Weights become floats in registers for kRowsAtOnce rows at a time. Or kPanel weights at a time become floats in
// memory, and are multiplied with all rows.
constexpr int64_t kRowsAtOnce = 4, kPanel = 1 << 18;
// Sums that stay in the first cache.
constexpr int64_t kBlockSums = 4096;
// The most units that the loops take at once.
constexpr int64_t kUnitsAtOnce = 4;
// Bytes of weights worth handing to another thread.
constexpr int64_t kGrainBytes = 1 << 15;

// a's matrix [m,k], whose rows are lda elements apart.
struct Rows {
  const float* data;
  int64_t m, lda;
};

// Computes the columns of the units [begin, end), for Halves::kAcross and kDown. A unit is the columns of a vector of
// bytes. The last one may have fewer columns.
void MultiplyUnits(const Weights& w, const Rows& a, int64_t begin, int64_t end, float* c) {
  const bool down = w.halves == Halves::kDown;
  const auto store = XPU_PICK_ISA(StoreUnit);
  const int64_t lanes = XPU_PICK_ISA(Lanes)(), columns = down ? lanes : 2 * lanes;
  const int64_t most = std::max<int64_t>(1, kBlockSums / kRowsAtOnce / columns);
  ScratchFrame frame;
  float* const sums = frame.Get<float>(kRowsAtOnce * most * columns);
  float* const ordered = frame.Get<float>(columns);
  WeightColumns from{w.bytes + begin * lanes, w.scales + begin * columns, w.zero_points + begin * columns,
                     w.row_bytes(), w.n};
  int64_t units;
  for (int64_t u = begin; u < end; u += units) {
    units = std::min(most, std::min(end, w.n / columns) - u);
    const int64_t here = std::min(columns, w.n - u * columns);
    if (units <= 0) {  // columns that fill no vector
      units = 1;
      from = PadColumns(w, u * columns, columns, &frame);
    }
    for (int64_t i = 0; i < a.m; i += kRowsAtOnce) {
      const int64_t rows = std::min(kRowsAtOnce, a.m - i);
      XPU_PICK_ISA(SumUnitsFor)(down, rows)(units, w.k, w.group, a.data + i * a.lda, a.lda, from.bytes, from.row_bytes,
                                            from.scales, from.zero_points, from.ld_scales, sums, most * columns);
      for (int64_t r = 0; r < rows; ++r) {
        float* const to = c + (i + r) * w.n + u * columns;
        const float* const of_row = sums + r * most * columns;
        if (here < columns) {
          store(down, of_row, ordered);
          std::copy_n(ordered, here, to);
        } else {
          for (int64_t j = 0; j < units * columns; j += columns) store(down, of_row + j, to + j);
        }
      }
    }
    from.bytes += units * lanes;
    from.scales += units * columns;
    from.zero_points += units * columns;
  }
}

void MultiplyFew(const Weights& w, const Rows& a, float* c, const ThreadTeam& team) {
  if (w.halves == Halves::kTurned) {
    // The even and the odd elements of each row of a, in matrices of their own.
    ScratchFrame frame;
    const int64_t lda = Count(w.k, 2);
    float* const even = frame.Get<float>(2 * a.m * lda);
    float* const odd = even + a.m * lda;
    for (int64_t i = 0; i < a.m; ++i) {
      for (int64_t l = 0; l < w.k; ++l) (l % 2 == 0 ? even : odd)[i * lda + l / 2] = a.data[i * a.lda + l];
    }
    team.ParallelFor(w.n, kGrainBytes / w.row_bytes() + 1, [&](int64_t begin, int64_t end) {
      constexpr int64_t kColumns = 64;  // their bytes stay in the first cache until all rows have read them
      for (int64_t j = begin; j < end; j += kColumns) {
        for (int64_t i = 0; i < a.m; i += kRowsAtOnce) {
          XPU_PICK_ISA(SumTurnedFor)(std::min(kRowsAtOnce, a.m - i))(
              std::min(kColumns, end - j), w.k, w.group, w.groups, even + i * lda, odd + i * lda, lda,
              w.bytes + j * w.row_bytes(), w.row_bytes(), w.scales + j * w.groups, w.zero_points + j * w.groups,
              c + i * w.n + j, w.n);
        }
      }
    });
  } else {
    const int64_t columns = XPU_PICK_ISA(Lanes)() * (w.halves == Halves::kDown ? 1 : 2);
    const int64_t unit_bytes = XPU_PICK_ISA(Lanes)() * w.k, units = Count(w.n, columns);
    // A thread reads long pieces of each row, of whole groups of units.
    const int64_t wanted = std::max(kGrainBytes / unit_bytes + 1, Count(units, kPartsPerThread * team.size()));
    team.ParallelFor(units, Count(wanted, kUnitsAtOnce) * kUnitsAtOnce,
                     [&](int64_t begin, int64_t end) { MultiplyUnits(w, a, begin, end, c); });
  }
}

// Writes the columns [begin, end) of the weights as floats: [k, columns], or [columns, k] with Halves::kTurned.
void Unpack(const Weights& w, int64_t begin, int64_t end, float* to, const ThreadTeam& team) {
  const auto unpack = XPU_PICK_ISA(UnpackBytes);
  const int64_t columns = end - begin;
  if (w.halves == Halves::kTurned) {
    team.ParallelFor(columns, kGrainBytes / w.row_bytes() + 1, [&](int64_t from, int64_t until) {
      for (int64_t j = from; j < until; ++j) {
        const uint8_t* const bytes = w.bytes + (begin + j) * w.row_bytes();
        for (int64_t g = 0; g < w.groups; ++g) {
          const int64_t first = g * w.group, last = std::min(w.k, first + w.group), scale = w.ScaleAt(g, begin + j);
          unpack(true, true, (last - first) / 2, bytes + first / 2, w.scales + scale, w.zero_points + scale,
                 to + j * w.k + first, nullptr);
        }
        if (w.k % 2 != 0) to[j * w.k + w.k - 1] = w.At(w.k - 1, begin + j);
      }
    });
    return;
  }
  const bool down = w.halves == Halves::kDown;
  const int64_t rows = down ? Count(w.k, 2) : w.k, row_bytes = w.row_bytes(), width = down ? columns : columns / 2;
  team.ParallelFor(rows, kGrainBytes / width + 1, [&](int64_t from, int64_t until) {
    ScratchFrame frame;
    float* const unused = frame.Get<float>(columns);
    for (int64_t i = from; i < until; ++i) {
      const int64_t row = down ? 2 * i : i, scale = row / w.group * w.n + begin;
      const uint8_t* const bytes = w.bytes + i * row_bytes + (down ? begin : begin / 2);
      float* const first = to + row * columns;
      unpack(!down, false, width, bytes, w.scales + scale, w.zero_points + scale, first,
             row + 1 < w.k ? first + columns : unused);
      if (!down && columns % 2 != 0) first[columns - 1] = w.At(row, end - 1);
    }
  });
}

Status MultiplyMany(const Weights& w, const Rows& a, float* c, const ThreadTeam& team) {
  // An even number of columns begins with a whole byte.
  const int64_t width = std::clamp<int64_t>(kPanel / w.k / 64 * 64, 64, Count(w.n, 64) * 64);
  ScratchFrame frame;
  float* const panel = frame.Get<float>(w.k * std::min(width, w.n));
  for (int64_t j = 0; j < w.n; j += width) {
    MatMulDesc product;
    product.m = a.m;
    product.n = std::min(width, w.n - j);
    product.k = w.k;
    product.lda = a.lda;
    product.ldc = w.n;
    product.transpose_b = w.halves == Halves::kTurned;
    Unpack(w, j, j + product.n, panel, team);
    Args args{};
    args.in[0] = a.data;
    args.in[1] = panel;
    args.out[0] = c + j;
    XPU_RETURN_IF_ERROR(Kernels().Run(product, args, team));
  }
  return OkStatus();
}

bool AreFinite(const float* x, int64_t n, const ThreadTeam& team) {
  constexpr int64_t kGrain = 1 << 16;
  constexpr uint32_t kExponent = 0x7f800000;
  std::atomic<bool> all{true};
  team.ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    uint32_t found = 0;
    for (int64_t i = begin; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, x + i, sizeof(bits));
      found |= (bits & kExponent) == kExponent ? 1 : 0;
    }
    if (found != 0) all = false;
  });
  return all;
}

Status Multiply(const WeightMatMulDesc& d, const Args& args, const ThreadTeam& team) {
  if (d.m == 0 || d.n == 0) return OkStatus();
  Weights weights;
  XPU_RETURN_IF_ERROR(plain::WeightsOf(d, args, &weights));
  WeightMatMulEngine engine = ChooseEngine(d, DigitsFit(weights), Machine::Here(team.size()));
  const Rows a{static_cast<const float*>(args.in[0]), d.m, d.lda != 0 ? d.lda : d.k};
  auto* const c = static_cast<float*>(args.out[0]);
  if (engine == WeightMatMulEngine::kInDigits && !MultiplyDigits(weights, a.m, a.data, a.lda, c, team)) {
    engine = ChooseEngine(d, /*digits_fit=*/false, Machine::Here(team.size()));
  }
  host_runtime::NoteEngine(engine);
  if (engine == WeightMatMulEngine::kPlain) return plain::Run(d, args);
  if (engine == WeightMatMulEngine::kInPanels) return MultiplyMany(weights, a, c, team);
  if (engine == WeightMatMulEngine::kInRegisters) MultiplyFew(weights, a, c, team);
  // Sums that are scaled at the end may overflow where sums of the scaled terms do not.
  return AreFinite(c, d.m * d.n, team) ? OkStatus() : MultiplyMany(weights, a, c, team);
}

}  // namespace

Status CpuKernels::Run(const WeightMatMulDesc& desc, const Args& args, const ThreadTeam& team) const {
  const host_runtime::ScopedFloatMode mode(host_runtime::FloatMode::OfProducts());
  try {
    return WithEpilogue(desc, args, team, [&](auto*) { return Multiply(desc, args, team); });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a product of weights ", desc.m, "x", desc.k, "x",
                                     desc.n);
  }
}

}  // namespace xpu::cpu
