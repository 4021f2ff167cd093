// How a product is divided among threads, and panels whose last vector is not full.
#include "tensorflow_plugin/backends/cpu/matmul/panels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

struct Size {
  int64_t m, n, k;
};
// Products of MobileNets, and some that no tile divides.
constexpr Size kSizes[] = {{12544, 16, 96}, {3136, 96, 24}, {784, 32, 144},  {196, 64, 192},   {196, 40, 240},
                           {49, 160, 960},  {49, 320, 960}, {49, 1280, 320}, {25, 1000, 1024}, {131, 77, 61}};

TEST(PanelParts, CoverEachRowOfEachPanelOnce) {
  for (const Size& size : kSizes) {
    for (const int threads : {1, 2, 3, 16, 64}) {
      for (const int flags : {0, 1, 2, 3}) {
        const bool is_packed = (flags & 1) != 0, on_whole_rows = (flags & 2) != 0;
        const PanelParts parts(size.m, size.n, size.k, is_packed, on_whole_rows, threads);
        const int64_t panels = parts.at(parts.count() - 1).last_panel;
        std::vector<int> seen(size.m * panels);
        for (int64_t i = 0; i < parts.count(); ++i) {
          const auto [row, rows, first, last] = parts.at(i);
          ASSERT_GT(rows, 0);
          ASSERT_LT(first, last);
          if (on_whole_rows) {
            EXPECT_EQ(last - first, panels);
          }
          for (int64_t r = row; r < row + rows; ++r) {
            for (int64_t panel = first; panel < last; ++panel) ++seen[r * panels + panel];
          }
        }
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int64_t>(seen.size()))
            << size.m << " x " << size.n << " x " << size.k << ", " << threads << " threads";
      }
    }
  }
}

TEST(PanelParts, TwoThreadsHaveTheSameShare) {
  for (const Size& size : kSizes) {
    for (const bool is_packed : {false, true}) {
      const PanelParts parts(size.m, size.n, size.k, is_packed, false, 2);
      EXPECT_GE(parts.count(), 2) << size.m;
      EXPECT_LE(parts.count() % 2 * 20, parts.count()) << size.m << " x " << size.n << " x " << size.k;
      EXPECT_LE(parts.grain() * 2, parts.count()) << size.m;
    }
  }
}

// Parts in the first half are of the first rows, so that the next command finds them in the thread's cache. Where `b`
// is large they are of the first panels, and the threads have at most one panel in common.
TEST(PanelParts, SharesAreOfRowsUnlessTheMatrixIsLarge) {
  for (const Size& size : kSizes) {
    const PanelParts parts(size.m, size.n, size.k, /*is_packed=*/true, false, 2);
    const PanelParts::Part before = parts.at(parts.count() / 2 - 1), after = parts.at((parts.count() + 1) / 2);
    const bool is_large = size.n * size.k > 200'000;  // the three last ones of a MobileNet
    if (is_large) {
      EXPECT_LE(before.last_panel, after.first_panel + 1) << size.m << " x " << size.n << " x " << size.k;
    } else {
      EXPECT_LE(before.row + before.rows, after.row) << size.m << " x " << size.n << " x " << size.k;
    }
  }
}

TEST(PanelParts, LittleWorkIsOneShare) {
  const PanelParts parts(24, 64, 32, false, false, 8);
  EXPECT_GE(parts.grain(), parts.count());
}

TEST(PanelMatrix, MultiplyAllColumns) {
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (!HasIsa(isa)) continue;
    const ScopedIsa use(isa);
    for (const int64_t n : {4, 8, 9, 16, 23, 24, 25, 40, 56, 72, 88, 120, 127}) {
      // The sums of the second size are added up in three slices of terms.
      for (const auto [m, k] : {std::pair<int64_t, int64_t>{12, 19}, {29, 1100}}) {
        std::vector<float> a(m * k), b(k * n), c(m * n + 1, -7);
        for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
        for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 5 % 19) - 9);
        std::vector<float> packed(PanelMatrix::Elements(k, n));
        PanelMatrix::Pack(k, n, b.data(), packed.data());
        const PanelMatrix panels(k, n, packed.data());
        for (int64_t panel = 0; panel < panels.count(); ++panel) {
          panels.MultiplyBy(panel, m, RowTerms::InOnePiece(k), a.data(), k, c.data(), n, 0, nullptr);
        }
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;  // exact: the numbers are small integers
            for (int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
            ASSERT_EQ(c[i * n + j], sum) << Name(isa) << ", " << n << " columns, row " << i << ", column " << j;
          }
        }
        EXPECT_EQ(c.back(), -7) << "something was written behind the result";
        std::vector<float> some(m * n, -7);
        panels.MultiplySome(0, panels.count(), m, a.data(), k, some.data(), 0, nullptr);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), c.begin())) << Name(isa) << ", " << n << " columns";
      }
    }
  }
}

}  // namespace
}  // namespace xpu::cpu
