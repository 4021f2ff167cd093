// ScatterNd, TensorScatter*, the updates of rows and points of variables, DynamicStitch.
#include <algorithm>
#include <cstring>

#include "tensorflow_plugin/framework/variables.h"
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/math/formula.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// The sum of truth values is their disjunction: the maximum of bytes. A difference is true where an odd number of the
// values are: the lowest bit of the bytes' difference, which LowestBitProgram leaves.
void AddTruthValues(ScatterKind* kind, DType* type) {
  if (*type != DType::kBool || (*kind != ScatterKind::kAdd && *kind != ScatterKind::kSub)) return;
  *type = DType::kUint8;
  if (*kind == ScatterKind::kAdd) *kind = ScatterKind::kMax;
}

const Program* LowestBitProgram() {
  ProgramBuilder builder;
  const FormulaValue byte = {&builder, builder.Input(DType::kUint8)};
  builder.Output(Apply(Opcode::kBitwiseAnd, byte, byte.Const(1)).reg);
  return builder.Build();
}

// The launch of Scatter, below, for the type of an attribute; with indices of one type or of both.
template <typename... IndexType>
Need NeedsScatter(ScatterKind kind, const char* attr, IndexType... index_type) {
  return [=](Needs& n) {
    ScatterKind launched = kind;
    DType type = n.type(attr);
    AddTruthValues(&launched, &type);
    needs::Scatter(launched, type, index_type...)(n);
    if (n.type(attr) == DType::kBool && kind == ScatterKind::kSub) n.AskProgram(LowestBitProgram());
  };
}

Status Scatter(Context& ctx, ScatterDesc desc, const Tensor& indices, const Tensor& updates, const Tensor& buffer,
               BadIndices policy, const IndexNaming& naming) {
  if (desc.num_indices == 0 || desc.inner == 0) return OkStatus();
  desc.type = buffer.dtype();
  desc.index_type = indices.dtype();
  AddTruthValues(&desc.kind, &desc.type);
  return LaunchIndexed(ctx, desc, {indices.data(), updates.data()}, buffer.mutable_data(), indices, policy, naming);
}

// How the three kinds of ops word what does not fit.
enum class PointsWording : uint8_t { kScatterNd, kTensor, kVariable };

// buffer[indices[j, :], ...] op= updates[j, ...]
Status CheckPoints(const Dims& shape, const Tensor& indices, const Tensor& updates, PointsWording wording) {
  const bool of_tensor = wording == PointsWording::kTensor;
  XPU_REQUIRE(indices.rank() >= 1,
              errors::InvalidArgument("Indices shape must have rank at least one. Found:", indices.ShapeString()));
  XPU_REQUIRE(updates.rank() >= 1 || wording == PointsWording::kVariable,
              errors::InvalidArgument("Updates shape must have rank at least one. Found:", updates.ShapeString()));
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  XPU_REQUIRE(shape.num_elements() > 0 || indices.num_elements() == 0 || updates.num_elements() == 0,
              errors::InvalidArgument(wording == PointsWording::kScatterNd
                                          ? "Indices and updates specified for empty output.  indices shape: "
                                          : "Indices and updates specified for empty output shape. indices shape: ",
                                      indices.ShapeString(), ", output shape: ", shape.ToString()));
  bool fits = updates.rank() >= outer;
  for (int i = 0; fits && i < outer; ++i) fits = updates.dim(i) == indices.dim(i);
  XPU_REQUIRE(fits, of_tensor
                        ? errors::InvalidArgument("Outer dimensions of indices and update must match. Indices shape: ",
                                                  indices.ShapeString(), ", updates shape:", updates.ShapeString())
                        : errors::InvalidArgument("Dimensions [0,", outer, ") of indices[shape=", indices.ShapeString(),
                                                  "] must match dimensions [0,", outer,
                                                  ") of updates[shape=", updates.ShapeString(), "]"));
  fits = depth <= shape.rank() && updates.rank() == outer + shape.rank() - depth;
  XPU_REQUIRE(fits || !of_tensor,
              errors::InvalidArgument("Inner dimensions of output shape must match inner dimensions of updates shape. "
                                      "Output: ",
                                      shape.ToString(), " updates: ", updates.ShapeString()));
  for (int i = outer; fits && i < updates.rank(); ++i) fits = updates.dim(i) == shape[i - outer + depth];
  XPU_REQUIRE(fits, of_tensor ? errors::InvalidArgument("The inner ", shape.rank() - depth,
                                                        " dimensions of output.shape=", shape.ToString(),
                                                        " must match the inner ", updates.rank() - outer,
                                                        " dimensions of updates.shape=", updates.ShapeString())
                              : errors::InvalidArgument(
                                    "Dimensions [", depth, ",", shape.rank(), ") of input[shape=", shape.ToString(),
                                    "] must match dimensions [", wording == PointsWording::kVariable ? depth : outer,
                                    ",", updates.rank(), ") of updates[shape=", updates.ShapeString(), "]"));
  return OkStatus();
}

Status ScatterPoints(Context& ctx, ScatterKind kind, const Tensor& indices, const Tensor& updates, const Tensor& buffer,
                     BadIndices policy) {
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  ScatterDesc desc;
  desc.kind = kind;
  desc.num_indices = Product(indices.dims(), 0, outer);
  desc.inner = Product(buffer.dims(), depth, buffer.rank());
  Append(buffer.dims(), 0, depth, &desc.dims);
  IndexNaming naming;
  naming.nd = true;
  naming.whole_shape = buffer.dims();
  return Scatter(ctx, desc, indices, updates, buffer, policy, naming);
}

// zeros(shape), with updates added.
class ScatterNdKernel : public OpKernel {
 public:
  explicit ScatterNdKernel(Construction& c) : policy_(ReadBadIndicesPolicy(c)) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), updates = ctx.input(1);
    Dims shape;
    XPU_REQUIRE(ctx.input(2).IsVector(),
                errors::InvalidArgument("Shape must be a vector, got shape ", ctx.input(2).ShapeString()));
    XPU_RETURN_IF_ERROR(HostShape(ctx.input(2), "shape", &shape));
    XPU_RETURN_IF_ERROR(CheckPoints(shape, indices, updates, PointsWording::kScatterNd));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    XPU_RETURN_IF_ERROR(FillZero(ctx, out));
    return ScatterPoints(ctx, ScatterKind::kAdd, indices, updates, out, policy_);
  }

 private:
  const BadIndices policy_;
};

// A copy of input 0 with some of its elements updated.
class TensorScatterKernel : public OpKernel {
 public:
  TensorScatterKernel(Construction& c, ScatterKind kind, PointsWording wording)
      : kind_(kind), wording_(wording), policy_(ReadBadIndicesPolicy(c)) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(1), updates = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckPoints(ctx.input(0).dims(), indices, updates, wording_));
    Tensor out;
    XPU_RETURN_IF_ERROR(ForwardOrCopy(ctx, 0, &out));
    return ScatterPoints(ctx, kind_, indices, updates, out, policy_);
  }

 private:
  const ScatterKind kind_;
  const PointsWording wording_;
  const BadIndices policy_;
};

// Locks the variable of input 0 for writing and checks its type. A reference is the op's output, too.
Status WriteVariable(Context& ctx, DType dtype, LockedVariable* variable) {
  ctx.ForwardReference(0, 0);
  XPU_RETURN_IF_ERROR(LockedVariable::Lock(ctx, 0, LockMode::kExclusive, variable));
  XPU_REQUIRE(variable->dtype() == dtype,
              errors::InvalidArgument("DType of scatter resource and updates does not match: ", Name(variable->dtype()),
                                      " and ", Name(dtype)));
  return OkStatus();
}

// ResourceScatterNd* and ScatterNd*: updates points of a variable.
class ResourceScatterNdKernel : public OpKernel {
 public:
  ResourceScatterNdKernel(Construction& c, ScatterKind kind) : kind_(kind), policy_(ReadBadIndicesPolicy(c)) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(1), updates = ctx.input(2);
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(WriteVariable(ctx, updates.dtype(), &variable));
    XPU_RETURN_IF_ERROR(CheckPoints(variable.value().dims(), indices, updates, PointsWording::kVariable));
    Tensor buffer;
    XPU_RETURN_IF_ERROR(variable.BeginUpdate(ctx, &buffer));
    const Status scattered = ScatterPoints(ctx, kind_, indices, updates, buffer, policy_);
    if (updates.dtype() == DType::kBool && kind_ == ScatterKind::kSub) {
      ElementwiseDesc desc;
      desc.program = LowestBitProgram();
      SetFlat(buffer.num_elements(), 1, &desc);
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {buffer.data()}, {buffer.mutable_data()}));
    }
    XPU_RETURN_IF_ERROR(scattered);
    variable.Commit();
    return OkStatus();
  }

 private:
  const ScatterKind kind_;
  const BadIndices policy_;
};

// ResourceScatter* and Scatter*: updates rows of a variable, each with its own row of updates or all with one number.
class ResourceScatterKernel : public OpKernel {
 public:
  ResourceScatterKernel(Construction&, ScatterKind kind) : kind_(kind) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(1), updates = ctx.input(2);
    LockedVariable variable;
    XPU_RETURN_IF_ERROR(WriteVariable(ctx, updates.dtype(), &variable));
    const Tensor value = variable.value();
    XPU_REQUIRE(value.rank() >= 1,
                errors::InvalidArgument("params must be at least 1-D, got shape ", value.ShapeString()));
    bool fits = updates.rank() == indices.rank() + value.rank() - 1;
    for (int i = 0; fits && i < updates.rank(); ++i) {
      fits = updates.dim(i) == (i < indices.rank() ? indices.dim(i) : value.dim(i - indices.rank() + 1));
    }
    XPU_REQUIRE(fits || updates.IsScalar(),
                errors::InvalidArgument("Must have updates.shape = indices.shape + params.shape[1:] or updates.shape "
                                        "= [], got updates.shape ",
                                        updates.ShapeString(), ", indices.shape ", indices.ShapeString(),
                                        ", params.shape ", value.ShapeString()));
    Tensor buffer;
    XPU_RETURN_IF_ERROR(variable.BeginUpdate(ctx, &buffer));
    ScatterDesc desc;
    desc.kind = kind_;
    desc.num_indices = indices.num_elements();
    desc.inner = Product(value.dims(), 1, value.rank());
    desc.scalar_update = !fits;
    desc.dims = {value.dim(0)};
    XPU_RETURN_IF_ERROR(Scatter(ctx, desc, indices, updates, buffer, BadIndices::kError, {}));
    variable.Commit();
    return OkStatus();
  }

 private:
  const ScatterKind kind_;
};

// merged[indices[m][i], ...] = data[m][i, ...]; later ones win.
class DynamicStitchKernel : public OpKernel {
 public:
  explicit DynamicStitchKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const int n = ctx.num_inputs() / 2;
    const Tensor indices0 = ctx.input(0), data0 = ctx.input(n);
    std::vector<std::vector<int64_t>> indices(n);
    int64_t rows = 0;
    for (int m = 0; m < n; ++m) {
      const Tensor index = ctx.input(m), data = ctx.input(n + m);
      bool starts = data.rank() >= index.rank();
      for (int i = 0; starts && i < index.rank(); ++i) starts = data.dim(i) == index.dim(i);
      XPU_REQUIRE(starts,
                  errors::InvalidArgument("data[", m, "].shape = ", data.ShapeString(), " does not start with indices[",
                                          m, "].shape = ", index.ShapeString()));
      bool same_rest = data.rank() - index.rank() == data0.rank() - indices0.rank();
      for (int i = index.rank(); same_rest && i < data.rank(); ++i) {
        same_rest = data.dim(i) == data0.dim(i - index.rank() + indices0.rank());
      }
      XPU_REQUIRE(same_rest, errors::InvalidArgument(
                                 "Need data[0].shape[", indices0.rank(), ":] = data[", m, "].shape[", index.rank(),
                                 ":], got data[0].shape = ", data0.ShapeString(), ", data[", m,
                                 "].shape = ", data.ShapeString(), ", indices[0].shape = ", indices0.ShapeString(),
                                 ", indices[", m, "].shape = ", index.ShapeString()));
      XPU_RETURN_IF_ERROR(HostIntegers(index, "indices", &indices[m]));
      for (int64_t i : indices[m]) {
        XPU_REQUIRE(i >= 0, errors::InvalidArgument("indices[", m, "] is out of range: ", i, " is negative"));
        rows = std::max(rows, i + 1);
      }
    }
    Dims shape = {rows};
    Append(data0.dims(), indices0.rank(), data0.rank(), &shape);
    Tensor merged;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &merged));
    if (merged.num_elements() == 0) return OkStatus();
    // Rows that no index names hold zeros.
    std::vector<bool> named(rows, false);
    for (const auto& list : indices) {
      for (int64_t i : list) named[i] = true;
    }
    if (std::find(named.begin(), named.end(), false) != named.end()) XPU_RETURN_IF_ERROR(FillZero(ctx, merged));
    for (int m = 0; m < n; ++m) {
      if (indices[m].empty()) continue;
      Temporary index;
      XPU_RETURN_IF_ERROR(Upload(ctx, indices[m], DType::kInt32, &index));
      ScatterDesc desc;
      desc.type = merged.dtype();
      desc.index_type = DType::kInt32;
      desc.num_indices = static_cast<int64_t>(indices[m].size());
      desc.inner = Product(shape, 1, shape.rank());
      desc.dims = {rows};
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {index.data(), ctx.input(n + m).data()}, {merged.mutable_data()}));
    }
    return OkStatus();
  }
};

}  // namespace

void RegisterScatter(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  registry.Op("ScatterNd")
      .Types("T", kAllTypes)
      .Types("Tindices", index_types)
      .Host({"shape"})
      .AllHostFor(DType::kInt32, {"indices", "updates", "output"})
      .Requires(NeedsScatter(ScatterKind::kAdd, "T", "Tindices"))
      .Kernel<ScatterNdKernel>();
  struct Row {
    const char* op;
    ScatterKind kind;
    const TypeList& types;
  };
  for (const Row& row : {Row{"TensorScatterUpdate", ScatterKind::kUpdate, kAllTypes},
                         {"TensorScatterAdd", ScatterKind::kAdd, kNumberTypes},
                         {"TensorScatterSub", ScatterKind::kSub, kNumberTypes},
                         {"TensorScatterMin", ScatterKind::kMin, kRealTypes},
                         {"TensorScatterMax", ScatterKind::kMax, kRealTypes}}) {
    registry.Op(row.op)
        .Types("T", row.types)
        .Types("Tindices", index_types)
        .AllHostFor(DType::kInt32, {"tensor", "indices", "updates", "output"})
        .Requires(NeedsScatter(row.kind, "T", "Tindices"))
        .Kernel<TensorScatterKernel>(row.kind, PointsWording::kTensor);
  }
  registry.Op("ScatterNdNonAliasingAdd")
      .Types("T", kAllTypes)
      .AllHostFor(DType::kInt32, {"input", "indices", "updates", "output"})
      .Requires(NeedsScatter(ScatterKind::kAdd, "T"))
      .Kernel<TensorScatterKernel>(ScatterKind::kAdd, PointsWording::kVariable);
  for (const Row& row : {Row{"ResourceScatterNdUpdate", ScatterKind::kUpdate, kAllTypes},
                         {"ResourceScatterNdAdd", ScatterKind::kAdd, kAllTypes},
                         {"ResourceScatterNdSub", ScatterKind::kSub, kAllTypes},
                         {"ResourceScatterNdMin", ScatterKind::kMin, kRealTypes},
                         {"ResourceScatterNdMax", ScatterKind::kMax, kRealTypes}}) {
    registry.Op(row.op)
        .Types("T", row.types)
        .Host({"ref"})
        .Requires(NeedsScatter(row.kind, "T"))
        .Kernel<ResourceScatterNdKernel>(row.kind);
    registry.Op(row.op + std::strlen("Resource"))
        .Types("T", row.kind == ScatterKind::kUpdate ? kAllTypes : Without(row.types, DType::kBool))
        .Requires(NeedsScatter(row.kind, "T"))
        .Kernel<ResourceScatterNdKernel>(row.kind);
  }
  for (const Row& row : {Row{"ResourceScatterUpdate", ScatterKind::kUpdate, kAllTypes},
                         {"ResourceScatterAdd", ScatterKind::kAdd, kNumberTypes},
                         {"ResourceScatterSub", ScatterKind::kSub, kNumberTypes},
                         {"ResourceScatterMul", ScatterKind::kMul, kNumberTypes},
                         {"ResourceScatterDiv", ScatterKind::kDiv, kNumberTypes},
                         {"ResourceScatterMin", ScatterKind::kMin, kRealTypes},
                         {"ResourceScatterMax", ScatterKind::kMax, kRealTypes}}) {
    registry.Op(row.op)
        .Types("dtype", row.types)
        .Host({"resource"})
        .Requires(NeedsScatter(row.kind, "dtype"))
        .Kernel<ResourceScatterKernel>(row.kind);
    // TensorFlow has the extrema of references for fewer types.
    const bool extremum = row.kind == ScatterKind::kMin || row.kind == ScatterKind::kMax;
    registry.Op(row.op + std::strlen("Resource"))
        .Types("T", extremum ? Union(kFloatTypes, {DType::kInt64}) : row.types)
        .Requires(NeedsScatter(row.kind, "T"))
        .Kernel<ResourceScatterKernel>(row.kind);
  }
  registry.Op("DynamicStitch")
      .Traits(OpTrait::kReadsNewNumbers)
      .Types("T", kAllTypes)
      .Host({"indices"})
      .AllHostFor(DType::kInt32, {"data", "merged"})
      .Requires(NeedsScatter(ScatterKind::kUpdate, "T"))
      .Kernel<DynamicStitchKernel>();
}

}  // namespace xpu
