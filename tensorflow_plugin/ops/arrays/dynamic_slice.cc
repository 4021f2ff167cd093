// XlaDynamicSlice and XlaDynamicUpdateSlice, which are ordinary ops outside XLA. Their windows of an array begin where
// the device says, and are moved inside where they would reach out. Keras writes keys and values of attention with
// them, one token after the other. The position stays on the device, so that clusters need not be captured anew for
// each.
#include <numeric>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Windows of `extents` in an array of `dims`, as rows: those axes at the end that a window fills are a row's elements.
class SliceWindows {
 public:
  explicit SliceWindows(Construction& c) {
    // An axis' part of where the window begins, in rows.
    start_ = StartProgram(c.Attr<DType>("Tindices"));
    ProgramBuilder sum;
    const auto outer = sum.Input(DType::kInt64), inner = sum.Input(DType::kInt64), first = sum.Input(DType::kInt64);
    sum.Output(sum.Apply(Opcode::kAdd, sum.Apply(Opcode::kAdd, outer, inner), first));
    position_ = sum.Build();
  }

  static void Require(Needs& n) {
    ReduceDesc sum;
    sum.source.program = StartProgram(n.type("Tindices"));
    n.Ask(sum);
  }

  // How many axes count rows; 0 if the window is the whole array.
  static int CountingAxes(const Dims& dims, const Dims& extents) {
    int n = dims.rank();
    while (n > 0 && dims[n - 1] == extents[n - 1]) --n;
    return n;
  }

  // The numbers of the rows of the window that begins at `starts` [rank], which is on the device.
  Status Rows(Context& ctx, const Dims& dims, const Dims& extents, const Tensor& starts, Temporary* rows) const {
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

 private:
  static const Program* StartProgram(DType index_type) {
    ProgramBuilder b;
    const auto given = b.Cast(b.Input(index_type), DType::kInt64);
    const auto last = b.Input(DType::kInt64), stride = b.Input(DType::kInt64);
    const auto positive = b.Apply(Opcode::kMaximum, given, b.ConstInt(DType::kInt64, 0));
    b.Output(b.Apply(Opcode::kMul, b.Apply(Opcode::kMinimum, positive, last), stride));
    return b.Build();
  }

  const Program* start_;
  const Program* position_;
};

class DynamicUpdateSliceKernel : public OpKernel {
 public:
  explicit DynamicUpdateSliceKernel(Construction& c) : windows_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), update = ctx.input(1), starts = ctx.input(2);
    XPU_REQUIRE(x.rank() == update.rank(),
                errors::InvalidArgument("input and update must have the same rank, input shape is ", x.ShapeString(),
                                        "; update shape is ", update.ShapeString()));
    XPU_REQUIRE(starts.IsVector() && starts.num_elements() == x.rank(),
                errors::InvalidArgument("index must be a vector with length equal to the number of input dimensions"));
    for (int i = 0; i < x.rank(); ++i) {
      XPU_REQUIRE(update.dim(i) <= x.dim(i),
                  errors::InvalidArgument("Update dim size ", update.dim(i),
                                          " greater than dynamic slice dimension: ", x.dim(i), "."));
    }
    const int axes = SliceWindows::CountingAxes(x.dims(), update.dims());
    if (axes == 0) return ctx.ShareOutput(0, update, x.dims());
    if (update.num_elements() == 0) return ctx.ShareOutput(0, x, x.dims());
    Tensor y;
    XPU_RETURN_IF_ERROR(ForwardOrCopy(ctx, 0, &y));
    Temporary rows;
    XPU_RETURN_IF_ERROR(windows_.Rows(ctx, x.dims(), update.dims(), starts, &rows));
    ScatterDesc desc;
    desc.type = x.dtype();
    desc.num_indices = Product(update.dims(), 0, axes);
    desc.inner = Product(x.dims(), axes, x.rank());
    desc.dims = {Product(x.dims(), 0, axes)};
    return ctx.Launch(desc, {rows.data(), update.data()}, {y.mutable_data()});
  }

 private:
  const SliceWindows windows_;
};

class DynamicSliceKernel : public OpKernel {
 public:
  explicit DynamicSliceKernel(Construction& c) : windows_(c) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), starts = ctx.input(1), size_arg = ctx.input(2);
    XPU_REQUIRE(starts.IsVector() && size_arg.IsVector(),
                errors::InvalidArgument("start_indices and size_indices must be vectors, got shapes ",
                                        starts.ShapeString(), " and ", size_arg.ShapeString()));
    XPU_REQUIRE(starts.num_elements() == size_arg.num_elements(),
                errors::InvalidArgument("has mismatched number of slice sizes (", size_arg.num_elements(),
                                        ") and number of start indices (", starts.num_elements(), ")"));
    XPU_REQUIRE(starts.num_elements() == x.rank(),
                errors::InvalidArgument("has mismatched number of start indices (", starts.num_elements(),
                                        ") and the rank of operand (", x.rank(), ")"));
    std::vector<int64_t> sizes;
    XPU_RETURN_IF_ERROR(HostIntegers(size_arg, "size_indices", &sizes));
    for (int i = 0; i < x.rank(); ++i) {
      XPU_REQUIRE(sizes[i] >= 0, errors::InvalidArgument("has negative size index to dynamic slice: ", sizes[i]));
      XPU_REQUIRE(sizes[i] <= x.dim(i),
                  errors::InvalidArgument("has slice size ", sizes[i], " greater than dimension size ", x.dim(i),
                                          " in dimension ", i, " of operand"));
    }
    const Dims shape = ToDims(sizes);
    const int axes = SliceWindows::CountingAxes(x.dims(), shape);
    if (axes == 0) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    Temporary rows;
    XPU_RETURN_IF_ERROR(windows_.Rows(ctx, x.dims(), shape, starts, &rows));
    GatherDesc desc;
    desc.element_size = SizeOf(x.dtype());
    desc.num_indices = Product(shape, 0, axes);
    desc.inner = Product(x.dims(), axes, x.rank());
    desc.dims = {Product(x.dims(), 0, axes)};
    return ctx.Launch(desc, {x.data(), rows.data()}, {y.mutable_data()});
  }

 private:
  const SliceWindows windows_;
};

}  // namespace

void RegisterDynamicSlice(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  registry.Op("XlaDynamicUpdateSlice")
      .Types("T", kAllTypes)
      .Types("Tindices", index_types)
      .AllHostFor(DType::kInt32, {"input", "update", "indices", "output"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Op(Opcode::kAdd, DType::kInt64))
      .Requires(needs::Scatter(ScatterKind::kUpdate, "T", DType::kInt64))
      .Requires(SliceWindows::Require)
      .Kernel<DynamicUpdateSliceKernel>();
  registry.Op("XlaDynamicSlice")
      .Types("T", kAllTypes)
      .Types("Tindices", index_types)
      .Host({"size_indices"})
      .AllHostFor(DType::kInt32, {"input", "start_indices", "output"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Op(Opcode::kAdd, DType::kInt64))
      .Requires(needs::Gather("T", DType::kInt64))
      .Requires(SliceWindows::Require)
      .Kernel<DynamicSliceKernel>();
}

}  // namespace xpu
