#include <array>
#include <vector>

#include "tensorflow_plugin/backends/cpu/cost.h"
#include "tensorflow_plugin/backends/cpu/kernels.h"
#include "tensorflow_plugin/backends/cpu/nn/select_boxes_loops.h"
#include "tensorflow_plugin/backends/cpu/simd/isa.h"
#include "tensorflow_plugin/backends/plain/boxes.h"

namespace xpu::cpu {
namespace {

class KeptBoxes {
 public:
  bool OverlapMoreThan(float threshold, const plain::Box& box) const {
    const BoxColumns columns = {columns_[0].data(), columns_[1].data(), columns_[2].data(), columns_[3].data(),
                                columns_[4].data()};
    return XPU_PICK_ISA(OverlapMoreThan)(threshold, box, columns, count_);
  }
  void Add(const plain::Box& box) {
    constexpr int64_t kMostLanes = 16;
    const float values[] = {box.low_y, box.low_x, box.high_y, box.high_x, box.area};
    for (size_t k = 0; k < columns_.size(); ++k) {
      if (count_ % kMostLanes == 0) columns_[k].resize(count_ + kMostLanes);
      columns_[k][count_] = values[k];
    }
    ++count_;
  }

 private:
  std::array<std::vector<float>, 5> columns_;
  int64_t count_ = 0;
};

}  // namespace

// Threads share the classes of all images, and then the images.
Status CpuKernels::Run(const SelectBoxesDesc& d, const Args& args, const host_runtime::ThreadTeam& team) const {
  std::vector<std::vector<plain::SelectedBox>> selected(d.batch * d.classes);
  team.ParallelFor(d.batch * d.classes, Grain(EstimateNs(d), d.batch * d.classes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      selected[i] = plain::SelectOfClass<KeptBoxes>(d, args, i / d.classes, static_cast<int32_t>(i % d.classes));
    }
  });
  team.ParallelFor(d.batch, GrainFor(static_cast<double>(d.classes * 100)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) plain::StoreSelected(d, args, i, selected.data() + i * d.classes);
  });
  return OkStatus();
}

}  // namespace xpu::cpu
