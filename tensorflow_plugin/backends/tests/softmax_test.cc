#include <cmath>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

const DType kTypes[] = {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16};

SoftmaxDesc Make(SoftmaxKind kind, DType type, int64_t rows, int64_t cols) {
  SoftmaxDesc d;
  d.kind = kind;
  d.type = type;
  d.rows = rows;
  d.cols = cols;
  d.logits_row_stride = d.labels_row_stride = cols;
  return d;
}

// Some of them out of range: -1 and cols.
Array Labels(DType type, int64_t rows, int64_t cols) {
  std::vector<double> labels;
  for (int64_t r = 0; r < rows; ++r) labels.push_back(static_cast<double>((r * 7 + 3) % (cols + 2) - 1));
  return Values(type, labels);
}

bool IsCrossEntropy(SoftmaxKind kind) {
  return kind == SoftmaxKind::kCrossEntropy || kind == SoftmaxKind::kSparseCrossEntropy;
}

std::vector<Output> Outputs(const SoftmaxDesc& d, DType type) {
  if (!IsCrossEntropy(d.kind)) return {{type, d.rows * d.cols}};
  return {{type, d.rows}, {type, d.rows * d.cols}};
}

// The bounds, u being the roundoff and t = x - max the shifted logits of a row, whose subtraction errs by u|t|:
//   exp(t)             (|t| + 4) u of itself: an error of t is a relative one of its exponential, and the function may
//                      be two units in the last place off
//   S = sum of them    s = (mean |t| + 4) u + SumError(n) of itself, the mean weighted by the terms
//   p = exp(t) / S     r = (|t| + 4) u + s + 2 u of itself, for a reciprocal and a product; below the smallest normal
//                      number it may be 0
//   l = log S - t      a = s + 4 u |log S| + u |t| + u |l|, absolute, two units in the last place for the logarithm
//   plain              p: r p
//   log                -l: a
//   cross-entropy      sum of label l: the sum of |label| a, and SumError(n + 1) of the sum of |label l|
//                      p - label: r p + u |p - label|
//   sparse             the same for one label that is 1: l, and p or p - 1
// Where the exact value is computed in the same type, that is for double, twice as much.
class RowBounds {
 public:
  RowBounds(const SoftmaxDesc& d, const std::vector<Array>& in) : d_(d), in_(in) {
    const double factor = d.type == DType::kDouble ? 2 : 1;
    u_ = Roundoff(d.type) * factor;
    sum_error_ = SumError(static_cast<double>(d.cols + 1), d.type) * factor;
    tiny_ = d.type == DType::kDouble ? 0x1p-1022 : 0x1p-126;
  }

  std::vector<Bound> Make() {
    std::vector<double> loss, by_element;
    for (int64_t r = 0; r < d_.rows; ++r) {
      Prepare(r);
      double of_loss = 0;
      for (int64_t c = 0; c < d_.cols; ++c) {
        const double t = T(r, c), l = log_sum_ - t, p = std::exp(-l);
        const double of_p = p > 0 ? p * ((std::abs(t) + 6) * u_ + of_sum_) + tiny_ : tiny_;
        const double of_l = of_sum_ + u_ * (4 * std::abs(log_sum_) + std::abs(t) + std::abs(l));
        const double label = Label(r, c);
        if (label != 0) of_loss += std::abs(label) * of_l + sum_error_ * std::abs(label * l);
        by_element.push_back(d_.kind == SoftmaxKind::kLogSoftmax ? of_l : of_p + u_ * std::abs(p - label));
      }
      loss.push_back(of_loss);
    }
    if (!IsCrossEntropy(d_.kind)) return {{0, 0, by_element}};
    return {{0, 0, loss}, {0, 0, by_element}};
  }

 private:
  double Logit(int64_t r, int64_t c) const {
    if (d_.kind == SoftmaxKind::kCrossEntropy) {
      return RealAt(in_[0], r * d_.logits_row_stride + c * d_.logits_col_stride);
    }
    return RealAt(in_[0], r * d_.cols + c);
  }
  double T(int64_t r, int64_t c) const { return Logit(r, c) - max_; }
  double Label(int64_t r, int64_t c) const {
    if (d_.kind == SoftmaxKind::kCrossEntropy) {
      return RealAt(in_[1], r * d_.labels_row_stride + c * d_.labels_col_stride);
    }
    return d_.kind == SoftmaxKind::kSparseCrossEntropy && RealAt(in_[1], r) == static_cast<double>(c);
  }

  // The row's maximum, the logarithm of S, and s.
  void Prepare(int64_t r) {
    max_ = -INFINITY;
    for (int64_t c = 0; c < d_.cols; ++c) max_ = std::max(max_, Logit(r, c));
    double sum = 0, weighted = 0;
    for (int64_t c = 0; c < d_.cols; ++c) {
      const double t = T(r, c), e = std::exp(t);
      sum += e;
      if (e > 0) weighted += std::abs(t) * e;
    }
    log_sum_ = std::log(sum);
    of_sum_ = (weighted / sum + 4) * u_ + sum_error_;
  }

  const SoftmaxDesc& d_;
  const std::vector<Array>& in_;
  double u_, sum_error_, tiny_;
  double max_ = 0, log_sum_ = 0, of_sum_ = 0;
};

void Compare(const SoftmaxDesc& d, const std::vector<Array>& in, const std::string& what) {
  SoftmaxDesc wide = d;
  wide.type = Wide(d.type);
  const std::vector<Output> outputs = Outputs(d, d.type);
  Expect(d, in, outputs, {Exact(wide, in, outputs), RowBounds(d, in).Make()}, what);
}

void CompareAll(DType type, int64_t rows, int64_t cols, double range) {
  const Array logits = Random(type, rows * cols, 1, -range, range);
  const std::string what = errors::Concat(rows, "x", cols);
  for (SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
    Compare(Make(kind, type, rows, cols), {logits}, what);
  }
  Compare(Make(SoftmaxKind::kCrossEntropy, type, rows, cols), {logits, Random(type, rows * cols, 2, 0, 1)}, what);
  for (DType label_type : {DType::kInt32, DType::kInt64}) {
    SoftmaxDesc d = Make(SoftmaxKind::kSparseCrossEntropy, type, rows, cols);
    d.label_type = label_type;
    Compare(d, {logits, Labels(label_type, rows, cols)}, what + " labels " + Name(label_type));
  }
}

TEST(Softmax, ByHand) {
  const double third = std::log(3.0);  // softmax of {0, log 3} is {1/4, 3/4}
  const Array x = Values(DType::kDouble, {0, third, 1000, 1000});
  auto expect = [&](SoftmaxKind kind, const std::vector<Array>& in, const std::vector<std::vector<double>>& out) {
    const SoftmaxDesc d = Make(kind, DType::kDouble, 2, 2);
    Want want;
    for (const std::vector<double>& values : out) want.out.push_back(Values(DType::kDouble, values));
    want.bounds = RowBounds(d, in).Make();
    ExpectByHand(d, in, Outputs(d, DType::kDouble), want, "by hand");
  };
  expect(SoftmaxKind::kSoftmax, {x}, {{0.25, 0.75, 0.5, 0.5}});
  expect(SoftmaxKind::kLogSoftmax, {x}, {{-std::log(4.0), std::log(0.75), -std::log(2.0), -std::log(2.0)}});
  expect(SoftmaxKind::kCrossEntropy, {x, Values(DType::kDouble, {0.5, 0.5, 1, 0})},
         {{0.5 * std::log(4.0) - 0.5 * std::log(0.75), std::log(2.0)}, {-0.25, 0.25, -0.5, 0.5}});
  expect(SoftmaxKind::kSparseCrossEntropy, {x, Values(DType::kInt64, {1, 2})},  // the second is outside
         {{-std::log(0.75), NAN}, {0.25, -0.25, NAN, NAN}});
}

TEST(Softmax, BackpropIsTheDerivativeOfTheLoss) {
  const SoftmaxDesc d = Make(SoftmaxKind::kCrossEntropy, DType::kDouble, 1, 5);
  Array x = Random(DType::kDouble, 5, 1);
  const Array labels = Values(DType::kDouble, {0.1, 0.2, 0.3, 0.4, 0});
  auto run = [&] { return AsTheReference(d, {x, labels}, Outputs(d, DType::kDouble)).out; };
  const Array backprop = run()[1];
  for (int i = 0; i < 5; ++i) {
    const double step = 1e-5, at = x.as<double>()[i];
    x.as<double>()[i] = at + step;
    const double above = RealAt(run()[0], 0);
    x.as<double>()[i] = at - step;
    const double below = RealAt(run()[0], 0);
    x.as<double>()[i] = at;
    EXPECT_NEAR((above - below) / (2 * step), RealAt(backprop, i), 1e-8);
  }
}

TEST(Softmax, AllTypesAndShapes) {
  for (DType type : kTypes) {
    const int64_t shapes[][2] = {{0, 5}, {1, 1}, {3, 10}, {5, 16}, {7, 33}, {40, 1000}, {2, 70000}};
    for (const auto& s : shapes) CompareAll(type, s[0], s[1], 4);
    CompareAll(type, 9, 21, 60);
  }
}

// A device may have a group of items for each row.
TEST(Softmax, RowsOfManyElements) { CompareAll(DType::kFloat, 3, 100, 4); }

TEST(Softmax, CrossEntropyBroadcasts) {
  for (DType type : kTypes) {
    SoftmaxDesc d = Make(SoftmaxKind::kCrossEntropy, type, 6, 20);
    d.labels_row_stride = 0;  // one row of labels for all
    Compare(d, {Random(type, 120, 1), Random(type, 20, 2, 0, 1)}, "labels row");
    d.logits_row_stride = 1;  // one logit per row
    d.logits_col_stride = 0;
    Compare(d, {Random(type, 6, 1), Random(type, 20, 2, 0, 1)}, "logits column");
  }
}

TEST(Softmax, InfinitiesAndNan) {
  const double inf = INFINITY;
  for (DType type : kTypes) {
    const Array x = Values(type, {-inf, 0, 1, 1, NAN, 2, -inf, -inf, -inf, inf, 0, 1, -1e4, 1e4, 0});
    for (SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
      Compare(Make(kind, type, 5, 3), {x}, "infinities");
    }
  }
}

}  // namespace
}  // namespace xpu::testing
