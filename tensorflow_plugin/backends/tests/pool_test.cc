#include <cmath>

#include "tensorflow_plugin/backends/host/isa.h"
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

std::vector<Array> Forward(PoolDesc d, const Array& x) {
  d.gradient = false;
  d.type = x.type();
  return CompareBackends(d, {x}, {{d.type, YSize(d)}}, 8,
                         errors::Concat("pool ", static_cast<int>(d.kind), " rank ", d.spatial_rank, " channels ",
                                        d.channels, " order ", static_cast<int>(d.order)));
}

std::vector<Array> Gradient(PoolDesc d, const Array& x, const Array& y, const Array& dy) {
  d.gradient = true;
  d.type = x.type();
  std::vector<Array> in = {dy};
  if (d.kind == PoolKind::kMax) in = {x, y, dy};
  return CompareBackends(d, in, {{d.type, XSize(d)}}, 32,
                         errors::Concat("pool gradient ", static_cast<int>(d.kind), " rank ", d.spatial_rank,
                                        " channels ", d.channels, " order ", static_cast<int>(d.order)));
}

TEST(Pool, ByHand) {
  PoolDesc d = Make({{3, 2, 2, 0, 1}, {3, 2, 1}}, 1, 1);
  const Array x = Values(DType::kFloat, {1, 2, 3, 4, 4, 6, 7, 8, 9}), dy = Values(DType::kFloat, {1, 10, 100, 1000});
  const std::vector<Array> max = Forward(d, x);
  ExpectClose(max[0], Values(DType::kFloat, {4, 6, 8, 9}), {}, "maximum");
  // The window {1, 2, 4, 4} has its first 4 at the left.
  ExpectClose(Gradient(d, x, max[0], dy)[0], Values(DType::kFloat, {0, 0, 0, 1, 0, 10, 0, 100, 1000}), {},
              "max gradient");
  d.kind = PoolKind::kAverage;
  ExpectClose(Forward(d, x)[0], Values(DType::kFloat, {2.75, 3.75, 7.5, 8.5}), {}, "average");
  ExpectClose(Gradient(d, x, x, dy)[0], Values(DType::kFloat, {0.25, 2.75, 2.5, 0.25, 2.75, 2.5, 50, 550, 500}), {},
              "average gradient");
}

// As TensorFlow's CPU kernels: NaN never wins a maximum, which starts at the lowest finite value; a gradient goes to
// a NaN only where the window starts with it.
TEST(Pool, NanAndInfinity) {
  const PoolDesc d = Make({{3, 3, 3}}, 5, 1);
  const double inf = INFINITY, lowest = std::numeric_limits<float>::lowest();
  const Array x = Values(DType::kFloat, {NAN, 1, 2, 1, NAN, 2, NAN, NAN, NAN, -inf, -inf, -inf, 1, inf, NAN});
  const std::vector<Array> y = Forward(d, x);
  ExpectClose(y[0], Values(DType::kFloat, {2, 2, lowest, lowest, inf}), {}, "NaN");
  const Array dy = Values(DType::kFloat, {1, 2, 3, 4, 5});
  ExpectClose(Gradient(d, x, y[0], dy)[0], Values(DType::kFloat, {1, 0, 0, 0, 0, 2, 3, 0, 0, 4, 0, 0, 0, 5, 0}), {},
              "NaN gradient");
}

TEST(Pool, AllGeometriesTypesOrdersAndInstructionSets) {
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
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    host::ScopedIsa scoped(isa);
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
                  for (int64_t i = 0; i < x.size(); i += 2)
                    x.as<T>()[i] = T(static_cast<float>(coarse.as<int8_t>()[i]));
                }
              });
            }
            const std::vector<Array> y = Forward(d, x);
            Gradient(d, x, y[0], Random(t, YSize(d), 3));
          }
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
    auto value = [&] {
      PoolDesc f = d;
      f.type = DType::kDouble;
      Array y(DType::kDouble, YSize(d));
      Args args{};
      args.in[0] = x.data();
      args.out[0] = y.data();
      EXPECT_TRUE(reference::Kernels().Run(f, args, runtime::ThreadTeam(1)).ok());
      double sum = 0;
      for (int64_t i = 0; i < y.size(); ++i) sum += RealAt(y, i) * RealAt(dy, i);
      return sum;
    };
    const std::vector<Array> dx = Gradient(d, x, Forward(d, x)[0], dy);
    const double before = value();
    for (int64_t i = 0; i < x.size(); ++i) {
      x.as<double>()[i] += 1e-6;
      EXPECT_NEAR((value() - before) / 1e-6, RealAt(dx[0], i), 1e-6);
      x.as<double>()[i] -= 1e-6;
    }
  }
}

}  // namespace
}  // namespace xpu::testing
