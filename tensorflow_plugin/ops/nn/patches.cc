// ExtractImagePatches and ExtractVolumePatches, and the windows that Dilation2D (dilation.cc) looks at.
#include "tensorflow_plugin/ops/nn/patches.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {

Status Patches::Resolve(const Dims& image, const Padding& padding) {
  batch = image[0];
  channels = image[spatial_rank + 1];
  for (int i = 0; i < spatial_rank; ++i) {
    input[i] = image[i + 1];
    // TensorFlow gives such windows' whole extent, and no dilation.
    const int64_t reach = (window[i] - 1) * rate[i] + 1;
    XPU_REQUIRE(stride[i] > 0, errors::InvalidArgument("Stride must be > 0, but got ", stride[i]));
    WindowAxis axis;
    XPU_RETURN_IF_ERROR(ResolveWindow(padding, i, input[i], reach, 1, stride[i], &axis));
    output[i] = axis.output;
    pad_before[i] = axis.pad_before;
  }
  return OkStatus();
}

Dims Patches::OutputShape() const {
  Dims shape = {batch};
  for (int i = 0; i < spatial_rank; ++i) shape.push_back(output[i]);
  shape.push_back(channels);
  return shape;
}

Status ViewPatches(Context& ctx, const Patches& p, const Tensor& image, const void* outside, Temporary* padded,
                   PatchView* view) {
  // The part that the windows reach, in the image's own coordinates; and the part of that which is image.
  Dims reached = {p.batch}, inside = {p.batch};
  bool beyond = false;
  for (int i = 0; i < p.spatial_rank; ++i) {
    const int64_t reach = (p.output[i] - 1) * p.stride[i] + (p.window[i] - 1) * p.rate[i] + 1;
    reached.push_back(reach);
    inside.push_back(std::clamp<int64_t>(reach - p.pad_before[i], 0, p.input[i]));
    beyond |= p.pad_before[i] > 0 || reach > p.input[i];
  }
  reached.push_back(p.channels);
  inside.push_back(p.channels);
  view->data = image.data();
  Dims strides = DenseStrides(image.dims());
  if (beyond) {
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(image.dtype(), reached, padded));
    XPU_RETURN_IF_ERROR(Fill(ctx, outside, padded->tensor()));
    const Dims padded_strides = DenseStrides(reached);
    View to = {padded_strides, 0};
    for (int i = 0; i < p.spatial_rank; ++i) to.offset += p.pad_before[i] * padded_strides[i + 1];
    XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(image.dtype()), inside, image.data(), {strides, 0}, padded->data(), to));
    view->data = padded->data();
    strides = padded_strides;
  }
  view->shape = {p.batch};
  view->strides = {strides[0]};
  for (int i = 0; i < p.spatial_rank; ++i) {
    view->shape.push_back(p.output[i]);
    view->strides.push_back(p.stride[i] * strides[i + 1]);
  }
  for (int i = 0; i < p.spatial_rank; ++i) {
    view->shape.push_back(p.window[i]);
    view->strides.push_back(p.rate[i] * strides[i + 1]);
  }
  view->shape.push_back(p.channels);
  view->strides.push_back(1);
  return OkStatus();
}

namespace {

class PatchesKernel : public OpKernel {
 public:
  PatchesKernel(Construction& c, int spatial_rank) {
    patches_.spatial_rank = spatial_rank;
    ReadSpatial(c, "ksizes", patches_.window);
    ReadSpatial(c, "strides", patches_.stride);
    if (spatial_rank == 2) ReadSpatial(c, "rates", patches_.rate);
    Layout layout;
    layout.spatial_rank = spatial_rank;
    padding_ = PaddingAttr(c, layout);
  }

  Status Compute(Context& ctx) override {
    const Tensor image = ctx.input(0);
    const int rank = patches_.spatial_rank + 2;
    XPU_REQUIRE(image.rank() == rank,
                errors::InvalidArgument("input must be ", rank, "-dimensional", image.ShapeString()));
    Patches patches = patches_;
    XPU_RETURN_IF_ERROR(patches.Resolve(image.dims(), padding_));
    Dims shape = patches.OutputShape();
    for (int i = 0; i < patches.spatial_rank; ++i) {
      XPU_REQUIRE(!__builtin_mul_overflow(shape[rank - 1], patches.window[i], &shape[rank - 1]),
                  errors::InvalidArgument("Output size would overflow: ", patches.window[0], " x ", patches.window[1],
                                          " x ", patches.window[2], " x ", patches.channels));
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    static constexpr char kZero[16] = {};
    Temporary padded;
    PatchView view;
    XPU_RETURN_IF_ERROR(ViewPatches(ctx, patches, image, kZero, &padded, &view));
    return CopyView(ctx, SizeOf(image.dtype()), view.shape, view.data, {view.strides, 0}, out.mutable_data(),
                    DenseView(view.shape));
  }

 private:
  void ReadSpatial(Construction& c, const char* name, int64_t* spatial) const {
    const std::vector<int64_t> values = WindowAttr(c, name);
    const size_t rank = patches_.spatial_rank + 2;
    if (!c.status().ok()) return;
    if (values.size() < rank) {
      return c.Fail(errors::InvalidArgument(name, " has ", values.size(), " elements, expected ", rank));
    }
    if (values[0] != 1 || values[rank - 1] != 1) {
      return c.Fail(errors::Unimplemented("Only support ", name, " across space."));
    }
    for (int i = 0; i < patches_.spatial_rank; ++i) {
      spatial[i] = values[i + 1];
      if (spatial[i] < 1) return c.Fail(errors::OutOfRange(name, " is out of range."));
    }
  }

  Patches patches_;
  Padding padding_;
};

}  // namespace

void RegisterPatches(Registry& registry) {
  registry.Op("ExtractImagePatches")
      .Types("T", Union(kAllTypes, {DType::kInt32}))
      .Requires(needs::Copy("T"))
      .Kernel<PatchesKernel>(2);
  registry.Op("ExtractVolumePatches")
      .Types("T", Union(kRealTypes, {DType::kInt32}))
      .Requires(needs::Copy("T"))
      .Kernel<PatchesKernel>(3);
}

}  // namespace xpu
