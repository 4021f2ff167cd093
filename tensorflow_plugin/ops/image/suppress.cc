// Non-maximum suppression: of boxes that overlap, the one with the highest score.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/image/util.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

struct SuppressionOp {
  const char* name;
  bool pairs;        // the first argument are the overlaps themselves
  bool scored;       // there is a threshold for scores
  bool counted;      // there is an output that says how many are valid, and an attribute that pads the others
  bool names_ranks;  // in messages
};

constexpr SuppressionOp kOps[] = {
    {"NonMaxSuppressionV2", false, false, false, false},
    {"NonMaxSuppressionV3", false, true, false, true},
    {"NonMaxSuppressionV4", false, true, true, false},
    {"NonMaxSuppressionWithOverlaps", true, true, false, false},
};

// Kept, and with a score above the threshold, as 1 or 0.
const Program* ValidProgram(DType result) {
  ProgramBuilder b;
  const FormulaValue kept = {&b, b.Input(DType::kBool)}, score = {&b, b.Input(DType::kFloat)};
  const FormulaValue threshold = {&b, b.Input(DType::kFloat)};
  b.Output(Cast(kept && score > threshold, result).reg);
  return b.Build();
}

class SuppressionKernel : public OpKernel {
 public:
  SuppressionKernel(Construction& c, const SuppressionOp* op)
      : op_(*op), pad_(op->counted && c.Attr<bool>("pad_to_max_output_size")) {
    valid_ = ValidProgram(DType::kBool);
    counted_ = ValidProgram(DType::kInt64);
  }

  Status Compute(Context& ctx) override {
    const Tensor boxes = ctx.input(0), scores = ctx.input(1), most = ctx.input(2), overlap = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckScalar(most, "max_output_size", op_.names_ranks));
    XPU_RETURN_IF_ERROR(CheckScalar(overlap, op_.pairs ? "overlap_threshold" : "iou_threshold", op_.names_ranks));
    SuppressDesc desc;
    desc.pairs = op_.pairs;
    desc.threshold = *overlap.host<float>();
    XPU_REQUIRE(op_.pairs || (desc.threshold >= 0 && desc.threshold <= 1),
                errors::InvalidArgument("iou_threshold must be in [0, 1]"));
    // Without a threshold, what is no number and what is the lowest one are left out all the same.
    float least = std::numeric_limits<float>::lowest();
    if (op_.scored) {
      XPU_RETURN_IF_ERROR(CheckScalar(ctx.input(4), "score_threshold"));
      least = *ctx.input(4).host<float>();
    }
    XPU_RETURN_IF_ERROR(CheckShapes(boxes, scores));
    desc.n = boxes.dim(0);
    desc.most = *most.host<int32_t>();
    XPU_REQUIRE(desc.most >= 0, errors::InvalidArgument("output size must be non-negative"));
    if (desc.n == 0 || desc.most == 0) return Answer(ctx, desc, 0, nullptr, nullptr);
    return Select(ctx, desc, boxes, scores, least);
  }

 private:
  Status CheckShapes(const Tensor& boxes, const Tensor& scores) const {
    if (op_.pairs) {
      XPU_REQUIRE(boxes.rank() == 2, errors::InvalidArgument("overlaps must be 2-D", boxes.ShapeString()));
      XPU_REQUIRE(boxes.dim(0) == boxes.dim(1),
                  errors::InvalidArgument("overlaps must be square", boxes.ShapeString()));
    } else {
      XPU_REQUIRE(boxes.rank() == 2, errors::InvalidArgument("boxes must be 2-D", boxes.ShapeString(),
                                                             " (Shape must be rank 2 but is rank ", boxes.rank(), ")"));
      XPU_REQUIRE(boxes.dim(1) == 4,
                  errors::InvalidArgument("boxes must have 4 columns (Dimension must be 4 but is ", boxes.dim(1), ")"));
    }
    XPU_REQUIRE(scores.rank() == 1, errors::InvalidArgument("scores must be 1-D", scores.ShapeString(),
                                                            " (Shape must be rank 1 but is rank ", scores.rank(), ")"));
    XPU_REQUIRE(scores.dim(0) == boxes.dim(0),
                errors::InvalidArgument("scores has incompatible shape (Dimensions must be equal, but are ",
                                        boxes.dim(0), " and ", scores.dim(0), ")"));
    return OkStatus();
  }

  // In the order of scores: what is kept, how many that are, and where they were.
  Status Select(Context& ctx, const SuppressDesc& desc, const Tensor& boxes, const Tensor& scores, float least) const {
    const int64_t n = desc.n;
    Temporary sorted_scores, order, kept, threshold, valid, count;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {n}, &sorted_scores));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, {n}, &order));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kBool, {n}, &kept));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {}, &threshold));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kBool, {n}, &valid));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {}, &count));
    SortDesc sort;
    sort.n = sort.k = n;
    sort.descending = true;
    XPU_RETURN_IF_ERROR(ctx.Launch(sort, {scores.data()}, {sorted_scores.data(), order.data()}));
    Temporary sorted;
    XPU_RETURN_IF_ERROR(InOrder(ctx, boxes, order, &sorted));
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {sorted.data()}, {kept.data()}));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(threshold.data(), &least, sizeof least));
    ElementwiseDesc which;
    which.program = valid_;
    which.shape = {n};
    which.in_strides[0] = which.in_strides[1] = {1};
    which.in_strides[2] = {0};
    XPU_RETURN_IF_ERROR(ctx.Launch(which, {kept.data(), sorted_scores.data(), threshold.data()}, {valid.data()}));
    ReduceDesc sum;
    sum.source = which;
    sum.source.program = counted_;
    sum.axes = 1;
    XPU_RETURN_IF_ERROR(
        ctx.LaunchChecked(sum, {kept.data(), sorted_scores.data(), threshold.data()}, {count.data()}, nullptr));
    int64_t found = 0;
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(&found, count.data(), sizeof found));
    return Answer(ctx, desc, found, valid.data(), order.data());
  }

  // Rows of boxes, or rows and columns of overlaps.
  Status InOrder(Context& ctx, const Tensor& boxes, const Temporary& order, Temporary* sorted) const {
    const int64_t n = boxes.dim(0);
    GatherDesc rows;
    rows.element_size = sizeof(float);
    rows.index_type = DType::kInt32;
    rows.inner = boxes.dim(1);
    rows.num_indices = n;
    rows.dims = {n};
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, boxes.dims(), sorted));
    if (!op_.pairs) return ctx.Launch(rows, {boxes.data(), order.data()}, {sorted->data()});
    Temporary half;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, boxes.dims(), &half));
    XPU_RETURN_IF_ERROR(ctx.Launch(rows, {boxes.data(), order.data()}, {half.data()}));
    GatherDesc columns = rows;
    columns.outer = n;
    columns.inner = 1;
    return ctx.Launch(columns, {half.data(), order.data()}, {sorted->data()});
  }

  // The outputs: numbers of the `found` boxes that are valid, zeros behind them where it pads, and their count.
  Status Answer(Context& ctx, const SuppressDesc& desc, int64_t found, const void* valid, const void* order) const {
    Tensor indices;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {pad_ ? desc.most : found}, &indices));
    if (op_.counted) {
      Tensor count;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {}, &count));
      const int32_t value = static_cast<int32_t>(found);
      XPU_RETURN_IF_ERROR(ctx.CopyFromHost(count.mutable_data(), &value, sizeof value));
    }
    if (pad_) XPU_RETURN_IF_ERROR(FillZero(ctx, indices));
    if (found == 0) return OkStatus();
    Temporary positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {found}, &positions));
    CompactDesc compact;
    compact.type = DType::kBool;
    compact.shape = {desc.n};
    compact.count = found;
    XPU_RETURN_IF_ERROR(ctx.LaunchChecked(compact, {valid}, {positions.data()}, nullptr));
    GatherDesc numbers;
    numbers.element_size = sizeof(int32_t);
    numbers.index_type = DType::kInt64;
    numbers.num_indices = found;
    numbers.dims = {desc.n};
    return ctx.Launch(numbers, {order, positions.data()}, {indices.mutable_data()});
  }

  const SuppressionOp op_;
  const bool pad_;
  const Program *valid_ = nullptr, *counted_ = nullptr;
};

Need Suppresses(bool pairs) {
  return [pairs](Needs& n) {
    SuppressDesc desc;
    desc.pairs = pairs;
    n.Ask(desc);
    SortDesc sort;
    sort.descending = true;
    n.Ask(sort);
    n.AskProgram(ValidProgram(DType::kBool));
    ReduceDesc sum;
    sum.source.program = ValidProgram(DType::kInt64);
    n.Ask(sum);
    CompactDesc compact;
    compact.type = DType::kBool;
    n.Ask(compact);
    needs::Gather(DType::kFloat)(n);
  };
}

}  // namespace

void RegisterImageSuppress(Registry& registry) {
  for (const SuppressionOp& op : kOps) {
    auto entry = registry.Op(op.name);
    if (!op.pairs) entry.Types("T", {DType::kFloat}).Types("T_threshold", {DType::kFloat});
    std::vector<const char*> host = {"max_output_size", op.pairs ? "overlap_threshold" : "iou_threshold"};
    if (op.scored) host.push_back("score_threshold");
    entry.Host(host).Traits(OpTrait::kWaitsForDevice).Requires(Suppresses(op.pairs)).Kernel<SuppressionKernel>(&op);
  }
}

}  // namespace xpu
