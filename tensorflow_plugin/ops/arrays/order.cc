// Ops that depend on the order of elements: TopK, InTopK, NthElement, and the place of numbers in sorted rows.
#include <algorithm>
#include <limits>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

SortDesc SortOfRows(const Tensor& x, int64_t k, DType index_type, bool descending) {
  SortDesc desc;
  desc.type = x.dtype();
  desc.index_type = index_type;
  desc.rows = Product(x.dims(), 0, x.rank() - 1);
  desc.n = x.dim(x.rank() - 1);
  desc.k = k;
  desc.descending = descending;
  return desc;
}

Need Sorts(needs::TypeRef type, needs::TypeRef index_type) {
  return [=](Needs& n) {
    SortDesc desc;
    desc.type = type.In(n);
    desc.index_type = index_type.In(n);
    n.Ask(desc);
  };
}

// The k largest or smallest elements of each row and their positions. They are sorted even if that is not asked for; k
// is an input or an attribute.
class TopKKernel : public OpKernel {
 public:
  explicit TopKKernel(Construction& c) {
    if (c.HasAttr("reduction_dimension")) {  // ApproxTopK; what is exact is approximate, too
      k_ = c.Attr<int64_t>("k");
      largest_ = c.Attr<bool>("is_max_k");
      axis_ = c.Attr<int64_t>("reduction_dimension");
    }
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    int64_t k = k_;
    if (ctx.num_inputs() > 1) {
      const Tensor k_arg = ctx.input(1);
      XPU_REQUIRE(k_arg.IsScalar(), errors::InvalidArgument("k must be scalar, got shape ", k_arg.ShapeString()));
      k = IntegersAt(k_arg.data(), k_arg.dtype(), 1)[0];
    }
    XPU_REQUIRE(k >= 0, errors::InvalidArgument("Need k >= 0, got ", k));
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("input must be >= 1-D, got shape ", x.ShapeString()));
    XPU_REQUIRE(axis_ == -1 || axis_ == x.rank() - 1,
                errors::InvalidArgument("reduction_dimension must be the last dimension of ", x.ShapeString(), ", got ",
                                        axis_));
    XPU_REQUIRE(x.dim(x.rank() - 1) >= k, errors::InvalidArgument("input must have at least k columns. Had ",
                                                                  x.dim(x.rank() - 1), ", needed ", k));
    Dims shape = x.dims();
    shape[shape.rank() - 1] = k;
    Tensor values, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &values));
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape, &positions));
    return ctx.Launch(SortOfRows(x, k, positions.dtype(), largest_), {x.data()},
                      {values.mutable_data(), positions.mutable_data()});
  }

 private:
  int64_t k_ = 0, axis_ = -1;
  bool largest_ = true;
};

// The element that would be at place n of each row, were it sorted.
class NthElementKernel : public OpKernel {
 public:
  explicit NthElementKernel(Construction& c) : reverse_(c.Attr<bool>("reverse")) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), n_arg = ctx.input(1);
    XPU_REQUIRE(n_arg.IsScalar(), errors::InvalidArgument("N must be scalar but has rank ", n_arg.rank()));
    int64_t n;
    XPU_RETURN_IF_ERROR(HostInteger(n_arg, "n", &n));
    XPU_REQUIRE(n >= 0, errors::InvalidArgument("n must be non-negative but is ", n));
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("Input must be at least rank 1 but is rank ", x.rank()));
    const int64_t columns = x.dim(x.rank() - 1);
    XPU_REQUIRE(columns > n, errors::InvalidArgument("Input must have last dimension > n = ", n));
    Dims shape;
    Append(x.dims(), 0, x.rank() - 1, &shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    // From the end that is nearer.
    const bool from_top = n > columns / 2;
    const int64_t k = from_top ? columns - n : n + 1, rows = y.num_elements();
    Temporary values, positions;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(x.dtype(), {rows, k}, &values));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {rows, k}, &positions));
    XPU_RETURN_IF_ERROR(ctx.Launch(SortOfRows(x, k, DType::kInt64, reverse_ != from_top), {x.data()},
                                   {values.data(), positions.data()}));
    return CopyView(ctx, SizeOf(x.dtype()), {rows}, values.data(), {{k}, k - 1}, y.mutable_data(), {{1}, 0});
  }

 private:
  const bool reverse_;
};

// True if the target's prediction is among the k highest of its row. A row that is not finite says nothing, nor does a
// target that is no class.
class InTopKKernel : public OpKernel {
 public:
  explicit InTopKKernel(Construction& c) : target_type_(c.Attr<DType>("T")) {
    if (c.HasAttr("k")) k_ = c.Attr<int32_t>("k");
    if (!c.status().ok()) return;
    safe_ = SafeTarget(target_type_);
    better_ = Better();
    verdict_ = Verdict(target_type_, c.HasAttr("k"));
  }

  Status Compute(Context& ctx) override {
    const Tensor predictions = ctx.input(0), targets = ctx.input(1);
    const bool given = ctx.num_inputs() > 2;
    if (given) {
      const Tensor k = ctx.input(2);
      XPU_REQUIRE(k.IsScalar(), errors::InvalidArgument("k must be 0-D, got shape ", k.ShapeString()));
    }
    XPU_REQUIRE(predictions.rank() == 2, errors::InvalidArgument("predictions must be 2-dimensional"));
    XPU_REQUIRE(targets.IsVector(), errors::InvalidArgument("targets must be 1-dimensional"));
    XPU_REQUIRE(predictions.dim(0) == targets.dim(0),
                errors::InvalidArgument("First dimension of predictions ", predictions.dim(0),
                                        " must match length of targets ", targets.dim(0)));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, targets.dims(), &out));
    const int64_t rows = predictions.dim(0), classes = predictions.dim(1);
    if (rows == 0 || classes == 0) return FillZero(ctx, out);

    Temporary scalars, safe, scores, better;
    XPU_RETURN_IF_ERROR(Upload(ctx, {classes, k_}, DType::kInt64, &scalars));
    const int64_t* const number_of_classes = static_cast<const int64_t*>(scalars.data());
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kInt64, {rows}, &safe));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {rows}, &scores));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(DType::kFloat, {rows}, &better));

    ElementwiseDesc clamp;
    clamp.program = safe_;
    clamp.shape = {rows};
    clamp.in_strides[0] = {1};
    clamp.in_strides[1] = {0};
    XPU_RETURN_IF_ERROR(ctx.Launch(clamp, {targets.data(), number_of_classes}, {safe.data()}));

    GatherDesc gather;
    gather.element_size = sizeof(float);
    gather.batch = rows;
    gather.num_indices = 1;
    gather.dims = {classes};
    XPU_RETURN_IF_ERROR(ctx.Launch(gather, {predictions.data(), safe.data()}, {scores.data()}));

    ReduceDesc count;
    count.source.program = better_;
    count.source.shape = {rows, classes};
    count.source.in_strides[0] = {classes, 1};
    count.source.in_strides[1] = {1, 0};
    count.axes = 2;
    XPU_RETURN_IF_ERROR(ctx.Launch(count, {predictions.data(), scores.data()}, {better.data()}));

    ElementwiseDesc verdict;
    verdict.program = verdict_;
    verdict.shape = {rows};
    verdict.in_strides[0] = verdict.in_strides[1] = {1};
    verdict.in_strides[2] = verdict.in_strides[3] = {0};
    const void* const k = given ? ctx.input(2).data() : number_of_classes + 1;
    return ctx.Launch(verdict, {targets.data(), better.data(), number_of_classes, k}, {out.mutable_data()});
  }

  static void Requires(Needs& n) {
    const DType type = n.type("T");
    n.AskProgram(SafeTarget(type));
    n.AskProgram(Verdict(type, false));
    n.AskProgram(Verdict(type, true));
    needs::Gather(DType::kFloat, DType::kInt64)(n);
    ReduceDesc count;
    count.source.program = Better();
    n.Ask(count);
  }

 private:
  static FormulaValue IsClass(const FormulaValue& target, const FormulaValue& classes) {
    return Apply(Opcode::kGreaterEqual, target, target.Const(0)) && target < classes;
  }
  static const Program* SafeTarget(DType type) {
    ProgramBuilder b;
    const FormulaValue target = Cast({&b, b.Input(type)}, DType::kInt64), classes{&b, b.Input(DType::kInt64)};
    b.Output(Select(IsClass(target, classes), target, target.Const(0)).reg);
    return b.Build();
  }
  // How much a class counts: 1 where it has a higher score, NaN where its own is not finite. Floats count up to 2^24.
  static const Program* Better() {
    ProgramBuilder b;
    const FormulaValue x{&b, b.Input(DType::kFloat)}, score{&b, b.Input(DType::kFloat)};
    b.Output((Cast(x > score, DType::kFloat) + x * 0.0).reg);
    return b.Build();
  }
  static const Program* Verdict(DType type, bool k_is_attribute) {
    ProgramBuilder b;
    const FormulaValue target = Cast({&b, b.Input(type)}, DType::kInt64);
    const FormulaValue better{&b, b.Input(DType::kFloat)}, classes{&b, b.Input(DType::kInt64)};
    const FormulaValue k{&b, b.Input(k_is_attribute ? DType::kInt64 : type)};
    b.Output((IsClass(target, classes) && better < Cast(k, DType::kFloat)).reg);
    return b.Build();
  }

  const DType target_type_;
  int64_t k_ = 0;
  const Program *safe_ = nullptr, *better_ = nullptr, *verdict_ = nullptr;
};

class BoundKernel : public OpKernel {
 public:
  BoundKernel(Construction&, bool upper) : upper_(upper) {}

  Status Compute(Context& ctx) override {
    const Tensor sorted = ctx.input(0), values = ctx.input(1);
    XPU_REQUIRE(sorted.rank() == 2, errors::InvalidArgument("Shape must be rank 2 but is rank ", sorted.rank(),
                                                            " for `sorted_inputs` argument"));
    XPU_REQUIRE(values.rank() == 2,
                errors::InvalidArgument("Shape must be rank 2 but is rank ", values.rank(), " for `values` argument"));
    XPU_REQUIRE(sorted.dim(0) == values.dim(0),
                errors::InvalidArgument("Leading dim_size of both tensors must match."));
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, values.dims(), &out));
    XPU_REQUIRE(
        out.dtype() == DType::kInt64 || sorted.dim(1) < std::numeric_limits<int32_t>::max(),
        errors::InvalidArgument("trailing dim_size must less than INT_MAX for int32 output type, was ", sorted.dim(1)));
    SearchDesc desc;
    desc.type = sorted.dtype();
    desc.index_type = out.dtype();
    desc.rows = sorted.dim(0), desc.n = sorted.dim(1), desc.m = values.dim(1);
    desc.upper = upper_;
    return ctx.Launch(desc, {sorted.data(), values.data()}, {out.mutable_data()});
  }

 private:
  const bool upper_;
};

Need Searches(DType type, DType index_type) {
  return [=](Needs& n) {
    SearchDesc desc;
    desc.type = type;
    desc.index_type = index_type;
    n.Ask(desc);
  };
}

// Integers are compared with the boundaries as floats.
DType BoundaryType(DType type) { return type == DType::kDouble ? DType::kDouble : DType::kFloat; }

class BucketizeKernel : public OpKernel {
 public:
  explicit BucketizeKernel(Construction& c)
      : boundaries_(c.Attr<std::vector<float>>("boundaries")), type_(c.Attr<DType>("T")) {
    if (!c.status().ok()) return;
    if (!std::is_sorted(boundaries_.begin(), boundaries_.end())) {
      c.Fail(errors::InvalidArgument("Expected sorted boundaries"));
    }
    wide_.assign(boundaries_.begin(), boundaries_.end());
    cast_ = CastProgram(type_, BoundaryType(type_));
  }

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &out));
    if (x.num_elements() == 0) return OkStatus();
    const DType type = BoundaryType(type_);
    const int64_t n = static_cast<int64_t>(boundaries_.size());
    Temporary boundaries, converted;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {n}, &boundaries));
    if (n > 0) {
      const void* from = type == DType::kDouble ? static_cast<const void*>(wide_.data()) : boundaries_.data();
      XPU_RETURN_IF_ERROR(ctx.CopyFromHost(boundaries.data(), from, static_cast<size_t>(n) * SizeOf(type)));
    }
    const void* values = x.data();
    if (type != type_) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, x.dims(), &converted));
      ElementwiseDesc cast;
      cast.program = cast_;
      SetFlat(x.num_elements(), 1, &cast);
      XPU_RETURN_IF_ERROR(ctx.Launch(cast, {x.data()}, {converted.data()}));
      values = converted.data();
    }
    SearchDesc desc;
    desc.type = type;
    desc.n = n, desc.m = x.num_elements();
    desc.upper = true;
    return ctx.Launch(desc, {boundaries.data(), values}, {out.mutable_data()});
  }

 private:
  const std::vector<float> boundaries_;
  std::vector<double> wide_;
  const DType type_;
  const Program* cast_ = nullptr;
};

}  // namespace

void RegisterOrder(Registry& registry) {
  // int32 is in device memory, as on GPUs.
  const TypeList numbers = Union(kRealTypes, {DType::kInt32});
  const TypeList int_types = {DType::kInt32, DType::kInt64};
  registry.Op("TopKV2")
      .Types("T", numbers)
      .Types("index_type", {DType::kInt16, DType::kInt32, DType::kInt64})
      .Host({"k"})
      .Requires(Sorts("T", "index_type"))
      .Kernel<TopKKernel>();
  registry.Op("ApproxTopK")
      .Types("T", {DType::kHalf, DType::kBFloat16, DType::kFloat})
      .Requires(Sorts("T", DType::kInt32))
      .Kernel<TopKKernel>();
  registry.Op("NthElement")
      .Types("T", numbers)
      .Host({"n"})
      .Requires(Sorts("T", DType::kInt64))
      .Requires(needs::Copy("T"))
      .Kernel<NthElementKernel>();
  for (const char* op : {"InTopK", "InTopKV2"}) {
    registry.Op(op).Types("T", int_types).Requires(&InTopKKernel::Requires).Kernel<InTopKKernel>();
  }
  for (bool upper : {false, true}) {
    registry.Op(upper ? "UpperBound" : "LowerBound")
        .Types("T", numbers)
        .Types("out_type", int_types)
        .Requires([](Needs& n) { Searches(n.type("T"), n.type("out_type"))(n); })
        .Kernel<BoundKernel>(upper);
  }
  registry.Op("Bucketize")
      .Types("T", {DType::kInt32, DType::kInt64, DType::kFloat, DType::kDouble})
      .Requires([](Needs& n) {
        const DType type = n.type("T");
        Searches(BoundaryType(type), DType::kInt32)(n);
        n.AskProgram(CastProgram(type, BoundaryType(type)));
      })
      .Kernel<BucketizeKernel>();
}

}  // namespace xpu
