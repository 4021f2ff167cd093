// Pad, PadV2, MirrorPad and MirrorPadGrad.
#include <algorithm>
#include <cstring>
#include <string>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/math/elementwise.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

struct PadAmounts {
  int64_t before = 0, after = 0;
};

// Reads the [rank, 2] host matrix `paddings`.
Status ReadPaddings(const Tensor& x, const Tensor& paddings, std::vector<PadAmounts>* out) {
  XPU_REQUIRE(paddings.rank() == 2 && paddings.dim(1) == 2,
              errors::InvalidArgument("paddings must be a matrix with 2 columns: ", paddings.ShapeString()));
  XPU_REQUIRE(paddings.dim(0) == x.rank(),
              errors::InvalidArgument("The first dimension of paddings must be the rank of inputs",
                                      paddings.ShapeString(), ", ", x.ShapeString()));
  std::vector<int64_t> flat;
  XPU_RETURN_IF_ERROR(HostIntegers(paddings, "paddings", &flat));
  for (size_t i = 0; i < flat.size(); i += 2) {
    XPU_REQUIRE(flat[i] >= 0 && flat[i + 1] >= 0,
                errors::InvalidArgument("Paddings must be non-negative: ", flat[i], " ", flat[i + 1]));
    out->push_back({flat[i], flat[i + 1]});
  }
  return OkStatus();
}

// The extent of a padded dimension.
Status PaddedExtent(int64_t extent, const PadAmounts& p, int64_t* padded) {
  XPU_REQUIRE(!__builtin_add_overflow(extent, p.before, padded) && !__builtin_add_overflow(*padded, p.after, padded),
              errors::InvalidArgument("paddings ", p.before, " and ", p.after, " of a dimension of ", extent,
                                      " do not fit in 64 bits"));
  return OkStatus();
}

class PadKernel : public OpKernel {
 public:
  explicit PadKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    std::vector<PadAmounts> paddings;
    XPU_RETURN_IF_ERROR(ReadPaddings(x, ctx.input(1), &paddings));
    Dims shape = x.dims();
    for (int i = 0; i < x.rank(); ++i) XPU_RETURN_IF_ERROR(PaddedExtent(x.dim(i), paddings[i], &shape[i]));
    char value[16] = {};
    if (ctx.num_inputs() == 3) {
      const Tensor constant = ctx.input(2);
      XPU_REQUIRE(constant.IsScalar(),
                  errors::InvalidArgument("constant_values must be a scalar. Found: ", constant.ShapeString()));
      std::memcpy(value, constant.data(), SizeOf(constant.dtype()));
    }
    if (shape == x.dims()) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    XPU_RETURN_IF_ERROR(Fill(ctx, value, y));
    View inside = DenseView(shape);
    for (int i = 0; i < x.rank(); ++i) inside.offset += paddings[i].before * inside.strides[i];
    return CopyView(ctx, SizeOf(x.dtype()), x.dims(), x.data(), DenseView(x.dims()), y.mutable_data(), inside);
  }
};

// A run of positions along one axis that is copied as a whole: `count` positions from `from`, going down when
// mirrored, to `to`.
struct CopiedRun {
  int64_t from, to, count;
  bool mirrored;
};

// How the padded axis [before, extent, after] arises from the axis of `extent`: its inside and its two mirrors.
// `edge` is 1 when the mirror leaves out the border itself (REFLECT), else 0.
void MirrorRuns(int64_t extent, const PadAmounts& p, int64_t edge, CopiedRun runs[3]) {
  runs[0] = {0, p.before, extent, false};
  runs[1] = {p.before - 1 + edge, 0, p.before, true};
  runs[2] = {extent - 1 - edge, p.before + extent, p.after, true};
}

int64_t MirrorEdge(Construction& c) {
  const std::string mode = c.Attr<std::string>("mode");
  if (c.status().ok() && mode != "REFLECT" && mode != "SYMMETRIC") {
    c.Fail(errors::InvalidArgument("mode must be REFLECT or SYMMETRIC, got ", mode));
  }
  return mode == "REFLECT" ? 1 : 0;
}

Status CheckMirror(int64_t extent, const PadAmounts& p, int64_t edge) {
  XPU_REQUIRE(p.before <= extent - edge && p.after <= extent - edge,
              errors::InvalidArgument(edge ? "paddings must be less than the dimension size: "
                                           : "paddings must be no greater than the dimension size: ",
                                      p.before, ", ", p.after, edge ? " not less than " : " greater than ", extent));
  return OkStatus();
}

class MirrorPadKernel : public OpKernel {
 public:
  explicit MirrorPadKernel(Construction& c) : edge_(MirrorEdge(c)) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0);
    std::vector<PadAmounts> paddings;
    XPU_RETURN_IF_ERROR(ReadPaddings(x, ctx.input(1), &paddings));
    Dims shape = x.dims();
    std::vector<int> padded;
    for (int i = 0; i < x.rank(); ++i) {
      XPU_RETURN_IF_ERROR(CheckMirror(x.dim(i), paddings[i], edge_));
      XPU_RETURN_IF_ERROR(PaddedExtent(x.dim(i), paddings[i], &shape[i]));
      if (shape[i] == x.dim(i)) continue;
      padded.push_back(i);
    }
    if (padded.empty()) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    // A few axes at a time: their copies are as many as 3 to the power of their number.
    constexpr size_t kAtOnce = 3;
    Temporary partial[2];
    const void* from = x.data();
    Dims extents = x.dims();
    for (size_t first = 0; first < padded.size(); first += kAtOnce) {
      const size_t end = std::min(first + kAtOnce, padded.size());
      const std::vector<int> axes(padded.begin() + first, padded.begin() + end);
      Dims wider = extents;
      for (int axis : axes) wider[axis] = shape[axis];
      void* to = y.mutable_data();
      if (end != padded.size()) {
        Temporary& t = partial[first / kAtOnce % 2];
        XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(x.dtype(), wider, &t));
        to = t.data();
      }
      XPU_RETURN_IF_ERROR(PadAxes(ctx, SizeOf(x.dtype()), axes, paddings, extents, from, wider, to));
      from = to;
      extents = wider;
    }
    return OkStatus();
  }

 private:
  // One copy per combination of the three runs of every padded axis.
  Status PadAxes(Context& ctx, size_t size, const std::vector<int>& axes, const std::vector<PadAmounts>& paddings,
                 const Dims& narrow, const void* source, const Dims& wide, void* target) const {
    const Dims from_strides = DenseStrides(narrow), to_strides = DenseStrides(wide);
    int pieces = 1;
    for (size_t i = 0; i < axes.size(); ++i) pieces *= 3;
    for (int piece = 0; piece < pieces; ++piece) {
      Dims extents = narrow;
      View from{from_strides, 0}, to{to_strides, 0};
      int rest = piece;
      for (int axis : axes) {
        CopiedRun runs[3];
        MirrorRuns(narrow[axis], paddings[axis], edge_, runs);
        const CopiedRun& run = runs[rest % 3];
        rest /= 3;
        extents[axis] = run.count;
        from.offset += run.from * from_strides[axis];
        to.offset += run.to * to_strides[axis];
        if (run.mirrored) from.strides[axis] = -from_strides[axis];
      }
      XPU_RETURN_IF_ERROR(CopyView(ctx, size, extents, source, from, target, to));
    }
    return OkStatus();
  }

  const int64_t edge_;
};

// dx = the inside of dy plus its mirrored borders, folded back one axis after the other; half and bfloat16 as floats,
// rounded at the end.
class MirrorPadGradKernel : public OpKernel {
 public:
  explicit MirrorPadGradKernel(Construction& c) : edge_(MirrorEdge(c)) {
    const DType type = c.Attr<DType>("T");
    sum_type_ = ComputedIn(type);
    if (!c.status().ok()) return;
    if (sum_type_ != type) widen_ = CastProgram(type, sum_type_);
    fold_ = FoldProgram(sum_type_, sum_type_);
    last_fold_ = FoldProgram(sum_type_, type);
  }

  Status Compute(Context& ctx) override {
    const Tensor dy = ctx.input(0);
    std::vector<PadAmounts> paddings;
    XPU_RETURN_IF_ERROR(ReadPaddings(dy, ctx.input(1), &paddings));
    Dims shape = dy.dims();
    int last = -1;
    for (int i = 0; i < dy.rank(); ++i) {
      shape[i] -= paddings[i].before + paddings[i].after;
      XPU_REQUIRE(shape[i] >= 0, errors::InvalidArgument("paddings ", paddings[i].before, " and ", paddings[i].after,
                                                         " exceed dimension ", i, " of ", dy.ShapeString()));
      XPU_RETURN_IF_ERROR(CheckMirror(shape[i], paddings[i], edge_));
      if (shape[i] != dy.dim(i)) last = i;
    }
    if (last < 0) return ctx.ShareOutput(0, dy, shape);
    Tensor dx;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &dx));
    if (dx.num_elements() == 0) return OkStatus();

    Temporary partial[2], wide;
    const void* source = dy.data();
    if (widen_ != nullptr) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(sum_type_, dy.dims(), &wide));
      ElementwiseDesc desc;
      desc.program = widen_;
      SetFlat(dy.num_elements(), 1, &desc);
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {source}, {wide.data()}));
      source = wide.data();
    }
    Dims extents = dy.dims();
    int turn = 0;
    for (int axis = 0; axis <= last; ++axis) {
      if (shape[axis] == dy.dim(axis)) continue;
      void* target = dx.mutable_data();
      Dims folded = extents;
      folded[axis] = shape[axis];
      if (axis != last) {
        Temporary& t = partial[turn++ % 2];
        XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(sum_type_, folded, &t));
        target = t.data();
      }
      XPU_RETURN_IF_ERROR(
          Fold(ctx, axis == last ? last_fold_ : fold_, source, extents, axis, folded, paddings[axis], target));
      source = target;
      extents = folded;
    }
    return OkStatus();
  }

 private:
  static const Program* FoldProgram(DType type, DType to) {
    ProgramBuilder b;
    const auto inside = b.Input(type), before = b.Input(type), after = b.Input(type);
    const auto sum = b.Apply(Opcode::kAdd, b.Apply(Opcode::kAdd, inside, before), after);
    b.Output(to == type ? sum : b.Cast(sum, to));
    return b.Build();
  }

  Status Fold(Context& ctx, const Program* program, const void* source, const Dims& extents, int axis,
              const Dims& folded, const PadAmounts& padding, void* target) {
    const size_t size = SizeOf(sum_type_);
    const Dims strides = DenseStrides(extents), folded_strides = DenseStrides(folded);
    CopiedRun runs[3];
    MirrorRuns(folded[axis], padding, edge_, runs);
    Temporary borders[2];
    for (int side = 0; side < 2; ++side) {
      XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(sum_type_, folded, &borders[side]));
      XPU_RETURN_IF_ERROR(FillZero(ctx, borders[side].tensor()));
      const CopiedRun& run = runs[1 + side];
      Dims part = folded;
      part[axis] = run.count;
      View to{folded_strides, run.from * folded_strides[axis]};
      to.strides[axis] = -folded_strides[axis];
      XPU_RETURN_IF_ERROR(
          CopyView(ctx, size, part, source, {strides, run.to * strides[axis]}, borders[side].data(), to));
    }
    ElementwiseDesc desc;
    desc.program = program;
    desc.shape = folded;
    desc.in_strides[0] = strides;
    desc.in_strides[1] = desc.in_strides[2] = folded_strides;
    const void* inside = static_cast<const char*>(source) + runs[0].to * strides[axis] * size;
    return ctx.Launch(desc, {inside, borders[0].data(), borders[1].data()}, {target});
  }

  const int64_t edge_;
  DType sum_type_ = DType::kInvalid;
  const Program *widen_ = nullptr, *fold_ = nullptr, *last_fold_ = nullptr;
};

}  // namespace

void RegisterArrayPad(Registry& registry) {
  registry.Op("Pad")
      .Types("T", kAllTypes)
      .Host({"paddings"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<PadKernel>();
  registry.Op("PadV2")
      .Types("T", kAllTypes)
      .Host({"paddings", "constant_values"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<PadKernel>();
  registry.Op("MirrorPad")
      .Types("T", kAllTypes)
      .Host({"paddings"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<MirrorPadKernel>();
  registry.Op("MirrorPadGrad")
      .Types("T", kNumberTypes)
      .Host({"paddings"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Requires([](Needs& n) {
        const DType type = n.type("T"), sum = ComputedIn(type);
        needs::Op(Opcode::kAdd, sum)(n);
        if (sum == type) return;
        needs::Cast(type, sum)(n);
        needs::Cast(sum, type)(n);
      })
      .Kernel<MirrorPadGradKernel>();
}

}  // namespace xpu
