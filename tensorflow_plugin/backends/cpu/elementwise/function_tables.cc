#include "tensorflow_plugin/backends/cpu/elementwise/function_tables.h"

#include <cmath>
#include <memory>

#include "tensorflow_plugin/backends/plain/special_functions.h"

namespace xpu::cpu {
namespace {

// Each function of XPU_TABULATED at u > 0, without its factor; and those that have rows of the rest at 1 less it.
namespace scaled {
using namespace plain::special;  // NOLINT: those that have none
double Erfinv(double u) { return plain::ErfInverse(u); }
double ErfinvOfRest(double rest) { return -plain::NormalQuantile(rest / 2) / std::sqrt(2.0); }
double Ndtri(double u) { return std::sqrt(2.0) * plain::ErfInverse(u); }
double NdtriOfRest(double rest) { return -plain::NormalQuantile(rest / 2); }
double Digamma(double u) { return plain::DigammaFunction(u); }
double BesselI0(double u) { return BesselI0e(u); }
double BesselI1(double u) { return BesselI1e(u); }
double BesselK0(double u) { return BesselK0e(u); }
double BesselK1(double u) { return BesselK1e(u); }
double Expint(double u) { return plain::special::Expint(u) * std::exp(-u); }
}  // namespace scaled

using Function = double (*)(double);

Function OfRest(Opcode op) { return op == Opcode::kErfinv ? &scaled::ErfinvOfRest : &scaled::NdtriOfRest; }

// The values of the first n of Chebyshev's polynomials at his points.
template <int n, int points>
struct Chebyshev {
  Chebyshev() {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < points; ++k) of[j][k] = std::cos(M_PI * j * (k + 0.5) / points);
    }
  }
  double of[n][points];
};

// The polynomial that is closest to f at Chebyshev's points of [begin, end]. There are more of them than terms, so that
// the roundings of f are averaged, and sums are of what f changes. Coefficients of roundings alone are left out.
template <int n>
void Fit(Function f, double begin, double end, double* row) {
  constexpr int points = 4 * n;
  static const Chebyshev<n, points> polynomial;
  const double start = f(begin);
  double changes[points];
  for (int k = 0; k < points; ++k) {
    changes[k] = f(begin + (end - begin) * (polynomial.of[1][k] + 1) / 2) - start;
  }
  // The coefficients of Chebyshev's polynomials, whose powers of s = t + 1 are added up on the way:
  // T(j+1) = 2 (s - 1) T(j) - T(j-1).
  double before[n] = {}, now[n] = {1}, next[n];
  for (int p = 0; p < n; ++p) row[p] = 0;
  for (int j = 0; j < n; ++j) {
    double coefficient = 0;
    for (int k = 0; k < points; ++k) coefficient += changes[k] * polynomial.of[j][k];
    coefficient *= (j == 0 ? 1.0 : 2.0) / points;
    if (std::abs(coefficient) < 0x1p-54 * std::abs(start)) coefficient = 0;
    for (int p = 0; p < n; ++p) row[p] += coefficient * now[p];
    for (int p = 0; p < n; ++p) next[p] = (j == 0 ? 1 : 2) * ((p == 0 ? 0 : now[p - 1]) - now[p]) - before[p];
    for (int p = 0; p < n; ++p) before[p] = now[p], now[p] = next[p];
  }
  row[0] = start;  // no zero is missed that lies there
}

// `count` rows from the one with these leading bits on.
template <typename Layout, typename T>
void Fill(Function f, uint32_t first, uint32_t count, double* rows) {
  using Rows = TableRows<Layout, T>;
  constexpr int bits = Layout::kBits;
  const double per_power = std::ldexp(1.0, bits);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t leading = first + i;
    const int exponent = static_cast<int>(leading >> bits) - Rows::kBias;
    const double begin = 1 + (leading & ((1u << bits) - 1)) / per_power;
    Fit<Rows::kTerms>(f, std::ldexp(begin, exponent), std::ldexp(begin + 1 / per_power, exponent),
                      rows + i * Rows::kTerms);
  }
}

template <typename Layout, typename T>
const double* Make(Function f, Function of_rest) {
  using Rows = TableRows<Layout, T>;
  auto rows = std::make_unique<double[]>((Rows::kCount + Rows::kCountRest) * Rows::kTerms);
  Fill<Layout, T>(f, Rows::kFirst, Rows::kCount, rows.get());
  Fill<Layout, T>(of_rest, Rows::kFirstRest, Rows::kCountRest, rows.get() + Rows::kCount * Rows::kTerms);
  return rows.release();  // as long as the process
}

}  // namespace

template <typename T>
const double* RowsOf(Opcode op) {
  switch (op) {
#define XPU_CASE(name, ...)                                                                           \
  case Opcode::k##name: {                                                                             \
    static const double* const rows = Make<Tabulated<Opcode::k##name>, T>(&scaled::name, OfRest(op)); \
    return rows;                                                                                      \
  }
    XPU_TABULATED(XPU_CASE)
#undef XPU_CASE
    default:
      return nullptr;
  }
}
template const double* RowsOf<float>(Opcode);
template const double* RowsOf<double>(Opcode);

}  // namespace xpu::cpu
