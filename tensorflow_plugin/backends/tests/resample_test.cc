#include <cmath>
#include <string>
#include <vector>

#include "tensorflow_plugin/backends/tests/compare.h"

namespace xpu::testing {
namespace {

ResampleDesc Make(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t out_h, int64_t out_w,
                  int64_t y_taps, int64_t x_taps) {
  ResampleDesc d;
  d.batch = batch, d.height = height, d.width = width, d.channels = channels;
  d.out_h = out_h, d.out_w = out_w, d.y_taps = y_taps, d.x_taps = x_taps;
  return d;
}

int64_t ImagesSize(const ResampleDesc& d) { return d.batch * d.height * d.width * d.channels; }
int64_t ResultSize(const ResampleDesc& d) { return d.batch * d.out_h * d.out_w * d.channels; }

// Some of no pixels, some that begin before the image or end behind it.
Array Spans(int64_t n, int64_t extent, int64_t taps, uint32_t seed) {
  Array spans(DType::kInt32, 2 * n);
  const Array first = Random(DType::kInt32, n, seed, -2, static_cast<double>(extent + 1));
  const Array count = Random(DType::kInt32, n, seed + 1, 0, static_cast<double>(taps + 1));
  for (int64_t i = 0; i < n; ++i) {
    spans.as<int32_t>()[2 * i] = first.as<int32_t>()[i];
    spans.as<int32_t>()[2 * i + 1] = count.as<int32_t>()[i];
  }
  return spans;
}

std::vector<Array> Inputs(const ResampleDesc& d) {
  const Array images = Random(d.type, ImagesSize(d), 1, IsFloating(d.type) ? -4 : 0, 100);
  const Array wy = Random(DType::kFloat, d.out_h * d.y_taps, 2, -1, 1);
  const Array wx = Random(DType::kFloat, d.out_w * d.x_taps, 3, -1, 1);
  return {images, Spans(d.out_h, d.height, d.y_taps, 4), wy, Spans(d.out_w, d.width, d.x_taps, 6), wx};
}

TEST(Resample, ByHand) {
  ResampleDesc d = Make(1, 2, 3, 1, 2, 2, 2, 3);
  const Array images = Values(DType::kFloat, {1, 2, 3, 40, 50, 60});
  const Array y = Values(DType::kInt32, {0, 2, 1, 1}), wy = Values(DType::kFloat, {1, 2, 3, NAN});
  const Array x = Values(DType::kInt32, {0, 3, 2, 1}), wx = Values(DType::kFloat, {1, 1, 1, 2, NAN, NAN});
  ExpectByHand(d, {images, y, wy, x, wx}, {{DType::kFloat, 4}}, {{Values(DType::kFloat, {306, 246, 450, 360})}},
               "spans within");
  // Outside of the image there is nothing, and no more taps than there are.
  const Array beyond = Values(DType::kInt32, {-1, 9, 1, 2});
  ExpectByHand(d, {images, beyond, Values(DType::kFloat, {NAN, 1, 1, NAN}), x, wx}, {{DType::kFloat, 4}},
               {{Values(DType::kFloat, {6, 6, 150, 120})}}, "spans beyond");
  ExpectByHand(d, {images, Values(DType::kInt32, {0, 0, 7, 2}), wy, x, wx}, {{DType::kFloat, 4}},
               {{Values(DType::kFloat, {0, 0, 0, 0})}}, "empty spans");
}

TEST(Resample, TypesAndShapes) {
  const ResampleDesc shapes[] = {Make(2, 5, 4, 3, 3, 7, 2, 3),    Make(1, 1, 1, 1, 1, 1, 1, 1),
                                 Make(1, 6, 50, 1, 40, 30, 4, 4), Make(3, 4, 3, 4, 2, 2, 5, 1),
                                 Make(1, 20, 3, 37, 2, 2, 12, 3), Make(2, 3, 0, 2, 2, 3, 2, 2),
                                 Make(0, 3, 3, 2, 2, 3, 2, 2),    Make(2, 3, 3, 2, 2, 3, 0, 2),
                                 Make(2, 3, 3, 0, 2, 3, 1, 2),    Make(1, 64, 64, 16, 9, 9, 9, 9)};
  for (ResampleDesc d : shapes) {
    for (int type = static_cast<int>(DType::kInt8); type <= static_cast<int>(DType::kDouble); ++type) {
      for (const DType result : {DType::kFloat, DType::kDouble, DType::kHalf}) {
        d.type = static_cast<DType>(type), d.result_type = result;
        if (result == DType::kHalf && d.type != DType::kHalf) continue;
        const Output out = {result, ResultSize(d)};
        ResampleDesc wide = d;
        wide.type = Wide(d.type), wide.result_type = DType::kDouble;
        std::vector<Array> in = Inputs(d), exact = in, magnitudes = in;
        exact[0] = Widened(in[0]);
        magnitudes[0] = Magnitudes(in[0]);
        for (const int weights : {2, 4}) {
          for (int64_t i = 0; i < in[weights].size(); ++i) {
            float& w = magnitudes[weights].as<float>()[i];
            w = std::abs(w);
          }
        }
        Want want{AsTheReference(wide, exact, {{DType::kDouble, ResultSize(d)}}).out};
        const Array sums = AsTheReference(wide, magnitudes, {{DType::kDouble, ResultSize(d)}}).out[0];
        // Both sums, each of products, and what an integer loses as a float.
        want.bounds = {SumBound(sums, static_cast<double>(d.y_taps + d.x_taps + 3), result)};
        Expect(d, in, {out}, want, errors::Concat(d.height, "x", d.width, " to ", d.out_h, "x", d.out_w));
      }
    }
  }
}

}  // namespace
}  // namespace xpu::testing
