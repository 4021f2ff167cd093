#include "tensorflow_plugin/backends/cpu/machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "tensorflow_plugin/backends/cpu/onednn.h"

namespace xpu::cpu {
namespace {

// TF_XPU_WINOGRAD, which is not set where it is nullptr. Who reads the options says which values make no sense.
bool WantsWinograd(const char* value) { return value == nullptr || std::string_view(value) != "0"; }

// The C library's sysconf gives the sum over a whole package, or nothing.
int64_t LastCacheBytes() {
  int64_t last = 0;
  for (int index = 0; index < 5; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    int64_t size = 0;
    char unit = ' ';
    if (!(file >> size >> unit)) continue;
    last = std::max(last, size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0));
  }
  return last;
}

}  // namespace

const Machine& Machine::OfProcess() {
  static const Machine here = [] {
    Machine machine;
    machine.has_half = cpu::HasNative(DType::kHalf);
    machine.has_bfloat16 = cpu::HasNative(DType::kBFloat16);
    machine.last_cache_bytes = LastCacheBytes();
    machine.winograd = WantsWinograd(std::getenv("TF_XPU_WINOGRAD"));
    return machine;
  }();
  return here;
}

}  // namespace xpu::cpu
