// The loops of pool.cc, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_POOL_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_POOL_LOOPS_H_

#include <algorithm>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/primitives/descriptors.h"

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/pool_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_POOL_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The pixels of one window inside the input, as positions in it.
struct Window {
  int64_t begin[3], end[3];
  Window(const PoolDesc& d, int64_t o0, int64_t o1, int64_t o2) {
    const int64_t o[3] = {o0, o1, o2};
    for (int i = 0; i < 3; ++i) {
      const int64_t start = o[i] * d.stride[i] - d.pad_before[i];
      const host_runtime::PixelRange range(start, d.window[i], 1, d.input[i]);
      begin[i] = start + range.begin;
      end[i] = start + range.end;
    }
  }
  int64_t pixels() const { return (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]); }
};

// Vectors of channels [c, ...) of one output pixel: `kVectors` whole ones, or the first `n` elements of one.
template <typename T, bool kMaximum, int kVectors, bool kWhole>
static inline void PoolPixel(const PoolDesc& d, const Window& w, const T* x, T* y, int64_t c, int64_t n, VF start,
                             float scale) {
  VF value[kVectors];
  for (int v = 0; v < kVectors; ++v) value[v] = start;
  for (int64_t i = w.begin[0]; i < w.end[0]; ++i) {
    for (int64_t j = w.begin[1]; j < w.end[1]; ++j) {
      const T* from = x + ((i * d.input[1] + j) * d.input[2] + w.begin[2]) * d.channels + c;
      for (int64_t k = w.begin[2]; k < w.end[2]; ++k, from += d.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const VF pixel = kWhole ? Load(from + v * kLanes) : LoadFirst(from, static_cast<int>(n), 0);
          value[v] = kMaximum ? Max(value[v], pixel) : value[v] + pixel;
        }
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const VF result = kMaximum ? value[v] : value[v] * scale;
    kWhole ? Store(y + c + v * kLanes, result) : StoreFirst(y + c, static_cast<int>(n), result);
  }
}

// Output pixels [o0, o1, :] of one image, channels last.
template <typename T, bool kMaximum>
static void PoolRow(const PoolDesc& d, const T* x, T* y, int64_t o0, int64_t o1, float lowest) {
  constexpr int kWide = 4;
  const VF start = Splat<VF>(kMaximum ? lowest : 0.0f);
  for (int64_t o2 = 0; o2 < d.output[2]; ++o2, y += d.channels) {
    const Window w(d, o0, o1, o2);
    const float scale = w.pixels() == 0 ? 0.0f : 1.0f / static_cast<float>(w.pixels());
    int64_t c = 0;
    for (; c + kWide * kLanes <= d.channels; c += kWide * kLanes) {
      PoolPixel<T, kMaximum, kWide, true>(d, w, x, y, c, 0, start, scale);
    }
    for (; c + kLanes <= d.channels; c += kLanes) PoolPixel<T, kMaximum, 1, true>(d, w, x, y, c, 0, start, scale);
    if (c < d.channels) PoolPixel<T, kMaximum, 1, false>(d, w, x, y, c, d.channels - c, start, scale);
  }
}

// The position in its window of the first maximum of channels [c, c + kLanes).
template <typename T>
static inline VI FirstMaximum(const PoolDesc& d, const Window& w, const T* x, int64_t c) {
  VF best = {};
  VI winner = {};
  int32_t pixel = 0;
  for (int64_t i = w.begin[0]; i < w.end[0]; ++i) {
    for (int64_t j = w.begin[1]; j < w.end[1]; ++j) {
      const T* from = x + ((i * d.input[1] + j) * d.input[2] + w.begin[2]) * d.channels + c;
      for (int64_t k = w.begin[2]; k < w.end[2]; ++k, from += d.channels, ++pixel) {
        const VF v = LoadUpTo(from, d.channels - c);
        const VI better = pixel == 0 ? ~VI{} : (VI)(best < v);
        best = better ? v : best;
        winner = better ? Splat<VI>(pixel) : winner;
      }
    }
  }
  return winner;
}

// The maxima of output pixels [o0, o1, :] of one image, and where in it they are. Positions without the channel fit
// into 32 bits.
template <typename T, typename P>
static void PoolPositionsRow(const PoolDesc& d, const T* x, T* y, P* positions, int64_t o0, int64_t o1, float lowest) {
  const int64_t channels = d.channels;
  for (int64_t o2 = 0; o2 < d.output[2]; ++o2, y += channels, positions += channels) {
    const Window w(d, o0, o1, o2);
    for (int64_t c = 0; c < channels; c += kLanes) {
      VF best = Splat<VF>(lowest);
      VI where = Splat<VI>(-1);
      for (int64_t i = w.begin[0]; i < w.end[0]; ++i) {
        for (int64_t j = w.begin[1]; j < w.end[1]; ++j) {
          const int64_t row = (i * d.input[1] + j) * d.input[2];
          for (int64_t k = w.begin[2]; k < w.end[2]; ++k) {
            const VF v = LoadUpTo(x + (row + k) * channels + c, channels - c);
            const VI better = (VI)(best < v) | (VI)(where < 0);
            best = better ? v : best;
            where = better ? Splat<VI>(static_cast<int32_t>(row + k)) : where;
          }
        }
      }
      StoreUpTo(y + c, channels - c, best);
      for (int64_t lane = 0; lane < std::min<int64_t>(kLanes, channels - c); ++lane) {
        positions[c + lane] = static_cast<P>(where[lane] < 0 ? -1 : where[lane] * channels + c + lane);
      }
    }
  }
}

// The gradients from output pixels [o0, o1, :] of one image where windows do not overlap. At most one of them writes a
// pixel of dx.
template <typename T, bool kMaximum>
static void PoolGradientRow(const PoolDesc& d, const T* x, const T* dy, T* dx, int64_t o0, int64_t o1) {
  const int64_t channels = d.channels;
  for (int64_t o2 = 0; o2 < d.output[2]; ++o2, dy += channels) {
    const Window w(d, o0, o1, o2);
    for (int64_t c = 0; c < channels; c += kLanes) {
      VF g = LoadUpTo(dy + c, channels - c);
      const VI winner = kMaximum ? FirstMaximum(d, w, x, c) : VI{};
      if (!kMaximum) g = g / static_cast<float>(w.pixels());
      int32_t pixel = 0;
      for (int64_t i = w.begin[0]; i < w.end[0]; ++i) {
        for (int64_t j = w.begin[1]; j < w.end[1]; ++j) {
          T* to = dx + ((i * d.input[1] + j) * d.input[2] + w.begin[2]) * channels + c;
          for (int64_t k = w.begin[2]; k < w.end[2]; ++k, to += channels, ++pixel) {
            StoreUpTo(to, channels - c, kMaximum ? (winner == pixel ? g : VF{}) : g);
          }
        }
      }
    }
  }
}

// Channels [c, c + kLanes) of one image, added to sums [pixels, kLanes].
template <typename T, bool kMaximum>
static void PoolGradientChannels(const PoolDesc& d, const T* x, const T* dy, float* sums, int64_t c) {
  const int64_t channels = d.channels, n = channels - c;
  for (int64_t o0 = 0; o0 < d.output[0]; ++o0) {
    for (int64_t o1 = 0; o1 < d.output[1]; ++o1) {
      for (int64_t o2 = 0; o2 < d.output[2]; ++o2, dy += channels) {
        const Window w(d, o0, o1, o2);
        if (w.pixels() == 0) continue;
        VF g = LoadUpTo(dy + c, n);
        const VI winner = kMaximum ? FirstMaximum(d, w, x, c) : VI{};
        if (!kMaximum) g = g / static_cast<float>(w.pixels());
        int32_t pixel = 0;
        for (int64_t i = w.begin[0]; i < w.end[0]; ++i) {
          for (int64_t j = w.begin[1]; j < w.end[1]; ++j) {
            float* to = sums + ((i * d.input[1] + j) * d.input[2] + w.begin[2]) * kLanes;
            for (int64_t k = w.begin[2]; k < w.end[2]; ++k, to += kLanes, ++pixel) {
              const VF add = kMaximum ? (winner == pixel ? g : VF{}) : g;
              Store(to, Load(to) + add);
            }
          }
        }
      }
    }
  }
}

// From sums of kLanes per pixel to channels [c, c + kLanes) of a row-major [pixels, channels].
template <typename T>
static void StoreChannels(const float* sums, T* dx, int64_t pixels, int64_t channels, int64_t c) {
  for (int64_t i = 0; i < pixels; ++i) StoreUpTo(dx + i * channels + c, channels - c, Load(sums + i * kLanes));
}

static inline int Lanes() { return kLanes; }

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA
