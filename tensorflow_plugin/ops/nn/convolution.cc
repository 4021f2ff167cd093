// Convolutions and their gradients: attributes, sizes and checks; the work is one Convolution primitive, or a MatMul.
#include <algorithm>
#include <vector>

#include "tensorflow_plugin/framework/kernel_labels.h"
#include "tensorflow_plugin/ops/nn/windows.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

enum class ConvolutionForm : uint8_t { kPlain, kDepthwise };

struct ConvolutionOp {
  const char* name;
  Direction direction;
  int spatial_rank;
  ConvolutionForm form;
  const char* sizes_arg;   // the host argument with the shape of the gradient's result
  const char* sizes_type;  // the attribute with its type, where there is one
};

constexpr ConvolutionOp kOps[] = {
    {"Conv2D", Direction::kForward, 2, ConvolutionForm::kPlain, nullptr, nullptr},
    {"Conv2DBackpropInput", Direction::kDataGradient, 2, ConvolutionForm::kPlain, "input_sizes", nullptr},
    {"Conv2DBackpropFilter", Direction::kFilterGradient, 2, ConvolutionForm::kPlain, "filter_sizes", nullptr},
    {"Conv3D", Direction::kForward, 3, ConvolutionForm::kPlain, nullptr, nullptr},
    {"Conv3DBackpropInputV2", Direction::kDataGradient, 3, ConvolutionForm::kPlain, "input_sizes", "Tshape"},
    {"Conv3DBackpropFilterV2", Direction::kFilterGradient, 3, ConvolutionForm::kPlain, "filter_sizes", nullptr},
    {"DepthwiseConv2dNative", Direction::kForward, 2, ConvolutionForm::kDepthwise, nullptr, nullptr},
    {"DepthwiseConv2dNativeBackpropInput", Direction::kDataGradient, 2, ConvolutionForm::kDepthwise, "input_sizes",
     nullptr},
    {"DepthwiseConv2dNativeBackpropFilter", Direction::kFilterGradient, 2, ConvolutionForm::kDepthwise, "filter_sizes",
     nullptr},
};

// The attributes that all forms share, for one number of spatial dimensions.
struct Geometry {
  Layout layout;
  Padding padding;
  int64_t stride[kMaxSpatial] = {1, 1, 1}, dilation[kMaxSpatial] = {1, 1, 1};
};

// unimplemented: how TensorFlow's kernel calls strides and dilations over the batch or the channels.
Geometry ReadGeometry(Construction& c, int spatial_rank, ConvolutionForm form, bool unimplemented) {
  Geometry g;
  if (spatial_rank < 1 || spatial_rank > kMaxSpatial) {
    c.Fail(errors::InvalidArgument("strides must have one value per dimension, for 1 to 3 spatial dimensions, but has ",
                                   spatial_rank + 2));
    return g;
  }
  c.Fail(ParseLayout(c.Attr<std::string>("data_format"), spatial_rank, &g.layout));
  g.padding = PaddingAttr(c, g.layout);
  WindowWording wording = {"Row and column strides should be larger than 0", unimplemented};
  if (spatial_rank == 3) wording = {"Spatial strides should be larger than 0"};
  if (form == ConvolutionForm::kDepthwise) wording = {"Stride must be > 0"};
  c.Fail(SpatialValues(WindowAttr(c, "strides"), "strides", g.layout, wording, g.stride));
  // Conv leaves its dilations empty for none.
  const auto dilations = WindowAttr(c, "dilations");
  wording.positive = "Dilated rates should be larger than 0";
  if (!dilations.empty()) c.Fail(SpatialValues(dilations, "dilations", g.layout, wording, g.dilation));
  return g;
}

// Everything about a convolution that follows from the shapes of its input and filter. `groups` is 0 where the shapes
// decide.
Status Resolve(const Geometry& g, ConvolutionForm form, int64_t groups, const Dims& input, const Dims& filter,
               ConvolutionDesc* d) {
  const Layout& layout = g.layout;
  const int rank = layout.rank();
  XPU_REQUIRE(input.rank() == rank,
              errors::InvalidArgument("convolution input must be ", rank, "-dimensional: ", input.ToString()));
  XPU_REQUIRE(filter.rank() == rank,
              errors::InvalidArgument("convolution filter must be ", rank, "-dimensional: ", filter.ToString()));
  // A gradient of nothing is nothing, but TensorFlow convolves with no empty filter.
  XPU_REQUIRE(d->direction != Direction::kForward || filter.num_elements() > 0,
              errors::InvalidArgument("filter must not have zero elements (i.e. all dimensions must be non-zero), got ",
                                      filter.ToString()));
  d->order = layout.order;
  d->spatial_rank = layout.spatial_rank;
  d->batch = input[0];
  d->in_channels = input[layout.channel_axis()];
  const int64_t patch_depth = filter[rank - 2], last = filter[rank - 1];
  if (form == ConvolutionForm::kDepthwise) {
    XPU_REQUIRE(
        d->in_channels == patch_depth,
        errors::InvalidArgument("input and filter must have the same depth: ", d->in_channels, " vs ", patch_depth));
    // [..., in, multiplier] in memory is [..., 1, in * multiplier].
    d->groups = d->in_channels;
    d->out_channels = d->in_channels * last;
  } else {
    XPU_REQUIRE(patch_depth > 0, errors::InvalidArgument("filter depth must be strictly greater than 0, got filter ",
                                                         filter.ToString()));
    XPU_REQUIRE(d->in_channels % patch_depth == 0,
                errors::InvalidArgument("input depth must be evenly divisible by filter depth: ", d->in_channels,
                                        " vs ", patch_depth));
    d->groups = d->in_channels / patch_depth;
    XPU_REQUIRE(groups == 0 || groups == d->groups,
                errors::InvalidArgument("groups is ", groups, ", but input depth ", d->in_channels,
                                        " and filter depth ", patch_depth, " make ", d->groups));
    d->out_channels = last;
    XPU_REQUIRE(d->groups == 0 || last % d->groups == 0,
                errors::InvalidArgument("output depth must be evenly divisible by number of groups: ", last, " vs ",
                                        d->groups));
  }
  for (int i = 0; i < layout.spatial_rank; ++i) {
    d->input[i] = input[layout.spatial_axis(i)];
    d->filter[i] = filter[i];
    d->stride[i] = g.stride[i];
    d->dilation[i] = g.dilation[i];
    WindowAxis axis;
    XPU_RETURN_IF_ERROR(ResolveWindow(g.padding, i, d->input[i], d->filter[i], g.dilation[i], g.stride[i], &axis));
    d->output[i] = axis.output;
    d->pad_before[i] = axis.pad_before;
    d->pad_after[i] = axis.pad_after;
  }
  return OkStatus();
}

// A filter of one pixel is a matrix, which each pixel's channels are multiplied with. So the convolution is a product
// of the same operands, or, if `swapped`, the other way round. False if it is none.
bool AsProduct(const ConvolutionDesc& d, MatMulDesc* product, bool* swapped) {
  if (d.groups != 1 || d.order != ChannelOrder::kLast) return false;
  int64_t pixels = d.batch;
  for (int i = 0; i < d.spatial_rank; ++i) {
    if (d.filter[i] != 1 || d.stride[i] != 1 || d.pad_before[i] != 0 || d.pad_after[i] != 0) return false;
    pixels *= d.input[i];
  }
  product->type = d.type;
  *swapped = d.direction == Direction::kDataGradient;
  switch (d.direction) {
    case Direction::kForward:
      product->m = pixels, product->n = d.out_channels, product->k = d.in_channels;
      break;
    case Direction::kDataGradient:
      product->m = pixels, product->n = d.in_channels, product->k = d.out_channels;
      product->transpose_b = true;
      break;
    case Direction::kFilterGradient:
      product->m = d.in_channels, product->n = d.out_channels, product->k = pixels;
      product->transpose_a = true;
      break;
    case Direction::kPackFilter:
      return false;
  }
  return true;
}

Status Convolve(Context& ctx, const ConvolutionDesc& desc, const void* first, const void* second, void* out) {
  MatMulDesc product;
  bool swapped;
  if (AsProduct(desc, &product, &swapped) && ctx.Supports(product)) {
    return swapped ? ctx.Launch(product, {second, first}, {out}) : ctx.Launch(product, {first, second}, {out});
  }
  return ctx.Launch(desc, {first, second}, {out});
}

class ConvolutionKernel : public OpKernel {
 public:
  ConvolutionKernel(Construction& c, const ConvolutionOp* op)
      : type_(c.Attr<DType>("T")),
        form_(op->form),
        geometry_(ReadGeometry(c, op->spatial_rank, op->form, op->direction != Direction::kFilterGradient)) {
    if (c.HasAttr(labels::kMultiplesOfPadded)) multiples_ = c.Attr<std::vector<int64_t>>(labels::kMultiplesOfPadded);
  }

  Status Compute(Context& ctx) override {
    const Tensor input = ctx.input(0), filter = ctx.input(1);
    XPU_RETURN_IF_ERROR(CheckMultiples(input.dims()));
    ConvolutionDesc desc;
    desc.type = type_;
    XPU_RETURN_IF_ERROR(Resolve(geometry_, form_, 0, input.dims(), filter.dims(), &desc));
    Tensor out;
    XPU_RETURN_IF_ERROR(
        ctx.AllocateOutput(0, geometry_.layout.Shape(desc.batch, desc.output, desc.out_channels), &out));
    if (out.num_elements() == 0) return OkStatus();
    return Convolve(ctx, desc, input.data(), filter.data(), out.mutable_data());
  }

 private:
  // Fails as the op would have that the graph had in the place of dilations.
  Status CheckMultiples(const Dims& input) const {
    for (size_t i = 0; 2 * i < multiples_.size() && input.rank() == geometry_.layout.rank(); ++i) {
      const int64_t padded = input[geometry_.layout.spatial_axis(static_cast<int>(i))] + multiples_[2 * i];
      XPU_REQUIRE(padded % multiples_[2 * i + 1] == 0,
                  errors::InvalidArgument("padded_shape[", i, "]=", padded, " is not divisible by block_shape[", i,
                                          "]=", multiples_[2 * i + 1]));
    }
    return OkStatus();
  }

  const DType type_;
  const ConvolutionForm form_;
  const Geometry geometry_;
  std::vector<int64_t> multiples_;  // see labels::kMultiplesOfPadded
};

// Conv: any number of batch dimensions, one to three spatial ones.
class GeneralConvolutionKernel : public OpKernel {
 public:
  explicit GeneralConvolutionKernel(Construction& c)
      : type_(c.Attr<DType>("T")),
        batch_dims_(c.Attr<int64_t>("batch_dims")),
        groups_(c.Attr<int64_t>("groups")),
        geometry_(
            ReadGeometry(c, static_cast<int>(WindowAttr(c, "strides").size()) - 2, ConvolutionForm::kPlain, false)) {
    if (batch_dims_ < 1) c.Fail(errors::InvalidArgument("batch_dims must be at least 1, got ", batch_dims_));
    if (groups_ < 1) c.Fail(errors::InvalidArgument("groups must be at least 1, got ", groups_));
  }

  Status Compute(Context& ctx) override {
    const Tensor input = ctx.input(0), filter = ctx.input(1);
    const Layout& layout = geometry_.layout;
    XPU_REQUIRE(input.rank() == batch_dims_ + layout.spatial_rank + 1,
                errors::InvalidArgument("convolution input must be ", batch_dims_ + layout.spatial_rank + 1,
                                        "-dimensional: ", input.ShapeString()));
    // All batch dimensions as one.
    Dims flat;
    int64_t batch = 1;
    for (int i = 0; i < batch_dims_; ++i) batch *= input.dim(i);
    flat.push_back(batch);
    for (int i = batch_dims_; i < input.rank(); ++i) flat.push_back(input.dim(i));

    ConvolutionDesc desc;
    desc.type = type_;
    // groups = 1 is also what a node without the attribute says: then the shapes decide.
    XPU_RETURN_IF_ERROR(
        Resolve(geometry_, ConvolutionForm::kPlain, groups_ > 1 ? groups_ : 0, flat, filter.dims(), &desc));
    const Dims flat_output = layout.Shape(desc.batch, desc.output, desc.out_channels);
    Dims shape;
    for (int i = 0; i < batch_dims_; ++i) shape.push_back(input.dim(i));
    for (int i = 1; i < flat_output.rank(); ++i) shape.push_back(flat_output[i]);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();
    return Convolve(ctx, desc, input.data(), filter.data(), out.mutable_data());
  }

 private:
  const DType type_;
  const int64_t batch_dims_, groups_;
  const Geometry geometry_;
};

class ConvolutionGradientKernel : public OpKernel {
 public:
  ConvolutionGradientKernel(Construction& c, const ConvolutionOp* op)
      : op_(*op),
        type_(c.Attr<DType>("T")),
        geometry_(ReadGeometry(c, op->spatial_rank, op->form, op->direction != Direction::kFilterGradient)) {}

  Status Compute(Context& ctx) override {
    const bool to_data = op_.direction == Direction::kDataGradient;
    const Tensor sizes = ctx.input(to_data ? 0 : 1), other = ctx.input(to_data ? 1 : 0), dy = ctx.input(2);
    const int rank = geometry_.layout.rank();
    XPU_REQUIRE(other.rank() == rank, errors::InvalidArgument(op_.name, ": ", to_data ? "filter" : "input", " must be ",
                                                              rank, "-dimensional, got ", other.ShapeString()));
    XPU_REQUIRE(dy.rank() == rank, errors::InvalidArgument(op_.name, ": out_backprop must be ", rank,
                                                           "-dimensional, got ", dy.ShapeString()));
    Dims result;
    XPU_RETURN_IF_ERROR(ResultShape(sizes, other, dy, &result));

    // As on the CPU, the gradient of an empty filter, or by one, is zeros whatever else is given.
    if ((to_data ? other.num_elements() : result.num_elements()) == 0) {
      Tensor out;
      XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, result, &out));
      return out.num_elements() == 0 ? OkStatus() : ctx.Zero(out.mutable_data(), out.bytes());
    }

    ConvolutionDesc desc;
    desc.direction = op_.direction;
    desc.type = type_;
    XPU_RETURN_IF_ERROR(
        Resolve(geometry_, op_.form, 0, to_data ? result : other.dims(), to_data ? other.dims() : result, &desc));
    XPU_RETURN_IF_ERROR(CheckGradient(desc, dy));

    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, result, &out));
    if (out.num_elements() == 0) return OkStatus();
    if (dy.num_elements() == 0 || other.num_elements() == 0) return ctx.Zero(out.mutable_data(), out.bytes());
    return Convolve(ctx, desc, other.data(), dy.data(), out.mutable_data());
  }

 private:
  // The shape in `sizes`. input_sizes may also be the spatial sizes alone.
  Status ResultShape(const Tensor& sizes, const Tensor& other, const Tensor& dy, Dims* result) const {
    const Layout& layout = geometry_.layout;
    XPU_REQUIRE(sizes.IsVector(),
                errors::InvalidArgument(op_.name, ": ", op_.sizes_arg, " input must be 1-dim, not ", sizes.rank()));
    XPU_RETURN_IF_ERROR(HostShape(sizes, op_.sizes_arg, result));
    const bool may_be_spatial =
        op_.direction == Direction::kDataGradient && op_.form == ConvolutionForm::kPlain && layout.spatial_rank == 2;
    if (may_be_spatial && result->rank() == 2) {
      const int64_t spatial[] = {(*result)[0], (*result)[1]};
      *result = layout.Shape(dy.dim(0), spatial, other.dim(layout.rank() - 2));
    }
    XPU_REQUIRE(result->rank() == layout.rank(),
                errors::InvalidArgument(
                    op_.name, " requires ", op_.sizes_arg, " to contain ", layout.rank(),
                    may_be_spatial ? " values or 2 values, but got: " : " values, but got: ", result->rank()));
    return OkStatus();
  }

  // Fails if the gradient has another shape than the forward pass's output.
  Status CheckGradient(const ConvolutionDesc& d, const Tensor& dy) const {
    const Layout& layout = geometry_.layout;
    XPU_REQUIRE(dy.dim(0) == d.batch,
                errors::InvalidArgument(
                    op_.name, ": input and out_backprop must have the same batch size. Input batch: ", d.batch,
                    ", outbackprop batch: ", dy.dim(0), ", batch_dim: 0"));
    const int64_t dy_channels = dy.dim(layout.channel_axis());
    if (op_.form == ConvolutionForm::kDepthwise) {
      XPU_REQUIRE(dy_channels == d.out_channels,
                  errors::InvalidArgument(op_.name, ": depth_multiplier * in_depth not equal to out_depth: ",
                                          d.out_channels, " vs ", dy_channels));
    }
    XPU_REQUIRE(dy_channels == d.out_channels,
                errors::InvalidArgument(op_.name, ": filter and out_backprop must have the same out_depth: ",
                                        d.out_channels, " vs ", dy_channels));
    for (int i = 0; i < layout.spatial_rank; ++i) {
      const int64_t actual = dy.dim(layout.spatial_axis(i));
      XPU_REQUIRE(actual == d.output[i],
                  errors::InvalidArgument(op_.name, ": Size of out_backprop doesn't match computed: actual = ", actual,
                                          ", computed = ", d.output[i], " spatial_dim: ", layout.spatial_axis(i),
                                          " input: ", d.input[i], " filter: ", d.filter[i], " output: ", actual,
                                          " stride: ", d.stride[i], " dilation: ", d.dilation[i]));
    }
    return OkStatus();
  }

  const ConvolutionOp op_;
  const DType type_;
  const Geometry geometry_;
};

// data_format chooses the order of channels, which is not known before a kernel is made: both.
Need Convolves(Direction direction, int spatial_rank) {
  return [=](Needs& n) {
    ConvolutionDesc desc;
    desc.direction = direction;
    desc.type = n.type("T");
    desc.spatial_rank = spatial_rank;
    for (const ChannelOrder order : {ChannelOrder::kLast, ChannelOrder::kFirst}) {
      desc.order = order;
      n.Ask(desc);
    }
  };
}

}  // namespace

void RegisterConvolution(Registry& registry) {
  for (const ConvolutionOp& op : kOps) {
    auto entry = registry.Op(op.name);
    entry.Types("T", kFloatTypes).Requires(Convolves(op.direction, op.spatial_rank));
    if (op.sizes_arg == nullptr) {
      entry.Kernel<ConvolutionKernel>(&op);
      continue;
    }
    entry.Host({op.sizes_arg});
    if (op.sizes_type != nullptr) entry.Types(op.sizes_type, {DType::kInt32, DType::kInt64});
    entry.Kernel<ConvolutionGradientKernel>(&op);
  }
  auto general = registry.Op("Conv");
  general.Types("T", kFloatTypes);
  for (int rank = 1; rank <= kMaxSpatial; ++rank) general.Requires(Convolves(Direction::kForward, rank));
  general.Kernel<GeneralConvolutionKernel>();
}

}  // namespace xpu
