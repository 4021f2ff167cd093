#include "tensorflow_plugin/backends/cpu/matmul/few_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace xpu::cpu {
namespace {

using host_runtime::ThreadTeam;

// Products of m rows and a matrix of k x n that is so large that threads share its terms, on so many threads.
std::vector<float> ProductOn(int threads, int64_t m, int64_t n, int64_t k, const std::vector<float>& a,
                             const std::vector<float>& b) {
  std::vector<float> c(m * n, -1);
  MultiplyFewRows<float>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, {c.data(), n, 1}, ThreadTeam(threads));
  return c;
}

std::vector<float> Numbers(int64_t n, uint32_t seed) {
  std::vector<float> numbers(n);
  for (float& x : numbers) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
  }
  return numbers;
}

// Terms make whole blocks or not. Columns make whole vectors and pieces or not.
constexpr int64_t kSizes[][2] = {{1024, 256}, {1000, 600}, {70, 5000}, {131, 1037}, {4100, 257}};  // n, k

TEST(FewRows, TheTeamDoesNotChangeResults) {
  for (const auto& [n, k] : kSizes) {
    for (int64_t m = 1; m <= kMaxFewRows; ++m) {
      const std::vector<float> a = Numbers(m * k, 1), b = Numbers(k * n, 2), alone = ProductOn(1, m, n, k, a, b);
      for (int threads : {2, 3, 8, 40}) EXPECT_EQ(ProductOn(threads, m, n, k, a, b), alone) << n << " " << k;
    }
  }
}

TEST(FewRows, LargeMatrices) {
  for (const auto& [n, k] : kSizes) {
    const int64_t m = 3;
    const std::vector<float> a = Numbers(m * k, 3), b = Numbers(k * n, 4), c = ProductOn(2, m, n, k, a, b);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, sizes = 0;
        for (int64_t l = 0; l < k; ++l) {
          const double term = static_cast<double>(a[i * k + l]) * b[l * n + j];
          sum += term;
          sizes += std::abs(term);
        }
        ASSERT_NEAR(c[i * n + j], sum, sizes * 1e-6) << n << " " << k << " at " << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace xpu::cpu
