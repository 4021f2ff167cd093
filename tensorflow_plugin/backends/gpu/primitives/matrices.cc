#include "tensorflow_plugin/backends/gpu/primitives/matrices.h"

#include <algorithm>

namespace xpu::gpu {
namespace {

const std::string kMatrix =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/matrix.cl.inc"
    ;

// Items that work on a matrix. A processor's work alone, and need no barriers.
size_t LanesOf(const Hardware& hardware) {
  constexpr size_t kLanes = 64;
  return hardware.is_processor ? 1 : std::min(kLanes, hardware.largest_group);
}

}  // namespace

const std::string kLuSource =
#include "tensorflow_plugin/backends/gpu/kernels/linalg/matrix_lu.cl.inc"
    ;

bool HasMatrices(const Abilities& abilities, DType type) {
  const DType real = RealTypeOf(type);
  return (real == DType::kFloat || real == DType::kDouble) && HasRegister(abilities, type);
}

std::string MatrixSource(const Hardware& hardware, DType type, const std::string& kernel) {
  const DType real = RealTypeOf(type);
  const char* const prefix = real == DType::kFloat ? "FLT" : "DBL";
  return FunctionsFor(type) + errors::Concat(IsComplex(type) ? "#define COMPLEX\n" : "", "#define T ", RegisterOf(type),
                                             "\n#define REAL ", RegisterOf(real), "\n#define EPSILON ", prefix,
                                             "_EPSILON\n#define LEAST ", prefix, "_MIN\n#define LANES ",
                                             LanesOf(hardware), "\n", kMatrix, kernel);
}

Status RunMatrices(Call& call, const Hardware& hardware, int64_t batch) {
  if (batch == 0) return OkStatus();
  const size_t groups[] = {static_cast<size_t>(batch), 1, 1}, local[] = {LanesOf(hardware), 1, 1};
  return call.RunGroups(groups, local);
}

}  // namespace xpu::gpu
