#include <cmath>

#include "tensorflow_plugin/backends/host/isa.h"
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

Array Labels(DType type, int64_t rows, int64_t cols) {
  Array labels(type, rows);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = (r * 7 + 3) % (cols + 2) - 1;  // -1 and cols are out of range
    type == DType::kInt32 ? void(labels.as<int32_t>()[r] = static_cast<int32_t>(label))
                          : void(labels.as<int64_t>()[r] = label);
  }
  return labels;
}

void CompareAll(DType type, int64_t rows, int64_t cols, double range) {
  const Array logits = Random(type, rows * cols, 1, -range, range);
  const std::string what = errors::Concat("softmax ", rows, "x", cols);
  for (SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
    CompareBackends(Make(kind, type, rows, cols), {logits}, {{type, rows * cols}}, 16, what);
  }
  CompareBackends(Make(SoftmaxKind::kCrossEntropy, type, rows, cols), {logits, Random(type, rows * cols, 2, 0, 1)},
                  {{type, rows}, {type, rows * cols}}, 16, what + " cross-entropy");
  for (DType label_type : {DType::kInt32, DType::kInt64}) {
    SoftmaxDesc d = Make(SoftmaxKind::kSparseCrossEntropy, type, rows, cols);
    d.label_type = label_type;
    CompareBackends(d, {logits, Labels(label_type, rows, cols)}, {{type, rows}, {type, rows * cols}}, 16,
                    what + " sparse cross-entropy");
  }
}

TEST(Softmax, ByHand) {
  const double third = std::log(3.0);  // softmax of {0, log 3} is {1/4, 3/4}
  const Array x = Values(DType::kDouble, {0, third, 1000, 1000});
  ExpectClose(CompareBackends(Make(SoftmaxKind::kSoftmax, DType::kDouble, 2, 2), {x}, {{DType::kDouble, 4}}, 1, "")[0],
              Values(DType::kDouble, {0.25, 0.75, 0.5, 0.5}), {1e-15, 1e-15}, "softmax");
  ExpectClose(
      CompareBackends(Make(SoftmaxKind::kLogSoftmax, DType::kDouble, 2, 2), {x}, {{DType::kDouble, 4}}, 1, "")[0],
      Values(DType::kDouble, {-std::log(4.0), std::log(0.75), -std::log(2.0), -std::log(2.0)}), {1e-15, 1e-15}, "log");
  const Array labels = Values(DType::kDouble, {0.5, 0.5, 1, 0});
  std::vector<Array> out = CompareBackends(Make(SoftmaxKind::kCrossEntropy, DType::kDouble, 2, 2), {x, labels},
                                           {{DType::kDouble, 2}, {DType::kDouble, 4}}, 1, "");
  ExpectClose(out[0], Values(DType::kDouble, {0.5 * std::log(4.0) - 0.5 * std::log(0.75), std::log(2.0)}),
              {1e-15, 1e-15}, "loss");
  ExpectClose(out[1], Values(DType::kDouble, {-0.25, 0.25, -0.5, 0.5}), {1e-15, 1e-15}, "backprop");
  Array sparse(DType::kInt64, 2);
  sparse.as<int64_t>()[0] = 1;
  sparse.as<int64_t>()[1] = 2;  // outside
  out = CompareBackends(Make(SoftmaxKind::kSparseCrossEntropy, DType::kDouble, 2, 2), {x, sparse},
                        {{DType::kDouble, 2}, {DType::kDouble, 4}}, 1, "");
  ExpectClose(out[0], Values(DType::kDouble, {-std::log(0.75), NAN}), {1e-15, 1e-15}, "sparse loss");
  ExpectClose(out[1], Values(DType::kDouble, {0.25, -0.25, NAN, NAN}), {1e-15, 1e-15}, "sparse backprop");
}

TEST(Softmax, BackpropIsTheDerivativeOfTheLoss) {
  const SoftmaxDesc d = Make(SoftmaxKind::kCrossEntropy, DType::kDouble, 1, 5);
  Array x = Random(DType::kDouble, 5, 1);
  const Array labels = Values(DType::kDouble, {0.1, 0.2, 0.3, 0.4, 0});
  auto loss = [&](Array* backprop) {
    Array value(DType::kDouble, 1);
    Args args{};
    args.in[0] = x.data();
    args.in[1] = labels.data();
    args.out[0] = value.data();
    args.out[1] = backprop->data();
    EXPECT_TRUE(reference::Kernels().Run(d, args, runtime::ThreadTeam(1)).ok());
    return RealAt(value, 0);
  };
  Array backprop(DType::kDouble, 5), ignored(DType::kDouble, 5);
  loss(&backprop);
  for (int i = 0; i < 5; ++i) {
    const double step = 1e-5, at = x.as<double>()[i];
    x.as<double>()[i] = at + step;
    const double above = loss(&ignored);
    x.as<double>()[i] = at - step;
    const double below = loss(&ignored);
    x.as<double>()[i] = at;
    EXPECT_NEAR((above - below) / (2 * step), RealAt(backprop, i), 1e-8);
  }
}

TEST(Softmax, AllTypesShapesAndInstructionSets) {
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    host::ScopedIsa scoped(isa);
    for (DType type : kTypes) {
      const int64_t shapes[][2] = {{0, 5}, {1, 1}, {3, 10}, {5, 16}, {7, 33}, {40, 1000}, {2, 70000}};
      for (const auto& s : shapes) CompareAll(type, s[0], s[1], 4);
      CompareAll(type, 9, 21, 60);
    }
  }
}

TEST(Softmax, CrossEntropyBroadcasts) {
  for (DType type : kTypes) {
    SoftmaxDesc d = Make(SoftmaxKind::kCrossEntropy, type, 6, 20);
    d.labels_row_stride = 0;  // one row of labels for all
    CompareBackends(d, {Random(type, 120, 1), Random(type, 20, 2, 0, 1)}, {{type, 6}, {type, 120}}, 16, "labels row");
    d.logits_row_stride = 1;  // one logit per row
    d.logits_col_stride = 0;
    CompareBackends(d, {Random(type, 6, 1), Random(type, 20, 2, 0, 1)}, {{type, 6}, {type, 120}}, 16, "logits column");
  }
}

TEST(Softmax, InfinitiesAndNan) {
  const double inf = INFINITY;
  for (DType type : kTypes) {
    const Array x = Values(type, {-inf, 0, 1, 1, NAN, 2, -inf, -inf, -inf, inf, 0, 1, -1e4, 1e4, 0});
    for (SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
      CompareBackends(Make(kind, type, 5, 3), {x}, {{type, 15}}, 16, "infinities");
    }
  }
}

}  // namespace
}  // namespace xpu::testing
