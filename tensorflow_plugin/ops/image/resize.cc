// Resizing of images by every method, and its gradients.
#include <limits>
#include <utility>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/image/resample.h"
#include "tensorflow_plugin/ops/image/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

enum class Method { kNearest, kBilinear, kBicubic, kArea };

struct ResizeOp {
  const char* name;
  const char* gradient;  // nullptr: none
  Method method;
};

constexpr ResizeOp kOps[] = {
    {"ResizeNearestNeighbor", "ResizeNearestNeighborGrad", Method::kNearest},
    {"ResizeBilinear", "ResizeBilinearGrad", Method::kBilinear},
    {"ResizeBicubic", "ResizeBicubicGrad", Method::kBicubic},
    {"ResizeArea", nullptr, Method::kArea},
};

constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

Scaling ReadScaling(Construction& c, Method method) {
  Scaling scaling;
  scaling.align_corners = c.Attr<bool>("align_corners");
  if (method != Method::kArea) scaling.half_pixel_centers = c.Attr<bool>("half_pixel_centers");
  return scaling;
}

Status CheckScaling(const Scaling& scaling) {
  XPU_REQUIRE(!scaling.half_pixel_centers || !scaling.align_corners,
              errors::InvalidArgument("If half_pixel_centers is True, align_corners must be False."));
  return OkStatus();
}

Status CheckImages(const Tensor& images) {
  XPU_REQUIRE(images.rank() == 4, errors::InvalidArgument("input must be 4-dimensional", images.ShapeString()));
  XPU_REQUIRE(images.dim(3) > 0, errors::InvalidArgument("image must have at least one channel"));
  XPU_REQUIRE(images.dim(1) > 0 && images.dim(2) > 0, errors::InvalidArgument("input image must be of non-zero size"));
  XPU_REQUIRE(images.dim(1) < kMaxInt && images.dim(2) < kMaxInt,
              errors::InvalidArgument("input sizes must be between 0 and max int32"));
  return OkStatus();
}

// Two extents in host memory; `what` is how the messages call them.
Status ReadSize(const Tensor& size, const char* what, std::vector<int64_t>* extents) {
  XPU_REQUIRE(size.rank() == 1, errors::InvalidArgument(what, " must be 1-dimensional", size.ShapeString()));
  XPU_REQUIRE(size.num_elements() == 2, errors::InvalidArgument(what, " must have two elements", size.ShapeString()));
  return HostIntegers(size, what, extents);
}

Taps TapsOf(Method method, const Scaling& scaling, int64_t in, int64_t out) {
  switch (method) {
    case Method::kNearest:
      return NearestTaps(scaling, in, out);
    case Method::kBilinear:
      return LinearTaps(scaling, in, out);
    case Method::kBicubic:
      return CubicTaps(scaling, in, out);
    case Method::kArea:
      break;  // its weights depend on both axes
  }
  return {};
}

class ResizeKernel : public OpKernel {
 public:
  ResizeKernel(Construction& c, const ResizeOp* op) : method_(op->method), scaling_(ReadScaling(c, op->method)) {
    if (!c.status().ok()) return;
    cast_ = CastProgram(c.Attr<DType>("T"), DType::kFloat);
  }

  Status Compute(Context& ctx) override {
    const Tensor images = ctx.input(0);
    std::vector<int64_t> size;
    XPU_RETURN_IF_ERROR(CheckScaling(scaling_));
    XPU_RETURN_IF_ERROR(CheckImages(images));
    XPU_RETURN_IF_ERROR(ReadSize(ctx.input(1), "shape_t", &size));
    XPU_REQUIRE(size[0] > 0 && size[1] > 0, errors::InvalidArgument("output dimensions must be positive"));
    XPU_REQUIRE(method_ != Method::kNearest || (images.dim(1) < (1 << 24) && images.dim(2) < (1 << 24)),
                errors::InvalidArgument("nearest neighbor requires max height & width of 2^24"));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {images.dim(0), size[0], size[1], images.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    switch (method_) {
      case Method::kNearest:
        return Nearest(ctx, images, out);
      case Method::kBilinear:
        return Bilinear(ctx, images, out);
      case Method::kBicubic:
        break;
      case Method::kArea: {
        float area = 1;
        for (int i : {0, 1}) {
          const float scale = scaling_.Scale(images.dim(i + 1), size[i]);
          if (scale > 0) area *= scale;
        }
        return LaunchResample(ctx, images, AreaTaps(scaling_, images.dim(1), size[0], 1),
                              AreaTaps(scaling_, images.dim(2), size[1], static_cast<float>(1.0 / area)), out);
      }
    }
    return LaunchResample(ctx, images, TapsOf(method_, scaling_, images.dim(1), size[0]),
                          TapsOf(method_, scaling_, images.dim(2), size[1]), out);
  }

 private:
  Status Nearest(Context& ctx, const Tensor& images, const Tensor& out) const {
    std::vector<float> points;
    for (int axis : {1, 2}) {
      for (const Tap& tap : NearestTaps(scaling_, images.dim(axis), out.dim(axis))) {
        points.push_back(static_cast<float>(tap.from));
      }
    }
    return LaunchGrid(ctx, SampleKind::kNearest, images, points, out);
  }

  Status Bilinear(Context& ctx, const Tensor& images, const Tensor& out) const {
    if (images.dims() == out.dims()) {
      if (images.dtype() == DType::kFloat) return ctx.Copy(out.mutable_data(), images.data(), images.bytes());
      ElementwiseDesc desc;
      desc.program = cast_;
      desc.shape = {images.num_elements()};
      desc.in_strides[0] = {1};
      return ctx.Launch(desc, {images.data()}, {out.mutable_data()});
    }
    std::vector<float> points;
    for (int axis : {1, 2}) {
      const float scale = scaling_.Scale(images.dim(axis), out.dim(axis));
      for (int64_t i = 0; i < out.dim(axis); ++i) points.push_back(scaling_.At(i, scale));
    }
    return LaunchGrid(ctx, SampleKind::kBilinear, images, points, out);
  }

  const Method method_;
  const Scaling scaling_;
  const Program* cast_ = nullptr;
};

class NearestGradKernel : public OpKernel {
 public:
  explicit NearestGradKernel(Construction& c) : scaling_(ReadScaling(c, Method::kNearest)) {}

  Status Compute(Context& ctx) override {
    const Tensor gradient = ctx.input(0);
    XPU_REQUIRE(gradient.rank() == 4, errors::InvalidArgument("input must be 4-dimensional", gradient.ShapeString()));
    std::vector<int64_t> size;
    XPU_RETURN_IF_ERROR(ReadSize(ctx.input(1), "shape_t", &size));
    XPU_REQUIRE(size[0] > 0 && size[1] > 0, errors::InvalidArgument("shape_t's elements must be positive"));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {gradient.dim(0), size[0], size[1], gradient.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    return LaunchResample(ctx, gradient, Transposed(NearestTaps(scaling_, size[0], gradient.dim(1))),
                          Transposed(NearestTaps(scaling_, size[1], gradient.dim(2))), out);
  }

 private:
  const Scaling scaling_;
};

// Whose original size is that of an image.
class ResizeGradKernel : public OpKernel {
 public:
  ResizeGradKernel(Construction& c, Method method) : method_(method), scaling_(ReadScaling(c, method)) {}

  Status Compute(Context& ctx) override {
    const Tensor gradient = ctx.input(0), image = ctx.input(1);
    XPU_RETURN_IF_ERROR(CheckScaling(scaling_));
    XPU_REQUIRE(gradient.rank() == 4,
                errors::InvalidArgument("input_grad must be 4-dimensional", gradient.ShapeString()));
    XPU_REQUIRE(gradient.dim(1) > 0 && gradient.dim(2) > 0,
                errors::InvalidArgument("resized dimensions must be positive"));
    XPU_REQUIRE(image.rank() == 4,
                errors::InvalidArgument("original_image must be 4-dimensional", image.ShapeString()));
    XPU_REQUIRE(image.dim(1) > 0 && image.dim(2) > 0, errors::InvalidArgument("original dimensions must be positive"));
    XPU_REQUIRE(image.dim(1) < kMaxInt && image.dim(2) < kMaxInt,
                errors::InvalidArgument("original sizes must be between 0 and max int32"));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {gradient.dim(0), image.dim(1), image.dim(2), gradient.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    return LaunchResample(ctx, gradient, Transposed(TapsOf(method_, scaling_, image.dim(1), gradient.dim(1))),
                          Transposed(TapsOf(method_, scaling_, image.dim(2), gradient.dim(2))), out);
  }

 private:
  const Method method_;
  const Scaling scaling_;
};

// ScaleAndTranslate and its gradient.
class ScaleKernel : public OpKernel {
 public:
  ScaleKernel(Construction& c, bool gradient) : gradient_(gradient), antialias_(c.Attr<bool>("antialias")) {
    const std::string name = c.Attr<std::string>("kernel_type");
    if (!c.status().ok()) return;
    filter_ = FindFilter(name);
    if (filter_ == nullptr) c.Fail(errors::InvalidArgument("Unrecognized kernel type: ", name));
  }

  Status Compute(Context& ctx) override { return gradient_ ? Gradient(ctx) : Forward(ctx); }

 private:
  Status Forward(Context& ctx) const {
    const Tensor images = ctx.input(0);
    XPU_REQUIRE(images.rank() == 4, errors::InvalidArgument("input must be 4-dimensional", images.ShapeString()));
    std::vector<int64_t> size;
    XPU_RETURN_IF_ERROR(ReadSize(ctx.input(1), "output_shape_t", &size));
    XPU_REQUIRE(size[0] > 0 && size[1] > 0, errors::InvalidArgument("output dimensions must be positive"));
    XPU_RETURN_IF_ERROR(CheckImages(images));
    Taps y, x;
    XPU_RETURN_IF_ERROR(ReadTaps(ctx, images.dim(1), images.dim(2), size[0], size[1], &y, &x));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {images.dim(0), size[0], size[1], images.dim(3)}, &out));
    return out.num_elements() == 0 ? OkStatus() : LaunchResample(ctx, images, y, x, out);
  }

  Status Gradient(Context& ctx) const {
    const Tensor gradient = ctx.input(0), image = ctx.input(1);
    XPU_REQUIRE(gradient.rank() == 4,
                errors::InvalidArgument("input_grad must be 4-dimensional", gradient.ShapeString()));
    XPU_REQUIRE(image.rank() == 4,
                errors::InvalidArgument("original_image must be 4-dimensional", image.ShapeString()));
    XPU_REQUIRE(image.dim(1) < kMaxInt && image.dim(2) < kMaxInt,
                errors::InvalidArgument("original sizes must be between 0 and max int32"));
    Taps y, x;
    XPU_RETURN_IF_ERROR(ReadTaps(ctx, image.dim(1), image.dim(2), gradient.dim(1), gradient.dim(2), &y, &x));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {gradient.dim(0), image.dim(1), image.dim(2), gradient.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    return LaunchResample(ctx, gradient, Transposed(std::move(y)), Transposed(std::move(x)), out);
  }

  Status ReadTaps(Context& ctx, int64_t height, int64_t width, int64_t out_h, int64_t out_w, Taps* y, Taps* x) const {
    const Tensor scale = ctx.input(2), translation = ctx.input(3);
    for (const Tensor& t : {scale, translation}) {
      XPU_REQUIRE(t.rank() == 1, errors::InvalidArgument("t must be 1-dimensional", t.ShapeString()));
      XPU_REQUIRE(t.num_elements() == 2, errors::InvalidArgument("t must have two elements", t.ShapeString()));
      const float* const values = t.host<float>();
      XPU_REQUIRE(t.native() != scale.native() || (values[0] > 0 && values[1] > 0),
                  errors::InvalidArgument("Scale must be greater than zero."));
    }
    const float *const scales = scale.host<float>(), *const offsets = translation.host<float>();
    if (height > 0) *y = FilterTaps(*filter_, antialias_, scales[0], offsets[0], height, out_h);
    if (width > 0) *x = FilterTaps(*filter_, antialias_, scales[1], offsets[1], width, out_w);
    return OkStatus();
  }

  const bool gradient_, antialias_;
  const Filter* filter_ = nullptr;
};

}  // namespace

void RegisterImageResize(Registry& registry) {
  for (const ResizeOp& op : kOps) {
    auto entry = registry.Op(op.name);
    entry.Types("T", kImageTypes).Host({"size"});
    if (op.method == Method::kNearest) entry.Requires(needs::Sample(SampleKind::kNearest, Outside::kEdge, "T", "T"));
    if (op.method == Method::kBilinear) {
      entry.Requires(needs::Sample(SampleKind::kBilinear, Outside::kEdge, "T", DType::kFloat))
          .Requires(needs::Cast("T", DType::kFloat));
    }
    if (op.method == Method::kBicubic || op.method == Method::kArea) {
      entry.Requires(needs::Resample("T", DType::kFloat));
    }
    entry.Kernel<ResizeKernel>(&op);
    if (op.gradient == nullptr) continue;
    auto gradient = registry.Op(op.gradient);
    if (op.method == Method::kNearest) {
      gradient.Types("T", kFloatTypes).Host({"size"}).Requires(needs::Resample("T", "T")).Kernel<NearestGradKernel>();
    } else {
      // As on the CPU: of cubic interpolation only for wide types.
      const TypeList wide = {DType::kFloat, DType::kDouble};
      gradient.Types("T", op.method == Method::kBicubic ? wide : kFloatTypes)
          .Requires(needs::Resample(DType::kFloat, "T"))
          .Kernel<ResizeGradKernel>(op.method);
    }
  }
  registry.Op("ScaleAndTranslate")
      .Types("T", kImageTypes)
      .Host({"size", "scale", "translation"})
      .Requires(needs::Resample("T", DType::kFloat))
      .Kernel<ScaleKernel>(false);
  registry.Op("ScaleAndTranslateGrad")
      .Types("T", {DType::kFloat})
      .Host({"scale", "translation"})
      .Requires(needs::Resample(DType::kFloat, "T"))
      .Kernel<ScaleKernel>(true);
}

}  // namespace xpu
