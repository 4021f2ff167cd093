#include "tensorflow_plugin/backends/cpu/linalg/fft_plan.h"

#include <cmath>
#include <functional>
#include <map>
#include <mutex>

#include "tensorflow_plugin/backends/cpu/linalg/fft_block.h"
#include "tensorflow_plugin/primitives/fork.h"

namespace xpu::cpu {
namespace {

constexpr double kPi = 3.141592653589793238462643383279502884;
constexpr int kLargestFactor = 31;

// exp(-2 pi i k / n), from an angle within an eighth of the circle.
template <typename R>
void Root(int64_t k, int64_t n, R* re, R* im) {
  k %= n;
  const int64_t eighth = k * 8 / n;
  // The angle from the nearest multiple of a quarter, in units of 2 pi / (4 n): exact.
  const int64_t quarter = (eighth + 1) / 2;
  const double angle = kPi / 2 * static_cast<double>(4 * k - quarter * n) / static_cast<double>(n);
  const double c = std::cos(angle), s = std::sin(angle);
  const double cosine[] = {c, -s, -c, s}, sine[] = {s, c, -s, -c};
  *re = static_cast<R>(cosine[quarter % 4]);
  *im = static_cast<R>(-sine[quarter % 4]);
}

// The factors, or nothing where one is too large.
std::vector<int> Factors(int64_t n) {
  std::vector<int> factors;
  for (int factor : {4, 2, 3, 5}) {
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  for (int factor = 7; factor <= kLargestFactor; factor += 2) {
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  if (n != 1) factors.clear();
  return factors;
}

template <typename R>
void MakeTwiddles(FftPlan<R>* plan) {
  int64_t size = 0, length = plan->n;
  for (int factor : plan->factors) {
    length /= factor;
    size += length * (factor - 1);
  }
  plan->twiddles = ComplexList<R>(size);
  int64_t at = 0;
  length = plan->n;
  for (int factor : plan->factors) {
    for (int64_t p = 0; p < length / factor; ++p) {
      for (int k = 1; k < factor; ++k, ++at) Root(p * k, length, &plan->twiddles.re[at], &plan->twiddles.im[at]);
    }
    length /= factor;
  }
}

template <typename R>
void MakeChirp(FftPlan<R>* plan) {
  const int64_t n = plan->n;
  int64_t longer = 1;
  while (longer < 2 * n - 1) longer *= 2;
  if (longer / 4 * 3 >= 2 * n - 1) longer = longer / 4 * 3;
  plan->longer = GetFftPlan<R>(longer);
  plan->chirp = ComplexList<R>(n);
  plan->spectrum = ComplexList<R>(longer);
  // In double, whatever R is: the spectrum is computed once.
  ComplexList<double> wrapped(longer), scratch(longer);
  for (int64_t j = 0; j < n; ++j) {
    // j^2 modulo 2 n: beyond 2^31 it would not fit, but no transform of a prime that long fits either.
    double re, im;
    Root(static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * n)), 2 * n, &re, &im);
    plan->chirp.re[j] = static_cast<R>(re);
    plan->chirp.im[j] = static_cast<R>(im);
    wrapped.re[j] = wrapped.re[(longer - j) % longer] = re;
    wrapped.im[j] = wrapped.im[(longer - j) % longer] = -im;
  }
  FftArrays<double> a{wrapped.re.data(), wrapped.im.data()}, b{scratch.re.data(), scratch.im.data()};
  Transform(*GetFftPlan<double>(longer), 1, &a, &b);
  for (int64_t j = 0; j < longer; ++j) {
    plan->spectrum.re[j] = static_cast<R>(a.re[j] / static_cast<double>(longer));
    plan->spectrum.im[j] = static_cast<R>(a.im[j] / static_cast<double>(longer));
  }
}

// Remembers what `make` gives for a length. When that is too much it begins anew: who uses something keeps it.
template <typename Made>
std::shared_ptr<const Made> Remember(int64_t n, const std::function<std::shared_ptr<const Made>()>& make) {
  constexpr int64_t kMost = 1 << 22;  // elements
  struct TwiddleTable {
    Mutex mutex;
    std::map<int64_t, std::shared_ptr<const Made>> made;
    int64_t elements = 0;
  };
  static TwiddleTable* const table = new TwiddleTable;
  {
    const std::lock_guard<std::mutex> lock(table->mutex);
    const auto found = table->made.find(n);
    if (found != table->made.end()) return found->second;
  }
  std::shared_ptr<const Made> result = make();  // not under the lock: it may need other lengths
  const std::lock_guard<std::mutex> lock(table->mutex);
  if (table->elements + n > kMost) {
    table->made.clear();
    table->elements = 0;
  }
  table->elements += n;
  return table->made.emplace(n, std::move(result)).first->second;
}

}  // namespace

template <typename R>
std::shared_ptr<const FftPlan<R>> GetFftPlan(int64_t n) {
  return Remember<FftPlan<R>>(n, [n] {
    auto plan = std::make_shared<FftPlan<R>>();
    plan->n = n;
    plan->factors = Factors(n);
    if (plan->factors.empty() && n > 1) {
      MakeChirp(plan.get());
    } else {
      MakeTwiddles(plan.get());
    }
    return plan;
  });
}

template <typename R>
std::shared_ptr<const FftRoots<R>> GetFftRoots(int64_t n) {
  return Remember<FftRoots<R>>(n, [n] {
    auto roots = std::make_shared<FftRoots<R>>(n / 2 + 1);
    for (int64_t k = 0; k <= n / 2; ++k) Root(k, n, &roots->re[k], &roots->im[k]);
    return roots;
  });
}

template std::shared_ptr<const FftPlan<float>> GetFftPlan(int64_t n);
template std::shared_ptr<const FftPlan<double>> GetFftPlan(int64_t n);
template std::shared_ptr<const FftRoots<float>> GetFftRoots(int64_t n);
template std::shared_ptr<const FftRoots<double>> GetFftRoots(int64_t n);

}  // namespace xpu::cpu
