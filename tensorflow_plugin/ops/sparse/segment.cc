// Sums and means of chosen rows, segment by segment, and their gradients: SparseSegmentSum, -Mean, -SqrtN.
#include <cstring>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

enum class Mean : uint8_t { kSum, kMean, kSqrtN };

// Rows by the number of rows in their segment, or its root, in the type that sums are computed in.
const Program* ScaleProgram(DType from, DType to, Mean mean) {
  ProgramBuilder b;
  const FormulaValue x = Cast({&b, b.Input(from)}, ComputedIn(from));
  const FormulaValue n{&b, b.Input(DType::kInt64)};
  const FormulaValue count = Cast(Maximum(n, n.Const(1)), x.type());
  const FormulaValue scaled = mean == Mean::kSum ? x : x / (mean == Mean::kMean ? count : Sqrt(count));
  b.Output(Cast(scaled, to).reg);
  return b.Build();
}

// Segment ids as scatter may see them. One that is smaller than the one before it (the input after the first) gets a
// number that no segment has.
constexpr int64_t kNotIncreasing = -(int64_t{1} << 40);
const Program* CheckedIdProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue id = Cast({&b, b.Input(type)}, DType::kInt64), before = Cast({&b, b.Input(type)}, DType::kInt64);
  b.Output(Select(id < before, id.Const(static_cast<double>(kNotIncreasing)), id).reg);
  return b.Build();
}

// The common part of the three kernels.
class SparseSegmentBase : public OpKernel {
 protected:
  SparseSegmentBase(Construction& c, Mean mean)
      : mean_(mean), type_(c.Attr<DType>("T")), wide_(ComputedIn(type_)), id_type_(c.Attr<DType>("Tsegmentids")) {
    if (!c.status().ok()) return;
    widen_ = CastProgram(type_, wide_);
    narrow_ = CastProgram(wide_, type_);
  }

  Status CheckVectors(const Tensor& indices, const Tensor& ids) const {
    XPU_REQUIRE(indices.IsVector(), errors::InvalidArgument("indices should be a vector."));
    XPU_REQUIRE(ids.IsVector(), errors::InvalidArgument("segment_ids should be a vector."));
    XPU_REQUIRE(indices.num_elements() == ids.num_elements(),
                errors::InvalidArgument("segment_ids and indices should have same size."));
    return OkStatus();
  }

  // How often each of the numbers below `rows` is among ids.
  Status CountIds(Context& ctx, const void* ids, DType id_type, int64_t n, int64_t rows, const DescribeError& explain,
                  Temporary* counts) const {
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {rows}, counts));
    XPU_RETURN_IF_ERROR(FillZero(ctx, counts->tensor()));
    Temporary one;
    XPU_RETURN_IF_ERROR(Upload(ctx, {1}, DType::kInt64, &one));
    ScatterDesc desc;
    desc.kind = ScatterKind::kAdd;
    desc.type = DType::kInt64;
    desc.index_type = id_type;
    desc.num_indices = n;
    desc.scalar_update = true;
    desc.dims = {rows};
    return LaunchExplained(ctx, desc, {ids, one.data()}, counts->data(), explain);
  }

  Status Gather(Context& ctx, const void* from, int64_t rows, int64_t inner, size_t size, const Tensor& indices,
                void* to, const DescribeError& explain) const {
    GatherDesc desc;
    desc.element_size = size;
    desc.index_type = indices.dtype();
    desc.inner = inner;
    desc.num_indices = indices.num_elements();
    desc.dims = {rows};
    return LaunchExplained(ctx, desc, {from, indices.data()}, to, explain);
  }

  // rows[index] += x, in the wide type, from zero on.
  Status Add(Context& ctx, const void* indices, DType index_type, int64_t n, int64_t inner, const void* x,
             const Tensor& rows, const DescribeError& explain) const {
    XPU_RETURN_IF_ERROR(FillZero(ctx, rows));
    ScatterDesc desc;
    desc.kind = ScatterKind::kAdd;
    desc.type = wide_;
    desc.index_type = index_type;
    desc.num_indices = n;
    desc.inner = inner;
    desc.dims = {rows.dim(0)};
    return LaunchExplained(ctx, desc, {indices, x}, rows.mutable_data(), explain);
  }

  Status Convert(Context& ctx, const Program* program, const void* from, int64_t n, void* to) const {
    ElementwiseDesc desc;
    desc.program = program;
    SetFlat(n, 1, &desc);
    return ctx.Launch(desc, {from}, {to});
  }

  // Rows by the counts of their segments.
  Status Scale(Context& ctx, const Program* program, const void* from, const Temporary& counts, int64_t rows,
               int64_t inner, void* to) const {
    ElementwiseDesc desc;
    desc.program = program;
    desc.shape = {rows, inner};
    desc.in_strides[0] = {inner, 1};
    desc.in_strides[1] = {1, 0};
    return ctx.Launch(desc, {from, counts.data()}, {to});
  }

  const Mean mean_;
  const DType type_, wide_, id_type_;
  const Program *widen_ = nullptr, *narrow_ = nullptr;
};

// out[s, ...] = sum of data[indices[i], ...] over the i with segment_ids[i] == s, by 1, their number or its root. The
// last id says how many segments there are, for which the kernel waits, unless an input does.
class SparseSegmentKernel : public SparseSegmentBase {
 public:
  SparseSegmentKernel(Construction& c, Mean mean, bool given) : SparseSegmentBase(c, mean), given_(given) {
    if (!c.status().ok()) return;
    scale_ = ScaleProgram(wide_, type_, mean);
    check_ = CheckedIdProgram(id_type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor data = ctx.input(0), indices = ctx.input(1), ids = ctx.input(2);
    int64_t rows = 0;
    if (given_) {
      const Tensor rows_arg = ctx.input(3);
      XPU_REQUIRE(rows_arg.IsScalar(),
                  errors::InvalidArgument("num_segments should be a scalar, not shape ", rows_arg.ShapeString()));
      XPU_RETURN_IF_ERROR(HostInteger(rows_arg, "num_segments", &rows));
    }
    XPU_REQUIRE(data.rank() >= 1, errors::InvalidArgument("Shape must be at least rank 1"));
    XPU_RETURN_IF_ERROR(CheckVectors(indices, ids));
    const int64_t n = ids.num_elements(), inner = Product(data.dims(), 1, data.rank());
    if (!given_ && n > 0) XPU_RETURN_IF_ERROR(ReadLastId(ctx, ids, &rows));
    XPU_REQUIRE(rows >= 0 && (given_ || n == 0 || rows > 0), errors::InvalidArgument("segment ids must be >= 0"));
    Dims shape = data.dims();
    shape[0] = rows;
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (n == 0) return FillZero(ctx, out);

    Temporary gathered, widened, checked, sums, counts;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {n, inner}, &gathered));
    XPU_RETURN_IF_ERROR(Gather(ctx, data.data(), data.dim(0), inner, SizeOf(type_), indices, gathered.data(),
                               BadDataIndex(data.dim(0))));
    const void* x = gathered.data();
    if (wide_ != type_) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, {n, inner}, &widened));
      XPU_RETURN_IF_ERROR(Convert(ctx, widen_, x, n * inner, widened.data()));
      x = widened.data();
    }
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &checked));
    XPU_RETURN_IF_ERROR(CheckIds(ctx, ids, &checked));
    const DescribeError bad_id = BadId(rows);
    // The sum alone needs no counts, but the ids are checked where rows have no elements, too.
    if (mean_ != Mean::kSum || inner == 0) {
      XPU_RETURN_IF_ERROR(CountIds(ctx, checked.data(), DType::kInt64, n, rows, bad_id, &counts));
    }
    if (inner == 0) return OkStatus();
    const bool direct = mean_ == Mean::kSum && wide_ == type_;
    if (!direct) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, {rows, inner}, &sums));
    const Tensor to = direct ? out : sums.tensor();
    XPU_RETURN_IF_ERROR(Add(ctx, checked.data(), DType::kInt64, n, inner, x, to, bad_id));
    if (direct) return OkStatus();
    if (mean_ == Mean::kSum) return Convert(ctx, narrow_, sums.data(), rows * inner, out.mutable_data());
    return Scale(ctx, scale_, sums.data(), counts, rows, inner, out.mutable_data());
  }

 private:
  Status ReadLastId(Context& ctx, const Tensor& ids, int64_t* rows) const {
    char bytes[8];
    const size_t size = SizeOf(id_type_);
    const char* last = static_cast<const char*>(ids.data()) + ids.bytes() - size;
    XPU_RETURN_IF_ERROR(ctx.CopyToHost(bytes, last, size));
    *rows = IntegersAt(bytes, id_type_, 1)[0] + 1;
    return OkStatus();
  }

  Status CheckIds(Context& ctx, const Tensor& ids, Temporary* checked) const {
    const int64_t n = ids.num_elements();
    const char* first = static_cast<const char*>(ids.data());
    ElementwiseDesc desc;
    desc.program = check_;
    SetFlat(1, 2, &desc);
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {first, first}, {checked->data()}));
    if (n == 1) return OkStatus();
    SetFlat(n - 1, 2, &desc);
    return ctx.Launch(desc, {first + SizeOf(id_type_), first}, {static_cast<int64_t*>(checked->data()) + 1});
  }

  static DescribeError BadDataIndex(int64_t rows) {
    return [rows](const Status& failure, const std::vector<int64_t>& indices) -> Status {
      for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= 0 && indices[i] < rows) continue;
        return errors::InvalidArgument("Bad: indices[", i, "] == ", indices[i], " out of range [0, ", rows, ")");
      }
      return failure;
    };
  }
  static DescribeError BadId(int64_t rows) {
    return [rows](const Status& failure, const std::vector<int64_t>& ids) -> Status {
      if (ids.back() >= rows) return errors::InvalidArgument("segment ids must be < num_segments");
      for (int64_t id : ids) {
        if (id >= 0) continue;  // one beyond the last, which is followed by a smaller one
        if (id == kNotIncreasing) return errors::InvalidArgument("segment ids are not increasing");
        return errors::InvalidArgument("Segment id ", id, " out of range [0, ", rows,
                                       "), possibly because 'segment_ids' input is not sorted.");
      }
      return failure;
    };
  }

  const bool given_;
  const Program *scale_ = nullptr, *check_ = nullptr;
};

// out[indices[i], ...] = sum of grad[segment_ids[i], ...], each by 1, the number of its segment's ids or its root. The
// second version gives those rows alone that something is added to, and their numbers, for which it waits.
class SparseSegmentGradKernel : public SparseSegmentBase {
 public:
  SparseSegmentGradKernel(Construction& c, Mean mean, bool compact) : SparseSegmentBase(c, mean), compact_(compact) {
    if (!c.status().ok()) return;
    scale_ = ScaleProgram(type_, wide_, mean);
  }

  Status Compute(Context& ctx) override {
    const Tensor grad = ctx.input(0), indices = ctx.input(1), ids = ctx.input(2), size_arg = ctx.input(3);
    XPU_RETURN_IF_ERROR(CheckVectors(indices, ids));
    XPU_REQUIRE(size_arg.IsScalar(), errors::InvalidArgument("output_dim0 should be a scalar."));
    int64_t size;
    XPU_RETURN_IF_ERROR(HostInteger(size_arg, "output_dim0", &size));
    XPU_REQUIRE(grad.rank() >= 1, errors::InvalidArgument("Index must be less than 0, got 0"));
    XPU_REQUIRE(size >= 0, errors::InvalidArgument("Expected a non-negative size, got ", size));
    const int64_t n = ids.num_elements(), segments = grad.dim(0), inner = Product(grad.dims(), 1, grad.rank());
    const DescribeError bad_id = [segments](const Status& failure, const std::vector<int64_t>& values) -> Status {
      if (values.back() >= segments) return errors::InvalidArgument("Invalid number of segments");
      const int64_t bad = FirstOutside(values, segments);
      return bad < 0 ? failure
                     : errors::InvalidArgument("Segment id ", values[bad], " out of range [0, ", segments, ").");
    };
    const DescribeError bad_index = [size](const Status& failure, const std::vector<int64_t>& values) -> Status {
      const int64_t bad = FirstOutside(values, size);
      return bad < 0 ? failure : errors::InvalidArgument("Index ", values[bad], " out of range [0, ", size, ").");
    };

    Dims shape = grad.dims();
    Tensor out, rows_out;
    Rows rows = {indices.data(), indices.dtype(), size};
    Temporary scaled, counts, gathered, sums;
    if (n > 0 && (compact_ || size > 0)) {
      if (mean_ != Mean::kSum) XPU_RETURN_IF_ERROR(CountIds(ctx, ids.data(), id_type_, n, segments, bad_id, &counts));
      // For the sum, and for segments without elements, the gather alone checks the ids.
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, {segments, inner}, &scaled));
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, {n, inner}, &gathered));
      if (mean_ != Mean::kSum) {
        XPU_RETURN_IF_ERROR(Scale(ctx, scale_, grad.data(), counts, segments, inner, scaled.data()));
      } else {
        XPU_RETURN_IF_ERROR(Convert(ctx, widen_, grad.data(), segments * inner, scaled.data()));
      }
      XPU_RETURN_IF_ERROR(Gather(ctx, scaled.data(), segments, inner, SizeOf(wide_), ids, gathered.data(), bad_id));
      if (compact_) XPU_RETURN_IF_ERROR(Compact(ctx, indices, bad_index, &rows));
    } else if (compact_) {
      rows.count = 0;
    }
    shape[0] = rows.count;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (compact_) XPU_RETURN_IF_ERROR(GiveRows(ctx, rows));
    if (n == 0 || out.num_elements() == 0) return FillZero(ctx, out);
    if (wide_ != type_) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(wide_, {rows.count, inner}, &sums));
    const Tensor to = wide_ != type_ ? sums.tensor() : out;
    XPU_RETURN_IF_ERROR(Add(ctx, rows.indices, rows.type, n, inner, gathered.data(), to, bad_index));
    return wide_ != type_ ? Convert(ctx, narrow_, sums.data(), rows.count * inner, out.mutable_data()) : OkStatus();
  }

 private:
  // Where in the output each gathered row goes.
  struct Rows {
    const void* indices;
    DType type;
    int64_t count;
    // For the compact form: the numbers of indices, the indices in order, and which of these are the first of their
    // kind.
    Temporary numbers, sorted, firsts;
  };

  static int64_t FirstOutside(const std::vector<int64_t>& values, int64_t size) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= size) return static_cast<int64_t>(i);
    }
    return -1;
  }

  Status Compact(Context& ctx, const Tensor& indices, const DescribeError& bad_index, Rows* rows) const {
    const int64_t n = indices.num_elements();
    XPU_RETURN_IF_ERROR(Gather(ctx, nullptr, rows->count, 0, 1, indices, nullptr, bad_index));  // checks them
    Temporary positions, sorted_numbers, count;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(indices.dtype(), {n}, &rows->sorted));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &positions));
    SortDesc sort;
    sort.type = indices.dtype();
    sort.index_type = DType::kInt64;
    sort.n = sort.k = n;
    XPU_RETURN_IF_ERROR(ctx.Launch(sort, {indices.data()}, {rows->sorted.data(), positions.data()}));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &sorted_numbers));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &rows->firsts));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {1}, &count));
    UniqueDesc unique;
    unique.type = indices.dtype();
    unique.index_type = DType::kInt64;
    unique.n = n;
    XPU_RETURN_IF_ERROR(
        ctx.Launch(unique, {rows->sorted.data()}, {sorted_numbers.data(), rows->firsts.data(), count.data()}));
    // Back to where each index came from.
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {n}, &rows->numbers));
    ScatterDesc back;
    back.type = back.index_type = DType::kInt64;
    back.num_indices = n;
    back.dims = {n};
    XPU_RETURN_IF_ERROR(ctx.Launch(back, {positions.data(), sorted_numbers.data()}, {rows->numbers.data()}));
    rows->indices = rows->numbers.data();
    rows->type = DType::kInt64;
    return ctx.CopyToHost(&rows->count, count.data(), sizeof(rows->count));
  }

  static Status GiveRows(Context& ctx, const Rows& rows) {
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, {rows.count}, &out));
    if (rows.count == 0) return OkStatus();
    GatherDesc desc;
    desc.element_size = SizeOf(out.dtype());
    desc.num_indices = rows.count;
    desc.dims = {rows.sorted.tensor().num_elements()};
    return ctx.Launch(desc, {rows.sorted.data(), rows.firsts.data()}, {out.mutable_data()});
  }

  const bool compact_;
  const Program* scale_ = nullptr;
};

void Requires(Needs& n, Mean mean) {
  const DType type = n.type("T"), wide = ComputedIn(type), id = n.type("Tsegmentids"), index = n.type("Tidx");
  for (DType t : {type, wide}) {
    needs::Gather(t, index)(n);
    needs::Gather(t, id)(n);
  }
  for (DType t : {id, index, DType::kInt64}) {
    needs::Scatter(ScatterKind::kAdd, wide, t)(n);
    needs::Scatter(ScatterKind::kAdd, DType::kInt64, t)(n);
  }
  n.AskProgram(CheckedIdProgram(id));
  n.AskProgram(ScaleProgram(wide, type, mean));
  n.AskProgram(ScaleProgram(type, wide, mean));
  n.AskProgram(CastProgram(type, wide));
  n.AskProgram(CastProgram(wide, type));
}

void RequiresCompact(Needs& n) {
  SortDesc sort;
  sort.type = n.type("Tidx");
  sort.index_type = DType::kInt64;
  n.Ask(sort);
  UniqueDesc unique;
  unique.type = n.type("Tidx");
  unique.index_type = DType::kInt64;
  n.Ask(unique);
  needs::Scatter(ScatterKind::kUpdate, DType::kInt64, DType::kInt64)(n);
}

}  // namespace

void RegisterSparseSegment(Registry& registry) {
  const TypeList int_types = {DType::kInt32, DType::kInt64};
  const struct {
    const char *op, *with_rows, *gradient, *compact;
    Mean mean;
  } table[] = {{"SparseSegmentSum", "SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad", "SparseSegmentSumGradV2",
                Mean::kSum},
               {"SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad",
                "SparseSegmentMeanGradV2", Mean::kMean},
               {"SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGrad",
                "SparseSegmentSqrtNGradV2", Mean::kSqrtN}};
  for (const auto& row : table) {
    const Mean mean = row.mean;
    const auto begin = [&](const char* op) {
      auto entry = registry.Op(op);
      entry.Types("T", kFloatTypes).Types("Tidx", int_types).Types("Tsegmentids", int_types);
      entry.Requires([mean](Needs& n) { Requires(n, mean); });
      return entry;
    };
    begin(row.op).Traits(OpTrait::kWaitsForDevice).Kernel<SparseSegmentKernel>(mean, false);
    begin(row.with_rows).Host({"num_segments"}).Kernel<SparseSegmentKernel>(mean, true);
    begin(row.gradient).Host({"output_dim0"}).Kernel<SparseSegmentGradKernel>(mean, false);
    begin(row.compact)
        .Host({"dense_output_dim0"})
        .Traits(OpTrait::kWaitsForDevice)
        .Requires(&RequiresCompact)
        .Kernel<SparseSegmentGradKernel>(mean, true);
  }
}

}  // namespace xpu
