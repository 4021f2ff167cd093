// Numbers as they come back from quantization: FakeQuantWithMinMax*, QuantizeAndDequantize*, and their gradients.
//
// The numbers that follow from a range (scale, zero point, ...) are computed on the device. A program does it over the
// ranges: one of them, or one for each channel. So a range that is learned is never fetched.
#include <algorithm>
#include <limits>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/primitives/quantize_programs.h"

namespace xpu {
namespace {

// The results of a program over ranges: rows of a temporary [rows, ranges].
class RangeRows {
 public:
  // Runs `program` on `ranges` elements of each of its inputs.
  Status Compute(Context& ctx, const Program* program, int64_t ranges, const void* min, const void* max) {
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(program->output_type(0), {program->num_outputs(), ranges}, &memory_));
    bytes_ = static_cast<int64_t>(SizeOf(program->output_type(0))) * ranges;
    ElementwiseDesc desc;
    desc.program = program;
    SetFlat(ranges, program->num_inputs(), &desc);
    Args args;
    args.in[0] = min;
    args.in[1] = max;
    for (int i = 0; i < program->num_outputs(); ++i) args.out[i] = row(i);
    return ctx.LaunchElementwise(desc, args);
  }
  void* row(int i) const { return static_cast<char*>(memory_.data()) + i * bytes_; }

 private:
  Temporary memory_;
  int64_t bytes_ = 0;
};

// How elements go with ranges: all with one, or those of each channel with its own.
struct RangeLayout {
  Dims shape, element_strides, range_strides;
  int64_t ranges = 1;
};

RangeLayout OneRange(int64_t n) { return {{n}, {1}, {0}, 1}; }
RangeLayout RangePerChannel(int64_t outer, int64_t channels, int64_t inner) {
  return {{outer, channels, inner}, {channels * inner, inner, 1}, {0, 1, 0}, channels};
}

// The first `elements` inputs are elements, the others rows of ranges.
ElementwiseDesc Over(const RangeLayout& layout, const Program* program, int elements) {
  ElementwiseDesc desc;
  desc.program = program;
  desc.shape = layout.shape;
  for (int i = 0; i < program->num_inputs(); ++i) {
    desc.in_strides[i] = i < elements ? layout.element_strides : layout.range_strides;
  }
  return desc;
}

// The reduction of such a program to one number for each range. A single range leaves no axis.
ReduceDesc PerRange(ReduceKind kind, const RangeLayout& layout, const Program* program, int elements) {
  ReduceDesc desc;
  desc.kind = kind;
  desc.source = Over(layout, program, elements);
  desc.axes = layout.shape.rank() == 1 ? 1 : 0b101;
  return desc;
}

FormulaValue Input(ProgramBuilder* b, DType type) { return {b, b->Input(type)}; }
// As on the CPU, a NaN stays.
FormulaValue Clamp(const FormulaValue& x, const FormulaValue& low, const FormulaValue& high) {
  return Maximum(Minimum(x, high), low);
}

// --- FakeQuantWithMinMax*: float alone. -----------------------------------------------------------------------------

using Row = FakeQuantRow;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// In: gradients, elements, the rows of both ends.
const Program* PassWithin() {
  ProgramBuilder b;
  const FormulaValue dy = Input(&b, DType::kFloat), x = Input(&b, DType::kFloat);
  const FormulaValue low = Input(&b, DType::kFloat), high = Input(&b, DType::kFloat);
  const FormulaValue within = low <= x && x <= high;
  b.Output((dy * Cast(within || (low == -kInfinity), DType::kFloat)).reg);
  return b.Build();
}

// In: gradients, elements, the row of an end.
const Program* PassBeyond(bool high) {
  ProgramBuilder b;
  const FormulaValue dy = Input(&b, DType::kFloat), x = Input(&b, DType::kFloat), end = Input(&b, DType::kFloat);
  b.Output((dy * Cast(high ? x > end : x < end, DType::kFloat)).reg);
  return b.Build();
}

enum class RangeFrom { kAttributes, kScalars, kChannels };

class FakeQuantKernel : public OpKernel {
 protected:
  FakeQuantKernel(Construction& c, RangeFrom from) : from_(from) {
    float min = 0, max = 0;
    if (from == RangeFrom::kAttributes) {
      min = c.Attr<float>("min");
      max = c.Attr<float>("max");
      if (!(min < max)) c.Fail(errors::InvalidArgument("min has to be smaller than max, was: ", min, " >= ", max));
    }
    const int64_t bits = c.Attr<int64_t>("num_bits");
    if (bits < 2 || bits > 16) c.Fail(errors::InvalidArgument("num_bits must be between 2 and 16, inclusive"));
    if (!c.status().ok()) return;
    const QuantizedRange steps = {c.Attr<bool>("narrow_range") ? 1.0 : 0.0, static_cast<double>((1 << bits) - 1)};
    nudge_ = from == RangeFrom::kAttributes ? FakeQuantRangeOf(min, max, steps) : FakeQuantRange(steps);
  }

  // Checks the ends of the ranges, inputs `first` and the one after it, and computes their rows.
  Status ComputeRows(Context& ctx, const Tensor& x, int first, RangeLayout* layout, RangeRows* rows) {
    *layout = OneRange(x.num_elements());
    if (from_ == RangeFrom::kAttributes) return rows->Compute(ctx, nudge_, 1, nullptr, nullptr);
    const Tensor ends[2] = {ctx.input(first), ctx.input(first + 1)};
    const int rank = from_ == RangeFrom::kChannels ? 1 : 0;
    if (rank == 1) {
      XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("inputs must be at least rank 1 but is rank 0"));
      const int64_t channels = x.dim(x.rank() - 1);
      *layout = RangePerChannel(channels == 0 ? 0 : x.num_elements() / channels, channels, 1);
    }
    for (int i = 0; i < 2; ++i) {
      const char* const name = i == 0 ? "min" : "max";
      XPU_REQUIRE(ends[i].rank() == rank,
                  errors::InvalidArgument("`", name, "` must be rank ", rank, " but is rank ", ends[i].rank()));
      XPU_REQUIRE(ends[i].num_elements() == layout->ranges,
                  errors::InvalidArgument(name, " has incorrect size, expected ", layout->ranges, " was ",
                                          ends[i].num_elements()));
    }
    return rows->Compute(ctx, nudge_, layout->ranges, ends[0].data(), ends[1].data());
  }

  const RangeFrom from_;

 private:
  const Program* nudge_ = nullptr;
};

class FakeQuantForward : public FakeQuantKernel {
 public:
  FakeQuantForward(Construction& c, RangeFrom from)
      : FakeQuantKernel(c, from), program_(FakeQuantize(from == RangeFrom::kScalars)) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    RangeLayout layout;
    RangeRows rows;
    XPU_RETURN_IF_ERROR(ComputeRows(ctx, x, 1, &layout, &rows));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, x, &out));
    return ctx.Launch(Over(layout, program_, 1),
                      {x.data(), rows.row(Row::kLow), rows.row(Row::kHigh), rows.row(Row::kScale),
                       rows.row(Row::kPerStep), rows.row(Row::kZeroPoint)},
                      {out.mutable_data()});
  }

 private:
  const Program* const program_;
};

// Out: the gradient of the inputs, and unless the range comes from attributes those of its ends.
class FakeQuantGradient : public FakeQuantKernel {
 public:
  FakeQuantGradient(Construction& c, RangeFrom from) : FakeQuantKernel(c, from), node_(c.NodeName()) {}

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0), x = ctx.input(1);
    if (from_ == RangeFrom::kAttributes) {
      XPU_REQUIRE(
          dy.dims() == x.dims(),
          errors::InvalidArgument("Inputs to operation ", node_,
                                  " of type FakeQuantWithMinMaxArgsGradient must have the same size and shape.  "
                                  "Input 0: ",
                                  dy.ShapeString(), " != input 1: ", x.ShapeString()));
    }
    XPU_REQUIRE(dy.dims() == x.dims(), errors::InvalidArgument("gradient and input must be the same size"));
    RangeLayout layout;
    RangeRows rows;
    XPU_RETURN_IF_ERROR(ComputeRows(ctx, x, 2, &layout, &rows));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    XPU_RETURN_IF_ERROR(ctx.Launch(Over(layout, within_, 2),
                                   {dy.data(), x.data(), rows.row(Row::kLow), rows.row(Row::kHigh)},
                                   {dx.mutable_data()}));
    if (from_ == RangeFrom::kAttributes) return OkStatus();
    const Dims ends = from_ == RangeFrom::kScalars ? Dims() : Dims({layout.ranges});
    for (int i = 0; i < 2; ++i) {
      Tensor out;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1 + i, ends, &out));
      XPU_RETURN_IF_ERROR(ctx.Launch(PerRange(ReduceKind::kSum, layout, PassBeyond(i == 1), 2),
                                     {dy.data(), x.data(), rows.row(i == 0 ? Row::kLow : Row::kHigh)},
                                     {out.mutable_data()}));
    }
    return OkStatus();
  }

 private:
  const std::string node_;
  const Program* const within_ = PassWithin();
};

// --- QuantizeAndDequantize*: float and double.
// ------------------------------------------------------------------------

enum QuantRow { kQuantScale, kInverse, kRangeLow, kRangeHigh };

// Rows from the ends of ranges. They are the factor that takes a range into the integers [low, high], its inverse, and
// the range that then belongs to the integers. The end that asks for the smaller factor decides.
const Program* Quantization(DType type, double low, double high) {
  ProgramBuilder b;
  const FormulaValue min = Input(&b, type), max = Input(&b, type);
  const FormulaValue largest =
      min.Const(type == DType::kFloat ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max());
  const FormulaValue by_min = Select(low * min > 0.0, low / min, largest);
  const FormulaValue by_max = Select(high * max > 0.0, high / max, largest);
  const FormulaValue min_decides = by_min < by_max;
  const FormulaValue inverse = Select(min_decides, min / low, max / high);
  b.Output(Select(min_decides, by_min, by_max).reg);
  b.Output(inverse.reg);
  b.Output(Select(min_decides, min, inverse * low).reg);
  b.Output(Select(min_decides, inverse * high, max).reg);
  return b.Build();
}

// In: elements, the rows scale and inverse; with `clamp` those of the range, too.
const Program* QuantizeAndBack(DType type, bool clamp, bool half_up) {
  ProgramBuilder b;
  const FormulaValue x = Input(&b, type), scale = Input(&b, type), inverse = Input(&b, type);
  FormulaValue bounded = x;
  if (clamp) {
    const FormulaValue low = Input(&b, type), high = Input(&b, type);
    bounded = Clamp(x, low, high);
  }
  const FormulaValue scaled = bounded * scale;
  const FormulaValue rounded = half_up ? Floor(scaled + 0.5) : Apply(Opcode::kRint, scaled);
  b.Output((rounded * inverse).reg);
  return b.Build();
}

// Copies the ends of ranges, which are in host memory, to the device.
Status Upload(Context& ctx, const Tensor& min, const Tensor& max, Temporary* ends) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(min.dtype(), {2, min.num_elements()}, ends));
  auto* const first = static_cast<char*>(ends->data());
  XPU_RETURN_IF_ERROR(ctx.CopyFromHost(first, min.data(), min.bytes()));
  return ctx.CopyFromHost(first + min.bytes(), max.data(), max.bytes());
}

// The layout of a tensor whose ranges are along an axis; -1: there is one range.
RangeLayout AlongAxis(const Tensor& x, int64_t axis) {
  if (axis == -1) return OneRange(x.num_elements());
  const int a = static_cast<int>(axis);
  return RangePerChannel(Product(x.dims(), 0, a), x.dim(a), Product(x.dims(), a + 1, x.rank()));
}

// V3 has the number of bits as an input, and words of its own; V2 and V4 are the same.
class QuantizeKernel : public OpKernel {
 public:
  QuantizeKernel(Construction& c, bool bits_given)
      : bits_given_(bits_given),
        type_(c.Attr<DType>("T")),
        signed_(c.Attr<bool>("signed_input")),
        range_given_(c.Attr<bool>("range_given")),
        narrow_(c.Attr<bool>("narrow_range")),
        axis_(c.Attr<int64_t>("axis")) {
    bool half_up = false;
    if (!bits_given) {
      bits_ = c.Attr<int64_t>("num_bits");
      half_up = c.Attr<std::string>("round_mode") == "HALF_UP";
      c.Fail(CheckBits(bits_, "signed_input_"));
    }
    if (c.status().ok()) program_ = QuantizeAndBack(type_, range_given_, half_up);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    int64_t bits = bits_;
    XPU_RETURN_IF_ERROR(CheckAxis(x));
    if (bits_given_) {
      const Tensor given = ctx.input(3);
      XPU_REQUIRE(given.IsScalar(), errors::InvalidArgument("Invalid shape. The `num_bits` tensor should be a scalar. "
                                                            "Got dimensions: ",
                                                            given.rank()));
      XPU_RETURN_IF_ERROR(HostInteger(given, "num_bits", &bits));
      XPU_RETURN_IF_ERROR(CheckBits(bits, "`signed_input_`"));
    }
    const RangeLayout layout = AlongAxis(x, axis_);
    if (range_given_) XPU_RETURN_IF_ERROR(CheckRange(ctx.input(1), ctx.input(2), layout.ranges));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &out));
    if (x.num_elements() == 0) return OkStatus();

    Temporary ends;
    if (range_given_) {
      XPU_RETURN_IF_ERROR(Upload(ctx, ctx.input(1), ctx.input(2), &ends));
    } else {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {2, layout.ranges}, &ends));
    }
    void* const min = ends.data();
    void* const max = static_cast<char*>(min) + layout.ranges * static_cast<int64_t>(SizeOf(type_));
    if (!range_given_) {
      for (const auto& [kind, end] : {std::pair(ReduceKind::kMin, min), std::pair(ReduceKind::kMax, max)}) {
        XPU_RETURN_IF_ERROR(ctx.Launch(PerRange(kind, layout, IdentityProgram(type_), 1), {x.data()}, {end}));
      }
    }
    const auto power = [](int64_t n) { return static_cast<double>(uint64_t{1} << n); };
    const double low = signed_ ? -power(bits - 1) + (narrow_ ? 1 : 0) : 0;
    const double high = power(signed_ ? bits - 1 : bits) - 1;
    RangeRows rows;
    XPU_RETURN_IF_ERROR(rows.Compute(ctx, Quantization(type_, low, high), layout.ranges, min, max));
    const ElementwiseDesc desc = Over(layout, program_, 1);
    if (!range_given_) {
      return ctx.Launch(desc, {x.data(), rows.row(kQuantScale), rows.row(kInverse)}, {out.mutable_data()});
    }
    return ctx.Launch(desc,
                      {x.data(), rows.row(kQuantScale), rows.row(kInverse), rows.row(kRangeLow), rows.row(kRangeHigh)},
                      {out.mutable_data()});
  }

 private:
  Status CheckBits(int64_t bits, const char* name) const {
    XPU_REQUIRE(bits > 0 && bits < (signed_ ? 62 : 63),
                errors::InvalidArgument("num_bits is out of range: ", bits, " with ", name, " ", signed_ ? 1 : 0));
    return OkStatus();
  }

  Status CheckAxis(const Tensor& x) const {
    if (bits_given_) {
      XPU_REQUIRE(axis_ >= -1 && (axis_ == -1 || axis_ < x.rank()),
                  errors::InvalidArgument("Axis requested is larger than input dimensions. Axis: ", axis_,
                                          " Input Dimensions: ", x.rank()));
      return OkStatus();
    }
    XPU_REQUIRE(axis_ >= -1, errors::InvalidArgument("Axis must be at least -1. Found ", axis_));
    XPU_REQUIRE(axis_ == -1 || axis_ < x.rank(),
                errors::InvalidArgument("Shape must be at least rank ", axis_ + 1, " but is rank ", x.rank()));
    return OkStatus();
  }

  Status CheckRange(const Tensor& min, const Tensor& max, int64_t ranges) const {
    for (int i = 0; i < 2; ++i) {
      const Tensor& end = i == 0 ? min : max;
      const char* const name = i == 0 ? "input_min" : "input_max";
      if (axis_ == -1) {
        XPU_REQUIRE(end.IsScalar(), errors::InvalidArgument(name, " must be a scalar."));
        continue;
      }
      XPU_REQUIRE(end.IsVector(),
                  errors::InvalidArgument("Shape must be rank 1 for ", name, "_tensor when the axis is specified"));
      XPU_REQUIRE(end.dim(0) == ranges,
                  errors::InvalidArgument(name, "_tensor has incorrect size, was ", end.dim(0), " expected ", ranges,
                                          " to match dim ", axis_, " of the input ", end.ShapeString()));
    }
    if (axis_ != -1) return OkStatus();
    const bool ordered =
        type_ == DType::kFloat ? *min.host<float>() <= *max.host<float>() : *min.host<double>() <= *max.host<double>();
    const auto value = [this](const Tensor& t) {
      return type_ == DType::kFloat ? static_cast<double>(*t.host<float>()) : *t.host<double>();
    };
    XPU_REQUIRE(ordered, errors::InvalidArgument("Invalid range: input_min ", value(min), " > input_max ", value(max)));
    return OkStatus();
  }

  const bool bits_given_;
  const DType type_;
  const bool signed_, range_given_, narrow_;
  const int64_t axis_;
  int64_t bits_ = 0;
  const Program* program_ = nullptr;
};

// In: gradients, elements, the ends of their range.
const Program* PassInRange(DType type) {
  ProgramBuilder b;
  const FormulaValue dy = Input(&b, type), x = Input(&b, type), low = Input(&b, type), high = Input(&b, type);
  b.Output((dy * Cast(low <= x && x <= high, type)).reg);
  return b.Build();
}

// The ranges themselves get no gradient.
class QuantizeGradient : public OpKernel {
 public:
  explicit QuantizeGradient(Construction& c) : axis_(c.Attr<int64_t>("axis")) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = PassInRange(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0), x = ctx.input(1), min = ctx.input(2), max = ctx.input(3);
    XPU_REQUIRE(axis_ >= -1, errors::InvalidArgument("Axis must be at least -1. Found ", axis_));
    XPU_REQUIRE(axis_ == -1 || axis_ < x.rank(),
                errors::InvalidArgument("Axis should be -1 or 0 or a positive value less than ", x.rank(),
                                        "but given axis value was ", axis_));
    XPU_REQUIRE(dy.dims() == x.dims(), errors::InvalidArgument("gradient and input must be the same size"));
    const RangeLayout layout = AlongAxis(x, axis_);
    for (int i = 0; i < 2; ++i)
      XPU_RETURN_IF_ERROR(CheckEnd(i == 0 ? min : max, i == 0 ? "min" : "max", layout.ranges));
    Tensor dx, none;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    for (int i = 1; i <= 2; ++i) {
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(i, min.dims(), &none));
      XPU_RETURN_IF_ERROR(FillZero(ctx, none));
    }
    if (x.num_elements() == 0) return OkStatus();
    Temporary ends;
    XPU_RETURN_IF_ERROR(Upload(ctx, min, max, &ends));
    const auto* const first = static_cast<const char*>(ends.data());
    return ctx.Launch(Over(layout, program_, 2), {dy.data(), x.data(), first, first + min.bytes()},
                      {dx.mutable_data()});
  }

 private:
  Status CheckEnd(const Tensor& end, const char* name, int64_t ranges) const {
    XPU_REQUIRE(end.rank() <= 1, errors::InvalidArgument(
                                     "Input ", name, " tensor must have dimension 0 or 1. Received ", end.rank(), "."));
    if (axis_ == -1) {
      XPU_REQUIRE(end.IsScalar(), errors::InvalidArgument("input_", name, " must be a scalar if axis is unspecified"));
      return OkStatus();
    }
    XPU_REQUIRE(end.IsVector(),
                errors::InvalidArgument("Shape must be rank 1 for input_", name, "_tensor when the axis is specified"));
    XPU_REQUIRE(end.dim(0) == ranges,
                errors::InvalidArgument(name, " has incorrect size, expected ", ranges, " was ", end.dim(0)));
    return OkStatus();
  }

  const int64_t axis_;
  const Program* program_ = nullptr;
};

void AskReduce(Needs& n, ReduceKind kind, const Program* program) {
  ReduceDesc desc;
  desc.kind = kind;
  desc.source.program = program;
  n.Ask(desc);
}

}  // namespace

void RegisterQuantize(Registry& registry) {
  struct FakeQuant {
    const char *forward, *gradient;
    RangeFrom from;
  };
  constexpr FakeQuant kFakeQuants[] = {
      {"FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient", RangeFrom::kAttributes},
      {"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsGradient", RangeFrom::kScalars},
      {"FakeQuantWithMinMaxVarsPerChannel", "FakeQuantWithMinMaxVarsPerChannelGradient", RangeFrom::kChannels},
  };
  for (const FakeQuant& op : kFakeQuants) {
    registry.Op(op.forward)
        .Requires([](Needs& n) {
          n.AskProgram(FakeQuantRange({}));
          n.AskProgram(FakeQuantRangeOf(0, 1, {}));
          for (bool divide : {false, true}) n.AskProgram(FakeQuantize(divide));
        })
        .Kernel<FakeQuantForward>(op.from);
    registry.Op(op.gradient)
        .Requires([](Needs& n) {
          n.AskProgram(FakeQuantRange({}));
          n.AskProgram(FakeQuantRangeOf(0, 1, {}));
          n.AskProgram(PassWithin());
          for (bool high : {false, true}) AskReduce(n, ReduceKind::kSum, PassBeyond(high));
        })
        .Kernel<FakeQuantGradient>(op.from);
  }
  const TypeList types = {DType::kFloat, DType::kDouble};
  const Need quantize = [](Needs& n) {
    const DType type = n.type("T");
    n.AskProgram(Quantization(type, -128, 127));
    for (bool clamp : {false, true}) {
      for (bool half_up : {false, true}) n.AskProgram(QuantizeAndBack(type, clamp, half_up));
    }
    for (ReduceKind kind : {ReduceKind::kMin, ReduceKind::kMax}) AskReduce(n, kind, IdentityProgram(type));
  };
  for (const char* name : {"QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"}) {
    registry.Op(name)
        .Types("T", types)
        .Host({"input_min", "input_max"})
        .Requires(quantize)
        .Kernel<QuantizeKernel>(false);
  }
  registry.Op("QuantizeAndDequantizeV3")
      .Types("T", types)
      .Host({"input_min", "input_max", "num_bits"})
      .Requires(quantize)
      .Kernel<QuantizeKernel>(true);
  registry.Op("QuantizeAndDequantizeV4Grad")
      .Types("T", types)
      .Host({"input_min", "input_max"})
      .Requires([](Needs& n) { n.AskProgram(PassInRange(n.type("T"))); })
      .Kernel<QuantizeGradient>();
}

}  // namespace xpu
