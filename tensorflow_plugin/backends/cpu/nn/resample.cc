#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/resample_loops.h"
#include "tensorflow_plugin/backends/cpu/scratch.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

constexpr int64_t kGrainWork = 1 << 14;  // multiplications worth handing to another thread

// Spans with what is outside of the image cut off, and the weights that are left.
struct Spans {
  Spans(const int32_t* spans, const float* weights, int64_t n, int64_t taps, int64_t extent, ScratchFrame* frame)
      : spans(frame->Get<int32_t>(2 * n)), weights(frame->Get<float>(n * taps)), taps(taps) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t first = spans[2 * i], count = std::min<int64_t>(spans[2 * i + 1], taps);
      const int64_t begin = std::clamp<int64_t>(first, 0, extent);
      const int64_t end = std::clamp<int64_t>(first + std::max<int64_t>(count, 0), begin, extent);
      this->spans[2 * i] = static_cast<int32_t>(begin);
      this->spans[2 * i + 1] = static_cast<int32_t>(end - begin);
      std::copy_n(weights + i * taps + (begin - first), end - begin, this->weights + i * taps);
    }
  }
  int32_t* const spans;
  float* const weights;
  const int64_t taps;
};

template <typename T, typename R>
void Resample(const ResampleDesc& d, const Args& args, const ThreadTeam& team) {
  using C = std::conditional_t<std::is_same_v<R, double>, double, float>;
  const T* const images = static_cast<const T*>(args.in[0]);
  R* const out = static_cast<R*>(args.out[0]);
  const auto add = XPU_PICK_ISA(AddWeighted<T, C>);
  const auto across = d.channels == 1   ? XPU_PICK_ISA(AcrossColumns<C, R, 1>)
                      : d.channels == 3 ? XPU_PICK_ISA(AcrossColumns<C, R, 3>)
                      : d.channels == 4 ? XPU_PICK_ISA(AcrossColumns<C, R, 4>)
                                        : XPU_PICK_ISA(AcrossColumns<C, R, 0>);
  ScratchFrame frame;
  const Spans y(static_cast<const int32_t*>(args.in[1]), static_cast<const float*>(args.in[2]), d.out_h, d.y_taps,
                d.height, &frame);
  const Spans x(static_cast<const int32_t*>(args.in[3]), static_cast<const float*>(args.in[4]), d.out_w, d.x_taps,
                d.width, &frame);
  const int64_t in_row = d.width * d.channels, out_row = d.out_w * d.channels;
  const int64_t work = std::max<int64_t>(1, in_row * (d.y_taps + 1) + out_row * (d.x_taps + 1));
  team.ParallelFor(d.batch * d.out_h, std::max<int64_t>(1, kGrainWork / work), [&](int64_t begin, int64_t end) {
    ScratchFrame inner;
    C* const sums = inner.Get<C>(in_row);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / d.out_h, i = row % d.out_h, first = y.spans[2 * i];
      const T* const from = images + (b * d.height + first) * in_row;
      std::memset(sums, 0, in_row * sizeof(C));
      for (int64_t s = 0; s < y.spans[2 * i + 1]; ++s) {
        add(from + s * in_row, static_cast<C>(y.weights[i * y.taps + s]), in_row, sums);
      }
      across(sums, x.spans, x.weights, x.taps, d.out_w, d.channels, out + row * out_row);
    }
  });
}

}  // namespace

Status CpuKernels::Run(const ResampleDesc& d, const Args& args, const ThreadTeam& team) const {
  try {
    VisitType(d.type, [&](auto type) {
      VisitType(d.result_type, [&](auto result_type) {
        using T = typename decltype(type)::type;
        using R = typename decltype(result_type)::type;
        constexpr DType t = DTypeOf<T>::value;
        if constexpr ((IsFloating(t) || IsInteger(t)) && IsFloating(DTypeOf<R>::value)) Resample<T, R>(d, args, team);
      });
    });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("no memory for ", Name(d));
  }
  return OkStatus();
}

}  // namespace xpu::cpu
