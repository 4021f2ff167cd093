#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/plain/scan_totals.h"

namespace xpu::cpu {
namespace {

// Columns that go side by side, and the elements of a part of a long line.
constexpr int64_t kWidth = 256, kPart = 32 << 10;
// A total waits for the one before it; several stretches of a row at a time keep the processor busy.
constexpr int64_t kStretches = 8, kStretch = 128, kTile = kStretches * kStretch;

template <typename T, ScanKind kind>
class Scan {
 public:
  using C = ComputeTypeT<T>;

  Scan(const ScanDesc& desc, const T* x, T* y)
      : desc_(desc),
        x_(x),
        y_(y),
        width_(std::min(desc.inner, kWidth)),
        chunks_((desc.inner + width_ - 1) / width_),
        lines_(desc.outer * chunks_) {}

  void Run(const host_runtime::ThreadTeam& team) {
    int64_t parts = 1;
    if (team.size() > 1 && lines_ < 2 * team.size()) {
      parts = std::clamp<int64_t>(desc_.n * width_ / kPart, 1, int64_t{4} * team.size());
    }
    part_ = (desc_.n + parts - 1) / parts;
    parts = (desc_.n + part_ - 1) / part_;
    if (parts > 1) {
      // Where each part starts: the total of those before it.
      starts_.assign(lines_ * parts * width_, Start());
      team.ParallelFor(lines_ * parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) Sum(UnitAt(unit, parts), &starts_[unit * width_]);
      });
      for (int64_t line = 0; line < lines_; ++line) {
        std::vector<C> total(width_, Start());
        for (int64_t i = line * parts * width_; i < (line + 1) * parts * width_; ++i) {
          std::swap(starts_[i], total[i % width_]);
          total[i % width_] = plain::Total<kind>(starts_[i], total[i % width_]);
        }
      }
    }
    const double unit_ns = static_cast<double>(part_ * width_) * (kind == ScanKind::kLogSumExp ? 25 : 1.2);
    const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(20000 / unit_ns));
    team.ParallelFor(lines_ * parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const ScanUnit u = UnitAt(unit, parts);
        const C* start = parts > 1 ? &starts_[unit * width_] : nullptr;
        if (desc_.inner > 1) {
          Columns(u, start);
        } else {
          Row(u, start == nullptr ? Start() : *start);
        }
      }
    });
  }

 private:
  // Elements first, first + step, ... of `width` neighbouring columns, n in each.
  struct ScanUnit {
    int64_t first, n, width;
  };

  static C Start() { return plain::StartOfTotal<kind, C>(); }
  static C Next(C total, T x) { return plain::Total<kind>(total, static_cast<C>(x)); }
  int64_t step() const { return desc_.reverse ? -desc_.inner : desc_.inner; }

  ScanUnit UnitAt(int64_t unit, int64_t parts) const {
    const int64_t line = unit / parts, begin = unit % parts * part_, n = std::min(part_, desc_.n - begin);
    const int64_t column = line % chunks_ * width_, row = desc_.reverse ? desc_.n - 1 - begin : begin;
    return {(line / chunks_ * desc_.n + row) * desc_.inner + column, n, std::min(width_, desc_.inner - column)};
  }

  void Sum(const ScanUnit& u, C* total) const {
    const T* x = x_ + u.first;
    if (u.width > 1 || kind == ScanKind::kLogSumExp) {
      for (int64_t i = 0; i < u.n; ++i, x += step()) {
        for (int64_t j = 0; j < u.width; ++j) total[j] = Next(total[j], x[j]);
      }
      return;
    }
    C totals[kStretches];
    std::fill_n(totals, kStretches, Start());
    const int64_t rows = u.n / kStretches;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t s = 0; s < kStretches; ++s) totals[s] = Next(totals[s], x[(i * kStretches + s) * step()]);
    }
    for (int64_t i = rows * kStretches; i < u.n; ++i) totals[0] = Next(totals[0], x[i * step()]);
    for (C t : totals) *total = plain::Total<kind>(*total, t);
  }

  void Columns(const ScanUnit& u, const C* start) const {
    C total[kWidth];
    if (start != nullptr) {
      std::copy_n(start, u.width, total);
    } else {
      std::fill_n(total, u.width, Start());
    }
    const T* x = x_ + u.first;
    T* y = y_ + u.first;
    for (int64_t i = 0; i < u.n; ++i, x += step(), y += step()) {
      if (desc_.exclusive) {
        for (int64_t j = 0; j < u.width; ++j) {
          y[j] = static_cast<T>(total[j]);
          total[j] = Next(total[j], x[j]);
        }
      } else {
        for (int64_t j = 0; j < u.width; ++j) {
          total[j] = Next(total[j], x[j]);
          y[j] = static_cast<T>(total[j]);
        }
      }
    }
  }

  void Row(const ScanUnit& u, C total) const {
    int64_t i = 0;
    if constexpr (kind != ScanKind::kLogSumExp) {  // whose function costs more than waiting does
      for (; i + kTile <= u.n; i += kTile) total = Tile(u.first + i * step(), total);
    }
    for (; i < u.n; ++i) {
      const int64_t at = u.first + i * step();
      const C before = total;
      total = Next(total, x_[at]);
      y_[at] = static_cast<T>(desc_.exclusive ? before : total);
    }
  }

  // The totals of each stretch by itself, then those of the stretches before it added.
  C Tile(int64_t first, C total) const {
    const T* x = x_ + first;
    T* y = y_ + first;
    C own[kTile], totals[kStretches];
    std::fill_n(totals, kStretches, Start());
    for (int64_t i = 0; i < kStretch; ++i) {
      for (int64_t s = 0; s < kStretches; ++s) {
        const int64_t at = s * kStretch + i;
        const C before = totals[s];
        totals[s] = Next(before, x[at * step()]);
        own[at] = desc_.exclusive ? before : totals[s];
      }
    }
    for (int64_t s = 0; s < kStretches; ++s) {
      const C* from = own + s * kStretch;
      T* to = y + s * kStretch * step();
      if (desc_.reverse) {
        for (int64_t i = 0; i < kStretch; ++i) to[-i] = static_cast<T>(plain::Total<kind>(total, from[i]));
      } else {
        for (int64_t i = 0; i < kStretch; ++i) to[i] = static_cast<T>(plain::Total<kind>(total, from[i]));
      }
      total = plain::Total<kind>(total, totals[s]);
    }
    return total;
  }

  const ScanDesc& desc_;
  const T* const x_;
  T* const y_;
  const int64_t width_, chunks_, lines_;
  int64_t part_ = 0;       // elements of a line in one unit
  std::vector<C> starts_;  // of each unit, by column
};

}  // namespace

Status CpuKernels::Run(const ScanDesc& desc, const Args& args, const host_runtime::ThreadTeam& team) const {
  plain::VisitScan(desc, [&](auto tag, auto kind) {
    using T = typename decltype(tag)::type;
    Scan<T, kind()>(desc, static_cast<const T*>(args.in[0]), static_cast<T*>(args.out[0])).Run(team);
  });
  return OkStatus();
}

}  // namespace xpu::cpu
