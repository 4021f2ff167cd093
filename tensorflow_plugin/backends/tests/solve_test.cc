// Solutions are put into their equations. The rest is small against the matrix times the solution. The bounds are those
// of backward error analysis (Higham, chapters 8 and 9), an operation on complex numbers counting four times.
#include <limits>

#include "tensorflow_plugin/backends/tests/matrices.h"

namespace xpu::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

SolveDesc Describe(SolveKind kind, DType type, int64_t batch, int64_t n, int64_t columns) {
  SolveDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.batch = batch;
  desc.n = n;
  desc.columns = columns;
  return desc;
}

// The matrix of the equations.
Dense MatrixOf(const SolveDesc& d, const Array& a, int64_t i) {
  if (d.kind == SolveKind::kTridiagonal) {
    const Dense diagonals(a, i, 3, d.n);
    return Dense(d.n, d.n).Map([&](int64_t r, int64_t c, Dense::Number) -> Dense::Number {
      if (c == r + 1) return diagonals(0, r);
      if (c == r) return diagonals(1, r);
      return c + 1 == r ? diagonals(2, r) : 0.0;
    });
  }
  const Dense whole = Dense(a, i, d.n, d.n).Map([&](int64_t r, int64_t c, Dense::Number x) {
    return (d.kind == SolveKind::kLower && c > r) || (d.kind == SolveKind::kUpper && c < r) ? 0.0 : x;
  });
  return d.adjoint ? whole.Adjoint() : whole;
}

// For triangular systems: n u |a| |x|, element by element. For others: 3 n u |l| |u| |x|, where partial pivoting keeps
// |l| within 1. With the matrices here |u| is within the largest elements of a, and |l| |u| is a sum of n such.
void ExpectSolution(const SolveDesc& d, const Array& a, const Array& b, const std::string& what) {
  const double n = static_cast<double>(d.n), unit = Roundoff(d.type) * (IsComplex(d.type) ? 4 : 1);
  const bool triangular = d.kind == SolveKind::kLower || d.kind == SolveKind::kUpper;
  ExpectThat(
      d, {a, b}, {{d.type, d.batch * d.n * d.columns}},
      [&](const std::vector<Array>& out, const std::string& name) {
        for (int64_t i = 0; i < d.batch; ++i) {
          const Dense matrix = MatrixOf(d, a, i), x(out[0], i, d.n, d.columns), right(b, i, d.n, d.columns);
          const Dense sizes = matrix.Magnitudes() * x.Magnitudes();
          const auto bound = [&](int64_t r, int64_t c) {
            if (triangular) return (n + 1) * unit * sizes(r, c).real();
            double largest = 0;
            for (int64_t k = 0; k < d.n; ++k) largest = std::max(largest, std::abs(x(k, c)));
            const double terms = d.kind == SolveKind::kTridiagonal ? 30 : 3 * n * n;
            return terms * unit * 3 * largest;  // elements of a are less than 3
          };
          if (!Near(matrix * x, right, bound, name)) return false;
        }
        return true;
      },
      what);
}

// Elements in [-1, 1), with 2 more on the diagonal where a triangle, or a matrix without pivoting, needs it.
Array Matrices(const SolveDesc& d, uint32_t seed) {
  const int64_t rows = d.kind == SolveKind::kTridiagonal ? 3 : d.n;
  Array a = Random(d.type, d.batch * rows * d.n, seed, -1, 1);
  VisitType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value) || IsComplex(DTypeOf<T>::value)) {
      for (int64_t i = 0; i < d.batch * rows * d.n; ++i) {
        const int64_t r = i / d.n % rows, c = i % d.n;
        const bool diagonal = d.kind == SolveKind::kTridiagonal ? r == 1 && !d.pivoting : r == c;
        if (d.kind == SolveKind::kTridiagonal && !d.pivoting) a.as<T>()[i] = T(a.as<T>()[i] * T(0.5f));
        if (d.kind != SolveKind::kTridiagonal && r != c) a.as<T>()[i] = T(a.as<T>()[i] / T(static_cast<float>(d.n)));
        if (diagonal) a.as<T>()[i] = T(a.as<T>()[i] * T(0.5f) + T(1.5f));
      }
    }
  });
  return a;
}

TEST(Solve, ByHand) {
  for (DType type : kMatrixTypes) {
    const auto values = [&](const std::vector<double>& v) { return Values(type, v); };
    const Array b = values({4, 2, 6, 8});
    const auto expect = [&](SolveDesc d, const Array& a, const Array& right, const std::vector<double>& x,
                            const char* what) {
      ExpectByHand(d, {a, right}, {{type, right.size()}}, {{values(x)}}, what);
    };
    SolveDesc d = Describe(SolveKind::kGeneral, type, 1, 2, 2);
    expect(d, values({0, 2, 2, 0}), b, {3, 4, 2, 1}, "rows exchanged");
    d.kind = SolveKind::kLower;
    expect(d, values({2, 99, 1, 4}), b, {2, 1, 1, 1.75}, "lower");
    d.adjoint = true;
    expect(d, values({2, 99, 1, 4}), b, {1.25, 0, 1.5, 2}, "lower, adjoint");
    d.kind = SolveKind::kUpper;
    expect(d, values({2, 1, 99, 4}), b, {2, 1, 1, 1.75}, "upper, adjoint");
    d.adjoint = false;
    expect(d, values({2, 1, 99, 4}), b, {1.25, 0, 1.5, 2}, "upper");
    d = Describe(SolveKind::kTridiagonal, type, 1, 3, 1);
    const Array tridiagonal = values({1, 2, 99, 2, 1, 4, 99, 4, 2});
    expect(d, tridiagonal, values({4, 11, 14}), {1, 2, 2.5}, "tridiagonal with an exchange");
  }
  const DType type = DType::kComplex64;
  SolveDesc d = Describe(SolveKind::kUpper, type, 1, 1, 1);
  d.adjoint = true;
  ExpectByHand(d, {Values(type, {{0, 2}}), Values(type, {{4, 0}})}, {{type, 1}}, {{Values(type, {{0, 2}})}},
               "the adjoint is conjugate");
}

TEST(Solve, KindsTypesAndSizes) {
  for (DType type : kMatrixTypes) {
    for (SolveKind kind : {SolveKind::kGeneral, SolveKind::kLower, SolveKind::kUpper}) {
      for (const auto& [n, columns] : {std::pair<int64_t, int64_t>(1, 1), {4, 3}, {5, 1}, {33, 20}, {100, 2}}) {
        for (bool adjoint : {false, true}) {
          SolveDesc d = Describe(kind, type, n < 10 ? 30 : 2, n, columns);
          d.adjoint = adjoint;
          ExpectSolution(d, Matrices(d, 5), Random(type, d.batch * n * columns, 6), errors::Concat(n, " ", columns));
        }
      }
    }
  }
}

TEST(Solve, Tridiagonal) {
  for (DType type : kMatrixTypes) {
    for (const auto& [n, columns] : {std::pair<int64_t, int64_t>(1, 1), {2, 1}, {4, 3}, {100, 5}}) {
      for (int how : {0, 1, 2}) {
        SolveDesc d = Describe(SolveKind::kTridiagonal, type, 3, n, columns);
        d.pivoting = how > 0;
        d.perturb = how > 1;
        ExpectSolution(d, Matrices(d, 7), Random(type, d.batch * n * columns, 8), errors::Concat(n, " ", columns));
      }
    }
  }
}

TEST(Solve, ASingularMatrix) {
  for (DType type : kMatrixTypes) {
    const auto values = [&](const std::vector<double>& v) { return Values(type, v); };
    const Array b = values({1, 1, 1, 1});
    ExpectByHand(Describe(SolveKind::kTridiagonal, type, 2, 2, 1), {values({1, 9, 1, 1, 9, 1, 0, 9, 1, 1, 9, 0}), b},
                 {{type, 4}}, {{values({kNan, kNan, 1, 1})}}, "tridiagonal");
    const SolveDesc general = Describe(SolveKind::kGeneral, type, 2, 2, 1);
    const std::vector<Array> inputs = {values({1, 0, 0, 1, 1, 2, 1, 2}), b};
    for (const Variant& variant : Variants()) {
      const UseVariant use(variant);
      const Outcome outcome = variant.device->Run(general, inputs, {{type, 4}}, variant.waiting);
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << variant.name;
    }
    EXPECT_EQ(Reference().Run(general, inputs, {{type, 4}}).status.code(), Code::kInvalidArgument);
    SolveDesc perturbed = Describe(SolveKind::kTridiagonal, type, 1, 2, 1);
    perturbed.perturb = true;
    const Outcome outcome = Reference().Run(perturbed, {values({1, 9, 1, 1, 9, 1}), values({1, 2})}, {{type, 2}});
    EXPECT_TRUE(std::isfinite(RealAt(outcome.out[0], 0)) && std::abs(RealAt(outcome.out[0], 0)) > 1e6);
  }
}

}  // namespace
}  // namespace xpu::testing
