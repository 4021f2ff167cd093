#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

constexpr Outside kOutsides[] = {Outside::kEdge, Outside::kFill, Outside::kPixels};
constexpr SampleKind kKinds[] = {SampleKind::kNearest, SampleKind::kBilinear};

int64_t ImagesSize(const SampleDesc& d) { return d.images * d.height * d.width * d.channels; }
int64_t NumPoints(const SampleDesc& d) { return d.batch * d.out_h * d.out_w; }
int64_t ResultSize(const SampleDesc& d) { return NumPoints(d) * d.channels; }

// The elements that the coordinates' strides reach.
int64_t Reach(const SampleDesc& d, const Dims& strides) {
  if (NumPoints(d) == 0) return 0;
  return 1 + (d.batch - 1) * strides[0] + (d.out_h - 1) * strides[1] + (d.out_w - 1) * strides[2];
}

SampleDesc Make(int64_t images, int64_t height, int64_t width, int64_t channels, int64_t batch, int64_t out_h,
                int64_t out_w, bool grid) {
  SampleDesc d;
  d.images = images, d.height = height, d.width = width, d.channels = channels;
  d.batch = batch, d.out_h = out_h, d.out_w = out_w;
  d.numbered = images != batch;
  d.fill = 2.5f;
  d.y_strides = grid ? Dims{0, 1, 0} : Dims{out_h * out_w, out_w, 1};
  d.x_strides = grid ? Dims{out_w, 0, 1} : Dims{out_h * out_w, out_w, 1};
  return d;
}

// Coordinates within and beyond an extent, many of them at pixels and half way between.
Array Coordinates(int64_t n, int64_t extent, uint32_t seed) {
  Array a = Random(DType::kFloat, n, seed, -2, static_cast<double>(extent) + 1);
  for (int64_t i = 0; i < n; ++i) {
    float& at = a.as<float>()[i];
    if (i % 3 != 0) at = std::round(at * 2) / 2;
  }
  return a;
}

Array Numbers(const SampleDesc& d, uint32_t seed) {
  if (!d.numbered) return Array();
  return Random(DType::kInt32, d.batch, seed, 0, static_cast<double>(d.images));
}

std::vector<Array> Points(const SampleDesc& d) {
  return {Coordinates(Reach(d, d.y_strides), d.height, 2), Coordinates(Reach(d, d.x_strides), d.width, 3),
          Numbers(d, 4)};
}

std::vector<Array> Behind(std::vector<Array> first, const std::vector<Array>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

std::string Describe(const SampleDesc& d) {
  return errors::Concat(d.images, "x", d.height, "x", d.width, "x", d.channels, " at ", d.batch, "x", d.out_h, "x",
                        d.out_w, " outside ", static_cast<int>(d.outside));
}

std::vector<SampleDesc> Cases() {
  std::vector<SampleDesc> cases;
  for (const bool grid : {true, false}) {
    cases.push_back(Make(2, 4, 5, 3, 2, 7, 6, grid));
    cases.push_back(Make(1, 1, 1, 1, 1, 3, 2, grid));
    cases.push_back(Make(2, 5, 3, 4, 3, 2, 4, grid));
    cases.push_back(Make(1, 3, 6, 17, 1, 40, 30, grid));
    cases.push_back(Make(3, 9, 8, 1, 3, 3, 90, grid));
    cases.push_back(Make(2, 4, 4, 2, 0, 3, 3, grid));
    cases.push_back(Make(2, 4, 4, 0, 2, 3, 3, grid));
  }
  // Points of one row, and those of one image used for all.
  SampleDesc d = Make(2, 6, 5, 2, 2, 3, 4, false);
  d.y_strides = {0, 4, 1};
  cases.push_back(d);
  d.x_strides = {0, 0, 0};
  cases.push_back(d);
  return cases;
}

void ExpectPoints(SampleDesc d, const std::vector<double>& y, const std::vector<double>& x,
                  const std::vector<double>& want) {
  d.batch = d.out_h = 1;
  d.out_w = static_cast<int64_t>(y.size());
  d.y_strides = d.x_strides = {0, 0, 1};
  ExpectByHand(d,
               {Values(d.type, {1, 2, 3, 4, 5, 7, 9, 11, 13}), Values(DType::kFloat, y), Values(DType::kFloat, x), {}},
               {{d.result_type, ResultSize(d)}}, {{Values(d.result_type, want)}}, Describe(d));
}

TEST(Sample, ByHand) {
  SampleDesc d = Make(1, 3, 3, 1, 1, 1, 1, false);
  ExpectPoints(d, {0, 0.5, 0.5, 1.25, 2, -0.75, 2.5, 99}, {0, 0, 0.5, 1, 2, -9, 1.5, 0},
               {1, 2.5, 3, 6.5, 13, 1, 12, 9});
  d.outside = Outside::kFill;
  ExpectPoints(d, {0, 0.5, -0.25, 2, 2.25, 1, NAN}, {0, 2, 0, 2, 0, 2.5, 1}, {1, 5, 2.5, 13, 2.5, 2.5, 2.5});
  d.outside = Outside::kPixels;
  ExpectPoints(d, {0, 0.5, -0.5, 2.5, -1, 5}, {0, 0, 0, 2.25, 0, 5},
               {1, 2.5, 1.75, 0.375 * 13 + 0.625 * 2.5, 2.5, 2.5});
  d.kind = SampleKind::kNearest;
  ExpectPoints(d, {0, 0.75, 1.5, -0.25, 3, NAN}, {0, 2.5, 1, 0, 0, 0}, {1, 3, 5, 2.5, 2.5, 2.5});
  d.outside = Outside::kEdge;
  ExpectPoints(d, {0, 0.75, 1.5, -0.25, 3}, {0, 2.5, 1, 0, 0}, {1, 3, 5, 1, 9});
  d.type = d.result_type = DType::kUint8;
  d.kind = SampleKind::kBilinear;
  ExpectPoints(d, {0.5, 0.5, 2}, {0, 0.5, 1.75}, {2, 3, 12});
}

// A point on a pixel reads no other.
TEST(Sample, WholePointsReadOnePixel) {
  SampleDesc d = Make(1, 1, 2, 1, 1, 1, 2, false);
  ExpectByHand(d, {Values(DType::kFloat, {3, NAN}), Values(DType::kFloat, {0, 0}), Values(DType::kFloat, {0, 1}), {}},
               {{DType::kFloat, 2}}, {{Values(DType::kFloat, {3, NAN})}}, "a NaN beside it");
}

// Nothing is left to the order of operations: as the reference, to the last bit.
TEST(Sample, AllTypesKindsAndShapes) {
  for (SampleDesc d : Cases()) {
    for (int type = static_cast<int>(DType::kInt8); type <= static_cast<int>(DType::kDouble); ++type) {
      d.type = static_cast<DType>(type);
      for (const SampleKind kind : kKinds) {
        for (const Outside outside : kOutsides) {
          for (const DType result : {d.type, DType::kFloat, DType::kHalf}) {
            if (result == DType::kHalf && d.type != DType::kUint8) continue;
            d.kind = kind, d.outside = outside, d.result_type = result;
            // In half, integers of more digits than it has are rounded: so be it.
            ExpectAsTheReference(d, Behind({Random(d.type, ImagesSize(d), 1, 0, 100)}, Points(d)),
                                 {{d.result_type, ResultSize(d)}}, Describe(d));
          }
        }
      }
    }
  }
}

TEST(Sample, ImageNumbersOutOfRange) {
  for (const bool grid : {true, false}) {
    for (const SampleKind kind : kKinds) {
      SampleDesc d = Make(2, 2, 2, 1, 3, 1, 2, grid);
      d.kind = kind;
      d.y_strides = {0, 0, 0};
      const std::vector<Array> points = {Values(DType::kFloat, {1}),
                                         Values(DType::kFloat, std::vector<double>(Reach(d, d.x_strides), 1)),
                                         Values(DType::kInt32, {1, 2, -1})};
      ExpectByHand(d, Behind({Values(DType::kFloat, {1, 2, 3, 4, 5, 6, 7, 8})}, points), {{DType::kFloat, 6}},
                   Want{{Values(DType::kFloat, {8, 8, 2.5, 2.5, 2.5, 2.5})},
                        {},
                        Code::kInvalidArgument,
                        "image number 1 is 2, which is not in [0, 2)"},
                   "forward");
      d.direction = SampleDirection::kImageGradient;
      ExpectByHand(
          d, Behind({Values(DType::kFloat, {1, 2, 3, 4, 5, 6})}, points), {{DType::kFloat, 8}},
          Want{{Values(DType::kFloat, {0, 0, 0, 0, 0, 0, 0, 3})}, {}, Code::kInvalidArgument, "image number 1"},
          "gradient");
    }
  }
}

TEST(Sample, ImageGradientByHand) {
  SampleDesc d = Make(1, 2, 2, 1, 1, 1, 4, false);
  d.direction = SampleDirection::kImageGradient;
  const Array y = Values(DType::kFloat, {0, 0.25, 1.5, 0.5}), x = Values(DType::kFloat, {0, 0.5, 0.5, 1});
  const Array gradient = Values(DType::kFloat, {1, 8, 16, 64});
  ExpectByHand(d, {gradient, y, x, {}}, {{DType::kFloat, 4}}, {{Values(DType::kFloat, {4, 35, 9, 41})}}, "edge");
  d.outside = Outside::kFill;
  ExpectByHand(d, {gradient, y, x, {}}, {{DType::kFloat, 4}}, {{Values(DType::kFloat, {4, 35, 1, 33})}}, "fill");
  d.outside = Outside::kPixels;
  ExpectByHand(d, {gradient, y, x, {}}, {{DType::kFloat, 4}}, {{Values(DType::kFloat, {4, 35, 5, 37})}}, "pixels");
  d.kind = SampleKind::kNearest;
  ExpectByHand(d, {gradient, y, x, {}}, {{DType::kFloat, 4}}, {{Values(DType::kFloat, {9, 64, 16, 0})}}, "nearest");
}

// An element is a sum over the points, of products of three factors.
TEST(Sample, ImageGradients) {
  for (SampleDesc d : Cases()) {
    d.direction = SampleDirection::kImageGradient;
    for (const DType type : {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble}) {
      for (const SampleKind kind : kKinds) {
        for (const Outside outside : kOutsides) {
          d.type = type, d.kind = kind, d.outside = outside;
          d.result_type = type == DType::kHalf ? DType::kHalf : DType::kFloat;
          const Array gradient = Random(d.result_type, ResultSize(d), 7);
          SampleDesc wide = d;
          wide.type = wide.result_type = DType::kDouble;
          const std::vector<Output> out = {{DType::kDouble, ImagesSize(d)}};
          Want want{AsTheReference(wide, Behind({Widened(gradient)}, Points(d)), out).out};
          // The reference's products are floats.
          const Array magnitudes = AsTheReference(wide, Behind({Magnitudes(gradient)}, Points(d)), out).out[0];
          want.bounds = {SumBound(magnitudes, static_cast<double>(4 * NumPoints(d) + 6), DType::kFloat)};
          Expect(d, Behind({gradient}, Points(d)), {{type, ImagesSize(d)}}, want, Describe(d));
        }
      }
    }
  }
}

TEST(Sample, PointGradientByHand) {
  SampleDesc d = Make(1, 2, 2, 2, 1, 1, 3, false);
  d.direction = SampleDirection::kPointGradient;
  d.outside = Outside::kFill;
  const Array images = Values(DType::kFloat, {1, 10, 2, 30, 4, 20, 8, 50});
  const Array gradient = Values(DType::kFloat, {1, 0, 1, 1, 5, 5});
  // At (0.5, 0.25): dy is 0.75 * 3 + 0.25 * 6, dx is 0.5 * 1 + 0.5 * 4, and of the other channel 12.5 and 25.
  ExpectByHand(d, {gradient, images, Values(DType::kFloat, {0.5, 0.5, 2}), Values(DType::kFloat, {0.25, 0.25, 0}), {}},
               {{DType::kFloat, 3}, {DType::kFloat, 3}},
               {{Values(DType::kFloat, {3.75, 16.25, 0}), Values(DType::kFloat, {2.5, 27.5, 0})}}, "two channels");
}

// A sum over channels of three products of differences.
TEST(Sample, PointGradients) {
  for (SampleDesc d : Cases()) {
    d.direction = SampleDirection::kPointGradient;
    for (const DType type : {DType::kUint8, DType::kInt32, DType::kHalf, DType::kFloat, DType::kDouble}) {
      for (const Outside outside : kOutsides) {
        d.type = type, d.outside = outside;
        const Array gradient = Random(DType::kFloat, ResultSize(d), 7);
        const std::vector<Array> in = Behind({gradient, Random(type, ImagesSize(d), 8, 0, 9)}, Points(d));
        const std::vector<Output> out(2, {DType::kFloat, NumPoints(d)});
        Want want = AsTheReference(d, in, out);
        Bound bound;
        for (int64_t i = 0; i < NumPoints(d); ++i) {
          double magnitude = 0;
          for (int64_t c = 0; c < d.channels; ++c) magnitude += std::abs(RealAt(gradient, i * d.channels + c)) * 18;
          bound.each.push_back(2 * SumError(static_cast<double>(d.channels + 4), DType::kFloat) * magnitude);
        }
        want.bounds = {bound, bound};
        Expect(d, in, out, want, Describe(d));
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
