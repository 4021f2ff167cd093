// How exact products with elements as integers are, and which elements remain floats.
#include "tensorflow_plugin/backends/cpu/matmul/weight_digits.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

using plain::Weights;

constexpr Halves kForms[] = {Halves::kAcross, Halves::kDown, Halves::kTurned};

struct Random {
  Random(Halves halves, int64_t k, int64_t n, int64_t group) {
    w.halves = halves;
    w.k = k, w.n = n, w.group = group, w.groups = (k + group - 1) / group;
    bytes.resize(halves == Halves::kAcross ? k * w.row_bytes()
                                           : (halves == Halves::kDown ? (k + 1) / 2 : n) * w.row_bytes());
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(bits());
    scales.resize(w.groups * n);
    zeros.resize(w.groups * n);
    for (float& scale : scales) scale = std::ldexp(static_cast<float>(1 + bits() % 100), -10);
    for (int8_t& zero : zeros) zero = static_cast<int8_t>(bits() % 5) - 2;
    w.bytes = bytes.data(), w.scales = scales.data(), w.zero_points = zeros.data();
  }

  std::mt19937 bits{7};
  std::vector<uint8_t> bytes;
  std::vector<float> scales;
  std::vector<int8_t> zeros;
  Weights w;
};

// Roots of the mean squared error, relative to the result's: of MultiplyDigits, and of floats added one by one.
struct Errors {
  double digits, floats;
};
Errors ErrorsOf(const Random& random, const std::vector<float>& a, int64_t m) {
  const Weights& w = random.w;
  std::vector<float> c(m * w.n);
  EXPECT_TRUE(MultiplyDigits(w, m, a.data(), w.k, c.data(), host_runtime::ThreadTeam(1)));
  double of_digits = 0, of_floats = 0, of_results = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      double exact = 0;
      float plain = 0;
      for (int64_t l = 0; l < w.k; ++l) {
        exact += static_cast<double>(a[i * w.k + l]) * w.At(l, j);
        plain += a[i * w.k + l] * w.At(l, j);
      }
      of_results += exact * exact;
      of_digits += (c[i * w.n + j] - exact) * (c[i * w.n + j] - exact);
      of_floats += (plain - exact) * (plain - exact);
    }
  }
  return {std::sqrt(of_digits / of_results), std::sqrt(of_floats / of_results)};
}

template <typename Test>
void ForEachIsa(Test&& test) {
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    test(Name(isa));
  }
}

// Floats added one by one are about as far off, and further where no element is much larger than the others.
TEST(WeightDigits, AreAsExactAsFloats) {
  constexpr int64_t kRows = 3;
  ForEachIsa([](const std::string& isa) {
    for (Halves halves : kForms) {
      for (const auto& [k, group] : {std::pair<int64_t, int64_t>{512, 128}, {512, 512}, {2048, 256}, {200, 200}}) {
        const Random random(halves, k, 96, group);
        std::mt19937 bits(3);
        std::normal_distribution<float> normal;
        std::vector<float> even(kRows * k), positive(kRows * k), wild(kRows * k), outlier(kRows * k);
        for (int64_t i = 0; i < kRows * k; ++i) {
          even[i] = normal(bits);
          positive[i] = std::abs(normal(bits));
          wild[i] = normal(bits) * std::exp(2 * normal(bits));
          outlier[i] = i % k == 17 ? 1000 : normal(bits);
        }
        // The largest element of a block decides on the power for all others.
        for (const auto& [a, most] :
             {std::pair<std::vector<float>*, double>{&even, 1}, {&positive, 1}, {&wild, 2.5}, {&outlier, 2}}) {
          const Errors errors = ErrorsOf(random, *a, kRows);
          EXPECT_LE(errors.digits, most * errors.floats)
              << isa << ", form " << static_cast<int>(halves) << ", " << k << " rows in groups of " << group;
          EXPECT_LE(errors.digits, 1e-6);
        }
      }
    }
  });
}

// One row of a long sum, whose terms threads share: the team does not change the result, which is as exact as with
// several rows. Groups begin inside of a thread's terms or not.
TEST(WeightDigits, OneRowOfALongSum) {
  ForEachIsa([](const std::string& isa) {
    for (Halves halves : kForms) {
      for (const auto& [k, group] : {std::pair<int64_t, int64_t>{2048, 2048}, {1100, 1100}, {2048, 192}, {3000, 64}}) {
        const Random random(halves, k, 256, group);
        if (!DigitsFit(random.w)) continue;
        std::mt19937 bits(5);
        std::normal_distribution<float> normal;
        std::vector<float> a(k);
        for (float& x : a) x = normal(bits);
        EXPECT_LE(ErrorsOf(random, a, 1).digits, 1e-6) << isa << ", " << k << " rows in groups of " << group;
        std::vector<float> alone(256), shared(256);
        EXPECT_TRUE(MultiplyDigits(random.w, 1, a.data(), k, alone.data(), host_runtime::ThreadTeam(1)));
        for (int threads : {2, 3, 12}) {
          EXPECT_TRUE(MultiplyDigits(random.w, 1, a.data(), k, shared.data(), host_runtime::ThreadTeam(threads)));
          EXPECT_EQ(shared, alone) << isa << ", " << k << " rows in groups of " << group << ", " << threads;
        }
      }
    }
  });
}

// Each magnitude of the largest element, and a smaller one beside it whose bits do not all fit.
TEST(WeightDigits, PowersOfAllSizes) {
  ForEachIsa([](const std::string& isa) {
    const Random random(Halves::kDown, 16, 64, 16);
    for (int exponent = -100; exponent < 100; exponent += 7) {
      for (const float mantissa : {1.0f, 1.5f, 1.9921875f, 1.99609375f, std::nextafter(2.0f, 1.0f)}) {
        std::vector<float> a(16);
        a[3] = -std::ldexp(mantissa, exponent);
        a[8] = std::ldexp(1.2345678f, exponent - 9);
        EXPECT_LE(ErrorsOf(random, a, 1).digits, 1.5e-7) << isa << ", " << a[3];
      }
    }
  });
}

TEST(WeightDigits, OtherElementsRemainFloats) {
  ForEachIsa([](const std::string& isa) {
    for (Halves halves : kForms) {
      const Random random(halves, 256, 64, 128);
      for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN(), 1e31f, -1e31f, 1e-31f}) {
        for (const int64_t at : {0, 127, 128, 255}) {
          std::vector<float> a(512), c(2 * 64);
          a[256 + at] = value;
          EXPECT_FALSE(MultiplyDigits(random.w, 2, a.data(), 256, c.data(), host_runtime::ThreadTeam(1)))
              << isa << ", " << value << " at " << at;
        }
      }
      // Zeros, and small elements beside larger ones, are no reason.
      std::vector<float> a(256), c(64, -1);
      EXPECT_TRUE(MultiplyDigits(random.w, 1, a.data(), 256, c.data(), host_runtime::ThreadTeam(1)));
      for (float sum : c) EXPECT_EQ(sum, 0);
      a[130] = 1, a[131] = 1e-35f;
      EXPECT_TRUE(MultiplyDigits(random.w, 1, a.data(), 256, c.data(), host_runtime::ThreadTeam(1)));
      for (int64_t j = 0; j < 64; ++j) EXPECT_EQ(c[j], random.w.At(130, j));
    }
  });
}

TEST(WeightDigits, GroupsThatCutQuadsDoNotFit) {
  ForEachIsa([](const std::string&) {
    EXPECT_TRUE(DigitsFit(Random(Halves::kAcross, 64, 8, 4).w));
    EXPECT_FALSE(DigitsFit(Random(Halves::kAcross, 64, 8, 6).w));
    EXPECT_TRUE(DigitsFit(Random(Halves::kDown, 64, 8, 8).w));
    EXPECT_FALSE(DigitsFit(Random(Halves::kDown, 64, 8, 12).w));
    EXPECT_TRUE(DigitsFit(Random(Halves::kTurned, 512, 8, 256).w));
    EXPECT_FALSE(DigitsFit(Random(Halves::kTurned, 512, 8, 64).w));
    EXPECT_TRUE(DigitsFit(Random(Halves::kTurned, 63, 8, 63).w));
  });
  const ScopedIsa use(Isa::kBaseline);
  EXPECT_FALSE(DigitsFit(Random(Halves::kAcross, 64, 8, 4).w));
}

}  // namespace
}  // namespace xpu::cpu
