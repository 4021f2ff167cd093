// Reductions: the source program runs tile by tile, and each tile is folded while it is in the nearest cache.
//
// Sums are blocked, so that their error grows with the logarithm of the number of terms. The shape alone decides where
// the work is split, so the result does not depend on the number of threads.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/reduction/reduce_layout.h"
#include "tensorflow_plugin/backends/cpu/reduction/reduce_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

constexpr int64_t kTile = TileRunner::kTile;

struct alignas(64) Tile {
  unsigned char bytes[kTile * 16];  // registers of any type
};

// A kind on a type as: instructions on the source, a combination of two values, instructions on the result.
struct FoldRecipe {
  struct FoldStep {
    InstrFn fn;
    bool by_count;  // the second operand is the number of elements reduced
  };
  std::vector<FoldStep> before, after;
  DType type;  // that is accumulated; a register type (float for half)
  size_t size;
  Opcode op;
  InstrFn combine;
  FoldFn fold;  // nullptr: by `combine`
  InstrFn store;

  FoldRecipe(ReduceKind kind, DType source) {
    type = IsReducedFloat(source) ? DType::kFloat : source;
    op = Opcode::kAdd;
    auto add = [](std::vector<FoldStep>* steps, Opcode step_op, DType from, DType to) {
      steps->push_back({FindInstr(step_op, from, to), false});
    };
    switch (kind) {
      case ReduceKind::kMean:
        if (IsInteger(source)) {
          const DType wide = IsSignedInteger(source) ? DType::kInt64 : DType::kUint64;
          if (type != wide) add(&before, Opcode::kCast, type, wide);
          after.push_back({FindInstr(Opcode::kTruncateDiv, wide, wide), true});
          if (type != wide) add(&after, Opcode::kCast, wide, source);
          type = wide;
        } else {
          after.push_back({FindInstr(Opcode::kDiv, type, type), true});
        }
        break;
      case ReduceKind::kEuclideanNorm: {
        const DType real = type == DType::kComplex64 ? DType::kFloat : IsFloating(type) ? type : DType::kDouble;
        if (IsComplex(source)) {
          add(&before, Opcode::kAbs, type, real);
        } else if (type != real) {
          add(&before, Opcode::kCast, type, real);
        }
        add(&before, Opcode::kSquare, real, real);
        add(&after, Opcode::kSqrt, real, real);
        if (type != real) add(&after, Opcode::kCast, real, type);
        type = real;
        break;
      }
      case ReduceKind::kProd:
        op = Opcode::kMul;
        break;
      case ReduceKind::kMax:
      case ReduceKind::kAny:
        op = type == DType::kBool ? Opcode::kLogicalOr : Opcode::kMaximum;
        break;
      case ReduceKind::kMin:
      case ReduceKind::kAll:
        op = type == DType::kBool ? Opcode::kLogicalAnd : Opcode::kMinimum;
        break;
      default:
        break;
    }
    size = plain::RegisterSize(type);
    combine = FindInstr(op, type, type);
    fold = XPU_PICK_ISA(FindFold)(op, type);
    store = FindStore(source);
  }
};

// Adds up buffers of equal length pairwise, like a binary counter: level l holds the combination of 2^l of them.
class Cascade {
 public:
  Cascade(const FoldRecipe& recipe, int64_t n) : recipe_(recipe), n_(n) {}

  // May overwrite `values`.
  void Push(void* values) {
    size_t level = 0;
    for (; (count_ >> level) & 1; ++level) recipe_.combine(values, levels_[level].get(), values, nullptr, n_);
    if (level == levels_.size()) levels_.emplace_back(new char[n_ * recipe_.size]);
    std::memcpy(levels_[level].get(), values, n_ * recipe_.size);
    ++count_;
  }

  // The combination of all, written to `values`.
  void Finish(void* values) {
    bool first = true;
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (((count_ >> level) & 1) == 0) continue;
      if (first) {
        std::memcpy(values, levels_[level].get(), n_ * recipe_.size);
      } else {
        recipe_.combine(values, levels_[level].get(), values, nullptr, n_);
      }
      first = false;
    }
    count_ = 0;
  }

 private:
  const FoldRecipe& recipe_;
  const int64_t n_;
  uint64_t count_ = 0;
  std::vector<std::unique_ptr<char[]>> levels_;
};

// One thread's work on one reduction.
class Worker {
 public:
  Worker(const ReduceLayout& layout, const FoldRecipe& recipe, const Args& args)
      : layout_(layout),
        recipe_(recipe),
        args_(args),
        runner_(layout.source, args, /*store_outputs=*/false),
        is_input_(runner_.IsInput(0) && recipe.before.empty()) {}

  const Status& status() const { return runner_.status(); }

  // The registers to combine of elements [begin, begin + n) of the walk, n <= kTile unless they are an input's.
  const void* Elements(int64_t begin, int64_t n) {
    runner_.Run(begin, n);
    const void* values = runner_.Result(0);
    for (const FoldRecipe::FoldStep& step : recipe_.before) {
      step.fn(prepared_.bytes, values, nullptr, nullptr, n);
      values = prepared_.bytes;
    }
    return values;
  }

  // Row reduction of the elements [begin, end) of row k to one register.
  void Row(int64_t k, int64_t begin, int64_t end, void* result) {
    const int64_t start = k * layout_.reduced;
    Cascade cascade(recipe_, 1);
    alignas(64) char of_tiles[kTiles * 16];
    for (int64_t r = begin; r < end;) {
      int64_t tiles = is_input_ ? std::min(kTiles, (end - r) / kTile) : 0;
      if (tiles > 0) Fold(Elements(start + r, tiles * kTile), of_tiles, tiles, kTile);
      r += tiles * kTile;
      for (; tiles < kTiles && r < end; ++tiles) {
        const int64_t n = std::min(kTile, end - r);
        Fold(Elements(start + r, n), of_tiles + tiles * recipe_.size, 1, n);
        r += n;
      }
      Fold(of_tiles, result, 1, tiles);
      if (end - begin <= kTiles * kTile) return;
      cascade.Push(result);
    }
    cascade.Finish(result);
  }

  // Row reduction of `rows` whole rows, rows * reduced <= kTile.
  void Rows(int64_t k, int64_t rows, void* results) {
    Fold(Elements(k * layout_.reduced, rows * layout_.reduced), results, rows, layout_.reduced);
  }

  // Column reduction of rows [begin, end) of block k, columns [column, column + width), width <= kTile, to `width`
  // registers.
  void Columns(int64_t k, int64_t begin, int64_t end, int64_t column, int64_t width, void* results) {
    const int64_t inner = layout_.inner;
    // Whole rows side by side make a longer loop of the same accumulation.
    const int64_t side_by_side = width == inner ? std::max<int64_t>(1, std::min(kTile / inner, end - begin)) : 1;
    const int64_t lanes = side_by_side * width;
    Cascade cascade(recipe_, lanes);
    bool cascaded = false;
    int in_block = 0;
    auto elements = [&](int64_t r, int64_t n) { return Elements((k * layout_.reduced + r) * inner + column, n); };
    int64_t r = begin;
    for (; r + side_by_side <= end; r += side_by_side) {
      const void* values = elements(r, lanes);
      if (in_block == 0) {
        std::memcpy(lanes_.bytes, values, lanes * recipe_.size);
      } else {
        recipe_.combine(lanes_.bytes, lanes_.bytes, values, nullptr, lanes);
      }
      if (++in_block == kBlock) {
        cascade.Push(lanes_.bytes);
        cascaded = true;
        in_block = 0;
      }
    }
    if (cascaded) {
      if (in_block > 0) cascade.Push(lanes_.bytes);
      cascade.Finish(lanes_.bytes);
    }
    if (r < end)
      recipe_.combine(lanes_.bytes, lanes_.bytes, elements(r, (end - r) * width), nullptr, (end - r) * width);
    // The rows that were side by side.
    for (int64_t rows = side_by_side; rows > 1;) {
      const int64_t half = (rows + 1) / 2;
      recipe_.combine(lanes_.bytes, lanes_.bytes, lanes_.bytes + half * width * recipe_.size, nullptr,
                      (rows - half) * width);
      rows = half;
    }
    std::memcpy(results, lanes_.bytes, width * recipe_.size);
  }

  // Finishes n <= kTile results (a Tile's, which it overwrites) and stores them from output number `output` on.
  void Store(void* results, int64_t output, int64_t n, DType result_type) {
    void* spare = lanes_.bytes;
    for (const FoldRecipe::FoldStep& step : recipe_.after) {
      if (step.by_count) FillCount(n);
      step.fn(spare, results, step.by_count ? prepared_.bytes : nullptr, nullptr, n);
      std::swap(spare, results);
    }
    const size_t size = SizeOf(result_type);
    char* dst = static_cast<char*>(args_.out[0]) + output * size;
    if (recipe_.store != nullptr) {
      recipe_.store(dst, results, nullptr, nullptr, n);
    } else {
      std::memcpy(dst, results, n * size);
    }
  }

 private:
  static constexpr int kBlock = 16;      // tiles added up in a row before they enter the cascade
  static constexpr int64_t kTiles = 16;  // of a long row, folded each, and then together before they enter it

  void Fold(const void* values, void* results, int64_t rows, int64_t n) {
    if (recipe_.fold != nullptr) {
      recipe_.fold(values, results, rows, n);
      return;
    }
    const size_t size = recipe_.size;
    for (int64_t row = 0; row < rows; ++row) {
      const char* source = static_cast<const char*>(values) + row * n * size;
      char* result = static_cast<char*>(results) + row * size;
      // Halves on halves, in a buffer of their own: the values may be the caller's input.
      int64_t left = n;
      while (left > 1) {
        const int64_t half = (left + 1) / 2;
        recipe_.combine(fold_.bytes, source, source + half * size, nullptr, left - half);
        if (left % 2 != 0) std::memmove(fold_.bytes + (half - 1) * size, source + (half - 1) * size, size);
        source = reinterpret_cast<const char*>(fold_.bytes);
        left = half;
      }
      std::memcpy(result, source, size);
    }
  }

  void FillCount(int64_t n) {
    plain::StoreConstant({recipe_.type, static_cast<double>(layout_.reduced), 0, layout_.reduced}, fold_.bytes);
    for (int64_t i = 0; i < n; ++i) std::memcpy(prepared_.bytes + i * recipe_.size, fold_.bytes, recipe_.size);
  }

  const ReduceLayout& layout_;
  const FoldRecipe& recipe_;
  const Args& args_;
  TileRunner runner_;
  const bool is_input_;
  Tile prepared_, lanes_, fold_;
};

// Few outputs of many elements: the reduced range is split too, into parts whose number depends on the shape alone.
int64_t NumParts(int64_t units, const ReduceLayout& layout) {
  constexpr int64_t kEnoughUnits = 16, kElementsPerPart = 32 * 1024;
  if (units >= kEnoughUnits) return 1;
  const int64_t by_work = layout.outer * layout.reduced * layout.inner / units / kElementsPerPart;
  return std::clamp<int64_t>(std::min(by_work, layout.reduced), 1, kEnoughUnits);
}

struct Reduction {
  const ReduceLayout& layout;
  const FoldRecipe& recipe;
  const Args& args;
  const host_runtime::ThreadTeam& team;
  double element_ns;
  DType result_type;
  host_runtime::SharedStatus status;

  void ManyShortRows() {
    const int64_t per_tile = kTile / layout.reduced;
    team.ParallelFor(layout.outer, GrainFor(element_ns * layout.reduced + 2), [&](int64_t begin, int64_t end) {
      Worker worker(layout, recipe, args);
      Tile results;
      for (int64_t k = begin; k < end; k += per_tile) {
        const int64_t rows = std::min(per_tile, end - k);
        worker.Rows(k, rows, results.bytes);
        worker.Store(results.bytes, k, rows, result_type);
      }
      status.Update(worker.status());
    });
  }

  // Units of up to kTile outputs: one row, or a stretch of the columns of a block; each in `parts` parts.
  void Units() {
    const int64_t width = std::min(kTile, layout.inner);
    const int64_t stretches = (layout.inner + width - 1) / width;
    const int64_t units = layout.outer * stretches;
    const int64_t parts = NumParts(units, layout);
    const int64_t per_part = (layout.reduced + parts - 1) / parts;
    const size_t part_bytes = width * recipe.size;
    std::unique_ptr<char[]> partial(parts > 1 ? new char[units * parts * part_bytes] : nullptr);

    team.ParallelFor(units * parts, GrainFor(element_ns * per_part * width + 20), [&](int64_t begin, int64_t end) {
      Worker worker(layout, recipe, args);
      Tile results;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t unit = u / parts, part = u % parts;
        const int64_t k = unit / stretches, column = unit % stretches * width;
        const int64_t n = std::min(width, layout.inner - column);
        const int64_t first = std::min(layout.reduced, part * per_part);
        const int64_t last = std::min(layout.reduced, first + per_part);
        if (first == last) continue;
        void* dst = partial ? partial.get() + u * part_bytes : reinterpret_cast<char*>(results.bytes);
        if (layout.inner == 1) {
          worker.Row(k, first, last, dst);
        } else {
          worker.Columns(k, first, last, column, n, dst);
        }
        if (!partial) worker.Store(dst, k * layout.inner + column, n, result_type);
      }
      status.Update(worker.status());
    });
    if (!partial) return;

    const int64_t used = (layout.reduced + per_part - 1) / per_part;
    Worker worker(layout, recipe, args);
    Tile results;
    for (int64_t unit = 0; unit < units; ++unit) {
      const int64_t k = unit / stretches, column = unit % stretches * width;
      const int64_t n = std::min(width, layout.inner - column);
      Cascade cascade(recipe, n);
      for (int64_t part = 0; part < used; ++part) cascade.Push(partial.get() + (unit * parts + part) * part_bytes);
      cascade.Finish(results.bytes);
      worker.Store(results.bytes, k * layout.inner + column, n, result_type);
    }
  }
};

}  // namespace

Status CpuKernels::Run(const ReduceDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  const ReduceLayout layout(desc);
  if (layout.outer == 0 || layout.inner == 0) return OkStatus();
  // Nothing but identities to write.
  if (layout.reduced == 0) return plain::Run(desc, args);
  if (IsArgKind(desc.kind)) return RunArgReduce(desc, layout, args, team);

  const DType type = SourceType(desc);
  const FoldRecipe recipe(desc.kind, type);
  const double element_ns =
      Prepare(desc.source.program).cost_per_element + 0.2 * static_cast<double>(1 + recipe.before.size());
  Reduction reduction{layout, recipe, args, team, element_ns, type, {}};
  if (layout.inner == 1 && layout.reduced * 2 <= kTile) {
    reduction.ManyShortRows();
  } else {
    reduction.Units();
  }
  return reduction.status.get();
}

}  // namespace xpu::cpu
