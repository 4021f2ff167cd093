// Reductions of the rows that share a segment id: UnsortedSegment* and Segment*.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// The value of a segment without rows: 0, 1, or the far end of T's range.
template <typename T>
T Identity(ScatterKind kind) {
  if constexpr (!IsComplex(DTypeOf<T>::value) && DTypeOf<T>::value != DType::kBool) {
    using C = ComputeTypeT<T>;
    C highest = std::numeric_limits<C>::max(), lowest = std::numeric_limits<C>::lowest();
    // The greatest finite values of the 16-bit types.
    if constexpr (std::is_same_v<T, Half>) highest = 65504.0f, lowest = -65504.0f;
    if constexpr (std::is_same_v<T, BFloat16>) highest = 0x1.fep127f, lowest = -0x1.fep127f;
    if (kind == ScatterKind::kMin) return static_cast<T>(highest);
    if (kind == ScatterKind::kMax) return static_cast<T>(lowest);
    return static_cast<T>(static_cast<C>(kind == ScatterKind::kMul ? 1 : 0));
  } else {
    return static_cast<T>(kind == ScatterKind::kMul ? 1 : 0);
  }
}

Status FillIdentity(Context& ctx, ScatterKind kind, const Tensor& out) {
  char bytes[16] = {};
  VisitType(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T value = Identity<T>(kind);
    std::memcpy(bytes, &value, sizeof(value));
  });
  return Fill(ctx, bytes, out);
}

ScatterDesc SegmentDesc(ScatterKind kind, const Tensor& data, const Tensor& ids, int64_t rows) {
  ScatterDesc desc;
  desc.kind = kind;
  desc.type = data.dtype();
  desc.index_type = ids.dtype();
  desc.num_indices = ids.num_elements();
  desc.inner = Product(data.dims(), ids.rank(), data.rank());
  desc.dims = {rows};
  return desc;
}

// Sums and products of half and bfloat16 are those of floats, rounded at the end: a scatter rounds at each of its
// steps.
class WideRows {
 public:
  WideRows(DType type, ScatterKind kind)
      : wide_(IsReducedFloat(type) && (kind == ScatterKind::kAdd || kind == ScatterKind::kMul)) {
    if (!wide_) return;
    widen_ = CastProgram(type, DType::kFloat);
    narrow_ = CastProgram(DType::kFloat, type);
  }

  // The places of one computation's rows and results.
  struct Buffers {
    Tensor data, out;
    Temporary wide_data, wide_out;
  };

  Status Begin(Context& ctx, const Tensor& data, const Tensor& out, Buffers* b) const {
    b->data = data;
    b->out = out;
    if (!wide_) return OkStatus();
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, data.dims(), &b->wide_data));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, out.dims(), &b->wide_out));
    XPU_RETURN_IF_ERROR(Run(ctx, widen_, data, b->wide_data.data()));
    b->data = b->wide_data.tensor();
    b->out = b->wide_out.tensor();
    return OkStatus();
  }
  Status Finish(Context& ctx, const Buffers& b, const Tensor& out) const {
    return wide_ ? Run(ctx, narrow_, b.out, out.mutable_data()) : OkStatus();
  }

 private:
  static Status Run(Context& ctx, const Program* program, const Tensor& from, void* to) {
    ElementwiseDesc desc;
    desc.program = program;
    SetFlat(from.num_elements(), 1, &desc);
    return ctx.Launch(desc, {from.data()}, {to});
  }

  const bool wide_;
  const Program *widen_ = nullptr, *narrow_ = nullptr;
};

// out[s, ...] = reduction of data[i..., ...] over the i with segment_ids[i...] == s; negative ids are passed over.
class UnsortedSegmentKernel : public OpKernel {
 public:
  UnsortedSegmentKernel(Construction& c, ScatterKind kind) : kind_(kind), rows_(c.Attr<DType>("T"), kind) {}

  Status Compute(Context& ctx) override {
    const Tensor data = ctx.input(0), ids = ctx.input(1), rows_arg = ctx.input(2);
    XPU_REQUIRE(rows_arg.IsScalar(),
                errors::InvalidArgument("num_segments should be a scalar, not shape ", rows_arg.ShapeString()));
    int64_t rows;
    XPU_RETURN_IF_ERROR(HostInteger(rows_arg, "num_segments", &rows));
    XPU_REQUIRE(rows >= 0, errors::InvalidArgument("Input num_segments == ", rows, " must not be negative."));
    bool starts = data.rank() >= ids.rank();
    for (int i = 0; starts && i < ids.rank(); ++i) starts = data.dim(i) == ids.dim(i);
    XPU_REQUIRE(starts, errors::InvalidArgument("data.shape = ", data.ShapeString(),
                                                " does not start with segment_ids.shape = ", ids.ShapeString()));
    Dims shape = {rows};
    Append(data.dims(), ids.rank(), data.rank(), &shape);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    WideRows::Buffers b;
    XPU_RETURN_IF_ERROR(rows_.Begin(ctx, data, out, &b));
    if (out.num_elements() > 0) XPU_RETURN_IF_ERROR(FillIdentity(ctx, kind_, b.out));
    ScatterDesc desc = SegmentDesc(kind_, b.data, ids, rows);
    desc.skip_negative = true;
    if (desc.num_indices == 0 || desc.inner == 0) return rows_.Finish(ctx, b, out);
    IndexNaming naming;
    naming.what = "segment_ids";
    naming.range = " is out of range [0, ";
    naming.skip_negative = true;
    XPU_RETURN_IF_ERROR(
        LaunchIndexed(ctx, desc, {ids.data(), b.data.data()}, b.out.mutable_data(), ids, BadIndices::kError, naming));
    return rows_.Finish(ctx, b, out);
  }

 private:
  const ScatterKind kind_;
  const WideRows rows_;
};

// The same with sorted ids, whose last one says how many segments there are: the host has to look at them.
class SegmentKernel : public OpKernel {
 public:
  SegmentKernel(Construction& c, ScatterKind kind, bool mean)
      : kind_(kind), mean_(mean), rows_(c.Attr<DType>("T"), kind) {
    if (!mean) return;
    const DType type = ComputedIn(c.Attr<DType>("T"));
    ProgramBuilder b;
    const auto sum = b.Input(type), count = b.Cast(b.Input(DType::kInt64), type);
    b.Output(b.Apply(Opcode::kDiv, sum, count));
    divide_ = b.Build();
  }

  Status Compute(Context& ctx) override {
    const Tensor data = ctx.input(0), ids = ctx.input(1);
    XPU_REQUIRE(ids.IsVector(), errors::InvalidArgument("segment_ids should be a vector."));
    XPU_REQUIRE(data.rank() >= 1,
                errors::InvalidArgument("input must be at least rank 1, got shape ", data.ShapeString()));
    XPU_REQUIRE(ids.dim(0) == data.dim(0),
                errors::InvalidArgument("segment_ids should be the same size as dimension 0 of input."));
    std::vector<int64_t> values;
    XPU_RETURN_IF_ERROR(FetchIntegers(ctx, ids, &values));
    XPU_REQUIRE(std::is_sorted(values.begin(), values.end()),
                errors::InvalidArgument("segment ids are not increasing"));
    const int64_t rows = values.empty() ? 0 : values.back() + 1;
    XPU_REQUIRE(rows >= 0, errors::InvalidArgument("segment ids must be >= 0"));
    XPU_REQUIRE(values.empty() || values[0] >= 0,
                errors::InvalidArgument("Segment id ", values[0], " out of range [0, ", rows,
                                        "), possibly because 'segment_ids' input is not sorted."));
    Dims shape = data.dims();
    shape[0] = rows;
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &out));
    if (out.num_elements() == 0) return OkStatus();

    WideRows::Buffers b;
    XPU_RETURN_IF_ERROR(rows_.Begin(ctx, data, out, &b));
    ScatterDesc desc = SegmentDesc(kind_, b.data, ids, rows);
    if (kind_ == ScatterKind::kMin || kind_ == ScatterKind::kMax) {
      // Segments without rows hold 0, the others start from one of their rows.
      XPU_RETURN_IF_ERROR(FillZero(ctx, out));
      desc.kind = ScatterKind::kUpdate;
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {ids.data(), b.data.data()}, {b.out.mutable_data()}));
      desc.kind = kind_;
    } else {
      XPU_RETURN_IF_ERROR(FillIdentity(ctx, kind_, b.out));
    }
    XPU_RETURN_IF_ERROR(ctx.Launch(desc, {ids.data(), b.data.data()}, {b.out.mutable_data()}));
    if (mean_) XPU_RETURN_IF_ERROR(Divide(ctx, values, b.out));
    return rows_.Finish(ctx, b, out);
  }

 private:
  Status Divide(Context& ctx, const std::vector<int64_t>& ids, const Tensor& out) {
    std::vector<int64_t> counts(out.dim(0), 0);
    for (int64_t id : ids) ++counts[id];
    for (int64_t& c : counts) c = std::max<int64_t>(c, 1);
    Temporary device;
    XPU_RETURN_IF_ERROR(Upload(ctx, counts, DType::kInt64, &device));
    ElementwiseDesc desc;
    desc.program = divide_;
    desc.shape = {out.dim(0), out.num_elements() / out.dim(0)};
    desc.in_strides[0] = DenseStrides(desc.shape);
    desc.in_strides[1] = {1, 0};
    return ctx.Launch(desc, {out.data(), device.data()}, {out.mutable_data()});
  }

  const ScatterKind kind_;
  const bool mean_;
  const WideRows rows_;
  const Program* divide_ = nullptr;
};

// Narrow types are gathered up in float.
Need Scatters(ScatterKind kind, needs::TypeRef index_type) {
  return [=](Needs& n) {
    needs::Scatter(kind, "T", index_type)(n);
    if (!IsReducedFloat(n.type("T"))) return;
    needs::Scatter(kind, DType::kFloat, index_type)(n);
    needs::Cast("T", DType::kFloat)(n);
    needs::Cast(DType::kFloat, "T")(n);
  };
}

}  // namespace

void RegisterSegment(Registry& registry) {
  const TypeList index_types = {DType::kInt32, DType::kInt64};
  struct Row {
    const char* name;
    ScatterKind kind;
    const TypeList& types;
  };
  for (const Row& row : {Row{"UnsortedSegmentSum", ScatterKind::kAdd, kNumberTypes},
                         {"UnsortedSegmentProd", ScatterKind::kMul, kNumberTypes},
                         {"UnsortedSegmentMin", ScatterKind::kMin, kRealTypes},
                         {"UnsortedSegmentMax", ScatterKind::kMax, kRealTypes}}) {
    registry.Op(row.name)
        .Types("T", row.types)
        .Types("Tindices", index_types)
        .Host({"num_segments"})
        .AllHostFor(DType::kInt32, {"data", "segment_ids", "output"})
        .Requires(Scatters(row.kind, "Tindices"))
        .Kernel<UnsortedSegmentKernel>(row.kind);
  }
  for (const Row& row : {Row{"SegmentSum", ScatterKind::kAdd, kNumberTypes},
                         {"SegmentProd", ScatterKind::kMul, kNumberTypes},
                         {"SegmentMin", ScatterKind::kMin, kRealTypes},
                         {"SegmentMax", ScatterKind::kMax, kRealTypes}}) {
    registry.Op(row.name)
        .Types("T", row.types)
        .AllHostFor(DType::kInt32, {"data", "segment_ids", "output"})
        .Traits(OpTrait::kWaitsForDevice)
        .Requires(Scatters(row.kind, DType::kInt32))
        .Requires(Scatters(row.kind, DType::kInt64))
        .Kernel<SegmentKernel>(row.kind, false);
  }
  registry.Op("SegmentMean")
      .Types("T", Union(kFloatTypes, kComplexTypes))
      .Traits(OpTrait::kWaitsForDevice)
      .Requires(Scatters(ScatterKind::kAdd, DType::kInt32))
      .Requires(Scatters(ScatterKind::kAdd, DType::kInt64))
      .Requires(needs::Cast(DType::kInt64, "T"))
      .Requires(Opcode::kDiv)
      .Kernel<SegmentKernel>(ScatterKind::kAdd, true);
}

}  // namespace xpu
