// Element types a primitive can name, and their storage.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_TYPES_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_TYPES_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace xpu {

enum class DType : uint8_t {
  kInvalid = 0,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kHalf,
  kBFloat16,
  kFloat,
  kDouble,
  kComplex64,
  kComplex128,
};
inline constexpr int kNumDTypes = 16;

// Bytes per element; 0 for kInvalid.
constexpr size_t SizeOf(DType t) {
  constexpr size_t sizes[kNumDTypes] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(t)];
}

// TensorFlow's spelling: "float", "bfloat16", ...
constexpr const char* Name(DType t) {
  constexpr const char* names[kNumDTypes] = {"invalid", "bool",   "int8",      "int16",     "int32", "int64",
                                             "uint8",   "uint16", "uint32",    "uint64",    "half",  "bfloat16",
                                             "float",   "double", "complex64", "complex128"};
  return names[static_cast<int>(t)];
}

constexpr bool IsFloating(DType t) { return t >= DType::kHalf && t <= DType::kDouble; }
constexpr bool IsComplex(DType t) { return t >= DType::kComplex64; }
constexpr bool IsSignedInteger(DType t) { return t >= DType::kInt8 && t <= DType::kInt64; }
constexpr bool IsUnsignedInteger(DType t) { return t >= DType::kUint8 && t <= DType::kUint64; }
constexpr bool IsInteger(DType t) { return t >= DType::kInt8 && t <= DType::kUint64; }
// The type of the parts of a complex number; a real type itself.
constexpr DType RealTypeOf(DType t) {
  return t == DType::kComplex64 ? DType::kFloat : t == DType::kComplex128 ? DType::kDouble : t;
}
// half and bfloat16 are stored in 16 bits and computed in float.
constexpr bool IsReducedFloat(DType t) { return t == DType::kHalf || t == DType::kBFloat16; }

// bfloat16: the upper half of a float, rounded to nearest even as TensorFlow does.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    // A NaN must stay a NaN: rounding could carry it into infinity.
    bits = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? ((u >> 16) | 0x40u) : rounded);
  }
  operator float() const {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

// IEEE binary16, rounded to nearest even. Branch-free so that loops over it vectorise.
struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float f) {
    uint32_t x;
    std::memcpy(&x, &f, 4);
    const uint32_t sign = (x >> 16) & 0x8000u;
    x &= 0x7fffffffu;
    // Normal range: rebias the exponent and round to nearest even.
    const uint32_t normal = (x + 0xc8000fffu + ((x >> 13) & 1u)) >> 13;
    // Subnormal range: let float addition do the rounding.
    float magnitude;
    std::memcpy(&magnitude, &x, 4);
    const float shifted = magnitude + 0.5f;
    uint32_t subnormal;
    std::memcpy(&subnormal, &shifted, 4);
    subnormal -= 0x3f000000u;
    uint32_t h = x < 0x38800000u ? subnormal : normal;
    h = x >= 0x477ff000u ? 0x7c00u : h;                          // overflow to infinity
    h = x > 0x7f800000u ? (0x7e00u | ((x >> 13) & 0x3ffu)) : h;  // NaN
    bits = static_cast<uint16_t>(h | sign);
  }
  operator float() const {
    const uint32_t sign = (static_cast<uint32_t>(bits) & 0x8000u) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(bits) & 0x7fffu;
    uint32_t normal = (magnitude << 13) + 0x38000000u;
    normal += magnitude >= 0x7c00u ? 0x38000000u : 0u;  // infinity and NaN
    const float small = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
    uint32_t subnormal;
    std::memcpy(&subnormal, &small, 4);
    const uint32_t u = (magnitude < 0x400u ? subnormal : normal) | sign;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

// C++ type -> DType.
template <typename T>
struct DTypeOf;
#define XPU_DTYPE_OF(T, E)                   \
  template <>                                \
  struct DTypeOf<T> {                        \
    static constexpr DType value = DType::E; \
  }
XPU_DTYPE_OF(bool, kBool);
XPU_DTYPE_OF(int8_t, kInt8);
XPU_DTYPE_OF(int16_t, kInt16);
XPU_DTYPE_OF(int32_t, kInt32);
XPU_DTYPE_OF(int64_t, kInt64);
XPU_DTYPE_OF(uint8_t, kUint8);
XPU_DTYPE_OF(uint16_t, kUint16);
XPU_DTYPE_OF(uint32_t, kUint32);
XPU_DTYPE_OF(uint64_t, kUint64);
XPU_DTYPE_OF(Half, kHalf);
XPU_DTYPE_OF(BFloat16, kBFloat16);
XPU_DTYPE_OF(float, kFloat);
XPU_DTYPE_OF(double, kDouble);
XPU_DTYPE_OF(std::complex<float>, kComplex64);
XPU_DTYPE_OF(std::complex<double>, kComplex128);
#undef XPU_DTYPE_OF

// The type arithmetic on T is done in: float for half and bfloat16, T otherwise.
template <typename T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <typename T>
using ComputeTypeT = typename ComputeType<T>::type;

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type of `t`; false (and no call) for kInvalid.
template <typename F>
bool VisitType(DType t, F&& f) {
  switch (t) {
#define XPU_CASE(E, T) \
  case DType::E:       \
    f(TypeTag<T>{});   \
    return true
    XPU_CASE(kBool, bool);
    XPU_CASE(kInt8, int8_t);
    XPU_CASE(kInt16, int16_t);
    XPU_CASE(kInt32, int32_t);
    XPU_CASE(kInt64, int64_t);
    XPU_CASE(kUint8, uint8_t);
    XPU_CASE(kUint16, uint16_t);
    XPU_CASE(kUint32, uint32_t);
    XPU_CASE(kUint64, uint64_t);
    XPU_CASE(kHalf, Half);
    XPU_CASE(kBFloat16, BFloat16);
    XPU_CASE(kFloat, float);
    XPU_CASE(kDouble, double);
    XPU_CASE(kComplex64, std::complex<float>);
    XPU_CASE(kComplex128, std::complex<double>);
#undef XPU_CASE
    case DType::kInvalid:
      break;
  }
  return false;
}

// The n elements of an integer type that lie at `data`; none of another type.
inline std::vector<int64_t> IntegersAt(const void* data, DType type, int64_t n) {
  std::vector<int64_t> values;
  VisitType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* first = static_cast<const T*>(data);
    if constexpr (IsInteger(DTypeOf<T>::value)) values.assign(first, first + n);
  });
  return values;
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_TYPES_H_
