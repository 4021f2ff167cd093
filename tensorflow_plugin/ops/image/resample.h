// Images resampled with weights that the host works out. Each pixel of the output along an axis has the pixels of the
// input that make it.
#ifndef TENSORFLOW_PLUGIN_OPS_IMAGE_RESAMPLE_H_
#define TENSORFLOW_PLUGIN_OPS_IMAGE_RESAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/framework/needs.h"

namespace xpu {

struct Tap {
  int64_t to, from;  // pixels of the output and of the input
  float weight;
};
using Taps = std::vector<Tap>;

// How the pixels of a resized axis lie over those that there were.
struct Scaling {
  bool align_corners = false, half_pixel_centers = false;

  float Scale(int64_t in, int64_t out) const;
  // Where pixel i lies.
  float At(int64_t i, float scale) const;
  // The pixel that is nearest to it.
  int64_t Nearest(int64_t i, float scale, int64_t in) const;
};

// An axis of `in` pixels resized to `out`.
Taps NearestTaps(const Scaling& scaling, int64_t in, int64_t out);
Taps LinearTaps(const Scaling& scaling, int64_t in, int64_t out);
Taps CubicTaps(const Scaling& scaling, int64_t in, int64_t out);
// Pixels by the area that they share. `factor` is in all weights.
Taps AreaTaps(const Scaling& scaling, int64_t in, int64_t out, float factor);

// A filter by which ScaleAndTranslate weighs pixels: its name, how far it reaches, and its value at a distance.
struct Filter {
  const char* name;
  float radius;
  float (*at)(float distance);
};
const Filter* FindFilter(const std::string& name);
// Pixel i of the input goes to i * scale + translation.
Taps FilterTaps(const Filter& filter, bool antialias, float scale, float translation, int64_t in, int64_t out);

// Those of the gradient.
Taps Transposed(Taps taps);

// images [batch, height, width, channels] to out [batch, out_h, out_w, channels].
Status LaunchResample(Context& ctx, const Tensor& images, const Taps& y, const Taps& x, const Tensor& out);

namespace needs {
Need Resample(TypeRef type, TypeRef result_type);
}  // namespace needs

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_IMAGE_RESAMPLE_H_
