#include "tensorflow_plugin/backends/plain/instructions.h"

#include "tensorflow_plugin/backends/plain/scalar_ops.h"

namespace xpu::plain {
namespace {

template <typename Op, typename T>
bool UnaryLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  using R = decltype(Op::Apply(T{}));
  for (int64_t i = 0; i < n; ++i) static_cast<R*>(dst)[i] = Op::Apply(static_cast<const T*>(a)[i]);
  return false;
}

template <typename Op, typename T>
bool BinaryLoop(void* dst, const void* a, const void* b, const void*, int64_t n) {
  using R = decltype(Op::Apply(T{}, T{}, nullptr));
  bool failed = false;
  for (int64_t i = 0; i < n; ++i) {
    static_cast<R*>(dst)[i] = Op::Apply(static_cast<const T*>(a)[i], static_cast<const T*>(b)[i], &failed);
  }
  return failed;
}

// A is bool for Select, else T.
template <typename Op, typename A, typename T>
bool TernaryLoop(void* dst, const void* a, const void* b, const void* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<T*>(dst)[i] =
        Op::Apply(static_cast<const A*>(a)[i], static_cast<const T*>(b)[i], static_cast<const T*>(c)[i]);
  }
  return false;
}

template <typename To, typename From>
bool CastLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<ComputeTypeT<To>*>(dst)[i] = scalar::Cast<To>(static_cast<const From*>(a)[i]);
  }
  return false;
}

// Storage to register (To = float) or back (From = float).
template <typename To, typename From>
bool ConvertLoop(void* dst, const void* a, const void*, const void*, int64_t n) {
  for (int64_t i = 0; i < n; ++i) static_cast<To*>(dst)[i] = static_cast<To>(static_cast<const From*>(a)[i]);
  return false;
}

template <typename T>
constexpr uint8_t ClassOfCpp() {
  if (std::is_same_v<T, bool>) return kB;
  if (scalar::kIsComplex<T>) return kC;
  if (std::is_floating_point_v<T>) return kF;
  return std::is_signed_v<T> ? kI : kU;
}

template <typename Op, int arity, uint8_t types, typename T>
InstrFn LoopOf() {
  if constexpr ((types & ClassOfCpp<T>()) == 0) {
    return nullptr;
  } else if constexpr (arity == 1) {
    return &UnaryLoop<Op, T>;
  } else if constexpr (arity == 2) {
    return &BinaryLoop<Op, T>;
  } else {
    return &TernaryLoop<Op, std::conditional_t<std::is_same_v<Op, scalar::ops::Select>, bool, T>, T>;
  }
}

// The table names Cast too, whose loop depends on two types (FindCast).
struct Cast;

template <typename T>
InstrFn FindLoop(Opcode op) {
  using namespace scalar::ops;  // NOLINT: one struct per op, of its name
  switch (op) {
#define XPU_CASE(name, arity, types, rule) \
  case Opcode::k##name:                    \
    return LoopOf<name, arity, (Opcode::k##name == Opcode::kCast ? 0 : (types)), T>();
    XPU_OPCODES(XPU_CASE)
#undef XPU_CASE
  }
  return nullptr;
}

InstrFn FindCast(DType from, DType to) {
  InstrFn fn = nullptr;
  VisitType(from, [&](auto from_tag) {
    using From = ComputeTypeT<typename decltype(from_tag)::type>;
    VisitType(to, [&](auto to_tag) { fn = &CastLoop<typename decltype(to_tag)::type, From>; });
  });
  return fn;
}

}  // namespace

InstrFn FindInstr(Opcode op, DType type, DType result) {
  if (op == Opcode::kCast) return FindCast(type, result);
  InstrFn fn = nullptr;
  VisitType(type, [&](auto tag) { fn = FindLoop<ComputeTypeT<typename decltype(tag)::type>>(op); });
  return fn;
}

InstrFn FindLoad(DType type) {
  if (type == DType::kHalf) return &ConvertLoop<float, Half>;
  if (type == DType::kBFloat16) return &ConvertLoop<float, BFloat16>;
  return nullptr;
}

InstrFn FindStore(DType type) {
  if (type == DType::kHalf) return &ConvertLoop<Half, float>;
  if (type == DType::kBFloat16) return &ConvertLoop<BFloat16, float>;
  return nullptr;
}

size_t RegisterSize(DType type) { return IsReducedFloat(type) ? sizeof(float) : SizeOf(type); }

void StoreConstant(const Constant& constant, void* dst) {
  VisitType(constant.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* out = static_cast<ComputeTypeT<T>*>(dst);
    if constexpr (scalar::kIsComplex<T>) {
      *out = scalar::Cast<T>(std::complex<double>(constant.re, constant.im));
    } else if constexpr (scalar::kIsInt<T>) {
      *out = constant.bits != 0 ? static_cast<T>(constant.bits) : scalar::Cast<T>(constant.re);
    } else {
      *out = scalar::Cast<T>(constant.re);
    }
  });
}

Status InstrFailure(Opcode op) {
  if (op == Opcode::kPow) return errors::InvalidArgument("Integers to negative integer powers are not allowed");
  return errors::InvalidArgument("Integer division by zero");
}

}  // namespace xpu::plain
