// Dilation2D: the maximum over a window of an image plus a filter, and its gradients.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/nn/patches.h"
#include "tensorflow_plugin/ops/ops.h"

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

// So many pixels of a window are looked at in one program.
constexpr int kPixels = 6;

// The largest sum of some pixels of all windows, after those that were looked at before; with `numbered`, the first
// pixel that has it, too. A NaN is never the largest.
//   in:  the largest and its number so far, if any, and the number of the first pixel here, if numbered; then pairs
const Program* PixelsProgram(DType type, int pixels, bool first, bool numbered) {
  ProgramBuilder b;
  FormulaValue largest, best, base;
  if (!first) largest = {&b, b.Input(type)};
  if (!first && numbered) best = {&b, b.Input(DType::kInt32)};
  if (numbered) base = {&b, b.Input(DType::kInt32)};
  if (first) largest = {&b, b.Const(type, Lowest(type))};
  if (first && numbered) best = base;
  for (int i = 0; i < pixels; ++i) {
    const ProgramBuilder::Reg x = b.Input(type), f = b.Input(type);
    const FormulaValue sum = {&b, b.Round(b.Apply(Opcode::kAdd, x, f))}, larger = sum > largest;
    largest = Select(larger, sum, largest);
    if (numbered) best = Select(larger, base + static_cast<double>(i), best);
  }
  b.Output(largest.reg);
  if (numbered) b.Output(best.reg);
  return b.Build();
}

// Where a window's maximum lies in the image: -1 if that is outside. From its number in the window.
const Program* InputPositionProgram() {
  ProgramBuilder b;
  const auto integer = [&b] { return FormulaValue{&b, b.Input(DType::kInt64)}; };
  const FormulaValue best = Cast(FormulaValue{&b, b.Input(DType::kInt32)}, DType::kDouble);
  const FormulaValue image = integer(), top = integer(), left = integer(), channel = integer();
  const FormulaValue columns = integer(), row_rate = integer(), column_rate = integer();
  const FormulaValue height = integer(), width = integer(), channels = integer();
  const FormulaValue row = Cast(Floor((best + 0.5) / Cast(columns, DType::kDouble)), DType::kInt64);
  const FormulaValue column = Cast(best, DType::kInt64) - row * columns;
  // For windows without a maximum, TensorFlow means the first pixel inside.
  const FormulaValue y = Maximum(top + row * row_rate, 0.0), x = Maximum(left + column * column_rate, 0.0);
  const FormulaValue position = ((image * height + y) * width + x) * channels + channel;
  b.Output(Select(y < height && x < width, position, position.Const(-1)).reg);
  return b.Build();
}

const Program* FilterPositionProgram() {
  ProgramBuilder b;
  const FormulaValue best = Cast(FormulaValue{&b, b.Input(DType::kInt32)}, DType::kInt64);
  const FormulaValue channel = {&b, b.Input(DType::kInt64)}, channels = {&b, b.Input(DType::kInt64)};
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
    for (int pixels = 1; pixels <= kPixels; ++pixels) {
      for (const bool first : {false, true}) {
        pixels_[pixels][first] = PixelsProgram(type_, pixels, first, target != Target::kOutput);
      }
    }
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
    const std::vector<int64_t> values = WindowAttr(c, name);
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
    return Largest(ctx, patches, image, filter, out.mutable_data(), nullptr);
  }

  Status Gradient(Context& ctx, const Patches& patches, const Tensor& image, const Tensor& filter,
                  const Tensor& gradient) const {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, target_ == Target::kInput ? image : filter, &out));
    if (out.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(FillZero(ctx, out));
    if (gradient.num_elements() == 0 || filter.num_elements() == 0 || image.num_elements() == 0) return OkStatus();
    Temporary largest, best, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, gradient.dims(), &largest));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, gradient.dims(), &best));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, gradient.dims(), &positions));
    XPU_RETURN_IF_ERROR(Largest(ctx, patches, image, filter, largest.data(), best.data()));
    XPU_RETURN_IF_ERROR(Locate(ctx, patches, best, gradient.dims(), positions));
    ScatterDesc desc;
    desc.kind = ScatterKind::kAdd;
    desc.type = type_;
    desc.num_indices = gradient.num_elements();
    desc.dims = {out.num_elements()};
    desc.skip_negative = true;
    return ctx.Launch(desc, {positions.data(), gradient.data()}, {out.mutable_data()});
  }

  // The largest sum of each window and, if `best` is not null, the number of its first pixel with that.
  Status Largest(Context& ctx, const Patches& patches, const Tensor& image, const Tensor& filter, void* largest,
                 void* best) const {
    Temporary padded, numbers;
    PatchView view;
    XPU_RETURN_IF_ERROR(ViewPatches(ctx, patches, image, LowestElement().data(), &padded, &view));
    const int64_t count = patches.window[0] * patches.window[1], size = static_cast<int64_t>(SizeOf(type_));
    if (best != nullptr) {
      std::vector<int64_t> firsts;
      for (int64_t first = 0; first < count; first += kPixels) firsts.push_back(first);
      XPU_RETURN_IF_ERROR(Upload(ctx, firsts, DType::kInt32, &numbers));
    }
    ElementwiseDesc desc;
    desc.shape = patches.OutputShape();
    const Dims dense = DenseStrides(desc.shape), along_image = {view.strides[0], view.strides[1], view.strides[2], 1};
    for (int64_t first = 0; first < count; first += kPixels) {
      const int pixels = static_cast<int>(std::min<int64_t>(kPixels, count - first));
      Args args;
      int n = 0;
      const auto add = [&](const void* address, const Dims& strides) {
        desc.in_strides[n] = strides;
        args.in[n++] = address;
      };
      desc.program = pixels_[pixels][first == 0];
      if (first > 0) add(largest, dense);
      if (first > 0 && best != nullptr) add(best, dense);
      if (best != nullptr) add(static_cast<const int32_t*>(numbers.data()) + first / kPixels, Dims(4, 0));
      for (int64_t pixel = first; pixel < first + pixels; ++pixel) {
        const int64_t at = pixel / patches.window[1] * view.strides[3] + pixel % patches.window[1] * view.strides[4];
        add(static_cast<const char*>(view.data) + at * size, along_image);
        add(static_cast<const char*>(filter.data()) + pixel * patches.channels * size, {0, 0, 0, 1});
      }
      args.out[0] = largest;
      args.out[1] = best;
      XPU_RETURN_IF_ERROR(ctx.LaunchElementwise(desc, args));
    }
    return OkStatus();
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
  const Program* pixels_[kPixels + 1][2] = {};
  const Program* position_ = nullptr;
};

Need Dilates(Target target) {
  return [target](Needs& n) {
    const DType type = n.type("T");
    for (int pixels = 1; pixels <= kPixels; ++pixels) {
      for (const bool first : {false, true})
        n.AskProgram(PixelsProgram(type, pixels, first, target != Target::kOutput));
    }
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
