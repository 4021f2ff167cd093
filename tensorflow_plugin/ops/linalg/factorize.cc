// Factors of matrices: Cholesky, Lu, Qr, SelfAdjointEigV2, Svd; and determinants, which are products of factors.
#include <algorithm>

#include "tensorflow_plugin/ops/linalg/linalg.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

FactorizeDesc Describe(FactorizeKind kind, DType type, const Matrices& m) {
  FactorizeDesc desc;
  desc.kind = kind;
  desc.type = type;
  desc.batch = m.batch;
  desc.rows = m.rows;
  desc.cols = m.cols;
  return desc;
}

class CholeskyKernel : public OpKernel {
 public:
  explicit CholeskyKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadSquare(ctx, &m));
    const Tensor a = ctx.input(0);
    Tensor l;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, a, &l));
    return ctx.Launch(Describe(FactorizeKind::kCholesky, a.dtype(), m), {a.data()}, {l.mutable_data()});
  }
};

class LuKernel : public OpKernel {
 public:
  explicit LuKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor a = ctx.input(0);
    XPU_REQUIRE(a.rank() >= 2, errors::InvalidArgument("Input tensor must have rank >= 2, got ", a.rank()));
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadSquare(ctx, &m));
    Tensor lu, p;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, a, &lu));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, m.Shape({m.rows}), &p));
    if (a.num_elements() == 0) return OkStatus();
    Temporary sign, narrow;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(a.dtype(), {m.batch}, &sign));
    const bool cast = p.dtype() != DType::kInt32;
    if (cast) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, p.dims(), &narrow));
    FactorizeDesc desc = Describe(FactorizeKind::kLu, a.dtype(), m);
    desc.regular = true;
    XPU_RETURN_IF_ERROR(LaunchOrSay(ctx, desc, {a.data()},
                                    {lu.mutable_data(), cast ? narrow.data() : p.mutable_data(), sign.data()},
                                    "Input is not invertible."));
    if (!cast) return OkStatus();
    ElementwiseDesc widen;
    widen.program = CastProgram(DType::kInt32, p.dtype());
    SetFlat(p.num_elements(), 1, &widen);
    return ctx.Launch(widen, {narrow.data()}, {p.mutable_data()});
  }
};

class QrKernel : public OpKernel {
 public:
  explicit QrKernel(Construction& c) : full_(c.Attr<bool>("full_matrices")) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 1, &m));
    const Tensor a = ctx.input(0);
    const int64_t size = full_ ? m.rows : std::min(m.rows, m.cols);
    Tensor q, r;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, m.Shape({m.rows, size}), &q));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, m.Shape({size, m.cols}), &r));
    FactorizeDesc desc = Describe(FactorizeKind::kQr, a.dtype(), m);
    desc.full = full_;
    return ctx.Launch(desc, {a.data()}, {q.mutable_data(), r.mutable_data()});
  }

 private:
  const bool full_;
};

class SelfAdjointEigKernel : public OpKernel {
 public:
  explicit SelfAdjointEigKernel(Construction& c) : vectors_(c.Attr<bool>("compute_v")) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadSquare(ctx, &m));
    const Tensor a = ctx.input(0);
    Tensor e, v;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, m.Shape({m.rows}), &e));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, vectors_ ? a.dims() : Dims{0}, &v));
    if (a.num_elements() == 0) return OkStatus();
    FactorizeDesc desc = Describe(FactorizeKind::kEigen, a.dtype(), m);
    desc.vectors = vectors_;
    static const char kFailed[] = "Self-adjoint eigen decomposition was not successful. The input might not be valid.";
    if (!vectors_) return LaunchOrSay(ctx, desc, {a.data()}, {e.mutable_data()}, kFailed);
    return LaunchOrSay(ctx, desc, {a.data()}, {e.mutable_data(), v.mutable_data()}, kFailed);
  }

 private:
  const bool vectors_;
};

class SvdKernel : public OpKernel {
 public:
  explicit SvdKernel(Construction& c)
      : vectors_(c.Attr<bool>("compute_uv")), full_(vectors_ && c.Attr<bool>("full_matrices")) {}

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadMatrices(ctx, 1, &m));
    const Tensor a = ctx.input(0);
    const int64_t k = std::min(m.rows, m.cols);
    Tensor s, u, v;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, m.Shape({k}), &s));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, vectors_ ? m.Shape({m.rows, full_ ? m.rows : k}) : Dims{0}, &u));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, vectors_ ? m.Shape({m.cols, full_ ? m.cols : k}) : Dims{0}, &v));
    FactorizeDesc desc = Describe(FactorizeKind::kSvd, a.dtype(), m);
    desc.vectors = vectors_;
    desc.full = full_;
    // The output s has the matrices' type, singular values are real.
    Temporary values;
    void* real = s.mutable_data();
    if (IsComplex(a.dtype())) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(RealTypeOf(a.dtype()), s.dims(), &values));
      real = values.data();
    }
    XPU_RETURN_IF_ERROR(vectors_ ? ctx.Launch(desc, {a.data()}, {real, u.mutable_data(), v.mutable_data()})
                                 : ctx.Launch(desc, {a.data()}, {real}));
    if (!IsComplex(a.dtype()) || s.num_elements() == 0) return OkStatus();
    ElementwiseDesc widen;
    widen.program = CastProgram(RealTypeOf(a.dtype()), a.dtype());
    SetFlat(s.num_elements(), 1, &widen);
    return ctx.Launch(widen, {real}, {s.mutable_data()});
  }

 private:
  const bool vectors_, full_;
};

// The result from the diagonal of u: the logarithm of the product of its magnitudes, and its direction.
const Program* LogMagnitude(DType type) {
  ProgramBuilder b;
  b.Output(b.Apply(Opcode::kLog, b.Apply(Opcode::kAbs, b.Input(type))));
  return b.Build();
}
const Program* Direction(DType type) {
  ProgramBuilder b;
  b.Output(b.Apply(Opcode::kSign, b.Input(type)));
  return b.Build();
}

// From the permutation's sign, the product of directions and the sum of logarithms: the sign of the determinant and
// that sum, or the determinant.
const Program* Finish(DType type, bool logarithm) {
  ProgramBuilder b;
  const auto sign = b.Apply(Opcode::kMul, b.Input(type), b.Input(type)), sum = b.Input(RealTypeOf(type));
  if (logarithm) {
    b.Output(sign);
    b.Output(b.Cast(sum, type));
  } else {
    b.Output(b.Apply(Opcode::kMul, sign, b.Cast(b.Apply(Opcode::kExp, sum), type)));
  }
  return b.Build();
}

ReduceDesc OfDiagonal(ReduceKind kind, const Program* program, const Matrices& m) {
  ReduceDesc desc;
  desc.kind = kind;
  desc.source.program = program;
  desc.source.shape = {m.batch, m.rows};
  desc.source.in_strides[0] = {m.rows * m.rows, m.rows + 1};
  desc.axes = 2;
  return desc;
}

// MatrixDeterminant and LogMatrixDeterminant, by way of logarithms both, as on the CPU: no product overflows on the
// way.
class DeterminantKernel : public OpKernel {
 public:
  DeterminantKernel(Construction& c, bool logarithm) : logarithm_(logarithm) {
    const DType type = c.Attr<DType>("T");
    if (!c.status().ok()) return;
    log_magnitude_ = LogMagnitude(type);
    direction_ = Direction(type);
    finish_ = Finish(type, logarithm);
  }

  Status Compute(Context& ctx) override {
    Matrices m;
    XPU_RETURN_IF_ERROR(ReadSquare(ctx, &m));
    const Tensor a = ctx.input(0);
    Tensor first, second;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, m.batch_shape, &first));
    if (logarithm_) XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, m.batch_shape, &second));
    if (m.batch == 0) return OkStatus();
    Temporary lu, rows, sign, direction, sum;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(a.dtype(), a.dims(), &lu));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, m.Shape({m.rows}), &rows));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(a.dtype(), {m.batch}, &sign));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(a.dtype(), {m.batch}, &direction));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(RealTypeOf(a.dtype()), {m.batch}, &sum));
    XPU_RETURN_IF_ERROR(
        ctx.Launch(Describe(FactorizeKind::kLu, a.dtype(), m), {a.data()}, {lu.data(), rows.data(), sign.data()}));
    XPU_RETURN_IF_ERROR(ctx.Launch(OfDiagonal(ReduceKind::kProd, direction_, m), {lu.data()}, {direction.data()}));
    XPU_RETURN_IF_ERROR(ctx.Launch(OfDiagonal(ReduceKind::kSum, log_magnitude_, m), {lu.data()}, {sum.data()}));
    ElementwiseDesc desc;
    desc.program = finish_;
    SetFlat(m.batch, 3, &desc);
    if (logarithm_) {
      return ctx.Launch(desc, {sign.data(), direction.data(), sum.data()},
                        {first.mutable_data(), second.mutable_data()});
    }
    return ctx.Launch(desc, {sign.data(), direction.data(), sum.data()}, {first.mutable_data()});
  }

 private:
  const bool logarithm_;
  const Program *log_magnitude_ = nullptr, *direction_ = nullptr, *finish_ = nullptr;
};

Need NeedDeterminant(bool logarithm) {
  return [=](Needs& n) {
    const DType type = n.type("T");
    n.AskProgram(Finish(type, logarithm));
    for (const auto& [kind, program] :
         {std::pair(ReduceKind::kProd, Direction(type)), std::pair(ReduceKind::kSum, LogMagnitude(type))}) {
      n.AskProgram(program);
      n.Ask(OfDiagonal(kind, program, {}));
    }
  };
}

}  // namespace

void RegisterLinalgFactorize(Registry& registry) {
  registry.Op("Cholesky")
      .Types("T", kMatrixTypes)
      .Requires(needs::Factorize(FactorizeKind::kCholesky, "T"))
      .Kernel<CholeskyKernel>();
  registry.Op("Lu")
      .Types("T", kMatrixTypes)
      .Types("output_idx_type", {DType::kInt32, DType::kInt64})
      .Requires(needs::Factorize(FactorizeKind::kLu, "T"))
      .Requires(needs::Cast(DType::kInt32, "output_idx_type"))
      .Kernel<LuKernel>();
  registry.Op("Qr").Types("T", kMatrixTypes).Requires(needs::Factorize(FactorizeKind::kQr, "T")).Kernel<QrKernel>();
  registry.Op("SelfAdjointEigV2")
      .Types("T", kMatrixTypes)
      .Requires(needs::Factorize(FactorizeKind::kEigen, "T"))
      .Kernel<SelfAdjointEigKernel>();
  registry.Op("Svd")
      .Types("T", kMatrixTypes)
      .Requires(needs::Factorize(FactorizeKind::kSvd, "T"))
      .Requires([](Needs& n) { n.AskProgram(CastProgram(RealTypeOf(n.type("T")), n.type("T"))); })
      .Kernel<SvdKernel>();
  for (const bool logarithm : {false, true}) {
    registry.Op(logarithm ? "LogMatrixDeterminant" : "MatrixDeterminant")
        .Types("T", kMatrixTypes)
        .Requires(needs::Factorize(FactorizeKind::kLu, "T"))
        .Requires(NeedDeterminant(logarithm))
        .Kernel<DeterminantKernel>(logarithm);
  }
}

}  // namespace xpu
