#include "tensorflow_plugin/ops/image/util.h"

namespace xpu {

const TypeList kImageTypes = {DType::kInt8,  DType::kUint8, DType::kInt16,    DType::kUint16, DType::kInt32,
                              DType::kInt64, DType::kHalf,  DType::kBFloat16, DType::kFloat,  DType::kDouble};

Status UploadFloats(Context& ctx, const std::vector<float>& values, Temporary* out) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {static_cast<int64_t>(values.size())}, out));
  return ctx.CopyFromHost(out->data(), values.data(), values.size() * sizeof(float));
}

SampleDesc SampleOf(const Tensor& images, const Tensor& out) {
  SampleDesc desc;
  desc.type = images.dtype();
  desc.result_type = out.dtype();
  desc.images = images.dim(0);
  desc.height = images.dim(1);
  desc.width = images.dim(2);
  desc.channels = images.dim(3);
  desc.batch = out.dim(0);
  desc.out_h = out.dim(1);
  desc.out_w = out.dim(2);
  return desc;
}

Status LaunchGrid(Context& ctx, SampleKind kind, const Tensor& images, const std::vector<float>& points,
                  const Tensor& out) {
  Temporary memory;
  XPU_RETURN_IF_ERROR(UploadFloats(ctx, points, &memory));
  SampleDesc desc = SampleOf(images, out);
  desc.kind = kind;
  desc.outside = Outside::kEdge;
  desc.y_strides = {0, 1, 0};
  desc.x_strides = {0, 0, 1};
  const float* const y = static_cast<const float*>(memory.data());
  return ctx.Launch(desc, {images.data(), y, y + out.dim(1), nullptr}, {out.mutable_data()});
}

FormulaValue Rounded(const FormulaValue& x) {
  const FormulaValue floor = Floor(x), part = x - floor;
  return floor + Cast(Select(x < 0.0, part > 0.5, Apply(Opcode::kGreaterEqual, part, part.Const(0.5))), x.type());
}

Status CheckScalar(const Tensor& t, const char* what, bool with_ranks) {
  if (t.IsScalar()) return OkStatus();
  const std::string ranks = errors::Concat(" (Shape must be rank 0 but is rank ", t.rank(), ")");
  return errors::InvalidArgument(what, " must be 0-D, got shape ", t.ShapeString(), with_ranks ? ranks : "");
}

namespace needs {

Need Sample(SampleKind kind, Outside outside, TypeRef type, TypeRef result_type, SampleDirection direction) {
  return [=](Needs& n) {
    SampleDesc desc;
    desc.kind = kind;
    desc.outside = outside;
    desc.direction = direction;
    desc.type = type.In(n);
    desc.result_type = result_type.In(n);
    n.Ask(desc);
  };
}

}  // namespace needs
}  // namespace xpu
