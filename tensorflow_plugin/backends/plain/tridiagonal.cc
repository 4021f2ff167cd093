#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "tensorflow_plugin/backends/plain/loops.h"
#include "tensorflow_plugin/backends/plain/matrix.h"

namespace xpu::plain {
namespace {

// One system by Gaussian elimination: the right-hand sides are eliminated along with the matrix, of which the diagonal
// and, with row exchanges, two superdiagonals remain.
template <typename T>
class Elimination {
 public:
  Elimination(const SolveDesc& d, const T* a, const T* b, T* x)
      : d_(d), above_(a), diagonal_(a + d.n), below_(a + 2 * d.n), x_(x), u_(d.n) {
    std::copy(b, b + d.n * d.columns, x);
  }

  void Run() {
    const int64_t n = d_.n;
    u_[0] = {diagonal_[0], n > 1 ? above_[0] : T(0), T(0)};
    Real scale = std::abs(u_[0].diagonal) + std::abs(u_[0].first);  // of the row that is left
    for (int64_t i = 0; i + 1 < n; ++i) {
      const T below = below_[i + 1], above = i + 2 < n ? above_[i + 1] : T(0);
      const Real next_scale = std::abs(below) + std::abs(diagonal_[i + 1]) + std::abs(above);
      if (!Exchange(u_[i].diagonal, below, scale, next_scale)) {
        // Where nothing is below there is nothing to do; a pivot of 0 is met further down.
        const T factor = below == T(0) && d_.perturb ? T(0) : below / u_[i].diagonal;
        u_[i + 1] = {diagonal_[i + 1] - factor * u_[i].first, above, T(0)};
        Subtract(i + 1, factor, i);
        scale = next_scale;
      } else {
        const T factor = u_[i].diagonal / below;
        u_[i + 1] = {u_[i].first - factor * diagonal_[i + 1], -factor * above, T(0)};
        u_[i] = {below, diagonal_[i + 1], above};
        std::swap_ranges(Row(i), Row(i) + d_.columns, Row(i + 1));
        Subtract(i + 1, factor, i);
      }
    }
    if (d_.perturb) {
      for (const Upper& row : u_) {
        largest_ = std::max({largest_, std::abs(row.diagonal), std::abs(row.first), std::abs(row.second)});
      }
    } else if (std::any_of(u_.begin(), u_.end(), [](const Upper& row) { return row.diagonal == T(0); })) {
      std::fill(x_, x_ + n * d_.columns, T(std::numeric_limits<Real>::quiet_NaN()));
      return;
    }
    for (int64_t i = n - 1; i >= 0; --i) {
      if (i + 1 < n) Subtract(i, u_[i].first, i + 1);
      if (i + 2 < n) Subtract(i, u_[i].second, i + 2);
      if (d_.perturb) Enlarge(&u_[i].diagonal, Row(i));
      for (int64_t c = 0; c < d_.columns; ++c) Row(i)[c] /= u_[i].diagonal;
    }
  }

 private:
  using Real = RealOf<T>;
  struct Upper {
    T diagonal, first, second;
  };

  T* Row(int64_t i) { return x_ + i * d_.columns; }
  // Row i less a multiple of row j.
  void Subtract(int64_t i, T factor, int64_t j) {
    if (factor == T(0)) return;
    T* row = Row(i);
    const T* other = Row(j);
    for (int64_t c = 0; c < d_.columns; ++c) row[c] -= factor * other[c];
  }

  // True if the row below is the better pivot. With `perturb`, as LAPACK's xLAGTF decides: each compared with the size
  // of its row.
  bool Exchange(T pivot, T below, Real scale, Real below_scale) const {
    if (!d_.pivoting) return false;
    if (!d_.perturb) return std::abs(pivot) < std::abs(below);
    if (below == T(0)) return false;
    const Real own = pivot == T(0) ? Real(0) : std::abs(pivot) / scale;
    return own < std::abs(below) / below_scale;
  }

  // Makes a pivot so large that no quotient of its row overflows. It does so in steps that begin with a rounding of the
  // largest element, as LAPACK's xLAGTS does.
  void Enlarge(T* pivot, T* row) {
    constexpr Real kSmallest = std::numeric_limits<Real>::min();
    Real step = std::max(largest_ * std::numeric_limits<Real>::epsilon(), kSmallest);
    step = std::copysign(step, std::real(*pivot));
    Real largest = 0;
    for (int64_t c = 0; c < d_.columns; ++c) largest = std::max(largest, std::abs(row[c]));
    for (Real size = std::abs(*pivot); size < 1; size = std::abs(*pivot)) {
      if (size < kSmallest && size != 0 && largest * kSmallest <= size) {
        *pivot *= 1 / kSmallest;
        for (int64_t c = 0; c < d_.columns; ++c) row[c] *= 1 / kSmallest;
        return;
      }
      if (size != 0 && largest <= size / kSmallest) return;
      *pivot += step;
      step *= 2;
    }
  }

  const SolveDesc& d_;
  const T *above_, *diagonal_, *below_;
  T* x_;
  std::vector<Upper> u_;
  Real largest_ = 0;
};

}  // namespace

void SolveTridiagonal(const SolveDesc& d, const Args& args, int64_t begin, int64_t end) {
  VisitMatrixType(d.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * d.n * d.columns;
      Elimination<T>(d, static_cast<const T*>(args.in[0]) + i * 3 * d.n, static_cast<const T*>(args.in[1]) + at,
                     static_cast<T*>(args.out[0]) + at)
          .Run();
    }
  });
}

}  // namespace xpu::plain
