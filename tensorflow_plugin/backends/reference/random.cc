#include "tensorflow_plugin/backends/plain/random.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tensorflow_plugin/backends/host_runtime/random_numbers.h"
#include "tensorflow_plugin/backends/reference/kernels.h"

namespace xpu::reference {
namespace {

using host_runtime::kGroupSize;

template <typename T>
void Fill(const RandomDesc& desc, T* out) {
  Philox generator = host_runtime::GeneratorOf(desc);
  uint32_t bits[4];
  for (int64_t i = 0; i < desc.n; i += kGroupSize<T>) {
    T group[kGroupSize<T>];
    if constexpr (std::is_integral_v<T>) {
      generator.Next(bits);
      if (desc.kind == RandomKind::kUniformInt) {
        host_runtime::IntGroup(bits, desc.low, desc.high, group);
      } else {
        host_runtime::FullIntGroup(bits, group);
      }
    } else if (desc.kind == RandomKind::kTruncatedNormal) {
      host_runtime::TruncatedNormalGroup(generator, group);
      generator.Skip(host_runtime::kTruncatedGroupSkip<T>);
    } else {
      generator.Next(bits);
      if (desc.kind == RandomKind::kNormal) {
        host_runtime::NormalGroup(bits, group);
      } else {
        host_runtime::UniformGroup(bits, group);
      }
    }
    std::copy_n(group, std::min<int64_t>(kGroupSize<T>, desc.n - i), out + i);
  }
}

}  // namespace

Status ReferenceKernels::Run(const RandomDesc& desc, const Args& args, const host_runtime::ThreadTeam&) const {
  if (desc.kind == RandomKind::kBoundedNormal) return plain::BoundedNormal(desc, args);
  if (desc.kind == RandomKind::kGamma) {
    plain::Gamma(desc, args, 0, desc.n);
    return OkStatus();
  }
  const RandomDesc here = host_runtime::WithStart(desc, args);
  VisitType(desc.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DType t = DTypeOf<T>::value;
    if constexpr (IsFloating(t) || (IsInteger(t) && sizeof(T) >= 4)) Fill(here, static_cast<T*>(args.out[0]));
  });
  return OkStatus();
}

}  // namespace xpu::reference
