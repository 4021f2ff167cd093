#include "tensorflow_plugin/backends/cpu/elementwise/function_tables.h"

#include <cmath>
#include <memory>

#include "tensorflow_plugin/backends/plain/special_functions.h"

namespace xpu::cpu {
namespace {

// Each function of XPU_TABULATED at u > 0, without its factor.
namespace scaled {
using namespace plain::special;  // NOLINT: those that have none
double Erfinv(double u) { return plain::ErfInverse(u); }
double Ndtri(double u) { return -plain::NormalQuantile(u); }
double Digamma(double u) { return plain::DigammaFunction(u); }
double BesselI0(double u) { return BesselI0e(u); }
double BesselI1(double u) { return BesselI1e(u); }
double BesselK0(double u) { return BesselK0e(u); }
double BesselK1(double u) { return BesselK1e(u); }
double Expint(double u) { return plain::special::Expint(u) * std::exp(-u); }
}  // namespace scaled

using Function = double (*)(double);

// The polynomial through f at Chebyshev's points of [begin, end].
void Interpolate(Function f, double begin, double end, TableRow& row) {
  constexpr int n = kTableTerms;
  double values[n];
  for (int k = 0; k < n; ++k) {
    const double t = std::cos(M_PI * (k + 0.5) / n);
    values[k] = f(begin + (end - begin) * (t + 1) / 2);
  }
  // The coefficients of Chebyshev's polynomials, whose powers of s = t + 1 are added up on the way:
  // T(j+1) = 2 (s - 1) T(j) - T(j-1).
  double before[n] = {}, now[n] = {1}, next[n];
  for (double& c : row) c = 0;
  for (int j = 0; j < n; ++j) {
    double coefficient = 0;
    for (int k = 0; k < n; ++k) coefficient += values[k] * std::cos(M_PI * j * (k + 0.5) / n);
    coefficient *= (j == 0 ? 1.0 : 2.0) / n;
    for (int p = 0; p < n; ++p) row[p] += coefficient * now[p];
    for (int p = 0; p < n; ++p) next[p] = (j == 0 ? 1 : 2) * ((p == 0 ? 0 : now[p - 1]) - now[p]) - before[p];
    for (int p = 0; p < n; ++p) before[p] = now[p], now[p] = next[p];
  }
  row[0] = f(begin);  // no zero is missed that lies there
}

// `count` rows from the one with these leading bits on.
void Fill(Function f, int bits, uint32_t first, uint32_t count, TableRow* rows) {
  const double per_power = std::ldexp(1.0, bits);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t leading = first + i;
    const int exponent = static_cast<int>(leading >> bits) - 127;
    const double begin = 1 + (leading & ((1u << bits) - 1)) / per_power;
    Interpolate(f, std::ldexp(begin, exponent), std::ldexp(begin + 1 / per_power, exponent), rows[i]);
  }
}

template <typename Layout>
const TableRow* Make(Function f) {
  auto rows = std::make_unique<TableRow[]>(Layout::kCount + Layout::kCountRest);
  Fill(f, Layout::kBits, Layout::kFirst, Layout::kCount, rows.get());
  if constexpr (Layout::kCountRest != 0) {
    static const Function whole = f;
    Fill([](double rest) { return whole(1 - rest); }, Layout::kBits, Layout::kFirstRest, Layout::kCountRest,
         rows.get() + Layout::kCount);
  }
  return rows.release();  // as long as the process
}

}  // namespace

const TableRow* RowsOf(Opcode op) {
  switch (op) {
#define XPU_CASE(name, ...)                                                              \
  case Opcode::k##name: {                                                                \
    static const TableRow* const rows = Make<Tabulated<Opcode::k##name>>(&scaled::name); \
    return rows;                                                                         \
  }
    XPU_TABULATED(XPU_CASE)
#undef XPU_CASE
    default:
      return nullptr;
  }
}

}  // namespace xpu::cpu
