#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/plain/matrix.h"

namespace xpu::plain {
namespace {

template <typename T>
void Cholesky(const Matrix<T>& a, Matrix<T> l) {
  const int64_t n = a.rows();
  for (int64_t j = 0; j < n; ++j) {
    RealOf<T> pivot = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= Norm2(l(j, k));
    if (pivot <= 0) {
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c) l(r, c) = c <= r ? kNan<T> : T(0);
      }
      return;
    }
    l(j, j) = std::sqrt(pivot);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * Conj(l(j, k));
      l(i, j) = sum / l(j, j);
      l(j, i) = 0;
    }
  }
}

// I - tau v v^H with v(0) = 1 takes x to beta e1.
template <typename T>
struct Reflector {
  std::vector<T> v;
  T tau, beta;

  explicit Reflector(const std::vector<T>& x) : v(x), tau(0), beta(x[0]) {
    RealOf<T> tail = 0;
    for (size_t i = 1; i < x.size(); ++i) tail += Norm2(x[i]);
    const T head = x[0];
    v[0] = 1;
    if (tail == 0 && std::imag(head) == 0) return;
    const RealOf<T> norm = std::sqrt(Norm2(head) + tail);
    beta = std::real(head) >= 0 ? -norm : norm;
    for (size_t i = 1; i < x.size(); ++i) v[i] = x[i] / (head - beta);
    tau = Conj((beta - head) / beta);
  }

  // Applies it with this tau to the last rows of m, from `column` on.
  void Apply(T with, Matrix<T>* m, int64_t column) const {
    const int64_t size = static_cast<int64_t>(v.size()), top = m->rows() - size;
    for (int64_t c = column; c < m->cols(); ++c) {
      T dot = 0;
      for (int64_t i = 0; i < size; ++i) dot += Conj(v[i]) * (*m)(top + i, c);
      for (int64_t i = 0; i < size; ++i) (*m)(top + i, c) -= with * v[i] * dot;
    }
  }
};

template <typename T>
void Qr(const Matrix<T>& a, Matrix<T> q, Matrix<T> r) {
  const int64_t rows = a.rows(), cols = a.cols();
  std::vector<T> storage(rows * cols);
  Matrix<T> rest(storage.data(), rows, cols);
  rest.CopyFrom(a);
  std::vector<Reflector<T>> reflectors;
  for (int64_t k = 0; k < std::min(rows, cols); ++k) {
    std::vector<T> x(rows - k);
    for (int64_t i = k; i < rows; ++i) x[i - k] = rest(i, k);
    reflectors.emplace_back(x);
    reflectors.back().Apply(reflectors.back().tau, &rest, k + 1);
    rest(k, k) = reflectors.back().beta;
  }
  for (int64_t i = 0; i < r.rows(); ++i) {
    for (int64_t j = 0; j < cols; ++j) r(i, j) = i <= j ? rest(i, j) : T(0);
  }
  // q = H0^H H1^H ... applied to the identity, the last one first.
  q.SetIdentity();
  for (size_t k = reflectors.size(); k-- > 0;) reflectors[k].Apply(Conj(reflectors[k].tau), &q, 0);
}

// Turns columns p and q of m: [p, q] = [p, q] [[c, s], [-conj(s), c]].
template <typename T>
void Turn(Matrix<T>* m, int64_t p, int64_t q, RealOf<T> c, T s) {
  for (int64_t i = 0; i < m->rows(); ++i) {
    const T x = (*m)(i, p), y = (*m)(i, q);
    (*m)(i, p) = c * x - Conj(s) * y;
    (*m)(i, q) = s * x + c * y;
  }
}

// The rotation that makes [[p, z], [conj(z), q]] diagonal, by the smaller angle.
template <typename T>
void Rotation(RealOf<T> p, RealOf<T> q, T z, RealOf<T>* c, T* s) {
  const RealOf<T> size = std::abs(z), theta = (q - p) / (2 * size);
  const RealOf<T> tangent = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(RealOf<T>(1), theta));
  *c = 1 / std::hypot(RealOf<T>(1), tangent);
  *s = *c * tangent * (z / size);
}

constexpr int kMaxSweeps = 100;

// Jacobi's method; false where the matrix is not finite.
template <typename T>
bool Eigenvalues(const Matrix<T>& a, Matrix<T> values, Matrix<T>* vectors) {
  const int64_t n = a.rows();
  std::vector<T> m_storage(n * n), v_storage(n * n);
  Matrix<T> m(m_storage.data(), n, n), v(v_storage.data(), n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      if (!IsFinite(a(i, j))) return false;
      m(i, j) = i == j ? T(std::real(a(i, i))) : a(i, j);
      m(j, i) = Conj(m(i, j));
    }
  }
  v.SetIdentity();
  RealOf<T> norm = 0;
  for (T x : m_storage) norm += Norm2(x);
  // Smaller eigenvalues are far below a rounding of the largest one.
  const RealOf<T> tiny = std::sqrt(norm) * std::numeric_limits<RealOf<T>>::epsilon() / 64;
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMaxSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const T z = m(p, q);
        if (std::abs(z) <= tiny) continue;
        turned = true;
        RealOf<T> c;
        T s;
        Rotation(std::real(m(p, p)), std::real(m(q, q)), z, &c, &s);
        Turn(&m, p, q, c, s);
        for (int64_t j = 0; j < n; ++j) {  // and the rows, by the adjoint
          const T x = m(p, j), y = m(q, j);
          m(p, j) = c * x - s * y;
          m(q, j) = Conj(s) * x + c * y;
        }
        m(p, q) = m(q, p) = 0;
        m(p, p) = std::real(m(p, p));
        m(q, q) = std::real(m(q, q));
        Turn(&v, p, q, c, s);
      }
    }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t x, int64_t y) { return std::real(m(x, x)) < std::real(m(y, y)); });
  for (int64_t j = 0; j < n; ++j) {
    values(j, 0) = m(order[j], order[j]);
    for (int64_t i = 0; vectors != nullptr && i < n; ++i) (*vectors)(i, j) = v(i, order[j]);
  }
  return true;
}

// Makes the columns of q from `have` on orthonormal to all before them: what is left of unit vectors.
template <typename T>
void Complete(Matrix<T>* q, int64_t have) {
  int64_t unit = 0;
  while (have < q->cols()) {
    for (int64_t i = 0; i < q->rows(); ++i) (*q)(i, have) = i == unit ? 1 : 0;
    ++unit;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t c = 0; c < have; ++c) {
        T dot = 0;
        for (int64_t i = 0; i < q->rows(); ++i) dot += Conj((*q)(i, c)) * (*q)(i, have);
        for (int64_t i = 0; i < q->rows(); ++i) (*q)(i, have) -= dot * (*q)(i, c);
      }
    }
    RealOf<T> norm = 0;
    for (int64_t i = 0; i < q->rows(); ++i) norm += Norm2((*q)(i, have));
    // One of the unit vectors that are left has at least this much beside the columns there are.
    if (norm * static_cast<RealOf<T>>(q->rows()) < RealOf<T>(0.5)) continue;
    for (int64_t i = 0; i < q->rows(); ++i) (*q)(i, have) /= std::sqrt(norm);
    ++have;
  }
}

// One-sided Jacobi: turns the columns of `a`, which has at least as many rows, until they are orthogonal.
template <typename T>
void TallSvd(const Matrix<T>& a, RealOf<T>* values, Matrix<T>* u, Matrix<T>* v) {
  const int64_t rows = a.rows(), n = a.cols();
  std::vector<T> m_storage(rows * n), v_storage(n * n);
  Matrix<T> m(m_storage.data(), rows, n), turns(v_storage.data(), n, n);
  m.CopyFrom(a);
  turns.SetIdentity();
  const RealOf<T> epsilon = std::numeric_limits<RealOf<T>>::epsilon();
  const RealOf<T> tiny = epsilon * std::sqrt(static_cast<RealOf<T>>(rows));  // a product's own rounding
  const auto norm2 = [&](int64_t c) {
    RealOf<T> sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += Norm2(m(i, c));
    return sum;
  };
  bool turned = true;
  for (int sweep = 0; turned && sweep < kMaxSweeps; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        T dot = 0;
        for (int64_t i = 0; i < rows; ++i) dot += Conj(m(i, p)) * m(i, q);
        const RealOf<T> pp = norm2(p), qq = norm2(q);
        if (std::abs(dot) <= tiny * std::sqrt(pp) * std::sqrt(qq) ||
            std::abs(dot) < std::numeric_limits<RealOf<T>>::min()) {
          continue;
        }
        turned = true;
        RealOf<T> c;
        T s;
        Rotation(pp, qq, dot, &c, &s);
        Turn(&m, p, q, c, s);
        Turn(&turns, p, q, c, s);
      }
    }
  }
  std::vector<RealOf<T>> norms(n);
  for (int64_t c = 0; c < n; ++c) norms[c] = std::sqrt(norm2(c));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) { return norms[x] > norms[y]; });
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    values[j] = norms[order[j]];
    if (u == nullptr) continue;
    // A column that is nothing but roundings has no direction.
    if (values[j] > values[0] * epsilon * static_cast<RealOf<T>>(rows)) {
      for (int64_t i = 0; i < rows; ++i) (*u)(i, j) = m(i, order[j]) / values[j];
      rank = j + 1;
    }
    for (int64_t i = 0; i < n; ++i) (*v)(i, j) = turns(i, order[j]);
  }
  if (u == nullptr) return;
  Complete(u, rank);
  Complete(v, n);
}

template <typename T>
void Svd(const FactorizeDesc& d, const Matrix<T>& a, RealOf<T>* values, Matrix<T> u, Matrix<T> v) {
  const int64_t k = std::min(d.rows, d.cols);
  bool finite = true;
  for (int64_t i = 0; i < d.rows * d.cols; ++i) finite &= IsFinite(a.data()[i]);
  if (!finite) {
    std::fill(values, values + k, std::numeric_limits<RealOf<T>>::quiet_NaN());
    if (d.vectors) std::fill(u.data(), u.data() + u.rows() * u.cols(), kNan<T>);
    if (d.vectors) std::fill(v.data(), v.data() + v.rows() * v.cols(), kNan<T>);
    return;
  }
  if (d.rows >= d.cols) return TallSvd(a, values, d.vectors ? &u : nullptr, &v);
  std::vector<T> storage(d.rows * d.cols);
  Matrix<T> adjoint(storage.data(), d.cols, d.rows);
  for (int64_t i = 0; i < d.rows; ++i) {
    for (int64_t j = 0; j < d.cols; ++j) adjoint(j, i) = Conj(a(i, j));
  }
  TallSvd(adjoint, values, d.vectors ? &v : nullptr, &u);
}

// Matrix number `i` of the batch; false where it fails.
template <typename T>
bool Factorize(const FactorizeDesc& d, const Args& args, int64_t i) {
  const auto at = [i](void* base, int64_t rows, int64_t cols) {
    return Matrix<T>(static_cast<T*>(base) + i * rows * cols, rows, cols);
  };
  const int64_t rows = d.rows, cols = d.cols, k = std::min(rows, cols);
  const int64_t u_cols = d.full ? rows : k, v_cols = d.full ? cols : k;
  const Matrix<T> a = at(const_cast<void*>(args.in[0]), rows, cols);
  switch (d.kind) {
    case FactorizeKind::kCholesky:
      Cholesky(a, at(args.out[0], rows, rows));
      return true;
    case FactorizeKind::kLu: {
      Matrix<T> lu = at(args.out[0], rows, rows);
      lu.CopyFrom(a);
      const bool regular =
          FactorizeLu(&lu, static_cast<int32_t*>(args.out[1]) + i * rows, at(args.out[2], 1, 1).data());
      return regular || !d.regular;
    }
    case FactorizeKind::kQr:
      Qr(a, at(args.out[0], rows, u_cols), at(args.out[1], u_cols, cols));
      return true;
    case FactorizeKind::kEigen: {
      Matrix<T> vectors = at(args.out[1], rows, rows);
      return Eigenvalues(a, at(args.out[0], rows, 1), d.vectors ? &vectors : nullptr);
    }
    case FactorizeKind::kSvd:
      Svd(d, a, static_cast<RealOf<T>*>(args.out[0]) + i * k, at(args.out[1], rows, u_cols),
          at(args.out[2], cols, v_cols));
      return true;
  }
  return true;
}

}  // namespace

Status Run(const FactorizeDesc& d, const Args& args) {
  Status status;
  VisitMatrixType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < d.batch; ++i) {
      if (!Factorize<T>(d, args, i) && status.ok()) {
        status = errors::InvalidArgument(Name(d), ": matrix ", i, " has none");
      }
    }
  });
  return status;
}

}  // namespace xpu::plain
