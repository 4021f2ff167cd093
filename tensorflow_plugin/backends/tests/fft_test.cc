// A fast transform of n elements x errs by less than c log2(n) u sqrt(n) |x|, as a whole and so in each element. Here
// |x| is the Euclidean norm (Higham, chapter 24). For factors up to 5, c is 8; it is twice that and more for the larger
// ones and for convolutions, so 20 is taken. That is without the division by n of an inverse. The reference sums in
// long double.
#include <cmath>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

FftDesc Describe(FftKind kind, bool inverse, DType type, int64_t batch, const Dims& shape) {
  FftDesc desc;
  desc.kind = kind;
  desc.inverse = inverse;
  desc.type = type;
  desc.batch = batch;
  desc.shape = shape;
  return desc;
}

void ExpectTransform(const FftDesc& d, double size = 1) {
  const int64_t n = d.shape.num_elements(), last = d.shape[d.shape.rank() - 1];
  const int64_t half = n / last * (last / 2 + 1);
  const bool real_in = d.kind == FftKind::kRealForward, real_out = d.kind == FftKind::kRealInverse;
  const DType real = RealTypeOf(d.type);
  const Array x = Random(real_in ? real : d.type, d.batch * (real_out ? half : n), 11, -size, size);
  const Output out = {real_out ? real : d.type, d.batch * (real_in ? half : n)};
  FftDesc wide = d;
  wide.type = Wide(d.type);
  Want want{Exact(wide, {x}, {out})};
  const int64_t in_each = x.size() / d.batch, out_each = out.size / d.batch;
  Bound bound;
  for (int64_t b = 0; b < d.batch; ++b) {
    double squares = 0;
    for (int64_t i = 0; i < in_each; ++i) squares += std::norm(At(x, b * in_each + i)) * (real_out ? 2 : 1);
    const double terms = 20 * (1 + std::log2(static_cast<double>(n))) * std::sqrt(static_cast<double>(n) * squares);
    const double scale = d.inverse ? 1 / static_cast<double>(n) : 1;
    bound.each.insert(bound.each.end(), out_each, terms * Roundoff(d.type) * scale);
  }
  want.bounds = {bound};
  Expect(d, {x}, {out}, want, errors::Concat(d.batch, " of ", d.shape.ToString(), d.inverse ? " inverse" : ""));
}

void ExpectAllKinds(DType type, int64_t batch, const Dims& shape) {
  ExpectTransform(Describe(FftKind::kComplex, false, type, batch, shape));
  ExpectTransform(Describe(FftKind::kComplex, true, type, batch, shape));
  ExpectTransform(Describe(FftKind::kRealForward, false, type, batch, shape));
  ExpectTransform(Describe(FftKind::kRealInverse, true, type, batch, shape));
}

TEST(Fft, ByHand) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    const DType real = RealTypeOf(type);
    const Bound bound{0, 10 * Roundoff(type), {}};  // a rounding of the sum of the magnitudes
    const Array x = Values(type, {{1, 0}, {2, 0}, {3, 0}, {4, 0}});
    const Array y = Values(type, {{10, 0}, {-2, 2}, {-2, 0}, {-2, -2}});
    ExpectByHand(Describe(FftKind::kComplex, false, type, 1, {4}), {x}, {{type, 4}}, {{y}, {bound}}, "forward");
    ExpectByHand(Describe(FftKind::kComplex, true, type, 1, {4}), {y}, {{type, 4}}, {{x}, {bound}}, "inverse");
    const Array r = Values(real, {1, 2, 3, 4});
    const Array h = Values(type, {{10, 0}, {-2, 2}, {-2, 0}});
    ExpectByHand(Describe(FftKind::kRealForward, false, type, 1, {4}), {r}, {{type, 3}}, {{h}, {bound}}, "real");
    // Imaginary parts at both ends, which a real sequence's transform cannot have, are not read.
    const Array wrong = Values(type, {{10, 7}, {-2, 2}, {-2, -9}});
    ExpectByHand(Describe(FftKind::kRealInverse, true, type, 1, {4}), {wrong}, {{real, 4}}, {{r}, {bound}}, "to real");
    ExpectByHand(Describe(FftKind::kComplex, false, type, 1, {2, 2}), {x}, {{type, 4}},
                 {{Values(type, {{10, 0}, {-2, 0}, {-4, 0}, {0, 0}})}, {bound}}, "two axes");
  }
}

TEST(Fft, Lengths) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    for (int64_t n = 1; n <= 40; ++n) ExpectAllKinds(type, 3, {n});
    // Products of all factors, primes with a pass and without one, powers of two.
    for (int64_t n : {74, 96, 128, 210, 211, 256, 509, 961, 1000, 2048}) ExpectAllKinds(type, 2, {n});
  }
}

TEST(Fft, Batches) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    for (int64_t batch : {1, 8, 16, 17, 100}) ExpectAllKinds(type, batch, {30});
  }
}

TEST(Fft, SeveralAxes) {
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    for (const Dims& shape : {Dims{1, 1}, Dims{3, 4}, Dims{20, 6}, Dims{5, 33}, Dims{37, 2}, Dims{3, 1, 5},
                              Dims{2, 17, 6}, Dims{7, 8, 9}}) {
      ExpectAllKinds(type, 3, shape);
    }
  }
}

TEST(Fft, LongOnes) {
  // Against a sum of few terms: the reference would take minutes.
  const int64_t n = 1 << 16;
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    std::vector<double> unit(2 * n);
    Array x(type, n), y(type, n);
    VisitType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (IsComplex(DTypeOf<T>::value)) {
        for (int64_t i = 0; i < n; ++i) {
          x.as<T>()[i] = i == 3 ? T(1) : T(0);
          const double angle = -2 * 3.14159265358979323846 * static_cast<double>(3 * i % n) / static_cast<double>(n);
          using R = typename T::value_type;
          y.as<T>()[i] = T(static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle)));
        }
      }
    });
    Want want{{y}, {{0, 20 * 16 * Roundoff(type), {}}}};
    Expect(Describe(FftKind::kComplex, false, type, 1, {n}), {x}, {{type, n}}, want, "an impulse");
  }
}

TEST(Fft, RowsDoNotTouchEachOther) {
  // A row of NaN, and one of large numbers, beside a small one.
  for (DType type : {DType::kComplex64, DType::kComplex128}) {
    const DType real = RealTypeOf(type);
    for (int64_t n : {6, 7}) {
      Array x = Random(real, 3 * n, 5, -1, 1);
      for (int64_t i = 0; i < n; ++i) {
        if (real == DType::kFloat) {
          x.as<float>()[i] *= 1e30f;
          x.as<float>()[n + i] = NAN;
        } else {
          x.as<double>()[i] *= 1e300;
          x.as<double>()[n + i] = NAN;
        }
      }
      const FftDesc d = Describe(FftKind::kRealForward, false, type, 3, {n});
      const Want reference = AsTheReference(d, {x}, {{type, 3 * (n / 2 + 1)}});
      const int64_t each = n / 2 + 1;
      Bound bound;
      for (int64_t i = 0; i < 3 * each; ++i) {
        const double size = i < each ? (real == DType::kFloat ? 1e30 : 1e300) : 1;
        bound.each.push_back(100 * Roundoff(type) * size * static_cast<double>(n));
      }
      Want want = reference;
      want.bounds = {bound};
      Expect(d, {x}, {{type, 3 * each}}, want, "rows of different sizes");
    }
  }
}

}  // namespace
}  // namespace xpu::testing
