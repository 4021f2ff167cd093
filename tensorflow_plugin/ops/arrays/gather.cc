// Gather, GatherV2, GatherNd, and the same from variables.
#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// out[b, o, j, :] = params[b, o, indices[b, j], :]
Status GatherAxis(Context& ctx, const Tensor& params, const Tensor& indices, int64_t axis_given,
                  int64_t batch_dims_given) {
  const int rank = params.rank();
  XPU_REQUIRE(rank >= 1, errors::InvalidArgument("params must be at least 1 dimensional"));
  const int64_t axis = axis_given < 0 ? axis_given + rank : axis_given;
  XPU_REQUIRE(axis >= 0 && axis < rank,
              errors::InvalidArgument("Shape must be at least rank ", axis_given < 0 ? -axis_given : axis_given + 1,
                                      " but is rank ", rank, ". Expected axis in the range [", -rank, ", ", rank,
                                      "), but got ", axis_given));
  const int64_t batch_dims = batch_dims_given < 0 ? batch_dims_given + indices.rank() : batch_dims_given;
  XPU_REQUIRE(batch_dims >= 0 && batch_dims <= indices.rank(),
              errors::InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ", indices.rank(),
                                      "], but got ", batch_dims_given));
  XPU_REQUIRE(batch_dims < rank,
              errors::InvalidArgument("batch_dims (", batch_dims, ") must be less than rank(params) (", rank, ")."));
  XPU_REQUIRE(batch_dims <= axis, errors::InvalidArgument("batch_dims (", batch_dims,
                                                          ") must be less than or equal to axis (", axis, ")."));
  for (int i = 0; i < batch_dims; ++i) {
    XPU_REQUIRE(params.dim(i) == indices.dim(i),
                errors::InvalidArgument("params.shape[", i, "]: ", params.dim(i), " should be equal to indices.shape[",
                                        i, "]: ", indices.dim(i)));
  }
  Dims shape;
  Append(params.dims(), 0, axis, &shape);
  Append(indices.dims(), batch_dims, indices.rank(), &shape);
  Append(params.dims(), axis + 1, rank, &shape);
  Tensor out;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
  if (out.num_elements() == 0) return OkStatus();

  GatherDesc desc;
  desc.element_size = SizeOf(params.dtype());
  desc.index_type = indices.dtype();
  desc.batch = Product(params.dims(), 0, batch_dims);
  desc.outer = Product(params.dims(), batch_dims, axis);
  desc.inner = Product(params.dims(), axis + 1, rank);
  desc.num_indices = Product(indices.dims(), batch_dims, indices.rank());
  desc.dims = {params.dim(axis)};
  return LaunchIndexed(ctx, desc, {params.data(), indices.data()}, out.mutable_data(), indices, BadIndices::kError, {});
}

// out[j, :] = params[indices[j, 0], indices[j, 1], ..., :]
Status GatherPoints(Context& ctx, const Tensor& params, const Tensor& indices, BadIndices policy) {
  XPU_REQUIRE(params.rank() >= 1, errors::InvalidArgument("params must be at least a vector"));
  XPU_REQUIRE(indices.rank() >= 1, errors::InvalidArgument("indices must be at least a vector"));
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  XPU_REQUIRE(depth <= params.rank(),
              errors::InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth, " vs. ",
                                      params.rank()));
  Dims shape;
  Append(indices.dims(), 0, outer, &shape);
  const int64_t points = shape.num_elements();
  Append(params.dims(), depth, params.rank(), &shape);
  XPU_REQUIRE(params.num_elements() > 0 || points == 0,
              errors::InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                                      params.ShapeString()));
  Tensor out;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
  if (out.num_elements() == 0) return OkStatus();

  GatherDesc desc;
  desc.element_size = SizeOf(params.dtype());
  desc.index_type = indices.dtype();
  desc.inner = Product(params.dims(), depth, params.rank());
  desc.num_indices = points;
  Append(params.dims(), 0, depth, &desc.dims);
  IndexNaming naming;
  naming.nd = true;
  naming.whole = "param shape";
  naming.whole_shape = params.dims();
  return LaunchIndexed(ctx, desc, {params.data(), indices.data()}, out.mutable_data(), indices, policy, naming);
}

// Gather (no axis) and GatherV2.
class GatherKernel : public OpKernel {
 public:
  GatherKernel(Construction& c, bool has_axis)
      : has_axis_(has_axis), batch_dims_(has_axis ? c.Attr<int64_t>("batch_dims") : 0) {}

  Status Compute(Context& ctx) override {
    int64_t axis = 0;
    if (has_axis_) {
      const Tensor axis_arg = ctx.input(2);
      XPU_REQUIRE(axis_arg.IsScalar(), errors::InvalidArgument("axis must be scalar"));
      XPU_RETURN_IF_ERROR(HostInteger(axis_arg, "axis", &axis));
    }
    return GatherAxis(ctx, ctx.input(0), ctx.input(1), axis, batch_dims_);
  }

 private:
  const bool has_axis_;
  const int64_t batch_dims_;
};

class GatherNdKernel : public OpKernel {
 public:
  explicit GatherNdKernel(Construction& c) : policy_(ReadBadIndicesPolicy(c)) {}
  Status Compute(Context& ctx) override { return GatherPoints(ctx, ctx.input(0), ctx.input(1), policy_); }

 private:
  const BadIndices policy_;
};

// Locks the variable of input 0 for reading and checks its type.
Status ReadVariable(Context& ctx, DType dtype, LockedVariable* variable) {
  XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kShared, variable));
  XPU_REQUIRE(variable->dtype() == dtype, errors::InvalidArgument("Trying to read variable with wrong dtype. Expected ",
                                                                  Name(dtype), " got ", Name(variable->dtype())));
  return OkStatus();
}

class ResourceGatherKernel : public OpKernel {
 public:
  explicit ResourceGatherKernel(Construction& c)
      : dtype_(c.Attr<DType>("dtype")), batch_dims_(c.Attr<int64_t>("batch_dims")) {}

  Status Compute(Context& ctx) override {
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(ReadVariable(ctx, dtype_, &variable));
    XPU_REQUIRE(batch_dims_ >= 0, errors::InvalidArgument("batch_dims is negative (", batch_dims_, ")"));
    const Tensor params = variable.value();
    XPU_REQUIRE(batch_dims_ <= params.rank(),
                errors::InvalidArgument("params must have at least ", batch_dims_,
                                        " (batch_dims) dimensions but it has shape ", params.ShapeString()));
    // The axis that is gathered from follows the batch dimensions.
    return GatherAxis(ctx, params, ctx.input(1), /*axis_given=*/batch_dims_, batch_dims_);
  }

 private:
  const DType dtype_;
  const int64_t batch_dims_;
};

class ResourceGatherNdKernel : public OpKernel {
 public:
  explicit ResourceGatherNdKernel(Construction& c) : dtype_(c.Attr<DType>("dtype")) {}

  Status Compute(Context& ctx) override {
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(ReadVariable(ctx, dtype_, &variable));
    return GatherPoints(ctx, variable.value(), ctx.input(1), BadIndices::kError);
  }

 private:
  const DType dtype_;
};

}  // namespace

void RegisterGather(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  registry.Op("Gather")
      .Types("Tparams", kAllTypes)
      .AllHostFor(DType::kInt32, {"params", "indices", "output"})
      .Requires(needs::Gather("Tparams"))
      .Kernel<GatherKernel>(false);
  registry.Op("GatherV2")
      .Types("Tparams", kAllTypes)
      .Types("Tindices", index_types)
      .Host({"axis"})
      .AllHostFor(DType::kInt32, {"params", "indices", "output"})
      .Requires(needs::Gather("Tparams", "Tindices"))
      .Kernel<GatherKernel>(true);
  registry.Op("GatherNd")
      .Types("Tparams", kAllTypes)
      .Types("Tindices", index_types)
      .AllHostFor(DType::kInt32, {"params", "indices", "output"})
      .Requires(needs::Gather("Tparams", "Tindices"))
      .Kernel<GatherNdKernel>();
  registry.Op("ResourceGather")
      .Types("dtype", kAllTypes)
      .Host({"resource"})
      .Traits(OpTrait::kOnlyReads | OpTrait::kKeepsNothing)
      .Requires(needs::Gather("dtype"))
      .Kernel<ResourceGatherKernel>();
  registry.Op("ResourceGatherNd")
      .Types("dtype", kAllTypes)
      .Host({"resource"})
      .Traits(OpTrait::kOnlyReads)
      .Requires(needs::Gather("dtype"))
      .Kernel<ResourceGatherNdKernel>();
}

}  // namespace xpu
