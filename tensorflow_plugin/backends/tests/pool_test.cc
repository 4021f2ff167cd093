#include <cmath>
#include <limits>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

struct Axis {
  int64_t input, window, stride = 1, before = 0, after = 0;
};

PoolDesc Make(std::vector<Axis> axes, int64_t batch, int64_t channels) {
  PoolDesc d;
  d.spatial_rank = static_cast<int>(axes.size());
  d.batch = batch;
  d.channels = channels;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    d.input[i] = a.input;
    d.window[i] = a.window;
    d.stride[i] = a.stride;
    d.pad_before[i] = a.before;
    d.pad_after[i] = a.after;
    d.output[i] = (a.input + a.before + a.after - a.window) / a.stride + 1;
  }
  return d;
}

int64_t XSize(const PoolDesc& d) { return d.batch * d.channels * d.input[0] * d.input[1] * d.input[2]; }
int64_t YSize(const PoolDesc& d) { return d.batch * d.channels * d.output[0] * d.output[1] * d.output[2]; }

std::string Describe(const PoolDesc& d) {
  return errors::Concat("rank ", d.spatial_rank, " channels ", d.channels, " order ", static_cast<int>(d.order));
}

// A maximum is exact. An average is a sum of the window's pixels, and a division: SumError(pixels + 1) of the mean
// magnitude. A pixel's gradient is the sum of those of the windows that it lies in, each after a division if the
// pooling averages. There are no more such windows than a window has pixels.
double Terms(const PoolDesc& d) { return static_cast<double>(d.window[0] * d.window[1] * d.window[2] + 1); }

PoolDesc Widened(PoolDesc d) {
  d.type = Wide(d.type);
  return d;
}

// In every variant as it should be; gives y if that is a maximum.
Array Forward(PoolDesc d, const Array& x) {
  d.gradient = false;
  d.type = x.type();
  const Output y = {d.type, YSize(d)};
  if (d.kind == PoolKind::kMax) return ExpectAsTheReference(d, {x}, {y}, Describe(d))[0];
  ExpectSums(d, Widened(d), {x}, y, Terms(d), Describe(d));
  return Array();  // of no use to the gradient
}

void Gradient(PoolDesc d, const Array& x, const Array& y, const Array& dy) {
  d.gradient = true;
  d.type = x.type();
  const Output dx = {d.type, XSize(d)};
  if (d.kind == PoolKind::kAverage) return ExpectSums(d, Widened(d), {dy}, dx, Terms(d), Describe(d));
  // Linear in dy alone.
  Want want{Exact(Widened(d), {x, y, dy}, {dx}), {}, Code::kOk, ""};
  if (IsFloating(d.type)) {
    const auto magnitudes = Exact(Widened(d), {x, y, Magnitudes(dy)}, {dx});
    want.bounds = {SumBound(magnitudes[0], Terms(d), d.type)};
  }
  Expect(d, {x, y, dy}, {dx}, want, Describe(d));
}

void ExpectByHand(PoolDesc d, bool gradient, const std::vector<Array>& in, const Array& want) {
  d.gradient = gradient;
  d.type = want.type();
  ExpectByHand(d, in, {{d.type, want.size()}}, {{want}}, "by hand");
}

TEST(Pool, ByHand) {
  for (DType type : {DType::kFloat, DType::kDouble, DType::kHalf, DType::kBFloat16}) {
    PoolDesc d = Make({{3, 2, 2, 0, 1}, {3, 2, 1}}, 1, 1);
    const Array x = Values(type, {1, 2, 3, 4, 4, 6, 7, 8, 9}), dy = Values(type, {1, 8, 96, 128});
    const Array y = Values(type, {4, 6, 8, 9});
    ExpectByHand(d, false, {x}, y);
    // The window {1, 2, 4, 4} has its first 4 at the left.
    ExpectByHand(d, true, {x, y, dy}, Values(type, {0, 0, 0, 1, 0, 8, 0, 96, 128}));
    d.kind = PoolKind::kAverage;
    ExpectByHand(d, false, {x}, Values(type, {2.75, 3.75, 7.5, 8.5}));
    ExpectByHand(d, true, {dy}, Values(type, {0.25, 2.25, 2, 0.25, 2.25, 2, 48, 112, 64}));
  }
}

// The first of equal maxima; a NaN where the window starts with one; none where there is nothing but padding.
TEST(Pool, PositionsByHand) {
  for (DType positions : {DType::kInt32, DType::kInt64}) {
    PoolDesc d = Make({{3, 2, 2, 0, 1}, {3, 2, 1}}, 2, 2);
    d.positions_type = positions;
    const Array x = Values(DType::kFloat, {1, 9, 2, 8, 3, 7, 4, 6, 4, 5, 6, 4, 7, 3, 8, 2, 9, 1,  //
                                           0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 6});
    testing::ExpectByHand(d, {x}, {{DType::kFloat, 16}, {positions, 16}},
                          {{Values(DType::kFloat, {4, 9, 6, 8, 8, 3, 9, 2, 0, 0, 0, 0, 5, 5, 5, 6}),
                            Values(positions, {6, 1, 10, 3, 14, 13, 16, 15, 0, 1, 2, 3, 12, 13, 14, 17})}},
                          "positions");
    d = Make({{3, 2, 2, 2, 1}}, 1, 1);
    d.positions_type = positions;
    testing::ExpectByHand(
        d, {Values(DType::kFloat, {NAN, 1, NAN})}, {{DType::kFloat, 3}, {positions, 3}},
        {{Values(DType::kFloat, {std::numeric_limits<float>::lowest(), NAN, NAN}), Values(positions, {-1, 0, 2})}},
        "positions of NaN");
  }
}

// As TensorFlow's CPU kernels: NaN never wins a maximum, which starts at the lowest finite value. A gradient goes to a
// NaN only where the window starts with it.
TEST(Pool, NanAndInfinity) {
  const PoolDesc d = Make({{3, 3, 3}}, 5, 1);
  const double inf = INFINITY, lowest = std::numeric_limits<float>::lowest();
  const Array x = Values(DType::kFloat, {NAN, 1, 2, 1, NAN, 2, NAN, NAN, NAN, -inf, -inf, -inf, 1, inf, NAN});
  const Array y = Values(DType::kFloat, {2, 2, lowest, lowest, inf});
  ExpectByHand(d, false, {x}, y);
  ExpectByHand(d, true, {x, y, Values(DType::kFloat, {1, 2, 3, 4, 5})},
               Values(DType::kFloat, {1, 0, 0, 0, 0, 2, 3, 0, 0, 4, 0, 0, 0, 5, 0}));
}

TEST(Pool, AllGeometriesTypesAndOrders) {
  const PoolDesc geometries[] = {
      Make({{7, 3, 2}}, 2, 5),
      Make({{8, 2, 2}, {8, 2, 2}}, 2, 16),
      Make({{9, 3, 2, 1, 1}, {7, 3, 1, 0, 2}}, 2, 37),
      Make({{9, 2, 4}, {10, 3, 5}}, 3, 3),  // stride beyond the window
      Make({{5, 5}, {6, 6}}, 1, 70),        // global
      Make({{3, 1, 2}, {3, 1, 1}}, 2, 4),
      Make({{4, 3, 1, 2, 2}, {4, 2, 2, 1, 1}, {5, 3, 2, 0, 0}}, 2, 6),
      Make({{4, 2, 2}, {4, 2, 2}}, 0, 4),
      Make({{4, 2, 2}, {4, 2, 2}}, 2, 0),
      Make({{2, 2, 3, 3, 3}, {2, 2, 2}}, 1, 2),  // windows of nothing but padding
  };
  for (PoolDesc d : geometries) {
    for (int type = static_cast<int>(DType::kInt8); type <= static_cast<int>(DType::kDouble); ++type) {
      for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
          d.order = order;
          d.kind = kind;
          // Few values, so that there are ties.
          const DType t = static_cast<DType>(type);
          Array x = Random(t, XSize(d), 1, 0, 100);
          if (IsFloating(t)) {
            x = Random(t, XSize(d), 1);
            const Array coarse = Random(DType::kInt8, XSize(d), 2);
            VisitType(t, [&](auto tag) {
              using T = typename decltype(tag)::type;
              if constexpr (IsFloating(DTypeOf<T>::value)) {
                for (int64_t i = 0; i < x.size(); i += 2) x.as<T>()[i] = T(static_cast<float>(coarse.as<int8_t>()[i]));
              }
            });
          }
          const Array y = Forward(d, x);
          if (kind == PoolKind::kMax && order == ChannelOrder::kLast) {
            PoolDesc with = d;
            with.type = t;
            for (DType positions : {DType::kInt32, DType::kInt64}) {
              with.positions_type = positions;
              ExpectAsTheReference(with, {x}, {{t, YSize(d)}, {positions, YSize(d)}}, Describe(d) + " positions");
            }
          }
          Gradient(d, x, y, IsFloating(t) ? Random(t, YSize(d), 3) : Random(t, YSize(d), 3, -20, 20));
        }
      }
    }
  }
}

TEST(Pool, ReferenceGradientIsTheDerivative) {
  for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    PoolDesc d = Make({{5, 3, 2, 1, 1}, {4, 2, 1, 0, 1}}, 2, 3);
    d.kind = kind;
    Array x = Random(DType::kDouble, XSize(d), 1);
    const Array dy = Random(DType::kDouble, YSize(d), 2);
    d.type = DType::kDouble;
    auto forward = [&] { return AsTheReference(d, {x}, {{d.type, YSize(d)}}).out[0]; };
    auto value = [&] {
      const Array y = forward();
      double sum = 0;
      for (int64_t i = 0; i < y.size(); ++i) sum += RealAt(y, i) * RealAt(dy, i);
      return sum;
    };
    PoolDesc g = d;
    g.gradient = true;
    const std::vector<Array> in =
        kind == PoolKind::kMax ? std::vector<Array>{x, forward(), dy} : std::vector<Array>{dy};
    const Array dx = AsTheReference(g, in, {{d.type, XSize(d)}}).out[0];
    const double before = value();
    for (int64_t i = 0; i < x.size(); ++i) {
      x.as<double>()[i] += 1e-6;
      EXPECT_NEAR((value() - before) / 1e-6, RealAt(dx, i), 1e-6);
      x.as<double>()[i] -= 1e-6;
    }
  }
}

}  // namespace
}  // namespace xpu::testing
