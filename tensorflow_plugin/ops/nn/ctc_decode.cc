// Greedy decoding of connectionist temporal classification: the likeliest class at each time, without blanks, and
// without repetitions if these are merged. The device finds classes and scores; how many labels are left is for the
// host to say, since outputs have as many rows.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class CtcGreedyDecoderKernel : public OpKernel {
 public:
  explicit CtcGreedyDecoderKernel(Construction& c)
      : type_(c.Attr<DType>("T")), merge_(c.Attr<bool>("merge_repeated")), blank_(c.Attr<int64_t>("blank_index")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), lengths = ctx.input(1);
    XPU_RETURN_IF_ERROR(Check(x, lengths));
    std::vector<int64_t> classes;
    std::vector<double> scores;
    XPU_RETURN_IF_ERROR(Best(ctx, x, &classes, &scores));

    const int64_t batch = x.dim(1), blank = blank_ < 0 ? blank_ + x.dim(2) : blank_;
    std::vector<int64_t> positions, labels;
    std::vector<double> log_probabilities(batch, 0.0);
    int64_t longest = 0;
    for (int64_t b = 0; b < batch; ++b) {
      int64_t count = 0, before = -1;
      for (int64_t t = 0; t < lengths.host<int32_t>()[b]; ++t) {
        const int64_t label = classes[t * batch + b];
        log_probabilities[b] -= scores[t * batch + b];
        if (label != blank && !(merge_ && label == before)) {
          positions.push_back(b);
          positions.push_back(count++);
          labels.push_back(label);
        }
        before = label;
      }
      longest = std::max(longest, count);
    }

    const int64_t n = static_cast<int64_t>(labels.size());
    Tensor indices, values, shape, log_probability;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {n, 2}, &indices));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {n}, &values));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, {2}, &shape));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(3, {batch, 1}, &log_probability));
    auto* extents = static_cast<int64_t*>(shape.mutable_data());
    extents[0] = batch, extents[1] = longest;
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(indices.mutable_data(), positions.data(), indices.bytes()));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(values.mutable_data(), labels.data(), values.bytes()));
    if (type_ == DType::kDouble) {
      return ctx.CopyFromHost(log_probability.mutable_data(), log_probabilities.data(), log_probability.bytes());
    }
    const std::vector<float> rounded(log_probabilities.begin(), log_probabilities.end());
    return ctx.CopyFromHost(log_probability.mutable_data(), rounded.data(), log_probability.bytes());
  }

  static void Requires(Needs& n) {
    needs::Reduce(ReduceKind::kMax, "T")(n);
    needs::Reduce(ReduceKind::kArgMax, "T")(n);
  }

 private:
  Status Check(const Tensor& x, const Tensor& lengths) const {
    XPU_REQUIRE(x.rank() == 3, errors::InvalidArgument("inputs is not a 3-Tensor"));
    XPU_REQUIRE(x.num_elements() > 0, errors::InvalidArgument("inputs must not be empty"));
    XPU_REQUIRE(lengths.IsVector(), errors::InvalidArgument("sequence_length is not a vector"));
    const int64_t time = x.dim(0), batch = x.dim(1), classes = x.dim(2);
    XPU_REQUIRE(lengths.dim(0) == batch,
                errors::FailedPrecondition("len(sequence_length) != batch_size.  len(sequence_length):  ",
                                           lengths.dim(0), " batch_size: ", batch));
    for (int64_t b = 0; b < batch; ++b) {
      XPU_REQUIRE(lengths.host<int32_t>()[b] <= time, errors::FailedPrecondition("sequence_length(", b, ") <= ", time));
    }
    XPU_REQUIRE(blank_ >= -classes && blank_ < classes,
                errors::InvalidArgument("blank_index expected to be between ", -classes, " and ", classes - 1,
                                        " but was ", blank_));
    return OkStatus();
  }

  // The likeliest class at each time in each sequence, and its score, on the host.
  Status Best(Context& ctx, const Tensor& x, std::vector<int64_t>* classes, std::vector<double>* scores) const {
    const int64_t rows = x.dim(0) * x.dim(1);
    Temporary numbers, largest;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {rows}, &numbers));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {rows}, &largest));
    ReduceDesc reduce;
    reduce.source.program = IdentityProgram(type_);
    reduce.source.shape = {rows, x.dim(2)};
    reduce.source.in_strides[0] = {x.dim(2), 1};
    reduce.axes = 1 << 1;
    reduce.kind = ReduceKind::kArgMax;
    XPU_RETURN_IF_ERROR(ctx.Launch(reduce, {x.data()}, {numbers.data()}));
    reduce.kind = ReduceKind::kMax;
    XPU_RETURN_IF_ERROR(ctx.Launch(reduce, {x.data()}, {largest.data()}));
    classes->resize(rows);
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(classes->data(), numbers.data(), rows * sizeof(int64_t)));
    scores->resize(rows);
    if (type_ == DType::kDouble) return ctx.CopyToHost(scores->data(), largest.data(), rows * sizeof(double));
    std::vector<float> floats(rows);
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(floats.data(), largest.data(), rows * sizeof(float)));
    scores->assign(floats.begin(), floats.end());
    return OkStatus();
  }

  const DType type_;
  const bool merge_;
  const int64_t blank_;
};

}  // namespace

void RegisterCtcDecode(Registry& registry) {
  registry.Op("CTCGreedyDecoder")
      .Types("T", {DType::kFloat, DType::kDouble})
      .Host({"sequence_length", "decoded_shape"})
      .Traits(OpTrait::kWaitsForDevice)
      .Requires(&CtcGreedyDecoderKernel::Requires)
      .Kernel<CtcGreedyDecoderKernel>();
}

}  // namespace xpu
