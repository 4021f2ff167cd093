// SparseSplit, SparseSlice and its gradient. How many entries a part has the device has to say.
#include <algorithm>

#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"
#include "tensorflow_plugin/ops/sparse/util.h"

namespace xpu {
namespace {

constexpr DType kInt = DType::kInt64;

// Outputs `indices` and `values` become the entries at `positions` [n], moved by `offset` [rank].
Status GivePart(Context& ctx, int indices_output, int values_output, const Tensor& indices, const Tensor& values,
                const void* positions, int64_t n, const void* offset) {
  static const Program* const add = SingleOpProgram(Opcode::kAdd, kInt);
  const int64_t entries = indices.dim(0), rank = indices.dim(1);
  Tensor out_indices, out_values;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(indices_output, {n, rank}, &out_indices));
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(values_output, {n}, &out_values));
  if (n == 0) return OkStatus();
  void* to = out_indices.mutable_data();
  XPU_RETURN_IF_ERROR(TakeRows(ctx, SizeOf(kInt), indices.data(), entries, rank, positions, n, to));
  XPU_RETURN_IF_ERROR(WithRow(ctx, add, to, n, rank, offset, to));
  return TakeRows(ctx, SizeOf(values.dtype()), values.data(), entries, 1, positions, n, out_values.mutable_data());
}

// Sets the shape of a part, a vector in host memory.
Status GiveShape(Context& ctx, int output, const std::vector<int64_t>& shape) {
  Tensor out;
  XPU_RETURN_IF_ERROR(ctx.AllocateOutput(output, {static_cast<int64_t>(shape.size())}, &out));
  std::copy(shape.begin(), shape.end(), static_cast<int64_t*>(out.mutable_data()));
  return OkStatus();
}

// Which part a coordinate is in, when the first parts are `size` + 1 long and those from `longer` on `size`.
const Program* PartProgram() {
  ProgramBuilder b;
  const FormulaValue x{&b, b.Input(kInt)}, size{&b, b.Input(kInt)}, longer{&b, b.Input(kInt)};
  const FormulaValue end = longer * (size + 1.0);
  const auto divide = [](const FormulaValue& p, const FormulaValue& q) { return Apply(Opcode::kTruncateDiv, p, q); };
  b.Output(Select(x < end, divide(x, size + 1.0), longer + divide(x - end, size)).reg);
  return b.Build();
}

SearchDesc EndsDesc(int64_t entries, int64_t parts) {
  SearchDesc desc;
  desc.type = desc.index_type = kInt;
  desc.n = entries;
  desc.m = parts;
  desc.upper = true;
  return desc;
}

class SparseSplitKernel : public OpKernel {
 public:
  explicit SparseSplitKernel(Construction& c) : parts_(c.Attr<int64_t>("num_split")), part_(PartProgram()) {}

  Status Compute(Context& ctx) override {
    const Tensor axis_arg = ctx.input(0), indices = ctx.input(1), values = ctx.input(2), shape_arg = ctx.input(3);
    XPU_REQUIRE(axis_arg.IsScalar(),
                errors::InvalidArgument("Input axis should be a scalar but received shape ", axis_arg.ShapeString()));
    XPU_REQUIRE(indices.rank() == 2,
                errors::InvalidArgument("Input indices should be a matrix but received shape ", indices.ShapeString()));
    XPU_REQUIRE(values.IsVector(),
                errors::InvalidArgument("Input values should be a vector but received shape ", indices.ShapeString()));
    XPU_REQUIRE(shape_arg.IsVector(),
                errors::InvalidArgument("Input shape should be a vector but received shape ", shape_arg.ShapeString()));
    std::vector<int64_t> shape;
    int64_t axis_given;
    XPU_RETURN_IF_ERROR(HostIntegers(shape_arg, "shape", &shape));
    XPU_RETURN_IF_ERROR(HostInteger(axis_arg, "split_dim", &axis_given));
    const int64_t rank = shape_arg.dim(0), axis = axis_given < 0 ? axis_given + rank : axis_given;
    XPU_REQUIRE(axis >= 0 && axis < rank,
                errors::InvalidArgument("Input axis should be in range [", -rank, ", ", rank, "), got ", axis_given));
    XPU_REQUIRE(parts_ >= 1 && parts_ <= std::max<int64_t>(shape[axis], 0),
                errors::InvalidArgument("Input num_split should be between 1 and the splitting dimension size (",
                                        shape[axis], "), got ", parts_));
    XPU_RETURN_IF_ERROR(CheckExtents(shape));
    XPU_RETURN_IF_ERROR(CheckSparse(indices, values, shape_arg));
    const int64_t entries = indices.dim(0);
    if (entries > 0) {
      XPU_RETURN_IF_ERROR(CheckCoordinates(ctx, indices, ToDims(shape), OutOfBounds(shape)));
    }

    // Where each part begins, what the coordinates in it are to lose.
    const int64_t size = shape[axis] / parts_, longer = shape[axis] % parts_;
    std::vector<int64_t> numbers = {size, longer}, extents;
    for (int64_t p = 0; p < parts_; ++p) numbers.push_back(p);
    for (int64_t p = 0; p < parts_; ++p) {
      numbers.insert(numbers.end(), rank, 0);
      numbers[2 + parts_ + p * rank + axis] = -(p * size + std::min(p, longer));
      extents.push_back(size + (p < longer ? 1 : 0));
    }
    Temporary device;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, kInt, &device));
    const int64_t* on_device = static_cast<const int64_t*>(device.data());
    std::vector<int64_t> ends(parts_, 0);
    Temporary positions;
    if (entries > 0) XPU_RETURN_IF_ERROR(Group(ctx, indices, axis, on_device, &positions, &ends));
    for (int64_t p = 0; p < parts_; ++p) {
      const int64_t begin = p == 0 ? 0 : ends[p - 1];
      XPU_RETURN_IF_ERROR(GivePart(ctx, p, parts_ + p, indices, values,
                                   static_cast<const int64_t*>(positions.data()) + begin, ends[p] - begin,
                                   on_device + 2 + parts_ + p * rank));
      shape[axis] = extents[p];
      XPU_RETURN_IF_ERROR(GiveShape(ctx, 2 * parts_ + p, shape));
    }
    return OkStatus();
  }

 private:
  static DescribeError OutOfBounds(const std::vector<int64_t>& shape) {
    return [shape](const Status& failure, const std::vector<int64_t>& values) {
      const size_t rank = shape.size();
      for (size_t i = 0; i < values.size(); ++i) {
        if (values[i] >= 0 && values[i] < shape[i % rank]) continue;
        const size_t row = i / rank;
        std::string tuple;
        for (size_t d = 0; d < rank; ++d) tuple += (d ? ", " : "") + std::to_string(values[row * rank + d]);
        return errors::InvalidArgument("Sparse index tuple indices[", row, ", :] = [", tuple, "] is out of bounds");
      }
      return failure;
    };
  }

  // The positions of the entries part by part, and where each part ends among them.
  Status Group(Context& ctx, const Tensor& indices, int64_t axis, const int64_t* numbers, Temporary* positions,
               std::vector<int64_t>* ends) {
    const int64_t entries = indices.dim(0), rank = indices.dim(1);
    Temporary part_of, sorted, counted;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {entries}, &part_of));
    ElementwiseDesc desc;
    desc.program = part_;
    desc.shape = {entries};
    desc.in_strides[0] = {rank};
    desc.in_strides[1] = desc.in_strides[2] = {0};
    const int64_t* column = static_cast<const int64_t*>(indices.data()) + axis;
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {column, numbers, numbers + 1}, {part_of.data()}));
    XPU_RETURN_IF_ERROR(SortKeys(ctx, part_of.data(), entries, &sorted, positions));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {parts_}, &counted));
    XPU_RETURN_IF_ERROR(ctx.Launch(EndsDesc(entries, parts_), {sorted.data(), numbers + 2}, {counted.data()}));
    return ctx.CopyToHost(ends->data(), counted.data(), ends->size() * sizeof(int64_t));
  }

  const int64_t parts_;
  const Program* const part_;
};

// True if a coordinate is in [begin, end).
const Program* InsideProgram() {
  ProgramBuilder b;
  const FormulaValue x{&b, b.Input(kInt)}, begin{&b, b.Input(kInt)}, end{&b, b.Input(kInt)};
  b.Output((Apply(Opcode::kGreaterEqual, x, begin) && x < end).reg);
  return b.Build();
}

ReduceDesc InsideDesc(int64_t entries, int64_t rank) {
  ReduceDesc desc;
  desc.kind = ReduceKind::kAll;
  desc.source.program = InsideProgram();
  desc.source.shape = {entries, rank};
  desc.source.in_strides[0] = {rank, 1};
  desc.source.in_strides[1] = desc.source.in_strides[2] = {0, 1};
  desc.axes = 2;
  return desc;
}

ReduceDesc CountDesc(int64_t entries) {
  ReduceDesc desc;
  desc.source.program = CastProgram(DType::kBool, kInt);
  desc.source.shape = {entries};
  desc.source.in_strides[0] = {1};
  desc.axes = 1;
  return desc;
}

CompactDesc PositionsDesc(int64_t entries, int64_t count) {
  CompactDesc desc;
  desc.type = DType::kBool;
  desc.shape = {entries};
  desc.count = count;
  return desc;
}

class SparseSliceKernel : public OpKernel {
 public:
  explicit SparseSliceKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor indices = ctx.input(0), values = ctx.input(1), shape_arg = ctx.input(2);
    XPU_RETURN_IF_ERROR(CheckSparse(indices, values, shape_arg));
    std::vector<int64_t> shape, begin, size;
    const int64_t rank = shape_arg.dim(0);
    XPU_RETURN_IF_ERROR(HostIntegers(shape_arg, "shape", &shape));
    XPU_RETURN_IF_ERROR(Vector(ctx.input(3), "start", rank, &begin));
    XPU_RETURN_IF_ERROR(Vector(ctx.input(4), "size", rank, &size));
    XPU_RETURN_IF_ERROR(CheckExtents(shape));
    // Its words are the CPU's, which has no others for a part of negative size.
    for (int64_t extent : size) {
      XPU_REQUIRE(extent >= 0, errors::InvalidArgument("Expected a non-negative size, got ", extent));
    }
    // The amounts that the coordinates lose, where they begin, and where they end (which wraps around, as on the CPU).
    std::vector<int64_t> numbers(3 * rank), out_shape(rank);
    for (int64_t d = 0; d < rank; ++d) {
      numbers[d] = -begin[d];
      numbers[rank + d] = begin[d];
      numbers[2 * rank + d] = static_cast<int64_t>(static_cast<uint64_t>(begin[d]) + size[d]);
      out_shape[d] = begin[d] < shape[d] - size[d] ? size[d] : std::max<int64_t>(shape[d] - begin[d], 0);
    }
    XPU_RETURN_IF_ERROR(GiveShape(ctx, 2, out_shape));
    const int64_t entries = indices.dim(0);
    int64_t count = 0;
    Temporary device, inside, counted, positions;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, kInt, &device));
    const int64_t* offset = static_cast<const int64_t*>(device.data());
    if (entries > 0) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kBool, {entries}, &inside));
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {}, &counted));
      XPU_RETURN_IF_ERROR(
          ctx.Launch(InsideDesc(entries, rank), {indices.data(), offset + rank, offset + 2 * rank}, {inside.data()}));
      XPU_RETURN_IF_ERROR(ctx.Launch(CountDesc(entries), {inside.data()}, {counted.data()}));
      XPU_RETURN_IF_ERROR(ctx.CopyToHost(&count, counted.data(), sizeof count));
    }
    if (count > 0) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {count}, &positions));
      XPU_RETURN_IF_ERROR(ctx.Launch(PositionsDesc(entries, count), {inside.data()}, {positions.data()}));
    }
    return GivePart(ctx, 0, 1, indices, values, positions.data(), count, offset);
  }

 private:
  static Status Vector(const Tensor& t, const char* what, int64_t rank, std::vector<int64_t>* values) {
    XPU_REQUIRE(t.IsVector(),
                errors::InvalidArgument("Input ", what, " should be a vector but received shape ", t.ShapeString()));
    XPU_REQUIRE(t.dim(0) == rank, errors::InvalidArgument("Expected ", what, " to be a vector of length ", rank,
                                                          " but got length ", t.dim(0)));
    return HostIntegers(t, what, values);
  }
};

// The largest coordinate of each column, and one.
ReduceDesc ExtentsDesc(int64_t entries, int64_t rank) {
  static const Program* const next = [] {
    ProgramBuilder b;
    const FormulaValue x{&b, b.Input(kInt)};
    b.Output((x + 1.0).reg);
    return b.Build();
  }();
  ReduceDesc desc;
  desc.kind = ReduceKind::kMax;
  desc.source.program = next;
  desc.source.shape = {entries, rank};
  desc.source.in_strides[0] = {rank, 1};
  desc.axes = 1;
  return desc;
}

// True if two rows are the same.
ReduceDesc SameDesc(int64_t rows, int64_t rank) {
  ReduceDesc desc;
  desc.kind = ReduceKind::kAll;
  desc.source.program = SingleOpProgram(Opcode::kEqual, kInt);
  desc.source.shape = {rows, rank};
  desc.source.in_strides[0] = desc.source.in_strides[1] = {rank, 1};
  desc.axes = 2;
  return desc;
}

// A position, or -1 where it is not the right one.
const Program* FoundProgram() {
  ProgramBuilder b;
  const FormulaValue same{&b, b.Input(DType::kBool)}, position{&b, b.Input(kInt)};
  b.Output(Select(same, position, position.Const(-1)).reg);
  return b.Build();
}

// Each part's entry is one of the whole; its gradient goes there.
class SparseSliceGradKernel : public OpKernel {
 public:
  explicit SparseSliceGradKernel(Construction&)
      : add_(SingleOpProgram(Opcode::kAdd, kInt)),
        last_(SingleOpProgram(Opcode::kMinimum, kInt)),
        found_(FoundProgram()) {}

  Status Compute(Context& ctx) override {
    const Tensor gradient = ctx.input(0), whole = ctx.input(1), begin = ctx.input(2), part = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckInputs(gradient, whole, begin, part));
    const int64_t entries = whole.dim(0), rank = whole.dim(1), n = part.dim(0);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {entries}, &out));
    XPU_RETURN_IF_ERROR(FillZero(ctx, out));
    if (n == 0) return OkStatus();

    // The part's coordinates in the whole, and where they are among the whole's in order.
    Temporary moved, extents, strides, whole_keys, part_keys, sorted, order, ranks, last, positions, rows, same;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, part.dims(), &moved));
    XPU_RETURN_IF_ERROR(WithRow(ctx, add_, part.data(), n, rank, begin.data(), moved.data()));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {rank}, &extents));
    XPU_RETURN_IF_ERROR(ctx.Launch(ExtentsDesc(entries, rank), {whole.data()}, {extents.data()}));
    XPU_RETURN_IF_ERROR(KeyStrides(ctx, extents.tensor(), &strides));
    XPU_RETURN_IF_ERROR(Keys(ctx, whole.data(), entries, rank, strides.data(), &whole_keys));
    XPU_RETURN_IF_ERROR(Keys(ctx, moved.data(), n, rank, strides.data(), &part_keys));
    XPU_RETURN_IF_ERROR(SortKeys(ctx, whole_keys.data(), entries, &sorted, &order));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, &ranks));
    SearchDesc search = EndsDesc(entries, n);
    search.upper = false;
    XPU_RETURN_IF_ERROR(ctx.Launch(search, {sorted.data(), part_keys.data()}, {ranks.data()}));
    XPU_RETURN_IF_ERROR(Upload(ctx, {entries - 1}, kInt, &last));
    ElementwiseDesc flat;
    flat.program = last_;
    SetFlat(n, 1, &flat);
    flat.in_strides[1] = {0};
    XPU_RETURN_IF_ERROR(ctx.Launch(flat, {ranks.data(), last.data()}, {ranks.data()}));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, {n}, &positions));
    XPU_RETURN_IF_ERROR(TakeRows(ctx, SizeOf(kInt), order.data(), entries, 1, ranks.data(), n, positions.data()));

    // True for those that are there.
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(kInt, part.dims(), &rows));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kBool, {n}, &same));
    XPU_RETURN_IF_ERROR(TakeRows(ctx, SizeOf(kInt), whole.data(), entries, rank, positions.data(), n, rows.data()));
    XPU_RETURN_IF_ERROR(ctx.Launch(SameDesc(n, rank), {rows.data(), moved.data()}, {same.data()}));
    flat.program = found_;
    SetFlat(n, 2, &flat);
    XPU_RETURN_IF_ERROR(ctx.Launch(flat, {same.data(), positions.data()}, {positions.data()}));
    const DescribeError not_all = [](const Status&, const std::vector<int64_t>& values) {
      const auto lost = std::find(values.begin(), values.end(), -1);
      return errors::Internal("Elements of backprop_val_grad aren't all propagated. Num elements:", values.size(),
                              ", used: ", lost - values.begin());
    };
    XPU_RETURN_IF_ERROR(CheckCoordinates(ctx, positions.tensor(), {entries}, not_all));
    return PutRows(ctx, gradient.dtype(), gradient.data(), positions.data(), n, entries, 1, out.mutable_data());
  }

 private:
  static Status CheckInputs(const Tensor& gradient, const Tensor& whole, const Tensor& begin, const Tensor& part) {
    XPU_REQUIRE(gradient.IsVector(),
                errors::InvalidArgument("Input backprop_val_grad should be a vector but received shape: ",
                                        gradient.ShapeString()));
    XPU_REQUIRE(whole.rank() == 2 && part.rank() == 2,
                errors::InvalidArgument("Input and output indices should be matrices but received shapes: ",
                                        whole.ShapeString(), " and ", part.ShapeString()));
    const int64_t entries = whole.dim(0), rank = whole.dim(1), n = part.dim(0);
    XPU_REQUIRE(n <= entries,
                errors::InvalidArgument("# rows of output_indices should be not greater than of input_indices, got ", n,
                                        " and ", entries));
    XPU_REQUIRE(
        rank == part.dim(1),
        errors::InvalidArgument("The input and output should have the same ndims: got: ", rank, " and ", part.dim(1)));
    XPU_REQUIRE(gradient.dim(0) == n,
                errors::InvalidArgument("# elements of backprop_val_grad and # rows of output_indices should match "
                                        "(#nnz of sum): got ",
                                        gradient.dim(0), " and ", n));
    XPU_REQUIRE(begin.IsVector(),
                errors::InvalidArgument("The input_start should be a vector but received shape ", begin.ShapeString()));
    XPU_REQUIRE(begin.dim(0) == rank, errors::InvalidArgument("Expected input_start to be a vector of length ", rank,
                                                              " but got length ", begin.dim(0)));
    return OkStatus();
  }

  const Program *const add_, *const last_, *const found_;
};

}  // namespace

void RegisterSparseSlice(Registry& registry) {
  const TypeList numbers = Union(kNumberTypes, {DType::kInt32}), types = Union(kAllTypes, {DType::kInt32});
  registry.Op("SparseSplit")
      .Types("T", types)
      .Host({"split_dim", "shape", "output_shape"})
      .Traits(OpTrait::kWaitsForDevice)
      .Requires(needs::SortedKeys())
      .Requires(needs::Coordinates())
      .Requires([](Needs& n) {
        n.AskProgram(PartProgram());
        n.Ask(EndsDesc(0, 0));
      })
      .Requires(needs::Gather("T", kInt))
      .Kernel<SparseSplitKernel>();
  registry.Op("SparseSlice")
      .Types("T", types)
      .Host({"shape", "start", "size", "output_shape"})
      .Traits(OpTrait::kWaitsForDevice)
      .Requires(needs::Coordinates())
      .Requires([](Needs& n) {
        n.Ask(InsideDesc(0, 1));
        n.Ask(CountDesc(0));
        n.Ask(PositionsDesc(0, 0));
      })
      .Requires(needs::Gather(kInt, kInt))
      .Requires(needs::Gather("T", kInt))
      .Kernel<SparseSliceKernel>();
  registry.Op("SparseSliceGrad")
      .Types("T", numbers)
      .Requires(needs::SortedKeys())
      .Requires(needs::Coordinates())
      .Requires(needs::Scan(ScanKind::kProd))
      .Requires([](Needs& n) {
        n.Ask(ExtentsDesc(0, 1));
        n.Ask(SameDesc(0, 1));
        n.Ask(EndsDesc(0, 0));
        n.AskProgram(SingleOpProgram(Opcode::kMinimum, kInt));
        n.AskProgram(FoundProgram());
      })
      .Requires(needs::Scatter(ScatterKind::kUpdate, "T", kInt))
      .Kernel<SparseSliceGradKernel>();
}

}  // namespace xpu
