// Softmax, LogSoftmax and the cross-entropies with their gradient.
#include <algorithm>

#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class SoftmaxKernel : public OpKernel {
 public:
  SoftmaxKernel(Construction& c, SoftmaxKind kind) : kind_(kind), type_(c.Attr<DType>("T")) {}

  Status Compute(Context& ctx) override {
    const Tensor logits = ctx.input(0);
    XPU_REQUIRE(logits.rank() >= 1,
                errors::InvalidArgument("logits must have >= 1 dimension, got ", logits.ShapeString()));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, logits, &out));
    if (logits.num_elements() == 0) return OkStatus();
    SoftmaxDesc desc;
    desc.kind = kind_;
    desc.type = type_;
    desc.cols = logits.dim(logits.rank() - 1);
    desc.rows = logits.num_elements() / desc.cols;
    desc.logits_row_stride = desc.cols;
    return ctx.Launch(desc, {logits.data()}, {out.mutable_data()});
  }

 private:
  const SoftmaxKind kind_;
  const DType type_;
};

class CrossEntropyKernel : public OpKernel {
 public:
  explicit CrossEntropyKernel(Construction& c) : type_(c.Attr<DType>("T")) {}

  Status Compute(Context& ctx) override {
    const Tensor logits = ctx.input(0), labels = ctx.input(1);
    SoftmaxDesc desc;
    desc.kind = SoftmaxKind::kCrossEntropy;
    desc.type = type_;
    XPU_RETURN_IF_ERROR(Broadcast(logits, labels, &desc));
    Tensor loss, backprop;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {desc.rows}, &loss));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {desc.rows, desc.cols}, &backprop));
    if (desc.rows == 0) return OkStatus();
    // Without classes the sum over them is empty.
    if (desc.cols == 0) return ctx.Zero(loss.mutable_data(), loss.bytes());
    return ctx.Launch(desc, {logits.data(), labels.data()}, {loss.mutable_data(), backprop.mutable_data()});
  }

 private:
  // The common [rows, cols] of both shapes and each one's strides over it.
  static Status Broadcast(const Tensor& logits, const Tensor& labels, SoftmaxDesc* desc) {
    const int rank = std::max(logits.rank(), labels.rank());
    XPU_REQUIRE(rank == 2, errors::InvalidArgument("logits and labels must be either 2-dimensional, or broadcasted to "
                                                   "be 2-dimensional, got logits ",
                                                   logits.ShapeString(), " and labels ", labels.ShapeString()));
    auto dim = [](const Tensor& t, int from_end) { return t.rank() >= from_end ? t.dim(t.rank() - from_end) : 1; };
    int64_t extents[2];
    for (int from_end = 1; from_end <= 2; ++from_end) {
      const int64_t a = dim(logits, from_end), b = dim(labels, from_end);
      XPU_REQUIRE(a == b || a == 1 || b == 1,
                  errors::InvalidArgument("logits and labels must be broadcastable: logits_size=", logits.ShapeString(),
                                          " labels_size=", labels.ShapeString()));
      extents[from_end - 1] = a == 1 ? b : a;
    }
    desc->cols = extents[0];
    desc->rows = extents[1];
    desc->logits_col_stride = dim(logits, 1) == 1 ? 0 : 1;
    desc->logits_row_stride = dim(logits, 2) == 1 ? 0 : dim(logits, 1);
    desc->labels_col_stride = dim(labels, 1) == 1 ? 0 : 1;
    desc->labels_row_stride = dim(labels, 2) == 1 ? 0 : dim(labels, 1);
    return OkStatus();
  }

  const DType type_;
};

class SparseCrossEntropyKernel : public OpKernel {
 public:
  explicit SparseCrossEntropyKernel(Construction& c)
      : type_(c.Attr<DType>("T")), label_type_(c.Attr<DType>("Tlabels")) {}

  Status Compute(Context& ctx) override {
    const Tensor logits = ctx.input(0), labels = ctx.input(1);
    XPU_REQUIRE(logits.rank() == 2,
                errors::InvalidArgument("logits must be 2-D, but got shape ", logits.ShapeString()));
    XPU_REQUIRE(labels.rank() == 1,
                errors::InvalidArgument("labels must be 1-D, but got shape ", labels.ShapeString()));
    XPU_REQUIRE(logits.dim(0) == labels.dim(0),
                errors::InvalidArgument("logits and labels must have the same first dimension, got logits shape ",
                                        logits.ShapeString(), " and labels shape ", labels.ShapeString()));
    XPU_REQUIRE(logits.dim(1) > 0,
                errors::InvalidArgument("Must have at least one class, but got logits shape ", logits.ShapeString()));
    Tensor loss, backprop;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, labels, &loss));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(1, logits, &backprop));
    if (logits.num_elements() == 0) return OkStatus();
    SoftmaxDesc desc;
    desc.kind = SoftmaxKind::kSparseCrossEntropy;
    desc.type = type_;
    desc.label_type = label_type_;
    desc.rows = logits.dim(0);
    desc.cols = logits.dim(1);
    desc.logits_row_stride = desc.cols;
    desc.labels_row_stride = 1;
    return ctx.Launch(desc, {logits.data(), labels.data()}, {loss.mutable_data(), backprop.mutable_data()});
  }

 private:
  const DType type_, label_type_;
};

}  // namespace

void RegisterSoftmax(Registry& registry) {
  const struct {
    const char* op;
    SoftmaxKind kind;
  } plain[] = {{"Softmax", SoftmaxKind::kSoftmax}, {"LogSoftmax", SoftmaxKind::kLogSoftmax}};
  for (const auto& p : plain) {
    registry.Op(p.op).Types("T", kFloatTypes).Requires(needs::Softmax(p.kind, "T")).Kernel<SoftmaxKernel>(p.kind);
  }
  registry.Op("SoftmaxCrossEntropyWithLogits")
      .Types("T", kFloatTypes)
      .Requires(needs::Softmax(SoftmaxKind::kCrossEntropy, "T"))
      .Kernel<CrossEntropyKernel>();
  // int32 labels are in device memory, as on TensorFlow's GPU.
  registry.Op("SparseSoftmaxCrossEntropyWithLogits")
      .Types("T", kFloatTypes)
      .Types("Tlabels", {DType::kInt32, DType::kInt64})
      .Requires(needs::Softmax(SoftmaxKind::kSparseCrossEntropy, "T", "Tlabels"))
      .Kernel<SparseCrossEntropyKernel>();
}

}  // namespace xpu
