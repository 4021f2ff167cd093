// Local response normalization: y = x * (bias + alpha * sum of x^2 over the channels around)^-beta, and its gradient.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/math/steps.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class LrnKernel : public OpKernel {
 public:
  explicit LrnKernel(Construction& c)
      : type_(c.Attr<DType>("T")),
        radius_(c.Attr<int64_t>("depth_radius")),
        bias_(c.Attr<float>("bias")),
        alpha_(c.Attr<float>("alpha")),
        beta_(c.Attr<float>("beta")) {
    constexpr int64_t kMax = std::numeric_limits<int>::max();
    if (radius_ < 0 || radius_ >= kMax) {
      c.Fail(errors::InvalidArgument("depth_radius = ", radius_, " larger than int max"));
    }
  }

 protected:
  // Arrays are [pixels, channels] to what follows.
  static Dims Flat(const Tensor& x) { return {x.num_elements() / x.dim(3), x.dim(3)}; }

  // The distance of the first channels of two pixels in what WindowSums makes.
  int64_t RowOf(const Dims& flat) const { return flat[1] + Radius(flat); }
  int64_t Radius(const Dims& flat) const { return std::min(radius_, flat[1] - 1); }

  // sums[p * row + c] = x[p, c - radius] + ... + x[p, c + radius], all of them float. The windows lie in a copy that
  // has `radius` zeros before each pixel's channels, and after the last one's. All that begin anywhere in it are added
  // up, those over two pixels for nothing: in long rows.
  Status WindowSums(Context& ctx, const Dims& flat, const void* x, Temporary* sums) const {
    const int64_t radius = Radius(flat), row = RowOf(flat), windows = flat[0] * row - radius;
    Temporary padded;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {windows + 2 * radius}, &padded));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {windows}, sums));
    XPU_RETURN_IF_ERROR(ctx.Zero(padded.data(), padded.tensor().bytes()));
    XPU_RETURN_IF_ERROR(CopyView(ctx, sizeof(float), flat, x, DenseView(flat), padded.data(), {Dims{row, 1}, radius}));
    ReduceDesc reduce;
    reduce.source.program = IdentityProgram(DType::kFloat);
    reduce.source.shape = {2 * radius + 1, windows};
    reduce.source.in_strides[0] = {1, 1};
    reduce.axes = 1;
    return ctx.Launch(reduce, {padded.data()}, {sums->data()});
  }

  // (bias + alpha * sum)^-beta
  FormulaValue Scale(const FormulaValue& norm) const {
    if (beta_ == 1.0f) return Apply(Opcode::kReciprocal, norm);
    if (beta_ == 0.5f) return Rsqrt(norm);
    return Exp(Log(norm) * -static_cast<double>(beta_));
  }
  FormulaValue Norm(const FormulaValue& sum) const { return sum * alpha_ + bias_; }

  // A program that `make` writes on `n` inputs, which it gets as float; the first `own` of them are of type T.
  template <typename F>
  static const Program* Formula(DType type, int n, int own, DType result, F&& make) {
    ProgramBuilder builder;
    FormulaValue in[4];
    for (int i = 0; i < n; ++i) in[i] = {&builder, builder.Input(i < own ? type : DType::kFloat)};
    for (int i = 0; i < n; ++i) in[i] = Cast(in[i], DType::kFloat);
    builder.Output(Cast(make(in), result).reg);
    return builder.Build();
  }

  const DType type_;
  const int64_t radius_;
  const float bias_, alpha_, beta_;
  const Program* const square_ =
      Formula(type_, 1, 1, DType::kFloat, [](const FormulaValue* x) { return Square(x[0]); });
};

class LrnForwardKernel : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    XPU_REQUIRE(x.rank() == 4, errors::InvalidArgument("in must be 4-dimensional, got ", x.ShapeString()));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    if (y.num_elements() == 0) return OkStatus();
    const Dims flat = Flat(x);
    Temporary squares, sums;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, flat, &squares));
    XPU_RETURN_IF_ERROR(RunOver(ctx, square_, flat, {{x.data()}}, {squares.data()}));
    XPU_RETURN_IF_ERROR(WindowSums(ctx, flat, squares.data(), &sums));
    return RunOver(ctx, result_, flat, {{x.data()}, {sums.data(), {RowOf(flat), 1}}}, {y.mutable_data()});
  }

 private:
  const Program* const result_ =
      Formula(type_, 2, 1, type_, [this](const FormulaValue* in) { return in[0] * Scale(Norm(in[1])); });
};

// dx = dy * norm^-beta - 2 * alpha * beta * x * (sum of dy * y / norm over the channels around)
class LrnGradientKernel : public LrnKernel {
 public:
  using LrnKernel::LrnKernel;

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0), x = ctx.input(1), y = ctx.input(2);
    XPU_REQUIRE(dy.rank() == 4 && x.rank() == 4,
                errors::InvalidArgument("inputs must be 4-dimensional, got input_grads ", dy.ShapeString(),
                                        " and input_image ", x.ShapeString()));
    XPU_REQUIRE(dy.dims() == x.dims() && y.dims() == x.dims(),
                errors::InvalidArgument("input_grads, input_image, and out_image should have the same shape, got ",
                                        dy.ShapeString(), ", ", x.ShapeString(), " and ", y.ShapeString()));
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &dx));
    if (dx.num_elements() == 0) return OkStatus();
    const Dims flat = Flat(x), in_rows = {RowOf(flat), 1};
    Temporary terms, norms, sums;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, flat, &terms));
    XPU_RETURN_IF_ERROR(RunOver(ctx, square_, flat, {{x.data()}}, {terms.data()}));
    XPU_RETURN_IF_ERROR(WindowSums(ctx, flat, terms.data(), &norms));
    XPU_RETURN_IF_ERROR(RunOver(ctx, term_, flat, {{dy.data()}, {y.data()}, {norms.data(), in_rows}}, {terms.data()}));
    XPU_RETURN_IF_ERROR(WindowSums(ctx, flat, terms.data(), &sums));
    return RunOver(ctx, result_, flat, {{dy.data()}, {x.data()}, {norms.data(), in_rows}, {sums.data(), in_rows}},
                   {dx.mutable_data()});
  }

 private:
  const Program* const term_ =
      Formula(type_, 3, 2, DType::kFloat, [this](const FormulaValue* in) { return in[0] * in[1] / Norm(in[2]); });
  const Program* const result_ = Formula(type_, 4, 2, type_, [this](const FormulaValue* in) {
    const double factor = -2.0 * alpha_ * beta_;
    return in[0] * Scale(Norm(in[2])) + in[1] * factor * in[3];
  });
};

}  // namespace

void RegisterLrn(Registry& registry) {
  const auto entry = [&registry](const char* name) {
    Registry::Entry e = registry.Op(name);
    e.Types("T", {DType::kHalf, DType::kBFloat16, DType::kFloat})
        .Requires(needs::Cast("T", DType::kFloat))
        .Requires(needs::Op(Opcode::kExp, DType::kFloat))
        .Requires(needs::Op(Opcode::kLog, DType::kFloat))
        .Requires(needs::Reduce(ReduceKind::kSum, DType::kFloat))
        .Requires(needs::Copy(DType::kFloat));
    return e;
  };
  entry("LRN").Kernel<LrnForwardKernel>();
  entry("LRNGrad").Kernel<LrnGradientKernel>();
}

}  // namespace xpu
