#include "tensorflow_plugin/ops/arrays/slice_windows.h"

#include <numeric>
#include <vector>

#include "tensorflow_plugin/ops/math/broadcast.h"

namespace xpu {
namespace {

const Program* StartProgram(DType index_type) {
  ProgramBuilder b;
  const auto given = b.Cast(b.Input(index_type), DType::kInt64);
  const auto last = b.Input(DType::kInt64), stride = b.Input(DType::kInt64);
  const auto positive = b.Apply(Opcode::kMaximum, given, b.ConstInt(DType::kInt64, 0));
  b.Output(b.Apply(Opcode::kMul, b.Apply(Opcode::kMinimum, positive, last), stride));
  return b.Build();
}

}  // namespace

SliceWindows::SliceWindows(DType index_type) : start_(StartProgram(index_type)) {
  ProgramBuilder sum;
  const auto outer = sum.Input(DType::kInt64), inner = sum.Input(DType::kInt64), first = sum.Input(DType::kInt64);
  sum.Output(sum.Apply(Opcode::kAdd, sum.Apply(Opcode::kAdd, outer, inner), first));
  position_ = sum.Build();
}

void SliceWindows::Require(Needs& n, const char* index_type) {
  ReduceDesc sum;
  sum.source.program = StartProgram(n.type(index_type));
  n.Ask(sum);
  needs::Op(Opcode::kAdd, DType::kInt64)(n);
}

int SliceWindows::CountingAxes(const Dims& dims, const Dims& extents) {
  int n = dims.rank();
  while (n > 0 && dims[n - 1] == extents[n - 1]) --n;
  return n;
}

Status SliceWindows::Rows(Context& ctx, const Dims& dims, const Dims& extents, const Tensor& starts,
                          Temporary* rows) const {
  const int axes = CountingAxes(dims, extents);
  const int64_t along = extents[axes - 1], before = Product(extents, 0, axes - 1);
  // Each axis' last start and stride, then the rows' numbers in a window that begins at 0, as sums of two.
  std::vector<int64_t> parts(2 * axes + before + along);
  for (int i = 0; i < axes; ++i) {
    parts[i] = dims[i] - extents[i];
    parts[axes + i] = Product(dims, i + 1, axes);
  }
  for (int64_t b = 0; b < before; ++b) {
    int64_t rest = b, row = 0;
    for (int i = axes - 2; i >= 0; --i) {
      row += rest % extents[i] * parts[axes + i];
      rest /= extents[i];
    }
    parts[2 * axes + b] = row;
  }
  std::iota(parts.end() - along, parts.end(), 0);
  Temporary device, first;
  XPU_RETURN_IF_ERROR(Upload(ctx, parts, DType::kInt64, &device));
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {1}, &first));
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {before * along}, rows));
  const int64_t* last = static_cast<const int64_t*>(device.data());

  ReduceDesc sum;
  sum.source.program = start_;
  sum.axes = 1;
  SetFlat(axes, 3, &sum.source);
  XPU_RETURN_IF_ERROR(ctx.Launch(sum, {starts.data(), last, last + axes}, {first.data()}));
  ElementwiseDesc add;
  add.program = position_;
  add.shape = {before, along};
  add.in_strides[0] = {1, 0};
  add.in_strides[1] = {0, 1};
  add.in_strides[2] = {0, 0};
  return ctx.Launch(add, {last + 2 * axes, last + 2 * axes + before, first.data()}, {rows->data()});
}

Status SliceWindows::Read(Context& ctx, const Tensor& x, const Tensor& starts, Tensor& y) const {
  Temporary rows;
  XPU_RETURN_IF_ERROR(Rows(ctx, x.dims(), y.dims(), starts, &rows));
  const int axes = CountingAxes(x.dims(), y.dims());
  GatherDesc desc;
  desc.element_size = SizeOf(x.dtype());
  desc.num_indices = Product(y.dims(), 0, axes);
  desc.inner = Product(x.dims(), axes, x.rank());
  desc.dims = {Product(x.dims(), 0, axes)};
  return ctx.Launch(desc, {x.data(), rows.data()}, {y.mutable_data()});
}

}  // namespace xpu
