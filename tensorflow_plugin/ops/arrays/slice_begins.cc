// Slice and StridedSlice that begin where the device says. A pass gives them this label (graph/slice_placement.h). The
// begin is no part of a cluster's signature then. The size of the slice is known.
#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/arrays/slice_windows.h"
#include "tensorflow_plugin/ops/arrays/strided_slice.h"
#include "tensorflow_plugin/ops/math/broadcast.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

class SliceKernel : public OpKernel {
 public:
  explicit SliceKernel(Construction& c) : windows_(c.Attr<DType>("Index")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), begin = ctx.input(1), size_arg = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckSliceArguments(x, begin, size_arg));
    std::vector<int64_t> size;
    XPU_RETURN_IF_ERROR(HostIntegers(size_arg, "size", &size));
    GatherDesc check;  // how far the begins may go
    check.element_size = 1;
    check.index_type = begin.dtype();
    check.inner = 0;
    check.num_indices = 1;
    for (int i = 0; i < x.rank(); ++i) {
      if (size[i] < 0 || size[i] > x.dim(i)) {
        // The begin says which error it is, or how many elements -1 means.
        std::vector<int64_t> values;
        XPU_RETURN_IF_ERROR(FetchIntegers(ctx, begin, &values));
        return CopySlice(ctx, x, values, size);
      }
      check.dims.push_back(x.dim(i) - size[i] + 1);
    }
    if (x.rank() > 0) {
      const DescribeError explain = [dims = x.dims(), size](const Status& failure, const std::vector<int64_t>& values) {
        std::vector<int64_t> extents = size;
        const Status status = CheckSlice(dims, values, &extents);
        return status.ok() ? failure : status;
      };
      XPU_RETURN_IF_ERROR(LaunchExplained(ctx, check, {nullptr, begin.data()}, nullptr, explain));
    }
    const Dims shape = ToDims(size);
    if (shape == x.dims()) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    return y.num_elements() == 0 ? OkStatus() : windows_.Read(ctx, x, begin, y);
  }

 private:
  const SliceWindows windows_;
};

// Entries of `begin` that follow each other choose one element of an axis each. All other axes are whole.
class StridedSliceKernel : public OpKernel {
 public:
  explicit StridedSliceKernel(Construction& c) : masks_(c), position_(PositionProgram(c.Attr<DType>("Index"))) {}

  static void Require(Needs& n) { n.AskProgram(PositionProgram(n.type("Index"))); }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), begin = ctx.input(1), strides_arg = ctx.input(3);
    // The axes that remain, with those that lose all but one element.
    SliceMasks whole = masks_;
    whole.begin = whole.end = -1;
    whole.shrink = 0;
    StridedSlice slice;
    XPU_RETURN_IF_ERROR(ParseStridedSlice(x.dims(), strides_arg, strides_arg, strides_arg, whole, &slice));
    XPU_REQUIRE(begin.dims() == strides_arg.dims(),
                errors::InvalidArgument("Expected begin, end, and strides to be 1D equal size tensors, but got shapes ",
                                        begin.ShapeString(), ", ", begin.ShapeString(), ", and ",
                                        strides_arg.ShapeString(), " instead."));
    std::vector<int64_t> strides;
    XPU_RETURN_IF_ERROR(HostIntegers(strides_arg, "strides", &strides));
    const Chosen chosen = Choose(x.rank(), static_cast<int>(strides.size()));
    const int axis = chosen.axis, end = axis + chosen.count;
    for (int i = chosen.entry; i < chosen.entry + chosen.count; ++i) {
      XPU_REQUIRE(strides[i] > 0, errors::InvalidArgument("only stride 1 allowed on non-range indexing."));
    }
    if (chosen.count == 0) return errors::Unimplemented("a slice that begins nowhere");

    GatherDesc desc;
    desc.element_size = SizeOf(x.dtype());
    desc.outer = Product(slice.shape, 0, axis);
    desc.inner = Product(slice.shape, end, slice.shape.rank());
    desc.num_indices = 1;
    Append(slice.shape, axis, end, &desc.dims);
    Dims shape;
    Append(slice.shape, 0, axis, &shape);
    Append(slice.shape, end, slice.shape.rank(), &shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));

    // Where they are, counted from the front.
    const std::vector<int64_t> extents(desc.dims.begin(), desc.dims.end());
    Temporary on_device, positions, source;
    XPU_RETURN_IF_ERROR(Upload(ctx, extents, DType::kInt64, &on_device));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {chosen.count}, &positions));
    ElementwiseDesc count;
    count.program = position_;
    SetFlat(chosen.count, 2, &count);
    const auto* const given =
        static_cast<const char*>(begin.data()) + static_cast<size_t>(chosen.entry) * SizeOf(begin.dtype());
    XPU_RETURN_IF_ERROR(ctx.Launch(count, {given, on_device.data()}, {positions.data()}));

    const DescribeError explain = [extents, dim = chosen.dim](const Status& failure,
                                                              const std::vector<int64_t>& values) -> Status {
      for (size_t i = 0; i < extents.size(); ++i) {
        if (values[i] >= 0 && values[i] < extents[i]) continue;
        return SliceIndexOutOfBounds(values[i] < 0 ? values[i] - extents[i] : values[i], dim + static_cast<int>(i));
      }
      return failure;
    };
    if (y.num_elements() == 0) {
      desc.outer = 1;
      desc.inner = 0;
      return LaunchExplained(ctx, desc, {nullptr, positions.data()}, nullptr, explain);
    }
    const void* from = x.data();
    if (!slice.identity) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(x.dtype(), slice.shape, &source));
      XPU_RETURN_IF_ERROR(
          CopyView(ctx, SizeOf(x.dtype()), slice.shape, x.data(), slice.view, source.data(), DenseView(slice.shape)));
      from = source.data();
    }
    return LaunchExplained(ctx, desc, {from, positions.data()}, y.mutable_data(), explain);
  }

 private:
  // The entries that choose elements: the first one, its axis among those that remain, its dimension of the array.
  struct Chosen {
    int entry = 0, count = 0, axis = 0, dim = 0;
  };
  Chosen Choose(int rank, int n) const {
    int consuming = 0;
    for (int i = 0; i < n; ++i) consuming += !((masks_.ellipsis | masks_.new_axis) >> i & 1);
    Chosen chosen;
    int axis = 0, dim = 0;
    for (int i = 0; i < n; ++i) {
      const bool is_ellipsis = masks_.ellipsis >> i & 1, is_new = !is_ellipsis && (masks_.new_axis >> i & 1);
      if (!is_ellipsis && !is_new && (masks_.shrink >> i & 1) && chosen.count++ == 0) chosen = {i, 1, axis, dim};
      axis += is_ellipsis ? rank - consuming : 1;
      dim += is_ellipsis ? rank - consuming : is_new ? 0 : 1;
    }
    return chosen;
  }

  // The position that a number stands for: a negative one counts from the end.
  static const Program* PositionProgram(DType index_type) {
    ProgramBuilder b;
    const auto given = b.Cast(b.Input(index_type), DType::kInt64);
    const auto extent = b.Input(DType::kInt64);
    const auto negative = b.Apply(Opcode::kLess, given, b.ConstInt(DType::kInt64, 0));
    b.Output(b.Apply(Opcode::kSelect, negative, b.Apply(Opcode::kAdd, given, extent), given));
    return b.Build();
  }

  const SliceMasks masks_;
  const Program* const position_;
};

}  // namespace

void RegisterSliceBegins(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  registry.Op("Slice")
      .Types("T", kAllTypes)
      .Types("Index", index_types)
      .Label(labels::kBeginOnDevice)
      .Host({"size"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Gather("T", DType::kInt64))
      .Requires(needs::Gather("T", "Index"))
      .Requires([](Needs& n) { SliceWindows::Require(n, "Index"); })
      .Kernel<SliceKernel>();
  registry.Op("StridedSlice")
      .Types("T", kAllTypes)
      .Types("Index", index_types)
      .Label(labels::kBeginOnDevice)
      .Host({"end", "strides"})
      .Requires(needs::Copy("T"))
      .Requires(needs::Gather("T", DType::kInt64))
      .Requires(StridedSliceKernel::Require)
      .Kernel<StridedSliceKernel>();
}

}  // namespace xpu
