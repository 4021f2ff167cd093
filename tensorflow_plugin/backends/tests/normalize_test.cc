#include <cmath>

#include "tensorflow_plugin/backends/host/isa.h"
#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

const DType kTypes[] = {DType::kFloat, DType::kHalf, DType::kBFloat16};

NormalizeDesc Make(DType type, ChannelOrder order, int64_t batch, int64_t spatial, int64_t channels) {
  NormalizeDesc d;
  d.type = type;
  d.order = order;
  d.batch = batch;
  d.spatial = spatial;
  d.channels = channels;
  return d;
}

void CompareAll(NormalizeDesc d, double low = -4, double high = 4) {
  const int64_t n = d.batch * d.spatial * d.channels, c = d.channels;
  const Array x = Random(d.type, n, 1, low, high), dy = Random(d.type, n, 2, -1, 1);
  const Array scale = Random(DType::kFloat, c, 3), offset = Random(DType::kFloat, c, 4);
  const Array mean = Random(DType::kFloat, c, 5, -1, 1), variance = Random(DType::kFloat, c, 6, 0.5, 2);
  const double tolerance = 64 + 2 * std::abs(high);
  for (bool training : {true, false}) {
    d.training = training;
    const std::string what =
        errors::Concat("normalize ", d.batch, "x", d.spatial, "x", d.channels, training ? " training" : " inference");
    std::vector<std::pair<DType, int64_t>> out = {{d.type, n}};
    if (training) out.insert(out.end(), 4, {DType::kFloat, c});
    d.gradient = false;
    for (float factor : {1.0f, 0.25f}) {
      d.factor = factor;
      CompareBackends(d, {x, scale, offset, mean, variance}, out, tolerance, what);
    }
    d.gradient = true;
    CompareBackends(d, {dy, x, scale, mean, variance}, {{d.type, n}, {DType::kFloat, c}, {DType::kFloat, c}},
                    64 + 2.0 * static_cast<double>(d.batch * d.spatial), what + " gradient");
  }
}

TEST(Normalize, ByHand) {
  NormalizeDesc d = Make(DType::kFloat, ChannelOrder::kLast, 2, 2, 1);
  d.epsilon = 0;
  d.factor = 0.5f;
  const Array x = Values(DType::kFloat, {1, 3, 5, 7}), one = Values(DType::kFloat, {1}),
              two = Values(DType::kFloat, {2});
  const std::vector<Array> out = CompareBackends(
      d, {x, two, one, one, one},
      {{DType::kFloat, 4}, {DType::kFloat, 1}, {DType::kFloat, 1}, {DType::kFloat, 1}, {DType::kFloat, 1}}, 1, "");
  const double s = 2 / std::sqrt(5.0);  // mean 4, variance 5, with Bessel's correction 20 / 3
  ExpectClose(out[0], Values(DType::kFloat, {1 - 3 * s, 1 - s, 1 + s, 1 + 3 * s}), {1e-6, 1e-6}, "y");
  ExpectClose(out[1], Values(DType::kFloat, {2.5}), {1e-6, 0}, "new mean");
  ExpectClose(out[2], Values(DType::kFloat, {0.5 + 10.0 / 3}), {1e-6, 0}, "new variance");
  ExpectClose(out[3], Values(DType::kFloat, {4}), {}, "saved mean");
  ExpectClose(out[4], Values(DType::kFloat, {5}), {}, "saved variance");
}

TEST(Normalize, FactorOneReadsNoRunningStatistics) {
  for (const runtime::KernelSet* kernels : {static_cast<const runtime::KernelSet*>(&reference::Kernels()),
                                            static_cast<const runtime::KernelSet*>(&host::Kernels())}) {
    const Array x = Values(DType::kFloat, {1, 3}), one = Values(DType::kFloat, {1});
    Array y(DType::kFloat, 2), mean(DType::kFloat, 1), variance(DType::kFloat, 1), saved(DType::kFloat, 2);
    Args args{};
    args.in[0] = x.data();
    args.in[1] = args.in[2] = one.data();
    args.out[0] = y.data();
    args.out[1] = mean.data();
    args.out[2] = variance.data();
    args.out[3] = saved.data();
    args.out[4] = saved.as<float>() + 1;
    const NormalizeDesc d = Make(DType::kFloat, ChannelOrder::kLast, 2, 1, 1);
    ASSERT_TRUE(kernels->Run(d, args, runtime::ThreadTeam(1)).ok());
    EXPECT_EQ(RealAt(mean, 0), 2);
    EXPECT_EQ(RealAt(variance, 0), 2);
  }
}

// sum(y * dy) differs by what the gradient says, in float: so the steps and the tolerance are large.
TEST(Normalize, ReferenceGradientIsTheDerivative) {
  for (bool training : {true, false}) {
    NormalizeDesc d = Make(DType::kFloat, ChannelOrder::kFirst, 3, 4, 2);
    d.training = training;
    Array x = Random(DType::kFloat, 24, 1), scale = Random(DType::kFloat, 2, 2, 1, 2);
    const Array dy = Random(DType::kFloat, 24, 3), mean = Random(DType::kFloat, 2, 4);
    const Array variance = Random(DType::kFloat, 2, 5, 1, 2);
    Array saved_mean = mean, saved_variance = variance;
    auto value = [&] {
      Array y(DType::kFloat, 24), ignored(DType::kFloat, 2), ignored_too(DType::kFloat, 2);
      Array offset = Values(DType::kFloat, {0, 0});
      Args args{};
      const Array* in[] = {&x, &scale, &offset, &mean, &variance};
      for (int i = 0; i < 5; ++i) args.in[i] = in[i]->data();
      Array* out[] = {&y, &ignored, &ignored_too, &saved_mean, &saved_variance};
      for (int i = 0; i < 5; ++i) args.out[i] = out[i]->data();
      EXPECT_TRUE(reference::Kernels().Run(d, args, runtime::ThreadTeam(1)).ok());
      double sum = 0;
      for (int i = 0; i < 24; ++i) sum += RealAt(y, i) * RealAt(dy, i);
      return sum;
    };
    value();
    NormalizeDesc g = d;
    g.gradient = true;
    const std::vector<Array> out =
        CompareBackends(g, {dy, x, scale, saved_mean, saved_variance},
                        {{DType::kFloat, 24}, {DType::kFloat, 2}, {DType::kFloat, 2}}, 64, "gradient");
    for (Array* v : {&x, &scale}) {
      for (int64_t i = 0; i < v->size(); ++i) {
        const float at = v->as<float>()[i], step = 0.01f;
        v->as<float>()[i] = at + step;
        const double above = value();
        v->as<float>()[i] = at - step;
        const double below = value();
        v->as<float>()[i] = at;
        EXPECT_NEAR((above - below) / (2 * step), RealAt(v == &x ? out[0] : out[1], i), 2e-3);
      }
    }
  }
}

TEST(Normalize, AllTypesOrdersShapesAndInstructionSets) {
  const int64_t shapes[][3] = {{1, 1, 1},   {2, 9, 3},     {4, 1, 17},  {3, 50, 64}, {2, 77, 130},
                               {5, 49, 10}, {1, 20000, 2}, {300, 7, 5}, {9, 1, 600}, {1, 1, 40}};
  for (host::Isa isa : {host::Isa::kBaseline, host::Isa::kAvx2, host::Isa::kAvx512}) {
    if (!host::HasIsa(isa)) continue;
    host::ScopedIsa scoped(isa);
    for (DType type : kTypes) {
      for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
        for (const auto& s : shapes) CompareAll(Make(type, order, s[0], s[1], s[2]));
      }
    }
  }
}

// The variance must not drown in the square of the mean.
TEST(Normalize, LargeMean) { CompareAll(Make(DType::kFloat, ChannelOrder::kLast, 100, 10, 3), 1000, 1001); }

TEST(Normalize, Empty) {
  for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
    CompareAll(Make(DType::kFloat, order, 0, 4, 3));
    CompareAll(Make(DType::kFloat, order, 2, 4, 0));
  }
}

}  // namespace
}  // namespace xpu::testing
