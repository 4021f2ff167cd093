// The common part of the ops with index tensors.
#ifndef TENSORFLOW_PLUGIN_OPS_ARRAYS_INDEXING_H_
#define TENSORFLOW_PLUGIN_OPS_ARRAYS_INDEXING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"

namespace xpu {

// The treatment of an index out of range: fail, or go on without it.
enum class BadIndices { kError, kIgnore };
// Reads attribute bad_indices_policy. As on the CPU, an unspecified policy is an error.
BadIndices ReadBadIndicesPolicy(Construction& c);

// Waits for the stream and copies an integer tensor of any width to the host.
Status FetchIntegers(Context& ctx, const Tensor& t, std::vector<int64_t>* values);

// The name of an index in a failure. It is "<what>[0,1] = 9 is not in [0, 5)" where each index is one number. It is
// "<what>[0,1] = [9, 2] does not index into <whole> [5,5]" where it is the last dimension of the index tensor.
struct IndexNaming {
  const char* what = "indices";
  const char* range = " is not in [0, ";
  const char* whole = "shape";
  bool nd = false;
  bool skip_negative = false;
  Dims whole_shape;
};

// The failure, in TensorFlow's words, of a command that was refused one of its indices. `shape` is that of the index
// tensor, `dims` are the extents that an index addresses.
DescribeError BadIndex(const Dims& shape, const Dims& dims, const IndexNaming& naming);

// The indices of a command, in device memory: n coordinates.
struct Indices {
  const void* data;
  DType type;
  int64_t n;
};
inline Indices IndicesOf(const GatherDesc& desc, const std::initializer_list<const void*>& in) {
  return {in.begin()[1], desc.index_type, desc.num_indices * desc.dims.rank()};
}
inline Indices IndicesOf(const ScatterDesc& desc, const std::initializer_list<const void*>& in) {
  return {in.begin()[0], desc.index_type, desc.num_indices * desc.dims.rank()};
}
Status Explained(Context& ctx, const Status& failure, const Indices& indices, const DescribeError& explain);

// Launches a gather or scatter and waits for its failure, which `explain` words.
template <typename Desc>
Status LaunchExplained(Context& ctx, const Desc& desc, std::initializer_list<const void*> in, void* out,
                       const DescribeError& explain) {
  const Status status = ctx.LaunchChecked(desc, in, {out}, &explain);
  if (status.code() != Code::kInvalidArgument) return status;
  return Explained(ctx, status, IndicesOf(desc, in), explain);
}

// Launches a gather or scatter, whose dims `indices` address, and waits for its failure.
template <typename Desc>
Status LaunchIndexed(Context& ctx, const Desc& desc, std::initializer_list<const void*> in, void* out,
                     const Tensor& indices, BadIndices policy, const IndexNaming& naming) {
  const DescribeError explain = BadIndex(indices.dims(), desc.dims, naming);
  const bool ignore = policy == BadIndices::kIgnore;
  const Status status = ctx.LaunchChecked(desc, in, {out}, ignore ? nullptr : &explain);
  if (status.code() != Code::kInvalidArgument) return status;
  if (ignore) return OkStatus();
  std::vector<int64_t> values;
  XPU_RETURN_IF_ERROR(FetchIntegers(ctx, indices, &values));
  return explain(status, values);
}

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_ARRAYS_INDEXING_H_
