// CropAndResize and its gradients: boxes of images, sampled on a grid each.
#include <initializer_list>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/image/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// The crop's rows along y or its columns along x: the place of point i of n in the image, whose last pixel is `last`.
// TensorFlow's gradient of boxes multiplies in another order.
struct AxisForm {
  bool single;   // n is 1: the point lies in the middle of the box
  bool nearest;  // points inside are moved to the nearest pixel
  bool ratio;    // last / (n - 1) is one number
};

const Program* AxisProgram(const AxisForm& form) {
  ProgramBuilder b;
  const auto input = [&b] { return FormulaValue{&b, b.Input(DType::kFloat)}; };
  const FormulaValue begin = input(), end = input(), i = input(), last = input(), steps = input();
  FormulaValue at = begin;
  if (form.single) {
    at = (begin + end) * 0.5 * last;
  } else {
    const FormulaValue step = form.ratio ? (end - begin) * (last / steps) : (end - begin) * last / steps;
    at = begin * last + i * step;
  }
  if (form.nearest) at = Select(at < 0.0 || at > last, at, Rounded(at));
  b.Output(at.reg);
  return b.Build();
}

// A box with a number that is not finite has no image: this stands in place of its number.
constexpr int64_t kNotFinite = INT32_MIN;

const Program* NumbersProgram() {
  ProgramBuilder b;
  FormulaValue finite;
  for (int k = 0; k < 4; ++k) {
    const FormulaValue is_finite = Apply(Opcode::kIsFinite, FormulaValue{&b, b.Input(DType::kFloat)});
    finite = k == 0 ? is_finite : finite && is_finite;
  }
  const FormulaValue number = {&b, b.Input(DType::kInt32)};
  b.Output(Select(finite, number, FormulaValue{&b, b.ConstInt(DType::kInt32, kNotFinite)}).reg);
  return b.Build();
}

Status BadNumber(const Status& failure, const std::vector<int64_t>&) {
  if (failure.code() != Code::kInvalidArgument) return failure;
  if (failure.message().find(std::to_string(kNotFinite)) != std::string::npos) {
    return errors::InvalidArgument("Boxes contains at least one element that is not finite");
  }
  return errors::OutOfRange("box_index has values outside [0, batch_size)");
}

// Samples, with TensorFlow's words for a box without an image.
Status Launch(Context& ctx, const SampleDesc& desc, std::initializer_list<const void*> in,
              std::initializer_list<void*> out) {
  static const DescribeError explain = BadNumber;
  const Status status = ctx.LaunchChecked(desc, in, out, &explain);
  return status.ok() ? status : BadNumber(status, {});
}

class CropKernel : public OpKernel {
 public:
  CropKernel(Construction& c, SampleDirection direction) : direction_(direction) {
    const std::string method = c.Attr<std::string>("method");
    if (!c.status().ok()) return;
    const bool nearest = method == "nearest";
    const bool of_points = direction == SampleDirection::kPointGradient;
    if (method != "bilinear" && (!nearest || of_points)) {
      c.Fail(errors::InvalidArgument("method must be 'bilinear'", of_points ? "" : " or 'nearest'", method));
      return;
    }
    kind_ = nearest ? SampleKind::kNearest : SampleKind::kBilinear;
    single_ = AxisProgram({true, nearest, of_points});
    several_ = AxisProgram({false, nearest, of_points});
    numbers_ = NumbersProgram();
    product_ = SingleOpProgram(Opcode::kMul, DType::kFloat);
    if (direction == SampleDirection::kForward) fill_ = c.Attr<float>("extrapolation_value");
  }

  Status Compute(Context& ctx) override {
    switch (direction_) {
      case SampleDirection::kForward:
        return Forward(ctx);
      case SampleDirection::kImageGradient:
        return ImageGradient(ctx);
      case SampleDirection::kPointGradient:
        break;
    }
    return BoxGradient(ctx);
  }

 private:
  static Status CheckBoxes(const Tensor& boxes, const Tensor& numbers) {
    if (boxes.num_elements() == 0 && numbers.num_elements() == 0) return OkStatus();
    XPU_REQUIRE(boxes.rank() == 2, errors::InvalidArgument("boxes must be 2-D", boxes.ShapeString()));
    XPU_REQUIRE(boxes.dim(1) == 4, errors::InvalidArgument("boxes must have 4 columns"));
    XPU_REQUIRE(numbers.rank() == 1, errors::InvalidArgument("box_index must be 1-D", numbers.ShapeString()));
    XPU_REQUIRE(numbers.dim(0) == boxes.dim(0), errors::InvalidArgument("box_index has incompatible shape"));
    return OkStatus();
  }

  static Status CheckGradient(const Tensor& gradient) {
    XPU_REQUIRE(gradient.rank() == 4, errors::InvalidArgument("grads image must be 4-D", gradient.ShapeString()));
    XPU_REQUIRE(gradient.dim(1) > 0 && gradient.dim(2) > 0,
                errors::InvalidArgument("grads dimensions must be positive"));
    return OkStatus();
  }

  Status Forward(Context& ctx) const {
    const Tensor image = ctx.input(0), boxes = ctx.input(1), numbers = ctx.input(2), size = ctx.input(3);
    XPU_REQUIRE(image.rank() == 4, errors::InvalidArgument("input image must be 4-D", image.ShapeString()));
    XPU_REQUIRE(image.dim(1) > 0 && image.dim(2) > 0, errors::InvalidArgument("image dimensions must be positive"));
    XPU_REQUIRE(boxes.rank() == 2, errors::InvalidArgument("boxes must be 2-D, got: ", boxes.ShapeString()));
    XPU_REQUIRE(numbers.rank() == 1,
                errors::InvalidArgument("box_indices must be rank 1 but is shape ", numbers.ShapeString()));
    XPU_RETURN_IF_ERROR(CheckBoxes(boxes, numbers));
    XPU_REQUIRE(size.rank() == 1, errors::InvalidArgument("crop_size must be 1-D", size.ShapeString()));
    XPU_REQUIRE(size.dim(0) == 2, errors::InvalidArgument("crop_size must have two elements", size.ShapeString()));
    std::vector<int64_t> crop;
    XPU_RETURN_IF_ERROR(HostIntegers(size, "crop_size", &crop));
    XPU_REQUIRE(crop[0] > 0 && crop[1] > 0, errors::InvalidArgument("crop dimensions must be positive"));
    const int64_t n = numbers.dim(0);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {n, crop[0], crop[1], image.dim(3)}, &out));
    if (out.num_elements() == 0) return OkStatus();
    SampleDesc desc = SampleOf(image, out);
    Temporary points, checked;
    XPU_RETURN_IF_ERROR(MakePoints(ctx, boxes, &desc, &points));
    // Only this op refuses values that are not finite: gradients pass over them.
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, {n}, &checked));
    const float* const corners = static_cast<const float*>(boxes.data());
    ElementwiseDesc check;
    check.program = numbers_;
    check.shape = {n};
    for (int k = 0; k < 4; ++k) check.in_strides[k] = {4};
    check.in_strides[4] = {1};
    XPU_RETURN_IF_ERROR(
        ctx.Launch(check, {corners, corners + 1, corners + 2, corners + 3, numbers.data()}, {checked.data()}));
    const float* const y = static_cast<const float*>(points.data());
    return Launch(ctx, desc, {image.data(), y, y + n * crop[0], checked.data()}, {out.mutable_data()});
  }

  Status ImageGradient(Context& ctx) const {
    const Tensor gradient = ctx.input(0), boxes = ctx.input(1), numbers = ctx.input(2), size = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckGradient(gradient));
    XPU_RETURN_IF_ERROR(CheckBoxes(boxes, numbers));
    XPU_REQUIRE(gradient.dim(0) == numbers.num_elements(),
                errors::InvalidArgument("boxes and grads have incompatible shape"));
    XPU_REQUIRE(size.rank() == 1, errors::InvalidArgument("image_size must be 1-D", size.ShapeString()));
    XPU_REQUIRE(size.dim(0) == 4, errors::InvalidArgument("image_size must have 4 elements", size.ShapeString()));
    std::vector<int64_t> shape;
    XPU_RETURN_IF_ERROR(HostIntegers(size, "image_size", &shape));
    XPU_REQUIRE(shape[1] > 0 && shape[2] > 0, errors::InvalidArgument("image dimensions must be positive"));
    XPU_REQUIRE(gradient.dim(3) == shape[3], errors::InvalidArgument("image_size and grads are incompatible"));
    XPU_REQUIRE(shape[0] >= 0 && shape[3] >= 0,
                errors::InvalidArgument("Expected a non-negative size, got ", shape[0] < 0 ? shape[0] : shape[3]));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, ToDims(shape), &out));
    if (out.num_elements() == 0) return OkStatus();
    SampleDesc desc = SampleOf(out, gradient);
    desc.direction = SampleDirection::kImageGradient;
    Temporary points;
    XPU_RETURN_IF_ERROR(MakePoints(ctx, boxes, &desc, &points));
    const float* const y = static_cast<const float*>(points.data());
    return Launch(ctx, desc, {gradient.data(), y, y + desc.batch * desc.out_h, numbers.data()}, {out.mutable_data()});
  }

  Status BoxGradient(Context& ctx) const {
    const Tensor gradient = ctx.input(0), image = ctx.input(1), boxes = ctx.input(2), numbers = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckGradient(gradient));
    XPU_REQUIRE(image.rank() == 4, errors::InvalidArgument("input image must be 4-D", image.ShapeString()));
    XPU_REQUIRE(image.dim(1) > 0 && image.dim(2) > 0, errors::InvalidArgument("image dimensions must be positive"));
    XPU_REQUIRE(image.dim(3) == gradient.dim(3), errors::InvalidArgument("image, grads depth differ"));
    XPU_RETURN_IF_ERROR(CheckBoxes(boxes, numbers));
    const int64_t n = gradient.dim(0);
    XPU_REQUIRE(n == numbers.num_elements(), errors::InvalidArgument("boxes and grads have incompatible shape"));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {n, 4}, &out));
    if (n == 0) return OkStatus();
    SampleDesc desc = SampleOf(image, gradient);
    desc.direction = SampleDirection::kPointGradient;
    Temporary points, dy, dx;
    XPU_RETURN_IF_ERROR(MakePoints(ctx, boxes, &desc, &points));
    const Dims grid = {n, desc.out_h, desc.out_w};
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, grid, &dy));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, grid, &dx));
    const float* const y = static_cast<const float*>(points.data());
    XPU_RETURN_IF_ERROR(Launch(ctx, desc, {gradient.data(), image.data(), y, y + n * desc.out_h, numbers.data()},
                               {dy.data(), dx.data()}));
    XPU_RETURN_IF_ERROR(AddUp(ctx, dy, grid, 1, desc.height - 1, out, 0));
    return AddUp(ctx, dx, grid, 2, desc.width - 1, out, 1);
  }

  // Columns `column` and `column` + 2 of the boxes' gradient `out`, from the gradient of points along an axis of the
  // grid. Each point moves with both ends of the box, the more the nearer it is to one.
  Status AddUp(Context& ctx, const Temporary& of_points, const Dims& grid, int axis, int64_t last, const Tensor& out,
               int64_t column) const {
    const int64_t n = grid[axis];
    std::vector<float> weights(2 * n);
    const float extent = static_cast<float>(last), ratio = n > 1 ? extent / static_cast<float>(n - 1) : 0;
    for (int64_t i = 0; i < n; ++i) {
      weights[n + i] = n > 1 ? static_cast<float>(i) * ratio : 0.5f * extent;
      weights[i] = n > 1 ? extent - static_cast<float>(i) * ratio : 0.5f * extent;
    }
    Temporary factors, sums;
    XPU_RETURN_IF_ERROR(UploadFloats(ctx, weights, &factors));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {grid[0], 2}, &sums));
    ReduceDesc desc;
    desc.source.program = product_;
    desc.source.shape = {grid[0], 2, grid[1], grid[2]};
    desc.source.in_strides[0] = {grid[1] * grid[2], 0, grid[2], 1};
    desc.source.in_strides[1] = {0, n, axis == 1, axis == 2};
    desc.axes = 0b1100;
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {of_points.data(), factors.data()}, {sums.data()}));
    const Dims pairs = {grid[0], 2};
    return CopyView(ctx, sizeof(float), pairs, sums.data(), DenseView(pairs), out.mutable_data(), {{4, 2}, column});
  }

  // The points of all crops, those of rows before those of columns; and what the descriptor says of them.
  Status MakePoints(Context& ctx, const Tensor& boxes, SampleDesc* desc, Temporary* points) const {
    desc->kind = kind_;
    desc->outside = Outside::kFill;
    desc->fill = fill_;
    desc->numbered = true;
    desc->y_strides = {desc->out_h, 1, 0};
    desc->x_strides = {desc->out_w, 0, 1};
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {desc->batch * (desc->out_h + desc->out_w)}, points));
    float* to = static_cast<float*>(points->data());
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t count = axis == 0 ? desc->out_h : desc->out_w, extent = axis == 0 ? desc->height : desc->width;
      std::vector<float> values = {static_cast<float>(extent - 1), static_cast<float>(count - 1)};
      for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
      Temporary uploaded;
      XPU_RETURN_IF_ERROR(UploadFloats(ctx, values, &uploaded));
      const float *const constants = static_cast<const float*>(uploaded.data()), *const box = static_cast<const float*>(
                                                                                                  boxes.data()) +
                                                                                              axis;
      ElementwiseDesc program;
      program.program = count == 1 ? single_ : several_;
      program.shape = {desc->batch, count};
      program.in_strides[0] = program.in_strides[1] = {4, 0};
      program.in_strides[2] = {0, 1};
      program.in_strides[3] = program.in_strides[4] = {0, 0};
      XPU_RETURN_IF_ERROR(ctx.Launch(program, {box, box + 2, constants + 2, constants, constants + 1}, {to}));
      to += desc->batch * count;
    }
    return OkStatus();
  }

  const SampleDirection direction_;
  SampleKind kind_ = SampleKind::kBilinear;
  float fill_ = 0;
  const Program *single_ = nullptr, *several_ = nullptr, *numbers_ = nullptr, *product_ = nullptr;
};

Need Crops(SampleDirection direction) {
  return [direction](Needs& n) {
    for (const bool nearest : {false, true}) {
      for (const bool single : {false, true}) n.AskProgram(AxisProgram({single, nearest, false}));
      if (nearest && direction == SampleDirection::kPointGradient) continue;
      needs::Sample(nearest ? SampleKind::kNearest : SampleKind::kBilinear, Outside::kFill, "T", DType::kFloat,
                    direction)(n);
    }
    n.AskProgram(NumbersProgram());
    ReduceDesc sum;
    sum.source.program = SingleOpProgram(Opcode::kMul, DType::kFloat);
    n.Ask(sum);
  };
}

}  // namespace

void RegisterImageCrop(Registry& registry) {
  const TypeList types = Without(kImageTypes, DType::kBFloat16);
  const struct {
    const char* name;
    SampleDirection direction;
    std::vector<const char*> host;
    TypeList types;
  } ops[] = {
      {"CropAndResize", SampleDirection::kForward, {"crop_size"}, types},
      {"CropAndResizeGradImage",
       SampleDirection::kImageGradient,
       {"image_size"},
       {DType::kHalf, DType::kFloat, DType::kDouble}},
      {"CropAndResizeGradBoxes", SampleDirection::kPointGradient, {}, types},
  };
  for (const auto& op : ops) {
    registry.Op(op.name)
        .Types("T", op.types)
        .Host(op.host)
        .Requires(Crops(op.direction))
        .Kernel<CropKernel>(op.direction);
  }
}

}  // namespace xpu
