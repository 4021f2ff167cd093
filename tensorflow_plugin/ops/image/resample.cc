#include "tensorflow_plugin/ops/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace xpu {
namespace {

int64_t Inside(int64_t i, int64_t extent) { return std::clamp<int64_t>(i, 0, extent - 1); }

// Keys's cubic filter of parameter `a` at distances below 1, and from there to 2.
double NearCubic(double a, float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
double FarCubic(double a, float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

// The four weights of a point `offset` of 1024 parts behind a pixel: TensorFlow has them in a table of that size.
void CubicWeights(double a, int offset, float weights[4]) {
  const float after = static_cast<float>(offset / 1024.0), before = static_cast<float>((1024 - offset) / 1024.0);
  weights[0] = static_cast<float>(FarCubic(a, after + 1));
  weights[1] = static_cast<float>(NearCubic(a, after));
  weights[2] = static_cast<float>(NearCubic(a, before));
  weights[3] = static_cast<float>(FarCubic(a, before + 1));
}

constexpr float kPi = 3.14159265359f;

template <int kRadius>
float Lanczos(float x) {
  if (x > kRadius) return 0;
  if (x <= 1e-3f) return 1;
  return kRadius * std::sin(kPi * x) * std::sin(kPi * x / kRadius) / (kPi * kPi * x * x);
}
// For a deviation of a half.
float Gaussian(float x) { return x >= 1.5f ? 0 : static_cast<float>(std::exp(-x * x / (2.0 * 0.5 * 0.5))); }
float Box(float x) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
float Triangle(float x) { return x < 1 ? 1 - x : 0; }
float KeysCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
  return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

constexpr Filter kFilters[] = {
    {"lanczos1", 1, Lanczos<1>},
    {"lanczos3", 3, Lanczos<3>},
    {"lanczos5", 5, Lanczos<5>},
    {"gaussian", 1.5f, Gaussian},
    {"box", 1, Box},
    {"triangle", 1, Triangle},
    {"keyscubic", 2, KeysCubic},
    {"mitchellcubic", 2, MitchellCubic},
};

// The part of pixel i that lies in [begin, end), an output pixel's share of the input.
float Share(int64_t i, float begin, float end, float scale) {
  const float next = static_cast<float>(i + 1), first = static_cast<float>(i);
  if (first < begin) return next > end ? scale : next - begin;
  return next > end ? end - first : 1;
}

// An axis as the primitive takes it: of each output pixel a span, and the weights in it.
struct ResampleAxis {
  ResampleAxis(const Taps& all, int64_t n) : spans(2 * n, 0) {
    std::vector<std::pair<int64_t, int64_t>> ranges(n, {std::numeric_limits<int64_t>::max(), -1});
    for (const Tap& tap : all) {
      auto& [first, last] = ranges[tap.to];
      first = std::min(first, tap.from);
      last = std::max(last, tap.from);
    }
    for (int64_t i = 0; i < n; ++i) {
      if (ranges[i].second < 0) continue;
      spans[2 * i] = static_cast<int32_t>(ranges[i].first);
      spans[2 * i + 1] = static_cast<int32_t>(ranges[i].second - ranges[i].first + 1);
      taps = std::max<int64_t>(taps, spans[2 * i + 1]);
    }
    weights.resize(n * taps, 0);
    for (const Tap& tap : all) weights[tap.to * taps + tap.from - spans[2 * tap.to]] += tap.weight;
  }
  size_t size() const { return spans.size() + weights.size(); }

  int64_t taps = 0;
  std::vector<int32_t> spans;
  std::vector<float> weights;
};

}  // namespace

float Scaling::Scale(int64_t in, int64_t out) const {
  if (align_corners && out > 1) return static_cast<float>(in - 1) / static_cast<float>(out - 1);
  return static_cast<float>(in) / static_cast<float>(out);
}

float Scaling::At(int64_t i, float scale) const {
  const float at = static_cast<float>(i);
  return half_pixel_centers ? (at + 0.5f) * scale - 0.5f : at * scale;
}

int64_t Scaling::Nearest(int64_t i, float scale, int64_t in) const {
  const float at = half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale : static_cast<float>(i) * scale;
  return Inside(static_cast<int64_t>(align_corners ? std::round(at) : std::floor(at)), in);
}

Taps NearestTaps(const Scaling& scaling, int64_t in, int64_t out) {
  const float scale = scaling.Scale(in, out);
  Taps taps;
  for (int64_t i = 0; i < out; ++i) taps.push_back({i, scaling.Nearest(i, scale, in), 1});
  return taps;
}

Taps LinearTaps(const Scaling& scaling, int64_t in, int64_t out) {
  const float scale = scaling.Scale(in, out);
  Taps taps;
  for (int64_t i = 0; i < out; ++i) {
    const float at = scaling.At(i, scale), floor = std::floor(at), after = at - floor;
    taps.push_back({i, Inside(static_cast<int64_t>(floor), in), 1 - after});
    taps.push_back({i, Inside(static_cast<int64_t>(std::ceil(at)), in), after});
  }
  return taps;
}

Taps CubicTaps(const Scaling& scaling, int64_t in, int64_t out) {
  const float scale = scaling.Scale(in, out);
  // With half pixels, what lies outside counts for nothing; else it is the pixel at the edge.
  const bool cut = scaling.half_pixel_centers;
  Taps taps;
  for (int64_t i = 0; i < out; ++i) {
    const float at = scaling.At(i, scale), floor = std::floor(at);
    float weights[4];
    CubicWeights(cut ? -0.5 : -0.75, static_cast<int>(std::lrint((at - floor) * 1024)), weights);
    const int64_t first = static_cast<int64_t>(floor) - 1;
    float sum = 0;
    for (int t = 0; t < 4 && cut; ++t) {
      if (Inside(first + t, in) != first + t) weights[t] = 0;
      sum += weights[t];
    }
    const bool normal = cut && std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
    for (int t = 0; t < 4; ++t) {
      if (cut && Inside(first + t, in) != first + t) continue;
      taps.push_back({i, Inside(first + t, in), normal ? weights[t] * (1 / sum) : weights[t]});
    }
  }
  return taps;
}

Taps AreaTaps(const Scaling& scaling, int64_t in, int64_t out, float factor) {
  const float scale = scaling.Scale(in, out);
  Taps taps;
  for (int64_t i = 0; i < out; ++i) {
    if (scale == 0) {  // between the corners of one pixel
      taps.push_back({i, 0, factor});
      continue;
    }
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    for (int64_t k = static_cast<int64_t>(std::floor(begin)); k < static_cast<int64_t>(std::ceil(end)); ++k) {
      taps.push_back({i, Inside(k, in), Share(k, begin, end, scale) * factor});
    }
  }
  return taps;
}

const Filter* FindFilter(const std::string& name) {
  for (const Filter& filter : kFilters) {
    if (name == filter.name) return &filter;
  }
  return nullptr;
}

Taps FilterTaps(const Filter& filter, bool antialias, float scale, float translation, int64_t in, int64_t out) {
  const float inverse = static_cast<float>(1.0 / scale), offset = -inverse * translation;
  // Where several pixels of the input come to lie in one, the filter becomes as much wider.
  const float width = antialias ? std::max(inverse, 1.0f) : 1.0f, reach = filter.radius * width;
  Taps taps;
  std::vector<float> weights;
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + 0.5f) * inverse + offset;
    if (!(at >= 0 && at <= static_cast<float>(in))) continue;
    const int64_t first = Inside(static_cast<int64_t>(std::ceil(at - reach - 0.5f)), in);
    const int64_t last = Inside(static_cast<int64_t>(std::floor(at + reach - 0.5f)), in);
    weights.clear();
    float sum = 0;
    for (int64_t k = first; k <= last; ++k) {
      weights.push_back(filter.at(std::abs((static_cast<float>(k) + 0.5f - at) * (1 / width))));
      sum += weights.back();
    }
    if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) continue;
    for (int64_t k = first; k <= last; ++k) taps.push_back({i, k, weights[k - first] * (1 / sum)});
  }
  return taps;
}

Taps Transposed(Taps taps) {
  for (Tap& tap : taps) std::swap(tap.to, tap.from);
  return taps;
}

Status LaunchResample(Context& ctx, const Tensor& images, const Taps& y, const Taps& x, const Tensor& out) {
  const ResampleAxis ys(y, out.dim(1)), xs(x, out.dim(2));
  // All of it in one array, which is one copy to the device.
  static_assert(sizeof(int32_t) == sizeof(float));
  std::vector<float> tables(ys.size() + xs.size());
  Temporary memory;
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {static_cast<int64_t>(tables.size())}, &memory));
  size_t at = 0;
  const auto place = [&](const auto& values) -> const void* {
    if (!values.empty()) std::memcpy(tables.data() + at, values.data(), values.size() * sizeof(float));
    const void* const address = static_cast<const float*>(memory.data()) + at;
    at += values.size();
    return address;
  };
  const void *const y_spans = place(ys.spans), *const y_weights = place(ys.weights);
  const void *const x_spans = place(xs.spans), *const x_weights = place(xs.weights);
  XPU_RETURN_IF_ERROR(ctx.CopyFromHost(memory.data(), tables.data(), tables.size() * sizeof(float)));
  ResampleDesc desc;
  desc.type = images.dtype();
  desc.result_type = out.dtype();
  desc.batch = images.dim(0);
  desc.height = images.dim(1);
  desc.width = images.dim(2);
  desc.channels = images.dim(3);
  desc.out_h = out.dim(1);
  desc.out_w = out.dim(2);
  desc.y_taps = ys.taps;
  desc.x_taps = xs.taps;
  return ctx.Launch(desc, {images.data(), y_spans, y_weights, x_spans, x_weights}, {out.mutable_data()});
}

namespace needs {

Need Resample(TypeRef type, TypeRef result_type) {
  return [=](Needs& n) {
    ResampleDesc desc;
    desc.type = type.In(n);
    desc.result_type = result_type.In(n);
    n.Ask(desc);
  };
}

}  // namespace needs
}  // namespace xpu
