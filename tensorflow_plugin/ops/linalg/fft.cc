// Fourier transforms: those of one to three axes, and the ND ones of any number. Elements beyond the transform's length
// are left away, and elements that an ND one lacks are zero.
#include <algorithm>
#include <limits>

#include "tensorflow_plugin/ops/arrays/util.h"
#include "tensorflow_plugin/ops/ops.h"

namespace xpu {
namespace {

constexpr int kMostAxes = 3;  // of one command

// [batch, first..., second...] to [batch, second..., first...], of dense arrays.
Status SwapAxes(Context& ctx, size_t size, int64_t batch, int64_t first, int64_t second, const void* from, void* to) {
  return CopyView(ctx, size, {batch, first, second}, from, DenseView({batch, first, second}), to,
                  {{first * second, 1, first}, 0});
}

class FftKernel : public OpKernel {
 public:
  // rank 0: an ND op, whose axes are an argument.
  FftKernel(Construction&, FftKind kind, bool inverse, int rank) : kind_(kind), inverse_(inverse), rank_(rank) {}

  Status Compute(Context& ctx) override {
    const Tensor in = ctx.input(0);
    int rank = rank_;
    if (rank_ == 0) XPU_RETURN_IF_ERROR(ReadAxes(ctx, in, &rank));
    XPU_REQUIRE(in.rank() >= rank,
                errors::InvalidArgument("Input must have rank of at least ", rank, " but got: ", in.ShapeString()));
    const int first = in.rank() - rank;
    Dims shape;  // of the transform: the real side, where there is one
    Append(in.dims(), first, in.rank(), &shape);
    if (rank_ == 0 || kind_ != FftKind::kComplex) XPU_RETURN_IF_ERROR(ReadLength(ctx, in, rank, &shape));
    Dims used = in.dims(), result = in.dims();  // of the input, what the transform takes
    for (int i = 0; i < rank; ++i) used[first + i] = result[first + i] = shape[i];
    if (rank > 0 && shape[rank - 1] > 0) {
      const int64_t half = shape[rank - 1] / 2 + 1;
      if (kind_ == FftKind::kRealInverse) used[in.rank() - 1] = half;
      if (kind_ == FftKind::kRealForward) result[in.rank() - 1] = half;
    }
    Tensor out;
    XPU_RETURN_IF_ERROR(ctx.AllocateOutput(0, result, &out));
    if (out.num_elements() == 0) return OkStatus();
    if (in.num_elements() == 0) return FillZero(ctx, out);
    if (rank == 0) return ctx.Copy(out.mutable_data(), in.data(), in.bytes());
    Temporary taken;
    const void* from = in.data();
    if (used != in.dims()) {
      XPU_RETURN_IF_ERROR(Take(ctx, in, used, &taken));
      from = taken.data();
    }
    return Transform(ctx, in.dtype(), out, Product(used, 0, first), shape, from);
  }

 private:
  // The axes have to be the last ones, in order: so it is on the CPU.
  static Status ReadAxes(Context& ctx, const Tensor& in, int* rank) {
    const Tensor axes = ctx.input(2);
    XPU_REQUIRE(axes.IsVector(), errors::InvalidArgument("axes must be a vector, got shape ", axes.ShapeString()));
    std::vector<int64_t> values;
    XPU_RETURN_IF_ERROR(HostIntegers(axes, "axes", &values));
    *rank = static_cast<int>(std::min<size_t>(values.size(), std::numeric_limits<int>::max()));
    XPU_REQUIRE(in.rank() >= *rank,
                errors::InvalidArgument("Input must have rank of at least ", *rank, " but got: ", in.ShapeString()));
    for (int64_t& axis : values) axis += axis < 0 ? in.rank() : 0;
    for (size_t i = 1; i < values.size(); ++i) {
      XPU_REQUIRE(values[i - 1] + 1 == values[i], errors::InvalidArgument("axes must be successive and ascending."));
    }
    XPU_REQUIRE(values.empty() || values.back() == in.rank() - 1,
                errors::InvalidArgument("The last axis to perform transform on must be -1."));
    return OkStatus();
  }

  Status ReadLength(Context& ctx, const Tensor& in, int rank, Dims* shape) const {
    const Tensor length = ctx.input(1);
    XPU_REQUIRE(length.IsVector() && length.dim(0) == rank,
                errors::InvalidArgument("fft_length must have shape [", rank, "]"));
    std::vector<int64_t> values;
    XPU_RETURN_IF_ERROR(HostIntegers(length, "fft_length", &values));
    for (int i = 0; i < rank; ++i) {
      XPU_REQUIRE(values[i] >= 0, errors::InvalidArgument("fft_length[", i, "] must >= 0, but got: ", values[i]));
      (*shape)[i] = values[i];
      if (kind_ == FftKind::kComplex) continue;
      const int axis = in.rank() - rank + i;
      const bool half = kind_ == FftKind::kRealInverse && i == rank - 1;
      const int64_t least = half ? values[i] / 2 + 1 : values[i];
      XPU_REQUIRE(in.dim(axis) == 0 || in.dim(axis) >= least,
                  errors::InvalidArgument("Input dimension ", axis, " must have length of at least ", least,
                                          " but got: ", in.dim(axis)));
    }
    return OkStatus();
  }

  // The input's first elements on each axis, and zeros where it has none.
  static Status Take(Context& ctx, const Tensor& in, const Dims& shape, Temporary* out) {
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(in.dtype(), shape, out));
    Dims common = shape;
    bool all = true;
    for (int i = 0; i < shape.rank(); ++i) {
      common[i] = std::min(shape[i], in.dim(i));
      all &= common[i] == shape[i];
    }
    if (!all) XPU_RETURN_IF_ERROR(FillZero(ctx, out->tensor()));
    return CopyView(ctx, SizeOf(in.dtype()), common, in.data(), DenseView(in.dims()), out->data(), DenseView(shape));
  }

  Status Transform(Context& ctx, DType in_type, const Tensor& out, int64_t batch, const Dims& shape,
                   const void* in) const {
    FftDesc desc;
    desc.kind = kind_;
    desc.inverse = inverse_;
    desc.type = IsComplex(in_type) ? in_type : out.dtype();
    const int leading = std::max(0, shape.rank() - kMostAxes);
    desc.batch = batch * Product(shape, 0, leading);
    desc.shape = {};
    Append(shape, leading, shape.rank(), &desc.shape);
    if (leading == 0) return ctx.Launch(desc, {in}, {out.mutable_data()});
    // The others, complex all, before the last ones if these give real numbers, else after them.
    Dims complex_shape = shape;
    if (kind_ != FftKind::kComplex) complex_shape[shape.rank() - 1] = shape[shape.rank() - 1] / 2 + 1;
    if (kind_ != FftKind::kRealInverse) {
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {in}, {out.mutable_data()}));
      return TransformLeading(ctx, desc.type, batch, complex_shape, leading, out.mutable_data(), out.mutable_data());
    }
    Temporary complex;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(desc.type, {batch * complex_shape.num_elements()}, &complex));
    XPU_RETURN_IF_ERROR(TransformLeading(ctx, desc.type, batch, complex_shape, leading, in, complex.data()));
    return ctx.Launch(desc, {complex.data()}, {out.mutable_data()});
  }

  // Transforms the first `leading` axes of [batch, shape...], a few at a time, each time as the last ones.
  Status TransformLeading(Context& ctx, DType type, int64_t batch, const Dims& shape, int leading, const void* in,
                          void* out) const {
    const int64_t n = shape.num_elements();
    Temporary swapped, transformed;
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {batch * n}, &swapped));
    XPU_RETURN_IF_ERROR(ctx.AllocateTemporary(type, {batch * n}, &transformed));
    for (int end = leading; end > 0; end -= kMostAxes) {
      FftDesc desc;
      desc.inverse = inverse_;
      desc.type = type;
      const int begin = std::max(0, end - kMostAxes);
      desc.shape = {};
      Append(shape, begin, end, &desc.shape);
      const int64_t outer = batch * Product(shape, 0, begin), inner = Product(shape, end, shape.rank());
      desc.batch = outer * inner;
      const int64_t size = desc.shape.num_elements();
      XPU_RETURN_IF_ERROR(SwapAxes(ctx, SizeOf(type), outer, size, inner, in, swapped.data()));
      XPU_RETURN_IF_ERROR(ctx.Launch(desc, {swapped.data()}, {transformed.data()}));
      XPU_RETURN_IF_ERROR(SwapAxes(ctx, SizeOf(type), outer, inner, size, transformed.data(), out));
      in = out;
    }
    return OkStatus();
  }

  const FftKind kind_;
  const bool inverse_;
  const int rank_;
};

Need NeedFft(FftKind kind, bool inverse, DType type) {
  return [=](Needs& n) {
    FftDesc desc;
    desc.kind = kind;
    desc.inverse = inverse;
    desc.type = type;
    n.Ask(desc);
  };
}

struct FftOp {
  const char* name;
  FftKind kind;
  bool inverse;
  int rank;  // 0: any
};

constexpr FftOp kFftOps[] = {
    {"FFT", FftKind::kComplex, false, 1},        {"FFT2D", FftKind::kComplex, false, 2},
    {"FFT3D", FftKind::kComplex, false, 3},      {"FFTND", FftKind::kComplex, false, 0},
    {"IFFT", FftKind::kComplex, true, 1},        {"IFFT2D", FftKind::kComplex, true, 2},
    {"IFFT3D", FftKind::kComplex, true, 3},      {"IFFTND", FftKind::kComplex, true, 0},
    {"RFFT", FftKind::kRealForward, false, 1},   {"RFFT2D", FftKind::kRealForward, false, 2},
    {"RFFT3D", FftKind::kRealForward, false, 3}, {"RFFTND", FftKind::kRealForward, false, 0},
    {"IRFFT", FftKind::kRealInverse, true, 1},   {"IRFFT2D", FftKind::kRealInverse, true, 2},
    {"IRFFT3D", FftKind::kRealInverse, true, 3}, {"IRFFTND", FftKind::kRealInverse, true, 0},
};

}  // namespace

void RegisterFft(Registry& registry) {
  for (const FftOp& op : kFftOps) {
    const bool real = op.kind != FftKind::kComplex;
    for (DType type : {DType::kComplex64, DType::kComplex128}) {
      Registry::Entry entry = registry.Op(op.name);
      if (real) entry.Types("Treal", {RealTypeOf(type)});
      entry.Types("Tcomplex", {type});
      if (op.rank == 0) {
        entry.Host({"fft_length", "axes"});
      } else if (real) {
        entry.Host({"fft_length"});
      }
      entry.Requires(NeedFft(op.kind, op.inverse, type)).Requires(needs::Copy(type));
      entry.Kernel<FftKernel>(op.kind, op.inverse, op.rank);
    }
  }
}

}  // namespace xpu
