// Where the elements of a buffer are that is a copy of others, and how to step among those.
#ifndef TENSORFLOW_PLUGIN_COMMANDS_STRIDED_VIEW_H_
#define TENSORFLOW_PLUGIN_COMMANDS_STRIDED_VIEW_H_

#include <vector>

#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::commands {

// True if these are the strides of a dense array; strides of axes of one element mean nothing.
bool IsDense(const Dims& shape, const Dims& strides);

// Element i of a dense buffer, i counting through `shape`, is element `offset` + its index times `strides` elsewhere.
struct StridedView {
  Dims shape, strides;  // no extents of 1, and as few axes as there can be
  int64_t offset = 0;

  bool contiguous() const { return shape.rank() == 0 || (shape.rank() == 1 && strides[0] == 1); }
};

// The copy of so many bytes in a row, in elements of so many.
CopyStridedDesc DenseCopy(int64_t bytes, size_t element_size);

// Where a copy's destination has its elements from; false if it is not dense, or not the whole buffer of so many bytes.
bool ViewOfSource(const CopyStridedDesc& copy, int64_t bytes, StridedView* view);
// Where a copy's source has its elements put; false if those are not a whole buffer of so many bytes, each once.
bool ViewOfTarget(const CopyStridedDesc& copy, int64_t bytes, StridedView* view);

// One axis elsewhere.
struct ViewAxis {
  int64_t extent, stride;
};

// Somebody steps through the dense buffer, from element `start` on, along axes with these extents and strides.
// Elsewhere that is from element *offset on, and each axis one or several pieces, the outermost first. False if there
// are none.
bool ComposeViews(const StridedView& view, int64_t start, const Dims& extents, const Dims& strides,
                  std::vector<std::vector<ViewAxis>>* pieces, int64_t* offset);

}  // namespace xpu::commands

#endif  // TENSORFLOW_PLUGIN_COMMANDS_STRIDED_VIEW_H_
