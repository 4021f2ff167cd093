// The numbers that a transform of n elements needs, computed once per length and kept.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_PLAN_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace xpu::cpu {

template <typename R>
struct ComplexList {
  std::vector<R> re, im;
  explicit ComplexList(int64_t n = 0) : re(n), im(n) {}
};

// A length is the product of small factors, each one pass over the data (Stockham's algorithm, which leaves elements in
// order). Any other length is Bluestein's convolution, of a longer length that is such a product.
template <typename R>
struct FftPlan {
  int64_t n = 0;
  std::vector<int> factors;
  // For each pass in turn: exp(-2 pi i p k / length) for p < length / factor, 0 < k < factor; length shrinks by the
  // factors.
  ComplexList<R> twiddles;

  std::shared_ptr<const FftPlan> longer;  // Bluestein's, else null
  ComplexList<R> chirp;                   // exp(-pi i j^2 / n)
  ComplexList<R> spectrum;                // of the conjugate chirp around 0, over longer->n

  // Elements of scratch, per lane, of each of the four arrays that a transform works in.
  int64_t work() const { return longer ? longer->n : n; }
};

// exp(-2 pi i k / n) for k <= n / 2: what real transforms have beside those of half the length.
template <typename R>
using FftRoots = ComplexList<R>;

// R is float or double. Both keep what they have made, within limits. They throw std::bad_alloc.
template <typename R>
std::shared_ptr<const FftPlan<R>> GetFftPlan(int64_t n);
template <typename R>
std::shared_ptr<const FftRoots<R>> GetFftRoots(int64_t n);

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_PLAN_H_
