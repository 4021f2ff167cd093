// Conversions: Cast, Bitcast, Complex.
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kDeviceMask = kFloatMask | kComplexMask | kSignedMask | kUnsignedMask | kBoolMask;

// Bits of the fraction of a floating-point type.
constexpr int FractionBits(DType t) {
  return t == DType::kHalf ? 10 : t == DType::kBFloat16 ? 7 : t == DType::kFloat ? 23 : t == DType::kDouble ? 52 : 0;
}
// The type of a complex number's parts.
constexpr DType PartOf(DType t) {
  return t == DType::kComplex64 ? DType::kFloat : t == DType::kComplex128 ? DType::kDouble : t;
}
constexpr DType BitsOf(DType t) {
  return SizeOf(t) == 2 ? DType::kUint16 : SizeOf(t) == 4 ? DType::kUint32 : DType::kUint64;
}

// `host_input`: x is an int32 in host memory, where int32 lives, and travels with the command.
class CastKernel : public OpKernel {
 public:
  CastKernel(Construction& c, bool host_input)
      : host_input_(host_input), from_(c.Attr<DType>("SrcT")), to_(c.Attr<DType>("DstT")) {
    const bool truncate = c.Attr<bool>("Truncate");
    if (!c.status().ok()) return;
    program_ = CastProgram(from_, to_);
    const DType from = PartOf(from_), to = PartOf(to_);
    if (!truncate || !IsFloating(from) || !IsFloating(to)) return;
    // As on the CPU, where only a float is ever cut down to bfloat16.
    if (to == DType::kBFloat16 && from != DType::kFloat) return;
    const int dropped = FractionBits(from) - FractionBits(to);
    if (dropped > 0) MakeTruncating(BitsOf(from), dropped);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    if (from_ == to_) return ctx.ShareOutput(0, x, x.dims());
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    ElementwiseDesc desc;
    SetFlat(x.num_elements(), 2, &desc);
    if (mask_ != nullptr) {
      Temporary masked;
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(from_, x.dims(), &masked));
      ElementwiseDesc parts;
      parts.program = mask_;
      SetFlat(x.num_elements() * (IsComplex(from_) ? 2 : 1), 1, &parts);
      XPU_RETURN_IF_ERROR(ctx.Launch(parts, {x.data()}, {masked.data()}));
      desc.program = program_;
      return ctx.Launch(desc, {x.data(), masked.data()}, {y.mutable_data()});
    }
    desc.program = program_;
    if (!host_input_) return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
    Temporary copy;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(from_, x.dims(), &copy));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(copy.data(), x.data(), x.bytes()));
    return ctx.Launch(desc, {copy.data()}, {y.mutable_data()});
  }

 private:
  // Rounding toward zero: the fraction's low bits are cleared before the cast. They are cleared in the bit pattern,
  // which a program sees only as another type of input, hence two programs. A NaN keeps its bits.
  void MakeTruncating(DType bits, int dropped) {
    ProgramBuilder mask;
    const auto x = mask.Input(bits);
    mask.Output(mask.Apply(Opcode::kBitwiseAnd, x, mask.ConstInt(bits, -(int64_t{1} << dropped))));
    mask_ = mask.Build();
    ProgramBuilder cast;
    const auto original = cast.Input(from_), masked = cast.Input(from_);
    const auto is_number = cast.Apply(Opcode::kEqual, original, original);
    cast.Output(cast.Cast(cast.Apply(Opcode::kSelect, is_number, masked, original), to_));
    program_ = cast.Build();
  }

  const bool host_input_;
  const DType from_, to_;
  const Program* program_ = nullptr;
  const Program* mask_ = nullptr;
};

class BitcastKernel : public OpKernel {
 public:
  explicit BitcastKernel(Construction& c) : from_(c.Attr<DType>("T")), to_(c.Attr<DType>("type")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Dims shape = x.dims();
    const int64_t from = SizeOf(from_), to = SizeOf(to_);
    if (from > to) {
      shape.push_back(from / to);
    } else if (from < to) {
      XPU_REQUIRE(shape.rank() > 0 && shape[shape.rank() - 1] == to / from,
                  errors::InvalidArgument("Cannot bitcast from ", EnumValue(from_), " to ", EnumValue(to_), " (",
                                          Name(from_), " to ", Name(to_), "): the last dimension must be ", to / from,
                                          ", the input's shape is ", x.ShapeString()));
      shape = x.dims();
      shape.resize(shape.rank() - 1);
    }
    return ctx.ShareOutput(0, x, shape);
  }

 private:
  const DType from_, to_;
};

// Writes each part to every second element of the result.
class ComplexKernel : public OpKernel {
 public:
  explicit ComplexKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor parts[2] = {ctx.input(0), ctx.input(1)};
    ElementwiseDesc walk;
    Dims shape;
    if (!BroadcastPair(parts, &walk, &shape)) return IncompatibleShapes(parts[0], parts[1]);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    CopyStridedDesc copy;
    copy.element_size = SizeOf(parts[0].dtype());
    copy.shape = walk.shape;
    copy.dst_strides = DenseStrides(walk.shape);
    for (int i = 0; i < copy.shape.rank(); ++i) copy.dst_strides[i] *= 2;
    for (int part = 0; part < 2; ++part) {
      copy.src_strides = walk.in_strides[part];
      copy.dst_offset = part;
      XPU_RETURN_IF_ERROR(ctx.Launch(copy, {parts[part].data()}, {out.mutable_data()}));
    }
    return OkStatus();
  }
};

}  // namespace

void RegisterCast(Registry& registry) {
  const TypeList device_types = DeviceTypes(kDeviceMask);
  const TypeList int32 = {DType::kInt32};
  registry.Op("Cast")
      .Traits(OpTrait::kCounts)
      .Types("SrcT", device_types)
      .Types("DstT", Union(device_types, int32))
      .Requires(needs::Cast("SrcT", "DstT"))
      .Kernel<CastKernel>(false);
  registry.Op("Cast")
      .Types("SrcT", int32)
      .Types("DstT", device_types)
      .Host({"x"})
      .Requires(needs::Cast("SrcT", "DstT"))
      .Kernel<CastKernel>(true);
  registry.Op("Cast")
      .Types("SrcT", int32)
      .Types("DstT", device_types)
      .Label(labels::kOnDevice)
      .Requires(needs::Cast("SrcT", "DstT"))
      .Kernel<CastKernel>(false);
  registry.Op("Cast").Types("SrcT", int32).Types("DstT", int32).Host({"x", "y"}).OnHost().Kernel<CastKernel>(false);

  const TypeList bitcast_types = Union(DeviceTypes(kDeviceMask & ~kBoolMask), int32);
  registry.Op("Bitcast").Types("T", bitcast_types).Types("type", bitcast_types).Kernel<BitcastKernel>();

  for (const auto& [part, whole] :
       {std::pair(DType::kFloat, DType::kComplex64), {DType::kDouble, DType::kComplex128}}) {
    registry.Op("Complex").Types("T", {part}).Types("Tout", {whole}).Requires(needs::Copy("T")).Kernel<ComplexKernel>();
  }
}

}  // namespace xpu
