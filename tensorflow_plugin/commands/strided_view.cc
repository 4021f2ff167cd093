#include "tensorflow_plugin/commands/strided_view.h"

#include <algorithm>
#include <numeric>

namespace xpu::commands {
namespace {

// The view from axes in the order of the dense buffer, whose strides there are `dense`; false if it is none.
bool MakeView(const std::vector<int>& order, const CopyStridedDesc& copy, const Dims& dense, const Dims& elsewhere,
              int64_t bytes, StridedView* view) {
  view->shape = view->strides = Dims();
  Dims there;
  for (int axis : order) {
    if (copy.shape[axis] == 1) continue;
    view->shape.push_back(copy.shape[axis]);
    view->strides.push_back(elsewhere[axis]);
    there.push_back(dense[axis]);
  }
  const int64_t elements = view->shape.num_elements();
  if (elements == 0 || elements * static_cast<int64_t>(copy.element_size) != bytes) return false;
  if (there != DenseStrides(view->shape)) return false;
  Dims* const strides[] = {&view->strides};
  MergeDims(&view->shape, strides, 1);
  if (view->shape.rank() == 1 && view->shape[0] == 1) view->shape = view->strides = Dims();
  return true;
}

}  // namespace

bool IsDense(const Dims& shape, const Dims& strides) {
  const Dims dense = DenseStrides(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != 1 && strides[i] != dense[i]) return false;
  }
  return true;
}

CopyStridedDesc DenseCopy(int64_t bytes, size_t element_size) {
  CopyStridedDesc copy;
  copy.element_size = element_size;
  copy.shape = {bytes / static_cast<int64_t>(element_size)};
  copy.src_strides = copy.dst_strides = {1};
  return copy;
}

bool ViewOfSource(const CopyStridedDesc& copy, int64_t bytes, StridedView* view) {
  if (copy.dst_offset != 0) return false;
  std::vector<int> order(copy.shape.rank());
  std::iota(order.begin(), order.end(), 0);
  view->offset = copy.src_offset;
  return MakeView(order, copy, copy.dst_strides, copy.src_strides, bytes, view);
}

bool ViewOfTarget(const CopyStridedDesc& copy, int64_t bytes, StridedView* view) {
  if (copy.src_offset != 0) return false;
  std::vector<int> order(copy.shape.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return copy.src_strides[a] > copy.src_strides[b]; });
  view->offset = copy.dst_offset;
  return MakeView(order, copy, copy.src_strides, copy.dst_strides, bytes, view);
}

bool ComposeViews(const StridedView& view, int64_t start, const Dims& extents, const Dims& strides,
                  std::vector<std::vector<ViewAxis>>* pieces, int64_t* offset) {
  const int rank = view.shape.rank();
  const Dims dense = DenseStrides(view.shape);
  // The highest index in each axis so far: beyond its extent a step would carry into the next axis.
  Dims reached(rank, 0);
  *offset = view.offset;
  for (int j = 0; j < rank; ++j) {
    reached[j] = start / dense[j];
    start -= reached[j] * dense[j];
    *offset += reached[j] * view.strides[j];
    if (reached[j] >= view.shape[j]) return false;
  }
  if (start != 0) return false;
  pieces->assign(extents.rank(), {});
  for (int i = 0; i < extents.rank(); ++i) {
    std::vector<ViewAxis>& found = (*pieces)[i];  // the innermost first
    int64_t extent = extents[i], stride = strides[i];
    if (extent <= 1 || stride == 0) {
      found.push_back({extent, 0});
      continue;
    }
    if (stride < 0) return false;
    while (extent > 1) {
      int j = 0;
      while (j < rank && dense[j] > stride) ++j;
      if (j == rank || stride % dense[j] != 0) return false;
      const int64_t steps = stride / dense[j], end = view.shape[j];
      int64_t inner = extent;
      if (reached[j] + (extent - 1) * steps >= end) {
        // The axis goes on in the next one, if it fills this one.
        if (j == 0 || end % steps != 0 || extent % (end / steps) != 0) return false;
        inner = end / steps;
      }
      reached[j] += (inner - 1) * steps;
      if (inner < 2 || reached[j] >= end) return false;
      found.push_back({inner, steps * view.strides[j]});
      extent /= inner;
      stride *= inner;
    }
    std::reverse(found.begin(), found.end());
  }
  return true;
}

}  // namespace xpu::commands
