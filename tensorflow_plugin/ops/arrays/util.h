// The common part of the array ops: strided copies, fills, axes.
#ifndef TENSORFLOW_PLUGIN_OPS_ARRAYS_UTIL_H_
#define TENSORFLOW_PLUGIN_OPS_ARRAYS_UTIL_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/framework/context.h"
#include "tensorflow_plugin/framework/registry.h"

namespace xpu {

// A strided view of a dense array, in elements.
struct View {
  Dims strides;
  int64_t offset = 0;
};

// The view of all of a dense array of shape `shape`.
inline View DenseView(const Dims& shape) { return {DenseStrides(shape), 0}; }

// Copies `shape` elements of `size` bytes from one view to another.
Status CopyView(Context& ctx, size_t size, const Dims& shape, const void* src, const View& src_view, void* dst,
                const View& dst_view);

// Sets every element of `out` to the value at `host_value` (host memory, one element of out's type).
Status Fill(Context& ctx, const void* host_value, const Tensor& out);
// Sets every byte of `out` to zero.
Status FillZero(Context& ctx, const Tensor& out);

// Output 0 with input i's content: the input's own buffer when nobody else holds it, else a copy.
Status ForwardOrCopy(Context& ctx, int i, Tensor* out);

// A device array of 32- or 64-bit integers made on the host.
Status Upload(Context& ctx, const std::vector<int64_t>& values, DType type, Temporary* out);

// [*begin, *begin + count): the product of extents.
inline int64_t Product(const Dims& dims, int begin, int end) {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= dims[i];
  return n;
}

// Appends from[begin], ..., from[end - 1].
inline void Append(const Dims& from, int begin, int end, Dims* to) {
  for (int i = begin; i < end; ++i) to->push_back(from[i]);
}

inline Dims ToDims(const std::vector<int64_t>& v) {
  Dims d;
  for (int64_t x : v) d.push_back(x);
  return d;
}

// The list of types with `type` left out.
TypeList Without(TypeList types, DType type);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_ARRAYS_UTIL_H_
