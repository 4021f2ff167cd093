// Ops that write into the buffer of an input on purpose, even if it is shared, and those that make such buffers.
// TensorFlow's rewrites and programs rely on the aliasing; the stream orders what is written and read.
#include <vector>

#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// x[i, ...] op= v, in x's buffer. Rows count modulo their number, as on the CPU; of equal ones the last wins.
class InplaceKernel : public OpKernel {
 public:
  InplaceKernel(Construction&, ScatterKind kind) : kind_(kind) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), i = ctx.input(1), v = ctx.input(2);
    XPU_REQUIRE(i.IsVector(), errors::InvalidArgument("i must be a vector. ", i.ShapeString()));
    XPU_REQUIRE(x.rank() == v.rank(), errors::InvalidArgument("x and v shape doesn't match (ranks differ): ",
                                                              x.ShapeString(), " vs. ", v.ShapeString()));
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("x must have rows, got shape ", x.ShapeString()));
    for (int d = 1; d < x.rank(); ++d) {
      XPU_REQUIRE(x.dim(d) == v.dim(d), errors::InvalidArgument("x and v shape doesn't match at index ", d, " : ",
                                                                x.ShapeString(), " vs. ", v.ShapeString()));
    }
    XPU_REQUIRE(
        i.dim(0) == v.dim(0),
        errors::InvalidArgument("i and x shape doesn't match at index 0: ", i.ShapeString(), " vs. ", v.ShapeString()));
    XPU_RETURN_IF_ERROR(ctx.ShareOutput(0, x, x.dims()));
    WillWrite(x.data());
    if (x.num_elements() == 0 || v.num_elements() == 0) return OkStatus();
    std::vector<int64_t> rows;
    XPU_RETURN_IF_ERROR(HostIntegers(i, "i", &rows));
    for (int64_t& row : rows) row = (row % x.dim(0) + x.dim(0)) % x.dim(0);
    Temporary indices;
    XPU_RETURN_IF_ERROR(Upload(ctx, rows, DType::kInt64, &indices));
    ScatterDesc desc;
    desc.kind = kind_;
    desc.type = x.dtype();
    desc.index_type = DType::kInt64;
    desc.num_indices = i.num_elements();
    desc.inner = Product(x.dims(), 1, x.rank());
    desc.dims = {x.dim(0)};
    return ctx.Launch(desc, {indices.data(), v.data()}, {x.mutable_data()});
  }

 private:
  const ScatterKind kind_;
};

// value[loc, ...] = update[0, ...], in value's buffer.
class ParallelConcatUpdateKernel : public OpKernel {
 public:
  explicit ParallelConcatUpdateKernel(Construction& c) : loc_(c.Attr<int64_t>("loc")) {}

  Status Compute(Context& ctx) override {
    const Tensor value = ctx.input(0), update = ctx.input(1);
    XPU_REQUIRE(value.rank() >= 1, errors::InvalidArgument("value should be at least rank 1."));
    XPU_REQUIRE(value.dim(0) > loc_, errors::InvalidArgument("0th dimension of value = ", value.dim(0),
                                                             " must be greater than loc_ = ", loc_));
    bool fits = value.rank() == update.rank();
    for (int d = 1; fits && d < value.rank(); ++d) fits = value.dim(d) == update.dim(d);
    XPU_REQUIRE(fits, errors::InvalidArgument("value and update shape doesn't match: ", value.ShapeString(), " vs. ",
                                              update.ShapeString()));
    XPU_REQUIRE(update.dim(0) == 1,
                errors::InvalidArgument("update shape doesn't match: ", update.ShapeString(), ", expected one row"));
    XPU_RETURN_IF_ERROR(ctx.ShareOutput(0, value, value.dims()));
    WillWrite(value.data());
    const int64_t row = (loc_ % value.dim(0) + value.dim(0)) % value.dim(0);
    return ctx.Copy(static_cast<char*>(value.mutable_data()) + row * update.bytes(), update.data(), update.bytes());
  }

 private:
  const int64_t loc_;
};

class ParallelConcatStartKernel : public OpKernel {
 public:
  explicit ParallelConcatStartKernel(Construction& c) : shape_(c.ShapeAttr("shape")) {}

  Status Compute(Context& ctx) override {
    Tensor out;
    return ctx.AllocateOutput(0, shape_, &out);
  }

 private:
  const Dims shape_;
};

// Zeros, whether or not somebody asks for them: a command list computes all that it reads.
class EmptyKernel : public OpKernel {
 public:
  explicit EmptyKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(0), "shape", &shape));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    return FillZero(ctx, out);
  }
};

class DeepCopyKernel : public OpKernel {
 public:
  explicit DeepCopyKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    return ctx.Copy(y.mutable_data(), x.data(), x.bytes());
  }
};

}  // namespace

void RegisterInplace(Registry& registry) {
  const struct {
    const char* name;
    ScatterKind kind;
    const TypeList& types;
  } table[] = {{"InplaceUpdate", ScatterKind::kUpdate, kAllTypes},
               {"InplaceAdd", ScatterKind::kAdd, kNumberTypes},
               {"InplaceSub", ScatterKind::kSub, kNumberTypes}};
  // int32 in host memory: InplaceUpdate, InplaceAdd, InplaceSub and DeepCopy are TensorFlow's own.
  for (const auto& row : table) {
    registry.Op(row.name)
        .Types("T", row.types)
        .Host({"i"})
        .Traits(OpTrait::kWritesInput)
        .Requires(needs::Scatter(row.kind, "T", DType::kInt64))
        .Kernel<InplaceKernel>(row.kind);
  }
  registry.Op("_ParallelConcatStart")
      .Types("dtype", kAllTypes)
      .AllHostFor(DType::kInt32, {"output"})
      .Kernel<ParallelConcatStartKernel>();
  registry.Op("_ParallelConcatUpdate")
      .Types("T", kAllTypes)
      .AllHostFor(DType::kInt32, {"value", "update", "output"})
      .Traits(OpTrait::kWritesInput)
      .Kernel<ParallelConcatUpdateKernel>();
  registry.Op("Empty")
      .Types("dtype", kAllTypes)
      .Host({"shape"})
      .AllHostFor(DType::kInt32, {"output"})
      .Traits(OpTrait::kOnlyReads | OpTrait::kKeepsNothing)
      .Kernel<EmptyKernel>();
  registry.Op("DeepCopy").Types("T", kAllTypes).Kernel<DeepCopyKernel>();
}

}  // namespace xpu
