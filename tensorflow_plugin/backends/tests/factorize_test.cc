// Factors are examined: their product is the matrix, and they are what they are called. The bounds are those of
// backward error analysis (Higham, chapters 9, 10 and 19; Golub and Van Loan for eigenvalues), to first order. An
// operation on complex numbers counts four times.
#include <limits>

#include "tensorflow_plugin/backends/tests/matrices.h"

namespace xpu::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

FactorizeDesc Describe(FactorizeKind kind, DType type, int64_t batch, int64_t rows, int64_t cols) {
  FactorizeDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.batch = batch;
  desc.rows = rows;
  desc.cols = cols;
  return desc;
}

double Unit(DType type) { return Roundoff(type) * (IsComplex(type) ? 4 : 1); }

std::vector<Output> OutputsOf(const FactorizeDesc& d) {
  const int64_t k = std::min(d.rows, d.cols), b = d.batch;
  const int64_t u = d.full ? d.rows : k, v = d.full ? d.cols : k;
  switch (d.kind) {
    case FactorizeKind::kCholesky:
      return {{d.type, b * k * k}};
    case FactorizeKind::kLu:
      return {{d.type, b * k * k}, {DType::kInt32, b * k}, {d.type, b}};
    case FactorizeKind::kQr:
      return {{d.type, b * d.rows * u}, {d.type, b * u * d.cols}};
    case FactorizeKind::kEigen:
      if (!d.vectors) return {{d.type, b * k}};
      return {{d.type, b * k}, {d.type, b * k * k}};
    case FactorizeKind::kSvd:
      if (!d.vectors) return {{RealTypeOf(d.type), b * k}};
      return {{RealTypeOf(d.type), b * k}, {d.type, b * d.rows * u}, {d.type, b * d.cols * v}};
  }
  return {};
}

// Elements in [-1, 1), and hermitian with `diagonal` more on the diagonal, if that is not negative.
Array Matrices(DType type, int64_t batch, int64_t rows, int64_t cols, uint32_t seed, double diagonal = -1) {
  Array a = Random(type, batch * rows * cols, seed, -1, 1);
  if (diagonal < 0) return a;
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsFloating(DTypeOf<T>::value) || IsComplex(DTypeOf<T>::value)) {
      for (int64_t b = 0; b < batch; ++b) {
        T* m = a.as<T>() + b * rows * cols;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < r; ++c) {
            if constexpr (IsComplex(DTypeOf<T>::value)) {
              m[c * cols + r] = std::conj(m[r * cols + c]);
            } else {
              m[c * cols + r] = m[r * cols + c];
            }
          }
          m[r * cols + r] = T(std::real(std::complex<double>(At(a, b * rows * cols + r * cols + r))) + diagonal);
        }
      }
    }
  });
  return a;
}

bool IsUnitary(const Dense& q, double bound, const std::string& what) {
  return Near(q.Adjoint() * q, Dense::Identity(q.cols()), bound, what + ": q^H q");
}

// l l^H is a within (n + 1) u |l| |l^H|; above the diagonal are zeros.
bool IsCholesky(const FactorizeDesc& d, const Array& a, const std::vector<Array>& out, const std::string& what) {
  for (int64_t i = 0; i < d.batch; ++i) {
    const Dense l(out[0], i, d.rows, d.rows);
    for (int64_t r = 0; r < d.rows; ++r) {
      for (int64_t c = r + 1; c < d.rows; ++c) {
        if (l(r, c) != 0.0) return ADD_FAILURE() << what << ": not triangular", false;
      }
    }
    const Dense sizes = l.Magnitudes() * l.Magnitudes().Adjoint();
    const double u = static_cast<double>(d.rows + 1) * Unit(d.type);
    const auto bound = [&](int64_t r, int64_t c) { return u * sizes(r, c).real(); };
    if (!Near(l * l.Adjoint(), Dense(a, i, d.rows, d.rows), bound, what + ": l l^H")) return false;
  }
  return true;
}

// l u is the permuted a within n u |l| |u|, no element of l is beyond 1, and the sign is the permutation's.
bool IsLu(const FactorizeDesc& d, const Array& a, const std::vector<Array>& out, const std::string& what) {
  const int64_t n = d.rows;
  for (int64_t i = 0; i < d.batch; ++i) {
    const Dense lu(out[0], i, n, n), whole(a, i, n, n);
    const Dense l = lu.Map([](int64_t r, int64_t c, Dense::Number x) { return r == c ? 1.0 : r > c ? x : 0.0; });
    const Dense u = lu.Map([](int64_t r, int64_t c, Dense::Number x) { return r <= c ? x : 0.0; });
    std::vector<int64_t> rows(n);
    std::vector<bool> seen(n);
    for (int64_t r = 0; r < n; ++r) {
      rows[r] = static_cast<int64_t>(RealAt(out[1], i * n + r));
      if (rows[r] < 0 || rows[r] >= n || seen[rows[r]]) return ADD_FAILURE() << what << ": no permutation", false;
      seen[rows[r]] = true;
      for (int64_t c = 0; c < r; ++c) {
        if (!(std::abs(l(r, c)) <= 1 + 4 * Unit(d.type))) return ADD_FAILURE() << what << ": a poor pivot", false;
      }
    }
    const Dense permuted = whole.Map([&](int64_t r, int64_t c, Dense::Number) { return whole(rows[r], c); });
    const Dense sizes = l.Magnitudes() * u.Magnitudes();
    const auto bound = [&](int64_t r, int64_t c) { return static_cast<double>(n) * Unit(d.type) * sizes(r, c).real(); };
    if (!Near(l * u, permuted, bound, what + ": l u")) return false;
    double sign = 1;
    for (int64_t r = 0; r < n; ++r) {
      for (; rows[r] != r; sign = -sign) std::swap(rows[r], rows[rows[r]]);
    }
    if (At(out[2], i) != sign) return ADD_FAILURE() << what << ": the sign is " << At(out[2], i), false;
  }
  return true;
}

// The product of q and r is a, and q is unitary, within 2 m n u of the columns' norms. The matrix r is triangular. The
// first element of each reflection decides the sign of r's diagonal: against it.
bool IsQr(const FactorizeDesc& d, const Array& a, const std::vector<Array>& out, const std::string& what) {
  const int64_t k = std::min(d.rows, d.cols), size = d.full ? d.rows : k;
  const double u = 2 * static_cast<double>(d.rows * std::max<int64_t>(k, 1)) * Unit(d.type);
  for (int64_t i = 0; i < d.batch; ++i) {
    const Dense whole(a, i, d.rows, d.cols), q(out[0], i, d.rows, size), r(out[1], i, size, d.cols);
    for (int64_t row = 0; row < size; ++row) {
      for (int64_t c = 0; c < std::min(row, d.cols); ++c) {
        if (r(row, c) != 0.0) return ADD_FAILURE() << what << ": not triangular", false;
      }
    }
    if (!IsUnitary(q, u, what) || !Near(q * r, whole, u * whole.Norm(), what + ": q r")) return false;
    // With real numbers q r is unique but for the signs.
    if (d.rows > 1 && d.cols > 0 && !IsComplex(d.type) && !(r(0, 0).real() * whole(0, 0).real() <= 0)) {
      return ADD_FAILURE() << what << ": the sign of r", false;
    }
  }
  return true;
}

// a v is v e within 20 n u of a's norm, v unitary, and the values, which ascend, are those of the wider type.
bool IsEigen(const FactorizeDesc& d, const Array& a, const Array& exact, const std::vector<Array>& out,
             const std::string& what) {
  const int64_t n = d.rows;
  const double u = 20 * static_cast<double>(n) * Unit(d.type);
  for (int64_t i = 0; i < d.batch; ++i) {
    const Dense whole(a, i, n, n), e(out[0], i, n, 1);
    const double norm = whole.Norm();
    for (int64_t k = 1; k < n; ++k) {
      if (!(e(k - 1, 0).real() <= e(k, 0).real())) return ADD_FAILURE() << what << ": not ascending", false;
    }
    if (!Near(e, Dense(exact, i, n, 1), u * norm, what + ": values")) return false;
    if (!d.vectors) continue;
    const Dense v(out[1], i, n, n);
    const Dense scaled = v.Map([&](int64_t, int64_t c, Dense::Number x) { return x * e(c, 0); });
    if (!IsUnitary(v, u, what) || !Near(whole * v, scaled, u * norm, what + ": a v")) return false;
  }
  return true;
}

// u s v^H is a within 20 (m + n) u of a's norm; the values, which descend, are those of the wider type.
bool IsSvd(const FactorizeDesc& d, const Array& a, const Array& exact, const std::vector<Array>& out,
           const std::string& what) {
  const int64_t k = std::min(d.rows, d.cols), u_cols = d.full ? d.rows : k, v_cols = d.full ? d.cols : k;
  const double unit = 20 * static_cast<double>(d.rows + d.cols) * Unit(d.type);
  for (int64_t i = 0; i < d.batch; ++i) {
    const Dense whole(a, i, d.rows, d.cols), s(out[0], i, k, 1);
    for (int64_t j = 0; j < k; ++j) {
      const double next = j + 1 < k ? s(j + 1, 0).real() : 0;
      if (!(s(j, 0).real() >= next)) return ADD_FAILURE() << what << ": not descending", false;
    }
    if (!Near(s, Dense(exact, i, k, 1), unit * whole.Norm(), what + ": values")) return false;
    if (!d.vectors) continue;
    const Dense u(out[1], i, d.rows, u_cols), v(out[2], i, d.cols, v_cols);
    const Dense scaled =
        Dense(d.rows, v_cols).Map([&](int64_t r, int64_t c, Dense::Number) { return c < k ? u(r, c) * s(c, 0) : 0.0; });
    if (!IsUnitary(u, unit, what + ": u") || !IsUnitary(v, unit, what + ": v")) return false;
    if (!Near(scaled * v.Adjoint(), whole, unit * whole.Norm(), what + ": u s v^H")) return false;
  }
  return true;
}

// The result of the reference in the wider type: the first output.
Array ExactValues(FactorizeDesc desc, const Array& a) {
  desc.vectors = false;
  const std::vector<Output> outputs = OutputsOf(desc);
  desc.type = Wide(desc.type);
  return Exact(desc, {a}, outputs)[0];
}

void ExpectFactors(const FactorizeDesc& d, const Array& a, const std::string& what) {
  Array exact;
  if (d.kind == FactorizeKind::kEigen || d.kind == FactorizeKind::kSvd) exact = ExactValues(d, a);
  ExpectThat(
      d, {a}, OutputsOf(d),
      [&](const std::vector<Array>& out, const std::string& name) {
        switch (d.kind) {
          case FactorizeKind::kCholesky:
            return IsCholesky(d, a, out, name);
          case FactorizeKind::kLu:
            return IsLu(d, a, out, name);
          case FactorizeKind::kQr:
            return IsQr(d, a, out, name);
          case FactorizeKind::kEigen:
            return IsEigen(d, a, exact, out, name);
          case FactorizeKind::kSvd:
            return IsSvd(d, a, exact, out, name);
        }
        return false;
      },
      what);
}

TEST(Factorize, ByHand) {
  for (DType type : {DType::kFloat, DType::kDouble}) {
    const DType index = DType::kInt32;
    ExpectByHand(Describe(FactorizeKind::kCholesky, type, 1, 2, 2), {Values(type, {4, 99, 2, 10})}, {{type, 4}},
                 {{Values(type, {2, 0, 1, 3})}}, "reads the lower triangle");
    ExpectByHand(Describe(FactorizeKind::kLu, type, 1, 3, 3), {Values(type, {0, 2, 1, 4, 4, 4, 2, 1, 0})},
                 {{type, 9}, {index, 3}, {type, 1}},
                 {{Values(type, {4, 4, 4, 0, 2, 1, 0.5, -0.5, -1.5}), Values(index, {1, 0, 2}), Values(type, {-1})}},
                 "pivots");
    ExpectByHand(Describe(FactorizeKind::kQr, type, 1, 2, 1), {Values(type, {3, 4})}, {{type, 2}, {type, 1}},
                 {{Values(type, {-0.6, -0.8}), Values(type, {-5})}, {{4 * Roundoff(type)}, {4 * Roundoff(type)}}},
                 "against the sign of the first element");
    FactorizeDesc values = Describe(FactorizeKind::kEigen, type, 1, 2, 2);
    values.vectors = false;
    ExpectByHand(values, {Values(type, {2, 99, 1, 2})}, {{type, 2}},
                 {{Values(type, {1, 3})}, {{8 * Roundoff(type), 8 * Roundoff(type)}}}, "reads the lower triangle");
    values.kind = FactorizeKind::kSvd;
    ExpectByHand(values, {Values(type, {0, 3, -4, 0})}, {{type, 2}},
                 {{Values(type, {4, 3})}, {{8 * Roundoff(type), 8 * Roundoff(type)}}}, "singular values");
  }
}

TEST(Factorize, Cholesky) {
  for (DType type : kMatrixTypes) {
    for (int64_t n : {1, 2, 7, 33, 150}) {
      const int64_t batch = n < 10 ? 40 : 2;
      ExpectFactors(Describe(FactorizeKind::kCholesky, type, batch, n, n),
                    Matrices(type, batch, n, n, 3, static_cast<double>(n)), errors::Concat(n));
    }
  }
}

TEST(Factorize, Lu) {
  for (DType type : kMatrixTypes) {
    for (int64_t n : {1, 2, 7, 33, 150}) {
      const int64_t batch = n < 10 ? 40 : 2;
      ExpectFactors(Describe(FactorizeKind::kLu, type, batch, n, n), Matrices(type, batch, n, n, 4), errors::Concat(n));
    }
  }
}

TEST(Factorize, Qr) {
  for (DType type : kMatrixTypes) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>(1, 1), {5, 5}, {7, 3}, {3, 7}, {60, 41}, {4, 1}}) {
      for (bool full : {false, true}) {
        FactorizeDesc desc = Describe(FactorizeKind::kQr, type, 3, rows, cols);
        desc.full = full;
        ExpectFactors(desc, Matrices(type, 3, rows, cols, 5), errors::Concat(rows, " by ", cols));
      }
    }
  }
}

TEST(Factorize, Eigenvalues) {
  for (DType type : kMatrixTypes) {
    for (int64_t n : {1, 2, 5, 24, 40}) {
      for (bool vectors : {true, false}) {
        FactorizeDesc desc = Describe(FactorizeKind::kEigen, type, 3, n, n);
        desc.vectors = vectors;
        ExpectFactors(desc, Matrices(type, 3, n, n, 6, 0), errors::Concat(n));
      }
    }
  }
}

TEST(Factorize, SingularValues) {
  for (DType type : kMatrixTypes) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>(1, 1), {5, 5}, {7, 3}, {3, 7}, {40, 25}, {4, 1}}) {
      for (int how : {0, 1, 2}) {
        FactorizeDesc desc = Describe(FactorizeKind::kSvd, type, 3, rows, cols);
        desc.vectors = how > 0;
        desc.full = how > 1;
        ExpectFactors(desc, Matrices(type, 3, rows, cols, 7), errors::Concat(rows, " by ", cols));
      }
    }
  }
}

TEST(Factorize, OfRankOneAndOfNothing) {
  for (DType type : kMatrixTypes) {
    const Array ones = Values(type, std::vector<double>(9, 1.0)), zeros = Values(type, std::vector<double>(9, 0.0));
    for (FactorizeKind kind : {FactorizeKind::kLu, FactorizeKind::kQr, FactorizeKind::kEigen, FactorizeKind::kSvd}) {
      ExpectFactors(Describe(kind, type, 1, 3, 3), ones, "ones");
      ExpectFactors(Describe(kind, type, 1, 3, 3), zeros, "zeros");
    }
  }
}

TEST(Factorize, WithoutRowsOrColumnsFullFactorsAreIdentities) {
  for (DType type : kMatrixTypes) {
    const Array identity = Values(type, std::vector<double>{1, 0, 0, 1}), none(type, 0);
    FactorizeDesc desc = Describe(FactorizeKind::kQr, type, 1, 2, 0);
    desc.full = true;
    ExpectByHand(desc, {none}, {{type, 4}, {type, 0}}, {{identity, none}}, "qr");
    desc.kind = FactorizeKind::kSvd;
    ExpectByHand(desc, {none}, {{RealTypeOf(type), 0}, {type, 4}, {type, 0}},
                 {{Array(RealTypeOf(type), 0), identity, none}}, "svd");
    ExpectByHand(Describe(FactorizeKind::kLu, type, 2, 0, 0), {none}, {{type, 0}, {DType::kInt32, 0}, {type, 2}},
                 {{none, Array(DType::kInt32, 0), Values(type, std::vector<double>{1, 1})}}, "lu");
  }
}

TEST(Factorize, WhatIsNotPositiveDefiniteHasNanForAFactor) {
  for (DType type : kMatrixTypes) {
    // The second of three.
    const Array a = Values(type, std::vector<double>{4, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 9});
    ExpectByHand(Describe(FactorizeKind::kCholesky, type, 3, 2, 2), {a}, {{type, 12}},
                 {{Values(type, std::vector<double>{2, 0, 0, 1, kNan, 0, kNan, kNan, 1, 0, 0, 3})}}, "indefinite");
  }
}

TEST(Factorize, ASingularMatrixFailsWhereItMustNotBe) {
  for (DType type : kMatrixTypes) {
    const Array a = Values(type, std::vector<double>{1, 0, 0, 1, 1, 2, 1, 2});
    FactorizeDesc desc = Describe(FactorizeKind::kLu, type, 2, 2, 2);
    ExpectFactors(desc, a, "singular");
    desc.regular = true;
    const std::vector<Output> outputs = OutputsOf(desc);
    for (const Variant& variant : Variants()) {
      const UseVariant use(variant);
      const Outcome outcome = variant.device->Run(desc, {a}, outputs, variant.waiting);
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << variant.name;
    }
    EXPECT_EQ(Reference().Run(desc, {a}, outputs).status.code(), Code::kInvalidArgument);
  }
}

TEST(Factorize, WhatIsNotFinite) {
  for (DType type : kMatrixTypes) {
    const DType real = RealTypeOf(type);
    const Array a = Values(type, std::vector<double>{kNan, 0, 0, 1});
    const FactorizeDesc eigen = Describe(FactorizeKind::kEigen, type, 1, 2, 2);
    for (const Variant& variant : Variants()) {
      const UseVariant use(variant);
      const Outcome outcome = variant.device->Run(eigen, {a}, OutputsOf(eigen), variant.waiting);
      EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument) << variant.name;
    }
    const Array nans = Values(type, std::vector<double>(4, kNan));
    ExpectByHand(Describe(FactorizeKind::kSvd, type, 1, 2, 2), {a}, {{real, 2}, {type, 4}, {type, 4}},
                 {{Values(real, std::vector<double>(2, kNan)), nans, nans}}, "svd");
  }
}

}  // namespace
}  // namespace xpu::testing
