#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/plain/matrix.h"

namespace xpu::plain {
namespace {

// Solves with a triangle of m in place; with ones on its diagonal, if `unit`.
template <typename T>
void SolveTriangle(const Matrix<T>& m, bool lower, bool unit, Matrix<T> x) {
  const int64_t n = m.rows();
  for (int64_t c = 0; c < x.cols(); ++c) {
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = lower ? step : n - 1 - step;
      T sum = x(i, c);
      for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); ++j) sum -= m(i, j) * x(j, c);
      x(i, c) = unit ? sum : sum / m(i, i);
    }
  }
}

// Matrix number `i` of the batch; false where it is singular.
template <typename T>
bool Solve(const SolveDesc& d, const Args& args, int64_t i) {
  const int64_t n = d.n;
  const Matrix<T> a(static_cast<T*>(const_cast<void*>(args.in[0])) + i * n * n, n, n);
  const Matrix<T> b(static_cast<T*>(const_cast<void*>(args.in[1])) + i * n * d.columns, n, d.columns);
  Matrix<T> x(static_cast<T*>(args.out[0]) + i * n * d.columns, n, d.columns);
  std::vector<T> storage(n * n);
  Matrix<T> m(storage.data(), n, n);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) m(r, c) = d.adjoint ? Conj(a(c, r)) : a(r, c);
  }
  if (d.kind != SolveKind::kGeneral) {
    x.CopyFrom(b);
    SolveTriangle(m, (d.kind == SolveKind::kLower) != d.adjoint, false, x);
    return true;
  }
  std::vector<int32_t> permutation(n);
  T sign;
  if (!FactorizeLu(&m, permutation.data(), &sign)) return false;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < d.columns; ++c) x(r, c) = b(permutation[r], c);
  }
  SolveTriangle(m, true, true, x);
  SolveTriangle(m, false, false, x);
  return true;
}

}  // namespace

Status Run(const SolveDesc& d, const Args& args) {
  if (d.kind == SolveKind::kTridiagonal) {
    SolveTridiagonal(d, args, 0, d.batch);
    return OkStatus();
  }
  Status status;
  VisitMatrixType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < d.batch; ++i) {
      if (!Solve<T>(d, args, i) && status.ok()) {
        status = errors::InvalidArgument(Name(d), ": matrix ", i, " is singular");
      }
    }
  });
  return status;
}

}  // namespace xpu::plain
