// Numbers as unsigned integers in the same order.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ORDER_KEYS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ORDER_KEYS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tensorflow_plugin/primitives/types.h"

namespace xpu::cpu {

// True if a type has an order.
template <typename T>
inline constexpr bool kHasOrder = IsFloating(DTypeOf<T>::value) || IsInteger(DTypeOf<T>::value);

template <typename T>
using OrderKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Equal numbers, which the two zeros are, have equal keys, and smaller numbers have smaller keys. With a `flip` of ~0
// instead of 0, larger numbers have smaller keys. That of a NaN is the largest, either way. Without branches, so that
// loops vectorise.
template <typename T>
OrderKey<T> OrderKeyOf(T x, OrderKey<T> flip) {
  using Key = OrderKey<T>;
  using C = ComputeTypeT<T>;
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_integral_v<C>) {
    const Key bits = static_cast<Key>(static_cast<std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>(x));
    return bits ^ (std::is_signed_v<C> ? kSign : Key{0}) ^ flip;
  } else {
    const C number = static_cast<C>(x);
    Key bits;
    std::memcpy(&bits, &number, sizeof(bits));
    bits = bits == kSign ? Key{0} : bits;  // -0 becomes 0
    const Key key = bits ^ ((bits & kSign) ? ~Key{0} : kSign) ^ flip;
    return number != number ? ~Key{0} : key;
  }
}

}  // namespace xpu::cpu

#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_ARRAYS_ORDER_KEYS_H_
