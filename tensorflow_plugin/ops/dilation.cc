// Dilation2D: the maximum over a window of an image plus a filter, and its gradients.
#include <cstring>
#include <limits>
#include <vector>

#include "tensorflow_plugin/ops/array_util.h"
#include "tensorflow_plugin/ops/formula.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/patches.h"

namespace xpu {
namespace {

enum class Target { kOutput, kInput, kFilter };

constexpr struct DilationOp {
  const char* name;
  Target target;
} kOps[] = {{"Dilation2D", Target::kOutput},
            {"Dilation2DBackpropInput", Target::kInput},
            {"Dilation2DBackpropFilter", Target::kFilter}};

double Lowest(DType type) {
  switch (type) {
    case DType::kHalf:
      return -65504;
    case DType::kBFloat16:
      return -0x1.fep127;
    case DType::kFloat:
      return std::numeric_limits<float>::lowest();
    default:
      return std::numeric_limits<double>::lowest();
  }
}

// The sum, or the lowest number: where the search starts, so that no NaN is ever found.
const Program* SumProgram(DType type) {
  ProgramBuilder b;
  const ProgramBuilder::Reg x = b.Input(type), f = b.Input(type);
  const Value sum = {&b, b.Round(b.Apply(EOp::kAdd, x, f))}, lowest = sum.Const(Lowest(type));
  b.Output(Select(sum > lowest, sum, lowest).reg);
  return b.Build();
}

// Where a window's maximum lies in the image: -1 if that is outside. From its number in the window.
const Program* InputPositionProgram() {
  ProgramBuilder b;
  const auto integer = [&b] { return Value{&b, b.Input(DType::kInt64)}; };
  const Value best = Cast(Value{&b, b.Input(DType::kInt32)}, DType::kDouble);
  const Value image = integer(), top = integer(), left = integer(), channel = integer();
  const Value columns = integer(), row_rate = integer(), column_rate = integer();
  const Value height = integer(), width = integer(), channels = integer();
  const Value row = Cast(Floor((best + 0.5) / Cast(columns, DType::kDouble)), DType::kInt64);
  const Value column = Cast(best, DType::kInt64) - row * columns;
  // Of windows without a maximum, TensorFlow means the first pixel inside.
  const Value y = Maximum(top + row * row_rate, 0.0), x = Maximum(left + column * column_rate, 0.0);
  const Value position = ((image * height + y) * width + x) * channels + channel;
  b.Output(Select(y < height && x < width, position, position.Const(-1)).reg);
  return b.Build();
}

const Program* FilterPositionProgram() {
  ProgramBuilder b;
  const Value best = Cast(Value{&b, b.Input(DType::kInt32)}, DType::kInt64);
  const Value channel = {&b, b.Input(DType::kInt64)}, channels = {&b, b.Input(DType::kInt64)};
  b.Output((best * channels + channel).reg);
  return b.Build();
}

class DilationKernel : public OpKernel {
 public:
  DilationKernel(Construction& c, Target target) : target_(target), type_(c.Attr<DType>("T")) {
    Read(c, "strides", "Sliding window stride field must specify 4 dimensions",
         "Stride is only supported across spatial dimensions.", patches_.stride);
    Read(c, "rates", "Input stride (atrous rate) field must specify 4 dimensions",
         "Rate is only supported across spatial dimensions.", patches_.rate);
    padding_ = PaddingAttr(c, Layout());
    if (!c.status().ok()) return;
    sum_ = SumProgram(type_);
    position_ = target == Target::kInput ? InputPositionProgram() : FilterPositionProgram();
  }

  Status Compute(Context& ctx) override {
    const Tensor image = ctx.input(0), filter = ctx.input(1);
    XPU_REQUIRE(image.rank() == 4, errors::InvalidArgument("input must be 4-dimensional", image.ShapeString()));
    XPU_REQUIRE(filter.rank() == 3, errors::InvalidArgument("filter must be 3-dimensional: ", filter.ShapeString()));
    XPU_REQUIRE(
        image.dim(3) == filter.dim(2),
        errors::InvalidArgument("input and filter must have the same depth: ", image.dim(3), " vs ", filter.dim(2)));
    Patches patches = patches_;
    for (int i = 0; i < 2; ++i) patches.window[i] = filter.dim(i);
    XPU_RETURN_IF_ERROR(patches.Resolve(image.dims(), padding_));
    if (target_ == Target::kOutput) return Forward(ctx, patches, image, filter);
    const Tensor gradient = ctx.input(2);
    XPU_REQUIRE(gradient.rank() == 4,
                errors::InvalidArgument("out_backprop must be 4-dimensional", gradient.ShapeString()));
    XPU_REQUIRE(gradient.dims() == patches.OutputShape(),
                errors::InvalidArgument("out_backprop has incompatible size."));
    return Gradient(ctx, patches, image, filter, gradient);
  }

 private:
  static void Read(Construction& c, const char* name, const char* wrong_size, const char* unsupported,
                   int64_t* spatial) {
    const std::vector<int64_t> values = c.Attr<std::vector<int64_t>>(name);
    if (!c.status().ok()) return;
    if (values.size() != 4) return c.Fail(errors::InvalidArgument(wrong_size));
    if (values[0] != 1 || values[3] != 1) return c.Fail(errors::Unimplemented(unsupported));
    spatial[0] = values[1];
    spatial[1] = values[2];
    if (spatial[0] < 1 || spatial[1] < 1) {
      c.Fail(errors::InvalidArgument(name, " must be positive, got [", spatial[0], ",", spatial[1], "]"));
    }
  }

  // The lowest number of the type, as an element.
  std::vector<char> LowestElement() const {
    std::vector<char> bytes(SizeOf(type_));
    VisitType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (IsFloating(DTypeOf<T>::value)) {
        const T lowest = T(static_cast<ComputeTypeT<T>>(Lowest(type_)));
        std::memcpy(bytes.data(), &lowest, sizeof lowest);
      }
    });
    return bytes;
  }

  Status Forward(Context& ctx, const Patches& patches, const Tensor& image, const Tensor& filter) const {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, patches.OutputShape(), &out));
    if (out.num_elements() == 0) return OkStatus();
    if (filter.num_elements() == 0 || image.num_elements() == 0) return Fill(ctx, LowestElement().data(), out);
    Temporary padded;
    PatchView view;
    XPU_RETURN_IF_ERROR(ViewPatches(ctx, patches, image, LowestElement().data(), &padded, &view));
    ReduceDesc desc;
    desc.kind = ReduceKind::kMax;
    desc.source.program = sum_;
    desc.source.shape = view.shape;
    desc.source.in_strides[0] = view.strides;
    desc.source.in_strides[1] = {0, 0, 0, filter.dim(1) * filter.dim(2), filter.dim(2), 1};
    desc.axes = 0b011000;
    return ctx.Launch(desc, {view.data, filter.data()}, {out.mutable_data()});
  }

  Status Gradient(Context& ctx, const Patches& patches, const Tensor& image, const Tensor& filter,
                  const Tensor& gradient) const {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, target_ == Target::kInput ? image : filter, &out));
    if (out.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(FillZero(ctx, out));
    if (gradient.num_elements() == 0 || filter.num_elements() == 0 || image.num_elements() == 0) return OkStatus();
    Temporary best, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, gradient.dims(), &best));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, gradient.dims(), &positions));
    XPU_RETURN_IF_ERROR(FindBest(ctx, patches, image, filter, best));
    XPU_RETURN_IF_ERROR(Locate(ctx, patches, best, gradient.dims(), positions));
    ScatterDesc desc;
    desc.kind = ScatterKind::kAdd;
    desc.type = type_;
    desc.num_indices = gradient.num_elements();
    desc.dims = {out.num_elements()};
    desc.skip_negative = true;
    return ctx.Launch(desc, {positions.data(), gradient.data()}, {out.mutable_data()});
  }

  // Of each window the number of its first maximum. The windows are laid out, so that what they hold is one axis.
  Status FindBest(Context& ctx, const Patches& patches, const Tensor& image, const Tensor& filter,
                  const Temporary& best) const {
    Temporary padded, windows;
    PatchView view;
    XPU_RETURN_IF_ERROR(ViewPatches(ctx, patches, image, LowestElement().data(), &padded, &view));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, view.shape, &windows));
    XPU_RETURN_IF_ERROR(
        CopyView(ctx, SizeOf(type_), view.shape, view.data, {view.strides, 0}, windows.data(), DenseView(view.shape)));
    const int64_t outputs = patches.batch * patches.output[0] * patches.output[1];
    const int64_t cells = patches.window[0] * patches.window[1], channels = patches.channels;
    ReduceDesc desc;
    desc.kind = ReduceKind::kArgMax;
    desc.index_type = DType::kInt32;
    desc.source.program = sum_;
    desc.source.shape = {outputs, cells, channels};
    desc.source.in_strides[0] = {cells * channels, channels, 1};
    desc.source.in_strides[1] = {0, channels, 1};
    desc.axes = 0b010;
    return ctx.Launch(desc, {windows.data(), filter.data()}, {best.data()});
  }

  // From those numbers, elements of the image or the filter.
  Status Locate(Context& ctx, const Patches& p, const Temporary& best, const Dims& shape,
                const Temporary& positions) const {
    // One array: of images, rows, columns and channels what each adds, then what there is one of.
    std::vector<int64_t> values;
    int64_t firsts[4];
    for (int axis = 0; axis < 4; ++axis) {
      firsts[axis] = static_cast<int64_t>(values.size());
      const bool spatial = axis == 1 || axis == 2;
      for (int64_t i = 0; i < shape[axis]; ++i) {
        values.push_back(spatial ? i * p.stride[axis - 1] - p.pad_before[axis - 1] : i);
      }
    }
    const int64_t constants = static_cast<int64_t>(values.size());
    for (int64_t v : {p.window[1], p.rate[0], p.rate[1], p.input[0], p.input[1], p.channels}) values.push_back(v);
    Temporary uploaded;
    XPU_RETURN_IF_ERROR(Upload(ctx, values, DType::kInt64, &uploaded));
    const int64_t* const at = static_cast<const int64_t*>(uploaded.data());
    ElementwiseDesc desc;
    desc.program = position_;
    desc.shape = shape;
    desc.in_strides[0] = DenseStrides(shape);
    const Dims along[4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    if (target_ == Target::kFilter) {
      desc.in_strides[1] = along[3];
      desc.in_strides[2] = Dims(4, 0);
      return ctx.Launch(desc, {best.data(), at + firsts[3], at + constants + 5}, {positions.data()});
    }
    Args args;
    args.in[0] = best.data();
    args.out[0] = positions.data();
    for (int k = 0; k < 4; ++k) {
      desc.in_strides[1 + k] = along[k];
      args.in[1 + k] = at + firsts[k];
    }
    for (int k = 0; k < 6; ++k) {
      desc.in_strides[5 + k] = Dims(4, 0);
      args.in[5 + k] = at + constants + k;
    }
    return ctx.LaunchElementwise(desc, args);
  }

  const Target target_;
  const DType type_;
  Patches patches_;
  Padding padding_;
  const Program *sum_ = nullptr, *position_ = nullptr;
};

Need Dilates(Target target) {
  return [target](Needs& n) {
    const DType type = n.type("T");
    ReduceDesc desc;
    desc.kind = target == Target::kOutput ? ReduceKind::kMax : ReduceKind::kArgMax;
    desc.index_type = DType::kInt32;
    desc.source.program = SumProgram(type);
    n.Ask(desc);
    needs::Copy("T")(n);
    if (target == Target::kOutput) return;
    n.AskProgram(target == Target::kInput ? InputPositionProgram() : FilterPositionProgram());
    needs::Scatter(ScatterKind::kAdd, "T", DType::kInt64)(n);
  };
}

}  // namespace

void RegisterDilation(Registry& registry) {
  for (const DilationOp& op : kOps) {
    registry.Op(op.name).Types("T", kFloatTypes).Requires(Dilates(op.target)).Kernel<DilationKernel>(op.target);
  }
}

}  // namespace xpu
