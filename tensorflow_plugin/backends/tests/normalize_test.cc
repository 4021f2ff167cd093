#include <cmath>

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

std::vector<Output> Outputs(const NormalizeDesc& d, DType type) {
  const Output data = {type, d.batch * d.spatial * d.channels}, parameter = {DType::kFloat, d.channels};
  if (d.gradient) return {data, parameter, parameter};
  if (!d.training) return {data};
  return {data, parameter, parameter, parameter, parameter};
}

// The bounds, by channel. All is computed in float whatever the type; N elements, u the roundoff, ^ a mean over them:
//   mean m         dm = SumError(N + 1) ^|x|, with the division or the rounding of m
//   variance V     dV = SumError(N + 4) V + dm^2: a distance c = x - m errs by dm, which cancels in the sum of the
//                  squares but for its own square, and by a rounding, and its square by one more
//   inverse i      1 / sqrt(V + epsilon): ri = dV / (2 (V + epsilon)) + 4 u of itself
//   y              |scale| i (dm + |c| (ri + 3 u)) for the product, 2 u |y| + u |offset| for the sum
//   new_*          factor times what the statistic errs by, and 3 u of the parts; Bessel's correction takes two
//   roundings
// and of the gradient, for which the statistics are given, so that dm and dV are 0:
//   s = sum dy     ds = SumError(N) sum |dy|
//   t = sum dy c   dt = SumError(N + 2) sum |dy c|
//   dscale = t i   i dt + 6 u |dscale|
//   dx             |scale| i times what dy - s/N - c t/(N (V + epsilon)) errs by, which is (ds + 2 u |s|) / N, (|c| dt
//   +
//                  8 u |c t|) / (N (V + epsilon)) and 2 u of each of the three, and 8 u |dx|; in inference the last
//                  alone
// The exact values are computed in double and rounded to float: u of each value for that.
class ChannelBounds {
 public:
  // `in` as the descriptor says.
  ChannelBounds(const NormalizeDesc& d, const std::vector<Array>& in) : d_(d), in_(in) {}

  std::vector<Bound> Make(const std::vector<Array>& exact) {
    std::vector<Bound> bounds;
    for (const Array& out : exact) bounds.push_back({u, 0, std::vector<double>(out.size())});
    for (int64_t c = 0; c < d_.channels; ++c) d_.gradient ? Gradient(c, exact, &bounds) : Forward(c, exact, &bounds);
    return bounds;
  }

 private:
  static constexpr double u = 0x1p-24;

  template <typename F>
  void ForEach(int64_t c, F&& f) const {
    for (int64_t n = 0; n < d_.batch; ++n) {
      for (int64_t s = 0; s < d_.spatial; ++s) {
        f(d_.order == ChannelOrder::kLast ? (n * d_.spatial + s) * d_.channels + c
                                          : (n * d_.channels + c) * d_.spatial + s);
      }
    }
  }

  void Forward(int64_t c, const std::vector<Array>& exact, std::vector<Bound>* bounds) const {
    const Array& x = in_[0];
    const double scale = RealAt(in_[1], c), offset = RealAt(in_[2], c),
                 count = static_cast<double>(d_.batch * d_.spatial);
    double mean, variance, dm = 0, dv = 0;
    if (d_.training) {
      double sum = 0, magnitude = 0, squares = 0;
      ForEach(c, [&](int64_t i) { sum += RealAt(x, i), magnitude += std::abs(RealAt(x, i)); });
      mean = sum / count;
      ForEach(c, [&](int64_t i) { squares += (RealAt(x, i) - mean) * (RealAt(x, i) - mean); });
      variance = squares / count;
      dm = SumError(count + 1, DType::kFloat) * magnitude / count;
      dv = SumError(count + 4, DType::kFloat) * variance + dm * dm;
      const double bessel = count > 1 ? count / (count - 1) : 1, kept = d_.factor == 1 ? 0 : 1 - d_.factor;
      auto blend = [&](int output, double value, double error) {
        const double running = kept == 0 ? 0 : std::abs(RealAt(in_[2 + output], c)) * kept;
        (*bounds)[output].each[c] = d_.factor * error + 3 * u * (running + d_.factor * std::abs(value));
      };
      blend(1, mean, dm);
      blend(2, variance * bessel, (dv + 2 * u * variance) * bessel);
      (*bounds)[3].each[c] = dm;
      (*bounds)[4].each[c] = dv;
    } else {
      mean = RealAt(in_[3], c);
      variance = RealAt(in_[4], c);
    }
    const double inverse = 1 / std::sqrt(variance + d_.epsilon), ri = dv / (2 * (variance + d_.epsilon)) + 4 * u;
    ForEach(c, [&](int64_t i) {
      const double of_product = std::abs(scale) * inverse * (dm + std::abs(RealAt(x, i) - mean) * (ri + 3 * u));
      (*bounds)[0].each[i] = of_product + 2 * u * std::abs(RealAt(exact[0], i)) + u * std::abs(offset);
    });
  }

  void Gradient(int64_t c, const std::vector<Array>& exact, std::vector<Bound>* bounds) const {
    const Array &dy = in_[0], &x = in_[1];
    const double mean = RealAt(in_[3], c), variance = RealAt(in_[4], c) + d_.epsilon;
    const double scale = std::abs(RealAt(in_[2], c)) / std::sqrt(variance);
    const double count = static_cast<double>(d_.batch * d_.spatial);
    double s = 0, t = 0, s_magnitude = 0, t_magnitude = 0;
    ForEach(c, [&](int64_t i) {
      const double g = RealAt(dy, i), product = g * (RealAt(x, i) - mean);
      s += g, t += product, s_magnitude += std::abs(g), t_magnitude += std::abs(product);
    });
    const double ds = SumError(count, DType::kFloat) * s_magnitude;
    const double dt = SumError(count + 2, DType::kFloat) * t_magnitude;
    (*bounds)[1].each[c] = dt / std::sqrt(variance) + 6 * u * std::abs(RealAt(exact[1], c));
    (*bounds)[2].each[c] = ds;
    ForEach(c, [&](int64_t i) {
      double& bound = (*bounds)[0].each[i];
      bound = 8 * u * std::abs(RealAt(exact[0], i));
      if (!d_.training) return;
      const double away = std::abs(RealAt(x, i) - mean), slope = std::abs(t) / (count * variance);
      bound += scale * ((ds + 2 * u * std::abs(s)) / count + away * (dt / (count * variance) + 8 * u * slope) +
                        2 * u * (std::abs(RealAt(dy, i)) + std::abs(s) / count + away * slope));
    });
  }

  const NormalizeDesc& d_;
  const std::vector<Array>& in_;
};

// `in` as the descriptor says; data in its type.
void Compare(const NormalizeDesc& d, const std::vector<Array>& in, const std::string& what) {
  // The reference computes in double and gives float.
  NormalizeDesc wide = d;
  wide.type = DType::kFloat;
  std::vector<Array> wide_in;
  for (const Array& a : in) {
    Array as_float(DType::kFloat, a.size());
    for (int64_t i = 0; i < a.size(); ++i) as_float.as<float>()[i] = static_cast<float>(RealAt(a, i));
    wide_in.push_back(std::move(as_float));
  }
  Want want = AsTheReference(wide, wide_in, Outputs(d, DType::kFloat));
  want.bounds = ChannelBounds(d, in).Make(want.out);
  want.out[0] = Widened(want.out[0]);
  Expect(d, in, Outputs(d, d.type), want, what);
}

void CompareAll(NormalizeDesc d, double low = -4, double high = 4) {
  const int64_t n = d.batch * d.spatial * d.channels, c = d.channels;
  const Array x = Random(d.type, n, 1, low, high), dy = Random(d.type, n, 2, -1, 1);
  const Array scale = Random(DType::kFloat, c, 3), offset = Random(DType::kFloat, c, 4);
  const Array mean = Random(DType::kFloat, c, 5, (low + high) / 2 - 1, (low + high) / 2 + 1);
  const Array variance = Random(DType::kFloat, c, 6, 0.5, 2);
  for (bool training : {true, false}) {
    d.training = training;
    const std::string what = errors::Concat(d.batch, "x", d.spatial, "x", d.channels);
    d.gradient = false;
    for (float factor : {1.0f, 0.25f}) {
      d.factor = factor;
      Compare(d, {x, scale, offset, mean, variance}, what);
    }
    d.gradient = true;
    Compare(d, {dy, x, scale, mean, variance}, what);
  }
}

TEST(Normalize, ByHand) {
  NormalizeDesc d = Make(DType::kFloat, ChannelOrder::kLast, 2, 2, 1);
  d.epsilon = 0;
  d.factor = 0.5f;
  const Array x = Values(DType::kFloat, {1, 3, 5, 7}), one = Values(DType::kFloat, {1}),
              two = Values(DType::kFloat, {2});
  const double s = 2 / std::sqrt(5.0);  // mean 4, variance 5, with Bessel's correction 20 / 3
  const Bound rounded = {4 * 0x1p-24};
  ExpectByHand(d, {x, two, one, one, one}, Outputs(d, DType::kFloat),
               {{Values(DType::kDouble, {1 - 3 * s, 1 - s, 1 + s, 1 + 3 * s}), Values(DType::kDouble, {2.5}),
                 Values(DType::kDouble, {0.5 + 10.0 / 3}), Values(DType::kDouble, {4}), Values(DType::kDouble, {5})},
                {{4 * 0x1p-24, 0x1p-24}, rounded, rounded}},
               "by hand");
}

TEST(Normalize, FactorOneReadsNoRunningStatistics) {
  for (DType type : kTypes) {
    const NormalizeDesc d = Make(type, ChannelOrder::kLast, 2, 1, 1);
    const Array x = Values(type, {1, 3}), one = Values(DType::kFloat, {1}), nan = Values(DType::kFloat, {NAN});
    const double s = 1 / std::sqrt(1 + static_cast<double>(d.epsilon));
    for (const Array& running : {Array(), nan}) {  // no address at all, and one of what would spoil the result
      ExpectByHand(d, {x, one, one, running, running}, Outputs(d, type),
                   {{Values(DType::kDouble, {1 - s, 1 + s}), Values(DType::kFloat, {2}), Values(DType::kFloat, {2}),
                     Values(DType::kFloat, {2}), Values(DType::kFloat, {1})},
                    {{0, 8 * 0x1p-24}}},
                   "factor 1");
    }
  }
}

// sum(y * dy) differs by what the gradient says, in float: so the steps and the tolerance are large.
TEST(Normalize, ReferenceGradientIsTheDerivative) {
  for (bool training : {true, false}) {
    NormalizeDesc d = Make(DType::kFloat, ChannelOrder::kFirst, 3, 4, 2);
    d.training = training;
    Array x = Random(DType::kFloat, 24, 1), scale = Random(DType::kFloat, 2, 2, 1, 2);
    const Array dy = Random(DType::kFloat, 24, 3), zero = Values(DType::kFloat, {0, 0});
    const Array mean = Random(DType::kFloat, 2, 4), variance = Random(DType::kFloat, 2, 5, 1, 2);
    auto forward = [&] { return AsTheReference(d, {x, scale, zero, mean, variance}, Outputs(d, DType::kFloat)).out; };
    auto value = [&] {
      const Array y = forward()[0];
      double sum = 0;
      for (int i = 0; i < 24; ++i) sum += RealAt(y, i) * RealAt(dy, i);
      return sum;
    };
    NormalizeDesc g = d;
    g.gradient = true;
    const std::vector<Array> out =
        AsTheReference(g, {dy, x, scale, training ? forward()[3] : mean, training ? forward()[4] : variance},
                       Outputs(g, DType::kFloat))
            .out;
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

TEST(Normalize, AllTypesOrdersAndShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},   {2, 9, 3},     {4, 1, 17},  {3, 50, 64}, {2, 77, 130},
                               {5, 49, 10}, {1, 20000, 2}, {300, 7, 5}, {9, 1, 600}, {1, 1, 40}};
  for (DType type : kTypes) {
    for (ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
      for (const auto& s : shapes) CompareAll(Make(type, order, s[0], s[1], s[2]));
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
