// The arguments of tensor[begin:end:stride, ...] resolved against a shape: one parser for all ops that take them.
#ifndef TENSORFLOW_PLUGIN_OPS_ARRAYS_STRIDED_SLICE_H_
#define TENSORFLOW_PLUGIN_OPS_ARRAYS_STRIDED_SLICE_H_

#include <cstdint>
#include <vector>

#include "tensorflow_plugin/ops/arrays/util.h"

namespace xpu {

struct SliceMasks {
  explicit SliceMasks(Construction& c)
      : begin(c.Attr<int32_t>("begin_mask")),
        end(c.Attr<int32_t>("end_mask")),
        ellipsis(c.Attr<int32_t>("ellipsis_mask")),
        new_axis(c.Attr<int32_t>("new_axis_mask")),
        shrink(c.Attr<int32_t>("shrink_axis_mask")) {}
  int64_t begin, end, ellipsis, new_axis, shrink;
};

struct StridedSlice {
  Dims shape;             // of the result, new axes included and shrunk ones left out
  View view;              // where the result's elements are in the dense array
  bool identity = false;  // the result is the whole array, in order
};

// Resolves host tensors begin, end and strides against an array of shape `dims`.
Status ParseStridedSlice(const Dims& dims, const Tensor& begin, const Tensor& end, const Tensor& strides,
                         const SliceMasks& masks, StridedSlice* out);

// The failure of an index, as given, into dimension `dim`.
Status SliceIndexOutOfBounds(int64_t index, int dim);

// For Slice: the arguments' shapes; what they say, with each size of -1 resolved; and the copy, as output 0.
Status CheckSliceArguments(const Tensor& x, const Tensor& begin, const Tensor& size);
Status CheckSlice(const Dims& dims, const std::vector<int64_t>& begin, std::vector<int64_t>* size);
Status CopySlice(Context& ctx, const Tensor& x, const std::vector<int64_t>& begin, std::vector<int64_t> size);

}  // namespace xpu

#endif  // TENSORFLOW_PLUGIN_OPS_ARRAYS_STRIDED_SLICE_H_
