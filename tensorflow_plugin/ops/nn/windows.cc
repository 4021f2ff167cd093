#include "tensorflow_plugin/ops/nn/windows.h"

#include <algorithm>

namespace xpu {

Dims Layout::Shape(int64_t batch, const int64_t* spatial, int64_t channels) const {
  Dims shape(rank(), batch);
  shape[channel_axis()] = channels;
  for (int i = 0; i < spatial_rank; ++i) shape[spatial_axis(i)] = spatial[i];
  return shape;
}

Status ParseLayout(const std::string& data_format, int spatial_rank, Layout* layout) {
  layout->spatial_rank = spatial_rank;
  if (data_format == "NHWC" || data_format == "NDHWC" || data_format == "CHANNELS_LAST") {
    layout->order = ChannelOrder::kLast;
  } else if (data_format == "NCHW" || data_format == "NCDHW" || data_format == "CHANNELS_FIRST") {
    layout->order = ChannelOrder::kFirst;
  } else {
    return errors::InvalidArgument("Invalid data format: ", data_format);
  }
  return OkStatus();
}

Status ParsePadding(const std::string& name, const std::vector<int64_t>& explicit_paddings, const Layout& layout,
                    Padding* padding) {
  if (name != "EXPLICIT") {
    XPU_REQUIRE(name == "SAME" || name == "VALID", errors::InvalidArgument("Invalid padding: ", name));
    XPU_REQUIRE(
        explicit_paddings.empty(),
        errors::InvalidArgument("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"));
    padding->kind = name == "SAME" ? PaddingKind::kSame : PaddingKind::kValid;
    return OkStatus();
  }
  const size_t expected = 2 * layout.rank();
  XPU_REQUIRE(explicit_paddings.size() == expected,
              errors::InvalidArgument("explicit_paddings attribute must contain ", expected,
                                      " values, but got: ", explicit_paddings.size()));
  for (int64_t p : explicit_paddings) {
    XPU_REQUIRE(p >= 0, errors::InvalidArgument("All elements of explicit_paddings must be nonnegative, but got ", p));
  }
  const int others[] = {0, layout.channel_axis()};
  for (int axis : others) {
    XPU_REQUIRE(explicit_paddings[2 * axis] == 0 && explicit_paddings[2 * axis + 1] == 0,
                errors::InvalidArgument("Nonzero explicit padding in the batch or depth dimensions is not supported"));
  }
  padding->kind = PaddingKind::kExplicit;
  for (int i = 0; i < layout.spatial_rank; ++i) {
    padding->before[i] = explicit_paddings[2 * layout.spatial_axis(i)];
    padding->after[i] = explicit_paddings[2 * layout.spatial_axis(i) + 1];
  }
  return OkStatus();
}

Padding PaddingAttr(Construction& c, const Layout& layout, bool ignore_unused) {
  Padding padding;
  std::vector<int64_t> explicit_paddings;
  const auto name = c.Attr<std::string>("padding");
  if (c.HasAttr("explicit_paddings") && !(ignore_unused && name != "EXPLICIT")) {
    explicit_paddings = c.Attr<std::vector<int64_t>>("explicit_paddings");
  }
  c.Fail(ParsePadding(name, explicit_paddings, layout, &padding));
  return padding;
}

std::vector<int64_t> WindowAttr(Construction& c, const char* name) {
  const auto values = c.Attr<std::vector<int32_t>>(name);
  return {values.begin(), values.end()};
}

Status SpatialValues(const std::vector<int64_t>& values, const char* what, const Layout& layout,
                     const WindowWording& wording, int64_t spatial[kMaxSpatial]) {
  XPU_REQUIRE(static_cast<int>(values.size()) == layout.rank(),
              errors::InvalidArgument("Sliding window ", what, " field must specify ", layout.rank(),
                                      " dimensions, but got ", values.size()));
  XPU_REQUIRE(values[0] == 1 && values[layout.channel_axis()] == 1,
              Status(wording.unimplemented ? Code::kUnimplemented : Code::kInvalidArgument,
                     errors::Concat("Current implementation does not yet support ", what,
                                    " in the batch and depth dimensions.")));
  for (int i = 0; i < layout.spatial_rank; ++i) {
    spatial[i] = values[layout.spatial_axis(i)];
    XPU_REQUIRE(spatial[i] > 0, errors::InvalidArgument(wording.positive, ", but got ", spatial[i]));
  }
  return OkStatus();
}

Status ResolveWindow(const Padding& padding, int axis, int64_t input, int64_t window, int64_t dilation, int64_t stride,
                     WindowAxis* out) {
  const int64_t effective = (window - 1) * dilation + 1;
  if (padding.kind == PaddingKind::kSame) {
    out->output = (input + stride - 1) / stride;
    const int64_t needed = std::max<int64_t>(0, (out->output - 1) * stride + effective - input);
    out->pad_before = needed / 2;
    out->pad_after = needed - out->pad_before;
    return OkStatus();
  }
  out->pad_before = padding.before[axis];
  out->pad_after = padding.after[axis];
  // The numerator may be negative, and C++ would round -1 / 2 to an output of 0.
  const int64_t span = input + out->pad_before + out->pad_after - effective + stride;
  out->output = span >= 0 ? span / stride : -1;
  XPU_REQUIRE(out->output >= 0,
              errors::InvalidArgument("Computed output size would be negative: ", (span - stride + 1) / stride,
                                      " [input_size: ", input, ", effective_filter_size: ", effective,
                                      ", stride: ", stride, "]"));
  return OkStatus();
}

}  // namespace xpu
