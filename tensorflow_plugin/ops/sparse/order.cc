// SparseReorder, SparseReshape, SparseConcat: sparse tensors whose coordinates change, or their order does.
#include <algorithm>
#include <limits>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/sparse/util.h"

namespace xpu {
namespace {

constexpr DType kInt = DType::kInt64;

// Outputs 0 and 1 become the entries in the order of their coordinates, whose key strides are on the device.
Status GiveInOrder(Context& ctx, const Tensor& indices, const Tensor& values, const void* strides) {
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  Temporary keys, sorted, positions;
  XPU_RETURN_IF_ERROR(Keys(ctx, indices.data(), n, rank, strides, &keys));
  XPU_RETURN_IF_ERROR(SortKeys(ctx, keys.data(), n, &sorted, &positions));
  Tensor out_indices, out_values;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, indices.dims(), &out_indices));
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, values.dims(), &out_values));
  XPU_RETURN_IF_ERROR(
      TakeRows(ctx, SizeOf(kInt), indices.data(), n, rank, positions.data(), n, out_indices.mutable_data()));
  return TakeRows(ctx, SizeOf(values.dtype()), values.data(), n, 1, positions.data(), n, out_values.mutable_data());
}

class SparseReorderKernel : public OpKernel {
 public:
  explicit SparseReorderKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), values = ctx.input(1), shape = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckSparse(indices, values, shape));
    if (indices.dim(0) < 2) {
      XPU_RETURN_IF_ERROR(ctx.ShareOutput(0, indices, indices.dims()));
      return ctx.ShareOutput(1, values, values.dims());
    }
    Temporary strides;
    XPU_RETURN_IF_ERROR(KeyStrides(ctx, shape, &strides));
    return GiveInOrder(ctx, indices, values, strides.data());
  }
};

// A key's coordinate, from what counts beyond its column and what a step in it counts: (key % beyond) / step.
const Program* CoordinateProgram() {
  ProgramBuilder b;
  const auto key = b.Input(kInt), beyond = b.Input(kInt), step = b.Input(kInt);
  b.Output(b.Apply(Opcode::kTruncateDiv, b.Apply(Opcode::kTruncateMod, key, beyond), step));
  return b.Build();
}

class SparseReshapeKernel : public OpKernel {
 public:
  explicit SparseReshapeKernel(Construction&) : coordinate_(CoordinateProgram()) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), from_arg = ctx.input(1), to_arg = ctx.input(2);
    XPU_REQUIRE(indices.rank() == 2, errors::InvalidArgument("Input must be a matrix."));
    XPU_REQUIRE(from_arg.IsVector(), errors::InvalidArgument("Input shape must be a vector."));
    XPU_REQUIRE(indices.dim(1) == from_arg.dim(0),
                errors::InvalidArgument("Input tensor rank must match input shape length."));
    XPU_REQUIRE(to_arg.IsVector(),
                errors::InvalidArgument("Target shape should be a vector but received shape ", to_arg.ShapeString()));
    std::vector<int64_t> from, to;
    XPU_RETURN_IF_ERROR(HostIntegers(from_arg, "input_shape", &from));
    XPU_RETURN_IF_ERROR(HostIntegers(to_arg, "new_shape", &to));
    XPU_RETURN_IF_ERROR(CheckExtents(from));
    XPU_RETURN_IF_ERROR(Infer(from, &to));
    const int64_t n = indices.dim(0), rank = static_cast<int64_t>(to.size());
    const auto is_empty = [](const std::vector<int64_t>& shape) {
      return std::find(shape.begin(), shape.end(), 0) != shape.end();
    };
    XPU_REQUIRE(n == 0 || !(is_empty(from) || is_empty(to)),
                errors::InvalidArgument("Input tensor has ", n, " non zero elements but input shape (", String(from),
                                        ") or output shape (", String(to), ") is empty"));
    Tensor out_indices, out_shape;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {rank}, &out_shape));
    std::copy(to.begin(), to.end(), static_cast<int64_t*>(out_shape.mutable_data()));
    if (from == to) return ctx.ShareOutput(0, indices, indices.dims());
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {n, rank}, &out_indices));
    if (out_indices.num_elements() == 0) return OkStatus();

    // One upload: strides of the keys, what is beyond each new column, its steps.
    std::vector<int64_t> numbers = KeyStrides(from);
    const std::vector<int64_t> steps = KeyStrides(to);
    numbers.push_back(std::numeric_limits<int64_t>::max());
    numbers.insert(numbers.end(), steps.begin(), steps.end());
    Temporary device, keys;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, kInt, &device));
    XPU_RETURN_IF_ERROR(Keys(ctx, indices.data(), n, indices.dim(1), device.data(), &keys));
    const int64_t* beyond = static_cast<const int64_t*>(device.data()) + from.size();
    ElementwiseDesc desc;
    desc.program = coordinate_;
    desc.shape = {n, rank};
    desc.in_strides[0] = {1, 0};
    desc.in_strides[1] = desc.in_strides[2] = {0, 1};
    return ctx.Launch(desc, {keys.data(), beyond, beyond + 1}, {out_indices.mutable_data()});
  }

 private:
  static std::string String(const std::vector<int64_t>& shape) {
    std::string s;
    for (int64_t extent : shape) s += (s.empty() ? "" : ",") + std::to_string(extent);
    return "[" + s + "]";
  }

  // Fills in the one extent of `to` that may be -1.
  static Status Infer(const std::vector<int64_t>& from, std::vector<int64_t>* to) {
    int64_t n = 1, known = 1;
    for (int64_t extent : from) n *= extent;
    int unknown = -1;
    bool has_zero = false;
    for (size_t d = 0; d < to->size(); ++d) {
      const int64_t extent = (*to)[d];
      if (extent == -1) {
        XPU_REQUIRE(unknown < 0,
                    errors::InvalidArgument("only one output dimension may be -1, not both ", unknown, " and ", d));
        unknown = static_cast<int>(d);
        continue;
      }
      XPU_REQUIRE(extent >= 0, errors::InvalidArgument("size ", d, " must be non-negative, not ", extent));
      has_zero |= extent == 0;
      int64_t product;
      XPU_REQUIRE(
          !__builtin_mul_overflow(known, extent, &product),
          errors::InvalidArgument("Encountered overflow when multiplying ", known, " with ", extent, ", result: -1"));
      known = product;
    }
    std::vector<int64_t> whole = *to;
    if (unknown >= 0) {
      XPU_REQUIRE(!has_zero, errors::InvalidArgument("reshape cannot infer the missing input size for an empty tensor "
                                                     "unless all specified input sizes are non-zero"));
      whole[unknown] = n / known;
      XPU_REQUIRE(n % known == 0,
                  errors::InvalidArgument("Input to reshape is a SparseTensor with ", n,
                                          " dense values, but the requested shape requires a multiple of ", known,
                                          ". input_shape=", String(from), " output_shape=", String(whole)));
      known *= whole[unknown];
    }
    XPU_REQUIRE(known == n, errors::InvalidArgument("Input to reshape is a tensor with ", n,
                                                    " dense values, but the requested shape has ", known,
                                                    ". input_shape=", String(from), " output_shape=", String(whole)));
    *to = std::move(whole);
    return OkStatus();
  }

  const Program* const coordinate_;
};

// Inputs: N matrices of coordinates, N vectors of values, N shapes.
class SparseConcatKernel : public OpKernel {
 public:
  explicit SparseConcatKernel(Construction& c)
      : n_(static_cast<int>(c.Attr<int64_t>("N"))),
        axis_(c.Attr<int64_t>("concat_dim")),
        type_(c.Attr<DType>("T")),
        add_(SingleOpProgram(Opcode::kAdd, kInt)) {}

  Status Compute(Context& ctx) override {
    std::vector<int64_t> numbers;
    std::vector<int64_t> shape;
    XPU_RETURN_IF_ERROR(CheckInputs(ctx, &numbers, &shape));
    const int64_t rank = static_cast<int64_t>(shape.size());
    int64_t total = 0;
    for (int i = 0; i < n_; ++i) total += ctx.input(i).dim(0);
    Tensor out_shape;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(2, {rank}, &out_shape));
    std::copy(shape.begin(), shape.end(), static_cast<int64_t*>(out_shape.mutable_data()));

    // The entries one after another, moved along the axis; then in order.
    Temporary offsets, indices, values;
    const std::vector<int64_t> strides = KeyStrides(shape);
    numbers.insert(numbers.end(), strides.begin(), strides.end());
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, kInt, &offsets));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {total, rank}, &indices));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {total}, &values));
    const int64_t* offset = static_cast<const int64_t*>(offsets.data());
    int64_t* to = static_cast<int64_t*>(indices.data());
    char* value = static_cast<char*>(values.data());
    for (int i = 0; i < n_; ++i) {
      const Tensor entries = ctx.input(i);
      XPU_RETURN_IF_ERROR(WithRow(ctx, add_, entries.data(), entries.dim(0), rank, offset + i * rank, to));
      XPU_RETURN_IF_ERROR(ctx.Copy(value, ctx.input(n_ + i).data(), ctx.input(n_ + i).bytes()));
      to += entries.num_elements();
      value += ctx.input(n_ + i).bytes();
    }
    return GiveInOrder(ctx, indices.tensor(), values.tensor(), offset + n_ * rank);
  }

 private:
  // Fills in by how much the coordinates of each input move, [N, rank], and the result's shape.
  Status CheckInputs(Context& ctx, std::vector<int64_t>* offsets, std::vector<int64_t>* shape) {
    for (int i = 0; i < n_; ++i) {
      const Tensor t = ctx.input(i);
      XPU_REQUIRE(t.rank() == 2, errors::InvalidArgument("Input indices should be a matrix but received shape ",
                                                         t.ShapeString(), " at position ", i));
    }
    for (int i = 0; i < n_; ++i) {
      const Tensor t = ctx.input(n_ + i);
      XPU_REQUIRE(t.IsVector(), errors::InvalidArgument("Input values should be a vector but received shape ",
                                                        t.ShapeString(), " at position ", i));
      const int64_t entries = ctx.input(i).dim(0);
      XPU_REQUIRE(entries == t.dim(0),
                  errors::InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                                          entries, ", values = ", t.dim(0), ")"));
    }
    for (int i = 0; i < n_; ++i) {
      const Tensor t = ctx.input(2 * n_ + i);
      XPU_REQUIRE(t.IsVector(), errors::InvalidArgument("Input shapes should be a vector but received shape ",
                                                        t.ShapeString(), " at position ", i));
    }
    XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(2 * n_), "shapes", shape));
    const int64_t rank = static_cast<int64_t>(shape->size());
    const int64_t axis = axis_ < 0 ? axis_ + rank : axis_;
    XPU_REQUIRE(axis >= 0 && axis < rank,
                errors::InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ", axis_));
    const Status overflow = errors::Internal("Encountered overflow from large input shape.");
    XPU_REQUIRE(CheckExtents(*shape).ok(), overflow);
    const std::vector<int64_t> first = *shape;
    offsets->assign(n_ * rank, 0);
    for (int i = 1; i < n_; ++i) {
      std::vector<int64_t> next;
      XPU_RETURN_IF_ERROR(HostIntegers(ctx.input(2 * n_ + i), "shapes", &next));
      XPU_REQUIRE(CheckExtents(next).ok(), overflow);
      XPU_REQUIRE(static_cast<int64_t>(next.size()) == rank,
                  errors::InvalidArgument("Ranks of all input tensors must match: expected ", rank, " but got ",
                                          next.size(), " at position ", i));
      for (int64_t d = 0; d < rank; ++d) {
        XPU_REQUIRE(d == axis || next[d] == first[d],
                    errors::InvalidArgument("Input shapes must match: expected ", first[d], " for dimension ", d,
                                            " but got ", next[d], " at position ", i));
      }
      (*offsets)[i * rank + axis] = (*shape)[axis];
      XPU_REQUIRE(!__builtin_add_overflow((*shape)[axis], next[axis], &(*shape)[axis]), overflow);
    }
    XPU_REQUIRE(CheckExtents(*shape).ok(), overflow);
    for (int i = 0; i < n_; ++i) {
      XPU_REQUIRE(ctx.input(i).dim(1) == rank, errors::InvalidArgument("Order length must be SparseTensor rank."));
    }
    return OkStatus();
  }

  const int n_;
  const int64_t axis_;
  const DType type_;
  const Program* const add_;
};

}  // namespace

void RegisterSparseOrder(Registry& registry) {
  // int32 values are in device memory here, as on a GPU.
  const TypeList types = Union(kAllTypes, {DType::kInt32});
  registry.Op("SparseReorder")
      .Types("T", types)
      .Requires(needs::SortedKeys())
      .Requires(needs::Scan(ScanKind::kProd))
      .Requires(needs::Gather("T", kInt))
      .Kernel<SparseReorderKernel>();
  registry.Op("SparseReshape")
      .Host({"input_shape", "new_shape", "output_shape"})
      .Requires(needs::Keys())
      .Requires([](Needs& n) { n.AskProgram(CoordinateProgram()); })
      .Kernel<SparseReshapeKernel>();
  registry.Op("SparseConcat")
      .Types("T", types)
      .Host({"shapes", "output_shape"})
      .Requires(needs::SortedKeys())
      .Requires(needs::Coordinates())
      .Requires(needs::Gather("T", kInt))
      .Kernel<SparseConcatKernel>();
}

}  // namespace xpu
