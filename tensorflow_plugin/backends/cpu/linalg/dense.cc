// Eigen chooses its vectors by the compiler's flags. This file is compiled with -fno-weak, which keeps templates'
// functions to itself, and Eigen's namespace has another name. So no function here is taken for one that was compiled
// with other flags, in TensorFlow or elsewhere.
#define Eigen XpuEigen

#include "tensorflow_plugin/backends/cpu/linalg/dense.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <complex>
#include <limits>

namespace xpu::cpu {
namespace {

template <typename T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Map = Eigen::Map<Rows<T>>;
template <typename T>
using ConstMap = Eigen::Map<const Rows<T>>;
template <typename T>
using Real = typename Eigen::NumTraits<T>::Real;
template <typename T>
using Lu = Eigen::PartialPivLU<Columns<T>>;

template <typename T>
constexpr T kNan = T(std::numeric_limits<Real<T>>::quiet_NaN());

template <typename T>
bool IsRegular(const Lu<T>& lu) {
  const auto u = lu.matrixLU().diagonal();
  for (int64_t i = 0; i < u.size(); ++i) {
    if (u(i) == T(0) || (i == 0 && u(i) != u(i))) return false;
  }
  return true;
}

// One matrix of the batch: false where it fails.
template <typename T>
class Factorizer {
 public:
  Factorizer(const FactorizeDesc& desc, const Matrices& buffers, int64_t matrix)
      : d_(desc), buffers_(buffers), matrix_(matrix), k_(std::min(desc.rows, desc.cols)) {}

  bool Run() {
    const ConstMap<T> a(static_cast<const T*>(buffers_.in[0]) + matrix_ * d_.rows * d_.cols, d_.rows, d_.cols);
    switch (d_.kind) {
      case FactorizeKind::kCholesky:
        return Cholesky(a);
      case FactorizeKind::kLu:
        return FactorizeLu(a);
      case FactorizeKind::kQr:
        return Qr(a);
      case FactorizeKind::kEigen:
        return Eigenvalues(a);
      case FactorizeKind::kSvd:
        return Svd(a);
    }
    return true;
  }

 private:
  template <typename E = T>
  Map<E> Out(int i, int64_t rows, int64_t cols) const {
    return {static_cast<E*>(buffers_.out[i]) + matrix_ * rows * cols, rows, cols};
  }

  bool Cholesky(const ConstMap<T>& a) {
    Map<T> l = Out(0, d_.rows, d_.rows);
    const Eigen::LLT<Rows<T>> llt(a);
    if (llt.info() == Eigen::Success) {
      l = llt.matrixL();
    } else {
      l.setZero();
      l.template triangularView<Eigen::Lower>().fill(kNan<T>);
    }
    return true;
  }

  bool FactorizeLu(const ConstMap<T>& a) {
    const Lu<T> lu(a);
    Out(0, d_.rows, d_.rows) = lu.matrixLU();
    const auto& to = lu.permutationP().indices();
    for (int64_t i = 0; i < d_.rows; ++i) Out<int32_t>(1, d_.rows, 1)(to(i)) = static_cast<int32_t>(i);
    Out(2, 1, 1)(0) = static_cast<T>(static_cast<Real<T>>(lu.permutationP().determinant()));
    return !d_.regular || IsRegular<T>(lu);
  }

  bool Qr(const ConstMap<T>& a) {
    const int64_t size = d_.full ? d_.rows : k_;
    const Eigen::HouseholderQR<Rows<T>> qr(a);
    Map<T> q = Out(0, d_.rows, size);
    q.setIdentity();
    q.applyOnTheLeft(qr.householderQ());
    Map<T> r = Out(1, size, d_.cols);
    r.setZero();
    r.topRows(k_).template triangularView<Eigen::Upper>() = qr.matrixQR().topRows(k_);
    return true;
  }

  bool Eigenvalues(const ConstMap<T>& a) {
    const int64_t n = d_.rows;
    for (int64_t i = 0; i < n; ++i) {
      if (!a.row(i).head(i + 1).allFinite()) return false;
    }
    const Eigen::SelfAdjointEigenSolver<Columns<T>> solver(
        a, d_.vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
    if (solver.info() != Eigen::Success) return false;
    Out(0, n, 1) = solver.eigenvalues().template cast<T>();
    if (d_.vectors) Out(1, n, n) = solver.eigenvectors();
    return true;
  }

  bool Svd(const ConstMap<T>& a) {
    const int64_t u_cols = d_.full ? d_.rows : k_, v_cols = d_.full ? d_.cols : k_;
    Map<Real<T>> s = Out<Real<T>>(0, k_, 1);
    if (k_ == 0) {
      if (d_.vectors) Out(1, d_.rows, u_cols).setIdentity();
      if (d_.vectors) Out(2, d_.cols, v_cols).setIdentity();
      return true;
    }
    const unsigned vectors =
        d_.full ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
    const bool finite = a.allFinite();
    Eigen::BDCSVD<Columns<T>> svd;
    if (finite) svd.compute(a, d_.vectors ? vectors : 0);
    if (finite && svd.info() == Eigen::Success) {
      s = svd.singularValues();
      if (d_.vectors) Out(1, d_.rows, u_cols) = svd.matrixU();
      if (d_.vectors) Out(2, d_.cols, v_cols) = svd.matrixV();
    } else {
      s.fill(kNan<Real<T>>);
      if (d_.vectors) Out(1, d_.rows, u_cols).fill(kNan<T>);
      if (d_.vectors) Out(2, d_.cols, v_cols).fill(kNan<T>);
    }
    return true;
  }

  const FactorizeDesc& d_;
  const Matrices& buffers_;
  const int64_t matrix_, k_;
};

template <typename T>
bool SolveOne(const SolveDesc& d, const Matrices& buffers, int64_t matrix) {
  const ConstMap<T> a(static_cast<const T*>(buffers.in[0]) + matrix * d.n * d.n, d.n, d.n);
  const int64_t first = matrix * d.n * d.columns;
  const ConstMap<T> b(static_cast<const T*>(buffers.in[1]) + first, d.n, d.columns);
  Map<T> x(static_cast<T*>(buffers.out[0]) + first, d.n, d.columns);
  if (d.kind == SolveKind::kGeneral) {
    Lu<T> lu(d.n);
    d.adjoint ? lu.compute(a.adjoint()) : lu.compute(a);
    if (!IsRegular<T>(lu)) return false;
    x = lu.solve(b);
    return true;
  }
  x = b;
  const auto solve = [&](const auto& triangle) {
    d.adjoint ? triangle.adjoint().solveInPlace(x) : triangle.solveInPlace(x);
  };
  d.kind == SolveKind::kLower ? solve(a.template triangularView<Eigen::Lower>())
                              : solve(a.template triangularView<Eigen::Upper>());
  return true;
}

template <DType type>
struct TypeOf;
template <>
struct TypeOf<DType::kFloat> {
  using type = float;
};
template <>
struct TypeOf<DType::kDouble> {
  using type = double;
};
template <>
struct TypeOf<DType::kComplex64> {
  using type = std::complex<float>;
};
template <>
struct TypeOf<DType::kComplex128> {
  using type = std::complex<double>;
};
using Element = TypeOf<DType::XPU_DENSE_TYPE>::type;

}  // namespace

template <>
int64_t FactorizeDense<DType::XPU_DENSE_TYPE>(const FactorizeDesc& desc, const Matrices& buffers, int64_t begin,
                                              int64_t end) {
  int64_t bad = -1;
  for (int64_t i = begin; i < end; ++i) {
    if (!Factorizer<Element>(desc, buffers, i).Run() && bad < 0) bad = i;
  }
  return bad;
}

template <>
int64_t SolveDense<DType::XPU_DENSE_TYPE>(const SolveDesc& desc, const Matrices& buffers, int64_t begin, int64_t end) {
  int64_t bad = -1;
  for (int64_t i = begin; i < end; ++i) {
    if (!SolveOne<Element>(desc, buffers, i) && bad < 0) bad = i;
  }
  return bad;
}

}  // namespace xpu::cpu
