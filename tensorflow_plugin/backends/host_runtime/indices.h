// The part that Gather and Scatter share: the name of an index out of range.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_INDICES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_INDICES_H_

#include <cstdint>
#include <string>

#include "tensorflow_plugin/primitives/dims.h"
#include "tensorflow_plugin/primitives/status.h"
#include "tensorflow_plugin/primitives/types.h"

namespace xpu::host_runtime {

// TensorFlow's words. `position` is where the index stands ("3", "1,3"), `index` its dims.rank() coordinates:
//   indices[3] = 12 is not in [0, 10)                             one coordinate
//   indices[3] = [0, 12] does not index into shape [2,10]         several
template <typename I>
Status IndexError(const std::string& position, const I* index, const Dims& dims) {
  // Unary plus: an 8-bit index is a number, not a character.
  if (dims.rank() == 1) {
    return errors::InvalidArgument("indices[", position, "] = ", +index[0], " is not in [0, ", dims[0], ")");
  }
  std::string coordinates;
  for (int d = 0; d < dims.rank(); ++d) coordinates += (d ? ", " : "") + std::to_string(index[d]);
  return errors::InvalidArgument("indices[", position, "] = [", coordinates, "] does not index into shape ",
                                 dims.ToString());
}

// Where index `number` of all stands: "3", or "1,3" if there are several batches of them.
inline std::string PositionOf(int64_t number, int64_t batches, int64_t in_each) {
  return (batches > 1 ? std::to_string(number / in_each) + "," : "") + std::to_string(number % in_each);
}

// The row that `index` names in an array of shape [dims..., row], or -1 if a coordinate is out of range.
template <typename I>
int64_t RowOf(const I* index, const Dims& dims) {
  int64_t row = 0;
  for (int d = 0; d < dims.rank(); ++d) {
    // As unsigned, a negative coordinate is too large, and so is a uint64 beyond int64's range.
    if (static_cast<uint64_t>(index[d]) >= static_cast<uint64_t>(dims[d])) return -1;
    row = row * dims[d] + static_cast<int64_t>(index[d]);
  }
  return row;
}

// Calls f(TypeTag<I>{}) for an integer index type; InvalidArgument for another.
template <typename F>
Status VisitIndexType(DType type, F&& f) {
  Status status = errors::InvalidArgument("indices must be integers, not ", Name(type));
  VisitType(type, [&](auto tag) {
    if constexpr (IsInteger(DTypeOf<typename decltype(tag)::type>::value)) status = f(tag);
  });
  return status;
}

}  // namespace xpu::host_runtime

#endif  // TENSORFLOW_PLUGIN_BACKENDS_HOST_RUNTIME_INDICES_H_
