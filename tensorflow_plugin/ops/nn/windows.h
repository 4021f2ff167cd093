// Sliding windows, as convolutions and poolings share them: data formats, paddings, output sizes.
#ifndef TENSORFLOW_PLUGIN_OPS_NN_WINDOWS_H_
#define TENSORFLOW_PLUGIN_OPS_NN_WINDOWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/framework/kernel.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu {

inline constexpr int kMaxSpatial = 3;

// Where the axes of a [batch, spatial..., channels] or [batch, channels, spatial...] tensor are.
struct Layout {
  ChannelOrder order = ChannelOrder::kLast;
  int spatial_rank = 2;

  int rank() const { return spatial_rank + 2; }
  int channel_axis() const { return order == ChannelOrder::kLast ? spatial_rank + 1 : 1; }
  int spatial_axis(int i) const { return order == ChannelOrder::kLast ? i + 1 : i + 2; }
  Dims Shape(int64_t batch, const int64_t* spatial, int64_t channels) const;
};

// From the name of a data format: NHWC, NCHW, NDHWC, NCDHW, CHANNELS_LAST, CHANNELS_FIRST.
Status ParseLayout(const std::string& data_format, int spatial_rank, Layout* layout);

enum class PaddingKind : uint8_t { kValid, kSame, kExplicit };

struct Padding {
  PaddingKind kind = PaddingKind::kValid;
  int64_t before[kMaxSpatial] = {0, 0, 0}, after[kMaxSpatial] = {0, 0, 0};  // kExplicit
};

// `explicit_paddings` holds a pair for every axis of the layout; only spatial ones may be other than 0.
Status ParsePadding(const std::string& name, const std::vector<int64_t>& explicit_paddings, const Layout& layout,
                    Padding* padding);
// An attribute of windows, such as strides: TensorFlow has its values in 32 bits.
std::vector<int64_t> WindowAttr(Construction& c, const char* name);
// The node's attributes padding and, where it has it, explicit_paddings. ignore_unused: paddings that are not asked for
// may be anything, as they may in pooling.
Padding PaddingAttr(Construction& c, const Layout& layout, bool ignore_unused = false);

// The words of a convolution's form where TensorFlow's kernels differ.
struct WindowWording {
  const char* positive;        // of strides that are not
  bool unimplemented = false;  // strides of batch and channels are Unimplemented, not InvalidArgument
};

// The spatial values of an attribute with one value per axis of the layout (strides, dilations, ksize). They are
// checked to be positive, and 1 for the batch and the channels. `what` names it in messages.
Status SpatialValues(const std::vector<int64_t>& values, const char* what, const Layout& layout,
                     const WindowWording& wording, int64_t spatial[kMaxSpatial]);

// One axis of a window's walk. SAME keeps ceil(input / stride) positions and pads evenly, the odd pixel after.
struct WindowAxis {
  int64_t output = 0, pad_before = 0, pad_after = 0;
};
Status ResolveWindow(const Padding& padding, int axis, int64_t input, int64_t window, int64_t dilation, int64_t stride,
                     WindowAxis* out);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_NN_WINDOWS_H_
