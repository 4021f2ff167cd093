// SparseTensorDenseMatMul: a sparse matrix times a dense one.
#include <algorithm>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/sparse/util.h"

namespace xpu {
namespace {

// Products are made in blocks of this many elements, little enough to stay in a cache, and then summed up. There are
// never more blocks than these, each three commands.
constexpr int64_t kBlock = 768 << 10, kMostBlocks = 128;

// An element of b times a value of a, either of them conjugated, in the type of sums.
const Program* ProductProgram(DType type, bool conjugate_a, bool conjugate_b) {
  ProgramBuilder builder;
  const FormulaValue b{&builder, builder.Input(type)}, a{&builder, builder.Input(type)};
  const FormulaValue x = Cast(b, ComputedIn(type)), y = Cast(a, ComputedIn(type));
  builder.Output(((conjugate_b ? Conj(x) : x) * (conjugate_a ? Conj(y) : y)).reg);
  return builder.Build();
}

class SparseDenseMatMulKernel : public OpKernel {
 public:
  explicit SparseDenseMatMulKernel(Construction& c)
      : adjoint_a_(c.Attr<bool>("adjoint_a")), adjoint_b_(c.Attr<bool>("adjoint_b")), type_(c.Attr<DType>("T")) {
    if (!c.status().ok()) return;
    product_ = ProductProgram(type_, adjoint_a_, adjoint_b_);
    if (ComputedIn(type_) != type_) narrow_ = CastProgram(ComputedIn(type_), type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), values = ctx.input(1), shape = ctx.input(2), b = ctx.input(3);
    XPU_REQUIRE(b.rank() == 2, errors::InvalidArgument("Tensor 'b' is not a matrix"));
    XPU_REQUIRE(shape.IsVector(), errors::InvalidArgument("Tensor 'a_shape' is not a vector"));
    XPU_REQUIRE(shape.dim(0) == 2, errors::InvalidArgument("Tensor 'a_shape' must have 2 elements"));
    XPU_REQUIRE(values.IsVector(), errors::InvalidArgument("Tensor 'a_values' is not a vector"));
    XPU_REQUIRE(indices.rank() == 2, errors::InvalidArgument("Tensor 'a_indices' is not a matrix"));
    const int64_t entries = indices.dim(0);
    XPU_REQUIRE(entries == values.dim(0),
                errors::InvalidArgument("Number of rows of a_indices does not match number of entries in a_values"));
    XPU_REQUIRE(indices.dim(1) == 2,
                errors::InvalidArgument("Number of columns of a_indices does not match number of entries in a_shape"));
    const int64_t* extents = shape.host<int64_t>();
    XPU_RETURN_IF_ERROR(CheckExtents({extents[0], extents[1]}));
    const int64_t rows = extents[adjoint_a_ ? 1 : 0], inner = extents[adjoint_a_ ? 0 : 1];
    const int64_t b_rows = b.dim(adjoint_b_ ? 1 : 0), columns = b.dim(adjoint_b_ ? 0 : 1);
    XPU_REQUIRE(inner == b_rows,
                errors::InvalidArgument("Cannot multiply A and B because inner dimension does not match: ", inner,
                                        " vs. ", b_rows, ".  Did you forget a transpose?  Dimensions of A: [",
                                        extents[0], ", ", extents[1], ").  Dimensions of B: ", b.ShapeString()));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows, columns}, &out));
    if (out.num_elements() == 0) return OkStatus();
    if (entries == 0) return FillZero(ctx, out);
    XPU_RETURN_IF_ERROR(CheckCoordinates(ctx, indices, {extents[0], extents[1]}, OutOfBounds(rows, inner)));

    Temporary transposed, wide;
    const void* b_data = b.data();
    if (adjoint_b_) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {b_rows, columns}, &transposed));
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(type_), {b_rows, columns}, b.data(), {{1, b_rows}, 0}, transposed.data(),
                                   {{columns, 1}, 0}));
      b_data = transposed.data();
    }
    Tensor sum = out;
    if (narrow_ != nullptr) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(ComputedIn(type_), out.dims(), &wide));
      sum = wide.tensor();
    }
    XPU_RETURN_IF_ERROR(FillZero(ctx, sum));
    XPU_RETURN_IF_ERROR(AddProducts(ctx, indices, values, b_data, inner, sum));
    if (narrow_ == nullptr) return OkStatus();
    ElementwiseDesc desc;
    desc.program = narrow_;
    SetFlat(out.num_elements(), 1, &desc);
    return ctx.Launch(desc, {sum.data()}, {out.mutable_data()});
  }

 private:
  // Names the first index beyond the matrices as the CPU does: k is what is summed over, m a row of the result.
  DescribeError OutOfBounds(int64_t rows, int64_t inner) const {
    const int k_column = adjoint_a_ ? 0 : 1, m_column = 1 - k_column;
    return [=](const Status& failure, const std::vector<int64_t>& values) {
      for (size_t i = 0; 2 * i < values.size(); ++i) {
        const int64_t k = values[2 * i + k_column], m = values[2 * i + m_column];
        if (k < 0 || k >= inner) {
          return errors::InvalidArgument("k (", k, ") from index[", i, ",", k_column, "] out of bounds (>=", inner,
                                         ")");
        }
        if (m < 0 || m >= rows) {
          return errors::InvalidArgument("m (", m, ") from index[", i, ",", m_column, "] out of bounds (>=", rows, ")");
        }
      }
      return failure;
    };
  }

  // sum[m, :] += value * b[k, :] for every entry (m, k) of a.
  Status AddProducts(Context& ctx, const Tensor& indices, const Tensor& values, const void* b, int64_t b_rows,
                     const Tensor& sum) {
    const int64_t entries = indices.dim(0), columns = sum.dim(1);
    const int64_t block = std::max({int64_t{1}, kBlock / columns, (entries + kMostBlocks - 1) / kMostBlocks});
    const size_t index_size = SizeOf(indices.dtype());
    Temporary numbers, b_block, products;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(indices.dtype(), {2, entries}, &numbers));
    XPU_RETURN_IF_ERROR(
        CopyView(ctx, index_size, {2, entries}, indices.data(), {{1, 2}, 0}, numbers.data(), {{entries, 1}, 0}));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {std::min(block, entries), columns}, &b_block));
    void* product_data = b_block.data();
    if (narrow_ != nullptr) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(sum.dtype(), b_block.tensor().dims(), &products));
      product_data = products.data();
    }
    const char* m = static_cast<const char*>(numbers.data()) + (adjoint_a_ ? entries * index_size : 0);
    const char* k = static_cast<const char*>(numbers.data()) + (adjoint_a_ ? 0 : entries * index_size);
    for (int64_t first = 0; first < entries; first += block) {
      const int64_t n = std::min(block, entries - first);
      GatherDesc gather;
      gather.element_size = SizeOf(type_);
      gather.index_type = indices.dtype();
      gather.inner = columns;
      gather.num_indices = n;
      gather.dims = {b_rows};
      XPU_RETURN_IF_ERROR(ctx.Launch(gather, {b, k + first * index_size}, {b_block.data()}));
      ElementwiseDesc multiply;
      multiply.program = product_;
      multiply.shape = {n, columns};
      multiply.in_strides[0] = {columns, 1};
      multiply.in_strides[1] = {1, 0};
      const char* a = static_cast<const char*>(values.data()) + first * SizeOf(type_);
      XPU_RETURN_IF_ERROR(ctx.Launch(multiply, {b_block.data(), a}, {product_data}));
      ScatterDesc add;
      add.kind = ScatterKind::kAdd;
      add.type = sum.dtype();
      add.index_type = indices.dtype();
      add.num_indices = n;
      add.inner = columns;
      add.dims = {sum.dim(0)};
      XPU_RETURN_IF_ERROR(ctx.Launch(add, {m + first * index_size, product_data}, {sum.mutable_data()}));
    }
    return OkStatus();
  }

  const bool adjoint_a_, adjoint_b_;
  const DType type_;
  const Program *product_ = nullptr, *narrow_ = nullptr;
};

}  // namespace

void RegisterSparseMatMul(Registry& registry) {
  registry.Op("SparseTensorDenseMatMul")
      .Types("T", Union(kFloatTypes, kComplexTypes))
      .Types("Tindices", {DType::kInt32, DType::kInt64})
      .Host({"a_shape"})
      .Requires([](Needs& n) {
        const DType type = n.type("T"), wide = ComputedIn(type);
        for (bool a : {false, true}) {
          for (bool b : {false, true}) n.AskProgram(ProductProgram(type, a, b));
        }
        if (wide != type) n.AskProgram(CastProgram(wide, type));
        needs::Scatter(ScatterKind::kAdd, wide, "Tindices")(n);
      })
      .Requires(needs::Gather("T", "Tindices"))
      .Requires(needs::Copy("T"))
      .Requires(needs::Copy("Tindices"))
      .Kernel<SparseDenseMatMulKernel>();
}

}  // namespace xpu
