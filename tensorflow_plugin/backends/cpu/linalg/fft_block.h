// Several transforms of one length at once, side by side in vectors.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_BLOCK_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_BLOCK_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/linalg/fft_plan.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::cpu {

// Element j of lane l is at j * lanes + l.
template <typename R>
struct FftArrays {
  R *re, *im;
};

// Where the elements of each lane are in memory: complex numbers, or reals on the real side of a transform. Strides
// count those.
struct FftSide {
  void* data;
  int64_t element_stride, lane_stride;
};

template <typename R>
struct FftBlock {
  FftKind kind;
  bool inverse;
  int64_t n;  // of the real side, where there is one
  // For n elements, or for n / 2 where n is even and one side is real: then neighbours are taken for a complex number.
  const FftPlan<R>* plan;
  const FftRoots<R>* roots;  // of n, for such a real transform; else null
  R scale;
  FftSide in, out;  // may be the same memory
  int64_t lanes;
  FftArrays<R> a, b;  // scratch of WorkElements() * lanes each
};

// Elements per lane of a block's scratch.
template <typename R>
int64_t WorkElements(const FftPlan<R>& plan, const FftRoots<R>* roots) {
  const int64_t half = roots == nullptr ? 0 : static_cast<int64_t>(roots->re.size());
  return plan.work() > half ? plan.work() : half;
}

// The transform of what lies in `a`, which is then in `a` again: the arrays change places.
void Transform(const FftPlan<double>& plan, int64_t lanes, FftArrays<double>* a, FftArrays<double>* b);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_BLOCK_H_
