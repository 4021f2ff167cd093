#include "tensorflow_plugin/backends/cuda/library_types.h"

namespace xpu::cuda {
namespace {

struct LibraryType {
  DType type;
  BlasType blas;
  std::optional<DnnNumber> dnn;
};

constexpr LibraryType kLibraryTypes[] = {
    {DType::kFloat, kR32F, kDnnFloat},        {DType::kDouble, kR64F, kDnnDouble},
    {DType::kHalf, kR16F, kDnnHalf},          {DType::kBFloat16, kR16BF, kDnnBFloat16},
    {DType::kComplex64, kC32F, std::nullopt}, {DType::kComplex128, kC64F, std::nullopt},
    {DType::kInt8, kR8I, std::nullopt},
};

const LibraryType* Find(DType type) {
  for (const LibraryType& each : kLibraryTypes) {
    if (each.type == type) return &each;
  }
  return nullptr;
}

}  // namespace

std::optional<BlasType> BlasTypeOf(DType type) {
  const LibraryType* const found = Find(type);
  return found == nullptr ? std::nullopt : std::optional(found->blas);
}

std::optional<DnnNumber> DnnNumberOf(DType type) {
  const LibraryType* const found = Find(type);
  return found == nullptr ? std::nullopt : found->dnn;
}

}  // namespace xpu::cuda
