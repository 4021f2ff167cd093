// The loop of SelectBoxes (select_boxes.cc), once per instruction set.
#ifndef TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SELECT_BOXES_LOOPS_H_
#define TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SELECT_BOXES_LOOPS_H_

#include <cstdint>

#include "tensorflow_plugin/backends/cpu/simd/vector_math.h"
#include "tensorflow_plugin/backends/plain/boxes.h"

namespace xpu::cpu {

// The members of boxes, one array for each, of whole vectors.
struct BoxColumns {
  const float *low_y, *low_x, *high_y, *high_x, *area;
};

}  // namespace xpu::cpu

#define XPU_ISA_FILE "tensorflow_plugin/backends/cpu/nn/select_boxes_loops.h"
#define XPU_ISA baseline
#define XPU_VECTOR_BYTES 16
#endif  // TENSORFLOW_PLUGIN_BACKENDS_CPU_NN_SELECT_BOXES_LOOPS_H_

#if defined(XPU_ISA)
namespace xpu::cpu::XPU_ISA {

// The same as std::min, also of NaN, as Max is the same as std::max.
static inline VF Min(VF a, VF b) { return b < a ? b : a; }

// True if one of `count` boxes overlaps this one (plain::Overlap) by more than the threshold. The latest come first.
static inline bool OverlapMoreThan(float threshold, const plain::Box& box, const BoxColumns& boxes, int64_t count) {
  const VF low_y = Splat<VF>(box.low_y), low_x = Splat<VF>(box.low_x), high_y = Splat<VF>(box.high_y),
           high_x = Splat<VF>(box.high_x), area = Splat<VF>(box.area), zero = {};
  if (box.area <= 0) return count > 0 && threshold < 0;
  for (int64_t i = (count + kLanes - 1) / kLanes * kLanes - kLanes; i >= 0; i -= kLanes) {
    const VF other_area = Load(boxes.area + i);
    const VF height = Max(Min(high_y, Load(boxes.high_y + i)) - Max(low_y, Load(boxes.low_y + i)), zero);
    const VF width = Max(Min(high_x, Load(boxes.high_x + i)) - Max(low_x, Load(boxes.low_x + i)), zero);
    const VF common = Uncontracted(height * width);
    VF overlap = common / (area + other_area - common);
    overlap = Select((other_area <= zero) | (common == zero), zero, overlap);
    const VI is_there = LaneIds() < Splat<VI>(static_cast<int32_t>(count - i < kLanes ? count - i : kLanes));
    const VI found = (overlap > threshold) & is_there;
    int32_t any = 0;
    for (int lane = 0; lane < kLanes; ++lane) any |= found[lane];
    if (any != 0) return true;
  }
  return false;
}

}  // namespace xpu::cpu::XPU_ISA
#include "tensorflow_plugin/backends/cpu/simd/each_isa.h"
#endif  // XPU_ISA
