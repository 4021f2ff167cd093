// Special functions (tf.math.special, tf.math.igamma, ...), NextAfter, PopulationCount and Cross.
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kHalfFloatDoubleMask = Mask(DType::kHalf) | kFloatDoubleMask;

constexpr ElementwiseOp kUnaryOps[] = {
    {"BesselI0", kHalfFloatDoubleMask, Opcode::kBesselI0}, {"BesselI0e", kHalfFloatDoubleMask, Opcode::kBesselI0e},
    {"BesselI1", kHalfFloatDoubleMask, Opcode::kBesselI1}, {"BesselI1e", kHalfFloatDoubleMask, Opcode::kBesselI1e},
    {"BesselJ0", kHalfFloatDoubleMask, Opcode::kBesselJ0}, {"BesselJ1", kHalfFloatDoubleMask, Opcode::kBesselJ1},
    {"BesselK0", kHalfFloatDoubleMask, Opcode::kBesselK0}, {"BesselK0e", kHalfFloatDoubleMask, Opcode::kBesselK0e},
    {"BesselK1", kHalfFloatDoubleMask, Opcode::kBesselK1}, {"BesselK1e", kHalfFloatDoubleMask, Opcode::kBesselK1e},
    {"BesselY0", kHalfFloatDoubleMask, Opcode::kBesselY0}, {"BesselY1", kHalfFloatDoubleMask, Opcode::kBesselY1},
    {"Dawsn", kFloatDoubleMask, Opcode::kDawsn},           {"Expint", kFloatDoubleMask, Opcode::kExpint},
    {"FresnelCos", kFloatDoubleMask, Opcode::kFresnelCos}, {"FresnelSin", kFloatDoubleMask, Opcode::kFresnelSin},
    {"Spence", kFloatDoubleMask, Opcode::kSpence},
};
constexpr ElementwiseOp kOfGamma[] = {
    {"Igamma", kFloatDoubleMask, Opcode::kIgamma},
    {"Igammac", kFloatDoubleMask, Opcode::kIgammac},
    {"IgammaGradA", kFloatDoubleMask, Opcode::kIgammaGradA},
    {"Polygamma", kFloatDoubleMask, Opcode::kPolygamma},
};
constexpr ElementwiseOp kZeta[] = {{"Zeta", kFloatDoubleMask, Opcode::kZeta}};
constexpr ElementwiseOp kNextAfter[] = {{"NextAfter", kFloatDoubleMask, Opcode::kNextAfter}};
constexpr ElementwiseOp kGammaGrad[] = {{"RandomGammaGrad", kFloatDoubleMask, Opcode::kGammaSampleGrad}};
constexpr ElementwiseOp kBetainc[] = {{"Betainc", kFloatDoubleMask, Opcode::kBetainc}};

// Operands have one shape, or are scalars.
class BetaincKernel : public ProgramKernel {
 public:
  BetaincKernel(Construction& c, const ElementwiseOp* op) : ProgramKernel(c, *op, 3) {}

  Status Compute(Context& ctx) override {
    const Tensor in[3] = {ctx.input(0), ctx.input(1), ctx.input(2)};
    int shaped = 0;
    for (int i = 0; i < 3; ++i) {
      for (int j = i + 1; j < 3; ++j) {
        XPU_REQUIRE(in[i].IsScalar() || in[j].IsScalar() || in[i].dims() == in[j].dims(),
                    errors::InvalidArgument("Shapes of ", kNames[i], " and ", kNames[j],
                                            " are inconsistent: ", in[i].ShapeString(), " vs. ", in[j].ShapeString()));
      }
      if (!in[i].IsScalar()) shaped = i;
    }
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(in[shaped].num_elements(), 3, &desc);
    for (int i = 0; i < 3; ++i) {
      if (in[i].dims() != in[shaped].dims()) desc.in_strides[i][0] = 0;
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0, 1, 2}, 0, in[shaped], &out));
    return ctx.Launch(desc, {in[0].data(), in[1].data(), in[2].data()}, {out.mutable_data()});
  }

 private:
  static constexpr const char* kNames[] = {"a", "b", "x"};
};

// The number of bits that are 1, as uint8.
const Program* CountBits(DType type) {
  ProgramBuilder b;
  b.Output(b.Cast(b.Apply(Opcode::kPopulationCount, b.Input(type)), DType::kUint8));
  return b.Build();
}

class PopulationCountKernel : public OpKernel {
 public:
  explicit PopulationCountKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    if (c.status().ok()) program_ = CountBits(type);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(x.num_elements(), 1, &desc);
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

 private:
  const Program* program_ = nullptr;
};

// The three components of the cross product of two vectors, of their three each.
const Program* CrossProduct(DType type) {
  ProgramBuilder b;
  FormulaValue in[6];
  for (FormulaValue& v : in) v = {&b, b.Input(type)};
  for (FormulaValue& v : in) v = Cast(v, ComputedIn(type));
  const FormulaValue *x = in, *y = in + 3;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    b.Output(Cast(x[j] * y[k] - x[k] * y[j], type).reg);
  }
  return b.Build();
}

class CrossKernel : public OpKernel {
 public:
  explicit CrossKernel(Construction& c) : type_(c.Attr<DType>("T")) {
    if (c.status().ok()) program_ = CrossProduct(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), y = ctx.input(1);
    XPU_REQUIRE(x.dims() == y.dims(), errors::InvalidArgument("Both inputs must be of same shape: ", x.ShapeString(),
                                                              " vs. ", y.ShapeString()));
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("Input must be at least 1D", x.ShapeString()));
    XPU_REQUIRE(x.dim(x.rank() - 1) == 3,
                errors::FailedPrecondition("Cross-products are only defined for 3-element vectors."));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &out));
    const int64_t n = x.num_elements() / 3;
    if (n == 0) return OkStatus();
    // Component by component, as a program stores its outputs; then vector by vector.
    Temporary components;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {3, n}, &components));
    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = {n};
    for (int i = 0; i < 6; ++i) desc.in_strides[i] = {3};
    const size_t size = SizeOf(type_);
    const auto* a = static_cast<const char*>(x.data());
    const auto* b = static_cast<const char*>(y.data());
    auto* c = static_cast<char*>(components.data());
    XPU_RETURN_IF_ERROR(
        ctx.Launch(desc, {a, a + size, a + 2 * size, b, b + size, b + 2 * size}, {c, c + n * size, c + 2 * n * size}));
    CopyStridedDesc copy;
    copy.element_size = size;
    copy.shape = {n, 3};
    copy.src_strides = {1, n};
    copy.dst_strides = {3, 1};
    return ctx.Launch(copy, {c}, {out.mutable_data()});
  }

 private:
  const DType type_;
  const Program* program_ = nullptr;
};

}  // namespace

void RegisterSpecial(Registry& registry) {
  RegisterTable<UnaryKernel>(registry, kUnaryOps, {"x", "y"});
  RegisterTable<BroadcastKernel>(registry, kOfGamma, {"a", "x", "z"});
  RegisterTable<BroadcastKernel>(registry, kZeta, {"x", "q", "z"});
  RegisterTable<BroadcastKernel>(registry, kNextAfter, {"x1", "x2", "output"});
  RegisterTable<BroadcastKernel>(registry, kGammaGrad, {"alpha", "sample", "output"});
  RegisterTable<BetaincKernel>(registry, kBetainc, {"a", "b", "x", "z"});
  registry.Op("PopulationCount")
      .Types("T", Union(kIntegerTypes, {DType::kInt32}))
      .Requires([](Needs& n) { n.AskProgram(CountBits(n.type("T"))); })
      .Kernel<PopulationCountKernel>();
  registry.Op("Cross")
      .Types("T", Union(kRealTypes, {DType::kInt32}))
      .Requires([](Needs& n) { n.AskProgram(CrossProduct(n.type("T"))); })
      .Requires(needs::Copy("T"))
      .Kernel<CrossKernel>();
}

}  // namespace xpu
