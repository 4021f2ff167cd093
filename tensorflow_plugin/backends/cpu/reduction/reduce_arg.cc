// ArgMax and ArgMin.
#include <algorithm>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/reduction/reduce_layout.h"
#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::cpu {
namespace {

constexpr int64_t kTile = TileRunner::kTile;

// NaN beats nothing, as in TensorFlow.
template <typename T, bool max>
bool Beats(T x, T best) {
  return max ? x > best : x < best;
}

// Takes n more elements of a row, the first of which has position `first`.
template <typename T, bool max>
void TakeRow(const T* x, int64_t n, int64_t first, T* best, int64_t* position) {
  // Most blocks of a long row hold no new extremum, which a loop without branches finds out fast.
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    const T bar = *best;
    int any = 0;
    for (int64_t j = 0; j < kBlock; ++j) any |= Beats<T, max>(x[i + j], bar);
    if (!any) continue;
    for (int64_t j = 0; j < kBlock; ++j) {
      if (!Beats<T, max>(x[i + j], *best)) continue;
      *best = x[i + j];
      *position = first + i + j;
    }
  }
  for (; i < n; ++i) {
    if (!Beats<T, max>(x[i], *best)) continue;
    *best = x[i];
    *position = first + i;
  }
}

// Takes one more element of each of n columns.
template <typename T, bool max>
void TakeColumns(const T* x, int64_t n, int64_t r, T* best, int64_t* position) {
  for (int64_t i = 0; i < n; ++i) {
    const bool take = Beats<T, max>(x[i], best[i]);
    best[i] = take ? x[i] : best[i];
    position[i] = take ? r : position[i];
  }
}

// One thread's work: units of up to kTile outputs.
template <typename T, bool max>
class Worker {
 public:
  Worker(const ReduceDesc& desc, const ReduceLayout& layout, const Args& args)
      : layout_(layout),
        runner_(layout.source, args, /*store_outputs=*/false),
        store_(FindInstr(Opcode::kCast, DType::kInt64, desc.index_type)),
        out_(static_cast<char*>(args.out[0])),
        index_size_(SizeOf(desc.index_type)) {}

  const Status& status() const { return runner_.status(); }

  // Rows [k, k + count), each of which fits into a tile several times.
  void ShortRows(int64_t k, int64_t count) {
    Reset(count);
    const T* x = Elements(k * layout_.reduced, count * layout_.reduced);
    for (int64_t j = 0; j < count; ++j) {
      TakeRow<T, max>(x + j * layout_.reduced, layout_.reduced, 0, &best_[j], &position_[j]);
    }
    Store(k, count);
  }

  void LongRow(int64_t k) {
    Reset(1);
    for (int64_t r = 0; r < layout_.reduced; r += kTile) {
      const int64_t n = std::min(kTile, layout_.reduced - r);
      TakeRow<T, max>(Elements(k * layout_.reduced + r, n), n, r, best_, position_);
    }
    Store(k, 1);
  }

  // Columns [column, column + n) of block k.
  void Columns(int64_t k, int64_t column, int64_t n) {
    Reset(n);
    // Several rows of few columns share a tile.
    const int64_t rows = n == layout_.inner ? kTile / n : 1;
    for (int64_t r = 0; r < layout_.reduced; r += rows) {
      const int64_t count = std::min(rows, layout_.reduced - r);
      const T* x = Elements((k * layout_.reduced + r) * layout_.inner + column, count * n);
      for (int64_t j = 0; j < count; ++j) TakeColumns<T, max>(x + j * n, n, r + j, best_, position_);
    }
    Store(k * layout_.inner + column, n);
  }

 private:
  void Reset(int64_t n) {
    std::fill_n(best_, n, plain::scalar::StartOfExtremum<T>(max));
    std::fill_n(position_, n, 0);
  }
  const T* Elements(int64_t begin, int64_t n) {
    runner_.Run(begin, n);
    return static_cast<const T*>(runner_.Result(0));
  }
  void Store(int64_t output, int64_t n) { store_(out_ + output * index_size_, position_, nullptr, nullptr, n); }

  const ReduceLayout& layout_;
  TileRunner runner_;
  const InstrFn store_;
  char* const out_;
  const size_t index_size_;
  T best_[kTile];
  int64_t position_[kTile];
};

template <typename T, bool max>
Status Reduce(const ReduceDesc& desc, const ReduceLayout& layout, const Args& args,
              const host_runtime::ThreadTeam& team) {
  const double row_ns = (Prepare(desc.source.program).cost_per_element + 0.5) * static_cast<double>(layout.reduced);
  host_runtime::SharedStatus status;
  auto run = [&](int64_t n, double unit_ns, auto body) {
    team.ParallelFor(n, GrainFor(unit_ns + 5), [&](int64_t begin, int64_t end) {
      Worker<T, max> worker(desc, layout, args);
      body(&worker, begin, end);
      status.Update(worker.status());
    });
  };
  if (layout.inner > 1) {
    // Narrower than a tile, so that there are units for several threads.
    const int64_t width = std::min(kTile / 4, layout.inner);
    const int64_t stretches = (layout.inner + width - 1) / width;
    run(layout.outer * stretches, row_ns * static_cast<double>(width), [&](auto* worker, int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t column = unit % stretches * width;
        worker->Columns(unit / stretches, column, std::min(width, layout.inner - column));
      }
    });
  } else if (layout.reduced * 2 <= kTile) {
    const int64_t per_tile = kTile / layout.reduced;
    run(layout.outer, row_ns, [&](auto* worker, int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; k += per_tile) worker->ShortRows(k, std::min(per_tile, end - k));
    });
  } else {
    run(layout.outer, row_ns, [&](auto* worker, int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) worker->LongRow(k);
    });
  }
  return status.get();
}

}  // namespace

Status RunArgReduce(const ReduceDesc& desc, const ReduceLayout& layout, const Args& args,
                    const host_runtime::ThreadTeam& team) {
  Status status;
  VisitType(desc.source.program->output_type(0), [&](auto tag) {
    using Storage = typename decltype(tag)::type;
    using Register = std::conditional_t<std::is_same_v<Storage, bool>, uint8_t, ComputeTypeT<Storage>>;
    if constexpr (std::is_arithmetic_v<Register>) {
      status = desc.kind == ReduceKind::kArgMax ? Reduce<Register, true>(desc, layout, args, team)
                                                : Reduce<Register, false>(desc, layout, args, team);
    }
  });
  return status;
}

}  // namespace xpu::cpu
