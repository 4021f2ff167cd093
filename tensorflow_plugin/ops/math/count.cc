// How often numbers occur: Bincount, DenseBincount, HistogramFixedWidth. Each element becomes the index of its bin, and
// a scatter counts. An element without a bin gets an index that the scatter passes over (-1), or one that it refuses.
#include "tensorflow_plugin/ops/arrays/indexing.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

// Counts indices into all of `out`; with weights, adds those. Floats are counted as integers, which are exact and may
// be added up in any order.
Status Count(Context& ctx, ScatterKind kind, const Temporary& indices, const void* weights, const Tensor& out,
             const DescribeError& explain) {
  const int64_t n = indices.tensor().num_elements();
  if (n == 0) return FillZero(ctx, out);
  const bool as_integers = weights == nullptr && IsFloating(out.dtype());
  Temporary one, integers;
  if (as_integers) XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, out.dims(), &integers));
  const Tensor counts = as_integers ? integers.tensor() : out;
  XPU_RETURN_IF_ERROR(FillZero(ctx, counts));
  ScatterDesc desc;
  desc.kind = kind;
  desc.type = counts.dtype();
  desc.index_type = indices.tensor().dtype();
  desc.num_indices = n;
  desc.dims = {out.num_elements()};
  desc.skip_negative = true;
  desc.scalar_update = weights == nullptr;
  if (weights == nullptr) {
    XPU_RETURN_IF_ERROR(Upload(ctx, {1}, counts.dtype(), &one));
    weights = one.data();
  }
  XPU_RETURN_IF_ERROR(LaunchExplained(ctx, desc, {indices.data(), weights}, counts.mutable_data(), explain));
  if (!as_integers) return OkStatus();
  ElementwiseDesc cast;
  cast.program = CastProgram(DType::kInt64, out.dtype());
  SetFlat(out.num_elements(), 1, &cast);
  return ctx.Launch(cast, {counts.data()}, {out.mutable_data()});
}

// For elements x that all have the same bins. A negative one gets the index beyond.
const Program* BinProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue x{&b, b.Input(type)}, size{&b, b.Input(type)};
  b.Output(Select(x < x.Const(0), size, Select(x < size, x, x.Const(-1))).reg);
  return b.Build();
}

// For rows of elements x: a row has `size` bins, and its first one has the index `offset`. A negative element gets an
// index beyond those of all rows, `total` or more.
const Program* BinOfRowProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue x = Cast({&b, b.Input(type)}, DType::kInt64);
  const FormulaValue offset{&b, b.Input(DType::kInt64)}, size{&b, b.Input(DType::kInt64)},
      total{&b, b.Input(DType::kInt64)};
  const FormulaValue bin = Select(x < size, offset + x, x.Const(-1));
  b.Output(Select(x < x.Const(0), total - x.Const(1) - x, bin).reg);
  return b.Build();
}

class BincountKernel : public OpKernel {
 public:
  BincountKernel(Construction& c, bool dense) : dense_(dense) {
    type_ = dense ? c.Attr<DType>("Tidx") : DType::kInt32;
    if (dense) binary_ = c.Attr<bool>("binary_output");
    if (!c.status().ok()) return;
    bins_ = BinProgram(type_);
    bins_of_rows_ = BinOfRowProgram(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), size_arg = ctx.input(1), weights = ctx.input(2);
    XPU_REQUIRE(!dense_ || x.rank() <= 2,
                errors::InvalidArgument("Shape must be at most rank 2 but is rank ", x.rank()));
    XPU_REQUIRE(size_arg.IsScalar(), errors::InvalidArgument("Shape must be rank 0 but is rank ", size_arg.rank()));
    XPU_REQUIRE(!dense_ || weights.num_elements() == 0 || weights.dims() == x.dims(),
                errors::InvalidArgument("`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which "
                                        "case it acts as all weights equal to 1. Received ",
                                        weights.ShapeString()));
    int64_t size;
    XPU_RETURN_IF_ERROR(HostInteger(size_arg, "size", &size));
    XPU_REQUIRE(size >= 0, errors::InvalidArgument("size (", size, ") must be non-negative"));
    XPU_REQUIRE(weights.num_elements() == 0 || weights.num_elements() == x.num_elements(),
                errors::InvalidArgument("Input indices and weights must have the same size."));
    const bool by_row = dense_ && x.rank() == 2;
    const int64_t rows = by_row ? x.dim(0) : 1, columns = by_row ? x.dim(1) : x.num_elements(), total = rows * size;
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, by_row ? Dims{rows, size} : Dims{size}, &out));

    const DType index_type = by_row ? DType::kInt64 : type_;
    std::vector<int64_t> numbers = {size, total};
    for (int64_t r = 0; by_row && r < rows; ++r) numbers.push_back(r * size);
    Temporary uploaded, indices;
    XPU_RETURN_IF_ERROR(Upload(ctx, numbers, index_type, &uploaded));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(index_type, x.dims(), &indices));
    ElementwiseDesc bins;
    if (by_row) {
      const int64_t* const n = static_cast<const int64_t*>(uploaded.data());
      bins.program = bins_of_rows_;
      bins.shape = {rows, columns};
      bins.in_strides[0] = {columns, 1};
      bins.in_strides[1] = {1, 0};
      bins.in_strides[2] = bins.in_strides[3] = {0, 0};
      XPU_RETURN_IF_ERROR(ctx.Launch(bins, {x.data(), n + 2, n, n + 1}, {indices.data()}));
    } else {
      bins.program = bins_;
      SetFlat(columns, 1, &bins);
      bins.in_strides[1] = {0};
      XPU_RETURN_IF_ERROR(ctx.Launch(bins, {x.data(), uploaded.data()}, {indices.data()}));
    }
    const DescribeError explain = [by_row, total](const Status& failure, const std::vector<int64_t>& values) {
      if (!by_row) return errors::InvalidArgument("Input arr must be non-negative!");
      for (int64_t v : values) {
        if (v < total) continue;
        return errors::InvalidArgument("Input 'in' must be non-negative! Negative input value found: ", total - 1 - v);
      }
      return failure;
    };
    const bool weighted = weights.num_elements() > 0 && !binary_;
    return Count(ctx, binary_ ? ScatterKind::kUpdate : ScatterKind::kAdd, indices, weighted ? weights.data() : nullptr,
                 out, explain);
  }

 private:
  const bool dense_;
  bool binary_ = false;
  DType type_;
  const Program *bins_ = nullptr, *bins_of_rows_ = nullptr;
};

// In the steps in which the CPU computes them: the distance from the lowest value in the type itself, the rest in
// double.
const Program* HistogramProgram(DType type) {
  ProgramBuilder b;
  const FormulaValue x{&b, b.Input(type)}, lowest{&b, b.Input(type)};
  const FormulaValue step{&b, b.Input(DType::kDouble)}, last{&b, b.Input(DType::kDouble)},
      beyond{&b, b.Input(DType::kInt32)};
  const FormulaValue distance = {&b, b.Round((Maximum(x, lowest) - lowest).reg)};
  const FormulaValue bin = Cast(Minimum(Cast(distance, DType::kDouble) / step, last), DType::kInt32);
  b.Output(Select(Apply(Opcode::kIsNan, x), beyond, bin).reg);
  return b.Build();
}

class HistogramKernel : public OpKernel {
 public:
  explicit HistogramKernel(Construction& c) : type_(c.Attr<DType>("T")) {
    if (c.status().ok()) bins_ = HistogramProgram(type_);
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), range = ctx.input(1), nbins_arg = ctx.input(2);
    XPU_REQUIRE(range.IsVector(), errors::InvalidArgument("value_range should be a vector."));
    XPU_REQUIRE(range.num_elements() == 2, errors::InvalidArgument("value_range should be a vector of 2 elements."));
    XPU_REQUIRE(nbins_arg.IsScalar(), errors::InvalidArgument("nbins should be a scalar."));
    int64_t nbins;
    XPU_RETURN_IF_ERROR(HostInteger(nbins_arg, "nbins", &nbins));
    double low = 0, high = 0, width = 0;
    VisitType(type_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (IsFloating(DTypeOf<T>::value)) {
        using C = ComputeTypeT<T>;
        const C a = static_cast<C>(range.host<T>()[0]), b = static_cast<C>(range.host<T>()[1]);
        low = static_cast<double>(a), high = static_cast<double>(b);
        width = static_cast<double>(static_cast<C>(static_cast<T>(b - a)));
      }
    });
    XPU_REQUIRE(low < high, errors::InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but "
                                                    "got '[",
                                                    low, ", ", high, "]'"));
    XPU_REQUIRE(nbins > 0, errors::InvalidArgument("nbins should be a positive number, but got '", nbins, "'"));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, {nbins}, &out));

    const int64_t n = x.num_elements();
    Temporary lowest, scale, beyond, indices;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type_, {1}, &lowest));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(lowest.data(), range.data(), SizeOf(type_)));
    const double numbers[] = {width / static_cast<double>(nbins), static_cast<double>(nbins - 1)};
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kDouble, {2}, &scale));
    XPU_RETURN_IF_ERROR(ctx.CopyFromHost(scale.data(), numbers, sizeof(numbers)));
    XPU_RETURN_IF_ERROR(Upload(ctx, {nbins}, DType::kInt32, &beyond));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt32, {n}, &indices));
    ElementwiseDesc bins;
    bins.program = bins_;
    SetFlat(n, 1, &bins);
    for (int i = 1; i < 5; ++i) bins.in_strides[i] = {0};
    const double* const s = static_cast<const double*>(scale.data());
    XPU_RETURN_IF_ERROR(ctx.Launch(bins, {x.data(), lowest.data(), s, s + 1, beyond.data()}, {indices.data()}));
    static const DescribeError has_nan = [](const Status&, const std::vector<int64_t>&) {
      return errors::InvalidArgument("Histogram values must not contain NaN");
    };
    return Count(ctx, ScatterKind::kAdd, indices, nullptr, out, has_nan);
  }

 private:
  const DType type_;
  const Program* bins_ = nullptr;
};

// The needs of a count of elements of this type.
void Counts(Needs& n, DType type) {
  n.AskProgram(BinProgram(type));
  n.AskProgram(BinOfRowProgram(type));
  for (ScatterKind kind : {ScatterKind::kAdd, ScatterKind::kUpdate}) {
    for (DType index_type : {type, DType::kInt64}) {
      needs::Scatter(kind, "T", index_type)(n);
      needs::Scatter(kind, DType::kInt64, index_type)(n);
    }
  }
  needs::Cast(DType::kInt64, "T")(n);
}

}  // namespace

void RegisterCount(Registry& registry) {
  // int32 is in device memory, as on GPUs.
  const TypeList counts = {DType::kFloat, DType::kDouble, DType::kInt32, DType::kInt64};
  const TypeList int_types = {DType::kInt32, DType::kInt64};
  registry.Op("Bincount")
      .Types("T", counts)
      .Host({"size"})
      .Requires([](Needs& n) { Counts(n, DType::kInt32); })
      .Kernel<BincountKernel>(false);
  registry.Op("DenseBincount")
      .Types("T", counts)
      .Types("Tidx", int_types)
      .Host({"size"})
      .Requires([](Needs& n) { Counts(n, n.type("Tidx")); })
      .Kernel<BincountKernel>(true);
  registry.Op("HistogramFixedWidth")
      .Types("T", {DType::kFloat, DType::kDouble})
      .Types("dtype", int_types)
      .Host({"value_range", "nbins"})
      .Requires([](Needs& n) { n.AskProgram(HistogramProgram(n.type("T"))); })
      .Requires(needs::Scatter(ScatterKind::kAdd, "dtype", DType::kInt32))
      .Kernel<HistogramKernel>();
}

}  // namespace xpu
