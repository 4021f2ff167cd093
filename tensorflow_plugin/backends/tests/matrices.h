// Test support: matrices in double precision, and commands whose results are examined rather than compared.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_MATRICES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_MATRICES_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {

inline constexpr DType kMatrixTypes[] = {DType::kFloat, DType::kDouble, DType::kComplex64, DType::kComplex128};

// A matrix of complex doubles. Products are in long double: what is examined has the only roundings.
class Dense {
 public:
  using Number = std::complex<double>;
  Dense(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), x_(rows * cols) {}
  // Matrix number `i` of a batch.
  Dense(const Array& a, int64_t i, int64_t rows, int64_t cols) : Dense(rows, cols) {
    for (int64_t k = 0; k < rows * cols; ++k) x_[k] = At(a, i * rows * cols + k);
  }
  static Dense Identity(int64_t n) {
    Dense d(n, n);
    for (int64_t i = 0; i < n; ++i) d(i, i) = 1;
    return d;
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  Number& operator()(int64_t r, int64_t c) { return x_[r * cols_ + c]; }
  Number operator()(int64_t r, int64_t c) const { return x_[r * cols_ + c]; }

  Dense Map(const std::function<Number(int64_t, int64_t, Number)>& f) const {
    Dense d = *this;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) d(r, c) = f(r, c, (*this)(r, c));
    }
    return d;
  }
  Dense Adjoint() const {
    return Dense(cols_, rows_).Map([&](int64_t r, int64_t c, Number) { return std::conj((*this)(c, r)); });
  }
  Dense Magnitudes() const {
    return Map([](int64_t, int64_t, Number x) { return std::abs(x); });
  }
  Dense operator*(const Dense& o) const {
    Dense d(rows_, o.cols_);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < o.cols_; ++c) {
        std::complex<long double> sum = 0;
        for (int64_t k = 0; k < cols_; ++k) {
          sum += std::complex<long double>((*this)(r, k)) * std::complex<long double>(o(k, c));
        }
        d(r, c) = Number(static_cast<double>(sum.real()), static_cast<double>(sum.imag()));
      }
    }
    return d;
  }
  double Norm() const {  // Frobenius's
    double sum = 0;
    for (Number x : x_) sum += std::norm(x);
    return std::sqrt(sum);
  }

 private:
  int64_t rows_, cols_;
  std::vector<Number> x_;
};

// True if x and y differ by no more than the bound, element by element; NaN is too far from everything.
inline bool Near(const Dense& x, const Dense& y, const std::function<double(int64_t, int64_t)>& bound,
                 const std::string& what) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.cols(); ++c) {
      const double error = std::abs(x(r, c) - y(r, c));
      if (error <= bound(r, c)) continue;
      ADD_FAILURE() << what << " at " << r << ", " << c << ": " << x(r, c) << " is not " << y(r, c) << ", by " << error
                    << "; allowed are " << bound(r, c);
      return false;
    }
  }
  return true;
}
inline bool Near(const Dense& x, const Dense& y, double bound, const std::string& what) {
  return Near(x, y, [bound](int64_t, int64_t) { return bound; }, what);
}

// Runs a command on the reference and in every variant, and has each of the results examined. `examine` gets the
// outputs and their name, and says if they are right, with a failure if not.
template <typename Desc>
void ExpectThat(const Desc& desc, const std::vector<Array>& inputs, const std::vector<Output>& outputs,
                const std::function<bool(const std::vector<Array>&, const std::string&)>& examine,
                const std::string& what) {
  const auto judge = [&](const Outcome& outcome, const std::string& name) {
    if (!outcome.status.ok() || !outcome.trespass.empty()) {
      ADD_FAILURE() << name << ": " << outcome.status.message() << " " << outcome.trespass;
      return false;
    }
    return examine(outcome.out, name);
  };
  judge(Reference().Run(desc, inputs, outputs, Waiting::kAwaited), what + " (reference)");
  const std::string label = Label(desc);
  for (const Variant& variant : Variants()) {
    const UseVariant use(variant);
    const Outcome outcome = variant.device->Run(desc, inputs, outputs, variant.waiting);
    const bool denied = !outcome.launched && outcome.status.code() == Code::kUnimplemented;
    if (denied && !MustSupportEverything()) {
      CountCase(label, CaseResult::kNotSupported);
      continue;
    }
    const bool right = judge(outcome, what + " (" + label + ", " + variant.name + ")");
    CountCase(label, right ? CaseResult::kRight : CaseResult::kWrong);
  }
}

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_MATRICES_H_
