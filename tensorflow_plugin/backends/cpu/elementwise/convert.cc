#include "tensorflow_plugin/backends/cpu/elementwise/convert.h"

#include "tensorflow_plugin/backends/cpu/elementwise/convert_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"

namespace xpu::cpu {
namespace {

constexpr int64_t kGrain = 1 << 16;

template <typename From, typename To>
void ConvertAll(const void* from, void* to, int64_t n, const host_runtime::ThreadTeam& team) {
  const auto convert = XPU_PICK_ISA(Convert<From, To>);
  team.ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    convert(static_cast<const From*>(from) + begin, static_cast<To*>(to) + begin, end - begin);
  });
}

}  // namespace

void ToFloat(DType type, const void* from, float* to, int64_t n, const host_runtime::ThreadTeam& team) {
  type == DType::kHalf ? ConvertAll<Half, float>(from, to, n, team) : ConvertAll<BFloat16, float>(from, to, n, team);
}

void FromFloat(DType type, const float* from, void* to, int64_t n, const host_runtime::ThreadTeam& team) {
  type == DType::kHalf ? ConvertAll<float, Half>(from, to, n, team) : ConvertAll<float, BFloat16>(from, to, n, team);
}

}  // namespace xpu::cpu
