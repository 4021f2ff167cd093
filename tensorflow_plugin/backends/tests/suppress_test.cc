#include <cmath>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

SuppressDesc Make(int64_t n, int64_t most, float threshold, bool pairs = false) {
  SuppressDesc d;
  d.n = n, d.most = most, d.threshold = threshold, d.pairs = pairs;
  return d;
}

void ExpectKept(const SuppressDesc& d, const Array& in, const std::vector<double>& want) {
  ExpectByHand(d, {in}, {{DType::kBool, d.n}}, {{Values(DType::kBool, want)}}, "by hand");
}

TEST(Suppress, Boxes) {
  // The second covers half of the first, in any order of corners, and the third lies apart. The fourth is the third,
  // the fifth has no area, and the last is the first.
  const Array boxes = Values(DType::kFloat, {0, 0, 1, 2, 1, 1, 0, 0, 5, 5, 6, 6, 5, 5, 6, 6, 0, 0, 0, 2, 0, 0, 1, 2});
  ExpectKept(Make(6, 6, 0.5f), boxes, {1, 1, 1, 0, 1, 0});  // an overlap of just the threshold is none
  ExpectKept(Make(6, 6, 0.49f), boxes, {1, 0, 1, 0, 1, 0});
  ExpectKept(Make(6, 6, 1), boxes, {1, 1, 1, 1, 1, 1});
  ExpectKept(Make(6, 6, 0), boxes, {1, 0, 1, 0, 1, 0});
  ExpectKept(Make(6, 6, -0.5f), boxes, {1, 0, 0, 0, 0, 0});
  ExpectKept(Make(6, 2, 0.49f), boxes, {1, 0, 1, 0, 0, 0});
  ExpectKept(Make(6, 0, 0.49f), boxes, {0, 0, 0, 0, 0, 0});
}

// A suppressed candidate suppresses nothing.
TEST(Suppress, Pairs) {
  const Array overlaps = Values(DType::kFloat, {1, 0.9, 0.1, 0.9, 1, 0.9, 0.1, 0.9, 1});
  ExpectKept(Make(3, 3, 0.5f, true), overlaps, {1, 0, 1});
  ExpectKept(Make(3, 3, 0.95f, true), overlaps, {1, 1, 1});
  ExpectKept(Make(3, 1, 0.5f, true), overlaps, {1, 0, 0});
  // A candidate's own row is what counts.
  ExpectKept(Make(2, 2, 0.5f, true), Values(DType::kFloat, {0, 0, 1, 0}), {1, 0});
  ExpectKept(Make(2, 2, 0.5f, true), Values(DType::kFloat, {0, 1, 0, 0}), {1, 1});
}

TEST(Suppress, Sizes) {
  for (const int64_t n : {0, 1, 2, 17, 300, 1500}) {
    for (const float threshold : {0.1f, 0.5f}) {
      for (const int64_t most : {int64_t{5}, n}) {
        ExpectAsTheReference(Make(n, most, threshold), {Random(DType::kFloat, 4 * n, 3, 0, 1)}, {{DType::kBool, n}},
                             "boxes");
        if (n > 300) continue;
        ExpectAsTheReference(Make(n, most, threshold, true), {Random(DType::kFloat, n * n, 3, 0, 1)},
                             {{DType::kBool, n}}, "pairs");
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
