// The blocks of fft.cc, once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_LOOPS_H_

#include <cmath>
#include <cstdint>

#include "tensorflow_plugin/backends/cpu/linalg/fft_block.h"
#include "tensorflow_plugin/backends/cpu/linalg/fft_plan.h"

namespace xpu::cpu {

// exp(-2 pi i k / radix), for radices without a pass of their own.
template <typename R>
static void FillRoots(int radix, R* re, R* im) {
  for (int k = 0; k < radix; ++k) {
    const double angle = -6.283185307179586476925286766559 * k / radix;
    re[k] = static_cast<R>(std::cos(angle));
    im[k] = static_cast<R>(std::sin(angle));
  }
}

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/linalg/fft_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_LINALG_FFT_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// One pass takes `x[p + m j]`, j < radix, to `y[radix p + k] = w^(p k) sum_j x[p + m j] exp(-2 pi i j k / radix)`, for
// all p < m. Each of these "elements" is a row of s numbers, which the loops run along. The rows are apart: left to
// compare the addresses of all pairs of them at run time, the compiler writes loops of single numbers.
template <typename R>
static void Pass2(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, int64_t m,
                  int64_t s, const R* wr, const R* wi) {
  for (int64_t p = 0; p < m; ++p) {
    const R w1r = wr[p], w1i = wi[p];
    const R *ar = xr + s * p, *ai = xi + s * p, *br = ar + s * m, *bi = ai + s * m;
    R *cr = yr + s * 2 * p, *ci = yi + s * 2 * p, *dr = cr + s, *di = ci + s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      const R tr = ar[q] - br[q], ti = ai[q] - bi[q];
      cr[q] = ar[q] + br[q];
      ci[q] = ai[q] + bi[q];
      dr[q] = tr * w1r - ti * w1i;
      di[q] = tr * w1i + ti * w1r;
    }
  }
}

template <typename R>
static void Pass3(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, int64_t m,
                  int64_t s, const R* wr, const R* wi) {
  const R h = static_cast<R>(0.86602540378443864676372317075293618347140262690519);
  for (int64_t p = 0; p < m; ++p) {
    const R w1r = wr[2 * p], w1i = wi[2 * p], w2r = wr[2 * p + 1], w2i = wi[2 * p + 1];
    const R *x0r = xr + s * p, *x0i = xi + s * p;
    const R *x1r = x0r + s * m, *x1i = x0i + s * m, *x2r = x1r + s * m, *x2i = x1i + s * m;
    R *y0r = yr + s * 3 * p, *y0i = yi + s * 3 * p;
    R *y1r = y0r + s, *y1i = y0i + s, *y2r = y1r + s, *y2i = y1i + s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      const R tr = x1r[q] + x2r[q], ti = x1i[q] + x2i[q];
      const R ur = x0r[q] - R(0.5) * tr, ui = x0i[q] - R(0.5) * ti;
      const R vr = h * (x1i[q] - x2i[q]), vi = h * (x2r[q] - x1r[q]);
      y0r[q] = x0r[q] + tr;
      y0i[q] = x0i[q] + ti;
      const R ar = ur + vr, ai = ui + vi, br = ur - vr, bi = ui - vi;
      y1r[q] = ar * w1r - ai * w1i;
      y1i[q] = ar * w1i + ai * w1r;
      y2r[q] = br * w2r - bi * w2i;
      y2i[q] = br * w2i + bi * w2r;
    }
  }
}

template <typename R>
static void Pass4(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, int64_t m,
                  int64_t s, const R* wr, const R* wi) {
  for (int64_t p = 0; p < m; ++p) {
    const R w1r = wr[3 * p], w1i = wi[3 * p], w2r = wr[3 * p + 1], w2i = wi[3 * p + 1];
    const R w3r = wr[3 * p + 2], w3i = wi[3 * p + 2];
    const R *x0r = xr + s * p, *x0i = xi + s * p, *x1r = x0r + s * m, *x1i = x0i + s * m;
    const R *x2r = x1r + s * m, *x2i = x1i + s * m, *x3r = x2r + s * m, *x3i = x2i + s * m;
    R *y0r = yr + s * 4 * p, *y0i = yi + s * 4 * p, *y1r = y0r + s, *y1i = y0i + s;
    R *y2r = y1r + s, *y2i = y1i + s, *y3r = y2r + s, *y3i = y2i + s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) {
      const R ar = x0r[q] + x2r[q], ai = x0i[q] + x2i[q], br = x0r[q] - x2r[q], bi = x0i[q] - x2i[q];
      const R cr = x1r[q] + x3r[q], ci = x1i[q] + x3i[q], dr = x1i[q] - x3i[q], di = x3r[q] - x1r[q];
      y0r[q] = ar + cr;
      y0i[q] = ai + ci;
      const R er = br + dr, ei = bi + di, fr = ar - cr, fi = ai - ci, gr = br - dr, gi = bi - di;
      y1r[q] = er * w1r - ei * w1i;
      y1i[q] = er * w1i + ei * w1r;
      y2r[q] = fr * w2r - fi * w2i;
      y2i[q] = fr * w2i + fi * w2r;
      y3r[q] = gr * w3r - gi * w3i;
      y3i[q] = gr * w3i + gi * w3r;
    }
  }
}

// Any radix: by the definition.
template <typename R>
static void PassAny(const R* __restrict xr, const R* __restrict xi, R* __restrict yr, R* __restrict yi, int64_t m,
                    int64_t s, const R* wr, const R* wi, int radix, const R* root_re, const R* root_im) {
  for (int64_t p = 0; p < m; ++p) {
    for (int k = 0; k < radix; ++k) {
      R *cr = yr + s * (radix * p + k), *ci = yi + s * (radix * p + k);
      for (int64_t q = 0; q < s; ++q) cr[q] = xr[s * p + q];
      for (int64_t q = 0; q < s; ++q) ci[q] = xi[s * p + q];
      for (int j = 1; j < radix; ++j) {
        const R vr = root_re[j * k % radix], vi = root_im[j * k % radix];
        const R *ar = xr + s * (p + m * j), *ai = xi + s * (p + m * j);
        for (int64_t q = 0; q < s; ++q) {
          cr[q] += ar[q] * vr - ai[q] * vi;
          ci[q] += ar[q] * vi + ai[q] * vr;
        }
      }
      if (k == 0) continue;
      const R ur = wr[(radix - 1) * p + k - 1], ui = wi[(radix - 1) * p + k - 1];
      for (int64_t q = 0; q < s; ++q) {
        const R tr = cr[q];
        cr[q] = tr * ur - ci[q] * ui;
        ci[q] = tr * ui + ci[q] * ur;
      }
    }
  }
}

template <typename R>
static void RunPasses(const FftPlan<R>& plan, int64_t lanes, FftArrays<R>* a, FftArrays<R>* b) {
  int64_t length = plan.n, stride = lanes;
  const R *wr = plan.twiddles.re.data(), *wi = plan.twiddles.im.data();
  for (int radix : plan.factors) {
    const int64_t m = length / radix;
    switch (radix) {
      case 2:
        Pass2(a->re, a->im, b->re, b->im, m, stride, wr, wi);
        break;
      case 3:
        Pass3(a->re, a->im, b->re, b->im, m, stride, wr, wi);
        break;
      case 4:
        Pass4(a->re, a->im, b->re, b->im, m, stride, wr, wi);
        break;
      default: {
        R root_re[32], root_im[32];
        FillRoots(radix, root_re, root_im);
        PassAny(a->re, a->im, b->re, b->im, m, stride, wr, wi, radix, root_re, root_im);
      }
    }
    const FftArrays<R> done = *b;
    *b = *a;
    *a = done;
    wr += m * (radix - 1);
    wi += m * (radix - 1);
    length = m;
    stride *= radix;
  }
}

// a[j] *= w[j] for all lanes.
template <typename R>
static void MultiplyRows(R* __restrict re, R* __restrict im, const R* wr, const R* wi, int64_t n, int64_t lanes) {
  for (int64_t j = 0; j < n; ++j) {
    const R vr = wr[j], vi = wi[j];
    for (int64_t l = j * lanes; l < (j + 1) * lanes; ++l) {
      const R tr = re[l];
      re[l] = tr * vr - im[l] * vi;
      im[l] = tr * vi + im[l] * vr;
    }
  }
}

template <typename R>
static void TransformArrays(const FftPlan<R>& plan, int64_t lanes, FftArrays<R>* a, FftArrays<R>* b) {
  if (plan.longer == nullptr) return RunPasses(plan, lanes, a, b);
  const FftPlan<R>& longer = *plan.longer;
  MultiplyRows(a->re, a->im, plan.chirp.re.data(), plan.chirp.im.data(), plan.n, lanes);
  for (int64_t i = plan.n * lanes; i < longer.n * lanes; ++i) a->re[i] = a->im[i] = 0;
  RunPasses(longer, lanes, a, b);
  MultiplyRows(a->re, a->im, plan.spectrum.re.data(), plan.spectrum.im.data(), longer.n, lanes);
  // With real and imaginary parts exchanged, forward is backward.
  FftArrays<R> c = {a->im, a->re}, d = {b->im, b->re};
  RunPasses(longer, lanes, &c, &d);
  *a = {c.im, c.re};
  *b = {d.im, d.re};
  MultiplyRows(a->re, a->im, plan.chirp.re.data(), plan.chirp.im.data(), plan.n, lanes);
}

// Complex numbers to the arrays and back, n of each lane; rows of memory in pieces that stay in the cache.
template <typename R>
static void LoadComplex(const FftSide& side, int64_t n, int64_t lanes, const FftArrays<R>& to) {
  const R* from = static_cast<const R*>(side.data);
  if (side.lane_stride == 1) {
    for (int64_t j = 0; j < n; ++j) {
      const R* row = from + 2 * j * side.element_stride;
      R *re = to.re + j * lanes, *im = to.im + j * lanes;
      for (int64_t l = 0; l < lanes; ++l) {
        re[l] = row[2 * l];
        im[l] = row[2 * l + 1];
      }
    }
    return;
  }
  for (int64_t first = 0; first < n; first += 16) {
    const int64_t end = first + 16 < n ? first + 16 : n;
    for (int64_t l = 0; l < lanes; ++l) {
      const R* row = from + 2 * l * side.lane_stride;
      for (int64_t j = first; j < end; ++j) {
        to.re[j * lanes + l] = row[2 * j * side.element_stride];
        to.im[j * lanes + l] = row[2 * j * side.element_stride + 1];
      }
    }
  }
}

template <typename R>
static void StoreComplex(const FftArrays<R>& from, int64_t n, int64_t lanes, R scale, const FftSide& side) {
  R* to = static_cast<R*>(side.data);
  if (side.lane_stride == 1) {
    for (int64_t j = 0; j < n; ++j) {
      R* row = to + 2 * j * side.element_stride;
      const R *re = from.re + j * lanes, *im = from.im + j * lanes;
      for (int64_t l = 0; l < lanes; ++l) {
        row[2 * l] = re[l] * scale;
        row[2 * l + 1] = im[l] * scale;
      }
    }
    return;
  }
  for (int64_t first = 0; first < n; first += 16) {
    const int64_t end = first + 16 < n ? first + 16 : n;
    for (int64_t l = 0; l < lanes; ++l) {
      R* row = to + 2 * l * side.lane_stride;
      for (int64_t j = first; j < end; ++j) {
        row[2 * j * side.element_stride] = from.re[j * lanes + l] * scale;
        row[2 * j * side.element_stride + 1] = from.im[j * lanes + l] * scale;
      }
    }
  }
}

// Makes the transform of the reals from the transform z of h pairs of neighbours. For k <= h, x[k] = e + w^k o, with e
// = (z[k] + conj(z[h-k])) / 2 and o = (z[k] - conj(z[h-k])) / 2i. They belong to the even and odd elements.
template <typename R>
static void SplitPairs(const FftArrays<R>& z, int64_t h, int64_t lanes, const R* wr, const R* wi,
                       const FftArrays<R>& x) {
  for (int64_t k = 0; k <= h; ++k) {
    const int64_t at = (k == h ? 0 : k) * lanes, opposite = (k == 0 ? 0 : h - k) * lanes;
    const R vr = wr[k], vi = wi[k];
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      const R ar = z.re[at + l], ai = z.im[at + l], br = z.re[opposite + l], bi = -z.im[opposite + l];
      const R odd_re = R(0.5) * (ai - bi), odd_im = R(0.5) * (br - ar);
      x.re[k * lanes + l] = R(0.5) * (ar + br) + (odd_re * vr - odd_im * vi);
      x.im[k * lanes + l] = R(0.5) * (ai + bi) + (odd_re * vi + odd_im * vr);
    }
  }
}

// And back, but for a factor of 2: z[k] = (x[k] + conj(x[h-k])) + i w^-k (x[k] - conj(x[h-k])).
template <typename R>
static void JoinPairs(const FftArrays<R>& x, int64_t h, int64_t lanes, const R* wr, const R* wi,
                      const FftArrays<R>& z) {
  for (int64_t k = 0; k < h; ++k) {
    const int64_t at = k * lanes, opposite = (h - k) * lanes;
    const R vr = wr[k], vi = -wi[k];
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      const R ar = x.re[at + l], ai = x.im[at + l], br = x.re[opposite + l], bi = -x.im[opposite + l];
      const R dr = ar - br, di = ai - bi;
      z.re[at + l] = ar + br - (dr * vi + di * vr);
      z.im[at + l] = ai + bi + (dr * vr - di * vi);
    }
  }
}

template <typename R>
static void ComplexBlock(const FftBlock<R>& block) {
  FftArrays<R> a = block.a, b = block.b;
  LoadComplex(block.in, block.n, block.lanes, a);
  if (block.inverse) {
    a = {a.im, a.re};
    b = {b.im, b.re};
  }
  TransformArrays(*block.plan, block.lanes, &a, &b);
  if (block.inverse) a = {a.im, a.re};
  StoreComplex(a, block.n, block.lanes, block.scale, block.out);
}

// A real row is half as many pairs.
template <typename R>
static void EvenForwardBlock(const FftBlock<R>& block) {
  const int64_t h = block.n / 2;
  FftArrays<R> a = block.a, b = block.b;
  LoadComplex({block.in.data, 1, block.in.lane_stride / 2}, h, block.lanes, a);
  TransformArrays(*block.plan, block.lanes, &a, &b);
  SplitPairs(a, h, block.lanes, block.roots->re.data(), block.roots->im.data(), b);
  StoreComplex(b, h + 1, block.lanes, block.scale, block.out);
}

template <typename R>
static void EvenInverseBlock(const FftBlock<R>& block) {
  const int64_t h = block.n / 2;
  FftArrays<R> a = block.a, b = block.b;
  LoadComplex(block.in, h + 1, block.lanes, a);
  for (int64_t l = 0; l < block.lanes; ++l) a.im[l] = a.im[h * block.lanes + l] = 0;
  JoinPairs(a, h, block.lanes, block.roots->re.data(), block.roots->im.data(), b);
  FftArrays<R> c = {b.im, b.re}, d = {a.im, a.re};
  TransformArrays(*block.plan, block.lanes, &c, &d);
  StoreComplex<R>({c.im, c.re}, h, block.lanes, block.scale, {block.out.data, 1, block.out.lane_stride / 2});
}

template <typename R>
static void OddForwardBlock(const FftBlock<R>& block) {
  const int64_t lanes = block.lanes;
  FftArrays<R> a = block.a, b = block.b;
  const R* from = static_cast<const R*>(block.in.data);
  for (int64_t j = 0; j < block.n; ++j) {
    for (int64_t l = 0; l < lanes; ++l) {
      a.re[j * lanes + l] = from[l * block.in.lane_stride + j];
      a.im[j * lanes + l] = 0;
    }
  }
  TransformArrays(*block.plan, lanes, &a, &b);
  StoreComplex(a, block.n / 2 + 1, lanes, block.scale, block.out);
}

template <typename R>
static void OddInverseBlock(const FftBlock<R>& block) {
  const int64_t lanes = block.lanes, half = block.n / 2 + 1;
  FftArrays<R> a = block.a, b = block.b;
  LoadComplex(block.in, half, lanes, a);
  for (int64_t l = 0; l < lanes; ++l) a.im[l] = 0;
  for (int64_t j = half; j < block.n; ++j) {
    for (int64_t l = 0; l < lanes; ++l) {
      a.re[j * lanes + l] = a.re[(block.n - j) * lanes + l];
      a.im[j * lanes + l] = -a.im[(block.n - j) * lanes + l];
    }
  }
  FftArrays<R> c = {a.im, a.re}, d = {b.im, b.re};
  TransformArrays(*block.plan, lanes, &c, &d);
  R* to = static_cast<R*>(block.out.data);
  for (int64_t j = 0; j < block.n; ++j) {
    for (int64_t l = 0; l < lanes; ++l) to[l * block.out.lane_stride + j] = c.im[j * lanes + l] * block.scale;
  }
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA
