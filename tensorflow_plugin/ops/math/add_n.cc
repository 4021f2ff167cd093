// Sums of several operands: AddN, BiasAdd.
#include <algorithm>
#include <string>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr TypeMask kSummable = kFloatMask | kComplexMask | kSignedMask | kUnsignedMask;

// The sum of n operands of type `type`, the first of which may be `first`; the result is `to`.
const Program* SumProgram(DType first, DType type, DType to, int n) {
  ProgramBuilder builder;
  FormulaValue in[Program::kMaxInputs];
  for (int i = 0; i < n; ++i) in[i] = {&builder, builder.Input(i == 0 ? first : type)};
  FormulaValue sum = Cast(in[0], ComputedIn(type));
  for (int i = 1; i < n; ++i) sum = sum + Cast(in[i], ComputedIn(type));
  builder.Output(Cast(sum, to).reg);
  return builder.Build();
}

class AddNKernel : public OpKernel {
 public:
  explicit AddNKernel(Construction& c) : node_(c.NodeName()) {
    const DType type = c.Attr<DType>("T");
    sum_type_ = ComputedIn(type);
    const int n = static_cast<int>(c.Attr<int64_t>("N"));
    if (!c.status().ok()) return;
    // A program takes so many inputs; what is left is added to the sum so far, which is rounded once, at the end.
    for (int first = 0; first < n;) {
      const int carried = first == 0 ? 0 : 1;
      const int count = std::min(n - first, Program::kMaxInputs - carried);
      const bool last = first + count == n;
      steps_.push_back(
          {SumProgram(carried ? sum_type_ : type, type, last ? type : sum_type_, count + carried), first, count});
      first += count;
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor first = ctx.input(0);
    const int n = ctx.num_inputs();
    if (n == 1) return ctx.ShareOutput(0, first, first.dims());
    for (int i = 1; i < n; ++i) {
      const Tensor x = ctx.input(i);
      XPU_REQUIRE(x.dims() == first.dims(),
                  errors::InvalidArgument("Inputs to operation ", node_,
                                          " of type AddN must have the same size and shape.  Input 0: ",
                                          first.ShapeString(), " != input ", i, ": ", x.ShapeString()));
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, first, &out));
    Temporary wide;
    void* sum = out.mutable_data();
    if (steps_.size() > 1 && sum_type_ != first.dtype()) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(sum_type_, first.dims(), &wide));
      sum = wide.data();
    }
    for (const PartialSum& step : steps_) {
      ElementwiseDesc desc;
      desc.program = step.program;
      SetFlat(first.num_elements(), step.program->num_inputs(), &desc);
      Args args;
      int k = 0;
      if (step.first > 0) args.in[k++] = sum;
      for (int i = 0; i < step.count; ++i) args.in[k++] = ctx.input(step.first + i).data();
      args.out[0] = &step == &steps_.back() ? out.mutable_data() : sum;
      XPU_RETURN_IF_ERROR(ctx.LaunchElementwise(desc, args));
    }
    return OkStatus();
  }

 private:
  const std::string node_;
  struct PartialSum {
    const Program* program;
    int first, count;
  };
  std::vector<PartialSum> steps_;
  DType sum_type_ = DType::kInvalid;
};

class BiasAddKernel : public OpKernel {
 public:
  explicit BiasAddKernel(Construction& c) {
    const DType type = c.Attr<DType>("T");
    // BiasAddV1 has no data_format: channels are last.
    if (c.HasAttr("data_format")) channels_first_ = c.Attr<std::string>("data_format") == "NCHW";
    if (c.status().ok()) program_ = SingleOpProgram(Opcode::kAdd, type);
  }

  Status Compute(Context& ctx) override {
    const Tensor value = ctx.input(0), bias = ctx.input(1);
    const int rank = value.rank();
    XPU_REQUIRE(rank >= 2, errors::InvalidArgument("Input tensor must be at least 2D: ", value.ShapeString()));
    XPU_REQUIRE(bias.IsVector(), errors::InvalidArgument("Biases must be 1D: ", bias.ShapeString()));
    const int channel_dim = channels_first_ ? 1 : rank - 1;
    const int64_t channels = value.dim(channel_dim);
    XPU_REQUIRE(
        bias.num_elements() == channels,
        errors::InvalidArgument("Must provide as many biases as the ", channels_first_ ? "channel" : "last",
                                " dimension of the input tensor: ", bias.ShapeString(), " vs. ", value.ShapeString()));
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < channel_dim; ++i) outer *= value.dim(i);
    for (int i = channel_dim + 1; i < rank; ++i) inner *= value.dim(i);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({0}, 0, value, &out));
    ElementwiseDesc desc;
    desc.program = program_;
    desc.shape = {outer, channels, inner};
    desc.in_strides[0] = {channels * inner, inner, 1};
    desc.in_strides[1] = {0, 1, 0};
    Dims* strides[] = {&desc.in_strides[0], &desc.in_strides[1]};
    MergeDims(&desc.shape, strides, 2);
    return ctx.Launch(desc, {value.data(), bias.data()}, {out.mutable_data()});
  }

 private:
  bool channels_first_ = false;
  const Program* program_ = nullptr;
};

}  // namespace

void RegisterAddN(Registry& registry) {
  registry.Op("AddN")
      .Types("T", DeviceTypes(kSummable))
      .Requires([](Needs& n) {
        const DType type = n.type("T"), sum = ComputedIn(type);
        n.AskProgram(SumProgram(type, type, sum, 2));
        n.AskProgram(SumProgram(sum, type, type, 2));
      })
      .Kernel<AddNKernel>();
  for (const char* op : {"BiasAdd", "BiasAddV1"}) {
    registry.Op(op)
        .Types("T", DeviceTypes(kSummable))
        .AllHostFor(DType::kInt32, {"value", "bias", "output"})
        .Requires(Opcode::kAdd)
        .Kernel<BiasAddKernel>();
  }
}

}  // namespace xpu
