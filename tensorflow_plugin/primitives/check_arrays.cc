// The checks of what treats whole images, signals and matrices.
#include <algorithm>

#include "tensorflow_plugin/primitives/checking.h"

namespace xpu {

using namespace checking;  // NOLINT: what it is for

namespace {

constexpr const char* kSampleKinds[] = {"nearest", "bilinear"};
constexpr const char* kSampleDirections[] = {"", " gradient of images", " gradient of points"};
constexpr const char* kFftNames[] = {"complex", "real", "inverse real"};
constexpr const char* kFactorizeNames[] = {"Cholesky", "LU", "QR", "eigenvalues", "SVD"};
constexpr const char* kSolveNames[] = {"general", "lower triangular", "upper triangular", "tridiagonal"};

// The types of matrices and transforms.
bool IsPrecise(DType type) { return type == DType::kFloat || type == DType::kDouble || IsComplex(type); }

}  // namespace

Status Check(const SampleDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Sample", desc.type));
  XPU_RETURN_IF_ERROR(RequireType("Sample", desc.result_type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const Dims points = {desc.batch, desc.out_h, desc.out_w};
  XPU_RETURN_IF_ERROR(RequireRank("Sample: strides of y", desc.y_strides, points));
  XPU_RETURN_IF_ERROR(RequireRank("Sample: strides of x", desc.x_strides, points));
  XPU_REQUIRE(desc.numbered || desc.images == desc.batch,
              errors::InvalidArgument("Sample: ", desc.images, " images for a batch of ", desc.batch,
                                      ", which no numbers assign"));
  Operand images, y, x, numbers, result;
  XPU_RETURN_IF_ERROR(
      View("Sample").Dense({desc.images, desc.height, desc.width, desc.channels}).As(desc.type, &images));
  XPU_RETURN_IF_ERROR(View("Sample").Strided(points, desc.y_strides).As(DType::kFloat, &y));
  XPU_RETURN_IF_ERROR(View("Sample").Strided(points, desc.x_strides).As(DType::kFloat, &x));
  XPU_RETURN_IF_ERROR(View("Sample").Dense({desc.numbered ? desc.batch : 0}).As(DType::kInt32, &numbers));
  XPU_RETURN_IF_ERROR(View("Sample").Dense(points).Dense({desc.channels}).As(desc.result_type, &result));
  XPU_REQUIRE(images.elements > 0 || result.elements == 0 || desc.direction != SampleDirection::kForward ||
                  desc.outside != Outside::kEdge,
              errors::InvalidArgument("Sample: points of images without pixels, which have no edge"));
  if (desc.direction == SampleDirection::kForward) {
    *NextIn(f) = images;
  } else {
    *NextIn(f) = result;
    if (desc.direction == SampleDirection::kPointGradient) *NextIn(f) = images;
  }
  for (const Operand& o : {y, x, numbers}) *NextIn(f) = o;
  switch (desc.direction) {
    case SampleDirection::kForward:
      *NextOut(f) = result;
      return OkStatus();
    case SampleDirection::kImageGradient:
      *NextOut(f) = images;
      return OkStatus();
    case SampleDirection::kPointGradient:
      for (int i = 0; i < 2; ++i) XPU_RETURN_IF_ERROR(View("Sample").Dense(points).As(DType::kFloat, NextOut(f)));
      return OkStatus();
  }
  return errors::InvalidArgument("Sample: there is no direction ", static_cast<int>(desc.direction));
}

bool IsDefined(const SampleDesc& desc) {
  const auto number = [](DType t) { return IsFloating(t) || IsInteger(t); };
  if (!number(desc.type) || !number(desc.result_type)) return false;
  switch (desc.direction) {
    case SampleDirection::kForward:
      return desc.result_type == desc.type || IsFloating(desc.result_type);
    case SampleDirection::kImageGradient:
      return IsFloating(desc.type) && IsFloating(desc.result_type);
    case SampleDirection::kPointGradient:
      return IsFloating(desc.result_type) && desc.kind == SampleKind::kBilinear;
  }
  return false;
}
std::string Name(const SampleDesc& desc) {
  return errors::Concat("Sample ", NameOf(kSampleKinds, desc.kind), NameOf(kSampleDirections, desc.direction), " of ",
                        Name(desc.type), " to ", Name(desc.result_type));
}

Status Check(const ResampleDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Resample", desc.type));
  XPU_RETURN_IF_ERROR(RequireType("Resample", desc.result_type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const auto array = [](std::initializer_list<int64_t> extents, DType type, Operand* operand) {
    return View("Resample").Dense(extents).As(type, operand);
  };
  XPU_RETURN_IF_ERROR(array({desc.batch, desc.height, desc.width, desc.channels}, desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(array({desc.out_h, 2}, DType::kInt32, NextIn(f)));
  XPU_RETURN_IF_ERROR(array({desc.out_h, desc.y_taps}, DType::kFloat, NextIn(f)));
  XPU_RETURN_IF_ERROR(array({desc.out_w, 2}, DType::kInt32, NextIn(f)));
  XPU_RETURN_IF_ERROR(array({desc.out_w, desc.x_taps}, DType::kFloat, NextIn(f)));
  return array({desc.batch, desc.out_h, desc.out_w, desc.channels}, desc.result_type, NextOut(f));
}

bool IsDefined(const ResampleDesc& desc) {
  return (IsFloating(desc.type) || IsInteger(desc.type)) && IsFloating(desc.result_type);
}
std::string Name(const ResampleDesc& desc) {
  return errors::Concat("Resample ", Name(desc.type), " to ", Name(desc.result_type));
}

Status Check(const FftDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  XPU_REQUIRE(desc.shape.rank() >= 1 && desc.shape.rank() <= 3,
              errors::InvalidArgument("Fft: ", desc.shape.rank(), " axes, expected 1 to 3"));
  XPU_REQUIRE(desc.kind == FftKind::kComplex || desc.inverse == (desc.kind == FftKind::kRealInverse),
              errors::InvalidArgument("Fft: kind and direction are not the same"));
  Dims half = desc.shape;
  const int last = half.rank() - 1;
  if (desc.kind != FftKind::kComplex && half[last] > 0) half[last] = half[last] / 2 + 1;
  Operand whole, side;
  XPU_RETURN_IF_ERROR(View("Fft")
                          .Dense({desc.batch})
                          .Dense(desc.shape)
                          .As(desc.kind == FftKind::kComplex ? desc.type : RealTypeOf(desc.type), &whole));
  XPU_RETURN_IF_ERROR(View("Fft").Dense({desc.batch}).Dense(half).As(desc.type, &side));
  *NextIn(f) = desc.kind == FftKind::kRealForward ? whole : side;
  *NextOut(f) = desc.kind == FftKind::kRealInverse ? whole : side;
  return OkStatus();
}

bool IsDefined(const FftDesc& desc) { return IsComplex(desc.type); }
std::string Name(const FftDesc& desc) {
  return errors::Concat("Fft ", NameOf(kFftNames, desc.kind), " of ", Name(desc.type));
}

Status Check(const FactorizeDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Factorize", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const bool square = desc.kind != FactorizeKind::kQr && desc.kind != FactorizeKind::kSvd;
  XPU_REQUIRE(!square || desc.rows == desc.cols,
              errors::InvalidArgument(Name(desc), ": a matrix of ", desc.rows, " rows and ", desc.cols,
                                      " columns, expected a square one"));
  const int64_t rows = desc.rows, cols = desc.cols, k = std::min(rows, cols);
  const auto array = [&](std::initializer_list<int64_t> extents, DType type, Operand* operand) {
    return View("Factorize").Dense({desc.batch}).Dense(extents).As(type, operand);
  };
  XPU_RETURN_IF_ERROR(array({rows, cols}, desc.type, NextIn(f)));
  switch (desc.kind) {
    case FactorizeKind::kCholesky:
      return array({rows, cols}, desc.type, NextOut(f));
    case FactorizeKind::kLu:
      XPU_RETURN_IF_ERROR(array({rows, cols}, desc.type, NextOut(f)));
      XPU_RETURN_IF_ERROR(array({rows}, DType::kInt32, NextOut(f)));
      return array({1}, desc.type, NextOut(f));
    case FactorizeKind::kQr:
      XPU_RETURN_IF_ERROR(array({rows, desc.full ? rows : k}, desc.type, NextOut(f)));
      return array({desc.full ? rows : k, cols}, desc.type, NextOut(f));
    case FactorizeKind::kEigen:
      XPU_RETURN_IF_ERROR(array({rows}, desc.type, NextOut(f)));
      return desc.vectors ? array({rows, rows}, desc.type, NextOut(f)) : OkStatus();
    case FactorizeKind::kSvd:
      XPU_RETURN_IF_ERROR(array({k}, RealTypeOf(desc.type), NextOut(f)));
      if (!desc.vectors) return OkStatus();
      XPU_RETURN_IF_ERROR(array({rows, desc.full ? rows : k}, desc.type, NextOut(f)));
      return array({cols, desc.full ? cols : k}, desc.type, NextOut(f));
  }
  return errors::InvalidArgument("Factorize: there is no kind ", static_cast<int>(desc.kind));
}

bool IsDefined(const FactorizeDesc& desc) { return IsPrecise(desc.type); }
std::string Name(const FactorizeDesc& desc) {
  return errors::Concat("Factorize ", NameOf(kFactorizeNames, desc.kind), " of ", Name(desc.type));
}

Status Check(const SolveDesc& desc, Footprint* f) {
  XPU_RETURN_IF_ERROR(RequireType("Solve", desc.type));
  XPU_RETURN_IF_ERROR(RequireDefined(desc));
  const int64_t rows = desc.kind == SolveKind::kTridiagonal ? 3 : desc.n;
  Operand b;
  XPU_RETURN_IF_ERROR(View("Solve").Dense({desc.batch, rows, desc.n}).As(desc.type, NextIn(f)));
  XPU_RETURN_IF_ERROR(View("Solve").Dense({desc.batch, desc.n, desc.columns}).As(desc.type, &b));
  *NextIn(f) = b;
  *NextOut(f) = b;
  return OkStatus();
}

bool IsDefined(const SolveDesc& desc) {
  const bool tridiagonal = desc.kind == SolveKind::kTridiagonal;
  return IsPrecise(desc.type) && !(tridiagonal && desc.adjoint) && (!desc.perturb || (tridiagonal && desc.pivoting));
}
std::string Name(const SolveDesc& desc) {
  return errors::Concat("Solve ", NameOf(kSolveNames, desc.kind), " of ", Name(desc.type));
}

}  // namespace xpu
