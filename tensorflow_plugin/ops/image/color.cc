// Colours: RGB and HSV, and the adjustments of hue, saturation and contrast.
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// A pixel's three numbers.
struct Colour {
  FormulaValue a, b, c;
};

// Which sixth of the circle of hues: 0 to 5, else none.
struct Sixth {
  explicit Sixth(const FormulaValue& number) {
    for (int i = 0; i < 6; ++i) is[i] = number == static_cast<double>(i);
  }
  FormulaValue Case(const FormulaValue (&cases)[6], const FormulaValue& none) const {
    FormulaValue result = none;
    for (int i = 5; i >= 0; --i) result = Select(is[i], cases[i], result);
    return result;
  }
  FormulaValue is[6];
};

Colour RgbToHsv(const Colour& in, const FormulaValue&) {
  const auto& [r, g, b] = in;
  const FormulaValue v = Maximum(r, Maximum(g, b)), range = v - Minimum(r, Minimum(g, b)), zero = v.Const(0);
  const FormulaValue s = Select(v > 0.0, range / v, zero), unit = 1.0 / range * (1.0 / 6);
  FormulaValue h = Select(r == v, unit * (g - b), Select(g == v, unit * (b - r) + 2.0 / 6, unit * (r - g) + 4.0 / 6));
  h = Select(range > 0.0, h, zero);
  return {Select(h < 0.0, h + 1.0, h), s, v};
}

Colour HsvToRgb(const Colour& in, const FormulaValue&) {
  const auto& [h, s, v] = in;
  const FormulaValue at = h * 6.0, rest = 1.0 - s;
  const auto share = [](const FormulaValue& x) { return Minimum(Maximum(x, 0.0), 1.0); };
  const auto peak = [&](double where) { return share(2.0 - Apply(Opcode::kAbs, at - where)); };
  const FormulaValue red = share(Apply(Opcode::kAbs, at - 3.0) - 1.0);
  return {(rest + s * red) * v, (rest + s * peak(2)) * v, (rest + s * peak(4)) * v};
}

// Turned by `delta` of the whole circle; the largest and the smallest of the three stay what they are.
Colour TurnHue(const Colour& in, const FormulaValue& delta) {
  const auto& [r, g, b] = in;
  const auto constant = [&r = r](double c) { return r.Const(c); };
  const FormulaValue red_low = r < g, below_r = b<r, below_g = b<g, above_r = b> r, above_g = b> g;
  const FormulaValue largest = Select(red_low, Select(above_g, b, g), Select(above_r, b, r));
  const FormulaValue smallest = Select(red_low, Select(below_r, b, r), Select(below_g, b, g));
  const FormulaValue middle =
      Select(red_low, Select(below_r, r, Select(above_g, g, b)), Select(below_g, g, Select(above_r, r, b)));
  // Which sixth of the circle, and how far in it; in the odd ones what is in the middle falls.
  const auto turned = [](const FormulaValue& odd, const FormulaValue& part) { return Select(odd, 1.0 - part, part); };
  const FormulaValue of_low = Select(below_r, constant(1), Select(above_g, constant(3), constant(2)));
  const FormulaValue sixth =
      Select(red_low, of_low, Select(below_g, constant(0), Select(above_r, constant(4), constant(5))));
  const FormulaValue odd = Select(red_low, below_r || above_g, LogicalNot(below_g || above_r));
  const FormulaValue range = largest - smallest;
  FormulaValue h = Select(largest == smallest, constant(0), sixth + turned(odd, (middle - smallest) / range));
  h = h + delta * 6.0;
  h = h - Floor(h * (1.0 / 6)) * 6.0;
  h = Select(h < 0.0, h + 6.0, h);
  h = Select(h < 6.0, h, h - 6.0);
  const FormulaValue now = Floor(h);
  const Sixth in_which(now);
  const FormulaValue odd_now = in_which.is[1] || in_which.is[3] || in_which.is[5];
  const FormulaValue &hi = largest, &lo = smallest, mid = lo + turned(odd_now, h - now) * range;
  return {in_which.Case({hi, mid, lo, lo, mid, hi}, hi), in_which.Case({mid, hi, hi, mid, lo, lo}, lo),
          in_which.Case({lo, lo, mid, hi, hi, mid}, mid)};
}

Colour ScaleSaturation(const Colour& in, const FormulaValue& scale) {
  const auto& [r, g, b] = in;
  const FormulaValue v = Maximum(r, Maximum(g, b)), range = v - Minimum(r, Minimum(g, b)), zero = v.Const(0);
  FormulaValue s = Select(v > 0.0, range / v, zero);
  const FormulaValue unit = 1.0 / (range * 6.0);
  FormulaValue h = Select(r == v, unit * (g - b), Select(g == v, unit * (b - r) + 2.0 / 6, unit * (r - g) + 4.0 / 6));
  h = Select(range > 0.0, h, zero);
  h = Select(h < 0.0, h + 1.0, h);
  s = Minimum(Maximum(s * scale, 0.0), 1.0);
  const FormulaValue c = s * v, m = v - c, at = h * 6.0;
  const Sixth sixth(Floor(at));
  const FormulaValue x = c * (1.0 - Apply(Opcode::kAbs, at - Floor(at * 0.5) * 2.0 - 1.0));
  return {sixth.Case({c, x, zero, zero, x, c}, zero) + m, sixth.Case({x, c, c, x, zero, zero}, zero) + m,
          sixth.Case({zero, zero, x, c, c, x}, zero) + m};
}

struct ColourOp {
  const char* name;
  Colour (*formula)(const Colour& in, const FormulaValue& number);
  const char* number;  // what the messages call the second argument, a float; nullptr: there is none
};

constexpr ColourOp kOps[] = {
    {"RGBToHSV", RgbToHsv, nullptr},
    {"HSVToRGB", HsvToRgb, nullptr},
    {"AdjustHue", TurnHue, "delta"},
    {"AdjustSaturation", ScaleSaturation, "scale"},
};

const Program* ColourProgram(const ColourOp& op, DType type) {
  ProgramBuilder b;
  // A sixth is no number of half's.
  const auto input = [&] { return Cast(FormulaValue{&b, b.Input(type)}, ComputedIn(type)); };
  Colour in;
  in.a = input();
  in.b = input();
  in.c = input();
  const FormulaValue number = op.number == nullptr ? FormulaValue() : FormulaValue{&b, b.Input(DType::kFloat)};
  const Colour out = op.formula(in, number);
  for (const FormulaValue& value : {out.a, out.b, out.c}) b.Output(Cast(value, type).reg);
  return b.Build();
}

class ColourKernel : public OpKernel {
 public:
  ColourKernel(Construction& c, const ColourOp* op) : op_(*op) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = ColourProgram(op_, type);
  }

  Status Compute(Context& ctx) override {
    const Tensor in = ctx.input(0);
    XPU_RETURN_IF_ERROR(op_.number == nullptr ? CheckConversion(in) : CheckAdjustment(in, ctx.input(1)));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, in, &out));
    if (out.num_elements() == 0) return OkStatus();
    // The three numbers of a pixel apart, then put together again.
    const int64_t n = in.num_elements() / 3, plane = n * static_cast<int64_t>(SizeOf(in.dtype()));
    Temporary planes;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(in.dtype(), {3, n}, &planes));
    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = {n};
    Args args;
    const int64_t size = static_cast<int64_t>(SizeOf(in.dtype()));
    for (int i = 0; i < 3; ++i) {
      desc.in_strides[i] = {3};
      args.in[i] = static_cast<const char*>(in.data()) + i * size;
      args.out[i] = static_cast<char*>(planes.data()) + i * plane;
    }
    desc.in_strides[3] = {0};
    if (op_.number != nullptr) args.in[3] = ctx.input(1).data();
    XPU_RETURN_IF_ERROR(ctx.LaunchElementwise(desc, args));
    const Dims pixels = {n, 3};
    return CopyView(ctx, SizeOf(in.dtype()), pixels, planes.data(), {{1, n}, 0}, out.mutable_data(), DenseView(pixels));
  }

 private:
  static Status CheckConversion(const Tensor& in) {
    XPU_REQUIRE(in.rank() >= 1, errors::InvalidArgument("input must be at least 1D", in.ShapeString()));
    const int64_t channels = in.dim(in.rank() - 1);
    XPU_REQUIRE(channels == 3,
                errors::FailedPrecondition("input must have 3 channels but input only has ", channels, " channels."));
    return OkStatus();
  }

  Status CheckAdjustment(const Tensor& in, const Tensor& number) const {
    XPU_REQUIRE(in.rank() >= 3, errors::InvalidArgument("input must be at least 3-D, got shape", in.ShapeString()));
    XPU_REQUIRE(number.IsScalar(), errors::InvalidArgument(op_.number, " must be scalar: ", number.ShapeString()));
    const int64_t channels = in.dim(in.rank() - 1);
    XPU_REQUIRE(channels == 3,
                errors::InvalidArgument("input must have 3 channels but instead has ", channels, " channels."));
    return OkStatus();
  }

  const ColourOp op_;
  const Program* program_ = nullptr;
};

// mean + (x - mean) * factor, with the mean over an image's pixels of each channel.
const Program* ContrastProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue x = Cast(FormulaValue{&b, b.Input(type)}, DType::kFloat);
  const FormulaValue mean = {&b, b.Input(DType::kFloat)}, factor = {&b, b.Input(DType::kFloat)};
  b.Output(Cast(mean + (x - mean) * factor, type).reg);
  return b.Build();
}

class ContrastKernel : public OpKernel {
 public:
  explicit ContrastKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    if (!c.status().ok()) return;
    program_ = ContrastProgram(type);
    widen_ = CastProgram(type, DType::kFloat);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), factor = ctx.input(1);
    const int rank = x.rank();
    XPU_REQUIRE(rank >= 3, errors::InvalidArgument("input must be at least 3-D, got shape", x.ShapeString()));
    XPU_REQUIRE(factor.IsScalar(), errors::InvalidArgument("contrast_factor must be scalar: ", factor.ShapeString()));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &out));
    if (out.num_elements() == 0) return OkStatus();
    const int64_t images = Product(x.dims(), 0, rank - 3), pixels = x.dim(rank - 3) * x.dim(rank - 2);
    const int64_t channels = x.dim(rank - 1);
    Temporary means;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {images, channels}, &means));
    ReduceDesc mean;
    mean.kind = ReduceKind::kMean;
    mean.source.program = widen_;
    mean.source.shape = {images, pixels, channels};
    mean.source.in_strides[0] = DenseStrides(mean.source.shape);
    mean.axes = 0b010;
    XPU_RETURN_IF_ERROR(ctx.Launch(mean, {x.data()}, {means.data()}));
    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = mean.source.shape;
    desc.in_strides[0] = mean.source.in_strides[0];
    desc.in_strides[1] = {channels, 0, 1};
    desc.in_strides[2] = {0, 0, 0};
    return ctx.Launch(desc, {x.data(), means.data(), factor.data()}, {out.mutable_data()});
  }

 private:
  const Program *program_ = nullptr, *widen_ = nullptr;
};

}  // namespace

void RegisterImageColor(Registry& registry) {
  const TypeList adjusted = {DType::kHalf, DType::kFloat};
  for (const ColourOp& op : kOps) {
    registry.Op(op.name)
        .Types("T", op.number == nullptr ? kFloatTypes : adjusted)
        .Requires([&op](Needs& n) { n.AskProgram(ColourProgram(op, n.type("T"))); })
        .Requires(needs::Copy("T"))
        .Kernel<ColourKernel>(&op);
  }
  registry.Op("AdjustContrastv2")
      .Types("T", adjusted)
      .Requires([](Needs& n) {
        n.AskProgram(ContrastProgram(n.type("T")));
        ReduceDesc mean;
        mean.kind = ReduceKind::kMean;
        mean.source.program = CastProgram(n.type("T"), DType::kFloat);
        n.Ask(mean);
      })
      .Kernel<ContrastKernel>();
}

}  // namespace xpu
