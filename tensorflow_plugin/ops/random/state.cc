// Ops on the state of a tf.random.Generator, a variable of int64 [counter low, counter high, key]. RngReadAndSkip and
// RngSkip only move the counter, on the device, so that nothing waits for it; Stateful* draw.
#include <cmath>
#include <cstdint>

#include "tensorflow_plugin/framework/cpu_kernel.h"
#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/random/random.h"
#include "tensorflow_plugin/primitives/philox.h"

namespace xpu {
namespace {

constexpr int64_t kStateSize = 3;

// Input `i`, as TensorFlow names it.
Status CheckScalarInput(Context& ctx, int i) {
  const Tensor t = ctx.input(i);
  XPU_REQUIRE(t.IsScalar(),
              errors::InvalidArgument("input ", i, " (0-based) must have shape [], not ", t.ShapeString()));
  return OkStatus();
}

// Checks the algorithm, input 1, and locks the state, input 0.
Status LockState(Context& ctx, LockedVariable* variable) {
  XPU_RETURN_IF_ERROR(CheckScalarInput(ctx, 1));
  int64_t algorithm = 0;
  XPU_RETURN_IF_ERROR(HostInteger(ctx.input(1), "algorithm", &algorithm));
  XPU_REQUIRE(algorithm != kThreeFryAlgorithm,
              errors::Unimplemented("Non-XLA devices don't support the ThreeFry algorithm."));
  XPU_REQUIRE(algorithm == kPhiloxAlgorithm || algorithm == kAutoSelectAlgorithm,
              errors::InvalidArgument("Unsupported algorithm id: ", algorithm));
  XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, variable));
  const Tensor state = variable->value();
  XPU_REQUIRE(state.dtype() == DType::kInt64,
              errors::InvalidArgument("dtype of RNG state variable must be int64, not ", Name(state.dtype())));
  XPU_REQUIRE(state.IsVector(),
              errors::InvalidArgument("RNG state must have one and only one dimension, not ", state.rank()));
  XPU_REQUIRE(state.dim(0) >= kStateSize,
              errors::InvalidArgument("For the Philox algorithm, the size of state must be at least ", kStateSize,
                                      "; got ", state.dim(0)));
  return OkStatus();
}

// (low, high, delta) -> (low, high) + delta, in 128 bits.
const Program* AdvanceProgram() {
  ProgramBuilder builder;
  FormulaValue in[3];
  for (FormulaValue& v : in) v = {&builder, builder.Input(DType::kUint64)};
  const FormulaValue low = in[0] + in[2];
  const FormulaValue high = in[1] + Cast(low < in[2], DType::kUint64);
  builder.Output(low.reg);
  builder.Output(high.reg);
  return builder.Build();
}

class SkipKernel : public OpKernel {
 public:
  SkipKernel(Construction&, bool read) : read_(read), program_(AdvanceProgram()) {}

  Status Compute(Context& ctx) override {
    XPU_RETURN_IF_ERROR(CheckScalarInput(ctx, 2));
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockState(ctx, &variable));
    const Tensor state = variable.value();
    if (read_) {
      Tensor out;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {kStateSize}, &out));
      XPU_RETURN_IF_ERROR(ctx.Copy(out.mutable_data(), state.data(), out.bytes()));
    }
    Tensor counter;
    XPU_RETURN_IF_ERROR(variable.BeginUpdate(ctx, &counter));
    Temporary groups;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kUint64, {1}, &groups));
    // int64 (RngSkip) or uint64 (RngReadAndSkip): the same bits.
    const uint64_t count = ctx.input(2).host<uint64_t>()[0] * kGroupsPerNumber;
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(groups.data(), &count, sizeof(count)));
    ElementwiseDesc desc;
    desc.program = program_;
    SetFlat(1, 3, &desc);
    uint64_t* low = static_cast<uint64_t*>(counter.mutable_data());
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {low, low + 1, groups.data()}, {low, low + 1}));
    variable.Commit();
    return OkStatus();
  }

 private:
  const bool read_;
  const Program* const program_;
};

// inputs: resource, algorithm, shape; minval, maxval for kUniformInt. A command takes its key and counter from the
// host, so this one waits for the state.
class DrawKernel : public OpKernel {
 public:
  DrawKernel(Construction&, RandomKind kind) : kind_(kind) {}

  Status Compute(Context& ctx) override {
    RandomDesc desc;
    desc.kind = kind_;
    if (kind_ == RandomKind::kUniformInt) {
      XPU_RETURN_IF_ERROR(ReadRange(ctx, 3, &desc));
      // As on the CPU, refused for an empty output too, unlike in the ops without a variable.
      XPU_RETURN_IF_ERROR(CheckRange(desc));
    }
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(2), "shape", &shape));
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(LockState(ctx, &variable));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    uint64_t state[kStateSize];
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(state, variable.value().data(), sizeof(state)));
    XPU_RETURN_IF_ERROR(Draw(ctx, {state[2], state[0], state[1]}, desc, out));
    Philox next(state[2], state[0], state[1]);
    next.Skip(static_cast<uint64_t>(out.num_elements()) * kGroupsPerNumber);
    const uint64_t counter[2] = {next.low(), next.high()};
    Tensor buffer;
    XPU_RETURN_IF_ERROR(variable.BeginUpdate(ctx, &buffer));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(buffer.mutable_data(), counter, sizeof(counter)));
    variable.Commit();
    return OkStatus();
  }

 private:
  const RandomKind kind_;
};

template <typename T>
Status CheckIsNumber(const Tensor& t, const char* what) {
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    XPU_REQUIRE(!std::isnan(static_cast<double>(static_cast<float>(t.host<T>()[i]))),
                errors::InvalidArgument(what, " must be numbers, got nan as element ", i));
  }
  return OkStatus();
}

// inputs: resource, algorithm, shape, counts, probs. No device draws binomial numbers: a number takes as many words of
// the sequence as it happens to need. TensorFlow's kernel searches without end where it is to count up to a NaN.
class BinomialKernel : public CpuKernelOnCopy {
 public:
  using CpuKernelOnCopy::CpuKernelOnCopy;

  Status Compute(Context& ctx) override {
    const Tensor counts = ctx.input(3);
    XPU_RETURN_IF_ERROR(counts.dtype() == DType::kHalf     ? CheckIsNumber<Half>(counts, "counts")
                        : counts.dtype() == DType::kFloat  ? CheckIsNumber<float>(counts, "counts")
                        : counts.dtype() == DType::kDouble ? CheckIsNumber<double>(counts, "counts")
                                                           : OkStatus());
    return CpuKernelOnCopy::Compute(ctx);
  }
};

}  // namespace

void RegisterRandomState(Registry& registry) {
  const Need add = [](Needs& n) { n.AskProgram(AdvanceProgram()); };
  registry.Op("RngReadAndSkip")
      .Host({"resource", "alg", "delta"})
      .Traits(OpTrait::kReadsNewNumbers)
      .Requires(add)
      .Kernel<SkipKernel>(true);
  registry.Op("RngSkip")
      .Host({"resource", "algorithm", "delta"})
      .Traits(OpTrait::kReadsNewNumbers)
      .Requires(add)
      .Kernel<SkipKernel>(false);
  for (const RandomFamily& f : RandomFamilies()) {
    std::vector<const char*> host = {"resource", "algorithm", "shape"};
    if (f.has_range) host.insert(host.end(), {"minval", "maxval"});
    registry.Op(f.from_variable)
        .Types("dtype", f.types)
        .Host(host)
        .Traits(OpTrait::kWaitsForDevice)
        .Requires(needs::Random(f.kind, "dtype", true))
        .Kernel<DrawKernel>(f.kind);
  }
  for (const bool of_int32 : {false, true}) {
    std::vector<const char*> host = {"resource", "algorithm", "shape", "counts", "probs"};
    if (of_int32) host.push_back("output");
    registry.Op("StatefulRandomBinomial")
        .Types("dtype", of_int32 ? TypeList{DType::kInt32}
                                 : TypeList{DType::kHalf, DType::kFloat, DType::kDouble, DType::kInt64})
        .Types("T", {DType::kHalf, DType::kFloat, DType::kDouble})
        .Host(host)
        .Traits(OpTrait::kWaitsForDevice)
        .Kernel<BinomialKernel>();
  }
}

}  // namespace xpu
