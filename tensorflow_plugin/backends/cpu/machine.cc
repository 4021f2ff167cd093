#include "tensorflow_plugin/backends/cpu/machine.h"

#include <cstdlib>
#include <string_view>

#include "tensorflow_plugin/backends/cpu/onednn.h"

namespace xpu::cpu {
namespace {

// TF_XPU_WINOGRAD, which is not set where it is nullptr. Who reads the options says which values make no sense.
bool WantsWinograd(const char* value) { return value == nullptr || std::string_view(value) != "0"; }

}  // namespace

const Machine& Machine::OfProcess() {
  static const Machine here = [] {
    Machine machine;
    machine.has_half = cpu::HasNative(DType::kHalf);
    machine.has_bfloat16 = cpu::HasNative(DType::kBFloat16);
    machine.winograd = WantsWinograd(std::getenv("TF_XPU_WINOGRAD"));
    return machine;
  }();
  return here;
}

}  // namespace xpu::cpu
