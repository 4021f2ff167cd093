// Ops that move every element of one tensor elsewhere in one command: Transpose, Reverse, BroadcastTo, Tile, Roll.
#include <algorithm>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

Status MissingFrom(const std::vector<int64_t>& perm, int axis) {
  std::string list;
  for (int64_t p : perm) list += (list.empty() ? "" : ",") + std::to_string(p);
  return errors::InvalidArgument(axis, " is missing from {", list, "}.");
}

// Transpose and ConjugateTranspose.
class TransposeKernel : public OpKernel {
 public:
  TransposeKernel(Construction&, bool conjugate) : conjugate_(conjugate) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), perm_arg = ctx.input(1);
    const int rank = x.rank();
    XPU_REQUIRE(perm_arg.IsVector(),
                errors::InvalidArgument("perm must be rank 1, got shape ", perm_arg.ShapeString()));
    std::vector<int64_t> perm;
    XPU_RETURN_IF_ERROR(HostIntegers(perm_arg, "perm", &perm));
    XPU_REQUIRE(static_cast<int>(perm.size()) == rank,
                errors::InvalidArgument("transpose expects a vector of size ", rank,
                                        ". But input(1) is a vector of size ", perm.size()));
    std::vector<bool> seen(perm.size(), false);
    for (int64_t& p : perm) {
      const int64_t given = p;
      if (p < 0) p += rank;
      XPU_REQUIRE(p >= 0 && p < rank, errors::InvalidArgument(given, " is out of range [0 .. ", rank, ")"));
      seen[p] = true;
    }
    for (int i = 0; i < rank; ++i) {
      XPU_REQUIRE(seen[i], MissingFrom(perm, i));
    }

    const Dims in_strides = DenseStrides(x.dims());
    Dims shape, strides;
    bool moves = false;
    int last = -1;
    for (int64_t p : perm) {
      shape.push_back(x.dim(p));
      strides.push_back(in_strides[p]);
      if (x.dim(p) == 1) continue;  // where an extent of 1 goes does not matter
      moves |= p < last;
      last = static_cast<int>(p);
    }
    const bool conjugate = conjugate_ && IsComplex(x.dtype());
    if (!moves && !conjugate) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    if (y.num_elements() == 0) return OkStatus();
    if (!conjugate) {
      return CopyView(ctx, SizeOf(x.dtype()), shape, x.data(), {strides, 0}, y.mutable_data(), DenseView(shape));
    }
    ElementwiseDesc desc;
    desc.program = SingleOpProgram(Opcode::kConj, x.dtype());
    desc.shape = shape;
    desc.in_strides[0] = strides;
    return ctx.Launch(desc, {x.data()}, {y.mutable_data()});
  }

 private:
  const bool conjugate_;
};

// Reverse (dims: one bool per axis) and ReverseV2 (a list of axes).
class ReverseKernel : public OpKernel {
 public:
  ReverseKernel(Construction&, bool by_axes) : by_axes_(by_axes) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), which = ctx.input(1);
    const int rank = x.rank();
    // TensorFlow then does not look at the axes.
    if (rank == 0 || (by_axes_ && x.num_elements() == 0)) return ctx.ShareOutput(0, x, x.dims());
    XPU_REQUIRE(x.dim(0) > 0, errors::InvalidArgument("Invalid input first dimension. Found 0."));
    XPU_REQUIRE(which.IsVector(), errors::InvalidArgument("'dims' must be 1-dimension, not ", which.rank()));
    std::vector<bool> reversed(rank, false);
    if (by_axes_) {
      std::vector<int64_t> axes;
      XPU_RETURN_IF_ERROR(HostIntegers(which, "axis", &axes));
      for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        XPU_REQUIRE(axis >= 0 && axis < rank,
                    errors::InvalidArgument("'axis'[", i, "] = ", axes[i], " is out of valid range [0, ", rank - 1));
        XPU_REQUIRE(!reversed[axis], errors::InvalidArgument("axis ", axis, " specified more than once."));
        reversed[axis] = true;
      }
    } else {
      XPU_REQUIRE(which.num_elements() == rank,
                  errors::InvalidArgument("'dims' must have the same number of values as 'input' has dimensions. "
                                          "'input' has ",
                                          rank, "'dims' has ", which.num_elements(), " values"));
      for (int i = 0; i < rank; ++i) reversed[i] = which.host<bool>()[i];
    }
    View view = DenseView(x.dims());
    bool moves = false;
    for (int i = 0; i < rank; ++i) {
      if (!reversed[i] || x.dim(i) <= 1) continue;
      view.offset += (x.dim(i) - 1) * view.strides[i];
      view.strides[i] = -view.strides[i];
      moves = true;
    }
    if (!moves) return ctx.ShareOutput(0, x, x.dims());
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    return CopyView(ctx, SizeOf(x.dtype()), x.dims(), x.data(), view, y.mutable_data(), DenseView(x.dims()));
  }

 private:
  const bool by_axes_;
};

class BroadcastToKernel : public OpKernel {
 public:
  explicit BroadcastToKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), shape_arg = ctx.input(1);
    Dims shape;
    XPU_RETURN_IF_ERROR(HostShape(shape_arg, "shape", &shape));
    if (shape == x.dims()) return ctx.ShareOutput(0, x, shape);
    XPU_REQUIRE(x.rank() <= shape.rank(),
                errors::InvalidArgument("Rank of input (", x.rank(), ") must be no greater than rank of output shape (",
                                        shape.rank(), ")."));
    const int skip = shape.rank() - x.rank();
    const Dims dense = DenseStrides(x.dims());
    Dims strides(shape.rank(), 0);
    bool only_shrinks = true;
    for (int i = 0; i < x.rank(); ++i)
      only_shrinks &= x.dim(i) == shape[i + skip] || x.dim(i) == 1 || shape[i + skip] == 1;
    for (int i = 0; i < x.rank(); ++i) {
      XPU_REQUIRE(x.dim(i) == shape[i + skip] || x.dim(i) == 1,
                  only_shrinks
                      ? errors::InvalidArgument("Unable to broadcast tensor of shape ", x.ShapeString(),
                                                " to tensor of shape ", shape.ToString())
                      : errors::InvalidArgument("Incompatible shapes: ", x.ShapeString(), " vs. ", shape.ToString()));
      if (x.dim(i) != 1) strides[i + skip] = dense[i];
    }
    if (shape.num_elements() == x.num_elements()) return ctx.ShareOutput(0, x, shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &y));
    return CopyView(ctx, SizeOf(x.dtype()), shape, x.data(), {strides, 0}, y.mutable_data(), DenseView(shape));
  }
};

class TileKernel : public OpKernel {
 public:
  explicit TileKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), multiples_arg = ctx.input(1);
    XPU_REQUIRE(multiples_arg.IsVector(),
                errors::InvalidArgument("Expected multiples to be 1-D, but got shape ", multiples_arg.ShapeString()));
    std::vector<int64_t> multiples;
    XPU_RETURN_IF_ERROR(HostIntegers(multiples_arg, "multiples", &multiples));
    XPU_REQUIRE(static_cast<int>(multiples.size()) == x.rank(),
                errors::InvalidArgument("Expected multiples argument to be a vector of length ", x.rank(),
                                        " but got length ", multiples.size()));
    // The output is walked as [multiple, extent] pairs; a dimension that is not repeated merges with the one before.
    Dims out_shape, walk, strides;
    const Dims dense = DenseStrides(x.dims());
    for (int i = 0; i < x.rank(); ++i) {
      XPU_REQUIRE(multiples[i] >= 0,
                  errors::InvalidArgument("Expected multiples[", i, "] >= 0, but got ", multiples[i]));
      int64_t total;
      XPU_REQUIRE(!__builtin_mul_overflow(multiples[i], x.dim(i), &total),
                  errors::InvalidArgument("Tile: multiples[", i, "] = ", multiples[i], " times ", x.dim(i),
                                          " does not fit in 64 bits"));
      out_shape.push_back(total);
      if (multiples[i] == 1 && !walk.empty()) {
        walk[walk.rank() - 1] *= x.dim(i);
        strides[strides.rank() - 1] = dense[i];
        continue;
      }
      if (multiples[i] != 1) {
        walk.push_back(multiples[i]);
        strides.push_back(0);
      }
      walk.push_back(x.dim(i));
      strides.push_back(dense[i]);
    }
    if (out_shape == x.dims()) return ctx.ShareOutput(0, x, out_shape);
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, out_shape, &y));
    return CopyView(ctx, SizeOf(x.dtype()), walk, x.data(), {strides, 0}, y.mutable_data(), DenseView(walk));
  }
};

class RollKernel : public OpKernel {
 public:
  explicit RollKernel(Construction&) {}

  Status Compute(Context& ctx) override {
    const Tensor x = ctx.input(0), shift_arg = ctx.input(1), axis_arg = ctx.input(2);
    XPU_REQUIRE(x.rank() >= 1, errors::InvalidArgument("input must be 1-D or higher"));
    XPU_REQUIRE(shift_arg.rank() <= 1,
                errors::InvalidArgument("shift must be a scalar or a 1-D vector. Found: ", shift_arg.ShapeString()));
    XPU_REQUIRE(axis_arg.rank() <= 1,
                errors::InvalidArgument("axis must be a scalar or a 1-D vector. Found: ", axis_arg.ShapeString()));
    XPU_REQUIRE(shift_arg.dims() == axis_arg.dims(), errors::InvalidArgument("shift and axis must have the same size"));
    std::vector<int64_t> shifts, axes;
    XPU_RETURN_IF_ERROR(HostIntegers(shift_arg, "shift", &shifts));
    XPU_RETURN_IF_ERROR(HostIntegers(axis_arg, "axis", &axes));
    Dims total(x.rank(), 0);  // how far each axis rolls, in [0, extent)
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + x.rank() : axes[i];
      XPU_REQUIRE(axis >= 0 && axis < x.rank(), errors::InvalidArgument("axis ", axes[i], " is out of range"));
      const int64_t n = std::max<int64_t>(x.dim(axis), 1);
      total[axis] = ((total[axis] + shifts[i] % n) % n + n) % n;
    }
    std::vector<int> rolled;
    for (int i = 0; i < x.rank(); ++i) {
      if (total[i] != 0) rolled.push_back(i);
    }
    if (rolled.empty()) return ctx.ShareOutput(0, x, x.dims());
    Tensor y;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutputLike(0, x, &y));
    // A few axes at a time: their copies are as many as 2 to the power of their number.
    constexpr size_t kAtOnce = 4;
    Temporary partial[2];
    const void* from = x.data();
    for (size_t first = 0; first < rolled.size(); first += kAtOnce) {
      const size_t end = std::min(first + kAtOnce, rolled.size());
      void* to = y.mutable_data();
      if (end != rolled.size()) {
        Temporary& t = partial[first / kAtOnce % 2];
        XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(x.dtype(), x.dims(), &t));
        to = t.data();
      }
      XPU_RETURN_IF_ERROR(RollAxes(ctx, x, {rolled.begin() + first, rolled.begin() + end}, total, from, to));
      from = to;
    }
    return OkStatus();
  }

 private:
  // Each rolled axis has a head that wraps around and a tail that moves up: one copy per combination.
  static Status RollAxes(Context& ctx, const Tensor& x, const std::vector<int>& axes, const Dims& total,
                         const void* source, void* target) {
    const Dims dense = DenseStrides(x.dims());
    for (uint32_t piece = 0; piece < 1u << axes.size(); ++piece) {
      Dims shape = x.dims();
      View from{dense, 0}, to{dense, 0};
      for (size_t k = 0; k < axes.size(); ++k) {
        const int axis = axes[k];
        const int64_t n = x.dim(axis), shift = total[axis];
        const bool wraps = piece >> k & 1;
        shape[axis] = wraps ? shift : n - shift;
        from.offset += (wraps ? n - shift : 0) * dense[axis];
        to.offset += (wraps ? 0 : shift) * dense[axis];
      }
      XPU_RETURN_IF_ERROR(CopyView(ctx, SizeOf(x.dtype()), shape, source, from, target, to));
    }
    return OkStatus();
  }
};

// Keeps its input from being changed in place by later ops.
class SnapshotKernel : public OpKernel {
 public:
  explicit SnapshotKernel(Construction&) {}
  Status Compute(Context& ctx) override {
    Tensor out;
    return ForwardOrCopy(ctx, 0, &out);
  }
};

}  // namespace

void RegisterArrayTranspose(Registry& registry) {
  for (bool conjugate : {false, true}) {
    registry.Op(conjugate ? "ConjugateTranspose" : "Transpose")
        .Types("T", kAllTypes)
        .Host({"perm"})
        .AllHostFor(DType::kInt32, {"x", "y"})
        .Requires([conjugate](Needs& n) {
          needs::Copy("T")(n);
          if (conjugate && IsComplex(n.type("T"))) needs::Op(Opcode::kConj, "T")(n);
        })
        .Kernel<TransposeKernel>(conjugate);
  }
  for (bool by_axes : {false, true}) {
    registry.Op(by_axes ? "ReverseV2" : "Reverse")
        .Types("T", kAllTypes)
        .Host({by_axes ? "axis" : "dims"})
        .AllHostFor(DType::kInt32, {"tensor", "output"})
        .Requires(needs::Copy("T"))
        .Kernel<ReverseKernel>(by_axes);
  }
  registry.Op("BroadcastTo")
      .Types("T", kAllTypes)
      .Host({"shape"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<BroadcastToKernel>();
  registry.Op("Tile")
      .Types("T", Without(kAllTypes, DType::kUint16))  // the CPU has no kernel for it either
      .Host({"multiples"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<TileKernel>();
  registry.Op("Roll")
      .Types("T", kAllTypes)
      .Host({"shift", "axis"})
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Requires(needs::Copy("T"))
      .Kernel<RollKernel>();
  registry.Op("Snapshot")
      .Types("T", kAllTypes)
      .AllHostFor(DType::kInt32, {"input", "output"})
      .Traits(OpTrait::kPassesOn)
      .Kernel<SnapshotKernel>();
}

}  // namespace xpu
