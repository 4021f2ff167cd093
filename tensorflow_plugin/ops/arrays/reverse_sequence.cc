// ReverseSequence: of each batch entry, the first so many steps in reverse. A gather, whose indices are computed from
// the lengths on the device.
#include <algorithm>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Where what is at step s of its sequence comes from: base + scale * step. A length that cannot be gives an index that
// cannot be: below 0, or beyond all.
const Program* SourceProgram(DType length_type) {
  ProgramBuilder b;
  const FormulaValue length = Cast({&b, b.Input(length_type)}, DType::kInt64);
  const FormulaValue step{&b, b.Input(DType::kInt64)}, base{&b, b.Input(DType::kInt64)};
  const FormulaValue scale{&b, b.Input(DType::kInt64)}, steps{&b, b.Input(DType::kInt64)},
      beyond{&b, b.Input(DType::kInt64)};
  const FormulaValue source = Select(step < length, length - step.Const(1) - step, step);
  const FormulaValue index = Select(length > steps, beyond, base + scale * source);
  b.Output(Select(length < length.Const(0), length.Const(-1), index).reg);
  return b.Build();
}

class ReverseSequenceKernel : public OpKernel {
 public:
  explicit ReverseSequenceKernel(Construction& c)
      : batch_dim_(c.Attr<int32_t>("batch_dim")),
        seq_dim_(c.Attr<int32_t>("seq_dim")),
        source_(SourceProgram(c.Attr<DType>("Tlen"))) {
    if (c.status().ok() && batch_dim_ < 0) c.Fail(errors::InvalidArgument("Invalid batch_dim ", batch_dim_));
    if (c.status().ok() && seq_dim_ < 0) c.Fail(errors::InvalidArgument("Invalid seq_dim ", seq_dim_));
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), lengths = ctx.input(1);
    XPU_REQUIRE(lengths.IsVector(), errors::InvalidArgument("seq_lengths must be 1-dim, not ", lengths.rank()));
    XPU_REQUIRE(batch_dim_ != seq_dim_, errors::InvalidArgument("batch_dim == seq_dim == ", seq_dim_));
    XPU_REQUIRE(seq_dim_ < x.rank(),
                errors::InvalidArgument("seq_dim must be < input rank ( ", seq_dim_, " vs. ", x.rank(), ")"));
    XPU_REQUIRE(batch_dim_ < x.rank(),
                errors::InvalidArgument("batch_dim must be < input rank ( ", batch_dim_, " vs. ", x.rank(), ")"));
    XPU_REQUIRE(lengths.num_elements() == x.dim(batch_dim_),
                errors::InvalidArgument("Length of seq_lengths != input.dims(", batch_dim_, "), (",
                                        lengths.num_elements(), " vs. ", x.dim(batch_dim_), ")"));
    XPU_REQUIRE(x.rank() <= 5, errors::InvalidArgument("ReverseSequenceOp : Unhandled input dimensions: ", x.rank()));
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    if (x.num_elements() == 0) return OkStatus();

    // Seen as [outer, first, middle, second, inner], the batch being the first of the two axes or the second.
    const bool batch_first = batch_dim_ < seq_dim_;
    const int first = std::min(batch_dim_, seq_dim_), second = std::max(batch_dim_, seq_dim_);
    const int64_t middle = Product(x.dims(), first + 1, second), batch = x.dim(batch_dim_), steps = x.dim(seq_dim_);
    const int64_t places = batch * middle * steps, scale = batch_first ? 1 : middle * batch;
    std::vector<int64_t> numbers = {scale, steps, places};
    for (int64_t i = 0; i < batch * middle; ++i) numbers.push_back(batch_first ? i * steps : i);  // the bases
    for (int64_t i = 0; i < steps; ++i) numbers.push_back(i);
    Temporary uploaded, indices;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, DType::kInt64, &uploaded));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {places}, &indices));
    const int64_t* const n = static_cast<const int64_t*>(uploaded.data());
    ElementwiseDesc source;
    source.program = source_;
    source.shape = batch_first ? Dims{batch, middle, steps} : Dims{steps, middle, batch};
    source.in_strides[0] = batch_first ? Dims{1, 0, 0} : Dims{0, 0, 1};           // length
    source.in_strides[1] = batch_first ? Dims{0, 0, 1} : Dims{1, 0, 0};           // step
    source.in_strides[2] = batch_first ? Dims{middle, 1, 0} : Dims{0, batch, 1};  // base
    for (int i = 3; i < 6; ++i) source.in_strides[i] = {0, 0, 0};
    XPU_RETURN_IF_ERROR(
        ctx.Launch(source, {lengths.data(), n + 3 + batch * middle, n + 3, n, n + 1, n + 2}, {indices.data()}));

    GatherDesc gather;
    gather.element_size = SizeOf(x.dtype());
    gather.outer = Product(x.dims(), 0, first);
    gather.inner = Product(x.dims(), second + 1, x.rank());
    gather.num_indices = places;
    gather.dims = {places};
    const int64_t per_batch = batch_first ? middle * steps : 1;
    const DescribeError bad_length = [=, seq_dim = seq_dim_](const Status& failure,
                                                             const std::vector<int64_t>& values) -> Status {
      int64_t bad = -1, value = 0;
      for (int64_t i = 0; i < places; ++i) {
        const int64_t b = i / per_batch % batch;
        if ((values[i] >= 0 && values[i] < places) || (bad >= 0 && b >= bad)) continue;
        bad = b, value = values[i];
      }
      if (bad < 0) return failure;
      return value < 0 ? errors::InvalidArgument("seq_lens(", bad, ") < 0")
                       : errors::InvalidArgument("seq_lens(", bad, ") > input.dims(", seq_dim, ")");
    };
    return LaunchExplained(ctx, gather, {x.data(), indices.data()}, y.mutable_data(), bad_length);
  }

 private:
  const int batch_dim_, seq_dim_;
  const Program* const source_;
};

}  // namespace

void RegisterReverseSequence(Registry& registry) {
  registry.Op("ReverseSequence")
      .Types("T", Union(kAllTypes, {DType::kInt32}))  // in device memory, as on GPUs
      .Types("Tlen", {DType::kInt32, DType::kInt64})
      .Requires([](Needs& n) { n.AskProgram(SourceProgram(n.type("Tlen"))); })
      .Requires(needs::Gather("T", DType::kInt64))
      .Kernel<ReverseSequenceKernel>();
}

}  // namespace xpu
