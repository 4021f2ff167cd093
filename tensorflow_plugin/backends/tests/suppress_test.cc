#include <limits>
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

SelectBoxesDesc MakeSelection(int64_t batch, int64_t n, int64_t box_sets, int64_t classes, int64_t most_of_class,
                              int64_t rows) {
  SelectBoxesDesc d;
  d.batch = batch, d.n = n, d.box_sets = box_sets, d.classes = classes, d.most_of_class = most_of_class, d.rows = rows;
  d.threshold = 0.5f, d.least = 0.1f;
  return d;
}

std::vector<Output> ResultsOf(const SelectBoxesDesc& d) {
  return {{DType::kFloat, d.batch * d.rows * 4},
          {DType::kFloat, d.batch * d.rows},
          {DType::kFloat, d.batch * d.rows},
          {DType::kInt32, d.batch}};
}

void ExpectSelected(const SelectBoxesDesc& d, const Array& boxes, const std::vector<double>& scores,
                    const std::vector<double>& want_boxes, const std::vector<double>& want_scores,
                    const std::vector<double>& classes, const std::vector<double>& counts) {
  const Want want = {{Values(DType::kFloat, want_boxes), Values(DType::kFloat, want_scores),
                      Values(DType::kFloat, classes), Values(DType::kInt32, counts)}};
  ExpectByHand(d, {boxes, Values(DType::kFloat, scores)}, ResultsOf(d), want, "by hand");
}

// The second box covers most of the first, the third lies apart and outside of the image.
TEST(SelectBoxes, OfTwoClasses) {
  const Array boxes = Values(DType::kFloat, {0, 0, 1, 1, 0, 0, 1, 0.875, -1, -1, 2, -0.5});
  // By box: the scores of both classes.
  const std::vector<double> scores = {0.25, 0.75, 0.5, 0.0625, 0.125, 0.5};
  SelectBoxesDesc d = MakeSelection(1, 3, 1, 2, 3, 5);
  // Class 1: boxes 0 and 2. Class 0: box 1 suppresses box 0, box 2 stays. Equal scores: class 0 comes first.
  ExpectSelected(d, boxes, scores, {0, 0, 1, 1, 0, 0, 1, 0.875, -1, -1, 2, -0.5, -1, -1, 2, -0.5, 0, 0, 0, 0},
                 {0.75, 0.5, 0.5, 0.125, 0}, {1, 0, 1, 0, 0}, {4});
  d.clip = true;
  ExpectSelected(d, boxes, scores, {0, 0, 1, 1, 0, 0, 1, 0.875, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0},
                 {0.75, 0.5, 0.5, 0.125, 0}, {1, 0, 1, 0, 0}, {4});
  d.most_of_class = 1, d.clip = false;
  ExpectSelected(d, boxes, scores, {0, 0, 1, 1, 0, 0, 1, 0.875, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                 {0.75, 0.5, 0, 0, 0}, {1, 0, 0, 0, 0}, {2});
  d = MakeSelection(1, 3, 1, 2, 3, 1);
  ExpectSelected(d, boxes, scores, {0, 0, 1, 1}, {0.75}, {1}, {1});
  d.least = 0.75f;  // a score of just that is none
  ExpectSelected(d, boxes, scores, {0, 0, 0, 0}, {0}, {0}, {0});
}

TEST(SelectBoxes, EachClassMayHaveItsOwn) {
  const Array boxes = Values(DType::kFloat, {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 4, 4, 5, 5});
  ExpectSelected(MakeSelection(1, 2, 2, 2, 2, 3), boxes, {0.5, 0.25, 0.375, 0.75}, {4, 4, 5, 5, 0, 0, 1, 1, 2, 2, 3, 3},
                 {0.75, 0.5, 0.25}, {1, 0, 1}, {3});
}

TEST(SelectBoxes, NoNumberIsNoScore) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const Array boxes = Values(DType::kFloat, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  SelectBoxesDesc d = MakeSelection(1, 3, 1, 1, 3, 3);
  d.least = -std::numeric_limits<float>::infinity();
  ExpectSelected(d, boxes, {nan, -2, -infinity}, {2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0}, {-2, 0, 0}, {0, 0, 0}, {1});
}

TEST(SelectBoxes, Sizes) {
  for (const int64_t n : {0, 1, 2, 15, 16, 17, 33, 300}) {
    for (const int64_t classes : {0, 1, 3, 20}) {
      for (const int64_t box_sets : {int64_t{1}, classes}) {
        for (const int64_t batch : {1, 4}) {
          SelectBoxesDesc d = MakeSelection(batch, n, box_sets, classes, n, 40);
          ExpectAsTheReference(d,
                               {Random(DType::kFloat, batch * n * box_sets * 4, 3, 0, 1),
                                Random(DType::kFloat, batch * n * classes, 4, 0, 1)},
                               ResultsOf(d), "boxes");
        }
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
