// SparseFillEmptyRows, RaggedFillEmptyRows and their gradients: rows without entries get one of a default value.
#include <algorithm>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/sparse/util.h"

namespace xpu {
namespace {

constexpr DType kInt = DType::kInt64;

// A formula of a row's number of entries: if it has none; how many it is to have; if it has none, as a number.
using CountFormula = FormulaValue (*)(const FormulaValue& count);
const Program* OfCount(CountFormula formula) {
  ProgramBuilder b;
  b.Output(formula({&b, b.Input(kInt)}).reg);
  return b.Build();
}
FormulaValue IsEmpty(const FormulaValue& count) { return count == 0.0; }
FormulaValue Filled(const FormulaValue& count) { return Maximum(count, 1.0); }
FormulaValue Missing(const FormulaValue& count) { return Cast(count == 0.0, kInt); }

ElementwiseDesc FlatDesc(const Program* program, int64_t n, int inputs) {
  ElementwiseDesc desc;
  desc.program = program;
  SetFlat(n, inputs, &desc);
  return desc;
}

ScanDesc TotalsDesc(int64_t n, bool exclusive) {
  ScanDesc desc;
  desc.type = kInt;
  desc.n = n;
  desc.exclusive = exclusive;
  return desc;
}

ScatterDesc CountDesc(int64_t entries, int64_t rows) {
  ScatterDesc desc;
  desc.kind = ScatterKind::kAdd;
  desc.type = kInt;
  desc.num_indices = entries;
  desc.scalar_update = true;
  desc.dims = {rows};
  return desc;
}

// `sparse`: entries have coordinates [entries, rank] and the tensor a shape, else they have row numbers [entries] and
// the tensor a number of rows.
class FillEmptyRowsKernel : public OpKernel {
 public:
  FillEmptyRowsKernel(Construction& c, bool sparse)
      : sparse_(sparse),
        is_empty_(OfCount(IsEmpty)),
        filled_(OfCount(Filled)),
        missing_(OfCount(Missing)),
        add_(SingleOpProgram(Opcode::kAdd, kInt)) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), values = ctx.input(1), shape = ctx.input(2), fill = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckInputs(indices, values, shape, fill));
    const int64_t rows = shape.host<int64_t>()[0], entries = indices.dim(0), rank = sparse_ ? indices.dim(1) : 1;
    XPU_REQUIRE(
        rows > 0 || entries == 0,
        errors::InvalidArgument("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ", entries));
    Tensor empty, reverse, out_indices, out_values;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, {rows}, &empty));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(3, {entries}, &reverse));

    // Where each row begins, and how many before and including it were empty.
    Temporary row_of, starts, emptied;
    int64_t added = 0;
    if (rows > 0) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {entries}, &row_of));
      XPU_RETURN_IF_ERROR(Column(ctx, indices.data(), entries, rank, 0, row_of.data()));
      XPU_RETURN_IF_ERROR(CountRows(ctx, row_of.tensor(), rows, empty, &starts, &emptied));
      const int64_t* last = static_cast<const int64_t*>(emptied.data()) + rows - 1;
      XPU_RETURN_IF_ERROR(ctx.CopyToHost(&added, last, sizeof added));
    }
    Dims out_shape = indices.dims();
    out_shape[0] = entries + added;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, out_shape, &out_indices));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {entries + added}, &out_values));
    if (entries > 0) XPU_RETURN_IF_ERROR(Place(ctx, row_of.tensor(), rows, emptied.data(), reverse));
    // Every row first gets the value for empty rows.
    if (added > 0) {
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(values.dtype()), {entries + added}, fill.data(), {{0}, 0},
                                   out_values.mutable_data(), {{1}, 0}));
      Temporary numbers, first;
      XPU_RETURN_IF_ERROR(CountUp(ctx, rows, &numbers));
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows, rank}, &first));
      XPU_RETURN_IF_ERROR(FillZero(ctx, first.tensor()));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(kInt), {rows}, numbers.data(), {{1}, 0}, first.data(), {{rank}, 0}));
      XPU_RETURN_IF_ERROR(
          PutRows(ctx, kInt, first.data(), starts.data(), rows, entries + added, rank, out_indices.mutable_data()));
    }
    XPU_RETURN_IF_ERROR(
        PutRows(ctx, kInt, indices.data(), reverse.data(), entries, entries + added, rank, out_indices.mutable_data()));
    return PutRows(ctx, values.dtype(), values.data(), reverse.data(), entries, entries + added, 1,
                   out_values.mutable_data());
  }

 private:
  Status CheckInputs(const Tensor& indices, const Tensor& values, const Tensor& shape, const Tensor& fill) const {
    const char* what = sparse_ ? "indices" : "value_rowids";
    XPU_REQUIRE(
        sparse_ ? shape.IsVector() : shape.IsScalar(),
        errors::InvalidArgument(sparse_ ? "dense_shape must be a vector, saw: " : "nrows must be a scalar, saw: ",
                                shape.ShapeString()));
    XPU_REQUIRE(
        indices.rank() == (sparse_ ? 2 : 1),
        errors::InvalidArgument(what, " must be a ", sparse_ ? "matrix" : "vector", ", saw: ", indices.ShapeString()));
    XPU_REQUIRE(values.IsVector(), errors::InvalidArgument("values must be a vector, saw: ", values.ShapeString()));
    XPU_REQUIRE(indices.dim(0) == values.dim(0),
                errors::InvalidArgument("The length of `values` (", values.dim(0),
                                        ") must match the first dimension of `", what, "` (", indices.dim(0), ")."));
    if (sparse_) {
      XPU_REQUIRE(indices.dim(1) == shape.dim(0),
                  errors::InvalidArgument("The length of `dense_shape` (", shape.dim(0),
                                          ") must match the second dimension of `indices` (", indices.dim(1), ")."));
      XPU_REQUIRE(shape.dim(0) > 0, errors::InvalidArgument("Dense shape cannot be empty."));
    }
    XPU_REQUIRE(fill.IsScalar(), errors::InvalidArgument("default_value must be a scalar, saw: ", fill.ShapeString()));
    return CheckExtents({shape.host<int64_t>()[0]});
  }

  // starts[r]: where row r begins once no row is empty; emptied[r]: how many of the rows up to r were.
  Status CountRows(Context& ctx, const Tensor& row_of, int64_t rows, const Tensor& empty, Temporary* starts,
                   Temporary* emptied) {
    const int64_t entries = row_of.dim(0);
    Temporary one, counts, numbers;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows}, &counts));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows}, &numbers));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows}, starts));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows}, emptied));
    XPU_RETURN_IF_ERROR(FillZero(ctx, counts.tensor()));
    if (entries > 0) {
      const DescribeError out_of_bounds = [rows](const Status& failure, const std::vector<int64_t>& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          if (values[i] >= 0 && values[i] < rows) continue;
          return errors::InvalidArgument("indices(", i, ", 0) is invalid: ", values[i], " >= ", rows);
        }
        return failure;
      };
      XPU_RETURN_IF_ERROR(CheckCoordinates(ctx, row_of, {rows}, out_of_bounds));
      XPU_RETURN_IF_ERROR(Upload(ctx, {1}, kInt, &one));
      XPU_RETURN_IF_ERROR(ctx.Launch(CountDesc(entries, rows), {row_of.data(), one.data()}, {counts.data()}));
    }
    XPU_RETURN_IF_ERROR(ctx.Launch(FlatDesc(is_empty_, rows, 1), {counts.data()}, {empty.mutable_data()}));
    XPU_RETURN_IF_ERROR(ctx.Launch(FlatDesc(filled_, rows, 1), {counts.data()}, {numbers.data()}));
    XPU_RETURN_IF_ERROR(ctx.Launch(TotalsDesc(rows, true), {numbers.data()}, {starts->data()}));
    XPU_RETURN_IF_ERROR(ctx.Launch(FlatDesc(missing_, rows, 1), {counts.data()}, {numbers.data()}));
    return ctx.Launch(TotalsDesc(rows, false), {numbers.data()}, {emptied->data()});
  }

  // The place of each entry. That is its place among the entries in the order of their rows, and one more for each
  // empty row before its own.
  Status Place(Context& ctx, const Tensor& row_of, int64_t rows, const void* emptied, const Tensor& reverse) {
    const int64_t entries = row_of.dim(0);
    Temporary sorted, positions, places, numbers;
    XPU_RETURN_IF_ERROR(SortKeys(ctx, row_of.data(), entries, &sorted, &positions));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {entries}, &places));
    XPU_RETURN_IF_ERROR(TakeRows(ctx, SizeOf(kInt), emptied, rows, 1, sorted.data(), entries, places.data()));
    XPU_RETURN_IF_ERROR(CountUp(ctx, entries, &numbers));
    XPU_RETURN_IF_ERROR(ctx.Launch(FlatDesc(add_, entries, 2), {places.data(), numbers.data()}, {places.data()}));
    return PutRows(ctx, kInt, places.data(), positions.data(), entries, entries, 1, reverse.mutable_data());
  }

  const bool sparse_;
  const Program *const is_empty_, *const filled_, *const missing_, *const add_;
};

// The entries' gradients, and the sum of those of the entries that were added.
class FillEmptyRowsGradKernel : public OpKernel {
 public:
  explicit FillEmptyRowsGradKernel(Construction& c) : copy_(IdentityProgram(c.Attr<DType>("T"))) {}

  Status Compute(Context& ctx) override {
    const Tensor reverse = ctx.input(0), gradient = ctx.input(1);
    XPU_REQUIRE(reverse.IsVector(),
                errors::InvalidArgument("reverse_index_map must be a vector, saw: ", reverse.ShapeString()));
    XPU_REQUIRE(gradient.IsVector(),
                errors::InvalidArgument("grad_values must be a vector, saw: ", gradient.ShapeString()));
    const int64_t entries = reverse.dim(0), all = gradient.dim(0);
    const DType type = gradient.dtype();
    Tensor of_values, of_default;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {entries}, &of_values));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {}, &of_default));
    Temporary rest, zero;
    const void* left = gradient.data();
    if (entries > 0) {
      const DescribeError out_of_bounds = [all](const Status& failure, const std::vector<int64_t>& values) {
        for (int64_t v : values) {
          if (v >= 0 && v < all) continue;
          return errors::InvalidArgument("Elements in reverse index must be in [0, ", all, ") but got ", v);
        }
        return failure;
      };
      XPU_RETURN_IF_ERROR(CheckCoordinates(ctx, reverse, {all}, out_of_bounds));
      XPU_RETURN_IF_ERROR(
          TakeRows(ctx, SizeOf(type), gradient.data(), all, 1, reverse.data(), entries, of_values.mutable_data()));
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {all}, &rest));
      XPU_RETURN_IF_ERROR(ctx.Copy(rest.data(), gradient.data(), gradient.bytes()));
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {}, &zero));
      XPU_RETURN_IF_ERROR(FillZero(ctx, zero.tensor()));
      ScatterDesc desc = CountDesc(entries, all);
      desc.kind = ScatterKind::kUpdate;
      desc.type = type;
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {reverse.data(), zero.data()}, {rest.data()}));
      left = rest.data();
    }
    ReduceDesc sum;
    sum.source = FlatDesc(copy_, all, 1);
    sum.axes = 1;
    return ctx.Launch(sum, {left}, {of_default.mutable_data()});
  }

 private:
  const Program* const copy_;
};

}  // namespace

void RegisterSparseEmptyRows(Registry& registry) {
  // int32 values are in device memory here, as on a GPU.
  for (const bool sparse : {true, false}) {
    registry.Op(sparse ? "SparseFillEmptyRows" : "RaggedFillEmptyRows")
        .Types("T", Union(kAllTypes, {DType::kInt32}))
        .Host({sparse ? "dense_shape" : "nrows"})
        .Traits(OpTrait::kWaitsForDevice)
        .Requires(needs::SortedKeys())
        .Requires(needs::Coordinates())
        .Requires(needs::Scan(ScanKind::kSum))
        .Requires(needs::Scatter(ScatterKind::kAdd, kInt, kInt))
        .Requires(needs::Scatter(ScatterKind::kUpdate, kInt, kInt))
        .Requires(needs::Scatter(ScatterKind::kUpdate, "T", kInt))
        .Requires(needs::Copy("T"))
        .Requires([](Needs& n) {
          for (CountFormula formula : {IsEmpty, Filled, Missing}) n.AskProgram(OfCount(formula));
        })
        .Kernel<FillEmptyRowsKernel>(sparse);
    registry.Op(sparse ? "SparseFillEmptyRowsGrad" : "RaggedFillEmptyRowsGrad")
        .Types("T", Union(kNumberTypes, {DType::kInt32}))
        .Requires(needs::Gather("T", kInt))
        .Requires(needs::Scatter(ScatterKind::kUpdate, "T", kInt))
        .Requires(needs::Reduce(ReduceKind::kSum, "T"))
        .Kernel<FillEmptyRowsGradKernel>();
  }
}

}  // namespace xpu
