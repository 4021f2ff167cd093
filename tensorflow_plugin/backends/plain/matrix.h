// Matrices of the four types that can be factorized.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_MATRIX_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_MATRIX_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu::plain {

template <typename T>
struct RealOfComplex {
  using type = T;
};
template <typename T>
struct RealOfComplex<std::complex<T>> {
  using type = T;
};
template <typename T>
using RealOf = typename RealOfComplex<T>::type;

template <typename T>
T Conj(T x) {
  if constexpr (IsComplex(DTypeOf<T>::value)) return std::conj(x);
  return x;
}
template <typename T>
RealOf<T> Norm2(T x) {
  return std::real(x) * std::real(x) + std::imag(x) * std::imag(x);
}
template <typename T>
bool IsFinite(T x) {
  return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
}
template <typename T>
constexpr T kNan = T(std::numeric_limits<RealOf<T>>::quiet_NaN());

// Row-major elements that lie elsewhere.
template <typename T>
class Matrix {
 public:
  Matrix(T* data, int64_t rows, int64_t cols) : data_(data), rows_(rows), cols_(cols) {}
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  T* data() const { return data_; }
  T& operator()(int64_t row, int64_t col) const { return data_[row * cols_ + col]; }
  void CopyFrom(const Matrix& other) { std::copy(other.data_, other.data_ + rows_ * cols_, data_); }
  void SetIdentity() {
    for (int64_t i = 0; i < rows_ * cols_; ++i) data_[i] = i / cols_ == i % cols_ ? 1 : 0;
  }

 private:
  T* data_;
  int64_t rows_, cols_;
};

// In place, with partial pivoting; row i is what was row permutation[i], and *sign that permutation's. False where an
// element of u's diagonal is 0, or the first is NaN.
template <typename T>
bool FactorizeLu(Matrix<T>* m, int32_t* permutation, T* sign) {
  const int64_t n = m->rows();
  bool regular = true;
  *sign = 1;
  for (int64_t i = 0; i < n; ++i) permutation[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs((*m)(i, k)) > std::abs((*m)(best, k))) best = i;
    }
    const T pivot = (*m)(best, k);
    if (pivot == T(0) || (k == 0 && pivot != pivot)) regular = false;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) std::swap((*m)(k, j), (*m)(best, j));
      std::swap(permutation[k], permutation[best]);
      *sign = -*sign;
    }
    for (int64_t i = k + 1; i < n; ++i) {
      if (pivot != T(0)) (*m)(i, k) /= pivot;
      for (int64_t j = k + 1; j < n; ++j) (*m)(i, j) -= (*m)(i, k) * (*m)(k, j);
    }
  }
  return regular;
}

// Calls f with the tag of a type that matrices can have.
template <typename F>
void VisitMatrixType(DType type, const F& f) {
  VisitType(type, [&](auto tag) {
    constexpr DType real = RealTypeOf(DTypeOf<typename decltype(tag)::type>::value);
    if constexpr (real == DType::kFloat || real == DType::kDouble) f(tag);
  });
}

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_MATRIX_H_
