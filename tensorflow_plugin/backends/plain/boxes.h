// Boxes and their overlaps, and parts of SelectBoxes.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_PLAIN_BOXES_H_
#define TENSORFLOW_PLUGIN_BACKENDS_PLAIN_BOXES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow_plugin/primitives/backend.h"
#include "tensorflow_plugin/primitives/descriptors.h"

namespace xpu::plain {

struct Box {
  explicit Box(const float* corners)
      : low_y(std::min(corners[0], corners[2])),
        low_x(std::min(corners[1], corners[3])),
        high_y(std::max(corners[0], corners[2])),
        high_x(std::max(corners[1], corners[3])),
        area((high_y - low_y) * (high_x - low_x)) {}
  float low_y, low_x, high_y, high_x, area;
};

inline float Overlap(const Box& a, const Box& b) {
  if (a.area <= 0 || b.area <= 0) return 0;
  const float height = std::max(std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y), 0.0f);
  const float width = std::max(std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x), 0.0f);
  const float common = height * width;
  if (common == 0) return 0;  // as nearly always
  return common / (a.area + b.area - common);
}

// A candidate that stays in its class, with its place among the boxes of the image.
struct SelectedBox {
  float score;
  int32_t box, of_class;
};

// True if `a` comes after `b`.
inline bool IsAfter(const SelectedBox& a, const SelectedBox& b) {
  if (a.score != b.score) return a.score < b.score;
  return a.of_class != b.of_class ? a.of_class > b.of_class : a.box > b.box;
}

inline const float* CornersOf(const SelectBoxesDesc& d, const Args& args, int64_t image, const SelectedBox& selected) {
  const int64_t set = d.box_sets == 1 ? 0 : selected.of_class;
  return static_cast<const float*>(args.in[0]) + ((image * d.n + selected.box) * d.box_sets + set) * 4;
}

// Those of a class of an image, by score. Kept is a list of boxes with OverlapMoreThan(threshold, box) and Add(box).
template <typename Kept>
std::vector<SelectedBox> SelectOfClass(const SelectBoxesDesc& d, const Args& args, int64_t image, int32_t of_class) {
  const float* const scores = static_cast<const float*>(args.in[1]) + image * d.n * d.classes + of_class;
  std::vector<SelectedBox> heap;  // most candidates are never looked at
  for (int32_t i = 0; i < d.n; ++i) {
    if (scores[i * d.classes] > d.least) heap.push_back({scores[i * d.classes], i, of_class});
  }
  std::make_heap(heap.begin(), heap.end(), IsAfter);
  std::vector<SelectedBox> selected;
  Kept kept;
  for (auto end = heap.end(); end != heap.begin() && static_cast<int64_t>(selected.size()) < d.most_of_class; --end) {
    std::pop_heap(heap.begin(), end, IsAfter);
    const SelectedBox& next = *(end - 1);
    const Box box(CornersOf(d, args, image, next));
    if (kept.OverlapMoreThan(d.threshold, box)) continue;
    kept.Add(box);
    selected.push_back(next);
  }
  return selected;
}

// Writes the outputs of an image. `selected`: those of its classes.
void StoreSelected(const SelectBoxesDesc& desc, const Args& args, int64_t image,
                   const std::vector<SelectedBox>* selected);

}  // namespace xpu::plain

#endif  // TENSORFLOW_PLUGIN_BACKENDS_PLAIN_BOXES_H_
