// CombinedNonMaxSuppression: the best boxes of all classes, and suppression within each class.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "tensorflow_plugin/ops/image/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class SelectBoxesKernel : public OpKernel {
 public:
  explicit SelectBoxesKernel(Construction& c)
      : pad_per_class_(c.Attr<bool>("pad_per_class")), clip_(c.Attr<bool>("clip_boxes")) {}

  Status Compute(Context& ctx) override {
    const Tensor boxes = ctx.input(0), scores = ctx.input(1);
    SelectBoxesDesc desc;
    XPU_REQUIRE(boxes.IsScalar() || scores.IsScalar() || boxes.dim(0) == scores.dim(0),
                errors::InvalidArgument("boxes and scores must have same batch size"));
    XPU_RETURN_IF_ERROR(ReadLimits(ctx, &desc));
    XPU_RETURN_IF_ERROR(ReadShapes(boxes, scores, &desc));
    XPU_RETURN_IF_ERROR(Limit(&desc));
    Tensor out_boxes, out_scores, classes, counts;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {desc.batch, desc.rows, 4}, &out_boxes));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {desc.batch, desc.rows}, &out_scores));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, {desc.batch, desc.rows}, &classes));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(3, {desc.batch}, &counts));
    if (desc.batch == 0) return OkStatus();
    return ctx.Launch(
        desc, {boxes.data(), scores.data()},
        {out_boxes.mutable_data(), out_scores.mutable_data(), classes.mutable_data(), counts.mutable_data()});
  }

 private:
  // In the order of TensorFlow's checks, as are those of the limits before it.
  static Status ReadShapes(const Tensor& boxes, const Tensor& scores, SelectBoxesDesc* desc) {
    XPU_REQUIRE(boxes.rank() == 4, errors::InvalidArgument("boxes must be 4-D", boxes.ShapeString()));
    XPU_REQUIRE(scores.rank() == 3, errors::InvalidArgument("scores must be 3-D", scores.ShapeString()));
    desc->batch = boxes.dim(0);
    desc->n = boxes.dim(1);
    desc->box_sets = boxes.dim(2);
    desc->classes = scores.dim(2);
    XPU_REQUIRE(desc->box_sets == 1 || desc->box_sets == desc->classes,
                errors::InvalidArgument("third dimension of boxes must be either 1 or num classes"));
    XPU_REQUIRE(boxes.dim(3) == 4, errors::InvalidArgument("boxes must have 4 columns"));
    XPU_REQUIRE(scores.dim(1) == desc->n, errors::InvalidArgument("scores has incompatible shape"));
    return OkStatus();
  }

  static Status ReadLimits(Context& ctx, SelectBoxesDesc* desc) {
    const Tensor of_class = ctx.input(2), in_all = ctx.input(3), overlap = ctx.input(4), least = ctx.input(5);
    XPU_RETURN_IF_ERROR(CheckScalar(of_class, "max_size_per_class"));
    desc->most_of_class = *of_class.host<int32_t>();
    XPU_REQUIRE(desc->most_of_class > 0, errors::InvalidArgument("max_size_per_class must be positive"));
    XPU_RETURN_IF_ERROR(CheckScalar(in_all, "max_total_size"));
    desc->rows = *in_all.host<int32_t>();
    XPU_REQUIRE(desc->rows > 0, errors::InvalidArgument("max_total_size must be > 0"));
    XPU_RETURN_IF_ERROR(CheckScalar(overlap, "iou_threshold"));
    desc->threshold = *overlap.host<float>();
    XPU_RETURN_IF_ERROR(CheckScalar(least, "score_threshold"));
    desc->least = *least.host<float>();
    XPU_REQUIRE(desc->threshold >= 0 && desc->threshold <= 1,
                errors::InvalidArgument("iou_threshold must be in [0, 1]"));
    return OkStatus();
  }

  // By the shapes and attributes.
  Status Limit(SelectBoxesDesc* desc) const {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    desc->clip = clip_;
    if (pad_per_class_) desc->rows = std::min({desc->rows, kMost, desc->most_of_class * desc->classes});
    desc->most_of_class = std::min(desc->most_of_class, desc->n);
    XPU_REQUIRE(desc->most_of_class * desc->classes <= kMost,
                errors::InvalidArgument("size_per_class * num_classes causes overflow"));
    return OkStatus();
  }

  const bool pad_per_class_, clip_;
};

}  // namespace

void RegisterImageSelectBoxes(Registry& registry) {
  registry.Op("CombinedNonMaxSuppression")
      .Host({"max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"})
      .Requires([](Needs& n) { n.Ask(SelectBoxesDesc()); })
      .Kernel<SelectBoxesKernel>();
}

}  // namespace xpu
