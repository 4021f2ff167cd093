// Blocks of an image moved to its depth (SpaceToDepth) or to its batch (SpaceToBatch), and back.
#include <algorithm>
#include <string>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// SpaceToDepth and DepthToSpace: one permuted copy over six dimensions.
class DepthSpaceKernel : public OpKernel {
 public:
  DepthSpaceKernel(Construction& c, bool to_depth) : to_depth_(to_depth), block_(c.Attr<int64_t>("block_size")) {
    const std::string format = c.Attr<std::string>("data_format");
    channels_last_ = format == "NHWC";
    if (!c.status().ok()) return;
    if (block_ <= 1) c.Fail(errors::InvalidArgument("Block size should be > 1, but was: ", block_));
    if (format != "NHWC" && format != "NCHW") {
      c.Fail(errors::InvalidArgument("data_format must be NHWC or NCHW, got ", format));
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    XPU_REQUIRE(x.rank() == 4, errors::InvalidArgument("Input rank should be 4 instead of ", x.rank()));
    const int row_axis = channels_last_ ? 1 : 2, channel_axis = channels_last_ ? 3 : 1;
    int64_t height = x.dim(row_axis), width = x.dim(row_axis + 1), depth = x.dim(channel_axis);
    if (to_depth_) {
      XPU_REQUIRE(height % block_ == 0 && width % block_ == 0,
                  errors::InvalidArgument("Image width ", width, " and height ", height,
                                          " should be divisible by block_size: ", block_));
      height /= block_;
      width /= block_;
    } else {
      XPU_REQUIRE(
          depth % (block_ * block_) == 0,
          errors::InvalidArgument("Input depth dimension ", depth, " should be divisible by: ", block_ * block_));
      depth /= block_ * block_;
    }
    const int64_t n = x.dim(0), b = block_;
    // The walk goes over the wide image in its own order; deep_strides say where the same element is when deep.
    Dims walk, deep_strides;
    if (channels_last_) {
      walk = {n, height, b, width, b, depth};
      const Dims s = DenseStrides({n, height, width, b, b, depth});
      deep_strides = {s[0], s[1], s[3], s[2], s[4], s[5]};
    } else {
      walk = {n, depth, height, b, width, b};
      const Dims s = DenseStrides({n, b, b, depth, height, width});
      deep_strides = {s[0], s[3], s[4], s[1], s[5], s[2]};
    }
    Dims shape = x.dims();
    shape[row_axis] = to_depth_ ? height : height * b;
    shape[row_axis + 1] = to_depth_ ? width : width * b;
    shape[channel_axis] = to_depth_ ? depth * b * b : depth;
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    const View wide = DenseView(walk), deep{deep_strides, 0};
    return CopyView(ctx, SizeOf(x.dtype()), walk, x.data(), to_depth_ ? wide : deep, y.mutable_data(),
                    to_depth_ ? deep : wide);
  }

 private:
  const bool to_depth_;
  const int64_t block_;
  bool channels_last_;
};

// SpaceToBatchND, BatchToSpaceND (block_shape is an argument) and SpaceToBatch, BatchToSpace (a square block, an
// attribute). The spatial array is [batch, space..., rest], the other [blocks * batch, cells..., rest].
class SpaceBatchKernel : public OpKernel {
 public:
  SpaceBatchKernel(Construction& c, bool to_batch, bool square) : to_batch_(to_batch), square_(square) {
    if (square_) block_size_ = c.Attr<int64_t>("block_size");
    if (square_ && c.status().ok() && block_size_ <= 1) {
      c.Fail(errors::InvalidArgument("Block size should be > 1: ", block_size_));
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), margins_arg = ctx.input(square_ ? 1 : 2);
    std::vector<int64_t> block(2, block_size_), margins;
    if (square_) {
      XPU_REQUIRE(x.rank() == 4, errors::InvalidArgument("Input rank should be: 4 instead of: ", x.rank()));
    } else {
      const Tensor block_arg = ctx.input(1);
      XPU_REQUIRE(block_arg.IsVector(),
                  errors::InvalidArgument("block_shape must be one dimensional instead of ", block_arg.ShapeString()));
      XPU_RETURN_IF_ERROR(HostIntegers(block_arg, "block_shape", &block));
    }
    const int m = static_cast<int>(block.size());
    const char* what = to_batch_ ? "paddings" : "crops";
    XPU_REQUIRE(x.rank() >= 1 + m,
                errors::InvalidArgument("input rank should be >= ", 1 + m, " instead of ", x.rank()));
    XPU_REQUIRE(
        margins_arg.rank() == 2 && margins_arg.dim(0) == m && margins_arg.dim(1) == 2,
        errors::InvalidArgument(what, " should have shape [", m, ", 2] instead of ", margins_arg.ShapeString()));
    XPU_RETURN_IF_ERROR(HostIntegers(margins_arg, what, &margins));

    int64_t blocks = 1;
    bool margin = false;
    for (int i = 0; i < m; ++i) {
      XPU_REQUIRE(block[i] >= 1, errors::InvalidArgument("All values in block_shape must be positive, got value, ",
                                                         block[i], " at index ", i, "."));
      XPU_REQUIRE(!__builtin_mul_overflow(blocks, block[i], &blocks),
                  errors::InvalidArgument("Product of block sizes does not fit in 64 bits"));
      XPU_REQUIRE(margins[2 * i] >= 0 && margins[2 * i + 1] >= 0,
                  errors::InvalidArgument(to_batch_ ? "Paddings" : "Crops", " must be non-negative"));
      margin |= margins[2 * i] > 0 || margins[2 * i + 1] > 0;
    }
    Dims shape = x.dims();
    if (to_batch_) {
      XPU_REQUIRE(!__builtin_mul_overflow(x.dim(0), blocks, &shape[0]),
                  errors::InvalidArgument("batch ", x.dim(0), " times ", blocks, " blocks does not fit in 64 bits"));
    } else {
      XPU_REQUIRE(x.dim(0) % blocks == 0,
                  errors::InvalidArgument("Input batch dimension (", x.dim(0),
                                          ") is not divisible by product of block sizes (", blocks, ")"));
      shape[0] = x.dim(0) / blocks;
    }
    for (int i = 0; i < m; ++i) {
      const int64_t before = margins[2 * i], after = margins[2 * i + 1], extent = x.dim(1 + i);
      if (to_batch_) {
        int64_t padded;
        XPU_REQUIRE(!__builtin_add_overflow(extent, before, &padded) && !__builtin_add_overflow(padded, after, &padded),
                    errors::InvalidArgument("paddings[", i, "] do not fit in 64 bits"));
        XPU_REQUIRE(padded % block[i] == 0,
                    errors::InvalidArgument("padded_shape[", i, "]=", padded, " is not divisible by block_shape[", i,
                                            "]=", block[i]));
        shape[1 + i] = padded / block[i];
      } else {
        int64_t whole;
        XPU_REQUIRE(!__builtin_mul_overflow(extent, block[i], &whole),
                    errors::InvalidArgument("block_shape[", i, "] times the input's extent does not fit in 64 bits"));
        XPU_REQUIRE(
            before <= whole && after <= whole - before,
            errors::InvalidArgument("cropped_shape[", i, "]=", whole - before - after,
                                    " must be non-negative: ", extent, " * ", block[i], " - ", before, " - ", after));
        shape[1 + i] = whole - before - after;
      }
    }
    if (blocks == 1 && !margin) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    // Padding lands in the batched array; crops leave elements of it out, so that nothing is left to fill.
    if (to_batch_ && margin) XPU_RETURN_IF_ERROR(FillZero(ctx, y));
    if (x.num_elements() == 0) return OkStatus();
    return Move(ctx, x, y, block, margins, blocks);
  }

 private:
  // One strided copy per position within the block: that position's cells are one slab of the batched array.
  Status Move(Context& ctx, const Tensor& x, const Tensor& y, const std::vector<int64_t>& block,
              const std::vector<int64_t>& margins, int64_t blocks) {
    const int m = static_cast<int>(block.size());
    const Tensor& space = to_batch_ ? x : y;
    const Tensor& batched = to_batch_ ? y : x;
    const int64_t rest = Product(space.dims(), 1 + m, space.rank());
    Dims space_shape, cells;
    Append(space.dims(), 0, 1 + m, &space_shape);
    Append(batched.dims(), 0, 1 + m, &cells);
    cells[0] = space.dim(0);
    space_shape.push_back(rest);
    cells.push_back(rest);
    const Dims space_strides = DenseStrides(space_shape), cell_strides = DenseStrides(cells);
    const int64_t slab = cells.num_elements();

    for (int64_t position = 0; position < blocks; ++position) {
      Dims walk = cells;
      View in_space{space_strides, 0}, in_batch{cell_strides, position * slab};
      int64_t remaining = position;
      for (int i = m - 1; i >= 0; --i) {
        const int64_t b = block[i], extent = space_shape[1 + i];
        // Cell t holds position t * b + shift of the spatial axis; those inside [0, extent) are copied.
        const int64_t shift = remaining % b - margins[2 * i];
        remaining /= b;
        const int64_t first = shift >= 0 ? 0 : (-shift + b - 1) / b;
        const int64_t end = extent > shift ? std::min((extent - shift + b - 1) / b, cells[1 + i]) : 0;
        walk[1 + i] = std::max<int64_t>(end - first, 0);
        in_space.offset += (first * b + shift) * space_strides[1 + i];
        in_space.strides[1 + i] = b * space_strides[1 + i];
        in_batch.offset += first * cell_strides[1 + i];
      }
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), walk, x.data(), to_batch_ ? in_space : in_batch,
                                   y.mutable_data(), to_batch_ ? in_batch : in_space));
    }
    return OkStatus();
  }

  const bool to_batch_, square_;
  int64_t block_size_ = 0;
};

}  // namespace

void RegisterArrayBlocks(Registry& registry) {
  for (bool to_depth : {true, false}) {
    registry.Op(to_depth ? "SpaceToDepth" : "DepthToSpace")
        .Types("T", kAllTypes)
        .AllHostFor(DType::kInt32, {"input", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<DepthSpaceKernel>(to_depth);
  }
  for (bool to_batch : {true, false}) {
    const char* margins = to_batch ? "paddings" : "crops";
    registry.Op(to_batch ? "SpaceToBatchND" : "BatchToSpaceND")
        .Types("T", kRealTypes)
        .Host({"block_shape", margins})
        .AllHostFor(DType::kInt32, {"input", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<SpaceBatchKernel>(to_batch, false);
    registry.Op(to_batch ? "SpaceToBatch" : "BatchToSpace")
        .Types("T", kRealTypes)
        .Host({margins})
        .AllHostFor(DType::kInt32, {"input", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<SpaceBatchKernel>(to_batch, true);
  }
}

}  // namespace xpu
