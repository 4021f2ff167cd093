#include "tensorflow_plugin/backends/gpu/codegen/special.h"

#include <array>
#include <cstddef>
#include <set>

namespace xpu::gpu {
namespace {

// Sources are compiled only into kernels that call them.
constexpr char kInverses[] =
#include "tensorflow_plugin/backends/gpu/kernels/special/inverses.cl.inc"
    ;
constexpr char kGamma[] =
#include "tensorflow_plugin/backends/gpu/kernels/special/gamma.cl.inc"
    ;
constexpr char kIntegrals[] =
#include "tensorflow_plugin/backends/gpu/kernels/special/integrals.cl.inc"
    ;
constexpr char kBessel[] =
#include "tensorflow_plugin/backends/gpu/kernels/special/bessel.cl.inc"
    ;
constexpr char kIncomplete[] =
#include "tensorflow_plugin/backends/gpu/kernels/special/incomplete.cl.inc"
    ;
constexpr const char* kSources[] = {kInverses, kGamma, kIntegrals, kBessel, kIncomplete};

struct Function {
  Opcode op;
  const char* name;
  const char* source;
};
constexpr Function kFunctions[] = {
    {Opcode::kErfinv, "special_erfinv", kInverses},
    {Opcode::kNdtri, "special_ndtri", kInverses},
    {Opcode::kLgamma, "special_lgamma", kGamma},
    {Opcode::kDigamma, "special_digamma", kGamma},
    {Opcode::kBesselI0, "special_bessel_i0", kBessel},
    {Opcode::kBesselI0e, "special_bessel_i0e", kBessel},
    {Opcode::kBesselI1, "special_bessel_i1", kBessel},
    {Opcode::kBesselI1e, "special_bessel_i1e", kBessel},
    {Opcode::kBesselJ0, "special_bessel_j0", kBessel},
    {Opcode::kBesselJ1, "special_bessel_j1", kBessel},
    {Opcode::kBesselK0, "special_bessel_k0", kBessel},
    {Opcode::kBesselK0e, "special_bessel_k0e", kBessel},
    {Opcode::kBesselK1, "special_bessel_k1", kBessel},
    {Opcode::kBesselK1e, "special_bessel_k1e", kBessel},
    {Opcode::kBesselY0, "special_bessel_y0", kBessel},
    {Opcode::kBesselY1, "special_bessel_y1", kBessel},
    {Opcode::kDawsn, "special_dawsn", kIntegrals},
    {Opcode::kExpint, "special_expint", kIntegrals},
    {Opcode::kFresnelCos, "special_fresnel_cos", kIntegrals},
    {Opcode::kFresnelSin, "special_fresnel_sin", kIntegrals},
    {Opcode::kSpence, "special_spence", kIntegrals},
    {Opcode::kIgamma, "special_igamma", kIncomplete},
    {Opcode::kIgammac, "special_igammac", kIncomplete},
    {Opcode::kIgammaGradA, "special_igamma_grad_a", kIncomplete},
    {Opcode::kGammaSampleGrad, "special_gamma_sample_grad", kIncomplete},
    {Opcode::kPolygamma, "special_polygamma", kIncomplete},
    {Opcode::kZeta, "special_zeta", kIncomplete},
    {Opcode::kBetainc, "special_betainc", kIncomplete},
};

const Function* Find(Opcode op) {
  static const auto* const by_opcode = [] {
    auto* const found = new std::array<const Function*, kNumOpcodes>{};
    for (const Function& function : kFunctions) (*found)[static_cast<size_t>(function.op)] = &function;
    return found;
  }();
  return (*by_opcode)[static_cast<size_t>(op)];
}

}  // namespace

const char* SpecialFunction(Opcode op) {
  const Function* const function = Find(op);
  return function == nullptr ? nullptr : function->name;
}

std::string SpecialSources(const Program& program) {
  std::set<const char*> sources;
  for (const Instr& instr : program.instrs()) {
    if (const Function* const function = Find(instr.op)) sources.insert(function->source);
  }
  if (sources.count(kIncomplete) != 0) sources.insert(kGamma);
  std::string all;
  for (const char* source : kSources) {
    if (sources.count(source) != 0) all += source;
  }
  return all;
}

}  // namespace xpu::gpu
