#include "tensorflow_plugin/backends/cpu/simd/isa.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace xpu::cpu {
namespace {

std::atomic<int> override_isa{-1};

Isa Best() {
  int best = kNumIsas - 1;
  while (!HasIsa(static_cast<Isa>(best))) --best;
  return static_cast<Isa>(best);
}

Isa FromEnvironment() {
  std::string warning;
  const Isa isa = ChooseIsa(std::getenv("TF_XPU_ISA"), &warning);
  if (!warning.empty()) std::fprintf(stderr, "%s\n", warning.c_str());
  return isa;
}

#if defined(__x86_64__)
// Linux lets a process use the registers of tiles if it asks for them.
bool MayUseTiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h
  static const bool may = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
}
#endif

}  // namespace

const char* Name(Isa isa) {
  constexpr const char* names[kNumIsas] = {"baseline", "avx2", "avx512", "avx512_vnni", "amx"};
  return names[static_cast<int>(isa)];
}

bool HasIsa(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kBaseline:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case Isa::kAvx512:
      return HasIsa(Isa::kAvx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Isa::kAvx512Vnni:
      return HasIsa(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
    case Isa::kAmx:
      return HasIsa(Isa::kAvx512Vnni) && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
             MayUseTiles();
  }
  return false;
#else
  return isa == Isa::kBaseline;
#endif
}

Isa ChooseIsa(const char* requested, std::string* warning) {
  const Isa best = Best();
  if (requested == nullptr || *requested == 0) return best;
  for (int i = 0; i < kNumIsas; ++i) {
    const Isa isa = static_cast<Isa>(i);
    if (std::strcmp(requested, Name(isa)) != 0) continue;
    if (HasIsa(isa)) return isa;
    *warning =
        std::string("tensorflow_xpu: TF_XPU_ISA=") + requested + " is not supported by this CPU; using " + Name(best);
    return best;
  }
  *warning = std::string("tensorflow_xpu: TF_XPU_ISA=\"") + requested +
             "\" is unknown; expected baseline, avx2, avx512, avx512_vnni or amx; using " + Name(best);
  return best;
}

Isa ActiveIsa() {
  const int forced = override_isa.load(std::memory_order_relaxed);
  if (forced >= 0) return static_cast<Isa>(forced);
  static const Isa isa = FromEnvironment();
  return isa;
}

ScopedIsa::ScopedIsa(Isa isa) : saved_(override_isa.exchange(static_cast<int>(isa))) {}
ScopedIsa::~ScopedIsa() { override_isa.store(saved_); }

}  // namespace xpu::cpu
