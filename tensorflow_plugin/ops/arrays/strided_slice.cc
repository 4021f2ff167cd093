#include "tensorflow_plugin/ops/arrays/strided_slice.h"

#include <algorithm>

namespace xpu {
namespace {

// One dimension's begin, end and stride as given, resolved against its extent.
struct Range {
  int64_t begin, end, stride;
  bool begin_given, end_given, shrink;
};

// The first position and the number of elements that `r` selects from dimension `d` of size `extent`.
Status Resolve(const Range& r, int d, int64_t extent, int64_t* first, int64_t* count) {
  XPU_REQUIRE(r.stride != 0, errors::InvalidArgument("strides[", d, "] must be non-zero"));
  if (r.shrink) {
    XPU_REQUIRE(r.stride > 0, errors::InvalidArgument("only stride 1 allowed on non-range indexing."));
    *first = r.begin < 0 ? r.begin + extent : r.begin;
    *count = 1;
    XPU_REQUIRE(*first >= 0 && *first < extent, SliceIndexOutOfBounds(r.begin, d));
    return OkStatus();
  }
  // Positions run over [lowest, highest]; a stride downwards may end before position 0.
  const int64_t lowest = r.stride > 0 ? 0 : -1, highest = r.stride > 0 ? extent : extent - 1;
  const auto position = [&](int64_t p, bool given, bool is_end) {
    if (!given) return (r.stride > 0) == is_end ? highest : lowest;
    return std::clamp(p < 0 ? p + extent : p, lowest, highest);
  };
  *first = position(r.begin, r.begin_given, false);
  const int64_t length = position(r.end, r.end_given, true) - *first;
  *count = length == 0 || (length < 0) != (r.stride < 0) ? 0 : length / r.stride + (length % r.stride != 0);
  return OkStatus();
}

}  // namespace

Status SliceIndexOutOfBounds(int64_t index, int dim) {
  return errors::InvalidArgument("slice index ", index, " of dimension ", dim, " out of bounds.");
}

Status ParseStridedSlice(const Dims& dims, const Tensor& begin_arg, const Tensor& end_arg, const Tensor& strides_arg,
                         const SliceMasks& masks, StridedSlice* out) {
  XPU_REQUIRE(begin_arg.IsVector() && end_arg.IsVector() && strides_arg.IsVector() &&
                  begin_arg.dim(0) == end_arg.dim(0) && begin_arg.dim(0) == strides_arg.dim(0) && begin_arg.dim(0) < 32,
              errors::InvalidArgument("Expected begin, end, and strides to be 1D equal size tensors, but got shapes ",
                                      begin_arg.ShapeString(), ", ", end_arg.ShapeString(), ", and ",
                                      strides_arg.ShapeString(), " instead."));
  std::vector<int64_t> begin, end, strides;
  XPU_RETURN_IF_ERROR(HostIntegers(begin_arg, "begin", &begin));
  XPU_RETURN_IF_ERROR(HostIntegers(end_arg, "end", &end));
  XPU_RETURN_IF_ERROR(HostIntegers(strides_arg, "strides", &strides));
  const int n = static_cast<int>(begin.size());
  const auto ellipsis = static_cast<uint32_t>(masks.ellipsis);
  XPU_REQUIRE((ellipsis & (ellipsis - 1)) == 0, errors::InvalidArgument("Multiple ellipses in slice spec not allowed"));

  // How many entries consume a dimension: the ellipsis (an implicit one stands at the end) takes the rest.
  int consuming = 0;
  for (int i = 0; i < n; ++i) consuming += !((masks.ellipsis | masks.new_axis) >> i & 1);

  *out = StridedSlice();
  const Dims dense = DenseStrides(dims);
  out->identity = true;
  int d = 0;
  const auto keep = [&](int64_t extent, int64_t stride) {
    out->shape.push_back(extent);
    out->view.strides.push_back(stride);
  };
  const auto keep_whole = [&](int count) {
    for (; count > 0 && d < dims.rank(); --count, ++d) keep(dims[d], dense[d]);
  };
  for (int i = 0; i < n; ++i) {
    if (masks.ellipsis >> i & 1) {
      keep_whole(dims.rank() - consuming);
      continue;
    }
    if (masks.new_axis >> i & 1) {
      keep(1, 0);
      continue;
    }
    XPU_REQUIRE(d < dims.rank(), errors::InvalidArgument("Index out of range using input dim ", d, "; input has only ",
                                                         dims.rank(), " dims"));
    const Range range{begin[i],
                      end[i],
                      strides[i],
                      !(masks.begin >> i & 1),
                      !(masks.end >> i & 1),
                      static_cast<bool>(masks.shrink >> i & 1)};
    int64_t first, count;
    XPU_RETURN_IF_ERROR(Resolve(range, d, dims[d], &first, &count));
    if (!range.shrink) keep(count, dense[d] * range.stride);
    out->view.offset += first * dense[d];
    out->identity &= first == 0 && count == dims[d];
    ++d;
  }
  keep_whole(dims.rank() - d);
  return OkStatus();
}

Status CheckSliceArguments(const Tensor& x, const Tensor& begin, const Tensor& size) {
  XPU_REQUIRE(
      begin.IsVector() && size.IsVector() && begin.num_elements() == x.rank() && size.num_elements() == x.rank(),
      errors::InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", x.rank(),
                              ", but got shapes ", begin.ShapeString(), " and ", size.ShapeString(), " instead."));
  return OkStatus();
}

Status CheckSlice(const Dims& dims, const std::vector<int64_t>& begin, std::vector<int64_t>* size_arg) {
  std::vector<int64_t>& size = *size_arg;
  for (int i = 0; i < dims.rank(); ++i) {
    const int64_t extent = dims[i];
    if (size[i] == -1) size[i] = extent - begin[i];
    if (extent == 0) {
      XPU_REQUIRE(begin[i] == 0 && size[i] == 0,
                  errors::InvalidArgument("Expected begin[", i, "] == 0 (got ", begin[i], ") and size[", i,
                                          "] == 0 (got ", size[i], ") when input.dim_size(", i, ") == 0"));
      continue;
    }
    XPU_REQUIRE(begin[i] >= 0 && begin[i] <= extent,
                errors::InvalidArgument("Expected begin[", i, "] in [0, ", extent, "], but got ", begin[i]));
    XPU_REQUIRE(size[i] >= 0 && size[i] <= extent - begin[i],
                errors::InvalidArgument("Expected size[", i, "] in [0, ", extent - begin[i], "], but got ", size[i]));
  }
  return OkStatus();
}

Status CopySlice(Context& ctx, const Tensor& x, const std::vector<int64_t>& begin, std::vector<int64_t> size) {
  XPU_RETURN_IF_ERROR(CheckSlice(x.dims(), begin, &size));
  View view = DenseView(x.dims());
  for (int i = 0; i < x.rank(); ++i) view.offset += begin[i] * view.strides[i];
  const Dims shape = ToDims(size);
  if (shape == x.dims()) return ctx.ShareOutput(0, x, shape);
  Tensor y;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
  return CopyView(ctx, SizeOf(x.dtype()), shape, x.data(), view, y.mutable_data(), DenseView(shape));
}

}  // namespace xpu
