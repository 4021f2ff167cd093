// How far a correct result may be from the exact one, and the comparison that says whether it is.
//
// A command reads its inputs as they are stored, and computes in a type of its own. That is float for half and
// bfloat16, else the type of the data. It may use any order, and rounds what it stores once. So a result is right if it
// lies between the exact value less a bound, rounded, and the exact value plus that bound, rounded. The bound is that
// of the computation alone, and for half and bfloat16 it is one of float. A type that is not floating has no bound: its
// values are equal.
//
// The bounds are those of rounding analysis (Higham, "Accuracy and Stability of Numerical Algorithms", chapters 3 and
// 4), to first order. Here u is the unit roundoff of the type of the computation. A case derives its bound where it is
// stated.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_TESTS_ROUNDING_H_
#define TENSORFLOW_PLUGIN_BACKENDS_TESTS_ROUNDING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/array.h"

namespace xpu::testing {

// u of the type that `type` is computed in: 2^-24 for float, half, bfloat16 and complex64, 2^-53 for double and
// complex128, 0 for all others.
double Roundoff(DType type);

// The error that a sum of n terms may have, in units of the sum of their magnitudes. Each term took a rounding to make.
// In every order of summation a term takes part in n roundings at most, so n u is enough. For long sums that is far
// more than happens: roundings are as good as independent, and their sum grows as the root of their number. Beyond 64
// terms it is 8 sqrt(n) u, which an element exceeds with probability 2 exp(-32). See Higham and Mary, "A new approach
// to probabilistic rounding error analysis" (SIAM J. Sci. Comput. 41, 2019, theorem 2.4 with lambda = 8). A sum in one
// float that is always rounded the same way, as that of a million equal terms, exceeds it, and should.
double SumError(double n, DType type);

// By how much the computation may miss an exact value, before the result is rounded to its type.
struct Bound {
  double relative = 0;       // of the exact value (of a complex one: of its magnitude)
  double absolute = 0;       // added to that
  std::vector<double> each;  // added to that, by element; empty: nothing
};

// SumError(n, type) of sums whose terms' magnitudes add up to `magnitudes`. In a complex product a term takes a
// rounding more, and one more for good measure. Where the exact value itself is computed in the type (double has no
// wider one), its error counts too.
Bound SumBound(const Array& magnitudes, double n, DType type);

// True if every element of `got` is within `bound` of the one of `want`, which has the same type or the wider one
// (array.h). NaN is met by NaN only (a complex number with a NaN by any such), infinities by themselves. If not, a
// failure names the first element that is off and says how many are.
bool ExpectWithin(const Array& got, const Array& want, const Bound& bound, const std::string& what);

}  // namespace xpu::testing

#endif  // TENSORFLOW_PLUGIN_BACKENDS_TESTS_ROUNDING_H_
