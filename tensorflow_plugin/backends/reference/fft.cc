#include <cmath>
#include <complex>
#include <vector>

#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

// Sums are in long double, so that what is rounded is the result.
using Number = std::complex<long double>;

// One transform by its definition, of n elements that are `stride` apart.
void Transform(Number* x, int64_t n, int64_t stride, bool inverse) {
  constexpr long double kTwoPi = 6.283185307179586476925286766559005768L;
  std::vector<Number> roots(n), result(n);
  for (int64_t i = 0; i < n; ++i) {
    const long double angle = (inverse ? kTwoPi : -kTwoPi) * static_cast<long double>(i) / static_cast<long double>(n);
    roots[i] = {std::cos(angle), std::sin(angle)};
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < n; ++j) {
      const Number v = x[j * stride], w = roots[k * j % n];
      result[k] += Number(v.real() * w.real() - v.imag() * w.imag(), v.real() * w.imag() + v.imag() * w.real());
    }
  }
  const long double scale = inverse ? 1 / static_cast<long double>(n) : 1;
  for (int64_t k = 0; k < n; ++k) x[k * stride] = result[k] * scale;
}

template <typename R>
void Run(const FftDesc& d, const Args& args) {
  const int64_t n = d.shape.num_elements(), last = d.shape[d.shape.rank() - 1];
  const int64_t half = last / 2 + 1;
  const bool real_in = d.kind == FftKind::kRealForward, real_out = d.kind == FftKind::kRealInverse;
  const Dims strides = DenseStrides(d.shape);
  const int64_t in_size = real_out ? n / last * half : n, out_size = real_in ? n / last * half : n;
  const int64_t in_last = real_out ? half : last, out_last = real_in ? half : last;
  std::vector<Number> x(n);
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t i = 0; i < in_size; ++i) {
      Number& to = x[i / in_last * last + i % in_last];
      const int64_t from = b * in_size + i;
      to = real_in ? Number(static_cast<const R*>(args.in[0])[from])
                   : Number(static_cast<const std::complex<R>*>(args.in[0])[from]);
    }
    // With the other axes done, each row is the transform of a real one, whose half says all of it.
    for (int axis = 0; axis < d.shape.rank(); ++axis) {
      if (real_out && axis == d.shape.rank() - 1) {
        for (int64_t row = 0; row < n; row += last) {
          x[row] = x[row].real();
          for (int64_t i = half; i < last; ++i) x[row + i] = std::conj(x[row + last - i]);
          if (last % 2 == 0) x[row + last / 2] = x[row + last / 2].real();
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        if (i / strides[axis] % d.shape[axis] == 0) Transform(&x[i], d.shape[axis], strides[axis], d.inverse);
      }
    }
    for (int64_t i = 0; i < out_size; ++i) {
      const Number& from = x[i / out_last * last + i % out_last];
      const int64_t to = b * out_size + i;
      if (real_out) {
        static_cast<R*>(args.out[0])[to] = static_cast<R>(from.real());
      } else {
        static_cast<std::complex<R>*>(args.out[0])[to] = {static_cast<R>(from.real()), static_cast<R>(from.imag())};
      }
    }
  }
}

}  // namespace

Status ReferenceKernels::Run(const FftDesc& d, const Args& args, const host_runtime::ThreadTeam&) const {
  d.type == DType::kComplex64 ? reference::Run<float>(d, args) : reference::Run<double>(d, args);
  return OkStatus();
}

}  // namespace xpu::reference
