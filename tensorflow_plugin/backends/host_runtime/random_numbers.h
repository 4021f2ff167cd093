// From Philox's bits to numbers, in the forms that TensorFlow's CPU kernels use.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_RANDOM_NUMBERS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_RANDOM_NUMBERS_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"
#include "tensorflow_plugin/primitives/philox.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::host_runtime {

inline Philox GeneratorOf(const RandomDesc& desc) { return {desc.key, desc.counter[0], desc.counter[1]}; }

// The command with its start in the descriptor.
inline RandomDesc WithStart(const RandomDesc& desc, const Args& args) {
  RandomDesc here = desc;
  here.start = RandomStart::kHere;
  if (desc.start == RandomStart::kGiven) std::memcpy(&here.key, args.in[0], sizeof(here.key));
  if (desc.start != RandomStart::kHere) {
    std::memcpy(here.counter, args.in[desc.start == RandomStart::kGiven ? 1 : 0], sizeof(here.counter));
  }
  return here;
}

inline uint64_t Join(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

// Bits to [0, 1): the lowest mantissa-width bits over their range, which is exact in every type.
template <typename T>
T UnitInterval(uint32_t bits);
template <>
inline float UnitInterval<float>(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits & 0x7fffffu)) * 0x1p-23f;
}
template <>
inline Half UnitInterval<Half>(uint32_t bits) {
  return Half(static_cast<float>(static_cast<int32_t>(bits & 0x3ffu)) * 0x1p-10f);
}
template <>
inline BFloat16 UnitInterval<BFloat16>(uint32_t bits) {
  return BFloat16(static_cast<float>(static_cast<int32_t>(bits & 0x7fu)) * 0x1p-7f);
}
// A double's upper mantissa word comes first.
inline double UnitIntervalDouble(uint32_t high, uint32_t low) {
  return static_cast<double>(static_cast<int64_t>(Join(low, high & 0xfffffu))) * 0x1p-52;
}

// Two normal numbers from two words (float) or four (double). The C library's functions, whose results are
// TensorFlow's too, and its order of roundings: the angle is a double product before it becomes a float.
inline void BoxMuller(const uint32_t* bits, float out[2]) {
  float u = UnitInterval<float>(bits[0]);
  if (u < 1.0e-7f) u = 1.0e-7f;
  const float angle = static_cast<float>(2.0 * M_PI * static_cast<double>(UnitInterval<float>(bits[1])));
  const float radius = std::sqrt(-2.0f * std::log(u));
  sincosf(angle, &out[0], &out[1]);
  out[0] *= radius;
  out[1] *= radius;
}
inline void BoxMuller(const uint32_t* bits, double out[2]) {
  double u = UnitIntervalDouble(bits[0], bits[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  const double angle = 2.0 * M_PI * UnitIntervalDouble(bits[2], bits[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  sincos(angle, &out[0], &out[1]);
  out[0] *= radius;
  out[1] *= radius;
}

// Numbers that one group of four words gives.
template <typename T>
inline constexpr int kGroupSize = sizeof(T) == 8 ? 2 : 4;

// A truncated normal draws as often as it must. So every group of outputs has a stretch of the sequence of its own: 256
// words per output.
template <typename T>
inline constexpr uint64_t kTruncatedGroupSkip = kGroupSize<T> * 256 / 4;

// The fixed-length kinds, out of one group of words.
template <typename T>
void UniformGroup(const uint32_t bits[4], T* out) {
  if constexpr (sizeof(T) == 8) {
    out[0] = UnitIntervalDouble(bits[0], bits[1]);
    out[1] = UnitIntervalDouble(bits[2], bits[3]);
  } else {
    for (int i = 0; i < 4; ++i) out[i] = UnitInterval<T>(bits[i]);
  }
}
template <typename T>
void NormalGroup(const uint32_t bits[4], T* out) {
  ComputeTypeT<T> pair[2];
  for (int i = 0; i < kGroupSize<T>; i += 2) {
    BoxMuller(bits + i, pair);
    out[i] = static_cast<T>(pair[0]);
    out[i + 1] = static_cast<T>(pair[1]);
  }
}
// The group at the generator's place, redrawing what is two deviations or more away.
template <typename T>
void TruncatedNormalGroup(Philox generator, T* out) {
  using C = ComputeTypeT<T>;
  constexpr int kWords = sizeof(T) == 8 ? 4 : 2;  // per pair
  uint32_t bits[4];
  C pair[2];
  for (int filled = 0;;) {
    generator.Next(bits);
    for (int w = 0; w < 4; w += kWords) {
      BoxMuller(bits + w, pair);
      for (C value : pair) {
        if (std::abs(value) < C(2)) {
          out[filled++] = static_cast<T>(value);
          if (filled == kGroupSize<T>) return;
        }
      }
    }
  }
}
template <typename T>
void FullIntGroup(const uint32_t bits[4], T* out) {
  if constexpr (sizeof(T) == 8) {
    out[0] = static_cast<T>(Join(bits[0], bits[1]));
    out[1] = static_cast<T>(Join(bits[2], bits[3]));
  } else {
    for (int i = 0; i < 4; ++i) out[i] = static_cast<T>(bits[i]);
  }
}
// low + bits mod (high - low), in unsigned arithmetic, where nothing overflows.
template <typename T>
void IntGroup(const uint32_t bits[4], int64_t low, int64_t high, T* out) {
  using U = std::make_unsigned_t<T>;
  const U range = static_cast<U>(static_cast<U>(high) - static_cast<U>(low));
  U raw[kGroupSize<T>];
  FullIntGroup<U>(bits, raw);
  for (int i = 0; i < kGroupSize<T>; ++i) out[i] = static_cast<T>(static_cast<U>(low) + raw[i] % range);
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_RANDOM_NUMBERS_H_
