// Projective transforms of images.
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/image/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

enum class FillMode { kConstant, kReflect, kWrap, kNearest };

constexpr struct {
  const char* name;
  FillMode mode;
} kFillModes[] = {{"CONSTANT", FillMode::kConstant},
                  {"REFLECT", FillMode::kReflect},
                  {"WRAP", FillMode::kWrap},
                  {"NEAREST", FillMode::kNearest}};

// Where a coordinate beyond an axis of `extent` pixels is brought to. A reflection is [dcba|abcd|dcba], a wrap
// [abcd|abcd|abcd]; what is left between two pixels at the seam goes to the nearer end.
FormulaValue Mapped(FillMode mode, const FormulaValue& at, const FormulaValue& extent) {
  if (mode == FillMode::kConstant) return at;
  const FormulaValue last = extent - 1.0;
  const auto clamped = [&last](const FormulaValue& v) { return Minimum(Maximum(v, 0.0), last); };
  if (mode == FillMode::kNearest) return clamped(at);
  FormulaValue below = at, beyond = at;
  if (mode == FillMode::kReflect) {
    const FormulaValue period = extent * 2.0;
    below = period * Floor(-at / period) + at;
    below = Select(below < -extent, below + period, -below - 1.0);
    beyond = at - period * Floor(at / period);
    beyond = Select(beyond < extent, beyond, period - beyond - 1.0);
  } else {
    below = at + extent * (Floor(-at / last) + 1.0);
    beyond = at - extent * Floor(at / last);
  }
  const FormulaValue inside = Select(at < 0.0, below, Select(at > last, beyond, at));
  // Beyond what 64 bits count, TensorFlow finds no remainder either.
  const FormulaValue far = mode == FillMode::kReflect ? at.Const(0) : at;
  return clamped(Select(Apply(Opcode::kAbs, at) > 1e18, far, inside));
}

// Along one axis, from five numbers of a transform and a point of the output, where that lies in the image.
const Program* PointProgram(FillMode mode, bool nearest) {
  ProgramBuilder b;
  const auto input = [&b] { return FormulaValue{&b, b.Input(DType::kFloat)}; };
  const FormulaValue of_x = input(), of_y = input(), offset = input(), projected_x = input(), projected_y = input();
  const FormulaValue x = input(), y = input(), extent = input();
  const FormulaValue projection = projected_x * x + projected_y * y + 1.0;
  const FormulaValue at = Mapped(mode, (of_x * x + of_y * y + offset) / projection, extent);
  // At infinity there is no pixel.
  b.Output(Select(projection == 0.0, at.Const(-2), nearest ? Rounded(at) : at).reg);
  return b.Build();
}

class TransformKernel : public OpKernel {
 public:
  TransformKernel(Construction& c, bool has_fill) : has_fill_(has_fill) {
    const std::string interpolation = c.Attr<std::string>("interpolation"), name = c.Attr<std::string>("fill_mode");
    if (!c.status().ok()) return;
    const bool nearest = interpolation == "NEAREST";
    if (!nearest && interpolation != "BILINEAR") {
      c.Fail(errors::InvalidArgument("Invalid interpolation ", interpolation, ". Supported types: NEAREST, BILINEAR"));
    }
    for (const auto& [mode_name, mode] : kFillModes) {
      if (name == mode_name) program_ = PointProgram(mode, nearest);
    }
    if (program_ == nullptr) {
      c.Fail(errors::InvalidArgument("Invalid mode ", name, ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST"));
    }
    kind_ = nearest ? SampleKind::kNearest : SampleKind::kBilinear;
  }

  Status Compute(Context& ctx) override {
    const Tensor images = ctx.input(0), transforms = ctx.input(1), shape = ctx.input(2);
    XPU_REQUIRE(images.rank() == 4, errors::InvalidArgument("Input images must have rank 4"));
    XPU_REQUIRE(transforms.rank() == 2 && (transforms.dim(0) == images.dim(0) || transforms.dim(0) == 1) &&
                    transforms.dim(1) == 8,
                errors::InvalidArgument("Input transform should be num_images x 8 or 1 x 8"));
    XPU_REQUIRE(shape.rank() == 1, errors::InvalidArgument("output shape must be 1-dimensional", shape.ShapeString()));
    XPU_REQUIRE(shape.num_elements() == 2,
                errors::InvalidArgument("output shape must have two elements", shape.ShapeString()));
    std::vector<int64_t> size;
    XPU_RETURN_IF_ERROR(HostIntegers(shape, "output_shape", &size));
    XPU_REQUIRE(size[0] > 0 && size[1] > 0, errors::InvalidArgument("output dimensions must be positive"));
    float fill = 0;
    if (has_fill_) {
      const Tensor value = ctx.input(3);
      XPU_REQUIRE(value.IsScalar(), errors::InvalidArgument("fill_value must be a scalar", value.ShapeString()));
      fill = *value.host<float>();
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {images.dim(0), size[0], size[1], images.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    SampleDesc desc = SampleOf(images, out);
    desc.kind = kind_;
    desc.outside = Outside::kPixels;
    desc.fill = fill;
    // One transform for all images gives the points of one.
    const int64_t n = transforms.dim(0), points = size[0] * size[1];
    desc.y_strides = desc.x_strides = {n == 1 ? 0 : points, size[1], 1};
    Temporary y, x;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {n, size[0], size[1]}, &y));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {n, size[0], size[1]}, &x));
    XPU_RETURN_IF_ERROR(MakePoints(ctx, transforms, images, size, y.data(), x.data()));
    return ctx.Launch(desc, {images.data(), y.data(), x.data(), nullptr}, {out.mutable_data()});
  }

 private:
  Status MakePoints(Context& ctx, const Tensor& transforms, const Tensor& images, const std::vector<int64_t>& size,
                    void* y, void* x) const {
    std::vector<float> values = {static_cast<float>(images.dim(1)), static_cast<float>(images.dim(2))};
    for (const int64_t extent : size) {
      for (int64_t i = 0; i < extent; ++i) values.push_back(static_cast<float>(i));
    }
    Temporary uploaded;
    XPU_RETURN_IF_ERROR(UploadFloats(ctx, values, &uploaded));
    const float* const extents = static_cast<const float*>(uploaded.data());
    const float *const rows = extents + 2, *const columns = rows + size[0];
    const float* const t = static_cast<const float*>(transforms.data());
    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = {transforms.dim(0), size[0], size[1]};
    for (int k = 0; k < 5; ++k) desc.in_strides[k] = {8, 0, 0};
    desc.in_strides[5] = {0, 0, 1};
    desc.in_strides[6] = {0, 1, 0};
    desc.in_strides[7] = {0, 0, 0};
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {t, t + 1, t + 2, t + 6, t + 7, columns, rows, extents + 1}, {x}));
    return ctx.Launch(desc, {t + 3, t + 4, t + 5, t + 6, t + 7, columns, rows, extents}, {y});
  }

  const bool has_fill_;
  SampleKind kind_ = SampleKind::kNearest;
  const Program* program_ = nullptr;
};

Need Transforms() {
  return [](Needs& n) {
    for (const bool nearest : {false, true}) {
      for (const auto& row : kFillModes) n.AskProgram(PointProgram(row.mode, nearest));
      needs::Sample(nearest ? SampleKind::kNearest : SampleKind::kBilinear, Outside::kPixels, "dtype", "dtype")(n);
    }
  };
}

}  // namespace

void RegisterImageTransform(Registry& registry) {
  const TypeList types = {DType::kUint8,    DType::kInt32, DType::kInt64, DType::kHalf,
                          DType::kBFloat16, DType::kFloat, DType::kDouble};
  registry.Op("ImageProjectiveTransformV2")
      .Types("dtype", types)
      .Host({"output_shape"})
      .Requires(Transforms())
      .Kernel<TransformKernel>(false);
  registry.Op("ImageProjectiveTransformV3")
      .Types("dtype", types)
      .Host({"output_shape", "fill_value"})
      .Requires(Transforms())
      .Kernel<TransformKernel>(true);
}

}  // namespace xpu
