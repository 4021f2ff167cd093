#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"

template <typename From, typename To>
static void Convert(const From* from, To* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Load(from + i));
  if (i < n) StoreFirst(to + i, static_cast<int>(n - i), LoadFirst(from + i, static_cast<int>(n - i), 0));
}
