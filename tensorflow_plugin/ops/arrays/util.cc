#include "tensorflow_plugin/ops/arrays/util.h"

#include <algorithm>

namespace xpu {

Status CopyView(Context& ctx, size_t size, const Dims& shape, const void* src, const View& src_view, void* dst,
                const View& dst_view) {
  if (shape.num_elements() == 0) return OkStatus();
  CopyStridedDesc desc;
  desc.element_size = size;
  desc.shape = shape;
  desc.src_strides = src_view.strides;
  desc.dst_strides = dst_view.strides;
  desc.src_offset = src_view.offset;
  desc.dst_offset = dst_view.offset;
  return ctx.Launch(desc, {src}, {dst});
}

Status FillZero(Context& ctx, const Tensor& out) {
  return out.bytes() == 0 ? OkStatus() : ctx.Zero(out.mutable_data(), out.bytes());
}

Status Fill(Context& ctx, const void* host_value, const Tensor& out) {
  const size_t size = SizeOf(out.dtype());
  const char* bytes = static_cast<const char*>(host_value);
  if (std::all_of(bytes, bytes + size, [](char b) { return b == 0; })) return FillZero(ctx, out);
  Temporary value;
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(out.dtype(), {}, &value));
  XPU_RETURN_IF_ERROR(ctx.CopyFromHost(value.data(), host_value, size));
  return CopyView(ctx, size, {out.num_elements()}, value.data(), {{0}, 0}, out.mutable_data(), {{1}, 0});
}

Status ForwardOrCopy(Context& ctx, int i, Tensor* out) {
  const Tensor in = ctx.input(i);
  XPU_RETURN_IF_ERROR(ctx.ForwardOrAllocateLike({i}, 0, in, out));
  if (out->data() == in.data() || in.bytes() == 0) return OkStatus();
  return ctx.Copy(out->mutable_data(), in.data(), in.bytes());
}

Status Upload(Context& ctx, const std::vector<int64_t>& values, DType type, Temporary* out) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {static_cast<int64_t>(values.size())}, out));
  if (values.empty()) return OkStatus();
  if (type == DType::kInt64) return ctx.CopyFromHost(out->data(), values.data(), values.size() * sizeof(int64_t));
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return ctx.CopyFromHost(out->data(), narrow.data(), narrow.size() * sizeof(int32_t));
}

TypeList Without(TypeList types, DType type) {
  types.erase(std::remove(types.begin(), types.end(), type), types.end());
  return types;
}

}  // namespace xpu
