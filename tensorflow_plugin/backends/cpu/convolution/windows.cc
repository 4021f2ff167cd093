#include "tensorflow_plugin/backends/cpu/convolution/windows.h"

#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/backends/cpu/matmul/gemm.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"

namespace xpu::cpu {
namespace {

using host_runtime::SpatialStrides;
using host_runtime::ThreadTeam;

template <typename T>
class Windows {
 public:
  explicit Windows(const ConvolutionDesc& d)
      : d_(d),
        in_per_group_(d.in_channels / d.groups),
        out_per_group_(d.out_channels / d.groups),
        depth_(host_runtime::Pixels(d.filter) * in_per_group_),
        pixels_(host_runtime::Pixels(d.output)),
        // Rows at a time: as many as keep the matrix within the second-level cache.
        chunk_(std::min(pixels_, std::max<int64_t>(16, (int64_t{1} << 19) / static_cast<int64_t>(sizeof(T)) / depth_))),
        x_(d.order, d.in_channels, d.input),
        y_(d.order, d.out_channels, d.output) {}

  void Forward(const T* x, const T* w, T* y, const ThreadTeam& team) const {
    const int64_t chunks = (pixels_ + chunk_ - 1) / chunk_;
    team.ParallelFor(d_.batch * d_.groups * chunks, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      T* rows = frame.Get<T>(chunk_ * depth_);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % chunks * chunk_, g = i / chunks % d_.groups, n = i / chunks / d_.groups;
        const int64_t count = std::min(chunk_, pixels_ - first);
        Visit(n, g, first, count, [&](int64_t row, int64_t at, bool inside) { rows[row] = inside ? x[at] : T(0); });
        Gemm<T>(count, out_per_group_, depth_, {rows, depth_, 1}, Filter(w, g), Output(y, n, g, first), T(1), false,
                ThreadTeam(1));
      }
    });
  }

  void DataGradient(const T* w, const T* dy, T* dx, const ThreadTeam& team) const {
    std::memset(static_cast<void*>(dx), 0, d_.batch * d_.in_channels * host_runtime::Pixels(d_.input) * sizeof(T));
    team.ParallelFor(d_.batch * d_.groups, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      T* rows = frame.Get<T>(chunk_ * depth_);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t g = i % d_.groups, n = i / d_.groups;
        for (int64_t first = 0; first < pixels_; first += chunk_) {
          const int64_t count = std::min(chunk_, pixels_ - first);
          const StridedMatrix<const T> filter = Filter(w, g);
          Gemm<T>(count, depth_, out_per_group_, Output(dy, n, g, first),
                  {filter.data, filter.col_stride, filter.row_stride}, {rows, depth_, 1}, T(1), false, ThreadTeam(1));
          Visit(n, g, first, count, [&](int64_t row, int64_t at, bool inside) {
            if (inside) dx[at] += rows[row];
          });
        }
      }
    });
  }

  void FilterGradient(const T* x, const T* dy, T* dw, const ThreadTeam& team) const {
    // Groups write apart from each other; within one, the products share the team.
    const ThreadTeam inner(d_.groups >= team.size() ? 1 : team.size());
    const ThreadTeam outer(inner.size() == 1 ? team.size() : 1);
    outer.ParallelFor(d_.groups, 1, [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      T* rows = frame.Get<T>(chunk_ * depth_);
      for (int64_t g = begin; g < end; ++g) {
        for (int64_t n = 0; n < d_.batch; ++n) {
          for (int64_t first = 0; first < pixels_; first += chunk_) {
            const int64_t count = std::min(chunk_, pixels_ - first);
            Visit(n, g, first, count, [&](int64_t row, int64_t at, bool inside) { rows[row] = inside ? x[at] : T(0); });
            Gemm<T>(depth_, out_per_group_, count, {rows, 1, depth_}, Output(dy, n, g, first), Filter(dw, g), T(1),
                    n > 0 || first > 0, inner);
          }
        }
      }
    });
  }

 private:
  template <typename P>
  StridedMatrix<P> Filter(P* w, int64_t g) const {
    return {w + g * out_per_group_, d_.out_channels, 1};
  }
  // The rows from pixel `first` on: pixels are equally spaced in both layouts.
  template <typename P>
  StridedMatrix<P> Output(P* y, int64_t n, int64_t g, int64_t first) const {
    return {y + n * y_.n + g * out_per_group_ * y_.c + first * y_.s[2], y_.s[2], y_.c};
  }

  // Calls f(offset in the window matrix, offset in x, inside) for all elements of `count` windows.
  template <typename F>
  void Visit(int64_t n, int64_t g, int64_t first, int64_t count, F&& f) const {
    const int64_t image = n * x_.n + g * in_per_group_ * x_.c;
    int64_t row = 0;
    for (int64_t pixel = first; pixel < first + count; ++pixel) {
      host_runtime::ForEachTap(d_, pixel, [&](int64_t, int64_t met) {
        const int64_t at = image + met * x_.s[2];  // pixels are equally spaced in both layouts
        for (int64_t channel = 0; channel < in_per_group_; ++channel) f(row++, at + channel * x_.c, met >= 0);
      });
    }
  }

  const ConvolutionDesc& d_;
  const int64_t in_per_group_, out_per_group_, depth_, pixels_, chunk_;
  const SpatialStrides x_, y_;
};

// Depthwise convolutions with channels last. A window of one channel would be a matrix of one column; here each tap is
// a loop over the channels.
template <typename T>
class ChannelLoops {
 public:
  static bool Take(const ConvolutionDesc& d) {
    return d.groups > 1 && d.groups == d.in_channels && d.order == ChannelOrder::kLast;
  }

  explicit ChannelLoops(const ConvolutionDesc& d)
      : d_(d),
        in_(d.in_channels),
        out_(d.out_channels),
        of_each_(out_ / in_),
        pixels_(host_runtime::Pixels(d.output)),
        in_pixels_(host_runtime::Pixels(d.input)) {}

  void Forward(const T* x, const T* w, T* y, const ThreadTeam& team) const {
    constexpr int64_t kGrain = 1 << 15;  // products
    const int64_t grain = std::max<int64_t>(1, kGrain / (out_ * host_runtime::Pixels(d_.filter)));
    team.ParallelFor(d_.batch * pixels_, grain, [&](int64_t begin, int64_t end) {
      std::fill(y + begin * out_, y + end * out_, T(0));
      Visit(begin, end, [&](int64_t tap, int64_t met, int64_t pixel) {
        AddProducts(0, in_, x + met * in_, w + tap * out_, y + pixel * out_);
      });
    });
  }

  // Threads have images of their own; channels, if these are few.
  void DataGradient(const T* w, const T* dy, T* dx, const ThreadTeam& team) const {
    std::fill(dx, dx + d_.batch * in_pixels_ * in_, T(0));
    const auto add = [&](int64_t first, int64_t last, int64_t channel, int64_t end) {
      Visit(first * pixels_, last * pixels_, [&](int64_t tap, int64_t met, int64_t pixel) {
        AddSums(channel, end, w + tap * out_, dy + pixel * out_, dx + met * in_);
      });
    };
    if (d_.batch >= team.size()) {
      team.ParallelFor(d_.batch, 1, [&](int64_t begin, int64_t end) { add(begin, end, 0, in_); });
    } else {
      team.ParallelFor(in_, ChannelsOfPart(team), [&](int64_t begin, int64_t end) { add(0, d_.batch, begin, end); });
    }
  }

  // Sums are in memory of each thread, whose writes others would wait for.
  void FilterGradient(const T* x, const T* dy, T* dw, const ThreadTeam& team) const {
    const int64_t taps = host_runtime::Pixels(d_.filter);
    team.ParallelFor(in_, ChannelsOfPart(team), [&](int64_t begin, int64_t end) {
      ScratchFrame frame;
      T* const sums = frame.Get<T>(taps * out_);
      std::fill(sums, sums + taps * out_, T(0));
      Visit(0, d_.batch * pixels_, [&](int64_t tap, int64_t met, int64_t pixel) {
        AddProducts(begin, end, x + met * in_, dy + pixel * out_, sums + tap * out_);
      });
      for (int64_t tap = 0; tap < taps; ++tap) {
        std::copy(sums + tap * out_ + begin * of_each_, sums + tap * out_ + end * of_each_,
                  dw + tap * out_ + begin * of_each_);
      }
    });
  }

 private:
  int64_t ChannelsOfPart(const ThreadTeam& team) const { return (in_ + team.size() - 1) / team.size(); }

  // to[c, k] += x[c] * y[c, k] for the channels [begin, end).
  void AddProducts(int64_t begin, int64_t end, const T* x, const T* y, T* to) const {
    if (of_each_ == 1) {
#pragma GCC ivdep
      for (int64_t c = begin; c < end; ++c) to[c] += x[c] * y[c];
      return;
    }
    for (int64_t c = begin; c < end; ++c) {
#pragma GCC ivdep
      for (int64_t k = c * of_each_; k < (c + 1) * of_each_; ++k) to[k] += x[c] * y[k];
    }
  }

  // to[c] += the sum of x[c, k] * y[c, k] for the channels [begin, end).
  void AddSums(int64_t begin, int64_t end, const T* x, const T* y, T* to) const {
    if (of_each_ == 1) return AddProducts(begin, end, x, y, to);
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t k = c * of_each_; k < (c + 1) * of_each_; ++k) to[c] += x[k] * y[k];
    }
  }

  // Calls f(tap, pixel of all inputs, pixel of all outputs) for the taps inside of outputs [begin, end).
  template <typename F>
  void Visit(int64_t begin, int64_t end, F&& f) const {
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      const int64_t image = pixel / pixels_ * in_pixels_;
      host_runtime::ForEachTap(d_, pixel % pixels_, [&](int64_t tap, int64_t met) {
        if (met >= 0) f(tap, image + met, pixel);
      });
    }
  }

  const ConvolutionDesc& d_;
  const int64_t in_, out_, of_each_, pixels_, in_pixels_;
};

template <typename Engine, typename T>
void RunWith(const Engine& engine, const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  const T *a = static_cast<const T*>(args.in[0]), *b = static_cast<const T*>(args.in[1]);
  T* out = static_cast<T*>(args.out[0]);
  switch (d.direction) {
    case Direction::kForward:
      return engine.Forward(a, b, out, team);
    case Direction::kDataGradient:
      return engine.DataGradient(a, b, out, team);
    case Direction::kFilterGradient:
      return engine.FilterGradient(a, b, out, team);
    case Direction::kPackFilter:
      return;  // has no windows
  }
}

}  // namespace

template <typename T>
void RunWindows(const ConvolutionDesc& d, const Args& args, const ThreadTeam& team) {
  if (ChannelLoops<T>::Take(d)) return RunWith<ChannelLoops<T>, T>(ChannelLoops<T>(d), d, args, team);
  RunWith<Windows<T>, T>(Windows<T>(d), d, args, team);
}

template void RunWindows<float>(const ConvolutionDesc&, const Args&, const ThreadTeam&);
template void RunWindows<double>(const ConvolutionDesc&, const Args&, const ThreadTeam&);

}  // namespace xpu::cpu
