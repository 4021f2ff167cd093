// The descriptors of matrices that are factorized or solved (descriptors.h has all others, and the conventions). They
// have a header of their own because the code that Eigen makes of them takes minutes to compile.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_FACTORIZE_DESCRIPTORS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_FACTORIZE_DESCRIPTORS_H_

#include <cstdint>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu {

enum class FactorizeKind : uint8_t { kCholesky, kLu, kQr, kEigen, kSvd };

// Factors of each matrix a [rows, cols] of a batch, of float, double, complex64 or complex128. k = min(rows, cols).
//   kCholesky: out: l [n, n], a = l l^H, zeros above the diagonal; reads the lower triangle of a. That of l is NaN
//              where a is not positive definite
//   kLu:       out: l and u in one [n, n] (l has ones on its diagonal), the row of a that became row i: int32 [n], the
//              sign of that permutation, of `type`; with partial pivoting, and u singular where a is. With `regular` it
//              fails then with InvalidArgument: where an element of u's diagonal is 0, or the first is NaN
//   kQr:       out: q [rows, k], r [k, cols]; `full`: q [rows, rows], r [rows, cols]
//   kEigen:    out: eigenvalues [n] ascending, of `type`, eigenvectors as columns [n, n]; reads the lower triangle of a
//              hermitian a. Fails with InvalidArgument where it finds none, as of a NaN
//   kSvd:      out: singular values [k] descending, real, u [rows, k], v [cols, k]; `full`: u [rows, rows],
//              v [cols, cols]. All NaN where a is not finite
// Without `vectors`, kEigen and kSvd have the first output alone.
struct FactorizeDesc {
  FactorizeKind kind = FactorizeKind::kCholesky;
  DType type = DType::kFloat;
  int64_t batch = 1, rows = 0, cols = 0;
  bool full = false, vectors = true, regular = false;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &rows, &cols}) visit(*extent);
  }
};

enum class SolveKind : uint8_t { kGeneral, kLower, kUpper, kTridiagonal };

// Solves a x = b, or a^H x = b with `adjoint`, for each matrix of a batch, of float, double, complex64 or complex128.
//   in:  a, b dense [batch, n, columns]   out: x dense [batch, n, columns]
//   kGeneral:        a dense [batch, n, n], by LU with partial pivoting; fails as a `regular` kLu does
//   kLower, kUpper:  reads that triangle of a [batch, n, n] alone, and divides by its diagonal whatever that is
//   kTridiagonal:    a dense [batch, 3, n]: superdiagonal, diagonal, subdiagonal. The first one's last element and the
//                    last one's first are not read. `pivoting`: partial, else none; not adjoint. x is NaN where a pivot
//                    is 0. `perturb`, with pivoting, makes pivots a little larger that are too small to divide by
struct SolveDesc {
  SolveKind kind = SolveKind::kGeneral;
  DType type = DType::kFloat;
  bool adjoint = false, pivoting = true, perturb = false;
  int64_t batch = 1, n = 0, columns = 0;

  template <typename Visit>
  void ForEachExtent(Visit&& visit) {
    for (int64_t* extent : {&batch, &n, &columns}) visit(*extent);
  }
};

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_FACTORIZE_DESCRIPTORS_H_
