// Random numbers of distributions with parameters: gamma, truncated normal, multinomial. They are the CPU's, too, where
// it makes them on one thread.
#include <memory>
#include <vector>

#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/random/random.h"

namespace xpu {
namespace {

// Where an op's numbers start: a seed in host memory, a key and a counter on the device, or the node's own sequence.
enum class From { kSeed, kKey, kSequence };

bool EndsWith(const Dims& dims, const Dims& end) {
  const int skipped = dims.rank() - end.rank();
  if (skipped < 0) return false;
  for (int i = 0; i < end.rank(); ++i) {
    if (dims[skipped + i] != end[i]) return false;
  }
  return true;
}

void SetStart(const SequenceStart& start, RandomDesc* desc) {
  desc->key = start.key;
  desc->counter[0] = start.low;
  desc->counter[1] = start.high;
}

// --- Gamma: inputs are shape; seed, or key, counter and alg; alpha. RandomGamma appends alpha's shape to `shape`. ----

class GammaKernel : public OpKernel {
 public:
  GammaKernel(Construction& c, From from) : from_(from) {
    if (from == From::kSequence) sequence_ = std::make_unique<Sequence>(c);
  }

  Status Compute(Context& ctx) override {
    const Tensor alpha = ctx.input(ctx.num_inputs() - 1);
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    RandomDesc desc;
    desc.kind = RandomKind::kGamma;
    desc.exact = from_ != From::kSequence;
    SequenceStart start;
    if (from_ == From::kSeed) XPU_RETURN_IF_ERROR(StartOfSeed(ctx.input(1), &start));
    if (from_ == From::kKey) XPU_RETURN_IF_ERROR(CheckKey(ctx.input(1), ctx.input(2), ctx.input(3)));
    if (from_ == From::kSequence) {
      Append(alpha.dims(), 0, alpha.rank(), &shape);
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    XPU_REQUIRE(EndsWith(shape, alpha.dims()),
                errors::InvalidArgument("Shape passed in must end with broadcasted shape."));
    desc.type = out.dtype();
    desc.n = out.num_elements();
    desc.parameters = alpha.num_elements();
    if (from_ == From::kKey) {
      desc.start = RandomStart::kGiven;
      return ctx.Launch(desc, {ctx.input(1).data(), ctx.input(2).data(), alpha.data()}, {out.mutable_data()});
    }
    if (from_ == From::kSequence) start = sequence_->Take(static_cast<uint64_t>(desc.n) * kGroupsPerNumber);
    SetStart(start, &desc);
    return ctx.Launch(desc, {alpha.data()}, {out.mutable_data()});
  }

 private:
  const From from_;
  std::unique_ptr<Sequence> sequence_;
};

// --- Truncated normal, of given means, deviations and bounds.
// ---------------------------------------------------------

// As its command says, which knows no node.
Status Draw(Context& ctx, const RandomDesc& desc, const Temporary* parameters, void* out) {
  return ctx.LaunchChecked(
      desc, {parameters[0].data(), parameters[1].data(), parameters[2].data(), parameters[3].data()}, {out}, nullptr);
}

// inputs: shape, seed, and the four parameters, all of which broadcast to the end of the shape.
class StatelessNormalKernel : public OpKernel {
 public:
  explicit StatelessNormalKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    SequenceStart start;
    XPU_RETURN_IF_ERROR(StartOfSeed(ctx.input(1), &start));
    const Tensor in[4] = {ctx.input(2), ctx.input(3), ctx.input(4), ctx.input(5)};
    ElementwiseDesc merged;
    Dims parameters, shape;
    XPU_REQUIRE(BroadcastAny(in, 4, &merged, &parameters),
                errors::InvalidArgument(
                    "means, stddevs, minvals, maxvals must have compatible batch dimensions: ", in[0].ShapeString(),
                    " vs. ", in[1].ShapeString(), " vs. ", in[2].ShapeString(), " vs. ", in[3].ShapeString()));
    const Tensor given = ctx.input(0);
    XPU_REQUIRE(given.IsVector(),
                errors::InvalidArgument("Input shape should be a vector, got shape: ", given.ShapeString()));
    XPU_RETURN_IF_ERROR(HostShape(given, "shape", &shape));
    XPU_REQUIRE(EndsWith(shape, parameters),
                errors::InvalidArgument("Shape passed in must end with broadcasted shape."));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    Temporary dense[4];
    for (int i = 0; i < 4; ++i) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(out.dtype(), parameters, &dense[i]));
      Dims strides;
      BroadcastStrides(in[i].dims(), parameters, &strides);
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(out.dtype()), parameters, in[i].data(), {strides, 0}, dense[i].data(),
                                   DenseView(parameters)));
    }
    RandomDesc desc;
    desc.kind = RandomKind::kBoundedNormal;
    desc.type = out.dtype();
    desc.n = out.num_elements();
    desc.parameters = parameters.num_elements();
    SetStart(start, &desc);
    return Draw(ctx, desc, dense, out.mutable_data());
  }
};

// inputs: shape, and the four parameters: one, or one for each index of the first dimension. The numbers are drawn for
// batches of that index; if all are alike, of a hundred.
class NormalKernel : public OpKernel {
 public:
  explicit NormalKernel(Construction& c) : sequence_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor given = ctx.input(0);
    XPU_REQUIRE(given.IsVector(),
                errors::InvalidArgument("Input shape should be a vector, got shape: ", given.ShapeString()));
    XPU_REQUIRE(given.num_elements() > 0,
                errors::InvalidArgument("Shape tensor must not be empty, got ", given.ShapeString()));
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(given, "shape", &shape));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    const Tensor in[4] = {ctx.input(1), ctx.input(2), ctx.input(3), ctx.input(4)};
    for (int i = 0; i < 4; ++i) {
      XPU_REQUIRE(in[i].rank() <= 1, errors::InvalidArgument("Input ", kNames[i], " should be a scalar or vector, ",
                                                             "got shape: ", in[i].ShapeString()));
    }
    const auto one = [&](int i) { return in[i].IsScalar() || in[i].dim(0) == 1; };
    const bool alike = one(0) && one(1) && in[2].IsScalar() && in[3].IsScalar();
    const int64_t n = out.num_elements();
    const int64_t samples = alike ? kBatch : shape[0] == 0 ? 0 : n / shape[0];
    const int64_t batches = alike ? (n + kBatch - 1) / kBatch : shape[0];
    for (int i = 0; i < 4; ++i) {
      XPU_REQUIRE(one(i) || in[i].dim(0) == batches,
                  errors::InvalidArgument("Input ", kNames[i],
                                          " should have length 1 or shape[0], got shape: ", in[i].ShapeString()));
    }
    if (n == 0) return OkStatus();
    Temporary dense[4], drawn;
    for (int i = 0; i < 4; ++i) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(out.dtype(), {batches}, &dense[i]));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(out.dtype()), {batches}, in[i].data(), {{one(i) ? 0 : 1}, 0},
                                   dense[i].data(), {{1}, 0}));
    }
    RandomDesc desc;
    desc.kind = RandomKind::kBoundedNormal;
    desc.type = out.dtype();
    desc.exact = false;
    desc.n = batches * samples;
    desc.parameters = batches;
    constexpr uint64_t kMostDraws = 1000;
    SetStart(sequence_.Take(static_cast<uint64_t>(batches) * 2 * kMostDraws * static_cast<uint64_t>(samples + 3) / 4),
             &desc);
    // They come sample by sample, and belong batch by batch; of the last batch there may be too many.
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(out.dtype(), {samples, batches}, &drawn));
    XPU_RETURN_IF_ERROR(Draw(ctx, desc, dense, drawn.data()));
    const int64_t whole = n / samples, rest = n % samples;
    const size_t size = SizeOf(out.dtype());
    XPU_RETURN_IF_ERROR(
        CopyView(ctx, size, {whole, samples}, drawn.data(), {{1, batches}, 0}, out.mutable_data(), {{samples, 1}, 0}));
    return CopyView(ctx, size, {rest}, drawn.data(), {{batches}, whole}, out.mutable_data(), {{1}, whole * samples});
  }

 private:
  static constexpr int64_t kBatch = 100;
  static constexpr const char* kNames[] = {"means", "stddevs", "minvals", "maxvals"};

  Sequence sequence_;
};

// --- Multinomial: for each row of logits, where uniform numbers fall among its running totals of exp(logit).
// ----------

// A logit less the row's largest, as weight: nothing for what is not finite.
const Program* Finite(DType type) {
  ProgramBuilder b;
  const FormulaValue x = {&b, b.Input(type)};
  const double lowest = type == DType::kHalf       ? -65504
                        : type == DType::kBFloat16 ? -0x1.fep127
                        : type == DType::kFloat    ? -0x1.fffffep127
                                                   : -0x1.fffffffffffffp1023;
  b.Output(Cast(Select(Apply(Opcode::kIsFinite, x), x, x.Const(lowest)), DType::kDouble).reg);
  return b.Build();
}
const Program* Weight(DType type) {
  ProgramBuilder b;
  const FormulaValue x = {&b, b.Input(type)}, largest = {&b, b.Input(DType::kDouble)};
  const FormulaValue weight = Exp(Cast(x, DType::kDouble) - largest);
  b.Output(Select(Apply(Opcode::kIsFinite, x), weight, weight.Const(0)).reg);
  return b.Build();
}

// inputs: logits [rows, classes], num_samples, and a seed if stateless.
class MultinomialKernel : public OpKernel {
 public:
  MultinomialKernel(Construction& c, From from)
      : type_(c.Attr<DType>("T")), index_type_(c.Attr<DType>("output_dtype")) {
    if (from == From::kSequence) sequence_ = std::make_unique<Sequence>(c);
    if (c.status().ok()) finite_ = Finite(type_), weight_ = Weight(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor logits = ctx.input(0), count = ctx.input(1);
    SequenceStart start;
    if (sequence_ == nullptr) XPU_RETURN_IF_ERROR(StartOfSeed(ctx.input(2), &start));
    XPU_REQUIRE(logits.rank() == 2,
                errors::InvalidArgument("logits should be a matrix, got shape ", logits.ShapeString()));
    XPU_REQUIRE(count.IsScalar(),
                errors::InvalidArgument("num_samples should be a scalar, got shape ", count.ShapeString()));
    int64_t samples;
    XPU_RETURN_IF_ERROR(HostInteger(count, "num_samples", &samples));
    XPU_REQUIRE(samples >= 0, errors::InvalidArgument("num_samples should be non-negative, got ", samples));
    const int64_t rows = logits.dim(0), classes = logits.dim(1), n = rows * samples;
    XPU_REQUIRE(classes > 0, errors::InvalidArgument("num_classes should be positive, got ", classes));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows, samples}, &out));
    if (n == 0) return OkStatus();

    Temporary largest, totals, points;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kDouble, {rows}, &largest));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kDouble, {2, rows, classes}, &totals));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kDouble, {2, n}, &points));
    auto* const weights = static_cast<double*>(totals.data());
    double* const running = weights + rows * classes;
    auto* const uniform = static_cast<double*>(points.data());
    double* const sought = uniform + n;

    ReduceDesc max;
    max.kind = ReduceKind::kMax;
    max.source.program = finite_;
    max.source.shape = {rows, classes};
    max.source.in_strides[0] = {classes, 1};
    max.axes = 0b10;
    XPU_RETURN_IF_ERROR(ctx.Launch(max, {logits.data()}, {largest.data()}));
    ElementwiseDesc weigh;
    weigh.program = weight_;
    weigh.shape = {rows, classes};
    weigh.in_strides[0] = {classes, 1};
    weigh.in_strides[1] = {1, 0};
    XPU_RETURN_IF_ERROR(ctx.Launch(weigh, {logits.data(), largest.data()}, {weights}));
    ScanDesc sum;
    sum.type = DType::kDouble;
    sum.outer = rows;
    sum.n = classes;
    XPU_RETURN_IF_ERROR(ctx.Launch(sum, {weights}, {running}));

    RandomDesc random;
    random.type = DType::kDouble;
    random.n = n;
    random.exact = sequence_ == nullptr;
    if (sequence_ != nullptr) {
      const uint64_t words = static_cast<uint64_t>(samples + 3) / 4 * 4 * 2;
      start = sequence_->Take(static_cast<uint64_t>(rows) * words * kGroupsPerNumber);
    }
    SetStart(start, &random);
    XPU_RETURN_IF_ERROR(ctx.Launch(random, {}, {uniform}));
    ElementwiseDesc scale;
    scale.program = SingleOpProgram(Opcode::kMul, DType::kDouble);
    scale.shape = {rows, samples};
    scale.in_strides[0] = {samples, 1};
    scale.in_strides[1] = {classes, 0};
    XPU_RETURN_IF_ERROR(ctx.Launch(scale, {uniform, running + classes - 1}, {sought}));
    SearchDesc search;
    search.type = DType::kDouble;
    search.index_type = index_type_;
    search.rows = rows;
    search.n = classes;
    search.m = samples;
    search.upper = true;
    return ctx.Launch(search, {running, sought}, {out.mutable_data()});
  }

 private:
  const DType type_, index_type_;
  std::unique_ptr<Sequence> sequence_;
  const Program *finite_ = nullptr, *weight_ = nullptr;
};

}  // namespace

void RegisterRandomParameters(Registry& registry) {
  const TypeList floats = {DType::kHalf, DType::kFloat, DType::kDouble};
  registry.Op("StatelessRandomGammaV2")
      .Traits(OpTrait::kDrawsFromStart)
      .Types("dtype", floats)
      .Host({"shape", "seed"})
      .Requires(needs::Random(RandomKind::kGamma, "dtype", true))
      .Kernel<GammaKernel>(From::kSeed);
  registry.Op("StatelessRandomGammaV3")
      .Traits(OpTrait::kDrawsFromStart)
      .Types("dtype", floats)
      .Host({"shape", "alg"})
      .Requires(needs::Random(RandomKind::kGamma, "dtype", true, RandomStart::kGiven))
      .Kernel<GammaKernel>(From::kKey);
  registry.Op("RandomGamma")
      .Types("T", floats)
      .Host({"shape"})
      .Requires(needs::Random(RandomKind::kGamma, "T", false))
      .Kernel<GammaKernel>(From::kSequence);
  registry.Op("StatelessParameterizedTruncatedNormal")
      .Traits(OpTrait::kDrawsFromStart | OpTrait::kWaitsForDevice)
      .Types("dtype", floats)
      .Host({"shape", "seed"})
      .Requires(needs::Random(RandomKind::kBoundedNormal, "dtype", true))
      .Requires(needs::Copy("dtype"))
      .Kernel<StatelessNormalKernel>();
  registry.Op("ParameterizedTruncatedNormal")
      .Traits(OpTrait::kWaitsForDevice)
      .Types("dtype", floats)
      .Host({"shape"})
      .Requires(needs::Random(RandomKind::kBoundedNormal, "dtype", false))
      .Requires(needs::Copy("dtype"))
      .Kernel<NormalKernel>();
  const Need sample = [](Needs& n) {
    const DType type = n.type("T");
    ReduceDesc max;
    max.kind = ReduceKind::kMax;
    max.source.program = Finite(type);
    n.Ask(max);
    n.AskProgram(Weight(type));
    n.AskProgram(SingleOpProgram(Opcode::kMul, DType::kDouble));
    ScanDesc sum;
    sum.type = DType::kDouble;
    n.Ask(sum);
    SearchDesc search;
    search.type = DType::kDouble;
    search.index_type = n.type("output_dtype");
    search.upper = true;
    n.Ask(search);
  };
  for (bool stateless : {false, true}) {
    registry.Op(stateless ? "StatelessMultinomial" : "Multinomial")
        .Traits(OpTrait::kDrawsFromStart)
        .Types("T", kFloatTypes)
        .Types("output_dtype", {DType::kInt32, DType::kInt64})
        .Host(stateless ? std::vector<const char*>{"num_samples", "seed"} : std::vector<const char*>{"num_samples"})
        .Requires(sample)
        .Requires(needs::Random(RandomKind::kUniform, DType::kDouble, stateless))
        .Kernel<MultinomialKernel>(stateless ? From::kSeed : From::kSequence);
  }
}

}  // namespace xpu
