#include "tensorflow_plugin/backends/plain/random.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/random/random_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/host_runtime/random_numbers.h"

namespace xpu::cpu {
namespace {

using host_runtime::kGroupSize;

template <typename T>
void ConvertBlock(const RandomDesc& desc, const uint32_t* words, int groups, T* out) {
  constexpr int kSize = kGroupSize<T>;
  for (int g = 0; g < groups; ++g) {
    const uint32_t* bits = words + 4 * g;
    if constexpr (std::is_integral_v<T>) {
      if (desc.kind == RandomKind::kUniformInt) {
        host_runtime::IntGroup(bits, desc.low, desc.high, out + g * kSize);
      } else {
        host_runtime::FullIntGroup(bits, out + g * kSize);
      }
    } else if (desc.kind == RandomKind::kNormal) {
      host_runtime::NormalGroup(bits, out + g * kSize);
    } else {
      host_runtime::UniformGroup(bits, out + g * kSize);
    }
  }
}

// Groups [begin, end) of a kind that takes one group of words for one group of numbers.
template <typename T>
void FillFixed(const RandomDesc& desc, int64_t begin, int64_t end, T* out) {
  constexpr int kSize = kGroupSize<T>;
  alignas(64) uint32_t words[4 * kPhiloxBlock];
  alignas(64) T last[kSize * kPhiloxBlock];
  Philox generator = host_runtime::GeneratorOf(desc);
  generator.Skip(begin);
  for (int64_t g = begin; g < end; g += kPhiloxBlock) {
    XPU_PICK_ISA(GenerateBlock)(generator.low(), generator.high(), generator.key(), words);
    generator.Skip(kPhiloxBlock);
    const int groups = static_cast<int>(std::min<int64_t>(kPhiloxBlock, end - g));
    const int64_t left = desc.n - g * kSize;
    if (left >= groups * kSize) {
      ConvertBlock(desc, words, groups, out + g * kSize);
    } else {
      ConvertBlock(desc, words, groups, last);
      std::copy_n(last, left, out + g * kSize);
    }
  }
}

template <typename T>
void FillTruncated(const RandomDesc& desc, int64_t begin, int64_t end, T* out) {
  constexpr int kSize = kGroupSize<T>;
  Philox generator = host_runtime::GeneratorOf(desc);
  generator.Skip(begin * host_runtime::kTruncatedGroupSkip<T>);
  for (int64_t g = begin; g < end; ++g) {
    T group[kSize];
    host_runtime::TruncatedNormalGroup(generator, group);
    generator.Skip(host_runtime::kTruncatedGroupSkip<T>);
    std::copy_n(group, std::min<int64_t>(kSize, desc.n - g * kSize), out + g * kSize);
  }
}

}  // namespace

Status CpuKernels::Run(const RandomDesc& given, const Args& args, const host_runtime::ThreadTeam& team) const {
  if (given.kind == RandomKind::kBoundedNormal) return plain::BoundedNormal(given, args);
  if (given.kind == RandomKind::kGamma) {
    team.ParallelFor(given.n, 128, [&](int64_t begin, int64_t end) { plain::Gamma(given, args, begin, end); });
    return OkStatus();
  }
  const RandomDesc desc = host_runtime::WithStart(given, args);
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DType t = DTypeOf<T>::value;
    if constexpr (IsFloating(t) || (IsInteger(t) && sizeof(T) >= 4)) {
      T* out = static_cast<T*>(args.out[0]);
      const int64_t groups = (desc.n + kGroupSize<T> - 1) / kGroupSize<T>;
      const bool normal = desc.kind == RandomKind::kNormal || desc.kind == RandomKind::kTruncatedNormal;
      team.ParallelFor(groups, normal ? 4 * kPhiloxBlock : 64 * kPhiloxBlock, [&](int64_t begin, int64_t end) {
        if constexpr (IsFloating(t)) {
          if (desc.kind == RandomKind::kTruncatedNormal) return FillTruncated(desc, begin, end, out);
        }
        FillFixed(desc, begin, end, out);
      });
    }
  });
  return OkStatus();
}

}  // namespace xpu::cpu
