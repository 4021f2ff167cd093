#include <cmath>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr DType kFloats[] = {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16};
constexpr DType kNumbers[] = {DType::kInt8,   DType::kInt16,    DType::kInt32,     DType::kInt64,     DType::kUint8,
                              DType::kUint16, DType::kUint32,   DType::kUint64,    DType::kFloat,     DType::kDouble,
                              DType::kHalf,   DType::kBFloat16, DType::kComplex64, DType::kComplex128};

ScanDesc Make(ScanKind kind, DType type, int64_t outer, int64_t n, int64_t inner) {
  ScanDesc d;
  d.kind = kind;
  d.type = type;
  d.outer = outer, d.n = n, d.inner = inner;
  return d;
}

struct Shape {
  int64_t outer, n, inner;
};
// Single, in rows and in columns; rows of several tiles, a line that several threads share, and what is empty.
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 9, 1},    {3, 7, 2},  {2, 5, 300}, {4, 1027, 1},  {1, 3000, 1},
                             {1, 70001, 1}, {1, 9001, 8}, {2, 20, 9}, {0, 3, 2},   {600, 100, 1}, {2, 0, 3}};

template <typename F>
void EveryWay(ScanKind kind, DType type, F&& f) {
  for (const Shape& s : kShapes) {
    ScanDesc d = Make(kind, type, s.outer, s.n, s.inner);
    for (bool exclusive : {false, true}) {
      for (bool reverse : {false, true}) {
        d.exclusive = exclusive, d.reverse = reverse;
        f(d, errors::Concat(s.outer, "x", s.n, "x", s.inner, exclusive ? " exclusive" : "", reverse ? " reverse" : ""));
      }
    }
  }
}

int64_t Elements(const ScanDesc& d) { return d.outer * d.n * d.inner; }

ScanDesc Widen(ScanDesc d) {
  d.type = Wide(d.type);
  return d;
}

TEST(Scan, ByHand) {
  const double inf = INFINITY;
  const struct {
    ScanKind kind;
    bool exclusive, reverse;
    std::vector<double> want;
  } cases[] = {
      {ScanKind::kSum, false, false, {1, 2, 4, 6, 9, 12}},    {ScanKind::kSum, true, false, {0, 0, 1, 2, 4, 6}},
      {ScanKind::kSum, false, true, {9, 12, 8, 10, 5, 6}},    {ScanKind::kSum, true, true, {8, 10, 5, 6, 0, 0}},
      {ScanKind::kProd, false, false, {1, 2, 3, 8, 15, 48}},  {ScanKind::kProd, true, false, {1, 1, 1, 2, 3, 8}},
      {ScanKind::kProd, false, true, {15, 48, 15, 24, 5, 6}}, {ScanKind::kProd, true, true, {15, 24, 5, 6, 1, 1}},
  };
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  for (const auto& c : cases) {
    for (DType type : kNumbers) {
      ScanDesc d = Make(c.kind, type, 1, 3, 2);
      d.exclusive = c.exclusive, d.reverse = c.reverse;
      ExpectByHand(d, {Values(type, x)}, {{type, 6}}, {{Values(type, c.want)}}, "by hand");
    }
  }
  // log(e^log 1 + e^log 2) = log 3, and so on. Exponentials that overflow have logarithms that do not.
  for (DType type : kFloats) {
    ScanDesc d = Make(ScanKind::kLogSumExp, type, 1, 4, 1);
    d.exclusive = true;
    const Want want{{Values(DType::kDouble, {-inf, 0, std::log(2.0), std::log(3.0)})}, {{8 * Roundoff(type), 0, {}}}};
    Expect(d, {Values(type, {0, 0, 0, 5})}, {{type, 4}}, want, "ones");
    const Want large{{Values(type, {-inf, -inf, 1000, 1000})}};
    ExpectByHand(d, {Values(type, {-inf, 1000, -1000, 0})}, {{type, 4}}, large, "large");
    const Want infinite{{Values(type, {-inf, 3, inf, NAN})}};
    ExpectByHand(d, {Values(type, {3, inf, NAN, 0})}, {{type, 4}}, infinite, "infinite");
  }
}

TEST(Scan, IntegersWrap) {
  for (ScanKind kind : {ScanKind::kSum, ScanKind::kProd}) {
    const Array x = Values(DType::kInt8, {100, 100, 3});
    const std::vector<double> want =
        kind == ScanKind::kSum ? std::vector<double>{100, -56, -53} : std::vector<double>{100, 16, 48};
    ExpectByHand(Make(kind, DType::kInt8, 1, 3, 1), {x}, {{DType::kInt8, 3}}, {{Values(DType::kInt8, want)}}, "int8");
  }
}

TEST(Scan, Sums) {
  for (DType type : kNumbers) {
    EveryWay(ScanKind::kSum, type, [&](const ScanDesc& d, const std::string& what) {
      const Array x = Random(type, Elements(d), 1);
      ExpectSums(d, Widen(d), {x}, {type, Elements(d)}, static_cast<double>(d.n), what);
    });
  }
}

// For whole numbers, whose sums float counts: a part of a long sum that is off, or one term, is wrong.
TEST(Scan, SumsOfWholeNumbersAreExact) {
  for (DType type : kFloats) {
    EveryWay(ScanKind::kSum, type, [&](const ScanDesc& d, const std::string& what) {
      ExpectExactSums(d, Widen(d), {Whole(type, Elements(d), 1, 9)}, {type, Elements(d)}, what);
    });
  }
}

// The error of n factors: each multiplication errs by u of its result, of complex numbers by sqrt(5) u at most. See
// Brent, Percival, Zimmermann, "Error bounds on complex floating-point multiplication" (Math. Comp. 76, 2007).
TEST(Scan, Products) {
  for (DType type : kNumbers) {
    EveryWay(ScanKind::kProd, type, [&](const ScanDesc& d, const std::string& what) {
      Array x = Random(type, Elements(d), 2, 0.95, 1.05);
      if (Roundoff(type) == 0) {  // odd numbers, whose products are never zero
        std::vector<double> odd;
        for (int64_t i = 0; i < Elements(d); ++i) odd.push_back(static_cast<double>(i * 7 % 5 * 2 + 1));
        x = Values(type, odd);
      } else if (IsComplex(type)) {  // of magnitude 1, nearly
        std::vector<std::complex<double>> turns;
        for (int64_t i = 0; i < Elements(d); ++i) turns.push_back(std::polar(1.0, static_cast<double>(i % 13)));
        x = Array(type, Elements(d));
        for (int64_t i = 0; i < Elements(d); ++i) {
          if (type == DType::kComplex64) x.as<std::complex<float>>()[i] = std::complex<float>(turns[i]);
          if (type == DType::kComplex128) x.as<std::complex<double>>()[i] = turns[i];
        }
      }
      const double factor = (IsComplex(type) ? 2.3 : 1) * (Wide(type) == type ? 2 : 1);
      const double error = SumError(static_cast<double>(d.n), type) * factor;
      const std::vector<Output> outputs = {{type, Elements(d)}};
      const double least = type == DType::kDouble || type == DType::kComplex128 ? 0x1p-1022 : 0x1p-126;
      Expect(d, {x}, outputs, {Exact(Widen(d), {x}, outputs), {{error, error == 0 ? 0 : least, {}}}}, what);
    });
  }
}

// A step from totals a >= b to a + log1p(exp(b - a)). The logarithm is log 2 at most and errs by 4 u of that, with the
// difference's rounding, and the sum by u of itself. An earlier error of a total is not made larger. Partial results
// are not larger than the largest element and log n.
TEST(Scan, LogarithmsOfSumsOfExponentials) {
  for (DType type : kFloats) {
    EveryWay(ScanKind::kLogSumExp, type, [&](const ScanDesc& d, const std::string& what) {
      if (Elements(d) > 20000) return;  // slow
      const Array x = Random(type, Elements(d), 3, -9, 9);
      const double n = static_cast<double>(d.n), factor = type == DType::kDouble ? 2 : 1;
      const double error = SumError(n, type) * (4 + 9 + std::log(n + 1)) * factor;
      const std::vector<Output> outputs = {{type, Elements(d)}};
      Expect(d, {x}, outputs, {Exact(Widen(d), {x}, outputs), {{0, error, {}}}}, what);
    });
  }
}

}  // namespace
}  // namespace xpu::testing
