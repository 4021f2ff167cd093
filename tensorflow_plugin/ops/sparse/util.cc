#include "tensorflow_plugin/ops/sparse/util.h"

#include "tensorflow_plugin/ops/arrays/indexing.h"

namespace xpu {
namespace {

constexpr DType kInt = DType::kInt64;

// Sums of coordinates times strides.
ReduceDesc KeysDesc(int64_t rows, int64_t rank) {
  ReduceDesc desc;
  desc.source.program = SingleOpProgram(Opcode::kMul, kInt);
  desc.source.shape = {rows, rank};
  desc.source.in_strides[0] = {rank, 1};
  desc.source.in_strides[1] = {0, 1};
  desc.axes = 2;
  return desc;
}

ScanDesc ScanOf(ScanKind kind, int64_t n) {
  ScanDesc desc;
  desc.kind = kind;
  desc.type = kInt;
  desc.n = n;
  return desc;
}

SortDesc SortOf(int64_t n) {
  SortDesc desc;
  desc.type = kInt;
  desc.index_type = kInt;
  desc.n = desc.k = n;
  return desc;
}

}  // namespace

Status CheckSparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  XPU_REQUIRE(indices.rank() == 2,
              errors::InvalidArgument("Sparse indices must be rank 2 but is rank ", indices.rank()));
  XPU_REQUIRE(values.rank() == 1, errors::InvalidArgument("Sparse values must be rank 1 but is rank ", values.rank()));
  XPU_REQUIRE(shape.rank() == 1, errors::InvalidArgument("Sparse shape must be rank 1 but is rank ", shape.rank()));
  XPU_REQUIRE(indices.dim(0) == values.dim(0),
              errors::InvalidArgument("Number of elements in indices (", indices.dim(0), ") and values (",
                                      values.dim(0), ") do not match"));
  XPU_REQUIRE(
      indices.dim(1) == shape.dim(0),
      errors::InvalidArgument("Index rank (", indices.dim(1), ") and shape rank (", shape.dim(0), ") do not match"));
  return OkStatus();
}

Status CheckExtents(const std::vector<int64_t>& extents) {
  int64_t n = 1;
  for (int64_t extent : extents) {
    XPU_REQUIRE(extent >= 0, errors::InvalidArgument("Expected shape dimensions to be non-negative, got ", extent));
    int64_t product;
    XPU_REQUIRE(!__builtin_mul_overflow(n, extent, &product),
                errors::InvalidArgument("Encountered overflow when multiplying ", n, " with ", extent, ", result: -1"));
    n = product;
  }
  return OkStatus();
}

Status CheckCoordinates(Context& ctx, const Tensor& indices, const Dims& extents, const DescribeError& explain) {
  // A gather of rows of nothing does nothing but look at its indices.
  GatherDesc desc;
  desc.element_size = 1;
  desc.index_type = indices.dtype();
  desc.inner = 0;
  desc.dims = extents;
  desc.num_indices = indices.dim(0);
  const Status status = ctx.LaunchChecked(desc, {nullptr, indices.data()}, {nullptr}, &explain);
  if (status.code() != Code::kInvalidArgument) return status;
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(FetchIntegers(ctx, indices, &values));
  return explain(status, values);
}

Status WithRow(Context& ctx, const Program* program, const void* indices, int64_t rows, int64_t rank, const void* row,
               void* out) {
  ElementwiseDesc desc;
  desc.program = program;
  desc.shape = {rows, rank};
  desc.in_strides[0] = {rank, 1};
  desc.in_strides[1] = {0, 1};
  return ctx.Launch(desc, {indices, row}, {out});
}

Status Column(Context& ctx, const void* matrix, int64_t rows, int64_t columns, int64_t column, void* out) {
  return CopyView(ctx, SizeOf(kInt), {rows}, matrix, {{columns}, column}, out, {{1}, 0});
}

Status CountUp(Context& ctx, int64_t n, Temporary* out) {
  Temporary ones;
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, &ones));
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, out));
  const int64_t one = 1;
  XPU_RETURN_IF_ERROR(Fill(ctx, &one, ones.tensor()));
  ScanDesc desc = ScanOf(ScanKind::kSum, n);
  desc.exclusive = true;
  return ctx.Launch(desc, {ones.data()}, {out->data()});
}

std::vector<int64_t> KeyStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Status KeyStrides(Context& ctx, const Tensor& shape, Temporary* out) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, shape.dims(), out));
  ScanDesc desc = ScanOf(ScanKind::kProd, shape.num_elements());
  desc.exclusive = desc.reverse = true;
  return ctx.Launch(desc, {shape.data()}, {out->data()});
}

Status Keys(Context& ctx, const void* indices, int64_t rows, int64_t rank, const void* strides, Temporary* out) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rows}, out));
  return ctx.Launch(KeysDesc(rows, rank), {indices, strides}, {out->data()});
}

Status SortKeys(Context& ctx, const void* keys, int64_t n, Temporary* sorted, Temporary* positions) {
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, sorted));
  XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, positions));
  return ctx.Launch(SortOf(n), {keys}, {sorted->data(), positions->data()});
}

Status TakeRows(Context& ctx, size_t size, const void* from, int64_t rows, int64_t length, const void* positions,
                int64_t n, void* out) {
  if (n == 0 || length == 0) return OkStatus();
  GatherDesc desc;
  desc.element_size = size;
  desc.inner = length;
  desc.num_indices = n;
  desc.dims = {rows};
  return ctx.Launch(desc, {from, positions}, {out});
}

Status PutRows(Context& ctx, DType type, const void* from, const void* positions, int64_t n, int64_t rows,
               int64_t length, void* out) {
  if (n == 0 || length == 0) return OkStatus();
  ScatterDesc desc;
  desc.type = type;
  desc.inner = length;
  desc.num_indices = n;
  desc.dims = {rows};
  return ctx.Launch(desc, {positions, from}, {out});
}

namespace needs {

Need Coordinates() {
  return [](Needs& n) {
    n.AskProgram(SingleOpProgram(Opcode::kAdd, kInt));
    Copy(kInt)(n);
  };
}

Need Keys() {
  return [](Needs& n) { n.Ask(KeysDesc(0, 1)); };
}

Need SortedKeys() {
  return [](Needs& n) {
    Keys()(n);
    n.Ask(SortOf(0));
    Gather(kInt, kInt)(n);
  };
}

Need Scan(ScanKind kind) {
  return [kind](Needs& n) { n.Ask(ScanOf(kind, 0)); };
}

}  // namespace needs
}  // namespace xpu
