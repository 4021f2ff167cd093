#include <algorithm>
#include <vector>

#include "tensorflow_plugin/backends/plain/boxes.h"
#include "tensorflow_plugin/backends/plain/loops.h"

namespace xpu::plain {
namespace {

class KeptBoxes {
 public:
  // Neighbours in the order of their scores tend to overlap: the latest first.
  bool OverlapMoreThan(float threshold, const Box& box) const {
    return std::any_of(boxes_.rbegin(), boxes_.rend(), [&](const Box& kept) { return Overlap(box, kept) > threshold; });
  }
  void Add(const Box& box) { boxes_.push_back(box); }

 private:
  std::vector<Box> boxes_;
};

}  // namespace

void StoreSelected(const SelectBoxesDesc& d, const Args& args, int64_t image,
                   const std::vector<SelectedBox>* selected) {
  std::vector<SelectedBox> all;
  for (int64_t c = 0; c < d.classes; ++c) all.insert(all.end(), selected[c].begin(), selected[c].end());
  const int64_t count = std::min<int64_t>(static_cast<int64_t>(all.size()), d.rows);
  std::partial_sort(all.begin(), all.begin() + count, all.end(),
                    [](const SelectedBox& a, const SelectedBox& b) { return IsAfter(b, a); });
  float* const boxes = static_cast<float*>(args.out[0]) + image * d.rows * 4;
  float* const scores = static_cast<float*>(args.out[1]) + image * d.rows;
  float* const classes = static_cast<float*>(args.out[2]) + image * d.rows;
  for (int64_t i = 0; i < count; ++i) {
    const float* const corners = CornersOf(d, args, image, all[i]);
    for (int k = 0; k < 4; ++k) boxes[i * 4 + k] = d.clip ? std::max(std::min(corners[k], 1.0f), 0.0f) : corners[k];
    scores[i] = all[i].score;
    classes[i] = static_cast<float>(all[i].of_class);
  }
  std::fill(boxes + count * 4, boxes + d.rows * 4, 0.0f);
  std::fill(scores + count, scores + d.rows, 0.0f);
  std::fill(classes + count, classes + d.rows, 0.0f);
  static_cast<int32_t*>(args.out[3])[image] = static_cast<int32_t>(count);
}

Status Run(const SelectBoxesDesc& d, const Args& args) {
  for (int64_t image = 0; image < d.batch; ++image) {
    std::vector<std::vector<SelectedBox>> selected;
    for (int32_t c = 0; c < d.classes; ++c) selected.push_back(SelectOfClass<KeptBoxes>(d, args, image, c));
    StoreSelected(d, args, image, selected.data());
  }
  return OkStatus();
}

}  // namespace xpu::plain
