#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

// A NaN of either stays.
float Maximum(float x, float y) { return x != x || x > y ? x : y; }
float Minimum(float x, float y) { return x != x || x < y ? x : y; }

}  // namespace

Status Run(const QuantizeRowsDesc& d, const Args& args) {
  const auto number = [&](int i) { return *static_cast<const float*>(args.in[i]); };
  const float epsilon = number(1), levels = number(2), most = number(3), least = number(4);
  const auto* x = static_cast<const float*>(args.in[0]);
  auto* q = static_cast<int8_t*>(args.out[0]);
  auto* scales = static_cast<float*>(args.out[1]);
  for (int64_t row = 0; row < d.rows; ++row, x += d.cols, q += d.cols) {
    float largest = 0;
    for (int64_t i = 0; i < d.cols; ++i) largest = Maximum(largest, std::fabs(x[i]));
    const float scale = levels / (largest + epsilon);
    scales[row] = scale;
    for (int64_t i = 0; i < d.cols; ++i) {
      const float rounded = Maximum(Minimum(std::rint(x[i] * scale), most), least);
      const bool fits = rounded >= -0x1p31f && rounded < 0x1p31f;
      q[i] = static_cast<int8_t>(fits ? static_cast<int32_t>(rounded) : INT32_MIN);
    }
  }
  return OkStatus();
}

}  // namespace xpu::plain
