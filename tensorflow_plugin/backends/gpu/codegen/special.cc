#include "tensorflow_plugin/backends/gpu/codegen/special.h"

#include <set>

namespace xpu::gpu {
namespace {

// Sources are compiled only into kernels that call them.
constexpr char kInverses[] =
#include "tensorflow_plugin/backends/gpu/kernels/special_inverses.cl.inc"
    ;
constexpr char kGamma[] =
#include "tensorflow_plugin/backends/gpu/kernels/special_gamma.cl.inc"
    ;
constexpr char kIntegrals[] =
#include "tensorflow_plugin/backends/gpu/kernels/special_integrals.cl.inc"
    ;
constexpr char kBessel[] =
#include "tensorflow_plugin/backends/gpu/kernels/special_bessel.cl.inc"
    ;
constexpr char kIncomplete[] =
#include "tensorflow_plugin/backends/gpu/kernels/special_incomplete.cl.inc"
    ;
constexpr const char* kSources[] = {kInverses, kGamma, kIntegrals, kBessel, kIncomplete};

struct Function {
  EOp op;
  const char* name;
  const char* source;
};
constexpr Function kFunctions[] = {
    {EOp::kErfinv, "special_erfinv", kInverses},
    {EOp::kNdtri, "special_ndtri", kInverses},
    {EOp::kLgamma, "special_lgamma", kGamma},
    {EOp::kDigamma, "special_digamma", kGamma},
    {EOp::kBesselI0, "special_bessel_i0", kBessel},
    {EOp::kBesselI0e, "special_bessel_i0e", kBessel},
    {EOp::kBesselI1, "special_bessel_i1", kBessel},
    {EOp::kBesselI1e, "special_bessel_i1e", kBessel},
    {EOp::kBesselJ0, "special_bessel_j0", kBessel},
    {EOp::kBesselJ1, "special_bessel_j1", kBessel},
    {EOp::kBesselK0, "special_bessel_k0", kBessel},
    {EOp::kBesselK0e, "special_bessel_k0e", kBessel},
    {EOp::kBesselK1, "special_bessel_k1", kBessel},
    {EOp::kBesselK1e, "special_bessel_k1e", kBessel},
    {EOp::kBesselY0, "special_bessel_y0", kBessel},
    {EOp::kBesselY1, "special_bessel_y1", kBessel},
    {EOp::kDawsn, "special_dawsn", kIntegrals},
    {EOp::kExpint, "special_expint", kIntegrals},
    {EOp::kFresnelCos, "special_fresnel_cos", kIntegrals},
    {EOp::kFresnelSin, "special_fresnel_sin", kIntegrals},
    {EOp::kSpence, "special_spence", kIntegrals},
    {EOp::kIgamma, "special_igamma", kIncomplete},
    {EOp::kIgammac, "special_igammac", kIncomplete},
    {EOp::kIgammaGradA, "special_igamma_grad_a", kIncomplete},
    {EOp::kGammaSampleGrad, "special_gamma_sample_grad", kIncomplete},
    {EOp::kPolygamma, "special_polygamma", kIncomplete},
    {EOp::kZeta, "special_zeta", kIncomplete},
    {EOp::kBetainc, "special_betainc", kIncomplete},
};

const Function* Find(EOp op) {
  for (const Function& function : kFunctions) {
    if (function.op == op) return &function;
  }
  return nullptr;
}

}  // namespace

const char* SpecialFunction(EOp op) {
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
