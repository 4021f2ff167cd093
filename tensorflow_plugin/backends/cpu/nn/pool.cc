#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/pool_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/shared_status.h"
#include "tensorflow_plugin/backends/host_runtime/spatial.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int64_t kGrainWork = 1 << 14;  // input pixels times channels worth handing to another thread

int64_t Work(const PoolDesc& d) { return std::max<int64_t>(1, host_runtime::Pixels(d.window) * d.channels); }

// The finite lowest: where a maximum starts.
template <typename T>
constexpr float Lowest() {
  if (std::is_same_v<T, Half>) return -65504.0f;
  return std::is_same_v<T, BFloat16> ? -0x1.fep127f : std::numeric_limits<float>::lowest();
}

template <typename T>
void Forward(const PoolDesc& d, const T* x, T* y, const ThreadTeam& team) {
  const auto row = d.kind == PoolKind::kMax ? XPU_PICK_ISA(PoolRow<T, true>) : XPU_PICK_ISA(PoolRow<T, false>);
  const int64_t x_image = host_runtime::Pixels(d.input) * d.channels, y_row = d.output[2] * d.channels;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / (Work(d) * std::max<int64_t>(1, d.output[2])));
  team.ParallelFor(d.batch * d.output[0] * d.output[1], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      row(d, x + i / (d.output[0] * d.output[1]) * x_image, y + i * y_row, i / d.output[1] % d.output[0],
          i % d.output[1], Lowest<T>());
    }
  });
}

template <typename T, typename P>
void WithPositions(const PoolDesc& d, const T* x, T* y, P* positions, const ThreadTeam& team) {
  const auto row = XPU_PICK_ISA(PoolPositionsRow<T, P>);
  const int64_t x_image = host_runtime::Pixels(d.input) * d.channels, y_row = d.output[2] * d.channels;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / (Work(d) * std::max<int64_t>(1, d.output[2])));
  team.ParallelFor(d.batch * d.output[0] * d.output[1], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      row(d, x + i / (d.output[0] * d.output[1]) * x_image, y + i * y_row, positions + i * y_row,
          i / d.output[1] % d.output[0], i % d.output[1], Lowest<T>());
    }
  });
}

// True if no pixel is in two windows; `covered` if every pixel is in one.
bool Disjoint(const PoolDesc& d, bool* covered) {
  *covered = true;
  for (int i = 0; i < 3; ++i) {
    if (d.stride[i] < d.window[i] && d.output[i] > 1) return false;
    const bool tiles = d.stride[i] == d.window[i] || d.output[i] == 1;
    *covered = *covered && tiles && (d.output[i] - 1) * d.stride[i] + d.window[i] - d.pad_before[i] >= d.input[i];
  }
  return true;
}

template <typename T>
void DisjointGradient(const PoolDesc& d, const T* x, const T* dy, T* dx, bool covered, const ThreadTeam& team) {
  const auto row =
      d.kind == PoolKind::kMax ? XPU_PICK_ISA(PoolGradientRow<T, true>) : XPU_PICK_ISA(PoolGradientRow<T, false>);
  const int64_t x_image = host_runtime::Pixels(d.input) * d.channels, y_row = d.output[2] * d.channels;
  if (!covered) std::memset(static_cast<void*>(dx), 0, d.batch * x_image * sizeof(T));
  const int64_t grain = std::max<int64_t>(1, kGrainWork / (Work(d) * std::max<int64_t>(1, d.output[2])));
  team.ParallelFor(d.batch * d.output[0] * d.output[1], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / (d.output[0] * d.output[1]) * x_image;
      row(d, x == nullptr ? nullptr : x + image, dy + i * y_row, dx + image, i / d.output[1] % d.output[0],
          i % d.output[1]);
    }
  });
}

// Threads take images and vectors of channels: windows overlap, so that pixels of one image are not apart.
template <typename T>
void Gradient(const PoolDesc& d, const T* x, const T* dy, T* dx, const ThreadTeam& team) {
  bool covered;
  if (Disjoint(d, &covered)) return DisjointGradient<T>(d, x, dy, dx, covered, team);
  const auto gradient = d.kind == PoolKind::kMax ? XPU_PICK_ISA(PoolGradientChannels<T, true>)
                                                 : XPU_PICK_ISA(PoolGradientChannels<T, false>);
  const auto store = XPU_PICK_ISA(StoreChannels<T>);
  const int64_t lanes = XPU_PICK_ISA(Lanes)(), vectors = (d.channels + lanes - 1) / lanes;
  const int64_t pixels = host_runtime::Pixels(d.input), x_image = pixels * d.channels;
  const int64_t y_image = host_runtime::Pixels(d.output) * d.channels;
  team.ParallelFor(d.batch * vectors, std::max<int64_t>(1, kGrainWork / (pixels * lanes)),
                   [&](int64_t begin, int64_t end) {
                     ScratchFrame frame;
                     float* sums = frame.Get<float>(pixels * lanes);
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t n = i / vectors, c = i % vectors * lanes;
                       std::memset(sums, 0, pixels * lanes * sizeof(float));
                       gradient(d, x == nullptr ? nullptr : x + n * x_image, dy + n * y_image, sums, c);
                       store(sums, dx + n * x_image, pixels, d.channels, c);
                     }
                   });
}

template <typename T>
void RunVectors(const PoolDesc& d, const Args& args, const ThreadTeam& team) {
  const T* in = static_cast<const T*>(args.in[0]);
  T* out = static_cast<T*>(args.out[0]);
  if (d.positions_type == DType::kInt32) return WithPositions(d, in, out, static_cast<int32_t*>(args.out[1]), team);
  if (d.positions_type == DType::kInt64) return WithPositions(d, in, out, static_cast<int64_t*>(args.out[1]), team);
  if (!d.gradient) return Forward<T>(d, in, out, team);
  if (d.kind == PoolKind::kMax) return Gradient<T>(d, in, static_cast<const T*>(args.in[2]), out, team);
  Gradient<T>(d, nullptr, in, out, team);
}

// The reference's loops, an image to a thread, or a channel's plane of one if the channels are first.
Status RunImages(PoolDesc d, const Args& args, const ThreadTeam& team) {
  if (d.order == ChannelOrder::kFirst) {
    d.batch *= d.channels;
    d.channels = 1;
    d.order = ChannelOrder::kLast;
  }
  const int64_t x_image = host_runtime::Pixels(d.input) * d.channels * SizeOf(d.type);
  const int64_t y_image = host_runtime::Pixels(d.output) * d.channels * SizeOf(d.type);
  const int64_t work = std::max<int64_t>(1, host_runtime::Pixels(d.output)) * Work(d);
  const bool argmax = d.gradient && d.kind == PoolKind::kMax;
  auto at = [](const void* p, int64_t offset) { return static_cast<const char*>(p) + offset; };
  host_runtime::SharedStatus status;
  team.ParallelFor(d.batch, std::max<int64_t>(1, kGrainWork / work), [&](int64_t begin, int64_t end) {
    PoolDesc part = d;
    part.batch = end - begin;
    Args a{};
    a.in[0] = at(args.in[0], begin * (d.gradient && !argmax ? y_image : x_image));
    if (argmax) a.in[2] = at(args.in[2], begin * y_image);
    a.out[0] = static_cast<char*>(args.out[0]) + begin * (d.gradient ? x_image : y_image);
    if (d.positions_type != DType::kInvalid) {
      const int64_t positions = y_image / SizeOf(d.type) * SizeOf(d.positions_type);
      a.out[1] = static_cast<char*>(args.out[1]) + begin * positions;
    }
    status.Update(plain::Run(part, a));
  });
  return status.get();
}

}  // namespace

Status CpuKernels::Run(const PoolDesc& d, const Args& args, const ThreadTeam& team) const {
  const bool empty = d.batch * d.channels * host_runtime::Pixels(d.gradient ? d.input : d.output) == 0;
  if (empty) return OkStatus();
  try {
    // Vectors of positions count in 32 bits.
    const bool fits = d.positions_type == DType::kInvalid || host_runtime::Pixels(d.input) <= INT32_MAX;
    if ((d.order == ChannelOrder::kLast || d.channels == 1) && fits) {
      if (d.type == DType::kFloat)
        RunVectors<float>(d, args, team);
      else if (d.type == DType::kHalf)
        RunVectors<Half>(d, args, team);
      else if (d.type == DType::kBFloat16)
        RunVectors<BFloat16>(d, args, team);
      else
        return RunImages(d, args, team);
      return OkStatus();
    }
    return RunImages(d, args, team);
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for the temporaries of a pooling gradient");
  }
}

}  // namespace xpu::cpu
