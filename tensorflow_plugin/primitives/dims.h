// Dims: a vector of extents or strides, of any rank. Strides count elements, not bytes.
#ifndef TENSORFLOW_PLUGIN_PRIMITIVES_DIMS_H_
#define TENSORFLOW_PLUGIN_PRIMITIVES_DIMS_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "tensorflow_plugin/primitives/small_vector.h"

namespace xpu {

class Dims : public SmallVector<int64_t, 6> {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> v) {
    for (int64_t d : v) push_back(d);
  }
  Dims(int rank, int64_t fill) { resize(rank, fill); }

  int rank() const { return size(); }

  // Product of the extents; 1 for rank 0.
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t d : *this) n *= d;
    return n;
  }
  bool operator==(const Dims& o) const {
    return rank() == o.rank() && std::memcmp(begin(), o.begin(), sizeof(int64_t) * static_cast<size_t>(rank())) == 0;
  }
  bool operator!=(const Dims& o) const { return !(*this == o); }

  // "[2,3]", as TensorFlow prints shapes.
  std::string ToString() const {
    std::string s = "[";
    for (int i = 0; i < rank(); ++i) s += (i ? "," : "") + std::to_string((*this)[i]);
    return s + "]";
  }
};

// Row-major strides of a dense array of this shape.
inline Dims DenseStrides(const Dims& shape) {
  Dims strides(shape.rank(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

// A walk over `shape` may read some elements that are dense in the innermost axes, and repeat them along all others.
// The result is their number: all elements of a dense operand, 1 for a single number. -1: the walk is another one.
inline int64_t ElementsOfRepeatedBlock(const Dims& shape, const Dims& strides) {
  int64_t elements = 1, block = 1;
  bool repeats = false;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    repeats = repeats || strides[d] == 0;
    if (strides[d] != (repeats ? 0 : elements)) return -1;
    elements *= shape[d];
    if (!repeats) block = elements;
  }
  return block;
}

// Merges neighbouring dimensions that every operand walks as one, and drops extents of 1, in place.
// `strides` are the operands' strides over `shape`; a shape of rank >= 1 keeps rank >= 1. Dimensions i < j merge
// only where `may_merge(i, j)` of the *original* indices allows it: reductions keep kept and reduced axes apart.
template <typename MayMerge>
void MergeDims(Dims* shape, Dims* const* strides, int num_operands, MayMerge may_merge) {
  const int rank = shape->rank();
  if (rank == 0) return;
  int out = -1;   // last dimension written
  int last = -1;  // the original index it came from
  for (int i = 0; i < rank; ++i) {
    const int64_t extent = (*shape)[i];
    if (extent == 1 && !(i == rank - 1 && out < 0)) continue;
    bool merge = out >= 0 && may_merge(last, i);
    for (int k = 0; merge && k < num_operands; ++k) {
      merge = (*strides[k])[out] == (*strides[k])[i] * extent;
    }
    if (merge) {
      (*shape)[out] *= extent;
    } else {
      (*shape)[++out] = extent;
    }
    for (int k = 0; k < num_operands; ++k) (*strides[k])[out] = (*strides[k])[i];
    last = i;
  }
  shape->resize(out + 1);
  for (int k = 0; k < num_operands; ++k) strides[k]->resize(out + 1);
}

inline void MergeDims(Dims* shape, Dims* const* strides, int num_operands) {
  MergeDims(shape, strides, num_operands, [](int, int) { return true; });
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_PRIMITIVES_DIMS_H_
