// XlaDynamicSlice and XlaDynamicUpdateSlice, which are ordinary ops outside XLA. Their windows of an array begin where
// the device says, and are moved inside where they would reach out. Keras writes keys and values of attention with
// them, one token after the other. The position stays on the device, so that clusters need not be captured anew for
// each.
#include "tensorflow_plugin/ops/arrays/slice_windows.h"
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class DynamicUpdateSliceKernel : public OpKernel {
 public:
  explicit DynamicUpdateSliceKernel(Construction& c) : windows_(c.Attr<DType>("Tindices")) {}

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
  explicit DynamicSliceKernel(Construction& c) : windows_(c.Attr<DType>("Tindices")) {}

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
    return windows_.Read(ctx, x, starts, y);
  }

 private:
  const SliceWindows windows_;
};

void RequireIndices(Needs& n) { SliceWindows::Require(n, "Tindices"); }

}  // namespace

void RegisterDynamicSlice(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  registry.Op("XlaDynamicUpdateSlice")
      .Types("T", kAllTypes)
      .Types("Tindices", index_types)
      .AllHostFor(DType::kInt32, {"input", "update", "indices", "output"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Scatter(ScatterKind::kUpdate, "T", DType::kInt64))
      .Requires(RequireIndices)
      .Kernel<DynamicUpdateSliceKernel>();
  registry.Op("XlaDynamicSlice")
      .Types("T", kAllTypes)
      .Types("Tindices", index_types)
      .Host({"size_indices"})
      .AllHostFor(DType::kInt32, {"input", "start_indices", "output"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Gather("T", DType::kInt64))
      .Requires(RequireIndices)
      .Kernel<DynamicSliceKernel>();
}

}  // namespace xpu
